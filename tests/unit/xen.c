// SPDX-License-Identifier: GPL-2.0-only
/* Xen's domains without a Xen: frames that are kept, the clock of CPU time, what Xen says of
 * domains and vCPUs. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/cputicks.h"
#include "backend/frames.h"
#include "backend/xen_context.h"
#include "backend/xen_pmu.h"
#include "backend/xen_regs.h"
#include "guest/x86.h"
#include "tests/unit/test.h"
#include "util/xalloc.h"
#include "vm/xen.h"

/* ---------- frames ---------- */

/* A machine whose frame N holds N everywhere; frame @missing is not there. */
struct machine {
	uint64_t missing;
	unsigned maps, mapped, live; /* calls; frames, ever and now */
};

static const uint8_t *map(void *ctx, const uint64_t *frame, unsigned n, bool *failed)
{
	struct machine *m = ctx;
	uint64_t *at = xmalloc((size_t)n * FRAME_SIZE);

	m->maps++;
	m->mapped += n;
	m->live += n;
	for (size_t i = 0; i < (size_t)n * FRAME_SIZE / 8; i++)
		at[i] = frame[i * 8 / FRAME_SIZE];
	for (unsigned i = 0; i < n; i++)
		failed[i] = frame[i] == m->missing;
	return (uint8_t *)at;
}

static void unmap(void *ctx, const uint8_t *at, unsigned n)
{
	struct machine *m = ctx;

	m->live -= n;
	free((void *)(uintptr_t)at);
}

static const struct frames_ops ops = {map, unmap};

static bool is_frame(const uint8_t *page, uint64_t frame)
{
	uint64_t first, last;

	if (!page)
		return false;
	memcpy(&first, page, 8);
	memcpy(&last, page + FRAME_SIZE - 8, 8);
	return first == frame && last == frame;
}

static void test_frames_are_kept(void)
{
	struct machine m = {.missing = 7};
	const uint64_t some[] = {5, 6, 7, 5, 0}, again[] = {6, 9};
	const uint8_t *page[5];
	struct frames f;

	frames_init(&f, &ops, &m);
	frames_get(&f, some, 5, 1000, page);
	CHECK(is_frame(page[0], 5) && is_frame(page[1], 6) && is_frame(page[4], 0));
	CHECK(page[3] == page[0]);
	CHECK(!page[2]);
	CHECK_EQ(m.maps, 1);
	CHECK_EQ(m.mapped, 4);
	frames_get(&f, again, 2, 1001, page);
	CHECK(is_frame(page[0], 6) && is_frame(page[1], 9));
	CHECK_EQ(m.maps, 2);
	CHECK_EQ(m.mapped, 5); /* 9 alone was missing */
	CHECK_EQ(f.hits, 1);
	frames_drop_all(&f);
	CHECK_EQ(m.live, 0);
	frames_get(&f, again, 1, 1002, page);
	CHECK(is_frame(page[0], 6));
	CHECK_EQ(m.maps, 3);
	frames_free(&f);
	CHECK_EQ(m.live, 0);
}

static void test_frames_grow_old(void)
{
	struct machine m = {.missing = 1};
	const uint64_t a[] = {10, 1}, b[] = {11, 1};
	const uint8_t *page[2];
	struct frames f;

	frames_init(&f, &ops, &m);
	frames_get(&f, a, 1, 0, page);
	frames_get(&f, b, 1, FRAMES_AGE_NS / 2, page);
	frames_get(&f, a, 1, FRAMES_AGE_NS - 1, page);
	CHECK_EQ(m.maps, 2);
	frames_get(&f, a, 1, FRAMES_AGE_NS, page); /* mapped anew, while b is still good */
	CHECK(is_frame(page[0], 10));
	CHECK_EQ(m.maps, 3);
	frames_get(&f, b, 1, FRAMES_AGE_NS + 1, page);
	CHECK_EQ(m.maps, 3);
	CHECK_EQ(m.live, 2);
	frames_expire(&f, 4 * FRAMES_AGE_NS);
	CHECK_EQ(m.live, 0);
	/* What is not there is asked for again: it may be by then. */
	frames_get(&f, a, 2, 4 * FRAMES_AGE_NS, page);
	CHECK(!page[1]);
	m.missing = 0;
	frames_get(&f, a, 2, 4 * FRAMES_AGE_NS + 1, page);
	CHECK(is_frame(page[0], 10) && is_frame(page[1], 1));
	frames_free(&f);
	CHECK_EQ(m.live, 0);
}

