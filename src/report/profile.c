// SPDX-License-Identifier: GPL-2.0-only
#include "report/profile.h"

#include <stdlib.h>
#include <string.h>

#include "report/inlines.h"
#include "report/srcline.h"
#include "util/buf.h"
#include "util/text.h"
#include "util/xalloc.h"

#define BY_SOURCE     (PROFILE_BY_SRCLINE | PROFILE_BY_SRCFILE)
#define CONTEXT_WORDS (5 + SAMPLE_VALUES)

void profile_init(struct profile *p, struct session *session, unsigned needs)
{
	*p = (struct profile){
		.session = session,
		.needs = needs,
		.texts = strtab_new(),
		.frame_keys.width = needs & BY_SOURCE ? 4 : 2,
		.context_keys.width = CONTEXT_WORDS,
		.stack_keys.width = 2,
		.vcpu_keys.width = 1,
		.branch_keys.width = 2,
	};
	trie_init(&p->nodes); /* the root is PROFILE_NO_CHAIN */
}

void profile_free(struct profile *p)
{
	struct keyset *sets[] = {&p->frame_keys, &p->context_keys, &p->stack_keys, &p->vcpu_keys,
				 &p->branch_keys};

	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		keyset_free(sets[i]);
	free(p->events);
	free(p->frames);
	free(p->contexts);
	free(p->weights);
	for (int i = 0; i < 2; i++)
		free(p->first_stacks[i].ids);
	trie_free(&p->nodes);
	free(p->dso_texts[0]);
	free(p->dso_texts[1]);
	strtab_free(p->texts);
	*p = (struct profile){0};
}

void profile_set_event(struct profile *p, uint32_t index, const char *name, bool has_chains)
{
	if (index >= p->nr_events) {
		p->events = xreallocarray(p->events, index + 1ull, sizeof(*p->events));
		memset(p->events + p->nr_events, 0,
		       (index + 1ull - p->nr_events) * sizeof(*p->events));
		p->nr_events = index + 1ull;
	}
	p->events[index].name = profile_text(p, name);
	p->events[index].has_chains = has_chains;
}

static enum frame_kind kind_of(char level)
{
	switch (level) {
	case 'k':
		return FRAME_HOST_KERNEL;
	case 'g':
		return FRAME_GUEST_KERNEL;
	case 'u':
		return FRAME_GUEST_USER;
	default:
		return FRAME_HOST_USER;
	}
}

/* The kernel itself, not a module: "[kernel.kallsyms]", "[guest.kernel.kallsyms.1]", "[vm.kernel]"
 */
static bool is_kernel_proper(const struct dso *dso)
{
	return dso->short_name[0] == '[' && strstr(dso->short_name, "kernel");
}

/* As perf shows it: the offset in the file, of the kernel itself where it really is. */
static uint64_t shown_address(const struct location *loc)
{
	return loc->dso && !loc->sym && !is_kernel_proper(loc->dso) ? loc->offset : loc->ip;
}

static uint32_t add_frame(struct profile *p, const struct location *loc, const char *srcline,
			  const char *srcfile)
{
	/* An address is told from a symbol by the level, which is no byte of a pointer to a dso. */
	uint64_t key[4] = {(uintptr_t)loc->dso, (uintptr_t)loc->sym, (uintptr_t)srcline,
			   (uintptr_t)srcfile};
	bool added;
	uint32_t id;

	if (!loc->sym) {
		key[0] ^= (uint64_t)(uint8_t)loc->level << 56;
		key[1] = loc->ip;
	}
	id = keyset_add(&p->frame_keys, key, &added);
	if (added) {
		p->frames = xgrow(p->frames, &p->frames_cap, id + 1ull, sizeof(*p->frames));
		p->frames[id] = (struct frame){
			.dso = loc->dso,
			.sym = loc->sym,
			.ip = loc->ip,
			.addr = shown_address(loc),
			.srcline = srcline,
			.srcfile = srcfile,
			.function = id,
			.kind = kind_of(loc->level),
			.level = loc->level,
		};
	}
	return id;
}

