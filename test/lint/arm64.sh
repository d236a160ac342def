#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpack Debian packages of arm64 and what they need, but for libc, which the
# cross compiler has.  The system's own apt is left as it is.  ROOT/shlibs says which
# package a library is from, for dpkg-shlibdeps.
# Arguments: where to, packages.
set -e
root=$1
shift
[ "$(cat "$root/done" 2>/dev/null)" = "$*" ] && [ -s "$root/shlibs" ] && exit 0
echo "  APT   $* (arm64)"
rm -rf "$root"
mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial"
apt=$(cd "$root/apt" && pwd)
apt_get() {
	apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
		-o APT::Sandbox::User="$(id -un)" -o Dir::State="$apt" \
		-o Dir::State::status=/dev/null -o Dir::Cache="$apt" \
		-o Debug::NoLocking=1 "$@" >>"$apt/log" 2>&1 ||
		{ cat "$apt/log" >&2; exit 1; }
}
apt_get update
apt_get -y --no-install-recommends --download-only install "$@"
for deb in "$apt"/archives/*.deb; do
	dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./shlibs \
		>>"$root/shlibs" 2>/dev/null || :
	case ${deb##*/} in
	libc6*|linux-libc-dev*) ;;
	*) dpkg-deb -x "$deb" "$root" ;;
	esac
done
rm -rf "$apt"
# Where a shared library is not found, the linker takes the archive.
find "$root" -lname '/*.so.*' | while read -r link; do
	ln -sfr "$root$(readlink "$link")" "$link"
done
echo "$*" >"$root/done"
