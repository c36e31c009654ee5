// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finding the kernel: its image through its exception vectors, its symbols in
 * the image, and by the symbols all that describes it.
 */
#include "guest/kernel_impl.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "guest/kallsyms.h"
#include "guest/notes.h"
#include "guest/arm64.h"
#include "guest/x86.h"
#include "util/text.h"
#include "util/xalloc.h"

#define IMAGE_MAX (1ull << 30)

static const char banner_begin[] = "Linux version ";

static struct range range_of(struct guest_kernel *k, const char *start, const char *end)
{
	bool has_start, has_end;
	struct range r = {guest_kernel_sym(k, start, &has_start),
			  guest_kernel_sym(k, end, &has_end)};

	if (!has_start || !has_end || r.end <= r.start || r.end - r.start > IMAGE_MAX)
		return (struct range){0};
	return r;
}

static int find_ranges(struct guest_kernel *k, struct vmprof_err *err)
{
	k->text = range_of(k, k->arch->text_start, "_etext");
	k->init_text = range_of(k, "_sinittext", "_einittext");
	k->image = range_of(k, "_text", "_end");
	if (!k->text.start)
		return err_set(err, ENOENT,
			       "the guest kernel's symbol table has no sensible %s and _etext",
			       k->arch->text_start);
	if (!k->image.start)
		k->image = k->text;
	return 0;
}

/*
 * The kernel's own page table has its half as long as the kernel lives; the one
 * that the CPU happened to have is some process's. While the kernel starts, it
 * has another one.
 */
static int own_table(struct guest_kernel *k)
{
	struct guest_as as = k->as;
	uint64_t va, gpa, again;
	bool found;
	int rc;

	if (!k->arch->top_table)
		return 0;
	va = guest_kernel_sym(k, k->arch->top_table, &found);
	if (!found)
		va = guest_kernel_sym(k, k->arch->old_top_table, &found);
	if (!found)
		return 0;
	rc = guest_virt_translate(k->v, k->as, va, &gpa);
	if (rc)
		return rc;
	as.root = gpa;
	rc = guest_virt_walk(k->v, as, k->text.start, &again);
	if (!rc && again != k->text_gpa)
		rc = -EFAULT;
	if (!rc)
		k->as = as;
	return rc;
}

static int find_address_space(struct guest_kernel *k, struct vmprof_err *err)
{
	int rc = guest_virt_translate(k->v, k->as, k->text.start, &k->text_gpa);

	if (!rc)
		rc = own_table(k);
	if (rc == -EFAULT)
		return err_set(
			err, ENOENT,
			"the guest's kernel is still starting: its page table is not set up");
	return rc ? err_sys(err, rc, "cannot read guest memory") : 0;
}

/*
 * Where the image has these bytes, at a multiple of 4: for what no symbol tells of a kernel that
 * has only functions in its table (no CONFIG_KALLSYMS_ALL). From @from, a multiple of 4, to a
 * megabyte of nothing. -ENOENT, -ESRCH
 */
static int search_image(struct guest_kernel *k, uint64_t from, const void *what, size_t len,
			uint64_t *va)
{
	enum { CHUNK = 1 << 20, FAR = 64 << 20, ALIGN = 4 };
	uint8_t *buf = xmalloc(CHUNK + len);
	int rc = -ENOENT;

	for (uint64_t at = from; at - from < FAR && rc == -ENOENT; at += CHUNK) {
		int64_t got = guest_virt_read_sparse(k->v, k->as, at, buf, CHUNK + len);

		if (got <= 0) {
			rc = got ? (int)got : -ENOENT;
			break;
		}
		for (size_t i = 0; i < CHUNK && rc; i += ALIGN) {
			if (memcmp(buf + i, what, len))
				continue;
			*va = at + i;
			rc = 0;
		}
	}
	free(buf);
	return rc;
}

static uint64_t behind_text(const struct guest_kernel *k)
{
	return (k->text.end + 3) & ~3ull;
}

static bool has_functions_only(struct guest_kernel *k)
{
	bool found;

	guest_kernel_sym(k, "linux_banner", &found);
	return !found;
}

/* 0 if there is none */
static uint64_t find_banner(struct guest_kernel *k)
{
	uint64_t va = guest_kernel_sym(k, "linux_banner", NULL);

	if (!va && search_image(k, behind_text(k), banner_begin, strlen(banner_begin), &va))
		va = 0;
	return va;
}

static struct range find_btf(struct guest_kernel *k)
{
	struct range r = range_of(k, "__start_BTF", "__stop_BTF");
	uint8_t header[BTF_HEADER_LEN];
	uint64_t va;
	size_t len;

	if (r.start || !has_functions_only(k) ||
	    search_image(k, behind_text(k), BTF_BEGIN, strlen(BTF_BEGIN), &va) ||
	    guest_virt_read(k->v, k->as, va, header, sizeof(header)))
		return r;
	len = btf_length(header);
	return len ? (struct range){va, va + len} : r;
}

static void no_types(struct guest_kernel *k, const char *why)
{
	snprintf(k->why_not, sizeof(k->why_not),
		 "the guest's kernel has no type information (BTF)%s: kernel symbols only", why);
}

