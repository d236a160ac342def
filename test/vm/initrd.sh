#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# initrd.sh KERNEL BUSYBOX OUT - the first root of a guest: busybox, the modules that
# it takes to mount the real one, and the program that does.
#
# KERNEL is as kernel.sh leaves it.
set -eu
kernel=$1 busybox=$2 out=$3
release=$(cat "$kernel/release")
modules=$(find "$kernel" -path "*/lib/modules/$release" | head -n 1)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/all/lib/modules" "$dir/root/bin" "$dir/root/modules" \
	"$dir/root/proc" "$dir/root/dev" "$dir/root/sys" "$dir/root/low" \
	"$dir/root/up" "$dir/root/new"
cp "$busybox" "$dir/root/bin/busybox"
cp "$(dirname "$0")/init" "$dir/root/init"
ln -s "$(realpath "$modules")" "$dir/all/lib/modules/$release"
depmod -b "$dir/all" "$release"
n=100
for module in virtio_pci virtio_mmio 9pnet_virtio 9p overlay fuse \
	unix_diag inet_diag tcp_diag; do
	modprobe -d "$dir/all" -S "$release" --show-depends "$module" 2>/dev/null |
		sed -n 's/^insmod \([^ ]*\).*/\1/p'
done | awk '!seen[$1]++' >"$dir/list"
while read -r file; do
	n=$((n + 1))
	to=$dir/root/modules/$n-$(basename "$file" | sed 's/\.ko.*/.ko/')
	case $file in
	*.xz) xz -dc "$file" >"$to" ;;
	*.zst) zstd -qdc "$file" >"$to" ;;
	*) cp "$file" "$to" ;;
	esac
done <"$dir/list"
(cd "$dir/root" && find . | cpio -o -H newc --quiet | gzip -1) >"$out"
