// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench/address [-F HZ] [-t SECONDS] VM: whose samples are, told by their addresses alone as for a
 * guest of KVM, against what registers say of the same samples.
 *
 * Samples a QEMU TCG VM and completes each sample twice, as it is and with its registers taken
 * away, and prints what the two make of it, for user and kernel mode: MODE samples N same N none N
 * wrong N, of these shared out: same N wrong N and the microseconds that the second way takes.
 * Status 1 if the VM cannot be sampled.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "guest/guest.h"
#include "util/clock.h"

struct tally {
	uint64_t samples, same, none, wrong, shared_same, shared_wrong;
};

struct compare {
	struct backend_session *s;
	struct guest *with, *without;
	struct tally user, kernel;
	uint64_t ns, again_ns;
};

static int peek(void *ctx, uint32_t vcpu, struct guest_regs *regs)
{
	return backend_tcg.peek(ctx, vcpu, regs);
}

static void drain(struct guest *g)
{
	struct guest_event ev;

	while (guest_next_event(g, &ev))
		;
}

static uint64_t shared(struct guest *g)
{
	struct guest_stats st;

	guest_get_stats(g, &st);
	return st.shared;
}

/* @pid: whose it is. */
static void count(struct tally *t, const struct sample *s, int32_t pid, bool is_shared)
{
	t->samples++;
	if (s->unattributed) {
		t->none++;
	} else if (s->pid == pid) {
		t->same++;
		t->shared_same += is_shared;
	} else {
		t->wrong++;
		t->shared_wrong += is_shared;
	}
}

static int one(struct compare *c, struct raw_sample *raw)
{
	struct sample with, without;
	uint64_t before = shared(c->without), t;
	int rc = guest_complete(c->with, raw, &with);

	drain(c->with);
	raw->has &= RAW_HAS_IP | RAW_HAS_MODE | RAW_HAS_HOST_CPU;
	raw->ip = with.ip;
	raw->mode = with.mode;
	t = clock_now_ns();
	rc = rc ? rc : guest_complete(c->without, raw, &without);
	c->ns += clock_now_ns() - t;
	drain(c->without);
	if (rc)
		return rc;
	if (!with.unattributed)
		count(with.mode == SAMPLE_MODE_GUEST_USER ? &c->user : &c->kernel, &without,
		      with.pid, shared(c->without) != before);
	t = clock_now_ns();
	rc = guest_complete(c->without, raw, &without);
	c->again_ns += clock_now_ns() - t;
	return rc;
}

static int identify(struct compare *c, struct vmprof_err *err)
{
	struct guest_regs regs;
	int rc = -ENOENT;

	for (uint32_t i = 0; i < backend_tcg.nr_vcpus(c->s) && rc; i++) {
		rc = backend_tcg.peek(c->s, i, &regs);
		rc = rc ? rc : guest_identify(c->with, &regs, err);
	}
	return rc ? rc : guest_identify(c->without, NULL, err);
}

static int open_both(struct compare *c, const struct vm *vm, unsigned hz, struct vmprof_err *err)
{
	const struct event event = {.name = "cpu-clock",
				    .type = PERF_TYPE_SOFTWARE,
				    .config = PERF_COUNT_SW_CPU_CLOCK,
				    .guest = true,
				    .freq = true,
				    .rate = hz};
	const struct backend_config cfg = {.events = &event, .nr_events = 1};
	struct guest_config gcfg = {.arch = GUEST_ARCH_X86_64, .peek = peek};
	int rc = backend_tcg.open(&c->s, vm, &cfg, err);

	if (rc)
		return rc;
	gcfg.peek_ctx = c->s;
	gcfg.nr_vcpus = backend_tcg.nr_vcpus(c->s);
	rc = guest_open(&c->with, backend_tcg.memory(c->s), &gcfg, err);
	gcfg.peek = NULL;
	rc = rc ? rc : guest_open(&c->without, backend_tcg.memory(c->s), &gcfg, err);
	return rc ? rc : identify(c, err);
}

static void print(const char *mode, const struct tally *t)
{
	printf("%s samples %" PRIu64 " same %" PRIu64 " none %" PRIu64 " wrong %" PRIu64
	       ", of these shared out: same %" PRIu64 " wrong %" PRIu64 "\n",
	       mode, t->samples, t->same, t->none, t->wrong, t->shared_same, t->shared_wrong);
}

static int compare(const struct vm *vm, unsigned hz, unsigned seconds, struct vmprof_err *err)
{
	struct compare c = {.s = NULL};
	uint64_t t = clock_now_ns(), end;
	struct raw_sample raw;
	double n;
	int rc = open_both(&c, vm, hz, err);

	printf("found in %.0f ms\n", (double)(clock_now_ns() - t) / 1e6);
	rc = rc ? rc : backend_tcg.start(c.s, err);
	for (end = clock_now_ns() + seconds * 1000000000ull; !rc && clock_now_ns() < end;) {
		int got = backend_tcg.read(c.s, &raw, 1, 100);

		rc = got == 1 ? one(&c, &raw) : got < 0 && got != -EINTR ? got : 0;
	}
	if (!rc) {
		print("user", &c.user);
		print("kernel", &c.kernel);
		n = (double)(c.user.samples + c.kernel.samples + 1) * 1e3;
		printf("%.2f us a sample, %.2f us another one of its batch\n", (double)c.ns / n,
		       (double)c.again_ns / n);
	}
	if (c.s)
		backend_tcg.stop(c.s);
	guest_close(c.with);
	guest_close(c.without);
	backend_tcg.close(c.s);
	return rc;
}

int main(int argc, char **argv)
{
	unsigned hz = 1000, seconds = 5;
	struct vmprof_err err = {0};
	struct vm_list list;
	struct vm *vm;
	int c, rc;

	while ((c = getopt(argc, argv, "F:t:")) != -1)
		if (c == 'F')
			hz = (unsigned)atoi(optarg);
		else if (c == 't')
			seconds = (unsigned)atoi(optarg);
		else
			return 2;
	if (optind == argc) {
		puts("bench/address: no VM named, nothing to compare");
		return 0;
	}
	if (vm_list_get(&list, NULL, &err) || !(vm = vm_list_find(&list, argv[optind], &err))) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	rc = compare(vm, hz, seconds, &err);
	if (rc)
		fprintf(stderr, "%s: %s\n", argv[optind], err.msg);
	vm_list_free(&list);
	return rc != 0;
}
