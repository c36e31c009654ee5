// SPDX-License-Identifier: GPL-2.0-only
/*
 * A made-up recording of two VMs, written with the project's own writer: web1 (machine 3000001,
 * kernel "alpha", process 100 nginx) and db1 (3000002, kernel "beta", process 100 postgres). In
 * each round each VM has three samples: kernel below user, user, and a module's.
 */
#ifndef VMPROF_TESTS_UNIT_PERFDATA_SCENARIO_H
#define VMPROF_TESTS_UNIT_PERFDATA_SCENARIO_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata/writer.h"
#include "util/xalloc.h"

struct scenario_vm {
	const char *name, *kernel_prefix, *comm, *exe;
	uint32_t machine;
	uint64_t first_id, kernel, module;
	uint8_t bid; /* build ids are 20 bytes of bid + 0 kernel, 1 module, 2 exe, 3 libc */
};

static const struct scenario_vm scenario_vms[] = {
	{"web1", "alpha", "web1:nginx", "/usr/sbin/nginx", 3000001, 101, 0xffffffff81000000,
	 0xffffffffc0000000, 0xa0},
	{"db1", "beta", "db1:postgres", "/usr/bin/postgres", 3000002, 201, 0xffffffff9a000000,
	 0xffffffffc0200000, 0xb0},
};

#define SCENARIO_VMS	     2
#define SCENARIO_VCPUS	     2
#define SCENARIO_HOST_ID     1
#define SCENARIO_KERNEL_SIZE 0x400000
#define SCENARIO_MODULE_SIZE 0x4000
#define SCENARIO_EXE	     0x555555554000
#define SCENARIO_LIBC	     0x7ffff7a00000
#define SCENARIO_PID	     100
#define SCENARIO_START	     1000000000ull /* first samples are later than this */
/* Samples, and rounds, that scenario_rounds(w, n) writes. */
#define SCENARIO_PER_ROUND 6

static inline struct perfdata_id scenario_id(const struct scenario_vm *vm, uint64_t time,
					     unsigned vcpu, uint16_t cpumode)
{
	return (struct perfdata_id){.id = vm->first_id + vcpu,
				    .time = time,
				    .pid = SCENARIO_PID,
				    .tid = SCENARIO_PID,
				    .cpu = vcpu,
				    .cpumode = cpumode};
}

/* The backend of the first one knows blocks only. */
static inline void scenario_vm_json(const struct scenario_vm *vm, char *json, size_t size)
{
	snprintf(json, size, "{\"machine\":%u,\"name\":\"%s\",\"exact_ip\":%s}", vm->machine,
		 vm->name, vm == &scenario_vms[0] ? "false" : "true");
}

static inline void scenario_bid(const struct scenario_vm *vm, unsigned what, uint8_t id[20])
{
	memset(id, vm->bid + (int)what, 20);
}

static inline void scenario_map(struct perfdata_writer *w, struct buf *b,
				const struct scenario_vm *vm, unsigned what,
				struct perfdata_map map, uint16_t mode)
{
	struct perfdata_id id = scenario_id(vm, 3, 0, mode);
	uint8_t bid[20];

	if (mode == PERF_RECORD_MISC_GUEST_KERNEL)
		id.pid = id.tid = vm->machine;
	scenario_bid(vm, what, bid);
	map.prot = 5;
	map.flags = 2;
	map.build_id = bid;
	map.build_id_len = 20;
	perfdata_encode_mmap2(b, &id, &map);
	perfdata_writer_add_build_id(
		w, &(struct perfdata_build_id){(int32_t)vm->machine, mode, bid, 20, map.filename});
}

static inline int scenario_vm_start(struct perfdata_writer *w, const struct scenario_vm *vm,
				    struct vmprof_err *err)
{
	const uint16_t gk = PERF_RECORD_MISC_GUEST_KERNEL, gu = PERF_RECORD_MISC_GUEST_USER;
	struct perfdata_id id = scenario_id(vm, 2, 0, gu),
			   host = {.id = SCENARIO_HOST_ID, .time = 1};
	char name[64], json[128];
	struct buf b = {0};
	int r;

