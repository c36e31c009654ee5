// SPDX-License-Identifier: GPL-2.0-only
/*
 * One process in a made-up guest (fakeguest.h): task, address space with a file, a stack and the
 * vdso in a maple tree, path, page cache, cgroup, a kernel stack and ORC to unwind it. It stands in
 * user code four calls deep (.user), or in the kernel below that (.kernel).
 *
 * faketask_add() goes between fakeguest_init() and fakeguest_finish().
 */
#ifndef VMPROF_TESTS_UNIT_FAKETASK_H
#define VMPROF_TESTS_UNIT_FAKETASK_H

#include "tests/unit/fakeguest.h"

#define FT_CODE	      0x400000ull /* "/srv/app", one page, its build id 0xcc.. */
#define FT_STACK      0x7ffffffde000ull
#define FT_VDSO	      0x7ffff7fc1000ull
#define FT_FRAMES     4
#define FT_PID	      100
#define FT_COMM	      "worker"
#define FT_CGROUP     "/app.slice"
#define FT_VMEMMAP    0xffffea0000000000ull /* with LA57 0xffd4000000000000 */
#define FT_FUNC(i)    (FT_CODE + 0x200 + (uint64_t)(i)*0x40)
#define FT_RETURN(i)  (FT_FUNC(i) + 0x20) /* behind the call of function i - 1; i from 1 */
#define FT_THREAD     16384ull
#define FT_KERNEL_IP  (FG_FUNC_0 + 5 * 8)
#define FT_KERNEL_RET (FG_DIV_ERROR + 5)

struct faketask {
	uint64_t task, mm, root; /* root: gpa of its page table */
	uint64_t kstack;	 /* lowest address */
	struct guest_regs user, kernel;
};

/* type, member, offset, the member's type */
static const struct {
	const char *of, *name;
	uint32_t off;
	const char *type;
} ft_members[] = {
	{"thread_struct", "fsbase", 8, ""},
	{"task_struct", "stack", 0x10, "*"},
	{"task_struct", "flags", 0x18, ""},
	{"task_struct", "mm", 0x20, "*"},
	{"task_struct", "exit_state", 0x28, ""},
	{"task_struct", "pid", 0x2c, ""},
	{"task_struct", "tgid", 0x30, ""},
	{"task_struct", "real_parent", 0x38, "*"},
	{"task_struct", "group_leader", 0x40, "*"},
	{"task_struct", "start_time", 0x48, ""},
	{"task_struct", "comm", 0x50, ""},
	{"task_struct", "cgroups", 0x60, "*"},
	{"task_struct", "thread", 0x70, "thread_struct"},
	{"mm_context_t", "ctx_id", 0, ""},
	{"mm_context_t", "tlb_gen", 8, ""},
	{"mm_context_t", "vdso", 16, "*"},
	{"maple_tree", "ma_root", 8, "*"},
	{"mm_struct", "mm_mt", 0, "maple_tree"},
	{"mm_struct", "pgd", 0x20, "*"},
	{"mm_struct", "map_count", 0x28, ""},
	{"mm_struct", "total_vm", 0x30, ""},
	{"mm_struct", "exec_vm", 0x38, ""},
	{"mm_struct", "start_brk", 0x40, ""},
	{"mm_struct", "brk", 0x48, ""},
	{"mm_struct", "start_stack", 0x50, ""},
	{"mm_struct", "context", 0x60, "mm_context_t"},
	{"vm_area_struct", "vm_start", 0, ""},
	{"vm_area_struct", "vm_end", 8, ""},
	{"vm_area_struct", "vm_mm", 16, "*"},
	{"vm_area_struct", "vm_flags", 32, ""},
	{"vm_area_struct", "vm_ops", 40, "*"},
	{"vm_area_struct", "vm_pgoff", 48, ""},
	{"vm_area_struct", "vm_file", 56, "*"},
	{"vm_area_struct", "vm_private_data", 64, "*"},
	{"maple_range_64", "pivot", 8, ""},
	{"maple_range_64", "slot", 128, ""},
	{"maple_arange_64", "pivot", 8, ""},
	{"maple_arange_64", "slot", 80, ""},
	{"path", "mnt", 0, "*"},
	{"path", "dentry", 8, "*"},
	{"file", "f_mode", 0, ""},
	{"file", "f_inode", 8, "*"},
	{"file", "f_path", 16, "path"},
	{"hlist_bl_node", "pprev", 8, "*"},
	{"dentry", "d_hash", 0, "hlist_bl_node"},
	{"dentry", "d_parent", 16, "*"},
	{"dentry", "d_name", 24, ""},
	{"dentry", "d_sb", 48, "*"},
	{"vfsmount", "mnt_root", 0, "*"},
	{"mount", "mnt_parent", 0, "*"},
	{"mount", "mnt_mountpoint", 8, "*"},
	{"mount", "mnt", 16, "vfsmount"},
	{"inode", "i_sb", 0, "*"},
	{"inode", "i_mapping", 8, "*"},
	{"inode", "i_ino", 16, ""},
	{"inode", "i_size", 24, ""},
	{"inode", "i_generation", 32, ""},
	{"file_system_type", "name", 0, "*"},
	{"super_block", "s_dev", 0, ""},
	{"super_block", "s_type", 8, "*"},
	{"super_block", "s_magic", 16, ""},
	{"xarray", "xa_head", 0, "*"},
	{"address_space", "i_pages", 8, "xarray"},
	{"xa_node", "shift", 0, ""},
	{"xa_node", "slots", 40, ""},
	{"page", "flags", 0, ""},
	{"page", "mapping", 24, "*"},
	{"page", "index", 32, ""},
	{"css_set", "dfl_cgrp", 0, "*"},
	{"cgroup", "kn", 0, "*"},
	{"kernfs_node", "parent", 0, "*"},
	{"kernfs_node", "name", 8, "*"},
	{"orc_entry", "signal", 5, ""},
};

