#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_format.sh ROOT: every C source and header is as clang-format 14 makes it, and no line has more than 120 characters.
set -eu
cd "$1"
for command in clang-format-14 clang-format ""; do
  [ -n "$command" ] || { echo "skipped: there is no clang-format 14 here"; exit 77; }
  case $("$command" --version 2>/dev/null) in *version\ 14.*) break ;; esac
done
files=$(find include src tuning ops tools bench examples tests -name '*.[ch]' | sort)
[ "$(printf '%s\n' "$files" | wc -l)" -gt 1000 ]
failed=0
printf '%s\n' "$files" | xargs "$command" --style=file --dry-run -Werror 2>&1 | grep ': error: ' && failed=1
printf '%s\n' "$files" | xargs awk 'length($0) > 120 { print FILENAME ":" FNR ": " length($0) " characters" }' | grep . && failed=1
[ "$failed" -eq 0 ] || echo "run $command -i on these files"
exit "$failed"
