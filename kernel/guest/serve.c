// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a request in a log to a source that writes samples there, and the answer. There may be two
 * logs, the host's and that of the guest's own user; one of them is served at a time.
 */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>

#ifdef CONFIG_X86_64
#include <asm/tsc.h>
#endif

#include "guest.h"

struct vg_request vg_request;

static DEFINE_MUTEX(lock);    /* of what follows, and of vg_request but for handlers */
static struct vg_log *served; /* whose request a source serves, or null */
static const struct vg_source *source;

static const struct vg_source *const sources[VMPROF_SOURCES] = {
	[VMPROF_SOURCE_PERF] = &vg_source_perf,
	[VMPROF_SOURCE_DIRECT] = &vg_source_direct,
	[VMPROF_SOURCE_INJECT] = &vg_source_inject,
};

static struct vmprof_log_guest *guest_page(const struct vg_log *log)
{
	return log->memory + VMPROF_LOG_PAGE;
}

static void start_rings(const struct vg_log *log, const struct vmprof_log_host *host)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
	{
		struct vg_cpu *c = per_cpu_ptr(&vg_cpus, cpu);
		void *ring = log->memory + host->ring_offset + cpu * host->ring_stride;

		*c = (struct vg_cpu){};
		if (cpu < host->rings)
			vmp_ring_init(&c->ring, ring, VMPROF_LOG_PAGE, host->ring_size);
	}
}

/* As long as the host may have this VM's row, its handler stays: so does the module. */
static void stop_source(const struct vg_log *log)
{
	if (served != log)
		return;
	source->stop();
	vg_side_stop();
	served = NULL;
	module_put(THIS_MODULE);
}

/* What the one side has not, and whether the other one has it all at the moment. */
static int refuse(const struct vg_log *log, const struct vmprof_log_host *host,
		  struct vmprof_log_guest *row)
{
	if (log->own && host->source != VMPROF_SOURCE_PERF) {
		strscpy(row->why, "what the host lends is asked for on the host", sizeof(row->why));
		return -EOPNOTSUPP;
	}
	if (!served)
		return 0;
	strscpy(row->why,
		log->own ? "the host is recording this machine"
			 : "the guest's own user is recording it",
		sizeof(row->why));
	return -EBUSY;
}

/* Without it there are samples nevertheless. The guest's own user has /proc, and asks for none. */
static void start_side(const struct vg_log *log, const struct vmprof_log_host *host,
		       struct vmprof_log_guest *row)
{
	int err = -ENOSPC;

	if (log->own)
		return;
	if (host->side_size)
		err = vg_side_start(log->memory + host->side_offset, host->side_size);
	row->side = !err;
	if (err == -ENOSPC)
		strscpy(row->why, "the log has no room for it", sizeof(row->why));
	else if (err)
		scnprintf(row->why, sizeof(row->why),
			  "the guest's kernel does not let itself be hooked (error %d)", -err);
}

static int start_source(struct vg_log *log, const struct vmprof_log_host *host,
			struct vmprof_log_guest *row)
{
	const struct vg_source *wanted = sources[host->source];
	int err = refuse(log, host, row);

	if (err)
		return err;
	vg_request = (struct vg_request){log->memory, host->request, host->source, host->chain,
					 host->nr};
	memcpy(vg_request.events, host->events, sizeof(vg_request.events));
	start_rings(log, host);
	err = wanted->start(row);
	if (err)
		return err;
	__module_get(THIS_MODULE);
	served = log;
	source = wanted;
	row->nr = host->nr;
	memcpy(row->events, host->events, sizeof(row->events));
	start_side(log, host, row);
	return 0;
}

static void answer(struct vg_log *log, const struct vmprof_log_host *host, int err)
{
	struct vmprof_log_guest row = {
		.magic = VMPROF_LOG_MAGIC,
		.version = VMPROF_LOG_VERSION,
		.cpus = min_t(u32, num_possible_cpus(), VMPROF_LOG_RINGS_MAX),
	};

#ifdef CONFIG_ARM64
	row.clock = VMPROF_CLOCK_CNTVCT;
	row.frequency = read_sysreg(cntfrq_el0);
#else
	row.clock = VMPROF_CLOCK_TSC;
	row.frequency = tsc_khz * 1000ull;
#endif
	stop_source(log);
	if (err == -VMP_EINVAL)
		scnprintf(row.why, sizeof(row.why), "the log is of version %u, this module's of %u",
			  host->version, VMPROF_LOG_VERSION);
	else if (err)
		strscpy(row.why, "what is asked for cannot be", sizeof(row.why));
	else if (host->nr)
		err = start_source(log, host, &row);
	row.state = err ? VMPROF_GUEST_REFUSED : host->nr ? VMPROF_GUEST_READY : VMPROF_GUEST_IDLE;
	if (err && !row.why[0])
		scnprintf(row.why, sizeof(row.why), "the guest's module fails with error %d", -err);
	*guest_page(log) = row;
	log->answered = host->request;
	vmp_store_release(&guest_page(log)->answered, host->request);
	/* Behind the answer, since it may take some time and wait for a reader. */
	if (row.side)
		vg_side_tell();
}

void vg_look(struct vg_log *log)
{
	struct vmprof_log_host host;
	int err;

	mutex_lock(&lock);
	err = vmp_log_request(log->memory, log->bytes, &host);
	if (err != -VMP_ENOENT && host.request != log->answered)
		answer(log, &host, err);
	mutex_unlock(&lock);
}

void vg_stop(const struct vg_log *log)
{
	mutex_lock(&lock);
	stop_source(log);
	mutex_unlock(&lock);
}

void vg_farewell(const struct vg_log *log)
{
	const struct vmprof_log_host *host = log->memory;
	unsigned int i;

	mutex_lock(&lock);
	if (served == log) {
		WRITE_ONCE(guest_page(log)->state, VMPROF_GUEST_IDLE);
		for (i = 0; i < 100 && READ_ONCE(host->request) == log->answered; i++)
			msleep(10);
	}
	mutex_unlock(&lock);
}
