// SPDX-License-Identifier: GPL-2.0-only
#include "report/regnames.h"

#include <stddef.h>
#include <string.h>
#include <sys/utsname.h>

#define PAIR(name) name, name

static const char *const x86[] = {
	"AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS", "ES", "FS",
	"GS", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15",
	/* of two words each */
	[32] = PAIR("XMM0"), PAIR("XMM1"), PAIR("XMM2"), PAIR("XMM3"), PAIR("XMM4"), PAIR("XMM5"),
	PAIR("XMM6"), PAIR("XMM7"), PAIR("XMM8"), PAIR("XMM9"), PAIR("XMM10"), PAIR("XMM11"),
	PAIR("XMM12"), PAIR("XMM13"), PAIR("XMM14"), PAIR("XMM15")};

static const char *const arm64[] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",	"x8",  "x9",	   "x10", "x11",
	"x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",	   "x22", "x23",
	"x24", "x25", "x26", "x27", "x28", "x29", "lr",	 "sp",	"pc",  [46] = "vg"};

static const char *const arm[] = {"r0", "r1", "r2",  "r3", "r4", "r5", "r6", "r7",
				  "r8", "r9", "r10", "fp", "ip", "sp", "lr", "pc"};

static const char *const riscv[] = {"pc", "ra", "sp",  "gp",  "tp", "t0", "t1", "t2",
				    "s0", "s1", "a0",  "a1",  "a2", "a3", "a4", "a5",
				    "a6", "a7", "s2",  "s3",  "s4", "s5", "s6", "s7",
				    "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};

#define NAMES(names) names, sizeof(names) / sizeof(*(names))

static const struct regnames {
	const char *machine; /* what its name begins with */
	const char *const *names;
	size_t n;
} machines[] = {
	{"x86_64", NAMES(x86)},	 {"i386", NAMES(x86)}, {"i486", NAMES(x86)},
	{"i586", NAMES(x86)},	 {"i686", NAMES(x86)}, {"aarch64", NAMES(arm64)},
	{"arm64", NAMES(arm64)}, {"arm", NAMES(arm)},  {"riscv", NAMES(riscv)},
	{"", NULL, 0},
};

const struct regnames *regnames_of(const char *machine)
{
	const struct regnames *m = machines;
	struct utsname here;

	if (!machine)
		machine = uname(&here) ? "" : here.machine;
	while (strncmp(machine, m->machine, strlen(m->machine)) != 0)
		m++;
	return m;
}

const char *regnames_get(const struct regnames *names, unsigned reg)
{
	return reg < names->n && names->names[reg] ? names->names[reg] : "unknown";
}
