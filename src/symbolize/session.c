// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of a file into machines, processes and maps. Threads and processes are never freed before
 * the session is: samples point to them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "symbolize/demangle.h"
#include "symbolize/session.h"
#include "util/xalloc.h"

enum { HOST_PID = -1 };

/* ---------- machines ---------- */

static bool is_guest_mode(uint8_t cpumode)
{
	return cpumode == PERF_RECORD_MISC_GUEST_KERNEL || cpumode == PERF_RECORD_MISC_GUEST_USER;
}

static bool is_user_mode(uint8_t cpumode)
{
	return cpumode == PERF_RECORD_MISC_USER || cpumode == PERF_RECORD_MISC_GUEST_USER;
}

static struct machine_priv *machine_new(struct session *s, int32_t pid)
{
	struct machine_priv *m = xcalloc(1, sizeof(*m));
	char name[32];

	snprintf(name, sizeof(name), "guest pid %" PRId32, pid);
	m->session = s;
	m->kernel_state = ++s->last_state;
	m->m = (struct machine){
		.index = (uint32_t)s->nr_machines,
		.pid = pid,
		.name = strtab_intern(s->strings, pid == HOST_PID ? "host" : name),
		.uuid = "",
	};
	s->machines =
		xgrow(s->machines, &s->cap_machines, s->nr_machines + 1, sizeof(*s->machines));
	s->machines[s->nr_machines++] = m;
	if (pid != HOST_PID)
		hashmap_set(&s->by_pid, (uint32_t)pid, m);
	return m;
}

struct machine_priv *session_guest(struct session *s, int32_t pid)
{
	struct machine_priv *m = hashmap_get(&s->by_pid, (uint32_t)pid);

	return m ? m : machine_new(s, pid);
}

/*
 * ID_INDEX says which guest. Files of perf kvm have none: there the record's pid is the guest's,
 * where it is known as one, or has a directory below --guestmount, else all guests are one.
 */
static struct machine_priv *machine_of(struct session *s, const struct perfdata_record *rec)
{
	struct machine_priv *m;

	if (!is_guest_mode(rec->cpumode))
		return s->machines[0];
	if (rec->machine_pid > 0)
		return session_guest(s, rec->machine_pid);
	m = hashmap_get(&s->by_pid, rec->pid);
	return m ? m
		 : session_guest(s,
				 session_is_mounted(s, (int32_t)rec->pid) ? (int32_t)rec->pid : 0);
}

struct machine *session_machine(struct session *s, const struct perfdata_record *rec)
{
	return &machine_of(s, rec)->m;
}

const char *session_path(const struct symbol_path *list, unsigned n, const struct machine_priv *m,
			 const char *guests)
{
	const char *found = guests;

	for (unsigned i = 0; i < n; i++) {
		if (!list[i].vm)
			found = found ? found : list[i].path;
		else if (!strcmp(list[i].vm, m->m.name) ||
			 (*m->m.uuid && !strcmp(list[i].vm, m->m.uuid)))
			return list[i].path;
	}
	return found;
}

/* ---------- processes and threads ---------- */

/* Addresses mean something else from now on. */
static void process_changed(struct process *p)
{
	p->state = ++p->machine->session->last_state;
}

static struct process *process_new(struct machine_priv *m, int32_t pid)
{
	struct session *s = m->session;
	struct process *p = xcalloc(1, sizeof(*p));

	p->machine = m;
	p->pid = pid;
	process_changed(p);
	s->processes =
		xgrow(s->processes, &s->cap_processes, s->nr_processes + 1, sizeof(*s->processes));
	s->processes[s->nr_processes++] = p;
	hashmap_set(&m->processes, (uint32_t)pid, p);
	return p;
}

struct process *machine_process(struct machine_priv *m, int32_t pid)
{
	struct process *p = hashmap_get(&m->processes, (uint32_t)pid);

	return p ? p : process_new(m, pid);
}

