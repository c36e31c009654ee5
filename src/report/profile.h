// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile in memory: each distinct combination of event, context, sampled location and call chain
 * once, with its weight. Every view (tables by any key, call graphs, folded lines, flame graph,
 * JSON) is made from it, so that the file is read once and memory grows with what is distinct, not
 * with the number of samples.
 *
 * Pointers to dso, symbol, thread and machine belong to the session, which must outlive this.
 */
#ifndef VMPROF_REPORT_PROFILE_H
#define VMPROF_REPORT_PROFILE_H

#include "report/keyset.h"
#include "report/trie.h"
#include "symbolize/machine.h"
#include "util/hashmap.h"

/* What contexts are told apart by besides machine and command; the fewer, the fewer stacks. */
enum profile_needs {
	PROFILE_BY_THREAD = 1 << 0, /* pid and tid */
	PROFILE_BY_CPU = 1 << 1,
	PROFILE_BY_VCPU = 1 << 2,
	PROFILE_BY_CGROUP = 1 << 3,
	/* branches, besides where they go from and to */
	PROFILE_BY_CYCLES = 1 << 4,
	PROFILE_BY_PREDICTION = 1 << 5,
	PROFILE_BY_TRANSACTION = 1 << 6,
	/* samples, by what they have besides */
	PROFILE_BY_PARENT = 1 << 7,
	PROFILE_BY_WEIGHT = 1 << 8,
	PROFILE_BY_INS_LAT = 1 << 9,
	PROFILE_BY_STAGE_CYCLES = 1 << 10,
	PROFILE_BY_CODE_PAGE_SIZE = 1 << 11,
	PROFILE_BY_TIME = 1 << 14,
	PROFILE_BY_TRANSACTIONS = 1 << 15,
	PROFILE_BY_DATA_SOURCE = 1 << 16,
	PROFILE_BY_PHYS_ADDR = 1 << 17,
	PROFILE_BY_DATA_PAGE_SIZE = 1 << 18,
	/* frames */
	PROFILE_BY_SRCLINE = 1 << 12,
	PROFILE_BY_SRCFILE = 1 << 13,
};

/* What only samples of accesses to memory have. */
#define PROFILE_BY_ACCESS                                                                          \
	(PROFILE_BY_DATA_SOURCE | PROFILE_BY_PHYS_ADDR | PROFILE_BY_DATA_PAGE_SIZE)

/* A number that some samples have, each with the PROFILE_BY_* that it is kept for. */
enum sample_value {
	SAMPLE_WEIGHT,
	SAMPLE_INS_LAT,
	SAMPLE_STAGE_CYCLES,
	SAMPLE_CODE_PAGE_SIZE,
	SAMPLE_TIME, /* the beginning of its time quantum */
	SAMPLE_TRANSACTION,
	SAMPLE_DATA_SOURCE,
	SAMPLE_PHYS_ADDR,
	SAMPLE_DATA_PAGE_SIZE,
	SAMPLE_VALUES
};

enum frame_kind { FRAME_HOST_USER, FRAME_HOST_KERNEL, FRAME_GUEST_USER, FRAME_GUEST_KERNEL };

/* One function, or one line of it; or one address that no symbol covers. */
struct frame {
	const struct dso *dso;	  /* NULL: nothing is known there */
	const struct symbol *sym; /* NULL: unresolved */
	uint64_t ip;		  /* as sampled; of the first one if there is a symbol */
	uint64_t addr;		  /* the same in the dso's own addresses (location.offset) */
	const char *name;	  /* of the symbol, escaped; made by profile_frame_name() */
	/* Escaped and interned, where they are needed: PROFILE_BY_SRCLINE, PROFILE_BY_SRCFILE. */
	const char *srcline, *srcfile;
	uint32_t function; /* the frame of the same function that was there first */
	enum frame_kind kind;
	char level; /* perf's mark */
};

/* Who ran. @thread is the first one that was seen with it. */
struct context {
	const struct machine *machine;
	const struct thread *thread;
	const char *comm;   /* at the time of the sample; raw */
	const char *cgroup; /* or NULL; raw */
	const char *parent; /* name of the frame that --parent chooses, escaped; or NULL */
	uint64_t values[SAMPLE_VALUES];
	uint32_t cpu; /* (uint32_t)-1 unknown */
	int32_t vcpu; /* -1 unknown */
};

/* One that was taken, in a profile of branches. */
struct branch {
	uint32_t from, to; /* frames */
	uint16_t cycles;   /* since the one before it; 0 unknown */
	bool mispredicted, predicted, in_tx, abort;
};

struct stack {
	uint32_t event, context;
	uint32_t leaf; /* frame of the sample's own address */
	/* innermost node of the call chain, PROFILE_NO_CHAIN without one; in a profile of branches
	 * the branch, whose target is the leaf
	 */
	uint32_t node;
	uint8_t cpumode;
	uint64_t period, samples;
	const struct thread *thread; /* the first one; NULL: the context's */
};

