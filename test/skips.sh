#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lists skipped tests, one a line on standard input, after a tab the reason if
# it is known.  With STRICT=1, fails for those that test/skips.txt has not.
awk -F'\t' -v strict="$STRICT" '
NR == FNR { if (!/^#/ && NF >= 2) { id[++n] = $1; lack[n] = $2 } next }
{
	known = ""
	for (i = 1; i <= n && !known; i++)
		if ($1 ~ "^(" id[i] ")$" && ($2 == "" || index($2, lack[i])))
			known = lack[i]
	print "skipped: " $1 ": " (known ? known : $2)
	if (!known && strict == "1") {
		print "STRICT: " $1 " may not be skipped (test/skips.txt)"
		status = 1
	}
}
END { exit status }' test/skips.txt -
