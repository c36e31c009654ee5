// SPDX-License-Identifier: GPL-2.0-only
#include "vm/sigbus.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

/*
 * A signal handler has nothing but static storage to look at: this is the one place with global
 * state. A slot is free while .len is 0; the handler reads .len first and trusts the rest then.
 */
#define SLOTS 1024

static struct slot {
	_Atomic size_t len;
	_Atomic uintptr_t addr;
	size_t page;
	int prot;
	atomic_bool hit;
} slots[SLOTS];

static struct sigaction before;
static pthread_once_t installed = PTHREAD_ONCE_INIT;

static bool cover(uintptr_t at)
{
	for (int i = 0; i < SLOTS; i++) {
		size_t len = atomic_load(&slots[i].len);
		uintptr_t addr = atomic_load(&slots[i].addr);
		uintptr_t from = at & ~(uintptr_t)(slots[i].page - 1);

		if (!len || at < addr || at - addr >= len)
			continue;
		/* To the end: a file is cut at one place, and a page at a time would use up the
		 * maps that a process may have. */
		if (mmap((void *)from, addr + len - from, slots[i].prot,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
			 0) == MAP_FAILED)
			return false;
		atomic_store(&slots[i].hit, true);
		return true;
	}
	return false;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code <= 0 || !cover((uintptr_t)info->si_addr)) {
		/* Not ours: the access is repeated and meets what was there before us. */
		sigaction(SIGBUS, &before, NULL);
		if (info->si_code <= 0)
			raise(SIGBUS);
	}
	errno = saved;
}

static void install(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER};

	sigaction(SIGBUS, &sa, &before);
}

int sigbus_guard(void *addr, size_t len, size_t page, int prot)
{
	pthread_once(&installed, install);
	for (int i = 0; i < SLOTS; i++) {
		uintptr_t none = 0;

		if (!atomic_compare_exchange_strong(&slots[i].addr, &none, (uintptr_t)addr))
			continue;
		slots[i].page = page;
		slots[i].prot = prot;
		atomic_store(&slots[i].hit, false);
		atomic_store(&slots[i].len, len);
		return i;
	}
	return -ENOSPC;
}

void sigbus_unguard(int slot)
{
	if (slot < 0)
		return;
	atomic_store(&slots[slot].len, 0);
	atomic_store(&slots[slot].addr, 0);
}

bool sigbus_hit(int slot)
{
	return slot >= 0 && atomic_load(&slots[slot].hit);
}
