// SPDX-License-Identifier: GPL-2.0-only
/* The order of a histogram's entries: perf's. */
#ifndef VMPROF_REPORT_HISTORDER_H
#define VMPROF_REPORT_HISTORDER_H

#include "report/hist.h"

/* Sets h->order. */
void historder(struct hist *h);

#endif
