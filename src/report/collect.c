// SPDX-License-Identifier: GPL-2.0-only
#include "report/collect.h"

#include <stdlib.h>
#include <string.h>

#include "report/addrcache.h"
#include "report/chaincache.h"
#include "report/datasource.h"
#include "report/filter.h"
#include "report/parents.h"
#include "symbolize/userstack.h"
#include "util/saturate.h"
#include "util/xalloc.h"

#define RECENT_THREADS 64 /* power of two */

/* One frame of a chain before it is resolved. */
struct raw_frame {
	uint64_t ip;
	uint8_t cpumode;
	uint8_t inlined; /* INLINED_*: what is inlined there is wanted */
};

/* Above the bits that a mode has. */
enum {
	INLINED_WANTED = 1 << 6,
	INLINED_BEHIND_CALL = 1 << 7, /* enum frame_address */
};

/*
 * What the last sample of a thread came to: the next one is mostly the same in who ran, and in the
 * outer part of its last new chain.
 */
struct recent {
	struct thread *thread;
	struct context ctx;
	uint32_t context;
	uint32_t user_state, kernel_state; /* of the maps, when the chain was resolved */
	struct raw_frame *frames;	   /* outermost first */
	uint32_t *nodes;		   /* of frames */
	size_t n, frames_cap, nodes_cap;
};

struct collector {
	struct profile *p;
	struct collect_options opt;
	struct cpu_list cpus; /* if opt.cpus */

	struct parents *parents;   /* if they are needed */
	struct addrcache resolved; /* ids of frames */
	struct addrcache inlined;  /* ids of lists */
	struct inlines inlines;
	struct chaincache chains; /* nodes */
	struct recent recent[RECENT_THREADS];
	struct raw_frame *chain; /* of this sample, innermost first */
	size_t chain_cap;
};

int collector_new(struct collector **out, struct profile *p, const struct collect_options *opt,
		  struct vmprof_err *err)
{
	struct collector *c = xcalloc(1, sizeof(*c));
	int ret = 0;

	c->p = p;
	c->opt = *opt;
	inlines_init(&c->inlines);
	if (!c->opt.time_quantum)
		c->opt.time_quantum = 100000000;
	if (!c->opt.max_user_stack)
		c->opt.max_user_stack = PERF_MAX_STACK_DEPTH;
	if (opt->cpus)
		ret = cpu_list_parse(&c->cpus, opt->cpus, err);
	if (!ret && p->needs & PROFILE_BY_PARENT)
		ret = parents_new(&c->parents, p, opt->parent, opt->parent_outermost, err);
	if (ret)
		collector_free(c);
	else
		*out = c;
	return ret;
}

void collector_free(struct collector *c)
{
	if (!c)
		return;
	addrcache_free(&c->resolved);
	addrcache_free(&c->inlined);
	inlines_free(&c->inlines);
	parents_free(c->parents);
	chaincache_free(&c->chains);
	cpu_list_free(&c->cpus);
	for (size_t i = 0; i < RECENT_THREADS; i++) {
		free(c->recent[i].frames);
		free(c->recent[i].nodes);
	}
	free(c->chain);
	free(c);
}

static struct recent *recent_of(struct collector *c, struct thread *t)
{
	struct recent *r = &c->recent[hash_u64((uintptr_t)t) & (RECENT_THREADS - 1)];

	if (r->thread == t)
		return r;
	r->thread = t;
	r->ctx = (struct context){0};
	r->n = 0;
	return r;
}

static uint32_t resolve(struct collector *c, const struct recent *r, uint8_t cpumode, uint64_t ip)
{
	uint32_t state = session_maps_state(r->thread, cpumode), *frame;
	struct location loc;
	bool found;

	frame = addrcache_at(&c->resolved, (uint64_t)state << 8 | cpumode, ip, &found);
	if (!found) {
		session_resolve(c->p->session, r->thread, cpumode, ip, &loc);
		*frame = profile_frame(c->p, &loc);
	}
	return *frame;
}

static const struct inlined *inlined_at(struct collector *c, const struct recent *r,
					const struct raw_frame *f)
{
	uint32_t state = session_maps_state(r->thread, f->cpumode), *list;
	struct location loc;
	bool found;

	list = addrcache_at(&c->inlined, (uint64_t)state << 8 | f->inlined | f->cpumode, f->ip,
			    &found);
	if (!found) {
		session_resolve(c->p->session, r->thread, f->cpumode, f->ip, &loc);
		*list = inlines_at(&c->inlines, c->p, &loc,
				   f->inlined & INLINED_BEHIND_CALL ? ADDRESS_BEHIND_CALL
								    : ADDRESS_EXACT);
	}
	return &c->inlines.lists[*list];
}

