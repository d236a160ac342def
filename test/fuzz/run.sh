#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run fuzzers one after the other: run.sh DIRECTORY SECONDS NAME...
# Prints for each how often it ran, how many edges of the code it has seen and
# how it ended; after a crash, the report and the command that repeats it.
dir=$1
seconds=$2
shift 2
status=0
for name in "$@"; do
	log=$dir/$name.log
	mkdir -p "$dir/corpus/$name" "$dir/crashes"
	nice -n 10 "$dir/fuzz_$name" -max_total_time="$seconds" \
		-print_final_stats=1 -timeout=20 -rss_limit_mb=2048 \
		-artifact_prefix="$dir/crashes/$name-" \
		"$dir/corpus/$name" "test/data/fuzz/$name" >"$log" 2>&1
	rc=$?
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
	printf '%-12s %12s executions %6s edges, exit %s\n' \
		"$name" "${runs:-?}" "${edges:-?}" "$rc"
	test/e2e/faults.py fuzzed "$name" "${runs:-0}" "$seconds" \
		"$([ "$rc" = 0 ] && echo 0 || echo 1)"
	[ "$rc" = 0 ] && continue
	status=1
	grep -vE '^#|NEW |REDUCE' "$log" | tail -60
	input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
	echo "again: $dir/fuzz_$name ${input:-(no input was written)}"
done
exit $status
