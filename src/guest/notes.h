// SPDX-License-Identifier: GPL-2.0-only
#ifndef VMPROF_GUEST_NOTES_H
#define VMPROF_GUEST_NOTES_H

#include "guest/kernel.h"

/* The build id out of ELF notes; as below. */
uint32_t notes_parse(const uint8_t *buf, size_t size, uint8_t id[20]);

/*
 * The build id out of ELF notes at @va; @len is cut to what notes can sensibly be. Returns its
 * length (up to 20; a longer one is cut), 0 if there is none.
 */
uint32_t notes_build_id(struct guest_virt *v, struct guest_as as, uint64_t va, uint64_t len,
			uint8_t id[20]);

#endif
