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
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

#include <asm/desc.h>

#include "../uapi/vmprof_log.h"
#include "direct.h"
#include "nmi_x86.h"
#include "vmcb_x86.h"

#define SECOND	     1000000000ull
#define WATCH	     (HZ / 4)
#define FORWARDS_MAX 100     /* a second, of one vCPU */
#define VNMI	     BIT(26) /* vmcb.control.int_ctl: V_NMI_ENABLE */
#define GATE	     2

enum why {
	WHY_NOTHING,
	WHY_LAYOUT,
	WHY_SEV_ES,
	WHY_VNMI,
	WHY_ID,
	WHY_GATE,
	WHY_SILENT,
};

static const char *const sentences[] = {
	[WHY_NOTHING] = "",
	[WHY_LAYOUT] = "this host's KVM does not keep a vCPU's VMCB where it is known to be",
	[WHY_SEV_ES] = "the VM's registers are encrypted (SEV-ES)",
	[WHY_VNMI] = "the VM has virtual NMIs (load kvm_amd with vnmi=0)",
	[WHY_ID] = "a vCPU's APIC id is above 511",
	[WHY_GATE] = "the guest's gate of NMIs leads to another place than its row says",
	[WHY_SILENT] = "the guest's handler has not acknowledged an NMI for a second",
};

/* A vCPU's row. Changed on the CPU that runs it, but for wanted. */
struct vp_direct {
	struct vp_nmi nmi;
	u64 period;
	u64 entry; /* of the guest's NMI handler */
	u32 *post; /* in the log, of all vCPUs */
	const u32 *taken;
	bool wanted; /* it is to have its NMIs */
	bool known;  /* it has been found fit */
	bool lent;   /* since the last entry, until its exit has been dealt with */
	u32 why;     /* enum why: it is not to have them any more */
	struct vmcb *vmcb;
	u64 entered; /* ns, at the last entry with them */
	u64 silent;  /* ns that it has run since, all of whose exits had the same NMI waiting */
	u32 silent_nmi;
	u64 forwards_since, entries, kept[VP_KEEP_HELD + 1], clock_offset;
	u32 forwards;
};

extern struct tracepoint __tracepoint_kvm_entry, __tracepoint_kvm_exit;

static DEFINE_MUTEX(lock); /* the list, the hooks */
static LIST_HEAD(vms);
static void watch(struct work_struct *work);
static DECLARE_DELAYED_WORK(watchdog, watch);

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

