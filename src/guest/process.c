// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads and processes as they come up in samples. A thread is known by its task_struct's address
 * and told from a later one at the same place by pid and start time; a process by its number and
 * its first thread's start time; an address space by ctx_id, which the kernel never gives twice.
 */
#include "guest/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"

#define MAX_PROCESSES 100000
#define MAX_THREADS   400000
#define MAX_MAPS      4000000 /* of all processes */
#define PF_KTHREAD    0x00200000u
#define PATH_BYTES    4096

static void emit(struct guest_procs *p, enum guest_event_type type, uint64_t time, int32_t pid,
		 int32_t tid, int32_t ppid, const char *name, bool exec)
{
	const struct guest_event ev = {.type = type,
				       .time = time,
				       .pid = pid,
				       .tid = tid,
				       .ppid = ppid,
				       .name = name,
				       .exec = exec};

	guest_events_add(p->events, &ev);
}

/* ---------- coming and going ---------- */

static void unlink_process(struct guest_procs *p, struct guest_process *proc)
{
	*(proc->older ? &proc->older->newer : &p->oldest) = proc->newer;
	*(proc->newer ? &proc->newer->older : &p->newest) = proc->older;
	proc->older = proc->newer = NULL;
}

static void link_newest(struct guest_procs *p, struct guest_process *proc)
{
	proc->older = p->newest;
	*(p->newest ? &p->newest->newer : &p->oldest) = proc;
	p->newest = proc;
}

static void del_if(struct hashmap *m, uint64_t key, const void *value)
{
	if (hashmap_get(m, key) == value)
		hashmap_del(m, key);
}

static void drop_thread(struct guest_procs *p, struct guest_thread *th)
{
	*(th->prev ? &th->prev->next : &th->process->threads) = th->next;
	if (th->next)
		th->next->prev = th->prev;
	th->process->nr_threads--;
	p->nr_threads--;
	del_if(&p->by_task, th->task, th);
	del_if(&p->by_stack, th->stack, th);
	del_if(&p->by_root, th->process->as.root, th);
	free(th);
}

static void drop_process(struct guest_procs *p, struct guest_process *proc)
{
	while (proc->threads)
		drop_thread(p, proc->threads);
	unlink_process(p, proc);
	del_if(&p->by_tgid, (uint32_t)proc->tgid, proc);
	p->nr_processes--;
	p->changes++;
	p->nr_maps -= proc->nr_maps;
	free(proc->maps);
	free(proc->cgroup);
	free(proc);
}

void guest_procs_reset(struct guest_procs *p)
{
	while (p->oldest)
		drop_process(p, p->oldest);
	hashmap_free(&p->by_task);
	hashmap_free(&p->by_stack);
	hashmap_free(&p->by_tgid);
	hashmap_free(&p->by_root);
	guest_vmas_free(&p->scratch);
	guest_procs_forget_owners(p);
	p->snapshots = 0;
}

/* Keeps within the bounds; what falls out is announced anew if it comes up again. */
static void make_room(struct guest_procs *p, const struct guest_process *keep)
{
	while (p->nr_processes > MAX_PROCESSES || p->nr_threads > MAX_THREADS ||
	       p->nr_maps > MAX_MAPS) {
		struct guest_process *victim = p->oldest;

		if (victim == keep)
			return;
		drop_process(p, victim);
	}
}

/* ---------- first sight ---------- */

/* What does not change in a thread's life, or seldom. 0, -EFAULT, -ESRCH */
static int read_fixed(struct guest_kmem *km, struct guest_thread *th)
{
	const struct guest_layout *l = &km->lay;
	uint64_t fsbase = 0;
	struct guest_virt_io io[] = {
		{.va = th->task + (uint64_t)l->task_stack, .buf = &th->stack, .len = 8},
		{.va = th->task + (uint64_t)l->task_flags, .buf = &th->flags, .len = 4},
		{.va = th->task + (uint64_t)l->task_fsbase,
		 .buf = &fsbase,
		 .len = l->task_fsbase < 0 ? 0 : 8},
	};
	int rc = guest_virt_readv(km->virt, km->as, io, 3);

	if (rc)
		return rc;
	th->fsbase = io[2].ok ? fsbase : 0;
	return io[0].ok && io[1].ok && guest_is_kptr(th->stack) ? 0 : -EFAULT;
}

static int32_t parent_of(struct guest_kmem *km, const struct guest_task *t)
{
	int32_t tgid;

	if (t->ppid)
		return t->ppid;
	if (guest_is_kptr(t->real_parent) &&
	    !guest_virt_read(km->virt, km->as, t->real_parent + (uint64_t)km->lay.task_tgid, &tgid,
			     sizeof(tgid)))
		return tgid;
	return 0;
}

/*
 * The idle tasks are all pid 0 and called swapper/CPU; as one process with one name they do not
 * rename it with each switch.
 */
static const char *name_of(const struct guest_task *t)
{
	return t->pid ? t->comm : "swapper";
}

