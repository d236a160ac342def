# SPDX-License-Identifier: Apache-2.0
# make              build build/release/wallprof
# make demo         from nothing: install, build, record a fixture for 5 s
# make check        from nothing: install, build by both compilers and for
#                   aarch64, lint, unit tests, the same and the inputs of the
#                   fuzzers under ASan and UBSan, end-to-end tests
# make lint, house, cross, ...   its parts: test/*/*.mk
# make unit T=maps  one unit test
# make e2e T=expr   end-to-end tests whose name matches (pytest -k)
# make soak         what takes minutes
# make valgrind     wallprof under valgrind, a part of soak
# make tidy         clang-tidy: some minutes
# make mutate T=FILE  which changes of a source no unit test notices
# make cov          which lines the unit and end-to-end tests reach; cov-sample
# make install      PREFIX=/usr/local DESTDIR=
# BUILD=release|debug|asan|cov   each has its own object directory
# CROSS=aarch64-linux-gnu-   for that machine, into build/aarch64/
# V=1 shows commands; WERROR=1 makes warnings fatal, STRICT=1 skipped tests that
# test/skips.txt does not allow (CI sets both)
BUILD   ?= release
O       := build/$(BUILD)
CC      ?= cc
# The compiler of another machine, and its libraries, unpacked under build/.
ifdef CROSS
CROSS_NAME := $(patsubst %-,%,$(CROSS))
O := build/$(firstword $(subst -, ,$(CROSS)))
CC := $(CROSS)gcc
AR := $(CROSS)ar
CROSS_ROOT := $(O)/root
CROSS_LIBS := $(CROSS_ROOT)/usr/lib/$(CROSS_NAME) $(CROSS_ROOT)/lib/$(CROSS_NAME)
CROSS_FLAGS := -idirafter $(CROSS_ROOT)/usr/include \
	-idirafter $(CROSS_ROOT)/usr/include/$(CROSS_NAME) \
	$(CROSS_LIBS:%=-L%) $(CROSS_LIBS:%=-Wl,-rpath-link,%)
endif
PREFIX  ?= /usr/local
# Debian's test packages belong to Debian's interpreter.
PYTHON  ?= /usr/bin/python3
VERSION := 0.1.0

WARN := -Wall -Wextra -Wshadow -Wvla -Wundef -Wformat=2 -Wwrite-strings \
	-Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
	-Wold-style-definition -Wnull-dereference
ifneq ($(findstring clang,$(CC)),clang)
WARN += -Wimplicit-fallthrough=5 -Wstack-usage=65536
endif
ifeq ($(WERROR),1)
WARN += -Werror
endif
# What a build is, beside what its user wants of it in CFLAGS.
OPT_release :=
OPT_debug   := -DWP_DEBUG=1
OPT_asan    := -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined -DWP_DEBUG=1
# What gcc makes of fork and exec would clear the counts: see test/cov/shared.c.
OPT_cov     := --coverage -fdata-sections -fno-builtin-fork \
	-fno-builtin-execvp -Wl,-T,test/cov/shared.ld
