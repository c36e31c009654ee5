// SPDX-License-Identifier: GPL-2.0-only
/*
 * The one error convention: a function that can fail returns 0 or -errno and, where the fact is
 * known (file, offset, VM, address, errno text), puts the sentence for the user into a struct
 * vmprof_err. The sentence is printed once, by the command. It carries no "vmprof:" prefix, no
 * trailing newline, and ends with what to do about it where there is something to do.
 */
#ifndef VMPROF_UTIL_ERR_H
#define VMPROF_UTIL_ERR_H

struct vmprof_err {
	int code; /* positive errno, 0 while nothing failed */
	char msg[1024];
};

/**
 * err_set - remember why something failed
 * @err:  may be NULL (the sentence is then lost, the code is still returned)
 * @code: errno, either sign
 *
 * Returns -|code|, so that "return err_set(err, ENOENT, ...)" works. Text that came from a guest or
 * a file must be passed through escape_str() first.
 */
int err_set(struct vmprof_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * err_sys - the same with ": <text of code>" put behind the sentence
 */
int err_sys(struct vmprof_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * err_prefix - put "<prefix>: " before the sentence that is there; returns -err->code
 */
int err_prefix(struct vmprof_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
