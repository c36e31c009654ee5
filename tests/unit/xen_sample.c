// SPDX-License-Identifier: GPL-2.0-only
/* The xen backend's samples, of a domain in a hypervisor that is made up: which vCPU they are of,
 * what they stand for, what is asked of Xen for them, and what becomes of a domain that changes. */
#include <errno.h>
#include <unistd.h>

#include "backend/xen_session.h"
#include "tests/unit/test.h"
#include "util/xalloc.h"

#if HAVE_XEN
#define DOMID	 7
#define NR_VCPUS 3
#define PERIOD	 100000ull /* ns of CPU time: the clock that sleeps here is the real one */

/* ---------- the hypervisor ---------- */

/* Each look at a vCPU finds that it has run for @step more. */
static struct fake_vcpu {
	uint64_t cpu_time, step;
	bool offline, blocked, refused;
	unsigned looks, reads, full_reads; /* that were asked of it */
} fake_vcpu[NR_VCPUS];

static struct {
	bool gone;
	uint64_t pages;
	unsigned pauses, paused;
	unsigned mapped; /* frames, now */
	bool no_registers;
} fake;

static int get_infolist(xc_interface *xc, uint32_t first, unsigned max, xc_domaininfo_t *info)
{
	*info = (xc_domaininfo_t){.domain = DOMID, .tot_pages = fake.pages};
	return !fake.gone;
}

static int vcpu_info(xc_interface *xc, uint32_t domid, uint32_t vcpu, xc_vcpuinfo_t *info)
{
	struct fake_vcpu *v = &fake_vcpu[vcpu];

	CHECK_EQ(domid, DOMID);
	errno = fake.gone ? ESRCH : v->refused ? EINVAL : 0;
	if (errno)
		return -1;
	v->looks++;
	/* A domain that is stopped uses no time. */
	v->cpu_time += fake.paused || v->offline || v->blocked ? 0 : v->step;
	*info = (xc_vcpuinfo_t){.online = !v->offline,
				.blocked = v->blocked,
				.cpu_time = v->cpu_time,
				.cpu = 10 + vcpu};
	return 0;
}

static int hypercall(xencall_handle *h, unsigned op, uint64_t arg)
{
	struct xen_domctl *d = (struct xen_domctl *)(uintptr_t)arg;
	uint32_t vcpu = d->u.vcpucontext.vcpu;
	vcpu_guest_context_t *c = d->u.vcpucontext.ctxt.p;

	errno = fake.gone ? ESRCH : EINVAL;
	if (fake.gone || fake.no_registers)
		return -1;
	fake_vcpu[vcpu].reads++;
	*c = (vcpu_guest_context_t){.flags = vcpu == 1 ? VGCF_in_kernel : 0};
	c->user_regs.rip = 0x1000 * (vcpu + 1);
	c->gs_base_kernel = 0xffff888000000000 + vcpu;
	return 0;
}

static int hvm_context(xc_interface *xc, uint32_t domid, uint16_t type, uint16_t vcpu, void *buf,
		       uint32_t size)
{
	HVM_SAVE_TYPE(CPU) *c = buf;

	CHECK_EQ(type, HVM_SAVE_CODE(CPU));
	CHECK_EQ(size, sizeof(*c));
	fake_vcpu[vcpu].full_reads++;
	*c = (HVM_SAVE_TYPE(CPU)){.rip = 0x1000 * (vcpu + 1u),
				  .cs_sel = 0x33,
				  .msr_efer = 0xd01,
				  .gdtr_base = 0x6000 + vcpu,
				  .idtr_base = 0x7000 + vcpu};
	return 0;
}

static xencall_handle *open_calls(xentoollog_logger *logger, unsigned flags)
{
	return (xencall_handle *)&fake;
}

static int close_calls(xencall_handle *h)
{
	return 0;
}

static void *alloc_buffer(xencall_handle *h, size_t size)
{
	return xcalloc(1, size);
}

static void free_buffer(xencall_handle *h, void *buffer)
{
	free(buffer);
}

static int pause_domain(xc_interface *xc, uint32_t domid)
{
	errno = ESRCH;
	if (fake.gone)
		return -1;
	fake.pauses++;
	fake.paused++;
	return 0;
}

static int unpause_domain(xc_interface *xc, uint32_t domid)
{
	fake.paused--;
	return 0;
}

