#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_tutorial.sh: docs/tutorial.md as its reader follows it: the program and the workload are saved, then every command of
# an sh block runs, in the page's order, with the installed library.
# Environment: SOURCE (attune's root), PREFIX (where attune is installed), WORK (a folder of its own), CC. Exit 77: skipped.
set -eu

command -v pkg-config >/dev/null || { echo "skipped: no pkg-config"; exit 77; }
page=$SOURCE/docs/tutorial.md
pc=$(find "$PREFIX" -name attune.pc)
rm -rf "$WORK"
mkdir -p "$WORK/bin" "$WORK/home"
cd "$WORK"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$CC" >bin/cc
chmod +x bin/cc
PATH=$WORK/bin:$PREFIX/bin:$PATH PKG_CONFIG_PATH=${pc%/*} HOME=$WORK/home
export PATH PKG_CONFIG_PATH HOME
LD_LIBRARY_PATH=$(pkg-config --variable=libdir attune)
export LD_LIBRARY_PATH
unset XDG_DATA_HOME XDG_CACHE_HOME

# block WORD: the page's blocks that begin with ```WORD, without the fences.
block() { awk -v fence="\`\`\`$1" '$0 == fence { inside = 1; next } $0 == "```" { inside = 0 } inside' "$page"; }
block c >hello.c
block csv >layers.csv
block sh >commands
[ -s hello.c ] && [ -s layers.csv ] && [ "$(wc -l <commands)" -ge 10 ] || { echo "the page has lost its blocks"; exit 1; }

while IFS= read -r line; do
  printf '$ %s\n' "$line"
  status=0
  sh -c "$line" >output 2>&1 </dev/null || status=$?
  cat output
  case $line in
    "attune verify"*) [ "$status" -le 1 ] || exit 1; continue ;; # 1: what was tuned beside other tests may not hold
  esac
  [ "$status" = 0 ] || { echo "exit code $status"; exit 1; }
  case $line in
    ./hello | *" ./hello") grep -q '^d\[0\] is 48$' output || { echo "no result"; exit 1; } ;;
  esac
done <commands

attune show --json | grep -q '"gemm f64 nn 48x48x48 strict"' || { echo "the recorded problem has no winner"; exit 1; }
ATTUNE_LOG=info ./hello 2>&1 >/dev/null | grep -q 'stored' || { echo "the program does not run the stored winner"; exit 1; }
[ "$(attune show --db shipped.db --json | grep -c '"problem"')" = 2 ] || { echo "shipped.db should have two winners"; exit 1; }
