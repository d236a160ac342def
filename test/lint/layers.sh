#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fail if a file includes a header of a room that its own may not use.  The
# table comes on standard input: per line a room, its directory and the rooms
# whose headers it may include.
cd "${1:-.}" || exit 2
table=$(cat)
[ -n "$table" ] || { echo "no table of rooms on standard input"; exit 2; }
{
	echo "$table"
	# A public header, and a unit test, say their room in a line "Layer: X.".
	grep -Eo 'Layer: [a-z]+\.|^#include "[^"]*"' include/wallprof/*.h \
		src/*/*.[ch] unwind/*.[ch] symbols/*.[ch] test/unit/test_*.c \
		2>/dev/null
} | awk -F: '
function fail(file, what) { print file ": " what; status = 1 }
# Rooms: uses[room] = " room uses ", at[directory] = room.
!/:/ { n = split($0, w, " "); at[w[2]] = w[1]; uses[w[1]] = " " w[1] " "
	for (i = 3; i <= n; i++) uses[w[1]] = uses[w[1]] w[i] " "; next }
$2 == "Layer" { if (!($1 in room)) { room[$1] = $3; gsub(/[ .]/, "", room[$1]) }
	next }
{ split($2, q, "\""); file[++lines] = $1; includes[lines] = q[2] }
END {
	for (i = 1; i <= lines; i++) {
		f = file[i]; h = includes[i]; dir = f; sub("/[^/]*$", "", dir)
		if (f ~ /^include/) continue
		own = dir in at ? at[dir] : room[f]
		if (h !~ /^wallprof\//) {
			# A private header stays in its directory.
			if (f !~ /^test/ && h ~ "/")
				fail(f, "includes " h " of another directory")
			continue
		}
		owner = room["include/" h]
		if (!owner || index(uses[own], " " owner " ") == 0)
			fail(f, "includes " h " of room \"" owner "\" (allowed:" uses[own] ")")
	}
	exit status
}'
