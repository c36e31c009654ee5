// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside the tcg backend: a VM being sampled.
 */
#ifndef VMPROF_BACKEND_TCG_SESSION_H
#define VMPROF_BACKEND_TCG_SESSION_H

#include "backend/backend.h"
#include "backend/perf_ring.h"
#include "backend/tcg.h"
#include "backend/tcg_snapshot.h"

/* One event on one thread. */
struct tcg_source {
	struct perf_ring ring;
	unsigned event; /* index in the config */
	uint32_t vcpu;	/* of the thread; if it runs several: the one that ran last */
	/* ticks that wait to be handed out, as one sample */
	bool pending;
	uint64_t time;
	uint32_t host_cpu;
	uint64_t value;	  /* of the counter at the last tick, ns */
	int64_t covered;  /* what the samples so far stand for, ns */
	uint64_t env;	  /* that its snapshots are of; 0: it takes none */
	unsigned strange; /* ticks in a row that showed an env which is not known */
};

struct tcg_session {
	struct backend_session base;
	struct vm_ram *ram;
	struct tcg_code code;
	struct tcg_cpus cpus;
	bool shared_thread;   /* all vCPUs in one thread */
	uint64_t msrs_looked; /* when the layout was last completed */
	struct event *events;
	unsigned nr_events;
	struct tcg_source *sources;
	unsigned nr_sources, next;  /* next: where handing out goes on */
	struct guest_wanted wanted; /* to be copied too */
	bool wants;
	struct tcg_snapshots *snapshots; /* NULL: state is read when a tick is handed out */
	uint64_t tasks_forgotten;	 /* when, ns */
	unsigned batch;			 /* samples handed out since the last wait */
	int epoll, pidfd;
	bool gone;
	struct backend_stats stats;
	char note[512]; /* of the stats */
};

/* ---------- tcg_sample.c: ticks to samples ---------- */

/* Registers now. -EAGAIN: no such vCPU known; -ESRCH; -EIO: not the state of a CPU */
int tcg_read_regs(struct tcg_session *s, uint32_t vcpu, struct guest_regs *regs);

/* ns of CPU time between two ticks */
uint64_t tcg_event_period(const struct event *e);

/* Up to @n samples of ticks that wait; see vmprof_backend.read. Sets ->gone. */
unsigned tcg_hand_out(struct tcg_session *s, struct raw_sample *samples, unsigned n);

#endif
