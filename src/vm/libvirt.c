// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/xalloc.h"
#include "vm/qemu.h"

#define XML_MAX (8u << 20)

/*
 * Only attributes of three elements are wanted: a scan for tags, that knows comments and quotes but
 * no document structure, finds them in what libvirt writes. The file belongs to root; it is read
 * within its bounds whatever is in it.
 */
struct tag {
	const char *name, *attrs, *end; /* end: behind the last attribute */
	size_t name_len;
};

/* The first start tag at or behind @p; returns where to go on, NULL at the end. */
static const char *next_tag(const char *p, const char *end, struct tag *t)
{
	while ((p = memchr(p, '<', (size_t)(end - p)))) {
		char quote = 0;

		if (end - p > 4 && !memcmp(p, "<!--", 4)) {
			p = memmem(p, (size_t)(end - p), "-->", 3);
			if (!p)
				return NULL;
			continue;
		}
		t->name = ++p;
		while (p < end && (*p != '>' || quote)) {
			if (quote ? *p == quote : *p == '"' || *p == '\'')
				quote = quote ? 0 : *p;
			p++;
		}
		if (p == end)
			return NULL;
		t->end = p;
		t->name_len = 0;
		while (t->name + t->name_len < p && !strchr(" \t\r\n/>", t->name[t->name_len]))
			t->name_len++;
		t->attrs = t->name + t->name_len;
		if (t->name_len)
			return p;
	}
	return NULL;
}

static bool tag_is(const struct tag *t, const char *name)
{
	return t->name_len == strlen(name) && !memcmp(t->name, name, t->name_len);
}

/* Replaces the five named entities in place. */
static char *decode(char *s)
{
	static const struct {
		const char *name;
		char c;
	} entities[] = {
		{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
	char *o = s;

	for (const char *p = s; *p;) {
		size_t n = 1;
		char c = *p;

		for (size_t i = 0; c == '&' && i < sizeof(entities) / sizeof(*entities); i++)
			if (!strncmp(p, entities[i].name, strlen(entities[i].name))) {
				c = entities[i].c;
				n = strlen(entities[i].name);
				break;
			}
		*o++ = c;
		p += n;
	}
	*o = 0;
	return s;
}

/* Value of an attribute, to free; NULL if the tag has none of that name. */
static char *tag_attr(const struct tag *t, const char *name)
{
	const char *p = t->attrs;
	size_t n = strlen(name);

	while (p < t->end) {
		const char *key, *eq, *close;

		p += strspn(p, " \t\r\n/");
		key = p;
		eq = p < t->end ? memchr(p, '=', (size_t)(t->end - p)) : NULL;
		if (!eq || eq + 1 >= t->end || (eq[1] != '"' && eq[1] != '\''))
			return NULL;
		close = memchr(eq + 2, eq[1], (size_t)(t->end - eq - 2));
		if (!close)
			return NULL;
		if ((size_t)(eq - key) == n && !memcmp(key, name, n))
			return decode(xstrndup(eq + 2, (size_t)(close - eq - 2)));
		p = close + 1;
	}
	return NULL;
}

static long tag_number(const struct tag *t, const char *name)
{
	char *s = tag_attr(t, name);
	long v = s ? strtol(s, NULL, 10) : -1;

	free(s);
	return v;
}

static void apply_tag(struct vm *vm, const struct tag *t)
{
	if (tag_is(t, "monitor") && !vm->qmp_path) {
		char *type = tag_attr(t, "type");

		if (type && !strcmp(type, "unix"))
			vm->qmp_path = tag_attr(t, "path");
		free(type);
	} else if (tag_is(t, "vcpu")) {
		long id = tag_number(t, "id"), tid = tag_number(t, "pid");

		if (id < 0 || id >= QEMU_VCPUS_MAX || tid <= 0 || tid > INT32_MAX)
			return;
		if ((uint32_t)id >= vm->nr_vcpus)
			vm_set_nr_vcpus(vm, (uint32_t)id + 1);
		vm->vcpus[id].tid = (pid_t)tid;
	}
}

bool libvirt_apply(struct vm *vm, const char *xml, size_t len)
{
	const char *end = xml + len, *p = xml;
	bool ours = false;
	struct tag t;

	while ((p = next_tag(p, end, &t))) {
		if (tag_is(&t, "domstatus")) {
			ours = tag_number(&t, "pid") == vm->pid;
			if (!ours)
				return false;
			vm->libvirt = true;
		} else if (tag_is(&t, "domain")) {
			break; /* behind is the domain's definition: QEMU's command line has that */
		} else if (ours) {
			apply_tag(vm, &t);
		}
	}
	return ours;
}

static bool apply_file(struct vm *vm, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct buf b = {0};
	struct stat st;
	ssize_t n = -1;
	bool ours;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= XML_MAX) {
		uint8_t *to = buf_grow(&b, (size_t)st.st_size + 1);

		n = read(fd, to, (size_t)st.st_size);
		if (n >= 0)
			to[n] = 0;
	}
	close(fd);
	ours = n > 0 && libvirt_apply(vm, (char *)b.data, (size_t)n);
	buf_free(&b);
	return ours;
}

void libvirt_look_up(struct vm *vm)
{
	char path[512], proc[32];
	struct stat st;

	if (!vm->named || strchr(vm->name, '/') || strlen(vm->name) > 255)
		return;
	snprintf(path, sizeof(path), "/run/libvirt/qemu/%s.xml", vm->name);
	vm->libvirt_state = apply_file(vm, path);
	if (vm->libvirt_state)
		return;
	/* a user's own libvirtd (qemu:///session) */
	snprintf(proc, sizeof(proc), "/proc/%d", vm->pid);
	if (stat(proc, &st))
		return;
	snprintf(path, sizeof(path), "/run/user/%u/libvirt/qemu/run/%s.xml", st.st_uid, vm->name);
	vm->libvirt_state = apply_file(vm, path);
	vm->libvirt_user = st.st_uid;
}
