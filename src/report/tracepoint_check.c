// SPDX-License-Identifier: GPL-2.0-only
#if HAVE_LIBTRACEEVENT
#include "report/tracepoint_check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TREE_MAX  2000 /* nodes of all arguments that are looked at */
#define WIDTH_MAX 4096u

/* ------------------------------------------------------------------ what was parsed */

/* Of an event (@data NULL), or of one of its records. */
struct walk {
	struct tracepoint_check *c;
	const uint8_t *data;
	unsigned left; /* nodes that may still be looked at */
};

static bool arg_ok(struct walk *w, const struct tep_print_arg *a);

static const struct tep_format_field *field_of(const struct walk *w, const struct tep_print_arg *a)
{
	if (a->type == TEP_PRINT_DYNAMIC_ARRAY || a->type == TEP_PRINT_DYNAMIC_ARRAY_LEN)
		return a->dynarray.field;
	if (a->type != TEP_PRINT_FIELD || !a->field.name)
		return NULL;
	return tep_find_any_field((struct tep_event *)w->c->event, a->field.name);
}

static bool eval_op(const char *op, uint64_t left, uint64_t right, uint64_t *v)
{
	if (!strcmp(op, "<<")) {
		*v = right < 32 ? left << right : 0;
		return left < 1u << 31 && right < 32;
	}
	switch (op[0] && !op[1] ? op[0] : 0) {
	case '+':
		return !__builtin_add_overflow(left, right, v);
	case '-':
		return !__builtin_sub_overflow(left, right, v);
	case '*':
		return !__builtin_mul_overflow(left, right, v);
	case '/':
		*v = right ? left / right : 0;
		return right;
	case '%':
		*v = right ? left % right : 0;
		return right;
	default:
		return false;
	}
}

/* Smaller numbers are the same in this type. */
static uint64_t type_limit(const char *type)
{
	static const char *const narrow[] = {"8", "char", "bool", "16", "short"};

	for (size_t i = 0; i < sizeof(narrow) / sizeof(*narrow); i++)
		if (strstr(type, narrow[i]))
			return 128;
	return 1u << 31;
}

/*
 * The value of a length, an index, a divisor; false where it is not surely known. Of an event it is
 * only said whether it can be known of its records.
 */
static bool eval(struct walk *w, const struct tep_print_arg *a, uint64_t *v)
{
	const struct tep_format_field *f;
	uint64_t left, right;
	char *end;

	*v = 1;
	if (!a || !w->left || !--w->left)
		return false;
	switch (a->type) {
	case TEP_PRINT_ATOM:
		if (!a->atom.atom || !isdigit((unsigned char)a->atom.atom[0]))
			return false;
		*v = strtoull(a->atom.atom, &end, 0);
		return !end[strspn(end, "uUlL")];
	case TEP_PRINT_TYPE:
		return a->typecast.type && eval(w, a->typecast.item, v) &&
		       *v < type_limit(a->typecast.type);
	case TEP_PRINT_FIELD:
	case TEP_PRINT_DYNAMIC_ARRAY_LEN:
		f = field_of(w, a);
		w->c->look = true;
		if (f && w->data)
			*v = tep_read_number(w->c->event->tep, w->data + f->offset, f->size);
		if (f && w->data && a->type == TEP_PRINT_DYNAMIC_ARRAY_LEN)
			*v >>= 16;
		return f;
	case TEP_PRINT_OP:
		if (!a->op.op || !eval(w, a->op.left, &left) || !eval(w, a->op.right, &right))
			return false;
		return eval_op(a->op.op, left, right, v);
	default:
		return false;
	}
}

/* @n elements of @size bytes, or one at index @n, are inside of the room for a record. */
static bool extent_ok(struct walk *w, const struct tep_print_arg *n, uint64_t size)
{
	uint64_t v;

	return eval(w, n, &v) && (!w->data || v <= TRACEPOINT_RECORD_MAX / size);
}

static bool index_ok(struct walk *w, const struct tep_print_arg *a)
{
	const struct tep_print_arg *array = a->op.left;
	const struct tep_format_field *f;
	unsigned size;

	while (array && array->type == TEP_PRINT_TYPE && --w->left)
		array = array->typecast.item;
	f = array && array->type != TEP_PRINT_DYNAMIC_ARRAY_LEN ? field_of(w, array) : NULL;
	if (!f)
		return false;
	size = f->elementsize ? f->elementsize : 1;
	return size <= TRACEPOINT_RECORD_MAX && extent_ok(w, a->op.right, size);
}

/* Only the branch that is taken has to make sense of this record. */
static bool choice_ok(struct walk *w, const struct tep_print_arg *a)
{
	const struct tep_print_arg *branches = a->op.right;
	uint64_t v;

	if (!branches || branches->type != TEP_PRINT_OP || !arg_ok(w, a->op.left))
		return false;
	if (w->data && eval(w, a->op.left, &v))
		return arg_ok(w, v ? branches->op.left : branches->op.right);
	return arg_ok(w, branches->op.left) && arg_ok(w, branches->op.right);
}

static bool op_ok(struct walk *w, const struct tep_print_arg *a)
{
	const char *op = a->op.op;
	uint64_t v;

	if (!op || !a->op.left || !a->op.right)
		return false;
	if (!strcmp(op, "["))
		return index_ok(w, a);
	if (!strcmp(op, "?"))
		return choice_ok(w, a);
	if ((*op == '/' || *op == '%') && (!eval(w, a->op.right, &v) || (w->data && !v)))
		return false;
	return arg_ok(w, a->op.left) && arg_ok(w, a->op.right);
}

