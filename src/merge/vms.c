// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which machines of the inputs are one. A VM is known by the label of its file, by what its
 * recorder said (name, UUID), by --machine, or by being the same process of the same host as one
 * that is known so; nothing else makes two of them one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/impl.h"
#include "util/text.h"
#include "util/xalloc.h"

static struct merge_vm *vm_new(struct merge *m, const char *name, bool named)
{
	struct merge_vm *vm = xcalloc(1, sizeof(*vm));

	vm->index = (uint32_t)m->nr_vms;
	vm->name = xstrdup(name);
	vm->named = named;
	m->vms = xgrow(m->vms, &m->cap_vms, m->nr_vms + 1, sizeof(*m->vms));
	m->vms[m->nr_vms++] = vm;
	return vm;
}

static int named_vm(struct merge *m, const char *name, const char *uuid, struct merge_vm **out,
		    struct vmprof_err *err)
{
	struct merge_vm *by_name = NULL;

	for (size_t i = 1; i < m->nr_vms; i++) {
		struct merge_vm *vm = m->vms[i];

		if (uuid && vm->uuid && !strcmp(uuid, vm->uuid)) {
			*out = vm;
			return 0;
		}
		if (!strcmp(name, vm->name))
			by_name = vm;
	}
	if (by_name && uuid && by_name->uuid)
		return err_set(err, EEXIST,
			       "two VMs are called %s (UUIDs %s and %s); label the files, or merge "
			       "them into two files",
			       name, by_name->uuid, uuid);
	*out = by_name ? by_name : vm_new(m, name, true);
	if (uuid && !(*out)->uuid)
		(*out)->uuid = xstrdup(uuid);
	return 0;
}

static const char *given_name(const struct merge *m, int32_t pid)
{
	for (size_t i = 0; i < m->opts->nr_machines; i++)
		if (m->opts->machines[i].value == pid)
			return m->opts->machines[i].name;
	return NULL;
}

/* A VM that some recorder on the host has named, by its process there. */
static struct merge_vm *vm_of_process(const struct merge *m, int32_t pid, bool *ambiguous)
{
	struct merge_vm *found = NULL;

	*ambiguous = false;
	for (size_t i = 0; i < m->nr_inputs; i++) {
		const struct merge_input *in = &m->inputs[i];

		for (size_t k = 1; !in->in_guest && k < in->nr_sources; k++) {
			struct merge_vm *vm = in->sources[k]->vm;

			if (!vm || in->sources[k]->pid != pid)
				continue;
			*ambiguous |= found && found != vm;
			found = vm;
		}
	}
	return found;
}

/* The machine that the label of a file that was recorded on the host is about. */
static int label_of_source(const struct merge_input *in, const struct merge_source *s,
			   const char **name, struct vmprof_err *err)
{
	size_t n = 0;

	*name = s->name;
	if (!in->label || in->in_guest)
		return 0;
	for (size_t i = 1; i < in->nr_sources; i++)
		n += in->sources[i]->samples > 0;
	if (n > 1)
		return err_set(err, EINVAL,
			       "%s has samples of %zu VMs and none of its own system: a label "
			       "(%s) can be the name of one; give it without",
			       in->shown, n, in->label);
	if (s->samples)
		*name = in->label;
	return 0;
}

static int plan_named(struct merge *m, struct merge_input *in, struct merge_source *s,
		      struct vmprof_err *err)
{
	char nested[2 * MERGE_NAME_MAX + 2], shortened[MERGE_NAME_MAX + 1];
	const char *name;
	int ret = label_of_source(in, s, &name, err);

	if (ret)
		return ret;
	if (!name && !in->in_guest)
		name = given_name(m, s->pid);
	if (in->in_guest) {
		/* a VM in the VM */
		if (name)
			snprintf(nested, sizeof(nested), "%s/%s", in->label, name);
		else
			snprintf(nested, sizeof(nested), "%s/guest pid %d", in->label, s->pid);
		name = escape_str(shortened, sizeof(shortened), nested);
	}
	return name ? named_vm(m, name, name == in->label ? NULL : s->uuid, &s->vm, err) : 0;
}