CFLAGS_release := -O2 -g
CFLAGS_debug   := -O0 -g3
CFLAGS_asan    := -O1 -g1
CFLAGS_cov     := -O0 -g
ifndef CFLAGS_$(BUILD)
$(error BUILD=$(BUILD) is not one of release debug asan cov)
endif
# A user's CFLAGS, CPPFLAGS and LDFLAGS come last and so win.  EXTRA is for
# this Makefile's own builds.
CFLAGS ?= $(CFLAGS_$(BUILD))
WP_CFLAGS := -std=gnu11 -D_GNU_SOURCE -fno-common $(WARN) $(OPT_$(BUILD)) $(CROSS_FLAGS) $(EXTRA)
# A checksum of the code that makes names: names that other code made are not taken from
# the cache.
NAMES := $(sort $(wildcard symbols/*.[ch] src/symbolize/*.[ch] src/base/go_*.[ch] src/base/elf_*.[ch]))
NAMES_BY := $(shell cat $(NAMES) | cksum | cut -d' ' -f1)
WP_CPPFLAGS := -Iinclude -DWP_VERSION='"$(VERSION)"' -DWP_NAMES_BY='"$(NAMES_BY)"' -MMD -MP
COMPILE = $(CC) $(WP_CPPFLAGS) $(CPPFLAGS) $(WP_CFLAGS) $(CFLAGS)
LINK = $(CC) $(WP_CFLAGS) $(CFLAGS) $(LDFLAGS)
# Programs of tests are many, and lld links one in half the time; it is for this
# machine, and knows no script of ld's.
TEST_LINK = $(LINK) $(if $(CROSS)$(LINKED_$(BUILD)),,-fuse-ld=lld)

ifneq ($(V),1)
Q := @
say = @printf '  %-5s %s\n' $(1) $(2)
endif

# Scripts of tests ask for it.
export STRICT

all: $(O)/wallprof

# Linked into every program of a build.
LINKED_cov := $(O)/test/cov/shared.o

# A library per room: a test links only the rooms that its own may use, so a
# forbidden call is a link error, not a review comment.  This table is the only
# one: `make lint` hands it to test/lint/layers.sh.
ROOMS := base proc ptrace perf bpf unwind symbols state profile lock hang \
	go heap sample output symbolize dump serve cmd
base_DIR := src/base
proc_DIR := src/proc
ptrace_DIR := src/ptrace
perf_DIR := src/perf
bpf_DIR := src/bpf
unwind_DIR := unwind
symbols_DIR := symbols
state_DIR := src/state
profile_DIR := src/profile
lock_DIR := src/lock
hang_DIR := src/hang
go_DIR := src/go
heap_DIR := src/heap
sample_DIR := src/sample
output_DIR := src/output
symbolize_DIR := src/symbolize
dump_DIR := src/dump
serve_DIR := src/serve
cmd_DIR := src/cmd
# What each may use, nearest first.
base_DEPS :=
proc_DEPS := base
ptrace_DEPS := bpf proc base
perf_DEPS := proc base
bpf_DEPS := proc base
unwind_DEPS := base
symbols_DEPS := base
state_DEPS := proc base
profile_DEPS := base
lock_DEPS := base
hang_DEPS := lock base
go_DEPS := proc base
heap_DEPS := unwind base
sample_DEPS := go heap perf ptrace bpf lock state unwind profile proc base
output_DEPS := profile hang lock state proc base
symbolize_DEPS := symbols state profile proc base
dump_DEPS := hang symbolize symbols sample $(sample_DEPS)
serve_DEPS := proc base
cmd_DEPS := serve dump output $(dump_DEPS)
# The foreign libraries that each needs itself; bpf's are known once it is seen
# what is there, in a file of arguments.
base_EXT := -ldeflate
unwind_EXT := -lunwind-generic -lunwind
state_EXT := -lseccomp
sample_EXT := -lm
symbols_EXT := -ldw -lelf -llzma -liberty
output_EXT := -lisal -ldeflate -ljansson -lm
cmd_EXT := -lncursesw -ltinfo
bpf_EXT := @$(O)/bpf/libs -lm
libs_of = $(foreach l,$(1) $($(1)_DEPS),$(O)/lib$(l).a)
# The room that a test's source names, of one read of all of them.
ROOM_LINES := $(shell grep -om1 'Layer: [a-z]*\.' test/unit/test_*.c test/fuzz/fuzz_*.c | tr -d ' ')
room_of = $(patsubst $(1):Layer:%.,%,$(filter $(1):%,$(ROOM_LINES)))
ext_of = $(foreach l,$(1) $($(1)_DEPS),$($(l)_EXT))
define library
$(1)_OBJ := $$(patsubst %.c,$(O)/%.o,$$(filter-out %.bpf.c,$$(wildcard $$($(1)_DIR)/*.c)))
$(O)/lib$(1).a: $$($(1)_OBJ)
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@; $$(AR) rcs $$@ $$^
endef
$(foreach l,$(ROOMS),$(eval $(call library,$(l))))

$(O)/src/symbolize/name_cache.o: $(NAMES)
$(O)/%.o: %.c | deps-build
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(COMPILE) -c -o $@ $<

# A program for the kernel, part of ours as bytes.  Without clang or libbpf all
# is built but this; why is in the log.
BPF := task_scan heap_probe call_argument
$(O)/bpf/libs: $(BPF:%=src/bpf/%.bpf.c) src/bpf/task_kernel.h src/bpf/heap_kernel.h \
		include/wallprof/task_record.h include/wallprof/heap_record.h | deps-build
	@mkdir -p $(@D)
	$(call say,BPF,src/bpf)
	$(Q)rm -f $(@D)/*; if (for p in $(BPF); do \
		clang -target bpf -mcpu=v3 -O2 -g -Wall -Werror -Iinclude \
		-D__$$($(CC) -dumpmachine | sed s/-.*//)__ \
		-idirafter /usr/include/$$($(CC) -dumpmachine | sed s/-pc//) \
		-idirafter /usr/$$($(CC) -dumpmachine)/include \
		-c -o $(@D)/$$p.o src/bpf/$$p.bpf.c 2>>$(@D)/log || exit 1; done); \
	then echo -DWP_HAVE_BPF=1 >$(@D)/flags; echo -lbpf >$@; \
	elif [ -n "$(WERROR)" ]; then cat $(@D)/log; exit 1; \
	else echo "  left out: see $(@D)/log"; : >$(@D)/flags; : >$@; fi
BPF_OBJ := $(patsubst %,$(O)/src/bpf/%.o,$(BPF) task_moved heap_probe_none heap_links heap_trial)
$(BPF_OBJ): $(O)/bpf/libs
$(BPF_OBJ): WP_CPPFLAGS += @$(O)/bpf/flags -Wa,-I$(O)/bpf
# What the assembler reads it would not find when it is run by the linker.
$(BPF_OBJ): COMPILE += -fno-lto

# Loaded by `wallprof serve` and its --push alone, by the names that programs linked
# with them ask for.  Without libmicrohttpd all is built but serve, without libcurl all
# but --push.
$(O)/serve/sonames: | deps-build
	@mkdir -p $(@D)
	$(Q)rm -f $(@D)/*; for h in microhttpd curl/curl; do l=$${h#*/}; \
	if printf '#include <%s.h>\nint main(void) { return 0; }\n' $$h | \
		$(CC) $(CPPFLAGS) $(CROSS_FLAGS) $(CFLAGS) $(LDFLAGS) -o $(@D)/$$l \
		-x c - -Wl,--no-as-needed -l$$l 2>$(@D)/log-$$l; \
	then readelf -d $(@D)/$$l | sed -n "s/.*NEEDED.*\[\(lib$$l.*\)\]/\1/p" | \
		sed "s/.*/-DWP_$${l}_SONAME=\\\\\"&\\\\\"/" >>$@.new; \
	elif [ -n "$(WERROR)" ]; then cat $(@D)/log-$$l; exit 1; \
	else echo "  $$l is left out: see $(@D)/log-$$l"; fi; done; \
	touch $@.new; mv $@.new $@
