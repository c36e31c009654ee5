// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's own perf as the source: an event on each CPU, whose counter is the hypervisor's
 * virtual one or a timer. Works in every VM, and is what the direct delivery is measured against.
 */
#include <linux/cpu.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#include "guest.h"

static struct perf_event **events; /* [CPU][event] */

static void on_overflow(struct perf_event *perf, struct perf_sample_data *data,
			struct pt_regs *regs)
{
	u64 time = vg_clock();

	this_cpu_ptr(&vg_cpus)->overflows++;
	vg_sample(regs, (unsigned long)perf->overflow_handler_context, data->period, time);
}

static void stop(void)
{
	unsigned int i;

	if (!events)
		return;
	for (i = 0; i < nr_cpu_ids * vg_request.nr; i++)
		if (events[i])
			perf_event_release_kernel(events[i]);
	kfree(events);
	events = NULL;
}

static struct perf_event *event_new(u32 i, int cpu)
{
	const struct vmprof_log_event *event = &vg_request.events[i];
	struct perf_event_attr attr = {
		.type = event->type,
		.size = sizeof(attr),
		.config = event->config,
		.freq = !!(event->flags & VMPROF_LOG_FREQ),
		.sample_period = event->period, /* or a frequency: a union */
		.pinned = 1,
		.exclude_user = !(event->flags & VMP_COUNT_USER),
		.exclude_kernel = !(event->flags & VMP_COUNT_KERNEL),
		.exclude_hv = 1,
		.exclude_idle = event->type == PERF_TYPE_SOFTWARE,
	};

	return perf_event_create_kernel_counter(&attr, cpu, NULL, on_overflow,
						(void *)(unsigned long)i);
}

static int start(struct vmprof_log_guest *row)
{
	struct perf_event *perf;
	int cpu;
	u32 i;

	events = kcalloc(nr_cpu_ids * vg_request.nr, sizeof(*events), GFP_KERNEL);
	if (!events)
		return -ENOMEM;
	cpus_read_lock();
	for_each_online_cpu(cpu) for (i = 0; i < vg_request.nr; i++)
	{
		perf = event_new(i, cpu);
		if (IS_ERR(perf)) {
			cpus_read_unlock();
			stop();
			scnprintf(row->why, sizeof(row->why),
				  "the guest's perf cannot count event %u (error %ld)", i,
				  -PTR_ERR(perf));
			return PTR_ERR(perf);
		}
		events[cpu * vg_request.nr + i] = perf;
	}
	cpus_read_unlock();
	return 0;
}

const struct vg_source vg_source_perf = {start, stop};