const char *vp_direct_refusal(u32 flags)
{
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
static enum why find_why(struct vp_direct *direct, struct kvm_vcpu *guest, const struct vmcb *vmcb)
{
	if (!vmcb || !vp_nmi_exits(vmcb))
		return WHY_LAYOUT;
	if (vmcb->control.nested_ctl & SVM_NESTED_CTL_SEV_ES_ENABLE)
		return WHY_SEV_ES;
	if (vmcb->control.int_ctl & VNMI)
		return WHY_VNMI;
	if (guest->vcpu_id >= VMPROF_LOG_NMI_SLOTS)
		return WHY_ID;
	if (!direct->known && gate_address(guest, vmcb) != direct->entry)
		return WHY_GATE;
	return WHY_NOTHING;
}

/* From now on its NMIs are counted where the guest sees it; none is under way. */
static void make_known(struct vp_direct *direct, const struct kvm_vcpu *guest)
{
	direct->known = true;
	vp_nmi_meet(&direct->nmi, direct->post + guest->vcpu_id, direct->taken + guest->vcpu_id);
}

/* ------------------------------------------------------------------ a VM is given a CPU */

/* NMIs go to the guest's own handler, at its kernel's level, until the next exit. */
static void set_vector(struct vp_direct *direct)
{
	vp_set_nmi_exits(direct->vmcb, false);
	direct->lent = true;
	direct->entries++;
	direct->entered = ktime_get_mono_fast_ns();
	WRITE_ONCE(direct->nmi.cpu, smp_processor_id());
}

/* Acquisition, when a VM of the table is assigned to this CPU. */
static void acquire(struct vp_direct *direct, struct kvm_vcpu *guest)
{
	enum vp_guard guard;
	enum why why;
	bool nested;

	direct->vmcb = vp_vmcb(guest, &nested);
	if (nested)
		return;
	why = find_why(direct, guest, direct->vmcb);
	if (why) {
		WRITE_ONCE(direct->why, why);
		WRITE_ONCE(direct->wanted, false);
		return;
	}
	if (!direct->known)
		make_known(direct, guest);
	direct->clock_offset = -direct->vmcb->control.tsc_offset;
	guard = vp_guard(guest, direct->vmcb, direct->entry);
	direct->kept[guard]++;
	if (guard == VP_EXPOSED)
		set_vector(direct);
}

/* ------------------------------------------------------------------ the CPU is taken away */

/* Time that the vCPU has not run, since it waits or another one has the CPU, says nothing of its
 * handler; nor does an NMI that was sent to another CPU. */
static void note_silence(struct vp_direct *direct)
{
	struct vp_nmi *nmi = &direct->nmi;
	u32 sent = READ_ONCE(nmi->sent);

	if (!vp_nmi_waits(nmi) || READ_ONCE(nmi->sent_to) != smp_processor_id() ||
	    direct->silent_nmi != sent)
		WRITE_ONCE(direct->silent, 0);
	else
		WRITE_ONCE(direct->silent,
			   direct->silent + ktime_get_mono_fast_ns() - direct->entered);
	direct->silent_nmi = sent;
}

/* A guest that hands on what it likes must not keep the host busy with it. */
static bool may_forward(struct vp_direct *direct)
{
	u64 now = ktime_get_mono_fast_ns();

	if (now - direct->forwards_since > SECOND) {
		direct->forwards_since = now;
		direct->forwards = 0;
	}
	return direct->forwards++ < FORWARDS_MAX;
}

/* The guest's kernel says of an NMI that it has taken that it is not its own. KVM, which knows no
 * such call, answers it. */
static void take_back(struct vp_direct *direct)
{
	const struct vmcb *vmcb = direct->vmcb;

	if (vmcb->control.exit_code != SVM_EXIT_VMMCALL || vmcb->save.cpl ||
	    (u32)vmcb->save.rax != VMPROF_LOG_NMI_FOREIGN || !may_forward(direct))
		return;
	atomic64_inc(&direct->nmi.foreign);
	vp_nmi_take_back();
}

/* Everything as the host has left it. */
static void restore(struct vp_direct *direct)
{
	WRITE_ONCE(direct->nmi.cpu, -1);
	vp_set_nmi_exits(direct->vmcb, true);
	note_silence(direct);
	smp_store_release(&direct->lent, false);
}

/* Before KVM looks at why it was; interrupts may be on. */
static void on_exit(void *unused, struct kvm_vcpu *guest, u32 isa)
{
	struct vp_direct *direct;
	struct vp_vcpu *vcpu;

	rcu_read_lock();
	vcpu = vp_vcpu_of(current);
	direct = vcpu ? vcpu->direct : NULL;
	if (direct && direct->vmcb) {
		if (direct->lent)
			restore(direct);
		take_back(direct);
		direct->vmcb = NULL;
	}
	rcu_read_unlock();
}

/* ------------------------------------------------------------------ hooks */

/* Interrupts are off. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
static void on_entry(void *unused, struct kvm_vcpu *guest, bool force_immediate_exit)
#else
static void on_entry(void *unused, struct kvm_vcpu *guest)
#endif
{
	struct vp_vcpu *vcpu = vp_vcpu_of(current);
	struct vp_direct *direct = vcpu ? vcpu->direct : NULL;

	if (!direct)
		return;
	/* KVM has dealt with an exit on the spot, and told nobody. */
	if (direct->lent)
		restore(direct);
	if (READ_ONCE(direct->wanted))
		acquire(direct, guest);
}

static int hook(void)
{
	int err = vp_nmi_hook();

	if (err)
		return err;
	err = tracepoint_probe_register(&__tracepoint_kvm_exit, on_exit, NULL);
	if (err)
		goto nmi;
	err = tracepoint_probe_register(&__tracepoint_kvm_entry, on_entry, NULL);
	if (!err)
		return 0;
	tracepoint_probe_unregister(&__tracepoint_kvm_exit, on_exit, NULL);
nmi:
	tracepoint_synchronize_unregister();
	vp_nmi_unhook();
	return err;
}

static void unhook(void)
{
	tracepoint_probe_unregister(&__tracepoint_kvm_entry, on_entry, NULL);
	tracepoint_probe_unregister(&__tracepoint_kvm_exit, on_exit, NULL);
	tracepoint_synchronize_unregister();
	vp_nmi_unhook();
}

/* ------------------------------------------------------------------ rows */

int vp_direct_new(struct vp_vcpu *vcpu, const struct vmprof_event *event, u32 nr)
{
	struct vp_direct *direct;

	if (nr != 1 || event->type != PERF_TYPE_SOFTWARE ||
	    event->config != PERF_COUNT_SW_CPU_CLOCK || event->config1 || event->config2 ||
	    event->period < VMPROF_CLOCK_PERIOD_MIN || event->period > VMPROF_LOG_PERIOD_MAX ||
	    (event->flags & ~VMP_COUNT_FLAGS))
		return -EINVAL;
	direct = kzalloc(sizeof(*direct), GFP_KERNEL);
	if (!direct)
		return -ENOMEM;
	direct->period = event->period;
	vp_nmi_begin(&direct->nmi);
	vcpu->direct = direct;
	return 0;
}

void vp_direct_free(struct vp_vcpu *vcpu)
{
	kfree(vcpu->direct);
}

struct vp_log *vp_direct_pin(const struct vmprof_attach *attach)
{
	struct vp_log *log;
	int got;

