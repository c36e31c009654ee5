// SPDX-License-Identifier: GPL-2.0-only
#include "backend/backend.h"

#include <errno.h>
#include <string.h>

const struct vmprof_backend *const vmprof_backends[] = {
	&backend_tcg, &backend_kmod,   &backend_perf,	&backend_xen,
	&backend_qmp, &backend_direct, &backend_inject, NULL,
};

const struct vmprof_backend *backend_by_name(const char *name)
{
	for (size_t i = 0; vmprof_backends[i]; i++)
		if (!strcmp(vmprof_backends[i]->name, name))
			return vmprof_backends[i];
	return NULL;
}

const struct vmprof_backend *const vmprof_self_backends[] = {&backend_self, NULL};

const struct vmprof_backend *backend_self_by_name(const char *name)
{
	for (size_t i = 0; name && vmprof_self_backends[i]; i++)
		if (!strcmp(vmprof_self_backends[i]->name, name))
			return vmprof_self_backends[i];
	return NULL;
}

const struct vmprof_backend *backend_self_usable(void)
{
	struct backend_caps caps;

	for (size_t i = 0; vmprof_self_backends[i]; i++) {
		vmprof_self_backends[i]->probe(NULL, &caps);
		if (caps.usable)
			return vmprof_self_backends[i];
	}
	return NULL;
}

int backend_no_peek(struct backend_session *s, uint32_t vcpu, struct guest_regs *regs)
{
	return vm_alive(s->vm) ? -EAGAIN : -ESRCH;
}

uint32_t backend_vm_vcpus(struct backend_session *s)
{
	return s->vm->nr_vcpus;
}

pid_t backend_vm_tid(struct backend_session *s, uint32_t vcpu)
{
	return vcpu < s->vm->nr_vcpus ? s->vm->vcpus[vcpu].tid : 0;
}
