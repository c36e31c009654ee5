// SPDX-License-Identifier: GPL-2.0-only
#include "record/vmjson.h"

#include <json-c/json.h>
#include <time.h>

#include "util/text.h"
#include "util/xalloc.h"

static void add_str(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, value ? json_object_new_string(value) : NULL);
}

static void add_u64(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

static char *text_and_free(struct json_object *o)
{
	char *s = xstrdup(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));

	json_object_put(o);
	return s;
}

char *vmjson_vm(const struct vmrec_config *cfg, const char *name, uint32_t nr_vcpus,
		const struct guest_kernel_info *kernel)
{
	const struct vm *vm = cfg->vm;
	struct json_object *o = json_object_new_object();

	add_u64(o, "machine", (uint64_t)vm_number(vm));
	add_str(o, "name", name);
	add_str(o, "uuid", vm->uuid);
	add_str(o, "hypervisor", vm_hypervisor_name(vm->hypervisor));
	add_str(o, "accel", vm_accel_name(vm->accel));
	add_u64(o, "vcpus", nr_vcpus);
	add_u64(o, "memory", vm->memory);
	add_str(o, "backend", cfg->backend->name);
	add_str(o, "count", cfg->domain ? "domain" : "cpu");
	json_object_object_add(o, "exact_ip", json_object_new_boolean(cfg->caps.exact_ip));
	add_str(o, "kernel", kernel->known ? kernel->release : NULL);
	if (kernel->why_not)
		add_str(o, "kernel_why_not", kernel->why_not);
	return text_and_free(o);
}

char *vmjson_clock(const struct vm *vm, enum guest_clock clock, const struct guest_clock_bounds *b)
{
	static const int32_t ids[GUEST_CLOCK_COUNT] = {
		[GUEST_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
		[GUEST_CLOCK_REALTIME] = CLOCK_REALTIME,
		[GUEST_CLOCK_BOOTTIME] = CLOCK_BOOTTIME,
		[GUEST_CLOCK_TAI] = CLOCK_TAI,
	};
	struct json_object *o = json_object_new_object();
	int64_t error = (b->high - b->low + 1) / 2;

	add_u64(o, "machine", (uint64_t)vm_number(vm));
	if (clock != GUEST_CLOCK_SCHED)
		json_object_object_add(o, "clockid", json_object_new_int(ids[clock]));
	json_object_object_add(o, "offset", json_object_new_int64(b->low + error));
	json_object_object_add(o, "error", json_object_new_int64(error));
	return text_and_free(o);
}

static struct json_object *chain_ends(const uint64_t ends[CHAIN_END_COUNT])
{
	static const char *const names[CHAIN_END_COUNT] = {
		[CHAIN_OUTERMOST] = "outermost",   [CHAIN_DEPTH] = "depth",
		[CHAIN_UNREADABLE] = "unreadable", [CHAIN_NO_RULE] = "no_rule",
		[CHAIN_BAD_FRAME] = "bad_frame",   [CHAIN_TORN] = "torn",
	};
	struct json_object *o = json_object_new_object();

	for (int i = 0; i < CHAIN_END_COUNT; i++)
		if (names[i])
			add_u64(o, names[i], ends[i]);
	return o;
}

static void add_to(struct json_object *o, const char *key, uint64_t value)
{
	struct json_object *old;

	if (json_object_object_get_ex(o, key, &old))
		value += json_object_get_uint64(old);
	add_u64(o, key, value);
}

/*
 * Sums by name (one event may be there more than once), as a merge of files adds them up. Events
 * that nothing is known of are left out.
 */
static struct json_object *event_counts(const struct event_list *events,
					const struct backend_event_stats *counts)
{
	struct json_object *all = json_object_new_object();

	for (unsigned i = 0; i < events->n; i++) {
		struct json_object *o;
		char name[256];

		if (!counts[i].enabled)
			continue;
		escape_str(name, sizeof(name), events->events[i].name);
		if (!json_object_object_get_ex(all, name, &o)) {
			o = json_object_new_object();
			json_object_object_add(all, name, o);
		}
		add_to(o, "count", counts[i].count);
		add_to(o, "enabled", counts[i].enabled);
		add_to(o, "running", counts[i].running);
	}
	return all;
}

char *vmjson_stats(const struct vm *vm, const struct vmrec_stats *st,
		   const struct event_list *events, const struct backend_event_stats *counts)
{
	struct json_object *o = json_object_new_object(), *symbols = json_object_new_object();

	add_u64(o, "machine", (uint64_t)vm_number(vm));
	add_u64(o, "samples", st->written);
	add_u64(o, "snapshots", st->backend.snapshots);
	add_u64(o, "merged", st->backend.merged);
	add_u64(o, "lost", st->backend.lost);
	add_u64(o, "unreadable", st->backend.unreadable);
	add_u64(o, "torn", st->guest.torn);
	add_u64(o, "no_kernel", st->guest.unattributed[SAMPLE_NO_KERNEL]);
	add_u64(o, "no_process", st->guest.unattributed[SAMPLE_NO_PROCESS]);
	add_u64(o, "shared", st->guest.shared);
	add_u64(o, "throttled", st->backend.throttled);
	add_u64(o, "filtered", st->filtered);
	if (st->backend.clock_error)
		add_u64(o, "clock_error", st->backend.clock_error);
	add_u64(o, "resets", st->guest.resets);
	json_object_object_add(o, "kernel_end", chain_ends(st->guest.kernel_end));
	json_object_object_add(o, "user_end", chain_ends(st->guest.user_end));
	add_u64(symbols, "full", st->symbols.full);
	add_u64(symbols, "dynamic", st->symbols.dynamic);
	add_u64(symbols, "none", st->symbols.none);
	json_object_object_add(o, "symbols", symbols);
	json_object_object_add(o, "events", event_counts(events, counts));
	if (st->ended)
		add_str(o, "ended", st->ended);
	return text_and_free(o);
}