$(O)/src/serve/serve_http.o $(O)/src/serve/push_http.o: $(O)/serve/sonames
$(O)/src/serve/serve_http.o $(O)/src/serve/push_http.o: \
	WP_CPPFLAGS += @$(O)/serve/sonames

$(O)/wallprof: $(O)/src/main.o $(LINKED_$(BUILD)) \
		$(call libs_of,cmd)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ $(call ext_of,cmd)

# Made from the table of options: the man page, and completions of three shells.
# This machine makes them if the program is for another.
DOCS_IN := $(if $(CROSS),build/release,$(O))/docs
DOCS := $(addprefix $(DOCS_IN)/,wallprof.1 wallprof.bash _wallprof wallprof.fish)
$(O)/option_docs: $(O)/src/option_docs.o $(LINKED_$(BUILD)) $(call libs_of,cmd)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ $(call ext_of,cmd)
vpath %.in src/cmd src/completions
ifdef CROSS
# By this machine's program, for which a user's flags are not: once for all.
$(DOCS) &: ; $(Q)$(MAKE) --no-print-directory CROSS= BUILD=release CC=cc \
	CFLAGS='$(CFLAGS_release)' CPPFLAGS= LDFLAGS= docs
endif
$(O)/docs/%: %.in $(O)/option_docs
	@mkdir -p $(@D)
	$(call say,DOC,$@)
	$(Q)$(O)/option_docs <$< >$@.new && mv $@.new $@
docs: $(DOCS)

