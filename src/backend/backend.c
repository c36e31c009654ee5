// SPDX-License-Identifier: GPL-2.0-only
#include "backend/backend.h"

#include <string.h>

const struct vmprof_backend *const vmprof_backends[] = {
	&backend_tcg, &backend_kmod, &backend_perf, &backend_xen, &backend_qmp, NULL,
};

const struct vmprof_backend *backend_by_name(const char *name)
{
	for (size_t i = 0; vmprof_backends[i]; i++)
		if (!strcmp(vmprof_backends[i]->name, name))
			return vmprof_backends[i];
	return NULL;
}
