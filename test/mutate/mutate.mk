# SPDX-License-Identifier: Apache-2.0
# make mutate T=src/sample/threads.c   change the source in each of its places, one
#                                      at a time: do unit tests of its room fail?
# make mutate T=src/hang               all sources of a room
# make mutate                          the rooms of MUTATE, for hours
# MUTANTS=N tries N of each source, drawn by lot; LOT=X others.
# AGAIN=1 tries those that survived the last time, of build/mutants.
MUTATE := src/sample src/ptrace src/hang unwind src/proc
MUTATE_O := build/mutate
DEPS_MUTATE := python3-clang clang
MUTATE_FILES = $(if $(filter %.c,$(T)),$(T),$(wildcard $(T)/*.c))
MUTATE_ROOM = $(strip $(foreach l,$(ROOMS),$(if $(filter $($(l)_DIR)/%,$(T)/),$(l))))
MUTATE_TESTS = $(foreach u,$(UNIT),$(if $(filter $(MUTATE_ROOM),\
	$(call room_of,test/unit/test_$(u).c)),$(u)))

mutate:
	$(Q)test/deps.sh $(DEPS_MUTATE)
	$(Q)for t in $(or $(T),$(MUTATE)); do \
		$(MAKE) --no-print-directory O=$(MUTATE_O) T="$$t" mutate-room \
			|| exit; done
mutate-room:
	$(Q)$(MAKE) --no-print-directory O=$(O) T= UNIT_RUN='$(MUTATE_TESTS)' \
		unit-programs
	$(Q)MUTANTS=$(MUTANTS) LOT=$(LOT) test/mutate/mutate.py $(if $(AGAIN),--again) $(O) '$(COMPILE)' \
		'$(LINK) -Wl,--wrap=_cmocka_run_group_tests' \
		'$(LINKED_$(BUILD)) $(call libs_of,$(MUTATE_ROOM)) -lcmocka $(call ext_of,$(MUTATE_ROOM))' \
		$(MUTATE_ROOM) '$(MUTATE_TESTS)' $(MUTATE_FILES)
.PHONY: mutate mutate-room
