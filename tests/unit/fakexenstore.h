// SPDX-License-Identifier: GPL-2.0-only
/*
 * A XenStore of one test: nodes, watches with their events, transactions that fail if the test
 * wants it. A domain writes by guest_write() and guest_rm(), below its own "data" and nowhere else,
 * as xenstored has it.
 */
#ifndef VMPROF_TESTS_UNIT_FAKEXENSTORE_H
#define VMPROF_TESTS_UNIT_FAKEXENSTORE_H

#include <errno.h>
#include <stdbool.h>

#include "tests/unit/test.h"
#include "util/xalloc.h"
#include "vm/xenlib.h"

#define FAKE_NODES   96
#define FAKE_VALUE   4096 /* what xenstored takes of a domain */
#define FAKE_WATCHES 64

struct fake_node {
	char path[96];
	char value[FAKE_VALUE];
	unsigned len;
};

struct fake_tree {
	struct fake_node node[FAKE_NODES];
	unsigned n;
};

struct fake_event {
	char path[96], token[16];
};

static struct {
	struct fake_tree tree, before; /* before: the transaction that is open */
	bool open;
	struct {
		char path[96], token[16];
	} watch[FAKE_WATCHES];
	unsigned nr_watches;
	struct fake_event *event;
	size_t first, end, cap;
	unsigned handles, reads, writes, conflicts; /* conflicts: transactions still to fail */
} store;

static bool is_at_or_below(const char *path, const char *above)
{
	size_t len = strlen(above);

	return !strncmp(path, above, len) && (!path[len] || path[len] == '/');
}

static void fire(const char *path, const char *token)
{
	store.event = xgrow(store.event, &store.cap, store.end + 1, sizeof(*store.event));
	snprintf(store.event[store.end].path, sizeof(store.event->path), "%s", path);
	snprintf(store.event[store.end++].token, sizeof(store.event->token), "%s", token);
}

static void changed(const char *path)
{
	for (unsigned i = 0; i < store.nr_watches; i++)
		if (is_at_or_below(path, store.watch[i].path))
			fire(path, store.watch[i].token);
}

static struct fake_node *node_at(const char *path)
{
	for (unsigned i = 0; i < store.tree.n; i++)
		if (!strcmp(store.tree.node[i].path, path))
			return &store.tree.node[i];
	return NULL;
}

static void put_node(const char *path, const void *value, unsigned len)
{
	struct fake_node *node = node_at(path);

	if (!node) {
		CHECK(store.tree.n < FAKE_NODES && len <= FAKE_VALUE);
		node = &store.tree.node[store.tree.n++];
		snprintf(node->path, sizeof(node->path), "%s", path);
	}
	memcpy(node->value, value, len);
	node->len = len;
	changed(path);
}

static bool take_node(const char *path)
{
	bool any = false;

	for (unsigned i = store.tree.n; i-- > 0;)
		if (is_at_or_below(store.tree.node[i].path, path)) {
			store.tree.node[i] = store.tree.node[--store.tree.n];
			any = true;
		}
	if (any)
		changed(path);
	else
		errno = ENOENT;
	return any;
}

/* ---------- what the library has ---------- */

static struct xs_handle *fake_store_open(unsigned long flags)
{
	store.handles++;
	return (struct xs_handle *)&store;
}

static void fake_store_close(struct xs_handle *h)
{
	store.handles--;
}

static void *fake_store_read(struct xs_handle *h, xs_transaction_t t, const char *path,
			     unsigned *len)
{
	const struct fake_node *node = node_at(path);
	char *value;

	store.reads++;
	if (!node) {
		errno = ENOENT;
		return NULL;
	}
	value = xmalloc(node->len + 1);
	memcpy(value, node->value, node->len);
	value[node->len] = 0;
	*len = node->len;
	return value;
}

static bool fake_store_write(struct xs_handle *h, xs_transaction_t t, const char *path,
			     const void *value, unsigned len)
{
	char above[96];

	CHECK(t);
	store.writes++;
	snprintf(above, sizeof(above), "%s", path);
	for (char *s = strrchr(above, '/'); s != above; s = strrchr(above, '/')) {
		*s = 0;
		if (!node_at(above))
			put_node(above, "", 0);
	}
	put_node(path, value, len);
	return true;
}

