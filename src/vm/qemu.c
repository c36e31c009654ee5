// SPDX-License-Identifier: GPL-2.0-only
#include "vm/qemu.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "util/xalloc.h"
#include "vm/spec.h"

#define MIB	     (1ull << 20)
#define OBJECTS_MAX  512
#define CHARDEVS_MAX 256

struct object {
	char *id;
	char *path; /* mem-path, or NULL */
	uint64_t size;
	enum ram_backing backing;
};

struct node {
	unsigned id;
	char *memdev;
};

struct chardev {
	char *id, *path;
};

/* What the options said, before it is known how they go together. */
struct cmdline {
	struct vm *vm;
	struct qemu_accels *accels;
	struct object objects[OBJECTS_MAX];
	unsigned nr_objects;
	struct node nodes[RAM_BLOCKS_MAX];
	unsigned nr_nodes;
	struct chardev chardevs[CHARDEVS_MAX];
	unsigned nr_chardevs;
	char *memory_backend; /* id, of -machine memory-backend= */
	char *qmp_chardev;    /* id, of -mon mode=control */
	char *machine_accels; /* "kvm:tcg", of -machine accel= */
	char *ivshmem;	      /* id, of -device ivshmem-plain,memdev= */
	bool kvm, memory_given;
};

static void replace(char **to, char *value)
{
	if (!value)
		return;
	free(*to);
	*to = value;
}

static void opt_name(struct cmdline *c, const char *arg)
{
	replace(&c->vm->name, qemu_opts_get(arg, "guest", "guest"));
}

void vm_set_uuid(struct vm *vm, const char *text)
{
	char uuid[37];
	size_t n = strlen(text);

	if (n != 36)
		return;
	for (size_t i = 0; i < n; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
			return;
		uuid[i] = (char)tolower((unsigned char)text[i]);
	}
	uuid[n] = 0;
	memcpy(vm->uuid, uuid, sizeof(uuid));
}

static void opt_uuid(struct cmdline *c, const char *arg)
{
	vm_set_uuid(c->vm, arg);
}

static enum vm_accel accel_by_name(const char *name, size_t n)
{
	for (enum vm_accel a = VM_ACCEL_TCG; a <= VM_ACCEL_XEN; a++)
		if (strlen(vm_accel_name(a)) == n && !memcmp(vm_accel_name(a), name, n))
			return a;
	return VM_ACCEL_UNKNOWN;
}

static void add_accel(struct qemu_accels *a, const char *name, size_t n)
{
	if (a->n < sizeof(a->try) / sizeof(*a->try))
		a->try[a->n++] = accel_by_name(name, n);
}

static void opt_accel(struct cmdline *c, const char *arg)
{
	char *name = qemu_opts_get(arg, "accel", "accel");
	char *thread = qemu_opts_get(arg, "accel", "thread");

	if (name)
		add_accel(c->accels, name, strlen(name));
	if (thread)
		c->vm->single_thread = !strcmp(thread, "single");
	free(name);
	free(thread);
}

static void opt_machine(struct cmdline *c, const char *arg)
{
	char *below = qemu_opts_get(arg, "type", "max-ram-below-4g");
	uint64_t v;

	replace(&c->vm->machine, qemu_opts_get(arg, "type", "type"));
	replace(&c->machine_accels, qemu_opts_get(arg, "type", "accel"));
	replace(&c->memory_backend, qemu_opts_get(arg, "type", "memory-backend"));
	if (below && !qemu_parse_size(below, 1, &v))
		c->vm->ram_spec->max_below_4g = v;
	free(below);
}

static void opt_kvm(struct cmdline *c, const char *arg)
{
	c->kvm = true;
}

static void opt_memory(struct cmdline *c, const char *arg)
{
	char *size = qemu_opts_get(arg, "size", "size");
	uint64_t v;

	if (size && !qemu_parse_size(size, MIB, &v) && v) {
		c->vm->memory = (v + 8191) & ~8191ull; /* QEMU rounds so */
		c->memory_given = true;
	}
	free(size);
}

