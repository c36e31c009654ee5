// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records made by hand for a session, and what it makes of an address.
 */
#ifndef VMPROF_TESTS_UNIT_SESSION_MAKE_H
#define VMPROF_TESTS_UNIT_SESSION_MAKE_H

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/machine.h"
#include "tests/unit/test.h"

enum { WEB = 3000001, DB = 3000002, GK = 4, GU = 5, HU = 2 };

static char dir[] = "/tmp/vmprof-session-XXXXXX";

static inline struct perfdata_record rec(uint32_t type, uint8_t mode, int32_t machine, uint32_t pid,
					 uint32_t tid)
{
	return (struct perfdata_record){
		.type = type,
		.cpumode = mode,
		.machine_pid = machine,
		.pid = pid,
		.tid = tid,
		.vcpu = -1,
	};
}

static inline void map(struct session *s, uint8_t mode, int32_t machine, uint32_t pid,
		       uint64_t start, uint64_t len, uint64_t pgoff, const char *name,
		       const uint8_t *id)
{
	struct perfdata_record r = rec(PERF_RECORD_MMAP2, mode, machine, pid, pid);

	r.mmap.pid = r.mmap.tid = pid;
	r.mmap.start = start;
	r.mmap.len = len;
	r.mmap.pgoff = pgoff;
	r.mmap.filename = name;
	r.mmap.build_id = id;
	r.mmap.build_id_len = id ? 20 : 0;
	session_process(s, &r);
}

static inline void comm(struct session *s, int32_t machine, uint32_t pid, uint32_t tid,
			const char *name, bool exec)
{
	struct perfdata_record r = rec(PERF_RECORD_COMM, machine ? GU : HU, machine, pid, tid);

	r.comm.comm = name;
	r.comm.exec = exec;
	session_process(s, &r);
}

static inline void task(struct session *s, uint32_t type, int32_t machine, uint32_t pid,
			uint32_t tid, uint32_t ppid, uint32_t ptid)
{
	struct perfdata_record r = rec(type, machine ? GU : HU, machine, pid, tid);

	r.task.pid = pid;
	r.task.tid = tid;
	r.task.ppid = ppid;
	r.task.ptid = ptid;
	session_process(s, &r);
}

static inline void private(struct session *s, const char *word, const char *json)
{
	struct perfdata_record r =
		rec(PERF_RECORD_MMAP2, HU, 0, PERFDATA_PRIVATE_PID, PERFDATA_PRIVATE_PID);

	r.is_private = true;
	r.private.word = word;
	r.private.json = json;
	session_process(s, &r);
}

static inline struct thread *thread_at(struct session *s, int32_t machine, uint32_t pid,
				       uint32_t tid)
{
	struct perfdata_record r = rec(PERF_RECORD_SAMPLE, machine ? GU : HU, machine, pid, tid);

	return session_thread(s, &r);
}

static inline struct location resolve(struct session *s, int32_t machine, uint32_t pid,
				      uint8_t mode, uint64_t ip)
{
	struct location loc;

	session_resolve(s, thread_at(s, machine, pid, pid), mode, ip, &loc);
	return loc;
}

static inline const char *sym_at(struct session *s, int32_t machine, uint32_t pid, uint8_t mode,
				 uint64_t ip)
{
	struct location loc = resolve(s, machine, pid, mode, ip);

	return loc.sym ? session_symbol_name(s, loc.sym) : NULL;
}

static inline const char *dso_at(struct session *s, int32_t machine, uint32_t pid, uint8_t mode,
				 uint64_t ip)
{
	struct location loc = resolve(s, machine, pid, mode, ip);

	return loc.dso ? loc.dso->short_name : NULL;
}

static inline const uint8_t *id_of(uint8_t n)
{
	static uint8_t ids[256][20];

	memset(ids[n], n, 20);
	return ids[n];
}

static inline void put(const char *store, const char *name, uint8_t id, const char *sym,
		       bool partial)
{
	struct symtab *t = symtab_new();
	struct vmprof_err err;

	symtab_add(t, 0x1000, 0x1100, sym, 'g');
	symtab_finish(t);
	t->partial = partial;
	CHECK_EQ(elfstore_put(store, name, id_of(id), 20, t, &err), 0);
	symtab_free(t);
}

static inline char *path_of(const char *name)
{
	static char path[64][512];
	static unsigned n;

	snprintf(path[n % 64], sizeof(path[0]), "%s/%s", dir, name);
	return path[n++ % 64];
}

static inline struct session *open_session(struct symbol_paths *p)
{
	struct symbol_paths none = {0};

	p = p ? p : &none;
	if (!p->store)
		p->store = path_of("store");
	if (!p->buildid_dir)
		p->buildid_dir = path_of("no-such-dir");
	return session_new(p);
}

#endif
