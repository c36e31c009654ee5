// SPDX-License-Identifier: GPL-2.0-only
#include "backend/qmp_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/text.h"
#include "vm/proc.h"

#define DEPTH_MAX     16
#define HANG_UP_MS    300
#define UNIX_LIST_MAX (16u << 20) /* bytes of /proc/net/unix */

/* ---------- bytes ---------- */

static uint64_t deadline_of(int timeout_ms)
{
	return clock_now_ns() + (uint64_t)timeout_ms * 1000000;
}

static int wait_for(int fd, short events, uint64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		uint64_t now = clock_now_ns();
		int n;

		if (now >= deadline)
			return -ETIMEDOUT;
		n = poll(&p, 1, (int)((deadline - now + 999999) / 1000000));
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static bool again(int code)
{
	return code == EAGAIN || code == EWOULDBLOCK || code == EINTR;
}

static int send_all(int fd, const char *text, uint64_t deadline)
{
	size_t len = strlen(text);

	for (size_t at = 0; at < len;) {
		ssize_t n = send(fd, text + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
		int r = n < 0 && again(errno) ? wait_for(fd, POLLOUT, deadline) : 0;

		if (n < 0 && !again(errno))
			return errno == EPIPE ? -ECONNRESET : -errno;
		if (r)
			return r;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int receive(struct qmp_client *c, uint64_t deadline)
{
	for (;;) {
		ssize_t n = recv(c->fd, c->in, sizeof(c->in), MSG_DONTWAIT);
		int r;

		if (n > 0) {
			c->at = 0;
			c->len = (size_t)n;
			return 0;
		}
		if (!n)
			return -ECONNRESET;
		if (!again(errno))
			return -errno;
		r = wait_for(c->fd, POLLIN, deadline);
		if (r)
			return r;
	}
}

/* ---------- JSON ---------- */

/* The next object. What has come of it stays in the tokener if time runs out. */
static int next_object(struct qmp_client *c, uint64_t deadline, struct json_object **out)
{
	for (;;) {
		struct json_object *o;
		int r;

		if (c->at == c->len) {
			/* Also while they come without an end: events, say. */
			r = clock_now_ns() >= deadline ? -ETIMEDOUT : receive(c, deadline);
			if (r)
				return r;
		}
		o = json_tokener_parse_ex(c->tok, c->in + c->at, (int)(c->len - c->at));
		if (!o && json_tokener_get_error(c->tok) == json_tokener_continue) {
			c->bytes += c->len - c->at;
			c->at = c->len;
			if (c->bytes > c->max)
				return -EMSGSIZE;
			continue;
		}
		c->at += json_tokener_get_parse_end(c->tok);
		c->bytes = 0;
		json_tokener_reset(c->tok);
		if (!json_object_is_type(o, json_type_object)) {
			json_object_put(o);
			return -EPROTO;
		}
		*out = o;
		return 0;
	}
}

static int refused(struct json_object *error, struct vmprof_err *err)
{
	struct json_object *desc;
	char text[256] = "no reason is given";

	if (json_object_object_get_ex(error, "desc", &desc) && json_object_get_string(desc))
		escape_str(text, sizeof(text), json_object_get_string(desc));
	return err_set(err, EIO, "QEMU's monitor refuses a command: %s", text);
}

/* Passes events by. Takes the result, or an error, as the answer to what was sent. */
static int reply(struct qmp_client *c, uint64_t deadline, struct json_object **result,
		 struct vmprof_err *err)
{
	for (;;) {
		struct json_object *o, *v;
		int r = next_object(c, deadline, &o);

		if (r)
			return err_sys(err, r, "QEMU's monitor");
		if (json_object_object_get_ex(o, "return", &v)) {
			c->waiting = false;
			*result = json_object_get(v);
			json_object_put(o);
			return 0;
		}
		if (json_object_object_get_ex(o, "error", &v)) {
			c->waiting = false;
			r = refused(v, err);
		} else if (!json_object_object_get_ex(o, "event", &v)) {
			r = err_set(err, EPROTO,
				    "QEMU's monitor sends what is no answer and no event");
		}
		json_object_put(o);
		if (r)
			return r;
	}
}

int qmp_request(struct qmp_client *c, const char *json, int timeout_ms, struct json_object **result,
		struct vmprof_err *err)
{
	uint64_t deadline = deadline_of(timeout_ms);
	int r;

	*result = NULL;
	if (c->waiting) {
		r = reply(c, deadline, result, err);
		json_object_put(*result);
		*result = NULL;
		if (c->waiting)
			return r;
	}
	r = send_all(c->fd, json, deadline);
	if (r) /* half a request cannot be taken back */
		return err_sys(err, r == -ETIMEDOUT ? ECONNRESET : r, "QEMU's monitor");
	c->waiting = true;
	return reply(c, deadline, result, err);
}

/* Until QEMU has hung up as well: the monitor has no room for the next one before. */
static void hang_up(struct qmp_client *c)
{
	uint64_t deadline = deadline_of(HANG_UP_MS);

	if (!shutdown(c->fd, SHUT_WR))
		while (clock_now_ns() < deadline && !receive(c, deadline))
			;
}

void qmp_close(struct qmp_client *c)
{
	if (c->ready)
		hang_up(c);
	c->ready = false;
	if (c->fd >= 0)
		close(c->fd);
	if (c->tok)
		json_tokener_free(c->tok);
	c->fd = -1;
	c->tok = NULL;
}

/* ---------- connecting ---------- */

int qmp_attach(struct qmp_client *c, int fd, size_t max_reply, int timeout_ms,
	       struct vmprof_err *err)
{
	struct json_object *o = NULL, *v;
	int r;

	*c = (struct qmp_client){.fd = fd, .max = max_reply, .tok = json_tokener_new_ex(DEPTH_MAX)};
	r = c->tok ? next_object(c, deadline_of(timeout_ms), &o) : -ENOMEM;
	if (!r && !json_object_object_get_ex(o, "QMP", &v))
		r = -EPROTO;
	json_object_put(o);
	o = NULL;
	if (r == -ETIMEDOUT && !c->bytes)
		r = err_set(err, EBUSY, "it does not greet");
	else if (r)
		err_sys(err, r, "what answers does not speak QMP");
	else
		r = qmp_request(c, "{\"execute\":\"qmp_capabilities\"}\n", timeout_ms, &o, err);
	json_object_put(o);
	c->ready = !r;
	if (r)
		qmp_close(c);
	return r;
}

/* A monitor has one client. The connections of sockets with a path are listed, with their inode. */
static bool has_client(const struct vm *vm)
{
	size_t len;
	char *list = proc_read(vm->pid, "net/unix", UNIX_LIST_MAX, &len), *rest = list, *line;
	bool found = false;

	while (!found && rest && (line = strsep(&rest, "\n"))) {
		unsigned state;
		unsigned long inode;
		int path = 0;

		if (sscanf(line, "%*s %*x %*x %*x %*x %x %lu %n", &state, &inode, &path) == 2 &&
		    path && state == 3 && !strcmp(line + path, vm->qmp_path)) {
			char link[48];

			snprintf(link, sizeof(link), "socket:[%lu]", inode);
			found = proc_has_fd(vm->pid, link) == 1;
		}
	}
	free(list);
	return found;
}

static int busy(struct vmprof_err *err)
{
	return err_set(err, EBUSY,
		       "another program is connected to the VM's QMP socket, which serves one at a "
		       "time: give the VM another one for vmprof, -qmp "
		       "unix:PATH,server=on,wait=off");
}

/* The path is as QEMU sees files. An own view of them is the next best. */
static int open_path(const struct vm *vm)
{
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s/%s", vm->pid,
		 vm->qmp_path[0] == '/' ? "root" : "cwd", vm->qmp_path);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 && errno == EACCES && vm->qmp_path[0] == '/')
		fd = open(vm->qmp_path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A socket whose path is longer than an address may be is had by its descriptor. */
static int connect_path(const struct vm *vm, int path_fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd, r;

	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", path_fd);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

/* Another one may have taken the path since. libvirt makes the socket and passes it to QEMU. */
static bool is_peer(const struct vm *vm, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	       (peer.pid == vm->pid || vm->libvirt);
}

int qmp_connect(struct qmp_client *c, const struct vm *vm, size_t max_reply, int timeout_ms,
		struct vmprof_err *err)
{
	char shown[256];
	struct stat st;
	int fd, path_fd;

	*c = (struct qmp_client){.fd = -1};
	escape_str(shown, sizeof(shown), vm->qmp_path);
	if (has_client(vm))
		return busy(err);
	path_fd = open_path(vm);
	if (path_fd < 0)
		return err_sys(err, path_fd, "cannot open the VM's QMP socket %s", shown);
	if (fstat(path_fd, &st) || !S_ISSOCK(st.st_mode))
		fd = -ENOTSOCK;
	else
		fd = connect_path(vm, path_fd);
	close(path_fd);
	if (fd == -EAGAIN) /* others wait for it already */
		return busy(err);
	if (fd < 0)
		return err_sys(err, fd, "cannot connect to the VM's QMP socket %s", shown);
	if (!is_peer(vm, fd)) {
		close(fd);
		return err_set(err, EPERM, "the QMP socket %s is another process's by now", shown);
	}
	fd = qmp_attach(c, fd, max_reply, timeout_ms, err);
	if (fd == -EBUSY)
		return busy(err);
	return fd ? err_prefix(err, "QMP socket %s", shown) : 0;
}
