# Shares the snapshots and the other unwinders with the bench.
CORPUS := test/tools/corpus test/bench/snap test/bench/backend_libunwind \
	test/bench/backend_libdw
$(O)/tools/corpus: $(CORPUS:%=$(O)/%.o) $(foreach l,$(main_DEPS),$(O)/lib$(l).a)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(main_EXT)
