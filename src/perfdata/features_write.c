// SPDX-License-Identifier: GPL-2.0-only
/* The feature sections of a file, or bodies of HEADER_FEATURE records of a pipe. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "perfdata/writer_impl.h"

#define STRING_ALIGN	   64
#define CLOCK_DATA_VERSION 1

static void string(struct buf *b, const char *s)
{
	size_t n = strlen(s);
	size_t padded = (n + STRING_ALIGN) / STRING_ALIGN * STRING_ALIGN;

	buf_u32(b, (uint32_t)padded);
	buf_add(b, s, n);
	buf_zero(b, padded - n);
}

/* What the origin says of it, or, of a file that is recorded here, what @here says. */
static void say(const struct perfdata_writer *w, struct buf *b, const char *origin,
		const char *here)
{
	const char *s = w->foreign ? origin : here;

	if (s)
		string(b, s);
}

static void hostname(const struct perfdata_writer *w, struct buf *b)
{
	struct utsname u;

	say(w, b, w->origin.hostname, uname(&u) ? NULL : u.nodename);
}

static void osrelease(const struct perfdata_writer *w, struct buf *b)
{
	struct utsname u;

	say(w, b, w->origin.osrelease, uname(&u) ? NULL : u.release);
}

static void arch(const struct perfdata_writer *w, struct buf *b)
{
	struct utsname u;

	say(w, b, w->origin.arch, uname(&u) ? NULL : u.machine);
}

static void version(const struct perfdata_writer *w, struct buf *b)
{
	string(b, "vmprof " VMPROF_VERSION);
}

static void nrcpus(const struct perfdata_writer *w, struct buf *b)
{
	long avail = w->foreign ? w->origin.host.cpus_avail : sysconf(_SC_NPROCESSORS_CONF);
	long online = w->foreign ? w->origin.host.cpus_online : sysconf(_SC_NPROCESSORS_ONLN);

	if (avail > 0 && online > 0) {
		buf_u32(b, (uint32_t)avail);
		buf_u32(b, (uint32_t)online);
	}
}

