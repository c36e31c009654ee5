// SPDX-License-Identifier: GPL-2.0-only
/*
 * kallsyms as scripts/kallsyms.c of the kernel lays it out in .rodata, found by its contents:
 *
 * token_table  256 strings, one for each byte of a compressed name. A byte that occurs in symbols
 *              stands for itself, so that "0", "1" .. "9" follow each other: that is looked for.
 * token_index  u16[256], offsets into token_table: proves it.
 * num_syms     u32 or u64, followed by names: for each a length (one byte, or since 6.1 two of
 * seven bits each) and as many bytes of tokens; the first character is the type. markers offset in
 * names of each 256th: proves names. u64 before 4.20. addresses    u64 each, or (since 4.6) u32
 * offsets from relative_base. With "absolute percpu" (until 6.14) an offset below 0 is
 * relative_base - 1 - offset, one above is a value.
 *
 * Orders: up to 6.3   addresses, [relative_base], num_syms, names, markers, [seqs_of_names],
 *                     token_table, token_index
 *         since 6.4   num_syms, names, markers, token_table, token_index, addresses,
 *                     [relative_base], seqs_of_names
 * Each part is aligned to 8; to 4 where none has anything larger than an u32 (7.x).
 */
#include "guest/kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"

#define IMAGE_MAX   (96u << 20) /* from _text on: how far tables are looked for */
#define IMAGE_CHUNK (512u << 10)
#define HOLE_MAX    (2u << 20)	/* nothing mapped for that long: the image has ended */
#define TOKENS_MAX  (64u << 10) /* token_table and token_index; u16 offsets */

enum { MIN_SYMS = 16, TOKEN_MAX = 256, MARKER_EVERY = 256 };
/* What is tried at most, so that an image made for it cannot keep us busy. */
enum { MAX_DIGITS = 4096, MAX_TOKENS = 3, MAX_COUNTS = 4096, WALK_BUDGET = 32 << 20 };

struct image {
	uint8_t *data;
	uint64_t va;
	size_t len, cap; /* len: read so far */
};

struct tables {
	size_t token_table, token_index; /* offsets in the image */
	size_t num_syms, names;
	uint32_t n;
	size_t align;
	bool wide; /* two-byte lengths */
};

static size_t align_up(size_t n, size_t align)
{
	return (n + align - 1) & ~(align - 1);
}

static uint16_t get16(const struct image *im, size_t off)
{
	uint16_t v;

	memcpy(&v, im->data + off, sizeof(v));
	return v;
}

static uint32_t get32(const struct image *im, size_t off)
{
	uint32_t v;

	memcpy(&v, im->data + off, sizeof(v));
	return v;
}

static uint64_t get64(const struct image *im, size_t off)
{
	uint64_t v;

	memcpy(&v, im->data + off, sizeof(v));
	return v;
}

/* ---------- the tokens ---------- */

/* Offset behind the string at @off, or 0 if it does not end soon. */
static size_t skip_token(const struct image *im, size_t off)
{
	size_t room = im->len - off;
	const uint8_t *nul = memchr(im->data + off, 0, room < TOKEN_MAX ? room : TOKEN_MAX);

	return nul ? (size_t)(nul - im->data) + 1 : 0;
}

/* Is the index of the table that has the token '0' at @pos at t->token_index? */
static bool index_fits(const struct image *im, size_t pos, struct tables *t)
{
	size_t end;

	if (t->token_index + 512 > im->len || get16(im, t->token_index))
		return false;
	end = get16(im, t->token_index + '0' * 2);
	if (end > pos)
		return false;
	t->token_table = pos - end;
	end = t->token_table;
	for (int c = 0; c < 256; c++) {
		if (t->token_table + get16(im, t->token_index + c * 2) != end)
			return false;
		end = skip_token(im, end);
		if (!end || end > t->token_index)
			return false;
	}
	return true;
}