static uint32_t smp_number(const char *arg, const char *key)
{
	char *s = qemu_opts_get(arg, "cpus", key);
	unsigned long v = s ? strtoul(s, NULL, 10) : 0;

	free(s);
	return v > QEMU_VCPUS_MAX ? QEMU_VCPUS_MAX : (uint32_t)v;
}

static void opt_smp(struct cmdline *c, const char *arg)
{
	static const char *const parts[] = {"drawers", "books",	   "sockets", "dies",
					    "modules", "clusters", "cores",   "threads"};
	uint32_t cpus = smp_number(arg, "cpus");
	uint64_t product = 1;

	if (!cpus)
		cpus = smp_number(arg, "maxcpus");
	for (size_t i = 0; !cpus && i < sizeof(parts) / sizeof(*parts); i++) {
		uint32_t v = smp_number(arg, parts[i]);

		product *= v ? v : 1;
		if (product > QEMU_VCPUS_MAX)
			product = QEMU_VCPUS_MAX;
	}
	vm_set_nr_vcpus(c->vm, cpus ? cpus : (uint32_t)product);
}

/* "unix:/path,server=on": the path, or NULL */
static char *unix_path(const char *arg)
{
	return strncmp(arg, "unix:", 5) ? NULL : qemu_opts_get(arg + 5, "path", "path");
}

static void opt_qmp(struct cmdline *c, const char *arg)
{
	char *path = unix_path(arg);

	if (path && !c->vm->qmp_path)
		c->vm->qmp_path = path;
	else
		free(path);
}

static void opt_chardev(struct cmdline *c, const char *arg)
{
	char *kind = qemu_opts_get(arg, "backend", "backend");
	char *id = qemu_opts_get(arg, "backend", "id");
	char *path = qemu_opts_get(arg, "backend", "path");

	if (id && !strcmp(id, "charmonitor"))
		c->vm->libvirt = true; /* the name that libvirt gives its monitor */
	if (kind && id && path && !strcmp(kind, "socket") && c->nr_chardevs < CHARDEVS_MAX) {
		c->chardevs[c->nr_chardevs++] = (struct chardev){id, path};
		id = path = NULL;
	}
	free(kind);
	free(id);
	free(path);
}

static void opt_mon(struct cmdline *c, const char *arg)
{
	char *mode = qemu_opts_get(arg, "chardev", "mode");

	if (mode && !strcmp(mode, "control") && !c->qmp_chardev)
		c->qmp_chardev = qemu_opts_get(arg, "chardev", "chardev");
	free(mode);
}

static void opt_stop(struct cmdline *c, const char *arg)
{
	c->vm->paused_at_start = true;
}

static bool is_on(const char *s)
{
	return !strcmp(s, "on") || !strcmp(s, "yes") || !strcmp(s, "true") || !strcmp(s, "y");
}

static void opt_object(struct cmdline *c, const char *arg)
{
	char *type = qemu_opts_get(arg, "qom-type", "qom-type");
	char *id = qemu_opts_get(arg, "qom-type", "id");
	char *size = qemu_opts_get(arg, "qom-type", "size");
	char *share = qemu_opts_get(arg, "qom-type", "share");
	struct object o = {0};

	if (type && id && size && !strncmp(type, "memory-backend-", 15) &&
	    !qemu_parse_size(size, 1, &o.size) && c->nr_objects < OBJECTS_MAX) {
		bool shared = share ? is_on(share) : !strcmp(type, "memory-backend-memfd");

		o.id = id;
		o.path = qemu_opts_get(arg, "qom-type", "mem-path");
		o.backing = shared ? RAM_BACKING_SHARED : RAM_BACKING_ANON;
		c->objects[c->nr_objects++] = o;
		id = NULL;
	}
	free(type);
	free(id);
	free(size);
	free(share);
}

static void opt_numa(struct cmdline *c, const char *arg)
{
	char *type = qemu_opts_get(arg, "type", "type");
	char *memdev = qemu_opts_get(arg, "type", "memdev");
	char *id = qemu_opts_get(arg, "type", "nodeid");

	if (type && memdev && !strcmp(type, "node") && c->nr_nodes < RAM_BLOCKS_MAX) {
		unsigned n = id ? (unsigned)strtoul(id, NULL, 10) : c->nr_nodes;

		c->nodes[c->nr_nodes++] = (struct node){n, memdev};
		memdev = NULL;
	}
	free(type);
	free(memdev);
	free(id);
}

