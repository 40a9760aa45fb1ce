/* SPDX-License-Identifier: Apache-2.0
 * libxsmm_library.c: see libxsmm_library.h. Its functions are declared here as its documentation has them (LIBXSMM
 * 1.17, libxsmm_mm.md). Versions of its development branch have others, and are left alone.
 *
 * It has locks of its own around compiling, and at exit() it unmaps its kernels while other threads may be in them. So
 * all calls pass the gate that CBLAS libraries have (cblas_thread_setting.h): forks and the end wait for those
 * inside. */
#include "ops/gemm/host/libxsmm/libxsmm_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/host/cblas/cblas_thread_setting.h"
#include "src/base/support.h"
#include "src/process/exit.h"
#include "src/process/fork.h"
#include "src/process/library.h"
#include "src/process/loading.h"

enum { TRANS_B = 2 }; /* LIBXSMM_GEMM_FLAG_TRANS_B */

/* libxsmm_blasint is int, or 64 bits wide in some builds, which say so nowhere: x86-64 passes both alike, and the low
 * half of what a pointer leads to comes first. NULL for `prefetch`: none. */
typedef at_libxsmm_kernel (*dispatch_fn)(int64_t m, int64_t n, int64_t k, const int64_t *lda, const int64_t *ldb,
                                         const int64_t *ldc, const void *alpha, const void *beta, const int *flags,
                                         const int *prefetch);

typedef struct functions {
  dispatch_fn f32, f64;
  const char *(*arch)(void);
} functions;

static const at_library_entry entries[] = {
    {"libxsmm_smmdispatch", offsetof(functions, f32)},
    {"libxsmm_dmmdispatch", offsetof(functions, f64)},
    {"libxsmm_get_target_arch", offsetof(functions, arch)},
};

static const char *const files[] = {"libxsmm.so.1", "libxsmm.so"};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static at_library library; /* written once, as the next */
static functions calls;
static char id[64] = "libxsmm-none";
static at_cblas_thread_setting gate;

static bool is_named(const char *file) {
  return strncmp(file, "libxsmm.so", sizeof "libxsmm.so" - 1) == 0;
}

static bool fill(const at_library *found, void *unused) {
  (void)unused;
  return at_library_fill(found, &calls, entries, AT_COUNT(entries)) == NULL;
}

static bool open_one(void) {
  if (at_library_open_loaded(&library, is_named, fill, NULL)) return true;
  for (size_t i = 0; i < AT_COUNT(files); i++) {
    if (!at_library_open(&library, files[i], RTLD_LAZY | RTLD_LOCAL)) continue;
    if (fill(&library, NULL)) return true;
    at_library_close(&library);
  }
  return false;
}

/* No function says the version, the file's name does: libxsmm.so.1.17. */
static void make_id(void) {
  char *file = realpath(library.path, NULL);
  const char *at = file ? strstr(file, "libxsmm.so.") : NULL;
  size_t length = 0;
  (void)at_append(id, sizeof id, &length, "libxsmm-%.16s-%.24s", at ? at + strlen("libxsmm.so.") : "unknown",
                  calls.arch());
  free(file);
}

static void before_fork(void *unused) {
  (void)unused;
  at_cblas_thread_setting_hold(&gate);
}

static void after_fork(void *unused, bool child) {
  (void)unused;
  if (child)
    at_cblas_thread_setting_after_fork(&gate);
  else
    at_cblas_thread_setting_release(&gate);
}

static void before_exit(void) {
  at_cblas_thread_setting_end(&gate);
}

/* What attune asks of exit() after the library has asked comes first. */
static void load(void) {
  static at_fork_watch watch = {.before = before_fork, .after = after_fork};
  at_cblas_thread_setting_init(&gate, NULL, NULL);
  if (at_loading_begin() && !at_exit_begun() && open_one()) {
    make_id();
    at_fork_watch_add(&watch);
    at_exit_call(before_exit);
    if (at_exit_begun()) before_exit();
  }
  at_loading_end();
}

bool at_libxsmm_here(void) {
  pthread_once(&once, load);
  return library.handle != NULL;
}

const char *at_libxsmm_id(void) {
  (void)at_libxsmm_here();
  return id;
}

struct at_visitor *at_libxsmm_enter(void) {
  return at_cblas_thread_setting_enter(&gate, 1);
}

void at_libxsmm_leave(struct at_visitor *mine) {
  at_cblas_thread_setting_leave_as(&gate, mine);
}

at_libxsmm_kernel at_libxsmm_find(const at_libxsmm_shape *s) {
  const float one32 = 1.0f, beta32 = s->onto ? 1.0f : 0.0f;
  const double one64 = 1.0, beta64 = s->onto ? 1.0 : 0.0;
  const int flags = s->trans_b ? TRANS_B : 0;
  struct at_visitor *mine = at_libxsmm_here() ? at_libxsmm_enter() : NULL;
  if (!mine) return NULL;
  const at_libxsmm_kernel kernel =
      s->f64 ? calls.f64(s->m, s->n, s->k, &s->lda, &s->ldb, &s->ldc, &one64, &beta64, &flags, NULL)
             : calls.f32(s->m, s->n, s->k, &s->lda, &s->ldb, &s->ldc, &one32, &beta32, &flags, NULL);
  at_libxsmm_leave(mine);
  return kernel;
}

int at_libxsmm_each(attune_library_fn fn, void *user) {
  if (!at_libxsmm_here()) return 0;
  return fn(user, &(attune_library){"libxsmm", id + strlen("libxsmm-"), library.path, library.was_loaded, ""});
}
