// SPDX-License-Identifier: GPL-2.0-only
/*
 * One clock for all inputs: that of the first file of the host, else of the first file. Another
 * file's times are moved by what the files or the user say; never by a guess.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "merge/impl.h"

/*
 * Two files of one machine and clock: are they of one boot? Then the moments at which their clock
 * was 0 differ by what the time of day was set or slewed between them. Another boot is further
 * away, since its clock began anew.
 */
#define SAME_BOOT_NS 1000000000ll

static const struct {
	int32_t id;
	const char *name;
} clocks[] = {
	{CLOCK_REALTIME, "CLOCK_REALTIME"},
	{CLOCK_MONOTONIC, "CLOCK_MONOTONIC"},
	{CLOCK_MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW"},
	{CLOCK_BOOTTIME, "CLOCK_BOOTTIME"},
	{CLOCK_TAI, "CLOCK_TAI"},
};

const char *merge_clock_name(const struct perfdata_clock *c)
{
	if (!c->known)
		return "perf's default clock";
	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++)
		if (clocks[i].id == c->id)
			return clocks[i].name;
	return "a clock of an unknown number";
}

const char *merge_align_name(enum merge_align a)
{
	static const char *const names[] = {
		[MERGE_REFERENCE] = "the clock of the merged file",
		[MERGE_SAME_CLOCK] = "the same clock",
		[MERGE_WALL_CLOCK] = "aligned by the time of day",
		[MERGE_GIVEN] = "aligned as --clock-offset says",
		[MERGE_RECORDED] = "aligned as recorded on the host",
		[MERGE_NONE] = "not aligned",
	};

	return names[a];
}

/* Time of day less the clock. false: the file does not say. */
static bool wall_offset(const struct perfdata_clock *c, int64_t *offset)
{
	*offset = 0;
	if (c->known && c->id == CLOCK_REALTIME)
		return true;
	return c->has_wall && c->wall_ns <= INT64_MAX && c->clock_ns <= INT64_MAX &&
	       !__builtin_sub_overflow((int64_t)c->wall_ns, (int64_t)c->clock_ns, offset);
}

static const struct merge_vm *machine_of(const struct merge *m, const struct merge_input *in)
{
	return in->in_guest ? in->sources[0]->vm : m->vms[0];
}

static bool same_clock(const struct merge *m, const struct merge_input *a,
		       const struct merge_input *b)
{
	int64_t wall_a, wall_b, diff;

	return machine_of(m, a) == machine_of(m, b) && a->clock.known && b->clock.known &&
	       a->clock.id == b->clock.id && wall_offset(&a->clock, &wall_a) &&
	       wall_offset(&b->clock, &wall_b) && !__builtin_sub_overflow(wall_a, wall_b, &diff) &&
	       diff > -SAME_BOOT_NS && diff < SAME_BOOT_NS;
}

static bool by_wall_clock(const struct merge_input *ref, struct merge_input *in)
{
	int64_t theirs, ours;

	return wall_offset(&in->clock, &theirs) && wall_offset(&ref->clock, &ours) &&
	       !__builtin_sub_overflow(theirs, ours, &in->offset);
}

/* --clock-offset of this file: by its path, else by its label. */
static const struct merge_named *given_offset(const struct merge *m, const struct merge_input *in)
{
	const struct merge_named *found = NULL;

	for (size_t i = 0; i < m->opts->nr_offsets; i++) {
		const struct merge_named *o = &m->opts->offsets[i];

		if (!strcmp(o->name, in->path))
			return o;
		if (in->label && !strcmp(o->name, in->label))
			found = o;
	}
	return found;
}

static int check_offsets(const struct merge *m, struct vmprof_err *err)
{
	for (size_t i = 0; i < m->opts->nr_offsets; i++) {
		const struct merge_named *o = &m->opts->offsets[i];
		bool found = false;

		for (size_t k = 0; k < m->nr_inputs; k++) {
			const struct merge_input *in = &m->inputs[k];

			found |= !strcmp(o->name, in->path) ||
				 (in->label && !strcmp(o->name, in->label));
		}
		if (!found)
			return err_set(err, ENOENT,
				       "--clock-offset: no input has the label or path %s",
				       o->name);
	}
	return 0;
}

