#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_layout.sh CC NM OBJECTS: the library's functions keep their place within a line of the instruction cache, however much
# code the linker puts before them: else a change somewhere moves loops that nobody touched, and their times. The objects are
# linked behind a function of odd length, of several lengths. OBJECTS: a list as CMake has it.
set -eu
cc=$1 nm=$2 objects=$(printf '%s' "$3" | tr ';' ' ')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# NAME ADDRESS of own functions in the order of their addresses. What is hardly ever run (NAME.cold) may lie anywhere.
"$nm" --defined-only --format=posix $objects | awk '$2 ~ /^[tT]$/ && $1 !~ /\.cold/ { print $1 }' | sort -u >"$folder/own"
[ "$(wc -l <"$folder/own")" -gt 1000 ] || { echo "the objects have hardly any functions"; exit 1; }
for hot in interpret blocked small fill; do
  grep -q "$hot" "$folder/own" || { echo "no function's name has \"$hot\": is what is timed among the objects?"; exit 1; }
done

for bytes in 1 37 100 4099; do
  printf '__asm__(".text\\n.globl odd\\nodd: .skip %s, 0x90\\n");\n' "$bytes" >"$folder/odd.c"
  "$cc" -c -o "$folder/odd.o" "$folder/odd.c"
  "$cc" -shared -nostdlib -Wl,--unresolved-symbols=ignore-all -o "$folder/moved.so" "$folder/odd.o" $objects
  "$nm" --defined-only --format=posix "$folder/moved.so" >"$folder/symbols"
  awk -v bytes="$bytes" '
    BEGIN { for (i = 0; i < 16; i++) digit[substr("0123456789abcdef", i + 1, 1)] = i }
    NR == FNR { own[$1] = 1; next }
    $1 == "odd" { moved = 1 }
    $2 ~ /^[tT]$/ && $1 in own {
      at = substr("0" $3, length($3))
      if ((16 * digit[substr(at, 1, 1)] + digit[substr(at, 2, 1)]) % 64) { bad++; if (bad <= 5) print "behind", bytes, "bytes:", $1, "at", $3 }
      count++
    }
    END { if (bad) print bad, "of", count, "functions do not begin at a multiple of 64"; exit bad || !moved || count < 1000 }
  ' "$folder/own" "$folder/symbols" || exit 1
done
