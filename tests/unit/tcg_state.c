// SPDX-License-Identifier: GPL-2.0-only
/*
 * The vCPU state of QEMU's translator, made here: it is recognized in the layouts that there are
 * and in a process's heap, decoded rightly, and nothing that differs from an x86 CPU in one respect
 * is taken for one.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/tcg.h"
#include "tests/unit/test.h"
#include "vm/qemu.h"

enum { EIP = 0x80, EFLAGS = 0x88, DF = 0xac, HFLAGS = 0xb0, SEGS = 0xb8, CR = 0x1a8 };
enum { FRONT = 0x2000, INDEX_AT = 0x10c0, TID_AT = 0x12f8 };

static void put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, 8);
}

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
}

static void put_seg(uint8_t *env, unsigned i, uint32_t selector, uint64_t base, uint32_t limit,
		    uint32_t flags)
{
	uint8_t *p = env + SEGS + i * 24;

	put32(p, selector);
	put64(p + 8, base);
	put32(p + 16, limit);
	put32(p + 20, flags);
}

struct shape {
	uint32_t shift, efer, kernel_gs;
	bool vm_hsave; /* between star and lstar */
};

static const struct shape v72 = {0, 0x258, 0x2d00, true};
static const struct shape apx = {0x80, 0x2e0, 0x3100, false};

/* A 64-bit kernel at CPL @cpl; env has TCG_ENV_SIZE bytes. */
static void make_long_mode(uint8_t *env, const struct shape *s, unsigned cpl)
{
	uint8_t *e = env + s->shift;
	uint8_t *msr = env + s->kernel_gs;

	memset(env, 0, TCG_ENV_SIZE);
	for (unsigned i = 0; i < 16; i++)
		put64(env + i * 8, 0xffff888000000000 + i);
	put64(e + EIP, cpl ? 0x7f0000001000 : 0xffffffff81000000);
	put64(e + EFLAGS, 0x202);
	put32(e + DF, 1);
	put32(e + HFLAGS, 0xc000 | 0x280 | 0x80 | cpl); /* LMA CS64, CR0's MP, PE */
	for (unsigned i = 0; i < 10; i++)
		put_seg(e, i, 0, 0, 0, 0);
	put_seg(e, 1, cpl ? 0x33 : 0x10, 0, 0xffffffff, 0xa09b00);
	put_seg(e, 2, cpl ? 0x2b : 0x18, 0, 0xffffffff, 0xc09300);
	put_seg(e, 5, 0, cpl ? 0 : 0xffff88807dc00000, 0, 0);
	put_seg(e, 7, 0x40, 0xfffffe0000003000, 0x206f, 0x8b00);
	put_seg(e, 8, 0, 0xfffffe0000001000, 0x7f, 0);
	put_seg(e, 9, 0, 0xfffffe0000000000, 0xfff, 0);
	put64(e + CR, 0x80050033);
	put64(e + CR + 16, 0x7f1234567890);
	put64(e + CR + 24, 0x1922000);
	put64(e + CR + 32, 0x751ef0);
	put64(env + s->efer, 0xd01);
	put64(msr, cpl ? 0xffff88807dc00000 : 0);
	put64(msr - 8, 0x257fd5);
	put64(msr - 16, 0xffffffff81e01f10);
	put64(msr - 24, 0xffffffff81e00000);
	put64(msr - (s->vm_hsave ? 40 : 32), 0x0023001000000000);
}

static void make_reset(uint8_t *env)
{
	memset(env, 0, TCG_ENV_SIZE);
	put64(env + EIP, 0xfff0);
	put64(env + EFLAGS, 2);
	put_seg(env, 1, 0xf000, 0xffff0000, 0xffff, 0x9b00);
	put_seg(env, 6, 0, 0, 0xffff, 0x8200);
	put_seg(env, 7, 0, 0, 0xffff, 0x8b00);
	put_seg(env, 8, 0, 0, 0xffff, 0);
	put_seg(env, 9, 0, 0, 0xffff, 0);
	put64(env + CR, 0x60000010);
}

