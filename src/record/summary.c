// SPDX-License-Identifier: GPL-2.0-only
#include "record/summary.h"

#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernel/core/sched.h"
#include "record/wholehost.h"
#include "util/text.h"

void record_say(const struct record_options *opts, const char *fmt, ...)
{
	va_list ap;

	if (opts->quiet)
		return;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
}

/* What a curious user wants to know of the guest's kernel. */
static void say_kernel(const struct record_options *opts, const struct target *t,
		       const struct guest_kernel_info *info)
{
	char id[41] = "none";

	if (info->build_id_len)
		hex_str(id, info->build_id, info->build_id_len);
	record_say(opts,
		   "vmprof record: %s: _text at %#llx (KASLR %+lld MiB), build id %s, %u symbols, "
		   "%u modules, %u CPUs%s%s\n",
		   t->name, (unsigned long long)info->text, (long long)info->kaslr >> 20, id,
		   info->nr_symbols, info->nr_modules, info->nr_cpus, info->la57 ? ", LA57" : "",
		   info->pti ? ", PTI" : "");
}

void summary_events(const struct event_list *l, char *text, size_t size)
{
	const struct event *ev = &l->events[0];
	size_t at = 0;

	for (unsigned i = 0; i < l->n && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", at ? "," : "",
				       l->events[i].name);
	if (at < size)
		snprintf(text + at, size - at, ev->freq ? " at %llu Hz" : " every %llu",
			 (unsigned long long)ev->rate);
}

/* The choice for one VM, in one line. */
void summary_choice(const struct record_options *opts, const struct target *t)
{
	struct guest_kernel_info info;
	char what[320];

	summary_events(&t->events, what, sizeof(what));
	vmrec_kernel_info(t->rec, &info);
	record_say(opts, "vmprof record: %s: %s backend, %s delivery, %s, %u vCPU%s, ", t->name,
		   t->backend->name, t->backend->delivery ? t->backend->delivery : "host", what,
		   vmrec_nr_vcpus(t->rec), vmrec_nr_vcpus(t->rec) == 1 ? "" : "s");
	if (info.known)
		record_say(opts, "Linux %s%s%s\n", info.release, info.has_types ? "" : "; ",
			   info.has_types ? "" : info.why_not);
	else
		record_say(opts, "no kernel known (%s): addresses only\n",
			   info.why_not ? info.why_not : "not looked for");
	if (info.known && opts->verbose)
		say_kernel(opts, t, &info);
}

void summary_host(const struct record_options *opts, const struct targets *ts)
{
	unsigned n;

	wholehost_cpus(ts->host, &n);
	record_say(opts, "vmprof record: the host: all that runs here, on %u CPU%s\n", n,
		   n == 1 ? "" : "s");
}

static uint64_t chains_cut(const uint64_t ends[CHAIN_END_COUNT])
{
	uint64_t n = 0;

	for (int i = CHAIN_DEPTH; i < CHAIN_END_COUNT; i++)
		n += ends[i];
	return n;
}

static void say_event(const struct record_options *opts, const struct target *t, unsigned i,
		      const struct backend_event_stats *st)
{
	const struct vmp_count count = {st->count, st->enabled, st->running};
	const char *name = t->events.events[i].name;

	if (st->enabled && !st->running)
		record_say(opts,
			   "vmprof record: WARNING: %s: event '%s' was never on the PMU: other "
			   "events had all counters that it can use\n",
			   t->name, name);
	else if (st->enabled && !st->count && !event_is_clock(&t->events.events[i]))
		record_say(opts,
			   "vmprof record: WARNING: %s: event '%s' counted nothing during the "
			   "whole record\n",
			   t->name, name);
	else if (st->running < st->enabled - st->enabled / 100)
		record_say(opts,
			   "vmprof record: %s: event '%s' was on the PMU %.1f %% of the time: "
			   "there are more events than counters; %llu counted, %llu scaled\n",
			   t->name, name, 100.0 * (double)st->running / (double)st->enabled,
			   (unsigned long long)st->count, (unsigned long long)vmp_scaled(&count));
}

/*
 * What the counters say: of events that a user may wonder about, since none came or not all were
 * counted, else that all were.
 */
