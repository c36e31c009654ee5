// SPDX-License-Identifier: GPL-2.0-only
/*
 * Debug files from servers. libdebuginfod is opened when it is first needed and not linked: it
 * brings a dozen libraries, and most runs ask no server.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbolize/session.h"
#include "util/text.h"
#include "util/xalloc.h"

struct debuginfod {
	void *library, *client; /* NULL: not to be had */
	void *(*begin)(void);
	void (*end)(void *client);
	/* a hexadecimal string, if the length is 0 */
	int (*find)(void *client, const unsigned char *id, int len, char **path);
};

static void *function(struct debuginfod *d, const char *name)
{
	return d->library ? dlsym(d->library, name) : NULL;
}

static struct debuginfod *start(void)
{
	struct debuginfod *d = xcalloc(1, sizeof(*d));

	d->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	*(void **)&d->begin = function(d, "debuginfod_begin");
	*(void **)&d->end = function(d, "debuginfod_end");
	*(void **)&d->find = function(d, "debuginfod_find_debuginfo");
	if (d->begin && d->end && d->find)
		d->client = d->begin();
	return d;
}

int debuginfod_open(struct session *s, const uint8_t *id, uint32_t len, char **path)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	char hex[41];

	*path = NULL;
	if (!urls || !*urls || len < 2 || len > 20)
		return -1;
	if (!s->debuginfod)
		s->debuginfod = start();
	if (!s->debuginfod->client)
		return -1;
	hex_str(hex, id, len);
	return s->debuginfod->find(s->debuginfod->client, (const unsigned char *)hex, 0, path);
}

void debuginfod_close(struct debuginfod *d)
{
	if (!d)
		return;
	if (d->client)
		d->end(d->client);
	if (d->library)
		dlclose(d->library);
	free(d);
}
