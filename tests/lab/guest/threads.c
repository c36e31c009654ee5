// SPDX-License-Identifier: GPL-2.0-only
/* threads: sixteen threads, thread-0 to thread-15, that share the work: thread_main >
 * thread_hot > spin.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

#include "work.h"

#define NR_THREADS 16

WORK_FUNCTION static uint64_t thread_hot(uint64_t x)
{
	return spin(x, 30000) | 1;
}

static void *thread_main(void *arg)
{
	volatile uint64_t x = 88172645463325252;
	char name[16];

	snprintf(name, sizeof(name), "thread-%d", (int)(intptr_t)arg);
	pthread_setname_np(pthread_self(), name);
	for (;;)
		x = thread_hot(x);
	return NULL;
}

int main(void)
{
	pthread_t threads[NR_THREADS];

	for (intptr_t i = 0; i < NR_THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread_main, (void *)i))
			return 1;
	pthread_join(threads[0], NULL);
	return 0;
}