static void say_events(const struct record_options *opts, const struct target *t)
{
	struct backend_event_stats st;
	bool whole = true, pmu = false;

	for (unsigned i = 0; i < t->events.n; i++) {
		vmrec_event_stats(t->rec, i, &st);
		whole &= st.enabled && st.running >= st.enabled;
		pmu |= t->events.events[i].type != PERF_TYPE_SOFTWARE &&
		       t->events.events[i].type != PERF_TYPE_TRACEPOINT;
		say_event(opts, t, i, &st);
	}
	if (!whole || !pmu)
		return;
	record_say(opts, "vmprof record: %s: not multiplexed:", t->name);
	for (unsigned i = 0; i < t->events.n; i++) {
		vmrec_event_stats(t->rec, i, &st);
		record_say(opts, "%s %llu %s", i ? "," : "", (unsigned long long)st.count,
			   t->events.events[i].name);
	}
	record_say(opts, "\n");
}

/* What is not in the profile, or is there with less than it should have; nothing if all is well. */
static void say_losses(const struct record_options *opts, const struct target *t)
{
	struct vmrec_stats st;
	char text[512] = "";
	size_t at;

	vmrec_get_stats(t->rec, &st);
	const struct {
		uint64_t n;
		const char *one, *many;
	} losses[] = {
		{st.backend.lost, "lost", "lost"},
		{st.backend.throttled, "time held back by the kernel (too many samples)",
		 "times held back by the kernel (too many samples)"},
		{st.backend.merged, "tick merged into a later sample",
		 "ticks merged into later samples"},
		{st.guest.torn, "torn", "torn"},
		{st.guest.shared, "shared out among processes with code at its address",
		 "shared out among processes with code at their address"},
		{st.guest.unattributed[SAMPLE_NO_KERNEL], "without a known kernel",
		 "without a known kernel"},
		{st.guest.unattributed[SAMPLE_NO_PROCESS], "without a process",
		 "without a process"},
		{chains_cut(st.guest.kernel_end), "kernel chain cut", "kernel chains cut"},
		{st.guest.user_end[CHAIN_BAD_FRAME], "user chain cut for want of frame information",
		 "user chains cut for want of frame information"},
		{chains_cut(st.guest.user_end) - st.guest.user_end[CHAIN_BAD_FRAME],
		 "user chain cut for other reasons", "user chains cut for other reasons"},
		{st.symbols.none, "file without symbols", "files without symbols"},
		{st.guest.resets, "reboot", "reboots"},
	};

	for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++) {
		at = strlen(text);
		if (losses[i].n)
			snprintf(text + at, sizeof(text) - at, ", %llu %s",
				 (unsigned long long)losses[i].n,
				 losses[i].n == 1 ? losses[i].one : losses[i].many);
	}
	record_say(opts, "[ vmprof record: %s: %llu samples%s%s ]\n", t->name,
		   (unsigned long long)st.written,
		   st.backend.ticks ? "" : " (its vCPUs used no CPU time: idle or paused)", text);
	say_events(opts, t);
	if (st.backend.note && (opts->chains || !t->caps.registers))
		record_say(opts, "vmprof record: %s: %s\n", t->name, st.backend.note);
	if (st.backend.limit)
		record_say(opts, "vmprof record: %s: %s\n", t->name, st.backend.limit);
	if (*st.symbols.last_error)
		record_say(opts, "vmprof record: %s: symbols were not all saved: %s\n", t->name,
			   st.symbols.last_error);
}

void summary_woken(const struct record_options *opts, unsigned wakeups)
{
	record_say(opts, "[ vmprof record: Woken up %u times to write data ]\n", wakeups);
}

void summary_written(const struct record_options *opts, uint64_t bytes, uint64_t samples)
{
	bool pipe = !strcmp(opts->output, "-");

	record_say(opts, "[ vmprof record: Captured and wrote %.3f MB %s (%llu samples) ]\n",
		   (double)bytes / 1048576.0, pipe ? "to standard output" : opts->output,
		   (unsigned long long)samples);
}

void summary_closing(const struct record_options *opts, const struct targets *ts, unsigned wakeups,
		     uint64_t bytes)
{
	uint64_t samples = 0;

	summary_woken(opts, wakeups);
	for (unsigned i = 0; i < ts->n; i++) {
		struct vmrec_stats st;

		say_losses(opts, &ts->t[i]);
		vmrec_get_stats(ts->t[i].rec, &st);
		samples += st.written;
	}
	if (ts->host) {
		struct wholehost_stats st;

		wholehost_get_stats(ts->host, &st);
		samples += st.samples;
		record_say(opts, "[ vmprof record: the host: %llu samples, %llu lost ]\n",
			   (unsigned long long)st.samples, (unsigned long long)st.lost);
		if (st.misled)
			record_say(
				opts,
				"vmprof record: WARNING: the host: %llu samples more are left out: "
				"its kernel takes them for a guest's, as Linux does in a dom0 with "
				"Xen's vpmu=on\n",
				(unsigned long long)st.misled);
	}
	summary_written(opts, bytes, samples);
}
