// SPDX-License-Identifier: GPL-2.0-only
#include "report/tracepoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/rawtext.h"
#include "report/script_text.h"
#if HAVE_LIBTRACEEVENT
#include "report/tracepoint_check.h"
#endif
#include "util/hashmap.h"
#include "util/text.h"
#include "util/xalloc.h"

enum why { WHY_NONE, WHY_NO_LIBRARY, WHY_NO_FORMAT, WHY_BAD_FORMAT, WHY_BAD_RECORD };

static const struct {
	const char *mark, *sentence;
} whys[] = {
	[WHY_NONE] = {"", NULL},
	[WHY_NO_LIBRARY] = {"[no libtraceevent]",
			    "tracepoints are printed as bytes: vmprof was built without "
			    "libtraceevent (install libtraceevent-dev and build it again)"},
	[WHY_NO_FORMAT] = {"[no format]",
			   "tracepoints are printed as bytes: the file does not say "
			   "what is in them (it was recorded with perf inject, or its "
			   "trace data are damaged)"},
	[WHY_BAD_FORMAT] = {"[bad format]", "tracepoints are printed as bytes: the file's format "
					    "of them makes no sense or cannot be trusted"},
	[WHY_BAD_RECORD] = {"[bad record]", "samples of tracepoints are printed as bytes: they do "
					    "not fit to the file's format of them"},
};

struct tracepoints {
	const struct perfdata_reader *reader;
	struct session *session;
	struct hashmap points; /* struct point by id */
	uint8_t *room;	       /* a copy of a record with zeros behind it */
	uint32_t used;	       /* bytes of it that are not zero */
	struct rawtext known;  /* what libtraceevent has said before */
	bool asked;	       /* this text depends on the session, too */
	struct buf text;
	enum why why; /* the first thing that went wrong */
#if HAVE_LIBTRACEEVENT
	struct trace_seq seq;
#endif
};

static void put_bytes(const uint8_t *p, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		text_char(out, ' ');
		text_number(out, p[i], 16, '0', 2);
	}
}

#if HAVE_LIBTRACEEVENT
#define PRINTK_MAX 65536u

struct point {
	struct tep_handle *tep;
	const struct tep_event *event; /* NULL: it cannot be used */
	struct tracepoint_check check;
	enum why why;
};

/* The kernel's function at *addr, and where that begins, for libtraceevent. */
static char *resolve(void *ctx, unsigned long long *addr, char **module)
{
	struct tracepoints *t = ctx;
	const struct perfdata_record kernel = {.cpumode = PERF_RECORD_MISC_KERNEL, .vcpu = -1};
	struct location loc;

	t->asked = true;
	session_resolve(t->session, session_thread(t->session, &kernel), PERF_RECORD_MISC_KERNEL,
			*addr, &loc);
	if (!loc.sym)
		return NULL;
	*module = NULL;
	*addr -= loc.offset;
	return (char *)session_symbol_name(t->session, loc.sym);
}

/* Lines of an address, a colon, a blank and a string in quotes. */
static void add_printk(struct tep_handle *tep, const struct perfdata_tracing *tracing)
{
	char *copy = xstrndup(tracing->printk ? tracing->printk : "", tracing->printk_size);
	char *rest = copy, *line, *text;
	unsigned n = 0;

	while ((line = strsep(&rest, "\n")) && n++ < PRINTK_MAX) {
		text = strchr(line, ':');
		if (text && text[1])
			tep_register_print_string(tep, text + 2, strtoull(line, NULL, 16));
	}
	free(copy);
}

/* A handle of its own for each format: a record cannot pretend to be another's. */
static struct tep_handle *new_handle(struct tracepoints *t)
{
	const struct perfdata_tracing *tracing = perfdata_reader_tracing(t->reader);
	struct tep_handle *tep = tep_alloc();

