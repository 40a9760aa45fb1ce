#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh WAY: installs a build of attune, moves the installation, and builds and runs the program beside this file against it.
#   install        installs $BUILD into $WORK/prefix, by way of another folder: an installation may be moved
#   find_package   by CMake, shared and static
#   pkg_config     by pkg-config, shared and static
#   subproject     as a part of another project, by add_subdirectory: it stays as it is, and installs nothing of attune
#   without_cuda   the same for a build with ATTUNE_CUDA=OFF, the library and the command only; where BUILD has CUDA, that is built here
# Environment: BUILD (attune's build folder), SOURCE (attune's root), WORK (a folder of its own), CC, CMAKE; CMAKE_GENERATOR, for a machine may
# have Ninja and no make; WITH_CUDA (does BUILD have CUDA?); FC, a Fortran compiler, if there is one; CFLAGS, LDFLAGS (a build
# with a sanitizer needs them in every program). Exit 77: skipped.
set -eu

here=$SOURCE/tests/outside

install_build() {
  rm -rf "$WORK/prefix" "$WORK/before"
  "$CMAKE" --install "$BUILD" --prefix "$WORK/before" >"$WORK/install.log" || { cat "$WORK/install.log"; exit 1; }
  mv "$WORK/before" "$WORK/prefix"
  ATTUNE_LOG=warning "$WORK/prefix/bin/attune" --version
}

# No program of attune needs a library of CUDA to start.
starts_without_cuda() {
  if readelf -d "$1" | grep -E 'NEEDED.*lib(cuda|cudart|cublas|cublasLt|nvrtc)\.so'; then
    echo "$1 needs a library of CUDA"
    exit 1
  fi
}

tools_version() { readelf -V "$WORK/cmake/$1" | grep -q ATTUNE_TOOLS_; }

find_package() {
  rm -rf "$WORK/cmake"
  "$CMAKE" -S "$here" -B "$WORK/cmake" -DCMAKE_C_COMPILER="$CC" -DCMAKE_PREFIX_PATH="$WORK/prefix"
  "$CMAKE" --build "$WORK/cmake"
  "$WORK/cmake/outside_shared"
  "$WORK/cmake/outside_static"
  "$WORK/cmake/outside_bench" | grep -q '^nothing' || { echo "outside_bench does not list its case"; exit 1; }
  tools_version outside_shared && { echo "outside_shared needs the version of tools.h, which it does not include"; exit 1; }
  tools_version outside_bench || { echo "outside_bench does not need the version of tools.h"; exit 1; }
  starts_without_cuda "$WORK/cmake/outside_shared"
  starts_without_cuda "$WORK/cmake/outside_static"
}

