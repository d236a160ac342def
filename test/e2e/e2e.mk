# SPDX-License-Identifier: Apache-2.0
# make e2e [T=expr]   end-to-end tests (pytest -k): most of them E2E_JOBS at a
#                     time, for they wait more than they compute; then, one
#                     after the other, those marked alone
# make soak [T=expr]  what takes minutes
E2E_JOBS ?= $(shell expr $$(nproc) \* 4)
PYTEST = BUILD_DIR=$(O) $(PYTHON) -m pytest -q -p no:cacheprovider \
	$(if $(T),-k '$(T)')

e2e-programs: $(O)/wallprof $(TOOLS) $(O)/test_pprof fixtures-all
# Status 5 of pytest: T names no such test.
e2e: deps-test e2e-programs
	$(Q)TOTALS=e2e $(PYTEST) -n $(E2E_JOBS) -m 'not soak and not alone' \
		test/e2e || [ $$? = 5 ]
	$(Q)TOTALS=e2e-alone $(PYTEST) -p no:xdist -m 'alone and not soak' \
		test/e2e || [ $$? = 5 ]
soak: deps-test e2e-programs
	$(Q)$(PYTEST) -p no:xdist -m soak test/e2e
valgrind: ; $(Q)$(MAKE) soak T=test_valgrind
.PHONY: e2e e2e-programs soak valgrind
