// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters lent to VMs on arm64 (docs/direct-vector.md): which hosts and VMs can have them, and the
 * hand over of the PMU at each entry and exit. Where an overflow goes is the way's matter.
 *
 * A handler that was interrupted by an exit goes on with PMU registers at the next entry, whatever
 * has been decided meanwhile. Therefore a stopped VM keeps the use of a PMU that is switched off
 * until no handler runs, or will run for what has been.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include <asm/kvm_arm.h>
#include <asm/kvm_emulate.h>
#include <kvm/arm_pmu.h>

#include "hooks_arm64.h"
#include "lend_arm64.h"

#define PMUVER_3P1  4 /* ID_AA64DFR0_EL1.PMUVer: MDCR_EL2.HPMD */
#define PMUVER_3P5  6 /* MDCR_EL2.HCCD */
#define PMUVER_IMPL 0xf

/* Of the interrupts that a GICv3's software may raise, those that Linux leaves alone. */
#define SGI_FIRST 8
#define SGI_LAST  15

/* What the VM may have in its registers. It counts in its own modes only, and never the host. */
#define CONTROL_BITS (VMP_PMCR_E | VMP_PMCR_D | VMP_PMCR_DP | VMP_PMCR_LC | VMP_PMCR_LP)
#define MODE_BITS    (VMP_TYPE_NO_KERNEL | VMP_TYPE_NO_USER)

/* What a CPU is to get back. */
struct lent {
	struct vp_loan *to; /* null: everything is the host's */
	bool entered;	    /* by its way, and not with a PMU that is switched off */
	struct vp_pmu pmu;
	u64 mdcr;
};
static DEFINE_PER_CPU(struct lent, lent);

static const struct vp_way *const ways[VMP_DELIVERIES] = {
	[VMP_DELIVER_INJECT] = &vp_inject_way,
	[VMP_DELIVER_DIRECT] = &vp_direct_way,
};
static const char *refusals[VMP_DELIVERIES];
static u64 count_nothing; /* MDCR_EL2's bits: no counting at EL2 */

static struct vp_loan *loan_of(const struct vp_vcpu *vcpu)
{
	return container_of(vcpu->direct, struct vp_loan, direct);
}

/* ------------------------------------------------------------------ conditions */

static const char *find_refusal(const struct arm_pmu *pmu)
{
	u32 version = read_sysreg(id_aa64dfr0_el1) >> 8 & 0xf;

	if (!is_kernel_in_hyp_mode())
		return "the host's kernel does not run at EL2 (VHE)";
	if (!pmu)
		return "the host has no PMU";
	if (version < PMUVER_3P1 || version == PMUVER_IMPL)
		return "the PMU cannot be kept from counting the host (it is older than PMUv3p1)";
	count_nothing = MDCR_EL2_HPMD | (version >= PMUVER_3P5 ? MDCR_EL2_HCCD : 0);
	if (system_uses_irq_prio_masking())
		return "the host uses pseudo-NMIs";
	if (!cpumask_equal(&pmu->supported_cpus, cpu_possible_mask))
		return "the host's CPUs have different PMUs";
	return NULL;
}

void vp_direct_init(struct arm_pmu *pmu)
{
	const char *refusal = find_refusal(pmu);
	u32 i;

	for (i = 0; i < VMP_DELIVERIES; i++)
		if (ways[i])
			refusals[i] = refusal ?: ways[i]->init(pmu);
}

const char *vp_direct_refusal(u32 delivery, u32 flags)
{
	return refusals[delivery];
}

/* ------------------------------------------------------------------ a VM is given a CPU */

static const char *misfit(const struct vp_loan *loan, const struct kvm_vcpu *guest)
{
	if (kvm_vcpu_has_pmu(guest))
		return "the VM has a virtual PMU (QEMU: -cpu host,pmu=off)";
	if (vmp_pmu_counters() < loan->nr)
		return "a CPU of the host has fewer counters than the VM's events";
	return loan->way->misfit(loan, guest);
}

/* What a VM must be like is known when it runs only. */
static bool fit(struct vp_loan *loan, const struct kvm_vcpu *guest)
{
	const char *why = misfit(loan, guest);

	if (!why)
		return true;
	WRITE_ONCE(loan->direct.why, why);
	WRITE_ONCE(loan->direct.wanted, false);
	return false;
}

