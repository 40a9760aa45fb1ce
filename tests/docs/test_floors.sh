#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_floors.sh ROOT NM SRC_OBJECTS TUNING_OBJECTS OPS_OBJECTS: everything goes down only: clients -> ops -> tuning -> src
# -> public headers, and so it does among the folders of one folder. Includes do; no object calls a floor above it, whoever declared the function; no file below ops/
# names what ops/ defines, nor an operation. Clients other than tests include public headers only. The objects of a floor
# are one argument, with semicolons between them. It fails at every breach, each told with its file.
set -eu
cd "$1"
nm=$2

failed=0
# forbid FOLDER PATTERN WHY FIND_ARGUMENTS: no file of FOLDER includes what PATTERN matches.
forbid() {
  [ -d "$1" ] || return 0
  found=$(find "$1" -name '*.[ch]' $4 -exec grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*\"($2)" /dev/null {} +) || true
  [ -n "$found" ] || return 0
  echo "$found"
  echo "  $3"
  failed=1
}
set -f
forbid include '.*' 'public headers include <attune/...> and the system only' ''
forbid src '(tuning|ops|tools|bench|tests|examples)/' 'src/ is the lowest floor' ''
forbid tuning '(ops|tools|bench|tests|examples)/' 'tuning/ stands on src/ only' ''
forbid ops '(tools|bench|tests|examples)/' 'ops/ stands on tuning/ and src/' ''
forbid tools/bench '(ops|tools/(cli|compare)|bench|tests|examples)/' 'tools/bench/ stands on tuning/ and src/' ''
forbid tools/compare '(src/[c-z][a-z]*|tuning|ops|tests|bench|examples)/' 'the comparison includes public headers and src/base/ only' ''
forbid tools/cli '(src|tuning|ops|tests|bench|examples)/' 'the command includes public headers only' ''
forbid examples '(src|tuning|ops|tools|tests|bench)/' 'examples include public headers only' ''
set +f

# ---- folders: those of one folder include each other downwards only ----
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
find src tuning ops tools bench -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' \) \
  -exec grep -oE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]+"' /dev/null {} + 2>/dev/null |
  sed -E 's/^([^:]+):.*"([^"]+)"$/\1 \2/' |
  awk '{ n = split($1, a, "/"); m = split($2, b, "/"); parent = ""
         for (i = 1; i < n && i < m && a[i] == b[i]; i++) parent = parent a[i] "/"
         if (i < n && i < m) print parent == "" ? "./" : parent, a[i], b[i], $1, $2 }' >"$scratch/arrows"
for parent in $(cut -d ' ' -f 1 "$scratch/arrows" | sort -u); do
  awk -v parent="$parent" '$1 == parent { print $2, $3 }' "$scratch/arrows" | sort -u >"$scratch/pairs"
  tsort "$scratch/pairs" >/dev/null 2>"$scratch/circle" && continue
  sed -nE 's/^tsort: ([^ :]+)$/\1/p' "$scratch/circle" | sort -u >"$scratch/members"
  awk -v parent="$parent" 'NR == FNR { member[$1]; next } $1 == parent && $2 in member && $3 in member { print $4 " includes " $5 }' \
    "$scratch/members" "$scratch/arrows"
  echo "  folders of $parent include each other in a circle: $(tr '\n' ' ' <"$scratch/members")"
  failed=1
done

# ---- threads: src/process/floating.c starts them all, in the default floating-point environment and without the program's signals ----
found=$(find src tuning ops -name '*.[ch]' -not -path src/process/floating.c -exec grep -nwE 'pthread_create|thrd_create' /dev/null {} +) || true
[ -z "$found" ] || { echo "$found"; echo '  threads are started by at_thread_start'; failed=1; }

# ---- calls: what an object needs, and what the floors above define; not a header's inline function, which each has ----
IFS=';'
symbols() { "$nm" "$1" --format=posix $2 | awk 'NF > 1 && $2 ~ /[A-Z]/ && $1 ~ /^(at|attune)_/ { print $1 }' | sort -u; }
for floor in src tuning ops; do
  symbols --undefined-only "$3" >"$scratch/$floor.needs"
  symbols --defined-only "$3" >"$scratch/$floor.has"
  [ -s "$scratch/$floor.needs" ] && [ -s "$scratch/$floor.has" ] || { echo "no symbols in the objects of $floor/"; exit 1; }
  shift
done
unset IFS
# forbid_calls LOW HIGH: no object of LOW needs what HIGH defines.
forbid_calls() {
  calls=$(comm -12 "$scratch/$1.needs" "$scratch/$2.has")
  [ -n "$calls" ] || return 0
  for name in $calls; do echo "$1/ calls $name, which $2/ defines"; done
  failed=1
}
forbid_calls src tuning
forbid_calls src ops
forbid_calls tuning ops

# ---- names: of functions above, declared or told of, and of operations ----
# forbid_names FOLDER HIGH: no file of FOLDER has an internal name that HIGH defines.
forbid_names() {
  grep '^at_' "$scratch/$2.has" >"$scratch/names" || return 0
  found=$(find "$1" -name '*.[ch]' $3 -exec grep -nwFf "$scratch/names" /dev/null {} +) || true
  [ -n "$found" ] || return 0
  echo "$found"
  echo "  $1/ names what $2/ defines"
  failed=1
}
set -f
forbid_names src tuning ''
forbid_names src ops ''
forbid_names tuning ops ''
forbid_names include/attune tuning ''
forbid_names include/attune ops ''
set +f
# The vendor's own names, cublasGemmEx, are not ours.
for folder in ops/*/; do
  operation=$(basename "$folder")
  found=$(find tuning src include/attune/tuner.h include/attune/plan.h include/attune/profile.h \
    -type f -exec grep -niE "(^|[^a-z])$operation|_$operation" /dev/null {} + |
    grep -viE "cublas(lt)?$operation") || true
  [ -z "$found" ] || { echo "$found"; echo "  no file below ops/ names an operation: $operation"; failed=1; }
done
[ "$failed" = 0 ] && echo "includes, calls and names go down only"
exit $failed
