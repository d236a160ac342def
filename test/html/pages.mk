# SPDX-License-Identifier: Apache-2.0
# make lint-js      eslint over the page's modules and their tests
# make deps-npm     what they need, as package-lock.json says, into build/npm/pages;
#                   where the registry cannot be reached their tests are skipped
NPM := build/npm/pages
export NODE_MODULES = $(CURDIR)/$(NPM)

deps-npm: $(NPM)/installed
$(NPM)/installed: test/html/package.json test/html/package-lock.json | deps-test
	@mkdir -p $(NPM)
	$(call say,NPM,$(NPM))
	$(Q)cp $^ $(NPM); if (cd $(NPM) && npm ci --ignore-scripts --no-audit --no-fund) \
		>$(NPM)/log 2>&1; then touch $@; \
	else echo '  left out: see $(NPM)/log'; fi
lint: lint-js
lint-js: deps-npm
	$(Q)[ ! -e $(NPM)/installed ] || $(NPM)/node_modules/.bin/eslint \
		--no-config-lookup -c test/html/eslint.config.mjs src/output/html test/html
e2e-programs: deps-npm $(O)/test_lanes $(O)/test_pprof_read
.PHONY: deps-npm lint-js
