# SPDX-License-Identifier: Apache-2.0
# make vm [K=6.1] [T=expr] [SYSCTL="a=b ..."]   boot Debian's kernel K under qemu with
#            this machine's root and this tree, both read-only; run the unit tests
#            there, and the end-to-end tests that match T
K ?= 6.1
VM_ARCH := amd64
VM := build/vm/$(K)-$(VM_ARCH)
deps-vm: ; $(Q)test/deps.sh $(DEPS_VM)
vm: deps-vm all unit-programs e2e-programs
	$(Q)test/vm/kernel.sh $(K) $(VM_ARCH) build/vm
	$(Q)mkdir -p $(VM)/out
	$(Q)echo "SYSCTL='$(SYSCTL)' exec sh $(CURDIR)/test/vm/guest.sh $(CURDIR) '$(T)'" >$(VM)/out/command
	$(Q)test/vm/boot.sh $(VM) / $(VM)/out $(VM_ARGS); s=$$?; cat $(VM)/out/log 2>/dev/null; exit $$s
.PHONY: vm deps-vm
