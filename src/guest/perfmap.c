// SPDX-License-Identifier: GPL-2.0-only
/*
 * /tmp/perf-PID.map of the guest's processes: what programs that make code as they run write down
 * about it (tools/perf/Documentation/jit-interface.txt).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "guest/dentry.h"
#include "guest/internal.h"

enum { MAX_LEVEL = 32 }; /* MAX_PID_NS_LEVEL: pid namespaces inside of each other */

/* The number that the process itself knows itself by: that of the innermost namespace. */
static int own_pid(struct guest_kmem *km, uint64_t leader, int32_t *pid)
{
	const struct guest_layout *l = &km->lay;
	uint32_t level = 0;
	uint64_t at = 0, number;
	int rc;

	if (l->task_thread_pid < 0 || l->pid_level < 0 || l->pid_numbers < 0 || l->upid_nr < 0 ||
	    l->upid_size <= 0)
		return 0;
	rc = guest_virt_read(km->virt, km->as, leader + (uint64_t)l->task_thread_pid, &at, 8);
	if (rc || !guest_is_kptr(at)) /* none: it has been reaped */
		return rc ? rc : -ENOENT;
	rc = guest_virt_read(km->virt, km->as, at + (uint64_t)l->pid_level, &level, 4);
	if (rc || level > MAX_LEVEL)
		return rc ? rc : -EFAULT;
	number = at + (uint64_t)l->pid_numbers + level * (uint64_t)l->upid_size;
	return guest_virt_read(km->virt, km->as, number + (uint64_t)l->upid_nr, pid, 4);
}

/* Anybody can write to /tmp: a file counts that is the process's own, or root's; as in perf. */
static int check_owner(struct guest_kmem *km, uint64_t task, const struct guest_inode *f)
{
	const struct guest_layout *l = &km->lay;
	struct guest_owner owner;
	uint64_t cred = 0;
	uint32_t euid = 0;
	int rc = guest_owner_read(km, f->inode, &owner);

	if (rc || !owner.uid)
		return rc;
	if (l->task_cred < 0 || l->cred_euid < 0)
		return -ENOENT;
	rc = guest_virt_read(km->virt, km->as, task + (uint64_t)l->task_cred, &cred, 8);
	rc = rc ? rc : guest_virt_read(km->virt, km->as, cred + (uint64_t)l->cred_euid, &euid, 4);
	return rc ? rc : owner.uid == euid ? 0 : -ENOENT;
}

static int find(struct guest *g, const struct guest_dso *dso, struct guest_inode *f)
{
	struct guest_process *proc = hashmap_get(&g->procs.by_tgid, (uint32_t)dso->owner);
	struct guest_task t;
	int32_t pid = dso->owner;
	char path[40];
	int rc;

	if (!proc || proc->start_time != dso->owner_start)
		return -ENOENT;
	rc = guest_task_read(&g->km, guest_process_task(proc), proc->mm, &t);
	if (rc || t.tgid != dso->owner)
		return rc == -ESRCH ? rc : -ENOENT;
	rc = own_pid(&g->km, t.group_leader, &pid);
	snprintf(path, sizeof(path), "/tmp/perf-%" PRId32 ".map", pid);
	rc = rc ? rc : guest_lookup(&g->km, t.task, path, f);
	rc = rc ? rc : check_owner(&g->km, t.task, f);
	return rc == -EFAULT ? -ENOENT : rc;
}

/* As it is now: it grows. Another one's by now: looked for again the next time. */
static int look_again(struct guest *g, struct guest_inode *f)
{
	struct guest_inode now = {0};
	int rc = guest_inode_read(&g->km, f->inode, &now);

	if (!rc && now.mapping == f->mapping && now.ino == f->ino &&
	    now.generation == f->generation) {
		f->size = now.size;
		return 0;
	}
	f->inode = 0;
	return rc == -ESRCH ? rc : -ENOENT;
}

ssize_t guest_perf_map_read(struct guest *g, uint32_t dso_id, uint64_t off, void *buf, size_t len,
			    uint64_t *size)
{
	struct guest_dso_entry *e = guest_dsos_by_id(&g->dsos, dso_id);
	int rc;

	*size = 0;
	if (!e || !e->dso.owner || !g->kernel)
		return -ENOENT;
	rc = e->perf_map.inode ? look_again(g, &e->perf_map) : find(g, &e->dso, &e->perf_map);
	if (rc) {
		e->perf_map.inode = 0;
		return rc;
	}
	*size = e->perf_map.size;
	return guest_pagecache_read(&g->km, &e->perf_map, off, buf, len, NULL);
}