/* Is @pos the token '0' of a table whose index follows it? */
static bool tokens_at(const struct image *im, size_t pos, struct tables *t)
{
	size_t end = pos;

	for (int c = '0'; c < 256; c++)
		if (end >= im->len || !(end = skip_token(im, end)))
			return false;
	for (t->align = 8; t->align >= 4; t->align /= 2) {
		t->token_index = align_up(end, t->align);
		if (index_fits(im, pos, t))
			return true;
	}
	return false;
}

/* Where to go on looking for tokens, and how often the digits were found. */
struct cursor {
	size_t from;
	int hits;
};

static bool find_tokens(const struct image *im, struct cursor *c, size_t to, struct tables *t)
{
	static const char digits[] = "0\0001\0002\0003\0004\0005\0006\0007\0008\0009";

	while (c->from < to && c->hits < MAX_DIGITS) {
		const uint8_t *p = memmem(im->data + c->from, to - c->from, digits, sizeof(digits));

		if (!p)
			break;
		c->hits++;
		c->from = (size_t)(p - im->data) + 1;
		if (tokens_at(im, c->from - 1, t))
			return true;
	}
	/* One that starts in the last bytes is found with the next chunk. */
	if (to >= sizeof(digits) && c->from < to - sizeof(digits))
		c->from = to - sizeof(digits);
	return false;
}

/* ---------- the names ---------- */

/* Reads the length of the name at *off and steps over it; -1 at the end or if it cannot be. */
static int name_len(const struct image *im, size_t *off, size_t end, bool wide)
{
	int len;

	if (*off >= end)
		return -1;
	len = im->data[(*off)++];
	if (wide && (len & 0x80)) {
		if (*off >= end)
			return -1;
		len = (len & 0x7f) | im->data[(*off)++] << 7;
	}
	return len && len <= KSYMS_MAX_NAME && (size_t)len <= end - *off ? len : -1;
}

static bool markers_fit(const struct image *im, size_t at, size_t end, const uint32_t *markers,
			size_t n, size_t width)
{
	if (n * width > end - at)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint64_t v = width == 8 ? get64(im, at + i * 8) : get32(im, at + i * 4);

		if (v != markers[i])
			return false;
	}
	return true;
}

/* Do @t->n names start at @t->names, and the markers that belong to them follow? */
static bool names_fit(const struct image *im, const struct tables *t, size_t *budget)
{
	uint32_t *markers = xmalloc((t->n / MARKER_EVERY + 1) * sizeof(*markers));
	size_t off = t->names, end = t->token_table, n = 0;
	bool fits = false;

	for (uint32_t i = 0; i < t->n; i++) {
		int len;

		if (i % MARKER_EVERY == 0)
			markers[n++] = (uint32_t)(off - t->names);
		len = name_len(im, &off, end, t->wide);
		if (len < 0)
			goto out;
		off += (size_t)len;
		if (!*budget)
			goto out;
		(*budget)--;
	}
	off = align_up(off, t->align);
	fits = off <= end && (markers_fit(im, off, end, markers, n, 4) ||
			      markers_fit(im, off, end, markers, n, 8));
out:
	free(markers);
	return fits;
}

static bool try_names(const struct image *im, struct tables *t, size_t *budget)
{
	t->wide = true;
	if (names_fit(im, t, budget))
		return true;
	t->wide = false;
	return names_fit(im, t, budget);
}

/*
 * Backwards from the tokens: a count, and names behind it that fit. Where the tokens happen to be
 * aligned to 8, all may still be aligned to 4.
 */
static bool find_names_aligned(const struct image *im, struct tables *t)
{
	size_t budget = WALK_BUDGET;
	int counts = 0;

	for (size_t p = t->token_table & ~(t->align - 1); p >= t->align && counts < MAX_COUNTS;) {
		p -= t->align;
		t->n = get32(im, p);
		t->num_syms = p;
		t->names = p + t->align;
		if (t->n < MIN_SYMS || t->n > KSYMS_MAX_SYMBOLS ||
		    (t->align == 8 && get32(im, p + 4)) || t->names >= t->token_table ||
		    t->n > (t->token_table - t->names) / 2)
			continue;
		counts++;
		if (try_names(im, t, &budget))
			return true;
	}
	return false;
}