static struct thread_priv *thread_new(struct process *p, int32_t tid)
{
	struct session *s = p->machine->session;
	struct thread_priv *t = xcalloc(1, sizeof(*t));
	char comm[32];

	snprintf(comm, sizeof(comm), ":%" PRId32, tid);
	t->process = p;
	t->t = (struct thread){
		.machine = &p->machine->m,
		.pid = p->pid,
		.tid = tid,
		.comm = strtab_intern(s->strings, tid ? comm : "swapper"),
	};
	t->t.recorded_comm = t->t.comm;
	s->threads = xgrow(s->threads, &s->cap_threads, s->nr_threads + 1, sizeof(*s->threads));
	s->threads[s->nr_threads++] = t;
	hashmap_set(&p->machine->threads, (uint32_t)tid, t);
	return t;
}

/* By tid, as perf has it: who has the tid is asked, not of which process it was said to be. */
static struct thread_priv *thread(struct machine_priv *m, int32_t pid, int32_t tid)
{
	struct thread_priv *t = hashmap_get(&m->threads, (uint32_t)tid);

	return t && (!t->exited || t->t.pid == pid) ? t : thread_new(machine_process(m, pid), tid);
}

struct thread *session_thread(struct session *s, const struct perfdata_record *rec)
{
	struct thread_priv *t = thread(machine_of(s, rec), (int32_t)rec->pid, (int32_t)rec->tid);

	t->t.cgroup = t->process->cgroup;
	/* Once it runs, exec is over and nothing of what was before is on its stack. */
	if (rec->type == PERF_RECORD_SAMPLE && t->process->old.root && is_user_mode(rec->cpumode)) {
		maps_clear(&t->process->old);
		process_changed(t->process);
	}
	return &t->t;
}

static void process_fork(struct session *s, const struct perfdata_record *rec)
{
	struct machine_priv *m = machine_of(s, rec);
	int32_t pid = (int32_t)rec->task.pid, tid = (int32_t)rec->task.tid;
	struct thread_priv *parent = thread(m, (int32_t)rec->task.ppid, (int32_t)rec->task.ptid);
	struct thread_priv *old = hashmap_get(&m->threads, (uint32_t)tid), *t;
	bool new_process = pid != (int32_t)rec->task.ppid;

	if (old == parent && !new_process)
		return;
	t = thread_new(new_process && pid == tid ? process_new(m, pid) : machine_process(m, pid),
		       tid);
	if (parent->has_comm) {
		t->t.comm = parent->t.comm;
		t->t.recorded_comm = parent->t.recorded_comm;
		t->has_comm = true;
	}
	if (!new_process || t->process->maps.root)
		return;
	t->process->cgroup = parent->process->cgroup;
	/* perf's own notes of what ran already come with this bit: the maps follow one by one. */
	if (rec->misc & PERF_RECORD_MISC_FORK_EXEC || t->process == parent->process)
		return;
	maps_share(&t->process->maps, &parent->process->maps);
	process_changed(t->process);
}

static void process_exit(struct session *s, const struct perfdata_record *rec)
{
	struct machine_priv *m = machine_of(s, rec);
	struct thread_priv *t = hashmap_get(&m->threads, rec->task.tid);

	/* It stays findable: its last samples may come later. */
	if (t)
		t->exited = true;
}

/* A guest's comm is written as "VM:comm"; with the VM known by name that is the comm. */
static const char *bare_comm(const struct machine_priv *m, const char *comm)
{
	size_t len = strlen(m->m.name);

	return m->named && !strncmp(comm, m->m.name, len) && comm[len] == ':' ? comm + len + 1
									      : comm;
}

static void process_comm(struct session *s, const struct perfdata_record *rec)
{
	struct machine_priv *m = machine_of(s, rec);
	struct thread_priv *t = thread(m, (int32_t)rec->pid, (int32_t)rec->tid);

	if (!rec->comm.comm)
		return;
	t->t.recorded_comm = strtab_intern(s->strings, rec->comm.comm);
	t->t.comm = strtab_intern(s->strings, bare_comm(m, rec->comm.comm));
	t->has_comm = true;
	/* The old program's addresses are in chains until the new one's first map is there. */
	if (rec->comm.exec && rec->pid == rec->tid)
		t->process->execed = true;
}