static bool fake_store_rm(struct xs_handle *h, xs_transaction_t t, const char *path)
{
	CHECK(t);
	return take_node(path);
}

static bool fake_store_watch(struct xs_handle *h, const char *path, const char *token)
{
	unsigned i = store.nr_watches++;

	CHECK(i < FAKE_WATCHES);
	snprintf(store.watch[i].path, sizeof(store.watch[i].path), "%s", path);
	snprintf(store.watch[i].token, sizeof(store.watch[i].token), "%s", token);
	fire(path, token);
	return true;
}

static bool fake_store_unwatch(struct xs_handle *h, const char *path, const char *token)
{
	for (unsigned i = 0; i < store.nr_watches; i++)
		if (!strcmp(store.watch[i].path, path) && !strcmp(store.watch[i].token, token)) {
			store.watch[i] = store.watch[--store.nr_watches];
			return true;
		}
	errno = ENOENT;
	return false;
}

static char **fake_check_watch(struct xs_handle *h)
{
	const struct fake_event *e;
	char **both;

	if (store.first == store.end) {
		store.first = store.end = 0;
		errno = EAGAIN;
		return NULL;
	}
	e = &store.event[store.first++];
	both = xmalloc(2 * sizeof(*both) + sizeof(*e));
	memcpy(both + 2, e, sizeof(*e));
	both[XS_WATCH_PATH] = ((struct fake_event *)(both + 2))->path;
	both[XS_WATCH_TOKEN] = ((struct fake_event *)(both + 2))->token;
	return both;
}

static int fake_fileno(struct xs_handle *h)
{
	return -1;
}

static xs_transaction_t fake_transaction_start(struct xs_handle *h)
{
	CHECK(!store.open);
	store.open = true;
	store.before = store.tree;
	return 1;
}

static bool fake_transaction_end(struct xs_handle *h, xs_transaction_t t, bool abandon)
{
	CHECK(store.open);
	store.open = false;
	if (abandon || store.conflicts)
		store.tree = store.before;
	if (abandon || !store.conflicts)
		return true;
	store.conflicts--;
	errno = EAGAIN;
	return false;
}

static const struct xen_calls fake_xenstore = {
	.store_open = fake_store_open,
	.store_close = fake_store_close,
	.store_read = fake_store_read,
	.store_write = fake_store_write,
	.store_rm = fake_store_rm,
	.store_watch = fake_store_watch,
	.store_unwatch = fake_store_unwatch,
	.store_check_watch = fake_check_watch,
	.store_fileno = fake_fileno,
	.transaction_start = fake_transaction_start,
	.transaction_end = fake_transaction_end,
};

/* ---------- what toolstack and domains do ---------- */

static void new_store(void)
{
	free(store.event);
	memset(&store, 0, sizeof(store));
}

static void make_domain(uint32_t domid)
{
	char path[96];

	snprintf(path, sizeof(path), "/local/domain/%u", domid);
	put_node(path, "", 0);
	snprintf(path, sizeof(path), "/local/domain/%u/data", domid);
	put_node(path, "", 0);
	fire("@introduceDomain", "domains");
}

static void end_domain(uint32_t domid)
{
	char path[96];

	snprintf(path, sizeof(path), "/local/domain/%u", domid);
	take_node(path);
	fire("@releaseDomain", "domains");
}

static void guest_write_bytes(uint32_t domid, const char *below, const void *value, unsigned len)
{
	char path[96];

	snprintf(path, sizeof(path), "/local/domain/%u/data/%s", domid, below);
	put_node(path, value, len);
}

static void guest_write(uint32_t domid, const char *value)
{
	guest_write_bytes(domid, "vmprof/request", value, (unsigned)strlen(value));
}

static void guest_rm(uint32_t domid)
{
	char path[96];

	snprintf(path, sizeof(path), "/local/domain/%u/data/vmprof/request", domid);
	take_node(path);
}

/* What the domain reads of its state; "": nothing. Until the next call. */
static const char *state_of(uint32_t domid)
{
	static char text[FAKE_VALUE + 1];
	const struct fake_node *node;
	char path[96];

	snprintf(path, sizeof(path), "/local/domain/%u/vmprof/state", domid);
	node = node_at(path);
	snprintf(text, sizeof(text), "%.*s", node ? (int)node->len : 0, node ? node->value : "");
	return text;
}

#endif