static void test_frames_have_a_bound(void)
{
	struct machine m = {.missing = UINT64_MAX};
	const uint8_t *page[FRAMES_BATCH];
	uint64_t frame[FRAMES_BATCH];
	struct frames f;
	bool good = true;

	frames_init(&f, &ops, &m);
	for (uint64_t at = 0; at < 3 * FRAMES_MAX; at += 61) {
		for (unsigned i = 0; i < FRAMES_BATCH; i++)
			frame[i] = at + i;
		frames_get(&f, frame, FRAMES_BATCH, 5, page);
		for (unsigned i = 0; i < FRAMES_BATCH; i++)
			good &= is_frame(page[i], at + i);
		good &= m.live <= FRAMES_MAX;
	}
	CHECK(good);
	frames_free(&f);
	CHECK_EQ(m.live, 0);
}

/* ---------- the clock ---------- */

#define MS 1000000ull

static void test_ticks(void)
{
	struct cputicks t;

	cputicks_start(&t, MS, 50 * MS);
	CHECK_EQ(cputicks_due(&t, 50 * MS, false, 1), 0);
	CHECK_EQ(cputicks_due(&t, 51 * MS - 1, false, 2), 0);
	CHECK_EQ(cputicks_due(&t, 51 * MS, false, 3), 1);
	cputicks_take(&t, 1);
	/* No CPU time, no sample, whatever the wall clock says. */
	CHECK_EQ(cputicks_due(&t, 51 * MS, false, 10 * CPUTICKS_PATIENCE_NS), 0);
	CHECK_EQ(cputicks_due(&t, 54 * MS + MS / 2, false, 4), 3);
	cputicks_take(&t, 3);
	CHECK_EQ(cputicks_due(&t, 55 * MS, false, 5), 1); /* the half of before counts */
	CHECK_EQ(cputicks_rest(&t, 40 * MS), 0);
}

static void test_ticks_of_a_vcpu_that_waits(void)
{
	struct cputicks t;

	cputicks_start(&t, MS, 0);
	CHECK_EQ(cputicks_due(&t, 2 * MS, true, 100), 0);
	CHECK_EQ(cputicks_due(&t, 3 * MS, true, 100 + CPUTICKS_PATIENCE_NS - 1), 0);
	CHECK_EQ(cputicks_due(&t, 3 * MS, true, 100 + CPUTICKS_PATIENCE_NS), 3);
	cputicks_take(&t, 3);
	CHECK_EQ(cputicks_due(&t, 4 * MS, true, 200 + CPUTICKS_PATIENCE_NS), 0);
	CHECK_EQ(cputicks_due(&t, 4 * MS, false, 201 + CPUTICKS_PATIENCE_NS), 1);
	CHECK_EQ(cputicks_rest(&t, 4 * MS), 1);
}

static void test_waits(void)
{
	struct cputicks t;

	cputicks_start(&t, 8 * MS, 0);
	CHECK_EQ(cputicks_wait(&t, 0, 0, 0), 8 * MS);
	CHECK_EQ(cputicks_wait(&t, 3 * MS, 0, 0), 5 * MS);
	CHECK_EQ(cputicks_wait(&t, 7 * MS, 0, 0), 2 * MS); /* not at once again */
	CHECK_EQ(cputicks_wait(&t, 20 * MS, 0, 0), 2 * MS);
	CHECK_EQ(cputicks_wait(&t, 0, 0, 512), 10 * MS);
	cputicks_start(&t, 1, 0);
	CHECK_EQ(cputicks_wait(&t, 7, 0, 0), 1);
	CHECK(cputicks_wait(&t, 7, UINT32_MAX, 0) >= 5 * MS); /* and not for ever */
	cputicks_start(&t, MS / 10, 0);
	CHECK_EQ(cputicks_wait(&t, 0, 1, 0), MS / 5);
	CHECK(cputicks_wait(&t, 0, UINT32_MAX, 0) < 11 * MS);
}