static bool array_ok(struct walk *w, const struct tep_print_arg *a)
{
	uint64_t size;

	if (!a->int_array.field || a->int_array.field->type == TEP_PRINT_DYNAMIC_ARRAY_LEN ||
	    !field_of(w, a->int_array.field) || !eval(w, a->int_array.el_size, &size))
		return false;
	return !w->data ? eval(w, a->int_array.count, &size)
			: size && size <= 8 && extent_ok(w, a->int_array.count, size);
}

static bool arg_ok(struct walk *w, const struct tep_print_arg *a)
{
	if (!a || !w->left || !--w->left)
		return false;
	switch (a->type) {
	case TEP_PRINT_NULL:
	case TEP_PRINT_ATOM:
	case TEP_PRINT_FIELD:
	case TEP_PRINT_STRING:
	case TEP_PRINT_BSTRING:
	case TEP_PRINT_BITMASK:
	case TEP_PRINT_CPUMASK:
		return true;
	case TEP_PRINT_DYNAMIC_ARRAY:
	case TEP_PRINT_DYNAMIC_ARRAY_LEN:
		return a->dynarray.field;
	case TEP_PRINT_FLAGS:
		return arg_ok(w, a->flags.field);
	case TEP_PRINT_SYMBOL:
		return arg_ok(w, a->symbol.field);
	case TEP_PRINT_TYPE:
		return arg_ok(w, a->typecast.item);
	case TEP_PRINT_HEX:
	case TEP_PRINT_HEX_STR:
		return a->hex.field && a->hex.field->type != TEP_PRINT_DYNAMIC_ARRAY_LEN &&
		       field_of(w, a->hex.field) && extent_ok(w, a->hex.size, 1);
	case TEP_PRINT_INT_ARRAY:
		return array_ok(w, a);
	case TEP_PRINT_OP:
		return op_ok(w, a);
	default:
		return false; /* functions, of which there are none without plugins */
	}
}

static bool args_ok(struct walk *w)
{
	const struct tracepoint_check *c = w->c;
	unsigned i = 0;
	uint64_t v;

	for (const struct tep_print_arg *a = c->event->print_fmt.args; a; a = a->next, i++) {
		if (!arg_ok(w, a))
			return false;
		if (i < 64 && c->widths >> i & 1 && (!eval(w, a, &v) || (w->data && v > WIDTH_MAX)))
			return false;
	}
	return true;
}

/* Which arguments are widths. Widths in the text itself are of four digits at most. */
static bool format_widths(struct tracepoint_check *c, const char *p)
{
	unsigned arg = 0, digits;

	for (; p && *p; p++) {
		if (*p != '%')
			continue;
		if (*++p == '%')
			continue;
		for (digits = 0; *p && strchr("-+ #0123456789.*", *p); p++) {
			digits = isdigit((unsigned char)*p) ? digits + 1 : 0;
			if (digits > 4 || (*p == '*' && arg >= 64))
				return false;
			if (*p == '*')
				c->widths |= 1ull << arg++;
		}
		if (!*p)
			return false;
		arg++;
	}
	return true;
}

static bool fields_ok(struct tracepoint_check *c, const struct tep_format_field *f)
{
	for (; f; f = f->next) {
		if (f->offset < 0 || f->size < 0 || f->size > (int)TRACEPOINT_RECORD_MAX ||
		    f->offset > (int)TRACEPOINT_RECORD_MAX - f->size)
			return false;
		if ((uint32_t)(f->offset + f->size) > c->record_min)
			c->record_min = (uint32_t)(f->offset + f->size);
		/* where a dynamic array is, is a number of 32 bits */
		if (f->flags & TEP_FIELD_IS_DYNAMIC && f->size != 4)
			return false;
	}
	return true;
}

bool tracepoint_event_ok(struct tracepoint_check *c, const struct tep_event *event)
{
	struct walk w = {.c = c, .left = TREE_MAX};

	*c = (struct tracepoint_check){.event = event};
	if (event->flags & TEP_EVENT_FL_ISBPRINT)
		return false; /* its format is in each record */
	if (!fields_ok(c, event->format.common_fields) || !fields_ok(c, event->format.fields))
		return false;
	if (event->flags & (int)TEP_EVENT_FL_FAILED)
		return true; /* only its fields will be printed */
	return format_widths(c, event->print_fmt.format) && args_ok(&w);
}

/* Dynamic arrays are in the record: where one is in the lower half, its length in the upper. */
static bool arrays_ok(const struct tracepoint_check *c, const uint8_t *data, uint32_t size)
{
	for (const struct tep_format_field *f = c->event->format.fields; f; f = f->next) {
		uint64_t v, start;

		if (!(f->flags & TEP_FIELD_IS_DYNAMIC))
			continue;
		v = tep_read_number(c->event->tep, data + f->offset, 4);
		start = v & 0xffff;
		if (f->flags & TEP_FIELD_IS_RELATIVE)
			start += (uint64_t)(f->offset + f->size);
		if (start + (v >> 16) > size)
			return false;
	}
	return true;
}

bool tracepoint_record_ok(const struct tracepoint_check *c, const uint8_t *data, uint32_t size)
{
	struct tracepoint_check copy = *c;
	struct walk w = {.c = &copy, .data = data, .left = TREE_MAX};

	return size >= c->record_min && arrays_ok(c, data, size) && (!c->look || args_ok(&w));
}
#endif
