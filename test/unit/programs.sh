#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run unit tests, as many programs at a time as there are CPUs.  Prints what
# failed, what was skipped and a line of totals, which build/totals/NAME keeps.
# Arguments: NAME PROGRAM...
name=$1
shift
logs=$(dirname "$1")/unit-logs
rm -rf "$logs"
mkdir -p "$logs" build/totals
export logs
# shellcheck disable=SC2016
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} sh -c '
	log=$logs/$(basename {})
	{} >"$log" 2>&1 || { echo "exit status $?" >>"$log"
		mv "$log" "$log.failed"; }'

# What cmocka prints of each test; a crash leaves one that ran and has no end.
# shellcheck disable=SC2016
count='
function file(n) { n = FILENAME; sub(".*/", "", n); sub(/\.failed$/, "", n); return n }
/^\[ RUN      \]/ { run++ }
/^\[       OK \]/ { ok++ }
/^\[  SKIPPED \]/ && !/test\(s\)/ && !seen[FILENAME $NF]++ {
	skipped++; print "skipped: unit/" file() "::" $NF
}
END { printf "%d passed, %d failed, %d skipped\n", ok,
	run - ok - skipped, skipped }'
status=0
for log in "$logs"/*.failed; do
	[ -e "$log" ] || continue
	status=1
	echo "--- $(basename "$log" .failed)"
	grep -vE '^\[( RUN      |       OK )\]' "$log"
done
awk "$count" "$logs"/* >"$logs/totals"
sed -n 's/^skipped: //p' "$logs/totals" | test/skips.sh || status=1
sed '$!d' "$logs/totals" >"build/totals/$name"
echo "$name: $# programs, $(cat "build/totals/$name")"
exit $status