static void *map(xenforeignmemory_handle *h, uint32_t domid, int prot, size_t n,
		 const xen_pfn_t pfn[], int error[])
{
	if (fake.gone)
		return NULL;
	fake.mapped += (unsigned)n;
	return xcalloc(n, FRAME_SIZE);
}

static int unmap(xenforeignmemory_handle *h, void *at, size_t n)
{
	fake.mapped -= (unsigned)n;
	free(at);
	return 0;
}

static int maximum_page(xc_interface *xc, unsigned long *frame)
{
	*frame = 1 << 20;
	return 0;
}

static const struct xen_calls calls = {
	.domain_getinfolist = get_infolist,
	.domain_pause = pause_domain,
	.domain_unpause = unpause_domain,
	.vcpu_getinfo = vcpu_info,
	.hvm_getcontext_partial = hvm_context,
	.maximum_ram_page = maximum_page,
	.memory_map = map,
	.memory_unmap = unmap,
	.call_open = open_calls,
	.call_close = close_calls,
	.alloc_buffer = alloc_buffer,
	.free_buffer = free_buffer,
	.call1 = hypercall,
};

/* ---------- a session ---------- */

static struct vm vm = {.name = (char *)"web1", .domid = DOMID};
static struct event event = {.rate = PERIOD};

static struct xen_session *open_session(bool pause)
{
	struct xen_session *s = xcalloc(1, sizeof(*s));
	struct vmprof_err err;

	memset(fake_vcpu, 0, sizeof(fake_vcpu));
	memset(&fake, 0, sizeof(fake));
	fake.pages = 1000;
	s->base.vm = &vm;
	s->xen.call = &calls;
	s->pv = true;
	s->pause = pause;
	s->events = &event;
	s->nr_events = 1;
	s->tot_pages = fake.pages;
	xen_mem_init(&s->mem, &s->xen, DOMID, true);
	CHECK_EQ(xen_context_open(&s->context, &s->xen, DOMID, &err), 0);
	s->nr_vcpus = NR_VCPUS;
	s->vcpu = xcalloc(NR_VCPUS, sizeof(*s->vcpu));
	for (unsigned i = 0; i < NR_VCPUS; i++)
		s->vcpu[i].ticks = xcalloc(1, sizeof(*s->vcpu[i].ticks));
	return s;
}

static void close_session(struct xen_session *s)
{
	xen_complete(&s->base);
	CHECK_EQ(fake.paused, 0);
	xen_mem_free(&s->mem);
	CHECK_EQ(fake.mapped, 0);
	xen_context_close(&s->context);
	for (unsigned i = 0; i < NR_VCPUS; i++)
		free(s->vcpu[i].ticks);
	free(s->vcpu);
	free(s);
}

