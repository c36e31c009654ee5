// SPDX-License-Identifier: GPL-2.0-only
/* Escaping of hostile text, durations and sizes, the hash table and interned strings. */
#include <errno.h>

#include "tests/unit/test.h"
#include "util/buf.h"
#include "util/hashmap.h"
#include "util/text.h"

static void test_escape(void)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"nginx", "nginx"},
		{"a\033[2Jb", "a\\x1b[2Jb"},
		{"caf\xc3\xa9", "caf\xc3\xa9"},
		{"\xc2\x9b"
		 "31m",
		 "\\xc2\\x9b31m"},			 /* C1 control as UTF-8 */
		{"\xff\xc0\xaf", "\\xff\\xc0\\xaf"},	 /* invalid, overlong */
		{"x\xe2\x80\xaey", "x\\xe2\\x80\\xaey"}, /* right-to-left override */
		{"cut\xe2\x82", "cut\\xe2\\x82"},
		{"tab\tnl\n", "tab\\x09nl\\x0a"},
	};
	char out[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK_STR(escape_str(out, sizeof(out), cases[i].in), cases[i].out);
	CHECK_STR(escape_str(out, 4, "abcdef"), "abc");
	CHECK_STR(escape_str(out, 4, "ab\033"), "ab"); /* no half of an escape */
}

static void test_markup(void)
{
	char *s = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&s, &n);

	xml_fputs("<script>&\"'\033", f);
	fclose(f);
	CHECK_STR(s, "&lt;script&gt;&amp;&quot;&#39;\xef\xbf\xbd");
	free(s);

	f = open_memstream(&s, &n);
	json_fputs("a\"\\\n\xff", f);
	fclose(f);
	CHECK_STR(s, "a\\\"\\\\\\u000a\xef\xbf\xbd");
	free(s);
}

static void test_names(void)
{
	char out[32];

	CHECK_STR(file_safe_name(out, sizeof(out), "web1"), "web1");
	CHECK_STR(file_safe_name(out, sizeof(out), "../../etc/passwd"), "_._.._etc_passwd");
	CHECK_STR(file_safe_name(out, sizeof(out), ""), "_");
	CHECK_STR(file_safe_name(out, sizeof(out), ".."), "_.");
	CHECK_STR(file_safe_name(out, sizeof(out), "-rf"), "_rf");
	CHECK(text_match("web*", "web1"));
	CHECK(!text_match("web", "web1"));
	CHECK(list_has("a,web1,b", "web1"));
	CHECK(!list_has("a,web1,b", "web"));
	CHECK(!list_has("a,web1,b", "web12"));
	CHECK(list_has("a,b", "a,b") && list_has("a,b", "a") && list_has("a,b", "b"));
	CHECK(list_has("x,a\\,b,y", "a,b"));
	CHECK(!list_has("x,a\\,b,y", "a") && !list_has("x,a\\,b,y", "b") &&
	      !list_has("x,a\\,b", "a\\"));
	CHECK(list_has("x,es\\x1b[m", "es\\x1b[m") && list_has("x,a\\", "a\\"));
	CHECK(list_has("a,", "") && list_has(",a", "") && !list_has("a", ""));
	CHECK(!list_has("", "web"));
}

static void test_numbers(void)
{
	uint64_t v;

	CHECK(!parse_duration("10", &v));
	CHECK_EQ(v, 10000000000ull);
	CHECK(!parse_duration("250ms", &v));
	CHECK_EQ(v, 250000000ull);
	CHECK(!parse_duration("1.5m", &v));
	CHECK_EQ(v, 90000000000ull);
	CHECK_EQ(parse_duration("-1", &v), -EINVAL);
	CHECK_EQ(parse_duration("1e40", &v), -EINVAL);
	CHECK_EQ(parse_duration("ten", &v), -EINVAL);
	CHECK_EQ(parse_duration("10x", &v), -EINVAL);
	CHECK(!parse_size("512", 1 << 20, &v));
	CHECK_EQ(v, 512ull << 20);
	CHECK(!parse_size("6G", 1 << 20, &v));
	CHECK_EQ(v, 6ull << 30);
	CHECK_EQ(parse_size("99999999999999E", 1, &v), -EINVAL);
	CHECK_EQ(parse_size("6GG", 1, &v), -EINVAL);
}

static void test_hashmap(void)
{
	struct hashmap m = {0};
	uint64_t key, sum = 0;
	size_t n = 0;
	void *v;

	for (uintptr_t i = 0; i < 1000; i++)
		hashmap_set(&m, i << 12, (void *)(i + 1));
	for (uintptr_t i = 0; i < 1000; i += 2)
		CHECK_EQ((uintptr_t)hashmap_del(&m, i << 12), i + 1);
	for (uintptr_t i = 0; i < 1000; i++)
		CHECK_EQ((uintptr_t)hashmap_get(&m, i << 12), i & 1 ? i + 1 : 0);
	CHECK(!hashmap_del(&m, 77));
	for (size_t i = 0; (v = hashmap_next(&m, &i, &key)); n++)
		sum += key >> 12;
	CHECK_EQ(n, 500);
	CHECK_EQ(sum, 250000);
	hashmap_free(&m);
	CHECK(!hashmap_get(&m, 1));
}

static void test_strtab(void)
{
	struct strtab *t = strtab_new();
	const char *a = strtab_intern(t, "hot_a");

	CHECK(a == strtab_intern_n(t, "hot_abc", 5));
	CHECK(a != strtab_intern(t, "hot_b"));
	CHECK_STR(a, "hot_a");
	strtab_free(t);
}

static void test_buf(void)
{
	struct buf b = {0};

	/* a command without a name, in the first line of a script */
	CHECK(buf_grow(&b, 0));
	for (unsigned i = 0; i < 1000; i++)
		buf_u64(&b, i);
	CHECK_EQ(b.len, 8000);
	buf_reset(&b);
	buf_printf(&b, "%d-%s", 7, "x");
	CHECK_EQ(b.len, 3);
	buf_u16(&b, 0);
	CHECK_STR((char *)b.data, "7-x");
	buf_free(&b);
}

int main(void)
{
	test_escape();
	test_markup();
	test_names();
	test_numbers();
	test_hashmap();
	test_strtab();
	test_buf();
	return test_done();
}
