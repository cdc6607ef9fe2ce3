# SPDX-License-Identifier: Apache-2.0
# pycap and pysym. `make help` lists what can be asked for.
#
# One makefile, not recursive. Objects go to build/obj (build/asan/obj under
# SANITIZE=1, build/tsan/obj under TSAN=1), each with its own list of headers, so touching a shared header
# rebuilds both sides and the BPF program.
#
# A plain make installs nothing: it names what is missing and the command that
# installs it. The goals in INSTALLING_*, below, install what they need.

# The only place of the version number: tests/check-release.sh compares CHANGES, manifests and documents with it.
VERSION := 0.2.0

# As many jobs as there are processors, unless -j says otherwise. Several goals run one after another, as always. With goals
# that run something their output shows at once; else each target's comes in one piece.
ifeq ($(MAKELEVEL)$(findstring -j,$(MAKEFLAGS) $(shell echo "$$MAKEFLAGS")),0)
ifeq ($(filter-out build/%,$(wordlist 2,99,$(MAKECMDGOALS))),)
MAKEFLAGS += -j$(shell nproc) $(if $(filter-out all install build/%,$(MAKECMDGOALS)),,-Otarget)
endif
endif

# CROSS=aarch64-linux-gnu compiles with that machine's compiler, ar and pkg-config.
ifdef CROSS
ifeq ($(origin CC),default)
CC := $(CROSS)-gcc
endif
ifeq ($(origin AR),default)
AR := $(CROSS)-ar
endif
PKG_CONFIG ?= $(CROSS)-pkg-config
endif
PKG_CONFIG ?= pkg-config

# The machine that the compiler is for, by its name in uname and by that in libbpf's headers. ARCHES: those that the programs
# run on. Another one is refused by name, after what does not depend on the machine was compiled.
ARCHES  := x86
MACHINE := $(firstword $(subst -, ,$(or $(CROSS),$(shell $(CC) -dumpmachine 2>/dev/null || uname -m))))
ARCH    := $(shell echo $(MACHINE) | sed 's/x86_64/x86/; s/aarch64/arm64/; s/powerpc64le\|ppc64le/powerpc/; s/riscv64/riscv/; s/loongarch64/loongarch/')
REFUSED := $(if $(filter $(ARCH),$(ARCHES)),,pycap and pysym do not run on $(MACHINE) yet: ARCHES in the Makefile lacks it. formats/elf/machine.h says how to add a machine.)

# The date of manual pages and packages: the newest of the package's changelog.
SOURCE_DATE_EPOCH := $(or $(SOURCE_DATE_EPOCH),$(shell date -d "$$(sed -n 's/^ -- .*>  //p;T;q' docs/debian/changelog 2>/dev/null)" +%s))
export SOURCE_DATE_EPOCH

prefix  ?= /usr/local
DESTDIR ?=
CLANG   ?= $(firstword $(shell command -v clang clang-14 clang-16 clang-19 2>/dev/null) clang-14)
LLVM_STRIP ?= $(firstword $(shell command -v llvm-strip llvm-strip-14 llvm-strip-16 llvm-strip-19 2>/dev/null) llvm-strip-14)
BPFTOOL ?= $(firstword $(shell PATH=$$PATH:/usr/sbin command -v bpftool 2>/dev/null) /usr/sbin/bpftool)
PYTHON  ?= /usr/bin/python3
# Programs for tests alone run for seconds and would be optimized for longer. Sanitizers find without optimization what they find with
# it, and what the compiler would leave out then; their reports need lines of code alone. Some warnings need the ranges that only -O2
# works out, and are given there.
TEST_CFLAGS := -O0 -g1
CFLAGS  ?= $(if $(filter 1,$(SANITIZE) $(TSAN) $(FUZZ)),$(TEST_CFLAGS),-O2 -g)
# Headers of this host for the BPF target, for which clang knows none. They come last.
BPF_INCLUDES = $(patsubst %,-idirafter /usr/include/%,$(wordlist 1,1,$(or $(CROSS),$(shell $(CLANG) -print-multiarch 2>/dev/null))))
V ?= 0
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' $(1) $(2))

ONLY_AT_O2 := -Wno-format-truncation -Wno-maybe-uninitialized
ifeq ($(SANITIZE),1)
OUT := build/asan
SAN_TESTS := -fsanitize=address -fno-omit-frame-pointer $(ONLY_AT_O2)
# Null pointers and what lies beyond an object ASan finds, too.
SAN := $(SAN_TESTS) -fsanitize=undefined -fno-sanitize=null,object-size -fno-sanitize-recover=undefined
else ifeq ($(FUZZ),1)
OUT := build/fuzz
CC  := $(CLANG)
SAN := -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else ifeq ($(TSAN),1)
OUT := build/tsan
SAN := -fsanitize=thread -fno-omit-frame-pointer $(ONLY_AT_O2)
else
OUT := build$(CROSS:%=/%)
SAN :=
endif
OBJ := $(OUT)/obj

