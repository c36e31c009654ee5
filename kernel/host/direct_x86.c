// SPDX-License-Identifier: GPL-2.0-only
/*
 * The direct delivery on x86 (docs/direct-vector.md). A PMU's interrupt is an NMI, and whether NMIs
 * make a guest exit is one bit of its VMCB (SVM). Where it is clear, the CPU calls the handler of
 * the guest's own gate 2. Here the NMIs are a timer's of another CPU, so that it works without a
 * PMU.
 *
 * The bit is cleared at an entry and set at the exit: no other part of KVM ever sees it clear, and
 * a VM is as it was as soon as its vCPUs have left their guests.
 */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

#include <asm/desc.h>

#include "delivery_x86.h"
#include "nmi_x86.h"
#include "vmcb_x86.h"

#define SECOND	     1000000000ull
#define FORWARDS_MAX 100     /* a second, of one vCPU */
#define VNMI	     BIT(26) /* vmcb.control.int_ctl: V_NMI_ENABLE */
#define GATE	     2

/* A vCPU's row. */
struct row {
	struct vp_direct direct;
	struct vp_nmi nmi;
	u64 period;
	u64 entry; /* of the guest's NMI handler */
	u32 *post; /* in the log, of all vCPUs */
	const u32 *taken;
	bool known; /* it has been found fit */
	bool lent;  /* since the last entry, until its exit has been dealt with */
	struct vmcb *vmcb;
	u64 entered;	/* ns, at the last entry with them */
	u32 silent_nmi; /* the number of the NMI that the silence is about */
	u64 forwards_since, kept[VP_KEEP_HELD + 1];
	u32 forwards;
};

extern struct tracepoint __tracepoint_kvm_exit;

static struct row *row_of(const struct vp_vcpu *vcpu)
{
	return container_of(vcpu->direct, struct row, direct);
}

/* ------------------------------------------------------------------ conditions */

#define WATCHDOG_SWITCH "/proc/sys/kernel/nmi_watchdog"

/* Not exported but to programs. */
static bool nmi_watchdog_is_off(void)
{
	struct file *file;
	char digit = '1';
	loff_t at = 0;
	bool off;

	if (!IS_ENABLED(CONFIG_HARDLOCKUP_DETECTOR))
		return true;
	file = filp_open(WATCHDOG_SWITCH, O_RDONLY, 0);
	if (IS_ERR(file))
		return false;
	off = kernel_read(file, &digit, 1, &at) == 1 && digit == '0';
	filp_close(file, NULL);
	return off;
}

const char *vp_direct_refusal(u32 delivery, u32 flags)
{
	if (delivery == VMP_DELIVER_INJECT)
		return NULL;
	if (!boot_cpu_has(X86_FEATURE_SVM))
		return "direct delivery on VMX needs hardware that it has not been tried on";
	if (num_online_cpus() < 2)
		return "the host has one CPU only, and the timer needs another one than the guest";
	if (!(flags & VMPROF_ATTACH_FORCE) && !nmi_watchdog_is_off())
		return "the host's NMI watchdog is on (turn it off by kernel.nmi_watchdog=0)";
	if (!(flags & VMPROF_ATTACH_EXPERIMENTAL))
		return "direct delivery on x86 is experimental: ask for it as such";
	return NULL;
}

/* What the guest's gate of NMIs says, or 0. */
static u64 gate_address(struct kvm_vcpu *guest, const struct vmcb *vmcb)
{
	gate_desc gate;
	u64 at = vmcb->save.idtr.base + GATE * sizeof(gate), gpa;
	int idx = srcu_read_lock(&guest->kvm->srcu);
	int err = vp_arch_walk(guest, 0, at, &gpa)
			  ?: kvm_vcpu_read_guest_atomic(guest, gpa, &gate, sizeof(gate));

	srcu_read_unlock(&guest->kvm->srcu, idx);
	return err ? 0 : gate_offset(&gate);
}

/* What a VM must be like is known when it runs only. */
static const char *find_why(struct row *row, struct kvm_vcpu *guest, const struct vmcb *vmcb)
{
	const char *why;

	if (!vmcb || !vp_nmi_exits(vmcb))
		return "this host's KVM does not keep a vCPU's VMCB where it is known to be";
	if (vmcb->control.nested_ctl & SVM_NESTED_CTL_SEV_ES_ENABLE)
		return "the VM's registers are encrypted (SEV-ES)";
	if (vmcb->control.int_ctl & VNMI)
		return "the VM has virtual NMIs (load kvm_amd with vnmi=0)";
	why = vp_log_misfit(guest);
	if (why)
		return why;
	if (!row->known && gate_address(guest, vmcb) != row->entry)
		return "the guest's gate of NMIs leads to another place than its row says";
	return NULL;
}

