// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exits out of a file that perf has recorded: what perf kvm stat report makes of it, a table for
 * each VM. A VM is the process of its monitor, and a vCPU a thread of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata/reader.h"
#include "stat/exits.h"
#include "stat/exits_format.h"
#include "stat/run.h"
#include "util/text.h"
#include "util/xalloc.h"

#define FORMAT_MAX 65536 /* of a tracepoint's description; more is none */

enum kind { NOT_LOOKED_AT, OTHER, EXIT, ENTRY };

struct file_vm {
	int32_t pid;
	char name[64]; /* escaped */
	struct exit_table table;
};

struct file_vcpu {
	unsigned vm;
	struct exit_vcpu at;
};

struct exits_file {
	const struct stat_options *o;
	struct perfdata_reader *reader;
	enum kind *kinds; /* by event of the file; one in a pipe may have more as it goes on */
	size_t nr_kinds, cap_kinds;
	bool exits, entries; /* there are such events */
	struct exits_format format;
	struct tracepoint_field vcpu_id; /* of kvm_entry; size 0: it has none */
	struct file_vm *vms;
	size_t n, cap;
	struct file_vcpu *vcpus;
	size_t nr_vcpus, cap_vcpus;
	struct hashmap vm_of_pid;   /* to index + 1 */
	struct hashmap vcpu_of_tid; /* to index + 1 */
	struct hashmap comms;	    /* of processes, by pid */
	struct strtab *names;
};

/* ---------- what the file's events are ---------- */

/* The format's text, terminated, to free; NULL: there is none that can be. */
static char *format_of(const struct perfdata_tracepoint *p)
{
	return p->size < FORMAT_MAX ? xstrndup(p->format, p->size) : NULL;
}

static int learn_exit(struct exits_file *x, const char *format, struct vmprof_err *err)
{
	const struct perfdata_tracing *t = perfdata_reader_tracing(x->reader);
	const uint16_t one = 1;
	bool big = *(const uint8_t *)&one == 0;

	if (t->big_endian != big)
		return err_set(err, ENOTSUP,
			       "%s is of another byte order than this host: its exits "
			       "cannot be read",
			       perfdata_reader_path(x->reader));
	x->exits = true;
	return exits_format_init(&x->format, format, err);
}

static enum kind *kind_of(struct exits_file *x, const struct perfdata_evsel *e)
{
	x->kinds = xgrow(x->kinds, &x->cap_kinds, (size_t)e->index + 1, sizeof(*x->kinds));
	while (x->nr_kinds <= e->index)
		x->kinds[x->nr_kinds++] = NOT_LOOKED_AT;
	return &x->kinds[e->index];
}

static int learn(struct exits_file *x, const struct perfdata_evsel *e, enum kind *kind,
		 struct vmprof_err *err)
{
	const struct perfdata_tracepoint *p = NULL;
	char *format;
	int rc = 0;

	*kind = OTHER;
	if (e->attr.type == PERF_TYPE_TRACEPOINT)
		p = perfdata_reader_tracepoint(x->reader, e->attr.config);
	format = p ? format_of(p) : NULL;
	if (format && !strcmp(p->name, "kvm:kvm_exit")) {
		*kind = EXIT;
		rc = learn_exit(x, format, err);
	} else if (format && !strcmp(p->name, "kvm:kvm_entry")) {
		*kind = ENTRY;
		x->entries = true;
		if (!tracepoint_field(&x->vcpu_id, format, "vcpu_id"))
			x->vcpu_id.size = 0;
	}
	free(format);
	return rc;
}

/* ---------- whose they are ---------- */

static bool is_wanted(const struct exits_file *x, const struct file_vm *vm)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", vm->pid);
	for (unsigned i = 0; i < x->o->wanted.nr_vms; i++) {
		const char *spec = x->o->wanted.vms[i].spec;

		if (!strcmp(spec, pid) || !strcmp(spec, vm->name))
			return true;
	}
	return !x->o->wanted.nr_vms;
}

static unsigned vm_of(struct exits_file *x, int32_t pid)
{
	uintptr_t at = (uintptr_t)hashmap_get(&x->vm_of_pid, (uint32_t)pid);
	const char *comm = hashmap_get(&x->comms, (uint32_t)pid);
	char shown[40];

	if (at)
		return (unsigned)at - 1;
	x->vms = xgrow(x->vms, &x->cap, x->n + 1, sizeof(*x->vms));
	x->vms[x->n] = (struct file_vm){.pid = pid};
	snprintf(x->vms[x->n].name, sizeof(x->vms->name), "%s-%d",
		 escape_str(shown, sizeof(shown), comm ? comm : "pid"), pid);
	hashmap_set(&x->vm_of_pid, (uint32_t)pid, (void *)(uintptr_t)(x->n + 1));
	return (unsigned)x->n++;
}

static struct file_vcpu *vcpu_of(struct exits_file *x, const struct perfdata_record *rec)
{
	uintptr_t at = (uintptr_t)hashmap_get(&x->vcpu_of_tid, rec->tid);

