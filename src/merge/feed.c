// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reader hands its records out by calling; a merge of many wants to ask each for the next one.
 * So each has a thread that reads and translates, and a few batches of the outcome between it and
 * the merge. Nothing else is shared: the plan is not written any more, and what is counted is of
 * the one input.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "merge/impl.h"
#include "util/xalloc.h"

#define BATCH_BYTES (256u << 10)
#define BATCHES	    4

/* Before each record (or two, or none) of the output in a batch. */
struct entry {
	uint64_t time;
	uint64_t size;
};

struct merge_feed {
	pthread_t thread;
	struct perfdata_reader *reader;
	struct merge_translator t;
	struct buf filling; /* of the thread */
	int result;
	struct vmprof_err err;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	struct buf queue[BATCHES];
	unsigned nr_queued;
	bool ended, stop;

	struct buf current; /* of the merge */
	size_t at;
};

/* Waits for room; false: nobody wants more. */
static bool hand_over(struct merge_feed *f)
{
	bool stop;

	pthread_mutex_lock(&f->lock);
	while (f->nr_queued == BATCHES && !f->stop)
		pthread_cond_wait(&f->changed, &f->lock);
	stop = f->stop;
	if (!stop) {
		f->queue[f->nr_queued++] = f->filling;
		f->filling = (struct buf){0};
	}
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return !stop;
}

static int record(void *ctx, const struct perfdata_record *rec)
{
	struct merge_feed *f = ctx;
	size_t at = f->filling.len;
	struct entry e = {0};
	int ret;

	buf_add(&f->filling, &e, sizeof(e));
	ret = merge_translate(&f->t, rec, &f->filling);
	if (ret)
		return ret;
	e.time = f->t.key;
	e.size = f->filling.len - at - sizeof(e);
	if (e.size)
		memcpy(f->filling.data + at, &e, sizeof(e));
	else
		f->filling.len = at;
	return f->filling.len >= BATCH_BYTES && !hand_over(f) ? -ECANCELED : 0;
}

static void *feed(void *arg)
{
	struct merge_feed *f = arg;

	f->result = perfdata_reader_run(f->reader, record, f, &f->err);
	if (f->result != -ECANCELED && f->filling.len)
		hand_over(f);
	pthread_mutex_lock(&f->lock);
	f->ended = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static void feed_free(struct merge_feed *f)
{
	perfdata_reader_close(f->reader);
	for (unsigned i = 0; i < f->nr_queued; i++)
		buf_free(&f->queue[i]);
	buf_free(&f->filling);
	buf_free(&f->current);
	buf_free(&f->t.chain);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->changed);
	free(f);
}

int merge_feed_start(struct merge_feed **out, struct merge *m, struct merge_input *in,
		     struct vmprof_err *err)
{
	struct merge_feed *f = xcalloc(1, sizeof(*f));
	int ret = merge_open_reader(in, &f->reader, err);

	f->t = (struct merge_translator){.m = m, .in = in};
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	if (!ret) {
		ret = pthread_create(&f->thread, NULL, feed, f);
		if (ret)
			ret = err_sys(err, ret, "%s: no thread to read it", in->shown);
	}
	if (ret)
		feed_free(f);
	*out = ret ? NULL : f;
	return ret;
}

/* The next batch; false: there are no more. */
static bool take(struct merge_feed *f)
{
	bool got;

	pthread_mutex_lock(&f->lock);
	while (!f->nr_queued && !f->ended)
		pthread_cond_wait(&f->changed, &f->lock);
	got = f->nr_queued;
	if (got) {
		buf_free(&f->current);
		f->current = f->queue[0];
		f->nr_queued--;
		memmove(&f->queue[0], &f->queue[1], f->nr_queued * sizeof(f->queue[0]));
	}
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	f->at = 0;
	return got;
}

int merge_feed_next(struct merge_feed *f, uint64_t *time, const uint8_t **bytes, size_t *n)
{
	struct entry e;

	while (f->at >= f->current.len)
		if (!take(f))
			return 0;
	memcpy(&e, f->current.data + f->at, sizeof(e));
	*time = e.time;
	*n = e.size;
	*bytes = f->current.data + f->at + sizeof(e);
	f->at += sizeof(e) + e.size;
	return 1;
}

int merge_feed_end(struct merge_feed *f, struct vmprof_err *err)
{
	int ret;

	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	ret = f->result;
	if (ret && ret != -ECANCELED)
		err_set(err, ret, "%s", f->err.msg);
	feed_free(f);
	return ret == -ECANCELED ? 0 : ret;
}
