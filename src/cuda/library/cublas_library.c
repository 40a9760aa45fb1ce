/* SPDX-License-Identifier: Apache-2.0
 * cublas_library.c: cuBLAS and the cuBLASLt that it is linked with, opened at first use. */
#include "src/cuda/library/toolkit.h"

#include "src/base/support.h"
#include "src/process/loading.h"
#include "src/process/vendor.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Two levels, for cublas_v2.h gives some functions another name by a macro. */
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

at_cublas_functions at_cublas; /* this and all below: constant after open_once */

static const at_library_entry entries[] = {
#define AT_CUBLAS(name) {TEXT(name), offsetof(at_cublas_functions, name)},
#include "src/cuda/library/cublas_functions.def"
};

static pthread_once_t open_once = PTHREAD_ONCE_INIT;
static at_library library;
static char lt_path[AT_LIBRARY_PATH];
static char version[32], lt_version[32];
static char why_not[512]; /* empty: it is open */

/* "libcublas.so.13", or with a hash in its name, as in packages for Python. */
static bool is_cublas(const char *file) {
  return strncmp(file, "libcublas.so", 12) == 0 || strncmp(file, "libcublas-", 10) == 0;
}

static bool is_cublaslt(const char *file) {
  return strncmp(file, "libcublasLt.so", 14) == 0;
}

static const at_toolkit_library wanted = {
    .title = "cuBLAS",
    .stem = "libcublas",
    .packages = "NVIDIA's package libcublas, or nvidia-cublas with pip",
    .named = is_cublas,
    .built_major = CUBLAS_VER_MAJOR,
};

/* A program that has loaded cuBLASLt alone: the cuBLAS next to it is of the same release. */
static bool open_beside_cublaslt(at_library *out) {
  at_library lt;
  char file[AT_LIBRARY_PATH];
  if (!at_library_open_loaded(&lt, is_cublaslt, NULL, NULL)) return false;
  const char *slash = strrchr(lt.path, '/');
  size_t at = 0;
  const bool named = slash && at_append(file, sizeof file, &at, "%.*s/libcublas%s", (int)(slash - lt.path), lt.path,
                                        slash + sizeof "/libcublasLt" - 1);
  at_library_close(&lt);
  return named && at_library_open(out, file, RTLD_NOW | RTLD_LOCAL);
}

/* What the library's search finds behind cuBLAS is what cuBLAS itself is linked with. */
static void find_library(void) {
  int major = 0, minor = 0, patch = 0;
  at_library probe;
  const bool lt_alone = !at_library_open_loaded(&probe, is_cublas, NULL, NULL) && open_beside_cublaslt(&library);
  at_library_close(&probe);
  if (!lt_alone && !at_toolkit_open(&library, &wanted, why_not, sizeof why_not)) return;
  const char *missing = at_library_fill(&library, &at_cublas, entries, AT_COUNT(entries));
  if (missing) {
    size_t at = 0;
    (void)at_append(why_not, sizeof why_not, &at, "cuBLAS (%s) has no %s; should be 12.4 or later, with its cuBLASLt",
                    library.path, missing);
    return;
  }
  (void)at_cublas.cublasGetProperty(MAJOR_VERSION, &major);
  (void)at_cublas.cublasGetProperty(MINOR_VERSION, &minor);
  (void)at_cublas.cublasGetProperty(PATCH_LEVEL, &patch);
  if (!at_toolkit_knows(&wanted, &library, major, minor, why_not, sizeof why_not)) return;
  snprintf(version, sizeof version, "%d.%d.%d", major, minor, patch);
  snprintf(lt_version, sizeof lt_version, "%zu", at_cublas.cublasLtGetVersion());
  at_library_of((const void *)(uintptr_t)at_cublas.cublasLtMatmul, lt_path, sizeof lt_path);
}

static void open_library(void) {
  if (at_loading_begin()) {
    find_library();
    at_vendor_opened();
  } else {
    (void)at_copy_text(why_not, sizeof why_not,
                       "the process is exiting, or was forked while libraries were being opened: no cuBLAS");
  }
  at_loading_end();
}

attune_status at_cublas_open(void) {
  pthread_once(&open_once, open_library);
  return AT_LIKELY(!why_not[0]) ? ATTUNE_OK : at_fail(ATTUNE_UNSUPPORTED, "%s", why_not);
}

const char *at_cublas_version(void) {
  pthread_once(&open_once, open_library);
  return why_not[0] ? "none" : version;
}

const char *at_cublaslt_version(void) {
  pthread_once(&open_once, open_library);
  return why_not[0] ? "none" : lt_version;
}

int at_cublas_each(attune_library_fn fn, void *user) {
  const bool open = at_cublas_open() == ATTUNE_OK;
  const attune_library blas = {"cublas", version, library.path, library.was_loaded, why_not};
  const attune_library lt = {"cublaslt", lt_version, lt_path, library.was_loaded, ""};
  const int end = fn(user, &blas);
  return end != 0 || !open ? end : fn(user, &lt);
}
