#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Record a fixture for 5 s: the report on the terminal, demo.pb.gz beside it.
# Argument: the object directory.
set -e
out=$(mktemp)
build/fixtures/shares >"$out" &
target=$!
trap 'kill $target 2>/dev/null; rm -f "$out"' EXIT
until grep -q READY "$out"; do
	kill -0 $target
	sleep 0.05
done
echo "\$ wallprof -p $target -d 5 -o demo.pb.gz --report"
"$1/wallprof" -p $target -d 5 -o demo.pb.gz --report
echo
echo "demo.pb.gz holds the same as a pprof file:"
echo "  go tool pprof -top demo.pb.gz"
