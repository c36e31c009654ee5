# SPDX-License-Identifier: GPL-2.0-only
#
# make [V=1] [SAN=1] [CC=clang]    build/vmprof
# make check                       unit tests, CLI tests and the short labs; tests/run does it
# make unit cli lab fuzz bench     one kind of test
# make lint                        clang-format, cppcheck, shellcheck, mandoc
# make install [PREFIX= DESTDIR=]
# make modules [KDIR=headers]      build/modules/vmprof.ko, for the running kernel or another one
# make modules_install [KDIR=headers]
# make guest-module [KDIR=headers]  build/guest-module/guest/vmprof_guest.ko, for kernels of guests
# make guest-module_install [KDIR=headers]
# make dkms [DESTDIR=]              sources of both to /usr/src, for dkms install vmprof/0.1, vmprof-guest/0.1
# make CROSS_COMPILE=aarch64-linux-gnu- BUILD=build-arm64 [all unit-programs]

PREFIX    ?= /usr/local
BINDIR    ?= $(PREFIX)/bin
MANDIR    ?= $(PREFIX)/share/man
BUILD     ?= build
CC        ?= cc
PKGCONFIG ?= pkg-config
VERSION   := 0.1

ifneq ($(V),1)
Q := @
endif

# gcc warns falsely of what the sanitizers put into the code: no errors there.
ifeq ($(SAN),1)
override BUILD := $(BUILD)/san
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -Wno-error
endif
ifeq ($(FUZZ),1)
override BUILD := $(BUILD)/fuzz
SANFLAGS := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
endif

# Another architecture than this one: its compiler, and its libraries in a folder of the build. To
# include a file is to have the folder before the compiler is asked below for what it finds there.
ifneq ($(CROSS_COMPILE),)
TRIPLET := $(CROSS_COMPILE:%-=%)
SYSROOT := $(abspath $(BUILD))/sysroot
DEBIAN_ARCH := $(patsubst aarch64-%,arm64,$(patsubst x86_64-%,amd64,$(TRIPLET)))
CC := $(CROSS_COMPILE)gcc --sysroot=$(SYSROOT)
AR := $(CROSS_COMPILE)ar
PKGCONFIG := PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(TRIPLET)/pkgconfig pkg-config
.DEFAULT_GOAL := all
ifneq ($(MAKECMDGOALS),clean)
include $(BUILD)/sysroot.mk
endif
$(BUILD)/sysroot.mk: scripts/cross-sysroot scripts/install-deps
	@echo "  FETCH   $(SYSROOT)"
	$(Q)BUILD=$(BUILD) scripts/cross-sysroot $(DEBIAN_ARCH) $(SYSROOT)
	$(Q)echo "# the libraries are there" >$@
endif

# Optional libraries: $(call have,NAME,HEADER,LIBRARY FLAGS) is 1 if a program with it links.
have = $(shell printf '\043include <stddef.h>\n\043include <$(1)>\nint main(void){return 0;}' | \
	$(CC) -x c - -o /dev/null $(2) 2>/dev/null && echo 1 || echo 0)
HAVE_LIBIBERTY := $(call have,libiberty/demangle.h,-liberty)
HAVE_LIBZSTD   := $(call have,zstd.h,-lzstd)
HAVE_LIBTRACEEVENT := $(call have,traceevent/event-parse.h,-ltraceevent)
HAVE_CAPSTONE  := $(call have,capstone/capstone.h,-lcapstone)
HAVE_ZLIB      := $(call have,zlib.h,-lz)
HAVE_LIBLZMA   := $(call have,lzma.h,-llzma)
HAVE_LIBDW     := $(call have,elfutils/libdw.h,-ldw -lelf)
# Xen's libraries are loaded when they are needed; libxenctrl is another one for each version of Xen.
XEN_TOOLS_VERSION := $(shell $(PKGCONFIG) --modversion xencontrol 2>/dev/null | cut -d . -f 1,2)
HAVE_XEN := $(shell { printf '\043include <%s>\n' xencall.h xenctrl.h xenforeignmemory.h xenstore.h xen/xenoprof.h; \
	echo 'typedef char x86_64_only[sizeof(((vcpu_guest_context_t *)0)->gs_base_kernel)];'; } | \
	$(CC) -x c -fsyntax-only - 2>/dev/null && test -n '$(XEN_TOOLS_VERSION)' && echo 1 || echo 0)

# A warning option that this compiler knows. Cut messages are meant to be cut.
warns = $(shell $(CC) -Werror $(1) -x c -c -o /dev/null /dev/null 2>/dev/null && echo $(1))

