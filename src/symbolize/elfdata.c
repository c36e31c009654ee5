// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is inside of sections: compressed ones, the xz file of mini debug info, the name of a
 * separate debug file. Sizes that a file claims are taken for a bound only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if HAVE_ZLIB
#include <zlib.h>
#endif
#if HAVE_LIBZSTD
#include <zstd.h>
#endif
#if HAVE_LIBLZMA
#include <lzma.h>
#endif

#include "symbolize/elffile.h"
#include "util/xalloc.h"

enum {
	MAX_COMPRESSED = 256 << 20,
	MAX_DEBUG_DATA = 64 << 20, /* unpacked: a hundred times what a large program has */
	MAX_XZ_MEMORY = 128 << 20,
	MAX_LINK = 512, /* bytes of .gnu_debuglink */
	XZ_STEP = 1 << 20,
};

#ifndef ELFCOMPRESS_ZSTD /* glibc 2.36 has it not */
#define ELFCOMPRESS_ZSTD 2
#endif

/* Exactly @to_len bytes come out, or it is damaged. */
static int unpack_zlib(uint8_t *to, uint64_t to_len, const uint8_t *from, uint64_t len)
{
#if HAVE_ZLIB
	uLongf got = to_len;

	return uncompress(to, &got, from, len) == Z_OK && got == to_len ? 0 : -EBADMSG;
#else
	return -ENOSYS;
#endif
}

static int unpack_zstd(uint8_t *to, uint64_t to_len, const uint8_t *from, uint64_t len)
{
#if HAVE_LIBZSTD
	return ZSTD_decompress(to, to_len, from, len) == to_len ? 0 : -EBADMSG;
#else
	return -ENOSYS;
#endif
}

static const struct {
	uint32_t type;
	int (*unpack)(uint8_t *to, uint64_t to_len, const uint8_t *from, uint64_t len);
} methods[] = {{ELFCOMPRESS_ZLIB, unpack_zlib}, {ELFCOMPRESS_ZSTD, unpack_zstd}};

static int unpack(uint32_t type, uint8_t *to, uint64_t to_len, const uint8_t *from, uint64_t len)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (methods[i].type == type)
			return methods[i].unpack(to, to_len, from, len);
	return -EBADMSG;
}

static void *unpack_section(const struct elf_file *f, const uint8_t *raw, uint64_t len,
			    uint64_t max, uint64_t *size, int *ret)
{
	size_t header = f->is64 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
	Elf32_Chdr h32;
	Elf64_Chdr h;
	uint8_t *p;

	*ret = -EBADMSG;
	if (len < header)
		return NULL;
	if (f->is64) {
		memcpy(&h, raw, sizeof(h));
	} else {
		memcpy(&h32, raw, sizeof(h32));
		h = (Elf64_Chdr){.ch_type = h32.ch_type, .ch_size = h32.ch_size};
	}
	if (h.ch_size > max) {
		*ret = -E2BIG;
		return NULL;
	}
	p = xmalloc(h.ch_size + 1);
	*ret = unpack(h.ch_type, p, h.ch_size, raw + header, len - header);
	if (*ret) {
		free(p);
		return NULL;
	}
	p[h.ch_size] = 0;
	*size = h.ch_size;
	return p;
}

/* The older form, of sections named .zdebug_*: "ZLIB", the size in big endian, the data. */
static void *unpack_old(const uint8_t *raw, uint64_t len, uint64_t max, uint64_t *size, int *ret)
{
	uint64_t n = 0;
	uint8_t *p;

	*ret = -EBADMSG;
	if (len < 12 || memcmp(raw, "ZLIB", 4) != 0)
		return NULL;
	for (int i = 4; i < 12; i++)
		n = n << 8 | raw[i];
	if (n > max) {
		*ret = -E2BIG;
		return NULL;
	}
	p = xmalloc(n + 1);
	*ret = unpack_zlib(p, n, raw + 12, len - 12);
	if (*ret) {
		free(p);
		return NULL;
	}
	p[n] = 0;
	*size = n;
	return p;
}

void *elf_section_data(const struct elf_file *f, const struct elf_section *sec, uint64_t max,
		       uint64_t *size, int *ret)
{
	bool old = !strncmp(sec->name, ".zdebug_", 8), packed = sec->flags & SHF_COMPRESSED || old;
	void *raw = elf_file_bytes(f, sec->offset, sec->size, packed ? MAX_COMPRESSED : max, ret);
	void *p;

	*size = sec->size;
	if (!raw || !packed)
		return raw;
	p = old ? unpack_old(raw, sec->size, max, size, ret)
		: unpack_section(f, raw, sec->size, max, size, ret);
	free(raw);
	return p;
}

