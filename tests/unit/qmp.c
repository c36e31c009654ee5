// SPDX-License-Identifier: GPL-2.0-only
/*
 * The qmp backend against monitors of this test: registers out of what QEMU prints, answers as they
 * should be, and answers that are cut, huge, deep, late, of wrong types, or never come.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/qmp_client.h"
#include "backend/qmp_regs.h"
#include "tests/unit/test.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/xalloc.h"
#include "vm/proc.h"

/* ---------- registers ---------- */

#define USER                                                                                       \
	"RAX=04571f3d86378049 RBX=00007ffc0e8d83c8 RCX=00000000000017ec RDX=0000000000000063\r\n"  \
	"RSI=00007f5c54d582a0 RDI=e0bb30bbb2db5bdc RBP=00007ffc0e8d8190 RSP=00007ffc0e8d8188\r\n"  \
	"R8 =000000000000916b R9 =0000000000003079 R10=0000000000000004 R11=0000000000000206\r\n"  \
	"R12=00007ffc0e8d83b8 R13=0000000000000001 R14=0000000000000002 R15=0000000000000003\r\n"  \
	"RIP=00007f5c54caf73a RFL=00000212 [----A--] CPL=3 II=0 A20=1 SMM=0 HLT=0\r\n"
#define TABLES                                                                                     \
	"ES =0000 0000000000000000 00000000 00000000\r\n"                                          \
	"CS =0033 0000000000000000 ffffffff 00affb00 DPL=3 CS64 [-RA]\r\n"                         \
	"FS =0000 0000555573103380 00000000 00000000\r\n"                                          \
	"GS =0000 ffff88801f600000 00000000 00000000\r\n"                                          \
	"TR =0040 fffffe0000003000 00004087 00008900 DPL=0 TSS64-avl\r\n"                          \
	"GDT=     fffffe0000001000 0000007f\r\n"                                                   \
	"IDT=     fffffe0000000000 00000fff\r\n"                                                   \
	"CR0=80050033 CR2=0000000022b1d730 CR3=000000001fee0000 CR4=00751eb0\r\n"                  \
	"DR6=00000000ffff0ff0 DR7=0000000000000400\r\n"                                            \
	"EFER=0000000000000d01\r\nFCW=037f FSW=0000 [ST=0] FTW=00 MXCSR=00001f80\r\n"
#define NARROW                                                                                     \
	"EAX=00000001 EBX=00000002 ECX=00000003 EDX=00000004\r\n"                                  \
	"ESI=00000005 EDI=00000006 EBP=00000007 ESP=fffd0008\r\n"                                  \
	"EIP=f7f00009 EFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\r\n"

static uint32_t parse(const char *text, struct guest_regs *regs, bool *known, uint32_t n)
{
	memset(regs, 0, n * sizeof(*regs));
	return qmp_regs_parse(text, strlen(text), regs, known, n);
}

static void test_registers(void)
{
	struct guest_regs r[3];
	bool known[3];

	CHECK_EQ(parse("\r\nCPU#0\r\n" USER TABLES "\r\nCPU#2\r\n" NARROW TABLES, r, known, 3), 2);
	CHECK(known[0] && !known[1] && known[2]);
	CHECK_EQ(r[0].ip, 0x7f5c54caf73a);
	CHECK_EQ(r[0].sp, 0x7ffc0e8d8188);
	CHECK_EQ(r[0].fp, 0x7ffc0e8d8190);
	CHECK_EQ(r[0].flags, 0x212);
	CHECK_EQ(r[0].gpr[X86_RAX], 0x04571f3d86378049);
	CHECK_EQ(r[0].gpr[X86_RDX], 0x63);
	CHECK_EQ(r[0].gpr[X86_R8], 0x916b);
	CHECK_EQ(r[0].gpr[15], 3);
	CHECK_EQ(r[0].pgtable, 0x1fee0000);
	CHECK_EQ(r[0].cr0, 0x80050033);
	CHECK_EQ(r[0].cr4, 0x751eb0);
	CHECK_EQ(r[0].efer, 0xd01);
	CHECK_EQ(r[0].gdt_base, 0xfffffe0000001000);
	CHECK_EQ(r[0].idt_base, 0xfffffe0000000000);
	CHECK_EQ(r[0].gs_base, 0xffff88801f600000);
	CHECK(r[0].has_efer && !r[0].has_gs && !r[0].halted);
	CHECK_EQ(r[0].cpl, 3);
	CHECK_EQ(r[2].ip, 0xf7f00009);
	CHECK_EQ(r[2].sp, 0xfffd0008);
	CHECK_EQ(r[2].gpr[X86_RDI], 6);
	CHECK_EQ(r[2].gpr[X86_R8], 0);
	CHECK(r[2].halted);
}

