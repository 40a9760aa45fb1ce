#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_cuda_use_after_free.sh PROGRAM SANITIZER: with nvtx:true compute-sanitizer finds a use after free inside the
# cache, and finds nothing where there is nothing; without it the cache hides the same error.
program=$1
sanitizer=$2
[ -x "$sanitizer" ] || sanitizer=$(command -v compute-sanitizer) || {
  echo "skipped: compute-sanitizer is not here"
  exit 77
}
"$program" held nvtx:true || exit $? # 77 without a GPU, or in a build without NVTX's memory extension

failed=0
# expect STATUS TEXT ARGUMENTS...: the sanitizer's exit status, and what its report says.
expect() {
  status=$1 text=$2
  shift 2
  report=$("$sanitizer" --tool memcheck --nvtx yes --error-exitcode 99 "$program" "$@" 2>&1)
  code=$?
  if [ $code != "$status" ] || ! printf '%s\n' "$report" | grep -q "$text"; then
    echo "$*: exit $code; should be $status with \"$text\" in:"
    printf '%s\n' "$report" | tail -n 40
    failed=1
  fi
}
expect 0 'ERROR SUMMARY: 0 errors' held nvtx:true
expect 99 'Invalid __global__ write' freed nvtx:true
expect 0 'ERROR SUMMARY: 0 errors' freed nvtx:false
exit $failed
