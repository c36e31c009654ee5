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

#define SECOND 1000000000ull
#define WATCH  (HZ / 4)
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

enum why {
	WHY_NOTHING,
	WHY_GROUP0,
	WHY_VPMU,
	WHY_COUNTERS,
	WHY_CONTROLLER,
	WHY_SILENT,
};

static const char *const sentences[] = {
	[WHY_NOTHING] = "",
	[WHY_GROUP0] =
		"the host has to be booted with kvm-arm.vgic_v3_group0_trap=1, else the guest "
		"could hold off the host's interrupts",
	[WHY_VPMU] = "the VM has a virtual PMU (QEMU: -cpu host,pmu=off)",
	[WHY_COUNTERS] = "a CPU of the host has fewer counters than the VM's events",
	[WHY_CONTROLLER] = "a CPU's part of the interrupt controller is not found",
	[WHY_SILENT] = "the guest's handler has not acknowledged an interrupt for a second",
};

/* A vCPU's row, and its PMU while it has none. Changed on the CPU that runs it, with interrupts
 * off. */
struct vp_direct {
	u32 nr, mask;
	u64 types[EVENT_MAX], values[EVENT_MAX], user;
	bool wanted; /* it is to have the counters */
	bool begin;  /* from the row's values; of the former profile it may still have a PMU */
	bool unsafe; /* it may be in its handler */
	bool gone;   /* whatever it is in: it is not lent anything any more */
	u32 why;     /* enum why: it is not to have them any more */
	struct vp_pmu pmu;
	u64 entry_pc;
	u32 ahead;     /* events from the entry to a deferred overflow */
	bool deferred; /* at the last entry */
	u64 entered;   /* ns, if so */
	u64 silent;    /* ns that it has run since, all of whose exits had an overflow waiting */
	u64 entries, deferrals, clock_offset;
};

/* What a CPU is to get back. */
struct lent {
	struct vp_direct *to; /* null: everything is the host's */
	bool vector;	      /* the interrupt's way has been changed as well */
	struct vp_pmu pmu;
	struct vp_gic_saved gic;
	u64 mdcr, group0;
};
static DEFINE_PER_CPU(struct lent, lent);

static struct arm_pmu *cpu_pmu;
static u32 intid;	  /* the PMU's interrupt; the same number on each CPU */
static u64 count_nothing; /* MDCR_EL2's bits: no counting at EL2 */
static const char *refusal = "direct delivery has not been looked at";

static DEFINE_MUTEX(lock); /* the list, the hooks */
static LIST_HEAD(vms);
static void watch(struct work_struct *work);
static DECLARE_DELAYED_WORK(watchdog, watch);

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

void vp_direct_exit(void)
{
	cancel_delayed_work_sync(&watchdog);
	vp_hooks_exit();
	vp_gic_exit();
}

const char *vp_direct_refusal(u32 flags)
{
	return refusal;
}

/* ------------------------------------------------------------------ a VM is given a CPU */

/* What a VM must be like is known when it runs only. */
static bool fit(struct vp_direct *direct, const struct kvm_vcpu *guest)
{
	if (!(guest->arch.vgic_cpu.vgic_v3.vgic_hcr & ICH_HCR_TALL0))
		direct->why = WHY_GROUP0;
	else if (kvm_vcpu_has_pmu(guest))
		direct->why = WHY_VPMU;
	else if (vmp_pmu_counters() < direct->nr)
		direct->why = WHY_COUNTERS;
	else if (!vp_gic_here())
		direct->why = WHY_CONTROLLER;
	if (!direct->why)
		return true;
	WRITE_ONCE(direct->wanted, false);
	return false;
}

/* See above. Entries that are refused all the same, since the counter was too quick, get longer. */
static void defer_overflows(struct vp_direct *direct, const struct kvm_vcpu *guest)
{
	struct vp_pmu *pmu = &direct->pmu;
	u64 waiting = pmu->overflows & pmu->interrupts, value;
	u32 i;

	if (waiting && direct->deferred && direct->entry_pc == *vcpu_pc(guest))
		direct->ahead = min(direct->ahead * 2, (u32)AHEAD_MAX);
	else
		direct->ahead = AHEAD_MIN;
	direct->entry_pc = *vcpu_pc(guest);
	direct->deferred = waiting;
	if (waiting)
		direct->entered = ktime_get_mono_fast_ns();
	direct->deferrals += hweight64(waiting);
	value = -(u64)direct->ahead;
	for (i = 0; i < direct->nr; i++)
		if (waiting & BIT(i))
			pmu->value[i] = pmu->control & VMP_PMCR_LP ? value : (u32)value;
	if (waiting & BIT(VMP_PMU_CYCLES))
		pmu->cycles = value;
	pmu->overflows &= ~waiting;
}