/* @from becomes @to in a good CPU's text: it is not known then. */
static bool refused(const char *from, const char *to)
{
	static const char good[] = "CPU#0\r\n" USER TABLES;
	const char *at = strstr(good, from);
	struct guest_regs r = {.ip = 77};
	bool known;
	char *text = xasprintf("%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
	uint32_t n = qmp_regs_parse(text, strlen(text), &r, &known, 1);

	free(text);
	return !n && !known && r.ip == 77;
}

static void test_lying_registers(void)
{
	static const char good[] = "CPU#0\r\n" USER TABLES;
	struct guest_regs r[2];
	bool known[2];

	CHECK(!refused("CR2=", "CR9="));
	CHECK(refused("RIP=", "RIQ="));
	CHECK(refused("RIP=00007f5c54caf73a", "RIP="));
	CHECK(refused("RIP=0", "RIP=x"));
	CHECK(refused("RIP=0", "RIP=10"));
	CHECK(refused("CPL=3", "CPL=4"));
	CHECK(refused("HLT=0", "HLT=2"));
	CHECK(refused("R14=", "R13="));
	CHECK(refused(" RSP=", "_RSP="));
	CHECK(refused("GS =0000 ffff88801f600000", "GS =0000 -"));
	CHECK(refused("CPU#0", "CPU#1"));
	CHECK(refused("CPU#0", "CPU#4294967296"));
	CHECK(refused("CPU#0", "CPU#"));
	CHECK(refused("CPU#0", "CPU#-0"));
	CHECK(refused("CPU#0", "xCPU#0"));
	/* What is said first holds. */
	CHECK_EQ(parse("CPU#0\n" USER TABLES "CPU#0\n" NARROW TABLES, r, known, 2), 1);
	CHECK_EQ(r[0].ip, 0x7f5c54caf73a);
	/* Cut anywhere, there is nothing or all of it. */
	for (size_t n = 0; n < sizeof(good); n++) {
		memset(r, 0, sizeof(r));
		if (qmp_regs_parse(good, n, r, known, 2))
			CHECK(r[0].ip && r[0].pgtable && r[0].idt_base);
		else
			CHECK(!r[0].ip);
	}
}

/* ---------- the client ---------- */

#define GREETING "{\"QMP\": {\"version\": {\"package\": \"x\"}, \"capabilities\": [\"oob\"]}}\r\n"
#define DONE	 "{\"return\": {}}\r\n"
#define EVENT	 "{\"timestamp\": {\"seconds\": 1}, \"event\": \"RTC_CHANGE\", \"data\": {}}\r\n"
#define MAX	 4096

static int server; /* the other end of the client's connection */

/* Time for what has a result of its own, and for what ends with time alone. */
static int patience(int result)
{
	return result == -ETIMEDOUT || result == -EBUSY ? 100 : 30000;
}

static int attach(struct qmp_client *c, const char *said, int timeout_ms)
{
	struct vmprof_err err = {0};
	int fd[2], r;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	server = fd[1];
	CHECK(!write_all(server, said, strlen(said)));
	r = qmp_attach(c, fd[0], MAX, timeout_ms, &err);
	CHECK_EQ(-r, err.code);
	return r;
}

static void greeted_so(const char *said, int result)
{
	struct qmp_client c;

	CHECK_EQ(attach(&c, said, patience(result)), result);
	close(server);
	qmp_close(&c);
}

static void test_greetings(void)
{
	struct qmp_client c;
	char text[200] = {0};

	CHECK_EQ(attach(&c, GREETING EVENT EVENT DONE, 30000), 0);
	CHECK(read(server, text, sizeof(text) - 1) > 0);
	CHECK_STR(text, "{\"execute\":\"qmp_capabilities\"}\n");
	close(server);
	qmp_close(&c);
	greeted_so("", -EBUSY);
	greeted_so("{\"QMP\": ", -ETIMEDOUT);
	greeted_so(GREETING, -ETIMEDOUT);
	greeted_so("220 mail.example.org ESMTP\r\n", -EPROTO);
	greeted_so("{\"QMQ\": {}}", -EPROTO);
	greeted_so("[1, 2]\n", -EPROTO);
	greeted_so("null\n", -EPROTO);
	greeted_so(GREETING "{\"result\": {}}", -EPROTO);
	greeted_so(GREETING "{\"error\": 5}", -EIO);
	greeted_so(GREETING "\"return\"", -EPROTO);
}

/* What a request comes to if this is the answer. */
static int answered(struct qmp_client *c, const char *answer, size_t len, int timeout_ms,
		    char text[256])
{
	struct vmprof_err err = {0};
	struct json_object *o = NULL;
	int r;

	CHECK_EQ(attach(c, GREETING DONE, 30000), 0);
	CHECK(!write_all(server, answer, len));
	if (!len)
		shutdown(server, SHUT_RDWR);
	r = qmp_request(c, "{}\n", timeout_ms, &o, &err);
	CHECK_EQ(-r, err.code);
	snprintf(text, 256, "%s", r ? err.msg : json_object_get_string(o));
	json_object_put(o);
	close(server);
	qmp_close(c);
	return r;
}

static void test_answers(void)
{
	static const struct {
		const char *answer;
		int result;
		const char *text;
	} cases[] = {
		{"{\"return\": \"x\\r\\ny\"}\r\n", 0, "x\r\ny"},
		{EVENT "{\n  \"return\":\n  \"pretty\"\n}\n", 0, "pretty"},
		{"{\"error\": {\"class\": \"GenericError\", \"desc\": \"no\\u001b[2J\"}}", -EIO,
		 "QEMU's monitor refuses a command: no\\x1b[2J"},
		{"{\"error\": {\"desc\": null}}", -EIO,
		 "QEMU's monitor refuses a command: no reason is given"},
		{"{\"return\": ", -ETIMEDOUT, NULL},
		{EVENT EVENT EVENT, -ETIMEDOUT, NULL},
		{"", -ECONNRESET, NULL},
		{"{\"return\": }", -EPROTO, NULL},
		{"[[[[[[[[[[[[[[[[[[[[[[[[", -EPROTO, NULL},
		{"17 18", -EPROTO, NULL},
		{"{}", -EPROTO, NULL},
	};
	char text[256], huge[3 * MAX];
	struct qmp_client c;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CHECK_EQ(answered(&c, cases[i].answer, strlen(cases[i].answer),
				  patience(cases[i].result), text),
			 cases[i].result);
		if (cases[i].text)
			CHECK_STR(text, cases[i].text);
	}
	memset(huge, 'x', sizeof(huge));
	memcpy(huge, "{\"return\": \"", 12);
	CHECK_EQ(answered(&c, huge, sizeof(huge), 30000, text), -EMSGSIZE);
	memset(huge, ' ', sizeof(huge));
	CHECK_EQ(answered(&c, huge, sizeof(huge), 30000, text), -EMSGSIZE);
	memset(huge, 0, sizeof(huge));
	CHECK(answered(&c, huge, sizeof(huge), 30000, text) < 0);
}

