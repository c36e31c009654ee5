// SPDX-License-Identifier: GPL-2.0-only
#include "report/datasource.h"

#include <stdbool.h>

#include "perfdata/format.h"
#include "report/script_text.h"

static const char *const levels[] = {"N/A",
				     "HIT",
				     "MISS",
				     "L1",
				     "LFB/MAB",
				     "L2",
				     "L3",
				     "Local RAM",
				     "Remote RAM (1 hop)",
				     "Remote RAM (2 hops)",
				     "Remote Cache (1 hop)",
				     "Remote Cache (2 hops)",
				     "I/O",
				     "Uncached"};
static const char *const level_numbers[16] = {NULL,	 "L1",	"L2",	"L3",  "L4",  "L5",
					      "L6",	 "L7",	"L8",	"CXL", "I/O", "Any cache",
					      "LFB/MAB", "RAM", "PMEM", "N/A"};
static const char *const hops[8] = {NULL, "core, same node", "node, same socket",
				    "socket, same board", "board"};
static const char *const snoops[] = {"N/A", "None", "Hit", "Miss", "HitM"};
static const char *const more_snoops[] = {"Fwd", "Peer"};
static const char *const tlbs[] = {"N/A", "HIT", "MISS", "L1", "L2", "Walker", "Fault"};
static const char *const operations[] = {"N/A", "LOAD", "STORE", "PFETCH", "EXEC"};

/* Names of all bits of @v but those of @without, " or " between them and what was there before. */
static void put_bits(struct buf *b, uint64_t v, uint64_t without, const char *const *names,
		     unsigned n, unsigned *printed)
{
	for (unsigned i = 0; i < n; i++) {
		if (!((v & ~without) >> i & 1))
			continue;
		text_str(b, (*printed)++ ? " or " : "");
		text_str(b, names[i]);
	}
}

static void put_operation(struct buf *b, uint64_t v)
{
	text_str(b, v ? operations[__builtin_ctzll(v)] : "No");
}

static void put_hit(struct buf *b, uint64_t v, uint64_t hit, uint64_t miss)
{
	text_str(b, v & hit ? " hit" : "");
	text_str(b, v & miss ? " miss" : "");
}

void datasource_level(struct buf *b, uint64_t value)
{
	const union perf_mem_data_src src = {.val = value}, *d = &src;
	const uint64_t hit = PERF_MEM_LVL_HIT, miss = PERF_MEM_LVL_MISS;
	const char *hop = hops[d->mem_hops], *number = level_numbers[d->mem_lvl_num];
	size_t start = b->len;
	unsigned printed = 0;

	text_str(b, d->mem_remote ? "Remote " : "");
	if (hop) {
		text_str(b, hop);
		text_char(b, ' ');
	} else if (!d->mem_hops) {
		put_bits(b, d->mem_lvl, hit | miss, levels, 14, &printed);
	}
	if (number) {
		text_str(b, printed ? " or " : "");
		text_str(b, number);
	}
	if (b->len == start)
		text_str(b, "N/A");
	put_hit(b, d->mem_lvl, hit, miss);
}

void datasource_snoop(struct buf *b, uint64_t value)
{
	const union perf_mem_data_src src = {.val = value}, *d = &src;
	unsigned printed = 0;

	put_bits(b, d->mem_snoop, 0, snoops, 5, &printed);
	put_bits(b, d->mem_snoopx, 0, more_snoops, 2, &printed);
	if (!printed)
		text_str(b, "N/A");
}

void datasource_tlb(struct buf *b, uint64_t value)
{
	const uint64_t v = (union perf_mem_data_src){.val = value}.mem_dtlb;
	const uint64_t hit = PERF_MEM_TLB_HIT, miss = PERF_MEM_TLB_MISS;
	unsigned printed = 0;

	put_bits(b, v, hit | miss, tlbs, 7, &printed);
	if (!printed)
		text_str(b, "N/A");
	put_hit(b, v, hit, miss);
}

void datasource_lock(struct buf *b, uint64_t value)
{
	const uint64_t v = (union perf_mem_data_src){.val = value}.mem_lock;

	text_str(b, v & PERF_MEM_LOCK_NA ? "N/A" : v & PERF_MEM_LOCK_LOCKED ? "Yes" : "No");
}

void datasource_blocked(struct buf *b, uint64_t value)
{
	const uint64_t v = (union perf_mem_data_src){.val = value}.mem_blk;

	if (!v || v & PERF_MEM_BLK_NA) {
		text_str(b, " N/A");
		return;
	}
	text_str(b, v & PERF_MEM_BLK_DATA ? " Data" : "");
	text_str(b, v & PERF_MEM_BLK_ADDR ? " Addr" : "");
}

void datasource_put(struct buf *b, uint64_t value)
{
	const union perf_mem_data_src d = {.val = value};

	text_str(b, "|OP ");
	put_operation(b, d.mem_op);
	text_str(b, "|LVL ");
	datasource_level(b, value);
	text_str(b, "|SNP ");
	datasource_snoop(b, value);
	text_str(b, "|TLB ");
	datasource_tlb(b, value);
	text_str(b, "|LCK ");
	datasource_lock(b, value);
	text_str(b, "|BLK ");
	datasource_blocked(b, value);
}

void datasource_page_size(struct buf *b, uint64_t size)
{
	const char *unit = "BKMG";

	if (!size) {
		text_str(b, "N/A");
		return;
	}
	for (; size / 1024 > 1 && unit[1]; unit++)
		size /= 1024;
	text_dec(b, size, 0);
	text_char(b, *unit);
}
