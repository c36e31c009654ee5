// SPDX-License-Identifier: GPL-2.0-only
#include "record/selfrec.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/prompt.h"
#include "record/selfmaps.h"
#include "record/selfside.h"
#include "util/clock.h"
#include "util/xalloc.h"

#define READ_TIMEOUT_MS 50
#define LOOK_NS		20000000ull /* between looks at the kernel's side-band */
#define PENDING_MAX	(64u << 20) /* samples that nobody takes, as of a pipe that is not read */

struct selfrec {
	struct selfrec_config cfg;
	struct backend_session *session;
	struct selfside *side;
	struct selfmaps *maps;
	uint64_t *ids;
	uint32_t nr_cpus;
	uint64_t said_lost; /* in the file */

	pthread_t thread;
	bool running;
	atomic_bool stop;
	char ended[256];

	pthread_mutex_t lock; /* of what follows */
	struct buf pending;
	uint64_t dropped; /* samples for which there was no room in it */
	struct selfrec_stats stats;
};

int selfrec_open(struct selfrec **out, const struct selfrec_config *cfg, struct vmprof_err *err)
{
	const struct backend_config bcfg = {
		.events = cfg->events->events,
		.nr_events = cfg->events->n,
		.chains = cfg->chains,
	};
	struct selfrec *r = xcalloc(1, sizeof(*r));
	int rc;

	*out = NULL;
	r->cfg = *cfg;
	pthread_mutex_init(&r->lock, NULL);
	r->maps = selfmaps_new();
	rc = cfg->backend->open(&r->session, NULL, &bcfg, err);
	if (!rc)
		rc = selfside_open(&r->side, err);
	if (rc) {
		selfrec_close(r);
		return rc;
	}
	r->nr_cpus = cfg->backend->nr_vcpus(r->session);
	*out = r;
	return 0;
}

