// SPDX-License-Identifier: GPL-2.0-only
/*
 * kernel/core: the VM table and the counter scheduler. What is refused; assignments beside an
 * exhaustive search; and a simulated PMU whose VMs count known events, alone, side by side and in
 * turns.
 */
#include "kernel/core/sched.h"
#include "kernel/core/table.h"
#include "tests/unit/test.h"

#define ROWS 8

static struct vmp_row rows[ROWS];

/* A VM that counts nr events, each of which any of these counters can count. */
static struct vmp_row row_of(u64 vm, u32 nr, u64 counters)
{
	struct vmp_row row = {.vm = vm, .nr = nr};

	for (u32 i = 0; i < nr && i < VMP_EVENTS_MAX; i++)
		row.controls[i] = (struct vmp_control){
			.config = 0x10 + i, .flags = VMP_COUNT_FLAGS, .counters = counters};
	return row;
}

static void test_refused(void)
{
	struct vmp_table table;
	struct vmp_row row = row_of(1, 4, 0xf), bad;

	vmp_table_init(&table, 0xf, rows, 2);
	bad = row, bad.vm = 0;
	CHECK_EQ(vmp_table_put(&table, &bad), -VMP_EINVAL);
	bad = row, bad.nr = 0;
	CHECK_EQ(vmp_table_put(&table, &bad), -VMP_EINVAL);
	bad = row, bad.nr = VMP_EVENTS_MAX + 1;
	CHECK_EQ(vmp_table_put(&table, &bad), -VMP_EINVAL);
	bad = row, bad.flags = ~0u;
	CHECK_EQ(vmp_table_put(&table, &bad), -VMP_EINVAL);
	bad = row, bad.delivery = VMP_DELIVERIES;
	CHECK_EQ(vmp_table_put(&table, &bad), -VMP_EINVAL);
	bad = row, bad.delivery = VMP_DELIVER_INJECT;
	CHECK_EQ(vmp_table_put(&table, &bad), -VMP_EINVAL);
	bad = row, bad.delivery = VMP_DELIVER_DIRECT;
	CHECK_EQ(vmp_table_put(&table, &bad), -VMP_EINVAL);
	bad = row, bad.controls[3].flags = 0;
	CHECK_EQ(vmp_table_put(&table, &bad), -VMP_EINVAL);
	bad = row, bad.controls[3].counters = 0x10; /* no such counter */
	CHECK_EQ(vmp_table_put(&table, &bad), -VMP_EINVAL);
	bad = row_of(1, 5, 0xf);
	CHECK_EQ(vmp_table_put(&table, &bad), -VMP_ECOUNTERS);
	CHECK_EQ(table.nr, 0);

	CHECK_EQ(vmp_table_put(&table, &row), 0);
	CHECK_EQ(vmp_table_put(&table, &row), -VMP_EBUSY);
	row.vm = 2;
	CHECK_EQ(vmp_table_put(&table, &row), 0);
	row.vm = 3;
	CHECK_EQ(vmp_table_put(&table, &row), -VMP_EFULL);
	CHECK(vmp_table_find(&table, 2) == &rows[1]);
	CHECK_EQ(vmp_table_remove(&table, 1), 0);
	CHECK_EQ(vmp_table_remove(&table, 1), -VMP_ENOENT);
	CHECK(vmp_table_find(&table, 2) == &rows[0]);
	CHECK(!vmp_table_find(&table, 1));
}

