#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
# perf script's lines to folded ones: the least that a script behind it has to do. For report.py.
use strict;
use warnings;

my (%count, $comm, @stack);

while (<STDIN>) {
	if (/^\s*[0-9a-f]+ (.+) \(([^()]*)\)$/) {
		my ($name, $dso) = ($1, $2);
		$name =~ s/\+0x[0-9a-f]+$//;
		($name = $dso) =~ s{.*/}{} if $name eq '[unknown]';
		push @stack, $name;
	} elsif (/^\s*$/) {
		$count{join(';', $comm, reverse @stack)}++ if defined $comm;
		undef $comm;
	} elsif (/^(\S.*?)\s+-?\d+(?:\/-?\d+)?\s/) {
		($comm = $1) =~ tr/ /_/;
		@stack = ();
	}
}
print "$_ $count{$_}\n" for sort keys %count;
