// SPDX-License-Identifier: GPL-2.0-only
#include "sched.h"

#define NOBODY (~0u)

/* Who has each counter while events are being placed: an event's number or NOBODY. */
struct placing {
	const u64 *wanted;
	u64 counters;
	u32 holder[VMP_COUNTERS_MAX];
};

static u32 lowest(u64 bits)
{
	return (u32)__builtin_ctzll(bits);
}

/*
 * Searches, breadth first, a chain of moves that ends at a free counter: the event takes a counter
 * whose holder takes another one, and so on. came_from[c] is the event that would take counter c.
 * No recursion: an interrupt handler's stack is short.
 */
static int place(struct placing *p, u32 event)
{
	u32 queue[VMP_COUNTERS_MAX + 1], head = 0, tail = 0;
	u32 came_from[VMP_COUNTERS_MAX];
	u8 has[VMP_COUNTERS_MAX]; /* which counter the event in came_from[c] has now */
	u64 seen = 0;
	u8 holds = VMP_NO_COUNTER;

	queue[tail++] = event;
	while (head < tail) {
		u32 taker = queue[head++];
		u64 next = p->wanted[taker] & p->counters & ~seen;

		/* The first in the queue is the new event; each other one was put there by its
		 * counter. */
		if (head > 1) {
			for (holds = 0; p->holder[holds] != taker; holds++)
				;
		}
		for (; next; next &= next - 1) {
			u32 c = lowest(next);

			seen |= 1ull << c;
			came_from[c] = taker;
			has[c] = holds;
			if (p->holder[c] != NOBODY) {
				queue[tail++] = p->holder[c];
				continue;
			}
			while (c != VMP_NO_COUNTER) {
				p->holder[c] = came_from[c];
				c = has[c];
			}
			return 1;
		}
	}
	return 0;
}

u32 vmp_match(const u64 *wanted, u32 nr, u64 counters, u8 *counter)
{
	struct placing p = {.wanted = wanted, .counters = counters};
	u32 i, placed = 0;

	for (i = 0; i < VMP_COUNTERS_MAX; i++)
		p.holder[i] = NOBODY;
	for (i = 0; i < nr; i++) {
		counter[i] = VMP_NO_COUNTER;
		placed += !wanted[i] || place(&p, i);
	}
	for (i = 0; i < VMP_COUNTERS_MAX; i++)
		if (p.holder[i] != NOBODY)
			counter[p.holder[i]] = (u8)i;
	return placed;
}

/* The counters of the row's events of one turn; whether all of them have one. */
static int place_slice(struct vmp_row *row, u32 slice, u64 counters)
{
	u64 wanted[VMP_EVENTS_MAX] = {0};
	u8 counter[VMP_EVENTS_MAX];
	u32 which[VMP_EVENTS_MAX];
	u32 i, nr = 0;

	for (i = 0; i < row->nr; i++)
		if (row->slice[i] == slice) {
			wanted[nr] = row->controls[i].counters;
			which[nr++] = i;
		}
	if (vmp_match(wanted, nr, counters, counter) != nr)
		return 0;
	for (i = 0; i < nr; i++)
		row->counter[which[i]] = counter[i];
	return 1;
}

#define NO_SLICE 0xff

/* First fit: each event goes into the first turn that has room for it. */
static void take_turns(struct vmp_row *row, u64 counters)
{
	u32 i, s;

	row->slices = 0;
	for (i = 0; i < row->nr; i++)
		row->slice[i] = NO_SLICE;
	for (i = 0; i < row->nr; i++) {
		for (s = 0;; s++) {
			row->slice[i] = (u8)s;
			if (place_slice(row, s, counters))
				break;
		}
		if (s >= row->slices)
			row->slices = s + 1;
	}
}

int vmp_sched_row(struct vmp_row *row, u64 counters)
{
	u32 i;

	row->slices = 1;
	for (i = 0; i < row->nr; i++)
		row->slice[i] = 0;
	if (place_slice(row, 0, counters))
		return 0;
	if (!(row->flags & VMP_ROW_MULTIPLEX))
		return -VMP_ECOUNTERS;
	take_turns(row, counters);
	return 0;
}

/* Takes the events of all rows for one VM's. No more of them are looked at than can be placed. */
static int place_all(struct vmp_table *table)
{
	u64 wanted[VMP_COUNTERS_MAX] = {0};
	u8 counter[VMP_COUNTERS_MAX];
	u32 r, i, nr = 0;

	for (r = 0; r < table->nr; r++)
		for (i = 0; i < table->rows[r].nr; i++) {
			if (!table->rows[r].controls[i].counters)
				continue;
			if (nr == VMP_COUNTERS_MAX)
				return 0;
			wanted[nr++] = table->rows[r].controls[i].counters;
		}
	if (vmp_match(wanted, nr, table->counters, counter) != nr)
		return 0;
	nr = 0;
	for (r = 0; r < table->nr; r++)
		for (i = 0; i < table->rows[r].nr; i++)
			if (table->rows[r].controls[i].counters)
				table->rows[r].counter[i] = counter[nr++];
	return 1;
}

void vmp_sched_table(struct vmp_table *table)
{
	u32 r;

	table->sharing = place_all(table) ? VMP_DEDICATED : VMP_VIRTUAL;
	if (table->sharing == VMP_VIRTUAL)
		for (r = 0; r < table->nr; r++)
			vmp_sched_row(&table->rows[r], table->counters);
}

/*
 * a * b / c, rounded down, c > 0, or 2^64 - 1. Kernels have no 128-bit division: this is the
 * schoolbook's, a bit of b at a time. quotient and rest stand for (a * the bits so far) / c.
 */
static u64 mul_div(u64 a, u64 b, u64 c)
{
	u64 whole = a / c, part = a % c, quotient = 0, rest = 0, carry;
	int bit;

	for (bit = 63; bit >= 0; bit--) {
		if (quotient >> 63)
			return ~0ull;
		carry = rest >= c - rest;
		rest = carry ? rest - (c - rest) : rest + rest;
		quotient = 2 * quotient + carry;
		if (!(b >> bit & 1))
			continue;
		carry = part >= c - rest;
		rest = carry ? part - (c - rest) : part + rest;
		if (quotient > ~0ull - carry || quotient + carry > ~0ull - whole)
			return ~0ull;
		quotient += whole + carry;
	}
	return quotient;
}

u64 vmp_scaled(const struct vmp_count *count)
{
	if (!count->running)
		return 0;
	if (count->running >= count->enabled)
		return count->value;
	return mul_div(count->value, count->enabled, count->running);
}