/* ---------- the host ---------- */

static void put(const char *root, const char *path, const char *text)
{
	char name[256];
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", root, path);
	for (char *s = name + strlen(root) + 1; (s = strchr(s, '/')); s++) {
		*s = 0;
		mkdir(name, 0700);
		*s = '/';
	}
	f = fopen(name, "w");
	CHECK(f);
	fputs(text, f);
	fclose(f);
}

static void test_dom0(void)
{
	char root[] = "/tmp/vmprof-xen.XXXXXX", command[64];

	CHECK(mkdtemp(root));
	CHECK(!xen_is_dom0(root));
	put(root, "/sys/hypervisor/type", "xen\n");
	put(root, "/sys/hypervisor/uuid", "5f0c4d0e-7a1c-4d7b-9c55-3a1f9e6b0b01\n");
	put(root, "/proc/xen/capabilities", "");
	CHECK(!xen_is_dom0(root)); /* a guest of Xen */
	put(root, "/proc/xen/capabilities", "control_d\n");
	CHECK(xen_is_dom0(root));
	put(root, "/proc/xen/capabilities", "");
	put(root, "/sys/hypervisor/uuid", "00000000-0000-0000-0000-000000000000\n");
	CHECK(xen_is_dom0(root)); /* xenfs need not be mounted */
	snprintf(command, sizeof(command), "rm -r %s", root);
	CHECK(!system(command));
}

/* ---------- domains ---------- */

static struct vm *domain(uint32_t number, const char *name, const char *uuid)
{
	struct vm *vm = xcalloc(1, sizeof(*vm));

	vm->hypervisor = VM_HYPERVISOR_XEN;
	vm->domid = number;
	vm->name = xstrdup(name);
	memcpy(vm->uuid, uuid, sizeof(vm->uuid));
	return vm;
}

static void test_find(void)
{
	struct vm *vms[] = {
		domain(3, "web", "5f0c4d0e-7a1c-4d7b-9c55-3a1f9e6b0b01"),
		domain(12, "db", "5f0c4d0e-7a1c-4d7b-9c55-3a1f9e6b0b02"),
		domain(14, "db", "5f0c4d0e-7a1c-4d7b-9c55-3a1f9e6b0b03"),
	};
	struct vm_list list = {.vms = vms, .n = 3};
	struct vmprof_err err = {0};

	CHECK(vm_list_find(&list, "web", &err) == vms[0]);
	CHECK(vm_list_find(&list, "3", &err) == vms[0]);
	CHECK(vm_list_find(&list, "14", &err) == vms[2]);
	CHECK(vm_list_find(&list, "5f0c4d0e-7a1c-4d7b-9c55-3a1f9e6b0B02", &err) == vms[1]);
	CHECK(!vm_list_find(&list, "db", &err));
	CHECK(strstr(err.msg, "domain 12 (UUID 5f0c4d0e-7a1c-4d7b-9c55-3a1f9e6b0b02), domain 14"));
	CHECK(!vm_list_find(&list, "0", &err));
	list.xen.code = EACCES;
	snprintf(list.xen.msg, sizeof(list.xen.msg), "Xen says no");
	CHECK(!vm_list_find(&list, "mail", &err));
	CHECK(strstr(err.msg, "Xen says no"));
	for (size_t i = 0; i < 3; i++)
		vm_free(vms[i]);
}

