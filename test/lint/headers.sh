#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone.  Arguments: the compiler and its flags.
# shellcheck disable=SC2016
printf '%s\0' include/wallprof/*.h src/*/*.h unwind/*.h symbols/*.h |
	xargs -0 -P "$(nproc)" -I{} sh -c '
		header=$1
		shift
		echo "#include \"$header\"" |
			"$@" -I. -I"$(dirname "$header")" -fsyntax-only -x c - ||
			{ echo "$header: does not compile alone"; exit 1; }
	' sh {} "$@"
