// SPDX-License-Identifier: GPL-2.0-only
#include "report/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "report/frametext.h"
#include "report/script_text.h"
#include "util/text.h"
#include "util/xalloc.h"

#define OUT_SIZE (64u << 10)
#define NSEC	 1000000000ull

enum {
	MAX_TIED = 1024, /* lines of one time that are put in order */
	TIME_WIDTH = 17,
	CPU_WIDTH = 3,
	VM_WIDTH = 16,
	EVENT_WIDTH = 16,
	PID_WIDTH = 7,
	ADDRESS_WIDTH = 16,
};

struct line {
	uint64_t cpu;	/* and behind all CPUs of the host those of guests */
	size_t at, len; /* in the text */
};

struct timeline {
	struct session *session;
	struct perfdata_reader *reader;
	struct timeline_options opt;
	FILE *f;
	struct vmprof_err err;
	struct cpu_list cpus;
	struct strtab *texts;
	struct frametext frames;
	bool started;	  /* the header is printed, or not wanted */
	bool show_events; /* there are several */
	bool printed;	  /* a sample */

	struct line tied[MAX_TIED]; /* lines of the last time, */
	unsigned nr_tied;
	uint64_t time; /* which is this one */
	struct buf text, out;
};

int timeline_new(struct timeline **out, struct session *session, struct perfdata_reader *r,
		 const struct timeline_options *opt, FILE *f, struct vmprof_err *err)
{
	struct timeline *t = xcalloc(1, sizeof(*t));
	int ret = 0;

	t->session = session;
	t->reader = r;
	t->opt = *opt;
	t->f = f;
	/* what has no name has no part of one: the empty part is in every name */
	if (opt->hide_unresolved && !opt->filter.symbol_part)
		t->opt.filter.symbol_part = "";
	t->texts = strtab_new();
	frametext_init(&t->frames, session, t->texts, &t->opt.filter);
	if (opt->cpus)
		ret = cpu_list_parse(&t->cpus, opt->cpus, err);
	if (ret)
		timeline_free(t);
	else
		*out = t;
	return ret;
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	frametext_free(&t->frames);
	cpu_list_free(&t->cpus);
	strtab_free(t->texts);
	buf_free(&t->text);
	buf_free(&t->out);
	free(t);
}

const struct vmprof_err *timeline_error(const struct timeline *t)
{
	return &t->err;
}

bool timeline_is_empty(const struct timeline *t)
{
	return !t->printed;
}

/* ---------- order ---------- */

/* There are hardly ever two. */
static void sort_tied(struct timeline *t)
{
	for (unsigned i = 1; i < t->nr_tied; i++) {
		struct line l = t->tied[i];
		unsigned k = i;

		for (; k && t->tied[k - 1].cpu > l.cpu; k--)
			t->tied[k] = t->tied[k - 1];
		t->tied[k] = l;
	}
}

static void put_tied(struct timeline *t)
{
	sort_tied(t);
	for (unsigned i = 0; i < t->nr_tied; i++)
		text_bytes(&t->out, (const char *)t->text.data + t->tied[i].at, t->tied[i].len);
	t->nr_tied = 0;
	buf_reset(&t->text);
}

static void write_out(struct timeline *t)
{
	if (t->out.len)
		fwrite(t->out.data, 1, t->out.len, t->f);
	buf_reset(&t->out);
}

void timeline_flush(struct timeline *t)
{
	put_tied(t);
	write_out(t);
}

/* ---------- lines ---------- */

static void put_left(struct buf *b, const char *s, size_t width)
{
	size_t len = strlen(s);

	text_bytes(b, s, len);
	text_pad(b, ' ', len, width);
	text_str(b, "  ");
}

static void put_header(struct timeline *t)
{
	struct buf *b = &t->out;

	t->started = true;
	t->show_events = perfdata_reader_nr_evsels(t->reader) > 1;
	if (t->opt.quiet)
		return;
	text_str(b, "# ");
	put_left(b, "            Time", TIME_WIDTH - 2);
	put_left(b, "CPU", CPU_WIDTH);
	put_left(b, "VM", VM_WIDTH);
	if (t->show_events)
		put_left(b, "Event", EVENT_WIDTH);
	text_right(b, "Pid", 3, PID_WIDTH);
	text_str(b, "  ");
	put_left(b, "Address", ADDRESS_WIDTH);
	text_str(b, "Symbol\n");
}

