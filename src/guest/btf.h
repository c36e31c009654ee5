// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's types out of BTF (Documentation/bpf/btf.rst, include/uapi/linux/btf.h).
 */
#ifndef VMPROF_GUEST_BTF_H
#define VMPROF_GUEST_BTF_H

#include <stddef.h>
#include <stdint.h>

#define BTF_MAX_SIZE   (64u << 20)

#define BTF_BEGIN      "\x9f\xeb\x01" /* magic and version, little endian */
#define BTF_HEADER_LEN 24

struct btf;

/* How long a BTF is whose header (BTF_HEADER_LEN) is @data; 0 if it is none. */
size_t btf_length(const uint8_t *data);

/*
 * Takes @data (malloc'ed) over, on failure too. NULL if it is no BTF. Types behind one of an
 * unknown kind are not known.
 */
struct btf *btf_new(uint8_t *data, size_t len);
void btf_free(struct btf *b); /* NULL is fine */

/* As guest_kernel_member() etc. say; arrays on the way stand for their first element. */
int btf_member(const struct btf *b, const char *type, const char *member);
int btf_sizeof(const struct btf *b, const char *type);
int btf_enum(const struct btf *b, const char *enumerator, int64_t *value);

#endif
