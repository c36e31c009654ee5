// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tracepoint's format and a record of it, as perf script's lines. The input is the record's
 * length (two bytes), the record, whose first four bytes are the event's id 42, and the format's
 * text. The record is printed as it is, and with each of its bytes changed: to try a format costs a
 * fork.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report/script.h"
#include "tests/unit/tracepoint_make.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libtraceevent forgets memory where a format is wrong; a format is parsed once. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libtraceevent";
}

static void print(const char *path)
{
	struct script_options opt = {.max_stack = 127};
	struct session *session = session_new(NULL);
	FILE *null = fopen("/dev/null", "w");
	struct perfdata_reader *r;
	struct vmprof_err err;
	struct script *s;

	script_fields_init(&opt.fields);
	if (!null || perfdata_reader_open(&r, path, &err))
		abort();
	if (!script_new(&s, session, r, &opt, null, &err)) {
		perfdata_reader_run(r, script_record, s, &err);
		script_flush(s);
		script_free(s);
	}
	perfdata_reader_close(r);
	session_free(session);
	fclose(null);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t record[60000];
	struct buf b = {0};
	char path[64];
	uint16_t n;
	int fd;

	if (size < sizeof(n) || size > 60000)
		return 0;
	memcpy(&n, data, sizeof(n));
	data += sizeof(n);
	size -= sizeof(n);
	n = n < size ? n : (uint16_t)size;
	tracepoint_start(&b, data + n, size - n);
	memcpy(record, data, n);
	tracepoint_sample(&b, record, n);
	for (uint16_t i = 4; i < n && i < 400; i++)
		for (int how = 0; how < 3; how++) {
			record[i] = (uint8_t)(how ? 0u - (unsigned)how / 2 : data[i] ^ 0x80);
			tracepoint_sample(&b, record, n);
			record[i] = data[i];
		}
	fd = memfd_create("tracepoint", MFD_CLOEXEC);
	if (fd < 0 || write(fd, b.data, b.len) != (ssize_t)b.len)
		abort();
	buf_free(&b);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	print(path);
	close(fd);
	return 0;
}
