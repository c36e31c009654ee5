// SPDX-License-Identifier: GPL-2.0-only
/* All records but samples, and the trailer behind them. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "perfdata/parse_impl.h"

static uint32_t low(uint64_t v)
{
	return (uint32_t)v;
}

static uint32_t high(uint64_t v)
{
	return (uint32_t)(v >> 32);
}

/* The string from here up to the trailer, NULL if it has no end. */
static const char *next_string(const struct words *w)
{
	const char *s = (const char *)w->p;

	return memchr(s, 0, (size_t)((const char *)w->end - s)) ? s : NULL;
}

static bool parse_comm(struct words *w, struct perfdata_record *rec)
{
	uint64_t ids = next(w);

	rec->comm.by_pid = rec->pid;
	rec->comm.by_tid = rec->tid;
	rec->pid = low(ids);
	rec->tid = high(ids);
	rec->comm.exec = rec->misc & PERF_RECORD_MISC_COMM_EXEC;
	rec->comm.comm = next_string(w);
	return rec->comm.comm;
}

static bool parse_task(struct words *w, struct perfdata_record *rec)
{
	uint64_t pids = next(w), tids = next(w);

	rec->task.pid = low(pids);
	rec->task.ppid = high(pids);
	rec->task.tid = low(tids);
	rec->task.ptid = high(tids);
	rec->task.time = next(w);
	return true;
}

static void parse_map_range(struct words *w, struct perfdata_record *rec)
{
	uint64_t ids = next(w);

	rec->mmap.pid = low(ids);
	rec->mmap.tid = high(ids);
	rec->mmap.start = next(w);
	rec->mmap.len = next(w);
	rec->mmap.pgoff = next(w);
}

static bool parse_mmap(struct words *w, struct perfdata_record *rec)
{
	parse_map_range(w, rec);
	rec->mmap.is_data = rec->misc & PERF_RECORD_MISC_MMAP_DATA;
	rec->mmap.prot = rec->mmap.is_data ? PROT_READ : PROT_READ | PROT_EXEC;
	rec->mmap.filename = next_string(w);
	return rec->mmap.filename;
}

/* "//vmprof WORD JSON": the word gets an end of its own. */
static void parse_private(struct perfdata_reader *r, struct perfdata_record *rec)
{
	const char *text = rec->mmap.filename, *blank;
	const size_t prefix = strlen(PERFDATA_PRIVATE_PREFIX);

	if (rec->mmap.pid != PERFDATA_PRIVATE_PID || (rec->mmap.prot & PROT_EXEC) ||
	    strncmp(text, PERFDATA_PRIVATE_PREFIX, prefix))
		return;
	text += prefix;
	blank = strchr(text, ' ');
	if (!blank || (size_t)(blank - text) >= sizeof(r->private_word))
		return;
	memcpy(r->private_word, text, (size_t)(blank - text));
	r->private_word[blank - text] = 0;
	rec->is_private = true;
	rec->private.word = r->private_word;
	rec->private.json = blank + 1;
}

/* Bits that no protection has, and one of '/', '[' and '.' has at least. */
#define NO_PROT 0xf0u

/* The mode of the file, which perf inject --jit has there: letters are not that low. */
static bool is_file_mode(uint32_t prot)
{
	return prot <= UINT16_MAX && S_ISREG(prot);
}

