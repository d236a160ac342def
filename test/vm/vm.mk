# SPDX-License-Identifier: Apache-2.0
# make vm [K=6.1] [ARCH=arm64] [T=expr] [PARTS="checks unit"] [UNITS='test_heap*']
#         [SYSCTL="a=b ..."]   boot Debian's kernel K under qemu with this tree and this
#            machine's root, or one of arm64, both read-only; run the unit tests there,
#            or UNITS of them, the end-to-end tests that match T, and
#            test/vm/checks.sh if PARTS says so, with EINTR_STOPS stops in each mode
# make vm-check   the kernels of VM_CHECKS, two at a time, with test/vm/checks.sh; unit
#                 tests of the rooms that ask the kernel; of the other CPU all on one
#                 kernel, and on another the end-to-end tests of stacks and deadlocks
# make vm-table   what they said, and each make vm after it, into README.md
K ?= 6.1
ARCH ?= amd64
PARTS ?= unit
VM := build/vm/$(K)-$(ARCH)
VM_ROOT_amd64 := /
VM_ROOT_arm64 := build/vm/root-arm64
VM_BUILD_amd64 := build/release
VM_BUILD_arm64 := build/aarch64
VM_FIXTURES_amd64 := build/fixtures
VM_FIXTURES_arm64 := build/aarch64/fixtures
vm: deps-vm vm-$(ARCH)
	$(Q)test/vm/kernel.sh $(K) $(ARCH) build/vm
	$(Q)mkdir -p $(VM)/out
	$(Q)echo "SYSCTL='$(SYSCTL)' BUILD_DIR=$(VM_BUILD_$(ARCH))" \
		"FIXTURES_DIR=$(VM_FIXTURES_$(ARCH)) PARTS='$(PARTS)'" \
		"UNITS='$(UNITS)' EINTR_STOPS='$(EINTR_STOPS)' exec sh $(CURDIR)/test/vm/guest.sh $(CURDIR) '$(T)'" >$(VM)/out/command
	$(Q)test/vm/boot.sh $(VM) $(VM_ROOT_$(ARCH)) . $(VM)/out $(VM_ARGS); s=$$?; \
		cat $(VM)/out/log 2>/dev/null | tee -a $(VM)/told; exit $$s
# T names end-to-end tests here.
vm-amd64: all $(UNIT:%=$(O)/test_%) e2e-programs
vm-arm64:
	$(Q)test/vm/root.sh $(VM_ROOT_arm64)
	$(Q)$(MAKE) --no-print-directory CROSS=aarch64-linux-gnu- BUILD=release T= \
		all unit-programs tools cross-fixtures
deps-vm: ; $(Q)test/deps.sh $(DEPS_VM) $(if $(filter arm64,$(ARCH)),$(DEPS_VM_arm64))
# All but musl's and Rust's, whose compilers are for this machine.
cross-fixtures: fixtures $(filter-out $(F)/%musl $(F)/hang_rust,$(HANGS)) \
	$(filter-out $(F)/fault_exec32,$(FAULTS)) $(F)/census $(F)/cxx $(F)/heap-static \
	$(filter $(F)/stack-gcc-% $(F)/stack-clang-%,$(STACK_FIXTURES)) $(GO_FIXTURES) \
	$(PARKED) $(GOSHARES) $(GOHANG) $(GOCHURN) $(GOCGO) $(GOFAULTS) $(BOOKS)
VM_CHECKS := 5.10-amd64 6.1-amd64 6.1-arm64 6.12-amd64 6.12-arm64 6.12-16k-arm64 newest-amd64
VM_CHECK_T := test_output_is_its_owners or test_a_second_interrupt or \
	test_a_check_without_names or test_without_the_capability or \
	test_a_process_of_another or test_a_full_disk
VM_CHECK_T_6.12-arm64 := or test_who_asks_the_vdso or (test_chain_is_whole and gcc) or eu_stack or (test_hang and hang-abba) or test_goroutines
VM_ROOMS := base\|bpf\|cmd\|dump\|go\|heap\|lock\|perf\|proc\|ptrace\|serve\|symbolize
VM_UNITS = $(patsubst %.c,%,$(notdir $(shell grep -l 'Layer: \($(VM_ROOMS)\)\>' test/unit/test_*.c)))
# The programs of both are made first, then nothing is to be made.
vm-check: vm-amd64
	$(Q)$(MAKE) --no-print-directory ARCH=arm64 deps-vm vm-arm64
	$(Q)rm -f $(VM_CHECKS:%=build/vm/%/told)
	$(Q)echo $(VM_CHECKS) | tr ' ' '\n' | xargs -P 2 -I @ sh -c 'c=@; \
		$(MAKE) --no-print-directory -s K=$${c%-*} ARCH=$${c##*-} PARTS="checks unit" \
		T="$(VM_CHECK_T) $$([ $$c != 6.12-arm64 ] || echo "$(VM_CHECK_T_6.12-arm64)")" \
		UNITS="$$([ $$c = 6.1-arm64 ] || echo $(VM_UNITS))" vm >build/vm/@.log 2>&1; \
		echo "@: status $$?"; grep "^check: .*: no" build/vm/@.log'; \
		! grep -q "^check: .*: no" $(VM_CHECKS:%=build/vm/%.log)
vm-table: ; $(Q)test/vm/guests.py $(VM_CHECKS)
.PHONY: vm vm-amd64 vm-arm64 vm-check vm-table deps-vm cross-fixtures
