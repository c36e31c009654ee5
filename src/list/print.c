// SPDX-License-Identifier: GPL-2.0-only
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "list/list.h"
#include "util/buf.h"
#include "util/text.h"

#define CELL 128

static const char *size_text(char out[CELL], uint64_t bytes)
{
	if (!bytes)
		return "-";
	if (bytes % (1u << 30) == 0)
		snprintf(out, CELL, "%" PRIu64 " GiB", bytes >> 30);
	else
		snprintf(out, CELL, "%" PRIu64 " MiB", bytes >> 20);
	return out;
}

/* ---------- table ---------- */

static void cell_name(const struct list_row *r, char out[CELL])
{
	escape_str(out, CELL, r->vm->name);
}

static void cell_uuid(const struct list_row *r, char out[CELL])
{
	snprintf(out, CELL, "%s", r->vm->uuid[0] ? r->vm->uuid : "-");
}

static void cell_accel(const struct list_row *r, char out[CELL])
{
	const char *h = vm_hypervisor_name(r->vm->hypervisor);

	if (r->vm->hypervisor == VM_HYPERVISOR_XEN)
		snprintf(out, CELL, "%s/%s", h, r->vm->machine);
	else if (r->vm->hypervisor == VM_HYPERVISOR_OTHER)
		snprintf(out, CELL, "%s", vm_accel_name(r->vm->accel));
	else
		snprintf(out, CELL, "%s/%s", h, vm_accel_name(r->vm->accel));
}

static void cell_pid(const struct list_row *r, char out[CELL])
{
	if (r->vm->pid)
		snprintf(out, CELL, "%d", r->vm->pid);
	else
		snprintf(out, CELL, "dom%u", r->vm->domid);
}

static void cell_vcpus(const struct list_row *r, char out[CELL])
{
	snprintf(out, CELL, "%u", r->vm->nr_vcpus);
}

static void cell_memory(const struct list_row *r, char out[CELL])
{
	char text[CELL];

	snprintf(out, CELL, "%s", size_text(text, r->vm->memory));
}

static void cell_kernel(const struct list_row *r, char out[CELL])
{
	snprintf(out, CELL, "%s", r->kernel.known ? r->kernel.release : "-");
}

static void cell_backends(const struct list_row *r, char out[CELL])
{
	struct buf b = {0};

	for (unsigned i = 0; i < r->nr_caps; i++)
		if (r->caps[i].usable)
			buf_printf(&b, "%s%s", b.len ? "," : "", vmprof_backends[i]->name);
	snprintf(out, CELL, "%s", b.len ? (char *)b.data : "none (why: list -v)");
	buf_free(&b);
}

static const struct column {
	const char *title;
	void (*cell)(const struct list_row *r, char out[CELL]);
	bool right;
} columns[] = {
	{"NAME", cell_name, false},	{"UUID", cell_uuid, false},
	{"TYPE", cell_accel, false},	{"PID", cell_pid, true},
	{"VCPUS", cell_vcpus, true},	{"MEMORY", cell_memory, true},
	{"KERNEL", cell_kernel, false}, {"BACKENDS", cell_backends, false},
};

#define NR_COLUMNS (sizeof(columns) / sizeof(*columns))

/* Columns a string takes on the terminal: one a code point. */
static size_t text_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((uint8_t)*s & 0xc0) != 0x80;
	return n;
}

static void print_cell(const struct column *c, const char *text, size_t width, FILE *f)
{
	int pad = (int)(width - text_width(text));

	if (c->right)
		fprintf(f, "%*s%s", pad, "", text);
	else if (c == &columns[NR_COLUMNS - 1])
		fputs(text, f); /* nothing behind: no blanks at the end of the line */
	else
		fprintf(f, "%s%*s", text, pad, "");
	fputs(c == &columns[NR_COLUMNS - 1] ? "\n" : "  ", f);
}

void list_print_table(const struct list_row *rows, size_t n, FILE *f)
{
	size_t width[NR_COLUMNS];
	char text[CELL];

	for (size_t c = 0; c < NR_COLUMNS; c++) {
		width[c] = strlen(columns[c].title);
		for (size_t i = 0; i < n; i++) {
			columns[c].cell(&rows[i], text);
			if (text_width(text) > width[c])
				width[c] = text_width(text);
		}
	}
	for (size_t c = 0; c < NR_COLUMNS; c++)
		print_cell(&columns[c], columns[c].title, width[c], f);
	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c < NR_COLUMNS; c++) {
			columns[c].cell(&rows[i], text);
			print_cell(&columns[c], text, width[c], f);
		}
}

