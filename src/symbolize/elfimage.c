// SPDX-License-Identifier: GPL-2.0-only
/*
 * Symbols of a loaded image, by its dynamic section: what the dynamic linker goes by is in memory
 * when pages of the file that hold the section table are not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/symtab.h"
#include "util/text.h"
#include "util/xalloc.h"

enum {
	MAX_DYNAMIC = 1024, /* entries */
	MAX_BUCKETS = 1 << 22,
	MAX_GUESSES = 1 << 16, /* pages tried as the place of the hash table */
};

struct image {
	struct elf_file f; /* its size: end of what is loaded, relative to the bias */
	uint64_t symtab, strtab, strsz, hash, gnu_hash; /* 0: none */
};

/* Where the first page of an image is if not at its load bias: links of fixed address. */
static const uint64_t bases[] = {0, 0x400000, 0x200000, 0x10000, 0x8048000};

static int read_at(const struct image *im, uint64_t addr, void *buf, size_t len)
{
	if (addr > im->f.size || len > im->f.size - addr)
		return -EFAULT;
	return elf_read_all(im->f.read, im->f.ctx, addr, buf, len);
}

struct based_read {
	elf_read_fn *read;
	void *ctx;
	uint64_t base;
};

static ssize_t read_based(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct based_read *b = ctx;

	return b->read(b->ctx, b->base + off, buf, len);
}

/* Headers are at the start of the first page, and segments say their addresses. */
static int open_image(struct image *im, elf_read_fn *read, void *ctx, const char *name,
		      struct vmprof_err *err)
{
	int ret = -ENOEXEC;

	for (size_t i = 0; ret && i < sizeof(bases) / sizeof(*bases); i++) {
		struct based_read based = {read, ctx, bases[i]};

		ret = elf_file_open(&im->f, read_based, &based, INT64_MAX, name, false, err);
		if (ret)
			continue;
		if (!im->f.nr_loads || im->f.loads[0].vaddr - im->f.loads[0].offset != bases[i]) {
			elf_file_close(&im->f);
			ret = err_set(err, EBADMSG, "%s: no ELF header where it is loaded", name);
		}
	}
	if (ret)
		return ret;
	im->f.read = read;
	im->f.ctx = ctx;
	im->f.size = 0;
	for (uint32_t i = 0; i < im->f.nr_loads; i++) {
		const struct elf_load *l = &im->f.loads[i];

		if (l->size <= INT64_MAX && l->vaddr <= INT64_MAX &&
		    l->vaddr + l->size > im->f.size)
			im->f.size = l->vaddr + l->size;
	}
	return 0;
}

static void take_dynamic(struct image *im, int64_t tag, uint64_t value)
{
	if (tag == DT_SYMTAB)
		im->symtab = value;
	else if (tag == DT_STRTAB)
		im->strtab = value;
	else if (tag == DT_STRSZ)
		im->strsz = value;
	else if (tag == DT_HASH)
		im->hash = value;
	else if (tag == DT_GNU_HASH)
		im->gnu_hash = value;
}

static int read_dynamic(struct image *im)
{
	size_t entsize = im->f.is64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn), n;
	const struct elf_segment *dyn = NULL;
	uint8_t *p;
	int ret;

	for (size_t i = 0; i < im->f.nr_segments; i++)
		if (im->f.segments[i].type == PT_DYNAMIC)
			dyn = &im->f.segments[i];
	if (!dyn)
		return -ENOENT;
	n = dyn->memsz / entsize < MAX_DYNAMIC ? dyn->memsz / entsize : MAX_DYNAMIC;
	p = elf_file_bytes(&im->f, dyn->vaddr, n * entsize, UINT32_MAX, &ret);
	if (!p)
		return ret;
	for (size_t i = 0; i < n; i++) {
		Elf64_Dyn d;
		Elf32_Dyn d32;

		if (im->f.is64) {
			memcpy(&d, p + i * entsize, sizeof(d));
		} else {
			memcpy(&d32, p + i * entsize, sizeof(d32));
			d = (Elf64_Dyn){.d_tag = d32.d_tag, .d_un.d_val = d32.d_un.d_val};
		}
		if (d.d_tag == DT_NULL)
			break;
		take_dynamic(im, d.d_tag, d.d_un.d_val);
	}
	free(p);
	return im->symtab && im->strtab && im->strsz && (im->hash || im->gnu_hash) ? 0 : -ENOENT;
}

