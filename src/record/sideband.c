// SPDX-License-Identifier: GPL-2.0-only
#include "record/sideband.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <json-c/json.h>

#include "perfdata/encode.h"
#include "symbolize/perfmap.h"
#include "util/text.h"
#include "util/xalloc.h"

void sideband_free(struct sideband *sb)
{
	hashmap_free(&sb->pids);
	for (size_t i = 0; i < sb->nr_build_ids; i++)
		free(sb->build_ids[i].path);
	free(sb->build_ids);
}

static void remember_build_id(struct sideband *sb, enum sample_mode mode, const char *path,
			      const uint8_t *id, uint8_t len)
{
	struct sideband_build_id *b;

	sb->build_ids = xgrow(sb->build_ids, &sb->cap_build_ids, sb->nr_build_ids + 1, sizeof(*b));
	b = &sb->build_ids[sb->nr_build_ids++];
	*b = (struct sideband_build_id){.mode = mode, .path = xstrdup(path), .len = len};
	memcpy(b->id, id, len);
}

static struct perfdata_id id_of(const struct sideband *sb, const struct guest_event *ev, int mode)
{
	return (struct perfdata_id){
		.id = sb->id,
		.time = ev->time ? ev->time : sb->start_time,
		.pid = (uint32_t)ev->pid,
		.tid = (uint32_t)ev->tid,
		.cpumode = (uint16_t)mode,
	};
}

/*
 * perf takes a kernel mapping whose name is a path for a module and looks it up by build id: that
 * is the one form in which it finds a guest's kernel with no option given.
 */
static void kernel_map_name(char *name, size_t size, const struct sideband *sb, struct guest *g,
			    const struct guest_event *ev)
{
	struct guest_kernel_info info;
	char safe[NAME_MAX];

	if (ev->type == GUEST_EVENT_KERNEL) {
		snprintf(name, size, "/boot/[%s.kernel]",
			 file_safe_name(safe, sizeof(safe), sb->vm_name));
		return;
	}
	guest_kernel_info(g, &info);
	snprintf(name, size, "/lib/modules/%s/%s.ko",
		 file_safe_name((char[65]){0}, 65, info.release),
		 file_safe_name(safe, sizeof(safe), ev->dso.path));
}

/*
 * Names are escaped here and not only when shown: perf prints what is in a file as it is, and the
 * guest chose it. Code that a process has made gets the name that perf shows of such; with
 * "//anon", or the path of its map, perf would look on the host.
 */
static char *dso_name(char *name, size_t size, const struct guest_dso *dso)
{
	return dso->owner ? jit_name(name, size, dso->owner) : escape_str(name, size, dso->path);
}

static void encode_map(struct sideband *sb, struct buf *out, struct guest *g,
		       const struct guest_event *ev)
{
	bool kernel = ev->type != GUEST_EVENT_MMAP;
	struct perfdata_id id =
		id_of(sb, ev, kernel ? SAMPLE_MODE_GUEST_KERNEL : SAMPLE_MODE_GUEST_USER);
	uint8_t build_id[20];
	char name[PATH_MAX];
	struct perfdata_map map = {
		.start = ev->start,
		.len = ev->len,
		.pgoff = ev->pgoff,
		.prot = ev->prot,
		.flags = ev->flags,
		.filename = name,
		.build_id = build_id,
	};

	if (kernel) {
		id.pid = (uint32_t)sb->machine_pid;
		id.tid = 0;
		kernel_map_name(name, sizeof(name), sb, g, ev);
		map.build_id_len = symsave_kernel(sb->symsave, g, ev, name, build_id);
		remember_build_id(sb, SAMPLE_MODE_GUEST_KERNEL, name, build_id, map.build_id_len);
	} else {
		dso_name(name, sizeof(name), &ev->dso);
		map.build_id_len = symsave_build_id(sb->symsave, &ev->dso, build_id);
		if (ev->dso.owner) /* its symbols have addresses */
			map.pgoff = ev->start;
	}
	perfdata_encode_mmap2(out, &id, &map);
}

void sideband_save_dso(struct sideband *sb, struct guest *g, const struct guest_dso *dso)
{
	char name[PATH_MAX];
	uint8_t id[20];
	uint8_t len = symsave_build_id(sb->symsave, dso, id);

	dso_name(name, sizeof(name), dso);
	remember_build_id(sb, SAMPLE_MODE_GUEST_USER, name, id, len);
	symsave_dso(sb->symsave, g, dso, name);
}

