// SPDX-License-Identifier: GPL-2.0-only
/*
 * The header as "perf report --header" prints it, line by line the same, but for control characters
 * in what came from the file: these are escaped.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "perfdata/reader_impl.h"
#include "util/text.h"

#define NS_PER_SEC UINT64_C(1000000000)

static void text(FILE *f, const char *before, const char *s, const char *after)
{
	fputs(before, f);
	escape_fputs(s, f);
	fputs(after, f);
}

/* ------------------------------------------------------------------ single features */

static void print_hostname(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	text(f, "# hostname : ", feature_string(c), "\n");
}

static void print_osrelease(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	text(f, "# os release : ", feature_string(c), "\n");
}

static void print_version(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	text(f, "# perf version : ", feature_string(c), "\n");
}

static void print_arch(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	text(f, "# arch : ", feature_string(c), "\n");
}

static void print_cpudesc(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	text(f, "# cpudesc : ", feature_string(c), "\n");
}

static void print_cpuid(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	text(f, "# cpuid : ", feature_string(c), "\n");
}

static void print_nrcpus(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t avail = feature_u32(c), online = feature_u32(c);

	fprintf(f, "# nrcpus online : %u\n# nrcpus avail : %u\n", online, avail);
}

static void print_total_mem(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	fprintf(f, "# total memory : %" PRIu64 " kB\n", feature_u64(c));
}

static void print_cmdline(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t n = feature_u32(c);

	fputs("# cmdline : ", f);
	for (uint32_t i = 0; i < n && !c->bad; i++) {
		const char *arg = feature_string(c), *quote;
		char part[4096];

		for (; (quote = strchr(arg, '\'')); arg = quote + 1) {
			snprintf(part, sizeof(part), "%.*s", (int)(quote - arg), arg);
			text(f, "", part, "\\'");
		}
		text(f, "", arg, " ");
	}
	fputc('\n', f);
}

static void print_event_desc(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	struct feature_events it;
	struct feature_event e;

	if (!feature_open_events(r, &it)) {
		fputs("# event desc: not available or unable to read\n", f);
		return;
	}
	while (feature_next_event(&it, &e)) {
		struct feature_cursor ids = {
			.p = e.ids, .end = e.ids + (size_t)e.nr_ids * 8, .swap = c->swap};

		text(f, "# event : name = ", e.name, ", ");
		for (uint32_t i = 0; i < e.nr_ids; i++)
			fprintf(f, "%s %" PRIu64, i ? "," : ", id = {", feature_u64(&ids));
		if (e.nr_ids)
			fputs(" }", f);
		attr_print(&e.attr, f);
		fputc('\n', f);
	}
}

static void print_strings(struct feature_cursor *c, const char *before, FILE *f)
{
	uint32_t n = feature_u32(c);

	for (uint32_t i = 0; i < n && !c->bad; i++) {
		const char *s = feature_string(c);

		if (!c->bad)
			text(f, before, s, "\n");
	}
}

static void skip_strings(struct feature_cursor *c)
{
	uint32_t n = feature_u32(c);

	for (uint32_t i = 0; i < n && !c->bad; i++)
		feature_string(c);
}

static uint32_t cpus_avail(const struct perfdata_reader *r)
{
	struct feature_cursor c;

	return feature_open(r, PERFDATA_FEAT_NRCPUS, &c) ? feature_u32(&c) : 0;
}

/*
 * Sockets, threads, a core and a socket for each CPU, then (newer) dies and a die for each CPU.
 * Dies are printed before threads.
 */
static void print_cpu_topology(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t n = cpus_avail(r);
	struct feature_cursor threads, cores, dies;
	bool has_dies;

	print_strings(c, "# sibling sockets : ", f);
	threads = *c;
	skip_strings(c);
	cores = *c;
	feature_bytes(c, (size_t)n * 8);
	dies = *c;
	has_dies = !c->bad && dies.p < dies.end && feature_u32(&dies);
	if (has_dies) {
		print_strings(c, "# sibling dies    : ", f);
		dies = *c;
	}
	print_strings(&threads, "# sibling threads : ", f);
	if (!n || cores.bad || (size_t)(cores.end - cores.p) < (size_t)n * 8) {
		fprintf(f, "# Core ID%s and Socket ID information is not available\n",
			has_dies ? ", Die ID" : "");
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		int32_t core = (int32_t)feature_u32(&cores), socket = (int32_t)feature_u32(&cores);

		fprintf(f, "# CPU %u: Core ID %d, ", i, core);
		if (has_dies)
			fprintf(f, "Die ID %d, ", (int32_t)feature_u32(&dies));
		fprintf(f, "Socket ID %d\n", socket);
	}
}