/* .gnu.hash: nbuckets, first symbol in the table, words of the Bloom filter, its shift */
static bool plausible_gnu_hash(const struct image *im, uint64_t at, uint32_t h[4])
{
	uint64_t word = im->f.is64 ? 8 : 4;

	return !read_at(im, at, h, 16) && h[0] && h[0] <= MAX_BUCKETS && h[1] &&
	       h[1] <= ELF_MAX_SYMBOLS && h[2] && h[2] <= MAX_BUCKETS && !(h[2] & (h[2] - 1)) &&
	       h[3] < 64 && at + 16 + h[2] * word + h[0] * 4ull <= im->f.size;
}

/* .hash: nbuckets, number of symbols */
static bool plausible_hash(const struct image *im, uint64_t at, uint32_t h[4])
{
	return !read_at(im, at, h, 8) && h[0] && h[0] <= MAX_BUCKETS && h[1] &&
	       h[1] <= ELF_MAX_SYMBOLS && at + 8 + (h[0] + (uint64_t)h[1]) * 4 <= im->f.size;
}

/* Do the tables lie there if @bias is taken off? The first symbol and the first name are empty. */
static bool fits(const struct image *im, uint64_t bias)
{
	static const uint8_t zero[sizeof(Elf64_Sym)];
	uint64_t hash = im->gnu_hash ? im->gnu_hash : im->hash;
	uint8_t sym[sizeof(Elf64_Sym)];
	uint32_t h[4];
	char nul;

	if (im->symtab < bias || im->strtab < bias || hash < bias)
		return false;
	return (im->gnu_hash ? plausible_gnu_hash(im, hash - bias, h)
			     : plausible_hash(im, hash - bias, h)) &&
	       !read_at(im, im->symtab - bias, sym, elf_file_symbol_size(&im->f)) &&
	       !memcmp(sym, zero, elf_file_symbol_size(&im->f)) &&
	       !read_at(im, im->strtab - bias, &nul, 1) && !nul;
}

/*
 * The dynamic linker may have added the load bias to these pointers, or not. The bias is a whole
 * number of pages, so that each page of the image leaves one place for the hash table.
 */
static bool take_off_bias(struct image *im)
{
	uint64_t hash = im->gnu_hash ? im->gnu_hash : im->hash, bias = 0;
	bool found = fits(im, 0);

	for (uint64_t page = 0; !found && page <= im->f.size / 4096 && page < MAX_GUESSES; page++) {
		bias = hash - (page * 4096 + (hash & 4095));
		found = fits(im, bias);
	}
	if (!found)
		return false;
	im->symtab -= bias;
	im->strtab -= bias;
	im->hash = im->hash >= bias ? im->hash - bias : 0;
	im->gnu_hash = im->gnu_hash >= bias ? im->gnu_hash - bias : 0;
	return true;
}

/* .gnu.hash has no count: the last chain's last symbol is the last one. */
static int count_gnu_hash(const struct image *im, uint32_t *n)
{
	uint64_t word = im->f.is64 ? 8 : 4, chains;
	uint32_t h[4], last = 0, chain[256];
	uint32_t *buckets;
	int ret;

	if (!plausible_gnu_hash(im, im->gnu_hash, h))
		return -EBADMSG;
	buckets = elf_file_bytes(&im->f, im->gnu_hash + 16 + h[2] * word, h[0] * 4ull,
				 ELF_MAX_STRINGS, &ret);
	if (!buckets)
		return ret;
	for (uint32_t i = 0; i < h[0]; i++)
		if (buckets[i] > last)
			last = buckets[i];
	free(buckets);
	chains = im->gnu_hash + 16 + h[2] * word + h[0] * 4ull;
	for (uint32_t at = last; last >= h[1] && at < ELF_MAX_SYMBOLS; at += 256) {
		uint64_t pos = chains + (at - h[1]) * 4ull;
		size_t len = sizeof(chain);

		if (pos < im->f.size && im->f.size - pos < len)
			len = (im->f.size - pos) & ~3ull;
		ret = read_at(im, pos, chain, len);
		if (ret)
			return ret;
		for (uint32_t i = 0; i < len / 4; i++) {
			if (chain[i] & 1) {
				*n = at + i + 1;
				return 0;
			}
		}
		if (len < sizeof(chain))
			return -EBADMSG;
	}
	*n = h[1];
	return 0;
}