/* ---------- maps ---------- */

bool session_is_kernel_name(const char *name)
{
	return !strncmp(name, "[kernel.kallsyms]", 17) ||
	       !strncmp(name, "[guest.kernel.kallsyms", 22);
}

static void insert_user_map(struct process *p, const struct map *map)
{
	if (p->execed) {
		maps_clear(&p->old);
		p->old = p->maps;
		p->maps = (struct maps){0};
	}
	p->execed = false;
	maps_insert(&p->maps, map);
	process_changed(p);
}

static void insert_kernel_map(struct machine_priv *m, const struct map *map)
{
	maps_insert(&m->kernel, map);
	m->kernel_state = ++m->session->last_state;
}

/* Memory without a file, by the names that the kernel and perf give it. */
static bool is_anonymous(const char *name, uint32_t flags)
{
	static const char *const names[] = {"//anon", "/dev/zero", "/anon_hugepage", "[stack",
					    "/SYSV"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return flags & MAP_HUGETLB || !strcmp(name, "[heap]");
}

/*
 * Its addresses are no offsets in anything. Code in it is what the program has made itself, and may
 * have written down; a guest's file of that name is not on this host.
 */
static const char *anonymous_map(struct session *s, const struct machine_priv *m,
				 const struct perfdata_record *rec, struct map *map)
{
	char name[32];

	map->pgoff = map->start;
	if (m->m.pid != HOST_PID || rec->mmap.is_data)
		return rec->mmap.filename;
	snprintf(name, sizeof(name), "/tmp/perf-%" PRId32 ".map", (int32_t)rec->mmap.pid);
	return strtab_intern(s->strings, name);
}

/*
 * The recorded mapping ends behind _etext. Code of the kernel's start lies further on, and is still
 * in the idle task's chain. perf sees it when it can read the running kernel's /proc/kcore: so do
 * we.
 */
static uint64_t kernel_end(const struct machine_priv *m, const struct dso_priv *d,
			   const struct map *map)
{
	const uint64_t image = 0xffffffff80000000ull, modules = 0xffffffffc0000000ull; /* x86-64 */

	if (m->m.pid != HOST_PID || map->start < image || map->end >= modules ||
	    !dso_is_running_kernel(d))
		return map->end;
	return modules;
}

static void process_mmap(struct session *s, const struct perfdata_record *rec)
{
	bool kernel = is_kernel_cpumode(rec->cpumode);
	struct machine_priv *m = machine_of(s, rec);
	const char *name = rec->mmap.filename ? rec->mmap.filename : "";
	struct map map = {
		.start = rec->mmap.start,
		.end = rec->mmap.start + rec->mmap.len,
		.pgoff = rec->mmap.pgoff,
		.prot = rec->mmap.prot,
		.flags = rec->mmap.flags,
	};
	struct dso_key key = {name, kernel, rec->mmap.build_id, rec->mmap.build_id_len};
	struct dso_priv *d;

	if (map.end < map.start)
		map.end = UINT64_MAX;
	if (!kernel && is_anonymous(name, rec->mmap.flags))
		key.name = anonymous_map(s, m, rec, &map);
	d = session_dso(m, &key);
	map.dso = &d->dso;
	if (!kernel) {
		insert_user_map(machine_process(m, (int32_t)rec->mmap.pid), &map);
		return;
	}
	/* What stands there is the address of its first symbol, or a guess: not an offset. */
	if (session_is_kernel_name(name)) {
		map.pgoff = 0;
		map.end = kernel_end(m, d, &map);
	}
	if (!d->start)
		d->start = map.start;
	insert_kernel_map(m, &map);
}

/*
 * Code that a kernel has made: a BPF program, a trampoline. The record is all that there is of its
 * symbols. Of one that is gone nothing is forgotten: what comes in its place has a record as well.
 */
static void process_ksymbol(struct session *s, const struct perfdata_record *rec)
{
	struct machine_priv *m = machine_of(s, rec);
	const struct dso_key key = {.name = rec->ksymbol.name, .kernel = true};
	struct map map = {.start = rec->ksymbol.start,
			  .end = rec->ksymbol.start + rec->ksymbol.len};
	struct dso_priv *d;

	if (rec->ksymbol.unregister || map.end <= map.start || !*key.name)
		return;
	d = session_dso(m, &key);
	dso_set_symbol(d, rec->ksymbol.len);
	map.dso = &d->dso;
	insert_kernel_map(m, &map);
}

int session_process(struct session *s, const struct perfdata_record *rec)
{
	if (rec->is_private) {
		session_private(s, rec);
		return 0;
	}
	switch (rec->type) {
	case PERF_RECORD_FORK:
		process_fork(s, rec);
		break;
	case PERF_RECORD_EXIT:
		process_exit(s, rec);
		break;
	case PERF_RECORD_COMM:
		process_comm(s, rec);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		process_mmap(s, rec);
		break;
	case PERF_RECORD_KSYMBOL:
		process_ksymbol(s, rec);
		break;
	}
	return 0;
}

/* ---------- addresses ---------- */

static char level_of(uint8_t cpumode)
{
	static const char levels[] = "Hk.Hgu";

	return cpumode < sizeof(levels) - 1 ? levels[cpumode] : 'H';
}

uint32_t session_maps_state(const struct thread *t, uint8_t cpumode)
{
	const struct process *p = ((const struct thread_priv *)t)->process;

	return is_kernel_cpumode(cpumode) ? p->machine->kernel_state : p->state;
}

uint8_t session_chain_mode(uint8_t cpumode, uint64_t marker)
{
	bool guest_sample = is_guest_mode(cpumode);

	switch (marker) {
	case PERF_CONTEXT_HV:
		return PERF_RECORD_MISC_HYPERVISOR;
	case PERF_CONTEXT_KERNEL:
		return guest_sample ? PERF_RECORD_MISC_GUEST_KERNEL : PERF_RECORD_MISC_KERNEL;
	case PERF_CONTEXT_USER:
		return guest_sample ? PERF_RECORD_MISC_GUEST_USER : PERF_RECORD_MISC_USER;
	case PERF_CONTEXT_GUEST_KERNEL:
		return PERF_RECORD_MISC_GUEST_KERNEL;
	case PERF_CONTEXT_GUEST_USER:
		return PERF_RECORD_MISC_GUEST_USER;
	}
	return 0;
}

const struct map *session_find_map(struct session *s, struct thread *t, uint8_t cpumode,
				   uint64_t ip)
{
	struct process *p = ((struct thread_priv *)t)->process;
	struct machine_priv *m = p->machine;
	char level = level_of(cpumode);
	const struct map *map;

	if (level == 'k' || level == 'g') {
		if (!m->kernel.root && !m->tried_kernel)
			machine_map_kernel(m);
		return maps_find(&m->kernel, ip);
	}
	if (level == 'H')
		return NULL;
	map = maps_find(&p->maps, ip);
	return !map && p->old.root ? maps_find(&p->old, ip) : map;
}

void session_resolve(struct session *s, struct thread *t, uint8_t cpumode, uint64_t ip,
		     struct location *loc)
{
	*loc = (struct location){.ip = ip, .level = level_of(cpumode), .offset = ip};
	loc->map = session_find_map(s, t, cpumode, ip);
	if (!loc->map)
		return;
	loc->dso = loc->map->dso;
	loc->offset = ip - loc->map->start + loc->map->pgoff;
	loc->sym = dso_find_symbol((struct dso_priv *)loc->dso, loc->offset);
	if (loc->sym)
		loc->offset -= loc->sym->start;
}

const char *session_symbol_name(struct session *s, const struct symbol *sym)
{
	const char *shown;
	char *readable;

	if (s->paths.no_demangle || sym->name[0] != '_')
		return sym->name;
	shown = hashmap_get(&s->shown, (uintptr_t)sym->name);
	if (shown)
		return shown;
	readable = demangle(sym->name);
	shown = readable ? strtab_intern(s->strings, readable) : sym->name;
	free(readable);
	hashmap_set(&s->shown, (uintptr_t)sym->name, (void *)(uintptr_t)shown);
	return shown;
}

/* ---------- the session ---------- */

static void keep_list(struct session *s, struct symbol_path *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		list[i].vm = list[i].vm ? strtab_intern(s->strings, list[i].vm) : NULL;
		list[i].path = strtab_intern(s->strings, list[i].path);
	}
}