# Warnings are errors with WERROR=1 alone: another compiler has other ones. A function that no header declares always is one.
ERROR    := $(if $(filter 1,$(WERROR)),-Werror)
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror=implicit-function-declaration -Wno-missing-field-initializers $(ERROR)
# What the user gives comes last.
ALL_CFLAGS = -std=gnu17 -D_GNU_SOURCE -DTOOL_VERSION='"$(VERSION)"' -I. -I$(OBJ) $(WARN) $(PATH_MAP) $(LIBRARY_CFLAGS) $(SAN) $(CPPFLAGS) $(CFLAGS)
# Paths of the checkout stay out of debug information: the same source gives the same bytes anywhere.
PATH_MAP := -ffile-prefix-map='$(CURDIR)'=.

# Libraries by their names in pkg-config. libiberty has no such file; headers of cmocka are the unit tests' alone. What is
# missing is named by docs/build/needs.sh.
LIBRARIES_CAPTURE   := libbpf libelf zlib libzstd libseccomp
LIBRARIES_SYMBOLIZE := libdw libelf libunwind-generic libarchive jansson ncursesw libzstd liblzma zlib
pkg_config = $(shell $(PKG_CONFIG) $(1) 2>/dev/null)
LIBRARY_CFLAGS   := $(call pkg_config,--cflags $(LIBRARIES_CAPTURE) $(LIBRARIES_SYMBOLIZE) libxxhash libcurl)
LDLIBS_CAPTURE   := $(call pkg_config,--libs $(LIBRARIES_CAPTURE)) -lpthread
LDLIBS_SYMBOLIZE := $(call pkg_config,--libs $(LIBRARIES_SYMBOLIZE)) -liberty -lm -lpthread

.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

# ---- what is built ----
# $(call below,FOLDER): its .c files, in subfolders too, but main.c, which is the program's and not the library's.
below = $(sort $(filter-out $(1)/main.c,$(shell find $(1) -name '*.c')))
FORMATS_SRC   := $(call below,formats)
CAPTURE_SRC   := $(call below,capture)
SYMBOLIZE_SRC := $(call below,symbolize)
FORMATS_LIB   := $(OBJ)/formats.a
CAPTURE_LIB   := $(OBJ)/capture.a
SYMBOLIZE_LIB := $(OBJ)/symbolize.a
UNIT_SRC      := $(sort $(wildcard tests/unit/test_*.c))
UNIT_BIN      := $(UNIT_SRC:tests/unit/%.c=$(OUT)/tests/%)
TOOLCHAIN_SRC := $(sort $(wildcard tests/toolchain/test_*.c))
TOOLCHAIN_BIN := $(TOOLCHAIN_SRC:tests/toolchain/%.c=$(OUT)/tests/%)
SKELETON      := $(OBJ)/bpf/sampler.skel.h
# The files that include the skeleton. They wait for it in the first build; later their lists of headers name it.
SKELETON_USERS := $(shell grep -rl --include='*.c' '^.include "bpf/sampler.skel.h"' capture)
obj = $(1:%.c=$(OBJ)/%.o)

.PHONY: all
all: $(OUT)/pycap $(OUT)/pysym ## build/pycap and build/pysym; V=1 shows commands, SANITIZE=1 builds into build/asan

$(OUT)/pycap: $(OBJ)/capture/main.o $(CAPTURE_LIB) $(FORMATS_LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS_CAPTURE)

$(OUT)/pysym: $(OBJ)/symbolize/main.o $(SYMBOLIZE_LIB) $(FORMATS_LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS_SYMBOLIZE)

