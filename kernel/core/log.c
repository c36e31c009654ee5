// SPDX-License-Identifier: GPL-2.0-only
#include "log.h"
#include "table.h"

_Static_assert(sizeof(struct vmprof_log_event) == 24, "the layout is part of the interface");
_Static_assert(sizeof(struct vmprof_log_host) == 256, "the layout is part of the interface");
_Static_assert(sizeof(struct vmprof_log_guest) == 376, "the layout is part of the interface");

#define RINGS (2 * VMPROF_LOG_PAGE)

static int is_size(u32 size)
{
	return size >= VMP_RECORD_MAX && !(size & (size - 1));
}

/* Behind the rings of the CPUs. */
static int side_ok(const struct vmprof_log_host *host, u64 bytes)
{
	u64 offset = host->side_offset;

	if (!host->side_size)
		return 1;
	return is_size(host->side_size) && offset % VMPROF_LOG_PAGE == 0 && offset <= bytes &&
	       offset >= host->ring_offset + host->rings * host->ring_stride &&
	       (u64)host->side_size + VMPROF_LOG_PAGE <= bytes - offset;
}

static int sizes_ok(const struct vmprof_log_host *host, u64 bytes)
{
	u64 stride = host->ring_stride;

	if (!is_size(host->ring_size))
		return 0;
	if (!host->rings || host->rings > VMPROF_LOG_RINGS_MAX || stride % VMPROF_LOG_PAGE ||
	    stride < (u64)host->ring_size + VMPROF_LOG_PAGE)
		return 0;
	if (host->ring_offset < RINGS || host->ring_offset % VMPROF_LOG_PAGE ||
	    host->ring_offset > bytes)
		return 0;
	return stride <= (bytes - host->ring_offset) / host->rings && side_ok(host, bytes);
}

u64 vmp_log_side(u64 bytes, u32 ring_size, u32 rings, u32 *size)
{
	u64 offset = RINGS + rings * ((u64)ring_size + VMPROF_LOG_PAGE);

	for (*size = VMPROF_LOG_SIDE_MAX; *size >= VMP_RECORD_MAX; *size /= 2)
		if (offset + *size + VMPROF_LOG_PAGE <= bytes)
			return offset;
	*size = 0;
	return 0;
}

int vmp_log_init(void *memory, u64 bytes, u32 ring_size, u32 rings)
{
	struct vmprof_log_host *page = memory;
	struct vmprof_log_host host = {
		.version = VMPROF_LOG_VERSION,
		.ring_offset = RINGS,
		.ring_stride = (u64)ring_size + VMPROF_LOG_PAGE,
		.ring_size = ring_size,
		.rings = rings,
	};

	if (!sizes_ok(&host, ~0ull))
		return -VMP_EINVAL;
	if (!sizes_ok(&host, bytes))
		return -VMP_EFULL;
	host.side_offset = vmp_log_side(bytes, ring_size, rings, &host.side_size);
	*page = host;
	vmp_store_release(&page->magic, VMPROF_LOG_MAGIC);
	return 0;
}

static int events_ok(const struct vmprof_log_event *events, u32 nr, u32 source)
{
	u32 known = VMP_COUNT_FLAGS | (source == VMPROF_SOURCE_PERF ? VMPROF_LOG_FREQ : 0), i;

	for (i = 0; i < nr; i++) {
		if (!(events[i].flags & VMP_COUNT_FLAGS) || (events[i].flags & ~known))
			return 0;
		if (source != VMPROF_SOURCE_PERF && (events[i].period < VMPROF_LOG_PERIOD_MIN ||
						     events[i].period > VMPROF_LOG_PERIOD_MAX))
			return 0;
		if (!events[i].period)
			return 0;
	}
	return 1;
}

int vmp_log_request(const void *memory, u64 bytes, struct vmprof_log_host *copy)
{
	const struct vmprof_log_host *page = memory;

	copy->request = 0;
	if (bytes < RINGS || vmp_load_acquire(&page->magic) != VMPROF_LOG_MAGIC)
		return -VMP_ENOENT;
	if (!vmp_load_acquire(&page->request))
		return -VMP_ENOENT;
	__builtin_memcpy(copy, page, sizeof(*copy));
	if (copy->version != VMPROF_LOG_VERSION)
		return -VMP_EINVAL;
	if (!sizes_ok(copy, bytes) || copy->source >= VMPROF_SOURCES ||
	    copy->chain > VMPROF_LOG_CHAIN_MAX || copy->nr > VMPROF_LOG_EVENTS_MAX ||
	    !events_ok(copy->events, copy->nr, copy->source) ||
	    vmp_load_acquire(&page->request) != copy->request)
		return -VMP_ECORRUPT;
	return 0;
}

/* Ends at the first character that is no printable one of ASCII. */
static void clean(char *text, u32 size)
{
	u32 i;

	for (i = 0; i + 1 < size && text[i] >= ' ' && text[i] <= '~'; i++)
		;
	for (; i < size; i++)
		text[i] = 0;
}

int vmp_log_row(const void *memory, u64 bytes, u32 request, struct vmprof_log_guest *copy)
{
	const struct vmprof_log_guest *page = (const void *)((const u8 *)memory + VMPROF_LOG_PAGE);

	if (bytes < RINGS || vmp_load_acquire(&page->magic) != VMPROF_LOG_MAGIC ||
	    vmp_load_acquire(&page->answered) != request)
		return -VMP_ENOENT;
	__builtin_memcpy(copy, page, sizeof(*copy));
	clean(copy->why, sizeof(copy->why));
	/* A guest that refuses has not looked at the events. */
	if (copy->state == VMPROF_GUEST_REFUSED)
		copy->nr = 0;
	if (copy->version != VMPROF_LOG_VERSION || copy->state > VMPROF_GUEST_REFUSED ||
	    copy->answered != request || copy->nr > VMPROF_LOG_EVENTS_MAX || !copy->cpus ||
	    copy->cpus > VMPROF_LOG_RINGS_MAX ||
	    !events_ok(copy->events, copy->nr,
		       copy->handler ? VMPROF_SOURCE_DIRECT : VMPROF_SOURCE_PERF))
		return -VMP_ECORRUPT;
	return 0;
}