uint32_t profile_frame_at(struct profile *p, const struct location *loc,
			  const struct source_frame *source)
{
	const char *line = NULL, *file = NULL;
	uint32_t function, id;

	if (p->needs & PROFILE_BY_SRCLINE)
		line = srcline_text(p->session, p->texts, loc, source, SRCLINE_SYMBOL);
	if (p->needs & PROFILE_BY_SRCFILE)
		file = srcfile_text(p->texts, source);
	if (!line && !file)
		return add_frame(p, loc, NULL, NULL);
	function = add_frame(p, loc, NULL, NULL);
	id = add_frame(p, loc, line, file);
	p->frames[id].function = function;
	return id;
}

uint32_t profile_frame(struct profile *p, const struct location *loc)
{
	const struct source *src = NULL;

	if (p->needs & BY_SOURCE)
		src = location_source(p->session, loc, ADDRESS_EXACT);
	return profile_frame_at(p, loc, src && src->n ? src->frames : NULL);
}

uint32_t profile_call(struct profile *p, uint32_t node, uint32_t frame)
{
	return trie_child(&p->nodes, node, frame, NULL);
}

/* Packed: cycles 16 bits, then the flags. */
uint32_t profile_branch(struct profile *p, const struct branch *b)
{
	uint64_t key[2] = {(uint64_t)b->from << 32 | b->to};

	if (p->needs & PROFILE_BY_CYCLES)
		key[1] |= b->cycles;
	if (p->needs & PROFILE_BY_PREDICTION)
		key[1] |= (uint64_t)b->mispredicted << 16 | (uint64_t)b->predicted << 17;
	if (p->needs & PROFILE_BY_TRANSACTION)
		key[1] |= (uint64_t)b->in_tx << 18 | (uint64_t)b->abort << 19;
	return keyset_add(&p->branch_keys, key, NULL);
}

struct branch profile_branch_nth(const struct profile *p, uint32_t i)
{
	const uint64_t *key = keyset_key(&p->branch_keys, i);

	return (struct branch){
		.from = (uint32_t)(key[0] >> 32),
		.to = (uint32_t)key[0],
		.cycles = (uint16_t)key[1],
		.mispredicted = key[1] >> 16 & 1,
		.predicted = key[1] >> 17 & 1,
		.in_tx = key[1] >> 18 & 1,
		.abort = key[1] >> 19 & 1,
	};
}

uint32_t profile_context(struct profile *p, const struct context *ctx)
{
	struct context c = *ctx;
	uint64_t key[CONTEXT_WORDS];
	bool added;
	uint32_t id;

	if (!(p->needs & PROFILE_BY_CPU))
		c.cpu = (uint32_t)-1;
	if (!(p->needs & PROFILE_BY_VCPU))
		c.vcpu = -1;
	if (!(p->needs & PROFILE_BY_CGROUP))
		c.cgroup = NULL;
	key[0] = p->needs & PROFILE_BY_THREAD ? (uintptr_t)c.thread : (uintptr_t)c.machine;
	key[1] = (uintptr_t)c.comm ^ (uint64_t)(c.thread->pid < 0) << 63;
	key[2] = (uint64_t)c.cpu << 32 | (uint32_t)c.vcpu;
	key[3] = (uintptr_t)c.cgroup;
	key[4] = (uintptr_t)c.parent;
	memcpy(key + 5, c.values, sizeof(c.values));
	id = keyset_add(&p->context_keys, key, &added);
	if (added) {
		p->contexts = xgrow(p->contexts, &p->contexts_cap, id + 1ull, sizeof(*p->contexts));
		p->contexts[id] = c;
		p->has_guests |= !machine_is_host(c.machine);
	}
	return id;
}

/*
 * As trie_child() finds a child: chains are mostly those of one context, addresses without a chain
 * too.
 */
static uint32_t stack_id(struct profile *p, const struct stack *s, const uint64_t key[2],
			 bool *added)
{
	struct first_stacks *f = &p->first_stacks[s->node != PROFILE_NO_CHAIN];
	uint32_t at = s->node != PROFILE_NO_CHAIN ? s->node : s->leaf, id;
	const uint64_t *first;

	if (at >= f->n) {
		f->ids = xgrow(f->ids, &f->cap, at + 1ull, sizeof(*f->ids));
		memset(f->ids + f->n, 0, (at + 1ull - f->n) * sizeof(*f->ids));
		f->n = at + 1ull;
	}
	*added = !f->ids[at];
	if (*added) {
		id = keyset_append(&p->stack_keys, key);
		f->ids[at] = id + 1;
		return id;
	}
	first = keyset_key(&p->stack_keys, f->ids[at] - 1);
	if (first[0] == key[0] && first[1] == key[1])
		return f->ids[at] - 1;
	return keyset_add(&p->stack_keys, key, added);
}