static void keep_text(struct session *s, const char **text)
{
	if (*text)
		*text = strtab_intern(s->strings, *text);
}

static void keep_paths(struct session *s, const struct symbol_paths *paths)
{
	const char *home = getenv("HOME");
	char *dir;

	if (paths)
		s->paths = *paths;
	keep_list(s, s->paths.symfs, s->paths.nr_symfs);
	keep_list(s, s->paths.vmlinux, s->paths.nr_vmlinux);
	keep_list(s, s->paths.kallsyms, s->paths.nr_kallsyms);
	keep_text(s, &s->paths.guest_vmlinux);
	keep_text(s, &s->paths.guest_kallsyms);
	keep_text(s, &s->paths.guest_modules);
	keep_text(s, &s->paths.guest_mount);
	keep_text(s, &s->paths.store);
	keep_text(s, &s->paths.host_release);
	if (s->paths.buildid_dir) {
		s->paths.buildid_dir = strtab_intern(s->strings, s->paths.buildid_dir);
	} else if (home) {
		dir = xasprintf("%s/.debug", home);
		s->paths.buildid_dir = strtab_intern(s->strings, dir);
		free(dir);
	}
}

struct session *session_new(const struct symbol_paths *paths)
{
	struct session *s = xcalloc(1, sizeof(*s));