#if HAVE_XEN
static void test_domain_info(void)
{
	xc_domaininfo_t info = {.domain = 5, .tot_pages = 40960, .max_vcpu_id = 3};
	struct vm *vm;

	for (unsigned i = 0; i < 16; i++)
		info.handle[i] = (uint8_t)(0xa0 + i);
	vm = xen_vm_new(&info, "web\n1");
	CHECK_STR(vm->name, "web\n1");
	CHECK_STR(vm->uuid, "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
	CHECK_STR(vm->machine, "pv");
	CHECK_EQ(vm->memory, 160ull << 20);
	CHECK_EQ(vm->nr_vcpus, 4);
	CHECK_EQ(vm_number(vm), 5);
	CHECK(vm->named && !vm->pid);
	vm_free(vm);
	info.flags = XEN_DOMINF_hvm_guest;
	info.arch_config.emulation_flags = XEN_X86_EMU_LAPIC;
	vm = xen_vm_new(&info, NULL);
	CHECK_STR(vm->name, "domain-5");
	CHECK_STR(vm->machine, "pvh");
	CHECK(!vm->named);
	vm_free(vm);
	info.arch_config.emulation_flags = XEN_X86_EMU_ALL;
	vm = xen_vm_new(&info, "");
	CHECK_STR(vm->machine, "hvm");
	vm_free(vm);
}

static void test_pv_registers(void)
{
	static vcpu_guest_context_t c;
	struct guest_regs regs;

	c.user_regs.rip = 0x401000;
	c.user_regs.rsp = 0x7fff1000;
	c.user_regs.rbp = 0x7fff2000;
	c.user_regs.r15 = 15;
	c.user_regs.cs = 0xe033; /* of the kernel's, whose ring is 3 too */
	c.ctrlreg[1] = 0x111000;
	c.ctrlreg[3] = 0x333000;
	c.gs_base_kernel = 0xffff888001000000;
	c.gs_base_user = 0x1000;
	c.event_callback_eip = 0xffffffff81c02000;
	c.trap_ctxt[14].address = 0xffffffff81c01230;
	c.trap_ctxt[3].address = 0x1234; /* nonsense */
	xen_regs_pv(&regs, &c);
	CHECK_EQ(regs.cpl, 3);
	CHECK_EQ(regs.ip, 0x401000);
	CHECK_EQ(regs.gpr[X86_RSP], 0x7fff1000);
	CHECK_EQ(regs.gpr[15], 15);
	CHECK_EQ(regs.fp, 0x7fff2000);
	CHECK_EQ(regs.pgtable, 0x333000);
	CHECK_EQ(regs.kernel_gs_base, 0xffff888001000000);
	CHECK_EQ(regs.gs_base, 0x1000);
	CHECK_EQ(regs.kernel_entry, 0xffffffff81c01230);
	CHECK(regs.cr0 & X86_CR0_PG && regs.cr4 & X86_CR4_PAE && regs.efer & X86_EFER_LMA);
	c.flags = VGCF_in_kernel;
	xen_regs_pv(&regs, &c);
	CHECK_EQ(regs.cpl, 0);
	CHECK_EQ(regs.gs_base, 0xffff888001000000);
}

static void test_hvm_registers(void)
{
	static vcpu_guest_context_t c;
	HVM_SAVE_TYPE(CPU)
	full = {.rip = 1,
		.rsp = 2,
		.rbp = 3,
		.rcx = 4,
		.cs_sel = 0x33,
		.cr3 = 0x5001,
		.idtr_base = 0xfffffe0000000000,
		.gdtr_base = 0xfffffe0000001000,
		.msr_efer = 0xd01,
		.gs_base = 6,
		.shadow_gs = 7};
	struct xen_hvm_tables tables;
	struct guest_regs regs;

	xen_regs_hvm_full(&regs, &full, &tables);
	CHECK_EQ(regs.cpl, 3);
	CHECK_EQ(regs.gpr[X86_RCX], 4);
	CHECK_EQ(regs.gpr[X86_RBP], 3);
	CHECK_EQ(regs.pgtable, 0x5001);
	CHECK_EQ(regs.kernel_gs_base, 7);
	CHECK_EQ(regs.kernel_entry, 0);
	c.user_regs.cs = 0x10;
	c.user_regs.rip = 8;
	c.ctrlreg[3] = 0x9000;
	c.gs_base_kernel = 10;
	xen_regs_hvm(&regs, &c, &tables);
	CHECK_EQ(regs.cpl, 0);
	CHECK_EQ(regs.ip, 8);
	CHECK_EQ(regs.pgtable, 0x9000);
	CHECK_EQ(regs.gs_base, 10);
	CHECK_EQ(regs.idt_base, 0xfffffe0000000000);
	CHECK_EQ(regs.gdt_base, 0xfffffe0000001000);
	CHECK_EQ(regs.efer, 0xd01);
}

/* ---------- what Xen says of its PMU ---------- */

static void test_pmu_text(void)
{
	struct xen_pmu_answers a = {.mode_error = EOPNOTSUPP, .feature_error = EPERM};
	char text[320];

	a.oprof.num_events = 4;
	strcpy(a.oprof.cpu_type, "x86-64/hammer");
	xen_pmu_text(&a, text, sizeof(text));
	CHECK_STR(text, "no hardware events: Xen answers XENPMU_mode_get: Operation not supported; "
			"XENPMU_feature_get: Operation not permitted; "
			"XENOPROF_init: 4 counters of x86-64/hammer");
	a = (struct xen_pmu_answers){.mode = 1, .features = 6, .oprof_error = ENODEV};
	xen_pmu_text(&a, text, sizeof(text));
	CHECK_STR(text, "no hardware events: Xen answers XENPMU_mode_get: "
			"self (domains count for themselves); XENPMU_feature_get: 0x6; "
			"XENOPROF_init: No such device");
	/* A name that does not end is cut where its room does. */
	a = (struct xen_pmu_answers){.mode = 99};
	memset(a.oprof.cpu_type, 'x', sizeof(a.oprof.cpu_type));
	xen_pmu_text(&a, text, sizeof(text));
	CHECK(strstr(text, "mode_get: one that vmprof does not know; "));
	CHECK(strlen(text) < sizeof(text) - 1);
}

/* ---------- hypercalls ---------- */

/* A hypervisor with one domain, number 7, of two vCPUs; no PMU, but Xenoprof's counters. */
static unsigned buffers; /* that are not freed */

static xencall_handle *fake_open(xentoollog_logger *logger, unsigned flags)
{
	return (xencall_handle *)&buffers;
}

static int fake_close(xencall_handle *h)
{
	return 0;
}

static void *fake_alloc(xencall_handle *h, size_t size)
{
	buffers++;
	return xcalloc(1, size);
}

static void fake_free(xencall_handle *h, void *buffer)
{
	buffers -= buffer != NULL;
	free(buffer);
}

static int fake_call1(xencall_handle *h, unsigned op, uint64_t arg)
{
	struct xen_domctl *d = (struct xen_domctl *)(uintptr_t)arg;
	vcpu_guest_context_t *c;

	CHECK_EQ(op, __HYPERVISOR_domctl);
	CHECK_EQ(d->cmd, XEN_DOMCTL_getvcpucontext);
	errno = d->interface_version != XEN_DOMCTL_INTERFACE_VERSION ? EACCES
		: d->domain != 7				     ? ESRCH
		: d->u.vcpucontext.vcpu > 1			     ? EINVAL
								     : 0;
	if (errno)
		return -1;
	c = d->u.vcpucontext.ctxt.p;
	c->user_regs.rip = 0x1000 + d->u.vcpucontext.vcpu;
	d->domain = 99; /* what Xen leaves in the argument must not count the next time */
	d->interface_version = 0;
	return 0;
}

static int fake_call2(xencall_handle *h, unsigned op, uint64_t what, uint64_t arg)
{
	struct xenoprof_init *init = (struct xenoprof_init *)(uintptr_t)arg;

	if (op == __HYPERVISOR_xenoprof_op && what == XENOPROF_init) {
		init->num_events = 4;
		strcpy(init->cpu_type, "x86-64/hammer");
		return 0;
	}
	errno = EOPNOTSUPP;
	return -1;
}

static const struct xen_calls fake_calls = {
	.call_open = fake_open,
	.call_close = fake_close,
	.alloc_buffer = fake_alloc,
	.free_buffer = fake_free,
	.call1 = fake_call1,
	.call2 = fake_call2,
};

static void test_context(void)
{
	const struct xen xen = {.call = &fake_calls};
	struct xen_context c, other;
	struct vmprof_err err;

	CHECK(!xen_context_open(&c, &xen, 7, &err));
	for (unsigned i = 0; i < 3; i++) {
		CHECK_EQ(xen_context_get(&c, i % 2), 0);
		CHECK_EQ(c.regs->c.user_regs.rip, 0x1000 + i % 2);
	}
	CHECK_EQ(xen_context_get(&c, 2), -EINVAL);
	CHECK(!xen_context_open(&other, &xen, 8, &err));
	CHECK_EQ(xen_context_get(&other, 0), -ESRCH);
	xen_context_close(&other);
	xen_context_close(&c);
	xen_context_close(&c);
	CHECK_EQ(buffers, 0);
}

static void test_pmu_ask(void)
{
	const struct xen xen = {.call = &fake_calls};
	struct xen_pmu_answers a;

	xen_pmu_ask(&xen, &a);
	CHECK_EQ(a.mode_error, EOPNOTSUPP);
	CHECK_EQ(a.feature_error, EOPNOTSUPP);
	CHECK_EQ(a.oprof_error, 0);
	CHECK_EQ(a.oprof.num_events, 4);
	CHECK_STR(a.oprof.cpu_type, "x86-64/hammer");
	CHECK_EQ(buffers, 0);
}

/* ---------- what is hostile, or of another version ---------- */

/* A name is what XenStore has, which a domain may have been allowed to write. */
static void test_hostile_names(void)
{
	xc_domaininfo_t info = {.domain = 9};
	char *huge = xmalloc(1 << 20);
	struct vm *vm;

	memset(huge, 'n', (1 << 20) - 1);
	huge[(1 << 20) - 1] = 0;
	vm = xen_vm_new(&info, huge);
	CHECK(strlen(vm->name) <= 4096);
	vm_free(vm);
	free(huge);
	vm = xen_vm_new(&info, "../../etc/\x1b[2J");
	CHECK_STR(vm->name, "../../etc/\x1b[2J"); /* shown escaped, and never a path */
	vm_free(vm);
}

static void test_call_errors(void)
{
	struct vmprof_err err = {0};

	CHECK_EQ(xen_call_error(-EACCES, "ask Xen for its domains", &err), -EACCES);
	CHECK(strstr(err.msg, "cannot ask Xen for its domains: permission denied"));
	CHECK(strstr(err.msg, "only with the tools of the Xen that runs (this vmprof was built "
			      "for Xen " XEN_TOOLS_VERSION ")"));
	CHECK_EQ(xen_call_error(EPERM, "open /dev/xen/privcmd", &err), -EPERM);
	CHECK_STR(err.msg, "cannot open /dev/xen/privcmd: only root in dom0 may do that");
	CHECK_EQ(xen_call_error(ENOSYS, "x", &err), -ENOSYS);
	CHECK_STR(err.msg, "cannot x: Function not implemented");
}
#endif

int main(void)
{
	test_frames_are_kept();
	test_frames_grow_old();
	test_frames_have_a_bound();
	test_ticks();
	test_ticks_of_a_vcpu_that_waits();
	test_waits();
	test_dom0();
	test_find();
#if HAVE_XEN
	test_domain_info();
	test_pv_registers();
	test_hvm_registers();
	test_pmu_text();
	test_context();
	test_pmu_ask();
	test_hostile_names();
	test_call_errors();
#endif
	return test_done();
}