/* From now on its NMIs are counted where the guest sees it; none is under way. */
static void make_known(struct row *row, const struct kvm_vcpu *guest)
{
	row->known = true;
	vp_nmi_meet(&row->nmi, row->post + guest->vcpu_id, row->taken + guest->vcpu_id);
}

/* ------------------------------------------------------------------ a VM is given a CPU */

/* NMIs go to the guest's own handler, at its kernel's level, until the next exit. */
static void set_vector(struct row *row)
{
	vp_set_nmi_exits(row->vmcb, false);
	row->lent = true;
	row->direct.entries++;
	row->entered = ktime_get_mono_fast_ns();
	WRITE_ONCE(row->nmi.cpu, smp_processor_id());
}

/* Acquisition, when a VM of the table is assigned to this CPU. */
static void acquire(struct row *row, struct kvm_vcpu *guest)
{
	enum vp_guard guard;
	const char *why;
	bool nested;

	row->vmcb = vp_vmcb(guest, &nested);
	if (nested)
		return;
	why = find_why(row, guest, row->vmcb);
	if (why) {
		WRITE_ONCE(row->direct.why, why);
		WRITE_ONCE(row->direct.wanted, false);
		return;
	}
	if (!row->known)
		make_known(row, guest);
	row->direct.clock_offset = -row->vmcb->control.tsc_offset;
	guard = vp_guard(guest, row->vmcb, row->entry);
	row->kept[guard]++;
	if (guard == VP_EXPOSED)
		set_vector(row);
}

/* ------------------------------------------------------------------ the CPU is taken away */

/* Time that the vCPU has not run, since it waits or another one has the CPU, says nothing of its
 * handler; nor does an NMI that was sent to another CPU. */
static void note_silence(struct row *row)
{
	struct vp_nmi *nmi = &row->nmi;
	u32 sent = READ_ONCE(nmi->sent);

	if (!vp_nmi_waits(nmi) || READ_ONCE(nmi->sent_to) != smp_processor_id() ||
	    row->silent_nmi != sent)
		WRITE_ONCE(row->direct.silent, 0);
	else
		WRITE_ONCE(row->direct.silent,
			   row->direct.silent + ktime_get_mono_fast_ns() - row->entered);
	row->silent_nmi = sent;
}

/* A guest that hands on what it likes must not keep the host busy with it. */
static bool may_forward(struct row *row)
{
	u64 now = ktime_get_mono_fast_ns();

	if (now - row->forwards_since > SECOND) {
		row->forwards_since = now;
		row->forwards = 0;
	}
	return row->forwards++ < FORWARDS_MAX;
}

/* The guest's kernel says of an NMI that it has taken that it is not its own. KVM, which knows no
 * such call, answers it. */
static void take_back(struct row *row)
{
	const struct vmcb *vmcb = row->vmcb;

	if (vmcb->control.exit_code != SVM_EXIT_VMMCALL || vmcb->save.cpl ||
	    (u32)vmcb->save.rax != VMPROF_LOG_NMI_FOREIGN || !may_forward(row))
		return;
	atomic64_inc(&row->nmi.foreign);
	vp_nmi_take_back();
}

/* Everything as the host has left it. */
static void restore(struct row *row)
{
	WRITE_ONCE(row->nmi.cpu, -1);
	vp_set_nmi_exits(row->vmcb, true);
	note_silence(row);
	smp_store_release(&row->lent, false);
}

/* Before KVM looks at why it was; interrupts may be on. */
static void on_exit(void *unused, struct kvm_vcpu *guest, u32 isa)
{
	struct row *row;
	struct vp_vcpu *vcpu;

	rcu_read_lock();
	vcpu = vp_vcpu_of(current);
	row = vcpu && vcpu->direct ? row_of(vcpu) : NULL;
	if (row && row->vmcb) {
		if (row->lent)
			restore(row);
		take_back(row);
		row->vmcb = NULL;
	}
	rcu_read_unlock();
}

/* ------------------------------------------------------------------ hooks */