	if (attach->delivery != VMP_DELIVER_DIRECT || !attach->log || attach->log % PAGE_SIZE)
		return NULL;
	log = kzalloc(sizeof(*log), GFP_KERNEL);
	if (!log)
		return ERR_PTR(-ENOMEM);
	got = pin_user_pages_fast(attach->log, VP_LOG_PAGES, FOLL_WRITE | FOLL_LONGTERM,
				  log->pages);
	if (got == VP_LOG_PAGES)
		return log;
	if (got > 0)
		unpin_user_pages(log->pages, got);
	kfree(log);
	return ERR_PTR(got < 0 ? got : -EFAULT);
}

void vp_direct_unpin(struct vp_log *log)
{
	if (!log)
		return;
	unpin_user_pages_dirty_lock(log->pages, VP_LOG_PAGES, true);
	kfree(log);
}

int vp_direct_attach(struct vp_vm *vm, const struct vmprof_attach *attach, struct vp_log *log)
{
	struct vp_nmis *nmis;
	u32 i;
	int err;

	if (!log)
		return -EINVAL;
	nmis = vp_nmis_new(vm->nr_vcpus, vm->vcpus[0].direct->period);
	if (!nmis)
		return -ENOMEM;
	nmis->log = log;
	for (i = 0; i < vm->nr_vcpus; i++) {
		struct vp_direct *direct = vm->vcpus[i].direct;

		nmis->of[i] = &direct->nmi;
		direct->entry = attach->handler;
		direct->post = page_address(log->pages[0]) + VMPROF_LOG_NMI;
		direct->taken = page_address(log->pages[1]) + VMPROF_LOG_NMI;
	}
	mutex_lock(&lock);
	err = list_empty(&vms) ? hook() : 0;
	if (!err) {
		if (list_empty(&vms))
			schedule_delayed_work(&watchdog, WATCH);
		list_add_tail(&vm->direct, &vms);
		vm->nmis = nmis;
	}
	mutex_unlock(&lock);
	if (err)
		kfree(nmis);
	return err;
}

void vp_direct_detach(struct vp_vm *vm)
{
	if (!vm->nmis)
		return;
	vp_direct_stop(vm);
	vp_nmis_forget(vm->nmis);
	mutex_lock(&lock);
	list_del_init(&vm->direct);
	if (list_empty(&vms)) {
		cancel_delayed_work(&watchdog);
		unhook();
	}
	mutex_unlock(&lock);
	vp_direct_unpin(vm->nmis->log);
	kfree(vm->nmis);
	vm->nmis = NULL;
}

void vp_direct_exit(void)
{
	cancel_delayed_work_sync(&watchdog);
}

/* ------------------------------------------------------------------ start, stop */

void vp_direct_start(struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++) {
		struct vp_direct *direct = vm->vcpus[i].direct;

		vp_nmi_begin(&direct->nmi);
		direct->known = false;
		direct->why = WHY_NOTHING;
		direct->silent = 0;
		direct->entries = 0;
		memset(direct->kept, 0, sizeof(direct->kept));
		smp_store_release(&direct->wanted, true);
	}
	vp_nmis_start(vm->nmis);
}

static bool any_lent(const struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		if (smp_load_acquire(&vm->vcpus[i].direct->lent))
			return true;
	return false;
}

/* A vCPU that has left its guest deals with that exit before anything else, but it may have to wait
 * for a CPU. */
static void take_all_back(struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		WRITE_ONCE(vm->vcpus[i].direct->wanted, false);
	vp_leave_guests();
	while (any_lent(vm))
		msleep(1);
}

void vp_direct_stop(struct vp_vm *vm)
{
	take_all_back(vm);
	vp_nmis_stop(vm->nmis);
}

/* A vCPU that does not take its NMI is only known to be silent if it exits. */
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
		WRITE_ONCE(vm->nmis->over, true);
		for (k = 0; k < vm->nr_vcpus; k++)
			if (xchg(&vm->vcpus[k].direct->wanted, false))
				WRITE_ONCE(vm->vcpus[k].direct->why, WHY_SILENT);
	}
	if (!list_empty(&vms))
		schedule_delayed_work(&watchdog, WATCH);
	mutex_unlock(&lock);
}

static void add_nmis(struct vmprof_status *status, struct vp_direct *direct)
{
	struct vp_nmi *nmi = &direct->nmi;

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
	status->kept_entry += READ_ONCE(direct->kept[VP_KEEP_ENTRY]);
	status->kept_injected += READ_ONCE(direct->kept[VP_KEEP_INJECTED]);
	status->held += READ_ONCE(direct->kept[VP_KEEP_HELD]);
}

void vp_direct_status(struct vp_vm *vm, struct vmprof_status *status)
{
	bool lent_once = false;
	u32 i, why = WHY_NOTHING;

	for (i = 0; i < vm->nr_vcpus; i++) {
		struct vp_direct *direct = vm->vcpus[i].direct;

		add_nmis(status, direct);
		status->entries += READ_ONCE(direct->entries);
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