CFLAGS   ?= -O2 -g
CPPFLAGS += -D_GNU_SOURCE -Isrc -I. -DVMPROF_VERSION='"$(VERSION)"' \
	    -DHAVE_LIBIBERTY=$(HAVE_LIBIBERTY) -DHAVE_LIBZSTD=$(HAVE_LIBZSTD) \
	    -DHAVE_LIBTRACEEVENT=$(HAVE_LIBTRACEEVENT) -DHAVE_ZLIB=$(HAVE_ZLIB) \
	    -DHAVE_LIBLZMA=$(HAVE_LIBLZMA) -DHAVE_CAPSTONE=$(HAVE_CAPSTONE) \
	    -DHAVE_LIBDW=$(HAVE_LIBDW) -DHAVE_XEN=$(HAVE_XEN) -DXEN_TOOLS_VERSION='"$(XEN_TOOLS_VERSION)"' \
	    $(shell $(PKGCONFIG) --cflags json-c 2>/dev/null)
CSTD     := -std=gnu11 -Wall -Wextra -Werror -Wmissing-prototypes -Wno-unused-parameter \
	    -fno-strict-aliasing -pthread $(call warns,-Wno-format-truncation)
LDLIBS   += -ljson-c -lm
ifeq ($(HAVE_LIBIBERTY),1)
LDLIBS   += -liberty
endif
ifeq ($(HAVE_LIBZSTD),1)
LDLIBS   += -lzstd
endif
ifeq ($(HAVE_LIBTRACEEVENT),1)
LDLIBS   += -ltraceevent
endif
ifeq ($(HAVE_CAPSTONE),1)
LDLIBS   += -lcapstone
endif
ifeq ($(HAVE_ZLIB),1)
LDLIBS   += -lz
endif
ifeq ($(HAVE_LIBLZMA),1)
LDLIBS   += -llzma
endif
ifeq ($(HAVE_LIBDW),1)
LDLIBS   += -ldw -lelf
endif
ALLFLAGS  = $(CPPFLAGS) $(CSTD) $(CFLAGS) $(SANFLAGS)

