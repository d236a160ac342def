#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kernel.sh SERIES ARCH DIR - unpack Debian's newest kernel of SERIES into
# DIR/SERIES-ARCH, with a file `release` that has what uname -r will say.
# SERIES-16k: that of arm64 with pages of 16 KiB.
#
# apt fetches it, from where this machine has its packages, by settings and
# lists of its own: nothing is installed.
set -eu
series=$1 arch=$2 dir=$3
flavour=${series#"${series%-16k}"}
case ${series%-16k} in
5.10) suite=bullseye ;;
6.1) suite=bookworm ;;
6.12) suite=trixie ;;
newest) suite=trixie-backports ;;
*)
	echo "kernel.sh: no Debian suite is known to have $series" \
		"(5.10, 6.1, 6.12, newest)" >&2
	exit 2
	;;
esac
root=$dir/$series-$arch
if [ -s "$root/release" ]; then exit 0; fi
rm -rf "$root"
mkdir -p "$root" "$dir/apt/$suite-$arch"
apt=$(realpath "$dir/apt/$suite-$arch")
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"

# shellcheck disable=SC2016 # what apt is to fill in
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
	grep -m 1 '/debian/$')
echo "deb [arch=$arch signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
	"$archive $suite main" >"$apt/sources.list"
own() {
	tool=$1
	shift
	"$tool" -q -o Dir::Etc::SourceList="$apt/sources.list" \
		-o Dir::Etc::SourceParts=/nonexistent -o Dir::State="$apt" \
		-o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache" \
		-o APT::Architecture="$arch" -o APT::Sandbox::User=root "$@"
}
own apt-get update >"$apt/log" 2>&1 || {
	cat "$apt/log" >&2
	exit 1
}
# The metapackage depends on the kernel.
image=$(own apt-cache depends "linux-image-$arch$flavour" |
	sed -n 's/^ *Depends: *\(linux-image-[0-9].*\)/\1/p' | head -n 1)
# From 7 on the kernel and its modules are packages that this one depends on.
debs=$(own apt-cache depends "$image" |
	sed -n 's/^ *Depends: *\(linux-\(binary\|modules\)-[0-9].*\)/\1/p')
for deb in $image $debs; do
	(cd "$apt" && own apt-get download "$deb" >>"$apt/log" 2>&1)
	dpkg-deb -x "$apt/$deb"_*.deb "$root"
	rm "$apt/$deb"_*.deb
done
# Kernels of 6.12 and later have it under /usr.
find "$root" -path '*/lib/modules/*' -prune -name '[0-9]*' |
	sed 's|.*/||' >"$root/release"
