// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a guest's commands and files are called in the output: as vmprof.data(5) has it, whatever
 * they were called in a file that was recorded in the guest, or by perf kvm.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/impl.h"
#include "util/text.h"
#include "util/xalloc.h"

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* perf's names for a kernel that is no module, and ours: "/boot/[VM.kernel]". */
bool merge_is_kernel_name(const char *name)
{
	size_t len = strlen(name);

	return starts(name, "[kernel.kallsyms]") || starts(name, "[guest.kernel.kallsyms") ||
	       starts(name, "[kernel]") ||
	       (starts(name, "/boot/[") && len > 8 && !strcmp(name + len - 8, ".kernel]"));
}

static const char *release_of(const struct merge_input *in, const struct merge_source *src)
{
	const char *r = perfdata_reader_feature_str(in->header, PERFDATA_FEAT_OSRELEASE);

	return src->own && r ? r : "unknown";
}

/* Only what starts with a slash is looked up by build id. */
static void kernel_name(const struct merge_input *in, const struct merge_source *src,
			const char *name, char *out, size_t size)
{
	char safe[MERGE_NAME_MAX + 1], release[65];

	if (merge_is_kernel_name(name))
		snprintf(out, size, "/boot/[%s.kernel]",
			 file_safe_name(safe, sizeof(safe), src->vm->name));
	else if (*name == '[')
		snprintf(out, size, "/lib/modules/%s/%.*s.ko",
			 file_safe_name(release, sizeof(release), release_of(in, src)),
			 (int)strcspn(name + 1, "]"), name + 1);
	else
		snprintf(out, size, "%s%s", *name == '/' ? "" : "/", name);
}

void merge_dso_name(const struct merge_input *in, const struct merge_source *src, bool kernel,
		    const char *name, char *out, size_t size)
{
	char *raw = xmalloc(size);

	if (kernel)
		kernel_name(in, src, name, raw, size);
	else
		snprintf(raw, size, "%s", name);
	escape_str(out, size, raw);
	free(raw);
}

void merge_comm(const struct merge_source *src, const char *comm, char *out, size_t size)
{
	size_t len = src->name ? strlen(src->name) : 0;
	char shown[256];

	if (len && !strncmp(comm, src->name, len) && comm[len] == ':')
		comm += len + 1;
	snprintf(out, size, "%s:%s", src->vm->name, escape_str(shown, sizeof(shown), comm));
}

/* Kernels are in the feature without the symbol that their mapping is named with. */
static size_t plain_length(const char *name)
{
	return *name == '[' && merge_is_kernel_name(name) ? strcspn(name, "]") : strlen(name);
}

static uint64_t name_hash(int32_t pid, const char *name)
{
	return hash_u64(hash_bytes(name, plain_length(name)) ^ (uint32_t)pid);
}

static int32_t source_pid(const struct perfdata_reader_build_id *id)
{
	return merge_is_guest_mode((uint8_t)id->cpumode) ? id->pid : MERGE_HOST;
}

void merge_index_build_ids(struct merge_input *in)
{
	const struct perfdata_reader_build_id *ids;
	size_t n = perfdata_reader_build_ids(in->header, &ids);

	for (size_t i = 0; i < n; i++)
		if (ids[i].len)
			hashmap_set(&in->build_ids, name_hash(source_pid(&ids[i]), ids[i].filename),
				    (void *)(uintptr_t)&ids[i]);
}

const struct perfdata_reader_build_id *
merge_find_build_id(const struct merge_input *in, const struct merge_source *src, const char *name)
{
	const struct perfdata_reader_build_id *id =
		hashmap_get(&in->build_ids, name_hash(src->pid, name));
	size_t len = plain_length(name);

	return id && plain_length(id->filename) == len && !strncmp(id->filename, name, len) ? id
											    : NULL;
}

static void add_build_id(const struct merge_input *in, const struct perfdata_reader_build_id *id,
			 struct perfdata_writer *w)
{
	const struct merge_source *s = hashmap_get(&in->source_by_pid, (uint32_t)source_pid(id));
	char name[4096];
	struct perfdata_build_id out = {
		.machine_pid = -1,
		.cpumode = id->cpumode,
		.id = id->id,
		.len = id->len,
		.filename = id->filename,
	};

	if (!s || !s->vm || !id->len)
		return;
	if (s->own)
		out.cpumode = id->cpumode == PERF_RECORD_MISC_KERNEL ? PERF_RECORD_MISC_GUEST_KERNEL
								     : PERF_RECORD_MISC_GUEST_USER;
	if (s->vm->pid) {
		out.machine_pid = s->vm->pid;
		out.filename = name;
		merge_dso_name(in, s, out.cpumode == PERF_RECORD_MISC_GUEST_KERNEL, id->filename,
			       name, sizeof(name));
	}
	perfdata_writer_add_build_id(w, &out);
}

void merge_add_build_ids(struct merge *m, struct perfdata_writer *w)
{
	for (size_t i = 0; i < m->nr_inputs; i++) {
		const struct perfdata_reader_build_id *ids;
		size_t n = perfdata_reader_build_ids(m->inputs[i].header, &ids);

		for (size_t k = 0; k < n; k++)
			add_build_id(&m->inputs[i], &ids[k], w);
	}
}
