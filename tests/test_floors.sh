#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_floors.sh ROOT: includes only go down: clients -> ops -> tuning -> src -> public headers; clients other than tests
# include public headers only.
set -eu
cd "$1"

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
[ "$failed" = 0 ] && echo "includes go down only"
exit $failed
