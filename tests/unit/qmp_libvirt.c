// SPDX-License-Identifier: GPL-2.0-only
/*
 * QEMU's monitor by way of libvirt, against a libvirt of this test: one that answers, refuses,
 * takes its time, or never comes back.
 */
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "backend/qmp_libvirt.h"
#include "tests/unit/test.h"
#include "util/xalloc.h"

#define UUID  "926f5a7d-62d3-470a-8846-4506a887f56d"
#define SOON  20
#define LATER 30000

static int connection, domain;	     /* what is handed out */
static _Atomic(const char *) answer; /* NULL: refused */
static const char *known_uri, *known_uuid;
static atomic_bool hangs;
static atomic_uint asked, open_connections, open_domains;

static void hang(void)
{
	while (atomic_load(&hangs))
		usleep(1000);
}

static void *fake_connect(const char *uri)
{
	hang();
	if (strcmp(uri, known_uri) != 0)
		return NULL;
	atomic_fetch_add(&open_connections, 1);
	return &connection;
}

static int fake_disconnect(void *conn)
{
	CHECK(conn == &connection);
	atomic_fetch_sub(&open_connections, 1);
	return 0;
}

static void *fake_find(void *conn, const char *uuid)
{
	if (conn != &connection || strcmp(uuid, known_uuid) != 0)
		return NULL;
	atomic_fetch_add(&open_domains, 1);
	return &domain;
}

static int fake_put(void *d)
{
	CHECK(d == &domain);
	atomic_fetch_sub(&open_domains, 1);
	return 0;
}

static const char *fake_last_error(void)
{
	return "no\033[2J";
}

static int fake_ask(void *d, const char *command, char **reply, unsigned flags)
{
	const char *text;

	CHECK(d == &domain);
	CHECK_STR(command, "info registers -a");
	CHECK_EQ(flags, 1); /* for people */
	atomic_fetch_add(&asked, 1);
	hang();
	text = atomic_load(&answer);
	*reply = text ? xstrdup(text) : NULL;
	return text ? 0 : -1;
}

static const struct libvirt_calls calls = {
	.connect = fake_connect,
	.disconnect = fake_disconnect,
	.find = fake_find,
	.put = fake_put,
	.last_error = fake_last_error,
	.ask = fake_ask,
};

static struct vm vm_of(uint32_t user)
{
	return (struct vm){.name = "lv",
			   .uuid = UUID,
			   .libvirt = true,
			   .libvirt_state = true,
			   .libvirt_user = user};
}

static int open_one(struct qmp_libvirt **l, const struct vm *vm, int timeout_ms, const char *why)
{
	struct vmprof_err err = {0};
	int rc = qmp_libvirt_open(l, &calls, vm, timeout_ms, &err);

	CHECK_EQ(-rc, err.code);
	if (why && !strstr(err.msg, why))
		fprintf(stderr, "it said: %s\n", err.msg);
	CHECK(!why || strstr(err.msg, why));
	return rc;
}

/* What is open is closed by the thread, which may be behind. */
static void all_closed(void)
{
	for (int i = 0; i < LATER && atomic_load(&open_connections); i++)
		usleep(1000);
	CHECK_EQ(atomic_load(&open_connections), 0);
	CHECK_EQ(atomic_load(&open_domains), 0);
}

static void test_who_is_asked(void)
{
	struct vm vm = vm_of(0);
	struct qmp_libvirt *l;

	known_uuid = UUID;
	known_uri = "qemu:///system";
	CHECK_EQ(open_one(&l, &vm, LATER, NULL), 0);
	qmp_libvirt_close(l);
	all_closed();
	vm.libvirt_user = geteuid() + 1;
	CHECK_EQ(open_one(&l, &vm, LATER, "libvirt of user"), -EPERM);
	if (geteuid()) {
		vm.libvirt_user = geteuid();
		known_uri = "qemu:///session";
		CHECK_EQ(open_one(&l, &vm, LATER, NULL), 0);
		qmp_libvirt_close(l);
	}
	vm = vm_of(0);
	known_uri = "none";
	CHECK_EQ(open_one(&l, &vm, LATER, "cannot be asked: no\\x1b[2J"), -ECONNRESET);
	known_uri = "qemu:///system";
	known_uuid = "another";
	CHECK_EQ(open_one(&l, &vm, LATER, "does not know the VM"), -ECONNRESET);
	vm.libvirt_state = false;
	CHECK_EQ(open_one(&l, &vm, LATER, "cannot be read"), -EACCES);
	qmp_libvirt_close(NULL);
	all_closed();
}

static int ask(struct qmp_libvirt *l, int timeout_ms, char **reply)
{
	struct vmprof_err err = {0};
	int rc = qmp_libvirt_ask(l, "info registers -a", 16, timeout_ms, reply, &err);

	CHECK_EQ(-rc, err.code);
	CHECK_EQ(!rc, *reply != NULL);
	return rc;
}

static void test_answers(void)
{
	const struct vm vm = vm_of(0);
	struct qmp_libvirt *l;
	char *reply;

	known_uuid = UUID;
	CHECK_EQ(open_one(&l, &vm, LATER, NULL), 0);
	atomic_store(&answer, "CPU#0");
	CHECK_EQ(ask(l, LATER, &reply), 0);
	CHECK_STR(reply, "CPU#0");
	free(reply);
	atomic_store(&answer, "seventeen letters");
	CHECK_EQ(ask(l, LATER, &reply), -EMSGSIZE);
	atomic_store(&answer, NULL);
	CHECK_EQ(ask(l, LATER, &reply), -ECONNRESET);

	/* A reply that is late is not the next command's; none is sent while it is waited for. */
	atomic_store(&asked, 0);
	atomic_store(&hangs, true);
	CHECK_EQ(ask(l, SOON, &reply), -ETIMEDOUT);
	CHECK_EQ(ask(l, SOON, &reply), -ETIMEDOUT);
	CHECK(atomic_load(&asked) <= 1);
	atomic_store(&answer, "first");
	atomic_store(&hangs, false);
	CHECK_EQ(ask(l, LATER, &reply), 0);
	CHECK_STR(reply, "first");
	CHECK_EQ(atomic_load(&asked), 2);
	free(reply);
	qmp_libvirt_close(l);
	all_closed();
}

/* A session that is closed while libvirt hangs, and one whose connection never comes. */
static void test_hanging(void)
{
	const struct vm vm = vm_of(0);
	struct qmp_libvirt *l;
	char *reply;

	known_uuid = UUID;
	CHECK_EQ(open_one(&l, &vm, LATER, NULL), 0);
	atomic_store(&hangs, true);
	CHECK_EQ(ask(l, SOON, &reply), -ETIMEDOUT);
	qmp_libvirt_close(l);
	CHECK_EQ(open_one(&l, &vm, SOON, "does not answer in time"), -ETIMEDOUT);
	atomic_store(&hangs, false);
	all_closed();
}

int main(void)
{
	test_who_is_asked();
	test_answers();
	test_hanging();
	return test_done();
}
