#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_floors_caught.sh CC NM: test_floors.sh passes a small clean house, and catches each kind of breach put into it: an
# include, a call of what a file declares for itself, a declaration that nobody calls, an operation's name, folders in a circle, a thread started by hand.
set -eu
cc=$1 nm=$2
watch=$(dirname "$(readlink -f "$0")")/test_floors.sh
house=$(mktemp -d)
trap 'rm -rf "$house"' EXIT
cd "$house"
failed=0

# A clean house, with its objects where `breach` changed none.
clean() {
  rm -rf include src tuning ops tools examples
  mkdir -p include/attune src/a src/b tuning ops/scan tools/cli tools/compare tools/bench examples
  for header in tuner plan workload profile; do echo '#include <stddef.h>' >include/attune/$header.h; done
  echo 'int attune_last(void); int at_low(void); int at_low(void) { return attune_last(); }' >src/low.c
  echo 'int at_low(void); int at_middle(void); int at_middle(void) { return at_low(); }' >tuning/middle.c
  echo 'int at_middle(void); int at_scan(void); int at_scan(void) { return at_middle(); }' >ops/scan/scan.c
  echo 'int at_low(void);' >src/low.h
  echo '#include "src/b/b.h"' >src/a/a.h
  echo '#include "src/low.h"' >src/b/b.h
  echo 'int at_middle(void);' >tuning/middle.h
  echo '#include <attune/tuner.h>' >tools/cli/main.c
  echo '#include <attune/tuner.h>' >examples/one.c
  : >wanted
}
compile() {
  for file in src/low tuning/middle ops/scan/scan; do "$cc" -w -c $file.c -o "$(basename $file).o"; done
}
watched() { sh "$watch" "$house" "$nm" low.o middle.o scan.o >said 2>&1; }

# breach FILE LINE WORDS: the line goes into the file, and is to be told with these words.
breach() {
  echo "$2" >>"$1"
  echo "$3" >>wanted
}
all_caught() {
  if watched; then
    echo "passes: $1"
    failed=1
  fi
  while read -r words; do
    grep -qF "$words" said || { echo "$1, not told: $words"; failed=1; }
  done <wanted
}

clean
compile
echo '/* cublasScanEx is the vendor name of it */' >>src/low.c
echo '/* the command may name scan */' >>tools/cli/main.c
watched || { echo "a clean house is refused:"; cat said; failed=1; }

clean
breach src/low.c '#include "tuning/middle.h"' 'src/ is the lowest floor'
breach tuning/middle.c '#include "ops/scan/scan.h"' 'tuning/ stands on src/ only'
breach ops/scan/scan.c '#include "bench/gemm/gemm.h"' 'ops/ stands on tuning/ and src/'
breach tools/cli/main.c '#include "tuning/middle.h"' 'the command includes public headers only'
breach tools/compare/one.c '#include "src/host/low.h"' 'the comparison includes public headers and src/base/ only'
breach tools/bench/one.c '#include "ops/scan/scan.h"' 'tools/bench/ stands on tuning/ and src/'
breach examples/one.c '#include "src/low.h"' 'examples include public headers only'
breach include/attune/tuner.h '#include "src/low.h"' 'public headers include'
all_caught "an include that goes up"

clean
breach src/b/b.h '#include "src/a/a.h"' 'src/b/b.h includes src/a/a.h'
all_caught "two folders that include each other"

clean
breach tuning/middle.h 'int at_scan(void);' 'tuning/middle.h:2:int at_scan(void);'
breach src/low.h 'int at_middle(void);' 'src/low.h:2:int at_middle(void);'
breach include/attune/plan.h 'int at_middle(void);' 'include/attune/plan.h:2:int at_middle(void);'
all_caught "a declaration of what a floor above defines"

for line in '#define DEFAULT "scan"' 'struct attune_scan_problem;' '/* Scans are its only use. */'; do
  clean
  breach tuning/middle.c "$line" "tuning/middle.c:2:$line"
  all_caught "an operation's name"
done
clean
breach include/attune/tuner.h '/* as attune_scan does */' 'include/attune/tuner.h:2:/* as attune_scan does */'
all_caught "an operation's name in a header of all"

clean
breach tuning/middle.c 'int at_start(void) { return pthread_create(0, 0, 0, 0); }' 'threads are started by at_thread_start'
all_caught "a thread that is started by hand"

clean # declared by the caller's own file, so that no header shows it
breach src/low.c 'int at_middle(void); int at_up(void); int at_up(void) { return at_middle(); }' \
  'src/ calls at_middle, which tuning/ defines'
breach tuning/middle.c 'int at_scan(void); int at_up2(void); int at_up2(void) { return at_scan(); }' \
  'tuning/ calls at_scan, which ops/ defines'
compile
all_caught "a call that goes up"
[ "$failed" = 0 ] && echo "every breach is caught"
exit $failed