static void plan_unnamed(struct merge *m, struct merge_source *s)
{
	char name[32];
	bool ambiguous;
	struct merge_vm *vm = vm_of_process(m, s->pid, &ambiguous);

	if (vm && !ambiguous) {
		s->vm = vm;
		return;
	}
	if (ambiguous)
		merge_warn("process %d of the host was more than one VM; where no name is known, "
			   "it is 'guest pid %d'",
			   s->pid, s->pid);
	snprintf(name, sizeof(name), "guest pid %d", s->pid);
	for (size_t i = 1; i < m->nr_vms; i++)
		if (!m->vms[i]->named && !strcmp(m->vms[i]->name, name))
			s->vm = m->vms[i];
	if (!s->vm)
		s->vm = vm_new(m, name, false);
}

/* Recorded in the VM of the label, or on the host and about that VM only? */
static void plan_kind(struct merge_input *in)
{
	bool guests = false;

	for (size_t i = 1; i < in->nr_sources; i++)
		guests |= in->sources[i]->samples > 0;
	in->in_guest = in->label && (in->sources[0]->samples || !guests);
}

/* Files without a label are of the host; there is one. */
static int check_hosts(const struct merge *m, struct vmprof_err *err)
{
	const struct merge_input *first = NULL;
	char a[128], b[128];

	for (size_t i = 0; i < m->nr_inputs; i++) {
		const struct merge_input *in = &m->inputs[i];
		const char *name = perfdata_reader_feature_str(in->header, PERFDATA_FEAT_HOSTNAME),
			   *other;

		if (in->in_guest || !name)
			continue;
		other = first ? perfdata_reader_feature_str(first->header, PERFDATA_FEAT_HOSTNAME)
			      : NULL;
		if (other && strcmp(name, other) != 0)
			return err_set(err, EINVAL,
				       "%s and %s are of two hosts (%s and %s); label the one that "
				       "was recorded in a VM: VM=%s",
				       first->shown, in->shown, escape_str(a, sizeof(a), other),
				       escape_str(b, sizeof(b), name), in->shown);
		if (!first)
			first = in;
	}
	return 0;
}

static int check_machines(const struct merge *m, struct vmprof_err *err)
{
	for (size_t i = 0; i < m->opts->nr_machines; i++) {
		const struct merge_named *o = &m->opts->machines[i];
		bool found = false;

		for (size_t k = 0; k < m->nr_inputs; k++)
			found |= !m->inputs[k].in_guest &&
				 hashmap_get(&m->inputs[k].source_by_pid, (uint32_t)o->value);
		if (!found)
			return err_set(err, ENOENT,
				       "--machine: no input that was recorded on the host has "
				       "samples of a VM that is process %lld",
				       (long long)o->value);
	}
	return 0;
}

/* ---------- what the output knows of a VM ---------- */

static bool take_pid(struct merge *m, struct merge_vm *vm, int32_t pid)
{
	if (pid <= 0 || pid == PERFDATA_PRIVATE_PID || hashmap_get(&m->vm_pids, (uint32_t)pid))
		return false;
	hashmap_set(&m->vm_pids, (uint32_t)pid, vm);
	vm->pid = pid;
	return true;
}

/* The process on the host where that is known and not another VM's. */
static void give_pids(struct merge *m)
{
	int32_t next = MERGE_FIRST_PID;

	for (size_t i = 0; i < m->nr_inputs; i++) {
		const struct merge_input *in = &m->inputs[i];

		for (size_t k = 1; !in->in_guest && k < in->nr_sources; k++)
			if (in->sources[k]->vm && !in->sources[k]->vm->pid)
				take_pid(m, in->sources[k]->vm, in->sources[k]->pid);
	}
	for (size_t i = 1; i < m->nr_vms; i++)
		while (!m->vms[i]->pid)
			take_pid(m, m->vms[i], next++);
}