struct stack_weight {
	uint64_t period, samples;
	const struct thread *thread;
};

#define PROFILE_NO_CHAIN 0

struct profile_event {
	const char *name; /* escaped */
	bool has_chains;  /* by its attribute */
	uint64_t samples, period;
	uint64_t lost;		/* LOST_SAMPLES of this event */
	uint32_t group_size;	/* > 1: the first of so many that were recorded as one */
	const char *group_name; /* escaped; NULL: it has none */
	bool group_forced;	/* not by the recorder, but by whoever reads it */
};

struct profile {
	struct session *session; /* for names of symbols; NULL: as they are in the file */
	unsigned needs;		 /* PROFILE_BY_*, set before the first sample */
	struct strtab *texts;

	struct profile_event *events;
	size_t nr_events;

	struct keyset frame_keys, context_keys, stack_keys, vcpu_keys, branch_keys;
	struct trie nodes; /* of call chains, by frame */
	struct frame *frames;
	struct context *contexts;
	struct stack_weight *weights; /* of stacks */
	/* by node, or by leaf where there is none: the first stack + 1, which no table has */
	struct first_stacks {
		uint32_t *ids;
		size_t n, cap;
	} first_stacks[2];
	size_t frames_cap, contexts_cap, weights_cap;
	const char **dso_texts[2]; /* short and long names by dso->index */
	size_t nr_dso_texts[2];
	bool branches;	 /* what counts is not samples but the branches that they have; set first */
	bool has_chains; /* a sample had one */
	bool has_user_stacks;  /* samples have a copy of the stack in place of a user call chain */
	bool has_guests;       /* a sample came from a machine that is not the host */
	bool no_cpus;	       /* samples of some CPUs are wanted, but they do not tell theirs */
	uint64_t lost_samples; /* LOST_SAMPLES: the kernel had no room */
	uint64_t host_lost;    /* of these: of the host's own recording */
	uint64_t aux_bytes;    /* of processor traces in the file, which are not decoded */
	uint64_t discarded_chains; /* with a context marker that nobody knows */
};

void profile_init(struct profile *p, struct session *session, unsigned needs);
void profile_free(struct profile *p);
void profile_set_event(struct profile *p, uint32_t index, const char *name, bool has_chains);

uint32_t profile_frame(struct profile *p, const struct location *loc);
/* The same, the source being known: NULL if there is none. */
uint32_t profile_frame_at(struct profile *p, const struct location *loc,
			  const struct source_frame *source);
/* @node followed by a frame that it called; chains start at PROFILE_NO_CHAIN, outermost first. */
uint32_t profile_call(struct profile *p, uint32_t node, uint32_t frame);
/* Keeps of @b what profile.needs says. */
uint32_t profile_branch(struct profile *p, const struct branch *b);
struct branch profile_branch_nth(const struct profile *p, uint32_t i);
uint32_t profile_context(struct profile *p, const struct context *ctx);
/* Returns the number that profile_stack() has it by. */
uint32_t profile_add(struct profile *p, const struct stack *s);

static inline uint32_t profile_caller(const struct profile *p, uint32_t node)
{
	return trie_parent(&p->nodes, node);
}

static inline uint32_t profile_node_frame(const struct profile *p, uint32_t node)
{
	return trie_label(&p->nodes, node);
}

static inline uint32_t profile_nr_stacks(const struct profile *p)
{
	return p->stack_keys.n;
}

void profile_stack(const struct profile *p, uint32_t i, struct stack *s);

/* Frames of a chain, innermost first, into *@frames (grown, *@cap elements); returns their number.
 */
size_t profile_chain(const struct profile *p, uint32_t node, uint32_t **frames, size_t *cap);

/* Text for a terminal: escaped, interned (equal texts have equal pointers). */
const char *profile_text(struct profile *p, const char *raw);
const char *profile_frame_name(struct profile *p, uint32_t frame); /* NULL: unresolved */
/*
 * How outputs that are made of nothing but names call it: the name, "[dso]" without one; "_[k]"
 * behind that of a kernel, "_[i]" behind that of a function that is inlined.
 */
const char *profile_frame_text(struct profile *p, uint32_t frame);
const char *profile_dso_name(struct profile *p, const struct dso *dso, bool long_name);

static inline bool machine_is_host(const struct machine *m)
{
	return m->pid == -1;
}

/* "[host]" or the VM's name, escaped. */
const char *profile_vm_name(struct profile *p, const struct machine *m);

static inline bool frame_is_inlined(const struct frame *f)
{
	return f->sym && f->sym->inlined;
}

static inline bool frame_is_kernel(const struct frame *f)
{
	return f->kind == FRAME_HOST_KERNEL || f->kind == FRAME_GUEST_KERNEL;
}

#endif
