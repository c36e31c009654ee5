// SPDX-License-Identifier: GPL-2.0-only
#include "record/vmrec.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/clockwatch.h"
#include "record/hostside.h"
#include "record/prompt.h"
#include "record/sideband.h"
#include "record/vmjson.h"
#include "util/clock.h"
#include "util/text.h"
#include "util/xalloc.h"

#define VM_NAME_MAX	200 /* bytes: a name may be as long as a command line, a record may not */
#define READ_TIMEOUT_MS 100
#define HOUSEKEEPING_NS                                                                            \
	250000000ull		      /* between looks for symbols to save; also age of the stats  \
				       */
#define PENDING_MAX	(64u << 20)   /* samples that nobody takes, as of a pipe that is not read */
#define LAST_SYMBOLS_NS 5000000000ull /* for the symbols that are left when the record stops */

struct vmrec {
	struct vmrec_config cfg;
	char name[VM_NAME_MAX + 1]; /* the VM's, as the file has it */
	struct backend_session *session;
	struct guest *guest;
	struct symsave *symsave;
	struct clockwatch *clockwatch;
	struct sideband sideband;
	struct hostside hostside;
	bool host; /* some event is the host's, too */
	uint64_t *ids;
	uint32_t nr_vcpus;

	pthread_t thread;
	bool running;
	atomic_bool stop;
	char ended[256];

	pthread_mutex_t lock; /* of what follows */
	struct buf pending;
	uint64_t dropped; /* samples for which there was no room in it */
	struct vmrec_stats stats;
};

static int peek(void *ctx, uint32_t vcpu, struct guest_regs *regs)
{
	struct vmrec *r = ctx;

	return r->cfg.backend->peek(r->session, vcpu, regs);
}

/* Any vCPU's registers will do; one that is still in firmware, or not known yet, will not. */
static int identify(struct vmrec *r, struct vmprof_err *err)
{
	struct guest_regs regs;
	int rc = -ENOENT;

	err_set(err, ENOENT, "no vCPU's registers could be read");
	if (!r->cfg.caps.peek)
		return guest_identify(r->guest, NULL, err);
	for (uint32_t i = 0; i < r->nr_vcpus && rc && rc != -ESRCH; i++) {
		rc = peek(r, i, &regs);
		if (!rc)
			rc = guest_identify(r->guest, &regs, err);
	}
	return rc;
}

int vmrec_open(struct vmrec **out, const struct vmrec_config *cfg, struct vmprof_err *err)
{
	const struct backend_config bcfg = {
		.events = cfg->events->events,
		.nr_events = cfg->events->n,
		.chains = cfg->chains,
		.stack_size = cfg->stack_size,
		.multiplex = cfg->multiplex,
		.domain = cfg->domain,
		.pause = cfg->pause,
		.experimental = cfg->experimental,
		.force = cfg->force,
	};
	struct vmrec *r = xcalloc(1, sizeof(*r));
	struct guest_config gcfg = {
		.arch = vm_guest_arch(cfg->vm),
		.chains = cfg->chains,
		.peek = peek,
		.peek_ctx = r,
	};
	struct vmprof_err none;
	int rc;

	*out = NULL;
	r->cfg = *cfg;
	escape_str(r->name, sizeof(r->name), cfg->vm->name);
	pthread_mutex_init(&r->lock, NULL);
	rc = cfg->backend->open(&r->session, cfg->vm, &bcfg, err);
	if (rc)
		goto err_out;
	r->nr_vcpus = gcfg.nr_vcpus = cfg->backend->nr_vcpus(r->session);
	rc = guest_open(&r->guest, cfg->backend->memory(r->session), &gcfg, err);
	if (rc)
		goto err_out;
	rc = identify(r, &none);
	if (rc == -ESRCH) {
		*err = none;
		goto err_out;
	}
	r->hostside.pid = vm_number(cfg->vm);
	for (unsigned i = 0; i < cfg->events->n; i++)
		r->host |= cfg->events->events[i].host && !cfg->caps.apart;
	r->symsave = symsave_new(cfg->store, r->name);
	r->clockwatch = clockwatch_new(r->guest, r->nr_vcpus);
	r->sideband = (struct sideband){
		.machine_pid = vm_number(cfg->vm),
		.vm_name = r->name,
		.symsave = r->symsave,
	};
	*out = r;
	return 0;
err_out:
	vmrec_close(r);
	return rc;
}

