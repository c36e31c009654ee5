// SPDX-License-Identifier: GPL-2.0-only
#include "report/script.h"

#include <errno.h>
#include <stdlib.h>

#include "report/frametext.h"
#include "report/script_impl.h"
#include "report/script_text.h"
#include "symbolize/userstack.h"
#include "util/text.h"
#include "util/xalloc.h"

#define OUT_SIZE (64u << 10)
#define NSEC	 1000000000ull

int script_new(struct script **out, struct session *session, struct perfdata_reader *r,
	       const struct script_options *opt, FILE *f, struct vmprof_err *err)
{
	struct script *s = xcalloc(1, sizeof(*s));
	int ret;

	s->session = session;
	s->reader = r;
	s->opt = *opt;
	s->f = f;
	s->texts = strtab_new();
	frametext_init(&s->frames, session, s->texts, &s->opt.filter);
	s->tracepoints = tracepoints_new(r, session);
	s->regnames = regnames_of(perfdata_reader_feature_str(r, PERFDATA_FEAT_ARCH));
	ret = script_settle(s);
	if (!ret && opt->cpus)
		ret = cpu_list_parse(&s->cpus, opt->cpus, &s->err);
	if (!ret) {
		*out = s;
		return 0;
	}
	*err = s->err;
	script_free(s);
	return ret;
}

void script_free(struct script *s)
{
	struct comm_text *c;

	if (!s)
		return;
	for (size_t i = 0; (c = hashmap_next(&s->comms, &i, NULL));)
		free(c);
	hashmap_free(&s->comms);
	frametext_free(&s->frames);
	tracepoints_free(s->tracepoints);
	cpu_list_free(&s->cpus);
	strtab_free(s->texts);
	free(s->events);
	buf_free(&s->out);
	free(s);
}

const struct vmprof_err *script_error(const struct script *s)
{
	return &s->err;
}

const char *script_note(const struct script *s)
{
	return tracepoints_why_bytes(s->tracepoints);
}

bool script_is_empty(const struct script *s)
{
	return !s->printed;
}

void script_flush(struct script *s)
{
	if (s->out.len)
		fwrite(s->out.data, 1, s->out.len, s->f);
	buf_reset(&s->out);
}

static int check_cpus(struct script *s, const struct perfdata_evsel *e)
{
	char text[512];

	if (!s->opt.cpus || e->attr.sample_type & PERF_SAMPLE_CPU || script_is_dummy(&e->attr))
		return 0;
	return err_set(&s->err, EINVAL,
		       "-C was given, but samples in %s carry no CPU; record with -a or "
		       "--sample-cpu",
		       escape_str(text, sizeof(text), perfdata_reader_path(s->reader)));
}

/* The events of the file, or of the pipe as far as they are known. */
int script_settle(struct script *s)
{
	size_t n = perfdata_reader_nr_evsels(s->reader), len;
	int ret = 0;

	s->fields = s->opt.fields;
	s->nr_events = n;
	s->events = xreallocarray(s->events, n + 1, sizeof(*s->events));
	for (size_t i = 0; i < n && !ret; i++) {
		const struct perfdata_evsel *e = perfdata_reader_evsel(s->reader, i);

		s->events[i] = strtab_intern_escaped(s->texts, e->name);
		len = strlen(s->events[i]);
		if (!s->printed && len > s->event_width)
			s->event_width = len;
		ret = check_cpus(s, e);
	}
	return ret ? ret
		   : script_fields_settle(&s->fields, s->reader, !s->opt.hide_chains, &s->err);
}

/* ---------- the line of a sample ---------- */

static const struct comm_text *comm_text(struct script *s, const char *comm)
{
	struct comm_text *c = hashmap_get(&s->comms, (uintptr_t)comm);

	if (c)
		return c;
	c = xmalloc(sizeof(*c));
	c->text = strtab_intern_escaped(s->texts, comm);
	c->len = strlen(c->text);
	hashmap_set(&s->comms, (uintptr_t)comm, c);
	return c;
}

static bool has_chains(const struct script *s, const struct perfdata_evsel *e)
{
	return !s->opt.hide_chains && e->attr.sample_type & PERF_SAMPLE_CALLCHAIN;
}

static void put_machine(struct script *s, const struct perfdata_record *rec, const struct thread *t,
			uint32_t fields)
{
	struct buf *b = &s->out;

	if (fields & SCRIPT_MACHINE_PID && rec->machine_pid) {
		text_str(b, "VM:");
		text_int(b, rec->machine_pid, 5);
		text_char(b, ' ');
	}
	if (fields & SCRIPT_VM && !machine_is_host(t->machine)) {
		text_str(b, "VM:");
		text_str(b, strtab_intern_escaped(s->texts, t->machine->name));
		text_char(b, ' ');
	}
	if (fields & SCRIPT_VCPU && rec->machine_pid) {
		text_str(b, "VCPU:");
		text_dec0(b, rec->vcpu < 0 ? 0 : (uint64_t)rec->vcpu, 3);
		text_char(b, ' ');
	}
}

