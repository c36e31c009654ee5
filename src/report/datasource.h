// SPDX-License-Identifier: GPL-2.0-only
#ifndef VMPROF_REPORT_DATASOURCE_H
#define VMPROF_REPORT_DATASOURCE_H

#include <stdint.h>

#include "util/buf.h"

/* Where an access found its data (union perf_mem_data_src), in perf's words. */
void datasource_put(struct buf *b, uint64_t value);

#endif
