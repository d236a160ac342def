#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install those of the named Debian packages that are missing.
missing=$(dpkg-query -W -f='${Package} ${Status}\n' "$@" 2>/dev/null |
	awk 'BEGIN { for (i = 1; i < ARGC; i++) want[i] = ARGV[i]; n = ARGC; ARGC = 1 }
	/ok installed/ { have[$1] = 1 }
	END { for (i = 1; i < n; i++) if (!(want[i] in have)) printf " %s", want[i] }' "$@")
[ -z "$missing" ] && exit 0
if ! command -v dpkg-query >/dev/null; then
	echo "wallprof needs what these packages of Debian's have:$missing" >&2
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "wallprof needs these packages (Debian's names):$missing" >&2
	exit 1
fi
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
echo "  APT  $missing"
# Services that a package would start are not wanted for a build.
log=$(mktemp)
# Another apt-get may be at work, and a server may not answer at once.
patience="-o DPkg::Lock::Timeout=300 -o Acquire::Retries=3"
# shellcheck disable=SC2086
if ! { $sudo apt-get $patience update &&
	$sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get $patience \
		install -y --no-install-recommends $missing; } >"$log" 2>&1
then
	tail -20 "$log" >&2
	rm -f "$log"
	exit 1
fi
rm -f "$log"
