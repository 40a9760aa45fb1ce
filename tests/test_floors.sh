#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_floors.sh ROOT NM SRC_OBJECTS TUNING_OBJECTS OPS_OBJECTS: everything goes down only: clients -> ops -> tuning -> src
# -> public headers. Includes do; no object calls a floor above it, whoever declared the function; no file below ops/
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
# tuning/cli is a client, not part of tuning/.
not_cli='-not -path tuning/cli/*'
set -f
forbid include '.*' 'public headers include <attune/...> and the system only' ''
forbid src '(tuning|ops|bench|tests|examples)/' 'src/ is the lowest floor' ''
forbid tuning '(ops|bench|tests|examples|tuning/cli)/' 'tuning/ stands on src/ only' "$not_cli"
forbid ops '(tuning/cli|bench|tests|examples)/' 'ops/ stands on tuning/ and src/' ''
forbid tuning/cli '(src|ops|tests|bench|examples)/' 'the command includes public headers only' ''
forbid tuning/cli 'tuning/[^/]*"' 'the command includes public headers only' ''
forbid examples '(src|tuning|ops|tests|bench)/' 'examples include public headers only' ''

# ---- threads: src/floating.c starts them all, in the default floating-point environment and without the program's signals ----
found=$(find src tuning ops -name '*.[ch]' -not -path src/floating.c -exec grep -nwE 'pthread_create|thrd_create' /dev/null {} +) || true
[ -z "$found" ] || { echo "$found"; echo '  threads are started by at_thread_start'; failed=1; }

# ---- calls: what an object needs, and what the floors above define; not a header's inline function, which each has ----
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
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
forbid_names tuning ops "$not_cli"
forbid_names include/attune tuning ''
forbid_names include/attune ops ''
set +f
# The vendor's own names, cublasGemmEx, are not ours.
for folder in ops/*/; do
  operation=$(basename "$folder")
  found=$(find tuning src include/attune/tuner.h include/attune/plan.h include/attune/profile.h \
    -type f -not -path 'tuning/cli/*' -exec grep -niE "(^|[^a-z])$operation|_$operation" /dev/null {} + |
    grep -viE "cublas(lt)?$operation") || true
  [ -z "$found" ] || { echo "$found"; echo "  no file below ops/ names an operation: $operation"; failed=1; }
done
[ "$failed" = 0 ] && echo "includes, calls and names go down only"
exit $failed
