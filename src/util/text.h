// SPDX-License-Identifier: GPL-2.0-only
/*
 * Text that came from outside (guest, file, QEMU) on its way to a terminal, a file name or XML.
 */
#ifndef VMPROF_UTIL_TEXT_H
#define VMPROF_UTIL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/**
 * escape_str - @s for a terminal: control characters, DEL, C1 controls and invalid UTF-8 become
 * \xNN
 *
 * Valid printable UTF-8 stays. Writes at most @size bytes with the NUL, cutting at a whole
 * character or escape. Returns @out.
 */
char *escape_str(char *out, size_t size, const char *s);

struct strtab;
/* The same, whole, interned in @t. */
const char *strtab_intern_escaped(struct strtab *t, const char *s);

/* The same to a stream; returns the columns written (one a code point). */
size_t escape_fputs(const char *s, FILE *f);

/* @s as text or attribute value of XML/HTML: & < > " ' as entities, what XML forbids as U+FFFD. */
void xml_fputs(const char *s, FILE *f);

/* @s as the inside of a JSON string, quotes not included; invalid UTF-8 becomes U+FFFD. */
void json_fputs(const char *s, FILE *f);

/**
 * file_safe_name - @s as one component of a path: [A-Za-z0-9._+-] stay, others become '_'
 *
 * Never empty, never "." or "..", never with a leading '-' or '.'.
 */
char *file_safe_name(char *out, size_t size, const char *s);

/* Shell-style pattern, or plain equality when @pattern has no wildcard. */
bool text_match(const char *pattern, const char *s);

/*
 * One element of a comma-separated list, or the whole list, equal to @s? A list is what
 * --vm/--comms/--dsos take.
 * "\," is a comma of an element's own; other backslashes are themselves.
 */
bool list_has(const char *list, const char *s);

/* "10", "1.5", "500ms", "10s", "2m": to nanoseconds. Returns 0 or -EINVAL. */
int parse_duration(const char *s, uint64_t *ns);

/* "512", "64K", "2M", "3G", "1T" with @unit for a bare number: to bytes. Returns 0 or -EINVAL. */
int parse_size(const char *s, uint64_t unit, uint64_t *bytes);

/* Hex digits of @n bytes to @out (2n + 1 bytes). */
void hex_str(char *out, const uint8_t *b, size_t n);

#endif