FG_FUNC void ft_types(struct fakeguest *g)
{
	enum { N = sizeof(ft_members) / sizeof(*ft_members), SIZE_PAGE = 64 };

	for (int i = 0; i < N; i++) {
		bool is_new = strcmp(ft_members[i].of, "task_struct");

		for (int j = 0; j < i; j++)
			is_new &= strcmp(ft_members[i].of, ft_members[j].of) != 0;
		if (is_new)
			fg_struct(g, ft_members[i].of,
				  strcmp(ft_members[i].of, "page") ? 0x100 : SIZE_PAGE);
	}
	for (int i = 0; i < N; i++)
		fg_member(g, ft_members[i].of, ft_members[i].name, ft_members[i].off,
			  ft_members[i].type);
	fg_enum(g, "PG_uptodate", 2);
}

/* ---------- the file ---------- */

/* A qstr with its text behind it. */
FG_FUNC uint64_t ft_dentry(struct fakeguest *g, uint64_t at, uint64_t parent, const char *name,
			   uint64_t sb)
{
	fg_put64(g, at + 8, at); /* hashed */
	fg_put64(g, at + 16, parent);
	fg_put32(g, at + 28, (uint32_t)strlen(name));
	fg_put64(g, at + 32, at + 56);
	fg_put64(g, at + 48, sb);
	fg_puts(g, at + 56, name);
	return at;
}

/* struct file of /srv/app, whose only page is at @gpa. */
FG_FUNC uint64_t ft_file(struct fakeguest *g, uint64_t gpa)
{
	uint64_t at = fg_data(g, 1), sb = at, fstype = at + 0x40, mount = at + 0x80, file;
	uint64_t root = at + 0x200, srv = at + 0x300, app = at + 0x400, inode = at + 0x100;
	uint64_t mapping = at + 0x180, vmemmap, page;

	vmemmap = g->opt.la57 ? 0xffd4000000000000ull : FT_VMEMMAP;
	fg_map(g, g->root, vmemmap, fg_alloc(g, 2), 2);
	page = vmemmap + gpa / FG_PAGE * 64;
	fg_sym(g, 'D', "vmemmap_base", g->spare);
	fg_put64(g, g->spare, vmemmap);
	fg_put64(g, page, 1u << 2);
	fg_put64(g, page + 24, mapping);

	fg_put32(g, sb, 8 << 20 | 1);
	fg_put64(g, sb + 8, fstype);
	fg_put64(g, sb + 16, 0xef53);
	fg_put64(g, fstype, fstype + 16);
	fg_puts(g, fstype + 16, "ext4");
	ft_dentry(g, root, root, "/", sb);
	ft_dentry(g, srv, root, "srv", sb);
	ft_dentry(g, app, srv, "app", sb);
	fg_put64(g, mount, mount);
	fg_put64(g, mount + 8, root);
	fg_put64(g, mount + 16, root);
	fg_put64(g, inode, sb);
	fg_put64(g, inode + 8, mapping);
	fg_put64(g, inode + 16, 4711);
	fg_put64(g, inode + 24, FG_PAGE);
	fg_put32(g, inode + 32, 7);
	fg_put64(g, mapping + 8, page);
	file = at + 0x500;
	fg_put64(g, file + 8, inode);
	fg_put64(g, file + 16, mount + 16);
	fg_put64(g, file + 24, app);
	return file;
}

