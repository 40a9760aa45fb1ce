#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_exports.sh NM LIBRARY INCLUDE_DIR: the shared library exports what the public headers declare, and nothing else; and it
# needs no library of CUDA, of the driver or of the toolkit, so that programs start without them, and at no cost with them.
set -eu
nm=$1 library=$2 include=$3

# Definitions only; the version node itself is an absolute symbol (A).
exported=$("$nm" --dynamic --defined-only --format=posix "$library" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }' | sort -u)
declared=$(cat "$include"/attune/*.h | grep -v '^#' | tr '\n' ' ' | grep -o 'ATTUNE_API [^;(]*(' | sed 's/($//; s/.*[^a-z0-9_]//' | sort -u)
[ -n "$declared" ] || { echo "no declarations found in $include/attune"; exit 1; }
[ -n "$exported" ] || { echo "$library exports nothing"; exit 1; }

failed=0
for name in $exported; do
  case " $(echo $declared) " in
    *" $name "*) ;;
    *) echo "$name is exported, but no public header declares it"; failed=1 ;;
  esac
done
for name in $declared; do
  case " $(echo $exported) " in
    *" $name "*) ;;
    *) echo "$name is declared, but not defined"; failed=1 ;;
  esac
done
if readelf -d "$library" | grep -E 'NEEDED.*lib(cuda|cudart|cublas|cublasLt|nvrtc|nvrtc-builtins|nvidia-ml)\.so'; then
  echo "$library needs a library of CUDA: open it at run time instead"
  failed=1
fi
echo "$(echo "$exported" | wc -l) exported names"
exit $failed
