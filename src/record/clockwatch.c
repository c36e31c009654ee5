// SPDX-License-Identifier: GPL-2.0-only
#include "record/clockwatch.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "util/clock.h"
#include "util/xalloc.h"

#define MS 1000000ull

/*
 * A tick is 1 to 10 ms, and each brings one store a CPU, a busy guest more. They come in no step
 * with the looks, so a few of them bound the clock some times better than one look to the next.
 */
#define LONGEST	  (40 * MS)
#define ENOUGH	  8	     /* stores */
#define LOOK_NS	  50000	     /* between two looks; each takes about 10 us */
#define FIRST_GAP (500 * MS) /* from one measurement to the next: twice as long each time, */
#define LAST_GAP                                                                                   \
	(8000 * MS) /* as the difference of two rates shows better the longer it adds up           \
		     */
#define WIDEST (2 * (int64_t)MS) /* bounds that are no use */

struct clockwatch {
	struct guest_clocks *clocks;
	bool busy;
	uint64_t next, gap; /* when to begin the next one */
	uint64_t end;	    /* when to end this one */
};

struct clockwatch *clockwatch_new(struct guest *g, uint32_t nr_vcpus)
{
	struct clockwatch *w = xcalloc(1, sizeof(*w));

	w->clocks = guest_clocks_new(g, nr_vcpus);
	w->gap = FIRST_GAP;
	return w;
}

void clockwatch_free(struct clockwatch *w)
{
	if (!w)
		return;
	guest_clocks_free(w->clocks);
	free(w);
}

bool clockwatch_busy(const struct clockwatch *w)
{
	return w->busy;
}

/* The kernel may let a thread sleep 50 us longer than it asked for. */
static void set_slack(unsigned long ns)
{
	prctl(PR_SET_TIMERSLACK, ns, 0, 0, 0);
}

static bool begin(struct clockwatch *w, uint64_t now)
{
	w->next = now + w->gap;
	w->gap = 2 * w->gap < LAST_GAP ? 2 * w->gap : LAST_GAP;
	w->end = now + LONGEST;
	w->busy = !guest_clocks_begin(w->clocks);
	if (w->busy)
		set_slack(1);
	return w->busy;
}

static void end(struct clockwatch *w, struct guest_clock_bounds out[GUEST_CLOCK_COUNT])
{
	w->busy = false;
	set_slack(0); /* what it was */
	guest_clocks_end(w->clocks, out);
	for (int i = 0; i < GUEST_CLOCK_COUNT; i++)
		out[i].known &= out[i].high - out[i].low <= WIDEST;
}

bool clockwatch_work(struct clockwatch *w, struct guest_clock_bounds out[GUEST_CLOCK_COUNT])
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	uint64_t now = clock_now_ns();

	if (!w->busy && (now < w->next || !begin(w, now)))
		return false;
	if (!guest_clocks_look(w->clocks) && now < w->end &&
	    guest_clocks_seen(w->clocks) < ENOUGH) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		return false;
	}
	end(w, out);
	return true;
}

bool clockwatch_last(struct clockwatch *w, struct guest_clock_bounds out[GUEST_CLOCK_COUNT])
{
	bool done = false;

	if (!w->busy)
		w->next = 0;
	do
		done = clockwatch_work(w, out);
	while (w->busy);
	return done;
}