	scenario_vm_json(vm, json, sizeof(json));
	perfdata_encode_private(&b, &host, "vm", json);
	snprintf(name, sizeof(name), "/boot/[%s.kernel]", vm->name);
	scenario_map(w, &b, vm, 0,
		     (struct perfdata_map){
			     .start = vm->kernel, .len = SCENARIO_KERNEL_SIZE, .filename = name},
		     gk);
	scenario_map(w, &b, vm, 1,
		     (struct perfdata_map){.start = vm->module,
					   .len = SCENARIO_MODULE_SIZE,
					   .filename = "/lib/modules/6.1.0/virtio_net.ko"},
		     gk);
	perfdata_encode_task(&b, PERF_RECORD_FORK, &id, 1, 1);
	perfdata_encode_comm(&b, &id, vm->comm, true);
	scenario_map(w, &b, vm, 2,
		     (struct perfdata_map){.start = SCENARIO_EXE,
					   .len = 0x10000,
					   .pgoff = 0x1000,
					   .filename = vm->exe},
		     gu);
	scenario_map(w, &b, vm, 3,
		     (struct perfdata_map){.start = SCENARIO_LIBC,
					   .len = 0x10000,
					   .pgoff = 0x1000,
					   .filename = "/lib/libc.so.6"},
		     gu);
	r = perfdata_writer_append(w, &b, err);
	buf_free(&b);
	return r;
}

static inline void scenario_samples(struct buf *b, const struct scenario_vm *vm, uint64_t time,
				    unsigned vcpu)
{
	const uint64_t K = PERF_CONTEXT_KERNEL, U = PERF_CONTEXT_USER, k = vm->kernel;
	const uint64_t kernel[] = {K,
				   k + 0x2010,
				   k + 0x3010,
				   U,
				   SCENARIO_LIBC + 0x10,
				   SCENARIO_EXE + 0x110,
				   SCENARIO_EXE + 0x10};
	const uint64_t user[] = {U, SCENARIO_EXE + 0x110, SCENARIO_EXE + 0x10};
	const uint64_t module[] = {K, vm->module + 0x10, k + 0x3010};
	struct perfdata_id id = scenario_id(vm, time, vcpu, PERF_RECORD_MISC_GUEST_KERNEL);

	perfdata_encode_sample(b, &id, kernel[1], 1000000, kernel, 7);
	id.time += 10;
	perfdata_encode_sample(b, &id, module[1], 1000000, module, 3);
	id.time += 10;
	id.cpumode = PERF_RECORD_MISC_GUEST_USER;
	perfdata_encode_sample(b, &id, user[1], 1000000, user, 3);
}

static inline int scenario_round(struct perfdata_writer *w, unsigned n, struct vmprof_err *err)
{
	struct buf b = {0};
	int r;

	for (unsigned i = 0; i < SCENARIO_VMS; i++)
		scenario_samples(&b, &scenario_vms[i], SCENARIO_START + (n + 1) * 1000000ull + i,
				 n % SCENARIO_VCPUS);
	r = perfdata_writer_append(w, &b, err);
	buf_free(&b);
	return r ? r : perfdata_writer_flush(w, err);
}

/* Opens @path and writes what comes before the first sample. */
static inline int scenario_open(struct perfdata_writer **w, const char *path,
				struct vmprof_err *err)
{
	static const uint64_t ids[] = {1, 101, 102, 201, 202};
	static char *const argv[] = {"vmprof", "record", "--all-vms", NULL};
	static const struct perfdata_id_entry entries[] = {
		{1, 0, 0, 4242, 0, 0},	       {101, 1, 0, 4243, 3000001, 0},
		{102, 2, 1, 4244, 3000001, 1}, {201, 3, 0, 4343, 3000002, 0},
		{202, 4, 1, 4344, 3000002, 1},
	};
	struct perfdata_event ev = {.name = "cpu-clock", .ids = ids, .nr_ids = 5};
	struct perfdata_writer_config cfg = {.path = path,
					     .events = &ev,
					     .nr_events = 1,
					     .ids = entries,
					     .nr_ids = 5,
					     .argv = argv};
	int r;

	ev.attr.type = PERF_TYPE_SOFTWARE;
	ev.attr.config = PERF_COUNT_SW_CPU_CLOCK;
	ev.attr.sample_period = 1000000;
	r = perfdata_writer_open(w, &cfg, err);
	for (unsigned i = 0; i < SCENARIO_VMS && !r; i++)
		r = scenario_vm_start(*w, &scenario_vms[i], err);
	return r;
}

static inline int scenario_write(const char *path, unsigned rounds, struct vmprof_err *err)
{
	struct perfdata_writer *w;
	int r = scenario_open(&w, path, err);

	for (unsigned n = 0; n < rounds && !r; n++)
		r = scenario_round(w, n, err);
	if (r)
		return r;
	return perfdata_writer_close(w, err);
}

#endif