static void learn(struct merge_vm *vm, const struct merge_source *s)
{
	vm->has_kernel |= s->has_kernel;
	vm->nobody |= s->host_pids;
	if (s->vm_json && !vm->vm_json)
		vm->vm_json = xstrdup(s->vm_json);
}

/* What a perf in the guest says in its header, in the words of our recorder. */
static void describe_guest(struct merge_vm *vm, const struct merge_input *in)
{
	const char *release = perfdata_reader_feature_str(in->header, PERFDATA_FEAT_OSRELEASE);
	struct json_object *o;
	struct perfdata_host h;
	char text[128];

	if (vm->vm_json)
		return;
	o = json_object_new_object();
	perfdata_reader_host(in->header, &h);
	if (h.cpus_online)
		json_object_object_add(o, "vcpus", json_object_new_int64(h.cpus_online));
	if (h.total_mem_kb)
		json_object_object_add(o, "memory", json_object_new_uint64(h.total_mem_kb * 1024));
	json_object_object_add(o, "backend", json_object_new_string("perf in the guest"));
	json_object_object_add(
		o, "kernel",
		release ? json_object_new_string(escape_str(text, sizeof(text), release)) : NULL);
	vm->vm_json = xstrdup(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

/*
 * perf kvm's maps of "the" guest are of no machine in particular: where there is one VM only, they
 * are its.
 */
static void plan_default_guest(struct merge_input *in)
{
	struct merge_source *any = hashmap_get(&in->source_by_pid, 0), *only = NULL;

	for (size_t i = 1; any && i < in->nr_sources; i++) {
		struct merge_source *s = in->sources[i];

		if (s == any || !s->samples)
			continue;
		if (only)
			return;
		only = s;
	}
	if (!any || any->samples || !only)
		return;
	any->vm = only->vm;
	only->vm->has_kernel |= any->has_kernel;
}

static bool is_wanted(const struct merge_source *s)
{
	return s->samples || s->vm_json || s->name || (s->pid && s->has_maps);
}

int merge_plan_vms(struct merge *m, struct vmprof_err *err)
{
	int ret;

	vm_new(m, "host", true);
	for (size_t i = 0; i < m->nr_inputs; i++) {
		struct merge_input *in = &m->inputs[i];
		struct merge_source *own = in->sources[0];

		plan_kind(in);
		own->vm = m->vms[0];
		own->own = in->in_guest;
		ret = in->in_guest ? named_vm(m, in->label, NULL, &own->vm, err) : 0;
		for (size_t k = 1; !ret && k < in->nr_sources; k++)
			if (is_wanted(in->sources[k]))
				ret = plan_named(m, in, in->sources[k], err);
		if (ret)
			return ret;
	}
	ret = check_hosts(m, err);
	if (!ret)
		ret = check_machines(m, err);
	if (ret)
		return ret;
	for (size_t i = 0; i < m->nr_inputs; i++) {
		struct merge_input *in = &m->inputs[i];

		for (size_t k = 1; k < in->nr_sources; k++)
			if (is_wanted(in->sources[k]) && !in->sources[k]->vm)
				plan_unnamed(m, in->sources[k]);
		plan_default_guest(in);
	}
	for (size_t i = 0; i < m->nr_inputs; i++)
		for (size_t k = 0; k < m->inputs[i].nr_sources; k++)
			if (m->inputs[i].sources[k]->vm)
				learn(m->inputs[i].sources[k]->vm, m->inputs[i].sources[k]);
	for (size_t i = 0; i < m->nr_inputs; i++)
		if (m->inputs[i].in_guest)
			describe_guest(m->inputs[i].sources[0]->vm, &m->inputs[i]);
	give_pids(m);
	return 0;
}

void merge_free_vms(struct merge *m)
{
	for (size_t i = 0; i < m->nr_vms; i++) {
		struct merge_vm *vm = m->vms[i];

		json_object_put(vm->stats);
		free(vm->name);
		free(vm->uuid);
		free(vm->vm_json);
		free(vm);
	}
	free(m->vms);
	hashmap_free(&m->vm_pids);
}
