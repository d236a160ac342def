# SPDX-License-Identifier: Apache-2.0
# make e2e [T=expr]   end-to-end tests (pytest -k): most of them E2E_JOBS at a
#                     time, for they wait more than they compute; then, one
#                     after the other, those marked alone, whatever failed before
# make soak [T=expr]  what takes minutes
# make faults         write the figures of the last whole runs, and of the last
#                     fuzzing, into FAULTS.md
# On two CPUs six at a time take 527 s, four 622 s.
E2E_JOBS ?= $(shell expr $$(nproc) \* 3)
# A part of the tests leaves no figures, nor does a run that failed.
faults_log = $(if $(T),,FAULTS_LOG=$(CURDIR)/build/faults/$(1).part)
# A test that is not done in so many seconds fails: what it started is ended, and
# the run goes on.  The longest take 12 s on an idle machine, one of soak an hour.
E2E_SECONDS := 300
SOAK_SECONDS := 5400
PYTEST = BUILD_DIR=$(O) $(PYTHON) -m pytest -q -p no:cacheprovider \
	--timeout $(E2E_SECONDS) $(if $(T),-k '$(T)')

e2e-programs: $(O)/wallprof $(DOCS) $(TOOLS) $(O)/test_pprof fixtures-all
# Status 5 of pytest: T names no such test.
e2e: deps-test e2e-programs
	$(Q)$(if $(T),,test/e2e/faults.py begin check)
	$(Q)rc=0; \
	TOTALS=e2e $(call faults_log,check) $(PYTEST) -n $(E2E_JOBS) -m 'not soak and not alone' \
		test/e2e || [ $$? = 5 ] || rc=1; \
	TOTALS=e2e-alone $(call faults_log,check) $(PYTEST) -p no:xdist -m 'alone and not soak' \
		test/e2e || [ $$? = 5 ] || rc=1; \
	exit $$rc
	$(Q)$(if $(T),,cd build/faults && mv check.part check)
soak: E2E_SECONDS := $(SOAK_SECONDS)
soak: deps-test e2e-programs
	$(Q)$(if $(T),,test/e2e/faults.py begin soak)
	$(Q)$(call faults_log,soak) $(PYTEST) -p no:xdist -m soak test/e2e
	$(Q)$(if $(T),,cd build/faults && mv soak.part soak)
faults: ; $(Q)test/e2e/faults.py write
valgrind: ; $(Q)$(MAKE) soak T=test_valgrind
.PHONY: e2e e2e-programs soak valgrind faults
