// SPDX-License-Identifier: GPL-2.0-only
/*
 * Made-up inputs of a merge, and what came out of it: files of a host (with or without a guest's
 * samples in them) and files recorded in a guest, each with the clock that the test wants.
 */
#ifndef VMPROF_TESTS_UNIT_MERGE_MAKE_H
#define VMPROF_TESTS_UNIT_MERGE_MAKE_H

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "merge/merge.h"
#include "perfdata/writer.h"
#include "symbolize/machine.h"
#include "tests/unit/test.h"
#include "util/xalloc.h"

#define SECOND 1000000000ull
#define BOOT   (1700000000ull * SECOND) /* time of day when the host's clock was 0 */

static char merge_dir[] = "/tmp/vmprof-merge-XXXXXX";

/* What is freed when all is done. */
static struct {
	void *p[512];
	size_t n;
} merge_kept;

static inline void *keep(void *p)
{
	if (merge_kept.n == sizeof(merge_kept.p) / sizeof(*merge_kept.p))
		abort();
	return merge_kept.p[merge_kept.n++] = p;
}

static inline void free_kept(void)
{
	while (merge_kept.n)
		free(merge_kept.p[--merge_kept.n]);
}

static inline char *in_dir(const char *name)
{
	return keep(xasprintf("%s/%s", merge_dir, name));
}

struct made {
	const char *hostname;	 /* "host1" if NULL */
	bool no_clock;		 /* perf's default */
	bool realtime;		 /* CLOCK_REALTIME, else CLOCK_MONOTONIC */
	uint64_t boot;		 /* time of day of the clock's 0; BOOT if 0, 1: not said */
	uint32_t machine;	 /* samples are of this guest; 0: of the system itself */
	bool kvm;		 /* the guest is known by the pid of its process only */
	const char *name, *uuid; /* of the guest, in a "vm" record */
	uint32_t pid;		 /* 100 if 0 */
	const char *comm;
	uint64_t first, step;
	unsigned n;
	uint64_t config; /* of a software event; cpu-clock */
	unsigned lost;
	bool flat;
	const char *exe; /* mapped, without a build id; "/bin/prog" if NULL */
};

static inline uint16_t made_mode(const struct made *f, bool kernel)
{
	if (f->machine)
		return kernel ? PERF_RECORD_MISC_GUEST_KERNEL : PERF_RECORD_MISC_GUEST_USER;
	return kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
}

static inline void made_sideband(const struct made *f, struct buf *b)
{
	struct perfdata_id id = {.id = 7, .cpumode = made_mode(f, false)};
	char json[512];

	id.pid = id.tid = f->pid ? f->pid : 100;
	if (f->name) {
		snprintf(json, sizeof(json), "{\"machine\":%u,\"name\":\"%s\",\"uuid\":%s%s%s}",
			 f->machine, f->name, f->uuid ? "\"" : "", f->uuid ? f->uuid : "null",
			 f->uuid ? "\"" : "");
		perfdata_encode_private(b, &id, "vm", json);
	}
	if (f->kvm)
		return;
	perfdata_encode_comm(b, &id, f->comm ? f->comm : "prog", true);
	perfdata_encode_mmap2(b, &id,
			      &(struct perfdata_map){.start = 0x400000,
						     .len = 0x10000,
						     .prot = 5,
						     .flags = 2,
						     .filename = f->exe ? f->exe : "/bin/prog"});
	id.cpumode = made_mode(f, true);
	id.pid = f->machine ? f->machine : UINT32_MAX;
	id.tid = 0;
	perfdata_encode_mmap2(b, &id,
			      &(struct perfdata_map){.start = 0xffffffff81000000,
						     .len = 0x1000000,
						     .pgoff = 0xffffffff81000000,
						     .prot = 5,
						     .flags = 2,
						     .filename = "[kernel.kallsyms]_text"});
}

static inline void made_samples(const struct made *f, struct buf *b)
{
	for (unsigned i = 0; i < f->n; i++) {
		const uint64_t ip = i % 2 ? 0xffffffff81000010 : 0x400010;
		const uint64_t chain[] = {i % 2 ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER, ip};
		struct perfdata_id id = {.id = 7,
					 .time = f->first + i * f->step,
					 .cpu = i % 2,
					 .cpumode = made_mode(f, i % 2)};

		id.pid = id.tid = f->pid ? f->pid : 100;
		if (f->kvm)
			id.pid = id.tid = f->machine;
		perfdata_encode_sample(b, &id, ip, 1000, chain, f->flat ? PERFDATA_NO_CHAINS : 2);
	}
	if (f->lost)
		perfdata_encode_lost_samples(b,
					     &(struct perfdata_id){.id = 7,
								   .time = f->first,
								   .cpumode = made_mode(f, false)},
					     f->lost);
}

