// SPDX-License-Identifier: GPL-2.0-only
#include "symbolize/dwarfinfo.h"

#include <errno.h>
#include <string.h>

bool dwarf_info_is_in(const struct elf_file *f)
{
	return elf_file_section(f, ".debug_info", SHT_PROGBITS) ||
	       elf_file_section(f, ".zdebug_info", SHT_PROGBITS);
}

#if HAVE_LIBDW

#include <dwarf.h>
#include <stdlib.h>

#include "symbolize/dwarfinfo_impl.h"
#include "util/xalloc.h"

#define MAX_SECTIONS_SIZE (8ull << 30) /* of debugging information, decompressed */
#define MAX_LINES_SIZE	  (512ull << 20)
/* Debugging information of programs is compressed to a fifth or so; to what a bomb is, a
 * thousandth. */
#define MAX_RATIO	64
#define MAX_UNITS	(1u << 20)
#define MAX_UNIT_RANGES (1u << 20) /* of one entry */
#define MAX_RANGES	(64u << 20)
enum { LOOK_BACK = 64 }; /* ranges that start before an address and could have it */

/* ---------- ranges ---------- */

void dwarf_range_add(struct dwarf_info *d, struct dwarf_ranges *to, uint64_t start, uint64_t end,
		     uint32_t id)
{
	/* what the linker has thrown away is at 0 */
	if (!start || end <= start || !d->ranges_left)
		return;
	d->ranges_left--;
	to->r = xgrow(to->r, &to->cap, to->n + 1, sizeof(*to->r));
	to->r[to->n++] = (struct dwarf_range){start, end, id};
}

