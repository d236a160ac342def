#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fail if a file includes a header of a room that its own may not use.  The
# table comes on standard input (`make layers`): per line a room, its directory
# and the rooms whose headers it may include.
cd "${1:-.}" || exit 2
status=0
# "Layer:" in each public header says whose it is.
owner() { sed -n 's/.*Layer: \([a-z]*\)\..*/\1/p' "include/wallprof/$1" | head -1; }

# File, allowed rooms.  Names of headers have no blanks.
# shellcheck disable=SC2013
check() {
	for h in $(sed -n 's/^#include "wallprof\/\([^"]*\)".*/\1/p' "$1"); do
		o=$(owner "$h")
		case " $2 " in
		*" ${o:-?} "*) ;;
		*) echo "$1: includes $h of room '${o:-none}' (allowed: $2)"
		   status=1 ;;
		esac
	done
	case $1 in test/*) return ;; esac
	# A private header stays in its directory.
	for h in $(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$1"); do
		case $h in
		wallprof/*) ;;
		*/*) echo "$1: includes $h of another directory"; status=1 ;;
		esac
	done
}

n=0
while read -r room dir uses; do
	n=$((n + 1))
	for f in "$dir"/*.[ch]; do
		[ -e "$f" ] && check "$f" "$room $uses"
	done
	# A unit test may use what its room may.
	for f in test/unit/test_*.c; do
		[ -e "$f" ] || continue
		[ "$(sed -n 's/.*Layer: \([a-z]*\)\..*/\1/p' "$f" | head -1)" = "$room" ] &&
			check "$f" "$room $uses"
	done
done
[ "$n" -gt 0 ] || { echo "no table of rooms on standard input"; status=2; }
exit $status
