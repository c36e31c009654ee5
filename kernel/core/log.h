/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The shared log (uapi/vmprof_log.h) from both its sides: each checks here what the other one has
 * written, on a copy.
 */
#ifndef VMPROF_CORE_LOG_H
#define VMPROF_CORE_LOG_H

#include "../uapi/vmprof_log.h"
#include "ring.h"

/*
 * The host's side, once: the first page, with room for rings of ring_size bytes, one for each CPU
 * of the guest, in these bytes of zeroed memory, and in what they leave the ring for side-band, if
 * there is room for one. The guest makes the rings, anew for each request.
 * 0, or -VMP_EINVAL if the sizes make no sense, or -VMP_EFULL if they do not fit.
 */
int vmp_log_init(void *memory, u64 bytes, u32 ring_size, u32 rings);

/* Where that puts the ring for side-band, behind all others; its size is 0 where there is no room.
 */
u64 vmp_log_side(u64 bytes, u32 ring_size, u32 rings, u32 *size);

/*
 * The guest's side: copies the host's page. 0, or -VMP_ENOENT if there is no log or no request yet,
 * -VMP_EINVAL if it is of another version, or -VMP_ECORRUPT if it asks for what cannot be or leaves
 * the memory, or changes meanwhile; copy->request is right in the last two cases as well.
 */
int vmp_log_request(const void *memory, u64 bytes, struct vmprof_log_host *copy);

/*
 * The host's side: copies the guest's page. 0, or -VMP_ENOENT if request is not answered (yet), or
 * -VMP_ECORRUPT. why is a string of printable characters then.
 */
int vmp_log_row(const void *memory, u64 bytes, u32 request, struct vmprof_log_guest *copy);

#endif