static bool parse_mmap2(struct words *w, struct perfdata_record *rec)
{
	const uint64_t *identity;
	uint64_t prot;

	parse_map_range(w, rec);
	identity = next_array(w, 3);
	prot = next(w);
	if (w->bad)
		return false;
	if (rec->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		const uint8_t *b = (const uint8_t *)identity;

		rec->mmap.build_id_len = b[0] <= 20 ? b[0] : 20;
		rec->mmap.build_id = rec->mmap.build_id_len ? b + 4 : NULL;
	} else {
		rec->mmap.maj = low(identity[0]);
		rec->mmap.min = high(identity[0]);
		rec->mmap.ino = identity[1];
		rec->mmap.ino_generation = identity[2];
	}
	if (low(prot) & NO_PROT && !is_file_mode(low(prot))) {
		/* before Linux 3.16 there was neither prot nor flags: these are letters of the name
		 */
		w->p--;
		prot = rec->misc & PERF_RECORD_MISC_MMAP_DATA ? PROT_READ : PROT_READ | PROT_EXEC;
	}
	rec->mmap.prot = low(prot);
	rec->mmap.flags = high(prot);
	rec->mmap.is_data = (rec->misc & PERF_RECORD_MISC_MMAP_DATA) || !(low(prot) & PROT_EXEC);
	rec->mmap.filename = next_string(w);
	return rec->mmap.filename;
}

static bool parse_ksymbol(struct words *w, struct perfdata_record *rec)
{
	uint64_t rest;

	rec->ksymbol.start = next(w);
	rest = next(w);
	rec->ksymbol.len = low(rest);
	rec->ksymbol.type = (uint16_t)(rest >> 32);
	rec->ksymbol.unregister = rest >> 48 & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	rec->ksymbol.name = next_string(w);
	return rec->ksymbol.name;
}

static bool parse_lost(struct words *w, struct perfdata_record *rec)
{
	rec->lost.id = next(w);
	rec->lost.lost = next(w);
	return true;
}

static bool parse_lost_samples(struct words *w, struct perfdata_record *rec)
{
	rec->lost.lost = next(w);
	return true;
}

static bool parse_switch(struct words *w, struct perfdata_record *rec)
{
	uint64_t ids = next(w);

	rec->other.pid = low(ids);
	rec->other.tid = high(ids);
	return true;
}

static bool (*const parsers[])(struct words *w, struct perfdata_record *rec) = {
	[PERF_RECORD_MMAP] = parse_mmap,
	[PERF_RECORD_LOST] = parse_lost,
	[PERF_RECORD_COMM] = parse_comm,
	[PERF_RECORD_EXIT] = parse_task,
	[PERF_RECORD_FORK] = parse_task,
	[PERF_RECORD_MMAP2] = parse_mmap2,
	[PERF_RECORD_LOST_SAMPLES] = parse_lost_samples,
	[PERF_RECORD_SWITCH_CPU_WIDE] = parse_switch,
	[PERF_RECORD_KSYMBOL] = parse_ksymbol,
};

/* Takes the trailer off the end of @w. Records that perf made up may have none. */
static void parse_trailer(const struct perfdata_reader *r, struct words *w,
			  const struct sample_layout *l, struct perfdata_record *rec)
{
	const uint64_t *end = w->end;

	if (!l->tail_words || (size_t)(w->end - w->p) < l->tail_words)
		return;
	w->end -= l->tail_words;
	if (l->tail_tid != NO_FIELD) {
		rec->pid = swap_half(r, end[-l->tail_tid], 0);
		rec->tid = swap_half(r, end[-l->tail_tid], 1);
	}
	if (l->tail_time != NO_FIELD)
		rec->time = end[-l->tail_time];
	if (l->tail_id != NO_FIELD)
		rec->id = end[-l->tail_id];
	if (l->tail_stream != NO_FIELD)
		rec->stream_id = end[-l->tail_stream];
	if (l->tail_cpu != NO_FIELD)
		rec->cpu = swap_half(r, end[-l->tail_cpu], 0);
}

int parse_sideband(struct perfdata_reader *r, struct words *w, const struct evsel *e,
		   struct perfdata_record *rec, const char **what)
{
	if (has_trailer(r))
		parse_trailer(r, w, e ? &e->layout : &r->evsels[0]->layout, rec);
	if (rec->type >= sizeof(parsers) / sizeof(*parsers) || !parsers[rec->type])
		return 0;
	*what = "a record that is too short for its type or has a name without an end";
	if (!parsers[rec->type](w, rec) || w->bad)
		return -EBADMSG;
	if (rec->type == PERF_RECORD_MMAP2)
		parse_private(r, rec);
	return 0;
}