$(FORMATS_LIB): $(call obj,$(FORMATS_SRC))
$(CAPTURE_LIB): $(call obj,$(CAPTURE_SRC))
$(SYMBOLIZE_LIB): $(call obj,$(SYMBOLIZE_SRC))
%.a:
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# The library of the trace, for programs of others: one object that exports what its header declares and no other name. It is
# compiled apart, so that it can become part of a shared library.
LIBRARY     := $(OUT)/libpycaptrace.a
LIBRARY_SRC := $(wildcard symbolize/library/*.c) $(addprefix symbolize/trace/, address_space.c epoch.c epoch_code.c file_limits.c \
               main_module.c process_names.c thread_names.c) $(addprefix formats/trace/, block.c codec.c names.c program_name.c reader.c) \
               $(addprefix formats/cpython/, code.c linetable.c version.c) formats/elf/machine.c $(wildcard formats/elf/machine_*.c) \
               $(addprefix formats/base/, arena.c buf.c err.c intern.c map.c printable.c sort.c utf8.c)
LIBRARY_OBJ := $(LIBRARY_SRC:%.c=$(OBJ)/library/%.o)
OBJCOPY     ?= $(CROSS:%=%-)objcopy
$(LIBRARY): $(LIBRARY_OBJ)
	$(call say,AR,$@)
	$(Q)$(CC) -r -nostdlib -o $(OBJ)/library/pycap_trace.o $(LIBRARY_OBJ)
	$(Q)$(OBJCOPY) -w --keep-global-symbol='pycap_*' $(OBJ)/library/pycap_trace.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(OBJ)/library/pycap_trace.o
$(LIBRARY_OBJ): $(OBJ)/library/%.o: %.c | $(OUT)/.needs-build
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -fno-lto -MMD -MP -c -o $@ $<

$(OBJ)/%.o: %.c | $(OUT)/.needs-build
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(call obj,$(SKELETON_USERS)): | $(SKELETON)

# On another machine than those of ARCHES what includes headers of one machine has to wait for the table to know it; it
# does not, once the rest is compiled.
ifdef REFUSED
MACHINE_SRC := $(shell sh docs/build/machine-sources.sh)
.PHONY: machine
machine: $(call obj,$(filter-out $(MACHINE_SRC),$(FORMATS_SRC) $(CAPTURE_SRC) $(SYMBOLIZE_SRC) symbolize/main.c))
	@echo "$(REFUSED)" >&2; exit 1
$(call obj,$(MACHINE_SRC)) $(OBJ)/bpf/sampler.bpf.o: | machine
endif

# The page of the format html, which is part of the program: a template, and styles and scripts that become one each,
# in this order.
HTML_FOLDER  := formats/emit/html
HTML_SCRIPTS := data.js names.js filter.js tree.js comparison.js kept_runs.js model.js address.js state.js dom.js colours.js picture.js flame.js strip.js \
                controls.js table.js compare_table.js sandwich.js source.js about.js compare.js help.js main.js
HTML_STYLES  := $(HTML_FOLDER)/page.css $(HTML_FOLDER)/panels.css
HTML_STYLE   := $(OBJ)/$(HTML_FOLDER)/page.css
$(HTML_STYLE): $(HTML_STYLES) Makefile
	@mkdir -p $(@D)
	$(Q)cat $(HTML_STYLES) >$@
HTML_PARTS   := $(HTML_FOLDER)/page.html $(HTML_STYLE) $(HTML_SCRIPTS:%=$(HTML_FOLDER)/%)
HTML_PAGE    := $(OBJ)/$(HTML_FOLDER)/page.html
$(HTML_PAGE): $(HTML_FOLDER)/page.sh $(HTML_PARTS) Makefile
	@mkdir -p $(@D)
	$(call say,PAGE,$@)
	$(Q)sh $< $(HTML_PARTS) >$@
$(OBJ)/$(HTML_FOLDER)/assets.o: ALL_CFLAGS += -DHTML_PAGE='"$(HTML_PAGE)"'
$(OBJ)/$(HTML_FOLDER)/assets.o: $(HTML_PAGE)

# Into a folder: $(OBJ), or $(STAGES) for the sampler that counts by stage.
define bpf_rules
$(1)/bpf/%.bpf.o: bpf/%.bpf.c | $(OUT)/.needs-build
	@mkdir -p $$(@D)
	$$(call say,BPF,$$@)
	$$(Q)$$(CLANG) -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-function $$(ERROR) $$(PATH_MAP) $(2) -D__TARGET_ARCH_$$(ARCH) -I. $$(call pkg_config,--cflags libbpf) $$(BPF_INCLUDES) -MMD -MP -MF $$@.d -MT $$@ -c -o $$@ $$<
	$$(Q)$$(LLVM_STRIP) -g $$@

$(1)/bpf/%.skel.h: $(1)/bpf/%.bpf.o
	$$(call say,SKEL,$$@)
	$$(Q)$$(BPFTOOL) gen skeleton $$< name $$(subst .,_,$$(notdir $$*))_bpf >$$@.tmp && mv $$@.tmp $$@
endef
STAGES := $(OBJ)/stages
$(eval $(call bpf_rules,$(OBJ),))
$(eval $(call bpf_rules,$(STAGES),-DPYCAP_STAGES))

# pycap with that sampler, for tests/bench/stages.py: what includes the skeleton is compiled anew.
$(STAGES)/%.o: %.c $(STAGES)/bpf/sampler.skel.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -I$(STAGES) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/tools/pycap_stages: $(OBJ)/capture/main.o $(SKELETON_USERS:%.c=$(STAGES)/%.o) $(CAPTURE_LIB) $(FORMATS_LIB)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS_CAPTURE)

# ---- what has to be installed ----
# docs/build/needs.sh looks for what a goal needs; if something is missing it names it, and the goal fails. The goals in
# INSTALLING_* install Debian's packages first (docs/build/deps.sh). No other goal installs anything, but deps and deps-test.
DEB_BUILD := gcc libc6-dev pkgconf clang-14 llvm-14 libbpf-dev libelf-dev libdw-dev libunwind-dev libjansson-dev libzstd-dev libarchive-dev libxxhash-dev libiberty-dev zlib1g-dev liblzma-dev libbz2-dev libseccomp-dev libcurl4-gnutls-dev libncurses-dev bpftool scdoc
DEB_TEST  := libcmocka-dev python3 python3-pytest python3-pytest-xdist python3-protobuf python3-yaml python3-zstandard dwz linux-perf binutils musl-tools debuginfod openssl tmux zstd bzip2 xz-utils
# 164 MB to fetch, 560 MB installed, a minute. Where it cannot be had, the tests of the page are skipped.
DEB_BROWSER := chromium-headless-shell
DEB_DEB   := dpkg-dev debhelper xz-utils
DEB_STATIC := libssl-dev libc-ares-dev dpkg-dev make python3 ca-certificates
DEB_FUZZ  := libclang-rt-14-dev python3
DEB_DEMO  := python3 python3-dev
DEB_BENCH := python3 python3-venv linux-perf
INSTALLING_test  := check check-long check-stores hostile check-unit check-asan check-tsan check-tsan-run check-kernels soak
INSTALLING_demo  := demo
INSTALLING_bench := bench bench-quick
INSTALLING_fuzz  := fuzz fuzz-long fuzz-run
INSTALLING_deb   := deb
INSTALLING_static := static tarball wheel rpm image release
INSTALLED := $(foreach k,test demo bench fuzz deb static,$(if $(filter $(INSTALLING_$k),$(MAKECMDGOALS)),build/.deps-$k))
$(foreach k,test demo bench fuzz deb static,$(INSTALLING_$k)): | $(INSTALLED)
# Once they are there make reads this file again, which asks programs such as pkg-config; but for make -n, which would install.
ifeq ($(findstring n,$(firstword -$(MAKEFLAGS))),)
include $(INSTALLED)
endif
.PHONY: deps deps-test
deps: build/.deps-build ## install the Debian packages that building needs; a plain make installs nothing
deps-test: build/.deps-test ## and those that the tests need
# A first run says what will come, and how long it takes once the packages are there, on two CPUs.
WILL_demo  := builds for half a minute, and records for 5 seconds
WILL_test  := builds for a minute, and tests: make check for 6 minutes
WILL_fuzz  := builds for a minute, and fuzzes for a minute or as long as FUZZ_SECONDS says
WILL_bench := builds for half a minute, and measures: make bench for 40 minutes
WILL_deb   := builds for a minute and a half
WILL_static := builds for two minutes
build/.deps-%: Makefile docs/build/deps.sh
	@mkdir -p build
	$(Q)echo "Installs those of Debian's packages that are missing$(if $(WILL_$*),; on two CPUs it then $(WILL_$*))."
	$(Q)sh docs/build/deps.sh $(DEB_BUILD) $(if $(filter test,$*),$(DEB_TEST)) $(if $(filter demo,$*),$(DEB_DEMO)) $(if $(filter bench,$*),$(DEB_BENCH)) $(if $(filter fuzz,$*),$(DEB_FUZZ)) $(if $(filter deb,$*),$(DEB_DEB)) $(if $(filter static,$*),$(DEB_STATIC))
	$(Q)$(if $(filter test,$*),sh docs/build/deps.sh $(DEB_BROWSER) || echo "  Tests of the page will be skipped.")
	$(Q)touch $@
$(OUT)/.needs-%: docs/build/needs.sh | $(INSTALLED)
	@mkdir -p $(@D)
	$(Q)CC="$(CC)" CPPFLAGS="$(CPPFLAGS)" CROSS="$(CROSS)" PKG_CONFIG="$(PKG_CONFIG)" CLANG="$(CLANG)" LLVM_STRIP="$(LLVM_STRIP)" BPFTOOL="$(BPFTOOL)" sh docs/build/needs.sh $*$(if $(REFUSED), || { echo "$(REFUSED)" >&2; exit 1; })
	$(Q)touch $@

# ---- tests ----
# There are many programs of tests, which gold links in a third of the time.
TEST_LINKER := $(if $(shell command -v ld.gold 2>/dev/null),-fuse-ld=gold)
$(UNIT_BIN): $(OUT)/tests/%: $(OBJ)/tests/unit/%.o
$(TOOLCHAIN_BIN): $(OUT)/tests/%: $(OBJ)/tests/toolchain/%.o
$(UNIT_BIN) $(TOOLCHAIN_BIN): $(OBJ)/tests/unit/main.o $(SYMBOLIZE_LIB) $(CAPTURE_LIB) $(FORMATS_LIB)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $(TEST_LINKER) -Wl,--wrap=pthread_create -o $@ $(filter %.o,$^) $(SYMBOLIZE_LIB) $(CAPTURE_LIB) $(FORMATS_LIB) $(call pkg_config,--libs cmocka) $(LDLIBS_SYMBOLIZE) $(LDLIBS_CAPTURE)
$(call obj,$(UNIT_SRC) $(TOOLCHAIN_SRC) tests/unit/main.c): | $(OUT)/.needs-test
ifeq ($(origin CFLAGS),file)
$(call obj,$(UNIT_SRC) $(TOOLCHAIN_SRC)): CFLAGS := $(TEST_CFLAGS) $(ONLY_AT_O2)
# Those whose own functions are unwound are as people's programs are.
$(call obj,$(shell grep -l '^.include "tests/unit/places.h"' tests/unit/*.c)): CFLAGS := -O2 -g
endif
# What UBSan finds in a test is no fault of the product, and that is half of what a sanitized build takes.
$(call obj,$(UNIT_SRC) $(TOOLCHAIN_SRC)): SAN := $(or $(SAN_TESTS),$(SAN))
# A made-up profile in every output format, to feed their consumers.
$(OUT)/tools/emit_demo: $(call obj,tests/tools/emit_demo.c $(wildcard formats/base/*.c formats/emit/*.c formats/emit/*/*.c))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ -ljansson -lz

