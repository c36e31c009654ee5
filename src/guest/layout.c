// SPDX-License-Identifier: GPL-2.0-only
#include "guest/layout.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "guest/arm64.h"
#include "guest/x86.h"

#define THREAD_SIZE_DEFAULT 16384

struct field {
	const char *type, *member;
	const char *older; /* its name, or where it was, in other versions; or NULL */
	uint16_t at;	   /* in struct guest_layout */
	bool required;	   /* no process can be told without it */
};

#define AT(m) offsetof(struct guest_layout, m)
#define NEED(type, member, at)                                                                     \
	{                                                                                          \
		type, member, NULL, AT(at), true                                                   \
	}
#define MAY(type, member, at)                                                                      \
	{                                                                                          \
		type, member, NULL, AT(at), false                                                  \
	}
#define OLD(type, member, older, at)                                                               \
	{                                                                                          \
		type, member, older, AT(at), false                                                 \
	}

static const struct field fields[] = {
	NEED("task_struct", "stack", task_stack),
	NEED("task_struct", "flags", task_flags),
	NEED("task_struct", "mm", task_mm),
	NEED("task_struct", "exit_state", task_exit_state),
	NEED("task_struct", "pid", task_pid),
	NEED("task_struct", "tgid", task_tgid),
	NEED("task_struct", "real_parent", task_real_parent),
	NEED("task_struct", "group_leader", task_group_leader),
	NEED("task_struct", "start_time", task_start_time),
	NEED("task_struct", "comm", task_comm),
	MAY("task_struct", "cgroups", task_cgroups),
	OLD("task_struct", "thread.fsbase", "thread.uw.tp_value", task_fsbase),
	MAY("task_struct", "fs", task_fs),
	MAY("task_struct", "cred", task_cred),
	MAY("task_struct", "thread_pid", task_thread_pid),
	MAY("fs_struct", "root.mnt", fs_root_mnt),
	MAY("fs_struct", "root.dentry", fs_root_dentry),
	MAY("cred", "euid", cred_euid),
	MAY("pid", "level", pid_level),
	MAY("pid", "numbers", pid_numbers),
	MAY("upid", "nr", upid_nr),
	MAY("task_struct", "tasks", task_tasks),
	MAY("rq", "nr_switches", rq_switches),
	MAY("rq", "curr", rq_curr),
	MAY("pt_regs", "stackframe", regs_record),
	MAY("frame_record_meta", "type", record_type),

	NEED("mm_struct", "pgd", mm_pgd),
	NEED("mm_struct", "map_count", mm_map_count),
	NEED("mm_struct", "total_vm", mm_total_vm),
	NEED("mm_struct", "exec_vm", mm_exec_vm),
	MAY("mm_struct", "start_stack", mm_start_stack),
	MAY("mm_struct", "start_brk", mm_start_brk),
	MAY("mm_struct", "brk", mm_brk),
	OLD("mm_struct", "context.ctx_id", "arg_start", mm_ctx_id),
	OLD("mm_struct", "context.tlb_gen", "total_vm", mm_tlb_gen),
	MAY("mm_struct", "context.vdso", mm_vdso),
	MAY("mm_struct", "mm_mt.ma_root", mm_root),
	MAY("mm_struct", "mm_rb.rb_node", mm_rb),

	MAY("vm_area_struct", "vm_start", vma_start),
	MAY("vm_area_struct", "vm_end", vma_end),
	MAY("vm_area_struct", "vm_mm", vma_mm),
	MAY("vm_area_struct", "vm_flags", vma_flags),
	MAY("vm_area_struct", "vm_pgoff", vma_pgoff),
	MAY("vm_area_struct", "vm_file", vma_file),
	MAY("vm_area_struct", "vm_ops", vma_ops),
	MAY("vm_area_struct", "vm_private_data", vma_private),
	MAY("vm_area_struct", "vm_rb", vma_rb),
	MAY("maple_range_64", "pivot", maple_range_pivot),
	MAY("maple_range_64", "slot", maple_range_slot),
	MAY("maple_arange_64", "pivot", maple_arange_pivot),
	MAY("maple_arange_64", "slot", maple_arange_slot),
	MAY("rb_node", "rb_left", rb_left),
	MAY("rb_node", "rb_right", rb_right),

	MAY("file", "f_mode", file_mode),
	MAY("file", "f_inode", file_inode),
	MAY("file", "f_path.mnt", file_mnt),
	MAY("file", "f_path.dentry", file_dentry),
	MAY("backing_file", "user_path.mnt", backing_mnt),
	MAY("backing_file", "user_path.dentry", backing_dentry),
	MAY("dentry", "d_parent", dentry_parent),
	MAY("dentry", "d_name", dentry_name),
	MAY("dentry", "d_sb", dentry_sb),
	MAY("dentry", "d_hash.pprev", dentry_hash_pprev),
	MAY("dentry", "d_inode", dentry_inode),
	OLD("dentry", "d_children", "d_subdirs", dentry_children),
	OLD("dentry", "d_sib", "d_child", dentry_sibling),
	MAY("mount", "mnt", mount_mnt),
	MAY("mount", "mnt_parent", mount_parent),
	MAY("mount", "mnt_mountpoint", mount_mountpoint),
	MAY("mount", "mnt_mounts", mount_mounts),
	MAY("mount", "mnt_child", mount_child),
	MAY("vfsmount", "mnt_root", vfsmount_root),
	MAY("inode", "i_sb", inode_sb),
	MAY("inode", "i_mapping", inode_mapping),
	MAY("inode", "i_ino", inode_ino),
	MAY("inode", "i_size", inode_size),
	MAY("inode", "i_generation", inode_generation),
	MAY("inode", "i_mode", inode_mode),
	MAY("inode", "i_uid", inode_uid),
	MAY("inode", "i_link", inode_link),
	MAY("super_block", "s_dev", sb_dev),
	MAY("super_block", "s_type", sb_type),
	MAY("super_block", "s_magic", sb_magic),
	MAY("file_system_type", "name", fstype_name),

	MAY("address_space", "i_pages.xa_head", mapping_head),
	MAY("xa_node", "shift", xa_shift),
	MAY("xa_node", "slots", xa_slots),
	MAY("page", "flags", page_flags),
	OLD("page", "index", "__folio_index", page_index),
	MAY("page", "mapping", page_mapping),

	MAY("css_set", "dfl_cgrp", cset_dfl_cgrp),
	MAY("cgroup", "kn", cgroup_kn),
	OLD("kernfs_node", "parent", "__parent", kn_parent),
	MAY("kernfs_node", "name", kn_name),

	OLD("rq", "__lock", "lock", rq_lock),
	MAY("rq", "clock", rq_clock),
	MAY("rq", "core_enabled", rq_core),
	MAY("sched_clock_data", "tick_gtod", scd_tick_gtod),
	MAY("cyc2ns", "seq", cyc2ns_seq),
	MAY("cyc2ns", "data", cyc2ns_data),
	MAY("cyc2ns_data", "cyc2ns_mul", cyc2ns_mul),
	MAY("cyc2ns_data", "cyc2ns_shift", cyc2ns_shift),
	MAY("cyc2ns_data", "cyc2ns_offset", cyc2ns_offset),
	MAY("timekeeper", "tkr_mono.clock", tk_clock),
	MAY("timekeeper", "tkr_mono.cycle_last", tk_cycle_last),
	MAY("timekeeper", "tkr_mono.mult", tk_mult),
	MAY("timekeeper", "tkr_mono.shift", tk_shift),
	MAY("timekeeper", "tkr_mono.xtime_nsec", tk_xtime_nsec),
	MAY("timekeeper", "tkr_mono.base", tk_base),
	MAY("timekeeper", "offs_real", tk_offs_real),
	MAY("timekeeper", "offs_boot", tk_offs_boot),
	MAY("timekeeper", "offs_tai", tk_offs_tai),
};