static int refuse(const struct merge *m, const struct merge_input *in, struct vmprof_err *err)
{
	const struct merge_input *ref = m->reference;
	const char *who = in->label ? in->label : in->path;

	/* a label that several have would move all of them */
	for (size_t i = 0; i < m->nr_inputs; i++)
		if (&m->inputs[i] != in && m->inputs[i].label && !strcmp(m->inputs[i].label, who))
			who = in->path;
	return err_set(err, EINVAL,
		       "%s (%s) and %s (%s): nothing in the files says how their clocks stand to "
		       "each other. Record both with 'perf record -k CLOCK_MONOTONIC' (perf 5.9 or "
		       "newer notes the time of day then), or give --clock-offset %.200s=NS, or "
		       "merge them without a common time line with --no-align",
		       in->shown, merge_clock_name(&in->clock), ref->shown,
		       merge_clock_name(&ref->clock), who);
}

static int refuse_unaligned(const struct merge_input *in, struct vmprof_err *err)
{
	return err_set(err, EINVAL,
		       "%s was merged with --no-align and has no common time line; merge what it "
		       "was made of, or go on with --no-align",
		       in->shown);
}

static int align(struct merge *m, struct merge_input *in, struct vmprof_err *err)
{
	const struct merge_named *given = given_offset(m, in);
	int ret = -ENOENT;

	if (given) {
		in->offset = given->value;
		in->align = MERGE_GIVEN;
	} else if (in == m->reference) {
		in->align = MERGE_REFERENCE;
	} else if (same_clock(m, m->reference, in)) {
		in->align = MERGE_SAME_CLOCK;
	} else if (in->in_guest && !(ret = merge_recorded_points(m, in, err))) {
		in->align = MERGE_RECORDED;
	} else if (by_wall_clock(m->reference, in)) {
		in->align = MERGE_WALL_CLOCK;
	} else { /* if something was recorded, why that is of no use is said */
		return ret == -ENOENT ? refuse(m, in, err) : ret;
	}
	return 0;
}

/* A guest's file may be aligned by a file of the host's: those come first. */
static int align_all(struct merge *m, struct vmprof_err *err)
{
	int ret = 0;

	for (int guests = 0; guests < 2; guests++)
		for (size_t i = 0; i < m->nr_inputs && !ret; i++) {
			if (m->inputs[i].in_guest != guests)
				continue;
			ret = m->inputs[i].unaligned ? refuse_unaligned(&m->inputs[i], err)
						     : align(m, &m->inputs[i], err);
		}
	return ret;
}

static int64_t offset_at(const struct merge_input *in, uint64_t time)
{
	return in->nr_points ? merge_recorded_offset(in, (int64_t)time) : in->offset;
}

uint64_t merge_time(const struct merge_input *in, uint64_t time)
{
	int64_t t, offset;

	if (time > INT64_MAX)
		return time;
	offset = offset_at(in, time);
	if (__builtin_add_overflow((int64_t)time, offset, &t))
		t = offset < 0 ? 1 : INT64_MAX;
	/* 0 is what a record without a time has */
	return t > 0 ? (uint64_t)t : 1;
}

static int check_range(const struct merge_input *in, struct vmprof_err *err)
{
	int64_t t;

	if (!in->first ||
	    (in->last <= INT64_MAX &&
	     !__builtin_add_overflow((int64_t)in->first, offset_at(in, in->first), &t) && t > 0 &&
	     !__builtin_add_overflow((int64_t)in->last, offset_at(in, in->last), &t)))
		return 0;
	return err_set(err, ERANGE,
		       "%s: its times, moved by %+" PRId64 " ns, are before the clock's 0 or "
		       "beyond its end; if --clock-offset said so, is the sign right?",
		       in->shown, in->offset);
}

int merge_plan_clocks(struct merge *m, struct vmprof_err *err)
{
	int ret = check_offsets(m, err);

	m->no_align = m->opts->no_align;
	for (size_t i = 0; i < m->nr_inputs && !m->reference; i++)
		if (!m->inputs[i].in_guest)
			m->reference = &m->inputs[i];
	if (!m->reference)
		m->reference = &m->inputs[0];
	for (size_t i = 0; i < m->nr_inputs; i++)
		m->inputs[i].align = MERGE_NONE;
	if (!ret && !m->no_align)
		ret = align_all(m, err);
	for (size_t i = 0; i < m->nr_inputs && !ret; i++) {
		struct merge_input *in = &m->inputs[i];
		uint64_t start = in->start ? merge_time(in, in->start) : 0;

		ret = check_range(in, err);
		if (start && (!m->start || start < m->start))
			m->start = start;
	}
	if (!m->start)
		m->start = 1;
	return ret;
}