# Programs that tests run: each shows one layer at work.
TOOLS := $(patsubst test/tools/%.c,$(O)/tools/%,$(wildcard test/tools/*.c))
tools: $(TOOLS)
$(O)/tools/%: $(O)/test/tools/%.o $(LINKED_$(BUILD)) $(call libs_of,cmd)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ $(call ext_of,cmd)

include src/output/html/html.mk
include fixtures/fixtures.mk
include $(wildcard test/*/*.mk)

# Each stage in its turn, on all CPUs; what each counted is summed up at the end.
STAGE = $(Q)$(MAKE) --no-print-directory -j$(shell nproc)
TOTALS := unit unit-asan replay-asan e2e e2e-alone
check: deps-test
	$(Q)rm -rf build/totals
	$(STAGE) all lint
	$(STAGE) clang
	$(STAGE) cross
	$(STAGE) unit
	$(STAGE) unit-asan
	$(STAGE) replay-asan
	$(STAGE) e2e-programs
	$(STAGE) e2e
	$(Q)test/totals.sh $(TOTALS)

demo: deps-build $(O)/wallprof fixtures
	$(Q)test/demo.sh $(O)

# What is missing is installed where apt-get is at hand and may be used;
# elsewhere the list is printed.
DEPS_BUILD := gcc libc6-dev libunwind-dev libdw-dev libelf-dev libisal-dev \
	libdeflate-dev libiberty-dev liblzma-dev libjansson-dev \
	libseccomp-dev libncurses-dev libmicrohttpd-dev \
	libcurl4-openssl-dev
# Not needed to build.
DEPS_BPF := clang libbpf-dev
# Only for make vm.
DEPS_VM := qemu-system-x86 busybox-static cpio kmod xz-utils zstd
DEPS_VM_arm64 := qemu-system-arm mmdebstrap debian-archive-keyring g++-aarch64-linux-gnu
DEPS_TEST := libcmocka-dev zlib1g-dev python3-pytest python3-protobuf protobuf-compiler \
	golang-go elfutils gdb strace valgrind musl-tools clang clang-tidy lld \
	g++ shellcheck cppcheck \
	golang-github-google-pprof-dev redis-server redis-tools nginx wrk \
	libc6-dbg libcap2-bin binutils llvm dwz xz-utils python3-jsonschema \
	python3-pytest-xdist python3-pytest-timeout clang-format gcc-aarch64-linux-gnu \
	libc6-dev-arm64-cross chromium nodejs default-jdk-headless \
	erlang-base zsh fish tmux man-db debhelper lintian dpkg-dev fakeroot \
	busybox-static libdebuginfod1 prometheus \
	libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0 \
	$(if $(filter x86_64,$(shell uname -m)),libc6-dev-i386 \
		lib32gcc-$(firstword $(subst ., ,$(shell gcc -dumpversion)))-dev)
# Programs that others have built come from there; who has its client need not
# have Debian's.
DEPS_NPM := $(if $(shell command -v npm),,nodejs npm)
deps: deps-build deps-test
deps-build deps-test: deps-%:
	$(Q)test/deps.sh $(DEPS_BUILD) $(if $(filter test,$*),$(DEPS_TEST) $(DEPS_NPM))
	$(Q)[ -e $(O)/bpf/libs ] || test/deps.sh $(DEPS_BPF) || :

SHARE := $(DESTDIR)$(PREFIX)/share
UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system
# Where Debian's zsh looks below /usr, and each below /usr/local.
ZSH = $(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
install: $(O)/wallprof $(DOCS)
	install -D -m 755 $(O)/wallprof "$(DESTDIR)$(PREFIX)/bin/wallprof"
	install -D -m 644 $(DOCS_IN)/wallprof.1 "$(SHARE)/man/man1/wallprof.1"
	install -D -m 644 $(DOCS_IN)/wallprof.bash "$(SHARE)/bash-completion/completions/wallprof"
	install -D -m 644 $(DOCS_IN)/_wallprof "$(SHARE)/zsh/$(ZSH)/_wallprof"
	install -D -m 644 $(DOCS_IN)/wallprof.fish "$(SHARE)/fish/vendor_completions.d/wallprof.fish"
	sed 's|/usr/bin/wallprof|$(PREFIX)/bin/wallprof|' src/cmd/wallprof@.service | \
		install -D -m 644 /dev/stdin "$(UNITS)/wallprof@.service"
	install -D -m 644 LICENSE "$(SHARE)/doc/wallprof/LICENSE"
clean: ; rm -rf build
.PHONY: all docs tools check demo deps deps-build deps-test install clean fixtures
.SECONDARY:
-include $(shell find $(O) -name '*.d' -type f 2>/dev/null)