static bool find_names(const struct image *im, struct tables *t)
{
	if (find_names_aligned(im, t))
		return true;
	if (t->align == 4)
		return false;
	t->align = 4;
	return find_names_aligned(im, t);
}

static int expand(const struct image *im, const struct tables *t, size_t off, int len, char *out)
{
	int n = 0;

	for (int i = 0; i < len; i++) {
		const uint8_t *token = im->data + t->token_table +
				       get16(im, t->token_index + im->data[off + i] * 2);

		for (; *token; token++) {
			if (n > KSYMS_MAX_NAME) /* one more for the type */
				return -E2BIG;
			out[n++] = (char)*token;
		}
	}
	return n;
}

static int decode_names(const struct image *im, const struct tables *t, struct ksyms *out)
{
	size_t off = t->names;
	char name[KSYMS_MAX_NAME + 1];

	for (uint32_t i = 0; i < t->n; i++) {
		int len = name_len(im, &off, t->token_table, t->wide), n;

		if (len < 0)
			return -ENOENT;
		n = expand(im, t, off, len, name);
		if (n < 1 || ksyms_add(out, 0, name[0], name + 1, (size_t)n - 1))
			return -ENOENT;
		off += (size_t)len;
	}
	return 0;
}

/* ---------- the addresses ---------- */

enum address_kind { RELATIVE_PERCPU, RELATIVE, PLACE_RELATIVE, ABSOLUTE };

static const struct {
	enum address_kind kind;
	bool behind; /* the tokens; else before num_syms */
} address_layouts[] = {
	{RELATIVE_PERCPU, true}, {RELATIVE_PERCPU, false}, {RELATIVE, true},  {RELATIVE, false},
	{PLACE_RELATIVE, true},	 {ABSOLUTE, true},	   {ABSOLUTE, false},
};

/* The address that @at has the offset of. */
static uint64_t from_offset(const struct image *im, enum address_kind kind, uint64_t base,
			    size_t at)
{
	uint32_t off = get32(im, at);
	int64_t signed_off = (int32_t)off;

	if (kind == PLACE_RELATIVE)
		return im->va + at + (uint64_t)signed_off;
	if (kind == RELATIVE)
		return base + off;
	return signed_off >= 0 ? off : base - 1 - (uint64_t)signed_off;
}

/* Puts addresses into @out as this layout has them; false if they cannot be (not in order). */
static bool read_addresses(const struct image *im, const struct tables *t, size_t layout,
			   struct ksyms *out)
{
	enum address_kind kind = address_layouts[layout].kind;
	size_t each = kind == ABSOLUTE ? 8 : 4, size = align_up(t->n * each, t->align);
	size_t extra = kind == RELATIVE || kind == RELATIVE_PERCPU ? 8 : 0; /* relative_base */
	size_t at = align_up(t->token_index + 512, t->align), disorder = 0;
	uint64_t base = 0;

	if (!address_layouts[layout].behind) {
		if (t->num_syms < size + extra)
			return false;
		at = t->num_syms - size - extra;
	}
	if (at + size + extra > im->len)
		return false;
	if (extra)
		base = get64(im, at + size);
	for (uint32_t i = 0; i < t->n; i++) {
		uint64_t addr = kind == ABSOLUTE ? get64(im, at + i * each)
						 : from_offset(im, kind, base, at + i * each);

		disorder += i && addr < out->syms[i - 1].addr;
		out->syms[i].addr = addr;
	}
	return disorder <= t->n / 64;
}

static const struct ksyms_entry *find(const struct ksyms *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(ksyms_name(t, &t->syms[i]), name))
			return &t->syms[i];
	return NULL;
}

/*
 * With these addresses, is at linux_banner what must be there, or _text where the image starts? A
 * kernel that has only functions in its table (no CONFIG_KALLSYMS_ALL) has no banner there, and on
 * arm64 its first symbol of the image is _stext.
 */
static int verify(struct guest_virt *v, struct guest_as as, uint64_t text,
		  const struct ksyms_entry *s_text, const struct ksyms_entry *s_banner)
{
	static const char begin[] = "Linux version ";
	char got[sizeof(begin) - 1];
	int rc;

	if (!s_banner)
		return s_text->addr == text ? 0 : -ENOENT;
	rc = guest_virt_read(v, as, s_banner->addr, got, sizeof(got));
	if (rc)
		return rc == -EFAULT ? -ENOENT : rc;
	return memcmp(got, begin, sizeof(got)) ? -ENOENT : 0;
}

static int place(struct guest_virt *v, struct guest_as as, const struct image *im,
		 const struct tables *t, uint64_t text, struct ksyms *out)
{
	const struct ksyms_entry *s_text = find(out, "_text");
	const struct ksyms_entry *s_banner = find(out, "linux_banner");

	if (!s_text)
		s_text = find(out, "_stext");
	if (!s_text)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(address_layouts) / sizeof(*address_layouts); i++) {
		int rc = -ENOENT;

		if (read_addresses(im, t, i, out))
			rc = verify(v, as, text, s_text, s_banner);
		if (rc != -ENOENT)
			return rc;
	}
	return -ENOENT;
}

/* ---------- the search ---------- */

/* Reads up to @more bytes behind what is there; the bytes got, or -ESRCH. */
static int64_t read_on(struct guest_virt *v, struct guest_as as, struct image *im, size_t more)
{
	int64_t got;

	more = more < IMAGE_MAX - im->len ? more : IMAGE_MAX - im->len;
	im->data = xgrow(im->data, &im->cap, im->len + more, 1);
	got = guest_virt_read_sparse(v, as, im->va + im->len, im->data + im->len, more);
	if (got >= 0)
		im->len += more;
	return got;
}

static int try_tokens(struct guest_virt *v, struct guest_as as, struct image *im, struct tables *t,
		      uint64_t text, struct ksyms *out)
{
	size_t need;
	int rc;

	if (!find_names(im, t))
		return -ENOENT;
	need = t->token_index + 512 + (t->n + 2) * 8ull; /* the most that addresses can take */
	if (im->len < need) {
		int64_t got = read_on(v, as, im, need - im->len);

		if (got < 0)
			return (int)got;
	}
	rc = decode_names(im, t, out);
	if (!rc)
		rc = place(v, as, im, t, text, out);
	if (rc)
		ksyms_free(out);
	return rc;
}

static int search(struct guest_virt *v, struct guest_as as, struct image *im, uint64_t text,
		  struct ksyms *out)
{
	struct cursor at = {0};
	size_t hole = 0;
	int tries = 0;

	while (im->len < IMAGE_MAX && hole < HOLE_MAX && at.hits < MAX_DIGITS) {
		int64_t got = read_on(v, as, im, IMAGE_CHUNK);
		struct tables t = {0};
		size_t to;
		bool last;

		if (got < 0)
			return (int)got;
		hole = got ? 0 : hole + IMAGE_CHUNK;
		/* A table that starts at the end of what is there is looked at with the next chunk.
		 */
		last = im->len >= IMAGE_MAX || hole;
		to = last ? im->len : im->len - TOKENS_MAX;
		while (find_tokens(im, &at, to, &t)) {
			int rc = try_tokens(v, as, im, &t, text, out);

			if (rc != -ENOENT || ++tries == MAX_TOKENS)
				return rc;
		}
	}
	return -ENOENT;
}

int kallsyms_load(struct guest_virt *v, struct guest_as as, uint64_t text, struct ksyms *out,
		  struct vmprof_err *err)
{
	struct image im = {.va = text};
	int rc = search(v, as, &im, text, out);

	free(im.data);
	if (rc == -ENOENT)
		return err_set(
			err, ENOENT,
			"no symbol table (kallsyms) was found in the guest's kernel at %#llx: "
			"it is not Linux, it is still starting, or it has no CONFIG_KALLSYMS",
			(unsigned long long)text);
	if (rc)
		return err_sys(err, rc, "cannot read guest memory");
	ksyms_finish(out);
	return 0;
}