void vmrec_close(struct vmrec *r)
{
	if (!r)
		return;
	vmrec_stop(r);
	clockwatch_free(r->clockwatch);
	guest_close(r->guest);
	if (r->session)
		r->cfg.backend->close(r->session);
	symsave_free(r->symsave);
	sideband_free(&r->sideband);
	hostside_free(&r->hostside);
	free(r->ids);
	buf_free(&r->pending);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

uint32_t vmrec_nr_vcpus(const struct vmrec *r)
{
	return r->nr_vcpus;
}

void vmrec_kernel_info(struct vmrec *r, struct guest_kernel_info *info)
{
	guest_kernel_info(r->guest, info);
}

/* What the file says of the VM; again after a reboot, when another kernel may run. */
static void encode_vm(struct vmrec *r, struct buf *out, uint64_t time)
{
	struct perfdata_id id = {.id = r->sideband.id, .time = time};
	struct guest_kernel_info info;
	char *json;

	guest_kernel_info(r->guest, &info);
	json = vmjson_vm(&r->cfg, r->name, r->nr_vcpus, &info);
	perfdata_encode_private(out, &id, "vm", json);
	free(json);
}

static void drain_events(struct vmrec *r, struct buf *out)
{
	struct guest_event ev;

	while (guest_next_event(r->guest, &ev)) {
		sideband_encode(&r->sideband, out, r->guest, &ev);
		if (ev.type == GUEST_EVENT_EXIT && ev.tid == ev.pid)
			symsave_exit(r->symsave, ev.pid);
		if (ev.type == GUEST_EVENT_KERNEL && ev.time)
			encode_vm(r, out, ev.time);
	}
}

static bool excluded(const struct vmrec *r, const struct sample *s)
{
	const struct event *ev = &r->cfg.events->events[s->event];

	switch (s->mode) {
	case SAMPLE_MODE_GUEST_KERNEL:
	case SAMPLE_MODE_HOST_KERNEL:
		return ev->exclude_kernel;
	case SAMPLE_MODE_GUEST_USER:
	case SAMPLE_MODE_HOST_USER:
		return ev->exclude_user;
	default:
		return false;
	}
}

/* false: it is not wanted */
static bool encode_sample(struct vmrec *r, const struct sample *s)
{
	struct perfdata_id id = {
		.id = r->ids[s->event * r->nr_vcpus + s->vcpu],
		.time = s->time,
		.pid = (uint32_t)s->pid,
		.tid = (uint32_t)s->tid,
		.cpu = s->host_cpu,
		.cpumode = (uint16_t)s->mode,
	};

	if (excluded(r, s)) {
		r->stats.filtered++;
		return false;
	}
	perfdata_encode_sample(&r->pending, &id, s->ip, s->period, s->chain, s->chain_len);
	r->stats.written++;
	return true;
}

/* What is written waits for what it is written to: memory has a bound, if that never comes. */
static bool is_full(struct vmrec *r)
{
	bool full;

	pthread_mutex_lock(&r->lock);
	full = r->pending.len >= PENDING_MAX;
	r->dropped += full;
	pthread_mutex_unlock(&r->lock);
	return full;
}

static void take_told(struct vmrec *r)
{
	struct raw_told told;

	while (r->cfg.backend->told && r->cfg.backend->told(r->session, &told))
		guest_tell(r->guest, &told);
}

static int take_sample(struct vmrec *r, const struct raw_sample *raw)
{
	struct sample s;
	bool written;
	int rc;

	take_told(r);
	if (is_full(r))
		return 0;
	rc = guest_complete(r->guest, raw, &s);
	if (r->cfg.backend->complete)
		r->cfg.backend->complete(r->session);
	pthread_mutex_lock(&r->lock);
	drain_events(r, &r->pending);
	if (!sample_mode_is_guest(s.mode) && r->host)
		hostside_see(&r->hostside, &r->pending, &s);
	written = encode_sample(r, &s);
	pthread_mutex_unlock(&r->lock);
	if (written && sample_mode_is_guest(s.mode))
		symsave_hit(r->symsave, r->guest, &s);
	return rc;
}

/* Returns false when no DSO is left to save. */
static bool save_one_dso(struct vmrec *r)
{
	struct guest_dso dso;

	if (!guest_next_hit_dso(r->guest, &dso))
		return false;
	sideband_save_dso(&r->sideband, r->guest, &dso);
	return true;
}

static void update_stats(struct vmrec *r)
{
	pthread_mutex_lock(&r->lock);
	r->cfg.backend->stats(r->session, &r->stats.backend);
	r->stats.backend.lost += r->dropped;
	guest_get_stats(r->guest, &r->stats.guest);
	symsave_get_stats(r->symsave, &r->stats.symbols);
	r->stats.ended = r->ended[0] ? r->ended : NULL;
	pthread_mutex_unlock(&r->lock);
}

static void encode_clocks(struct vmrec *r,
			  const struct guest_clock_bounds bounds[GUEST_CLOCK_COUNT])
{
	struct perfdata_id id = {.id = r->sideband.id, .time = clock_now_ns()};

	pthread_mutex_lock(&r->lock);
	for (int i = 0; i < GUEST_CLOCK_COUNT; i++) {
		char *json;

		if (!bounds[i].known)
			continue;
		json = vmjson_clock(r->cfg.vm, (enum guest_clock)i, &bounds[i]);
		perfdata_encode_private(&r->pending, &id, "clock", json);
		free(json);
	}
	pthread_mutex_unlock(&r->lock);
}

static void say_ended(struct vmrec *r, int rc)
{
	const uint64_t one = 1;

	if (rc == -ESRCH)
		snprintf(r->ended, sizeof(r->ended), "the VM ended (%s %d is gone)",
			 r->cfg.vm->pid ? "process" : vm_number_name(r->cfg.vm),
			 vm_number(r->cfg.vm));
	else
		snprintf(r->ended, sizeof(r->ended), "sampling stopped: %s", strerror(-rc));
	update_stats(r);
	if (write(r->cfg.end_fd, &one, sizeof(one)) != sizeof(one))
		return; /* the recorder's tick will see it */
}

/* What was sampled until now and waits. The samples of a VM that is gone are only counted. */
static void take_rest(struct vmrec *r, bool gone)
{
	struct raw_sample raw;

	while (r->cfg.backend->read(r->session, &raw, 1, 0) == 1) {
		r->dropped += gone;
		gone = gone || take_sample(r, &raw) == -ESRCH;
	}
}

static void *sampler(void *arg)
{
	struct vmrec *r = arg;
	uint64_t next = clock_now_ns() + HOUSEKEEPING_NS;
	struct guest_clock_bounds bounds[GUEST_CLOCK_COUNT];
	struct raw_sample raw;
	struct prompt prompt;
	int n = 0;

	prompt_start(&prompt, r->cfg.realtime);
	while (!atomic_load(&r->stop)) {
		/* One at a time: registers may be read when a sample is handed out. */
		n = r->cfg.backend->read(r->session, &raw, 1,
					 clockwatch_busy(r->clockwatch) ? 0 : READ_TIMEOUT_MS);
		if (n == 1)
			n = take_sample(r, &raw);
		else
			take_told(r); /* drained with the next sample */
		if (n < 0 && n != -EINTR)
			break;
		if (clockwatch_work(r->clockwatch, bounds))
			encode_clocks(r, bounds);
		if (clock_now_ns() < next)
			continue;
		save_one_dso(r);
		symsave_work(r->symsave, r->guest);
		update_stats(r);
		prompt_check(&prompt);
		next = clock_now_ns() + HOUSEKEEPING_NS;
	}
	if (n >= 0 && clockwatch_last(r->clockwatch, bounds))
		encode_clocks(r, bounds);
	r->cfg.backend->stop(r->session);
	take_rest(r, n == -ESRCH);
	next = clock_now_ns() + LAST_SYMBOLS_NS;
	while (clock_now_ns() < next && save_one_dso(r))
		;
	symsave_finish(r->symsave, r->guest);
	if (n < 0 && n != -EINTR)
		say_ended(r, n);
	update_stats(r);
	return NULL;
}

int vmrec_start(struct vmrec *r, const uint64_t *ids, struct vmprof_err *err)
{
	size_t n = (size_t)r->cfg.events->n * r->nr_vcpus;
	struct guest_wanted wanted;
	int rc;

	r->ids = xcalloc(n, sizeof(*ids));
	memcpy(r->ids, ids, n * sizeof(*ids));
	r->sideband.id = r->hostside.id = ids[0];
	r->sideband.start_time = clock_now_ns();
	encode_vm(r, &r->pending, r->sideband.start_time);
	sideband_encode_nobody(&r->sideband, &r->pending);
	drain_events(r, &r->pending);
	if (r->host)
		hostside_start(&r->hostside, &r->pending, r->cfg.host_modules,
			       r->sideband.start_time);
	if (r->cfg.backend->want && guest_wanted(r->guest, &wanted))
		r->cfg.backend->want(r->session, &wanted);
	rc = r->cfg.backend->start(r->session, err);
	if (rc == -ESRCH) {
		say_ended(r, rc); /* that early, but it is no error */
		return 0;
	}
	if (rc)
		return rc;
	rc = pthread_create(&r->thread, NULL, sampler, r);
	if (rc)
		return err_sys(err, rc, "cannot start a thread for VM '%s'", r->cfg.vm->name);
	r->running = true;
	return 0;
}

void vmrec_stop(struct vmrec *r)
{
	if (!r->running)
		return;
	atomic_store(&r->stop, true);
	pthread_join(r->thread, NULL);
	r->running = false;
}

void vmrec_take(struct vmrec *r, struct buf *out)
{
	pthread_mutex_lock(&r->lock);
	buf_add(out, r->pending.data, r->pending.len);
	buf_reset(&r->pending);
	pthread_mutex_unlock(&r->lock);
}

void vmrec_get_stats(struct vmrec *r, struct vmrec_stats *st)
{
	pthread_mutex_lock(&r->lock);
	*st = r->stats;
	pthread_mutex_unlock(&r->lock);
}

void vmrec_event_stats(struct vmrec *r, unsigned event, struct backend_event_stats *st)
{
	*st = (struct backend_event_stats){0};
	if (r->cfg.backend->event_stats)
		r->cfg.backend->event_stats(r->session, event, BACKEND_ALL_VCPUS, st);
}

void vmrec_encode_stats(struct vmrec *r, struct buf *out)
{
	struct perfdata_id id = {.id = r->sideband.id, .time = clock_now_ns()};
	struct backend_event_stats counts[EVENTS_MAX];
	struct vmrec_stats st;
	char *json;

	vmrec_get_stats(r, &st);
	for (unsigned i = 0; i < r->cfg.events->n; i++)
		vmrec_event_stats(r, i, &counts[i]);
	json = vmjson_stats(r->cfg.vm, &st, r->cfg.events, counts);
	perfdata_encode_private(out, &id, "stats", json);
	free(json);
}

void vmrec_add_build_ids(struct vmrec *r, struct perfdata_writer *w)
{
	for (size_t i = 0; i < r->sideband.nr_build_ids; i++) {
		const struct sideband_build_id *b = &r->sideband.build_ids[i];
		const struct perfdata_build_id id = {
			.machine_pid = vm_number(r->cfg.vm),
			.cpumode = (uint16_t)b->mode,
			.id = b->id,
			.len = b->len,
			.filename = b->path,
		};

		perfdata_writer_add_build_id(w, &id);
	}
}
