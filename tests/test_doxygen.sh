#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_doxygen.sh DOXYGEN ROOT OUT: every public function has a comment, and Doxygen makes the reference from headers and pages
# without a warning. Exit 77: no doxygen.
set -eu
doxygen=$1 root=$2 out=$3
cd "$root"

bare=$(awk '/^ATTUNE_API/ && previous !~ /\*\/$/ { print FILENAME ": " $0 } { previous = $0 }' include/attune/*.h)
[ -z "$bare" ] || { echo "$bare"; echo "  has no comment right above it"; exit 1; }

command -v "$doxygen" >/dev/null 2>&1 || { echo "skipped: no doxygen"; exit 77; }
rm -rf "$out"
mkdir -p "$out"
{ cat docs/Doxyfile; echo "OUTPUT_DIRECTORY = $out"; } >"$out/Doxyfile"
"$doxygen" "$out/Doxyfile"
for name in attune_gemm attune_tuner_create attune_memory_statistics ATTUNE_CAPTURE_RELAXED; do
  grep -rqF "$name" "$out/html" || { echo "the reference lacks $name"; exit 1; }
done
# A comment that the filter does not turn into Doxygen's is lost without a warning.
grep -qF "leading dimension" "$out/html/gemm_8h.html" || { echo "gemm.h's comments are not in the reference"; exit 1; }