/* An answer that comes after its time is not the next request's. */
static void test_late_answer(void)
{
	static const char first[] = "{\"return\": \"first\"}\r\n", second[] = "{\"return\": 2}";
	struct json_object *o;
	struct qmp_client c;

	CHECK_EQ(attach(&c, GREETING DONE, 30000), 0);
	CHECK(!write_all(server, first, 9));
	CHECK_EQ(qmp_request(&c, "{\"a\": 1}\n", 50, &o, NULL), -ETIMEDOUT);
	CHECK_EQ(qmp_request(&c, "{\"b\": 1}\n", 50, &o, NULL), -ETIMEDOUT);
	CHECK(!write_all(server, first + 9, strlen(first) - 9));
	CHECK(!write_all(server, second, strlen(second)));
	CHECK_EQ(qmp_request(&c, "{\"c\": 1}\n", 30000, &o, NULL), 0);
	CHECK_EQ(json_object_get_int(o), 2);
	json_object_put(o);
	close(server);
	qmp_close(&c);
}

/* ---------- the backend ---------- */

/* A VM of this process, whose one vCPU is a thread that works or sleeps. */
struct machine {
	struct vm vm;
	struct vm_vcpu vcpu;
	char dir[64], path[80];
	int listener;
	_Atomic(const char *) text; /* what "return" is */
	atomic_bool works, hangs_up, end;
	atomic_uint asked, accepted;
	atomic_int tid;
	pthread_t monitor, thread;
};

