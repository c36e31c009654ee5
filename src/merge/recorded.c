// SPDX-License-Identifier: GPL-2.0-only
/*
 * "clock" records: a recorder on the host has measured, again and again, what is to be added to a
 * clock of the guest's. The clock of a guest that was calibrated badly, or that is being corrected,
 * has another rate than the host's: from one measurement to the next the offset is a line. How far
 * that may be from the truth is how far each measurement may be, and what is seen of bends.
 *
 * A clock that stood still (a paused VM), was set, or began anew (a reboot) cuts the measurements
 * into pieces: it is not known when between two of them that was.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "merge/impl.h"
#include "util/xalloc.h"

#define RATE_MAX                                                                                   \
	1000 /* of the clock's rate to the host's, per million: else it was stopped or set */
#define ERROR_MAX                                                                                  \
	10000000ll   /* ns: nothing that a profile is looked at for is told by a worse one */
#define ERROR_SPAN 4 /* measurements this much worse than the best one are left out */

/* The file's samples, by its own clock. */
struct span {
	int64_t first, last;
};

/* Measurements of which one follows from the other. */
struct piece {
	const struct merge_point *p;
	size_t n;
};

static bool has_clock(const struct merge_clock_fact *f, const struct perfdata_clock *c)
{
	return f->known == c->known && (!c->known || f->id == c->id);
}

/* false: what is there cannot be. */
static bool point_of(const struct merge_clock_fact *f, struct merge_point *p)
{
	p->error = f->error;
	return f->error <= ERROR_MAX &&
	       !__builtin_add_overflow(f->offset, f->input->offset, &p->offset) &&
	       !__builtin_sub_overflow((int64_t)f->time, f->offset, &p->time);
}

/* Points are in the order of the host's time: that of a clock which was set is none. */
static int by_host_time(const void *a, const void *b)
{
	const struct merge_point *pa = a, *pb = b;
	__int128 ta = (__int128)pa->time + pa->offset, tb = (__int128)pb->time + pb->offset;

	return ta < tb ? -1 : ta > tb;
}

static size_t collect(const struct merge *m, const struct merge_input *in, struct merge_point *p)
{
	int64_t best = INT64_MAX;
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < m->nr_facts; i++) {
		const struct merge_clock_fact *f = &m->facts[i];

		if (f->source->vm != in->sources[0]->vm || !has_clock(f, &in->clock) ||
		    f->input->align == MERGE_NONE || f->input->in_guest || !point_of(f, &p[n]))
			continue;
		best = p[n].error < best ? p[n].error : best;
		n++;
	}
	for (size_t i = 0; i < n; i++)
		if (p[i].error / ERROR_SPAN <= best)
			p[kept++] = p[i];
	qsort(p, kept, sizeof(*p), by_host_time);
	return kept;
}

/* ---------- pieces ---------- */

static bool follows(const struct merge_point *a, const struct merge_point *b)
{
	__int128 change = (__int128)b->offset - a->offset, time = (__int128)b->time - a->time;

	if (change < 0)
		change = -change;
	return time > 0 && change - a->error - b->error <= time * RATE_MAX / 1000000;
}

static struct piece next_piece(const struct merge_point *p, size_t n)
{
	struct piece s = {p, 1};

	while (s.n < n && follows(&p[s.n - 1], &p[s.n]))
		s.n++;
	return s;
}

/*
 * The one piece that has the file's time. What is before the first one and behind the last one is
 * theirs as well, in between it may be of either side. false: none, or several have some of it.
 */
static bool find_piece(const struct merge_point *p, size_t n, struct span t, struct piece *found)
{
	bool some = false, whole = false;
	struct piece s;

	for (size_t i = 0; i < n; i += s.n) {
		bool first = i == 0, last;

		s = next_piece(p + i, n - i);
		last = i + s.n == n;
		if (!(first && last) && (s.p->time > t.last || s.p[s.n - 1].time < t.first))
			continue;
		if (some)
			return false;
		some = true;
		whole = (first || s.p->time <= t.first) && (last || s.p[s.n - 1].time >= t.last);
		*found = s;
	}
	return whole;
}

/* ---------- the line, and how good it is ---------- */

/* On the line through @a and @b. */
static int64_t line(const struct merge_point *a, const struct merge_point *b, int64_t time)
{
	__int128 run = (__int128)b->time - a->time, offset;

	if (run <= 0)
		return a->offset;
	offset = a->offset + ((__int128)b->offset - a->offset) * ((__int128)time - a->time) / run;
	return offset < INT64_MIN ? INT64_MIN : offset > INT64_MAX ? INT64_MAX : (int64_t)offset;
}