static int load_btf(struct guest_kernel *k)
{
	struct range r = find_btf(k);
	uint8_t *data;
	int rc;

	if (!r.start) {
		no_types(k, "");
		return 0;
	}
	if (r.end - r.start > BTF_MAX_SIZE) {
		no_types(k, " of a sensible size");
		return 0;
	}
	data = xmalloc(r.end - r.start);
	rc = guest_virt_read(k->v, k->as, r.start, data, r.end - r.start);
	if (rc) {
		free(data);
		no_types(k, " that can be read");
		return rc == -EFAULT ? 0 : rc;
	}
	k->btf = btf_new(data, r.end - r.start);
	if (!k->btf)
		no_types(k, " that is valid");
	return 0;
}

/*
 * The stack protector's canary of the first task is random, set once at an early point of each
 * boot, and lies at a fixed place of the image. A kernel without one is known by its banner alone.
 */
static void find_cookie(struct guest_kernel *k, uint64_t banner)
{
	int off = guest_kernel_member(k, "task_struct", "stack_canary");
	bool found;
	uint64_t va = guest_kernel_sym(k, "init_task", &found);

	k->cookie_random = off >= 0 && found;
	k->cookie_va = k->cookie_random ? va + (uint64_t)off : banner;
	if (guest_virt_read(k->v, k->as, k->cookie_va, &k->cookie, sizeof(k->cookie)))
		k->cookie_va = 0;
}

static void find_release(struct guest_kernel *k, uint64_t va)
{
	char banner[192] = "";
	char *s = banner;

	if (!va || guest_virt_read_str(k->v, k->as, va, banner, sizeof(banner)))
		return;
	if (!strncmp(s, banner_begin, strlen(banner_begin)))
		s += strlen(banner_begin);
	s[strcspn(s, " \n")] = 0;
	escape_str(k->release, sizeof(k->release), s);
}

/* The vDSO, which the image has in it, has a build id of its own. */
static bool in_elf_image(struct guest_kernel *k, uint64_t va)
{
	enum { PAGE = 4096, VDSO_PAGES = 4 };
	uint32_t magic;

	va &= ~(uint64_t)(PAGE - 1);
	for (int i = 0; i < VDSO_PAGES; i++, va -= PAGE)
		if (!guest_virt_read(k->v, k->as, va, &magic, sizeof(magic)) &&
		    !memcmp(&magic, ELFMAG, SELFMAG))
			return true;
	return false;
}

/* The only such note, or none. */
static struct range search_note(struct guest_kernel *k)
{
	enum { TRIES = 16 };
	static const Elf64_Nhdr id = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID};
	struct range found = {0};
	uint8_t begin[sizeof(id) + 4];
	uint64_t at = behind_text(k);

	memcpy(begin, &id, sizeof(id));
	memcpy(begin + sizeof(id), ELF_NOTE_GNU, 4);
	for (int i = 0; i < TRIES; i++, at += 4) {
		if (search_image(k, at, begin, sizeof(begin), &at))
			return found;
		if (in_elf_image(k, at))
			continue;
		if (found.start)
			break;
		found = (struct range){at, at + sizeof(begin) + id.n_descsz};
	}
	return (struct range){0};
}

static void find_build_id(struct guest_kernel *k)
{
	struct range r = range_of(k, "__start_notes", "__stop_notes");

	if (!r.start && has_functions_only(k))
		r = search_note(k);
	if (r.start)
		k->build_id_len =
			notes_build_id(k->v, k->as, r.start, r.end - r.start, k->build_id);
}

static void find_made_code(struct guest_kernel *k)
{
	if (k->btf)
		k->made = made_codes_new(k->v, k->as, k->btf, &k->syms);
	if (k->made)
		made_codes_refresh(k->made, 0);
}

static void find_modules(struct guest_kernel *k)
{
	bool found;
	uint64_t list = guest_kernel_sym(k, "modules", &found);

	if (!found || !k->btf)
		return;
	k->modules = modules_new(k->v, k->as, k->btf, list);
	if (k->modules)
		modules_refresh(k->modules, 0);
}

/* @text: where the image of a kernel seems to begin in ->as */
static int load_image(struct guest_kernel *k, uint64_t text, struct vmprof_err *err)
{
	int rc = kallsyms_load(k->v, k->as, text, &k->syms, err);
	uint64_t banner;

	if (!rc)
		rc = find_ranges(k, err);
	if (!rc)
		rc = find_address_space(k, err);
	if (rc)
		return rc;
	rc = load_btf(k);
	if (rc)
		return err_sys(err, rc, "cannot read guest memory");
	if (k->btf && has_functions_only(k) && guest_virt_arch(k->v) == GUEST_ARCH_AARCH64)
		hidden_find(&k->hidden, k->v, k->as, k->btf, &k->syms);
	k->percpu_va = guest_kernel_sym(k, "__per_cpu_offset", NULL);
	banner = find_banner(k);
	find_cookie(k, banner);
	find_release(k, banner);
	find_build_id(k);
	find_modules(k);
	find_made_code(k);
	return 0;
}

