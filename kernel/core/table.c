// SPDX-License-Identifier: GPL-2.0-only
#include "table.h"
#include "sched.h"

void vmp_table_init(struct vmp_table *table, u64 counters, struct vmp_row *rows, u32 max)
{
	table->counters = counters;
	table->rows = rows;
	table->max = max;
	table->nr = 0;
	table->sharing = VMP_DEDICATED;
}

struct vmp_row *vmp_table_find(struct vmp_table *table, u64 vm)
{
	u32 i;

	for (i = 0; i < table->nr; i++)
		if (table->rows[i].vm == vm)
			return &table->rows[i];
	return 0;
}

static int control_ok(const struct vmp_control *control, u64 counters)
{
	if (!control->flags || (control->flags & ~VMP_COUNT_FLAGS))
		return 0;
	return !control->counters || (control->counters & counters);
}

static int row_ok(const struct vmp_row *row, u64 counters)
{
	u32 i;

	if (!row->vm || !row->nr || row->nr > VMP_EVENTS_MAX)
		return 0;
	if (row->delivery >= VMP_DELIVERIES || (row->flags & ~VMP_ROW_FLAGS))
		return 0;
	if (row->delivery != VMP_DELIVER_HOST && !row->handler)
		return 0;
	for (i = 0; i < row->nr; i++)
		if (!control_ok(&row->controls[i], counters))
			return 0;
	return 1;
}

int vmp_table_put(struct vmp_table *table, const struct vmp_row *row)
{
	struct vmp_row *place;
	int err;

	if (!row_ok(row, table->counters))
		return -VMP_EINVAL;
	if (vmp_table_find(table, row->vm))
		return -VMP_EBUSY;
	if (table->nr == table->max)
		return -VMP_EFULL;
	place = &table->rows[table->nr];
	*place = *row;
	err = vmp_sched_row(place, table->counters);
	if (err)
		return err;
	table->nr++;
	vmp_sched_table(table);
	return 0;
}

int vmp_table_remove(struct vmp_table *table, u64 vm)
{
	struct vmp_row *row = vmp_table_find(table, vm);

	if (!row)
		return -VMP_ENOENT;
	table->nr--;
	for (; row < table->rows + table->nr; row++)
		row[0] = row[1];
	vmp_sched_table(table);
	return 0;
}