/* An ELF file of one page: headers, a build id, four functions that call each other. */
FG_FUNC void ft_code(struct fakeguest *g, uint64_t gpa)
{
	Elf64_Ehdr e = {.e_ident = ELFMAG, .e_type = ET_EXEC, .e_machine = EM_X86_64};
	Elf64_Phdr p[2] = {
		{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 4096, .p_memsz = 4096},
		{.p_type = PT_NOTE, .p_flags = PF_R, .p_offset = 0x180, .p_filesz = 36},
	};
	uint64_t va = fg_kva(g, gpa);

	e.e_ident[EI_CLASS] = ELFCLASS64;
	e.e_ident[EI_DATA] = ELFDATA2LSB;
	e.e_phoff = sizeof(e);
	e.e_phentsize = sizeof(*p);
	e.e_phnum = 2;
	p[0].p_vaddr = FT_CODE;
	p[1].p_vaddr = FT_CODE + 0x180;
	fg_write(g, g->root, va, &e, sizeof(e));
	fg_write(g, g->root, va + sizeof(e), p, sizeof(p));
	fg_build_id(g, va + 0x180, 0xcc);
	for (int i = 0; i < FT_FRAMES; i++) {
		int32_t rel = i ? (int32_t)(FT_FUNC(i - 1) - FT_RETURN(i)) : 0;
		uint64_t call = va + (FT_RETURN(i) - 5 - FT_CODE);

		memset(g->fm.ram + gpa + (FT_FUNC(i) - FT_CODE), 0x90, 0x40);
		if (!i)
			continue;
		fg_write(g, g->root, call, (uint8_t[]){0xe8}, 1);
		fg_write(g, g->root, call + 1, &rel, 4);
	}
}

/* ---------- the address space ---------- */

FG_FUNC void ft_vma(struct fakeguest *g, uint64_t at, uint64_t mm, uint64_t start, uint64_t flags,
		    uint64_t file)
{
	fg_put64(g, at, start);
	fg_put64(g, at + 8, start + FG_PAGE);
	fg_put64(g, at + 16, mm);
	fg_put64(g, at + 32, flags);
	fg_put64(g, at + 56, file);
}

FG_FUNC void ft_mm(struct fakeguest *g, struct faketask *t, uint64_t file)
{
	static const uint64_t starts[] = {FT_CODE, FT_VDSO, FT_STACK};
	uint64_t mm = t->mm = fg_data(g, 1), node = mm + 0x100, vma = mm + 0x200;
	int slot = 0;

	fg_put64(g, mm + 8, node | 1 << 3 | 4 | 2); /* a leaf */
	fg_put64(g, mm + 0x20, fg_kva(g, t->root));
	fg_put32(g, mm + 0x28, 3);
	fg_put64(g, mm + 0x30, 3);
	fg_put64(g, mm + 0x38, 2);
	fg_put64(g, mm + 0x50, FT_STACK + FG_PAGE - 64);
	fg_put64(g, mm + 0x60, 1);
	fg_put64(g, mm + 0x68, 1);
	fg_put64(g, mm + 0x70, FT_VDSO);
	for (int i = 0; i < 3; i++) {
		fg_put64(g, node + 8 + 8u * (unsigned)slot++, starts[i] - 1);
		fg_put64(g, node + 8 + 8u * (unsigned)slot, starts[i] + FG_PAGE - 1);
		fg_put64(g, node + 128 + 8u * (unsigned)slot++, vma + 0x80u * (unsigned)i);
	}
	ft_vma(g, vma, mm, FT_CODE, 5, file);
	ft_vma(g, vma + 0x80, mm, FT_VDSO, 5, 0);
	ft_vma(g, vma + 0x100, mm, FT_STACK, 3, 0);
}

/* Frames of functions 1 to 3 by frame pointer, the outermost with none. */
FG_FUNC void ft_user_stack(struct fakeguest *g, struct faketask *t)
{
	uint64_t sp = FT_STACK + 0xe00, bp = sp + 16;

	fg_map(g, t->root, FT_STACK, fg_alloc(g, 1), 1);
	t->user = g->regs;
	t->user.ip = FT_FUNC(0) + 8;
	t->user.sp = sp;
	t->user.fp = bp;
	for (int i = 1; i < FT_FRAMES; i++, bp += 32) {
		uint64_t frame[2] = {i < FT_FRAMES - 1 ? bp + 32 : 0, FT_RETURN(i)};

		fg_write(g, t->root, bp, frame, sizeof(frame));
	}
	t->user.gpr[X86_RSP] = t->user.sp;
	t->user.gpr[X86_RBP] = t->user.fp;
	t->user.pgtable = t->root;
	t->user.cpl = 3;
	t->user.kernel_gs_base = g->percpu;
	t->user.gs_base = 0;
}