# Made-up traces, for tests of pysym and for measuring it; and what there is to read in a trace.
# check_lines: line tables beside what an interpreter says of them.
TRACE_TOOLS := $(OUT)/tools/make_trace $(OUT)/tools/make_bomb $(OUT)/tools/trace_bytes $(OUT)/tools/check_lines $(OUT)/tools/stats_figures $(OUT)/tools/simulate_tests $(OUT)/tools/simulate_compare $(OUT)/tools/compare_dump
TRACE_TOOLS += $(OUT)/tools/compare_draws $(OUT)/tools/measure
# Sends to stores of profiles, for tests.
STORE_TOOLS := $(OUT)/tools/store_send
# For live tests.
LIVE_TOOLS := $(OUT)/tools/read_tasks $(OUT)/tools/pycap_stages
$(TRACE_TOOLS): $(OUT)/tools/%: $(OBJ)/tests/tools/%.o $(FORMATS_LIB)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ -lelf -lz -lzstd -ljansson -lm

# Tools for making test data, run by hand or by tests.
$(OUT)/tools/%: $(OBJ)/tests/tools/%.o $(SYMBOLIZE_LIB) $(CAPTURE_LIB) $(FORMATS_LIB)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS_SYMBOLIZE) $(LDLIBS_CAPTURE)

