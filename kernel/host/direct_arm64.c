// SPDX-License-Identifier: GPL-2.0-only
/*
 * The direct delivery on arm64 (docs/direct-vector.md). GICv3 sends interrupts of Group 0 as FIQ
 * and those of Group 1, which are all of Linux's, as IRQ. Where each of them goes to while a guest
 * runs is HCR_EL2's to say. So the counter's interrupt is put in Group 0 and FIQs are let through
 * to EL1, and all else comes to the host as ever.
 *
 * An overflow that waits when the VM is entered is a trouble: CPUs with RAS look at ISR_EL1 in the
 * last instructions before the guest, and go back if anything is pending. So none is ever pending
 * there: the counter is set to two events before its overflow, and overflows again in the guest.
 *
 * A handler that was interrupted by an exit goes on with PMU registers at the next entry, whatever
 * has been decided meanwhile. Therefore a stopped VM keeps the use of a PMU that is switched off
 * until it is seen with FIQs unmasked, where no handler runs.
 */
#include <linux/delay.h>
#include <linux/irq.h>
#include <linux/irqdomain.h>
#include <linux/perf/arm_pmu.h>
#include <linux/slab.h>

#include <asm/kvm_arm.h>
#include <asm/kvm_emulate.h>
#include <kvm/arm_pmu.h>

#include "direct.h"
#include "gic_arm64.h"
#include "hooks_arm64.h"
#include "pmu_arm64.h"

/* Events from an entry to a deferred overflow. Of one that is due with the very next event QEMU's
 * PMU takes no notice. */
#define AHEAD_MIN   2
#define AHEAD_MAX   65536
#define PPI_FIRST   16
#define PPI_END	    32
#define EVENT_MAX   8
#define PMUVER_3P1  4 /* ID_AA64DFR0_EL1.PMUVer: MDCR_EL2.HPMD */
#define PMUVER_3P5  6 /* MDCR_EL2.HCCD */
#define PMUVER_IMPL 0xf

/* What the VM may have in its registers. It counts in its own modes only, and never the host. */
#define CONTROL_BITS (VMP_PMCR_E | VMP_PMCR_D | VMP_PMCR_DP | VMP_PMCR_LC | VMP_PMCR_LP)
#define MODE_BITS    (VMP_TYPE_NO_KERNEL | VMP_TYPE_NO_USER)

/* A vCPU's row, and its PMU while it has none. Changed on the CPU that runs it, with interrupts
 * off. */
struct row {
	struct vp_direct direct;
	u32 nr, mask;
	u64 types[EVENT_MAX], values[EVENT_MAX], user;
	bool begin;  /* from the row's values; of the former profile it may still have a PMU */
	bool unsafe; /* it may be in its handler */
	bool gone;   /* whatever it is in: it is not lent anything any more */
	struct vp_pmu pmu;
	u64 entry_pc;
	u32 ahead;     /* events from the entry to a deferred overflow */
	bool deferred; /* at the last entry */
	u64 entered;   /* ns, if so */
	u64 deferrals;
};

/* What a CPU is to get back. */
struct lent {
	struct row *to; /* null: everything is the host's */
	bool vector;	/* the interrupt's way has been changed as well */
	struct vp_pmu pmu;
	struct vp_gic_saved gic;
	u64 mdcr, group0;
};
static DEFINE_PER_CPU(struct lent, lent);

static struct arm_pmu *cpu_pmu;
static u32 intid;	  /* the PMU's interrupt; the same number on each CPU */
static u64 count_nothing; /* MDCR_EL2's bits: no counting at EL2 */
static const char *refusal = "direct delivery has not been looked at";

static struct row *row_of(const struct vp_vcpu *vcpu)
{
	return container_of(vcpu->direct, struct row, direct);
}

/* ------------------------------------------------------------------ conditions */

static const char *find_interrupt(void)
{
	int cpu, irq;

	for_each_cpu(cpu, &cpu_pmu->supported_cpus)
	{
		struct irq_data *data;

		if (!cpu_online(cpu))
			continue;
		irq = per_cpu_ptr(cpu_pmu->hw_events, cpu)->irq;
		data = irq_get_irq_data(irq);
		if (!data || irqd_to_hwirq(data) < PPI_FIRST || irqd_to_hwirq(data) >= PPI_END)
			return "the PMU's interrupt is no private one of each CPU";
		if (intid && intid != irqd_to_hwirq(data))
			return "the PMU's interrupt is not the same on all CPUs";
		intid = irqd_to_hwirq(data);
	}
	return intid ? NULL : "the PMU has no interrupt";
}

