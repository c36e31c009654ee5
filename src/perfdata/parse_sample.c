// SPDX-License-Identifier: GPL-2.0-only
/* Samples: what their event's sample_type says is there, in the order of linux/perf_event.h. */
#include <errno.h>
#include <string.h>

#include "perfdata/parse_impl.h"

/*
 * nr and times, then entries of value, id, lost; or one entry with the times between value and id.
 */
static void parse_read(struct perfdata_reader *r, struct words *w, const struct sample_layout *l)
{
	const uint64_t f = l->read_format;
	unsigned times =
		!!(f & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(f & PERF_FORMAT_TOTAL_TIME_RUNNING);
	struct read_values *v = &r->read;

	*v = (struct read_values){.nr = 1,
				  .stride = 1u + !!(f & PERF_FORMAT_ID) + !!(f & PERF_FORMAT_LOST)};
	if (f & PERF_FORMAT_GROUP) {
		v->nr = next(w);
		next_array(w, times);
		v->id_at = 1;
	} else {
		v->stride += times;
		v->id_at = 1 + times;
	}
	if (v->nr > RECORD_MAX)
		w->bad = true;
	else
		v->values = next_array(w, v->nr * v->stride);
	if (!(f & PERF_FORMAT_ID))
		v->values = NULL;
}

static void parse_raw(const struct perfdata_reader *r, struct words *w, struct perfdata_record *rec)
{
	const uint8_t *at = (const uint8_t *)w->p;
	uint64_t word = next(w), words;

	if (w->bad)
		return;
	rec->raw_size = (uint32_t)(r->raw_turned ? word >> 32 : word);
	words = ((uint64_t)rec->raw_size + 4 + 7) / 8;
	rec->raw = at + 4;
	next_array(w, words - 1);
}

static void parse_branches(const struct perfdata_reader *r, struct words *w,
			   const struct sample_layout *l, struct perfdata_record *rec)
{
	uint64_t n = next(w);

	if (l->branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		next(w);
	if (n > RECORD_MAX) {
		w->bad = true;
		return;
	}
	rec->branches = (const struct perfdata_branch *)next_array(
		w, n * (sizeof(struct perfdata_branch) / sizeof(uint64_t)));
	rec->nr_branches = rec->branches ? n : 0;
	rec->branch_msb = r->swap == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
}

static void parse_regs(struct words *w, uint64_t mask, struct perfdata_regs *regs)
{
	regs->abi = next(w);
	regs->mask = mask;
	if (regs->abi) /* none: no registers */
		regs->words = next_array(w, (uint64_t)__builtin_popcountll(mask));
}

static void parse_stack(struct words *w, struct perfdata_parts *p)
{
	uint64_t bytes = next(w), used;

	if (!bytes)
		return;
	p->stack = next_array(w, bytes / 8 + !!(bytes % 8));
	used = next(w);
	p->stack_size = p->stack ? (used < bytes ? used : bytes) : 0;
}

static void skip_aux(struct words *w)
{
	uint64_t bytes = next(w);

	next_array(w, bytes / 8 + !!(bytes % 8));
}

/* In either byte order the first of union perf_sample_weight is in the lower half of the word. */
static void parse_weights(uint64_t word, struct perfdata_record *rec)
{
	rec->weight = (uint32_t)word;
	rec->weight2 = (uint16_t)(word >> 32);
	rec->weight3 = (uint16_t)(word >> 48);
}

/* In the order in which the kernel writes them (perf_output_sample()). */
static void parse_parts(struct perfdata_reader *r, struct words *w, const struct sample_layout *l,
			struct perfdata_record *rec)
{
	struct perfdata_parts *p = &r->parts;
	const uint64_t t = l->type;

	*p = (struct perfdata_parts){0};
	rec->parts = p;
	if (t & PERF_SAMPLE_BRANCH_STACK)
		parse_branches(r, w, l, rec);
	if (t & PERF_SAMPLE_REGS_USER)
		parse_regs(w, l->regs_user, &p->regs_user);
	if (t & PERF_SAMPLE_STACK_USER)
		parse_stack(w, p);
	if (t & PERF_SAMPLE_WEIGHT)
		rec->weight = next(w);
	else if (t & PERF_SAMPLE_WEIGHT_STRUCT)
		parse_weights(next(w), rec);
	if (t & PERF_SAMPLE_DATA_SRC)
		p->data_src = next(w);
	if (t & PERF_SAMPLE_TRANSACTION)
		p->transaction = next(w);
	if (t & PERF_SAMPLE_REGS_INTR)
		parse_regs(w, l->regs_intr, &p->regs_intr);
	if (t & PERF_SAMPLE_PHYS_ADDR)
		p->phys_addr = next(w);
	if (t & PERF_SAMPLE_CGROUP)
		p->cgroup = next(w);
	if (t & PERF_SAMPLE_DATA_PAGE_SIZE)
		p->data_page_size = next(w);
	if (t & PERF_SAMPLE_CODE_PAGE_SIZE)
		p->code_page_size = next(w);
	if (t & PERF_SAMPLE_AUX)
		skip_aux(w);
}

#define COMMON (ONE_WORD | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)

/* What comes behind the fields of one word. */
static void parse_variable(struct perfdata_reader *r, struct words *w,
			   const struct sample_layout *l, struct perfdata_record *rec)
{
	const uint64_t t = l->type;

	if (t & PERF_SAMPLE_READ)
		parse_read(r, w, l);
	if (t & PERF_SAMPLE_CALLCHAIN) {
		rec->chain_len = next(w);
		rec->chain = next_array(w, rec->chain_len);
	}
	if (t & PERF_SAMPLE_RAW)
		parse_raw(r, w, rec);
	if (t & ~(uint64_t)COMMON)
		parse_parts(r, w, l, rec);
}

int parse_sample(struct perfdata_reader *r, struct words *w, const struct evsel *e,
		 struct perfdata_record *rec, const char **what)
{
	const struct sample_layout *l = &e->layout;
	const uint64_t t = l->type;
	const uint64_t *p = next_array(w, l->fixed_words);

	r->read.values = NULL;
	*what = "a sample that is too short for its event";
	if (!p)
		return -EBADMSG;
	if (t & PERF_SAMPLE_IDENTIFIER)
		rec->id = *p++;
	if (t & PERF_SAMPLE_IP)
		rec->ip = *p++;
	if (t & PERF_SAMPLE_TID) {
		rec->pid = swap_half(r, *p, 0);
		rec->tid = swap_half(r, *p++, 1);
	}
	if (t & PERF_SAMPLE_TIME)
		rec->time = *p++;
	if (t & PERF_SAMPLE_ADDR)
		rec->addr = *p++;
	if (t & PERF_SAMPLE_ID)
		rec->id = *p++;
	if (t & PERF_SAMPLE_STREAM_ID)
		rec->stream_id = *p++;
	if (t & PERF_SAMPLE_CPU)
		rec->cpu = swap_half(r, *p++, 0);
	rec->period = t & PERF_SAMPLE_PERIOD ? *p++ : e->pub.attr.sample_period;
	if (t & ~(uint64_t)ONE_WORD)
		parse_variable(r, w, l, rec);
	*what = "a sample whose parts are longer than itself";
	return w->bad ? -EBADMSG : 0;
}
