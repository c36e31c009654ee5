// SPDX-License-Identifier: GPL-2.0-only
/*
 * The page's geometry and what runs in it.
 */
#ifndef VMPROF_REPORT_FLAMEGRAPH_H
#define VMPROF_REPORT_FLAMEGRAPH_H

#define FLAME_WIDTH  1200
#define FLAME_MARGIN 10
#define FLAME_ROW    18
#define FLAME_GAP    0.7 /* between neighbours that are wide enough */
#define FLAME_CHAR   7.2 /* width of one at 12 px in a monospace font */

extern const char flamegraph_style[], flamegraph_script[];

#endif
