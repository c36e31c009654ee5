// SPDX-License-Identifier: GPL-2.0-only
/*
 * The map of the host's kernel, as perf record writes it. Without one perf report warns about
 * restricted kernel addresses, even if all samples are of guests.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "perfdata/writer_impl.h"

/* Where no sample is: for a host that hides its addresses. */
#define NOWHERE (1ull << 63)

static void kernel_text(uint64_t *text, uint64_t *etext)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], name[64];
	uint64_t addr;

	*text = *etext = 0;
	while (f && !*etext && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 " %*c %63s", &addr, name) != 2)
			continue;
		if (!strcmp(name, "_text"))
			*text = addr;
		else if (!strcmp(name, "_etext"))
			*etext = addr;
	}
	if (f)
		fclose(f);
}

void writer_host_kernel(const struct perfdata_writer *w, struct buf *b, uint64_t time)
{
	struct perfdata_id id = {
		.time = time, .pid = UINT32_MAX, .cpumode = PERF_RECORD_MISC_KERNEL};
	struct perfdata_map map = {
		.prot = PROT_EXEC, .flags = MAP_PRIVATE, .filename = "[kernel.kallsyms]_text"};
	uint64_t end;

	if (w->nr_events && w->events[0].nr_ids)
		id.id = w->events[0].ids[0];
	kernel_text(&map.start, &end);
	map.pgoff = map.start;
	map.len = end - map.start;
	if (!map.start || end <= map.start) {
		map.start = NOWHERE;
		map.len = 4096;
		map.pgoff = 0; /* no reference symbol: perf then says that addresses were hidden */
	}
	perfdata_encode_mmap2(b, &id, &map);
}
