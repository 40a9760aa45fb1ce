/* SPDX-License-Identifier: Apache-2.0
 * nvrtc_library.c: NVRTC, opened when the first kernel is to be compiled. */
#include "src/cuda/library/toolkit.h"

#include "src/base/support.h"
#include "src/process/loading.h"
#include "src/process/vendor.h"

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

at_nvrtc_functions at_nvrtc; /* this and all below: constant after open_once */

static const at_library_entry entries[] = {
#define AT_NVRTC(name) {#name, offsetof(at_nvrtc_functions, name)},
#include "src/cuda/library/nvrtc_functions.def"
};

static pthread_once_t open_once = PTHREAD_ONCE_INIT;
static at_library library;
static char version[32];
static char why_not[512]; /* empty: it is open */

static bool is_nvrtc(const char *file) {
  return strncmp(file, "libnvrtc.so", 11) == 0 ||
         (strncmp(file, "libnvrtc-", 9) == 0 && strncmp(file, "libnvrtc-builtins", 17) != 0);
}

static const at_toolkit_library wanted = {
    .title = "NVRTC",
    .stem = "libnvrtc",
    .packages = "NVIDIA's package cuda-nvrtc, or nvidia-cuda-nvrtc with pip",
    .named = is_nvrtc,
    .built_major = CUDA_VERSION / 1000,
};

/* NVRTC looks for its built-in functions by name alone; from a folder that the loader does not search they are found
 * because they are loaded. */
static void load_builtins(int major, int minor) {
  char file[AT_LIBRARY_PATH];
  at_library builtins;
  const char *slash = strrchr(library.path, '/');
  size_t at = 0;
  if (slash && at_append(file, sizeof file, &at, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - library.path),
                         library.path, major, minor))
    (void)at_library_open(&builtins, file, RTLD_LAZY | RTLD_LOCAL);
}

static void find_library(void) {
  int major = 0, minor = 0;
  if (!at_toolkit_open(&library, &wanted, why_not, sizeof why_not)) return;
  const char *missing = at_library_fill(&library, &at_nvrtc, entries, AT_COUNT(entries));
  if (missing) {
    size_t at = 0;
    (void)at_append(why_not, sizeof why_not, &at, "NVRTC (%s) has no %s; should be 12.4 or later", library.path,
                    missing);
    return;
  }
  (void)at_nvrtc.nvrtcVersion(&major, &minor);
  if (!at_toolkit_knows(&wanted, &library, major, minor, why_not, sizeof why_not)) return;
  snprintf(version, sizeof version, "%d.%d", major, minor);
  load_builtins(major, minor);
}

static void open_library(void) {
  if (at_loading_begin()) {
    find_library();
    at_vendor_opened();
  } else {
    (void)at_copy_text(why_not, sizeof why_not,
                       "the process is exiting, or was forked while libraries were being opened: no NVRTC");
  }
  at_loading_end();
}

attune_status at_nvrtc_open(void) {
  pthread_once(&open_once, open_library);
  return AT_LIKELY(!why_not[0]) ? ATTUNE_OK : at_fail(ATTUNE_UNSUPPORTED, "%s", why_not);
}

const char *at_nvrtc_version(void) {
  pthread_once(&open_once, open_library);
  return why_not[0] ? "none" : version;
}

int at_nvrtc_each(attune_library_fn fn, void *user) {
  (void)at_nvrtc_open();
  const attune_library told = {"nvrtc", version, library.path, library.was_loaded, why_not};
  return fn(user, &told);
}
