/* SPDX-License-Identifier: Apache-2.0
 * cblas_library.c: finding and loading CBLAS libraries.
 *
 * They export the same names, so each is opened RTLD_LOCAL, and with RTLD_DEEPBIND its inner calls (BLIS's cblas_sgemm
 * calls sgemm_) stay in the library even when the program is linked with another BLAS. Sanitizers cannot work with
 * RTLD_DEEPBIND; under them it is left out. A library that the program uses too is the same copy, with the same thread
 * setting: see cblas_gate.h. While a call with another thread count runs, the program's own calls from other threads
 * see that count. */
#include "ops/gemm/cblas_library.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "src/support.h"

#if defined(__x86_64__)
#define MULTIARCH "/usr/lib/x86_64-linux-gnu/"
#elif defined(__aarch64__)
#define MULTIARCH "/usr/lib/aarch64-linux-gnu/"
#else
#define MULTIARCH "/usr/lib/"
#endif

typedef struct family {
  const char *name;
  const char *files[8]; /* the loader's own search first, then the distribution's folders */
  const char *version, *get_threads, *set_threads;
} family;

static const family families[] = {
    {"openblas",
     {"libopenblas.so.0", "libopenblas.so", MULTIARCH "openblas-pthread/libopenblas.so.0",
      MULTIARCH "openblas-openmp/libopenblas.so.0", MULTIARCH "openblas-serial/libopenblas.so.0"},
     "openblas_get_config",
     "openblas_get_num_threads",
     "openblas_set_num_threads"},
    {"blis",
     {"libblis.so.4", "libblis.so.5", "libblis.so.3", "libblis.so", MULTIARCH "blis-pthread/libblis.so.4",
      MULTIARCH "blis-openmp/libblis.so.4", MULTIARCH "blis-serial/libblis.so.4"},
     "bli_info_get_version_str",
     "bli_thread_get_num_threads",
     "bli_thread_set_num_threads"},
};

static at_cblas libraries[AT_COUNT(families)];
static int library_count; /* set once, with libraries, by load_all */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int open_flags(void) {
  bool sanitized = dlsym(RTLD_DEFAULT, "__asan_init") != NULL || dlsym(RTLD_DEFAULT, "__tsan_init") != NULL ||
                   dlsym(RTLD_DEFAULT, "__msan_init") != NULL;
  return RTLD_NOW | RTLD_LOCAL | (sanitized ? 0 : RTLD_DEEPBIND);
}

/* "name-version" from the first word of `text` that starts with a digit; configurations are made of it, so no comma
 * gets in. */
static void make_id(char *out, size_t size, const char *name, const char *text) {
  size_t at = 0;
  at_append(out, size, &at, "%s-", name);
  const char *word = text;
  while (*word != '\0' && !isdigit((unsigned char)*word)) word++;
  for (; isalnum((unsigned char)*word) || *word == '.' || *word == '-'; word++) at_append(out, size, &at, "%c", *word);
}

/* Sizes and dimensions are passed as int: builds with 64-bit integers are left alone. */
static bool wide_integers(const at_library *library, const char *config) {
  int (*size)(void) = NULL;
  if (at_library_function(library, "bli_info_get_blas_int_type_size", &size)) return size() != 32;
  return strstr(config, "USE64BITINT") != NULL;
}

/* BLIS up to 1: github.com/flame/blis issues 635 and 821. */
static bool overreads(const family *f, const char *id) {
  return strcmp(f->name, "blis") == 0 && strtol(id + sizeof "blis", NULL, 10) < 2;
}

/* Only a library that has the plain names itself: one with other names (those that packages for Python bring along) may
 * have other integers, and one that passes calls on is not what computes. */