static void put_comm(struct script *s, const struct thread *t, uint32_t fields, bool chains)
{
	/* the VM's name is said once */
	const char *comm = fields & SCRIPT_VM ? t->comm : t->recorded_comm;
	const struct comm_text *c = comm_text(s, comm);

	/* names need no columns where the frames are on lines of their own */
	text_right(&s->out, c->text, c->len, fields & SCRIPT_IP && chains ? 0 : 16);
	text_char(&s->out, ' ');
}

static void put_ids(struct buf *b, const struct perfdata_record *rec, uint32_t fields)
{
	size_t start;

	if (fields & SCRIPT_PID)
		text_int(b, (int32_t)rec->pid, 5);
	if (fields & SCRIPT_PID && fields & SCRIPT_TID) {
		text_char(b, '/');
		start = b->len;
		text_int(b, (int32_t)rec->tid, 0);
		text_pad(b, ' ', b->len - start, 5);
	} else if (fields & SCRIPT_TID) {
		text_int(b, (int32_t)rec->tid, 5);
	}
	text_char(b, ' ');
}

static void put_cpu(struct buf *b, uint32_t cpu)
{
	text_char(b, '[');
	if (cpu == (uint32_t)-1)
		text_str(b, "-01"); /* as printf has it */
	else
		text_dec0(b, cpu, 3);
	text_str(b, "] ");
}

/* The mode in one letter, and what a record of its kind has to say besides. */
static void put_misc(struct buf *b, const struct perfdata_record *rec)
{
	static const char modes[] = " KUHGg  ";
	char text[] = "      ";
	size_t n = 0;

	if (modes[rec->cpumode] != ' ')
		text[n++] = modes[rec->cpumode];
	if (is_mmap_record(rec->type) && rec->misc & PERF_RECORD_MISC_MMAP_DATA)
		text[n++] = 'M';
	if (rec->type == PERF_RECORD_COMM && rec->misc & PERF_RECORD_MISC_COMM_EXEC)
		text[n++] = 'E';
	if (is_switch_record(rec->type) && rec->misc & PERF_RECORD_MISC_SWITCH_OUT) {
		text[n++] = 'S';
		if (rec->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)
			text[n++] = 'p';
	}
	text_str(b, text);
}

static void put_time(struct buf *b, uint64_t time, bool ns)
{
	text_dec(b, time / NSEC, 5);
	text_char(b, '.');
	if (ns)
		text_dec0(b, time % NSEC, 9);
	else
		text_dec0(b, time % NSEC / 1000, 6);
	text_str(b, ": ");
}

void script_start(struct script *s, const struct perfdata_record *rec, const struct thread *t,
		  const struct perfdata_evsel *e)
{
	uint32_t fields = s->fields.types[script_type_of(&e->attr)].fields;
	struct buf *b = &s->out;

	if (fields & (SCRIPT_MACHINE_PID | SCRIPT_VM | SCRIPT_VCPU))
		put_machine(s, rec, t, fields);
	if (fields & SCRIPT_COMM)
		put_comm(s, t, fields, has_chains(s, e));
	if (fields & (SCRIPT_PID | SCRIPT_TID))
		put_ids(b, rec, fields);
	if (fields & SCRIPT_CPU)
		put_cpu(b, rec->cpu);
	if (fields & SCRIPT_MISC)
		put_misc(b, rec);
	if (fields & SCRIPT_TIME)
		put_time(b, rec->time, s->opt.ns);
}

/* ---------- frames ---------- */

static unsigned how_of(const struct script *s, uint32_t fields)
{
	return (s->opt.full_paths ? FRAMETEXT_FULL_PATH : 0) |
	       (fields & SCRIPT_IP ? FRAMETEXT_IP : 0) | (fields & SCRIPT_SYM ? FRAMETEXT_SYM : 0) |
	       (fields & SCRIPT_SYMOFF ? FRAMETEXT_SYMOFF : 0) |
	       (fields & SCRIPT_DSO ? FRAMETEXT_DSO : 0) |
	       (fields & SCRIPT_SRCLINE ? FRAMETEXT_SRCLINE : 0);
}

/*
 * perf takes frames before any marker for user space. A marker that nobody knows makes the chain
 * worthless. Returns whether there was a frame.
 */
static bool put_chain(struct script *s, const struct perfdata_record *rec, bool guest, unsigned how)
{
	uint8_t cpumode = guest ? PERF_RECORD_MISC_GUEST_USER : PERF_RECORD_MISC_USER;
	unsigned inlined = s->opt.inlines == INLINES_ALL ? FRAMETEXT_INLINED : 0, behind = 0;
	size_t start = s->out.len;
	unsigned n = 0;

	for (uint64_t i = 0; i < rec->chain_len && n < s->opt.max_stack; i++) {
		uint64_t ip = rec->chain[i];

		if (ip < PERF_CONTEXT_MAX) {
			frametext_put(
				&s->frames,
				frametext_get(&s->frames, cpumode, ip, how | inlined | behind),
				&s->out);
			behind = inlined ? FRAMETEXT_BEHIND_CALL : 0;
			n++;
			continue;
		}
		behind = 0;
		cpumode = session_chain_mode(rec->cpumode, ip);
		if (!cpumode) {
			s->out.len = start;
			return false;
		}
	}
	return n;
}