/* The VM's registers, without what a guest may not have in them. */
static void load_control_registers(struct vp_direct *direct, bool off)
{
	struct vp_pmu *pmu = &direct->pmu;
	u64 mask = direct->mask | BIT(VMP_PMU_CYCLES);
	u32 i;

	pmu->set = direct->mask;
	for (i = 0; i < direct->nr; i++)
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
static void begin(struct vp_direct *direct)
{
	direct->pmu = (struct vp_pmu){
		.control = VMP_PMCR_E | VMP_PMCR_LC,
		.enabled = direct->mask,
		.interrupts = direct->mask,
		.user = direct->user,
	};
	memcpy(direct->pmu.type, direct->types, sizeof(direct->types));
	memcpy(direct->pmu.value, direct->values, sizeof(direct->values));
	WRITE_ONCE(direct->silent, 0);
}

/* Acquisition, when a VM of the table is assigned to this CPU. */
static void acquire(struct kvm_vcpu *guest)
{
	struct vp_vcpu *vcpu = vp_vcpu_of(current);
	struct vp_direct *direct = vcpu ? vcpu->direct : NULL;
	struct lent *l = this_cpu_ptr(&lent);
	bool wanted;

	if (!direct || READ_ONCE(direct->gone))
		return;
	wanted = READ_ONCE(direct->wanted) && fit(direct, guest);
	if (!wanted && !direct->unsafe)
		return;
	vp_pmu_save(&l->pmu, direct->mask);
	l->vector = false;
	if (wanted) {
		if (xchg(&direct->begin, false))
			begin(direct);
		set_vector(l, guest);
		defer_overflows(direct, guest);
		direct->entries++;
		direct->clock_offset = read_sysreg(cntvoff_el2);
	}
	untrap(l, direct->nr);
	load_control_registers(direct, !wanted);
	l->to = direct;
}

/* ------------------------------------------------------------------ the CPU is taken away */

/* Time that the vCPU has not run, since it waits or another one has the CPU, says nothing of its
 * handler. */
static void note_silence(struct vp_direct *direct)
{
	if (!(direct->pmu.overflows & direct->pmu.interrupts))
		WRITE_ONCE(direct->silent, 0);
	else if (direct->deferred)
		WRITE_ONCE(direct->silent,
			   direct->silent + ktime_get_mono_fast_ns() - direct->entered);
}

/* Everything as the host has left it. */
static void restore(struct kvm_vcpu *guest)
{
	struct lent *l = this_cpu_ptr(&lent);
	struct vp_direct *direct = l->to;

	if (!direct)
		return;
	if (l->vector) {
		write_sysreg_s(l->group0, SYS_ICC_IGRPEN0_EL1);
		isb();
	}
	vp_pmu_save(&direct->pmu, direct->mask);
	if (l->vector) {
		vp_gic_restore(intid, &l->gic);
		guest->arch.hcr_el2 |= HCR_FMO;
	}
	write_sysreg(l->mdcr, mdcr_el2);
	isb();
	vp_pmu_load(&l->pmu);
	l->to = NULL;
	note_silence(direct);
	WRITE_ONCE(direct->unsafe, *vcpu_cpsr(guest) & PSR_F_BIT);
}

/* No handler waits for an interrupt. */
static void idle(struct kvm_vcpu *guest)
{
	struct vp_vcpu *vcpu;

	rcu_read_lock();
	vcpu = vp_vcpu_of(current);
	if (vcpu && vcpu->direct)
		WRITE_ONCE(vcpu->direct->unsafe, false);
	rcu_read_unlock();
}

static const struct vp_hooks hooks = {acquire, restore, idle};

/* ------------------------------------------------------------------ rows */

int vp_direct_new(struct vp_vcpu *vcpu, const struct vmprof_event *events, u32 nr)
{
	struct vp_direct *direct;
	u32 i;

	if (nr > EVENT_MAX || nr >= hweight64(vp_row_counters()))
		return -ENOSPC;
	direct = kzalloc(sizeof(*direct), GFP_KERNEL);
	if (!direct)
		return -ENOMEM;
	vcpu->direct = direct;
	direct->nr = nr;
	direct->mask = BIT(nr) - 1;
	for (i = 0; i < nr; i++) {
		if (events[i].type != PERF_TYPE_RAW || events[i].config > VMP_TYPE_EVENT ||
		    events[i].config1 || events[i].config2 || events[i].period < 1000 ||
		    events[i].period > BIT(31) || (events[i].flags & ~VMP_COUNT_FLAGS))
			return -EINVAL;
		direct->types[i] = events[i].config |
				   (events[i].flags & VMP_COUNT_USER ? 0 : VMP_TYPE_NO_USER) |
				   (events[i].flags & VMP_COUNT_KERNEL ? 0 : VMP_TYPE_NO_KERNEL);
		direct->values[i] = (u32)-events[i].period;
		/* Programs make this event themselves, if they may. */
		if (events[i].config == VMP_EVENT_SW_INCR)
			direct->user = VMP_USER_SW_INCR;
	}
	return 0;
}

void vp_direct_free(struct vp_vcpu *vcpu)
{
	kfree(vcpu->direct);
}

int vp_direct_attach(struct vp_vm *vm, const struct vmprof_attach *attach, struct vp_log *log)
{
	int err = 0;

	mutex_lock(&lock);
	if (list_empty(&vms))
		err = vp_hooks_set(&hooks);
	if (!err) {
		if (list_empty(&vms))
			schedule_delayed_work(&watchdog, WATCH);
		list_add_tail(&vm->direct, &vms);
	}
	mutex_unlock(&lock);
	return err;
}

static bool all_safe(const struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		if (vm->vcpus[i].direct && READ_ONCE(vm->vcpus[i].direct->unsafe) &&
		    !READ_ONCE(vm->vcpus[i].task->exit_state))
			return false;
	return true;
}

#define PATIENCE (5 * HZ) /* for a guest to end its handler */

void vp_direct_detach(struct vp_vm *vm)
{
	unsigned long end = jiffies + PATIENCE;
	u32 i;

	if (list_empty(&vm->direct))
		return;
	vp_direct_stop(vm);
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
		if (vm->vcpus[i].direct)
			WRITE_ONCE(vm->vcpus[i].direct->gone, true);
	vp_leave_guests();
	mutex_lock(&lock);
	list_del_init(&vm->direct);
	if (list_empty(&vms)) {
		cancel_delayed_work(&watchdog);
		vp_hooks_clear();
	}
	mutex_unlock(&lock);
}

/* ------------------------------------------------------------------ start, stop */

void vp_direct_start(struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++) {
		struct vp_direct *direct = vm->vcpus[i].direct;

		direct->why = WHY_NOTHING;
		direct->entries = 0;
		direct->deferrals = 0;
		WRITE_ONCE(direct->begin, true);
		smp_store_release(&direct->wanted, true);
	}
}

