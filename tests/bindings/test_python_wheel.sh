#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_python_wheel.sh PYTHON SOURCE LIBRARY WORK: pip builds a wheel from the sources, with the library in it or without; what is
# installed from it runs README's Python example. Without a network. Exit 77: no pip, setuptools, wheel or NumPy.
set -eu
python=$1 source=$2 library=$3 work=$4

for module in pip setuptools wheel numpy; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python has no $module"; exit 77; }
done

# The sources are copied, since setuptools leaves files in them.
rm -rf "$work"
mkdir -p "$work/source/include/attune" "$work/source/bindings"
cp "$source/include/attune/types.h" "$work/source/include/attune"
cp -R "$source/bindings/python" "$work/source/bindings"
rm -rf "$work/source/bindings/python/build"

# wheel FOLDER LIBATTUNE: builds a wheel into FOLDER and installs it beside.
wheel() {
  LIBATTUNE=$2 "$python" -m pip wheel -q --disable-pip-version-check --no-index --no-deps --no-build-isolation -w "$1" \
    "$work/source/bindings/python" || return 1
  "$python" -m pip install -q --disable-pip-version-check --no-index --no-deps --target "$1/site" "$1"/*.whl
}

# example FOLDER: the page's example with the package installed there.
awk '/^```python$/ { on = 1; next } /^```$/ { on = 0 } on' "$source/docs/bindings.md" >"$work/example.py"
[ -s "$work/example.py" ] || { echo "docs/bindings.md has no Python example"; exit 1; }
example() { (cd "$work" && ATTUNE_DB=:memory: ATTUNE_BUDGET_MS=30 PYTHONPATH="$1/site" "$python" example.py); }

wheel "$work/with" "$library"
ls "$work/with" | grep -q '^attune-[0-9.]*-py3-none-linux_.*\.whl$' || { ls "$work/with"; echo "the wheel has another name"; exit 1; }
cmp "$work/with/site/attune/libattune.so.0" "$library"
example "$work/with"

wheel "$work/without" system
[ ! -e "$work/without/site/attune/libattune.so.0" ] || { echo "LIBATTUNE=system put a library into the wheel"; exit 1; }
ln -s "$library" "$work/libattune.so.0"
LD_LIBRARY_PATH="$work" example "$work/without"
if example "$work/without" >"$work/none.log" 2>&1; then
  # Only where the system has one by itself.
  "$python" -c 'import ctypes; ctypes.CDLL("libattune.so.0")' || { echo "a library was found that is not there"; exit 1; }
else
  grep -q 'LibraryNotFound: libattune cannot be loaded' "$work/none.log" || { cat "$work/none.log"; exit 1; }
fi

if wheel "$work/wrong" "build/libattune.so" >"$work/wrong.log" 2>&1; then
  echo "a path that is not absolute is taken"
  exit 1
fi
grep -q 'LIBATTUNE is build/libattune.so; should be the absolute path' "$work/wrong.log" || { cat "$work/wrong.log"; exit 1; }
echo "the wheels run README's example"