static inline char *make_file(const char *name, const struct made *f)
{
	static const uint64_t ids[] = {7};
	const struct perfdata_id_entry entry = {7, 0, 0, 0, f->kvm ? 0 : f->machine, 0};
	struct perfdata_event ev = {.name = f->config ? "page-faults" : "cpu-clock",
				    .ids = ids,
				    .nr_ids = 1,
				    .no_chains = f->flat};
	struct perfdata_origin origin = {
		.hostname = f->hostname ? f->hostname : "host1",
		.osrelease = "6.1.0",
		.host = {2, 2, 1024},
		.clock = {.known = !f->no_clock,
			  .has_wall = !f->no_clock && !f->realtime && f->boot != 1,
			  .id = f->realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC,
			  .wall_ns = (f->boot ? f->boot : BOOT) + 5 * SECOND,
			  .clock_ns = 5 * SECOND},
		.host_kernel = true,
	};
	char *path = in_dir(name);
	struct perfdata_writer_config cfg = {.path = path,
					     .force = true,
					     .events = &ev,
					     .nr_events = 1,
					     .ids = &entry,
					     .nr_ids = 1,
					     .origin = &origin};
	struct perfdata_writer *w;
	struct vmprof_err err;
	struct buf b = {0};

	ev.attr.type = PERF_TYPE_SOFTWARE;
	ev.attr.config = f->config;
	CHECK_EQ(perfdata_writer_open(&w, &cfg, &err), 0);
	made_sideband(f, &b);
	made_samples(f, &b);
	CHECK_EQ(perfdata_writer_append(w, &b, &err), 0);
	CHECK_EQ(perfdata_writer_close(w, &err), 0);
	buf_free(&b);
	return path;
}

/* ---------- what came out ---------- */

struct seen_vm {
	char name[64];
	int32_t pid;
	unsigned samples, nobody;
	uint64_t first, last;
	char comm[64], dso[64]; /* of the last sample */
};

struct seen {
	struct session *s;
	struct seen_vm vm[16];
	unsigned n, events;
	uint64_t samples, lost, time;
	bool disorder, aligned;
	char stats[16][1024];
	char inputs[2048]; /* what is said of them, one after the other */
};

static inline int seen_record(void *ctx, const struct perfdata_record *rec)
{
	struct seen *seen = ctx;
	struct location loc;
	struct thread *t;
	struct seen_vm *v;

	seen->disorder |= rec->time < seen->time;
	seen->time = rec->time;
	session_process(seen->s, rec);
	if (rec->type == PERF_RECORD_LOST_SAMPLES)
		seen->lost += rec->lost.lost;
	if (rec->type != PERF_RECORD_SAMPLE)
		return 0;
	t = session_thread(seen->s, rec);
	v = &seen->vm[t->machine->index % 16];
	seen->samples++;
	snprintf(v->name, sizeof(v->name), "%s", t->machine->name);
	v->pid = t->machine->pid;
	v->first = v->samples++ ? v->first : rec->time;
	v->last = rec->time;
	v->nobody += t->pid == -1;
	snprintf(v->comm, sizeof(v->comm), "%s", t->recorded_comm);
	session_resolve(seen->s, t, rec->cpumode, rec->ip, &loc);
	snprintf(v->dso, sizeof(v->dso), "%s", loc.dso ? loc.dso->long_name : "");
	return 0;
}

/* Reads the whole of a merged file; what is wrong with it fails the test. */
static inline struct seen *look(const char *path)
{
	struct seen *seen = keep(xcalloc(1, sizeof(*seen)));
	struct perfdata_reader *r;
	struct vmprof_err err = {0};
	const struct session_mark *marks;

	seen->s = session_new(NULL);
	CHECK_EQ(perfdata_reader_open(&r, path, &err), 0);
	if (err.code) {
		session_free(seen->s);
		return seen;
	}
	CHECK_EQ(perfdata_reader_run(r, seen_record, seen, &err), 0);
	CHECK(!seen->disorder);
	CHECK_EQ(perfdata_reader_get_stats(r)->out_of_order, 0);
	CHECK_EQ(perfdata_reader_get_stats(r)->no_event, 0);
	seen->events = (unsigned)perfdata_reader_nr_evsels(r);
	seen->aligned = session_marks(seen->s, &marks) && strstr(marks[0].json, "\"aligned\":true");
	for (size_t i = 0, n = session_marks(seen->s, &marks); i < n; i++)
		strncat(seen->inputs, marks[i].json,
			sizeof(seen->inputs) - strlen(seen->inputs) - 1);
	seen->n = (unsigned)session_nr_machines(seen->s);
	for (unsigned i = 0; i < seen->n && i < 16; i++) {
		const char *json = session_machine_nth(seen->s, i)->stats_json;

		snprintf(seen->stats[i], sizeof(seen->stats[i]), "%s", json ? json : "");
	}
	perfdata_reader_close(r);
	session_free(seen->s);
	return seen;
}

static inline const struct seen_vm *vm_of(const struct seen *seen, const char *name)
{
	static const struct seen_vm none;

	for (unsigned i = 0; i < 16; i++)
		if (!strcmp(seen->vm[i].name, name))
			return &seen->vm[i];
	return &none;
}

static inline unsigned samples_of(const struct seen *seen, const char *name)
{
	return vm_of(seen, name)->samples;
}

#endif