# ---- manual pages, dated as the commit ----
MAN := $(patsubst docs/%.scd,$(OUT)/man/%,$(sort $(wildcard docs/*.1.scd)))
$(MAN): $(OUT)/man/%: docs/%.scd | $(OUT)/.needs-man
	@mkdir -p $(@D)
	$(call say,MAN,$@)
	$(Q)scdoc <$< >$@

.PHONY: soak
soak: all ## record for SOAK_MINUTES (10) under a hard load, onto slow and full disks
	$(Q)PYCAP="$(OUT)/pycap" PYSYM="$(OUT)/pysym" $(PYTHON) tests/soak/soak.py

# Where addresses are random in more than 28 bits, mappings come to lie where the sanitizers' shadow has to.
NO_ASLR := $(shell bits=$$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null); [ "$${bits:-0}" -le 28 ] || ! setarch -R true 2>/dev/null || echo setarch -R)

KERNELS ?= 5.10 6.1 6.12 newest
.PHONY: check check-live check-unit check-long check-stores check-asan check-tsan check-tsan-run check-kernels tests-list
TEST_PROGRAMS := $(UNIT_BIN) $(TOOLCHAIN_BIN)
TEST_TOOLS    := $(TRACE_TOOLS) $(STORE_TOOLS) $(LIVE_TOOLS)
run_tests = $(Q)PYTHON="$(PYTHON)" sh tests/check.sh $(OUT)
ifeq ($(origin TEST),command line)
TEST_QUOTED   := '$(subst ','\'',$(TEST))'
check check-live: all $(TEST_TOOLS) $(patsubst %,$(OUT)/tests/%,$(shell sh tests/check.sh --programs $(TEST_QUOTED)))
	$(run_tests) named $(TEST_QUOTED)
else
check: all $(MAN) $(TEST_PROGRAMS) $(TEST_TOOLS) ## unit and golden tests, and a live test of each capability: 6 minutes on two CPUs; TEST=merge runs one file or test (tests/README.md)
	$(run_tests) $(if $(filter 1,$(SANITIZE)),asan $(if $(WHOLE),whole),check)
check-live: all $(TEST_TOOLS) ## the other live tests, what reads frames with all interpreters
	$(run_tests) live
endif
check-unit: all $(UNIT_BIN) ## unit tests only: no privilege, no kernel, no compiler
	$(run_tests) unit
check-long: all $(TEST_TOOLS) ## the tests that are too long for every run; minutes
	$(Q)tests/released.sh '*' || [ $$? = 77 ]
	$(run_tests) long
	$(Q)tests/deb.sh --twice || [ $$? = 77 ]
	$(Q)tests/packages.sh --all || [ $$? = 77 ]
	$(Q)tests/kernels/check.sh 6.1 6.12
	$(Q)$(MAKE) --no-print-directory WHOLE=1 check-asan
tests-list: ## an index of the tests: what each file tests, and how long it took when it last ran
	$(Q)$(PYTHON) tests/list.py $(OUT)
check-stores: all $(TRACE_TOOLS) ## push to real stores: make check-stores PARCA=path PYROSCOPE=path
	$(Q)PYCAP="$(CURDIR)/$(OUT)/pycap" PYSYM="$(CURDIR)/$(OUT)/pysym" PARCA="$(PARCA)" PYROSCOPE="$(PYROSCOPE)" \
		$(PYTHON) -m pytest -q -rsP --tb=short -m long tests/integration/test_real_stores.py
check-asan: ## the tests in C, and of the others those that meet most of the programs, under ASan and UBSan; WHOLE=1: all of check
	$(Q)PYTHONS="$${PYTHONS:-/usr/bin/python3}" $(NO_ASLR) $(MAKE) --no-print-directory SANITIZE=1 check
# Under ThreadSanitizer run the tests in C that start threads (STARTS_THREADS), but these, which stop threads where it has code of its
# own, delay its signals or count the threads of a process, of which it has one; and live tests of the recorder under a load.
TSAN_LEFT_OUT := test_native_unwind test_proc test_unwind
TSAN_TESTS    := $(filter-out $(TSAN_LEFT_OUT),$(patsubst %.c,%,$(notdir $(shell grep -l '^STARTS_THREADS;' $(UNIT_SRC) $(TOOLCHAIN_SRC)))))
# Traces are read by a plain pysym, which has no threads but for `pycap top`; that one runs the pysym beside it.
check-tsan: all $(TEST_TOOLS) ## the tests in C that start threads, and the recorder, under ThreadSanitizer
	$(Q)PYSYM="$${PYSYM:-$(CURDIR)/$(OUT)/pysym}" $(NO_ASLR) $(MAKE) --no-print-directory TSAN=1 SANITIZE=0 check-tsan-run
check-tsan-run: all $(TSAN_TESTS:%=$(OUT)/tests/%)
	$(run_tests) tsan "$(TSAN_TESTS)"
check-kernels: all ## pycap on Debian's kernels in qemu: KERNELS="5.10 newest"
	$(Q)tests/kernels/check.sh $(KERNELS)

# Programs that attack a recording, beside those in Python.
HOSTILE_BIN := $(patsubst tests/hostile/%.c,$(OUT)/hostile/%,$(sort $(wildcard tests/hostile/*.c)))
$(HOSTILE_BIN): $(OUT)/hostile/%: $(OBJ)/tests/hostile/%.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^
.PHONY: hostile
hostile: all $(HOSTILE_BIN) ## attack pycap and pysym as strangers would; HOSTILE="code 200" for some, TICKS=2000 by turns with runs without attackers (tests/README.md)
	$(Q)TICKS="$(TICKS)" $(PYTHON) tests/hostile/run.py "$(OUT)/pycap" "$(OUT)/pysym" "$(OUT)/hostile" $(HOSTILE)

# libFuzzer's programs are built apart, by clang, into build/fuzz; what they learn stays in build/fuzz/corpus.
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(OUT)/%)
# What fuzz targets need of the programs, which are not linked whole: that takes more libraries.
FUZZED := $(patsubst %.c,%,$(wildcard capture/host/*.c) $(filter-out %/outputs.c %/interrupt.c,$(wildcard capture/output/*.c)))
FUZZED += $(patsubst %.c,%,$(wildcard capture/event/*.c))
FUZZED += capture/asyncio/task_walk capture/asyncio/task_frames capture/asyncio/task_sets capture/asyncio/task_awaiters capture/asyncio/task_table
FUZZED += capture/process/program capture/session/command_note capture/when/condition symbolize/binary/archive symbolize/binary/named_ids symbolize/stack/perf_map
FUZZED += symbolize/source/notebook symbolize/source/source_path symbolize/source/source_text symbolize/push/profile symbolize/push/message symbolize/push/label_rule symbolize/push/label_map
FUZZED += symbolize/push/state_file symbolize/push/ledger
FUZZED += $(filter symbolize/%,$(LIBRARY_SRC:%.c=%))
FUZZED += symbolize/push/verdict symbolize/push/store_url symbolize/push/store_kind symbolize/push/pyroscope symbolize/push/parca
$(OUT)/fuzz_%: $(OBJ)/tests/fuzz/fuzz_%.o $(FUZZED:%=$(OBJ)/%.o) $(FORMATS_LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ -larchive -lelf -lz -lzstd -ljansson -lseccomp
# This one runs all of pysym.
$(OUT)/fuzz_pysym: $(OBJ)/tests/fuzz/fuzz_pysym.o $(SYMBOLIZE_LIB) $(FORMATS_LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(LDLIBS_SYMBOLIZE)
.PHONY: fuzz fuzz-long fuzz-run
fuzz: ## every fuzz target for FUZZ_SECONDS, 5 unless told
	$(Q)$(NO_ASLR) $(MAKE) --no-print-directory FUZZ=1 SANITIZE=0 FUZZ_SECONDS=$(or $(FUZZ_SECONDS),5) fuzz-run
fuzz-long: ## the same for 300 seconds each; FUZZERS="fuzz_trace fuzz_maps" names some
	$(Q)$(NO_ASLR) $(MAKE) --no-print-directory FUZZ=1 SANITIZE=0 FUZZ_SECONDS=$(or $(FUZZ_SECONDS),300) fuzz-run
fuzz-run: $(FUZZ_BIN) $(OUT)/tools/make_trace
	$(Q)PYTHON="$(PYTHON)" sh tests/fuzz/seeds.sh $(OUT)
	$(Q)sh tests/fuzz/run.sh $(OUT) $(FUZZ_SECONDS) $(or $(FUZZERS),$(notdir $(FUZZ_BIN)))

# ---- to look at ----
.PHONY: demo bench bench-quick bench-claims
demo: all ## record and symbolize a small program
	$(Q)CC="$(CC)" sh tests/demo.sh $(OUT)
BENCH_TOOLS := $(addprefix $(OUT)/tools/,empty_tick make_trace measure pycap_stages)
bench: all $(BENCH_TOOLS) ## measure beside perf and others; 40 minutes, see docs/benchmarks.md
	$(Q)$(PYTHON) tests/bench/bench.py $(BENCH)
bench-quick: all $(BENCH_TOOLS) ## the claims of docs/benchmarks.md alone, in three minutes
	$(Q)$(PYTHON) tests/bench/bench.py --quick $(BENCH)
bench-claims: all $(BENCH_TOOLS) ## all tables of docs/benchmarks.md: BENCH="FOLDER --against OLD/pycap"; 25 minutes
	$(Q)$(PYTHON) tests/bench/claims.py $(BENCH)

.PHONY: install install-library deb clean help
docdir  ?= $(prefix)/share/doc/pycap
libdir  ?= $(prefix)/lib
includedir ?= $(prefix)/include
unitdir ?= $(prefix)/lib/systemd/system
# What names installed files names them where they are.
installed = sed -e 's,/usr/bin/\(py[cs]\),$(prefix)/bin/\1,g' -e 's,/usr/share/doc/pycap,$(docdir),g' $(1) | install -D -m 644 /dev/stdin "$(DESTDIR)$(2)"
DOCUMENTS := $(wildcard docs/*.md docs/read_trace.py docs/example_reader.c docs/fleet/* docs/grafana/* docs/kubernetes/*)
PROGRAMS  := $(OUT)/pycap $(OUT)/pysym
install: $(PROGRAMS) $(MAN) $(if $(LIBRARY),install-library) ## install to $(DESTDIR)$(prefix): programs, the library of the trace, manual pages, documents, units of systemd; enables nothing
	$(Q)install -D -m 755 -t "$(DESTDIR)$(prefix)/bin" $(PROGRAMS)
	$(Q)for page in $(MAN); do $(call installed,$$page,$(prefix)/share/man/man1/$${page##*/}) || exit; done
	$(Q)for name in pycap pysym; do install -D -m 644 docs/completion/pycap.bash "$(DESTDIR)$(prefix)/share/bash-completion/completions/$$name" || exit; done
	$(Q)for unit in docs/systemd/*.service; do $(call installed,$$unit,$(unitdir)/$${unit##*/}) || exit; done
	$(Q)install -D -m 644 docs/systemd/pycap.sysusers.conf "$(DESTDIR)$(prefix)/lib/sysusers.d/pycap.conf"
	$(Q)$(call installed,docs/systemd/pycap-flight.conf,$(docdir)/systemd/pycap-flight.conf)
	$(Q)for page in $(DOCUMENTS); do install -D -m 644 $$page "$(DESTDIR)$(docdir)/$${page#docs/}" || exit; done
	$(Q)install -m 644 -t "$(DESTDIR)$(docdir)" LICENSE LICENSE-Apache-2.0 LICENSE-GPL-2.0 CHANGES