/* Counters are dedicated as long as all events of all VMs fit, and no longer. */
static void test_sharing(void)
{
	struct vmp_table table;
	struct vmp_row row;
	u64 used = 0;

	vmp_table_init(&table, 0x7f, rows, ROWS);
	row = row_of(1, 3, 0x7f);
	CHECK_EQ(vmp_table_put(&table, &row), 0);
	row = row_of(2, 4, 0x7f);
	row.controls[1].counters = 0; /* a software event */
	CHECK_EQ(vmp_table_put(&table, &row), 0);
	CHECK_EQ(table.sharing, VMP_DEDICATED);
	row = row_of(3, 1, 0x7f);
	CHECK_EQ(vmp_table_put(&table, &row), 0);
	CHECK_EQ(table.sharing, VMP_DEDICATED);
	for (u32 r = 0; r < table.nr; r++)
		for (u32 i = 0; i < rows[r].nr; i++) {
			if (rows[r].counter[i] == VMP_NO_COUNTER)
				continue;
			CHECK(!(used >> rows[r].counter[i] & 1));
			used |= 1ull << rows[r].counter[i];
		}
	CHECK_EQ(used, 0x7f);
	CHECK_EQ(rows[1].counter[1], VMP_NO_COUNTER);

	row = row_of(4, 1, 0x40);
	CHECK_EQ(vmp_table_put(&table, &row), 0);
	CHECK_EQ(table.sharing, VMP_VIRTUAL);
	CHECK_EQ(rows[3].counter[0], 6);
	CHECK_EQ(rows[3].slices, 1);
	CHECK_EQ(vmp_table_remove(&table, 3), 0);
	CHECK_EQ(table.sharing, VMP_DEDICATED);
	CHECK_EQ(rows[2].counter[0], 6);
}

/* Whether the events from i on have an arrangement, by trying all. */
static int fits(const u64 *wanted, u32 nr, u32 i, u64 free)
{
	if (i == nr)
		return 1;
	if (!wanted[i])
		return fits(wanted, nr, i + 1, free);
	for (u64 m = wanted[i] & free; m; m &= m - 1)
		if (fits(wanted, nr, i + 1, free & ~(m & -m)))
			return 1;
	return 0;
}

static void test_match(void)
{
	unsigned int seed = 1;
	u64 wanted[6];
	u8 counter[6];

	for (int round = 0; round < 20000; round++) {
		u32 nr = 1 + (u32)rand_r(&seed) % 6;
		u64 counters = (u64)rand_r(&seed) & 0x3f, used = 0;
		u32 placed;

		for (u32 i = 0; i < nr; i++)
			wanted[i] = (u64)(rand_r(&seed) & rand_r(&seed)) & 0x3f;
		placed = vmp_match(wanted, nr, counters, counter);
		CHECK_EQ(placed == nr, fits(wanted, nr, 0, counters));
		for (u32 i = 0; i < nr; i++) {
			if (counter[i] == VMP_NO_COUNTER)
				continue;
			CHECK(wanted[i] & counters & 1ull << counter[i]);
			CHECK(!(used >> counter[i] & 1));
			used |= 1ull << counter[i];
		}
	}
}

/* Events in turns: each has one, no turn holds more than there are counters, and there is no turn
 * too many. */
static void test_turns(void)
{
	struct vmp_table table;
	struct vmp_row row = row_of(1, 17, 0x7f);
	u32 in_turn[VMP_EVENTS_MAX] = {0};

	row.flags = VMP_ROW_MULTIPLEX;
	vmp_table_init(&table, 0x7f, rows, ROWS);
	CHECK_EQ(vmp_table_put(&table, &row), 0);
	CHECK_EQ(rows[0].slices, 3);
	CHECK_EQ(table.sharing, VMP_VIRTUAL);
	for (u32 i = 0; i < rows[0].nr; i++) {
		in_turn[rows[0].slice[i]]++;
		CHECK(rows[0].counter[i] < 7);
		for (u32 k = 0; k < i; k++)
			CHECK(rows[0].slice[k] != rows[0].slice[i] ||
			      rows[0].counter[k] != rows[0].counter[i]);
	}
	CHECK_EQ(in_turn[0], 7);
	CHECK_EQ(in_turn[2], 3);

	row = row_of(2, 3, 0x01); /* one counter, three events */
	row.flags = VMP_ROW_MULTIPLEX;
	CHECK_EQ(vmp_table_put(&table, &row), 0);
	CHECK_EQ(rows[1].slices, 3);
}

