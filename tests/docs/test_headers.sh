#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_headers.sh COMPILER STANDARD INCLUDE_DIR: each public header compiles alone, twice included, without a warning;
# attune.h includes them all but for tools.h. Exit 77: no such compiler.
set -eu
compiler=$1 standard=$2 include=$3

if ! command -v "$compiler" >/dev/null 2>&1; then
  echo "skipped: no compiler ${compiler:-for this language}"
  exit 77
fi
case $standard in
  c++*) language=c++ strict="-Wold-style-cast -Wzero-as-null-pointer-constant" ;;
  *) language=c strict="-Wstrict-prototypes -Wmissing-prototypes" ;;
esac

includes() { grep -qF "#include <$1>" "$include/attune/attune.h"; }
failed=0 count=0
for path in "$include"/attune/*.h; do
  name=attune/${path##*/}
  # shellcheck disable=SC2086
  if ! printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$name" "$name" |
    "$compiler" -x "$language" "-std=$standard" -pedantic -Wall -Wextra -Wconversion -Wshadow -Wundef $strict -Werror \
      -fsyntax-only -I "$include" -; then
    echo "$name does not compile alone as $standard"
    failed=1
  fi
  case $name in
    attune/attune.h) ;;
    attune/tools.h) includes "$name" && { echo "attune/attune.h includes $name"; failed=1; } ;;
    *) includes "$name" || { echo "attune/attune.h does not include $name"; failed=1; } ;;
  esac
  count=$((count + 1))
done
[ "$count" -gt 1 ] || { echo "no headers in $include/attune"; exit 1; }
echo "$count headers as $standard"
exit $failed
