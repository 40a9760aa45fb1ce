#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_gate_page.sh GATE_PAGE: the page that GATE_PAGE prints, in headless Chromium: gate_page_test.js sorts, filters and opens it as
# a reader does, in light colors on a wide screen and in dark ones on a phone's; without scripts the table is there all the same.
set -eu
make=$1
here=$(cd "$(dirname "$0")" && pwd)

browser=
for name in chromium chromium-browser google-chrome; do
  [ -n "$browser" ] || browser=$(command -v "$name" || true)
done
if [ -z "$browser" ]; then
  echo "skipped: no chromium here (Debian: apt-get install chromium)"
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
long=$(printf '%0120d' 7)
"$make" 50 '</script><script>document.documentElement.dataset.hacked = 1</script>' \
  '<img src=x onerror="document.documentElement.dataset.hacked = 1">' "$(printf 'red \033[31m')" '<!--<script>' "$long" \
  "\" onmouseover=\"document.documentElement.dataset.hacked = 1\"" >"$work/page.html"

# The page is ours and is opened from a file: no sandbox, which needs rights that a container may lack.
open_page() {
  file=$1
  shift
  HOME="$work" timeout 100 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --disable-extensions --disable-background-networking --disable-sync --allow-file-access-from-files --user-data-dir="$work/profile" "$@" --dump-dom \
    "file://$file" 2>"$work/messages" || { tail -n 20 "$work/messages"; echo "$browser failed"; exit 1; }
}

# Adds the test to the page; its first argument says which looks it takes.
with_test() {
  printf '<script>document.documentElement.dataset.test = "%s"</script>\n<script>\n{\n' "$1" | cat "$work/page.html" - \
    "$here/gate_page_test.js"
  printf '}\n</script>\n'
}

# A window may not be as narrow as a phone, a frame may.
frame() {
  printf '<!DOCTYPE html><iframe src="%s" style="width: 375px; height: 812px; border: 0"></iframe><script>\n' "$1"
  printf 'onload = () => document.body.append(frames[0].document.getElementById("told"));</script>\n'
}

status=0
for kind in wide narrow; do
  with_test $kind >"$work/$kind.html"
  page=$kind.html scheme=1 # light
  if [ $kind = narrow ]; then
    page=frame.html scheme=0
    frame narrow.html >"$work/$page"
  fi
  open_page "$work/$page" --window-size=1280,1000 --blink-settings=preferredColorScheme=$scheme >"$work/$kind.dom"
  sed -n '/<pre id="told">/,/END/p' "$work/$kind.dom" | sed "s/.*<pre id=\"told\">/$kind: /; /^END/d"
  grep -q '<pre id="told">PASSED [0-9]* looks' "$work/$kind.dom" || { echo "$kind: not passed"; status=1; }
done

cp "$here/gate_page_plain.html" "$work/plain.html"
open_page "$work/plain.html" >"$work/plain.dom"
plain=$(sed -n 's/.*<pre id="told">\([^<]*\).*/\1/p' "$work/plain.dom")
echo "without scripts: $plain"
[ "$plain" = "50 cases, 10 columns, 0 parts that need a script, 1 note" ] || { echo "without scripts: wrong"; status=1; }
exit $status
