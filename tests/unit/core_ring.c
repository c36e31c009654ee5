// SPDX-License-Identifier: GPL-2.0-only
/*
 * kernel/core: the sample ring. Records come out as they went in, around the end of the data too; a
 * full ring counts what it loses and says where; a thread that writes and one that reads; a
 * consumer and a producer that write nonsense into the shared words.
 */
#include <pthread.h>
#include <sched.h>

#include "kernel/core/ring.h"
#include "kernel/core/sample.h"
#include "tests/unit/test.h"

#define PAGE 4096ull
#define SIZE ((u64)VMP_RECORD_MAX)

/* On both sides bytes that nobody may touch. */
static struct {
	u8 before[64];
	u8 area[PAGE + SIZE] __attribute__((aligned(64)));
	u8 behind[64];
} memory;

static void guard(void)
{
	memset(memory.before, 0x5a, sizeof(memory.before));
	memset(memory.behind, 0x5a, sizeof(memory.behind));
}

static int guarded(void)
{
	for (size_t i = 0; i < sizeof(memory.before); i++)
		if (memory.before[i] != 0x5a || memory.behind[i] != 0x5a)
			return 0;
	return 1;
}

static void start(struct vmp_ring *ring, struct vmp_reader *reader)
{
	guard();
	CHECK_EQ(vmp_ring_init(ring, memory.area, PAGE, SIZE), 0);
	CHECK_EQ(vmp_reader_init(reader, memory.area, sizeof(memory.area)), 0);
}

static u64 placed; /* by the shorter way */

/* A sample with its number as time and number % most words of memory, which tell their place. Those
 * with odd numbers go the shorter way, if there is one. */
static int write_sample(struct vmp_ring *ring, u64 number, u32 most)
{
	struct vmp_sample sample = {.time = number, .task = number % most};
	u32 words = (u32)sample.task;
	u64 word[512];
	u8 *place;
	struct vmp_part parts[] = {{&sample, sizeof(sample)}, {word, words * 8}};

	sample.header.type = VMP_REC_SAMPLE;
	sample.header.size = parts[0].size + parts[1].size;
	for (u32 i = 0; i < words; i++)
		word[i] = number + i;
	place = number % 2 ? vmp_ring_place(ring, sample.header.size) : NULL;
	if (!place)
		return vmp_ring_write(ring, parts, 2);
	memcpy(place, &sample, sizeof(sample));
	memcpy(place + sizeof(sample), word, words * 8);
	vmp_ring_commit(ring, sample.header.size);
	placed++;
	return 0;
}

static union {
	struct vmp_record header;
	struct vmp_sample sample;
	struct vmp_lost lost;
	u64 words[VMP_RECORD_MAX / 8];
} buf;

static int sample_ok(u64 number, u32 most)
{
	if (buf.header.type != VMP_REC_SAMPLE || buf.sample.time != number ||
	    buf.sample.task != number % most ||
	    buf.header.size != sizeof(buf.sample) + buf.sample.task * 8)
		return 0;
	for (u64 i = 0; i < buf.sample.task; i++)
		if (buf.words[sizeof(buf.sample) / 8 + i] != number + i)
			return 0;
	return 1;
}

static void test_order(void)
{
	struct vmp_ring ring;
	struct vmp_reader reader;

	start(&ring, &reader);
	CHECK_EQ(vmp_ring_read(&reader, &buf, sizeof(buf)), 0);
	for (u64 i = 0; i < 5000; i++) {
		CHECK_EQ(write_sample(&ring, i, 500), 0);
		CHECK_EQ(vmp_ring_read(&reader, &buf, sizeof(buf)),
			 sizeof(buf.sample) + i % 500 * 8);
		CHECK(sample_ok(i, 500));
	}
	CHECK_EQ(vmp_ring_used(&ring), 0);
	CHECK(placed > 2000 && placed < 2500);
	CHECK(guarded());
}

