// SPDX-License-Identifier: GPL-2.0-only
/*
 * A VM's memory and some registers in a file, to measure without a VM that runs: a header,
 * registers, then ranges of memory, each behind its own address and length. Stop the VM while it is
 * written.
 */
#ifndef VMPROF_TESTS_BENCH_IMAGE_H
#define VMPROF_TESTS_BENCH_IMAGE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest/mem.h"
#include "guest/sample.h"

#define IMAGE_MAGIC "vmprofI1"
#define IMAGE_PIECE (1u << 20)

struct image_range {
	uint64_t gpa, len;
	uint8_t *data;
};

struct image {
	struct guest_mem mem;
	struct guest_regs *regs;
	uint64_t nr_regs;
	struct image_range *range; /* by address */
	size_t nr_ranges;
};

static inline int image_write(const char *path, struct guest_mem *mem,
			      const struct guest_regs *regs, uint64_t nr_regs)
{
	uint8_t *buf = malloc(IMAGE_PIECE);
	FILE *f = fopen(path, "wb");
	uint64_t at = 0, start, len;

	if (!f || !buf)
		return -errno;
	fwrite(IMAGE_MAGIC, 8, 1, f);
	fwrite(&nr_regs, 8, 1, f);
	fwrite(regs, sizeof(*regs), nr_regs, f);
	while (mem->ops->next_range(mem, at, &start, &len)) {
		struct guest_mem_io io = {.gpa = start, .buf = buf};

		io.len = len < IMAGE_PIECE ? (uint32_t)len : IMAGE_PIECE;
		at = start + io.len;
		if (mem->ops->readv(mem, &io, 1) || !io.ok)
			continue;
		len = io.len;
		fwrite(&start, 8, 1, f);
		fwrite(&len, 8, 1, f);
		fwrite(buf, len, 1, f);
	}
	free(buf);
	return fclose(f) ? -errno : 0;
}

static inline const struct image_range *image_at(const struct image *im, uint64_t gpa)
{
	size_t lo = 0, hi = im->nr_ranges;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (im->range[mid].gpa + im->range[mid].len <= gpa)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < im->nr_ranges ? &im->range[lo] : NULL;
}

/* Pieces end where others begin: what crosses from one to the next is not mapped, but read. */
static inline const void *image_map(struct guest_mem *m, uint64_t gpa, size_t len)
{
	const struct image_range *r = image_at((struct image *)m, gpa);

	return r && gpa >= r->gpa && len <= r->len - (gpa - r->gpa) ? r->data + (gpa - r->gpa)
								    : NULL;
}

static inline int image_readv(struct guest_mem *m, struct guest_mem_io *io, int n)
{
	for (int i = 0; i < n; i++) {
		uint32_t done = 0;

		while (done < io[i].len) {
			uint32_t page = 4096 - ((io[i].gpa + done) & 4095);
			uint32_t part = page < io[i].len - done ? page : io[i].len - done;
			const void *p = image_map(m, io[i].gpa + done, part);

			if (!p)
				break;
			memcpy((uint8_t *)io[i].buf + done, p, part);
			done += part;
		}
		io[i].ok = done == io[i].len;
	}
	return 0;
}

static inline bool image_next_range(struct guest_mem *m, uint64_t gpa, uint64_t *start,
				    uint64_t *len)
{
	const struct image_range *r = image_at((struct image *)m, gpa);

	if (!r)
		return false;
	*start = gpa > r->gpa ? gpa : r->gpa;
	*len = r->gpa + r->len - *start;
	return true;
}

static inline int image_read(struct image *im, const char *path)
{
	static const struct guest_mem_ops ops = {
		.readv = image_readv, .map = image_map, .next_range = image_next_range};
	FILE *f = fopen(path, "rb");
	uint64_t head[2];
	char magic[8];

	*im = (struct image){.mem = {.ops = &ops}};
	if (!f)
		return -errno;
	if (fread(magic, 8, 1, f) != 1 || memcmp(magic, IMAGE_MAGIC, 8) ||
	    fread(&im->nr_regs, 8, 1, f) != 1 || !im->nr_regs || im->nr_regs > 4096)
		goto bad;
	im->regs = calloc(im->nr_regs, sizeof(*im->regs));
	if (fread(im->regs, sizeof(*im->regs), im->nr_regs, f) != im->nr_regs)
		goto bad;
	while (fread(head, sizeof(head), 1, f) == 1 && head[1] <= IMAGE_PIECE) {
		struct image_range r = {head[0], head[1], malloc(head[1])};

		if (fread(r.data, r.len, 1, f) != 1)
			goto bad;
		im->range = realloc(im->range, (im->nr_ranges + 1) * sizeof(r));
		im->range[im->nr_ranges++] = r;
		im->mem.top = r.gpa + r.len;
	}
	fclose(f);
	return 0;
bad:
	fclose(f);
	return -EINVAL;
}

static inline void image_free(struct image *im)
{
	for (size_t i = 0; i < im->nr_ranges; i++)
		free(im->range[i].data);
	free(im->range);
	free(im->regs);
}

#endif
