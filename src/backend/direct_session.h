// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside the backends of delivery to the guest: a VM that is lent counters, and how it comes to be.
 */
#ifndef VMPROF_BACKEND_DIRECT_SESSION_H
#define VMPROF_BACKEND_DIRECT_SESSION_H

#include "backend/backend.h"
#include "backend/direct_clock.h"
#include "backend/direct_log.h"
#include "backend/direct_ring.h"
#include "backend/direct_side.h"
#include "backend/kmod_dev.h"
#include "backend/ram.h"

/* Of the two deliveries. */
struct direct_way {
	const struct vmprof_backend *backend;
	u32 delivery, source;
};

struct direct_session {
	struct backend_session base;
	const struct direct_way *way;
	struct kmod_dev dev;
	struct direct_log log;
	struct backend_ram ram;
	struct direct_rings rings;
	struct direct_side side;
	struct direct_clock clock;
	struct vmprof_status status;
	uint64_t first; /* ticks of the host at the start */
	uint64_t busy;	/* when something was found in the rings last */
	uint64_t since; /* time of the start */
	uint64_t until; /* ticks of the guest: what came before that may be told */
	unsigned nr_events;
	double fastest;	  /* samples a ns of one vCPU, at most */
	uint64_t allowed; /* until when they have been allowed for */
	bool away;	  /* its handler has gone: nothing is lent any more */
	bool gone;
	struct backend_stats stats;
	char note[256], limit[256]; /* of the stats */
};

static inline struct direct_session *direct_of(struct backend_session *s)
{
	return (struct direct_session *)s;
}

const char *direct_lent(const struct vm *vm); /* what of the host's it gets, in the plural */
void direct_probe(const struct vm *vm, const struct direct_way *way, struct backend_caps *caps);

/*
 * Goes all the way to counters that are lent, once: only then is it known whether this VM can have
 * them, and a record that cannot may still take another backend. As vmprof_backend.open.
 */
int direct_open(const struct direct_way *way, struct backend_session **out, const struct vm *vm,
		const struct backend_config *cfg, struct vmprof_err *err);
void direct_close(struct backend_session *base);

#endif