/* ---------- details ---------- */

static void print_field(FILE *f, const char *name, const char *value)
{
	fprintf(f, "  %-12s", name);
	escape_fputs(value, f);
	fputc('\n', f);
}

static void print_vcpus(const struct list_row *r, FILE *f)
{
	fprintf(f, "  %-12s%u", "vCPUs", r->vm->nr_vcpus);
	if (r->vm->single_thread)
		fputs(" in one thread", f);
	for (uint32_t i = 0; i < r->vm->nr_vcpus; i++)
		if (!r->vm->pid)
			break;
		else if (r->tids[i])
			fprintf(f, "%s%u: thread %d", i ? ", " : "; ", i, r->tids[i]);
		else
			fprintf(f, "%s%u: thread unknown", i ? ", " : "; ", i);
	fputc('\n', f);
}

static void print_kernel(const struct list_row *r, FILE *f)
{
	const struct guest_kernel_info *k = &r->kernel;

	fprintf(f, "  %-12s", "guest");
	if (!k->known) {
		fputs("unknown: ", f);
		escape_fputs(k->why_not, f);
		fputc('\n', f);
		return;
	}
	fprintf(f, "Linux %s, %u symbols, %u modules, KASLR offset %#" PRIx64 "%s%s\n", k->release,
		k->nr_symbols, k->nr_modules, k->kaslr, k->la57 ? ", LA57" : "",
		k->pti ? ", PTI" : "");
	if (!k->has_types)
		print_field(f, "", k->why_not);
}

static void print_backends(const struct list_row *r, FILE *f)
{
	for (unsigned i = 0; i < r->nr_caps; i++) {
		const struct backend_caps *c = &r->caps[i];

		fprintf(f, "  %-12s%s: ", i ? "" : "backends", vmprof_backends[i]->name);
		if (!c->usable) {
			fputs("cannot: ", f);
			escape_fputs(c->why_not, f);
		}
		for (unsigned e = 0; c->usable && c->events[e]; e++)
			fprintf(f, "%s%s", e ? ", " : "", c->events[e]);
		if (c->usable)
			fprintf(f, "; %s; %s",
				c->registers ? "processes and call chains"
				: c->memory  ? "processes by their maps, no call chains"
					     : "addresses only",
				c->exact_ip ? "exact addresses"
					    : "addresses are starts of translated blocks");
		fputc('\n', f);
		if (c->usable && c->lacks[0])
			print_field(f, "", c->lacks);
	}
}

void list_print_details(const struct list_row *rows, size_t n, FILE *f)
{
	char text[CELL];

	for (size_t i = 0; i < n; i++) {
		const struct list_row *r = &rows[i];

		if (i)
			fputc('\n', f);
		escape_fputs(r->vm->name, f);
		fputc('\n', f);
		print_field(f, "UUID", r->vm->uuid[0] ? r->vm->uuid : "none");
		fprintf(f, "  %-12s%s%s%s, %s%s%s\n", "hypervisor",
			vm_hypervisor_title(r->vm->hypervisor), r->version[0] ? " " : "",
			r->version, vm_accel_name(r->vm->accel), r->vm->libvirt ? ", libvirt" : "",
			r->vm->paused_at_start && !r->vm->libvirt ? ", started paused (-S)" : "");
		fprintf(f, "  %-12s%d%s", vm_number_name(r->vm), vm_number(r->vm),
			r->vm->binary[0] ? " " : "");
		escape_fputs(r->vm->binary, f);
		fputc('\n', f);
		fprintf(f, "  %-12s", "machine");
		if (r->vm->hypervisor == VM_HYPERVISOR_QEMU || r->vm->machine) {
			escape_fputs(r->vm->machine ? r->vm->machine : "default", f);
			fputs(", ", f);
		}
		escape_fputs(r->vm->arch, f);
		fputc('\n', f);
		fprintf(f, "  %-12s%s%s%s\n", "memory", size_text(text, r->vm->memory),
			r->ram_kind ? ", read by way of " : "", r->ram_kind ? r->ram_kind : "");
		print_vcpus(r, f);
		if (r->vm->qmp_path)
			print_field(f, "QMP", r->vm->qmp_path);
		print_kernel(r, f);
		print_backends(r, f);
	}
}

/* ---------- JSON ---------- */

static void add_text(struct json_object *o, const char *key, const char *s)
{
	char text[1024];

	if (s)
		escape_str(text, sizeof(text), s); /* JSON takes valid UTF-8 only */
	json_object_object_add(o, key, s ? json_object_new_string(text) : NULL);
}

