// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench/guest [-F HZ] [-t SECONDS] [-n] [-p] [-d] [-s] [-w FILE] [-r FILE] [VM]: what
 * guest_complete() costs a sample.
 *
 * Samples a VM that runs (by name, UUID or pid; default: each QEMU TCG VM of this host) as record
 * does and prints, for memory as it is mapped and for process_vm_readv, microseconds a sample,
 * calls that read memory a sample, and what came of the samples. -n  no call chains -p
 * process_vm_readv only, also where RAM is mapped -d  print side-band events and each 100th sample,
 * symbolized where that is cheap -s  samples nothing: for each line of standard input the chain of
 * the first vCPU as it is now, of a VM that is stopped
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <linux/perf_event.h>

#include "backend/backend.h"
#include "guest/guest.h"
#include "tests/bench/image.h"
#include "util/clock.h"
#include "util/text.h"

struct options {
	unsigned hz, seconds;
	bool chains, unmapped, dump, stops;
	const char *write, *read;
};

/* The VM's memory with no mapping offered. */
struct unmapped {
	struct guest_mem mem;
	struct guest_mem *real;
};

static int unmapped_readv(struct guest_mem *m, struct guest_mem_io *io, int n)
{
	struct guest_mem *real = ((struct unmapped *)m)->real;

	return real->ops->readv(real, io, n);
}

static bool unmapped_next_range(struct guest_mem *m, uint64_t gpa, uint64_t *start, uint64_t *len)
{
	struct guest_mem *real = ((struct unmapped *)m)->real;

	return real->ops->next_range(real, gpa, start, len);
}

static int peek(void *ctx, uint32_t vcpu, struct guest_regs *regs)
{
	return backend_tcg.peek(ctx, vcpu, regs);
}

static const char *const event_names[] = {"KERNEL", "MODULE", "CODE",	"FORK", "COMM",
					  "MMAP",   "EXIT",   "CGROUP", "RESET"};

static void drain(struct guest *g, bool dump)
{
	struct guest_event ev;
	char text[512];

	while (guest_next_event(g, &ev)) {
		if (!dump)
			continue;
		printf("%s %d/%d ppid %d", event_names[ev.type], ev.pid, ev.tid, ev.ppid);
		if (ev.name)
			printf(" %s%s", escape_str(text, sizeof(text), ev.name),
			       ev.exec ? " (exec)" : "");
		if (ev.dso.path) {
			char id[41];

			hex_str(id, ev.dso.build_id, ev.dso.build_id_len);
			printf(" %" PRIx64 "-%" PRIx64 " %" PRIx64 " %s dev %" PRIx64
			       " ino %" PRIu64 " size %" PRIu64 " id %s",
			       ev.start, ev.start + ev.len, ev.pgoff,
			       escape_str(text, sizeof(text), ev.dso.path), ev.dso.dev, ev.dso.ino,
			       ev.dso.size, id);
		}
		puts("");
	}
}

