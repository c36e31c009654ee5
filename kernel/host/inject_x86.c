// SPDX-License-Identifier: GPL-2.0-only
/*
 * Injected NMIs on x86 (docs/direct-vector.md). The event is perf's, of the vCPU's thread: its
 * interrupt ends the guest's time and is the host's as ever. In the place of a sample the host then
 * queues an NMI, as KVM does for NMIs of the guest's own: at the next entry it comes to the guest's
 * handler, where the guest was interrupted, and KVM lets no other one into that handler.
 *
 * A vCPU has at most one under way: the next one is queued when the guest has said that it has
 * taken the last one.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "delivery_x86.h"

#define PATIENCE (5 * HZ) /* for a guest to take what is under way when no more are sent */

/* A vCPU's row. Between start and stop it is changed by the event's handler alone. */
struct row {
	struct vp_direct direct;
	u64 period;
	struct perf_event *perf;
	u32 *post;	  /* in the log, of all vCPUs; when it is known, its own */
	const u32 *taken; /* the same */
	bool known;	  /* it has been found fit */
	bool counted;	  /* the last one that was sent is of this profile */
	u32 sent;	  /* the number of that */
	u64 sends, unsent, dropped;
};

static struct row *row_of(const struct vp_vcpu *vcpu)
{
	return container_of(vcpu->direct, struct row, direct);
}

static bool waits(const struct row *row)
{
	return READ_ONCE(row->known) && READ_ONCE(*row->taken) != READ_ONCE(row->sent);
}

/* ------------------------------------------------------------------ overflow */

/* What a VM must be like is known when it runs only. */
static bool meet(struct row *row, const struct kvm_vcpu *guest)
{
	const char *why = vp_log_misfit(guest);

	if (why) {
		WRITE_ONCE(row->direct.why, why);
		WRITE_ONCE(row->direct.wanted, false);
		return false;
	}
	row->post += guest->vcpu_id;
	row->taken += guest->vcpu_id;
	row->sent = READ_ONCE(*row->taken);
	WRITE_ONCE(*row->post, row->sent);
	smp_store_release(&row->known, true);
	return true;
}

/* The guest sees the number before the NMI: it is this CPU that enters it. */
static void send(struct row *row, struct kvm_vcpu *guest)
{
	WRITE_ONCE(row->direct.silent, 0);
	row->direct.clock_offset = -guest->arch.l1_tsc_offset;
	WRITE_ONCE(row->direct.entries, row->direct.entries + 1);
	WRITE_ONCE(row->sends, row->sends + 1);
	WRITE_ONCE(row->counted, true);
	WRITE_ONCE(row->sent, row->sent + 1);
	WRITE_ONCE(*row->post, row->sent);
	vp_queue_nmi(guest);
}

/*
 * May be an NMI, and another one may be queued in one: that adds to a count and sets a bit, which
 * KVM looks at before the entry. A guest's own guest is left alone: the NMI would be its
 * hypervisor's.
 */
static void on_overflow(struct perf_event *perf, struct perf_sample_data *data,
			struct pt_regs *regs)
{
	struct row *row = perf->overflow_handler_context;
	struct kvm_vcpu *guest = kvm_get_running_vcpu();

	if (!READ_ONCE(row->direct.wanted))
		return;
	if (!guest || !vp_arch_in_guest(guest, regs) || (guest->arch.hflags & HF_GUEST_MASK)) {
		WRITE_ONCE(row->unsent, row->unsent + 1);
		return;
	}
	if (!row->known && !meet(row, guest))
		return;
	if (!waits(row)) {
		send(row, guest);
		return;
	}
	WRITE_ONCE(row->unsent, row->unsent + 1);
	WRITE_ONCE(row->direct.silent, row->direct.silent + row->period);
}

/* ------------------------------------------------------------------ rows */

static struct vp_direct *create(const struct vmprof_event *event)
{
	struct row *row = kzalloc(sizeof(*row), GFP_KERNEL);

	if (!row)
		return NULL;
	row->period = event->period;
	return &row->direct;
}

static void detach(struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++) {
		struct row *row = row_of(&vm->vcpus[i]);

		if (row->perf)
			perf_event_release_kernel(row->perf);
		row->perf = NULL;
	}
}

/* Which of the guest's modes are wanted its handler sees: an interrupt of the clock comes to the
 * host's kernel in any. */
static int event_new(struct row *row, struct task_struct *task)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = row->period,
		.disabled = 1,
		.pinned = 1,
	};
	struct perf_event *perf =
		perf_event_create_kernel_counter(&attr, -1, task, on_overflow, row);

	if (IS_ERR(perf))
		return PTR_ERR(perf);
	row->perf = perf;
	return 0;
}

static int attach(struct vp_vm *vm, const struct vmprof_attach *attach, struct vp_log *log)
{
	int err = log ? 0 : -EINVAL;
	u32 i;

	for (i = 0; i < vm->nr_vcpus && !err; i++) {
		struct row *row = row_of(&vm->vcpus[i]);

		row->post = vp_log_sent(log);
		row->taken = vp_log_taken(log);
		err = event_new(row, vm->vcpus[i].task);
	}
	if (err)
		detach(vm);
	return err;
}

/* ------------------------------------------------------------------ start, stop */

/* One that is still under way stays so, but is not of this profile. */
static void begin(struct vp_direct *direct)
{
	struct row *row = container_of(direct, struct row, direct);

	direct->silent = 0;
	row->counted = false;
	row->sends = row->unsent = row->dropped = 0;
}

static void start(struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		perf_event_enable(row_of(&vm->vcpus[i])->perf);
}

static void end_events(struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		perf_event_disable(row_of(&vm->vcpus[i])->perf);
}

static bool any_waits(const struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		if (waits(row_of(&vm->vcpus[i])) && !READ_ONCE(vm->vcpus[i].task->exit_state) &&
		    READ_ONCE(row_of(&vm->vcpus[i])->direct.why) != vp_inject_delivery.silent)
			return true;
	return false;
}

/* The guest keeps its handler until it has been told that nothing is wanted of it any more: what it
 * has not taken by then would be nobody's. */
static void stop(struct vp_vm *vm)
{
	unsigned long end = jiffies + PATIENCE;
	u32 i;

	end_events(vm);
	while (any_waits(vm) && time_before(jiffies, end))
		msleep(1);
	for (i = 0; i < vm->nr_vcpus; i++) {
		struct row *row = row_of(&vm->vcpus[i]);

		if (row->counted && waits(row)) {
			row->dropped++;
			row->counted = false;
		}
	}
}

/* While a vCPU's NMI is under way it is counted as sent only. */
static void status(struct vp_direct *direct, struct vmprof_status *status)
{
	const struct row *row = container_of(direct, struct row, direct);
	bool under_way = READ_ONCE(row->counted) && waits(row);
	u64 sends = READ_ONCE(row->sends);

	status->sent += sends;
	status->merged += row->dropped;
	status->guest += sends - row->dropped - under_way;
	status->unsent += READ_ONCE(row->unsent);
}

const struct vp_delivery vp_inject_delivery = {
	.silent = "the guest's handler has not taken an NMI for a second",
	.create = create,
	.attach = attach,
	.detach = detach,
	.begin = begin,
	.start = start,
	.stop = stop,
	.taken_back = end_events,
	.status = status,
};
