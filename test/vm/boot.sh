#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# boot.sh KERNEL ROOT TREE OUT [ARG...] - boot KERNEL, as kernel.sh leaves it, with
# ROOT as its read-only root, TREE at its own path, read-only as well, and OUT as
# /out, and run OUT/command in it as root.
#
# OUT then has: log (what the command printed), status (its exit status), console.
# ARGs are added to the kernel's command line.  ACCEL: tcg, or kvm where that works.
# VM_CPUS, VM_MEM, VM_SECONDS: its size, and when it is ended.
set -eu
kernel=$1 root=$2 tree=$(realpath "$3") out=$(realpath "$4")
shift 4
release=$(cat "$kernel/release")
initrd=$kernel/initrd
busybox=$root/bin/busybox
here=$(dirname "$0")
if [ -z "$(find "$initrd" -newer "$here/init" 2>/dev/null)" ]; then
	sh "$here/initrd.sh" "$kernel" "$busybox" "$initrd.new"
	mv "$initrd.new" "$initrd"
fi
image=$(find "$kernel" -name "vmlinuz-$release" -o \
	-path "*/$release/vmlinuz" | head -n 1)
case $release in
# A busy machine is late with the timer that the kernel would look for.
*-amd64) machine="qemu-system-x86_64 -cpu max" console="ttyS0 no_timer_check" ;;
*-arm64 | *-arm64-16k) machine="qemu-system-aarch64 -M virt,gic-version=3 -cpu max,pauth-impdef=on" console=ttyAMA0 ;;
esac
# With a thread for each CPU one misses at times what another writes into code, as the kernel
# does to begin a trace: it panics there, or traces nothing.
accel="-accel tcg,thread=single"
[ "${ACCEL:-tcg}" = tcg ] || accel="-accel $ACCEL"
rm -f "$out/status" "$out/log" "$out/console"
ended=0
# shellcheck disable=SC2086 # lists of words
timeout "${VM_SECONDS:-1800}" nice -n 10 $machine $accel \
	-smp "${VM_CPUS:-2}" -m "${VM_MEM:-4G}" \
	-nographic -no-reboot -nodefaults -monitor none \
	-serial "file:$out/console" -kernel "$image" -initrd "$initrd" \
	-append "console=$console quiet panic=-1 tree=$tree $*" \
	-virtfs "local,path=$root,mount_tag=root,security_model=none,readonly=on,multidevs=remap" \
	-virtfs "local,path=$tree,mount_tag=tree,security_model=none,readonly=on,multidevs=remap" \
	-virtfs "local,path=$out,mount_tag=out,security_model=none" || ended=$?
if [ "$ended" = 124 ]; then
	# A busy machine may have had none for it.
	times >"$out/times"
	cpu=$(awk 'NR == 2 { gsub("[ms]", " "); print int(60 * ($1 + $3) + $2 + $4) }' "$out/times")
	echo "boot.sh: the guest did not end by itself within ${VM_SECONDS:-1800} s" \
		"(VM_SECONDS); it had $cpu s of CPU" >&2
	exit 1
elif [ "$ended" != 0 ]; then
	echo "boot.sh: qemu ended with status $ended" >&2
	exit 1
fi
if [ ! -s "$out/status" ]; then
	tail -n 20 "$out/console" >&2 || :
	echo "boot.sh: the guest ended without a status; its console is above" >&2
	exit 1
fi
exit "$(cat "$out/status")"
