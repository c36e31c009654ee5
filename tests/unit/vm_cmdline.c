// SPDX-License-Identifier: GPL-2.0-only
/* QEMU's command line, as it is written by people, by libvirt and by the hostile; libvirt's XML. */
#include <errno.h>

#include "tests/unit/test.h"
#include "util/buf.h"
#include "vm/qemu.h"
#include "vm/spec.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* "a b" with '|' between arguments, so that they may have blanks. */
static struct vm *parse_as(const char *line, const char *exe, struct qemu_accels *accels)
{
	struct buf b = {0};
	struct vm *vm;

	buf_add(&b, line, strlen(line) + 1);
	for (size_t i = 0; i < b.len; i++)
		if (b.data[i] == '|')
			b.data[i] = 0;
	vm = qemu_vm_new((char *)b.data, b.len, exe, accels);
	buf_free(&b);
	return vm;
}

static struct vm *parse(const char *line)
{
	struct qemu_accels accels;

	return parse_as(line, "/usr/bin/qemu-system-x86_64", &accels);
}

static bool is_vm(const char *line, const char *exe)
{
	struct buf b = {0};
	bool r;

	buf_add(&b, line, strlen(line) + 1);
	for (size_t i = 0; i < b.len; i++)
		if (b.data[i] == '|')
			b.data[i] = 0;
	r = qemu_is_vm((char *)b.data, b.len, exe);
	buf_free(&b);
	return r;
}

static void test_names(void)
{
	static const struct {
		const char *args, *name;
	} cases[] = {
		{"q|-name|web1", "web1"},
		{"q|--name|web1", "web1"},
		{"q|-name|web1,debug-threads=on", "web1"},
		{"q|-name|debug-threads=on,guest=web1", "web1"},
		{"q|-name|guest=a,,b,debug-threads=on", "a,b"},
		{"q|-name|a,,b", "a,b"},
		{"q|-name|guest=", ""},
		{"q|-name|old|-name|new", "new"},
		{"q|-append|-name x|-name|web1", "web1"},
		{"q|-append|-name|-name|web1", "web1"}, /* the first is -append's */
		{"q|-nographic|-name|web1", "web1"},	/* has no argument */
		{"q|-S|-name|web1|disk.img", "web1"},
		{"q|-unknown-option|-name|-name|web1", "web1"},
		{"q|-name|guest=\033[2J,,x", "\033[2J,x"},
		{"q|-name|guest=a,guest=b", "b"},
	};
	struct vm *vm;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		vm = parse(cases[i].args);
		CHECK_STR(vm->name, cases[i].name);
		CHECK_EQ(vm->named, cases[i].name[0] != 0);
		vm_free(vm);
	}
	vm = parse("q|-name"); /* its argument is missing */
	CHECK(!vm->name && !vm->named);
	vm_free(vm);
}

static void test_uuid(void)
{
	struct vm *vm = parse("q|-uuid|ABCDEF00-1111-2222-3333-444455556666");

	CHECK_STR(vm->uuid, "abcdef00-1111-2222-3333-444455556666");
	vm_free(vm);
	vm = parse("q|-uuid|ABCDEF00-1111-2222-3333-44445555666\033");
	CHECK_STR(vm->uuid, "");
	vm_free(vm);
	vm = parse("q|-uuid|ABCDEF0001111-2222-3333-444455556666");
	CHECK_STR(vm->uuid, "");
	vm_free(vm);
}