/* Of samples with a copy of the stack; as in perf they do not count into the kernel's limit. */
static bool put_user_stack(struct script *s, const struct perfdata_record *rec, struct thread *t,
			   unsigned how)
{
	uint8_t mode =
		machine_is_host(t->machine) ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_GUEST_USER;
	size_t n;
	const uint64_t *ips = session_user_stack(s->session, t, rec, s->opt.max_stack, &n);

	if (s->opt.inlines != INLINES_NONE)
		how |= FRAMETEXT_INLINED;
	for (size_t i = 0; i < n; i++)
		frametext_put(&s->frames, frametext_get(&s->frames, mode, ips[i], how), &s->out);
	return n;
}

static void put_frames(struct script *s, const struct perfdata_record *rec, struct thread *t,
		       uint32_t fields)
{
	unsigned how = how_of(s, fields);
	bool any;

	if (!s->opt.hide_chains && rec->chain) {
		how |= FRAMETEXT_LINE;
		text_char(&s->out, '\n');
		/* Where the kernel has recorded no chain, perf forgets the address as well. */
		any = put_chain(s, rec, !machine_is_host(t->machine), how);
		any |= put_user_stack(s, rec, t, how);
		if (any)
			return;
	} else {
		text_char(&s->out, ' ');
	}
	frametext_put(&s->frames, frametext_get(&s->frames, rec->cpumode, rec->ip, how), &s->out);
}

/* ---------- samples ---------- */

bool script_wanted_thread(const struct script *s, const struct thread *t)
{
	struct context ctx = {.machine = t->machine, .thread = t, .comm = t->comm};
	const struct report_filter *f = &s->opt.filter;

	if (!f->vms && !f->comms && !f->pids && !f->tids)
		return true;
	if (filter_context(f, &ctx))
		return true;
	/* a guest's command can be called by what is printed of it, too */
	ctx.comm = t->recorded_comm;
	return f->comms && filter_context(f, &ctx);
}

static bool wanted_place(struct script *s, const struct perfdata_record *rec)
{
	const struct report_filter *f = &s->opt.filter;

	if (!f->dsos && !f->symbols && !f->symbol_part)
		return true;
	return frametext_get(&s->frames, rec->cpumode, rec->ip, 0)->wanted;
}

bool script_wanted_cpu(const struct script *s, const struct perfdata_record *rec)
{
	return !s->opt.cpus || rec->cpu == (uint32_t)-1 || cpu_list_has(&s->cpus, rec->cpu);
}

static void print_sample(struct script *s, const struct perfdata_record *rec)
{
	const struct perfdata_evsel *e = rec->evsel;
	uint32_t fields = s->fields.types[script_type_of(&e->attr)].fields;
	struct buf *b = &s->out;
	struct thread *t;

	if (!fields || !time_ranges_have(&s->opt.times, rec->time) || !script_wanted_cpu(s, rec))
		return;
	t = session_thread(s->session, rec);
	frametext_thread(&s->frames, t);
	if (!script_wanted_thread(s, t) || !wanted_place(s, rec))
		return;
	s->printed = true;
	script_start(s, rec, t, e);
	if (fields & SCRIPT_PERIOD) {
		text_dec(b, rec->period, 10);
		text_char(b, ' ');
	}
	if (fields & SCRIPT_EVENT) {
		text_right(b, s->events[e->index], strlen(s->events[e->index]), s->event_width);
		text_str(b, ": ");
	}
	if (fields & SCRIPT_VALUES)
		script_values(s, rec, fields);
	if (fields & SCRIPT_IP)
		put_frames(s, rec, t, fields);
	if (fields & SCRIPT_PARTS)
		script_parts(s, rec, fields);
	text_char(b, '\n');
}

static int other_record(struct script *s, const struct perfdata_record *rec)
{
	bool show = script_wants(s, rec);
	int ret;

	/* who exits is named as long as it is known; all others are named as they are now called */
	if (show && rec->type == PERF_RECORD_EXIT)
		script_sideband(s, rec);
	ret = session_process(s->session, rec);
	if (show && rec->type != PERF_RECORD_EXIT)
		script_sideband(s, rec);
	return ret < 0 ? ret : 0;
}

int script_record(void *ctx, const struct perfdata_record *rec)
{
	struct script *s = ctx;
	int ret = 0;

	if (s->nr_events != perfdata_reader_nr_evsels(s->reader))
		ret = script_settle(s);
	if (ret)
		return ret;
	if (rec->type != PERF_RECORD_SAMPLE)
		ret = other_record(s, rec);
	else if (rec->evsel && rec->evsel->index < s->nr_events)
		print_sample(s, rec);
	if (s->out.len >= OUT_SIZE)
		script_flush(s);
	return ret;
}
