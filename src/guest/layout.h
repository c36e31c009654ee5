// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the members of the kernel's structures lie that src/guest reads; filled once a kernel, out
 * of its BTF. Members are named structure_member and are byte offsets, -1 if this kernel has none.
 */
#ifndef VMPROF_GUEST_LAYOUT_H
#define VMPROF_GUEST_LAYOUT_H

#include "guest/kernel.h"

struct guest_layout {
	uint64_t current_task; /* offset in a CPU's area of the pointer to its running task */
	uint64_t
		irq_stack; /* the same, of the pointer to its interrupt stack's last word; 0 none */
	uint64_t thread_size; /* bytes of a kernel stack */
	uint64_t saved_regs;  /* offset in it of user mode's registers, struct pt_regs */
	uint64_t init_task;   /* address of the first task; 0 unknown */
	uint64_t runqueues;   /* offset in a CPU's area of its struct rq */

	int32_t task_stack, task_flags, task_mm, task_exit_state, task_pid, task_tgid;
	int32_t task_real_parent, task_group_leader, task_start_time, task_comm, task_cgroups;
	int32_t task_fsbase, task_tasks;
	int32_t task_fs, task_cred, task_thread_pid;
	int32_t fs_root_mnt, fs_root_dentry;
	int32_t cred_euid;
	int32_t pid_level, pid_numbers; /* struct pid: its number in each namespace */
	int32_t upid_nr, upid_size;
	int32_t rq_curr;
	int32_t regs_record; /* aarch64: of struct pt_regs, its frame record */
	int32_t record_type; /* and of that, from its start */
	int32_t rq_switches; /* -1 also where it is not known where a CPU's struct rq is */

	int32_t mm_pgd, mm_map_count, mm_total_vm, mm_exec_vm, mm_start_stack, mm_start_brk, mm_brk;
	/*
	 * An address space's number, which no other one ever gets, and a count of flushes of its
	 * translations. aarch64 has neither: then what differs most from one address space to the
	 * next is in their place (mm_has_id is false), and cached translations are to be forgotten
	 * before they are used.
	 */
	bool mm_has_id;
	int32_t mm_ctx_id, mm_tlb_gen, mm_vdso;
	int32_t mm_root; /* maple tree */
	int32_t mm_rb;	 /* rbtree of kernels before 6.1 */

	int32_t vma_start, vma_end, vma_mm, vma_flags, vma_pgoff, vma_file, vma_rb;
	int32_t vma_ops, vma_private;
	uint64_t special_mapping_vmops; /* vm_ops of "[vdso]" and its like; 0 unknown */
	int32_t maple_range_pivot, maple_range_slot, maple_arange_pivot, maple_arange_slot;
	int32_t rb_left, rb_right;

	int32_t file_mode, file_inode, file_mnt, file_dentry;
	int32_t backing_mnt, backing_dentry; /* user_path of struct backing_file */
	int32_t dentry_parent, dentry_name, dentry_sb, dentry_hash_pprev;
	int32_t dentry_inode, dentry_children, dentry_sibling;
	int32_t mount_mnt, mount_parent, mount_mountpoint, vfsmount_root;
	int32_t mount_mounts, mount_child;
	int32_t inode_sb, inode_mapping, inode_ino, inode_size, inode_generation;
	int32_t inode_mode, inode_uid, inode_link;
	int32_t inode_bytes; /* of struct inode */
	int32_t sb_dev, sb_type, sb_magic;
	int32_t fstype_name;

	int32_t mapping_head;
	int32_t xa_shift, xa_slots;
	int32_t page_flags, page_index, page_mapping, page_size;
	uint64_t vmemmap_at;	 /* where the address of page 0's struct page is kept; 0 unknown */
	uint64_t vmemmap;	 /* or that address itself; 0 unknown */
	uint64_t page_offset_at; /* where the address of the kernel's map of all memory is kept; 0
				    unknown */
	int64_t pg_uptodate;

	int32_t cset_dfl_cgrp, cgroup_kn, kn_parent, kn_name;

	int32_t rq_lock, rq_clock, rq_core;
	int32_t scd_tick_gtod;
	int32_t cyc2ns_seq, cyc2ns_data, cyc2ns_mul, cyc2ns_shift, cyc2ns_offset;
	int32_t tk_clock, tk_cycle_last, tk_mult, tk_shift, tk_xtime_nsec, tk_base;
	int32_t tk_offs_real, tk_offs_boot, tk_offs_tai;
	int32_t tk_size, tk_seq_size;
};

/*
 * What is needed for processes is all there, or why not (a static sentence). Parts that only maps,
 * page cache, cgroups or clocks need may be missing all the same: -1.
 */
const char *guest_layout_init(struct guest_layout *l, struct guest_kernel *k, struct guest_virt *v);

/* aarch64: ->vmemmap, when all else is known; 0: it cannot be told. */
uint64_t guest_vmemmap_find(const struct guest_layout *l, struct guest_kernel *k,
			    struct guest_virt *v);

#endif
