#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every test that FAULTS.md names is there: a function of test/e2e, or a file.
status=0
for name in $(grep -oE '(^|[^a-z_/])test_[a-z0-9_]+' FAULTS.md | tr -dc 'a-z0-9_\n' |
	sort -u); do
	grep -qE "^def $name" test/e2e/*.py && continue
	ls test/*/"$name".* >/dev/null 2>&1 && continue
	echo "FAULTS.md names $name, which is not there"
	status=1
done
exit $status
