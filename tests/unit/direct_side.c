// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring in which a guest's kernel tells of its processes: what was told before a sample comes
 * out before it, and what a hostile one writes there as something that can be, or as lost.
 */
#include <errno.h>
#include <sys/mman.h>

#include "backend/direct_side.h"
#include "tests/unit/test.h"

#define PAGE 4096u
#define SIZE ((u64)VMP_RECORD_MAX)

static u8 memory[PAGE + SIZE] __attribute__((aligned(64)));
static struct vmp_ring producer;

static void make_ring(struct direct_side *s)
{
	CHECK_EQ(vmp_ring_init(&producer, memory, PAGE, SIZE), 0);
	CHECK_EQ(direct_side_open(s, memory, sizeof(memory)), 0);
}

static void put_process(u64 time, u32 what, u32 tgid, u32 parent)
{
	struct vmp_guest_process p = {.header = {sizeof(p), VMP_REC_GUEST_PROCESS},
				      .time = time,
				      .began = 5,
				      .tgid = tgid,
				      .parent = parent,
				      .what = what};
	struct vmp_part part = {&p, sizeof(p)};

	memset(p.comm, 'x', sizeof(p.comm)); /* with no end */
	vmp_ring_write(&producer, &part, 1);
}

/* len: of the path's bytes that are written, a multiple of 8. */
static void put_map(const struct vmp_guest_map *like, const char *bytes, u32 len)
{
	struct vmp_guest_map m = *like;
	struct vmp_part parts[2] = {{&m, sizeof(m)}, {bytes, len}};

	m.header = (struct vmp_record){(u32)sizeof(m) + len, VMP_REC_GUEST_MAP};
	vmp_ring_write(&producer, parts, len ? 2 : 1);
}

static const struct vmp_guest_map good_map = {.time = 20,
					      .began = 5,
					      .start = 0x400000,
					      .end = 0x402000,
					      .offset = 0x1000,
					      .ino = 42,
					      .size = 12345,
					      .dev = 8 << 20 | 1,
					      .generation = 6,
					      .tgid = 7,
					      .flags = VMP_MAP_READ | VMP_MAP_EXEC,
					      .build_id_len = 20,
					      .build_id = {0xab}};

static void test_order(void)
{
	struct direct_side s;
	struct raw_told told;

	make_ring(&s);
	put_map(&good_map, "/bin/app\0\0\0\0\0\0\0", 16);
	put_process(21, VMP_PROCESS_KNOWN, 7, 1);
	put_process(22, VMP_PROCESS_FORK, 8, 7);
	put_process(500, VMP_PROCESS_EXEC, 8, 7); /* later than now */
	put_process(23, VMP_PROCESS_GONE, 8, 0);
	CHECK(!direct_side_take(&s, 100, &told)); /* not looked yet */
	direct_side_look(&s, 50);
	CHECK(!direct_side_take(&s, 19, &told));
	CHECK(direct_side_take(&s, 20, &told));
	CHECK_EQ(told.type, RAW_TOLD_MAP);
	CHECK_EQ(told.time, 20);
	CHECK_EQ(told.pid, 7);
	CHECK_EQ(told.began, 5);
	CHECK_EQ(told.start, 0x400000);
	CHECK_EQ(told.end, 0x402000);
	CHECK_EQ(told.pgoff, 0x1000);
	CHECK_EQ(told.dev, 0x801);
	CHECK_EQ(told.ino, 42);
	CHECK_EQ(told.ino_generation, 6);
	CHECK_EQ(told.size, 12345);
	CHECK_EQ(told.prot, PROT_READ | PROT_EXEC);
	CHECK_EQ(told.flags, MAP_PRIVATE);
	CHECK_EQ(told.build_id[0], 0xab);
	CHECK_STR(told.path, "/bin/app");
	CHECK(!direct_side_take(&s, 20, &told));
	CHECK(direct_side_take(&s, 50, &told) && told.type == RAW_TOLD_KNOWN);
	CHECK_EQ(strlen(told.comm), sizeof(told.comm) - 1);
	CHECK(direct_side_take(&s, 50, &told) && told.type == RAW_TOLD_FORK && told.ppid == 7);
	CHECK(direct_side_take(&s, 50, &told) && told.type == RAW_TOLD_EXEC);
	CHECK_EQ(told.time, 50);
	CHECK(direct_side_take(&s, 50, &told) && told.type == RAW_TOLD_GONE);
	CHECK(!direct_side_take(&s, 50, &told));
	put_process(51, VMP_PROCESS_GONE, 7, 0); /* has come since */
	CHECK(!direct_side_take(&s, 100, &told));
	direct_side_look(&s, 60);
	CHECK(direct_side_take(&s, 100, &told) && told.pid == 7);
	CHECK_EQ(s.lost, 0);
	vmp_ring_missed(&producer, 5);
	put_process(61, VMP_PROCESS_GONE, 9, 0);
	direct_side_look(&s, 70);
	CHECK(direct_side_take(&s, 100, &told) && told.type == RAW_TOLD_LOST);
	CHECK(direct_side_take(&s, 100, &told) && told.pid == 9);
	CHECK_EQ(s.lost, 5);
	direct_side_free(&s);
	CHECK(!direct_side_take(&s, 100, &told)); /* there is none */
	direct_side_look(&s, 100);
	memory[0] ^= 1;
	CHECK_EQ(direct_side_open(&s, memory, sizeof(memory)), -EPROTO);
}