install-library: $(LIBRARY) ## of these the library alone, libpycaptrace.a, with its header and its file of pkg-config
	$(Q)install -D -m 644 -t "$(DESTDIR)$(libdir)" $(LIBRARY)
	$(Q)install -D -m 644 symbolize/library/pycap_trace.h "$(DESTDIR)$(includedir)/pycap/trace.h"
	$(Q)sed -e 's,@prefix@,$(prefix),' -e 's,@libdir@,$(libdir:$(prefix)%=$${prefix}%),' -e 's,@includedir@,$(includedir:$(prefix)%=$${prefix}%),' \
		-e 's,@version@,$(VERSION),' docs/build/pycaptrace.pc.in | install -D -m 644 /dev/stdin "$(DESTDIR)$(libdir)/pkgconfig/pycaptrace.pc"
deb: | $(OUT)/.needs-build ## Debian packages: build/pycap_$(VERSION)-1_MACHINE.deb, build/pysym_$(VERSION)-1_MACHINE.deb and their source
	$(Q)sh docs/debian/build.sh $(VERSION)

# ---- programs without libraries ----
# The programs load libarchive, libcurl and libdebuginfod when they are needed. Here those and all others are linked: from Debian's
# packages, but for the last two and libunwind, which are built from its sources. Of libarchive's formats and filters few are used, but its
# tables name all of them; those that need yet more libraries stay out, and with them most of what pkg-config would say of it. The
# maps say what was linked, for the list of components (docs/build/components.py).
STATIC := $(OUT)/static
STATIC_CAPTURE   := $(STATIC)/obj/capture/archive/libarchive.o
STATIC_SYMBOLIZE := $(STATIC)/obj/symbolize/binary/debuginfod.o $(STATIC)/obj/symbolize/push/curl_library.o
.PHONY: static
static: $(STATIC)/bin/pycap $(STATIC)/bin/pysym ## the two programs without libraries, for any Linux: build/static/bin
$(STATIC)/bin/pycap: LINK := -static-pie $(foreach f,7zip iso9660 mtree mtree_classic xar zip,-Wl,--defsym=archive_write_set_format_$f=abort)
$(STATIC)/bin/pycap: LIBS = -larchive $(call pkg_config,--static --libs $(LIBRARIES_CAPTURE)) -lpthread -llzma -lbz2
$(STATIC)/bin/pycap: $(OBJ)/capture/main.o $(STATIC_CAPTURE) $(CAPTURE_LIB) $(FORMATS_LIB)
$(STATIC)/bin/pysym: LINK := -static-pie -Wl,--defsym=archive_read_support_filter_lz4=abort -L$(STATIC)/lib
$(STATIC)/bin/pysym: LIBS = -ldebuginfod -lcurl -lssl -lcrypto -lcares -larchive -lunwind-$(MACHINE) -lunwind \
	$(call pkg_config,--static --libs libdw libelf jansson ncursesw libzstd liblzma zlib) -lbz2 -liberty -lm -lpthread