static void *vcpu_thread(void *arg)
{
	struct machine *m = arg;

	atomic_store(&m->tid, gettid());
	while (!atomic_load(&m->end))
		if (!atomic_load(&m->works))
			usleep(5000);
	return NULL;
}

static void serve(struct machine *m, int fd)
{
	char line[512];
	size_t len = 0;

	if (write_all(fd, GREETING, strlen(GREETING)))
		return;
	while (len < sizeof(line) && read(fd, line + len, 1) == 1) {
		struct buf b = {0};
		bool is_regs;

		if (line[len++] != '\n')
			continue;
		is_regs = memmem(line, len, "\"info registers -a\"", 19);
		len = 0;
		if (is_regs && atomic_load(&m->hangs_up))
			return;
		atomic_fetch_add(&m->asked, is_regs);
		buf_printf(&b, "{\"return\": %s}\r\n", is_regs ? atomic_load(&m->text) : "{}");
		if (write_all(fd, b.data, b.len))
			atomic_store(&m->hangs_up, true);
		buf_free(&b);
	}
}

/* One client at a time, as QEMU. */
static void *monitor_thread(void *arg)
{
	struct machine *m = arg;
	struct pollfd p = {.fd = m->listener, .events = POLLIN};

	while (!atomic_load(&m->end)) {
		int fd = poll(&p, 1, 20) > 0 ? accept(m->listener, NULL, NULL) : -1;

		if (fd < 0)
			continue;
		atomic_fetch_add(&m->accepted, 1);
		serve(m, fd);
		close(fd);
	}
	return NULL;
}

static char *json_text(const char *text)
{
	struct json_object *o = json_object_new_string(text);
	char *s = xstrdup(json_object_to_json_string(o));

	json_object_put(o);
	return s;
}

static void machine_start(struct machine *m)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct proc_stat st;

	memset(m, 0, sizeof(*m));
	strcpy(m->dir, "/tmp/vmprof-qmp.XXXXXX");
	CHECK(mkdtemp(m->dir) != NULL);
	snprintf(m->path, sizeof(m->path), "%s/qmp", m->dir);
	strcpy(a.sun_path, m->path);
	m->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(!bind(m->listener, (struct sockaddr *)&a, sizeof(a)));
	CHECK(!listen(m->listener, 1));
	pthread_create(&m->monitor, NULL, monitor_thread, m);
	pthread_create(&m->thread, NULL, vcpu_thread, m);
	while (!atomic_load(&m->tid))
		usleep(100);
	CHECK(!proc_stat(getpid(), &st));
	m->vcpu.tid = atomic_load(&m->tid);
	m->vm = (struct vm){.name = "web\0331",
			    .hypervisor = VM_HYPERVISOR_QEMU,
			    .accel = VM_ACCEL_KVM,
			    .pid = getpid(),
			    .start_time = st.start_time,
			    .arch = "x86_64",
			    .vcpus = &m->vcpu,
			    .nr_vcpus = 1,
			    .qmp_path = m->path};
}

static void machine_end(struct machine *m)
{
	atomic_store(&m->end, true);
	pthread_join(m->monitor, NULL);
	pthread_join(m->thread, NULL);
	close(m->listener);
	unlink(m->path);
	rmdir(m->dir);
}