LIBSRC  := $(sort $(wildcard src/*/*.c kernel/core/*.c))
LIBOBJ  := $(LIBSRC:%.c=$(BUILD)/%.o)
UNITSRC := $(sort $(wildcard tests/unit/*.c))
UNITBIN := $(UNITSRC:%.c=$(BUILD)/%)
FUZZBIN := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/fuzz/*.c)))
BENCHBIN := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/bench/*.c)))

# Benchmarks that labs use as well.
LABBIN   := $(BUILD)/tests/bench/guest $(BUILD)/tests/bench/address $(BUILD)/tests/bench/xencost

all: $(BUILD)/vmprof

$(BUILD)/vmprof: $(BUILD)/src/vmprof.o $(BUILD)/libvmprof.a
	@echo "  LD      $@"
	$(Q)$(CC) $(ALLFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/libvmprof.a: $(LIBOBJ)
	@echo "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c Makefile
	@echo "  CC      $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) -MMD -MP -c -o $@ $<

# A test or benchmark is one source file and the library.
$(BUILD)/tests/%: tests/%.c $(BUILD)/libvmprof.a
	@echo "  CCLD    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALLFLAGS) $(if $(filter tests/fuzz/%,$<),-fsanitize=fuzzer) -MMD -MP $(LDFLAGS) \
		-o $@ $< $(BUILD)/libvmprof.a $(LDLIBS)

unit-programs: $(UNITBIN)
fuzz-programs: $(FUZZBIN)
bench-programs: $(BENCHBIN)

check: all unit-programs $(LABBIN)
	BUILD=$(BUILD) tests/run unit cli lab

unit cli lab: all unit-programs $(LABBIN)
	BUILD=$(BUILD) tests/run $@

# libFuzzer comes with clang: a build of its own, in build/fuzz.
FUZZ_CC ?= clang
fuzz:
	command -v $(FUZZ_CC) >/dev/null && $(MAKE) FUZZ=1 CC=$(FUZZ_CC) fuzz-programs
	BUILD=$(BUILD) FUZZ_CC=$(FUZZ_CC) tests/run fuzz

bench: all bench-programs $(BUILD)/tests/unit/dwarfinfo
	for b in $(BENCHBIN) $(wildcard tests/bench/*.sh tests/bench/*.py); do BUILD=$(BUILD) $$b || exit 1; done

install: all
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man4 $(DESTDIR)$(MANDIR)/man5
	install -m 755 $(BUILD)/vmprof $(DESTDIR)$(BINDIR)/vmprof
	install -m 644 $(wildcard docs/man/*.1) $(DESTDIR)$(MANDIR)/man1
	install -m 644 $(wildcard docs/man/*.4) $(DESTDIR)$(MANDIR)/man4
	install -m 644 $(wildcard docs/man/*.5) $(DESTDIR)$(MANDIR)/man5

# The kernel's build writes beside the sources, so it gets a copy of them.
KDIR ?= /lib/modules/$(shell uname -r)/build
KBUILD = $(MAKE) -C $(KDIR) M=$(abspath $(BUILD)/modules) CONFIG_DEBUG_INFO_BTF_MODULES= \
	 $(if $(CROSS_COMPILE),CROSS_COMPILE=$(CROSS_COMPILE)) $(if $(ARCH),ARCH=$(ARCH))
KBUILD_GUEST = $(subst M=$(abspath $(BUILD)/modules),M=$(abspath $(BUILD)/guest-module/guest),$(KBUILD))
modules:
	$(Q)mkdir -p $(BUILD)/modules
	$(Q)cp -pru kernel/. $(BUILD)/modules
	$(Q)$(KBUILD) modules
modules_install:
	$(Q)$(KBUILD) modules_install
guest-module:
	$(Q)mkdir -p $(BUILD)/guest-module
	$(Q)cp -pru kernel/. $(BUILD)/guest-module
	$(Q)$(KBUILD_GUEST) modules
guest-module_install:
	$(Q)$(KBUILD_GUEST) modules_install
DKMS = $(DESTDIR)/usr/src/vmprof-$(VERSION) $(DESTDIR)/usr/src/vmprof-guest-$(VERSION)
dkms:
	install -d $(DKMS)
	cp -r kernel/. $(word 1,$(DKMS))
	cp -r kernel/. $(word 2,$(DKMS))
	rm -rf $(word 1,$(DKMS))/guest $(word 2,$(DKMS))/host $(word 2,$(DKMS))/Kbuild
	mv $(word 2,$(DKMS))/guest/dkms.conf $(word 2,$(DKMS))/

FORMATTED := $(sort $(wildcard src/*.c src/*/*.[ch] kernel/*/*.[ch] tests/unit/*.[ch] tests/fuzz/*.[ch] \
	     tests/lab/*/*.c tests/lab/host/regs/*.c tests/lab/host/null/*.c tests/bench/*.[ch]))
# Everything whose first line or two say that it is shell.
SCRIPTS = $(shell grep -lEs '^\#!/bin/(ba)?sh|^\# shellcheck shell=' .ci/run scripts/* tests/run \
	  tests/cli/*.bash tests/lab/* tests/lab/lib/* tests/lab/guest/* tests/lab/host/* tests/lab/machine/* tests/bench/*.sh)
lint: lint-format lint-c lint-shell lint-man
lint-format:
	$(Q)clang-format --dry-run -Werror $(FORMATTED)
lint-c:
	$(Q)cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 \
		--enable=warning,performance,portability --suppressions-list=.cppcheck \
		-Isrc -D_GNU_SOURCE -DVMPROF_VERSION='""' -DHAVE_LIBIBERTY=1 -DHAVE_LIBZSTD=1 \
		-DHAVE_LIBTRACEEVENT=1 -DHAVE_ZLIB=1 -DHAVE_LIBLZMA=1 -DHAVE_CAPSTONE=1 \
		-DHAVE_LIBDW=1 -DHAVE_XEN=1 -DXEN_TOOLS_VERSION='""' src kernel/core
lint-shell:
	$(Q)shellcheck -x $(SCRIPTS)
lint-man:
	$(Q)mandoc -T lint -W error $(wildcard docs/man/*)

format:
	clang-format -i $(FORMATTED)

# The comment at the top is the help.
help:
	@sed -n '3,/^$$/s/^# \{0,1\}//p' Makefile

clean:
	rm -rf $(BUILD)

-include $(LIBOBJ:.o=.d) $(UNITBIN:=.d) $(FUZZBIN:=.d) $(BENCHBIN:=.d) $(BUILD)/src/vmprof.d
.PHONY: all unit-programs fuzz-programs bench-programs check unit cli lab fuzz bench install \
	lint lint-format lint-c lint-shell lint-man format clean modules modules_install \
	guest-module guest-module_install dkms
.DELETE_ON_ERROR:
