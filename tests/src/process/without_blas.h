/* SPDX-License-Identifier: Apache-2.0
 * without_blas.h: a program that includes this does not find the CBLAS that ATTUNE_TEST_WITHOUT names ("openblas",
 * "blis"), so that the other one is used. Included by one file of a program. */
#ifndef WITHOUT_BLAS_H
#define WITHOUT_BLAS_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *dlopen(const char *file, int mode) {
  void *(*real)(const char *, int) = NULL;
  void *symbol = dlsym(RTLD_NEXT, "dlopen");
  const char *hidden = getenv("ATTUNE_TEST_WITHOUT");
  memcpy(&real, &symbol, sizeof real);
  return hidden && file && strstr(file, hidden) ? NULL : real(file, mode);
}
#endif

#endif
