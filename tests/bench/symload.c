// SPDX-License-Identifier: GPL-2.0-only
/*
 * symload FILE: reads the symbol table of an ELF file as a report does, says how many symbols there
 * are. For symbols.py, which see.
 */
#include <stdio.h>

#include "symbolize/elfimage.h"

int main(int argc, char **argv)
{
	struct vmprof_err err;
	struct symtab *t;

	if (argc != 2) {
		puts("symload: no file; symbols.py has some");
		return 0;
	}
	if (symtab_read_file(&t, argv[1], NULL, 0, &err)) {
		fprintf(stderr, "symload: %s\n", err.msg);
		return 1;
	}
	printf("%zu\n", t->n);
	symtab_free(t);
	return 0;
}