static int load(struct guest_kernel *k, const struct guest_regs *regs, struct vmprof_err *err)
{
	struct guest_as roots[2];
	uint64_t text;
	int rc = k->arch->find_text(k->v, regs, &k->as, &text, err);

	if (!k->arch->vectors(regs, &k->vectors))
		k->vectors = 0;
	k->pti_seen = regs->cpl == 3 && k->arch->roots(regs, roots) > 1;
	return rc ? rc : load_image(k, text, err);
}

int guest_kernel_find(struct guest_kernel **out, struct guest_mem *mem, struct guest_virt *v,
		      const struct guest_regs *regs, struct vmprof_err *err)
{
	struct guest_paging before = *guest_virt_paging(v);
	struct guest_kernel *k = xcalloc(1, sizeof(*k));
	int rc;

	guest_virt_flush(v, 0);
	k->v = v;
	k->arch = guest_virt_arch(v) == GUEST_ARCH_X86_64 ? &x86_kernel : &arm64_kernel;
	rc = load(k, regs, err);
	if (rc) { /* one that was found earlier goes on */
		guest_virt_set_paging(v, &before);
		guest_kernel_free(k);
		return rc;
	}
	*out = k;
	return 0;
}

/* ---------- without registers ---------- */

#define IMAGES_MAX  32		/* that are loaded and looked at */
#define CLOCK_NS    60000000ull /* a kernel that does anything ticks within that time */
#define CLOCK_LOOKS 6

struct kernel_scan {
	struct guest_virt *v;
	struct guest_kernel *found; /* NULL: none yet */
	struct guest_paging paging; /* with which it was */
	unsigned tried;
	struct vmprof_err *err;
};

/* Where no symbol has the ticks: the clock of the first CPU's run queue, which goes on with them.
 */
static uint64_t clock_address(struct guest_kernel *k)
{
	int clock = guest_kernel_member(k, "rq", "clock");
	bool found;
	uint64_t va = guest_kernel_sym(k, "jiffies_64", &found), cpu;

	if (found)
		return va;
	cpu = k->hidden.runqueues ? guest_kernel_percpu(k, 0) : 0;
	return cpu && clock >= 0 ? cpu + k->hidden.runqueues + (uint64_t)clock : 0;
}

static bool read_clock(struct guest_kernel *k, uint64_t *clock)
{
	uint64_t va = clock_address(k);

	return va && !guest_virt_read(k->v, k->as, va, clock, sizeof(*clock));
}

static bool ticks(struct guest_kernel *k)
{
	const struct timespec pause = {.tv_nsec = CLOCK_NS / CLOCK_LOOKS};
	uint64_t first, now;

	if (!read_clock(k, &first))
		return false;
	for (unsigned look = 0; look < CLOCK_LOOKS; look++) {
		nanosleep(&pause, NULL);
		if (read_clock(k, &now) && now != first)
			return true;
	}
	return false;
}

/* Stops at one that ticks; without such a one the first that was found stays. */
static int try_image(void *ctx, struct guest_as as, uint64_t text)
{
	struct kernel_scan *s = ctx;
	struct guest_kernel *k = xcalloc(1, sizeof(*k));
	int rc;

	guest_virt_flush(s->v, 0);
	k->arch = guest_virt_arch(s->v) == GUEST_ARCH_X86_64 ? &x86_kernel : &arm64_kernel;
	k->v = s->v;
	k->as = as;
	rc = load_image(k, text, s->err);
	if (!rc && (!s->found || !guest_kernel_same(s->found, k)) && ticks(k)) {
		guest_kernel_free(s->found);
		s->found = k;
		s->paging = *guest_virt_paging(s->v);
		return 1;
	}
	if (!rc && !s->found) {
		s->found = k;
		s->paging = *guest_virt_paging(s->v);
	} else {
		guest_kernel_free(k);
	}
	return rc == -ESRCH || rc == -EPERM ? rc : ++s->tried == IMAGES_MAX;
}

static int try_table(void *ctx, const struct guest_paging *p, uint64_t text)
{
	struct kernel_scan *s = ctx;

	guest_virt_set_paging(s->v, p);
	return try_image(s, (struct guest_as){0}, text);
}

int guest_kernel_scan(struct guest_kernel **out, struct guest_mem *mem, struct guest_virt *v,
		      struct vmprof_err *err)
{
	struct kernel_scan s = {.v = v, .err = err, .paging = *guest_virt_paging(v)};
	int rc;

	err_set(err, ENOENT, "no 64-bit Linux kernel was found in the guest's memory");
	if (guest_virt_arch(v) == GUEST_ARCH_X86_64) {
		rc = x86_scan(mem, try_image, &s);
	} else {
		rc = arm64_scan(mem, try_table, &s);
		guest_virt_set_paging(v, &s.paging); /* one that was found earlier goes on */
	}
	if (rc < 0 && rc != -ETIMEDOUT) {
		guest_kernel_free(s.found);
		return err_sys(err, rc, "cannot read guest memory");
	}
	*out = s.found;
	return s.found ? 0 : -ENOENT;
}
