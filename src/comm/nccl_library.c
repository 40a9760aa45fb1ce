/* SPDX-License-Identifier: Apache-2.0
 * nccl_library.c: see nccl_library.h. */
#include "src/comm/nccl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "src/process/library.h"
#include "src/process/loading.h"
#include "src/process/vendor.h"

#define OLDEST 21000 /* 2.10: the first with bf16 and averages */

at_nccl_functions at_nccl; /* constant after nccl_once, as all below */
static pthread_once_t nccl_once = PTHREAD_ONCE_INIT;
static char version_text[24];
static char why[320]; /* "" when it is open */

static bool is_nccl(const char *file) {
  return strncmp(file, "libnccl.so", 10) == 0;
}

static bool find(at_library *out) {
  return at_library_open_loaded(out, is_nccl, NULL, NULL) ||
         at_library_open(out, "libnccl.so.2", RTLD_NOW | RTLD_LOCAL) ||
         at_library_open(out, "libnccl.so", RTLD_NOW | RTLD_LOCAL);
}

static const char *fill(const at_library *library) {
#define ENTRY(name) \
  { "nccl" #name, offsetof(at_nccl_functions, name) }
  static const at_library_entry entries[] = {
      ENTRY(GetVersion),  ENTRY(GetUniqueId), ENTRY(CommInitAll),       ENTRY(CommInitRank),
      ENTRY(CommDestroy), ENTRY(CommAbort),   ENTRY(CommGetAsyncError), ENTRY(GetErrorString),
      ENTRY(GroupStart),  ENTRY(GroupEnd),    ENTRY(Broadcast),         ENTRY(Reduce),
      ENTRY(AllReduce),   ENTRY(AllGather),   ENTRY(ReduceScatter),     ENTRY(Send),
      ENTRY(Recv)};
#undef ENTRY
  return at_library_fill(library, &at_nccl, entries, AT_COUNT(entries));
}

/* From 2.9 on a version is major 10000, minor 100, patch. */
static void look(const at_library *library) {
  int version = 0;
  size_t at = 0;
  const char *missing = fill(library);
  if (missing) {
    (void)at_append(why, sizeof why, &at, "%s has no %s; should be NCCL 2.10 or later", library->path, missing);
    return;
  }
  if (at_nccl.GetVersion(&version) != AT_NCCL_SUCCESS || version < OLDEST) {
    (void)at_append(why, sizeof why, &at, "%s is of version %d; should be NCCL 2.10 or later", library->path, version);
    return;
  }
  (void)at_append(version_text, sizeof version_text, &at, "%d.%d.%d", version / 10000, version / 100 % 100,
                  version % 100);
}

static void open_nccl(void) {
  at_library library;
  if (!at_loading_begin()) {
    (void)at_copy_text(why, sizeof why, "the process is exiting, or was forked while libraries were being opened");
  } else if (find(&library)) {
    look(&library);
    at_vendor_opened();
  } else {
    (void)at_copy_text(why, sizeof why,
                       "libnccl.so.2 was not found; install NCCL, or add its folder to LD_LIBRARY_PATH");
  }
  at_loading_end();
}

attune_status at_nccl_open(void) {
  pthread_once(&nccl_once, open_nccl);
  return why[0] ? at_fail(ATTUNE_UNSUPPORTED, "no NCCL: %s", why) : ATTUNE_OK;
}

const char *at_nccl_version(void) {
  return version_text;
}
