// SPDX-License-Identifier: GPL-2.0-only
#include "report/timerange.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"
#include "util/xalloc.h"

#define RANGES_MAX 4096u
#define NSEC	   1000000000u

/* Seconds with up to nine decimals; *s moves behind them. */
static bool parse_seconds(const char **s, uint64_t *ns)
{
	uint64_t v = 0, unit = NSEC;
	const char *p = *s;

	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	if (__builtin_mul_overflow(v, unit, &v))
		return false;
	if (*p == '.')
		for (p++; isdigit((unsigned char)*p); p++) {
			unit /= 10;
			if (__builtin_add_overflow(v, (uint64_t)(*p - '0') * unit, &v))
				return false;
		}
	*s = p;
	*ns = v;
	return true;
}

static void add(struct time_ranges *t, uint64_t start, uint64_t stop)
{
	t->r = xreallocarray(t->r, t->n + 1, sizeof(*t->r));
	t->r[t->n++] = (struct time_range){start, stop};
}

/* START,STOP: one of them may be missing. */
static bool parse_absolute(struct time_ranges *t, const char **s)
{
	uint64_t start = 0, stop = UINT64_MAX;

	if (**s != ',' && !parse_seconds(s, &start))
		return false;
	if (*(*s)++ != ',')
		return false;
	if (isdigit((unsigned char)**s) && !parse_seconds(s, &stop))
		return false;
	if (start > stop || (t->n && start <= t->r[t->n - 1].stop))
		return false;
	add(t, start, stop);
	return true;
}

/* A number with %, as a share of one. */
static bool parse_percent(const char **s, double *share)
{
	char *end;

	if (!isdigit((unsigned char)**s))
		return false;
	*share = strtod(*s, &end) / 100;
	if (*end != '%' || *share > 1)
		return false;
	*s = end + 1;
	return true;
}

static bool parse_share(struct time_ranges *t, const char **s, uint64_t first, uint64_t last)
{
	double from = 0, to;
	uint64_t start, stop;
	unsigned long nth;
	char *end;

	if (!parse_percent(s, &to))
		return false;
	if (**s == '-') {
		from = to;
		(*s)++;
		if (!parse_percent(s, &to))
			return false;
	} else if (**s == '/') {
		nth = strtoul(*s + 1, &end, 10);
		if (!isdigit((unsigned char)(*s)[1]) || !nth || (double)nth * to > 1 + 1e-9)
			return false;
		from = (double)(nth - 1) * to;
		to = fmin((double)nth * to, 1);
		*s = end;
	}
	if (from > to)
		return false;
	start = first + (uint64_t)llround(from * (double)(last - first));
	stop = first + (uint64_t)llround(to * (double)(last - first));
	/* what is at the border is in the next one only */
	add(t, start, stop - (stop > start && stop != last));
	return true;
}

int time_ranges_parse(struct time_ranges *t, const char *text, uint64_t first, uint64_t last,
		      struct vmprof_err *err)
{
	bool shares = strchr(text, '%'), good = true;
	const char *s = text;
	char shown[128];

	*t = (struct time_ranges){0};
	if (shares && (!last || first > last))
		return err_set(err, EINVAL,
			       "--time in percent: the file does not say from when to when it was "
			       "recorded; give seconds");
	do {
		good = t->n < RANGES_MAX &&
		       (shares ? parse_share(t, &s, first, last) : parse_absolute(t, &s));
		if (good && *s && *s++ != (shares ? ',' : ' '))
			good = false;
	} while (good && *s);
	if (good)
		return 0;
	time_ranges_free(t);
	return err_set(err, EINVAL, "--time '%s' is no START,STOP in seconds, 10%%/2 or 0%%-10%%",
		       escape_str(shown, sizeof(shown), text));
}

void time_ranges_free(struct time_ranges *t)
{
	free(t->r);
	*t = (struct time_ranges){0};
}

bool time_ranges_have(const struct time_ranges *t, uint64_t time)
{
	for (size_t i = 0; i < t->n; i++)
		if (time >= t->r[i].start && time <= t->r[i].stop)
			return true;
	return !t->n || !time;
}
