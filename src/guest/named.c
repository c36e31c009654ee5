// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples whose source knows whose they are: an agent in the guest, which has asked the guest's own
 * kernel. That is taken as it is said. Which files the process has mapped it may have told as well
 * (told.h); else, where the guest's kernel is known, they are read from its memory.
 */
#include <errno.h>
#include <string.h>
#include <linux/perf_event.h>

#include "guest/cfi.h"
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

/*
 * Frame records are what the chain was made of. Is the caller of the function at @ip still in x30
 * (@link), so that there is none of it? By the function's frame information; @next is the return
 * address in the innermost record. Where it is stored already, the record may not be in use yet:
 * then x30 is no other one's.
 */
static bool is_caller(struct guest *g, struct guest_process *p, uint64_t ip, uint64_t link,
		      uint64_t next, uint64_t time)
{
	struct cfi_place place;

	if (link == next || !guest_process_map(p, link) ||
	    guest_cfi_find(&g->km, p, ip, time, &place))
		return false;
	if (unwind_rule_of(&place.row, place.row.ra).place == UNWIND_SAME)
		return true;
	return link - place.function - 1 >= place.function_end - place.function;
}

/* Puts x30 behind the innermost user function if it is that one's caller. */
static void settle_link(struct guest *g, const struct raw_sample *raw, struct sample *out)
{
	struct guest_process *p = hashmap_get(&g->procs.by_tgid, (uint32_t)raw->pid);
	uint32_t i = 0, n = out->chain_len;

	while (i < n && out->chain[i] != (uint64_t)PERF_CONTEXT_USER)
		i++;
	i += 2; /* behind the marker and the function */
	if (!p || i > n || n >= SAMPLE_MAX_CHAIN ||
	    !is_caller(g, p, out->chain[i - 1], raw->link, i < n ? out->chain[i] : 0, raw->time))
		return;
	memmove(out->chain + i + 1, out->chain + i, (n - i) * sizeof(*out->chain));
	out->chain[i] = raw->link;
	out->chain_len++;
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

	if (rc != -ESRCH)
		guest_told_sync(g, raw);
	if (types)
		rc = look(g, raw, out);
	out->pid = raw->pid;
	out->tid = raw->tid;
	out->unattributed = SAMPLE_ATTRIBUTED;
	if (rc == -ESRCH)
		return rc;
	see_thread(g, raw);
	if (types && raw->has & RAW_HAS_LINK)
		settle_link(g, raw, out);
	see_files(g, raw, out);
	return 0;
}
