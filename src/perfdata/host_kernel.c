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

/*
 * From the first of the two names that perf knows a kernel by: symbol tables of functions only
 * (arm64 without CONFIG_KALLSYMS_ALL) have no _text.
 */
static const char *kernel_text(uint64_t *text, uint64_t *etext)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], name[64];
	const char *first = "_text";
	uint64_t addr;

	*text = *etext = 0;
	while (f && !*etext && fgets(line, sizeof(line), f)) {
		const char *last = strstr(line, "text\n"); /* few lines are worth the rest */

		if (!last || sscanf(line, "%" SCNx64 " %*c %63s", &addr, name) != 2)
			continue;
		if (!strcmp(name, "_text") || (!*text && !strcmp(name, "_stext"))) {
			*text = addr;
			first = strcmp(name, "_text") ? "_stext" : "_text";
		} else if (!strcmp(name, "_etext")) {
			*etext = addr;
		}
	}
	if (f)
		fclose(f);
	return first;
}

void writer_host_kernel(const struct perfdata_writer *w, struct buf *b, uint64_t time)
{
	struct perfdata_id id = {
		.time = time, .pid = UINT32_MAX, .cpumode = PERF_RECORD_MISC_KERNEL};
	char name[64];
	struct perfdata_map map = {.prot = PROT_EXEC, .flags = MAP_PRIVATE, .filename = name};
	uint64_t end;

	if (w->nr_events && w->events[0].nr_ids)
		id.id = w->events[0].ids[0];
	snprintf(name, sizeof(name), "[kernel.kallsyms]%s", kernel_text(&map.start, &end));
	map.pgoff = map.start;
	map.len = end - map.start;
	if (!map.start || end <= map.start) {
		map.start = NOWHERE;
		map.len = 4096;
		map.pgoff = 0; /* no reference symbol: perf then says that addresses were hidden */
	}
	perfdata_encode_mmap2(b, &id, &map);
}
