// SPDX-License-Identifier: GPL-2.0-only
/*
 * A whole record: chooses a backend for each VM, runs them side by side, writes the file.
 */
#ifndef VMPROF_RECORD_RECORDER_H
#define VMPROF_RECORD_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "events/wanted.h"
#include "util/err.h"

/* Who takes the counters' interrupts (vmprof_guest(4)). */
enum record_delivery {
	RECORD_DELIVER_HOST,   /* the host */
	RECORD_DELIVER_INJECT, /* the host, which raises another one in the guest: inject backend */
	RECORD_DELIVER_DIRECT, /* the guest; by the direct backend alone */
};

struct record_options {
	const char *output;   /* "-": pipe to standard output */
	struct wanted wanted; /* VMs and their events, with rates */
	bool events_default;  /* for VMs that have none of their own: nobody asked for these */
	bool chains;
	uint32_t stack_size; /* bytes to copy for them; 0: as the backend likes */
	bool multiplex;	     /* more events than counters take turns */
	bool domain;	     /* count also while the host works for a VM */
	bool pause;	     /* stop a VM for each of its samples */
	bool all_vms;
	int realtime; /* SCHED_FIFO priority of the samplers; 0: none */
	enum record_delivery delivery;
	bool experimental;    /* such deliveries also where its safety has not been shown */
	bool force;	      /* and where the host's NMI watchdog is on */
	const char *backend;  /* --backend, or NULL for the best */
	uint64_t duration_ns; /* 0: until a signal or the command's end */
	char **command;	      /* NULL-terminated, or NULL */
	bool quiet, verbose;
	char **argv; /* of vmprof itself, for the file's header */
};

struct record_result {
	int status; /* exit status of the command, as perf returns it; 0 without one */
	int signal; /* that ended the record, or 0; the file is complete all the same */
};

/**
 * recorder_run - record until the duration is over, the command or all VMs have ended, or a signal
 *
 * Messages go to stderr, perf's closing lines last. Returns 0 or -errno with a sentence; also then
 * the file on disk is readable as far as it goes.
 */
int recorder_run(const struct record_options *opts, struct record_result *result,
		 struct vmprof_err *err);

#endif
