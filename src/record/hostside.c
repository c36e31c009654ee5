// SPDX-License-Identifier: GPL-2.0-only
#include "record/hostside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "util/clock.h"
#include "util/text.h"

#define LOOK_NS	    1000000000ull
#define MODULES_MAX 4096

static struct perfdata_id id_of(const struct hostside *h, pid_t tid, uint16_t cpumode,
				uint64_t time)
{
	return (struct perfdata_id){
		.id = h->id,
		.time = time,
		.pid = (uint32_t)h->pid,
		.tid = (uint32_t)tid,
		.cpumode = cpumode,
	};
}

struct thread_walk {
	struct hostside *h;
	struct buf *out;
	uint64_t time;
};

static int encode_thread(void *ctx, pid_t tid)
{
	struct thread_walk *w = ctx;
	struct perfdata_id id = id_of(w->h, tid, SAMPLE_MODE_HOST_USER, w->time);
	char name[64], shown[128];

	proc_thread_name(w->h->pid, tid, name);
	if (tid != w->h->pid)
		perfdata_encode_task(w->out, PERF_RECORD_FORK, &id, (uint32_t)w->h->pid,
				     (uint32_t)w->h->pid);
	perfdata_encode_comm(w->out, &id, escape_str(shown, sizeof(shown), name), false);
	return 0;
}

static void encode_map(struct hostside *h, struct buf *out, const struct proc_map *m, uint64_t time)
{
	struct perfdata_id id = id_of(h, h->pid, SAMPLE_MODE_HOST_USER, time);
	char shown[1024];
	struct perfdata_map map = {
		.start = m->start,
		.len = m->end - m->start,
		.pgoff = m->offset,
		.prot = (uint32_t)(PROT_EXEC | (m->read ? PROT_READ : 0) |
				   (m->write ? PROT_WRITE : 0)),
		.flags = m->shared ? MAP_SHARED : MAP_PRIVATE,
		.filename = m->path[0] ? escape_str(shown, sizeof(shown), m->path) : "//anon",
		.ino = m->inode,
	};

	perfdata_encode_mmap2(out, &id, &map);
}

static bool is_known(const struct proc_maps *known, const struct proc_map *m)
{
	const struct proc_map *k = proc_maps_find(known, m->start);

	return k && k->start == m->start && k->end == m->end && k->inode == m->inode &&
	       k->offset == m->offset;
}

static void look_at_maps(struct hostside *h, struct buf *out, uint64_t time)
{
	struct proc_maps now;

	h->looked = clock_now_ns();
	if (proc_maps_read(&now, h->pid))
		return;
	for (size_t i = 0; i < now.n; i++)
		if (now.map[i].exec && !is_known(&h->maps, &now.map[i]))
			encode_map(h, out, &now.map[i], time);
	proc_maps_free(&h->maps);
	h->maps = now;
}

/* "kvm 1126400 1 kvm_amd, Live 0xffffffffc0a00000"; 0 for an address that is hidden. */
static void encode_modules(struct hostside *h, struct buf *out, uint64_t time)
{
	struct perfdata_id id = id_of(h, 0, SAMPLE_MODE_HOST_KERNEL, time);
	FILE *f = fopen("/proc/modules", "re");
	char line[4096], name[64], file[80];
	struct perfdata_map map = {.prot = PROT_EXEC, .flags = MAP_PRIVATE, .filename = file};

	id.pid = UINT32_MAX;
	for (unsigned n = 0; f && n < MODULES_MAX && fgets(line, sizeof(line), f); n++) {
		const char *at = strstr(line, " 0x");

		if (sscanf(line, "%63s %" SCNu64, name, &map.len) != 2 || !at ||
		    sscanf(at, "%" SCNx64, &map.start) != 1 || !map.start || !map.len)
			continue;
		snprintf(file, sizeof(file), "[%s]", name);
		perfdata_encode_mmap2(out, &id, &map);
	}
	if (f)
		fclose(f);
}

void hostside_start(struct hostside *h, struct buf *out, bool modules, uint64_t time)
{
	struct thread_walk w = {h, out, time};
	char path[32];

	if (modules)
		encode_modules(h, out, time);
	snprintf(path, sizeof(path), "/proc/%d/task", h->pid);
	proc_each_number(path, encode_thread, &w);
	look_at_maps(h, out, time);
}

struct process_walk {
	uint64_t id, time;
	struct buf *out;
	bool modules; /* are to be said still */
};

static int encode_process(void *ctx, pid_t pid)
{
	struct process_walk *w = ctx;
	struct hostside h = {.pid = pid, .id = w->id};

	hostside_start(&h, w->out, w->modules, w->time);
	hostside_free(&h);
	w->modules = false;
	return 0;
}

void hostside_start_all(uint64_t id, struct buf *out, uint64_t time)
{
	struct process_walk w = {id, time, out, true};

	proc_each_number("/proc", encode_process, &w);
}

void hostside_see(struct hostside *h, struct buf *out, const struct sample *s)
{
	if (s->mode != SAMPLE_MODE_HOST_USER || proc_maps_find(&h->maps, s->ip) ||
	    clock_now_ns() - h->looked < LOOK_NS)
		return;
	look_at_maps(h, out, s->time);
}

void hostside_free(struct hostside *h)
{
	proc_maps_free(&h->maps);
}
