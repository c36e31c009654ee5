// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"
#include "vm/spec.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* How many bytes of @ram lie below 4 GiB; the rest starts there. */
typedef uint64_t (*lowmem_fn)(uint64_t ram, uint64_t max_below);

/* hw/i386/pc_q35.c, pc_q35_init() */
static uint64_t lowmem_q35(uint64_t ram, uint64_t max_below)
{
	uint64_t low = ram >= 0xb0000000 ? 0x80000000 : 0xb0000000;

	return max_below && low > max_below ? max_below : low;
}

/* hw/i386/pc_piix.c, pc_init1() */
static uint64_t lowmem_piix(uint64_t ram, uint64_t max_below)
{
	uint64_t low = max_below ? max_below : 0xe0000000;

	return ram >= low && low > 0xc0000000 ? 0xc0000000 : low;
}

/* the same with gigabyte_align off: machine types up to 1.7 */
static uint64_t lowmem_piix_old(uint64_t ram, uint64_t max_below)
{
	return max_below ? max_below : 0xe0000000;
}

/* hw/i386/microvm.c, microvm_memory_init() */
static uint64_t lowmem_microvm(uint64_t ram, uint64_t max_below)
{
	return ram > 0xc0000000 ? 0xc0000000 : ram;
}

/* By the start of the machine's name; the first that fits. */
static const struct machine {
	const char *arch, *prefix;
	uint64_t base;	  /* of RAM */
	lowmem_fn lowmem; /* NULL: RAM is in one piece */
} machines[] = {
	{"x86_64", "q35", 0, lowmem_q35},	  {"x86_64", "pc-q35", 0, lowmem_q35},
	{"x86_64", "microvm", 0, lowmem_microvm}, {"x86_64", "pc-1.", 0, lowmem_piix_old},
	{"x86_64", "pc-0.", 0, lowmem_piix_old},  {"x86_64", "pc-i440fx-1.", 0, lowmem_piix_old},
	{"x86_64", "pc", 0, lowmem_piix},	  {"x86_64", "isapc", 0, lowmem_piix_old},
	{"x86_64", "ubuntu-q35", 0, lowmem_q35},  {"x86_64", "ubuntu", 0, lowmem_piix},
	{"aarch64", "virt", GIB, NULL},
};

static const struct machine *find_machine(const struct vm *vm)
{
	/* x86 has a default machine; aarch64 has none */
	const char *name = vm->machine ? vm->machine : "pc";

	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
		if (!strcmp(machines[i].arch, vm->arch) &&
		    !strncmp(machines[i].prefix, name, strlen(machines[i].prefix)))
			return &machines[i];
	return NULL;
}

static uint64_t align_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) & ~(to - 1);
}

/* Lays @block's bytes out from *gpa on, going over the hole where @low bytes have been placed. */
static unsigned place(struct ram_region *r, unsigned block, uint64_t size, uint64_t low,
		      uint64_t *placed, uint64_t base)
{
	uint64_t off = 0;
	unsigned n = 0;

	while (off < size) {
		bool below = *placed < low;
		uint64_t room = below ? low - *placed : UINT64_MAX;
		uint64_t len = size - off < room ? size - off : room;

		r[n++] = (struct ram_region){
			.gpa = base + (below ? *placed : 4 * GIB + (*placed - low)),
			.len = len,
			.block = block,
			.off = off,
		};
		*placed += len;
		off += len;
	}
	return n;
}

/* hw/i386/pc.c: DIMMs lie above all other RAM, from a GiB boundary on. */
static void place_dimms(struct ram_region *r, unsigned *n, const struct vm_ram_spec *spec,
			uint64_t top)
{
	uint64_t next = align_up(top > 4 * GIB ? top : 4 * GIB, GIB);

	for (unsigned i = 0; i < spec->nr_blocks; i++) {
		const struct ram_block *b = &spec->blocks[i];
		uint64_t addr = b->has_addr ? b->addr : next;

		if (!b->dimm || addr > (1ull << 52) || *n == RAM_REGIONS_MAX)
			continue;
		r[(*n)++] = (struct ram_region){addr, b->size, i, 0};
		next = align_up(addr + b->size, 2 * MIB);
	}
}

static int by_gpa(const void *a, const void *b)
{
	const struct ram_region *x = a, *y = b;

	return (x->gpa > y->gpa) - (x->gpa < y->gpa);
}

int ram_layout(struct ram_region regions[RAM_REGIONS_MAX], const struct vm *vm,
	       struct vmprof_err *err)
{
	const struct vm_ram_spec *spec = vm->ram_spec;
	const struct machine *m = find_machine(vm);
	uint64_t ram = 0, low, placed = 0;
	unsigned n = 0;

	if (!m) {
		char machine[64], arch[32];

		escape_str(machine, sizeof(machine), vm->machine ? vm->machine : "(default)");
		escape_str(arch, sizeof(arch), vm->arch);
		return err_set(
			err, ENOTSUP,
			"how machine type %s of qemu-system-%s lays out its RAM is not known",
			machine, arch);
	}
	for (unsigned i = 0; i < spec->nr_blocks; i++)
		ram += spec->blocks[i].dimm ? 0 : spec->blocks[i].size;
	low = m->lowmem ? m->lowmem(ram, spec->max_below_4g) : UINT64_MAX;
	for (unsigned i = 0; i < spec->nr_blocks; i++)
		if (!spec->blocks[i].dimm && n + 2 <= RAM_REGIONS_MAX)
			n += place(regions + n, i, spec->blocks[i].size, low, &placed, m->base);
	place_dimms(regions, &n, spec, n ? regions[n - 1].gpa + regions[n - 1].len : 0);
	qsort(regions, n, sizeof(*regions), by_gpa);
	for (unsigned i = 1; i < n; i++)
		if (regions[i].gpa < regions[i - 1].gpa + regions[i - 1].len)
			return err_set(err, EINVAL,
				       "QEMU's command line has RAM that overlaps at %#llx",
				       (unsigned long long)regions[i].gpa);
	return (int)n;
}
