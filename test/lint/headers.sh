#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone.  Arguments: the compiler and its flags.
status=0
for h in include/wallprof/*.h src/*.h src/*/*.h unwind/*.h symbols/*.h; do
	[ -e "$h" ] || continue
	echo "#include \"$h\"" |
		"$@" -I. -I"$(dirname "$h")" -fsyntax-only -x c - ||
		{ echo "$h: does not compile alone"; status=1; }
done
exit $status
