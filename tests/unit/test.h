// SPDX-License-Identifier: GPL-2.0-only
/*
 * A unit test is one program: it opens with what it checks, calls CHECK() and ends with
 * "return test_done();". Exit status 0 passed, 1 failed, 77 skipped (test_skip prints why).
 */
#ifndef VMPROF_TESTS_UNIT_TEST_H
#define VMPROF_TESTS_UNIT_TEST_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int test_failures;

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #cond);   \
			test_failures++;                                                           \
		}                                                                                  \
	} while (0)

#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		uint64_t a_ = (uint64_t)(a), b_ = (uint64_t)(b);                                   \
		if (a_ != b_) {                                                                    \
			fprintf(stderr, "%s:%d: %s is %#" PRIx64 ", expected %s = %#" PRIx64 "\n", \
				__FILE__, __LINE__, #a, a_, #b, b_);                               \
			test_failures++;                                                           \
		}                                                                                  \
	} while (0)

#define CHECK_STR(a, b)                                                                            \
	do {                                                                                       \
		const char *a_ = (a), *b_ = (b);                                                   \
		if (!a_ || !b_ || strcmp(a_, b_)) {                                                \
			fprintf(stderr, "%s:%d: %s is \"%s\", expected \"%s\"\n", __FILE__,        \
				__LINE__, #a, a_ ? a_ : "(null)", b_ ? b_ : "(null)");             \
			test_failures++;                                                           \
		}                                                                                  \
	} while (0)

static inline int test_done(void)
{
	return test_failures ? 1 : 0;
}

__attribute__((noreturn)) static inline void test_skip(const char *why)
{
	printf("SKIP: %s\n", why);
	exit(77);
}

#endif
