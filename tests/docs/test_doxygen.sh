#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_doxygen.sh DOXYGEN ROOT OUT: every public function, type and macro has a comment, and Doxygen makes the reference of them
# from headers and pages without a warning. Exit 77: no doxygen.
set -eu
doxygen=$1 root=$2 out=$3
cd "$root"

bare=$(awk '/^ATTUNE_API/ && previous !~ /\*\/$/ { print FILENAME ": " $0 } { previous = $0 }' include/attune/*.h)
[ -z "$bare" ] || { echo "$bare"; echo "  has no comment right above it"; exit 1; }

command -v "$doxygen" >/dev/null 2>&1 || { echo "skipped: no doxygen"; exit 77; }
rm -rf "$out"
mkdir -p "$out"
{ cat docs/Doxyfile; echo "OUTPUT_DIRECTORY = $out"; echo "GENERATE_XML = YES"; } >"$out/Doxyfile"
"$doxygen" "$out/Doxyfile"
if command -v python3 >/dev/null 2>&1; then
  here="$root/tests/docs/test_doxygen.py"
  python3 "$here" "$root" "$out/xml"
  # What it is for is found: a name that only a header has, and a comment that is lost.
  mkdir -p "$out/changed"
  cp -R include "$out/changed"
  echo "ATTUNE_API void attune_nowhere(void);" >>"$out/changed/include/attune/types.h"
  caught() {
    if python3 "$here" "$1" "$2" >"$out/told"; then echo "not found: $3"; exit 1; fi
    grep -qF "$3" "$out/told" || { cat "$out/told"; echo "not told: $3"; exit 1; }
  }
  caught "$out/changed" "$out/xml" "attune_nowhere is not in the reference"
  awk '!/^\/\* A GPU, or the host/' include/attune/types.h >"$out/changed/include/attune/types.h"
  { cat docs/Doxyfile; echo "INPUT = $out/changed/include/attune"; echo "OUTPUT_DIRECTORY = $out/changed"; echo "GENERATE_XML = YES"
    echo "GENERATE_HTML = NO"; echo "USE_MDFILE_AS_MAINPAGE ="; } >"$out/changed/Doxyfile"
  "$doxygen" "$out/changed/Doxyfile" >/dev/null 2>&1 || true
  caught "$root" "$out/changed/xml" "attune_device has no comment in the reference"
fi
for name in attune_gemm attune_tuner_create attune_memory_statistics ATTUNE_CAPTURE_RELAXED; do
  grep -rqF "$name" "$out/html" || { echo "the reference lacks $name"; exit 1; }
done
# A comment that the filter does not turn into Doxygen's is lost without a warning.
grep -qF "leading dimension" "$out/html/gemm_8h.html" || { echo "gemm.h's comments are not in the reference"; exit 1; }