$(STATIC)/bin/pysym: $(OBJ)/symbolize/main.o $(STATIC_SYMBOLIZE) $(SYMBOLIZE_LIB) $(FORMATS_LIB)
$(STATIC)/bin/%: Makefile
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LINK) -s -Wl,--no-warnings -Wl,-Map=$@.map $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS)

$(STATIC_CAPTURE) $(STATIC_SYMBOLIZE): $(STATIC)/obj/%.o: %.c | $(OUT)/.needs-build
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -DLIBRARIES_LINKED -I$(STATIC)/include $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(STATIC_SYMBOLIZE) $(STATIC)/bin/pysym: $(STATIC)/.libraries
$(STATIC)/.libraries: docs/build/static-libraries.sh
	$(Q)CC="$(CC)" sh docs/build/static-libraries.sh $(STATIC) && touch $@

# What the packages hold, below $(STATIC)/usr: as make install lays it out, with what is inside the programs.
.PHONY: package-tree tarball wheel rpm image
package-tree: static
	$(Q)rm -rf $(STATIC)/usr
	$(Q)$(MAKE) --no-print-directory install PROGRAMS="$(STATIC)/bin/pycap $(STATIC)/bin/pysym" LIBRARY= DESTDIR=$(STATIC) prefix=/usr
	$(Q)$(PYTHON) docs/build/components.py $(VERSION) $(STATIC) $(STATIC)/usr/share/doc/pycap
