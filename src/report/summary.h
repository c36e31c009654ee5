// SPDX-License-Identifier: GPL-2.0-only
/*
 * One event by VM: how much, in what, and what could not be seen.
 */
#ifndef VMPROF_REPORT_SUMMARY_H
#define VMPROF_REPORT_SUMMARY_H

#include "report/filter.h"

struct vm_summary {
	const struct machine *machine;
	const char *name;
	uint64_t samples, period;
	uint64_t kernel_period, user_period;
	uint64_t unattributed; /* samples whose process could not be determined */
	uint64_t unsymbolized; /* samples whose address no symbol covers */
	/* what the recorder said, (uint64_t)-1 where it did not */
	uint64_t lost, merged, torn;
	uint64_t vcpus;	 /* its own number, else of those that were seen; 0 unknown */
	char kernel[80]; /* release, escaped; "" unknown */
};

#define SUMMARY_ALL_EVENTS UINT32_MAX

/*
 * An array with one for each machine that @filter lets pass and that has samples or is described in
 * the file, of the samples that @filter leaves; to be freed.
 */
struct vm_summary *summary_by_vm(struct profile *p, uint32_t event,
				 const struct report_filter *filter, size_t *n);

#endif
