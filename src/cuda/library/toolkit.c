/* SPDX-License-Identifier: Apache-2.0
 * toolkit.c: where the toolkit's libraries are looked for, and which versions are taken. */
#include "src/cuda/library/toolkit.h"

#include "src/base/support.h"

#include <dlfcn.h>

/* The functions and constants that attune uses are equal in 12.4 and 13.1; an unknown later one may differ. */
enum { MAJOR_LEAST = 12, MINOR_LEAST_OF_12 = 4, MAJOR_MOST = 13 };

/* The loader's own search first, then the toolkit that attune was built with, then where NVIDIA installs it. */
static const char *const folders[] = {"", AT_CUDA_LIBRARY_DIR "/", "/usr/local/cuda/lib64/"};

static bool open_major(at_library *out, const at_toolkit_library *wanted, int major) {
  for (size_t i = 0; i < AT_COUNT(folders); i++) {
    char file[AT_LIBRARY_PATH];
    size_t at = 0;
    if (!at_append(file, sizeof file, &at, "%s%s.so.%d", folders[i], wanted->stem, major)) continue;
    if (at_library_open(out, file, RTLD_NOW | RTLD_LOCAL)) return true;
  }
  return false;
}

bool at_toolkit_open(at_library *out, const at_toolkit_library *wanted, char *why, size_t size) {
  if (at_library_open_loaded(out, wanted->named, NULL, NULL) || open_major(out, wanted, wanted->built_major))
    return true;
  for (int major = MAJOR_MOST; major >= MAJOR_LEAST; major--)
    if (major != wanted->built_major && open_major(out, wanted, major)) return true;
  size_t at = 0;
  (void)at_append(why, size, &at,
                  "%s is missing: %s.so.%d was found neither by the loader nor in %s; install it (%s), or let the "
                  "program load it first",
                  wanted->title, wanted->stem, wanted->built_major, AT_CUDA_LIBRARY_DIR, wanted->packages);
  return false;
}

bool at_toolkit_knows(const at_toolkit_library *wanted, const at_library *found, int major, int minor, char *why,
                      size_t size) {
  if (major > MAJOR_LEAST ? major <= MAJOR_MOST : major == MAJOR_LEAST && minor >= MINOR_LEAST_OF_12) return true;
  size_t at = 0;
  (void)at_append(why, size, &at, "%s %d.%d (%s%s) is not used; should be %d.%d to %d", wanted->title, major, minor,
                  found->path, found->was_loaded ? ", loaded by the program" : "", MAJOR_LEAST, MINOR_LEAST_OF_12,
                  MAJOR_MOST);
  return false;
}