/* As often as it takes a slow machine to answer in time. */
static bool can(const struct machine *m)
{
	struct backend_caps caps = {0};

	for (int i = 0; i < 100 && !caps.usable; i++)
		backend_qmp.probe(&m->vm, &caps);
	return caps.usable && caps.registers && caps.peek && caps.exact_ip && !caps.why_not[0];
}

static bool cannot(const struct machine *m, const char *why)
{
	struct backend_caps caps;

	for (int i = 0; i < 20; i++) {
		backend_qmp.probe(&m->vm, &caps);
		if (!caps.usable && strstr(caps.why_not, why))
			return true;
	}
	fprintf(stderr, "usable %d: %s\n", caps.usable, caps.why_not);
	return false;
}

static void test_probe(struct machine *m)
{
	struct machine other = *m;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	unsigned before;
	int fd;

	CHECK(can(m));
	other.vm.qmp_path = NULL;
	CHECK(cannot(&other, "web\\x1b1 has no QMP socket: -qmp unix:"));
	other.vm.qmp_path = m->dir;
	CHECK(cannot(&other, "non-socket"));
	other.vm.qmp_path = "/no\033where";
	CHECK(cannot(&other, "/no\\x1bwhere: No such file"));
	other.vm.qmp_path = m->path;
	other.vm.hypervisor = VM_HYPERVISOR_CROSVM;
	CHECK(cannot(&other, "crosvm"));
	other.vm.hypervisor = VM_HYPERVISOR_QEMU;
	other.vm.arch = "aarch64";
	CHECK(cannot(&other, "x86_64 guests only"));
	other.vm.arch = "x86_64";
	other.vcpu.tid = 0;
	other.vm.vcpus = &other.vcpu;
	CHECK(cannot(&other, "debug-threads=on"));
	other.vm.vcpus = &m->vcpu;
	other.vm.pid = fork(); /* whose socket it is not */
	if (!other.vm.pid)
		for (;;)
			pause();
	CHECK(cannot(&other, "another process's"));
	kill(other.vm.pid, SIGKILL);
	waitpid(other.vm.pid, NULL, 0);
	other.vm.pid = getpid();

	/* Somebody else is connected: it is seen, and not waited for in the queue. */
	strcpy(a.sun_path, m->path);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	before = atomic_load(&m->accepted);
	CHECK(!connect(fd, (struct sockaddr *)&a, sizeof(a)));
	while (atomic_load(&m->accepted) == before)
		usleep(1000);
	CHECK(cannot(&other, "another program is connected to the VM's QMP socket"));
	other.vm.libvirt = true;
	/* its state does not fit, or its library is not here */
	CHECK(cannot(&other, "libvirt has the VM's QMP socket: libvirt's "));
	close(fd);
	CHECK(can(m));
	CHECK(atomic_load(&m->accepted) - before < 4);
}

static struct backend_session *open_session(struct machine *m, uint64_t hz)
{
	const struct event e = {
		.name = "cpu-clock",
		.type = 1, /* PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK */
		.config = 0,
		.freq = true,
		.rate = hz,
		.guest = true,
	};
	const struct backend_config cfg = {.events = &e, .nr_events = 1, .chains = true};
	struct backend_session *s = NULL;
	struct vmprof_err err = {0};
	int r = -EBUSY;

	for (int i = 0; i < 100 && r == -EBUSY; i++)
		r = backend_qmp.open(&s, &m->vm, &cfg, &err);
	CHECK_EQ(r, 0);
	return s;
}

/* Samples until there are @n, for a minute at most, or what read() says. */
static int read_some(struct backend_session *s, struct raw_sample *out, unsigned n)
{
	uint64_t end = clock_now_ns() + 60000000000ull;
	unsigned got = 0;
	int r = 0;

	while (got < n && r >= 0 && clock_now_ns() < end) {
		r = backend_qmp.read(s, out, 1, 50);
		got += r == 1;
	}
	return r < 0 ? r : (int)got;
}