/* Interrupts are off. */
void vp_direct_on_entry(struct vp_direct *direct, struct kvm_vcpu *guest)
{
	struct row *row = container_of(direct, struct row, direct);

	/* KVM has dealt with an exit on the spot, and told nobody. */
	if (row->lent)
		restore(row);
	if (READ_ONCE(direct->wanted))
		acquire(row, guest);
}

static int hook(void)
{
	int err = vp_nmi_hook();

	if (err)
		return err;
	err = tracepoint_probe_register(&__tracepoint_kvm_exit, on_exit, NULL);
	if (err)
		vp_nmi_unhook();
	return err;
}

static void unhook(void)
{
	tracepoint_probe_unregister(&__tracepoint_kvm_exit, on_exit, NULL);
	tracepoint_synchronize_unregister();
	vp_nmi_unhook();
}

/* ------------------------------------------------------------------ rows */

static struct vp_direct *create(const struct vmprof_event *event)
{
	struct row *row = kzalloc(sizeof(*row), GFP_KERNEL);

	if (!row)
		return NULL;
	row->period = event->period;
	vp_nmi_begin(&row->nmi);
	return &row->direct;
}

static int attach_log(struct vp_vm *vm, const struct vmprof_attach *attach, struct vp_log *log)
{
	struct vp_nmis *nmis;
	u32 i;

	if (!log)
		return -EINVAL;
	nmis = vp_nmis_new(vm->nr_vcpus, row_of(&vm->vcpus[0])->period);
	if (!nmis)
		return -ENOMEM;
	for (i = 0; i < vm->nr_vcpus; i++) {
		struct row *row = row_of(&vm->vcpus[i]);

		nmis->of[i] = &row->nmi;
		row->entry = attach->handler;
		row->post = vp_log_sent(log);
		row->taken = vp_log_taken(log);
	}
	vm->nmis = nmis;
	return 0;
}

static void part(struct vp_vm *vm)
{
	vp_nmis_forget(vm->nmis);
}

static void detach(struct vp_vm *vm)
{
	kfree(vm->nmis);
	vm->nmis = NULL;
}

/* ------------------------------------------------------------------ start, stop */

static void begin(struct vp_direct *direct)
{
	struct row *row = container_of(direct, struct row, direct);

	vp_nmi_begin(&row->nmi);
	row->known = false;
	direct->silent = 0;
	memset(row->kept, 0, sizeof(row->kept));
}

static void start(struct vp_vm *vm)
{
	vp_nmis_start(vm->nmis);
}

static bool any_lent(const struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		if (smp_load_acquire(&row_of(&vm->vcpus[i])->lent))
			return true;
	return false;
}

/* A vCPU that has left its guest deals with that exit before anything else, but it may have to wait
 * for a CPU. */
static void stop(struct vp_vm *vm)
{
	while (any_lent(vm))
		msleep(1);
	vp_nmis_stop(vm->nmis);
}

static void taken_back(struct vp_vm *vm)
{
	WRITE_ONCE(vm->nmis->over, true);
}

static void status(struct vp_direct *direct, struct vmprof_status *status)
{
	struct row *row = container_of(direct, struct row, direct);
	struct vp_nmi *nmi = &row->nmi;

	if (nmi->taken)
		vp_nmi_waits(nmi);
	status->sent += atomic64_read(&nmi->count);
	status->guest += atomic64_read(&nmi->ends[VP_NMI_GUEST]);
	status->host += atomic64_read(&nmi->ends[VP_NMI_HOST]);
	status->guard += atomic64_read(&nmi->ends[VP_NMI_GUARD]);
	status->forwarded += atomic64_read(&nmi->ends[VP_NMI_FORWARDED]);
	status->merged += atomic64_read(&nmi->ends[VP_NMI_MERGED]);
	status->late += atomic64_read(&nmi->late);
	status->foreign += atomic64_read(&nmi->foreign);
	status->unsent += atomic64_read(&nmi->unsent);
	status->kept_entry += READ_ONCE(row->kept[VP_KEEP_ENTRY]);
	status->kept_injected += READ_ONCE(row->kept[VP_KEEP_INJECTED]);
	status->held += READ_ONCE(row->kept[VP_KEEP_HELD]);
}

const struct vp_delivery vp_direct_delivery = {
	.silent = "the guest's handler has not acknowledged an NMI for a second",
	.create = create,
	.hook = hook,
	.unhook = unhook,
	.attach = attach_log,
	.detach = detach,
	.part = part,
	.begin = begin,
	.start = start,
	.stop = stop,
	.taken_back = taken_back,
	.status = status,
};