static void test_lost(void)
{
	struct vmp_ring ring;
	struct vmp_reader reader;
	u64 written = 0, lost = 0, next = 0;

	start(&ring, &reader);
	while (!write_sample(&ring, written, 20))
		written++;
	for (lost = 1; lost < 10; lost++)
		CHECK_EQ(write_sample(&ring, 999, 20), -VMP_EFULL);
	CHECK_EQ(ring.page->lost, lost);
	for (int i = 0; i < 50; i++, next++) {
		CHECK(vmp_ring_read(&reader, &buf, sizeof(buf)) > 0);
		CHECK(sample_ok(next, 20));
	}
	CHECK_EQ(write_sample(&ring, written, 20), 0);
	for (; next < written; next++) {
		CHECK(vmp_ring_read(&reader, &buf, sizeof(buf)) > 0);
		CHECK(sample_ok(next, 20));
	}
	CHECK_EQ(vmp_ring_read(&reader, &buf, sizeof(buf)), sizeof(struct vmp_lost));
	CHECK_EQ(buf.header.type, VMP_REC_LOST);
	CHECK_EQ(buf.lost.records, lost);
	CHECK(vmp_ring_read(&reader, &buf, sizeof(buf)) > 0);
	CHECK(sample_ok(written, 20));
	CHECK_EQ(vmp_ring_read(&reader, &buf, sizeof(buf)), 0);
	CHECK(guarded());
}

/* Samples that never came as far as the ring are among the lost. */
static void test_missed(void)
{
	struct vmp_ring ring;
	struct vmp_reader reader;

	start(&ring, &reader);
	vmp_ring_missed(&ring, 7);
	CHECK_EQ(ring.page->lost, 7);
	CHECK_EQ(write_sample(&ring, 1, 20), 0);
	CHECK_EQ(vmp_ring_read(&reader, &buf, sizeof(buf)), sizeof(struct vmp_lost));
	CHECK_EQ(buf.lost.records, 7);
	CHECK(vmp_ring_read(&reader, &buf, sizeof(buf)) > 0);
	CHECK(sample_ok(1, 20));
}

#define THREAD_SAMPLES 300000ull

static void *producer(void *arg)
{
	struct vmp_ring *ring = arg;

	for (u64 i = 0; i < THREAD_SAMPLES; i++) {
		write_sample(ring, i, 40);
		if (i % 1000 == 0)
			sched_yield();
	}
	return NULL;
}

/* Each number is read once and in order, or is among those that a lost record counts. */
static void test_threads(void)
{
	struct vmp_ring ring;
	struct vmp_reader reader;
	pthread_t thread;
	u64 next = 0, seen = 0;
	int ended = 0;

	start(&ring, &reader);
	pthread_create(&thread, NULL, producer, &ring);
	for (;;) {
		long n = vmp_ring_read(&reader, &buf, sizeof(buf));

		if (n == 0) {
			if (ended)
				break;
			if (seen + vmp_load(&ring.page->lost) >= THREAD_SAMPLES)
				ended = 1; /* all are written: one more look */
			continue;
		}
		CHECK(n > 0);
		if (buf.header.type == VMP_REC_LOST) {
			next += buf.lost.records;
			continue;
		}
		CHECK(sample_ok(next, 40));
		next++;
		seen++;
	}
	pthread_join(thread, NULL);
	CHECK_EQ(seen + ring.lost, THREAD_SAMPLES);
	CHECK_EQ(next + ring.untold, THREAD_SAMPLES);
	CHECK(guarded());
}

/* A consumer that claims anything: the producer stays inside, and what it does not write it counts.
 */
static void test_hostile_consumer(void)
{
	static const u64 tails[] = {1, 8, SIZE, SIZE + 8, ~0ull, 1ull << 63, 0x7fffffffffffffff};
	struct vmp_ring ring;
	struct vmp_reader reader;

	for (size_t t = 0; t < sizeof(tails) / sizeof(*tails); t++) {
		u64 written = 0;

		start(&ring, &reader);
		ring.page->tail = tails[t];
		ring.page->head = tails[t] * 3;
		ring.page->data_size = ~0ull;
		ring.page->data_offset = 1;
		for (u64 i = 0; i < 2000; i++)
			written += !write_sample(&ring, i, 500);
		CHECK_EQ(written + ring.page->lost, 2000);
		CHECK(vmp_ring_used(&ring) <= SIZE);
		CHECK(guarded());
	}
}