	if (at)
		return &x->vcpus[at - 1];
	x->vcpus = xgrow(x->vcpus, &x->cap_vcpus, x->nr_vcpus + 1, sizeof(*x->vcpus));
	x->vcpus[x->nr_vcpus] = (struct file_vcpu){.vm = vm_of(x, (int32_t)rec->pid)};
	hashmap_set(&x->vcpu_of_tid, rec->tid, (void *)(uintptr_t)(x->nr_vcpus + 1));
	return &x->vcpus[x->nr_vcpus++];
}

/* An entry tells which vCPU it is of, on x86; of one that is not wanted exits are not counted. */
static bool is_wanted_vcpu(const struct exits_file *x, const struct perfdata_record *rec)
{
	uint64_t id;

	return x->o->vcpu < 0 ||
	       (x->vcpu_id.size && tracepoint_value(&id, &x->vcpu_id, rec->raw, rec->raw_size) &&
		id == (uint64_t)x->o->vcpu);
}

/* ---------- records ---------- */

static int take_sample(struct exits_file *x, const struct perfdata_record *rec,
		       struct vmprof_err *err)
{
	enum kind *kind;
	struct file_vcpu *v;
	enum exit_kind why;
	uint32_t reason;
	int rc = 0;

	if (!rec->evsel || !rec->raw)
		return 0;
	kind = kind_of(x, rec->evsel);
	if (*kind == NOT_LOOKED_AT)
		rc = learn(x, rec->evsel, kind, err);
	if (rc || *kind == OTHER)
		return rc;
	v = vcpu_of(x, rec);
	if (*kind == ENTRY && is_wanted_vcpu(x, rec))
		entry_seen(&x->vms[v->vm].table, &v->at, rec->time);
	else if (*kind == ENTRY)
		v->at.out = false;
	else if (exits_format_reason(&x->format, rec->raw, rec->raw_size, &why, &reason))
		exit_seen(&v->at, why, reason, rec->time);
	return 0;
}

static void take_comm(struct exits_file *x, const struct perfdata_record *rec)
{
	bool guest = rec->cpumode == PERF_RECORD_MISC_GUEST_USER ||
		     rec->cpumode == PERF_RECORD_MISC_GUEST_KERNEL;

	if (rec->pid == rec->tid && !guest)
		hashmap_set(&x->comms, rec->pid,
			    (void *)(uintptr_t)strtab_intern(x->names, rec->comm.comm));
}

struct run {
	struct exits_file *x;
	struct vmprof_err *err;
};

static int take(void *ctx, const struct perfdata_record *rec)
{
	struct run *run = ctx;
	struct exits_file *x = run->x;

	if (rec->type == PERF_RECORD_SAMPLE)
		return take_sample(x, rec, run->err);
	if (rec->type == PERF_RECORD_COMM)
		take_comm(x, rec);
	/* Whose they were is not known: an exit whose entry may be among them is not timed. */
	if (rec->type == PERF_RECORD_LOST || rec->type == PERF_RECORD_LOST_SAMPLES)
		for (size_t i = 0; i < x->nr_vcpus; i++)
			x->vcpus[i].at.out = false;
	return 0;
}

/* ---------- the whole ---------- */

static int print(struct exits_file *x, FILE *f, struct vmprof_err *err)
{
	const char *path = perfdata_reader_path(x->reader);
	uint64_t lost = perfdata_reader_get_stats(x->reader)->lost;
	size_t wanted = 0;

	if (!x->exits || !x->entries)
		return err_set(
			err, ENOENT,
			"%s has no records of kvm:kvm_exit and kvm:kvm_entry: 'perf kvm stat "
			"record' makes a file that has",
			path);
	if (x->o->vcpu >= 0 && !x->vcpu_id.size)
		return err_set(err, ENOTSUP, "%s does not say which vCPU an exit is of: no --vcpu",
			       path);
	for (size_t i = 0; i < x->n; i++) {
		struct file_vm *vm = &x->vms[i];

		if (!is_wanted(x, vm))
			continue;
		wanted++;
		exit_table_print(&vm->table, x->o, vm->name, f);
	}
	if (lost)
		fprintf(stderr,
			"vmprof stat: %s: %llu records were lost when it was recorded: exits are "
			"missing\n",
			path, (unsigned long long)lost);
	return wanted ? 0 : err_set(err, ENOENT, "%s has no exits of such a VM", path);
}

static void close_file(struct exits_file *x)
{
	for (size_t i = 0; i < x->n; i++)
		exit_table_reset(&x->vms[i].table);
	hashmap_free(&x->vm_of_pid);
	hashmap_free(&x->vcpu_of_tid);
	hashmap_free(&x->comms);
	strtab_free(x->names);
	perfdata_reader_close(x->reader);
	free(x->kinds);
	free(x->vms);
	free(x->vcpus);
}

int stat_exits_file(const struct stat_options *o, FILE *f, struct vmprof_err *err)
{
	struct exits_file x = {.o = o, .names = strtab_new()};
	struct run run = {&x, err};
	struct vmprof_err damage;
	int rc = perfdata_reader_open(&x.reader, o->input, err);

	if (!rc) {
		rc = perfdata_reader_run(x.reader, take, &run, err);
		/* What is whole of a damaged file is shown. */
		if (rc == -EBADMSG) {
			damage = *err;
			print(&x, f, err);
			*err = damage;
		} else if (!rc) {
			rc = print(&x, f, err);
		}
	}
	close_file(&x);
	return rc;
}
