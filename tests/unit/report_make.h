// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile made by hand: one host and one VM, commands, and call chains written as
 * "main;work;leaf" (outermost first). A frame is NAME, NAME@DSO, or 0xADDRESS@DSO for one without a
 * symbol; the dso "[k]" is the kernel.
 */
#ifndef VMPROF_TESTS_UNIT_REPORT_MAKE_H
#define VMPROF_TESTS_UNIT_REPORT_MAKE_H

#include <stdarg.h>

#include "report/report.h"
#include "test.h"

struct world {
	struct profile p;
	struct machine host, vm;
	struct thread threads[8];
	unsigned nr_threads;
	struct dso dsos[8];
	unsigned nr_dsos;
	struct symbol symbols[64];
	const struct dso *symbol_dsos[64];
	unsigned nr_symbols;
	struct strtab *names;
};

static inline void world_init(struct world *w, unsigned needs)
{
	*w = (struct world){
		.host = {.index = 0, .pid = -1, .name = "host", .uuid = ""},
		.vm = {.index = 1, .pid = 77, .name = "web1", .uuid = "u-1"},
		.names = strtab_new(),
	};
	profile_init(&w->p, NULL, needs);
	profile_set_event(&w->p, 0, "cpu-clock", true);
}

static inline void world_free(struct world *w)
{
	profile_free(&w->p);
	strtab_free(w->names);
}

static inline struct thread *world_thread(struct world *w, struct machine *m, const char *comm,
					  int32_t pid, int32_t tid)
{
	struct thread *t = &w->threads[w->nr_threads++];

	*t = (struct thread){
		.machine = m, .pid = pid, .tid = tid, .comm = strtab_intern(w->names, comm)};
	return t;
}

static inline struct dso *world_dso(struct world *w, const char *name)
{
	for (unsigned i = 0; i < w->nr_dsos; i++)
		if (!strcmp(w->dsos[i].short_name, name))
			return &w->dsos[i];
	w->dsos[w->nr_dsos] = (struct dso){
		.index = w->nr_dsos,
		.short_name = strtab_intern(w->names, name),
		.long_name = strtab_intern(w->names, name),
	};
	return &w->dsos[w->nr_dsos++];
}

static inline const struct symbol *world_symbol(struct world *w, const struct dso *dso,
						const char *name)
{
	unsigned n = w->nr_symbols;

	for (unsigned i = 0; i < n; i++)
		if (w->symbol_dsos[i] == dso && !strcmp(w->symbols[i].name, name))
			return &w->symbols[i];
	w->symbols[n] = (struct symbol){.start = 0x1000 + n * 0x100ull,
					.end = 0x1000 + n * 0x100ull + 0x80,
					.name = strtab_intern(w->names, name)};
	w->symbol_dsos[n] = dso;
	return &w->symbols[w->nr_symbols++];
}

static inline uint32_t world_frame(struct world *w, const struct machine *m, const char *spec)
{
	const char *at = strrchr(spec, '@');
	char *name = strndup(spec, at ? (size_t)(at - spec) : strlen(spec));
	struct location loc = {.level = m->pid == -1 ? '.' : 'u'};

	loc.dso = world_dso(w, at ? at + 1 : "prog");
	if (at && !strcmp(at + 1, "[k]"))
		loc.level = m->pid == -1 ? 'k' : 'g';
	if (!strncmp(name, "0x", 2)) {
		loc.ip = strtoull(name, NULL, 16);
		loc.offset = loc.ip & 0xfff;
	} else {
		loc.sym = world_symbol(w, loc.dso, name);
		loc.ip = 0x400000 + loc.sym->start;
	}
	free(name);
	return profile_frame(&w->p, &loc);
}

/* @samples samples of @period each. */
static inline void world_sample(struct world *w, struct thread *t, unsigned samples,
				uint64_t period, const char *chain)
{
	char *text = strdup(chain), *save = NULL;
	bool guest = t->machine->pid != -1;
	struct stack s = {.samples = samples, .period = samples * period, .thread = t};

	for (char *f = strtok_r(text, ";", &save); f; f = strtok_r(NULL, ";", &save)) {
		s.leaf = world_frame(w, t->machine, f);
		s.node = profile_call(&w->p, s.node, s.leaf);
		s.cpumode = (uint8_t)((frame_is_kernel(&w->p.frames[s.leaf]) ? 1 : 2) +
				      (guest ? 3 : 0));
	}
	s.context = profile_context(
		&w->p,
		&(struct context){
			.machine = t->machine, .thread = t, .comm = t->comm, .cpu = 0, .vcpu = -1});
	profile_add(&w->p, &s);
	free(text);
}

static inline struct report_options world_options(void)
{
	return (struct report_options){
		.callgraph = {.mode = CALLGRAPH_GRAPH, .min_percent = 0.5},
		.max_stack = 127,
		.children = true,
		.quiet = true,
	};
}

/* What @print writes; to be freed. */
static inline char *world_print(struct world *w, const struct report_options *opt,
				void (*print)(struct report *r, FILE *f))
{
	struct vmprof_err err = {0};
	struct report r;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (report_prepare(&r, &w->p, opt, "test.data", &err))
		fprintf(f, "%s", err.msg);
	else
		print(&r, f);
	fclose(f);
	return text;
}

#endif
