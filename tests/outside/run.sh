#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh WAY: installs a build of attune, moves the installation, and builds and runs the program beside this file against it.
#   install        installs $BUILD into $WORK/prefix, by way of another folder: an installation may be moved
#   find_package   by CMake, shared and static
#   pkg_config     by pkg-config, shared and static
#   without_cuda   the same for a build with ATTUNE_CUDA=OFF, the library and the command only; where BUILD has CUDA, that is built here
# Environment: BUILD (attune's build folder), SOURCE (attune's root), WORK (a folder of its own), CC, CMAKE; CMAKE_GENERATOR, for a machine may
# have Ninja and no make; WITH_CUDA (does BUILD have CUDA?); FC, a Fortran compiler, if there is one. Exit 77: skipped.
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

find_package() {
  rm -rf "$WORK/cmake"
  "$CMAKE" -S "$here" -B "$WORK/cmake" -DCMAKE_C_COMPILER="$CC" -DCMAKE_PREFIX_PATH="$WORK/prefix"
  "$CMAKE" --build "$WORK/cmake"
  "$WORK/cmake/outside_shared"
  "$WORK/cmake/outside_static"
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
  "$CC" -o "$WORK/pc_shared" $cflags "$here/main.c" $(pkg-config --libs attune) "-Wl,-rpath,$libdir"
  "$WORK/pc_shared"
  # shellcheck disable=SC2046,SC2086
  "$CC" -o "$WORK/pc_static" $cflags "$here/main.c" $(pkg-config --static --libs attune | sed 's/-lattune/-l:libattune.a/')
  if readelf -d "$WORK/pc_static" | grep -q 'libattune'; then
    echo "pc_static is linked with libattune.so"
    exit 1
  fi
  "$WORK/pc_static"
  starts_without_cuda "$WORK/pc_static"
  if [ -n "${FC:-}" ]; then
    # README's program, with README's command.
    awk '/^```fortran$/ { on = 1; next } /^```$/ { on = 0 } on' "$SOURCE/README.md" >"$WORK/product.f90"
    # shellcheck disable=SC2046
    "$FC" -J "$WORK" -o "$WORK/pc_fortran" $(pkg-config --variable=fortran attune) "$WORK/product.f90" $(pkg-config --libs attune) \
      "-Wl,-rpath,$libdir"
    "$WORK/pc_fortran"
  fi
}

mkdir -p "$WORK"
case $1 in
  install) install_build ;;
  find_package) find_package ;;
  pkg_config) pkg_config ;;
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
