#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Functions that are not used here, C++ comments, white space.
cd "${1:-.}" || exit 2
status=0
# Where a directory is not there (a partial tree in a test) it has no faults.
files=$(find src unwind symbols include -name '*.[ch]' 2>/dev/null)
tests=$(find test fixtures -name '*.[ch]' 2>/dev/null)

fail() { echo "$1"; status=1; }

# shellcheck disable=SC2086
{
grep -nE '(^|[^_[:alnum:]])(sprintf|vsprintf|strcpy|strcat|strtok|atoi|gets|alloca|system)[[:space:]]*\(' $files |
	grep -vE ':[[:space:]]*(/?\*)' && fail 'banned function (see above)'
grep -nE '(^|[;{}[:space:]])//' $files $tests && fail 'C++ comment (see above)'
grep -nE '[[:space:]]+$' $files $tests && fail 'trailing white space (see above)'
}
exit $status