int64_t merge_recorded_offset(const struct merge_input *in, int64_t time)
{
	const struct merge_point *p = in->points;
	size_t lo = 0, hi = in->nr_points - 1;

	/* outside of what was measured the rate is that of all of it */
	if (time < p[0].time || time > p[hi].time)
		return line(&p[0], &p[hi], time);
	while (hi - lo > 1) {
		size_t mid = (lo + hi) / 2;

		if (p[mid].time <= time)
			lo = mid;
		else
			hi = mid;
	}
	return line(&p[lo], &p[hi], time);
}

/* How far a point is from the line through its neighbours, beyond what all three may be off by. */
static int64_t bend(const struct merge_point *p)
{
	int64_t off = p->offset - line(p - 1, p + 1, p->time), error = p[-1].error;

	if (off < 0)
		off = -off;
	if (p[1].error > error)
		error = p[1].error;
	return off > p->error + error ? off - p->error - error : 0;
}

/* Time of the file that is furthest outside of what was measured; 0: all is inside. */
static __int128 beyond(struct span t, struct piece s)
{
	__int128 before = (__int128)s.p->time - t.first;
	__int128 after = (__int128)t.last - s.p[s.n - 1].time;
	__int128 out = before > after ? before : after;

	return out > 0 ? out : 0;
}

static int64_t error_of(struct span t, struct piece s)
{
	const struct merge_point *first = s.p, *last = s.p + s.n - 1;
	int64_t bends = 0;
	__int128 error = 0, out;

	for (size_t i = 0; i < s.n; i++) {
		int64_t b = i && i < s.n - 1 ? bend(&s.p[i]) : 0;

		bends = b > bends ? b : bends;
		error = s.p[i].error > error ? s.p[i].error : error;
	}
	error += bends;
	out = beyond(t, s);
	if (out && s.n > 1)
		error += out * ((__int128)first->error + last->error + bends) /
			 ((__int128)last->time - first->time);
	else if (out)
		error += out * RATE_MAX / 1000000;
	return error < INT64_MAX ? (int64_t)error : INT64_MAX;
}

/* ---------- */

static int refuse_pieces(const struct merge_input *in, const char *vm, struct vmprof_err *err)
{
	return err_set(
		err, ERANGE,
		"%s: the host has recorded that the clock of %s stood still, was set or began "
		"anew, and it is not known when in this file that was; give --clock-offset, or "
		"merge without a common time line with --no-align",
		in->shown, vm);
}

static int refuse_error(const struct merge_input *in, int64_t error, struct vmprof_err *err)
{
	return err_set(
		err, ERANGE,
		"%s: what the host has recorded of this guest's clock may be %.0f ms off for "
		"its times, which are not those of that record; give --clock-offset, or merge "
		"without a common time line with --no-align",
		in->shown, (double)error / 1e6);
}

static struct span span_of(const struct merge_input *in, const struct merge_point *p)
{
	if (!in->first)
		return (struct span){p->time, p->time};
	return (struct span){
		in->first < INT64_MAX ? (int64_t)in->first : INT64_MAX,
		in->last < INT64_MAX ? (int64_t)in->last : INT64_MAX,
	};
}

static int choose(const struct merge_point *p, size_t n, struct merge_input *in,
		  struct vmprof_err *err)
{
	struct span t = span_of(in, p);
	struct piece s;
	int64_t error;

	if (!find_piece(p, n, t, &s))
		return refuse_pieces(in, in->sources[0]->vm->name, err);
	error = error_of(t, s);
	if (error > ERROR_MAX)
		return refuse_error(in, error, err);
	in->points = xreallocarray(NULL, s.n, sizeof(*p));
	memcpy(in->points, s.p, s.n * sizeof(*p));
	in->nr_points = s.n;
	in->error = error;
	in->offset = merge_recorded_offset(in, t.first);
	return 0;
}

int merge_recorded_points(const struct merge *m, struct merge_input *in, struct vmprof_err *err)
{
	struct merge_point *p = xcalloc(m->nr_facts + 1, sizeof(*p));
	size_t n = collect(m, in, p);
	int ret = n ? choose(p, n, in, err) : -ENOENT;

	free(p);
	return ret;
}