static int count_symbols(const struct image *im, uint32_t *n)
{
	uint32_t h[4];

	if (im->gnu_hash)
		return count_gnu_hash(im, n);
	if (!plausible_hash(im, im->hash, h))
		return -EBADMSG;
	*n = h[1];
	return 0;
}

static bool is_code(const struct image *im, uint64_t vaddr)
{
	for (uint32_t i = 0; i < im->f.nr_loads; i++)
		if (im->f.loads[i].flags & PF_X && vaddr >= im->f.loads[i].vaddr &&
		    vaddr - im->f.loads[i].vaddr < im->f.loads[i].size)
			return true;
	return false;
}

static bool wanted(const struct image *im, const Elf64_Sym *sym)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);

	if (!sym->st_name || sym->st_name >= im->strsz || sym->st_shndx == SHN_UNDEF ||
	    sym->st_shndx == SHN_ABS)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT)
		return true;
	return type == STT_NOTYPE && is_code(im, sym->st_value);
}

static void add_all(struct symtab *t, const struct image *im, const void *syms, uint32_t n)
{
	uint64_t budget = 4 * im->strsz + 256ull * n; /* see elfsym.c */
	const char *strings = t->strings;

	for (uint32_t i = 0; i < n; i++) {
		Elf64_Sym sym;
		uint64_t off;
		size_t len;

		elf_file_symbol(&im->f, syms, i, &sym);
		if (!wanted(im, &sym) ||
		    !elfsym_offset(im->f.loads, im->f.nr_loads, sym.st_value, &off))
			continue;
		len = strlen(strings + sym.st_name);
		if (len > budget)
			break;
		budget -= len;
		if (len)
			symtab_add_name(t, off,
					sym.st_size > UINT64_MAX - off ? UINT64_MAX
								       : off + sym.st_size,
					strings + sym.st_name, elfsym_binding(sym.st_info));
	}
}

static int read_symbols(struct symtab *t, struct image *im)
{
	uint32_t n = 0;
	void *syms;
	int ret;

	ret = read_dynamic(im);
	if (!ret && !take_off_bias(im))
		ret = -EBADMSG;
	if (!ret)
		ret = count_symbols(im, &n);
	if (ret)
		return ret;
	syms = elf_file_bytes(&im->f, im->symtab, n * (uint64_t)elf_file_symbol_size(&im->f),
			      ELF_MAX_STRINGS, &ret);
	if (!syms)
		return ret;
	t->strings = elf_file_bytes(&im->f, im->strtab, im->strsz, ELF_MAX_STRINGS, &ret);
	if (t->strings)
		add_all(t, im, syms, n);
	free(syms);
	return ret;
}

int symtab_read_image(struct symtab **out, elf_read_fn *read, void *ctx, const char *name,
		      struct vmprof_err *err)
{
	struct image im = {0};
	struct symtab *t;
	char shown[512];
	int ret;

	*out = NULL;
	escape_str(shown, sizeof(shown), name);
	ret = open_image(&im, read, ctx, shown, err);
	if (ret)
		return ret;
	t = symtab_new();
	ret = read_symbols(t, &im);
	if (ret) {
		symtab_free(t);
		elf_file_close(&im.f);
		return err_set(err, ret, "cannot read the dynamic symbols of %s from memory: %s",
			       shown,
			       ret == -ENOENT	 ? "it has none"
			       : ret == -EBADMSG ? "they are not where its headers say"
						 : "they are not there");
	}
	t->partial = true;
	t->machine = im.f.machine;
	t->build_id_len = im.f.build_id_len;
	memcpy(t->build_id, im.f.build_id, sizeof(t->build_id));
	t->loads = im.f.loads;
	t->nr_loads = im.f.nr_loads;
	im.f.loads = NULL;
	t->path = xstrdup(name);
	elf_file_close(&im.f);
	symtab_finish(t);
	*out = t;
	return 0;
}
