# SPDX-License-Identifier: Apache-2.0
# Shares the snapshots and the other unwinders with the bench.
CORPUS := test/tools/corpus test/bench/snap test/bench/backend_libunwind \
	test/bench/backend_libdw
$(O)/tools/corpus: $(CORPUS:%=$(O)/%.o) $(call libs_of,cmd)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(call ext_of,cmd)