static void print_numa_topology(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t n = feature_u32(c);

	for (uint32_t i = 0; i < n && !c->bad; i++) {
		uint32_t node = feature_u32(c);
		uint64_t total = feature_u64(c), free_kb = feature_u64(c);
		const char *cpus = feature_string(c);

		if (c->bad)
			break;
		fprintf(f,
			"# node%u meminfo  : total = %" PRIu64 " kB, free = %" PRIu64 " kB\n"
			"# node%u cpu list : ",
			node, total, free_kb, node);
		text(f, "", cpus, "\n");
	}
}

static void print_branch_stack(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	fputs("# contains samples with branch stack\n", f);
}

static void print_auxtrace(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	fputs("# contains AUX area data (e.g. instruction trace)\n", f);
}

static void print_stat(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	fputs("# contains stat data\n", f);
}

static void print_pmu_mappings(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t n = feature_u32(c);

	if (!n)
		fputs("# pmu mappings: not available", f);
	for (uint32_t i = 0; i < n && !c->bad; i++) {
		uint32_t type = feature_u32(c);
		const char *name = feature_string(c);

		text(f, i ? ", " : "# pmu mappings: ", name, "");
		fprintf(f, " = %" PRIu32, type);
	}
	fputc('\n', f);
}

static void print_group(const struct perfdata_reader *r, const char *name, uint32_t leader,
			uint32_t members, FILE *f)
{
	text(f, "# group: ", strcmp(name, "{anon_group}") ? name : "", "{");
	for (uint32_t i = 0; i < members && leader + (uint64_t)i < r->nr_evsels; i++)
		text(f, i ? "," : "", r->evsels[leader + i]->pub.name, "");
	fputs("}\n", f);
}

static void print_group_desc(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t n = feature_u32(c);

	for (uint32_t i = 0; i < n && !c->bad; i++) {
		const char *name = feature_string(c);
		uint32_t leader = feature_u32(c), members = feature_u32(c);

		if (!c->bad && members > 1 && leader < r->nr_evsels)
			print_group(r, name, leader, members, f);
	}
}

static void print_cache(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t version = feature_u32(c), n = feature_u32(c);

	fputs("# CPU cache info:\n", f);
	for (uint32_t i = 0; version == 1 && i < n; i++) {
		char type[128], size[128];
		uint32_t level = feature_u32(c);
		const char *map;

		feature_bytes(c, 12); /* line size, sets, ways */
		escape_str(type, sizeof(type), feature_string(c));
		escape_str(size, sizeof(size), feature_string(c));
		map = feature_string(c);
		if (c->bad)
			break;
		fprintf(f, "#  L%d %-15s %8s [", (int)level, type, size);
		text(f, "", map, "]\n");
	}
}

static void print_sample_time(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint64_t first = feature_u64(c), last = feature_u64(c);

	fprintf(f, "# time of first sample : %" PRIu64 ".%06" PRIu64 "\n", first / NS_PER_SEC,
		first % NS_PER_SEC / 1000);
	fprintf(f, "# time of last sample : %" PRIu64 ".%06" PRIu64 "\n", last / NS_PER_SEC,
		last % NS_PER_SEC / 1000);
	fprintf(f, "# sample duration : %10.3f ms\n", (double)(last - first) / 1e6);
}

/* perf goes on to the next unit only from two of it. */
static void print_unit(FILE *f, uint64_t n)
{
	static const char unit[] = "BKMG";
	int i = 0;

	for (; n / 1024 > 1 && i < 3; i++)
		n /= 1024;
	fprintf(f, "%" PRIu64 "%c", n, unit[i]);
}

struct bitmap {
	const uint8_t *words;
	uint64_t bits;
	bool swap;
};

static bool bit_at(const struct bitmap *m, uint64_t i)
{
	uint64_t w;

	memcpy(&w, m->words + i / 64 * 8, 8);
	if (m->swap)
		w = __builtin_bswap64(w);
	return w >> i % 64 & 1;
}

/* "0-23,32-199", which perf cuts after 99 characters. */
static void print_ranges(FILE *f, const struct bitmap *m)
{
	char out[100] = "";
	size_t n = 0;

	for (uint64_t i = 0, from; i < m->bits && n < sizeof(out) - 1; i++) {
		if (!bit_at(m, i))
			continue;
		for (from = i; i + 1 < m->bits && bit_at(m, i + 1);)
			i++;
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%" PRIu64, n ? "," : "", from);
		if (i > from && n < sizeof(out))
			n += (size_t)snprintf(out + n, sizeof(out) - n, "-%" PRIu64, i);
	}
	fputs(out, f);
}