/* The time that samples of each vCPU stand for, of @n reads with one or not. */
static void take(struct xen_session *s, unsigned n, uint64_t sum[NR_VCPUS])
{
	struct raw_sample raw;

	for (unsigned i = 0; i < n; i++) {
		if (xen_read(&s->base, &raw, 1, 1) != 1)
			continue;
		CHECK(raw.vcpu < NR_VCPUS);
		CHECK_EQ(raw.ip, 0x1000 * (raw.vcpu + 1));
		CHECK_EQ(raw.host_cpu, 10 + raw.vcpu);
		CHECK_EQ(raw.mode,
			 raw.vcpu == 1 ? SAMPLE_MODE_GUEST_KERNEL : SAMPLE_MODE_GUEST_USER);
		CHECK_EQ(raw.mode == SAMPLE_MODE_GUEST_KERNEL ? raw.regs.gs_base
							      : raw.regs.kernel_gs_base,
			 0xffff888000000000 + raw.vcpu);
		CHECK_EQ(raw.period % PERIOD, 0);
		sum[raw.vcpu] += raw.period;
	}
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Each has its own clock and registers; one that is offline, or refused, holds up no other one. */
static void test_vcpus(void)
{
	struct xen_session *s = open_session(false);
	uint64_t sum[NR_VCPUS] = {0}, late[NR_VCPUS] = {0}, before;
	struct vmprof_err err;

	fake_vcpu[0].step = PERIOD;
	fake_vcpu[1].step = PERIOD / 3;
	fake_vcpu[2].step = PERIOD / 2;
	fake_vcpu[2].offline = true;
	fake_vcpu[0].cpu_time = 1000 * PERIOD; /* that it had before does not count */
	CHECK_EQ(xen_start(&s->base, &err), 0);
	take(s, 60, sum);
	CHECK(sum[0] > sum[1] && sum[1] > 0);
	CHECK_EQ(sum[2], 0);
	fake_vcpu[2].offline = false;
	fake_vcpu[1].refused = true;
	before = fake_vcpu[1].looks;
	take(s, 400, late);
	CHECK(late[0] > 0 && late[2] > 0);
	CHECK_EQ(late[1], 0);
	CHECK_EQ(fake_vcpu[1].looks, before);
	fake_vcpu[1].refused = false;
	xen_stop(&s->base);
	take(s, 3, late);
	for (unsigned i = 0; i < NR_VCPUS; i++) {
		uint64_t used = fake_vcpu[i].cpu_time - (i ? 0 : 1000 * PERIOD);

		CHECK(apart(sum[i] + late[i], used) <= 2 * PERIOD);
	}
	close_session(s);
}

/* A reader that is too slow for all ticks takes them of each vCPU in turns. */
static void test_too_slow(void)
{
	struct xen_session *s = open_session(false);
	unsigned samples[NR_VCPUS] = {0};
	struct raw_sample raw;
	struct vmprof_err err;

	for (unsigned i = 0; i < NR_VCPUS; i++)
		fake_vcpu[i].step = PERIOD;
	CHECK_EQ(xen_start(&s->base, &err), 0);
	for (unsigned i = 0; i < 10 * NR_VCPUS; i++) {
		usleep(PERIOD / 1000 * 20); /* all are due again */
		CHECK_EQ(xen_read(&s->base, &raw, 1, 1000), 1);
		samples[raw.vcpu]++;
	}
	for (unsigned i = 0; i < NR_VCPUS; i++)
		CHECK_EQ(samples[i], 10);
	close_session(s);
}

/* All vCPUs stand still while a sample is completed, of whichever it is. */
static void test_paused(void)
{
	struct xen_session *s = open_session(true);
	struct guest_regs regs;
	struct raw_sample raw;
	struct vmprof_err err;
	unsigned samples = 0;

	for (unsigned i = 0; i < NR_VCPUS; i++)
		fake_vcpu[i].step = PERIOD;
	CHECK_EQ(xen_start(&s->base, &err), 0);
	for (unsigned i = 0; i < 30; i++) {
		unsigned reads, looks;

		if (xen_read(&s->base, &raw, 1, 1) != 1)
			continue;
		samples++;
		CHECK_EQ(fake.paused, 1);
		reads = fake_vcpu[raw.vcpu].reads;
		looks = fake_vcpu[raw.vcpu].looks;
		CHECK_EQ(xen_peek(&s->base, raw.vcpu, &regs), 0);
		CHECK_EQ(regs.ip, raw.ip);
		CHECK_EQ(fake_vcpu[raw.vcpu].reads, reads); /* they are the sample's */
		CHECK_EQ(fake_vcpu[raw.vcpu].looks, looks);
		xen_complete(&s->base);
		CHECK_EQ(fake.paused, 0);
	}
	CHECK(samples > NR_VCPUS);
	CHECK_EQ(fake.pauses, samples);
	CHECK_EQ(s->stats.snapshots, samples);
	/* One that comes to nothing lets it go on, too. */
	fake.no_registers = true;
	for (unsigned i = 0; i < 100 && fake.pauses == samples; i++)
		CHECK_EQ(xen_read(&s->base, &raw, 1, 1), 0);
	CHECK(fake.pauses > samples);
	CHECK_EQ(fake.paused, 0);
	CHECK(s->stats.lost > 0);
	close_session(s);
}

/* Registers are read again only if the vCPU has run since. */
static void test_peek(void)
{
	struct xen_session *s = open_session(false);
	struct guest_regs regs;

	fake_vcpu[0].step = 0;
	CHECK_EQ(xen_peek(&s->base, 0, &regs), 0);
	CHECK_EQ(xen_peek(&s->base, 0, &regs), 0);
	CHECK_EQ(fake_vcpu[0].reads, 1);
	fake_vcpu[0].step = 1;
	CHECK_EQ(xen_peek(&s->base, 0, &regs), 0);
	CHECK_EQ(fake_vcpu[0].reads, 2);
	fake_vcpu[1].offline = true;
	CHECK_EQ(xen_peek(&s->base, 1, &regs), -EAGAIN);
	CHECK_EQ(xen_peek(&s->base, NR_VCPUS, &regs), -EAGAIN);
	fake_vcpu[2].refused = true;
	CHECK_EQ(xen_peek(&s->base, 2, &regs), -EAGAIN);
	fake.gone = true;
	CHECK_EQ(xen_peek(&s->base, 0, &regs), -ESRCH);
	close_session(s);
}

/* An HVM or PVH guest's descriptor tables are in a longer answer, which is not asked for each time.
 */
static void test_hvm(void)
{
	struct xen_session *s = open_session(false);
	struct guest_regs regs;

	s->pv = false;
	for (uint32_t i = 0; i < 2; i++) {
		unsigned n = 0;

		fake_vcpu[i].step = 1;
		/* Until a second answer was short: a slow machine may need more than two. */
		while (n++ < 100 && !fake_vcpu[i].reads) {
			CHECK_EQ(xen_peek(&s->base, i, &regs), 0);
			CHECK_EQ(regs.ip, 0x1000 * (i + 1));
			CHECK_EQ(regs.gdt_base, 0x6000 + i);
			CHECK_EQ(regs.idt_base, 0x7000 + i);
			CHECK_EQ(regs.efer, 0xd01);
		}
		CHECK_EQ(fake_vcpu[i].reads, 1);
		n = fake_vcpu[i].full_reads;
		CHECK(n >= 1);
		s->vcpu[i].tables_at = 1; /* as of long ago: the kernel may be another one */
		CHECK_EQ(xen_peek(&s->base, i, &regs), 0);
		CHECK_EQ(fake_vcpu[i].full_reads, n + 1);
	}
	close_session(s);
}

static void read_a_frame(struct xen_session *s)
{
	uint64_t word;
	struct guest_mem_io io = {.gpa = 0x5000, .buf = &word, .len = sizeof(word)};

	CHECK_EQ(s->mem.mem.ops->readv(&s->mem.mem, &io, 1), 0);
	CHECK(io.ok);
	CHECK(fake.mapped > 0);
}

/* Frames that are mapped are given back when the domain's size changes, and when it is gone: it
 * cannot end before. */
static void test_memory(void)
{
	struct xen_session *s = open_session(false);
	struct raw_sample raw;
	struct vmprof_err err;

	CHECK_EQ(xen_start(&s->base, &err), 0);
	read_a_frame(s);
	s->checked = 0;
	CHECK_EQ(xen_read(&s->base, &raw, 1, 0), 0);
	CHECK(fake.mapped > 0);
	fake.pages -= 10;
	s->checked = 0;
	CHECK_EQ(xen_read(&s->base, &raw, 1, 0), 0);
	CHECK_EQ(fake.mapped, 0);
	read_a_frame(s);
	fake.gone = true;
	s->checked = 0;
	CHECK_EQ(xen_read(&s->base, &raw, 1, 0), -ESRCH);
	CHECK_EQ(fake.mapped, 0);
	close_session(s);
}

/* One that ends between the look and the pause, or while it is stopped. */
static void test_ends_under_a_sample(void)
{
	struct xen_session *s = open_session(true);
	struct raw_sample raw;
	struct vmprof_err err;
	int r = 0;

	fake_vcpu[0].step = PERIOD;
	CHECK_EQ(xen_start(&s->base, &err), 0);
	for (unsigned i = 0; i < 50 && r != 1; i++)
		r = xen_read(&s->base, &raw, 1, 1);
	CHECK_EQ(r, 1);
	fake.gone = true;
	for (unsigned i = 0; i < 200 && r != -ESRCH; i++)
		r = xen_read(&s->base, &raw, 1, 1);
	CHECK_EQ(r, -ESRCH);
	CHECK_EQ(xen_stop(&s->base), 0);
	CHECK_EQ(xen_read(&s->base, &raw, 1, 0), -ESRCH);
	close_session(s);
}
#endif

int main(void)
{
#if HAVE_XEN
	test_vcpus();
	test_too_slow();
	test_paused();
	test_peek();
	test_hvm();
	test_memory();
	test_ends_under_a_sample();
#else
	test_skip("vmprof was built without libxen-dev");
#endif
	return test_done();
}