#define BAD_MAP(field, value)                                                                      \
	do {                                                                                       \
		struct vmp_guest_map bad = good_map;                                               \
		bad.field = (value);                                                               \
		put_map(&bad, "/bin/app\0\0\0\0\0\0\0", 16);                                       \
		n++;                                                                               \
	} while (0)

/* What cannot be is lost, and says so. */
static void test_hostile(void)
{
	static char longer[VMP_MAP_PATH_MAX + 8];
	struct direct_side s;
	struct raw_told told;
	u64 n = 0;

	make_ring(&s);
	BAD_MAP(start, 0x402000);
	BAD_MAP(end, ~0ull);
	BAD_MAP(end, 1ull << 63);
	BAD_MAP(offset, ~0ull);
	BAD_MAP(offset, 1ull << 63);
	BAD_MAP(tgid, 0);
	BAD_MAP(tgid, 1u << 31);
	BAD_MAP(build_id_len, 21);
	put_map(&good_map, NULL, 0);
	put_map(&good_map, "\0\0\0\0\0\0\0", 8);
	put_map(&good_map, "/no/end/", 8);
	memset(longer, 'x', sizeof(longer));
	put_map(&good_map, longer, sizeof(longer));
	put_process(20, VMP_PROCESS_WHATS, 7, 1);
	put_process(20, VMP_PROCESS_FORK, 0, 1);
	put_process(20, VMP_PROCESS_FORK, 1u << 31, 1);
	put_process(20, VMP_PROCESS_FORK, 7, 1u << 31);
	n += 8;
	direct_side_look(&s, 50);
	for (u64 i = 0; i < n; i++)
		CHECK(direct_side_take(&s, 50, &told) && told.type == RAW_TOLD_LOST);
	CHECK(!direct_side_take(&s, 50, &told));
	CHECK_EQ(s.lost, n);
	longer[VMP_MAP_PATH_MAX - 1] = 0;
	put_map(&good_map, longer, VMP_MAP_PATH_MAX);
	direct_side_look(&s, 50);
	CHECK(direct_side_take(&s, 50, &told) && told.type == RAW_TOLD_MAP);
	CHECK_EQ(strlen(told.path), VMP_MAP_PATH_MAX - 1);
	for (int i = 0; i < 4; i++) {
		vmp_ring_missed(&producer, ~0ull >> 1);
		put_process(20, VMP_PROCESS_GONE, 7, 0);
	}
	direct_side_look(&s, 50);
	while (direct_side_take(&s, 50, &told))
		;
	CHECK(s.lost < 1ull << 50);
	direct_side_free(&s);
}

static uint64_t random_word(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static void test_random(void)
{
	struct direct_side s;
	struct raw_told told;
	unsigned taken = 0;

	for (int round = 0; round < 300; round++) {
		make_ring(&s);
		for (u64 i = 0; i < 100; i++) {
			put_map(&good_map, "/bin/app\0\0\0\0\0\0\0", 16);
			put_process(20, i % VMP_PROCESS_WHATS, 7, 1);
		}
		for (int i = 0; i < round % 60; i++)
			memory[PAGE + random_word() % 16384] = (u8)random_word();
		if (round % 10 == 9)
			vmp_store(&producer.page->head, random_word() >> random_word() % 64);
		direct_side_look(&s, 1000);
		while (direct_side_take(&s, 1000, &told)) {
			taken++;
			CHECK(told.time <= 1000);
			if (told.type != RAW_TOLD_LOST)
				CHECK(told.pid > 0 && told.ppid >= 0);
			CHECK(strnlen(told.comm, sizeof(told.comm)) < sizeof(told.comm));
			if (told.type != RAW_TOLD_MAP)
				continue;
			CHECK(told.start < told.end && !(told.end >> 63));
			CHECK(told.build_id_len <= 20 && strlen(told.path) < VMP_MAP_PATH_MAX);
		}
		direct_side_free(&s);
	}
	CHECK(taken > 10000);
}

int main(void)
{
	test_order();
	test_hostile();
	test_random();
	return test_done();
}