	s->strings = strtab_new();
	keep_paths(s, paths);
	machine_new(s, HOST_PID);
	return s;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_threads; i++)
		free(s->threads[i]);
	for (size_t i = 0; i < s->nr_processes; i++) {
		maps_clear(&s->processes[i]->maps);
		maps_clear(&s->processes[i]->old);
		free(s->processes[i]);
	}
	for (size_t i = 0; i < s->nr_machines; i++) {
		maps_clear(&s->machines[i]->kernel);
		hashmap_free(&s->machines[i]->processes);
		hashmap_free(&s->machines[i]->threads);
		free(s->machines[i]);
	}
	for (size_t i = 0; i < s->nr_dsos; i++)
		dso_free(s->dsos[i]);
	for (size_t i = 0; i < s->nr_tables; i++)
		symtab_free(s->tables[i]);
	for (size_t i = 0; i < s->nr_kallsyms; i++)
		kallsyms_free(s->kallsyms[i]);
	session_free_build_ids(s);
	debuginfod_close(s->debuginfod);
	hashmap_free(&s->by_pid);
	hashmap_free(&s->dso_by_key);
	hashmap_free(&s->shown);
	free(s->user_stack);
	free(s->threads);
	free(s->processes);
	free(s->machines);
	free(s->dsos);
	free(s->tables);
	free(s->kallsyms);
	free(s->marks);
	free(s->uses);
	strtab_free(s->strings);
	free(s);
}

size_t session_nr_machines(const struct session *s)
{
	return s->nr_machines;
}

struct machine *session_machine_nth(const struct session *s, size_t i)
{
	return i < s->nr_machines ? &s->machines[i]->m : NULL;
}

size_t session_nr_dsos(const struct session *s)
{
	return s->nr_dsos;
}

struct dso *session_dso_nth(const struct session *s, size_t i)
{
	return i < s->nr_dsos ? &s->dsos[i]->dso : NULL;
}