/* A producer that writes anything: the consumer ends, and copies only what it has room for. */
static void test_hostile_producer(void)
{
	struct vmp_ring ring;
	struct vmp_reader reader;
	struct vmp_record *first = (struct vmp_record *)(memory.area + PAGE);
	unsigned int seed = 3;

	static const u32 sizes[] = {0, 1, 4, 7, 12, 65544, 0xffffffff, 0xfffffff8};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		start(&ring, &reader);
		first->size = sizes[i];
		ring.page->head = 4096;
		CHECK_EQ(vmp_ring_read(&reader, &buf, sizeof(buf)), -VMP_ECORRUPT);
		CHECK_EQ(vmp_ring_read(&reader, &buf, sizeof(buf)), 0);
	}
	start(&ring, &reader);
	ring.page->head = SIZE + 8;
	CHECK_EQ(vmp_ring_read(&reader, &buf, sizeof(buf)), -VMP_ECORRUPT);
	CHECK_EQ(vmp_ring_read(&reader, &buf, sizeof(buf)), 0);

	start(&ring, &reader);
	CHECK_EQ(write_sample(&ring, 19, 20), 0);
	CHECK_EQ(vmp_ring_read(&reader, &buf, 16), -VMP_EFULL);
	CHECK_EQ(vmp_ring_read(&reader, &buf, sizeof(buf)), 0);

	for (int round = 0; round < 2000; round++) {
		start(&ring, &reader);
		for (size_t i = 0; i < sizeof(memory.area); i += 4)
			*(u32 *)(memory.area + i) = (u32)rand_r(&seed) & 0x8000ffff;
		ring.page->magic = VMP_RING_MAGIC;
		for (int i = 0; i < 100; i++) {
			if (round % 2)
				ring.page->head = (u64)rand_r(&seed) & 0x1ffff;
			CHECK(vmp_ring_read(&reader, &buf, sizeof(buf)) <= (long)sizeof(buf));
		}
		CHECK(guarded());
	}
}

static void test_refused(void)
{
	struct vmp_ring ring;
	struct vmp_reader reader;
	struct vmp_ring_page *page = (void *)memory.area;

	CHECK_EQ(vmp_ring_init(&ring, memory.area, PAGE, SIZE / 2), -VMP_EINVAL);
	CHECK_EQ(vmp_ring_init(&ring, memory.area, PAGE, SIZE + 8), -VMP_EINVAL);
	CHECK_EQ(vmp_ring_init(&ring, memory.area, 64, SIZE), -VMP_EINVAL);

	start(&ring, &reader);
	CHECK_EQ(vmp_reader_init(&reader, memory.area, 8), -VMP_ECORRUPT);
	CHECK_EQ(vmp_reader_init(&reader, memory.area, sizeof(memory.area) - 1), -VMP_ECORRUPT);
	page->data_offset = ~0ull;
	CHECK_EQ(vmp_reader_init(&reader, memory.area, sizeof(memory.area)), -VMP_ECORRUPT);
	page->data_offset = 8;
	CHECK_EQ(vmp_reader_init(&reader, memory.area, sizeof(memory.area)), -VMP_ECORRUPT);
	page->data_offset = PAGE;
	page->data_size = SIZE - 8;
	CHECK_EQ(vmp_reader_init(&reader, memory.area, sizeof(memory.area)), -VMP_ECORRUPT);
	page->data_size = 0;
	CHECK_EQ(vmp_reader_init(&reader, memory.area, sizeof(memory.area)), -VMP_ECORRUPT);
	page->data_size = SIZE;
	page->version++;
	CHECK_EQ(vmp_reader_init(&reader, memory.area, sizeof(memory.area)), -VMP_ECORRUPT);
}

int main(void)
{
	test_order();
	test_lost();
	test_missed();
	test_threads();
	test_hostile_consumer();
	test_hostile_producer();
	test_refused();
	return test_done();
}
