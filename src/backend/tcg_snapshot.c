// SPDX-License-Identifier: GPL-2.0-only
#include "backend/tcg_snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/bpf_asm.h"
#include "backend/tcg_program.h"
#include "util/xalloc.h"

/* 18 snapshots for each source, which is more than the reader's batches are long. */
#define RING_EACH (512u << 10)
#define RING_MIN  (4u << 20)
#define RING_MAX  (64u << 20)
#define PAGE	  4096

struct tcg_snapshots {
	int ring_fd, shared_fd;
	uint32_t size;	   /* of the ring */
	uint8_t *consumer; /* a page: where we are */
	uint8_t *producer; /* a page: where the kernel is; then the ring, mapped twice in a row */
	struct tcg_shared *shared;
	uint64_t pos; /* behind the snapshot handed out last */
};

int tcg_snapshots_attach(struct tcg_snapshots *s, int event_fd, uint32_t source, uint64_t env,
			 const struct tcg_layout *l, const struct vm_ram_region *ram,
			 unsigned nr_regions, const struct guest_wanted *wanted,
			 struct vmprof_err *err)
{
	const struct tcg_program program = {
		.ring_fd = s->ring_fd,
		.ring_size = s->size,
		.shared_fd = s->shared_fd,
		.source = source,
		.env = env,
		.layout = l,
		.ram = ram,
		.nr_ram = nr_regions,
		.wanted = wanted,
	};
	int fd = tcg_program_load(&program, err), r = 0;

	if (fd < 0)
		return fd;
	if (ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, fd)) /* the event holds it from now on */
		r = err_sys(err, errno, "a BPF program cannot be attached to a clock event");
	close(fd);
	return r;
}

/* ---------- the ring: Documentation/bpf/ringbuf.rst ---------- */

static int map_shared(struct tcg_snapshots *s)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.map_flags = BPF_F_MMAPABLE;
	attr.key_size = 4;
	attr.value_size = sizeof(*s->shared);
	attr.max_entries = 1;
	s->shared_fd = bpf_syscall(BPF_MAP_CREATE, &attr);
	if (s->shared_fd < 0)
		return s->shared_fd;
	s->shared =
		mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE, MAP_SHARED, s->shared_fd, 0);
	return s->shared == MAP_FAILED ? -errno : 0;
}

static int map_ring(struct tcg_snapshots *s, unsigned nr_sources)
{
	union bpf_attr attr;

	s->size = RING_MIN;
	while (s->size < RING_MAX && s->size / RING_EACH < nr_sources)
		s->size *= 2;
	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_RINGBUF;
	attr.max_entries = s->size;
	s->ring_fd = bpf_syscall(BPF_MAP_CREATE, &attr);
	if (s->ring_fd < 0)
		return s->ring_fd;
	s->consumer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, s->ring_fd, 0);
	if (s->consumer == MAP_FAILED)
		return -errno;
	s->producer =
		mmap(NULL, PAGE + 2 * (size_t)s->size, PROT_READ, MAP_SHARED, s->ring_fd, PAGE);
	return s->producer == MAP_FAILED ? -errno : 0;
}

int tcg_snapshots_open(struct tcg_snapshots **out, unsigned nr_sources, struct vmprof_err *err)
{
	struct tcg_snapshots *s = xcalloc(1, sizeof(*s));
	int r;

	*out = s;
	s->ring_fd = s->shared_fd = -1;
	s->consumer = s->producer = MAP_FAILED;
	s->shared = MAP_FAILED;
	r = map_ring(s, nr_sources);
	if (!r)
		r = map_shared(s);
	if (!r)
		return 0;
	tcg_snapshots_close(s);
	*out = NULL;
	return err_sys(err, r, "no BPF ring buffer can be had (it takes CAP_BPF and CAP_PERFMON)");
}

void tcg_snapshots_close(struct tcg_snapshots *s)
{
	if (!s)
		return;
	if (s->shared != MAP_FAILED)
		munmap(s->shared, sizeof(*s->shared));
	if (s->consumer != MAP_FAILED)
		munmap(s->consumer, PAGE);
	if (s->producer != MAP_FAILED)
		munmap(s->producer, PAGE + 2 * (size_t)s->size);
	if (s->shared_fd >= 0)
		close(s->shared_fd);
	if (s->ring_fd >= 0)
		close(s->ring_fd);
	free(s);
}

int tcg_snapshots_fd(const struct tcg_snapshots *s)
{
	return s->ring_fd;
}

bool tcg_snapshots_sleep(struct tcg_snapshots *s)
{
	const uint64_t *producer = (const uint64_t *)s->producer;

	__atomic_store_n(&s->shared->sleeping, 1, __ATOMIC_SEQ_CST);
	return s->pos >= __atomic_load_n(producer, __ATOMIC_SEQ_CST);
}

void tcg_snapshots_forget_tasks(struct tcg_snapshots *s)
{
	memset(s->shared->known, 0, sizeof(s->shared->known));
}

const struct tcg_snapshot *tcg_snapshots_next(struct tcg_snapshots *s)
{
	uint64_t *consumer = (uint64_t *)s->consumer;
	const uint64_t *producer = (const uint64_t *)s->producer;

	for (;;) {
		const uint8_t *p = s->producer + PAGE + (s->pos & (s->size - 1));
		uint32_t len;

		/* What was handed out before may be overwritten from now on. */
		__atomic_store_n(consumer, s->pos, __ATOMIC_SEQ_CST);
		if (s->pos >= __atomic_load_n(producer, __ATOMIC_SEQ_CST))
			return NULL;
		len = __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);
		if (len & BPF_RINGBUF_BUSY_BIT)
			return NULL;
		s->pos += BPF_RINGBUF_HDR_SZ;
		s->pos += ((len & ~BPF_RINGBUF_DISCARD_BIT) + 7) & ~7u;
		if (!(len & BPF_RINGBUF_DISCARD_BIT))
			return (const struct tcg_snapshot *)(p + BPF_RINGBUF_HDR_SZ);
	}
}
