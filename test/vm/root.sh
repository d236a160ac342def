#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# root.sh DIR - unpack into DIR a root of Debian's for arm64: what the program and its
# tests need there, and programs to look at.
#
# Nothing of it runs here, so that no emulator of programs is needed.
set -eu
root=$1
packages="libunwind8,libdw1,libelf1,zlib1g,libisal2,libdeflate0,liblzma5,libjansson4,libbpf1,libseccomp2
libncursesw6,libmicrohttpd12,libcurl4,libcmocka0,libc6-dbg,libc-bin,libstdc++6,busybox-static
python3-minimal,python3-pytest,python3-pytest-timeout,python3-pytest-xdist
python3-protobuf,python3-jsonschema,protobuf-compiler,redis-server,redis-tools
nginx-light,procps,binutils,elfutils,strace,gdb,coreutils,bash,dash,util-linux
mount,iproute2,kmod,passwd,libcap2-bin,apparmor,grep,sed,mawk,gzip,xz-utils,hostname
debianutils,findutils,tar,login,golang-github-google-pprof-dev,perl-base"
packages=$(echo "$packages" | tr '\n' ',')
[ "$(cat "$root/packages" 2>/dev/null)" != "$packages" ] || exit 0
echo "  ROOT  $root"
archive() {
	# shellcheck disable=SC2016 # what apt is to fill in
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
		grep -m 1 "/$1/\$"
}
key=/usr/share/keyrings/debian-archive-keyring.gpg
mkdir -p "$(dirname "$root")"
rm -rf "$root" "$root.new"
# This machine's settings of apt are for its own packages.
APT_CONFIG=/dev/null mmdebstrap --mode=root --variant=extract \
	--architectures=arm64 --aptopt='APT::Sandbox::User "root"' \
	--skip=check/qemu --include="$packages" bookworm "$root.new" \
	"deb [signed-by=$key] $(archive debian) bookworm main" \
	"deb [signed-by=$key] $(archive debian-security) bookworm-security main" \
	>"$root.log" 2>&1 || {
	tail -n 20 "$root.log" >&2
	exit 1
}
# What their packages would set up.
ln -s mawk "$root.new/usr/bin/awk"
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' \
	>"$root.new/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root.new/etc/group"
echo "$packages" >"$root.new/packages"
mv "$root.new" "$root"
