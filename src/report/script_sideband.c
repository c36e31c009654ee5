// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of processes and mappings between the samples (tools/perf/util/event.c).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "report/script_impl.h"
#include "report/script_text.h"
#include "util/text.h"

static bool is_task(uint32_t type)
{
	return type == PERF_RECORD_COMM || type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT;
}

bool script_wants(const struct script *s, const struct perfdata_record *rec)
{
	if (rec->is_private)
		return false;
	return (s->opt.task_events && is_task(rec->type)) ||
	       (s->opt.mmap_events && is_mmap_record(rec->type)) ||
	       (s->opt.switch_events && is_switch_record(rec->type)) ||
	       (s->opt.lost_events && rec->type == PERF_RECORD_LOST);
}

/* Whom the record is about: it may have been written by another. */
static struct thread *subject(struct script *s, const struct perfdata_record *rec)
{
	struct perfdata_record about = *rec;

	if (is_mmap_record(rec->type)) {
		about.pid = rec->mmap.pid;
		about.tid = rec->mmap.tid;
	} else if (rec->type == PERF_RECORD_FORK || rec->type == PERF_RECORD_EXIT) {
		about.pid = rec->task.pid;
		about.tid = rec->task.tid;
	}
	return session_thread(s->session, &about);
}

static void put_text(struct script *s, const char *raw)
{
	text_str(&s->out, strtab_intern_escaped(s->texts, raw ? raw : ""));
}

static void put_task(struct script *s, const struct perfdata_record *rec)
{
	buf_printf(&s->out, "PERF_RECORD_%s(%" PRId32 ":%" PRId32 "):(%" PRId32 ":%" PRId32 ")\n",
		   rec->type == PERF_RECORD_FORK ? "FORK" : "EXIT", (int32_t)rec->task.pid,
		   (int32_t)rec->task.tid, (int32_t)rec->task.ppid, (int32_t)rec->task.ptid);
}

static void put_lost(struct script *s, const struct perfdata_record *rec)
{
	buf_printf(&s->out, "PERF_RECORD_LOST lost %" PRIu64 "\n", rec->lost.lost);
}

/* To or from another task; of a whole CPU it is known which. */
static void put_switch(struct script *s, const struct perfdata_record *rec)
{
	bool away = rec->misc & PERF_RECORD_MISC_SWITCH_OUT,
	     preempted = rec->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	const char *how = !away ? "IN         " : preempted ? "OUT preempt" : "OUT        ";

	if (rec->type == PERF_RECORD_SWITCH)
		buf_printf(&s->out, "PERF_RECORD_SWITCH %s\n", how);
	else
		buf_printf(&s->out,
			   "PERF_RECORD_SWITCH_CPU_WIDE %s  %s pid/tid: %5" PRId32 "/%-5" PRId32
			   "\n",
			   how, away ? "next" : "prev", (int32_t)rec->other.pid,
			   (int32_t)rec->other.tid);
}

static void put_comm(struct script *s, const struct perfdata_record *rec)
{
	text_str(&s->out, rec->comm.exec ? "PERF_RECORD_COMM exec: " : "PERF_RECORD_COMM: ");
	put_text(s, rec->comm.comm);
	buf_printf(&s->out, ":%" PRId32 "/%" PRId32 "\n", (int32_t)rec->pid, (int32_t)rec->tid);
}

static void put_mmap(struct script *s, const struct perfdata_record *rec)
{
	struct buf *b = &s->out;
	char id[2 * 20 + 1];

	buf_printf(b,
		   "PERF_RECORD_MMAP%s %" PRId32 "/%" PRId32 ": [%#" PRIx64 "(%#" PRIx64
		   ") @ %#" PRIx64,
		   rec->type == PERF_RECORD_MMAP2 ? "2" : "", (int32_t)rec->mmap.pid,
		   (int32_t)rec->mmap.tid, rec->mmap.start, rec->mmap.len, rec->mmap.pgoff);
	if (rec->type == PERF_RECORD_MMAP) {
		text_str(b, rec->misc & PERF_RECORD_MISC_MMAP_DATA ? "]: r " : "]: x ");
		put_text(s, rec->mmap.filename);
		text_char(b, '\n');
		return;
	}
	if (rec->mmap.build_id) {
		hex_str(id, rec->mmap.build_id, rec->mmap.build_id_len);
		buf_printf(b, " <%s>]: ", id);
	} else {
		buf_printf(b, " %02x:%02x %" PRIu64 " %" PRIu64 "]: ", rec->mmap.maj, rec->mmap.min,
			   rec->mmap.ino, rec->mmap.ino_generation);
	}
	text_char(b, rec->mmap.prot & PROT_READ ? 'r' : '-');
	text_char(b, rec->mmap.prot & PROT_WRITE ? 'w' : '-');
	text_char(b, rec->mmap.prot & PROT_EXEC ? 'x' : '-');
	text_str(b, rec->mmap.flags & MAP_SHARED ? "s " : "p ");
	put_text(s, rec->mmap.filename);
	text_char(b, '\n');
}

static void (*printer(uint32_t type))(struct script *s, const struct perfdata_record *rec)
{
	static void (*const printers[])(struct script *, const struct perfdata_record *) = {
		[PERF_RECORD_MMAP] = put_mmap,	   [PERF_RECORD_LOST] = put_lost,
		[PERF_RECORD_COMM] = put_comm,	   [PERF_RECORD_EXIT] = put_task,
		[PERF_RECORD_FORK] = put_task,	   [PERF_RECORD_MMAP2] = put_mmap,
		[PERF_RECORD_SWITCH] = put_switch, [PERF_RECORD_SWITCH_CPU_WIDE] = put_switch,
	};

	return printers[type];
}

void script_sideband(struct script *s, const struct perfdata_record *rec)
{
	const struct perfdata_evsel *e = rec->evsel;
	struct perfdata_record by; /* who has written it */
	struct thread *t;

	if (!e && s->nr_events)
		e = perfdata_reader_evsel(s->reader, 0);
	if (!e || !script_wanted_cpu(s, rec))
		return;
	t = subject(s, rec);
	if (!script_wanted_thread(s, t))
		return;
	by = *rec;
	if (rec->type == PERF_RECORD_COMM) {
		by.pid = rec->comm.by_pid;
		by.tid = rec->comm.by_tid;
	}
	script_start(s, &by, t, e);
	printer(rec->type)(s, rec);
}
