# SPDX-License-Identifier: Apache-2.0
# make lint     rooms by their includes and by the linker, names, headers alone,
#               what is not used here, format, shellcheck, cppcheck
# make format   clang-format in place
# make tidy     clang-tidy: some minutes
# make house    lengths, names that stand twice, licences; lines of the tree
# make cross    the product for aarch64, with that architecture's libraries
LINTS := layers headers banned house format shell cppcheck faults rooms names
CHECKFLAGS = $(filter-out -M%,$(WP_CPPFLAGS)) $(CPPFLAGS) $(WP_CFLAGS) $(CFLAGS)
CLANG_FORMAT := clang-format --style=file:test/lint/clang-format

lint: deps-test $(LINTS:%=lint-%)
lint-layers:
	$(Q){ $(foreach l,$(ROOMS),echo '$(l) $($(l)_DIR) $($(l)_DEPS)';) } \
		| test/lint/layers.sh
lint-headers: | deps-test
	$(Q)test/lint/headers.sh $(CC) $(CHECKFLAGS)
lint-banned:
	$(Q)test/lint/banned.sh
lint-faults: ; $(Q)test/lint/faults.sh
lint-house: $(ROOMS:%=$(O)/lib%.a)
	$(Q)test/lint/house.py $(O) $(foreach l,$(ROOMS),$(l)=$($(l)_DIR))
lint-format: | deps-test
	$(Q)git ls-files '*.[ch]' | xargs $(CLANG_FORMAT) --dry-run --Werror
lint-shell: | deps-test
	$(Q)shellcheck .ci/run test/*.sh test/*/*.sh
lint-cppcheck: | deps-test
	$(Q)cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 \
		--enable=warning,portability -Iinclude -D__x86_64__ \
		--suppress=missingIncludeSystem --suppress=unknownMacro:*.bpf.c \
		src unwind symbols
lint-names names: $(ROOMS:%=$(O)/lib%.a)
	$(Q)! nm -g --defined-only $^ | awk 'NF==3 && $$3 !~ /^(_?wp_|__odr_asan|_GLOBAL_|_sub_)/' | grep .

# All of a room with the rooms it may use and nothing else: a call upwards is
# an error of the linker.
define room_link
$(O)/rooms/$(1): $(call libs_of,$(1))
	@mkdir -p $$(@D)
	$$(call say,ROOM,$(1))
	$$(Q)echo 'int main(void) { return 0; }' | $$(LINK) -o $$@ -x c - -x none \
		-Wl,--whole-archive $(O)/lib$(1).a -Wl,--no-whole-archive \
		$(call libs_of,$(1)) $(call ext_of,$(1))
endef
$(foreach l,$(ROOMS),$(eval $(call room_link,$(l))))
lint-rooms: $(ROOMS:%=$(O)/rooms/%)

house: $(ROOMS:%=$(O)/lib%.a)
	$(Q)test/lint/house.py --lines $(O) $(foreach l,$(ROOMS),$(l)=$($(l)_DIR))
tidy: deps-test $(O)/bpf/libs
	$(Q)test/lint/tidy.sh $(filter-out -M%,$(WP_CPPFLAGS)) -std=gnu11 \
		-D_GNU_SOURCE $$(cat $(O)/bpf/flags)
format:
	$(Q)git ls-files '*.[ch]' | xargs $(CLANG_FORMAT) -i

# The other compiler and the other architecture, in directories of their own.
# A user's flags are for the user's machine.  What clang warns of it knows without
# optimization; gcc does not.
clang: | deps-test
	$(Q)$(MAKE) --no-print-directory CC=clang O=build/clang CFLAGS=-O0 all
cross: ; $(Q)$(MAKE) --no-print-directory CROSS=aarch64-linux-gnu- \
	BUILD=release CFLAGS='-O2 -g1' CPPFLAGS= LDFLAGS= T= all unit-programs
ifdef CROSS
deps-build: deps-cross
endif
deps-cross: deps-test
	$(Q)test/lint/arm64.sh $(CROSS_ROOT) libcmocka-dev \
		$(filter-out gcc clang libc6-dev,$(DEPS_BUILD) $(DEPS_BPF))
.PHONY: lint $(LINTS:%=lint-%) names house tidy format clang cross deps-cross
