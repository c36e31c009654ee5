// SPDX-License-Identifier: GPL-2.0-only
#include "backend/direct_side.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "util/xalloc.h"

#define LOST_MAX (1ull << 48)

int direct_side_open(struct direct_side *s, void *memory, size_t bytes)
{
	*s = (struct direct_side){0};
	if (vmp_reader_init(&s->reader, memory, bytes))
		return -EPROTO;
	s->next = xcalloc(1, sizeof(*s->next));
	return 0;
}

void direct_side_free(struct direct_side *s)
{
	free(s->next);
	*s = (struct direct_side){0};
}

void direct_side_look(struct direct_side *s, uint64_t now)
{
	if (!s->next)
		return;
	s->end = vmp_load_acquire(&s->reader.page->head);
	s->now = now;
}

/* ---------- what a record says ---------- */

static bool process_ok(const struct vmp_guest_process *r, size_t size, struct raw_told *out)
{
	static const enum raw_told_type types[VMP_PROCESS_WHATS] = {
		[VMP_PROCESS_KNOWN] = RAW_TOLD_KNOWN,
		[VMP_PROCESS_FORK] = RAW_TOLD_FORK,
		[VMP_PROCESS_EXEC] = RAW_TOLD_EXEC,
		[VMP_PROCESS_GONE] = RAW_TOLD_GONE,
	};

	if (size != sizeof(*r) || r->what >= VMP_PROCESS_WHATS || !r->tgid || r->tgid > INT32_MAX ||
	    r->parent > INT32_MAX)
		return false;
	*out = (struct raw_told){
		.type = types[r->what],
		.time = r->time,
		.pid = (int32_t)r->tgid,
		.ppid = (int32_t)r->parent,
		.began = r->began,
	};
	memcpy(out->comm, r->comm, sizeof(out->comm) - 1);
	return true;
}

static bool place_ok(const struct vmp_guest_map *r)
{
	return r->start < r->end && !(r->end >> 63) && r->offset <= INT64_MAX - r->end && r->tgid &&
	       r->tgid <= INT32_MAX && r->build_id_len <= sizeof(r->build_id);
}

static bool map_ok(const struct vmp_guest_map *r, size_t size, struct raw_told *out)
{
	const char *path = (const char *)(r + 1);
	size_t room = size < sizeof(*r) ? 0 : size - sizeof(*r);

	if (!room || !place_ok(r) || strnlen(path, room) == room || !path[0])
		return false;
	*out = (struct raw_told){
		.type = RAW_TOLD_MAP,
		.time = r->time,
		.pid = (int32_t)r->tgid,
		.began = r->began,
		.start = r->start,
		.end = r->end,
		.pgoff = r->offset,
		.prot = (r->flags & VMP_MAP_READ ? PROT_READ : 0u) |
			(r->flags & VMP_MAP_WRITE ? PROT_WRITE : 0u) |
			(r->flags & VMP_MAP_EXEC ? PROT_EXEC : 0u),
		.flags = r->flags & VMP_MAP_SHARED ? MAP_SHARED : MAP_PRIVATE,
		.dev = makedev(r->dev >> 20, r->dev & 0xfffff),
		.ino = r->ino,
		.ino_generation = r->generation,
		.size = r->size,
		.build_id_len = r->build_id_len,
		.path = path,
	};
	memcpy(out->build_id, r->build_id, r->build_id_len);
	return true;
}

static void lose(struct direct_side *s, uint64_t records, struct raw_told *out)
{
	s->lost += records < LOST_MAX ? records : LOST_MAX;
	s->lost = s->lost < LOST_MAX ? s->lost : LOST_MAX;
	*out = (struct raw_told){.type = RAW_TOLD_LOST};
}

/* Of a type that is not known, or what can be believed or counted as lost. */
static bool decode(struct direct_side *s, long size, struct raw_told *out)
{
	const union direct_side_record *r = s->next;

	if (size > 0 && r->header.type == VMP_REC_GUEST_PROCESS) {
		if (process_ok(&r->process, (size_t)size, out))
			return true;
	} else if (size > 0 && r->header.type == VMP_REC_GUEST_MAP) {
		if (map_ok(&r->map, (size_t)size, out))
			return true;
	} else if (size > 0 &&
		   (r->header.type != VMP_REC_LOST || (size_t)size != sizeof(r->lost))) {
		return false;
	}
	lose(s, size > 0 && r->header.type == VMP_REC_LOST ? r->lost.records : 1, out);
	return true;
}

static void fill(struct direct_side *s)
{
	long size;

	while (!s->has && (int64_t)(s->end - s->reader.tail) > 0 &&
	       (size = vmp_ring_read(&s->reader, s->next, sizeof(*s->next))) != 0)
		s->has = decode(s, size, &s->told);
}

bool direct_side_take(struct direct_side *s, uint64_t until, struct raw_told *out)
{
	if (!s->next)
		return false;
	fill(s);
	/* One that says that it comes from later would hold up all others. */
	if (s->has && s->told.time > s->now)
		s->told.time = s->now;
	if (!s->has || s->told.time > until)
		return false;
	*out = s->told;
	s->has = false;
	return true;
}
