// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench/complete [-x] [-g] [-p] [SAMPLES]: what the recorder does with a sample of vmprof.ko, from
 * the module's ring to the encoded record.
 *
 * A made-up guest of aarch64, or of x86-64 with -x, stands alternately in user mode and in its
 * kernel; -g with call chains; -p with the guest's memory not mapped here, so that it is read in
 * batches (by a function here: what a system call costs is not in it). The instructions a sample
 * are those of record() in valgrind --tool=callgrind --toggle-collect=record, next to the same in
 * each run.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kmod_ring.h"
#include "guest/guest.h"
#include "kernel/core/table.h"
#include "perfdata/encode.h"
#include "tests/unit/fakearm64.h"
#include "util/clock.h"

enum { PAGE = 4096, GAP_NS = 250000 /* 4 kHz */ };

struct options {
	bool x86, chains, unmapped;
	uint64_t samples;
};

struct bench {
	struct options o;
	struct fakeguest g;
	struct faketask t;
	struct guest *guest;
	struct vmp_ring ring;
	struct kmod_rings rings;
	uint8_t *memory;
	struct buf out;
	uint64_t attributed;
};

static void make_guest(struct bench *b)
{
	const struct fg_options opt = {.arm64 = !b->o.x86, .functions_only = !b->o.x86};

	fakeguest_init(&b->g, &opt);
	faketask_add(&b->g, &b->t);
	if (!b->o.x86)
		fakearm64_make(&b->g, &b->t);
	fakeguest_finish(&b->g);
	b->g.fm.map = !b->o.unmapped;
}

static int open_guest(struct bench *b, struct vmprof_err *err)
{
	const struct guest_config cfg = {
		.arch = b->o.x86 ? GUEST_ARCH_X86_64 : GUEST_ARCH_AARCH64,
		.chains = b->o.chains,
		.nr_vcpus = 1,
	};
	struct guest_wanted wanted;
	int rc = guest_open(&b->guest, &b->g.fm.mem, &cfg, err);

	rc = rc ? rc : guest_identify(b->guest, &b->t.kernel, err);
	if (!rc && !guest_wanted(b->guest, &wanted))
		rc = err_set(err, EINVAL, "the made-up guest has no processes");
	return rc;
}

static int open_ring(struct bench *b)
{
	b->memory = calloc(1, PAGE + VMP_RECORD_MAX);
	kmod_rings_init(&b->rings, 1);
	return vmp_ring_init(&b->ring, b->memory, PAGE, VMP_RECORD_MAX) ||
	       kmod_rings_set(&b->rings, 0, b->memory, PAGE + VMP_RECORD_MAX);
}

/* A stack as vmprof.ko copies it: what is above @sp in its page. */
struct stack {
	struct vmp_segment segment;
	uint8_t bytes[PAGE];
};

static struct vmp_part copy_stack(struct bench *b, uint64_t root, uint64_t sp, struct stack *to)
{
	uint32_t size = PAGE - (uint32_t)(sp & (PAGE - 1));

	to->segment = (struct vmp_segment){.addr = sp, .size = size};
	memcpy(to->bytes, fg_host(&b->g, root, sp), size);
	return (struct vmp_part){to, (uint32_t)sizeof(to->segment) + size};
}

static void take_regs(const struct bench *b, const struct guest_regs *r, struct vmp_regs *to)
{
	*to = (struct vmp_regs){.flags = r->flags};
	if (b->o.x86) {
		memcpy(to->gpr, r->gpr, 16 * sizeof(*r->gpr));
		to->system[VMP_X86_CR0] = r->cr0;
		to->system[VMP_X86_CR4] = r->cr4;
		to->system[VMP_X86_EFER] = r->efer;
	} else {
		memcpy(to->gpr, r->gpr, 31 * sizeof(*r->gpr));
		to->system[VMP_ARM64_TTBR1] = r->pgtable_kernel;
		to->system[VMP_ARM64_TCR] = r->tcr;
		to->system[VMP_ARM64_VBAR] = r->vbar;
		to->system[VMP_ARM64_SP_EL0] = r->sp_el0;
		to->system[VMP_ARM64_TPIDR_EL1] = r->tpidr_el1;
	}
}