/* ---------- the kernel's side ---------- */

/* Code before the entry code: return address on top. Entry code: registers on top. */
FG_FUNC void ft_orc(struct fakeguest *g)
{
	static const uint8_t entries[3][6] = {
		{8, 0, 0, 0, 5, 2},  /* sp + 8, CALL */
		{0, 0, 0, 0, 5, 11}, /* sp, REGS, signal */
		{0, 0, 0, 0, 0, 0},  /* undefined */
	};
	static const uint64_t at[] = {FG_TEXT, FG_DIV_ERROR, FG_TEXT + 0xf80};
	uint64_t ip = fg_image(g, 1), orc = ip + 64;

	for (unsigned i = 0; i < 3; i++)
		fg_put32(g, ip + 4 * i, (uint32_t)(at[i] - (ip + 4 * i)));
	fg_write(g, g->root, orc, entries, sizeof(entries));
	fg_sym(g, 'R', "__start_orc_unwind_ip", ip);
	fg_sym(g, 'R', "__stop_orc_unwind_ip", ip + 12);
	fg_sym(g, 'R', "__start_orc_unwind", orc);
	fg_sym(g, 'R', "__stop_orc_unwind", orc + sizeof(entries));
	fg_sym(g, 'R', "__start_orc_header", orc + 128);
}

FG_FUNC void ft_kernel_stack(struct fakeguest *g, struct faketask *t)
{
	enum { PT_BP = 4, PT_IP = 16, PT_CS, PT_FLAGS, PT_SP, PT_SS, PT_WORDS };
	uint64_t regs[PT_WORDS] = {0}, top;
	int32_t rel = (int32_t)(FT_KERNEL_IP - FT_KERNEL_RET);

	fg_write(g, g->root, FT_KERNEL_RET - 5, (uint8_t[]){0xe8}, 1);
	fg_write(g, g->root, FT_KERNEL_RET - 4, &rel, 4);
	g->next = (g->next + FT_THREAD - 1) & ~(FT_THREAD - 1);
	t->kstack = fg_data(g, FT_THREAD / FG_PAGE);
	top = t->kstack + FT_THREAD - sizeof(regs);
	regs[PT_BP] = t->user.fp;
	regs[PT_IP] = t->user.ip;
	regs[PT_CS] = 0x33;
	regs[PT_FLAGS] = 0x246;
	regs[PT_SP] = t->user.sp;
	regs[PT_SS] = 0x2b;
	fg_write(g, g->root, top, regs, sizeof(regs));
	fg_put64(g, top - 8, FT_KERNEL_RET);
	t->kernel = g->regs;
	t->kernel.pgtable = t->root;
	t->kernel.ip = FT_KERNEL_IP;
	t->kernel.sp = t->kernel.gpr[X86_RSP] = top - 8;
}

FG_FUNC void ft_cgroup(struct fakeguest *g, uint64_t css_set)
{
	uint64_t cgroup = css_set + 16, kn = css_set + 32, root = css_set + 64;

	fg_put64(g, css_set, cgroup);
	fg_put64(g, cgroup, kn);
	fg_put64(g, kn, root);
	fg_put64(g, kn + 8, css_set + 96);
	fg_puts(g, css_set + 96, &FT_CGROUP[1]);
	fg_put64(g, root + 8, css_set + 112);
}

FG_FUNC void faketask_add(struct fakeguest *g, struct faketask *t)
{
	uint64_t code = fg_alloc(g, 1), file;

	memset(t, 0, sizeof(*t));
	ft_types(g);
	file = ft_file(g, code);
	ft_code(g, code);
	ft_orc(g);
	g->next = (g->next + 2 * FG_PAGE - 1) & ~(2 * FG_PAGE - 1);
	t->root = fg_new_root(g);
	fg_map(g, t->root, FT_CODE, code, 1);
	ft_user_stack(g, t);
	ft_kernel_stack(g, t);
	ft_mm(g, t, file);
	t->task = fg_data(g, 1);
	fg_put64(g, t->task + 0x10, t->kstack);
	fg_put64(g, t->task + 0x20, t->mm);
	fg_put32(g, t->task + 0x2c, FT_PID);
	fg_put32(g, t->task + 0x30, FT_PID);
	fg_put64(g, t->task + 0x38, g->init_task);
	fg_put64(g, t->task + 0x40, t->task);
	fg_put64(g, t->task + 0x48, 1000);
	fg_puts(g, t->task + 0x50, FT_COMM);
	fg_put64(g, t->task + 0x60, t->task + 0x800);
	ft_cgroup(g, t->task + 0x800);
	fg_put64(g, g->percpu + FG_PERCPU_SYM, t->task);
}

#endif