static struct guest_process *new_process(struct guest_procs *p, const struct guest_task *t,
					 const struct guest_task *leader, uint64_t time)
{
	struct guest_process *proc = xcalloc(1, sizeof(*proc));

	proc->tgid = t->tgid;
	proc->start_time = leader->start_time;
	proc->generation = ++p->generations;
	link_newest(p, proc);
	hashmap_set(&p->by_tgid, (uint32_t)t->tgid, proc);
	p->nr_processes++;
	p->processes_seen++;
	if (t->tgid)
		emit(p, GUEST_EVENT_FORK, time, t->tgid, t->tgid, parent_of(p->km, leader), NULL,
		     false);
	emit(p, GUEST_EVENT_COMM, time, t->tgid, t->tgid, 0, name_of(leader), false);
	memcpy(proc->comm, name_of(leader), strlen(name_of(leader)) + 1);
	make_room(p, proc);
	return proc;
}

/* A source of samples that says itself whose they are gives no address of a task_struct. */
static bool is_named(const struct guest_task *t)
{
	return !guest_is_kptr(t->task);
}

/* The process of a thread that was not known. */
static struct guest_process *process_of(struct guest_procs *p, const struct guest_task *t,
					uint64_t time, int *rc)
{
	struct guest_process *proc = hashmap_get(&p->by_tgid, (uint32_t)t->tgid);
	struct guest_task leader = *t;

	if (t->pid != t->tgid && !is_named(t)) {
		*rc = guest_task_read(p->km, t->group_leader, t->mm, &leader);
		if (*rc || leader.tgid != t->tgid)
			return NULL;
	}
	if (!t->tgid)
		leader.start_time = 0; /* each CPU's idle task has its own */
	if (proc && proc->start_time != leader.start_time) {
		emit(p, GUEST_EVENT_EXIT, time, proc->tgid, proc->tgid, 0, NULL, false);
		drop_process(p, proc);
		proc = NULL;
	}
	return proc ? proc : new_process(p, t, &leader, time);
}

static struct guest_thread *new_thread(struct guest_procs *p, const struct guest_task *t,
				       uint64_t time, int *rc)
{
	struct guest_thread fixed = {.task = t->task}, *th;
	struct guest_process *proc;

	*rc = is_named(t) ? 0 : read_fixed(p->km, &fixed);
	if (*rc)
		return NULL;
	proc = process_of(p, t, time, rc);
	if (!proc)
		return NULL;
	th = xmalloc(sizeof(*th));
	*th = fixed;
	th->start_time = t->start_time;
	th->pid = t->pid;
	th->tgid = t->tgid;
	th->process = proc;
	th->next = proc->threads;
	if (th->next)
		th->next->prev = th;
	proc->threads = th;
	proc->nr_threads++;
	p->nr_threads++;
	hashmap_set(&p->by_task, th->task, th);
	if (th->stack)
		hashmap_set(&p->by_stack, th->stack, th);
	if (t->pid == t->tgid) { /* announced with its process */
		memcpy(th->comm, proc->comm, sizeof(th->comm));
	} else {
		emit(p, GUEST_EVENT_FORK, time, t->tgid, t->pid, t->tgid, NULL, false);
	}
	/* A stack's pages may have been another one's: do not trust what is cached of them. */
	if (th->stack)
		guest_virt_forget(p->km->virt, p->km->as, th->stack, p->km->lay.thread_size);
	make_room(p, proc);
	return th;
}

/* ---------- each time ---------- */

static void flush(struct guest_procs *p, uint64_t root)
{
	guest_virt_flush(p->km->virt, root);
	p->flushes++;
}

static void forget_maps(struct guest_procs *p, struct guest_process *proc)
{
	p->nr_maps -= proc->nr_maps;
	proc->nr_maps = 0;
	p->changes++;
	proc->last_map = NULL;
}

/*
 * Another address space: the first one, or an exec. The root page may have been a dead process's,
 * so that translations under it are void.
 */
static int take_mm(struct guest_procs *p, struct guest_process *proc, const struct guest_task *t)
{
	uint64_t root;
	int rc = guest_virt_translate(p->km->virt, p->km->as, t->pgd, &root);

	if (rc || root & 4095)
		return rc ? rc : -EFAULT;
	if (proc->as.root != root)
		hashmap_del(&p->by_root, proc->as.root);
	proc->mm = t->mm;
	proc->ctx_id = t->ctx_id;
	proc->tlb_gen = t->tlb_gen;
	proc->as = (struct guest_as){.root = root, .la57 = p->km->as.la57};
	proc->generation = ++p->generations;
	proc->walk_time = 0;
	proc->useless_walks = 0;
	if (!proc->told)
		forget_maps(p, proc);
	proc->start_stack = 0;
	flush(p, root);
	return rc == -ESRCH ? rc : 0;
}

