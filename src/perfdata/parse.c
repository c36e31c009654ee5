// SPDX-License-Identifier: GPL-2.0-only
/* A record's bytes to struct perfdata_record: whose it is, and when; see also parse_*.c. */
#include <errno.h>
#include <string.h>

#include "perfdata/parse_impl.h"

/* ------------------------------------------------------------------ layout */

/* One more word of a trailer, counted from the end, if the type has @bit. */
static uint8_t tail_word(struct sample_layout *l, uint64_t bit)
{
	return l->type & bit ? ++l->tail_words : NO_FIELD;
}

void layout_init(struct sample_layout *l, const struct perf_event_attr *attr)
{
	uint64_t t = attr->sample_type;
	uint8_t identifier = t & PERF_SAMPLE_IDENTIFIER ? 1 : 0;
	uint8_t ip_tid = (uint8_t)(!!(t & PERF_SAMPLE_IP) + !!(t & PERF_SAMPLE_TID));
	uint8_t id;

	*l = (struct sample_layout){.type = t,
				    .read_format = attr->read_format,
				    .branch_type = attr->branch_sample_type};
	l->fixed_words = (unsigned)__builtin_popcountll(t & ONE_WORD);
	l->regs_user = attr->sample_regs_user;
	l->regs_intr = attr->sample_regs_intr;
	l->time = t & PERF_SAMPLE_TIME ? identifier + ip_tid : NO_FIELD;
	l->id = NO_FIELD;
	if (identifier)
		l->id = 0;
	else if (t & PERF_SAMPLE_ID)
		l->id = (uint8_t)(ip_tid + !!(t & PERF_SAMPLE_TIME) + !!(t & PERF_SAMPLE_ADDR));
	identifier = tail_word(l, PERF_SAMPLE_IDENTIFIER);
	l->tail_cpu = tail_word(l, PERF_SAMPLE_CPU);
	l->tail_stream = tail_word(l, PERF_SAMPLE_STREAM_ID);
	id = tail_word(l, PERF_SAMPLE_ID);
	l->tail_id = identifier == NO_FIELD ? id : identifier;
	l->tail_time = tail_word(l, PERF_SAMPLE_TIME);
	l->tail_tid = tail_word(l, PERF_SAMPLE_TID);
}

/* ------------------------------------------------------------------ whose record, and when */

/* Unaligned: the word at @i of the body, or counted from the end. */
static bool word_at(const struct perf_event_header *h, const uint8_t *record, int i, uint64_t *v)
{
	int n = (int)(h->size - sizeof(*h)) / 8;

	if (i < 0)
		i += n;
	if (i < 0 || i >= n)
		return false;
	memcpy(v, record + sizeof(*h) + (size_t)i * 8, 8);
	return true;
}

/*
 * The event of a record by its id. All events have the id at one place (checked at open), so that
 * the first one's layout finds it. With one event only it is that one, whatever the id.
 */
static struct evsel *find_event(struct perfdata_reader *r, const struct perf_event_header *h,
				const uint8_t *record, struct id_entry **entry)
{
	const struct sample_layout *l = r->nr_evsels ? &r->evsels[0]->layout : NULL;
	struct evsel *only = r->nr_evsels == 1 ? r->evsels[0] : NULL;
	uint64_t id;
	int at;

	*entry = NULL;
	if (!l)
		return NULL;
	at = h->type == PERF_RECORD_SAMPLE ? l->id : -l->tail_id;
	if ((h->type == PERF_RECORD_SAMPLE ? l->id : l->tail_id) == NO_FIELD)
		return only;
	if (h->type != PERF_RECORD_SAMPLE && !has_trailer(r))
		return only;
	if (!word_at(h, record, at, &id))
		return only;
	*entry = id_find(r, id);
	return *entry && (*entry)->evsel ? (*entry)->evsel : only;
}

int record_time(struct perfdata_reader *r, const struct perf_event_header *h, const uint8_t *record,
		uint64_t *time)
{
	struct evsel *e = r->nr_evsels ? r->evsels[0] : NULL;
	struct id_entry *entry;
	int at;

	*time = ~0ull;
	if (!r->uniform)
		e = find_event(r, h, record, &entry);
	if (!e || e->layout.time == NO_FIELD)
		return 0;
	if (h->type != PERF_RECORD_SAMPLE && !has_trailer(r))
		return 0;
	at = h->type == PERF_RECORD_SAMPLE ? e->layout.time : -e->layout.tail_time;
	return word_at(h, record, at, time) ? 0 : -EBADMSG;
}

/* ------------------------------------------------------------------ records */

/* Field by field, which is cheaper than to clear a structure of which samples use a third. */
static void start_record(struct perfdata_record *rec, const struct perf_event_header *h,
			 uint64_t offset)
{
	rec->header = h;
	rec->offset = offset;
	rec->type = h->type;
	rec->misc = h->misc;
	rec->cpumode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	rec->evsel = NULL;
	rec->time = rec->id = rec->stream_id = 0;
	rec->pid = rec->tid = 0;
	rec->cpu = UINT32_MAX;
	rec->machine_pid = 0;
	rec->vcpu = -1;
	rec->ip = rec->addr = rec->period = 0;
	rec->chain = NULL;
	rec->chain_len = 0;
	rec->branches = NULL;
	rec->nr_branches = 0;
	rec->weight = rec->weight2 = rec->weight3 = 0;
	rec->raw = NULL;
	rec->raw_size = 0;
	rec->parts = NULL;
	rec->is_private = false;
	if (h->type != PERF_RECORD_SAMPLE)
		memset(&rec->mmap, 0, sizeof(rec->mmap)); /* the longest of the union */
}

int parse_record(struct perfdata_reader *r, const uint8_t *record, uint64_t offset,
		 struct perfdata_record *rec, const char **what)
{
	const struct perf_event_header *h = (const struct perf_event_header *)record;
	struct words w = {.p = (const uint64_t *)(record + sizeof(*h))};
	struct id_entry *entry;
	struct evsel *e;

	w.end = w.p + (h->size - sizeof(*h)) / 8;
	start_record(rec, h, offset);
	e = find_event(r, h, record, &entry);
	rec->evsel = e ? &e->pub : NULL;
	if (entry) {
		rec->machine_pid = entry->machine_pid;
		rec->vcpu = entry->vcpu;
	}
	if (h->type != PERF_RECORD_SAMPLE)
		return parse_sideband(r, &w, e, rec, what);
	return e ? parse_sample(r, &w, e, rec, what) : -ENOENT;
}
