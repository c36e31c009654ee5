// SPDX-License-Identifier: GPL-2.0-only
#include "guest/looks.h"

#include "util/clock.h"

#define BATCH 32 /* CPUs whose words are read in one call */

/* What is read of a CPU. The count comes first and last: else task and count may not go together.
 */
struct words {
	uint64_t switches, task, again;
};

static void take(struct guest_look *l, const struct words *w, const struct guest_virt_io io[3])
{
	if (!io[0].ok || !io[1].ok || !io[2].ok || w->switches != w->again ||
	    !guest_is_kptr(w->task))
		return;
	l->task = w->task;
	l->switches = w->switches;
}

static int look_at(struct guest_looks *looks, uint32_t first, uint32_t n, struct guest_kmem *km,
		   struct guest_kernel *k)
{
	const struct guest_layout *lay = &km->lay;
	struct guest_virt_io io[BATCH * 3];
	struct words w[BATCH] = {0};
	uint64_t begin, end;
	int rc;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t area = guest_kernel_percpu(k, first + i);
		uint64_t rq = area + lay->runqueues + (uint64_t)lay->rq_switches;

		/* An area that is not known yet is not mapped: the read fails. */
		io[3 * i] = (struct guest_virt_io){.va = rq, .buf = &w[i].switches, .len = 8};
		io[3 * i + 1] = (struct guest_virt_io){
			.va = area + lay->current_task, .buf = &w[i].task, .len = 8};
		io[3 * i + 2] = (struct guest_virt_io){.va = rq, .buf = &w[i].again, .len = 8};
	}
	begin = clock_now_ns();
	rc = guest_virt_readv(km->virt, km->as, io, (int)(3 * n));
	end = clock_now_ns();
	for (uint32_t i = 0; i < n && !rc; i++) {
		struct guest_looks *cpu = &looks[first + i];
		struct guest_look *l = &cpu->look[cpu->n++ % GUEST_LOOKS];

		*l = (struct guest_look){.begin = begin, .end = end};
		take(l, &w[i], &io[3 * i]);
	}
	return rc;
}

int guest_looks_make(struct guest_looks *looks, uint32_t n, struct guest_kmem *km,
		     struct guest_kernel *k)
{
	for (uint32_t first = 0; first < n; first += BATCH) {
		int rc = look_at(looks, first, n - first < BATCH ? n - first : BATCH, km, k);

		if (rc)
			return rc;
	}
	return 0;
}

static uint64_t oldest(const struct guest_looks *l)
{
	return l->n > GUEST_LOOKS ? l->n - GUEST_LOOKS : 0;
}

struct guest_look *guest_look_before(struct guest_looks *l, uint64_t time)
{
	for (uint64_t i = l->n; i-- > oldest(l);)
		if (l->look[i % GUEST_LOOKS].end <= time)
			return &l->look[i % GUEST_LOOKS];
	return NULL;
}

struct guest_look *guest_look_after(struct guest_looks *l, uint64_t time)
{
	struct guest_look *found = NULL;

	for (uint64_t i = l->n; i-- > oldest(l) && l->look[i % GUEST_LOOKS].begin >= time;)
		found = &l->look[i % GUEST_LOOKS];
	return found;
}

bool guest_looks_agree(const struct guest_look *before, const struct guest_look *after)
{
	return before && after && before->task && before->task == after->task &&
	       before->switches == after->switches;
}
