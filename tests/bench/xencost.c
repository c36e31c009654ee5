// SPDX-License-Identifier: GPL-2.0-only
/*
 * In Xen's dom0, for tests/lab/host/xen-cost:
 *   xencost context DOMAIN N   ns that Xen's call for the registers of the domain's first vCPU
 * takes xencost cpu COMMAND...     CPU time, in us, that COMMAND and what it started have used
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/xen_context.h"
#include "util/clock.h"
#include "vm/xenlib.h"

static int cpu_time(char **command)
{
	struct rusage use;
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		execvp(command[0], command);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &use) < 0) {
		perror("xencost");
		return 1;
	}
	printf("%lld us\n", (long long)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
				    use.ru_utime.tv_usec + use.ru_stime.tv_usec);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

#if HAVE_XEN
typedef int getcontext_fn(xc_interface *xc, uint32_t domid, uint32_t vcpu,
			  vcpu_guest_context_any_t *context);

/* ns of wall clock a call, the domain working in between */
static uint64_t mean(struct xen *xen, getcontext_fn *get, struct xen_context *own, unsigned n)
{
	static vcpu_guest_context_any_t context;
	uint64_t ns = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t start = clock_now_ns();
		int r = get ? get(xen->xc, own->domid, 0, &context) : xen_context_get(own, 0);

		ns += clock_now_ns() - start;
		if (r) {
			fprintf(stderr, "xencost: Xen gives no registers\n");
			exit(1);
		}
		usleep(2000);
	}
	return ns / (n ? n : 1);
}

static int context_cost(uint32_t domid, unsigned n)
{
	void *library = dlopen("libxenctrl.so." XEN_TOOLS_VERSION, RTLD_NOW);
	getcontext_fn *get = NULL;
	struct vmprof_err err = {0};
	struct xen_context own;
	struct xen xen;

	if (library)
		*(void **)&get = dlsym(library, "xc_vcpu_getcontext");
	if (!get || xen_open(&xen, false, &err) || xen_context_open(&own, &xen, domid, &err)) {
		fprintf(stderr, "xencost: no Xen here: %s\n", err.msg);
		return 1;
	}
	printf("xc_vcpu_getcontext %llu ns\n", (unsigned long long)mean(&xen, get, &own, n));
	printf("xen_context_get %llu ns\n", (unsigned long long)mean(&xen, NULL, &own, n));
	xen_context_close(&own);
	xen_close(&xen);
	return 0;
}
#else
static int context_cost(uint32_t domid, unsigned n)
{
	puts("built without Xen's headers");
	return 0;
}
#endif

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "cpu"))
		return cpu_time(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "context"))
		return context_cost((uint32_t)strtoul(argv[2], NULL, 10),
				    (unsigned)strtoul(argv[3], NULL, 10));
	puts("xencost: nothing to measure outside of tests/lab/host/xen-cost");
	return argc > 1 ? 2 : 0;
}