static uint8_t user_mode(const struct machine *m)
{
	return machine_is_host(m) ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_GUEST_USER;
}

/*
 * Addresses of a chain with the mode they are of, innermost first, into c->chain; returns their
 * number. perf takes frames before any marker for user space. A marker that nobody knows makes the
 * chain worthless.
 */
static size_t split_chain(struct collector *c, const struct perfdata_record *rec,
			  const struct machine *m)
{
	uint8_t cpumode = user_mode(m);
	uint8_t first = c->opt.inlines == INLINES_ALL ? INLINED_WANTED : 0, inlined = first;
	size_t n = 0;

	c->chain = xgrow(c->chain, &c->chain_cap, rec->chain_len, sizeof(*c->chain));
	for (uint64_t i = 0; i < rec->chain_len; i++) {
		if (rec->chain[i] < PERF_CONTEXT_MAX) {
			c->chain[n++] = (struct raw_frame){rec->chain[i], cpumode, inlined};
			inlined = first ? INLINED_WANTED | INLINED_BEHIND_CALL : 0;
			continue;
		}
		inlined = first;
		cpumode = session_chain_mode(rec->cpumode, rec->chain[i]);
		if (!cpumode) {
			c->p->discarded_chains++;
			return 0;
		}
	}
	return n;
}

/* Of samples with a copy of the stack: its frames behind the @n of the kernel. */
static size_t add_user_stack(struct collector *c, struct thread *t,
			     const struct perfdata_record *rec, size_t n)
{
	uint8_t inlined = c->opt.inlines == INLINES_NONE ? 0 : INLINED_WANTED;
	uint8_t cpumode = user_mode(t->machine);
	size_t user;
	const uint64_t *ips =
		session_user_stack(c->p->session, t, rec, c->opt.max_user_stack, &user);

	c->chain = xgrow(c->chain, &c->chain_cap, n + user, sizeof(*c->chain));
	for (size_t i = 0; i < user; i++)
		c->chain[n + i] = (struct raw_frame){ips[i], cpumode, inlined};
	return n + user;
}

static size_t whole_chain(struct collector *c, struct thread *t, const struct perfdata_record *rec)
{
	size_t n = split_chain(c, rec, t->machine);

	n = add_user_stack(c, t, rec, n);
	return c->opt.max_stack && n > c->opt.max_stack ? c->opt.max_stack : n;
}

/* How many of the outermost frames are those of the thread's last new chain, in the same maps. */
static size_t common_part(const struct collector *c, const struct recent *r,
			  const struct chain_key *key, size_t n)
{
	size_t i = 0, max = n < r->n ? n : r->n;

	if (r->user_state != key->user_state || r->kernel_state != key->kernel_state)
		return 0;
	for (; i < max; i++) {
		const struct raw_frame *f = &c->chain[n - 1 - i];

		if (f->ip != r->frames[i].ip || f->cpumode != r->frames[i].cpumode ||
		    f->inlined != r->frames[i].inlined)
			break;
	}
	return i;
}

/* @node followed by the function that @f is in, and by what is inlined there. */
static uint32_t call(struct collector *c, const struct recent *r, uint32_t node,
		     const struct raw_frame *f)
{
	uint32_t frame = resolve(c, r, f->cpumode, f->ip);
	const struct inlined *in = f->inlined ? inlined_at(c, r, f) : NULL;

	if (!c->opt.hide_unresolved || c->p->frames[frame].sym)
		node = profile_call(c->p, node, frame);
	for (uint32_t i = 0; in && i < in->n; i++)
		node = profile_call(c->p, node, in->frames[i]);
	return node;
}

/* The node of c->chain's first @n frames. */
static uint32_t add_chain(struct collector *c, struct recent *r, const struct chain_key *key,
			  size_t n)
{
	size_t i = common_part(c, r, key, n);
	uint32_t node = i ? r->nodes[i - 1] : PROFILE_NO_CHAIN;

	r->frames = xgrow(r->frames, &r->frames_cap, n, sizeof(*r->frames));
	r->nodes = xgrow(r->nodes, &r->nodes_cap, n, sizeof(*r->nodes));
	for (; i < n; i++) {
		const struct raw_frame *f = &c->chain[n - 1 - i];

		node = call(c, r, node, f);
		r->frames[i] = *f;
		r->nodes[i] = node;
	}
	r->n = n;
	r->user_state = key->user_state;
	r->kernel_state = key->kernel_state;
	return node;
}