static void check_shape(const struct shape *s, unsigned cpl)
{
	static uint8_t env[TCG_ENV_SIZE];
	struct tcg_layout l = {.shift = s->shift};
	struct guest_regs regs;

	make_long_mode(env, s, cpl);
	CHECK(tcg_env_plausible(env, s->shift));
	CHECK(!tcg_env_plausible(env, s->shift ^ 0x80));
	CHECK_EQ(tcg_env_find_efer(env, s->shift), s->efer);
	CHECK_EQ(tcg_env_find_kernel_gs(env, s->efer + 8), s->kernel_gs);
	l.efer = s->efer;
	CHECK_EQ(tcg_env_decode(&regs, env, &l), 0);
	CHECK_EQ(regs.ip, cpl ? 0x7f0000001000 : 0xffffffff81000000);
	CHECK_EQ(regs.sp, 0xffff888000000004);
	CHECK_EQ(regs.fp, 0xffff888000000005);
	CHECK_EQ(regs.gpr[15], 0xffff88800000000f);
	CHECK_EQ(regs.flags, 0x202);
	CHECK_EQ(regs.pgtable, 0x1922000);
	CHECK_EQ(regs.cr0, 0x80050033);
	CHECK_EQ(regs.cr4, 0x751ef0);
	CHECK_EQ(regs.efer, 0xd01);
	CHECK_EQ(regs.gs_base, cpl ? 0 : 0xffff88807dc00000);
	CHECK_EQ(regs.gdt_base, 0xfffffe0000001000);
	CHECK_EQ(regs.idt_base, 0xfffffe0000000000);
	CHECK_EQ(regs.cpl, cpl);
	CHECK(regs.has_efer);
}

static void test_reset(void)
{
	static uint8_t env[TCG_ENV_SIZE];
	struct tcg_layout l = {0};
	struct guest_regs regs;

	make_reset(env);
	CHECK(tcg_env_plausible(env, 0));
	CHECK_EQ(tcg_env_find_efer(env, 0), 0);
	CHECK_EQ(tcg_env_find_kernel_gs(env, 0x200), 0);
	CHECK_EQ(tcg_env_decode(&regs, env, &l), 0);
	CHECK_EQ(regs.ip, 0xfffffff0);
	CHECK(!regs.has_efer);
}

/* One thing wrong in each. */
static void test_implausible(void)
{
	static const struct {
		uint32_t off, len;
		uint64_t value;
	} wrong[] = {
		{EFLAGS, 8, 0x200},	  /* bit 1 is always set */
		{EFLAGS, 8, 0x100000202}, /* no such flags */
		{EFLAGS, 8, 0x20a},	  /* bit 3 is never */
		{DF, 4, 2},
		{HFLAGS, 4, 0xc280},	      /* CPL 0 with a CS of 3 */
		{HFLAGS, 4, 0xc203},	      /* not protected mode, but CR0 says so */
		{HFLAGS, 4, 0xc083},	      /* CR0.MP not in it */
		{EIP, 8, 0x8000000000001000}, /* not canonical */
		{CR, 8, 0x80050023},	      /* ET is always set */
		{CR, 8, 0x180050033},
		{CR, 8, 0x80050032}, /* paging without protection */
		{CR + 8, 8, 1},	     /* there is no CR1 */
		{CR + 24, 8, 0x10000001922000},
		{CR + 32, 8, 0x751ed0}, /* long mode without PAE */
		{CR + 32, 8, 0x8000000000751ef0},
		{SEGS + 24, 4, 0x10033},	  /* selectors have 16 bits */
		{SEGS + 24 + 20, 4, 0xa00b00},	  /* CS not present */
		{SEGS + 8 * 24, 4, 0x10},	  /* GDTR has no selector */
		{SEGS + 9 * 24 + 16, 4, 0x10000}, /* IDTR's limit has 16 bits */
		{SEGS + 9 * 24 + 8, 8, 0xfe00000000000000},
	};
	static uint8_t env[TCG_ENV_SIZE];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		make_long_mode(env, &v72, 3);
		memcpy(env + wrong[i].off, &wrong[i].value, wrong[i].len);
		if (tcg_env_plausible(env, 0)) {
			fprintf(stderr, "wrong value %zu passed\n", i);
			test_failures++;
		}
	}
}

