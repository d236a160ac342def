# SPDX-License-Identifier: Apache-2.0
# make fuzz T=maps SECONDS=1200   one fuzzer, with libFuzzer, ASan and UBSan
# make fuzz SECONDS=60            all of them in turn, so long each
# make fuzz-replay [T=maps]       the inputs of test/data/fuzz, their prefixes
#                                 and 2,000 mutations of each, in this BUILD
# fuzz_NAME.c says its layer in a line "Layer: NAME."; what libFuzzer finds
# goes to $(O)/fuzz.
SECONDS ?= 60
FUZZ := $(patsubst test/fuzz/fuzz_%.c,%,$(wildcard test/fuzz/fuzz_*.c))
FUZZ_RUN := $(if $(T),$(T),$(FUZZ))

define fuzzer
$(O)/replay_$(1): $(O)/test/fuzz/fuzz_$(1).o $(O)/test/fuzz/replay.o $(call libs_of,$(2)) | deps-test
	$$(call say,LD,$$@)
	$$(Q)$$(TEST_LINK) -o $$@ $$^ $(call ext_of,$(2))
$(O)/fuzz_$(1): $(O)/test/fuzz/fuzz_$(1).o $(call libs_of,$(2))
	$$(call say,LD,$$@)
	$$(Q)$$(LINK) -fsanitize=fuzzer -o $$@ $$^ $(call ext_of,$(2))
endef
$(foreach f,$(FUZZ),$(eval $(call fuzzer,$(f),$(call room_of,test/fuzz/fuzz_$(f).c))))

fuzz-replay: deps-build $(FUZZ_RUN:%=$(O)/replay_%)
	$(Q)test/fuzz/replay.sh $(O) $(if $(filter asan,$(BUILD)),replay-asan,replay) \
		$(FUZZ_RUN)
# What inputs do to memory a sanitizer sees.
replay-asan:
	$(Q)$(MAKE) --no-print-directory BUILD=asan O=build/asan fuzz-replay

# A build of its own: libFuzzer is clang's and wants every object to report
# where it has been.
fuzz:
	$(Q)test/deps.sh $(DEPS_BUILD) clang libclang-rt-dev
	$(Q)$(MAKE) --no-print-directory CC=clang BUILD=asan O=$(O)/fuzz \
		WERROR= EXTRA=-fsanitize=fuzzer-no-link fuzz-run
fuzz-run: $(FUZZ_RUN:%=$(O)/fuzz_%)
	$(Q)test/fuzz/run.sh $(O) $(SECONDS) $(FUZZ_RUN)
.PHONY: fuzz fuzz-run fuzz-replay replay-asan