static void test_samples(struct machine *m, char *user, char *halted, char *lie)
{
	struct backend_session *s;
	struct backend_stats st;
	struct raw_sample raw;
	struct guest_regs regs;
	struct vmprof_err err = {0};
	unsigned before;

	atomic_store(&m->text, user);
	s = open_session(m, 1000);
	if (!s)
		return;
	CHECK_EQ(backend_qmp.peek(s, 0, &regs), 0);
	CHECK_EQ(regs.ip, 0x7f5c54caf73a);
	CHECK_EQ(backend_qmp.peek(s, 1, &regs), -EAGAIN);
	CHECK_EQ(backend_qmp.start(s, &err), 0);

	/* No CPU time, no sample and, but for now and then, no question. */
	before = atomic_load(&m->asked);
	for (int i = 0; i < 6; i++)
		CHECK(backend_qmp.read(s, &raw, 1, 50) >= 0);
	CHECK(atomic_load(&m->asked) - before < 60);

	atomic_store(&m->works, true);
	CHECK_EQ(read_some(s, &raw, 20), 20);
	CHECK_EQ(raw.has, RAW_HAS_IP | RAW_HAS_REGS | RAW_HAS_MODE);
	CHECK_EQ(raw.mode, SAMPLE_MODE_GUEST_USER);
	CHECK_EQ(raw.ip, 0x7f5c54caf73a);
	CHECK(raw.period && raw.period % 1000000 == 0);
	backend_qmp.stats(s, &st);
	CHECK(st.samples >= 20 && st.ticks == st.samples + st.merged && !st.lost);
	CHECK(st.note && strstr(st.note, "addresses only"));

	/* It says that it waits: there may be one that was asked for before. */
	atomic_store(&m->text, halted);
	for (int i = 0; i < 4; i++)
		CHECK(backend_qmp.read(s, &raw, 1, 50) >= 0);
	for (int i = 0; i < 30; i++)
		CHECK_EQ(backend_qmp.read(s, &raw, 1, 50), 0);
	backend_qmp.stats(s, &st);
	CHECK_EQ(st.lost, 0);

	/* It says what is no register: ticks are lost, and counted. */
	atomic_store(&m->text, lie);
	for (int i = 0; i < 200 && !st.lost; i++) {
		CHECK_EQ(backend_qmp.read(s, &raw, 1, 50), 0);
		backend_qmp.stats(s, &st);
	}
	CHECK(st.lost && st.lost == st.unreadable);
	CHECK_EQ(backend_qmp.peek(s, 0, &regs), -EIO);

	/* It says what is no text: an end. */
	atomic_store(&m->text, "[5]");
	CHECK_EQ(read_some(s, &raw, 1), -EPROTO);
	backend_qmp.close(s);
}

static void test_end(struct machine *m, char *user)
{
	struct backend_session *s;
	struct raw_sample raw;
	struct vmprof_err err = {0};

	atomic_store(&m->text, user);
	atomic_store(&m->works, true);
	s = open_session(m, 1000);
	if (!s)
		return;
	CHECK_EQ(backend_qmp.start(s, &err), 0);
	CHECK_EQ(read_some(s, &raw, 1), 1);
	atomic_store(&m->hangs_up, true);
	CHECK_EQ(read_some(s, &raw, 1000), -ECONNRESET);
	m->vm.start_time++; /* another process by now */
	CHECK_EQ(read_some(s, &raw, 1000), -ESRCH);
	m->vm.start_time--;
	backend_qmp.close(s);
	backend_qmp.close(NULL);
}

int main(void)
{
	char *user = json_text("CPU#0\r\n" USER TABLES), *lie = json_text("CPU#0\r\nRIP=x");
	char *halted = json_text("CPU#0\r\n" NARROW TABLES);
	struct machine m;

	signal(SIGPIPE, SIG_IGN);
	test_registers();
	test_lying_registers();
	test_greetings();
	test_answers();
	test_late_answer();
	machine_start(&m);
	test_probe(&m);
	test_samples(&m, user, halted, lie);
	test_end(&m, user);
	machine_end(&m);
	free(user);
	free(halted);
	free(lie);
	return test_done();
}