/* The value of the first line "KEY...: value" of a file in /proc, with single blanks. */
static bool proc_value(const char *path, const char *key, char *out, size_t size)
{
	FILE *f = fopen(path, "re");
	char line[512];
	size_t n = 0;
	const char *s = NULL;

	while (f && !s && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			s = strchr(line, ':');
	if (f)
		fclose(f);
	if (!s)
		return false;
	for (s++; *s && n + 1 < size; s++)
		if (!isspace((unsigned char)*s))
			out[n++] = *s;
		else if (n && out[n - 1] != ' ')
			out[n++] = ' ';
	while (n && out[n - 1] == ' ')
		n--;
	out[n] = 0;
	return n > 0;
}

static void cpudesc(const struct perfdata_writer *w, struct buf *b)
{
	char value[256];

	/* arm64 has no model name there */
	if (w->foreign)
		say(w, b, w->origin.cpudesc, NULL);
	else if (proc_value("/proc/cpuinfo", "model name", value, sizeof(value)) ||
		 proc_value("/proc/cpuinfo", "CPU implementer", value, sizeof(value)))
		string(b, value);
}

static void total_mem(const struct perfdata_writer *w, struct buf *b)
{
	char value[64];

	if (w->foreign && w->origin.host.total_mem_kb)
		buf_u64(b, w->origin.host.total_mem_kb);
	else if (!w->foreign && proc_value("/proc/meminfo", "MemTotal", value, sizeof(value)))
		buf_u64(b, strtoull(value, NULL, 10));
}

static void cmdline(const struct perfdata_writer *w, struct buf *b)
{
	uint32_t n = 0;

	while (w->argv && w->argv[n])
		n++;
	if (!n)
		return;
	buf_u32(b, n);
	for (uint32_t i = 0; i < n; i++)
		string(b, w->argv[i]);
}

static void event_desc(const struct perfdata_writer *w, struct buf *b)
{
	buf_u32(b, (uint32_t)w->nr_events);
	buf_u32(b, PERFDATA_ATTR_SIZE);
	for (size_t i = 0; i < w->nr_events; i++) {
		const struct writer_event *e = &w->events[i];

		buf_add(b, &e->attr, PERFDATA_ATTR_SIZE);
		buf_u32(b, (uint32_t)e->nr_ids);
		string(b, e->name);
		buf_add(b, e->ids, e->nr_ids * sizeof(*e->ids));
	}
}

static void build_id(const struct perfdata_writer *w, struct buf *b)
{
	/* Of a pipe they are records of their own. */
	if (!w->pipe)
		buf_add(b, w->build_ids.data, w->build_ids.len);
}

static void group_desc(const struct perfdata_writer *w, struct buf *b)
{
	uint32_t n = 0;

	for (size_t i = 0; i < w->nr_events; i++)
		n += w->events[i].group_size > 1;
	if (!n)
		return;
	buf_u32(b, n);
	for (size_t i = 0; i < w->nr_events; i++) {
		const struct writer_event *e = &w->events[i];

		if (e->group_size < 2)
			continue;
		string(b, e->group_name ? e->group_name : "{anon_group}");
		buf_u32(b, (uint32_t)i);
		buf_u32(b, e->group_size);
	}
}

static void raw(const struct perfdata_writer *w, struct buf *b, enum perfdata_feature feature)
{
	for (size_t i = 0; i < w->origin.nr_raw; i++)
		if (w->origin.raw[i].feature == feature)
			buf_add(b, w->origin.raw[i].data, w->origin.raw[i].size);
}

static void sample_time(const struct perfdata_writer *w, struct buf *b)
{
	if (w->last_time) {
		buf_u64(b, w->first_time);
		buf_u64(b, w->last_time);
	}
}

static void clockid(const struct perfdata_writer *w, struct buf *b)
{
	if (w->origin.clock.known && w->origin.clock.res)
		buf_u64(b, w->origin.clock.res);
}

static void clock_data(const struct perfdata_writer *w, struct buf *b)
{
	if (!w->origin.clock.has_wall)
		return;
	buf_u32(b, CLOCK_DATA_VERSION);
	buf_u32(b, (uint32_t)w->origin.clock.id);
	buf_u64(b, w->origin.clock.wall_ns);
	buf_u64(b, w->origin.clock.clock_ns);
}

/* Of these there is what we know of; of others what the origin has. An empty one is left out. */
static void (*const features[WRITER_FEATURES_MAX])(const struct perfdata_writer *w,
						   struct buf *b) = {
	[PERFDATA_FEAT_BUILD_ID] = build_id,
	[PERFDATA_FEAT_HOSTNAME] = hostname,
	[PERFDATA_FEAT_OSRELEASE] = osrelease,
	[PERFDATA_FEAT_VERSION] = version,
	[PERFDATA_FEAT_ARCH] = arch,
	[PERFDATA_FEAT_NRCPUS] = nrcpus,
	[PERFDATA_FEAT_CPUDESC] = cpudesc,
	[PERFDATA_FEAT_TOTAL_MEM] = total_mem,
	[PERFDATA_FEAT_CMDLINE] = cmdline,
	[PERFDATA_FEAT_EVENT_DESC] = event_desc,
	[PERFDATA_FEAT_GROUP_DESC] = group_desc,
	[PERFDATA_FEAT_SAMPLE_TIME] = sample_time,
	[PERFDATA_FEAT_CLOCKID] = clockid,
	[PERFDATA_FEAT_CLOCK_DATA] = clock_data,
};

size_t writer_features(const struct perfdata_writer *w, struct buf *body,
		       struct writer_section sections[WRITER_FEATURES_MAX])
{
	size_t n = 0;

	for (unsigned bit = 0; bit < WRITER_FEATURES_MAX; bit++) {
		size_t before = body->len;

		if (features[bit])
			features[bit](w, body);
		else
			raw(w, body, (enum perfdata_feature)bit);
		if (body->len > before)
			sections[n++] = (struct writer_section){(enum perfdata_feature)bit,
								body->len - before};
	}
	return n;
}