ssize_t elf_read_memory(void *ctx, uint64_t off, void *buf, size_t len)
{
	const struct elf_memory *m = ctx;

	if (off >= m->size)
		return 0;
	if (len > m->size - off)
		len = m->size - off;
	memcpy(buf, m->bytes + off, len);
	return (ssize_t)len;
}

#if HAVE_LIBLZMA
/* One xz stream, whole; its size is known only at its end. */
static uint8_t *unpack_xz(const uint8_t *from, uint64_t len, uint64_t *size)
{
	lzma_stream s = LZMA_STREAM_INIT;
	lzma_ret ret = lzma_stream_decoder(&s, MAX_XZ_MEMORY, 0);
	uint8_t *p = NULL;
	size_t cap = 0, have = 0;

	s.next_in = from;
	s.avail_in = len;
	while (ret == LZMA_OK && have < MAX_DEBUG_DATA) {
		p = xgrow(p, &cap, have + XZ_STEP, 1);
		s.next_out = p + have;
		s.avail_out = XZ_STEP;
		ret = lzma_code(&s, LZMA_FINISH);
		have += XZ_STEP - s.avail_out;
	}
	lzma_end(&s);
	if (ret != LZMA_STREAM_END) {
		free(p);
		return NULL;
	}
	*size = have;
	return p;
}

uint8_t *elf_debug_data(const struct elf_file *f, uint64_t *size)
{
	const struct elf_section *sec = elf_file_section(f, ".gnu_debugdata", SHT_PROGBITS);
	uint8_t *raw, *p;
	uint64_t len;
	int ret;

	raw = sec ? elf_section_data(f, sec, MAX_DEBUG_DATA, &len, &ret) : NULL;
	p = raw ? unpack_xz(raw, len, size) : NULL;
	free(raw);
	return p;
}
#else
uint8_t *elf_debug_data(const struct elf_file *f, uint64_t *size)
{
	return NULL;
}
#endif

/* A name, a NUL, zeros up to a multiple of 4, the CRC. */
bool elf_debug_link(const struct elf_file *f, char name[256], uint32_t *crc)
{
	const struct elf_section *sec = elf_file_section(f, ".gnu_debuglink", SHT_PROGBITS);
	uint64_t size, len;
	bool good;
	char *p;
	int ret;

	p = sec ? elf_section_data(f, sec, MAX_LINK, &size, &ret) : NULL;
	if (!p)
		return false;
	len = strnlen(p, size);
	good = len && len < 256 && ((len + 4) & ~3ull) + 4 <= size && !strchr(p, '/') &&
	       strcmp(p, ".") != 0 && strcmp(p, "..") != 0;
	if (good) {
		memcpy(name, p, len + 1);
		memcpy(crc, p + ((len + 4) & ~3ull), sizeof(*crc));
	}
	free(p);
	return good;
}

/* A name, a NUL, the build id. */
bool elf_alt_link(const struct elf_file *f, char name[ELF_MAX_PATH], uint8_t id[20], uint32_t *len)
{
	const struct elf_section *sec = elf_file_section(f, ".gnu_debugaltlink", SHT_PROGBITS);
	uint64_t size, n;
	bool good;
	char *p;
	int ret;

	p = sec ? elf_section_data(f, sec, ELF_MAX_PATH, &size, &ret) : NULL;
	if (!p)
		return false;
	n = strnlen(p, size);
	good = n && n + 1 < size;
	if (good) {
		memcpy(name, p, n + 1);
		size -= n + 1;
		*len = size < 20 ? (uint32_t)size : 20;
		memcpy(id, p + n + 1, *len);
	}
	free(p);
	return good;
}

bool elf_has_crc(int fd, uint32_t crc)
{
#if HAVE_ZLIB
	enum { STEP = 1 << 18 };
	uint8_t *buf = xmalloc(STEP);
	uLong sum = crc32(0, NULL, 0);
	ssize_t n;

	for (uint64_t off = 0; (n = elf_read_fd(&fd, off, buf, STEP)) > 0; off += (uint64_t)n)
		sum = crc32(sum, buf, (uInt)n);
	free(buf);
	return !n && (uint32_t)sum == crc;
#else
	return false;
#endif
}
