# SPDX-License-Identifier: Apache-2.0
# make cov          which lines the unit and end-to-end tests reach
# make cov-sample   which lines of src/sample its unit tests reach; fails under
#                   COV_MIN per cent
COV_MIN ?= 80
# Files are written by all: some tests run wallprof as another user.
cov:
	$(Q)$(MAKE) BUILD=cov all deps-test
	$(Q)find build/cov -name '*.gcda' -delete
	$(Q)build/cov/wallprof --version >build/cov/gcov.log
	$(Q)chmod -R a+rwX build/cov
	$(Q)export GCOV_ERROR_FILE=$(CURDIR)/build/cov/gcov.log; \
		$(MAKE) -k BUILD=cov unit e2e; status=$$?; \
		$(PYTHON) test/cov/lines.py build/cov && exit $$status
cov-sample:
	$(Q)find build/cov-sample -name '*.gcda' -delete 2>/dev/null || :
	$(Q)$(MAKE) BUILD=cov O=build/cov-sample unit ROOM=sample
	$(Q)$(PYTHON) test/cov/lines.py build/cov-sample src/sample $(COV_MIN)
.PHONY: cov cov-sample
