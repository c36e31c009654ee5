// SPDX-License-Identifier: GPL-2.0-only
/* The library of libsplit: plugin_work > plugin_hot > spin, and spin for the program itself. */
#include "work.h"

uint64_t plugin_work(uint64_t x, unsigned rounds);
uint64_t plugin_spin(uint64_t x, unsigned rounds);

WORK_FUNCTION static uint64_t plugin_hot(uint64_t x, unsigned rounds)
{
	return spin(x, rounds) | 1;
}

WORK_FUNCTION uint64_t plugin_work(uint64_t x, unsigned rounds)
{
	return plugin_hot(x, rounds) | 2;
}

WORK_FUNCTION uint64_t plugin_spin(uint64_t x, unsigned rounds)
{
	return spin(x, rounds) | 4;
}
