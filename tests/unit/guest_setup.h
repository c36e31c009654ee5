// SPDX-License-Identifier: GPL-2.0-only
/*
 * A made-up guest and the kernel that was found in it.
 */
#ifndef VMPROF_TESTS_UNIT_GUEST_SETUP_H
#define VMPROF_TESTS_UNIT_GUEST_SETUP_H

#include "guest/kernel.h"
#include "tests/unit/fakeguest.h"
#include "tests/unit/test.h"
#include "util/clock.h"

struct setup {
	struct fakeguest g;
	struct guest_virt *v;
	struct guest_kernel *k;
	struct vmprof_err err;
};

FG_FUNC int find(struct setup *s)
{
	return guest_kernel_find(&s->k, &s->g.fm.mem, s->v, &s->g.regs, &s->err);
}

FG_FUNC void build(struct setup *s, const struct fg_options *opt)
{
	memset(s, 0, sizeof(*s));
	fakeguest_init(&s->g, opt);
	fakeguest_finish(&s->g);
	s->v = guest_virt_new(&s->g.fm.mem, GUEST_ARCH_X86_64);
}

FG_FUNC void setup(struct setup *s, const struct fg_options *opt)
{
	build(s, opt);
	if (find(s)) {
		fprintf(stderr, "not found: %s\n", s->err.msg);
		exit(1);
	}
}

FG_FUNC void teardown(struct setup *s)
{
	guest_kernel_free(s->k);
	guest_virt_free(s->v);
	fakeguest_free(&s->g);
}

FG_FUNC int count_symbols(void *ctx, const struct guest_symbol *sym)
{
	size_t *n = ctx;

	(*n)++;
	CHECK(sym->name && sym->addr);
	return 0;
}

FG_FUNC void check_module(const struct guest_module *m)
{
	CHECK(m);
	if (!m)
		return;
	CHECK_STR(m->name, "fake_mod");
	CHECK_EQ(m->text, FG_MODULE);
	CHECK_EQ(m->text_len, FG_PAGE);
	CHECK_EQ(m->build_id_len, 20);
	CHECK_EQ(m->build_id[0], 0xbb);
	CHECK_EQ(m->num_orcs, 2);
	CHECK(m->orc_ip && m->orc == m->orc_ip + 16);
}

#endif
