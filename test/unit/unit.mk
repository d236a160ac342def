# SPDX-License-Identifier: Apache-2.0
# make unit [T=maps|ROOM=proc] [BUILD=asan]   test_NAME.c says its room in a line
#                                             "Layer: NAME."
# Each test has UNIT_SECONDS (test/unit/limit.c).
UNIT := $(patsubst test/unit/test_%.c,%,$(wildcard test/unit/test_*.c))
UNIT_RUN := $(or $(T),$(if $(ROOM),$(foreach u,$(UNIT),$(if $(filter \
	$(ROOM),$(call room_of,test/unit/test_$(u).c)),$(u))),$(UNIT)))
define unit_test
$(O)/test_$(1): $(O)/test/unit/test_$(1).o $(O)/test/unit/limit.o $(LINKED_$(BUILD)) $(call libs_of,$(2)) | deps-test
	$$(call say,LD,$$@)
	$$(Q)$$(TEST_LINK) -Wl,--wrap=_cmocka_run_group_tests -o $$@ $$^ -lcmocka -lz $(call ext_of,$(2))
endef
$(foreach u,$(UNIT),$(eval $(call unit_test,$(u),$(call room_of,test/unit/test_$(u).c))))

# A test itself is compiled in a third of the time without optimization: what warnings
# need it for, and how much stack there is, `make cross` sees.  A user's flags are for it, too.
ifeq ($(origin CFLAGS),file)
ifneq ($(filter release asan,$(BUILD)),)
$(UNIT:%=$(O)/test/unit/test_%.o): CFLAGS := -O0 -g1 \
	$(if $(findstring clang,$(CC)),,-Wno-stack-usage)
endif
endif
unit-programs: $(UNIT_RUN:%=$(O)/test_%)
unit: deps-test unit-programs
	$(Q)test/unit/programs.sh $(if $(filter asan,$(BUILD)),unit-asan,unit) \
		$(UNIT_RUN:%=$(O)/test_%)
unit-asan: ; $(Q)$(MAKE) --no-print-directory BUILD=asan O=build/asan unit
.PHONY: unit unit-programs unit-asan