static const struct object *find_object(const struct cmdline *c, const char *id)
{
	for (unsigned i = 0; i < c->nr_objects; i++)
		if (!strcmp(c->objects[i].id, id))
			return &c->objects[i];
	return NULL;
}

static struct ram_block *add_block(struct vm_ram_spec *spec, const char *id, uint64_t size,
				   enum ram_backing backing)
{
	struct ram_block *b;

	if (spec->nr_blocks == RAM_BLOCKS_MAX)
		return NULL;
	b = &spec->blocks[spec->nr_blocks++];
	*b = (struct ram_block){.size = size, .backing = backing};
	strncpy(b->id, id, sizeof(b->id) - 1);
	return b;
}

static void opt_device(struct cmdline *c, const char *arg)
{
	char *driver = qemu_opts_get(arg, "driver", "driver");
	char *memdev = qemu_opts_get(arg, "driver", "memdev");
	char *addr = qemu_opts_get(arg, "driver", "addr");

	if (driver && memdev && !strcmp(driver, "pc-dimm")) {
		const struct object *o = find_object(c, memdev);
		struct ram_block *b =
			o ? add_block(c->vm->ram_spec, memdev, o->size, o->backing) : NULL;

		if (b) {
			b->dimm = true;
			b->has_addr = addr != NULL;
			b->addr = addr ? strtoull(addr, NULL, 0) : 0;
		}
	}
	if (driver && memdev && !strcmp(driver, "ivshmem-plain") && !c->ivshmem) {
		c->ivshmem = memdev;
		memdev = NULL;
	}
	free(driver);
	free(memdev);
	free(addr);
}

static const struct {
	const char *name;
	bool has_arg;
	void (*apply)(struct cmdline *c, const char *arg);
} options[] = {
	{"name", true, opt_name},
	{"uuid", true, opt_uuid},
	{"accel", true, opt_accel},
	{"machine", true, opt_machine},
	{"M", true, opt_machine},
	{"m", true, opt_memory},
	{"smp", true, opt_smp},
	{"enable-kvm", false, opt_kvm},
	{"qmp", true, opt_qmp},
	{"qmp-pretty", true, opt_qmp},
	{"chardev", true, opt_chardev},
	{"mon", true, opt_mon},
	{"object", true, opt_object},
	{"numa", true, opt_numa},
	{"device", true, opt_device},
	{"S", false, opt_stop},
	/* All others have an argument, but for these. */
	{"help", false, NULL},
	{"h", false, NULL},
	{"version", false, NULL},
	{"mem-prealloc", false, NULL},
	{"audio-help", false, NULL},
	{"snapshot", false, NULL},
	{"usb", false, NULL},
	{"nographic", false, NULL},
	{"portrait", false, NULL},
	{"full-screen", false, NULL},
	{"no-frame", false, NULL},
	{"sdl", false, NULL},
	{"alt-grab", false, NULL},
	{"ctrl-grab", false, NULL},
	{"no-quit", false, NULL},
	{"win2k-hack", false, NULL},
	{"no-fd-bootchk", false, NULL},
	{"no-acpi", false, NULL},
	{"no-hpet", false, NULL},
	{"no-kvm", false, NULL},
	{"enable-hax", false, NULL},
	{"singlestep", false, NULL},
	{"one-insn-per-tb", false, NULL},
	{"preconfig", false, NULL},
	{"s", false, NULL},
	{"xen-attach", false, NULL},
	{"xen-domid-restrict", false, NULL},
	{"no-reboot", false, NULL},
	{"no-shutdown", false, NULL},
	{"daemonize", false, NULL},
	{"only-migratable", false, NULL},
	{"nodefaults", false, NULL},
	{"semihosting", false, NULL},
	{"old-param", false, NULL},
	{"no-user-config", false, NULL},
	{"async-teardown", false, NULL},
	{"enable-sync-profile", false, NULL},
};

#define NR_OPTIONS (sizeof(options) / sizeof(*options))