static void add_bool(struct json_object *o, const char *key, bool v)
{
	json_object_object_add(o, key, json_object_new_boolean(v));
}

static void add_number(struct json_object *o, const char *key, uint64_t v)
{
	json_object_object_add(o, key, json_object_new_uint64(v));
}

static struct json_object *json_vcpus(const struct list_row *r)
{
	struct json_object *a = json_object_new_array();

	for (uint32_t i = 0; i < r->vm->nr_vcpus; i++) {
		struct json_object *o = json_object_new_object();

		add_number(o, "index", i);
		json_object_object_add(o, "tid",
				       r->tids[i] ? json_object_new_int(r->tids[i]) : NULL);
		json_object_array_add(a, o);
	}
	return a;
}

static struct json_object *json_guest(const struct list_row *r)
{
	const struct guest_kernel_info *k = &r->kernel;
	struct json_object *o = json_object_new_object();
	char text[41] = "";

	add_bool(o, "known", k->known);
	if (!k->known || !k->has_types)
		add_text(o, "why_not", k->why_not);
	if (!k->known)
		return o;
	add_text(o, "release", k->release);
	if (k->build_id_len <= 20)
		hex_str(text, k->build_id, k->build_id_len);
	add_text(o, "build_id", text[0] ? text : NULL);
	snprintf(text, sizeof(text), "%#" PRIx64, k->text);
	add_text(o, "text", text);
	snprintf(text, sizeof(text), "%#" PRIx64, k->kaslr);
	add_text(o, "kaslr", text);
	add_number(o, "symbols", k->nr_symbols);
	add_number(o, "modules", k->nr_modules);
	add_bool(o, "types", k->has_types);
	add_bool(o, "la57", k->la57);
	add_bool(o, "pti", k->pti);
	return o;
}

static struct json_object *json_backends(const struct list_row *r)
{
	struct json_object *a = json_object_new_array();

	for (unsigned i = 0; i < r->nr_caps; i++) {
		const struct backend_caps *c = &r->caps[i];
		struct json_object *o = json_object_new_object();
		struct json_object *events = json_object_new_array();

		add_text(o, "name", vmprof_backends[i]->name);
		add_bool(o, "usable", c->usable);
		if (!c->usable)
			add_text(o, "why_not", c->why_not);
		if (c->usable && c->lacks[0])
			add_text(o, "lacks", c->lacks);
		for (unsigned e = 0; c->events && c->events[e]; e++)
			json_object_array_add(events, json_object_new_string(c->events[e]));
		json_object_object_add(o, "events", events);
		add_bool(o, "registers", c->registers);
		add_bool(o, "domain", c->domain);
		add_bool(o, "memory", c->memory);
		add_bool(o, "exact_ip", c->exact_ip);
		json_object_array_add(a, o);
	}
	return a;
}

static struct json_object *json_vm(const struct list_row *r)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "name", r->vm->name);
	add_bool(o, "named", r->vm->named);
	add_text(o, "uuid", r->vm->uuid[0] ? r->vm->uuid : NULL);
	add_text(o, "hypervisor", vm_hypervisor_name(r->vm->hypervisor));
	add_text(o, "version", r->version[0] ? r->version : NULL);
	add_text(o, "accel", vm_accel_name(r->vm->accel));
	if (r->vm->pid)
		add_number(o, "pid", (uint64_t)r->vm->pid);
	else
		add_number(o, "domain", r->vm->domid);
	add_text(o, "binary", r->vm->binary);
	add_text(o, "arch", r->vm->arch);
	add_text(o, "machine", r->vm->machine);
	add_number(o, "memory", r->vm->memory);
	add_text(o, "memory_by", r->ram_kind);
	add_bool(o, "single_thread", r->vm->single_thread);
	json_object_object_add(o, "vcpus", json_vcpus(r));
	add_text(o, "qmp", r->vm->qmp_path);
	add_bool(o, "libvirt", r->vm->libvirt);
	json_object_object_add(o, "guest", json_guest(r));
	json_object_object_add(o, "backends", json_backends(r));
	return o;
}

void list_print_json(const struct list_row *rows, size_t n, FILE *f)
{
	struct json_object *a = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(a, json_vm(&rows[i]));
	fprintf(f, "%s\n",
		json_object_to_json_string_ext(a, JSON_C_TO_STRING_PRETTY |
							  JSON_C_TO_STRING_SPACED |
							  JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(a);
}
