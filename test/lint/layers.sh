#!/bin/sh
# Fail if a file includes a header of a layer above its own.  One line per
# layer: its directory and the layers whose headers it may include.
cd "${1:-.}" || exit 2
rules='
src/base     -
src/proc     base
unwind       base
symbols      base
src/trace    base proc
src/state    base proc
src/profile  base
src/sample   base proc trace state unwind profile hang
src/hang     base proc state
src/output   base profile hang
src          base proc trace state unwind profile sample output symbols hang main
'
status=0
# "Layer:" in each public header says who owns it.
owner() { sed -n 's/.*Layer: \([a-z]*\)\..*/\1/p' "include/wallprof/$1" | head -1; }

# File, allowed layers.  Names of headers have no blanks.
# shellcheck disable=SC2013
check() {
	for h in $(sed -n 's/^#include "wallprof\/\([^"]*\)".*/\1/p' "$1"); do
		o=$(owner "$h")
		case " $2 " in
		*" ${o:-?} "*) ;;
		*) echo "$1: includes $h of layer '${o:-none}' (allowed: $2)"
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

while read -r dir allow; do
	[ -n "$dir" ] || continue
	own=${dir##*/}
	[ "$own" = src ] && own=main
	for f in "$dir"/*.[ch]; do
		[ -e "$f" ] && check "$f" "$own $allow"
	done
	# A unit test may use what its layer may.
	for f in test/unit/test_*.c; do
		[ -e "$f" ] || continue
		[ "$(sed -n 's/.*Layer: \([a-z]*\)\..*/\1/p' "$f" | head -1)" = "$own" ] &&
			check "$f" "$own $allow"
	done
done <<EOF
$rules
EOF
exit $status