static void test_accel(void)
{
	static const struct {
		const char *args;
		unsigned n;
		enum vm_accel try[3];
		bool single;
	} cases[] = {
		{"qemu-system-x86_64", 1, {VM_ACCEL_TCG}, false},
		{"/usr/bin/kvm", 2, {VM_ACCEL_KVM, VM_ACCEL_TCG}, false},
		{"/usr/libexec/qemu-kvm", 2, {VM_ACCEL_KVM, VM_ACCEL_TCG}, false},
		{"q|-accel|tcg", 1, {VM_ACCEL_TCG}, false},
		{"q|-accel|tcg,thread=single", 1, {VM_ACCEL_TCG}, true},
		{"q|-accel|thread=single,accel=tcg", 1, {VM_ACCEL_TCG}, true},
		{"q|-accel|kvm|-accel|tcg,thread=multi", 2, {VM_ACCEL_KVM, VM_ACCEL_TCG}, false},
		{"q|-M|q35,accel=kvm:tcg", 2, {VM_ACCEL_KVM, VM_ACCEL_TCG}, false},
		{"q|-machine|accel=tcg", 1, {VM_ACCEL_TCG}, false},
		{"q|-enable-kvm", 1, {VM_ACCEL_KVM}, false},
		{"q|-accel|hvf", 1, {VM_ACCEL_UNKNOWN}, false},
		{"q|-accel|xen", 1, {VM_ACCEL_XEN}, false},
		{"q|-M|accel=:::", 3, {VM_ACCEL_UNKNOWN}, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct qemu_accels a;
		struct vm *vm = parse_as(cases[i].args, "", &a);

		CHECK_EQ(a.n, cases[i].n);
		for (unsigned j = 0; j < cases[i].n && j < a.n && j < 3; j++)
			CHECK_EQ(a.try[j], cases[i].try[j]);
		CHECK_EQ(vm->single_thread, cases[i].single);
		vm_free(vm);
	}
}

static void test_memory(void)
{
	static const struct {
		const char *args;
		uint64_t bytes;
	} cases[] = {
		{"q", 128 * MIB},
		{"q|-m|512", 512 * MIB},
		{"q|-m|2G", 2 * GIB},
		{"q|-m|1.5G", 1536 * MIB},
		{"q|-m|2g", 2 * GIB},
		{"q|-m|size=2G,slots=4,maxmem=8G", 2 * GIB},
		{"q|-m|2G,slots=4,maxmem=8G", 2 * GIB},
		{"q|-m|524288k", 512 * MIB},
		{"q|-m|-1", 128 * MIB},
		{"q|-m|99999999999999999999999E", 128 * MIB},
		{"q|-m|nan", 128 * MIB},
		{"q|-m|1e400", 128 * MIB},
		{"q|-m|2GG", 128 * MIB},
		{"q|-object|memory-backend-memfd,id=m,size=1G|-M|q35,memory-backend=m", GIB},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct vm *vm = parse(cases[i].args);

		CHECK_EQ(vm->memory, cases[i].bytes);
		vm_free(vm);
	}
}

static void test_smp(void)
{
	static const struct {
		const char *args;
		uint32_t n;
	} cases[] = {
		{"q", 1},
		{"q|-smp|4", 4},
		{"q|-smp|cpus=3,maxcpus=8", 3},
		{"q|-smp|2,sockets=2,cores=1,threads=1,maxcpus=2", 2},
		{"q|-smp|sockets=2,cores=3,threads=2", 12},
		{"q|-smp|sockets=2,dies=2,cores=2", 8},
		{"q|-smp|maxcpus=6", 6},
		{"q|-smp|4294967297", QEMU_VCPUS_MAX},
		{"q|-smp|sockets=1000,cores=1000,threads=1000", QEMU_VCPUS_MAX},
		{"q|-smp|-5", QEMU_VCPUS_MAX}, /* QEMU would refuse it: anything bounded will do */
		{"q|-smp|x", 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct vm *vm = parse(cases[i].args);

		CHECK_EQ(vm->nr_vcpus, cases[i].n);
		CHECK(vm->nr_vcpus && vm->vcpus[vm->nr_vcpus - 1].index == vm->nr_vcpus - 1);
		vm_free(vm);
	}
}

static void test_monitor(void)
{
	struct vm *vm = parse("q|-qmp|unix:/run/q,,1.sock,server=on,wait=off");

	CHECK_STR(vm->qmp_path, "/run/q,1.sock");
	vm_free(vm);
	vm = parse("q|-qmp|tcp:localhost:4444");
	CHECK(!vm->qmp_path);
	vm_free(vm);
	vm = parse("q|-chardev|socket,id=mon0,path=/run/m.sock,server=on|-mon|chardev=mon0,mode="
		   "control");
	CHECK_STR(vm->qmp_path, "/run/m.sock");
	vm_free(vm);
	vm = parse("q|-chardev|socket,id=ser0,path=/run/s.sock|-mon|mon0,mode=readline|-S");
	CHECK(!vm->qmp_path);
	CHECK(vm->paused_at_start && !vm->libvirt);
	vm_free(vm);
	vm = parse("q|-chardev|socket,id=charmonitor,fd=28,server=on|-mon|chardev=charmonitor,id="
		   "monitor,mode=control");
	CHECK(vm->libvirt && !vm->qmp_path);
	vm_free(vm);
}

static void test_blocks(void)
{
	/* as libvirt writes it; nodes out of order, a DIMM with its address */
	struct vm *vm = parse(
		"q|-object|{\"qom-type\":\"memory-backend-ram\",\"id\":\"ram-node0\",\"size\":"
		"1073741824}|-object|{\"qom-type\":\"memory-backend-memfd\",\"id\":\"ram-node1\","
		"\"share\":true,\"size\":2147483648}|-numa|node,nodeid=1,cpus=1,memdev=ram-node1|-"
		"numa|node,nodeid=0,cpus=0,memdev=ram-node0|-m|size=3145728k,slots=16,maxmem="
		"8388608k|-object|memory-backend-ram,id=d0,size=1G|-device|{\"driver\":\"pc-dimm\","
		"\"memdev\":\"d0\",\"id\":\"dimm0\",\"addr\":4294967296}");
	const struct vm_ram_spec *s = vm->ram_spec;

	CHECK_EQ(s->nr_blocks, 3);
	CHECK_STR(s->blocks[0].id, "ram-node0");
	CHECK_EQ(s->blocks[0].size, GIB);
	CHECK_EQ(s->blocks[0].backing, RAM_BACKING_ANON);
	CHECK_STR(s->blocks[1].id, "ram-node1");
	CHECK_EQ(s->blocks[1].backing, RAM_BACKING_SHARED);
	CHECK(s->blocks[2].dimm && s->blocks[2].has_addr);
	CHECK_EQ(s->blocks[2].addr, 4 * GIB);
	CHECK_EQ(vm->memory, 4 * GIB);
	vm_free(vm);
	vm = parse("q|-object|memory-backend-memfd,id=m,size=1G,share=off|-M|q35,memory-backend=m");
	CHECK_EQ(vm->ram_spec->nr_blocks, 1);
	CHECK_STR(vm->ram_spec->blocks[0].id, "m");
	CHECK_EQ(vm->ram_spec->blocks[0].backing, RAM_BACKING_ANON);
	vm_free(vm);
	vm = parse("q|-object|{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{|-object|{\"qom-type\":1}|-device|{}");
	CHECK_EQ(vm->ram_spec->nr_blocks, 1);
	vm_free(vm);
}

/* More of everything than there is room for. */
/* The memory that a log may be in. */
static void test_shared(void)
{
	static const struct {
		const char *args, *path;
		uint64_t size;
	} cases[] = {
		{"q|-object|memory-backend-file,id=log,share=on,mem-path=/dev/shm/a,,b,size=4M|"
		 "-device|ivshmem-plain,memdev=log",
		 "/dev/shm/a,b", 4 * MIB},
		/* in any order, and as libvirt writes it */
		{"q|-device|{\"driver\":\"ivshmem-plain\",\"memdev\":\"shmmem-shmem0\"}|-object|"
		 "{\"qom-type\":\"memory-backend-file\",\"id\":\"shmmem-shmem0\",\"mem-path\":"
		 "\"/dev/shm/w\",\"size\":8388608,\"share\":true}",
		 "/dev/shm/w", 8 * MIB},
		{"q|-object|memory-backend-memfd,id=m,size=1M|-device|ivshmem-plain,memdev=m", NULL,
		 MIB},
		/* the first one's, as the guest's module takes it */
		{"q|-object|memory-backend-memfd,id=m,size=1M|-object|memory-backend-memfd,id=n,"
		 "size=2M|"
		 "-device|ivshmem-plain,memdev=n|-device|ivshmem-plain,memdev=m",
		 NULL, 2 * MIB},
		{"q|-object|memory-backend-file,id=log,mem-path=/"
		 "x,size=4M|-device|ivshmem-plain,memdev=log",
		 NULL, 0},
		{"q|-device|ivshmem-plain,memdev=log", NULL, 0},
		{"q|-object|memory-backend-memfd,id=m,size=1M|-device|ivshmem-doorbell,memdev=m",
		 NULL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct vm *vm = parse(cases[i].args);

		CHECK_EQ(vm->shared_size, cases[i].size);
		if (cases[i].path)
			CHECK_STR(vm->shared_path, cases[i].path);
		else
			CHECK(!vm->shared_path);
		vm_free(vm);
	}
}

static void test_too_many(void)
{
	struct buf b = {0};
	struct qemu_accels accels;
	struct vm *vm;

	buf_add(&b, "q", 2);
	for (unsigned i = 0; i < 2000; i++) {
		buf_printf(&b, "-object%cmemory-backend-ram,id=m%u,size=4096T%c", 0, i, 0);
		buf_printf(&b, "-numa%cnode,nodeid=%u,memdev=m%u%c", 0, i % 200, i, 0);
		buf_printf(&b, "-device%cpc-dimm,memdev=m%u,addr=%u%c", 0, i, i, 0);
		buf_printf(&b, "-chardev%csocket,id=c%u,path=/x%c-accel%ckvm%c", 0, i, 0, 0, 0);
	}
	buf_add(&b, "-name", 6);
	for (unsigned i = 0; i < 100000; i++)
		buf_add(&b, ",", 1);
	buf_add(&b, "", 1);
	vm = qemu_vm_new((char *)b.data, b.len, "", &accels);
	CHECK(vm->ram_spec->nr_blocks <= RAM_BLOCKS_MAX);
	CHECK(accels.n <= 4);
	vm_free(vm);
	buf_free(&b);
}

static void test_is_vm(void)
{
	CHECK(is_vm("qemu-system-x86_64|-m|1", "/usr/bin/qemu-system-x86_64"));
	CHECK(is_vm("web1", "/usr/bin/qemu-system-x86_64")); /* argv[0] may be anything */
	CHECK(is_vm("x", "/usr/bin/qemu-system-aarch64 (deleted)"));
	CHECK(is_vm("qemu-system-x86_64|-m|1", "")); /* exe may not be read */
	CHECK(is_vm("/usr/libexec/qemu-kvm|-name|x", "/usr/libexec/qemu-kvm"));
	CHECK(is_vm("emu|-machine|q35|-m|1G|-device|x", "/opt/emu"));
	CHECK(!is_vm("emu|-m|1G|-smp|2", "/opt/emu")); /* two options tell too little */
	CHECK(!is_vm("sh|-c|qemu-system-x86_64 -m 1", "/bin/dash"));
	CHECK(!is_vm("sudo|qemu-system-x86_64|-machine|q35|-m|1G|-device|x", "/usr/bin/sudo"));
	CHECK(!is_vm("timeout|-k|1|qemu-system-x86_64|-M|q35|-m|1G|-smp|2", "/usr/bin/timeout"));
	CHECK(!is_vm("qemu-img|convert|-m|4|-cpu|-drive|-M", "/usr/bin/qemu-img"));
	CHECK(!is_vm("python3|vm.py", "/usr/bin/python3"));
	CHECK(!is_vm("", ""));
}

static void test_arch(void)
{
	struct qemu_accels a;
	struct vm *vm = parse_as("qemu-system-aarch64", "", &a);

	CHECK_STR(vm->arch, "aarch64");
	vm_free(vm);
	vm = parse_as("web", "/usr/bin/qemu-system-x86_64 (deleted)", &a);
	CHECK_STR(vm->arch, "x86_64");
	vm_free(vm);
	vm = parse_as("qemu-system-", "", &a);
	CHECK_STR(vm->arch, "");
	vm_free(vm);
}

static const char xml[] =
	"<!--\nWARNING: <vcpu id='0' pid='1'/> is a comment\n-->\n"
	"<domstatus state='running' reason='booted' pid='4711'>\n"
	"  <monitor path='/var/lib/libvirt/qemu/domain-1-a&amp;b/monitor.sock' type=\"unix\"/>\n"
	"  <vcpus>\n    <vcpu id='0' pid='4720'/>\n    <vcpu id='2' pid='4722'/>\n"
	"    <vcpu id='99999999' pid='4722'/><vcpu id='1' pid='-4'/><vcpu id=1 pid=5/>\n"
	"  </vcpus>\n"
	"  <domain type='qemu' id='1'><vcpu id='1' pid='77'/></domain>\n</domstatus>\n";

static void test_libvirt(void)
{
	struct vm *vm = parse("q|-name|web1");

	vm->pid = 4712; /* somebody else's file */
	CHECK(!libvirt_apply(vm, xml, strlen(xml)));
	CHECK(!vm->libvirt && !vm->qmp_path && vm->nr_vcpus == 1);
	vm->pid = 4711;
	CHECK(libvirt_apply(vm, xml, strlen(xml)));
	CHECK(vm->libvirt);
	CHECK_STR(vm->qmp_path, "/var/lib/libvirt/qemu/domain-1-a&b/monitor.sock");
	CHECK_EQ(vm->nr_vcpus, 3);
	CHECK_EQ(vm->vcpus[0].tid, 4720);
	CHECK_EQ(vm->vcpus[1].tid, 0);
	CHECK_EQ(vm->vcpus[2].tid, 4722);
	vm_free(vm);
	/* cut anywhere, it is read within its bounds */
	for (size_t n = 0; n < strlen(xml); n++) {
		char *copy = malloc(n + 1);

		memcpy(copy, xml, n);
		copy[n] = 0;
		vm = parse("q|-name|web1");
		vm->pid = 4711;
		libvirt_apply(vm, copy, n);
		vm_free(vm);
		free(copy);
	}
}

int main(void)
{
	test_names();
	test_uuid();
	test_accel();
	test_memory();
	test_smp();
	test_monitor();
	test_blocks();
	test_shared();
	test_too_many();
	test_is_vm();
	test_arch();
	test_libvirt();
	return test_done();
}