void vp_direct_stop(struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		WRITE_ONCE(vm->vcpus[i].direct->wanted, false);
	vp_leave_guests();
}

/* A vCPU whose exits all have an overflow waiting is only known to be silent if it exits. */
static void watch(struct work_struct *work)
{
	struct vp_vm *vm;
	u32 i, k;

	vp_leave_guests();
	mutex_lock(&lock);
	list_for_each_entry(vm, &vms, direct) for (i = 0; i < vm->nr_vcpus; i++)
	{
		if (READ_ONCE(vm->vcpus[i].direct->silent) < SECOND)
			continue;
		for (k = 0; k < vm->nr_vcpus; k++) {
			struct vp_direct *direct = vm->vcpus[k].direct;

			if (!READ_ONCE(direct->wanted))
				continue;
			direct->why = WHY_SILENT;
			WRITE_ONCE(direct->wanted, false);
		}
	}
	if (!list_empty(&vms))
		schedule_delayed_work(&watchdog, WATCH);
	mutex_unlock(&lock);
}

void vp_direct_status(struct vp_vm *vm, struct vmprof_status *status)
{
	bool lent_once = false;
	u32 i, why = WHY_NOTHING;

	for (i = 0; i < vm->nr_vcpus; i++) {
		const struct vp_direct *direct = vm->vcpus[i].direct;

		status->entries += READ_ONCE(direct->entries);
		status->deferred += READ_ONCE(direct->deferrals);
		if (READ_ONCE(direct->entries)) {
			lent_once = true;
			status->clock_offset = READ_ONCE(direct->clock_offset);
		}
		why = READ_ONCE(direct->why) ?: why;
	}
	strscpy(status->why, sentences[why], sizeof(status->why));
	if (why)
		status->state =
			why == WHY_SILENT ? VMPROF_DIRECT_TAKEN_BACK : VMPROF_DIRECT_REFUSED;
	else if (vm->started)
		status->state = lent_once ? VMPROF_DIRECT_LENT : VMPROF_DIRECT_WAITING;
}
