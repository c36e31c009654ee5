// SPDX-License-Identifier: GPL-2.0-only
/*
 * walk FILE: steps over all record headers of a perf.data file, the least that a reader has to do.
 * walk repeat FROM TO N: the same file with its samples N times, one round after the other, as if
 * it had been recorded for N times as long. Both trust the file. For report.py, which see.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfdata/format.h"

struct map {
	uint8_t *p;
	size_t size;
	struct perfdata_file_header h;
};

static bool map_file(struct map *m, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || (size_t)st.st_size < sizeof(m->h))
		return false;
	m->size = (size_t)st.st_size;
	m->p = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (m->p == MAP_FAILED)
		return false;
	memcpy(&m->h, m->p, sizeof(m->h));
	return m->h.magic == PERFDATA_MAGIC && m->h.data.size <= m->size &&
	       m->h.data.offset <= m->size - m->h.data.size;
}

static int walk(const struct map *m)
{
	const uint8_t *p = m->p + m->h.data.offset, *end = p + m->h.data.size;
	uint64_t n = 0, samples = 0;

	while (end - p >= (ptrdiff_t)sizeof(struct perf_event_header)) {
		const struct perf_event_header *h = (const struct perf_event_header *)p;

		if (h->size < sizeof(*h))
			break;
		n++;
		samples += h->type == PERF_RECORD_SAMPLE;
		p += h->size;
	}
	printf("%" PRIu64 " records, %" PRIu64 " samples\n", n, samples);
	return 0;
}

/* Where a sample has its time, in words of its body. */
static unsigned time_at(const struct map *m)
{
	const struct perf_event_attr *attr =
		(const struct perf_event_attr *)(m->p + m->h.attrs.offset);
	const uint64_t before = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID;

	return (unsigned)__builtin_popcountll(attr->sample_type & before);
}

static uint64_t *sample_time(uint8_t *record, unsigned at)
{
	return (uint64_t *)(record + sizeof(struct perf_event_header)) + at;
}

struct samples {
	uint8_t *p;
	size_t size;
	uint64_t span; /* from the first to behind the last one */
};

/* A copy of the samples alone, and a round's end. */
static struct samples copy_samples(const struct map *m)
{
	const struct perf_event_header round = {.type = PERFDATA_FINISHED_ROUND,
						.size = sizeof(round)};
	struct samples s = {.p = malloc(m->h.data.size + sizeof(round))};
	uint8_t *p = m->p + m->h.data.offset, *end = p + m->h.data.size;
	uint64_t first = UINT64_MAX, last = 0;
	unsigned at = time_at(m);

	if (!s.p)
		return s;
	for (const struct perf_event_header *h; p < end; p += h->size) {
		uint64_t time;

		h = (const struct perf_event_header *)p;
		if (h->type != PERF_RECORD_SAMPLE)
			continue;
		memcpy(s.p + s.size, p, h->size);
		s.size += h->size;
		time = *sample_time(p, at);
		first = time < first ? time : first;
		last = time > last ? time : last;
	}
	memcpy(s.p + s.size, &round, sizeof(round));
	s.size += sizeof(round);
	s.span = last - first + 1;
	return s;
}

static void shift_times(const struct samples *s, unsigned at)
{
	const struct perf_event_header *h;

	for (size_t i = 0; i < s->size; i += h->size) {
		h = (const struct perf_event_header *)(s->p + i);
		if (h->type == PERF_RECORD_SAMPLE)
			*sample_time(s->p + i, at) += s->span;
	}
}

/* Features lie behind the data: a table of sections, then these. */
static bool put_features(const struct map *m, FILE *f, uint64_t delta)
{
	size_t at = m->h.data.offset + m->h.data.size, n = 0;

	for (size_t i = 0; i < sizeof(m->h.features) / sizeof(*m->h.features); i++)
		n += (size_t)__builtin_popcountll(m->h.features[i]);
	for (size_t i = 0; i < n; i++, at += sizeof(struct perfdata_section)) {
		struct perfdata_section s;

		memcpy(&s, m->p + at, sizeof(s));
		s.offset += delta;
		fwrite(&s, sizeof(s), 1, f);
	}
	fwrite(m->p + at, 1, m->size - at, f);
	return !ferror(f);
}

static int repeat(const struct map *m, const char *path, unsigned long n)
{
	struct perfdata_file_header h = m->h;
	struct samples s = copy_samples(m);
	FILE *f = s.p ? fopen(path, "we") : NULL;
	uint64_t delta = (n - 1) * s.size;
	bool good;

	if (!f)
		return 1;
	h.data.size += delta;
	fwrite(&h, sizeof(h), 1, f);
	fwrite(m->p + sizeof(h), 1, m->h.data.offset + m->h.data.size - sizeof(h), f);
	for (unsigned long i = 1; i < n; i++) {
		shift_times(&s, time_at(m));
		fwrite(s.p, 1, s.size, f);
	}
	good = put_features(m, f, delta);
	free(s.p);
	return fclose(f) || !good;
}

int main(int argc, char **argv)
{
	bool again = argc == 5 && !strcmp(argv[1], "repeat");
	struct map m;

	if (argc != 2 && !again) {
		puts("walk: no file; report.py has one");
		return 0;
	}
	if (!map_file(&m, argv[1 + again])) {
		fprintf(stderr, "walk: %s cannot be read, or is no perf.data\n", argv[1 + again]);
		return 1;
	}
	return again ? repeat(&m, argv[3], strtoul(argv[4], NULL, 10)) : walk(&m);
}