static int32_t *place(struct guest_layout *l, const struct field *f)
{
	return (int32_t *)((char *)l + f->at);
}

/*
 * aarch64 keeps it in a register that user mode uses, too, and beside that in a per-CPU variable
 * that no symbol tells of; the scheduler's word differs from them only amidst a switch.
 */
static const char *find_current_arm64(struct guest_layout *l, struct guest_kernel *k)
{
	bool found;
	uint64_t rq = guest_kernel_sym(k, "runqueues", &found);

	if (!found || l->rq_curr < 0 || !l->init_task)
		return "the kernel's code does not show where its CPUs' data and its tasks are";
	l->current_task = rq + (uint64_t)l->rq_curr;
	return NULL;
}

/* The pointer to the running task: alone up to 6.1, in struct pcpu_hot from 6.2, alone again later.
 */
static const char *find_current_x86(struct guest_layout *l, struct guest_kernel *k)
{
	bool found;
	uint64_t at = guest_kernel_sym(k, "pcpu_hot", &found);
	int member = found ? guest_kernel_member(k, "pcpu_hot", "current_task") : -ENOENT;

	if (member >= 0) {
		l->current_task = at + (uint64_t)member;
		member = guest_kernel_member(k, "pcpu_hot", "hardirq_stack_ptr");
		l->irq_stack = member >= 0 ? at + (uint64_t)member : 0;
		return NULL;
	}
	l->irq_stack = guest_kernel_sym(k, "hardirq_stack_ptr", &found);
	l->current_task = guest_kernel_sym(k, "current_task", &found);
	return found ? NULL : "the kernel's symbols do not say where the running task is kept";
}

