// SPDX-License-Identifier: GPL-2.0-only
#include "symbolize/codestore.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/session.h"
#include "symbolize/storefile.h"
#include "util/text.h"
#include "util/xalloc.h"

/* ---------- runs ---------- */

/* Index of the first run that ends behind @start. */
static size_t first_behind(const struct code_runs *r, uint64_t start)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->run[mid].start + r->run[mid].len <= start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void insert(struct code_runs *r, size_t at, uint64_t start, const uint8_t *bytes,
		   uint64_t len)
{
	if (!len || r->n >= CODESTORE_MAX_RUNS || len > CODESTORE_MAX_BYTES - r->bytes)
		return;
	r->run = xgrow(r->run, &r->cap, r->n + 1, sizeof(*r->run));
	memmove(&r->run[at + 1], &r->run[at], (r->n - at) * sizeof(*r->run));
	r->run[at] = (struct code_run){start, len, xmalloc(len)};
	memcpy(r->run[at].bytes, bytes, len);
	r->n++;
	r->bytes += len;
}

void code_runs_add(struct code_runs *r, uint64_t start, const uint8_t *bytes, uint64_t len)
{
	if (start + len < start)
		return;
	while (len) {
		size_t at = first_behind(r, start);
		uint64_t next = at < r->n ? r->run[at].start : UINT64_MAX, part, skip;

		if (next <= start) { /* there already */
			part = r->run[at].start + r->run[at].len - start;
			skip = part < len ? part : len;
		} else {
			skip = len < next - start ? len : next - start;
			insert(r, at, start, bytes, skip);
		}
		start += skip;
		bytes += skip;
		len -= skip;
	}
}

const struct code_run *code_runs_find(const struct code_runs *r, uint64_t start)
{
	size_t at = first_behind(r, start);

	return at < r->n && r->run[at].start <= start ? &r->run[at] : NULL;
}

void code_runs_free(struct code_runs *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->run[i].bytes);
	free(r->run);
	*r = (struct code_runs){0};
}

/* ---------- the file ---------- */

static const char names[] = "\0.text\0.note.gnu.build-id\0.shstrtab";

enum { NAME_TEXT = 1, NAME_NOTE = 7, NAME_NAMES = 26, NR_OTHERS = 3 };

static void align(struct buf *b)
{
	buf_zero(b, (8 - b->len % 8) % 8);
}

static void make_file(struct buf *b, const uint8_t *id, uint32_t id_len, uint16_t machine,
		      const struct code_runs *r)
{
	Elf64_Shdr *h = xcalloc(r->n + NR_OTHERS, sizeof(*h));
	Elf64_Ehdr e = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(e),
		.e_shentsize = sizeof(*h),
		.e_shnum = (Elf64_Half)(r->n + NR_OTHERS),
		.e_shstrndx = (Elf64_Half)(r->n + NR_OTHERS - 1),
	};
	size_t i = 1;

	buf_zero(b, sizeof(e));
	h[i++] = (Elf64_Shdr){.sh_name = NAME_NOTE,
			      .sh_type = SHT_NOTE,
			      .sh_offset = b->len,
			      .sh_size = 16 + id_len,
			      .sh_addralign = 4};
	buf_u32(b, 4);
	buf_u32(b, id_len);
	buf_u32(b, NT_GNU_BUILD_ID);
	buf_add(b, "GNU", 4);
	buf_add(b, id, id_len);
	for (size_t j = 0; j < r->n; j++) {
		align(b);
		h[i++] = (Elf64_Shdr){.sh_name = NAME_TEXT,
				      .sh_type = SHT_PROGBITS,
				      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				      .sh_addr = r->run[j].start,
				      .sh_offset = b->len,
				      .sh_size = r->run[j].len,
				      .sh_addralign = 1};
		buf_add(b, r->run[j].bytes, r->run[j].len);
	}
	h[i++] = (Elf64_Shdr){.sh_name = NAME_NAMES,
			      .sh_type = SHT_STRTAB,
			      .sh_offset = b->len,
			      .sh_size = sizeof(names),
			      .sh_addralign = 1};
	buf_add(b, names, sizeof(names));
	align(b);
	e.e_shoff = b->len;
	buf_add(b, h, i * sizeof(*h));
	memcpy(b->data, &e, sizeof(e));
	free(h);
}

