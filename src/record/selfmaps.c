// SPDX-License-Identifier: GPL-2.0-only
#include "record/selfmaps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "symbolize/machine.h"
#include "util/clock.h"
#include "util/hashmap.h"
#include "util/xalloc.h"

#define CODE_MAX 8192	       /* pieces of code of one process; others are not known */
#define GONE_NS	 2000000000ull /* samples of a process that has ended may still be read */

/* A file that is mapped somewhere. */
struct file {
	char *path;
	uint64_t inode;
	struct dso *dso; /* NULL: under this path there is another one here */
	bool looked, hit;
};

struct code {
	uint64_t start, end, offset;
	struct file *file; /* NULL: memory without a file */
};

struct process {
	struct code *code; /* by address */
	size_t n;
};

struct gone {
	uint32_t pid;
	struct process *process;
	uint64_t when;
};

struct selfmaps {
	struct session *session;  /* has the files, and none of the processes */
	struct hashmap processes; /* by pid */
	struct hashmap by_name;	  /* files, by a hash of path and inode */
	struct file **files;
	size_t nr_files, cap_files;
	struct gone *gone; /* the oldest first */
	size_t nr_gone, cap_gone;
};

struct selfmaps *selfmaps_new(void)
{
	const struct symbol_paths none = {0};
	struct selfmaps *m = xcalloc(1, sizeof(*m));

	m->session = session_new(&none);
	return m;
}

static void process_free(struct process *p)
{
	free(p->code);
	free(p);
}

void selfmaps_free(struct selfmaps *m)
{
	struct process *p;

	if (!m)
		return;
	for (size_t i = 0; (p = hashmap_next(&m->processes, &i, NULL));)
		process_free(p);
	for (size_t i = 0; i < m->nr_files; i++) {
		free(m->files[i]->path);
		free(m->files[i]);
	}
	free(m->files);
	free(m->gone);
	hashmap_free(&m->processes);
	hashmap_free(&m->by_name);
	session_free(m->session);
	free(m);
}

/* ---------- processes, as the kernel tells of them ---------- */

static struct process *process_of(struct selfmaps *m, uint32_t pid)
{
	struct process *p = hashmap_get(&m->processes, pid);

	if (p)
		return p;
	p = xcalloc(1, sizeof(*p));
	hashmap_set(&m->processes, pid, p);
	return p;
}

/* What is in the place of @with has gone. */
static void put_code(struct process *p, const struct code *with)
{
	struct code *code;
	size_t n = 0, i = 0;

	if (p->n > CODE_MAX)
		return;
	code = xcalloc(p->n + 2, sizeof(*code)); /* one may become two */
	for (; i < p->n && p->code[i].start < with->start; i++) {
		code[n] = p->code[i];
		if (code[n].end > with->start)
			code[n].end = with->start;
		n++;
	}
	code[n++] = *with;
	if (i && p->code[i - 1].end > with->end) /* it was in the middle of this one */
		i--;
	for (; i < p->n; i++) {
		struct code c = p->code[i];

		if (c.end <= with->end)
			continue;
		if (c.start < with->end) {
			c.offset += with->end - c.start;
			c.start = with->end;
		}
		code[n++] = c;
	}
	free(p->code);
	p->code = code;
	p->n = n;
}

static struct file *file_of(struct selfmaps *m, const char *path, uint64_t inode)
{
	uint64_t key = hash_u64(hash_bytes(path, strlen(path)) ^ inode);
	struct file *f = hashmap_get(&m->by_name, key);

	if (f)
		return f;
	f = xcalloc(1, sizeof(*f));
	f->path = xstrdup(path);
	f->inode = inode;
	hashmap_set(&m->by_name, key, f);
	m->files = xgrow(m->files, &m->cap_files, m->nr_files + 1, sizeof(*m->files));
	m->files[m->nr_files++] = f;
	return f;
}

/* perf_event.h: u32 pid, tid; u64 addr, len, pgoff; u32 maj, min; u64 ino, generation; ... */
struct mmap2 {
	uint32_t pid, tid;
	uint64_t start, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, generation;
	uint32_t prot, flags;
	char path[];
};

static void see_map(struct selfmaps *m, const struct mmap2 *map)
{
	const struct code code = {
		.start = map->start,
		.end = map->start + map->len,
		.offset = map->pgoff,
		.file = map->ino && map->path[0] == '/' ? file_of(m, map->path, map->ino) : NULL,
	};

	if (map->pid != UINT32_MAX && code.end > code.start)
		put_code(process_of(m, map->pid), &code);
}

static void forget(struct selfmaps *m, uint32_t pid)
{
	struct process *p = hashmap_del(&m->processes, pid);

	for (size_t i = 0; p && i < m->nr_gone; i++)
		if (m->gone[i].process == p)
			m->gone[i].process = NULL;
	if (p)
		process_free(p);
}

