// SPDX-License-Identifier: GPL-2.0-only
#include "guest/timekeeper.h"

#include <errno.h>
#include <string.h>

enum { TK_MAX = 1024, SEQ_MAX = 64, CYC2NS_MAX = 256, SHIFT_MAX = 63, TRIES = 8 };

int guest_tk_word(struct guest *g, const char *symbol, void *word, size_t len)
{
	bool found;
	uint64_t va = guest_kernel_sym(g->kernel, symbol, &found);

	return found ? guest_virt_read(g->virt, g->km.as, va, word, len) : -ENOENT;
}

/* ---------- the timekeeper ---------- */

/*
 * tk_core begins with its sequence counter, behind which the timekeeper is. 0 with all of it as it
 * was at one moment, -ENOENT, -EFAULT, -EAGAIN, -ESRCH.
 */
static int read_timekeeper(struct guest *g, uint8_t tk[TK_MAX])
{
	const struct guest_layout *l = &g->km.lay;
	uint64_t at = ((uint32_t)l->tk_seq_size + 7) & ~7u;
	bool found;
	uint64_t va = guest_kernel_sym(g->kernel, "tk_core", &found);

	if (!found || l->tk_seq_size < 4 || l->tk_seq_size > SEQ_MAX || l->tk_size <= 0 ||
	    l->tk_size > TK_MAX)
		return -ENOENT;
	for (int i = 0; i < TRIES; i++) {
		uint32_t before, after;
		int rc = guest_virt_read(g->virt, g->km.as, va, &before, sizeof(before));

		if (!rc)
			rc = guest_virt_read(g->virt, g->km.as, va + at, tk, (size_t)l->tk_size);
		if (!rc)
			rc = guest_virt_read(g->virt, g->km.as, va, &after, sizeof(after));
		if (rc)
			return rc;
		if (before == after && !(before & 1))
			return 0;
	}
	return -EAGAIN;
}

/* Is a member of @len bytes inside the timekeeper? */
static bool in_tk(const struct guest_layout *l, int32_t at, int32_t len)
{
	return at >= 0 && at <= l->tk_size - len;
}

int guest_tk_offsets(struct guest *g, struct guest_tk_offsets *out)
{
	const struct guest_layout *l = &g->km.lay;
	uint8_t tk[TK_MAX];
	int rc = read_timekeeper(g, tk);

	if (rc)
		return rc;
	if (!in_tk(l, l->tk_offs_real, 8) || !in_tk(l, l->tk_offs_boot, 8) ||
	    !in_tk(l, l->tk_offs_tai, 8))
		return -ENOENT;
	*out = (struct guest_tk_offsets){
		.real = (int64_t)guest_u64(tk, l->tk_offs_real),
		.boot = (int64_t)guest_u64(tk, l->tk_offs_boot),
		.tai = (int64_t)guest_u64(tk, l->tk_offs_tai),
	};
	return 0;
}

/* ---------- both out of the TSC ---------- */

/* Of a hypervisor's clock, or of jiffies, sched_clock is another function. */
static bool sched_clock_is_tsc(struct guest *g)
{
	bool found;
	uint64_t native = guest_kernel_sym(g->kernel, "native_sched_clock", &found), function;
	int32_t use_tsc;
	int rc = guest_tk_word(g, "__SCK__pv_sched_clock", &function, sizeof(function));

	if (rc != -ENOENT && (rc || !found || function != native))
		return false;
	return !guest_tk_word(g, "__use_tsc", &use_tsc, sizeof(use_tsc)) && use_tsc > 0;
}

/* The TSC at which sched_clock, before the boot's offset is added, was @ns. */
static int tsc_of(struct guest *g, uint64_t percpu, uint64_t ns, uint64_t *tsc)
{
	const struct guest_layout *l = &g->km.lay;
	int32_t size = guest_kernel_sizeof(g->kernel, "cyc2ns");
	int32_t each = guest_kernel_sizeof(g->kernel, "cyc2ns_data"), at;
	uint8_t raw[CYC2NS_MAX];
	bool found;
	uint64_t va = guest_kernel_sym(g->kernel, "cyc2ns", &found);
	uint32_t mul, shift;

	if (!found || size <= 0 || size > CYC2NS_MAX || each <= 0 || each > CYC2NS_MAX ||
	    l->cyc2ns_data < 0 || l->cyc2ns_data > size - 2 * each || l->cyc2ns_seq < 0 ||
	    l->cyc2ns_seq > size - 4 || l->cyc2ns_mul < 0 || l->cyc2ns_mul > each - 4 ||
	    l->cyc2ns_shift < 0 || l->cyc2ns_shift > each - 4 || l->cyc2ns_offset < 0 ||
	    l->cyc2ns_offset > each - 8)
		return -ENOENT;
	if (guest_virt_read(g->virt, g->km.as, va + percpu, raw, (size_t)size))
		return -EFAULT;
	at = l->cyc2ns_data + (guest_u32(raw, l->cyc2ns_seq) & 1 ? each : 0);
	mul = guest_u32(raw, at + l->cyc2ns_mul);
	shift = guest_u32(raw, at + l->cyc2ns_shift);
	if (!mul || shift > SHIFT_MAX)
		return -EAGAIN;
	ns -= guest_u64(raw, at + l->cyc2ns_offset);
	*tsc = (uint64_t)(((unsigned __int128)ns << shift) / mul);
	return 0;
}

static bool clock_is_tsc(struct guest *g, uint64_t clock)
{
	static const char *const names[] = {"clocksource_tsc", "clocksource_tsc_early"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		bool found;
		uint64_t va = guest_kernel_sym(g->kernel, names[i], &found);

		if (found && va == clock)
			return true;
	}
	return false;
}

static int mono_at(struct guest *g, uint64_t tsc, uint64_t *mono)
{
	const struct guest_layout *l = &g->km.lay;
	uint8_t tk[TK_MAX];
	__int128 ns;
	uint32_t shift;
	int rc = read_timekeeper(g, tk);

	if (rc)
		return rc;
	if (!in_tk(l, l->tk_clock, 8) || !in_tk(l, l->tk_cycle_last, 8) ||
	    !in_tk(l, l->tk_mult, 4) || !in_tk(l, l->tk_shift, 4) ||
	    !in_tk(l, l->tk_xtime_nsec, 8) || !in_tk(l, l->tk_base, 8) ||
	    !clock_is_tsc(g, guest_u64(tk, l->tk_clock)))
		return -ENOENT;
	shift = guest_u32(tk, l->tk_shift);
	if (shift > SHIFT_MAX)
		return -EAGAIN;
	/* the timekeeper may have gone on since: a little time before it is as good */
	ns = (__int128)(int64_t)(tsc - guest_u64(tk, l->tk_cycle_last)) * guest_u32(tk, l->tk_mult);
	ns = (ns + guest_u64(tk, l->tk_xtime_nsec)) >> shift;
	*mono = guest_u64(tk, l->tk_base) + (uint64_t)ns;
	return 0;
}

int guest_tk_mono_less_sched(struct guest *g, uint64_t percpu, uint64_t sched, int64_t *diff)
{
	uint64_t offset, tsc, mono;
	int rc;

	if (!sched_clock_is_tsc(g))
		return -ENOENT;
	rc = guest_tk_word(g, "__sched_clock_offset", &offset, sizeof(offset));
	if (!rc)
		rc = tsc_of(g, percpu, sched - offset, &tsc);
	if (!rc)
		rc = mono_at(g, tsc, &mono);
	if (!rc)
		*diff = (int64_t)(mono - sched);
	return rc;
}