	if (!tep)
		return NULL;
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_flag(tep, TEP_NSEC_OUTPUT);
	tep_set_file_bigendian(tep, tracing->big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_local_bigendian(tep, tep_is_bigendian() ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_long_size(tep, (int)tracing->long_size);
	tep_set_page_size(tep, (int)tracing->page_size);
	tep_set_function_resolver(tep, resolve, t);
	add_printk(tep, tracing);
	return tep;
}

static bool parse(struct point *p, const struct perfdata_tracepoint *format)
{
	struct tep_event *event = NULL;

	tep_parse_format(p->tep, &event, format->format, format->size, format->system);
	if (!event || !tracepoint_event_ok(&p->check, event))
		return false;
	p->event = event;
	return true;
}

/*
 * A parser that has survived a format once will do so again: a child tries. Even of texts that look
 * like a kernel's there are some that kill libtraceevent's (a % 0 as an array's index), or that it
 * does not come back from.
 */
static bool parser_survives(struct point *p, const struct perfdata_tracepoint *format)
{
	const struct rlimit second = {1, 1}, none = {0, 0};
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		setrlimit(RLIMIT_CPU, &second);
		setrlimit(RLIMIT_CORE, &none);
		close(STDERR_FILENO);
		_exit(parse(p, format) ? 0 : 1);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

static enum why load(struct tracepoints *t, struct point *p,
		     const struct perfdata_tracepoint *format)
{
	const struct perfdata_tracing *tracing = perfdata_reader_tracing(t->reader);

	if (!format)
		return WHY_NO_FORMAT;
	if ((tracing->long_size != 4 && tracing->long_size != 8) ||
	    !tracepoint_format_ok(format->format, format->size))
		return WHY_BAD_FORMAT;
	p->tep = new_handle(t);
	return p->tep && parser_survives(p, format) && parse(p, format) ? WHY_NONE : WHY_BAD_FORMAT;
}

static void point_free(struct point *p)
{
	if (p->tep)
		tep_free(p->tep);
	free(p);
}

static struct point *find_point(struct tracepoints *t, uint64_t id)
{
	struct point *p = hashmap_get(&t->points, id);

	if (p)
		return p;
	p = xcalloc(1, sizeof(*p));
	p->why = load(t, p, perfdata_reader_tracepoint(t->reader, id));
	hashmap_set(&t->points, id, p);
	return p;
}

static void start(struct tracepoints *t)
{
	trace_seq_init(&t->seq);
	t->room = xcalloc(1, TRACEPOINT_ROOM);
}

static void stop(struct tracepoints *t)
{
	trace_seq_destroy(&t->seq);
}

static void set_room(struct tracepoints *t, const struct perfdata_record *rec)
{
	uint32_t size = rec->raw_size;

	memcpy(t->room, rec->raw, size);
	if (size < t->used)
		memset(t->room + size, 0, t->used - size);
	t->used = size;
}

static bool plain(const char *s, size_t n)
{
	bool good = true;

	for (size_t i = 0; i < n; i++)
		good &= s[i] >= ' ' && s[i] <= '~';
	return good;
}

static void put_escaped(struct tracepoints *t, const char *s, size_t n, struct buf *out)
{
	char *text;

	if (plain(s, n)) {
		text_bytes(out, s, n);
		return;
	}
	buf_reset(&t->text);
	text = buf_grow(&t->text, 4 * n + 1);
	text_str(out, escape_str(text, 4 * n + 1, s));
}

static enum why put(struct tracepoints *t, const struct perfdata_record *rec, struct buf *out)
{
	struct point *p = find_point(t, rec->evsel->attr.config);
	struct tep_record record = {.cpu = (int)rec->cpu,
				    .size = (int)rec->raw_size,
				    .record_size = (int)rec->raw_size};
	struct trace_seq *s = &t->seq;

	if (!p->event)
		return p->why;
	if (rec->raw_size > TRACEPOINT_RECORD_MAX)
		return WHY_BAD_RECORD;
	set_room(t, rec);
	record.data = t->room;
	if (!tracepoint_record_ok(&p->check, t->room, rec->raw_size) ||
	    tep_find_event_by_record(p->tep, &record) != p->event)
		return WHY_BAD_RECORD;
	trace_seq_reset(s);
	tep_print_event(p->tep, s, &record, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(s);
	if (s->state != TRACE_SEQ__GOOD)
		return WHY_BAD_RECORD;
	put_escaped(t, s->buffer, s->len, out);
	return WHY_NONE;
}
#else
struct point {
	char nothing;
};

static void start(struct tracepoints *t)
{
}

static void stop(struct tracepoints *t)
{
}

static void point_free(struct point *p)
{
	free(p);
}

static enum why put(struct tracepoints *t, const struct perfdata_record *rec, struct buf *out)
{
	return WHY_NO_LIBRARY;
}
#endif

struct tracepoints *tracepoints_new(const struct perfdata_reader *r, struct session *session)
{
	struct tracepoints *t = xcalloc(1, sizeof(*t));

	t->reader = r;
	t->session = session;
	start(t);
	return t;
}

void tracepoints_free(struct tracepoints *t)
{
	struct point *p;

	if (!t)
		return;
	for (size_t i = 0; (p = hashmap_next(&t->points, &i, NULL));)
		point_free(p);
	hashmap_free(&t->points);
	stop(t);
	rawtext_free(&t->known);
	buf_free(&t->text);
	free(t->room);
	free(t);
}

void tracepoints_put(struct tracepoints *t, const struct perfdata_record *rec, struct buf *out)
{
	uint64_t event = rec->evsel->attr.config;
	size_t start = out->len;
	enum why why;

	if (!rec->raw || !rec->raw_size ||
	    rawtext_get(&t->known, event, rec->raw, rec->raw_size, out))
		return;
	t->asked = false;
	why = put(t, rec, out);
	if (why == WHY_NONE && !t->asked)
		rawtext_put(&t->known, event, rec->raw, rec->raw_size, out->data + start,
			    out->len - start);
	if (why == WHY_NONE)
		return;
	if (t->why == WHY_NONE)
		t->why = why;
	text_str(out, whys[why].mark);
	put_bytes(rec->raw, rec->raw_size, out);
}

const char *tracepoints_why_bytes(const struct tracepoints *t)
{
	return whys[t->why].sentence;
}