/* Index of the option that @arg is, NR_OPTIONS for one that is not in the table. */
static size_t find_option(const char *arg)
{
	size_t i = 0;

	arg += arg[1] == '-' ? 2 : 1;
	while (i < NR_OPTIONS && strcmp(options[i].name, arg) != 0)
		i++;
	return i;
}

static const char *next_arg(const char *arg, const char *end)
{
	arg += strlen(arg) + 1;
	return arg < end ? arg : NULL;
}

static void walk(struct cmdline *c, const char *args, size_t len)
{
	const char *end = args + len;
	const char *arg = next_arg(args, end);

	while (arg) {
		size_t i;
		const char *value = "";

		if (arg[0] != '-' || !arg[1]) {
			arg = next_arg(arg, end);
			continue;
		}
		i = find_option(arg);
		if (i == NR_OPTIONS || options[i].has_arg) {
			value = next_arg(arg, end);
			if (!value)
				return;
			arg = value;
		}
		if (i < NR_OPTIONS && options[i].apply)
			options[i].apply(c, value);
		arg = next_arg(arg, end);
	}
}

/* Which RAM there is follows from -m, -machine memory-backend= and -numa node,memdev=. */
static void settle_ram(struct cmdline *c)
{
	struct vm_ram_spec *spec = c->vm->ram_spec;
	struct vm_ram_spec dimms = *spec;
	const struct object *o;
	uint64_t sum = 0;

	spec->nr_blocks = 0;
	for (unsigned id = 0; c->nr_nodes && id < RAM_BLOCKS_MAX; id++)
		for (unsigned i = 0; i < c->nr_nodes; i++)
			if (c->nodes[i].id == id && (o = find_object(c, c->nodes[i].memdev))) {
				add_block(spec, o->id, o->size, o->backing);
				sum += o->size;
			}
	o = c->memory_backend ? find_object(c, c->memory_backend) : NULL;
	if (sum)
		c->vm->memory = sum;
	else if (o && !c->memory_given)
		c->vm->memory = o->size;
	if (!spec->nr_blocks)
		add_block(spec, o ? o->id : "", c->vm->memory, o ? o->backing : RAM_BACKING_ANON);
	for (unsigned i = 0; i < dimms.nr_blocks; i++)
		if (spec->nr_blocks < RAM_BLOCKS_MAX) {
			spec->blocks[spec->nr_blocks++] = dimms.blocks[i];
			c->vm->memory += dimms.blocks[i].size;
		}
}

static void settle_accels(struct cmdline *c, const char *program)
{
	struct qemu_accels *a = c->accels;
	const char *list = c->machine_accels;
	size_t n = strlen(program);

	if (a->n) /* -accel and -machine accel= exclude each other */
		return;
	if (c->kvm)
		list = "kvm";
	if (!list)
		list = n >= 3 && !strcmp(program + n - 3, "kvm") ? "kvm:tcg" : "tcg";
	for (const char *s = list; *s;) {
		n = strcspn(s, ":");
		add_accel(a, s, n);
		s += n + (s[n] == ':');
	}
}

static void settle_monitor(struct cmdline *c)
{
	for (unsigned i = 0; c->qmp_chardev && i < c->nr_chardevs; i++)
		if (!c->vm->qmp_path && !strcmp(c->chardevs[i].id, c->qmp_chardev))
			c->vm->qmp_path = xstrdup(c->chardevs[i].path);
}

/* Memory that QEMU has for itself, since it is not shared, is no way to the guest. */
static void settle_shared(struct cmdline *c)
{
	const struct object *o = c->ivshmem ? find_object(c, c->ivshmem) : NULL;

	if (!o || o->backing != RAM_BACKING_SHARED)
		return;
	c->vm->shared_size = o->size;
	c->vm->shared_path = o->path ? xstrdup(o->path) : NULL;
}