/* Noise, zeros, all ones: nothing in it is a CPU. */
static void test_noise(void)
{
	static uint8_t mem[1 << 20];
	uint64_t x = 88172645463325252ull;
	struct tcg_layout l = {.shift = 0, .efer = 0x258};
	struct guest_regs regs;
	unsigned found = 0;

	for (int round = 0; round < 4; round++) {
		for (size_t i = 0; i < sizeof(mem); i += 8) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			put64(mem + i, round == 0   ? x
				       : round == 1 ? 0
				       : round == 2 ? ~0ull
						    : x & 0x202);
		}
		for (size_t i = 0; i + TCG_ENV_SIZE <= sizeof(mem); i += 16) {
			found += tcg_env_plausible(mem + i, 0) + tcg_env_plausible(mem + i, 0x80);
			tcg_env_decode(&regs, mem + i, &l);
		}
		tcg_env_find_efer(mem, 0x80);
		tcg_env_find_kernel_gs(mem, 0);
	}
	CHECK_EQ(found, 0);
}

/* ---------- CPUState ---------- */

static void make_front(uint8_t *front, uint32_t index, uint32_t tid, uint32_t halted)
{
	uint8_t *end = front + FRONT;

	memset(front, 0, FRONT);
	put64(end - TID_AT - 8, 0x7f0000001230);
	put32(end - TID_AT, tid);
	end[-TID_AT + 4] = 1;
	put64(end - TID_AT + 8, 0x7f0000004560);
	put32(end - INDEX_AT, index);
	put32(end - INDEX_AT + 4, UINT32_MAX);
	put32(end - INDEX_AT + 8, 0xff080000);
	put32(end - INDEX_AT + 12, halted);
}

static bool is_100(void *ctx, uint32_t v)
{
	return v >= 100 && v < 110;
}

static void test_front(void)
{
	static uint8_t a[FRONT], b[FRONT];
	const uint8_t *f[] = {a, b};
	struct tcg_layout l = {0};

	make_front(a, 0, 100, 1);
	make_front(b, 1, 101, 0);
	CHECK(tcg_front_find_index(&l, f, FRONT, 2, 2));
	CHECK_EQ(l.cpu_index, INDEX_AT);
	CHECK_EQ(tcg_front_index(&l, b, FRONT), 1);
	CHECK_EQ(l.halted, INDEX_AT - 12);
	CHECK(tcg_front_find_tid(&l, f, FRONT, 2, is_100, NULL));
	CHECK_EQ(l.thread_id, TID_AT);
	make_front(b, 0, 200, 0); /* the same index twice, and no thread of that number */
	l = (struct tcg_layout){0};
	CHECK(!tcg_front_find_index(&l, f, FRONT, 2, 1));
	CHECK(!tcg_front_find_tid(&l, f, FRONT, 2, is_100, NULL));
	CHECK(!tcg_front_find_index(&l, f, 0, 2, 1));
	make_front(b, UINT32_MAX, 100, 0); /* one that is a vCPU no more */
	CHECK(tcg_front_find_index(&l, f, FRONT, 2, 1));
	CHECK_EQ(tcg_front_index(&l, a, FRONT), 0);
	CHECK_EQ(tcg_front_index(&l, b, FRONT), -1);
	CHECK(!tcg_front_find_index(&l, f, FRONT, 2, 2));
}

/* ---------- in a process ---------- */

static _Noreturn void *wait_forever(void *arg)
{
	*(pid_t *)arg = gettid();
	for (;;)
		pause();
}