static const char *find_current(struct guest_layout *l, struct guest_kernel *k)
{
	return guest_kernel_arch(k) == GUEST_ARCH_AARCH64 ? find_current_arm64(l, k)
							  : find_current_x86(l, k);
}

/* What tells which task ran when, and all tasks: for samples without registers. */
static void find_tasks(struct guest_layout *l, struct guest_kernel *k)
{
	bool found;

	l->init_task = guest_kernel_sym(k, "init_task", &found);
	l->runqueues = guest_kernel_sym(k, "runqueues", &found);
	if (!found)
		l->rq_switches = -1;
}

static void find_stack_x86(struct guest_layout *l, struct guest_kernel *k)
{
	bool have_start, have_end;
	uint64_t start = guest_kernel_sym(k, "init_stack", &have_start);
	uint64_t end = guest_kernel_sym(k, "__end_init_task", &have_end);

	if (!have_start)
		start = guest_kernel_sym(k, "__start_init_task", &have_start);
	l->thread_size = THREAD_SIZE_DEFAULT;
	if (have_start && have_end && end - start >= 4096 && end - start <= 1 << 18 &&
	    !((end - start) & (end - start - 1)))
		l->thread_size = end - start;
	/* TOP_OF_KERNEL_STACK_PADDING: what FRED's hardware pushes more, used or not */
	guest_kernel_sym(k, "asm_fred_entrypoint_user", &have_start);
	l->saved_regs = l->thread_size - PT_REGS_BYTES - (have_start ? 16 : 0);
}

/* A stack is at least a page, since it is mapped page by page (CONFIG_VMAP_STACK). */
static void find_stack_arm64(struct guest_layout *l, struct guest_kernel *k)
{
	int size = guest_kernel_sizeof(k, "pt_regs");

	l->thread_size = guest_kernel_page_size(k);
	if (l->thread_size < THREAD_SIZE_DEFAULT)
		l->thread_size = THREAD_SIZE_DEFAULT;
	l->saved_regs = l->thread_size;
	if (size >= ARM64_PT_REGS_USED && size <= 4096)
		l->saved_regs -= (uint64_t)size;
	else
		l->regs_record = -1;
}

static void find_sizes(struct guest_layout *l, struct guest_kernel *k)
{
	bool have_start;

	l->vmemmap_at = guest_kernel_sym(k, "vmemmap_base", &have_start);
	l->page_offset_at = guest_kernel_sym(k, "page_offset_base", &have_start);
	l->page_size = guest_kernel_sizeof(k, "page");
	l->inode_bytes = guest_kernel_sizeof(k, "inode");
	l->upid_size = guest_kernel_sizeof(k, "upid");
	if (guest_kernel_enum(k, "PG_uptodate", &l->pg_uptodate))
		l->pg_uptodate = -1;
	l->tk_size = guest_kernel_sizeof(k, "timekeeper");
	l->tk_seq_size = guest_kernel_sizeof(k, "seqcount_raw_spinlock");
	l->special_mapping_vmops = guest_kernel_sym(k, "special_mapping_vmops", &have_start);
}

const char *guest_layout_init(struct guest_layout *l, struct guest_kernel *k, struct guest_virt *v)
{
	const char *why_not = NULL;

	memset(l, 0, sizeof(*l));
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		const struct field *f = &fields[i];
		int at = guest_kernel_member(k, f->type, f->member);

		if (at < 0 && f->older)
			at = guest_kernel_member(k, f->type, f->older);
		*place(l, f) = at < 0 ? -1 : at;
		if (at < 0 && f->required)
			why_not = "the kernel's types (BTF) are missing or lack members of "
				  "task_struct or "
				  "mm_struct";
	}
	find_sizes(l, k);
	find_tasks(l, k);
	if (guest_kernel_arch(k) == GUEST_ARCH_AARCH64)
		find_stack_arm64(l, k);
	else
		find_stack_x86(l, k);
	if (guest_kernel_arch(k) == GUEST_ARCH_AARCH64)
		l->vmemmap = guest_vmemmap_find(l, k, v);
	l->mm_has_id = guest_kernel_member(k, "mm_struct", "context.ctx_id") >= 0;
	if (l->mm_ctx_id < 0 || l->mm_tlb_gen < 0)
		why_not = "the kernel's types (BTF) lack members of mm_struct";
	return why_not ? why_not : find_current(l, k);
}
