// SPDX-License-Identifier: GPL-2.0-only
#include "guest/notes.h"

#include <elf.h>
#include <string.h>

enum { NOTES_MAX = 4096 };

uint32_t notes_parse(const uint8_t *buf, size_t size, uint8_t id[20])
{
	size_t off = 0;

	while (size - off >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr h;
		uint64_t name = off + sizeof(h), desc, next;

		memcpy(&h, buf + off, sizeof(h));
		desc = name + (((uint64_t)h.n_namesz + 3) & ~3ull);
		next = desc + (((uint64_t)h.n_descsz + 3) & ~3ull);
		if (next > size)
			return 0;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && h.n_descsz &&
		    !memcmp(buf + name, "GNU", 4)) {
			uint32_t n = h.n_descsz < 20 ? h.n_descsz : 20;

			memcpy(id, buf + desc, n);
			return n;
		}
		off = next;
	}
	return 0;
}

uint32_t notes_build_id(struct guest_virt *v, struct guest_as as, uint64_t va, uint64_t len,
			uint8_t id[20])
{
	uint8_t buf[NOTES_MAX];
	size_t size = len < sizeof(buf) ? len : sizeof(buf);

	return guest_virt_read(v, as, va, buf, size) ? 0 : notes_parse(buf, size, id);
}