static bool take(at_cblas *out, const family *f, const at_library *library) {
  const char *(*version)(void) = NULL;
  int (*get_threads)(void) = NULL;
  void (*set_threads)(int) = NULL;
  if (!at_library_function(library, f->version, &version) || !at_library_owns(library, "cblas_sgemm") ||
      !at_library_owns(library, "cblas_dgemm"))
    return false;
  const char *text = version();
  if (text == NULL || wide_integers(library, text)) return false;
  out->library = *library;
  (void)at_library_function(library, "cblas_sgemm", &out->sgemm);
  (void)at_library_function(library, "cblas_dgemm", &out->dgemm);
  (void)at_library_function(library, f->set_threads, &set_threads);
  if (!at_library_function(library, f->get_threads, &get_threads)) set_threads = NULL;
  make_id(out->id, sizeof out->id, f->name, text);
  out->f32_overreads = overreads(f, out->id);
  out->default_threads = get_threads != NULL && get_threads() > 1 ? get_threads() : 1;
  at_cblas_gate_init(&out->gate, get_threads, set_threads);
  return true;
}

static bool may_be_blas(const char *file) {
  return strstr(file, "blas") != NULL || strstr(file, "blis") != NULL;
}

typedef struct candidate {
  at_cblas *out;
  const family *family;
} candidate;

static bool take_loaded(const at_library *library, void *user) {
  const candidate *c = user;
  return take(c->out, c->family, library);
}

/* The copy that the program has loaded, however it did that; else the first that is found. */
static bool load_one(at_cblas *out, const family *f, int flags) {
  at_library library;
  candidate c = {out, f};
  if (at_library_open_loaded(&library, may_be_blas, take_loaded, &c)) return true;
  for (size_t j = 0; j < AT_COUNT(f->files) && f->files[j] != NULL; j++) {
    if (!at_library_open(&library, f->files[j], flags)) continue;
    if (take(out, f, &library)) return true;
    at_library_close(&library);
  }
  return false;
}

static void after_fork(void) {
  for (int i = 0; i < library_count; i++) at_cblas_gate_after_fork(&libraries[i].gate);
}

static void load_all(void) {
  int flags = open_flags(), count = 0;
  for (size_t i = 0; i < AT_COUNT(families); i++)
    if (load_one(&libraries[count], &families[i], flags)) count++;
  library_count = count;
  if (count > 0) pthread_atfork(NULL, NULL, after_fork);
}

int at_cblas_count(void) {
  pthread_once(&once, load_all);
  return library_count;
}

at_cblas *at_cblas_at(int index) {
  return index >= 0 && index < at_cblas_count() ? &libraries[index] : NULL;
}

at_cblas *at_cblas_find(const char *id) {
  for (int i = 0; i < at_cblas_count(); i++)
    if (strcmp(libraries[i].id, id) == 0) return &libraries[i];
  return NULL;
}

int at_cblas_fingerprint(char *out, size_t size) {
  size_t at = 0;
  bool ok = at_append(out, size, &at, "%s", at_cblas_count() == 0 ? "none" : "");
  for (int i = 0; i < at_cblas_count(); i++)
    ok = at_append(out, size, &at, "%s%s", i > 0 ? " " : "", libraries[i].id) && ok;
  return ok ? 0 : -1;
}

int at_cblas_each(attune_library_fn fn, void *user) {
  int end = 0;
  if (at_cblas_count() == 0)
    return fn(user,
              &(attune_library){"cblas", "", "", 0, "no OpenBLAS or BLIS was found (Debian, Ubuntu: libopenblas0)"});
  for (int i = 0; i < at_cblas_count() && end == 0; i++) {
    char name[sizeof libraries[i].id];
    (void)at_copy_text(name, sizeof name, libraries[i].id); /* "openblas-0.3.21" */
    char *dash = strchr(name, '-');
    if (dash) *dash = '\0';
    const at_library *from = &libraries[i].library;
    end = fn(user, &(attune_library){name, dash ? dash + 1 : "", from->path, from->was_loaded, ""});
  }
  return end;
}