static void see_cgroup(struct guest_procs *p, struct guest_process *proc,
		       const struct guest_task *t, uint64_t time)
{
	char path[PATH_BYTES];

	proc->cgroups = t->cgroups;
	if (!guest_is_kptr(t->cgroups) ||
	    guest_cgroup_path(p->km, t->cgroups, path, sizeof(path)) ||
	    (proc->cgroup && !strcmp(path, proc->cgroup)))
		return;
	free(proc->cgroup);
	proc->cgroup = xstrdup(path);
	emit(p, GUEST_EVENT_CGROUP, time, proc->tgid, proc->tgid, 0, path, false);
}

struct guest_thread *guest_procs_see(struct guest_procs *p, const struct guest_task *t,
				     uint64_t time, int *rc)
{
	struct guest_thread *th = hashmap_get(&p->by_task, t->task);
	struct guest_process *proc;
	bool exec = false;

	*rc = 0;
	if (th && (th->pid != t->pid || th->tgid != t->tgid || th->start_time != t->start_time)) {
		drop_thread(p, th);
		th = NULL;
	}
	if (!th)
		th = new_thread(p, t, time, rc);
	if (!th)
		return NULL;
	proc = th->process;
	if (proc != p->newest) {
		unlink_process(p, proc);
		link_newest(p, proc);
	}
	if (t->mm && !(th->flags & PF_KTHREAD)) {
		if (proc->ctx_id != t->ctx_id) {
			exec = proc->ctx_id && !proc->told;
			*rc = take_mm(p, proc, t);
		} else if (proc->tlb_gen != t->tlb_gen) {
			proc->tlb_gen = t->tlb_gen;
			flush(p, proc->as.root);
		}
		if (hashmap_get(&p->by_root, proc->as.root) != th && proc->as.root)
			hashmap_set(&p->by_root, proc->as.root, th);
	}
	/* Memory has the names of now, which is later than what comes from who tells of it. */
	if (exec || (strcmp(th->comm, name_of(t)) && (!proc->told || is_named(t)))) {
		memcpy(th->comm, name_of(t), strlen(name_of(t)) + 1);
		emit(p, GUEST_EVENT_COMM, time, t->tgid, t->pid, 0, th->comm, exec);
	}
	if (t->cgroups != proc->cgroups)
		see_cgroup(p, proc, t, time);
	if (*rc)
		return NULL;
	return th;
}

void guest_procs_exec(struct guest_procs *p, struct guest_process *proc, const char *comm,
		      uint64_t time)
{
	forget_maps(p, proc);
	emit(p, GUEST_EVENT_COMM, time, proc->tgid, proc->tgid, 0, comm, true);
}

void guest_procs_gone(struct guest_procs *p, int32_t tgid, uint64_t start_time, uint64_t time)
{
	struct guest_process *proc = hashmap_get(&p->by_tgid, (uint32_t)tgid);

	if (!proc || proc->start_time != start_time)
		return;
	emit(p, GUEST_EVENT_EXIT, time, tgid, tgid, 0, NULL, false);
	drop_process(p, proc);
}

uint64_t guest_process_task(const struct guest_process *proc)
{
	for (const struct guest_thread *th = proc->threads; th; th = th->next)
		if (guest_is_kptr(th->task))
			return th->task;
	return 0;
}

struct guest_thread *guest_procs_by_task(struct guest_procs *p, uint64_t task)
{
	return hashmap_get(&p->by_task, task);
}

struct guest_thread *guest_procs_by_stack(struct guest_procs *p, uint64_t stack)
{
	return hashmap_get(&p->by_stack, stack);
}

struct guest_thread *guest_procs_by_root(struct guest_procs *p, uint64_t root)
{
	return hashmap_get(&p->by_root, root);
}

/* A task that was reaped keeps its last exit_state (EXIT_DEAD) until its memory is used again. */
void guest_procs_sweep(struct guest_procs *p, uint64_t time)
{
	struct guest_process *proc = p->oldest;
	struct guest_thread *th = proc ? proc->threads : NULL;
	struct guest_task t;
	int rc;

	if (!proc || proc == p->newest)
		return;
	rc = th ? guest_task_read(p->km, th->task, 0, &t) : -EFAULT;
	if (rc == -ESRCH)
		return;
	if (!rc && t.start_time == th->start_time && t.pid == th->pid && !t.exit_state) {
		unlink_process(p, proc); /* alive: the next one's turn */
		link_newest(p, proc);
		return;
	}
	if (th)
		drop_thread(p, th);
	if (proc->threads)
		return;
	emit(p, GUEST_EVENT_EXIT, time, proc->tgid, proc->tgid, 0, NULL, false);
	drop_process(p, proc);
}

void guest_procs_reap(struct guest_procs *p, uint32_t snapshot, uint64_t time)
{
	struct guest_process *next;

	for (struct guest_process *proc = p->oldest; proc; proc = next) {
		next = proc->newer;
		if (!proc->as.root || proc->told || proc->snapshot == snapshot)
			continue;
		emit(p, GUEST_EVENT_EXIT, time, proc->tgid, proc->tgid, 0, NULL, false);
		drop_process(p, proc);
	}
}
