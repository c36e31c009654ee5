// SPDX-License-Identifier: GPL-2.0-only
/* Names of Xen's domains: a XenStore that answers, has none, or never comes back. */
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "util/xalloc.h"
#include "vm/xen_names.h"

#if HAVE_XEN
static atomic_bool hung;
static atomic_uint opened, closed;

static struct xs_handle *store_open(unsigned long flags)
{
	opened++;
	return (struct xs_handle *)&hung;
}

static struct xs_handle *no_store(unsigned long flags)
{
	return NULL;
}

static void store_close(struct xs_handle *h)
{
	closed++;
}

static void *store_read(struct xs_handle *h, xs_transaction_t t, const char *path, unsigned *len)
{
	while (hung)
		usleep(1000);
	return strcmp(path, "/local/domain/7/name") ? NULL : xstrdup("web1");
}

static const uint32_t domid[] = {7, 8};

static void test_answers(void)
{
	const struct xen_calls call = {
		.store_open = store_open, .store_close = store_close, .store_read = store_read};
	struct vmprof_err err = {0};
	char *name[2];

	CHECK_EQ(xen_names_get(&call, domid, 2, name, 60000, &err), 0);
	CHECK_STR(name[0], "web1");
	CHECK(!name[1]); /* one that has just gone, say */
	CHECK_EQ(err.code, 0);
	CHECK_EQ(opened, closed);
	free(name[0]);
}

static void test_no_store(void)
{
	const struct xen_calls call = {.store_open = no_store};
	struct vmprof_err err = {0};
	char *name[2];

	CHECK_EQ(xen_names_get(&call, domid, 2, name, 60000, &err), 0);
	CHECK(!name[0] && !name[1]);
}

static void test_never_answers(void)
{
	/* The thread that is left behind still uses it. */
	static const struct xen_calls call = {
		.store_open = store_open, .store_close = store_close, .store_read = store_read};
	struct vmprof_err err = {0};
	char *name[2];

	hung = true;
	CHECK_EQ(xen_names_get(&call, domid, 2, name, 50, &err), -ETIMEDOUT);
	CHECK_STR(err.msg, "XenStore has not answered for 0.05 s, so that the names of domains are "
			   "not known: does xenstored run?");
	CHECK(!name[0] && !name[1]);
	hung = false; /* what comes then is nobody's, and freed */
	while (closed != opened)
		usleep(1000);
}
#endif

int main(void)
{
#if HAVE_XEN
	test_answers();
	test_no_store();
	test_never_answers();
#else
	test_skip("vmprof was built without libxen-dev");
#endif
	return test_done();
}