/* The VM's registers, without what a guest may not have in them. */
static void load_control_registers(struct vp_loan *loan, bool off)
{
	struct vp_pmu *pmu = &loan->pmu;
	u64 mask = loan->mask | BIT(VMP_PMU_CYCLES);
	u32 i;

	pmu->set = loan->mask;
	for (i = 0; i < loan->nr; i++)
		pmu->type[i] &= VMP_TYPE_EVENT | MODE_BITS;
	pmu->cycles_filter &= MODE_BITS;
	pmu->control &= off ? CONTROL_BITS & ~VMP_PMCR_E : CONTROL_BITS;
	pmu->enabled &= off ? 0 : mask;
	pmu->interrupts &= off ? 0 : mask;
	pmu->overflows &= off ? 0 : mask;
	vp_pmu_load(pmu);
}

/* The guest may use the counters of its row, without a trap. */
static void untrap(struct lent *l, u32 counters)
{
	l->mdcr = read_sysreg(mdcr_el2);
	write_sysreg((l->mdcr &
		      ~(u64)(MDCR_EL2_TPM | MDCR_EL2_TPMCR | MDCR_EL2_HPMN_MASK | MDCR_EL2_HPME)) |
			     counters | count_nothing,
		     mdcr_el2);
}

/* A new profile starts where the vCPU runs: here nothing of the former one is in use. */
static void begin(struct vp_loan *loan)
{
	loan->pmu = (struct vp_pmu){
		.control = VMP_PMCR_E | VMP_PMCR_LC,
		.enabled = loan->mask,
		.interrupts = loan->mask,
		.user = loan->user,
	};
	memcpy(loan->pmu.type, loan->types, sizeof(loan->types));
	memcpy(loan->pmu.value, loan->values, sizeof(loan->values));
	WRITE_ONCE(loan->direct.silent, 0);
}

/* The handler has gone, also where it was being executed. */
static void forsake(struct vp_vm *vm)
{
	u32 i;

	vp_direct_take_back(vm, vp_direct_reset);
	for (i = 0; i < vm->nr_vcpus; i++) {
		struct vp_loan *loan = loan_of(&vm->vcpus[i]);

		loan->signal.raised = false;
		loan->signal.held = false;
		WRITE_ONCE(loan->unsafe, false);
	}
}

/* A kernel without the module would panic. */
static bool has_handler(struct vp_vcpu *vcpu, const struct kvm_vcpu *guest)
{
	enum vp_kernel_seen seen = vp_kernel_look(&loan_of(vcpu)->kernel, guest);

	if (seen == VP_KERNEL_OTHER)
		forsake(vcpu->vm);
	return seen == VP_KERNEL_SAME;
}

/* Acquisition, when a VM of the table is assigned to this CPU. */
static void acquire(struct kvm_vcpu *guest)
{
	struct vp_vcpu *vcpu = vp_vcpu_of(current);
	struct vp_loan *loan = vcpu && vcpu->direct ? loan_of(vcpu) : NULL;
	struct lent *l = this_cpu_ptr(&lent);
	bool wanted;

	if (!loan || READ_ONCE(loan->gone))
		return;
	wanted = READ_ONCE(loan->direct.wanted) && fit(loan, guest) && has_handler(vcpu, guest);
	if (!wanted && !loan->unsafe)
		return;
	vp_pmu_save(&l->pmu, loan->mask);
	if (wanted) {
		if (xchg(&loan->begin, false))
			begin(loan);
		loan->way->enter(loan, guest);
		loan->direct.entries++;
		loan->direct.clock_offset = read_sysreg(cntvoff_el2);
	}
	untrap(l, loan->nr);
	load_control_registers(loan, !wanted);
	l->entered = wanted;
	l->to = loan;
}

/* ------------------------------------------------------------------ the CPU is taken away */

/* Everything as the host has left it. */
static void restore(struct kvm_vcpu *guest)
{
	struct lent *l = this_cpu_ptr(&lent);
	struct vp_loan *loan = l->to;

	if (!loan)
		return;
	if (l->entered && loan->way->leave)
		loan->way->leave(guest);
	vp_pmu_save(&loan->pmu, loan->mask);
	WRITE_ONCE(loan->unsafe, loan->way->left(loan, guest, l->entered));
	write_sysreg(l->mdcr, mdcr_el2);
	isb();
	vp_pmu_load(&l->pmu);
	l->to = NULL;
}

/* No handler waits for an interrupt. */
static void idle(struct kvm_vcpu *guest)
{
	struct vp_vcpu *vcpu;

	rcu_read_lock();
	vcpu = vp_vcpu_of(current);
	if (vcpu && vcpu->direct && loan_of(vcpu)->way->ends_idle)
		WRITE_ONCE(loan_of(vcpu)->unsafe, false);
	rcu_read_unlock();
}

static const struct vp_hooks hooks = {acquire, restore, idle};