static _Noreturn void child(int out)
{
	uint64_t where[3];
	pthread_t t;

	for (uint32_t i = 0; i < 2; i++) {
		volatile pid_t tid = 0;
		uint8_t *p = NULL;

		/* memory from brk(), as QEMU's first allocations are */
		if (pthread_create(&t, NULL, wait_forever, (void *)&tid))
			_exit(1);
		while (!tid)
			usleep(1000);
		p = sbrk(FRONT + TCG_ENV_SIZE + 4096);
		p = (uint8_t *)(((uintptr_t)p + 15) & ~15ull);
		/* in the heap the second vCPU lies first */
		make_front(p, 1 - i, (uint32_t)tid, i);
		make_long_mode(p + FRONT, &v72, i ? 3 : 0);
		where[i] = (uintptr_t)p + FRONT;
	}
	/* and one that was made to be looked at only */
	where[2] = (uintptr_t)sbrk(FRONT + TCG_ENV_SIZE + 4096);
	where[2] = (where[2] + 15) & ~15ull;
	make_front((uint8_t *)where[2], UINT32_MAX, 0, 0);
	make_reset((uint8_t *)where[2] + FRONT);
	if (write(out, where, sizeof(where)) != sizeof(where))
		_exit(1);
	for (;;)
		pause();
}

static void test_process(void)
{
	static const char args[] = "qemu-system-x86_64\0-smp\0"
				   "2";
	struct qemu_accels accels;
	struct vm *vm = qemu_vm_new(args, sizeof(args), "", &accels);
	struct vmprof_err err = {0};
	struct proc_maps maps;
	struct tcg_cpus cpus;
	uint64_t where[3];
	int p[2];

	CHECK(!pipe(p));
	vm->name = strdup("made-up");
	vm->pid = fork();
	if (!vm->pid)
		child(p[1]);
	CHECK(read(p[0], where, sizeof(where)) == sizeof(where));
	CHECK(!proc_maps_read(&maps, vm->pid));
	CHECK_EQ(tcg_find_cpus(&cpus, vm, &maps, &err), 0);
	CHECK_EQ(cpus.n, 2);
	if (cpus.n == 2) {
		CHECK_EQ(cpus.cpu[1].env, where[0]);
		CHECK_EQ(cpus.cpu[0].env, where[1]);
		CHECK(cpus.cpu[0].tid > vm->pid && cpus.cpu[1].tid > vm->pid);
		CHECK(cpus.cpu[0].tid != cpus.cpu[1].tid);
	}
	CHECK_EQ(cpus.layout.halted, INDEX_AT - 12);
	CHECK_EQ(cpus.layout.kernel_gs, v72.kernel_gs);
	free(cpus.cpu);
	proc_maps_free(&maps);
	kill(vm->pid, SIGKILL);
	waitpid(vm->pid, NULL, 0);
	vm_free(vm);
}

/* A process with no vCPU: a sentence, not a guess. */
static void test_no_cpu(void)
{
	static const char args[] = "qemu-system-x86_64";
	struct qemu_accels accels;
	struct vm *vm = qemu_vm_new(args, sizeof(args), "", &accels);
	struct vmprof_err err = {0};
	struct proc_maps maps;
	struct tcg_cpus cpus;
	int p[2];
	char c;

	vm->name = strdup("none\033[2J");
	CHECK(!pipe2(p, O_CLOEXEC));
	vm->pid = fork();
	if (!vm->pid) { /* another program: this one's memory has vCPUs all over */
		execlp("sleep", "sleep", "60", NULL);
		_exit(1);
	}
	close(p[1]);
	CHECK_EQ(read(p[0], &c, 1), 0); /* closed by exec */
	close(p[0]);
	CHECK(!proc_maps_read(&maps, vm->pid));
	CHECK_EQ(tcg_find_cpus(&cpus, vm, &maps, &err), -ENOENT);
	CHECK(strstr(err.msg, "none\\x1b[2J") && !strchr(err.msg, '\033'));
	proc_maps_free(&maps);
	kill(vm->pid, SIGKILL);
	waitpid(vm->pid, NULL, 0);
	vm_free(vm);
}

int main(void)
{
	check_shape(&v72, 0);
	check_shape(&v72, 3);
	check_shape(&apx, 0);
	test_reset();
	test_implausible();
	test_noise();
	test_front();
	if (geteuid()) {
		printf("not root: the search in a process is left out\n");
		return test_done();
	}
	test_process();
	test_no_cpu();
	return test_done();
}