static const char *find_refusal(void)
{
	u32 version = read_sysreg(id_aa64dfr0_el1) >> 8 & 0xf;

	if (!is_kernel_in_hyp_mode())
		return "the host's kernel does not run at EL2 (VHE)";
	if (!cpu_pmu)
		return "the host has no PMU";
	if (version < PMUVER_3P1 || version == PMUVER_IMPL)
		return "the PMU cannot be kept from counting the host (it is older than PMUv3p1)";
	count_nothing = MDCR_EL2_HPMD | (version >= PMUVER_3P5 ? MDCR_EL2_HCCD : 0);
	if (system_uses_irq_prio_masking())
		return "the host uses pseudo-NMIs";
	if (!cpumask_equal(&cpu_pmu->supported_cpus, cpu_possible_mask))
		return "the host's CPUs have different PMUs";
	return find_interrupt() ?: vp_gic_init();
}

void vp_direct_init(struct arm_pmu *pmu)
{
	cpu_pmu = pmu;
	refusal = find_refusal();
}

const char *vp_direct_refusal(u32 flags)
{
	return refusal;
}

/* ------------------------------------------------------------------ a VM is given a CPU */

/* What a VM must be like is known when it runs only. */
static bool fit(struct row *row, const struct kvm_vcpu *guest)
{
	const char *why = NULL;

	if (!(guest->arch.vgic_cpu.vgic_v3.vgic_hcr & ICH_HCR_TALL0))
		why = "the host has to be booted with kvm-arm.vgic_v3_group0_trap=1, else the "
		      "guest could hold off the host's interrupts";
	else if (kvm_vcpu_has_pmu(guest))
		why = "the VM has a virtual PMU (QEMU: -cpu host,pmu=off)";
	else if (vmp_pmu_counters() < row->nr)
		why = "a CPU of the host has fewer counters than the VM's events";
	else if (!vp_gic_here())
		why = "a CPU's part of the interrupt controller is not found";
	if (!why)
		return true;
	WRITE_ONCE(row->direct.why, why);
	WRITE_ONCE(row->direct.wanted, false);
	return false;
}

/* See above. Entries that are refused all the same, since the counter was too quick, get longer. */
static void defer_overflows(struct row *row, const struct kvm_vcpu *guest)
{
	struct vp_pmu *pmu = &row->pmu;
	u64 waiting = pmu->overflows & pmu->interrupts, value;
	u32 i;

	if (waiting && row->deferred && row->entry_pc == *vcpu_pc(guest))
		row->ahead = min(row->ahead * 2, (u32)AHEAD_MAX);
	else
		row->ahead = AHEAD_MIN;
	row->entry_pc = *vcpu_pc(guest);
	row->deferred = waiting;
	if (waiting)
		row->entered = ktime_get_mono_fast_ns();
	row->deferrals += hweight64(waiting);
	value = -(u64)row->ahead;
	for (i = 0; i < row->nr; i++)
		if (waiting & BIT(i))
			pmu->value[i] = pmu->control & VMP_PMCR_LP ? value : (u32)value;
	if (waiting & BIT(VMP_PMU_CYCLES))
		pmu->cycles = value;
	pmu->overflows &= ~waiting;
}

/* The VM's registers, without what a guest may not have in them. */
static void load_control_registers(struct row *row, bool off)
{
	struct vp_pmu *pmu = &row->pmu;
	u64 mask = row->mask | BIT(VMP_PMU_CYCLES);
	u32 i;

	pmu->set = row->mask;
	for (i = 0; i < row->nr; i++)
		pmu->type[i] &= VMP_TYPE_EVENT | MODE_BITS;
	pmu->cycles_filter &= MODE_BITS;
	pmu->control &= off ? CONTROL_BITS & ~VMP_PMCR_E : CONTROL_BITS;
	pmu->enabled &= off ? 0 : mask;
	pmu->interrupts &= off ? 0 : mask;
	pmu->overflows &= off ? 0 : mask;
	vp_pmu_load(pmu);
}

