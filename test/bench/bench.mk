# SPDX-License-Identifier: Apache-2.0
# make bench          the table, and $(O)/bench.csv
# make bench T=dump   one group of it
# make bench-compare A=FILE B=FILE   which rows of B, a bench.csv, are worse than
#                     those of A; without B the rows of A as a table of Markdown
BENCH_TOOLS := bare_dump bare_looks bare_scan bare_stops bare_wakes big_profile counter gaps nappers spend
BENCH_UNWIND := unwind_bench snap backend_wallprof backend_libunwind \
	backend_libdw
BENCH_BIN := $(BENCH_TOOLS:%=$(O)/bench/%) $(O)/bench/unwind_bench
# Programs to look at, for T=programs.
DEPS_BENCH := linux-perf memcached caddy ripgrep fd-find php-cli ruby \
	mariadb-server heaptrack jq sqlite3 libgoogle-perftools4 sbcl \
	gstreamer1.0-tools gstreamer1.0-plugins-good

$(O)/bench/unwind_bench: $(BENCH_UNWIND:%=$(O)/test/bench/%.o)
$(O)/bench/%: $(O)/test/bench/%.o $(call libs_of,sample)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(LINK) -pthread -o $@ $(filter %.o,$^) $(filter %.a,$^) $(call ext_of,sample) -ldw -lelf

$(O)/bench/big_profile: $(O)/test/bench/big_profile.o $(call libs_of,output)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ $(call ext_of,output)

# Another viewer, to measure beside pages: make bench T=html.
NPM_BENCH := build/npm/bench
$(NPM_BENCH)/installed: test/bench/package.json test/bench/package-lock.json | deps-test
	@mkdir -p $(NPM_BENCH)
	$(call say,NPM,$(NPM_BENCH))
	$(Q)cp $^ $(NPM_BENCH) && (cd $(NPM_BENCH) && npm ci --ignore-scripts \
		--no-audit --no-fund) >$(NPM_BENCH)/log 2>&1 && touch $@

bench: deps-npm deps-test deps-bench $(NPM_BENCH)/installed $(O)/wallprof $(BENCH_BIN) fixtures-all
	$(Q)BUILD_DIR=$(O) $(PYTHON) test/bench/bench.py $(T)
bench-compare:
	$(Q)$(PYTHON) test/bench/compare.py $(A) $(B)
deps-bench:
	$(Q)test/deps.sh $(DEPS_BENCH)
.PHONY: bench bench-compare deps-bench