static void see_fork(struct selfmaps *m, uint32_t pid, uint32_t parent)
{
	const struct process *from = hashmap_get(&m->processes, parent);
	struct process *p;

	if (pid == parent) /* a thread */
		return;
	forget(m, pid);
	if (!from)
		return;
	p = process_of(m, pid);
	p->code = xcalloc(from->n + 1, sizeof(*p->code));
	if (from->n)
		memcpy(p->code, from->code, from->n * sizeof(*p->code));
	p->n = from->n;
}

static void see_exit(struct selfmaps *m, uint32_t pid)
{
	uint64_t now = clock_now_ns();
	size_t old = 0;

	for (; old < m->nr_gone && now - m->gone[old].when > GONE_NS; old++)
		if (m->gone[old].process)
			forget(m, m->gone[old].pid);
	m->nr_gone -= old;
	if (old)
		memmove(m->gone, m->gone + old, m->nr_gone * sizeof(*m->gone));
	m->gone = xgrow(m->gone, &m->cap_gone, m->nr_gone + 1, sizeof(*m->gone));
	m->gone[m->nr_gone++] = (struct gone){pid, hashmap_get(&m->processes, pid), now};
}

void selfmaps_record(struct selfmaps *m, const struct perf_event_header *record)
{
	const uint32_t *word = (const uint32_t *)(record + 1);

	switch (record->type) {
	case PERF_RECORD_FORK: /* pid, ppid */
		see_fork(m, word[0], word[1]);
		break;
	case PERF_RECORD_EXIT: /* pid, ppid, tid */
		if (word[0] == word[2])
			see_exit(m, word[0]);
		break;
	case PERF_RECORD_COMM: /* pid */
		if (record->misc & PERF_RECORD_MISC_COMM_EXEC)
			forget(m, word[0]);
		break;
	case PERF_RECORD_MMAP2:
		see_map(m, (const struct mmap2 *)word);
		break;
	}
}

static const struct code *find(const struct selfmaps *m, pid_t pid, uint64_t addr)
{
	const struct process *p = hashmap_get(&m->processes, (uint32_t)pid);
	size_t lo = 0, hi = p ? p->n : 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->code[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return p && lo < p->n && p->code[lo].start <= addr ? &p->code[lo] : NULL;
}

/* ---------- files ---------- */

static struct dso *dso_of(struct selfmaps *m, struct file *f)
{
	struct stat st;

	if (!f->looked && !stat(f->path, &st) && S_ISREG(st.st_mode) && st.st_ino == f->inode)
		f->dso = session_host_dso(m->session, f->path);
	f->looked = true;
	return f->dso;
}

void selfmaps_hit(struct selfmaps *m, pid_t pid, uint64_t addr)
{
	const struct code *code = find(m, pid, addr);

	if (code && code->file)
		code->file->hit = true;
}

bool selfmaps_is_caller(struct selfmaps *m, pid_t pid, uint64_t ip, uint64_t link, uint64_t next)
{
	const struct code *code = find(m, pid, ip);
	struct dso *dso;

	if (link == next || !code || !code->file || !find(m, pid, link))
		return false;
	dso = dso_of(m, code->file);
	return dso && dso_link_is_caller(dso, ip - code->start + code->offset, link - ip);
}

/* ---------- what is saved ---------- */

struct saved {
	const char *store; /* NULL: symbols are not */
	struct perfdata_writer *writer;
};

/* @t may be NULL, and is freed. */
static void save(const struct saved *to, const struct perfdata_build_id *id, struct symtab *t)
{
	char *name = xasprintf("host/%s", id->filename);

	perfdata_writer_add_build_id(to->writer, id);
	if (to->store && t)
		elfstore_put(to->store, name, id->id, id->len, t, NULL);
	symtab_free(t);
	free(name);
}

static void save_kernel(struct selfmaps *m, const struct saved *to)
{
	uint8_t id[20];
	const struct perfdata_build_id kernel = {
		.machine_pid = -1,
		.cpumode = PERF_RECORD_MISC_KERNEL,
		.id = id,
		.len = (uint8_t)running_kernel_build_id(id),
		.filename = "[kernel.kallsyms]",
	};

	if (kernel.len)
		save(to, &kernel, to->store ? running_kernel_symtab(m->session) : NULL);
}

static void save_file(struct selfmaps *m, struct file *f, const struct saved *to)
{
	struct symtab *t = NULL;
	uint8_t id[20];
	int len = f->hit && dso_of(m, f) ? elf_build_id(f->path, id) : 0;
	const struct perfdata_build_id file = {
		.machine_pid = -1,
		.cpumode = PERF_RECORD_MISC_USER,
		.id = id,
		.len = (uint8_t)len,
		.filename = f->path,
	};

	if (len <= 0)
		return;
	if (to->store && symtab_read_file(&t, f->path, id, file.len, NULL))
		t = NULL;
	save(to, &file, t);
}

void selfmaps_save(struct selfmaps *m, const char *store, struct perfdata_writer *w)
{
	const struct saved to = {store, w};

	save_kernel(m, &to);
	for (size_t i = 0; i < m->nr_files; i++)
		save_file(m, m->files[i], &to);
}