void selfrec_close(struct selfrec *r)
{
	if (!r)
		return;
	selfrec_stop(r);
	if (r->session)
		r->cfg.backend->close(r->session);
	selfside_free(r->side);
	selfmaps_free(r->maps);
	free(r->ids);
	buf_free(&r->pending);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

uint32_t selfrec_nr_cpus(const struct selfrec *r)
{
	return r->nr_cpus;
}

/* ---------- samples ---------- */

static bool is_kernel(uint64_t addr)
{
	return addr >> 63;
}

struct chain {
	uint64_t entry[SAMPLE_MAX_CHAIN + 3]; /* with perf's markers and what was in x30 */
	uint32_t n;
};

static void add(struct chain *c, uint64_t entry)
{
	if (c->n < SAMPLE_MAX_CHAIN + 2)
		c->entry[c->n++] = entry;
}

/* Behind the innermost function of user mode, if it is that one's caller. */
static void add_link(struct selfrec *r, struct chain *c, const struct raw_sample *raw, uint32_t i)
{
	uint64_t next = i + 1 < raw->chain_len ? raw->chain[i + 1] : 0;

	if (raw->has & RAW_HAS_LINK &&
	    selfmaps_is_caller(r->maps, raw->pid, raw->chain[i], raw->link, next))
		add(c, raw->link);
}

static void make_chain(struct selfrec *r, struct chain *c, const struct raw_sample *raw)
{
	bool user = false;

	c->n = 0;
	for (uint32_t i = 0; r->cfg.chains && i < raw->chain_len; i++) {
		bool first = !user && !is_kernel(raw->chain[i]);

		if (!i && !first)
			add(c, PERF_CONTEXT_KERNEL);
		if (first)
			add(c, PERF_CONTEXT_USER);
		add(c, raw->chain[i]);
		if (first)
			add_link(r, c, raw, i);
		user |= first;
	}
}

static void see_files(struct selfrec *r, const struct chain *c, const struct raw_sample *raw)
{
	if (!is_kernel(raw->ip))
		selfmaps_hit(r->maps, raw->pid, raw->ip);
	for (uint32_t i = 0; i < c->n; i++)
		if (!is_kernel(c->entry[i]))
			selfmaps_hit(r->maps, raw->pid, c->entry[i]);
}

static void take_sample(struct selfrec *r, const struct raw_sample *raw)
{
	const struct perfdata_id id = {
		.id = r->ids[raw->event * r->nr_cpus + raw->vcpu],
		.time = raw->time,
		.pid = (uint32_t)raw->pid,
		.tid = (uint32_t)raw->tid,
		.cpu = raw->vcpu,
		.cpumode = raw->mode == SAMPLE_MODE_GUEST_KERNEL ? PERF_RECORD_MISC_KERNEL
								 : PERF_RECORD_MISC_USER,
	};
	struct chain c;

	make_chain(r, &c, raw);
	see_files(r, &c, raw);
	pthread_mutex_lock(&r->lock);
	if (r->pending.len < PENDING_MAX) {
		perfdata_encode_sample(&r->pending, &id, raw->ip, raw->period, c.entry, c.n);
		r->stats.written++;
	} else {
		r->dropped++;
	}
	pthread_mutex_unlock(&r->lock);
}

/* ---------- the thread ---------- */

static void see_record(void *ctx, const struct perf_event_header *record)
{
	selfmaps_record(ctx, record);
}

/* What was lost is said where it is noticed: perf's reports count it, too. */
static void look(struct selfrec *r)
{
	struct perfdata_id id = {.id = r->ids[0], .time = clock_now_ns(), .cpu = UINT32_MAX};

	pthread_mutex_lock(&r->lock);
	selfside_drain(r->side, &r->pending, see_record, r->maps);
	r->cfg.backend->stats(r->session, &r->stats.backend);
	r->stats.backend.lost += r->dropped;
	if (r->stats.backend.lost > r->said_lost)
		perfdata_encode_lost_samples(&r->pending, &id,
					     r->stats.backend.lost - r->said_lost);
	r->said_lost = r->stats.backend.lost;
	r->stats.ended = r->ended[0] ? r->ended : NULL;
	pthread_mutex_unlock(&r->lock);
}

static void say_ended(struct selfrec *r, int rc)
{
	const uint64_t one = 1;

	snprintf(r->ended, sizeof(r->ended), "sampling stopped: %s", strerror(-rc));
	look(r);
	if (write(r->cfg.end_fd, &one, sizeof(one)) != sizeof(one))
		return; /* the recorder's tick will see it */
}

static void *sampler(void *arg)
{
	struct selfrec *r = arg;
	uint64_t next = 0;
	struct raw_sample raw;
	struct prompt prompt;
	int n = 0;

	prompt_start(&prompt, r->cfg.realtime);
	while (!atomic_load(&r->stop)) {
		n = r->cfg.backend->read(r->session, &raw, 1, READ_TIMEOUT_MS);
		if (n < 0 && n != -EINTR)
			break;
		if (clock_now_ns() >= next) {
			look(r);
			prompt_check(&prompt);
			next = clock_now_ns() + LOOK_NS;
		}
		if (n == 1)
			take_sample(r, &raw);
	}
	r->cfg.backend->stop(r->session);
	look(r);
	while (r->cfg.backend->read(r->session, &raw, 1, 0) == 1)
		take_sample(r, &raw);
	if (n < 0 && n != -EINTR)
		say_ended(r, n);
	look(r);
	return NULL;
}

int selfrec_start(struct selfrec *r, const uint64_t *ids, struct vmprof_err *err)
{
	size_t n = (size_t)r->cfg.events->n * r->nr_cpus;
	int rc;

	r->ids = xcalloc(n, sizeof(*ids));
	memcpy(r->ids, ids, n * sizeof(*ids));
	selfside_start(r->side, ids[0], &r->pending, see_record, r->maps);
	rc = r->cfg.backend->start(r->session, err);
	if (rc)
		return rc;
	rc = pthread_create(&r->thread, NULL, sampler, r);
	if (rc)
		return err_sys(err, rc, "cannot start a thread that samples");
	r->running = true;
	return 0;
}

void selfrec_stop(struct selfrec *r)
{
	if (!r->running)
		return;
	atomic_store(&r->stop, true);
	pthread_join(r->thread, NULL);
	r->running = false;
}

void selfrec_take(struct selfrec *r, struct buf *out)
{
	pthread_mutex_lock(&r->lock);
	buf_add(out, r->pending.data, r->pending.len);
	buf_reset(&r->pending);
	pthread_mutex_unlock(&r->lock);
}

void selfrec_get_stats(struct selfrec *r, struct selfrec_stats *st)
{
	pthread_mutex_lock(&r->lock);
	*st = r->stats;
	pthread_mutex_unlock(&r->lock);
}

void selfrec_save(struct selfrec *r, const char *store, struct perfdata_writer *w)
{
	selfmaps_save(r->maps, store, w);
}