void dwarf_ranges_add(struct dwarf_info *d, struct dwarf_unit *u, struct dwarf_ranges *to,
		      Dwarf_Die *die, uint32_t id)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	if (u->split) {
		dwarf_split_ranges(d, u, to, die, id);
		return;
	}
	for (unsigned i = 0; i < MAX_UNIT_RANGES && d->ranges_left; i++) {
		at = dwarf_ranges(die, at, &base, &start, &end);
		if (at <= 0)
			return;
		dwarf_range_add(d, to, start, end, id);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct dwarf_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

void dwarf_ranges_sort(struct dwarf_ranges *r)
{
	if (r->n)
		qsort(r->r, r->n, sizeof(*r->r), by_start);
}

const struct dwarf_range *dwarf_ranges_find(const struct dwarf_ranges *r, uint64_t addr)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->r[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (unsigned i = 0; lo && i < LOOK_BACK; i++)
		if (addr < r->r[--lo].end)
			return &r->r[lo];
	return NULL;
}

/* ---------- files ---------- */

static bool has_prefix(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* GNU's old compression, of sections named .zdebug_*: "ZLIB", the size in big endian. */
static uint64_t old_size(const struct elf_file *f, const struct elf_section *s)
{
	uint8_t head[12];
	uint64_t size = 0;

	if (s->size < sizeof(head) ||
	    elf_read_all(f->read, f->ctx, s->offset, head, sizeof(head)) ||
	    memcmp(head, "ZLIB", 4) != 0)
		return s->size;
	for (size_t i = 4; i < sizeof(head); i++)
		size = size << 8 | head[i];
	return size;
}

uint64_t dwarf_section_size(const struct elf_file *f, const struct elf_section *s)
{
	Elf64_Chdr h64;
	Elf32_Chdr h32;

	if (has_prefix(s->name, ".zdebug_"))
		return old_size(f, s);
	if (!(s->flags & SHF_COMPRESSED))
		return s->size;
	if (f->is64)
		return elf_read_all(f->read, f->ctx, s->offset, &h64, sizeof(h64)) ? UINT64_MAX
										   : h64.ch_size;
	return elf_read_all(f->read, f->ctx, s->offset, &h32, sizeof(h32)) ? UINT64_MAX
									   : h32.ch_size;
}

int dwarf_check_sizes(const struct elf_file *f, struct vmprof_err *err)
{
	uint64_t sum = 0, size, max;

	for (size_t i = 1; i < f->nr_sections; i++) {
		const struct elf_section *s = &f->sections[i];

		if (!has_prefix(s->name, ".debug_") && !has_prefix(s->name, ".zdebug_"))
			continue;
		size = dwarf_section_size(f, s);
		max = strstr(s->name, "debug_line") ? MAX_LINES_SIZE : MAX_SECTIONS_SIZE;
		if (size / MAX_RATIO > s->size)
			max = 0;
		if (size > max || (sum += size) > MAX_SECTIONS_SIZE)
			return err_set(err, EFBIG, "%s claims %llu bytes in its section %s",
				       f->name, (unsigned long long)size, s->name);
	}
	return 0;
}

/* NULL: libdw does not take it. */
static Dwarf *begin(Elf **elf, int fd)
{
	*elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	return *elf && elf_kind(*elf) == ELF_K_ELF ? dwarf_begin_elf(*elf, DWARF_C_READ, NULL)
						   : NULL;
}

/* Entries are a byte at least, and each is looked at a few times. */
static void set_limits(struct dwarf_info *d, const struct elf_file *f)
{
	const struct elf_section *s = elf_file_section(f, ".debug_info", SHT_PROGBITS);

	if (!s)
		s = elf_file_section(f, ".zdebug_info", SHT_PROGBITS);
	d->entries_left = s ? 4 * dwarf_section_size(f, s) : 0;
	d->ranges_left = MAX_RANGES;
}

static void index_units(struct dwarf_info *d)
{
	struct dwarf_unit unit;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;
	Dwarf_Half version;

	while (d->nr_units < MAX_UNITS &&
	       !dwarf_get_units(d->dwarf, cu, &cu, &version, &type, &die, NULL)) {
		size_t n = d->ranges.n;

		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		unit = (struct dwarf_unit){.die = die};
		dwarf_ranges_add(d, &unit, &d->ranges, &die, (uint32_t)d->nr_units);
		if (d->ranges.n == n)
			continue;
		d->units = xgrow(d->units, &d->units_cap, d->nr_units + 1, sizeof(*d->units));
		d->units[d->nr_units++] = unit;
	}
	dwarf_ranges_sort(&d->ranges);
}

int dwarf_info_open(struct dwarf_info **out, const struct elf_file *f, int fd, int alt_fd,
		    struct vmprof_err *err)
{
	struct dwarf_info *d;
	int ret = dwarf_check_sizes(f, err);

	*out = NULL;
	if (ret)
		return ret;
	elf_version(EV_CURRENT);
	d = xcalloc(1, sizeof(*d));
	d->dwarf = begin(&d->elf, fd);
	if (d->dwarf && alt_fd >= 0)
		d->alt = begin(&d->alt_elf, alt_fd);
	if (!d->dwarf || (alt_fd >= 0 && !d->alt)) {
		ret = err_set(err, EBADMSG, "%s has debugging information that cannot be read: %s",
			      f->name, dwarf_errmsg(-1));
		dwarf_info_close(d);
		return ret;
	}
	if (d->alt)
		dwarf_setalt(d->dwarf, d->alt);
	set_limits(d, f);
	index_units(d);
	*out = d;
	return 0;
}

void dwarf_info_close(struct dwarf_info *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nr_units; i++)
		dwarf_unit_free(&d->units[i]);
	dwarf_splitter_free(d->splitter);
	free(d->units);
	free(d->ranges.r);
	dwarf_end(d->dwarf);
	dwarf_end(d->alt);
	elf_end(d->elf);
	elf_end(d->alt_elf);
	free(d);
}

/* ---------- lookups ---------- */

static struct dwarf_unit *find_unit(struct dwarf_info *d, uint64_t addr)
{
	const struct dwarf_range *r = dwarf_ranges_find(&d->ranges, addr);

	return r ? &d->units[r->id] : NULL;
}

/* Where the unit was compiled. */
static const char *unit_dir(struct dwarf_unit *u)
{
	Dwarf_Attribute attr;

	if (!u->dir && dwarf_attr(&u->die, DW_AT_comp_dir, &attr))
		u->dir = dwarf_formstring(&attr);
	return u->dir;
}

static bool find_line(struct dwarf_unit *u, uint64_t addr, struct dwarf_frame *frame)
{
	Dwarf_Line *l = dwarf_getsrc_die(&u->die, addr);
	int number = 0;

	*frame = (struct dwarf_frame){0};
	if (!l)
		return false;
	frame->file = dwarf_linesrc(l, NULL, NULL);
	frame->dir = unit_dir(u);
	dwarf_lineno(l, &number);
	frame->line = number > 0 ? (uint32_t)number : 0;
	return frame->file;
}

bool dwarf_info_line(struct dwarf_info *d, uint64_t addr, struct dwarf_frame *frame)
{
	struct dwarf_unit *u = find_unit(d, addr);

	return u && find_line(u, addr, frame);
}

size_t dwarf_info_find(struct dwarf_info *d, uint64_t addr, struct dwarf_frame *frames)
{
	struct dwarf_unit *u = find_unit(d, addr);
	size_t n;

	if (!u)
		return 0;
	find_line(u, addr, &frames[0]);
	n = dwarf_unit_frames(d, u, addr, frames);
	return n ? n : frames[0].file != NULL;
}

#else

void dwarf_info_set_split(struct dwarf_info *d, dwarf_split_fn *open, void *ctx)
{
}

const char *dwarf_info_missing(const struct dwarf_info *d)
{
	return NULL;
}

int dwarf_info_open(struct dwarf_info **out, const struct elf_file *f, int fd, int alt_fd,
		    struct vmprof_err *err)
{
	*out = NULL;
	return err_set(err, ENOSYS,
		       "this vmprof was built without libdw, which reads source lines");
}

void dwarf_info_close(struct dwarf_info *d)
{
}

size_t dwarf_info_find(struct dwarf_info *d, uint64_t addr, struct dwarf_frame *frames)
{
	return 0;
}

bool dwarf_info_line(struct dwarf_info *d, uint64_t addr, struct dwarf_frame *frame)
{
	return false;
}

#endif
