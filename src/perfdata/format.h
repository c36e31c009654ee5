// SPDX-License-Identifier: GPL-2.0-only
/*
 * The perf.data file (PERFILE2) as structures. Source: the kernel's
 * tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h and
 * tools/lib/perf/include/perf/event.h. All integers have the byte order of the recording host.
 */
#ifndef VMPROF_PERFDATA_FORMAT_H
#define VMPROF_PERFDATA_FORMAT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#define PERFDATA_MAGIC	   0x32454c4946524550ull /* "PERFILE2", little endian */
#define PERFDATA_ATTR_SIZE 128 /* what we write: perf 6.1 takes 64, 96, 112, 128 and no more */

struct perfdata_section {
	uint64_t offset, size;
};

struct perfdata_file_header {
	uint64_t magic;
	uint64_t size;	    /* of this header: 104 in a file, 16 in a pipe */
	uint64_t attr_size; /* perf_event_attr + one section */
	struct perfdata_section attrs, data, event_types;
	uint64_t features[4]; /* 256 bits */
};

/* Records made by perf's user space, numbered behind the kernel's. */
enum perfdata_user_type {
	PERFDATA_HEADER_ATTR = 64,
	PERFDATA_EVENT_TYPE = 65,
	PERFDATA_TRACING_DATA = 66,
	PERFDATA_BUILD_ID = 67,
	PERFDATA_FINISHED_ROUND = 68,
	PERFDATA_ID_INDEX = 69,
	PERFDATA_AUXTRACE_INFO = 70,
	PERFDATA_AUXTRACE = 71,
	PERFDATA_AUXTRACE_ERROR = 72,
	PERFDATA_THREAD_MAP = 73,
	PERFDATA_CPU_MAP = 74,
	PERFDATA_STAT_CONFIG = 75,
	PERFDATA_STAT = 76,
	PERFDATA_STAT_ROUND = 77,
	PERFDATA_EVENT_UPDATE = 78,
	PERFDATA_TIME_CONV = 79,
	PERFDATA_HEADER_FEATURE = 80,
	PERFDATA_COMPRESSED = 81,
	PERFDATA_FINISHED_INIT = 82,
	PERFDATA_COMPRESSED2 = 83,
	PERFDATA_BPF_METADATA = 84,
};

enum perfdata_feature {
	PERFDATA_FEAT_TRACING_DATA = 1,
	PERFDATA_FEAT_BUILD_ID = 2,
	PERFDATA_FEAT_HOSTNAME = 3,
	PERFDATA_FEAT_OSRELEASE = 4,
	PERFDATA_FEAT_VERSION = 5,
	PERFDATA_FEAT_ARCH = 6,
	PERFDATA_FEAT_NRCPUS = 7,
	PERFDATA_FEAT_CPUDESC = 8,
	PERFDATA_FEAT_CPUID = 9,
	PERFDATA_FEAT_TOTAL_MEM = 10,
	PERFDATA_FEAT_CMDLINE = 11,
	PERFDATA_FEAT_EVENT_DESC = 12,
	PERFDATA_FEAT_CPU_TOPOLOGY = 13,
	PERFDATA_FEAT_NUMA_TOPOLOGY = 14,
	PERFDATA_FEAT_BRANCH_STACK = 15,
	PERFDATA_FEAT_PMU_MAPPINGS = 16,
	PERFDATA_FEAT_GROUP_DESC = 17,
	PERFDATA_FEAT_AUXTRACE = 18,
	PERFDATA_FEAT_STAT = 19,
	PERFDATA_FEAT_CACHE = 20,
	PERFDATA_FEAT_SAMPLE_TIME = 21,
	PERFDATA_FEAT_MEM_TOPOLOGY = 22,
	PERFDATA_FEAT_CLOCKID = 23,
	PERFDATA_FEAT_DIR_FORMAT = 24,
	PERFDATA_FEAT_BPF_PROG_INFO = 25,
	PERFDATA_FEAT_BPF_BTF = 26,
	PERFDATA_FEAT_COMPRESSED = 27,
	PERFDATA_FEAT_CPU_PMU_CAPS = 28,
	PERFDATA_FEAT_CLOCK_DATA = 29,
	PERFDATA_FEAT_HYBRID_TOPOLOGY = 30,
	PERFDATA_FEAT_PMU_CAPS = 31,
};

/* The clock of a file's times. */
struct perfdata_clock {
	bool known;    /* use_clockid: else perf's own, which is the kernel's sched_clock() */
	bool has_wall; /* CLOCK_DATA, and it is of this clock */
	int32_t id;    /* CLOCK_MONOTONIC ..., if known */
	uint64_t res;  /* CLOCKID: its resolution in ns, 0 not said */
	uint64_t wall_ns, clock_ns; /* the time of day and the clock at one moment */
};

/* NRCPUS and TOTAL_MEM; 0 where the file does not say. */
struct perfdata_host {
	uint32_t cpus_avail, cpus_online;
	uint64_t total_mem_kb;
};

/*
 * Private side-band: MMAP2 records of this pid that are not executable, whose name starts with
 * PERFDATA_PRIVATE_PREFIX and goes on with a word, a blank and a JSON object. perf keeps them
 * through report, script and inject and shows nothing of them. docs/man/vmprof.data.5 lists the
 * words: vm {"machine":PID,"name":"web1","uuid":"...","hypervisor":"qemu","accel":"tcg","vcpus":2,
 *           "memory":BYTES,"backend":"tcg","exact_ip":false,"kernel":"6.1.0-54-amd64" or null,
 *           "kernel_why_not":"..."}; once at the start, again when the kernel changes
 *   cgroup {"machine":PID,"pid":N,"path":"/system.slice/x.service"}
 *   stats
 * {"machine":PID,"samples":N,"snapshots":N,"merged":N,"lost":N,"unreadable":N,"torn":N,"no_kernel":N,
 *           "no_process":N,"shared":N,"throttled":N,"filtered":N,"resets":N,
 *           "kernel_end":{"outermost":N,"depth":N,"unreadable":N,"no_rule":N,"bad_frame":N,"torn":N},
 *           "user_end":{the same keys},
 *           "symbols":{"full":N,"dynamic":N,"none":N}, "ended":"sentence" when the VM went away}
 *           once a second and at the end: the last one of a machine holds. merged: ticks that went
 * into another sample's period; lost: ticks in no sample; filtered: of a mode not asked for.
 *   clock, merge, input: see there; written, but for clock, by vmprof merge
 */
#define PERFDATA_PRIVATE_PID	0x7ffffff0
#define PERFDATA_PRIVATE_PREFIX "//vmprof "
#define PERFDATA_PRIVATE_MAX	4000 /* bytes of name, NUL included */

/* A guest command is written as "VM:comm", since perf's histograms know no machine. */
#define PERFDATA_MISC_BUILD_ID_SIZE (1u << 15)

#endif