static void put_time(struct buf *b, uint64_t time)
{
	text_dec(b, time / NSEC, TIME_WIDTH - 10);
	text_char(b, '.');
	text_dec0(b, time % NSEC, 9);
	text_str(b, "  ");
}

/* A sample that was taken in the guest knows that one's CPU only. */
static void put_cpu(struct buf *b, const struct perfdata_record *rec)
{
	if (rec->cpu != UINT32_MAX) {
		text_dec0(b, rec->cpu, CPU_WIDTH);
	} else if (rec->vcpu >= 0) {
		text_char(b, 'v');
		text_dec0(b, (uint64_t)rec->vcpu, CPU_WIDTH - 1);
	} else {
		text_right(b, "-", 1, CPU_WIDTH);
	}
	text_str(b, "  ");
}

static const char *vm_name(struct timeline *t, const struct machine *m)
{
	return machine_is_host(m) ? "[host]" : strtab_intern_escaped(t->texts, m->name);
}

static void put_line(struct timeline *t, const struct perfdata_record *rec,
		     const struct thread *thread)
{
	struct buf *b = &t->text;
	struct line *l;

	if (t->nr_tied && (t->time != rec->time || t->nr_tied == MAX_TIED))
		put_tied(t);
	t->time = rec->time;
	t->printed = true;
	l = &t->tied[t->nr_tied++];
	*l = (struct line){.cpu = rec->cpu == UINT32_MAX
					  ? (uint64_t)UINT32_MAX + 1 + (uint32_t)rec->vcpu
					  : rec->cpu,
			   .at = b->len};
	put_time(b, rec->time);
	put_cpu(b, rec);
	put_left(b, vm_name(t, thread->machine), VM_WIDTH);
	if (t->show_events)
		put_left(b, strtab_intern_escaped(t->texts, rec->evsel->name), EVENT_WIDTH);
	text_int(b, thread->pid, PID_WIDTH);
	text_str(b, "  ");
	text_hex(b, rec->ip, ADDRESS_WIDTH);
	text_char(b, ' ');
	frametext_put(
		&t->frames,
		frametext_get(&t->frames, rec->cpumode, rec->ip, FRAMETEXT_SYM | FRAMETEXT_DSO), b);
	text_char(b, '\n');
	l->len = b->len - l->at;
}

/* ---------- samples ---------- */

static int check_fields(struct timeline *t, const struct perfdata_evsel *e)
{
	const char *path = perfdata_reader_path(t->reader);

	if (!(e->attr.sample_type & PERF_SAMPLE_TIME))
		return err_set(&t->err, EINVAL, "--timeline: samples in %s carry no time", path);
	if (t->opt.cpus && !(e->attr.sample_type & PERF_SAMPLE_CPU))
		return err_set(&t->err, EINVAL,
			       "-C was given, but samples in %s carry no CPU; record with -a or "
			       "--sample-cpu",
			       path);
	return 0;
}

static bool is_wanted(struct timeline *t, const struct perfdata_record *rec, struct thread *thread)
{
	const struct report_filter *f = &t->opt.filter;
	const struct context ctx = {
		.machine = thread->machine, .thread = thread, .comm = thread->comm};

	if (!filter_context(f, &ctx))
		return false;
	frametext_thread(&t->frames, thread);
	return frametext_get(&t->frames, rec->cpumode, rec->ip, FRAMETEXT_SYM | FRAMETEXT_DSO)
		->wanted;
}

static int sample(struct timeline *t, const struct perfdata_record *rec)
{
	struct thread *thread;
	int ret;

	if (!rec->evsel || (t->opt.event && strcmp(t->opt.event, rec->evsel->name)))
		return 0;
	ret = check_fields(t, rec->evsel);
	if (ret || (t->opt.cpus && !cpu_list_has(&t->cpus, rec->cpu)))
		return ret;
	if (t->opt.times && !time_ranges_have(t->opt.times, rec->time))
		return 0;
	thread = session_thread(t->session, rec);
	if (is_wanted(t, rec, thread))
		put_line(t, rec, thread);
	return 0;
}

int timeline_record(void *ctx, const struct perfdata_record *rec)
{
	struct timeline *t = ctx;
	int ret;

	if (!t->started)
		put_header(t);
	if (t->out.len >= OUT_SIZE)
		write_out(t);
	if (rec->type == PERF_RECORD_SAMPLE)
		return sample(t, rec);
	ret = session_process(t->session, rec);
	return ret < 0 ? ret : 0;
}