/* Packed: event 24 bits, cpumode 8, context 32; leaf, node. */
uint32_t profile_add(struct profile *p, const struct stack *s)
{
	uint64_t key[2] = {(uint64_t)s->event << 40 | (uint64_t)s->cpumode << 32 | s->context,
			   (uint64_t)s->leaf << 32 | s->node};
	bool added;
	uint32_t id = stack_id(p, s, key, &added);

	if (added) {
		p->weights = xgrow(p->weights, &p->weights_cap, id + 1ull, sizeof(*p->weights));
		p->weights[id].period = p->weights[id].samples = 0;
		p->weights[id].thread = s->thread ? s->thread : p->contexts[s->context].thread;
	}
	p->weights[id].period += s->period;
	p->weights[id].samples += s->samples;
	p->events[s->event].period += s->period;
	p->events[s->event].samples += s->samples;
	p->has_chains |= !p->branches && s->node != PROFILE_NO_CHAIN;
	return id;
}

void profile_stack(const struct profile *p, uint32_t i, struct stack *s)
{
	const uint64_t *key = keyset_key(&p->stack_keys, i);

	*s = (struct stack){
		.event = (uint32_t)(key[0] >> 40),
		.cpumode = (uint8_t)(key[0] >> 32),
		.context = (uint32_t)key[0],
		.leaf = (uint32_t)(key[1] >> 32),
		.node = (uint32_t)key[1],
		.period = p->weights[i].period,
		.samples = p->weights[i].samples,
		.thread = p->weights[i].thread,
	};
}

size_t profile_chain(const struct profile *p, uint32_t node, uint32_t **frames, size_t *cap)
{
	size_t n = 0;

	for (; node != PROFILE_NO_CHAIN; node = profile_caller(p, node)) {
		*frames = xgrow(*frames, cap, n + 1, sizeof(**frames));
		(*frames)[n++] = profile_node_frame(p, node);
	}
	return n;
}

const char *profile_text(struct profile *p, const char *raw)
{
	return strtab_intern_escaped(p->texts, raw);
}

const char *profile_frame_name(struct profile *p, uint32_t frame)
{
	struct frame *f = &p->frames[frame];

	if (f->sym && !f->name)
		f->name = profile_text(p, p->session ? session_symbol_name(p->session, f->sym)
						     : f->sym->name);
	return f->name;
}

const char *profile_dso_name(struct profile *p, const struct dso *dso, bool long_name)
{
	size_t *n = &p->nr_dso_texts[long_name];
	const char ***texts = &p->dso_texts[long_name];

	if (!dso)
		return "[unknown]";
	if (dso->index >= *n) {
		*texts = xreallocarray(*texts, dso->index * 2ull + 16, sizeof(**texts));
		memset(*texts + *n, 0, (dso->index * 2ull + 16 - *n) * sizeof(**texts));
		*n = dso->index * 2ull + 16;
	}
	if (!(*texts)[dso->index])
		(*texts)[dso->index] =
			profile_text(p, long_name ? dso->long_name : dso->short_name);
	return (*texts)[dso->index];
}

const char *profile_frame_text(struct profile *p, uint32_t frame)
{
	const struct frame *f = &p->frames[frame];
	const char *name = profile_frame_name(p, frame);
	const char *dso = profile_dso_name(p, f->dso, false), *text;
	struct buf b = {0};

	if (name)
		buf_printf(&b, "%s", name);
	else
		buf_printf(&b, *dso == '[' ? "%s" : "[%s]", dso);
	if (frame_is_inlined(f))
		buf_printf(&b, "_[i]");
	else if (frame_is_kernel(f))
		buf_printf(&b, "_[k]");
	text = strtab_intern_n(p->texts, (const char *)b.data, b.len);
	buf_free(&b);
	return text;
}

const char *profile_vm_name(struct profile *p, const struct machine *m)
{
	return machine_is_host(m) ? "[host]" : profile_text(p, m->name);
}