pkg_config() {
  command -v pkg-config >/dev/null || { echo "skipped: no pkg-config"; exit 77; }
  pc=$(find "$WORK/prefix" -name attune.pc)
  PKG_CONFIG_PATH=${pc%/*}
  export PKG_CONFIG_PATH
  libdir=$(pkg-config --variable=libdir attune)
  cflags=$(pkg-config --cflags attune)
  # shellcheck disable=SC2046,SC2086
  "$CC" ${CFLAGS:-} -o "$WORK/pc_shared" $cflags "$here/main.c" $(pkg-config --libs attune) "-Wl,-rpath,$libdir"
  "$WORK/pc_shared"
  # shellcheck disable=SC2046,SC2086
  "$CC" ${CFLAGS:-} -o "$WORK/pc_static" $cflags "$here/main.c" $(pkg-config --static --libs attune | sed 's/-lattune/-l:libattune.a/')
  if readelf -d "$WORK/pc_static" | grep -q 'libattune'; then
    echo "pc_static is linked with libattune.so"
    exit 1
  fi
  "$WORK/pc_static"
  starts_without_cuda "$WORK/pc_static"
  if [ -n "${FC:-}" ]; then
    # The page's program, with the page's command.
    awk '/^```fortran$/ { on = 1; next } on && /^```$/ { exit } on' "$SOURCE/docs/bindings.md" >"$WORK/product.f90"
    # shellcheck disable=SC2046
    "$FC" -J "$WORK" -o "$WORK/pc_fortran" $(pkg-config --variable=fortran attune) "$WORK/product.f90" $(pkg-config --libs attune) \
      "-Wl,-rpath,$libdir"
    "$WORK/pc_fortran"
  fi
  # Where SQLite lies, its own .pc file knows.
  if pkg-config --exists sqlite3; then
    mkdir -p "$WORK/pc"
    printf 'Name: sqlite3\nDescription: made\nVersion: 3.40\nLibs: -L/elsewhere/lib -lsqlite3\n' >"$WORK/pc/sqlite3.pc"
    if ! PKG_CONFIG_PATH="$WORK/pc:$PKG_CONFIG_PATH" pkg-config --static --libs attune | grep -q -e '-L/elsewhere/lib.*-lsqlite3'; then
      echo "attune.pc does not use sqlite3.pc: $(PKG_CONFIG_PATH="$WORK/pc:$PKG_CONFIG_PATH" pkg-config --static --libs attune)"
      exit 1
    fi
  fi
}

# The project has no build type, so its assertion is there; attune comes with what it needs to be fast.
subproject() {
  rm -rf "$WORK/parent" "$WORK/parent_prefix"
  "$CMAKE" -S "$here/parent" -B "$WORK/parent" -DCMAKE_C_COMPILER="$CC" -DATTUNE="$SOURCE"
  "$CMAKE" --build "$WORK/parent" --target parent --verbose >"$WORK/parent.log" || { cat "$WORK/parent.log"; exit 1; }
  if grep -E 'main\.c' "$WORK/parent.log" | grep -E -e '-O[1-3s]|NDEBUG|fvisibility|-std=|-fPIC|-W'; then
    echo "the project's file is compiled with attune's flags"
    exit 1
  fi
  if (ulimit -c 0; "$WORK/parent/parent") 2>/dev/null; then
    echo "the project's assertion is gone"
    exit 1
  fi
  if [ -e "$WORK/parent/compile_commands.json" ]; then
    echo "the project has a compile_commands.json, which it did not ask for"
    exit 1
  fi
  "$CMAKE" --install "$WORK/parent" --prefix "$WORK/parent_prefix" >"$WORK/parent.log" || { cat "$WORK/parent.log"; exit 1; }
  installed=$(cd "$WORK/parent_prefix" && find . -type f)
  if [ "$installed" != ./bin/parent ]; then
    echo "the project installs, besides its program: $installed"
    exit 1
  fi
  "$CMAKE" -S "$here/parent" -B "$WORK/parent" -DATTUNE_INSTALL=ON
  if ! grep -q attune.pc "$WORK/parent/attune/cmake_install.cmake"; then
    echo "ATTUNE_INSTALL=ON does not install attune"
    exit 1
  fi
}

mkdir -p "$WORK"
case $1 in
  install) install_build ;;
  find_package) find_package ;;
  pkg_config) pkg_config ;;
  subproject) subproject ;;
  without_cuda)
    "$CMAKE" -S "$SOURCE" -B "$WORK/build" -DCMAKE_C_COMPILER="$CC" -DCMAKE_BUILD_TYPE=Debug -DATTUNE_CUDA=OFF -DATTUNE_TESTS=OFF \
      -DATTUNE_BENCH=OFF -DATTUNE_EXAMPLES=OFF
    case ${WITH_CUDA:-ON} in
      ON | 1 | TRUE)
        BUILD=$WORK/build
        "$CMAKE" --build "$BUILD" --parallel 2
        ;;
    esac
    install_build
    find_package
    pkg_config
    if readelf -d "$WORK/prefix/lib"*/libattune.so | grep -qE 'libcu(da|blas)'; then
      echo "libattune.so is linked with CUDA; ATTUNE_CUDA is OFF"
      exit 1
    fi
    ;;
  *) echo "run.sh: unknown way $1" >&2; exit 2 ;;
esac