static void print_mem_topology(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint64_t version = feature_u64(c), block = feature_u64(c), n = feature_u64(c);

	if (version != 1 || c->bad)
		block = n = 0;
	fprintf(f, "# memory nodes (nr %d, block size 0x%" PRIx64 "):\n", (int)n, block);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t node = feature_u64(c), set = 0;
		struct bitmap m = {.swap = c->swap};

		feature_u64(c); /* size */
		m.bits = feature_u64(c);
		if (c->bad || m.bits > (uint64_t)(c->end - c->p) * 8)
			break;
		m.words = feature_bytes(c, (size_t)((m.bits + 63) / 64 * 8));
		if (c->bad)
			break;
		for (uint64_t k = 0; k < m.bits; k++)
			set += bit_at(&m, k);
		fprintf(f, "#  %3" PRIu64 " [", node);
		print_unit(f, block * set);
		fputs("]: ", f);
		print_ranges(f, &m);
		fputc('\n', f);
	}
}

/* perf takes the resolution in nanoseconds for a frequency. The line is perf's. */
static void print_clockid(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	fprintf(f, "# clockid frequency: %" PRIu64 " MHz\n", feature_u64(c) * 1000);
}

static const char *clock_name(uint32_t id)
{
	static const struct {
		uint32_t id;
		const char *name;
	} clocks[] = {
		{CLOCK_MONOTONIC, "monotonic"},
		{CLOCK_MONOTONIC_RAW, "monotonic_raw"},
		{CLOCK_REALTIME, "realtime"},
		{CLOCK_BOOTTIME, "boottime"},
		{CLOCK_TAI, "tai"},
	};

	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++)
		if (clocks[i].id == id)
			return clocks[i].name;
	return "(not found)";
}

static void print_clock_data(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t version = feature_u32(c), id = feature_u32(c);
	uint64_t tod = feature_u64(c), ref = feature_u64(c);
	time_t sec = (time_t)(tod / NS_PER_SEC);
	char date[64] = "<error>";
	struct tm tm;

	if (version != 1 || c->bad) {
		fputs("# reference time disabled\n", f);
		return;
	}
	if (localtime_r(&sec, &tm)) {
		size_t n = strftime(date, sizeof(date), "%F %T", &tm);

		snprintf(date + n, sizeof(date) - n, ".%06d", (int)(tod % NS_PER_SEC / 1000));
	}
	fprintf(f, "# clockid: %s (%u)\n", clock_name(id), id);
	fprintf(f,
		"# reference time: %s = %" PRIu64 ".%06" PRIu64 " (TOD) = %" PRIu64 ".%09" PRIu64
		" (%s)\n",
		date, tod / NS_PER_SEC, tod % NS_PER_SEC / 1000, ref / NS_PER_SEC, ref % NS_PER_SEC,
		clock_name(id));
}

static void print_dir_format(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	fprintf(f, "# directory data version : %" PRIu64 "\n", feature_u64(c));
}

static void print_compressed(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t type, level, ratio;

	feature_u32(c); /* version */
	type = feature_u32(c);
	level = feature_u32(c);
	ratio = feature_u32(c);
	fprintf(f, "# compressed : %s, level = %d, ratio = %d\n", type == 1 ? "Zstd" : "Unknown",
		(int)level, (int)ratio);
}

/* Pairs of name and value, then, in PMU_CAPS, the PMU's name. */
static void print_caps(struct feature_cursor *c, const char *pmu, FILE *f)
{
	struct feature_cursor pairs = *c;
	uint32_t n = feature_u32(c);

	for (uint32_t i = 0; i < n && !c->bad; i++) {
		feature_string(c);
		feature_string(c);
	}
	if (!pmu)
		pmu = feature_string(c);
	if (c->bad)
		return;
	text(f, "# ", pmu, n ? " pmu capabilities: " : " pmu capabilities: not available");
	feature_u32(&pairs);
	for (uint32_t i = 0; i < n; i++) {
		text(f, i ? ", " : "", feature_string(&pairs), "=");
		text(f, "", feature_string(&pairs), "");
	}
	fputc('\n', f);
}

static void print_cpu_pmu_caps(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	print_caps(c, "cpu", f);
}

