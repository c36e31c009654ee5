// SPDX-License-Identifier: GPL-2.0-only
#include "backend/xen_session.h"

#if HAVE_XEN
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "util/clock.h"

#define FRAME_SHIFT 12
#define ALL_FRAMES  (1ull << (52 - FRAME_SHIFT)) /* that an entry of a page table can name */

static const uint8_t *map_frames(void *ctx, const uint64_t *frame, unsigned n, bool *failed)
{
	struct xen_mem *m = ctx;
	xen_pfn_t pfn[FRAMES_BATCH] = {0};
	int error[FRAMES_BATCH] = {0};
	const uint8_t *at;
	xc_domaininfo_t info;
	unsigned bad = 0;

	for (unsigned i = 0; i < n; i++)
		pfn[i] = frame[i];
	at = m->xen->call->memory_map(m->xen->memory, m->domid, PROT_READ, n, pfn, error);
	for (unsigned i = 0; i < n && at; i++) {
		failed[i] = error[i];
		bad += failed[i];
	}
	/* Frames that the domain has not are its own affair; that it is gone is ours. */
	if (!at || bad == n)
		m->gone = xen_domain_info(m->xen, m->domid, &info) == -ESRCH;
	if (at && bad == n) {
		m->xen->call->memory_unmap(m->xen->memory, (void *)(uintptr_t)at, n);
		at = NULL;
	}
	return at;
}

static void unmap_frames(void *ctx, const uint8_t *at, unsigned n)
{
	struct xen_mem *m = ctx;

	m->xen->call->memory_unmap(m->xen->memory, (void *)(uintptr_t)at, n);
}

static const struct frames_ops frames_ops = {map_frames, unmap_frames};

/* A range of @io that has been looked up: the pages from @first on. */
static bool copy_range(const struct guest_mem_io *io, const uint8_t *const *page)
{
	uint64_t at = io->gpa;
	uint32_t done = 0;

	for (unsigned i = 0; done < io->len; i++) {
		uint32_t in_page = (uint32_t)(at % FRAME_SIZE);
		uint32_t part = FRAME_SIZE - in_page;

		part = part < io->len - done ? part : io->len - done;
		if (!page[i])
			return false;
		memcpy((uint8_t *)io->buf + done, page[i] + in_page, part);
		done += part;
		at += part;
	}
	return true;
}

static unsigned pages_of(const struct guest_mem_io *io)
{
	return (unsigned)((io->gpa % FRAME_SIZE + io->len + FRAME_SIZE - 1) / FRAME_SIZE);
}

static bool in_ram(const struct guest_mem *m, const struct guest_mem_io *io)
{
	return io->len && io->gpa < m->top && io->len <= m->top - io->gpa;
}

/* A range that is longer than a batch, piece by piece. */
static bool read_long(struct xen_mem *m, const struct guest_mem_io *io, uint64_t now)
{
	const uint32_t most = (FRAMES_BATCH - 1) * FRAME_SIZE;
	const uint8_t *page[FRAMES_BATCH];
	uint64_t frame[FRAMES_BATCH];

	for (uint32_t done = 0; done < io->len;) {
		uint32_t left = io->len - done;
		struct guest_mem_io part = {.gpa = io->gpa + done,
					    .buf = (uint8_t *)io->buf + done,
					    .len = left < most ? left : most};
		unsigned n = pages_of(&part);

		for (unsigned i = 0; i < n; i++)
			frame[i] = (part.gpa >> FRAME_SHIFT) + i;
		frames_get(&m->frames, frame, n, now, page);
		if (!copy_range(&part, page))
			return false;
		done += part.len;
	}
	return true;
}

/* As many ranges as fit into a batch; returns how many were done. */
static int read_some(struct xen_mem *m, struct guest_mem_io *io, int n, uint64_t now)
{
	const uint8_t *page[FRAMES_BATCH];
	uint64_t frame[FRAMES_BATCH];
	unsigned used = 0, at = 0;
	int k = 0;

	for (; k < n; k++) {
		unsigned pages = in_ram(&m->mem, &io[k]) ? pages_of(&io[k]) : 0;

		if (used + pages > FRAMES_BATCH)
			break;
		for (unsigned i = 0; i < pages; i++)
			frame[used++] = (io[k].gpa >> FRAME_SHIFT) + i;
	}
	if (!k) {
		io[0].ok = read_long(m, &io[0], now);
		return 1;
	}
	frames_get(&m->frames, frame, used, now, page);
	for (int i = 0; i < k; i++) {
		io[i].ok = in_ram(&m->mem, &io[i]) && copy_range(&io[i], page + at);
		at += in_ram(&m->mem, &io[i]) ? pages_of(&io[i]) : 0;
	}
	return k;
}

static int xen_readv(struct guest_mem *mem, struct guest_mem_io *io, int n)
{
	struct xen_mem *m = (struct xen_mem *)mem;
	uint64_t now = clock_now_ns();

	for (int done = 0; done < n && !m->gone;)
		done += read_some(m, io + done, n - done, now);
	return m->gone ? -ESRCH : 0;
}

/* For looks without registers, which this backend always has. */
static bool xen_next_range(struct guest_mem *mem, uint64_t gpa, uint64_t *start, uint64_t *len)
{
	return false;
}

static const struct guest_mem_ops mem_ops = {.readv = xen_readv, .next_range = xen_next_range};

/* One above the highest frame that the domain may have. */
static uint64_t highest(const struct xen *xen, uint32_t domid, bool pv)
{
	unsigned long machine;
	xen_pfn_t own;

	if (pv && !xen->call->maximum_ram_page(xen->xc, &machine))
		return machine;
	if (!pv && xen->call->domain_maximum_gpfn(xen->xc, domid, &own) >= 0)
		return own + 1;
	return ALL_FRAMES;
}

void xen_mem_init(struct xen_mem *m, const struct xen *xen, uint32_t domid, bool pv)
{
	*m = (struct xen_mem){.mem = {.ops = &mem_ops,
				      .top = highest(xen, domid, pv) << FRAME_SHIFT,
				      .machine_frames = pv},
			      .xen = xen,
			      .domid = domid};
	frames_init(&m->frames, &frames_ops, m);
}

void xen_mem_free(struct xen_mem *m)
{
	frames_free(&m->frames);
}
#endif
