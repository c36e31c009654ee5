// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: what is known of the guest's threads, processes and their maps; brings up the
 * side-band when that changes.
 */
#ifndef VMPROF_GUEST_PROCESS_H
#define VMPROF_GUEST_PROCESS_H

#include "guest/dso.h"
#include "guest/events.h"
#include "guest/mm.h"

/* The running task as its task_struct and mm_struct have it at one moment (task.c). */
struct guest_task {
	uint64_t task, mm; /* addresses; mm is 0 for kernel threads */
	uint64_t start_time, group_leader, real_parent, cgroups;
	uint32_t exit_state;
	int32_t pid, tgid; /* in the kernel's words: the thread's and the process's number */
	char comm[17];
	int32_t ppid; /* of one that was told of; 0: see real_parent */
	/* of the mm */
	uint64_t ctx_id, tlb_gen, pgd, total_vm, exec_vm;
	uint32_t map_count;
};

/*
 * Reads the pointer to the running task at @current (an address in the CPU's area) and what it
 * points to. @guess, @guess_mm: the task that was there last time, read in the same call. 0,
 * -EFAULT or -ESRCH.
 */
int guest_task_current(struct guest_kmem *km, uint64_t current, uint64_t guess, uint64_t guess_mm,
		       struct guest_task *out);
/* The same of a task that is known by address. */
int guest_task_read(struct guest_kmem *km, uint64_t task, uint64_t guess_mm,
		    struct guest_task *out);

/* An executable mapping. */
struct guest_map {
	uint64_t start, end, pgoff;
	uint32_t prot, flags;
	struct guest_dso_entry *dso;
};

struct guest_process {
	int32_t tgid;
	uint64_t start_time;		     /* of its first thread */
	char comm[17];			     /* of that thread, when the process was announced */
	struct guest_process *older, *newer; /* by last use */
	struct guest_thread *threads;
	unsigned nr_threads;

	uint64_t mm, ctx_id, tlb_gen, pgd;
	struct guest_as as;   /* .root 0: no user memory */
	uint32_t generation;  /* another number when code may have changed: for caches */
	uint64_t start_stack; /* where the first thread's stack began; 0 unknown */
	struct guest_map *maps;
	size_t nr_maps;
	struct guest_map *last_map; /* of the address looked up last */
	uint32_t snapshot;	    /* in which it was seen last */
	/* Samples that were given to it by their address: no other one's, and one of several's. */
	uint64_t certain, shared;
	/* At the last walk of the VMAs, to see whether there is need for another one. */
	uint64_t walk_time, walk_cost, seen_total_vm, seen_exec_vm;
	uint32_t seen_map_count;
	bool walk_whole;
	unsigned useless_walks;

	/* The guest's kernel says what it has mapped: memory is asked for what that leaves open. */
	bool told;
	uint32_t told_version, told_execs; /* of what ->maps are made of; see told.c */

	uint64_t cgroups; /* css_set that was resolved */
	char *cgroup;
};

struct guest_thread {
	uint64_t task, start_time;
	uint64_t stack;	 /* lowest address of its kernel stack */
	uint64_t fsbase; /* of user mode, as saved last: the thread's control block */
	uint32_t flags;
	int32_t pid, tgid;
	char comm[17];
	struct guest_process *process;
	struct guest_thread *next, *prev; /* of the same process */
};

/* All processes that have code at an address. */
struct guest_owners {
	size_t n;
	struct guest_process *process[];
};

struct guest_procs {
	struct guest_kmem *km;
	struct guest_events *events;
	struct guest_dsos *dsos;
	bool pti;		 /* a process has two page tables, the user's behind the kernel's */
	struct hashmap by_task;	 /* task_struct -> guest_thread */
	struct hashmap by_stack; /* lowest address of kernel stack -> guest_thread */
	struct hashmap by_tgid, by_root;
	struct guest_process *oldest, *newest;
	size_t nr_threads, nr_processes, nr_maps;
	uint32_t generations;
	uint64_t flushes; /* of cached translations */
	uint64_t vma_walks, maps_seen, processes_seen;
	struct guest_vmas scratch;
	uint64_t changes; /* of any process's maps */
	/* snapshot.c: */
	uint32_t snapshots;
	uint64_t snapshot_at, snapshot_cost; /* ns, by the clock */
	struct hashmap owners;		     /* page of address + 1 -> guest_owners */
	uint64_t owners_of;		     /* ->changes as of them */
};

/*
 * The thread of @t, with all that changed since it was seen last; brings up events. Lives until the
 * next call. NULL if the task contradicts itself. *rc: 0 or -ESRCH
 */
struct guest_thread *guest_procs_see(struct guest_procs *p, const struct guest_task *t,
				     uint64_t time, int *rc);
/*
 * Looks at the process's map again if there is reason to: it has changed, or @lost, an address that
 * was in no mapping (0: none). Returns whether it has; *rc as above.
 */
bool guest_procs_refresh_maps(struct guest_procs *p, struct guest_process *proc,
			      const struct guest_task *t, uint64_t lost, uint64_t time, int *rc);
/* Takes over what its executable mappings are now, by address and none over another; announces what
 * was not there before. */
void guest_procs_set_maps(struct guest_procs *p, struct guest_process *proc, struct guest_map *maps,
			  size_t n, uint64_t time);
/* Another program: its mappings are all new, and its first thread's name is said once more. */
void guest_procs_exec(struct guest_procs *p, struct guest_process *proc, const char *comm,
		      uint64_t time);
/* That process has ended, if it is known. */
void guest_procs_gone(struct guest_procs *p, int32_t tgid, uint64_t start_time, uint64_t time);
/* The address of some thread's task_struct; 0: none is known, as of a process that was told of. */
uint64_t guest_process_task(const struct guest_process *proc);
/* Looks for the file's build id, if nobody has. @proc has it mapped. */
void guest_procs_build_id(struct guest_procs *p, struct guest_process *proc,
			  struct guest_dso_entry *e);
/* Memory that programs make code in has a file of such a name. */
bool guest_is_made_name(const char *path);
/* The executable mapping that has @addr, or NULL. */
struct guest_map *guest_process_map(struct guest_process *proc, uint64_t addr);

/* Known threads, not looked at again: by task_struct, kernel stack, page table. NULL if there is
 * none. */
struct guest_thread *guest_procs_by_task(struct guest_procs *p, uint64_t task);
struct guest_thread *guest_procs_by_stack(struct guest_procs *p, uint64_t stack);
struct guest_thread *guest_procs_by_root(struct guest_procs *p, uint64_t root);

/* Looks whether the one not seen for longest still exists; call it now and then. */
void guest_procs_sweep(struct guest_procs *p, uint64_t time);
void guest_procs_reset(struct guest_procs *p); /* forgets all, without events */
/* Those that have user memory and were not seen in this snapshot are gone. */
void guest_procs_reap(struct guest_procs *p, uint32_t snapshot, uint64_t time);

/* ---------- snapshot.c ---------- */

/*
 * Sees all processes and looks at their maps, if it is time to: once a second, and sooner if an
 * address is @lost, in no process's map. 0 or -ESRCH
 */
int guest_procs_snapshot(struct guest_procs *p, bool lost, uint64_t time);
/* Those that have executable memory at @addr, by what is known; valid until the next call that may
 * see something. */
const struct guest_owners *guest_procs_owners(struct guest_procs *p, uint64_t addr);
void guest_procs_forget_owners(struct guest_procs *p);

#endif