static int read_runs(struct code_runs *r, const struct elf_file *f)
{
	for (size_t i = 1; i < f->nr_sections; i++) {
		const struct elf_section *s = &f->sections[i];
		uint8_t *bytes;
		int ret;

		if (s->type != SHT_PROGBITS || !(s->flags & SHF_EXECINSTR) || !s->size)
			continue;
		bytes = elf_file_bytes(f, s->offset, s->size, CODESTORE_MAX_BYTES, &ret);
		if (!bytes)
			return ret;
		code_runs_add(r, s->addr, bytes, s->size);
		free(bytes);
		if (r->n >= CODESTORE_MAX_RUNS)
			break;
	}
	return 0;
}

int codestore_read(struct code_runs *r, const char *path, const uint8_t *build_id,
		   uint32_t build_id_len, uint16_t *machine, struct vmprof_err *err)
{
	struct elf_file f;
	char name[512];
	int fd, ret;

	*r = (struct code_runs){0};
	ret = elf_file_open_path(&f, &fd, path, name, sizeof(name), err);
	if (ret)
		return ret;
	ret = elf_file_check_build_id(&f, build_id, build_id_len, err);
	if (!ret) {
		ret = read_runs(r, &f);
		if (ret)
			err_set(err, ret, "%s: the code in it cannot be read", name);
	}
	if (machine)
		*machine = f.machine;
	elf_file_close(&f);
	close(fd);
	if (ret)
		code_runs_free(r);
	return ret;
}

static int code_path(char *path, const char *dir, const char *name, const uint8_t *id, uint32_t len)
{
	char hex[41];
	size_t n;
	int ret;

	if (len < 2 || len > 20)
		return -ENOENT;
	hex_str(hex, id, len);
	ret = storefile_path(path, PATH_MAX, dir, name, hex);
	n = strlen(path);
	if (!ret && (size_t)snprintf(path + n, PATH_MAX - n, "/code") >= PATH_MAX - n)
		ret = -ENAMETOOLONG;
	return ret;
}

int codestore_get(const char *dir, const char *name, const uint8_t *build_id, uint32_t build_id_len,
		  char *path)
{
	struct stat st;
	int ret = code_path(path, dir, name, build_id, build_id_len);

	if (!ret && (stat(path, &st) || !S_ISREG(st.st_mode)))
		ret = -ENOENT;
	return ret;
}

int codestore_put(const char *dir, const char *name, const uint8_t *build_id, uint32_t build_id_len,
		  uint16_t machine, const struct code_runs *r, struct vmprof_err *err)
{
	char path[PATH_MAX], below[PATH_MAX], hex[41];
	struct code_runs all = {0}, old;
	struct buf b = {0};
	int ret = code_path(path, dir, name, build_id, build_id_len);

	if (!ret) {
		hex_str(hex, build_id, build_id_len);
		ret = storefile_path(below, sizeof(below), "", name, hex);
	}
	if (!ret)
		ret = storefile_make_dirs(dir, below);
	if (ret)
		return err_sys(err, -ret, "cannot save code in %s", dir);
	for (size_t i = 0; i < r->n; i++)
		code_runs_add(&all, r->run[i].start, r->run[i].bytes, r->run[i].len);
	if (!codestore_read(&old, path, build_id, build_id_len, NULL, NULL))
		for (size_t i = 0; i < old.n; i++)
			code_runs_add(&all, old.run[i].start, old.run[i].bytes, old.run[i].len);
	make_file(&b, build_id, build_id_len, machine, &all);
	ret = storefile_write(path, &b);
	code_runs_free(&all);
	code_runs_free(&old);
	buf_free(&b);
	return ret ? err_sys(err, -ret, "cannot save code in %s", dir) : 0;
}
