/* SPDX-License-Identifier: Apache-2.0
 * interpret_libmvec.c: see interpret_libmvec.h. */
#include "ops/elementwise/host/interpret_libmvec.h"

#include <dlfcn.h>
#include <pthread.h>

#include "src/process/library.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static at_library library; /* written once */

static void open_library(void) {
  (void)at_library_open(&library, "libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
}

bool at_libmvec_function(const char *name, void *function_out) {
  pthread_once(&once, open_library);
  return at_library_function(&library, name, function_out);
}
