#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_exports.sh LIBRARY INCLUDE_DIR: the shared library exports what the public headers declare, and nothing else: what tools.h
# declares by the version ATTUNE_TOOLS_n, all else by ATTUNE_n. It needs no library of CUDA, of the driver or of the toolkit, so
# that programs start without them, and at no cost with them.
set -eu
library=$1 include=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Lines "NAME VERSION", the version without its number. Definitions only; a version itself is an absolute symbol.
readelf --wide --dyn-syms "$library" |
  awk '$7 ~ /^[0-9]+$/ && $8 ~ /@/ { sub(/@+/, " ", $8); sub(/_[0-9]+$/, "", $8); print $8 }' | sort -u >"$scratch/exported"
declared() { cat "$@" | grep -v '^#' | tr '\n' ' ' | grep -o 'ATTUNE_API [^;(]*(' | sed 's/($//; s/.*[^a-z0-9_]//'; }
{
  declared "$include"/attune/tools.h | sed 's/$/ ATTUNE_TOOLS/'
  set -- "$include"/attune/*.h
  for header; do [ "$header" = "$include/attune/tools.h" ] || declared "$header" | sed 's/$/ ATTUNE/' || true; done
} | sort -u >"$scratch/declared"
[ -s "$scratch/declared" ] || { echo "no declarations found in $include/attune"; exit 1; }
[ -s "$scratch/exported" ] || { echo "$library exports nothing"; exit 1; }

failed=0
comm -23 "$scratch/exported" "$scratch/declared" >"$scratch/stray"
comm -13 "$scratch/exported" "$scratch/declared" >"$scratch/missing"
while read -r name version; do echo "$name is exported by $version, but no public header declares it so"; failed=1; done <"$scratch/stray"
while read -r name version; do echo "$name is declared for $version, but not defined there"; failed=1; done <"$scratch/missing"
if readelf -d "$library" | grep -E 'NEEDED.*lib(cuda|cudart|cublas|cublasLt|nvrtc|nvrtc-builtins|nvidia-ml)\.so'; then
  echo "$library needs a library of CUDA: open it at run time instead"
  failed=1
fi
echo "$(grep -c ' ATTUNE$' "$scratch/exported") exported names, and $(grep -c ' ATTUNE_TOOLS$' "$scratch/exported") for tools"
exit $failed
