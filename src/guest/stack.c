// SPDX-License-Identifier: GPL-2.0-only
#include "guest/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guest/arm64_code.h"
#include "util/xalloc.h"

enum { PAGE = 4096, PIECES = 4, LINE = 64, LINES = 4096 };

void guest_stack_init(struct guest_stack *s, struct guest_virt *v, struct guest_as as)
{
	s->virt = v;
	s->gone = s->given_only = false;
	s->nr_given = 0;
	guest_stack_switch(s, as);
}

void guest_stack_give(struct guest_stack *s, const struct raw_memory *given, uint32_t n,
		      uint64_t root)
{
	s->given = given;
	s->nr_given = n;
	s->given_root = root;
}

void guest_stack_switch(struct guest_stack *s, struct guest_as as)
{
	s->as = as;
	s->n = s->next = 0;
	s->live_at = UINT64_MAX;
}

void guest_stack_load(struct guest_stack *s, uint64_t sp)
{
	struct guest_stack_piece *p = &s->piece[s->next];
	uint32_t len;
	int rc;

	if (sp & 7)
		return;
	if (sp & (PAGE - 1) & ~15ull) /* two words below, if they are of the same page */
		sp -= 16;
	len = PAGE - (sp & (PAGE - 1)); /* the next page may not be there */
	len = len < sizeof(p->word) ? len : sizeof(p->word);
	rc = guest_virt_read(s->virt, s->as, sp, p->word, len);
	s->gone |= rc == -ESRCH;
	p->va = sp;
	p->len = rc ? 0 : len;
	s->next = (s->next + 1) % PIECES;
	s->n += s->n < PIECES;
}

int guest_stack_word(struct guest_stack *s, uint64_t va, uint64_t *word)
{
	if (va & 7)
		return -EFAULT;
	/* All address spaces have the upper half in common. */
	for (uint32_t i = 0; i < s->nr_given && (va >> 63 || s->as.root == s->given_root); i++) {
		const struct raw_memory *m = &s->given[i];

		if (va - m->addr < m->len) {
			*word = m->word[(va - m->addr) / 8];
			return 0;
		}
	}
	if (s->given_only)
		return -EFAULT;
	s->live_at = va < s->live_at ? va : s->live_at;
	for (int tries = 0; tries < 2; tries++) {
		for (int i = 0; i < s->n; i++) {
			const struct guest_stack_piece *p = &s->piece[i];

			if (va - p->va < p->len) {
				*word = p->word[(va - p->va) / 8];
				return 0;
			}
		}
		if (!tries)
			guest_stack_load(s, va);
	}
	return -EFAULT;
}

struct line {
	uint64_t number, root;
	uint32_t generation;
	uint8_t byte[LINE];
};

struct guest_code {
	struct guest_virt *virt;
	struct line line[LINES];
};

struct guest_code *guest_code_new(struct guest_virt *v)
{
	struct guest_code *c = xcalloc(1, sizeof(*c));

	c->virt = v;
	return c;
}

void guest_code_free(struct guest_code *c)
{
	free(c);
}

void guest_code_flush(struct guest_code *c)
{
	memset(c->line, 0, sizeof(c->line));
}

static const struct line *find_line(struct guest_code *c, struct guest_as as, uint32_t generation,
				    uint64_t number, int *rc)
{
	uint64_t hash = (number ^ (uint64_t)generation << 32) * 0x9e3779b97f4a7c15ull;
	struct line *l = &c->line[hash >> 52 & (LINES - 1)];

	if (l->number == number && l->generation == generation && l->root == as.root)
		return l;
	*rc = guest_virt_read(c->virt, as, number * LINE, l->byte, LINE);
	l->number = *rc ? 0 : number;
	l->generation = generation;
	l->root = as.root;
	return *rc ? NULL : l;
}

int guest_code_read(struct guest_code *c, struct guest_as as, uint32_t generation, uint64_t va,
		    uint8_t *buf, unsigned len)
{
	int rc = 0;

	while (len) {
		unsigned at = va % LINE, n = LINE - at < len ? LINE - at : len;
		const struct line *l = find_line(c, as, generation, va / LINE, &rc);

		if (!l)
			return rc;
		memcpy(buf, l->byte + at, n);
		buf += n;
		va += n;
		len -= n;
	}
	return 0;
}

/* The length of an indirect call (FF /2) that is at @b; 0 if there is none. */
static unsigned indirect_call(const uint8_t *b)
{
	unsigned mod = b[1] >> 6, rm = b[1] & 7, len = 2;

	if (b[0] != 0xff || (b[1] >> 3 & 7) != 2)
		return 0;
	if (mod == 3)
		return len;
	if (rm == 4) { /* a SIB byte; base 5 without a displacement of its own has one of 4 bytes */
		len++;
		if (!mod && (b[2] & 7) == 5)
			len += 4;
	}
	if (!mod && rm == 5)
		len += 4; /* relative to rip */
	return len + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static int call_before_x86(struct guest_code *c, struct guest_as as, uint32_t generation,
			   uint64_t ra, uint64_t *target)
{
	enum { LONGEST = 7 };
	uint8_t b[LONGEST + 1] = {0}; /* one more, so that a SIB byte can be looked at */
	int rc = guest_code_read(c, as, generation, ra - LONGEST, b, LONGEST);
	int32_t rel;

	*target = 0;
	if (rc)
		return rc;
	if (b[LONGEST - 5] == 0xe8) {
		memcpy(&rel, b + LONGEST - 4, 4);
		*target = ra + (uint64_t)(int64_t)rel;
		return 0;
	}
	for (unsigned len = 2; len <= LONGEST; len++)
		if (indirect_call(b + LONGEST - len) == len)
			return 0;
	return -ENOENT;
}

static int call_before_arm64(struct guest_code *c, struct guest_as as, uint32_t generation,
			     uint64_t ra, uint64_t *target)
{
	uint32_t insn;
	int rc;

	*target = 0;
	if (ra & 3)
		return -ENOENT;
	rc = guest_code_read(c, as, generation, ra - 4, (uint8_t *)&insn, sizeof(insn));
	if (rc)
		return rc;
	return arm64_is_call(insn, ra - 4, target) ? 0 : -ENOENT;
}

int guest_code_call_before(struct guest_code *c, struct guest_as as, uint32_t generation,
			   uint64_t ra, uint64_t *target)
{
	if (guest_virt_arch(c->virt) == GUEST_ARCH_AARCH64)
		return call_before_arm64(c, as, generation, ra, target);
	return call_before_x86(c, as, generation, ra, target);
}