tarball: package-tree ## build/pycap-$(VERSION)-linux-MACHINE.tar.gz, with an install script
	$(Q)sh docs/build/tarball.sh $(VERSION) $(MACHINE) $(STATIC)/usr $(OUT)
wheel: package-tree ## what pip installs: build/pycap_profiler-$(VERSION)-*.whl
	$(Q)$(PYTHON) docs/build/wheel.py $(VERSION) $(MACHINE) $(STATIC)/usr $(OUT)
rpm: package-tree ## build/pycap-$(VERSION)-1.MACHINE.rpm, build/pysym-$(VERSION)-1.MACHINE.rpm
	$(Q)sh docs/build/rpm.sh $(VERSION) $(STATIC)/usr $(OUT)
image: package-tree ## a container image, for docker load, podman load and Kubernetes: build/pycap-$(VERSION)-oci-MACHINE.tar
	$(Q)$(PYTHON) docs/build/image.py $(VERSION) $(MACHINE) $(STATIC)/usr $(OUT)
.PHONY: release
release: ## all that a release consists of, out of a clean clone: build/release/$(VERSION) (docs/release.md)
	$(Q)sh docs/build/release.sh $(VERSION)
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile
clean: ## remove all that was built
	$(Q)rm -rf build

-include $(shell find $(OBJ) $(STATIC)/obj -name '*.d' 2>/dev/null)
