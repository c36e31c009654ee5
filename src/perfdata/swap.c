// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records from a host of the other byte order, turned where they lie. Fields of 32 bits in samples
 * and trailers share words of 64: these are turned as words, and swap_half() finds the fields.
 */
#include <string.h>

#include "perfdata/reader_impl.h"

void swap_header(struct perf_event_header *h)
{
	h->type = __builtin_bswap32(h->type);
	h->misc = __builtin_bswap16(h->misc);
	h->size = __builtin_bswap16(h->size);
}

/* @n bytes as words of 64 bits; a rest that is no word stays. */
void swap_words(void *p, size_t n)
{
	uint8_t *b = p;

	for (; n >= 8; b += 8, n -= 8) {
		uint64_t v;

		memcpy(&v, b, 8);
		v = __builtin_bswap64(v);
		memcpy(b, &v, 8);
	}
}

static void swap32(uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}

static void swap16(uint8_t *p)
{
	uint8_t first = p[0];

	p[0] = p[1];
	p[1] = first;
}

/*
 * The first (0) or second (1) 32-bit field of a word. After the word was turned as one, the first
 * is in its upper half.
 */
uint32_t swap_half(const struct perfdata_reader *r, uint64_t word, unsigned half)
{
	return (uint32_t)(half == r->swap ? word : word >> 32);
}

/* Bit fields are laid out from the other end on the other byte order. */
static uint8_t reverse_bits(uint8_t v)
{
	uint8_t out = 0;

	for (int i = 0; i < 8; i++)
		out = (uint8_t)(out << 1 | (v >> i & 1));
	return out;
}

/* Runs of equal fields of struct perf_event_attr; size 1 are the bit fields. */
static const struct {
	uint8_t offset, size, n;
} attr_fields[] = {
	{0, 4, 2},   /* type, size */
	{8, 8, 4},   /* config, sample_period, sample_type, read_format */
	{40, 1, 8},  /* flags */
	{48, 4, 2},  /* wakeup_events, bp_type */
	{56, 8, 4},  /* config1, config2, branch_sample_type, sample_regs_user */
	{88, 4, 2},  /* sample_stack_user, clockid */
	{96, 8, 1},  /* sample_regs_intr */
	{104, 4, 1}, /* aux_watermark */
	{108, 2, 2}, /* sample_max_stack, reserved */
	{112, 4, 2}, /* aux_sample_size, reserved */
	{120, 8, 1}, /* sig_data */
};

void swap_attr(struct perf_event_attr *attr)
{
	for (size_t i = 0; i < sizeof(attr_fields) / sizeof(*attr_fields); i++) {
		uint8_t *p = (uint8_t *)attr + attr_fields[i].offset, size = attr_fields[i].size;

		for (uint8_t k = 0; k < attr_fields[i].n; k++, p += size) {
			if (size == 8)
				swap_words(p, 8);
			else if (size == 4)
				swap32(p);
			else if (size == 2)
				swap16(p);
			else
				*p = reverse_bits(*p);
		}
	}
}

/*
 * The body of a record, field by field: 8, 4, 2 turns as many bytes, 'x' leaves 8 as they are, 's'
 * is a string up to its end (padded to 8), 'b' 24 bytes of a build id or of maj, min, ino and
 * generation. What is behind the last one is the trailer, in words.
 */
static const char *const fields[] = {
	[PERF_RECORD_MMAP] = "44888s",	      [PERF_RECORD_LOST] = "88",
	[PERF_RECORD_COMM] = "44s",	      [PERF_RECORD_EXIT] = "44448",
	[PERF_RECORD_THROTTLE] = "888",	      [PERF_RECORD_UNTHROTTLE] = "888",
	[PERF_RECORD_FORK] = "44448",	      [PERF_RECORD_READ] = "44",
	[PERF_RECORD_MMAP2] = "44888b44s",    [PERF_RECORD_AUX] = "888",
	[PERF_RECORD_ITRACE_START] = "44",    [PERF_RECORD_LOST_SAMPLES] = "8",
	[PERF_RECORD_SWITCH_CPU_WIDE] = "44", [PERF_RECORD_NAMESPACES] = "44",
	[PERF_RECORD_KSYMBOL] = "8422s",      [PERF_RECORD_BPF_EVENT] = "224x",
	[PERF_RECORD_CGROUP] = "8s",	      [PERF_RECORD_TEXT_POKE] = "822",
};

static size_t swap_field(char kind, uint8_t *p, size_t left, bool build_id)
{
	switch (kind) {
	case '8':
		swap_words(p, left < 8 ? 0 : 8);
		return 8;
	case '4':
		if (left >= 4)
			swap32(p);
		return 4;
	case '2':
		if (left >= 2)
			swap16(p);
		return 2;
	case 'b':
		if (!build_id && left >= 24) {
			swap32(p);
			swap32(p + 4);
			swap_words(p + 8, 16);
		}
		return 24;
	case 'x':
		return 8;
	default:
		return strnlen((char *)p, left) / 8 * 8 + 8;
	}
}

/*
 * The bytes of RAW are the tracer's and stay as they are; only the size before them is turned.
 * Where they are can be seen in a copy that was turned as words from end to end.
 */
static void swap_sample(struct perfdata_reader *r, uint8_t *body, size_t n)
{
	uint8_t *copy = (uint8_t *)r->scratch;
	struct perfdata_record rec;
	const char *what;
	size_t at, size;

	memcpy(copy, body - sizeof(struct perf_event_header), n + sizeof(struct perf_event_header));
	swap_words(body, n);
	if (!r->any_raw)
		return;
	swap_words(copy + sizeof(struct perf_event_header), n);
	r->raw_turned = true;
	if (parse_record(r, copy, 0, &rec, &what))
		rec.raw = NULL;
	r->raw_turned = false;
	if (!rec.raw)
		return;
	at = (size_t)((const uint8_t *)rec.raw - copy) - sizeof(struct perf_event_header) - 4;
	size = (rec.raw_size + 4 + 7u) / 8 * 8;
	swap_words(body + at, size);
	swap32(body + at);
}

void swap_record(struct perfdata_reader *r, uint8_t *record)
{
	struct perf_event_header h;
	uint8_t *p = record + sizeof(h);
	size_t left, n;

	memcpy(&h, record, sizeof(h));
	swap_header(&h);
	memcpy(record, &h, sizeof(h));
	left = h.size - sizeof(h);
	if (h.type == PERF_RECORD_SAMPLE) {
		swap_sample(r, p, left);
		return;
	}
	if (h.type < sizeof(fields) / sizeof(*fields) && fields[h.type]) {
		for (const char *f = fields[h.type]; *f && left; f++, p += n, left -= n) {
			n = swap_field(*f, p, left, h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID);
			n = n < left ? n : left;
		}
	}
	/* words from the end: the bytes of TEXT_POKE before them need not fill one */
	if (h.type < PERFDATA_HEADER_ATTR)
		swap_words(p + left % 8, left);
}