/* What vmprof.ko writes at an overflow: registers, the task, and for chains both stacks. */
static void overflow(struct bench *b, uint64_t time, bool user)
{
	const struct guest_regs *r = user ? &b->t.user : &b->t.kernel;
	struct vmp_sample s = {
		.header = {.type = VMP_REC_SAMPLE},
		.time = time,
		.flags = VMP_SAMPLE_REGS | VMP_SAMPLE_PAGE_TABLE | VMP_SAMPLE_TASK |
			 (user ? 0 : VMP_SAMPLE_KERNEL),
		.period = 1000,
		.ip = r->ip,
		.sp = r->sp,
		.fp = r->fp,
		.page_table = r->pgtable,
		.task = b->t.task,
	};
	struct vmp_regs regs;
	struct stack stack[2];
	struct vmp_part parts[4] = {{&s, sizeof(s)}, {&regs, sizeof(regs)}};
	uint32_t n = 2;

	take_regs(b, r, &regs);
	if (b->o.chains && !user)
		parts[n++] = copy_stack(b, b->g.root, r->sp, &stack[s.nr_segments++]);
	if (b->o.chains)
		parts[n++] = copy_stack(b, b->t.root, b->t.user.sp, &stack[s.nr_segments++]);
	for (uint32_t i = 0; i < n; i++)
		s.header.size += parts[i].size;
	vmp_ring_write(&b->ring, parts, n);
}

static void drain(struct bench *b)
{
	struct guest_event ev;

	while (guest_next_event(b->guest, &ev))
		;
}

/* As the sampler's thread does it with each sample. */
static __attribute__((noinline)) void record(struct bench *b)
{
	const struct vmp_sample *from = kmod_rings_take(&b->rings);
	struct perfdata_id id;
	struct raw_sample raw;
	struct sample s;

	if (!from || !kmod_decode(from, b->o.x86 ? GUEST_ARCH_X86_64 : GUEST_ARCH_AARCH64, &raw) ||
	    guest_complete(b->guest, &raw, &s))
		return;
	drain(b);
	id = (struct perfdata_id){.id = 1,
				  .time = s.time,
				  .pid = (uint32_t)s.pid,
				  .tid = (uint32_t)s.tid,
				  .cpumode = (uint16_t)s.mode};
	perfdata_encode_sample(&b->out, &id, s.ip, s.period, s.chain, s.chain_len);
	b->attributed += s.unattributed == SAMPLE_ATTRIBUTED;
}

static uint64_t run(struct bench *b)
{
	uint64_t time = clock_now_ns(), spent = 0;

	for (uint64_t i = 0; i < b->o.samples; i++, time += GAP_NS) {
		uint64_t begin;

		overflow(b, time, i & 1);
		kmod_rings_look(&b->rings, time);
		begin = clock_now_ns();
		record(b);
		spent += clock_now_ns() - begin;
		buf_reset(&b->out);
	}
	return spent;
}

int main(int argc, char **argv)
{
	struct bench b = {.o = {.samples = 100000}};
	struct vmprof_err err;
	uint64_t ns;

	for (int c; (c = getopt(argc, argv, "xgp")) != -1;) {
		if (c == '?')
			return 1;
		b.o.x86 |= c == 'x';
		b.o.chains |= c == 'g';
		b.o.unmapped |= c == 'p';
	}
	if (argv[optind])
		b.o.samples = strtoull(argv[optind], NULL, 10);
	make_guest(&b);
	if (open_guest(&b, &err) || open_ring(&b)) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	ns = run(&b);
	printf("%s%s%s: %.2f us a sample, %llu of %llu attributed\n",
	       b.o.x86 ? "x86-64" : "aarch64", b.o.chains ? ", chains" : "",
	       b.o.unmapped ? ", not mapped" : "", (double)ns / 1e3 / (double)b.o.samples,
	       (unsigned long long)b.attributed, (unsigned long long)b.o.samples);
	guest_close(b.guest);
	kmod_rings_free(&b.rings);
	buf_free(&b.out);
	free(b.memory);
	fakeguest_free(&b.g);
	return b.attributed != b.o.samples;
}
