// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a tracepoint's record says: as libtraceevent prints it, and as bytes where its format or the
 * record would have libtraceevent divide by zero, read what is not there, or crash in its parser.
 */
#include <unistd.h>

#include "report/script.h"
#include "test.h"
#include "tracepoint_make.h"

#define HEAD                                                                                       \
	"name: made\nID: 42\nformat:\n"                                                            \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define NUMBER "\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n"
#define NAME   "\tfield:char name[8];\toffset:12;\tsize:8;\tsigned:0;\n"
#define LOC    "\tfield:__data_loc char[] text;\toffset:20;\tsize:4;\tsigned:0;\n"
#define PRINT  "\nprint fmt: "

/* 28 bytes of fields, then eight of text. */
struct record {
	uint32_t type, pid, n;
	char name[8];
	uint32_t loc;
	char text[8];
};

static const struct record good = {42, 1, 7, "abc", 24 | 4u << 16, "xyz"};

static char *print(const char *format, const struct record *record, size_t size)
{
	struct script_options opt = {.max_stack = 127};
	char path[] = "/tmp/vmprof-tracepoint.XXXXXX", *text = NULL;
	int fd = mkstemp(path);
	struct session *session = session_new(NULL);
	struct perfdata_reader *r;
	struct vmprof_err err;
	struct buf b = {0};
	struct script *s;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	tracepoint_start(&b, format, strlen(format));
	for (int i = 0; i < 2; i++)
		tracepoint_sample(&b, record, (uint32_t)size);
	CHECK_EQ(write(fd, b.data, b.len), (ssize_t)b.len);
	close(fd);
	script_fields_init(&opt.fields);
	CHECK_EQ(script_fields_parse(&opt.fields, "event,trace", &err), 0);
	CHECK_EQ(perfdata_reader_open(&r, path, &err), 0);
	CHECK_EQ(script_new(&s, session, r, &opt, f, &err), 0);
	CHECK_EQ(perfdata_reader_run(r, script_record, s, &err), 0);
	CHECK_EQ(!script_note(s), !strstr(format, "fmt: \"bad"));
	script_flush(s);
	script_free(s);
	perfdata_reader_close(r);
	session_free(session);
	fclose(f);
	unlink(path);
	buf_free(&b);
	return text;
}

static void expect(int line, const char *format, const struct record *record, const char *want)
{
	char *got = print(format, record, sizeof(*record)), *at = strstr(got, ": ");
	size_t half = strlen(got) / 2;

	/* a record that was there before says the same */
	CHECK(!strncmp(got, got + half, half) && !got[2 * half]);
	if (!at || strncmp(at + 2, want, strlen(want))) {
		fprintf(stderr, "%s:%d: %s is\n%sexpected\n%s\n", __FILE__, line, format, got,
			want);
		test_failures++;
	}
	free(got);
}
#define EXPECT(format, record, want) expect(__LINE__, format, record, want)

static void test_good(void)
{
	EXPECT(HEAD NUMBER NAME LOC PRINT "\"n=%d name=%s %s\", REC->n, REC->name, __get_str(text)",
	       &good, "n=7 name=abc xyz\n");
	EXPECT(HEAD NUMBER NAME LOC PRINT "\"%d %d\", 100 / REC->n, REC->n ? 7 % REC->n : 0", &good,
	       "14 0\n");
	EXPECT(HEAD NUMBER NAME LOC PRINT "\"%.*s|\", REC->n, REC->name", &good, "abc|\n");
	EXPECT(HEAD NUMBER NAME LOC PRINT
	       "\"%s\", __print_hex(__get_dynamic_array(text), __get_dynamic_array_len(text))",
	       &good, "78 79 7a 00\n");
}

static void test_hostile_records(void)
{
	struct record r = good;

	r.n = 0;
	EXPECT(HEAD NUMBER PRINT "\"bad %d\", 100 / REC->n", &r, "[bad record] 2a 00 00 00 01");
	EXPECT(HEAD NUMBER PRINT "\"%d\", REC->n ? 7 % REC->n : 3", &r, "3\n");
	r.n = 0x7fffffff;
	EXPECT(HEAD NUMBER NAME PRINT "\"bad %d\", REC->name[REC->n]", &r, "[bad record]");
	EXPECT(HEAD NUMBER NAME PRINT "\"bad %*d\", REC->n, 1", &r, "[bad record]");
	EXPECT(HEAD NUMBER LOC PRINT
	       "\"bad %s\", __print_array(__get_dynamic_array(text), REC->n, 8)",
	       &r, "[bad record]");
	r = good;
	r.loc = 30 | 100u << 16;
	EXPECT(HEAD LOC PRINT "\"bad %s\", __get_str(text)", &r, "[bad record]");
	r = good;
	r.type = 43;
	EXPECT(HEAD NUMBER PRINT "\"bad %d\", REC->n", &r, "[bad record] 2b");
	r = good;
	memcpy(r.name, "\033[31m\xff\n", 8);
	EXPECT(HEAD NAME PRINT "\"%s\", REC->name", &r, "\\x1b[31m\\xff\\x0a\n");
}

static void test_hostile_formats(void)
{
	char deep[8192] = HEAD NUMBER PRINT "\"bad %d\", ";

	EXPECT(HEAD "\tfield:int far;\toffset:70000;\tsize:4;\tsigned:1;\n" PRINT
		    "\"bad %d\", REC->far",
	       &good, "[bad format]");
	EXPECT(HEAD "\tfield:int end;\toffset:60;\tsize:4;\tsigned:1;\n" PRINT
		    "\"bad %d\", REC->end",
	       &good, "[bad record]");
	EXPECT(HEAD NUMBER PRINT "\"bad %999999d\", REC->n", &good, "[bad format]");
	EXPECT(HEAD NAME PRINT "\"bad %d\", R%C->name", &good,
	       "[bad format]"); /* kills the parser */
	EXPECT(HEAD PRINT "\"bad %d\", )(", &good, "[bad format]");
	EXPECT("ID: 42\nname: made\nno more" PRINT "\"bad\"", &good, "[bad format]");
	for (int i = 0; i < 3000; i++)
		strcat(deep, "(");
	EXPECT(deep, &good, "[bad format]");
	strcpy(deep, HEAD NUMBER PRINT "\"bad %d\", 1");
	for (int i = 0; i < 2000; i++)
		strcat(deep, "+1");
	EXPECT(deep, &good, "[bad format]");
}

int main(void)
{
	if (!HAVE_LIBTRACEEVENT)
		test_skip("built without libtraceevent");
	test_good();
	test_hostile_records();
	test_hostile_formats();
	return test_done();
}
