# SPDX-License-Identifier: Apache-2.0
# make vm [K=6.1] [ARCH=arm64] [T=expr] [SYSCTL="a=b ..."]   boot Debian's kernel K
#            under qemu with this tree and this machine's root, or one of arm64,
#            both read-only; run the unit tests there, and the end-to-end tests that
#            match T
K ?= 6.1
ARCH ?= amd64
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
		"FIXTURES_DIR=$(VM_FIXTURES_$(ARCH))" \
		"exec sh $(CURDIR)/test/vm/guest.sh $(CURDIR) '$(T)'" >$(VM)/out/command
	$(Q)test/vm/boot.sh $(VM) $(VM_ROOT_$(ARCH)) . $(VM)/out $(VM_ARGS); s=$$?; \
		cat $(VM)/out/log 2>/dev/null; exit $$s
# T names end-to-end tests here.
vm-amd64: all $(UNIT:%=$(O)/test_%) e2e-programs
vm-arm64:
	$(Q)test/vm/root.sh $(VM_ROOT_arm64)
	$(Q)$(MAKE) --no-print-directory CROSS=aarch64-linux-gnu- BUILD=release T= \
		all unit-programs tools cross-fixtures
deps-vm: ; $(Q)test/deps.sh $(DEPS_VM) $(if $(filter arm64,$(ARCH)),$(DEPS_VM_arm64))
# Those that need no other compiler.
cross-fixtures: fixtures $(F)/hang $(F)/fault \
	$(filter $(F)/stack-gcc-%,$(STACK_FIXTURES))
.PHONY: vm vm-amd64 vm-arm64 deps-vm cross-fixtures
