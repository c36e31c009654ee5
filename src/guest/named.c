// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples whose source knows whose they are: an agent in the guest, which has asked the guest's own
 * kernel. That is taken as it is said. What such a source does not say is which files the process
 * has mapped; where the guest's kernel is known they are read from its memory.
 */
#include <errno.h>
#include <string.h>

#include "guest/work.h"

/* The thread by its name and numbers, as one of that process, if it is known from memory too. */
static void see_thread(struct guest *g, const struct raw_sample *raw)
{
	const struct guest_process *p = hashmap_get(&g->procs.by_tgid, (uint32_t)raw->pid);
	struct guest_task t = {
		.task = (uint32_t)raw->tid, /* no address of the kernel's */
		.pid = raw->tid,
		.tgid = raw->pid,
		.start_time = p ? p->start_time : 0,
		.cgroups = p ? p->cgroups : 0,
	};
	int rc;

	memcpy(t.comm, raw->comm, sizeof(raw->comm));
	guest_procs_see(&g->procs, &t, raw->time, &rc);
}

static struct guest_map *map_of(struct guest *g, int32_t tgid, uint64_t addr)
{
	struct guest_process *p = hashmap_get(&g->procs.by_tgid, (uint32_t)tgid);

	return p ? guest_process_map(p, addr) : NULL;
}

static bool is_user(uint64_t addr)
{
	return !(addr >> 63);
}

/* Files that the sample and its chain lie in: their symbols are worth having. */
static void see_files(struct guest *g, const struct raw_sample *raw, struct sample *out)
{
	struct guest_map *map = is_user(raw->ip) ? map_of(g, raw->pid, raw->ip) : NULL;

	if (map) {
		out->has_dso = true;
		out->dso = map->dso->dso.id;
		out->dso_offset = raw->ip - map->start + map->pgoff;
		guest_dsos_hit(&g->dsos, map->dso);
	}
	for (uint32_t i = 0; i < out->chain_len; i++) {
		map = is_user(out->chain[i]) ? map_of(g, raw->pid, out->chain[i]) : NULL;
		if (map)
			guest_dsos_hit(&g->dsos, map->dso);
	}
}

/* Code of the kernel's modules, too, and of all processes that there are. 0 or -ESRCH */
static int look(struct guest *g, const struct raw_sample *raw, const struct sample *out)
{
	bool lost = is_user(raw->ip) && raw->pid && !map_of(g, raw->pid, raw->ip);

	if (out->chain_len)
		for (uint32_t i = 0; i < out->chain_len; i++) {
			/* perf's markers are no addresses: they are the last page's. */
			if (!is_user(out->chain[i]) && out->chain[i] < (uint64_t)-4096)
				guest_see_code(g, &out->chain[i], 1, raw->time);
		}
	else if (!is_user(raw->ip))
		guest_see_code(g, &raw->ip, 1, raw->time);
	return guest_procs_snapshot(&g->procs, lost, raw->time);
}

int guest_from_name(struct guest *g, const struct raw_sample *raw, struct sample *out)
{
	int rc = guest_need_kernel_in_memory(g, raw->time);
	bool types = !rc && !g->no_types;

	if (rc != -ESRCH && types)
		rc = look(g, raw, out);
	out->pid = raw->pid;
	out->tid = raw->tid;
	out->unattributed = SAMPLE_ATTRIBUTED;
	if (rc == -ESRCH)
		return rc;
	see_thread(g, raw);
	if (types)
		see_files(g, raw, out);
	return 0;
}
