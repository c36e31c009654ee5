// SPDX-License-Identifier: GPL-2.0-only
#include "report/frametext.h"

#include <stdlib.h>
#include <string.h>

#include "report/inlines.h"
#include "report/script_text.h"
#include "report/srcline.h"
#include "util/text.h"
#include "util/xalloc.h"

/* What is remembered: address spaces come and go. */
#define MAX_FRAMES (1u << 17)
#define MAX_TEXT   (16u << 20)

void frametext_init(struct frametext *ft, struct session *session, struct strtab *texts,
		    const struct report_filter *filter)
{
	memset(ft, 0, sizeof(*ft));
	ft->session = session;
	ft->texts = texts;
	ft->filter = filter;
	ft->keys.width = 2;
}

void frametext_free(struct frametext *ft)
{
	keyset_free(&ft->keys);
	free(ft->frames);
	buf_free(&ft->text);
}

void frametext_thread(struct frametext *ft, struct thread *t)
{
	ft->thread = t;
}

/* In user space perf shows where in its file an address is. */
uint64_t frametext_address(const struct location *loc)
{
	if (!loc->dso || loc->dso->kernel)
		return loc->ip;
	return loc->sym ? loc->sym->start + loc->offset : loc->offset;
}

/* One function at @loc. */
struct line {
	const struct location *loc;
	const struct source *src;
	const char *name; /* escaped; NULL: none is known */
	bool inlined;
};

static void put_name(struct buf *b, unsigned how, const struct line *l)
{
	text_char(b, ' ');
	text_str(b, l->name ? l->name : "[unknown]");
	if (how & FRAMETEXT_SYMOFF && l->name) {
		text_str(b, "+0x");
		text_hex(b, l->loc->offset, 0);
	}
}

static void put_srcline(struct frametext *ft, unsigned how, const struct line *l)
{
	unsigned words = how & FRAMETEXT_FULL_PATH ? SRCLINE_FULL : 0;
	const char *text = srcline_text(ft->session, ft->texts, l->loc,
					l->src->n ? l->src->frames : NULL, words);

	if (!l->loc->dso || !strcmp(text, SRCLINE_UNKNOWN))
		return;
	text_str(&ft->text, "\n  ");
	text_str(&ft->text, text);
}

static void put_line(struct frametext *ft, unsigned how, const struct line *l)
{
	const struct location *loc = l->loc;
	struct buf *b = &ft->text;

	if (how & FRAMETEXT_IP) {
		if (how & FRAMETEXT_LINE)
			text_char(b, '\t');
		text_hex(b, how & FRAMETEXT_LINE ? frametext_address(loc) : loc->ip, 16);
	}
	if (how & FRAMETEXT_SYM)
		put_name(b, how, l);
	if (how & FRAMETEXT_DSO && !l->inlined) {
		text_str(b, " (");
		text_str(b,
			 loc->dso ? strtab_intern_escaped(ft->texts, loc->dso->name) : "[unknown]");
		text_char(b, ')');
	}
	if (how & FRAMETEXT_SRCLINE)
		put_srcline(ft, how, l);
	if (l->inlined)
		text_str(b, " (inlined)");
	if (how & FRAMETEXT_LINE)
		text_char(b, '\n');
}

static const char *shown_name(struct frametext *ft, const struct symbol *sym)
{
	return sym ? strtab_intern_escaped(ft->texts, session_symbol_name(ft->session, sym)) : NULL;
}

static void render(struct frametext *ft, unsigned how, const struct location *loc, const char *name)
{
	enum frame_address where =
		how & FRAMETEXT_BEHIND_CALL ? ADDRESS_BEHIND_CALL : ADDRESS_EXACT;
	struct line l = {.loc = loc, .inlined = true};

	if (how & (FRAMETEXT_INLINED | FRAMETEXT_SRCLINE))
		l.src = location_source(ft->session, loc, where);
	for (size_t i = 0; how & FRAMETEXT_INLINED && i + 1 < l.src->n; i++) {
		l.name = shown_name(ft, l.src->frames[i].sym);
		put_line(ft, how, &l);
	}
	l.name = name;
	l.inlined = false;
	put_line(ft, how, &l);
}

static uint32_t find(struct frametext *ft, uint8_t cpumode, uint64_t ip, unsigned how,
		     const uint64_t *key)
{
	struct frametext_frame *f;
	struct location loc;
	const char *name;
	bool added;
	uint32_t id;

	if (ft->keys.n >= MAX_FRAMES || ft->text.len >= MAX_TEXT) {
		keyset_clear(&ft->keys);
		buf_reset(&ft->text);
		memset(ft->recent, 0, sizeof(ft->recent));
	}
	id = keyset_add(&ft->keys, key, &added);
	if (!added)
		return id;
	session_resolve(ft->session, ft->thread, cpumode, ip, &loc);
	name = shown_name(ft, loc.sym);
	ft->frames = xgrow(ft->frames, &ft->cap, id + 1ull, sizeof(*ft->frames));
	f = &ft->frames[id];
	f->at = (uint32_t)ft->text.len;
	render(ft, how, &loc, name);
	f->len = (uint32_t)ft->text.len - f->at;
	f->wanted = filter_location(ft->filter, loc.dso, name);
	return id;
}

const struct frametext_frame *frametext_get(struct frametext *ft, uint8_t cpumode, uint64_t ip,
					    unsigned how)
{
	uint32_t state = session_maps_state(ft->thread, cpumode);
	uint64_t key[2] = {(uint64_t)state << 32 | how << 8 | cpumode, ip};
	size_t i = (ip ^ ip >> 13 ^ state) & (FRAMETEXT_RECENT - 1);
	uint32_t id;

	if (ft->recent[i].id && ft->recent[i].key[0] == key[0] && ft->recent[i].key[1] == key[1])
		return &ft->frames[ft->recent[i].id - 1];
	id = find(ft, cpumode, ip, how, key);
	ft->recent[i].key[0] = key[0];
	ft->recent[i].key[1] = key[1];
	ft->recent[i].id = id + 1;
	return &ft->frames[id];
}