static void test_scaled(void)
{
	unsigned int seed = 2;
	struct vmp_count count = {.value = 1000, .enabled = 300, .running = 100};

	CHECK_EQ(vmp_scaled(&count), 3000);
	count.running = 0;
	CHECK_EQ(vmp_scaled(&count), 0);
	count = (struct vmp_count){~0ull, ~0ull, ~0ull};
	CHECK_EQ(vmp_scaled(&count), ~0ull);
	count.running = 1;
	CHECK_EQ(vmp_scaled(&count), ~0ull);
	for (int i = 0; i < 100000; i++) {
		u64 random[3];
		unsigned __int128 exact;

		for (int k = 0; k < 3; k++)
			random[k] = (((u64)(u32)rand_r(&seed) << 33) ^
				     ((u64)(u32)rand_r(&seed) << 11) ^ (u32)rand_r(&seed)) >>
				    (rand_r(&seed) & 63);
		count = (struct vmp_count){random[0], random[1] + random[2], random[2] | 1};
		if (count.running >= count.enabled)
			continue;
		exact = (unsigned __int128)count.value * count.enabled / count.running;
		CHECK_EQ(vmp_scaled(&count), exact > ~0ull ? ~0ull : (u64)exact);
	}
}

/* ------------------------------------------------------------------ a simulated PMU */

#define MS 1000000ull

/* What event i of the VM happens, in events a ms of its time; it changes as the VM works. */
static u64 rate(u64 vm, u32 event, u64 ms)
{
	return 1000 * vm + 10 * event + (ms / 100 % 2 ? 37 * event : 0);
}

/*
 * A CPU goes around the table's VMs, 3 ms each. Its counters count what they are set to. Within a
 * VM, turns are 4 ms of the VM's own time. The counts come out in counts, the truth in truth.
 */
static void simulate(const struct vmp_table *table, u64 ms,
		     struct vmp_count counts[][VMP_EVENTS_MAX], u64 truth[][VMP_EVENTS_MAX])
{
	u64 own[ROWS] = {0};

	for (u64 now = 0; now < ms; now++) {
		u32 r = (u32)(now / 3 % table->nr);
		const struct vmp_row *row = &table->rows[r];
		u32 turn = (u32)(own[r] / 4 % row->slices);
		u64 set[VMP_COUNTERS_MAX] = {0}; /* what each counter is set to */

		for (u32 i = 0; i < row->nr; i++) {
			u64 events = rate(row->vm, i, own[r]);

			truth[r][i] += events;
			counts[r][i].enabled += MS;
			if (row->slice[i] != turn)
				continue;
			CHECK(!set[row->counter[i]]);
			set[row->counter[i]] = row->controls[i].config;
			counts[r][i].value += events;
			counts[r][i].running += MS;
		}
		own[r]++;
	}
}

/* Three VMs on one CPU with seven counters: sets that just fit, sets that do not, and one that
 * needs turns. */
static void test_simulated(void)
{
	static const u32 sets[][3] = {{3, 2, 2}, {7, 6, 5}, {16, 7, 3}};

	for (u32 s = 0; s < 3; s++) {
		static struct vmp_count counts[ROWS][VMP_EVENTS_MAX];
		static u64 truth[ROWS][VMP_EVENTS_MAX];
		struct vmp_table table;

		memset(counts, 0, sizeof(counts));
		memset(truth, 0, sizeof(truth));
		vmp_table_init(&table, 0x7f, rows, ROWS);
		for (u32 v = 0; v < 3; v++) {
			struct vmp_row row = row_of(v + 1, sets[s][v], 0x7f);

			row.flags = VMP_ROW_MULTIPLEX;
			CHECK_EQ(vmp_table_put(&table, &row), 0);
		}
		CHECK_EQ(table.sharing, s ? VMP_VIRTUAL : VMP_DEDICATED);
		simulate(&table, 30000, counts, truth);
		for (u32 v = 0; v < 3; v++)
			for (u32 i = 0; i < sets[s][v]; i++) {
				u64 scaled = vmp_scaled(&counts[v][i]);
				u64 off = scaled > truth[v][i] ? scaled - truth[v][i]
							       : truth[v][i] - scaled;

				if (rows[v].slices == 1) {
					CHECK_EQ(counts[v][i].running, counts[v][i].enabled);
					CHECK_EQ(scaled, truth[v][i]);
				}
				CHECK(off * 100 <= truth[v][i] * 3);
			}
	}
}

int main(void)
{
	test_refused();
	test_sharing();
	test_match();
	test_turns();
	test_scaled();
	test_simulated();
	return test_done();
}