/* The interrupt comes to the handler at the VM's kernel's level. */
static void set_vector(struct lent *l, struct kvm_vcpu *guest)
{
	vp_gic_set_fiq(intid, &l->gic);
	guest->arch.hcr_el2 &= ~HCR_FMO;
	l->group0 = read_sysreg_s(SYS_ICC_IGRPEN0_EL1);
	write_sysreg_s(1, SYS_ICC_IGRPEN0_EL1);
	l->vector = true;
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
static void begin(struct row *row)
{
	row->pmu = (struct vp_pmu){
		.control = VMP_PMCR_E | VMP_PMCR_LC,
		.enabled = row->mask,
		.interrupts = row->mask,
		.user = row->user,
	};
	memcpy(row->pmu.type, row->types, sizeof(row->types));
	memcpy(row->pmu.value, row->values, sizeof(row->values));
	WRITE_ONCE(row->direct.silent, 0);
}

/* Acquisition, when a VM of the table is assigned to this CPU. */
static void acquire(struct kvm_vcpu *guest)
{
	struct vp_vcpu *vcpu = vp_vcpu_of(current);
	struct row *row = vcpu && vcpu->direct ? row_of(vcpu) : NULL;
	struct lent *l = this_cpu_ptr(&lent);
	bool wanted;

	if (!row || READ_ONCE(row->gone))
		return;
	wanted = READ_ONCE(row->direct.wanted) && fit(row, guest);
	if (!wanted && !row->unsafe)
		return;
	vp_pmu_save(&l->pmu, row->mask);
	l->vector = false;
	if (wanted) {
		if (xchg(&row->begin, false))
			begin(row);
		set_vector(l, guest);
		defer_overflows(row, guest);
		row->direct.entries++;
		row->direct.clock_offset = read_sysreg(cntvoff_el2);
	}
	untrap(l, row->nr);
	load_control_registers(row, !wanted);
	l->to = row;
}

/* ------------------------------------------------------------------ the CPU is taken away */

/* Time that the vCPU has not run, since it waits or another one has the CPU, says nothing of its
 * handler. */
static void note_silence(struct row *row)
{
	if (!(row->pmu.overflows & row->pmu.interrupts))
		WRITE_ONCE(row->direct.silent, 0);
	else if (row->deferred)
		WRITE_ONCE(row->direct.silent,
			   row->direct.silent + ktime_get_mono_fast_ns() - row->entered);
}

/* Everything as the host has left it. */
static void restore(struct kvm_vcpu *guest)
{
	struct lent *l = this_cpu_ptr(&lent);
	struct row *row = l->to;

	if (!row)
		return;
	if (l->vector) {
		write_sysreg_s(l->group0, SYS_ICC_IGRPEN0_EL1);
		isb();
	}
	vp_pmu_save(&row->pmu, row->mask);
	if (l->vector) {
		vp_gic_restore(intid, &l->gic);
		guest->arch.hcr_el2 |= HCR_FMO;
	}
	write_sysreg(l->mdcr, mdcr_el2);
	isb();
	vp_pmu_load(&l->pmu);
	l->to = NULL;
	note_silence(row);
	WRITE_ONCE(row->unsafe, *vcpu_cpsr(guest) & PSR_F_BIT);
}

/* No handler waits for an interrupt. */
static void idle(struct kvm_vcpu *guest)
{
	struct vp_vcpu *vcpu;

	rcu_read_lock();
	vcpu = vp_vcpu_of(current);
	if (vcpu && vcpu->direct)
		WRITE_ONCE(row_of(vcpu)->unsafe, false);
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
	struct row *row;
	u32 i;

	if (nr > EVENT_MAX || nr >= hweight64(vp_row_counters()))
		return -ENOSPC;
	row = kzalloc(sizeof(*row), GFP_KERNEL);
	if (!row)
		return -ENOMEM;
	vcpu->direct = &row->direct;
	row->nr = nr;
	row->mask = BIT(nr) - 1;
	for (i = 0; i < nr; i++) {
		if (events[i].type != PERF_TYPE_RAW || events[i].config > VMP_TYPE_EVENT ||
		    events[i].config1 || events[i].config2 || events[i].period < 1000 ||
		    events[i].period > BIT(31) || (events[i].flags & ~VMP_COUNT_FLAGS))
			return -EINVAL;
		row->types[i] = events[i].config |
				(events[i].flags & VMP_COUNT_USER ? 0 : VMP_TYPE_NO_USER) |
				(events[i].flags & VMP_COUNT_KERNEL ? 0 : VMP_TYPE_NO_KERNEL);
		row->values[i] = (u32)-events[i].period;
		/* Programs make this event themselves, if they may. */
		if (events[i].config == VMP_EVENT_SW_INCR)
			row->user = VMP_USER_SW_INCR;
	}
	return 0;
}

/* ------------------------------------------------------------------ start, stop */

static void begin_anew(struct vp_direct *direct)
{
	struct row *row = container_of(direct, struct row, direct);

	row->deferrals = 0;
	WRITE_ONCE(row->begin, true);
}

static bool all_safe(const struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		if (READ_ONCE(row_of(&vm->vcpus[i])->unsafe) &&
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
		WRITE_ONCE(row_of(&vm->vcpus[i])->gone, true);
	vp_leave_guests();
}

static void status(struct vp_direct *direct, struct vmprof_status *status)
{
	status->deferred += READ_ONCE(container_of(direct, struct row, direct)->deferrals);
}

static void leave(void)
{
	vp_hooks_exit();
	vp_gic_exit();
}

const struct vp_direct_arch vp_direct_arch = {
	.silent = "the guest's handler has not acknowledged an interrupt for a second",
	.hook = hook,
	.unhook = vp_hooks_clear,
	.part = part,
	.begin = begin_anew,
	.status = status,
	.exit = leave,
};