static void dump_sample(const struct sample *s)
{
	printf("sample vcpu %u mode %d %d/%d unattributed %d torn %d kernel_end %d user_end %d\n",
	       s->vcpu, s->mode, s->pid, s->tid, s->unattributed, s->torn, s->kernel_end,
	       s->user_end);
	for (uint32_t i = 0; i < s->chain_len; i++)
		printf("    %" PRIx64 "\n", s->chain[i]);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_stats(const struct guest_stats *st)
{
	static const char *const ends[] = {"none",    "outermost", "depth", "unreadable",
					   "no rule", "bad frame", "torn"};

	printf("  attributed %.2f %%, unattributed: no kernel %" PRIu64 ", no process %" PRIu64
	       "; torn %" PRIu64 "\n",
	       percent(st->unattributed[0], st->samples), st->unattributed[SAMPLE_NO_KERNEL],
	       st->unattributed[SAMPLE_NO_PROCESS], st->torn);
	for (int kernel = 1; kernel >= 0; kernel--) {
		const uint64_t *end = kernel ? st->kernel_end : st->user_end;

		printf("  %s chains %" PRIu64 ":", kernel ? "kernel" : "user",
		       st->samples - end[CHAIN_NONE]);
		for (int i = 1; i < CHAIN_END_COUNT; i++)
			if (end[i])
				printf(" %s %.2f %%", ends[i],
				       percent(end[i], st->samples - end[CHAIN_NONE]));
		puts("");
	}
	printf("  processes %" PRIu64 ", maps %" PRIu64 ", VMA walks %" PRIu64 ", resets %" PRIu64
	       "\n",
	       st->processes, st->maps, st->vma_walks, st->resets);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int identify(struct backend_session *s, struct guest *g, struct vmprof_err *err)
{
	struct guest_regs regs;
	int rc = -ENOENT;

	for (uint32_t i = 0; i < backend_tcg.nr_vcpus(s) && rc; i++) {
		rc = backend_tcg.peek(s, i, &regs);
		rc = rc ? rc : guest_identify(g, &regs, err);
	}
	return rc;
}

/* What the calls cost, one after the other. */
struct costs {
	uint32_t *ns;
	size_t n, max;
	uint64_t sum, reads;
};

static void print_costs(struct costs *c, struct guest *g)
{
	struct guest_stats st;

	guest_get_stats(g, &st);
	qsort(c->ns, c->n, sizeof(*c->ns), by_value);
	if (c->n)
		printf("  %zu samples: %.2f us a sample (median %.2f, 90 %% %.2f, 99 %% %.2f, most "
		       "%.2f), %.2f read calls a sample\n",
		       c->n, (double)c->sum / 1e3 / (double)c->n, c->ns[c->n / 2] / 1e3,
		       c->ns[c->n * 9 / 10] / 1e3, c->ns[c->n * 99 / 100] / 1e3,
		       c->ns[c->n - 1] / 1e3, (double)(st.reads - c->reads) / (double)c->n);
	print_stats(&st);
}

static int complete(struct guest *g, const struct raw_sample *raw, struct costs *c, bool dump)
{
	struct sample out;
	uint64_t t = clock_now_ns();
	int rc = guest_complete(g, raw, &out);

	t = clock_now_ns() - t;
	c->ns[c->n++] = t < UINT32_MAX ? (uint32_t)t : UINT32_MAX;
	c->sum += t;
	drain(g, dump);
	if (dump && c->n % 100 == 1)
		dump_sample(&out);
	return rc;
}

static int sample(struct backend_session *s, struct guest *g, const struct options *o)
{
	uint64_t end = clock_now_ns() + o->seconds * 1000000000ull;
	struct costs c = {.max = 1 << 20};
	struct guest_stats before;
	struct raw_sample raw;
	int rc = 0;

	guest_get_stats(g, &before);
	c.reads = before.reads;
	c.ns = calloc(c.max, sizeof(*c.ns));
	while (clock_now_ns() < end && c.n < c.max && rc >= 0) {
		rc = backend_tcg.read(s, &raw, 1, 100);
		if (rc > 0)
			rc = complete(g, &raw, &c, o->dump);
	}
	print_costs(&c, g);
	free(c.ns);
	return rc;
}

/* pid, then the kernel's and the user's part, each behind its mark. */
static int print_stops(struct backend_session *s, struct guest *g)
{
	struct raw_sample raw = {.has = RAW_HAS_REGS, .period = 1};
	struct sample out;
	char line[16];
	int rc;

	while (fgets(line, sizeof(line), stdin)) {
		rc = backend_tcg.peek(s, 0, &raw.regs);
		raw.time = clock_now_ns();
		rc = rc ? rc : guest_complete(g, &raw, &out);
		if (rc)
			return rc;
		printf("%d", out.pid);
		for (uint32_t i = 0; i < out.chain_len; i++)
			if (out.chain[i] == PERF_CONTEXT_KERNEL)
				printf(" kernel");
			else if (out.chain[i] == PERF_CONTEXT_USER)
				printf(" user");
			else
				printf(" %" PRIx64, out.chain[i]);
		puts("");
		fflush(stdout);
		drain(g, false);
	}
	return 0;
}

static int image_peek(void *ctx, uint32_t vcpu, struct guest_regs *regs)
{
	*regs = ((const struct image *)ctx)->regs[vcpu];
	return 0;
}

static int bench_image(const struct options *o, struct vmprof_err *err)
{
	struct guest_config gcfg = {
		.arch = GUEST_ARCH_X86_64, .chains = o->chains, .peek = image_peek};
	struct raw_sample raw = {.has = RAW_HAS_REGS};
	struct costs c = {.max = 200000};
	struct guest_stats before;
	struct guest *g = NULL;
	struct image im;
	int rc;

	rc = image_read(&im, o->read);
	if (rc)
		return err_sys(err, rc, "%s: cannot read it", o->read);
	gcfg.peek_ctx = &im;
	rc = guest_open(&g, &im.mem, &gcfg, err);
	rc = rc ? rc : guest_identify(g, &im.regs[0], err);
	if (rc)
		goto out;
	guest_get_stats(g, &before);
	c.reads = before.reads;
	c.ns = calloc(c.max, sizeof(*c.ns));
	for (; !rc && c.n < c.max; raw.time += 1000000) {
		raw.vcpu = (uint32_t)(c.n % im.nr_regs);
		raw.regs = im.regs[raw.vcpu];
		raw.ip = raw.regs.ip;
		rc = complete(g, &raw, &c, o->dump);
	}
	printf("%s: %zu ranges of memory, %" PRIu64 " vCPUs\n", o->read, im.nr_ranges, im.nr_regs);
	print_costs(&c, g);
	free(c.ns);
out:
	guest_close(g);
	image_free(&im);
	return rc;
}

static int write_image(struct backend_session *s, const char *path, struct vmprof_err *err)
{
	uint32_t n = backend_tcg.nr_vcpus(s);
	struct guest_regs *regs = calloc(n, sizeof(*regs));
	int rc = 0;

	for (uint32_t i = 0; i < n && !rc; i++)
		rc = backend_tcg.peek(s, i, &regs[i]);
	if (rc)
		err_sys(err, rc, "the vCPUs' registers cannot be read");
	else if ((rc = image_write(path, backend_tcg.memory(s), regs, n)))
		err_sys(err, rc, "%s: cannot write it", path);
	free(regs);
	return rc;
}

static int bench(const struct vm *vm, const struct options *o, bool unmapped,
		 struct vmprof_err *err)
{
	static const struct guest_mem_ops ops = {.readv = unmapped_readv,
						 .next_range = unmapped_next_range};
	const struct event event = {.name = "cpu-clock",
				    .guest = true,
				    .type = PERF_TYPE_SOFTWARE,
				    .config = PERF_COUNT_SW_CPU_CLOCK,
				    .freq = true,
				    .rate = o->hz};
	const struct backend_config cfg = {.events = &event, .nr_events = 1, .chains = o->chains};
	struct guest_config gcfg = {.arch = GUEST_ARCH_X86_64, .chains = o->chains, .peek = peek};
	struct backend_session *s = NULL;
	struct guest_kernel_info info;
	struct unmapped mem = {.mem = {.ops = &ops}};
	struct guest *g = NULL;
	uint64_t t;
	int rc;

	rc = backend_tcg.open(&s, vm, &cfg, err);
	if (rc)
		return rc;
	if (o->write) {
		rc = write_image(s, o->write, err);
		backend_tcg.close(s);
		return rc;
	}
	mem.real = backend_tcg.memory(s);
	mem.mem.top = mem.real->top;
	gcfg.peek_ctx = s;
	rc = guest_open(&g, unmapped ? &mem.mem : mem.real, &gcfg, err);
	t = clock_now_ns();
	rc = rc ? rc : identify(s, g, err);
	if (!rc) {
		guest_kernel_info(g, &info);
		printf("%s, %s: kernel %s, %u symbols, %u modules, found in %.0f ms; %s%s%s\n",
		       vm->name, unmapped ? "process_vm_readv" : "mapped", info.release,
		       info.nr_symbols, info.nr_modules, (double)(clock_now_ns() - t) / 1e6,
		       info.has_types ? "types" : info.why_not, info.pti ? ", PTI" : "",
		       info.la57 ? ", LA57" : "");
		drain(g, o->dump);
		fflush(stdout);
		rc = o->stops ? 0 : backend_tcg.start(s, err);
	}
	rc = rc ? rc : o->stops ? print_stops(s, g) : sample(s, g, o);
	if (!o->stops)
		backend_tcg.stop(s);
	guest_close(g);
	backend_tcg.close(s);
	return rc;
}

/* Is memory of this VM mapped by the backend? */
static bool is_mapped(const struct vm *vm)
{
	struct vmprof_err err;
	struct vm_ram *ram;
	bool mapped;

	if (vm_ram_open(&ram, vm, &err))
		return false;
	mapped = strcmp(vm_ram_kind(ram), "process");
	vm_ram_close(ram);
	return mapped;
}

int main(int argc, char **argv)
{
	struct options o = {.hz = 1000, .seconds = 5, .chains = true};
	struct vmprof_err err = {0};
	struct vm_list list;
	int c, rc = 0, done = 0;

	while ((c = getopt(argc, argv, "F:t:npdsw:r:")) != -1) {
		if (c == 'F')
			o.hz = (unsigned)atoi(optarg);
		else if (c == 't')
			o.seconds = (unsigned)atoi(optarg);
		else if (c == 'n')
			o.chains = false;
		else if (c == 'p')
			o.unmapped = true;
		else if (c == 'd')
			o.dump = true;
		else if (c == 's')
			o.stops = o.unmapped = true;
		else if (c == 'w')
			o.write = optarg;
		else if (c == 'r')
			o.read = optarg;
		else
			return 2;
	}
	if (o.read) {
		rc = bench_image(&o, &err);
		if (rc)
			fprintf(stderr, "bench/guest: %s\n", err.msg);
		return rc ? 1 : 0;
	}
	rc = vm_list_get(&list, NULL, &err);
	for (size_t i = 0; !rc && i < list.n; i++) {
		const struct vm *vm = list.vms[i];

		if (optind < argc && vm_list_find(&list, argv[optind], &err) != vm)
			continue;
		if (vm->accel != VM_ACCEL_TCG)
			continue;
		done++;
		if (!o.unmapped && !o.write && is_mapped(vm))
			rc = bench(vm, &o, false, &err);
		rc = rc ? rc : bench(vm, &o, true, &err);
	}
	vm_list_free(&list);
	if (rc)
		fprintf(stderr, "bench/guest: %s\n", err.msg);
	else if (!done)
		puts("bench/guest: no QEMU TCG VM runs here; tests/bench/guest.sh boots one");
	return rc ? 1 : 0;
}
