// SPDX-License-Identifier: GPL-2.0-only
#include "backend/perf_ring.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int perf_event_open_fd(struct perf_event_attr *attr, pid_t tid, int cpu, int group,
		       unsigned long flags)
{
	long fd = syscall(SYS_perf_event_open, attr, tid, cpu, group, flags | PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int paranoid(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int v = 2;

	if (f && fscanf(f, "%d", &v) != 1)
		v = 2;
	if (f)
		fclose(f);
	return v;
}

int perf_permission_error(const char *what, int code, struct vmprof_err *err)
{
	return err_set(err, code,
		       "no permission to %s with perf_event_open: run as root or with CAP_PERFMON "
		       "and CAP_SYS_PTRACE (kernel.perf_event_paranoid is %d)",
		       what, paranoid());
}

static int open_error(int code, pid_t tid, struct vmprof_err *err)
{
	char what[64];

	switch (-code) {
	case EACCES:
	case EPERM:
		snprintf(what, sizeof(what), "measure the CPU time of thread %d", tid);
		return perf_permission_error(what, code, err);
	case EMFILE:
		return err_set(
			err, code,
			"too many open files for one perf event a vCPU thread: raise 'ulimit "
			"-n'");
	case ENOSYS:
		return err_set(err, code,
			       "this kernel has no perf_event_open "
			       "(CONFIG_PERF_EVENTS)");
	default:
		return err_sys(err, code, "perf_event_open of thread %d", tid);
	}
}

int perf_ring_open(struct perf_ring *r, const struct perf_event_attr *attr, pid_t tid,
		   unsigned order, struct vmprof_err *err)
{
	struct perf_event_attr a = *attr;
	int code;

	r->base = NULL;
	r->fd = perf_event_open_fd(&a, tid, -1, -1, 0);
	if (r->fd == -EACCES) {
		a.exclude_kernel = 1;
		r->fd = perf_event_open_fd(&a, tid, -1, -1, 0);
	}
	if (r->fd < 0) {
		code = r->fd;
		r->fd = -1;
		return open_error(code, tid, err);
	}
	code = perf_ring_map(r, order, err);
	if (code)
		perf_ring_close(r);
	return code;
}

int perf_ring_map(struct perf_ring *r, unsigned order, struct vmprof_err *err)
{
	r->data_size = page_size() << order;
	r->base = mmap(NULL, page_size() + r->data_size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		       0);
	if (r->base == MAP_FAILED) {
		int code = errno;

		r->base = NULL;
		if (code == EPERM)
			return err_set(err, code,
				       "no permission to map the buffer of a perf event: raise "
				       "kernel.perf_event_mlock_kb or 'ulimit -l', or run with "
				       "CAP_IPC_LOCK");
		return err_sys(err, code, "cannot map the buffer of a perf event");
	}
	return 0;
}

void perf_ring_close(struct perf_ring *r)
{
	if (r->base)
		munmap(r->base, page_size() + r->data_size);
	if (r->fd >= 0)
		close(r->fd);
	r->base = NULL;
	r->fd = -1;
}

static void copy_out(const struct perf_ring *r, uint64_t at, void *to, size_t n)
{
	const uint8_t *data = (const uint8_t *)r->base + page_size();
	size_t off = at & (r->data_size - 1);
	size_t first = r->data_size - off < n ? r->data_size - off : n;

	memcpy(to, data + off, first);
	memcpy((uint8_t *)to + first, data, n - first);
}

const struct perf_event_header *perf_ring_next(struct perf_ring *r)
{
	struct perf_event_mmap_page *page = r->base;
	uint64_t head, tail;

	if (!page)
		return NULL;
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	for (tail = page->data_tail; tail < head;) {
		bool fits;

		copy_out(r, tail, &r->header, sizeof(r->header));
		if (r->header.size < sizeof(r->header)) { /* the kernel writes no such record */
			tail = head;
			break;
		}
		fits = r->header.size <= sizeof(r->record);
		if (fits)
			copy_out(r, tail, r->record, r->header.size);
		tail += r->header.size;
		__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
		if (fits)
			return &r->header;
	}
	return NULL;
}