static uint32_t collect_chain(struct collector *c, struct recent *r,
			      const struct perfdata_record *rec)
{
	const struct chain_key key = {
		.words = rec->chain,
		.n = rec->chain_len,
		.user_state = session_maps_state(r->thread, PERF_RECORD_MISC_USER),
		.kernel_state = session_maps_state(r->thread, PERF_RECORD_MISC_KERNEL),
		.cpumode = rec->cpumode,
	};
	/* a copy of the stack is part of the chain, and is never the same twice */
	bool cached = !rec->parts || !rec->parts->stack;
	uint32_t node;
	size_t n;

	if (cached && chaincache_get(&c->chains, &key, &node))
		return node;
	n = whole_chain(c, r->thread, rec);
	if (!n)
		return PROFILE_NO_CHAIN;
	node = add_chain(c, r, &key, n);
	if (cached)
		chaincache_put(&c->chains, &key, node);
	return node;
}

static uint64_t data_source(const struct perfdata_record *rec, const struct perfdata_parts *parts)
{
	return rec->evsel->attr.sample_type & PERF_SAMPLE_DATA_SRC ? parts->data_src
								   : DATASOURCE_NONE;
}

/* Of these only what is needed tells contexts apart. */
static void take_values(const struct collector *c, struct context *ctx,
			const struct perfdata_record *rec)
{
	static const struct perfdata_parts none;
	const struct perfdata_parts *parts = rec->parts ? rec->parts : &none;
	const struct {
		unsigned need;
		uint64_t value;
	} values[SAMPLE_VALUES] = {
		[SAMPLE_WEIGHT] = {PROFILE_BY_WEIGHT, rec->weight},
		[SAMPLE_INS_LAT] = {PROFILE_BY_INS_LAT, rec->weight2},
		[SAMPLE_STAGE_CYCLES] = {PROFILE_BY_STAGE_CYCLES, rec->weight3},
		[SAMPLE_CODE_PAGE_SIZE] = {PROFILE_BY_CODE_PAGE_SIZE, parts->code_page_size},
		[SAMPLE_TIME] = {PROFILE_BY_TIME, rec->time - rec->time % c->opt.time_quantum},
		[SAMPLE_TRANSACTION] = {PROFILE_BY_TRANSACTIONS, parts->transaction},
		[SAMPLE_DATA_SOURCE] = {PROFILE_BY_DATA_SOURCE, data_source(rec, parts)},
		[SAMPLE_PHYS_ADDR] = {PROFILE_BY_PHYS_ADDR, parts->phys_addr},
		[SAMPLE_DATA_PAGE_SIZE] = {PROFILE_BY_DATA_PAGE_SIZE, parts->data_page_size},
	};

	for (unsigned i = 0; i < SAMPLE_VALUES; i++)
		if (c->p->needs & values[i].need)
			ctx->values[i] = values[i].value;
}

static bool same_context(const struct context *a, const struct context *b)
{
	return a->comm == b->comm && a->cgroup == b->cgroup && a->cpu == b->cpu &&
	       a->vcpu == b->vcpu && a->parent == b->parent &&
	       !memcmp(a->values, b->values, sizeof(a->values));
}

static uint32_t collect_context(struct collector *c, struct recent *r,
				const struct perfdata_record *rec, uint32_t node)
{
	struct context ctx = {
		.machine = r->thread->machine,
		.thread = r->thread,
		.comm = r->thread->comm,
		.cgroup = r->thread->cgroup,
		.cpu = rec->cpu,
		.vcpu = rec->vcpu,
	};

	take_values(c, &ctx, rec);
	if (c->parents)
		ctx.parent = parents_find(c->parents, node);
	if (same_context(&ctx, &r->ctx))
		return r->context;
	r->ctx = ctx;
	r->context = profile_context(c->p, &ctx);
	if (rec->vcpu >= 0 && !machine_is_host(ctx.machine))
		keyset_add1(&c->p->vcpu_keys,
			    (uint64_t)ctx.machine->index << 32 | (uint32_t)rec->vcpu, NULL);
	return r->context;
}