/* Of the kernel's own records of code that it makes there are two kinds. */
static void encode_code(struct sideband *sb, struct buf *out, const struct guest_event *ev)
{
	struct perfdata_id id = id_of(sb, ev, SAMPLE_MODE_GUEST_KERNEL);
	uint16_t type = !strncmp(ev->name, "bpf_", 4) ? PERF_RECORD_KSYMBOL_TYPE_BPF
						      : PERF_RECORD_KSYMBOL_TYPE_OOL;
	char name[1024];

	perfdata_encode_ksymbol(out, &id, ev->start, ev->len, type,
				escape_str(name, sizeof(name), ev->name));
}

static void encode_comm(struct sideband *sb, struct buf *out, const struct guest_event *ev)
{
	struct perfdata_id id = id_of(sb, ev, SAMPLE_MODE_GUEST_USER);
	char shown[128], comm[512];

	snprintf(comm, sizeof(comm), "%s:%s", sb->vm_name,
		 escape_str(shown, sizeof(shown), ev->name));
	perfdata_encode_comm(out, &id, comm, ev->exec);
}

/* What reports show of samples that no process could be found for. */
void sideband_encode_nobody(struct sideband *sb, struct buf *out)
{
	const struct guest_event ev = {
		.type = GUEST_EVENT_COMM, .pid = -1, .tid = -1, .name = "[unattributed]"};

	encode_comm(sb, out, &ev);
}

static void encode_task(struct sideband *sb, struct buf *out, const struct guest_event *ev)
{
	struct perfdata_id id = id_of(sb, ev, SAMPLE_MODE_GUEST_USER);
	bool exit = ev->type == GUEST_EVENT_EXIT;
	uint32_t parent = (uint32_t)(ev->pid != ev->tid ? ev->pid : ev->ppid);

	if (ev->pid == ev->tid && exit)
		hashmap_del(&sb->pids, (uint32_t)ev->pid);
	else if (!exit)
		hashmap_set(&sb->pids, (uint32_t)ev->pid, sb);
	perfdata_encode_task(out, exit ? PERF_RECORD_EXIT : PERF_RECORD_FORK, &id, parent, parent);
}

static void encode_cgroup(struct sideband *sb, struct buf *out, const struct guest_event *ev)
{
	struct perfdata_id id = id_of(sb, ev, SAMPLE_MODE_GUEST_USER);
	struct json_object *o = json_object_new_object();
	char path[1024];

	json_object_object_add(o, "machine", json_object_new_int64(sb->machine_pid));
	json_object_object_add(o, "pid", json_object_new_int64(ev->pid));
	json_object_object_add(o, "path",
			       json_object_new_string(escape_str(path, sizeof(path), ev->name)));
	perfdata_encode_private(out, &id, "cgroup",
				json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

/* The guest rebooted: its processes are gone without having said so. */
static void encode_reset(struct sideband *sb, struct buf *out, const struct guest_event *ev)
{
	struct guest_event gone = {.type = GUEST_EVENT_EXIT, .time = ev->time};
	uint64_t pid;

	for (size_t i = 0; hashmap_next(&sb->pids, &i, &pid);) {
		struct perfdata_id id;

		gone.pid = gone.tid = (int32_t)pid;
		id = id_of(sb, &gone, SAMPLE_MODE_GUEST_USER);
		perfdata_encode_task(out, PERF_RECORD_EXIT, &id, 0, 0);
	}
	hashmap_free(&sb->pids);
}

void sideband_encode(struct sideband *sb, struct buf *out, struct guest *g,
		     const struct guest_event *ev)
{
	switch (ev->type) {
	case GUEST_EVENT_KERNEL:
	case GUEST_EVENT_MODULE:
	case GUEST_EVENT_MMAP:
		encode_map(sb, out, g, ev);
		break;
	case GUEST_EVENT_CODE:
		encode_code(sb, out, ev);
		break;
	case GUEST_EVENT_FORK:
	case GUEST_EVENT_EXIT:
		encode_task(sb, out, ev);
		break;
	case GUEST_EVENT_COMM:
		encode_comm(sb, out, ev);
		break;
	case GUEST_EVENT_CGROUP:
		encode_cgroup(sb, out, ev);
		break;
	case GUEST_EVENT_RESET:
		symsave_reset(sb->symsave);
		encode_reset(sb, out, ev);
		break;
	}
}
