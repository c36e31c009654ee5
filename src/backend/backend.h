// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where samples come from. A backend knows its source and nothing of guest structures; whatever it
 * does not know of a sample it marks as unknown (guest/sample.h).
 */
#ifndef VMPROF_BACKEND_BACKEND_H
#define VMPROF_BACKEND_BACKEND_H

#include "events/event.h"
#include "guest/sample.h"
#include "util/err.h"
#include "vm/vm.h"

struct backend_session; /* one VM being sampled; each backend embeds it as first member */

struct backend_config {
	const struct event *events;
	unsigned nr_events;
	bool chains;	     /* registers will be used for call chains: they must fit together */
	uint32_t stack_size; /* bytes of stack to copy with a sample, at most; 0: as the backend
				likes */
	bool multiplex;	     /* events that do not fit into the counters may take turns */
	bool domain;	     /* count also while the host works for the VM */
	bool pause;	   /* the VM is to be stopped for each sample; see backend_caps.can_pause */
	bool experimental; /* also in a way whose safety has not been shown */
	bool force;	   /* and with the host's NMI watchdog on */
};

/* What a backend can do for one VM. */
struct backend_caps {
	bool usable;
	char why_not[256]; /* sentence when !usable: what is missing, and what to do about it */
	const char *const *events; /* names it can sample, to be shown; NULL-terminated */
	bool registers;		   /* samples carry registers: processes and chains */
	bool peek;		   /* registers can also be read between samples, by peek() */
	bool domain;		   /* can count while the host works for the VM, too */
	bool memory;	/* the VM's memory can be read: symbols, and processes by their maps */
	bool exact_ip;	/* false: ip is the start of a translated block */
	bool can_pause; /* it can stop the VM for each sample */
	/* No thread of the host runs it: what the host does is sampled of the host as a whole. */
	bool apart;
	bool experimental; /* not usable, but may be for who asks for what is experimental */
	char lacks[320]; /* sentence: what it has not of the events, and who says so; "" nothing */
};

struct backend_stats {
	uint64_t ticks;	     /* events that came due */
	uint64_t snapshots;  /* samples whose registers and stack are of the tick itself */
	uint64_t samples;    /* handed out */
	uint64_t merged;     /* ticks that went into another sample's period: the reader was late */
	uint64_t lost;	     /* ticks with no sample and in no period */
	uint64_t unreadable; /* state that was read but cannot be: counted in lost */
	uint64_t throttled;  /* times that the kernel held an event back, as it came too often */
	uint64_t clock_error; /* ns by which times may be wrong; 0: they are the host's own */
	const char *note;     /* sentence on what makes samples less exact; NULL nothing */
	const char *limit;    /* sentence on what there are fewer samples for; NULL nothing */
};

/* One event of one vCPU, or summed over all of them; all 0 where it is not known. */
#define BACKEND_ALL_VCPUS UINT32_MAX
struct backend_event_stats {
	uint64_t count;		   /* events; ns of a clock */
	uint64_t enabled, running; /* ns; less running than enabled: it shared its counter */
};

struct vmprof_backend {
	const char *name;
	const char *summary;  /* one line for list -v and the man page */
	bool clocks_only;     /* it has no event that a better one refuses: no way out then */
	bool only_asked;      /* never taken as the best one, but for who names it */
	const char *delivery; /* who takes the counters' interrupts; NULL: the host */

	/* Fills @caps; never fails, quick (well under a second), leaves nothing behind. */
	void (*probe)(const struct vm *vm, struct backend_caps *caps);

	/*
	 * Can it sample this event of a VM that it can be used for? 0, or -errno with a sentence:
	 * -ENOENT or -EOPNOTSUPP if there is no such event there, -EINVAL if it cannot be had as it
	 * was asked for. Leaves nothing behind.
	 */
	int (*try_event)(const struct vm *vm, const struct event *e, struct vmprof_err *err);

	/* -ENOLINK: the guest does not do its part in it; another backend may need none. */
	int (*open)(struct backend_session **out, const struct vm *vm,
		    const struct backend_config *cfg, struct vmprof_err *err);
	/*
	 * The VM's memory, and registers now; both as guest.h wants them. memory() is NULL where
	 * the backend has none. peek() is 0, -ESRCH (VM gone), -EAGAIN (not known at the moment),
	 * -EIO (not plausible); it works before start() and for an idle or paused vCPU.
	 */
	struct guest_mem *(*memory)(struct backend_session *s);
	int (*peek)(struct backend_session *s, uint32_t vcpu, struct guest_regs *regs);
	uint32_t (*nr_vcpus)(struct backend_session *s);
	/* The host thread that runs a vCPU; 0 not known. May be NULL. */
	pid_t (*vcpu_tid)(struct backend_session *s, uint32_t vcpu);

	/* Before start(): samples are to have this memory too, if that can be. May be NULL. */
	void (*want)(struct backend_session *s, const struct guest_wanted *wanted);

	int (*start)(struct backend_session *s, struct vmprof_err *err);
	/*
	 * Waits up to @timeout_ms for samples and returns up to @n of them, 0 at the timeout,
	 * -EINTR, or -ESRCH when the VM is gone. A sample's registers may be read when it is
	 * handed out: take one batch, complete it, come back at once.
	 */
	int (*read)(struct backend_session *s, struct raw_sample *samples, unsigned n,
		    int timeout_ms);
	/*
	 * What the guest has said of its processes: before the sample that read() has handed out,
	 * or if there was none until now. false: that is all. Call it before the sample is
	 * completed. May be NULL.
	 */
	bool (*told)(struct backend_session *s, struct raw_told *out);
	/* What read() handed out is complete: a VM that was stopped for it may go on. May be NULL.
	 */
	void (*complete)(struct backend_session *s);
	int (*stop)(struct backend_session *s);
	void (*stats)(struct backend_session *s, struct backend_stats *st);
	/*
	 * Of the event of this index in the config and of @vcpu or BACKEND_ALL_VCPUS; also while it
	 * counts. NULL: the backend counts nothing. An event of rate 0 is counted only: if all are
	 * such, read() finds nothing but the VM's end.
	 */
	void (*event_stats)(struct backend_session *s, unsigned event, uint32_t vcpu,
			    struct backend_event_stats *st);
	void (*close)(struct backend_session *s); /* NULL is fine */
};

struct backend_session {
	const struct vmprof_backend *backend;
	const struct vm *vm; /* the caller's */
};

/*
 * Answers of backends that know of a VM's vCPUs what its struct vm says, and of their registers
 * nothing but with a sample, as of then.
 */
int backend_no_peek(struct backend_session *s, uint32_t vcpu, struct guest_regs *regs);
uint32_t backend_vm_vcpus(struct backend_session *s);
pid_t backend_vm_tid(struct backend_session *s, uint32_t vcpu);

/* All backends of this build, best first, NULL-terminated. */
extern const struct vmprof_backend *const vmprof_backends[];
const struct vmprof_backend *backend_by_name(const char *name); /* NULL if there is none */

/*
 * Those that sample the machine that they run on, whose samples say process and chain: @vm is NULL
 * for all that they do, vCPUs are its CPUs, and memory and registers are not asked for. All of this
 * build, best first, NULL-terminated.
 */
extern const struct vmprof_backend *const vmprof_self_backends[];
const struct vmprof_backend *backend_self_by_name(const char *name); /* NULL if there is none */
const struct vmprof_backend *backend_self_usable(void);		     /* the best; NULL: none is */

extern const struct vmprof_backend backend_tcg, backend_kmod, backend_perf, backend_xen,
	backend_qmp, backend_direct, backend_inject, backend_self;

#endif
