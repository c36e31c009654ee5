// SPDX-License-Identifier: GPL-2.0-only
#include "backend/kmod_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"

void kmod_rings_init(struct kmod_rings *r, uint32_t n)
{
	*r = (struct kmod_rings){.ring = xcalloc(n + 1u, sizeof(*r->ring)), .n = n};
}

int kmod_rings_set(struct kmod_rings *r, uint32_t i, void *memory, size_t bytes)
{
	if (vmp_reader_init(&r->ring[i].reader, memory, bytes))
		return -EPROTO;
	r->ring[i].next = xcalloc(1, sizeof(*r->ring[i].next));
	return 0;
}

void kmod_rings_free(struct kmod_rings *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		free(r->ring[i].next);
	free(r->ring);
	*r = (struct kmod_rings){0};
}

/*
 * Reads on until there is a sample, or until all that was there at first is read: a producer that
 * goes on meanwhile does not keep us here.
 */
static void fill(struct kmod_rings *r, struct kmod_ring *ring)
{
	uint64_t end;
	long size;

	if (ring->has || !ring->next)
		return;
	end = vmp_load_acquire(&ring->reader.page->head);
	while (!ring->has && (int64_t)(end - ring->reader.tail) > 0 &&
	       (size = vmp_ring_read(&ring->reader, ring->next, sizeof(*ring->next))) != 0) {
		if (size < 0)
			r->bad++;
		else if (ring->next->header.type == VMP_REC_SAMPLE)
			ring->has = (size_t)size >= sizeof(struct vmp_sample);
	}
}

static struct kmod_ring *oldest(const struct kmod_rings *r)
{
	struct kmod_ring *found = NULL;

	for (uint32_t i = 0; i < r->n; i++) {
		struct kmod_ring *ring = &r->ring[i];

		if (ring->has && (!found || ring->next->sample.time < found->next->sample.time))
			found = ring;
	}
	return found;
}

/* What was handed out is done with. */
static void drop_taken(struct kmod_rings *r)
{
	if (!r->taken)
		return;
	r->taken->has = false;
	fill(r, r->taken);
	r->taken = NULL;
}

bool kmod_rings_look(struct kmod_rings *r, uint64_t now)
{
	drop_taken(r);
	for (uint32_t i = 0; i < r->n; i++)
		fill(r, &r->ring[i]);
	r->horizon = now;
	return oldest(r);
}

const struct vmp_sample *kmod_rings_take(struct kmod_rings *r)
{
	struct kmod_ring *ring;

	drop_taken(r);
	ring = oldest(r);
	if (!ring || ring->next->sample.time > r->horizon)
		return NULL;
	r->taken = ring;
	return &ring->next->sample;
}

uint64_t kmod_rings_lost(const struct kmod_rings *r)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < r->n; i++)
		if (r->ring[i].next)
			lost += vmp_load(&r->ring[i].reader.page->lost);
	return lost;
}

/* ---------- samples ---------- */

static void decode_regs(const struct vmp_regs *from, enum guest_arch arch, struct raw_sample *out)
{
	struct guest_regs *to = &out->regs;

	to->flags = from->flags;
	if (arch == GUEST_ARCH_AARCH64) {
		memcpy(to->gpr, from->gpr, sizeof(from->gpr));
		to->pgtable_kernel = from->system[VMP_ARM64_TTBR1];
		to->tcr = from->system[VMP_ARM64_TCR];
		to->vbar = from->system[VMP_ARM64_VBAR];
		to->sp_el0 = from->system[VMP_ARM64_SP_EL0];
		to->tpidr_el1 = from->system[VMP_ARM64_TPIDR_EL1];
		to->elr = from->system[VMP_ARM64_ELR];
		out->has |= RAW_HAS_REGS;
	} else {
		memcpy(to->gpr, from->gpr, 16 * sizeof(*from->gpr));
		to->cr0 = from->system[VMP_X86_CR0];
		to->cr4 = from->system[VMP_X86_CR4];
		to->efer = from->system[VMP_X86_EFER];
		to->has_efer = true;
		out->has |= RAW_HAS_GENERAL;
	}
}

static bool decode_segments(const struct vmp_sample *s, const uint64_t *at, struct raw_sample *out)
{
	const uint64_t *end = (const uint64_t *)s + s->header.size / 8;

	for (uint32_t i = 0; i < s->nr_segments; i++) {
		const struct vmp_segment *segment = (const void *)at;
		size_t left = (size_t)(end - at) * 8;

		if (left < sizeof(*segment) || segment->size % 8 ||
		    segment->size > left - sizeof(*segment))
			return false;
		at += (sizeof(*segment) + segment->size) / 8;
		if (out->nr_memory < RAW_MEMORY_MAX)
			out->memory[out->nr_memory++] = (struct raw_memory){
				.addr = segment->addr,
				.len = segment->size,
				.word = (const uint64_t *)(segment + 1),
			};
	}
	return true;
}

bool kmod_decode(const struct vmp_sample *s, enum guest_arch arch, struct raw_sample *out)
{
	const uint64_t *at = (const uint64_t *)(s + 1);
	bool kernel = s->flags & VMP_SAMPLE_KERNEL;

	*out = (struct raw_sample){
		.has = RAW_HAS_IP | RAW_HAS_MODE | RAW_HAS_HOST_CPU,
		.event = s->event,
		.vcpu = s->vcpu,
		.host_cpu = s->cpu,
		.time = s->time,
		.period = s->period,
		.ip = s->ip,
		.mode = kernel ? SAMPLE_MODE_GUEST_KERNEL : SAMPLE_MODE_GUEST_USER,
		.regs = {.ip = s->ip,
			 .sp = s->sp,
			 .fp = s->fp,
			 .pgtable = s->page_table,
			 .cpl = kernel ? 0 : 3},
		.task = s->task,
	};
	if (s->flags & VMP_SAMPLE_TASK)
		out->has |= RAW_HAS_TASK;
	if (s->flags & VMP_SAMPLE_REGS) {
		if (s->header.size < sizeof(*s) + sizeof(struct vmp_regs))
			return false;
		if (s->flags & VMP_SAMPLE_PAGE_TABLE)
			decode_regs((const struct vmp_regs *)at, arch, out);
		at += sizeof(struct vmp_regs) / 8;
	}
	return decode_segments(s, at, out);
}