static int hook(void)
{
	return vp_hooks_set(&hooks);
}

/* ------------------------------------------------------------------ rows */

int vp_direct_new(struct vp_vcpu *vcpu, const struct vmprof_event *events, u32 nr)
{
	struct vp_loan *loan;
	u32 i;

	if (nr > VP_LENT_MAX || nr >= hweight64(vp_row_counters()))
		return -ENOSPC;
	loan = kzalloc(sizeof(*loan), GFP_KERNEL);
	if (!loan)
		return -ENOMEM;
	vcpu->direct = &loan->direct;
	loan->way = ways[vcpu->vm->delivery];
	loan->nr = nr;
	loan->mask = BIT(nr) - 1;
	for (i = 0; i < nr; i++) {
		if (events[i].type != PERF_TYPE_RAW || events[i].config > VMP_TYPE_EVENT ||
		    events[i].config1 || events[i].config2 || events[i].period < 1000 ||
		    events[i].period > BIT(31) || (events[i].flags & ~VMP_COUNT_FLAGS))
			return -EINVAL;
		loan->types[i] = events[i].config |
				 (events[i].flags & VMP_COUNT_USER ? 0 : VMP_TYPE_NO_USER) |
				 (events[i].flags & VMP_COUNT_KERNEL ? 0 : VMP_TYPE_NO_KERNEL);
		loan->values[i] = (u32)-events[i].period;
		/* Programs make this event themselves, if they may. */
		if (events[i].config == VMP_EVENT_SW_INCR)
			loan->user = VMP_USER_SW_INCR;
	}
	return 0;
}

/* What the guest's row says of its handler is of use to the host only if that has to call it. */
static int attach(struct vp_vm *vm, const struct vmprof_attach *attach, struct vp_log *log)
{
	u32 i;

	if (vm->delivery != VMP_DELIVER_INJECT)
		return 0;
	if (attach->handler < SGI_FIRST || attach->handler > SGI_LAST)
		return -EINVAL;
	for (i = 0; i < vm->nr_vcpus; i++)
		loan_of(&vm->vcpus[i])->signal.number = attach->handler;
	return 0;
}

/* ------------------------------------------------------------------ start, stop */

static void begin_anew(struct vp_direct *direct)
{
	struct vp_loan *loan = container_of(direct, struct vp_loan, direct);

	loan->kernel = (struct vp_kernel){};
	loan->deferral.count = 0;
	loan->signal.raises = 0;
	loan->signal.holds = 0;
	WRITE_ONCE(loan->begin, true);
}

static bool all_safe(const struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		if (READ_ONCE(loan_of(&vm->vcpus[i])->unsafe) &&
		    !READ_ONCE(vm->vcpus[i].task->exit_state))
			return false;
	return true;
}

#define PATIENCE (5 * HZ) /* for a guest to end its handler */

static void part(struct vp_vm *vm)
{
	unsigned long end = jiffies + PATIENCE;
	u32 i;

	while (!all_safe(vm) && time_before(jiffies, end)) {
		msleep(10);
		vp_leave_guests();
	}
	if (!all_safe(vm))
		pr_warn("vmprof: the VM of process %d stands still within its handler, and may "
			"fail when it goes on\n",
			pid_nr(vm->vmm));
	/* A guest may say for ever that it is in its handler. It must not be lent a CPU when the
	 * hooks that give it back, or its row, have gone. */
	for (i = 0; i < vm->nr_vcpus; i++)
		WRITE_ONCE(loan_of(&vm->vcpus[i])->gone, true);
	vp_leave_guests();
}

static void status(struct vp_direct *direct, struct vmprof_status *status)
{
	const struct vp_loan *loan = container_of(direct, struct vp_loan, direct);

	status->deferred += READ_ONCE(loan->deferral.count);
	status->sent += READ_ONCE(loan->signal.raises);
	status->held += READ_ONCE(loan->signal.holds);
}

void vp_arch_direct_exit(void)
{
	u32 i;

	vp_hooks_exit();
	for (i = 0; i < VMP_DELIVERIES; i++)
		if (ways[i] && ways[i]->exit)
			ways[i]->exit();
}

static const struct vp_delivery lending = {
	.silent = "the guest's handler has not acknowledged an interrupt for a second",
	.hook = hook,
	.unhook = vp_hooks_clear,
	.attach = attach,
	.part = part,
	.begin = begin_anew,
	.status = status,
};

/* The two ways differ in how an overflow comes to the guest. */
const struct vp_delivery *vp_delivery_of(u32 delivery)
{
	return &lending;
}
