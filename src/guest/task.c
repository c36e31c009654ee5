// SPDX-License-Identifier: GPL-2.0-only
/*
 * The running task, and what its task_struct and mm_struct say: one call of readv where it is the
 * same task as last time.
 */
#include <errno.h>
#include <string.h>

#include "guest/process.h"

/* More than the members of interest span in any kernel; if not, that kernel's tasks are not read.
 */
enum { SPAN_MAX = 2048 };

static struct guest_span task_span(const struct guest_layout *l)
{
	const int32_t members[] = {
		l->task_mm,	     l->task_exit_state,
		l->task_pid,	     l->task_tgid,
		l->task_real_parent, l->task_group_leader,
		l->task_start_time,  l->task_comm,
		l->task_comm + 8,    l->task_cgroups < 0 ? l->task_comm : l->task_cgroups,
	};

	return guest_span_of(members, sizeof(members) / sizeof(*members));
}

static struct guest_span mm_span(const struct guest_layout *l)
{
	const int32_t members[] = {
		l->mm_pgd,     l->mm_map_count, l->mm_total_vm,
		l->mm_exec_vm, l->mm_ctx_id,	l->mm_tlb_gen,
	};

	return guest_span_of(members, sizeof(members) / sizeof(*members));
}

static void decode_task(const struct guest_layout *l, const uint8_t *raw, int32_t lo,
			struct guest_task *t)
{
	t->mm = guest_u64(raw, l->task_mm - lo);
	t->start_time = guest_u64(raw, l->task_start_time - lo);
	t->group_leader = guest_u64(raw, l->task_group_leader - lo);
	t->real_parent = guest_u64(raw, l->task_real_parent - lo);
	t->cgroups = l->task_cgroups < 0 ? 0 : guest_u64(raw, l->task_cgroups - lo);
	t->exit_state = guest_u32(raw, l->task_exit_state - lo);
	t->pid = (int32_t)guest_u32(raw, l->task_pid - lo);
	t->tgid = (int32_t)guest_u32(raw, l->task_tgid - lo);
	memcpy(t->comm, raw + (l->task_comm - lo), 16);
	t->comm[16] = 0;
	t->ppid = 0;
}

static void decode_mm(const struct guest_layout *l, const uint8_t *raw, int32_t lo,
		      struct guest_task *t)
{
	t->pgd = guest_u64(raw, l->mm_pgd - lo);
	t->total_vm = guest_u64(raw, l->mm_total_vm - lo);
	t->exec_vm = guest_u64(raw, l->mm_exec_vm - lo);
	t->ctx_id = guest_u64(raw, l->mm_ctx_id - lo) ^ (l->mm_has_id ? 0 : t->mm);
	t->tlb_gen = guest_u64(raw, l->mm_tlb_gen - lo);
	t->map_count = guest_u32(raw, l->mm_map_count - lo);
}

/* @current: 0 to read @task itself, else where the pointer to the running task is kept. */
static int read_task(struct guest_kmem *km, uint64_t current, uint64_t task, uint64_t mm,
		     struct guest_task *out)
{
	struct guest_span ts = task_span(&km->lay), ms = mm_span(&km->lay);
	uint8_t traw[SPAN_MAX], mraw[SPAN_MAX];

	if (!ts.len || ts.len > SPAN_MAX || !ms.len || ms.len > SPAN_MAX)
		return -EFAULT;
	for (int tries = 0; tries < 4; tries++) {
		uint64_t now = task;
		struct guest_virt_io io[] = {
			{.va = task + (uint64_t)ts.lo, .buf = traw, .len = task ? ts.len : 0},
			{.va = mm + (uint64_t)ms.lo, .buf = mraw, .len = mm ? ms.len : 0},
			{.va = current, .buf = &now, .len = current ? 8 : 0},
		};
		int rc = guest_virt_readv(km->virt, km->as, io, 3);

		if (rc || !io[2].ok || !guest_is_kptr(now))
			return rc ? rc : -EFAULT;
		if (now != task) {
			task = now;
			mm = 0;
			continue;
		}
		if (!io[0].ok)
			return -EFAULT;
		out->task = task;
		decode_task(&km->lay, traw, ts.lo, out);
		if (out->mm && !guest_is_kptr(out->mm))
			return -EFAULT;
		if (out->mm != mm) {
			mm = out->mm;
			if (mm)
				continue;
		}
		if (mm && !io[1].ok)
			return -EFAULT;
		if (mm)
			decode_mm(&km->lay, mraw, ms.lo, out);
		return 0;
	}
	return -EFAULT;
}

int guest_task_current(struct guest_kmem *km, uint64_t current, uint64_t guess, uint64_t guess_mm,
		       struct guest_task *out)
{
	return read_task(km, current, guess, guess_mm, out);
}

int guest_task_read(struct guest_kmem *km, uint64_t task, uint64_t guess_mm, struct guest_task *out)
{
	return guest_is_kptr(task) ? read_task(km, 0, task, guess_mm, out) : -EFAULT;
}
