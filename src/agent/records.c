// SPDX-License-Identifier: GPL-2.0-only
#include "agent/records.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/text.h"
#include "util/xalloc.h"

#define ARGS_MAX (16 + 2 * AGENT_EVENTS_MAX)

/* A folder that nobody has yet; to free, or NULL with a sentence. */
static char *new_folder(const char *output, const struct vm *vm, struct vmprof_err *err)
{
	char name[64];

	file_safe_name(name, sizeof(name), vm->name);
	for (unsigned n = 1; n <= RECORDS_KEPT; n++) {
		char *folder = xasprintf("%s/%s.%u.%u", output, name, vm->domid, n);

		if (!mkdir(folder, 0700))
			return folder;
		if (errno != EEXIST) {
			/* The file system's quota is nothing to tell the guest of. */
			err_sys(err, errno == EDQUOT ? ENOSPC : errno, "cannot make %s", folder);
			free(folder);
			return NULL;
		}
		free(folder);
	}
	err_set(err, EDQUOT, "dom0 keeps %d records of this domain, and has them", RECORDS_KEPT);
	return NULL;
}

/*
 * What names this domain and no other one to record's --vm, where names go before UUIDs, and
 * those before numbers.
 */
static char *spec_of(const struct vm_list *list, const struct vm *vm, struct vmprof_err *err)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", vm->domid);
	if (*vm->uuid && vm_list_find(list, vm->uuid, err) == vm)
		return xstrdup(vm->uuid);
	if (vm_list_find(list, number, err) == vm)
		return xstrdup(number);
	err_set(err, ENOTUNIQ, "neither its UUID nor its number names this domain alone");
	return NULL;
}

/* In the child, where nothing that allocates may be called. */
static void run(const struct records_options *o, const char *const argv[], int log, pid_t parent)
{
	const struct rlimit size = {o->max_bytes, o->max_bytes};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	/* The terminal's signals are the agent's; so is its end, if it cannot tell it any more. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGINT);
	if (getppid() != parent || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(127);
	close_range(3, ~0u, 0);
	setrlimit(RLIMIT_FSIZE, &size);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(o->program, (char *const *)(uintptr_t)argv);
	_exit(127);
}

static int spawn(const struct records_options *o, const char *const argv[], const char *folder,
		 pid_t *pid, struct vmprof_err *err)
{
	char *path = xasprintf("%s/log", folder);
	int log = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), rc = 0;
	pid_t parent = getpid();

	if (log < 0)
		rc = err_sys(err, errno, "cannot write %s", path);
	if (!rc) {
		*pid = fork();
		if (!*pid)
			run(o, argv, log, parent);
		if (*pid < 0)
			rc = err_sys(err, errno, "cannot start a record");
	}
	if (log >= 0)
		close(log);
	free(path);
	return rc;
}

static void fill_args(const char *argv[ARGS_MAX], const struct records_options *o,
		      const struct agent_request *request, const char *duration, const char *file,
		      const char *spec)
{
	unsigned n = 0;

	argv[n++] = "vmprof";
	argv[n++] = "record";
	argv[n++] = "--backend=xen";
	/* A guest's wish is not to run before what dom0 has to do. */
	argv[n++] = "--realtime=0";
	argv[n++] = "--duration";
	argv[n++] = duration;
	argv[n++] = "-o";
	argv[n++] = file;
	if (o->chains)
		argv[n++] = "-g";
	for (unsigned i = 0; i < request->n; i++) {
		argv[n++] = "-e";
		argv[n++] = request->event[i];
	}
	argv[n++] = "--vm";
	argv[n++] = spec;
	argv[n] = NULL;
}

int records_start(const struct records_options *o, const struct vm_list *list, const struct vm *vm,
		  const struct agent_request *request, pid_t *pid, struct vmprof_err *err)
{
	char *spec = spec_of(list, vm, err), *folder = spec ? new_folder(o->output, vm, err) : NULL;
	int rc = folder ? 0 : -err->code;

	if (!rc) {
		char *file = xasprintf("%s/perf.data", folder);
		char *duration = xasprintf("%" PRIu64 "ms", o->max_time_ns / 1000000);
		const char *argv[ARGS_MAX];

		fill_args(argv, o, request, duration, file, spec);
		rc = spawn(o, argv, folder, pid, err);
		free(duration);
		free(file);
	}
	free(folder);
	free(spec);
	return rc;
}
