// SPDX-License-Identifier: GPL-2.0-only
#include "stat/reasons.h"

#include <stdio.h>
#if defined(__x86_64__)
enum { /* of the processor's exceptions (Intel SDM vol. 3, 6.3.1), which asm/svm.h names */
       DE_VECTOR = 0,
       DB_VECTOR = 1,
       BP_VECTOR = 3,
       OF_VECTOR = 4,
       BR_VECTOR = 5,
       UD_VECTOR = 6,
       NM_VECTOR = 7,
       DF_VECTOR = 8,
       TS_VECTOR = 10,
       NP_VECTOR = 11,
       SS_VECTOR = 12,
       GP_VECTOR = 13,
       PF_VECTOR = 14,
       MF_VECTOR = 16,
       AC_VECTOR = 17,
       MC_VECTOR = 18,
       XM_VECTOR = 19,
};
#include <asm/svm.h>
#include <asm/vmx.h>
#endif

struct reason {
	uint32_t number;
	const char *name;
};

#if defined(__x86_64__)
static const struct reason vmx[] = {VMX_EXIT_REASONS};
static const struct reason svm[] = {SVM_EXIT_REASONS};
#else /* no kernel of this machine has them */
static const struct reason vmx[] = {{0, "EXCEPTION_NMI"}};
static const struct reason svm[] = {{0, "read_cr0"}};
#endif

/* arch/arm64/include/asm/kvm_asm.h */
static const struct reason arm_type[] = {
	{0, "IRQ"}, {1, "SERROR"}, {2, "TRAP"}, {3, "ILLEGAL"}, {0xbadca11, "HYP_GONE"},
};

/* Exception classes of ESR_ELx (Arm ARM, D17.2.37), by the kernel's names for them. */
static const struct reason arm_class[] = {
	{0x00, "UNKNOWN"},     {0x01, "WFx"},	      {0x03, "CP15_32"},     {0x04, "CP15_64"},
	{0x05, "CP14_MR"},     {0x06, "CP14_LS"},     {0x07, "FP_ASIMD"},    {0x08, "CP10_ID"},
	{0x09, "PAC"},	       {0x0c, "CP14_64"},     {0x0d, "BTI"},	     {0x0e, "ILL"},
	{0x11, "SVC32"},       {0x12, "HVC32"},	      {0x13, "SMC32"},	     {0x15, "SVC64"},
	{0x16, "HVC64"},       {0x17, "SMC64"},	      {0x18, "SYS64"},	     {0x19, "SVE"},
	{0x1a, "ERET"},	       {0x1c, "FPAC"},	      {0x1d, "SME"},	     {0x1f, "IMP_DEF"},
	{0x20, "IABT_LOW"},    {0x21, "IABT_CUR"},    {0x22, "PC_ALIGN"},    {0x24, "DABT_LOW"},
	{0x25, "DABT_CUR"},    {0x26, "SP_ALIGN"},    {0x28, "FP_EXC32"},    {0x2c, "FP_EXC64"},
	{0x2f, "SERROR"},      {0x30, "BREAKPT_LOW"}, {0x31, "BREAKPT_CUR"}, {0x32, "SOFTSTP_LOW"},
	{0x33, "SOFTSTP_CUR"}, {0x34, "WATCHPT_LOW"}, {0x35, "WATCHPT_CUR"}, {0x38, "BKPT32"},
	{0x3a, "VECTOR32"},    {0x3c, "BRK64"},
};

#define TABLE(t) t, sizeof(t) / sizeof(*(t))

static const struct {
	const struct reason *reasons;
	size_t n;
	uint32_t mask; /* other bits say more of it */
} tables[] = {
	[EXIT_VMX] = {TABLE(vmx), 0xffff},
	[EXIT_SVM] = {TABLE(svm), UINT32_MAX},
	[EXIT_ARM_TYPE] = {TABLE(arm_type), 0x7fffffff},
	[EXIT_ARM_CLASS] = {TABLE(arm_class), UINT32_MAX},
};

char *exit_reason_name(char *out, size_t size, enum exit_kind kind, uint32_t reason)
{
	for (size_t i = 0; i < tables[kind].n; i++) {
		if (tables[kind].reasons[i].number != (reason & tables[kind].mask))
			continue;
		snprintf(out, size, "%s", tables[kind].reasons[i].name);
		return out;
	}
	snprintf(out, size, "%#x", reason);
	return out;
}
