// SPDX-License-Identifier: GPL-2.0-only
/* Inside src/events: the names that perf itself has for events, and what a misspelt one may mean.
 */
#ifndef VMPROF_EVENTS_NAMES_H
#define VMPROF_EVENTS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Hardware, software or cache event of this name. */
bool event_name_find(const char *name, size_t len, uint32_t *type, uint64_t *config);
/* The other name of a hardware event that PMUs call their own by ("cycles": "cpu-cycles"), or NULL.
 */
const char *event_name_symbol(const char *name);

/* The best of many names for one that does not exist. */
struct suggestion {
	const char *wanted;
	char name[64]; /* "" none is near */
	unsigned distance;
};
void suggestion_init(struct suggestion *s, const char *wanted);
void suggestion_try(struct suggestion *s, const char *name);
void suggestion_try_names(struct suggestion *s); /* all that event_name_find() knows */
/* "; did you mean 'cycles'", or "". */
const char *suggestion_text(const struct suggestion *s, char *out, size_t size);

#endif