static bool set_event(struct profile *p, const struct perfdata_evsel *evsel)
{
	if (!evsel || evsel->index >= 1u << 24)
		return false;
	if (evsel->index >= p->nr_events || !p->events[evsel->index].name)
		profile_set_event(p, evsel->index, evsel->name,
				  evsel->attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	p->has_user_stacks |= evsel->attr.sample_type & PERF_SAMPLE_STACK_USER;
	return true;
}

static void count_lost(struct collector *c, const struct perfdata_record *rec)
{
	add_saturated(&c->p->lost_samples, rec->lost.lost);
	/* a guest's are in its recorder's counters */
	if (machine_is_host(session_machine(c->p->session, rec)))
		add_saturated(&c->p->host_lost, rec->lost.lost);
	if (set_event(c->p, rec->evsel))
		add_saturated(&c->p->events[rec->evsel->index].lost, rec->lost.lost);
}

/* Whether an address of a branch is the kernel's cannot be seen: what is there is tried. */
static uint32_t resolve_branch(struct collector *c, const struct recent *r, uint64_t ip)
{
	static const uint8_t modes[2][3] = {
		{PERF_RECORD_MISC_GUEST_USER, PERF_RECORD_MISC_GUEST_KERNEL,
		 PERF_RECORD_MISC_HYPERVISOR},
		{PERF_RECORD_MISC_USER, PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_HYPERVISOR},
	};
	const uint8_t *mode = modes[machine_is_host(r->thread->machine)];
	uint32_t frame = resolve(c, r, mode[0], ip);

	for (int i = 1; i < 3 && !c->p->frames[frame].dso; i++)
		frame = resolve(c, r, mode[i], ip);
	return frame;
}

/* Each branch counts one, as in perf. */
static void collect_branches(struct collector *c, struct recent *r,
			     const struct perfdata_record *rec, struct stack *s)
{
	struct profile *p = c->p;

	s->period = 1;
	for (uint64_t i = 0; i < rec->nr_branches; i++) {
		const struct perfdata_branch *raw = &rec->branches[i];
		struct branch b = {
			.from = resolve_branch(c, r, raw->from),
			.to = resolve_branch(c, r, raw->to),
			.cycles = (uint16_t)perfdata_branch_bits(rec, raw, PERFDATA_BRANCH_CYCLES),
			.mispredicted = perfdata_branch_bits(rec, raw, PERFDATA_BRANCH_MISPRED),
			.predicted = perfdata_branch_bits(rec, raw, PERFDATA_BRANCH_PREDICTED),
			.in_tx = perfdata_branch_bits(rec, raw, PERFDATA_BRANCH_IN_TX),
			.abort = perfdata_branch_bits(rec, raw, PERFDATA_BRANCH_ABORT),
		};

		if (c->opt.hide_unresolved && !(p->frames[b.from].sym && p->frames[b.to].sym))
			continue;
		s->leaf = b.to;
		s->node = profile_branch(p, &b);
		profile_add(p, s);
	}
}

static bool wants_chain(const struct collector *c, const struct perfdata_evsel *e)
{
	return c->opt.chains || c->parents ||
	       (c->opt.user_stacks && e->attr.sample_type & PERF_SAMPLE_STACK_USER);
}

static void collect_sample(struct collector *c, const struct perfdata_record *rec)
{
	struct profile *p = c->p;
	struct recent *r;
	struct stack s = {.cpumode = rec->cpumode, .period = rec->period, .samples = 1};
	uint32_t stack;

	if (!set_event(p, rec->evsel))
		return;
	if (c->opt.cpus && !(rec->evsel->attr.sample_type & PERF_SAMPLE_CPU))
		p->no_cpus = true;
	if (c->opt.cpus && !cpu_list_has(&c->cpus, rec->cpu))
		return;
	if (c->opt.times && !time_ranges_have(c->opt.times, rec->time))
		return;
	if (c->opt.memory)
		s.period = rec->weight ? rec->weight : 1;
	s.event = rec->evsel->index;
	r = recent_of(c, session_thread(p->session, rec));
	s.thread = r->thread;
	if (p->branches) {
		s.context = collect_context(c, r, rec, PROFILE_NO_CHAIN);
		collect_branches(c, r, rec, &s);
		return;
	}
	s.leaf = resolve(c, r, rec->cpumode, rec->ip);
	if (c->opt.hide_unresolved && !p->frames[s.leaf].sym)
		return;
	if (rec->chain && wants_chain(c, rec->evsel))
		s.node = collect_chain(c, r, rec);
	s.context = collect_context(c, r, rec, s.node);
	stack = profile_add(p, &s);
	if (c->opt.sample)
		c->opt.sample(c->opt.sample_ctx, rec, stack);
}

int collector_record(void *ctx, const struct perfdata_record *rec)
{
	struct collector *c = ctx;
	int ret;

	if (rec->type == PERF_RECORD_SAMPLE) {
		collect_sample(c, rec);
		return 0;
	}
	if (rec->type == PERF_RECORD_LOST_SAMPLES)
		count_lost(c, rec);
	ret = session_process(c->p->session, rec);
	/* a record that makes no sense is the session's to skip; only its memory can fail */
	return ret < 0 ? ret : 0;
}