static void print_pmu_caps(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t n = feature_u32(c);

	for (uint32_t i = 0; i < n && !c->bad; i++)
		print_caps(c, NULL, f);
}

static void print_hybrid(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t n = feature_u32(c);

	fputs("# hybrid cpu system:\n", f);
	for (uint32_t i = 0; i < n && !c->bad; i++) {
		const char *pmu = feature_string(c), *cpus = feature_string(c);

		if (c->bad)
			break;
		text(f, "# ", pmu, " cpu list : ");
		text(f, "", cpus, "\n");
	}
}

/* ------------------------------------------------------------------ all of them */

#define FEATURE(name, print, full_only) [PERFDATA_FEAT_##name] = {#name, print, full_only}
static const struct {
	const char *name;
	void (*print)(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f);
	bool full_only; /* long: perf prints it with -I only */
} features[] = {
	FEATURE(TRACING_DATA, NULL, false),
	FEATURE(BUILD_ID, NULL, false),
	FEATURE(HOSTNAME, print_hostname, false),
	FEATURE(OSRELEASE, print_osrelease, false),
	FEATURE(VERSION, print_version, false),
	FEATURE(ARCH, print_arch, false),
	FEATURE(NRCPUS, print_nrcpus, false),
	FEATURE(CPUDESC, print_cpudesc, false),
	FEATURE(CPUID, print_cpuid, false),
	FEATURE(TOTAL_MEM, print_total_mem, false),
	FEATURE(CMDLINE, print_cmdline, false),
	FEATURE(EVENT_DESC, print_event_desc, false),
	FEATURE(CPU_TOPOLOGY, print_cpu_topology, true),
	FEATURE(NUMA_TOPOLOGY, print_numa_topology, true),
	FEATURE(BRANCH_STACK, print_branch_stack, false),
	FEATURE(PMU_MAPPINGS, print_pmu_mappings, false),
	FEATURE(GROUP_DESC, print_group_desc, false),
	FEATURE(AUXTRACE, print_auxtrace, false),
	FEATURE(STAT, print_stat, false),
	FEATURE(CACHE, print_cache, true),
	FEATURE(SAMPLE_TIME, print_sample_time, false),
	FEATURE(MEM_TOPOLOGY, print_mem_topology, true),
	FEATURE(CLOCKID, print_clockid, false),
	FEATURE(DIR_FORMAT, print_dir_format, false),
	FEATURE(BPF_PROG_INFO, feature_print_bpf_prog_info, false),
	FEATURE(BPF_BTF, feature_print_bpf_btf, false),
	FEATURE(COMPRESSED, print_compressed, false),
	FEATURE(CPU_PMU_CAPS, print_cpu_pmu_caps, false),
	FEATURE(CLOCK_DATA, print_clock_data, false),
	FEATURE(HYBRID_TOPOLOGY, print_hybrid, true),
	FEATURE(PMU_CAPS, print_pmu_caps, false),
};

#define NR_PRINTED (sizeof(features) / sizeof(*features))

static void print_one(const struct perfdata_reader *r, unsigned bit, bool full, FILE *f)
{
	struct feature_cursor c;

	if (!features[bit].print)
		return;
	if (features[bit].full_only && !full) {
		fprintf(f, "# %s info available, use -I to display\n", features[bit].name);
		return;
	}
	/* some are there by their bit alone */
	feature_open(r, bit, &c);
	features[bit].print(r, &c, f);
}

void perfdata_reader_print_header(const struct perfdata_reader *r, FILE *f, bool full)
{
	time_t captured = (time_t)r->mtime;
	char date[64] = "\n";

	ctime_r(&captured, date);
	fprintf(f, "# ========\n# captured on    : %s# header version : 1\n", date);
	fprintf(f, "# data offset    : %" PRIu64 "\n", r->header.data.offset);
	fprintf(f, "# data size      : %" PRIu64 "\n", r->header.data.size);
	fprintf(f, "# feat offset    : %" PRIu64 "\n", r->header.data.offset + r->header.data.size);
	/* perf prints a pipe's features as it meets them, behind the frame */
	if (r->pipe)
		fputs("# ========\n#\n", f);
	for (unsigned bit = 1; bit < NR_PRINTED; bit++)
		if (r->features[bit].present)
			print_one(r, bit, full, f);
	if (r->pipe)
		return;
	fputs("# missing features: ", f);
	for (unsigned bit = 1; bit < NR_PRINTED; bit++)
		if (!r->features[bit].present)
			fprintf(f, "%s ", features[bit].name);
	fputs("\n# ========\n#\n", f);
}