static void cmdline_free(struct cmdline *c)
{
	for (unsigned i = 0; i < c->nr_objects; i++) {
		free(c->objects[i].id);
		free(c->objects[i].path);
	}
	for (unsigned i = 0; i < c->nr_nodes; i++)
		free(c->nodes[i].memdev);
	for (unsigned i = 0; i < c->nr_chardevs; i++) {
		free(c->chardevs[i].id);
		free(c->chardevs[i].path);
	}
	free(c->memory_backend);
	free(c->qmp_chardev);
	free(c->machine_accels);
	free(c->ivshmem);
	free(c);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#define SYSTEM "qemu-system-"

/* The emulated architecture: from the program's name, else the host's. */
static char *arch_of(const char *arg0, const char *exe)
{
	const char *names[] = {base_name(arg0), base_name(exe)};
	struct utsname u;

	for (size_t i = 0; i < 2; i++) {
		const char *a = names[i] + strlen(SYSTEM);

		if (strncmp(names[i], SYSTEM, strlen(SYSTEM)) != 0)
			continue;
		return xstrndup(a, strspn(a, "abcdefghijklmnopqrstuvwxyz0123456789_"));
	}
	return xstrdup(uname(&u) ? "x86_64" : u.machine);
}

void vm_set_nr_vcpus(struct vm *vm, uint32_t n)
{
	if (n > QEMU_VCPUS_MAX)
		n = QEMU_VCPUS_MAX;
	vm->vcpus = xreallocarray(vm->vcpus, n ? n : 1, sizeof(*vm->vcpus));
	for (uint32_t i = vm->nr_vcpus; i < n; i++)
		vm->vcpus[i] = (struct vm_vcpu){.index = i};
	vm->nr_vcpus = n;
}

struct vm *qemu_vm_new(const char *args, size_t len, const char *exe, struct qemu_accels *accels)
{
	struct vm *vm = xcalloc(1, sizeof(*vm));
	struct cmdline *c = xcalloc(1, sizeof(*c));

	*accels = (struct qemu_accels){0};
	vm->hypervisor = VM_HYPERVISOR_QEMU;
	vm->memory = 128 * MIB;
	vm->ram_spec = xcalloc(1, sizeof(*vm->ram_spec));
	vm->binary = xstrdup(exe);
	vm->arch = arch_of(args, exe);
	vm_set_nr_vcpus(vm, 1);
	c->vm = vm;
	c->accels = accels;
	walk(c, args, len);
	settle_ram(c);
	settle_accels(c, base_name(args));
	settle_monitor(c);
	settle_shared(c);
	vm->named = vm->name && vm->name[0];
	cmdline_free(c);
	return vm;
}

/* Options that only QEMU has; three of them make a QEMU of a program with another name. */
static const char *const telling[] = {
	"machine",   "M",	   "accel",   "enable-kvm", "cpu",     "smp",
	"m",	     "device",	   "drive",   "hda",	    "cdrom",   "blockdev",
	"netdev",    "nic",	   "chardev", "monitor",    "display", "qmp",
	"nographic", "nodefaults", "kernel",  "append",	    "initrd",  "no-user-config",
	"serial",    "uuid",	   "object",  "rtc",	    "bios",    "boot",
};

static bool is_telling(const char *arg)
{
	arg += arg[1] == '-' ? 2 : 1;
	for (size_t i = 0; i < sizeof(telling) / sizeof(*telling); i++)
		if (!strcmp(telling[i], arg))
			return true;
	return false;
}

static bool is_qemu_name(const char *name)
{
	return !strncmp(name, SYSTEM, strlen(SYSTEM)) || !strcmp(name, "qemu-kvm") ||
	       !strcmp(name, "kvm");
}

bool qemu_is_vm(const char *args, size_t len, const char *exe)
{
	const char *end = args + len, *first = len ? next_arg(args, end) : NULL;
	char name[256] = "";
	unsigned score = 0;

	strncpy(name, base_name(exe), sizeof(name) - 1);
	name[strcspn(name, " ")] = 0; /* "qemu-system-x86_64 (deleted)" after an upgrade */
	if (name[0] && is_qemu_name(name))
		return true;
	if (!len || (!name[0] && is_qemu_name(base_name(args))))
		return len != 0;
	/* A shell or sudo that runs QEMU has QEMU's name among its arguments, not in front. */
	if (!first || first[0] != '-')
		return false;
	for (const char *a = first; a; a = next_arg(a, end)) {
		if (a[0] == '-')
			score += is_telling(a);
		else if (is_qemu_name(base_name(a)))
			return false;
	}
	return score >= 3;
}
