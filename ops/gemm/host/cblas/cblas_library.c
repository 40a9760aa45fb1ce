/* SPDX-License-Identifier: Apache-2.0
 * cblas_library.c: finding and loading CBLAS libraries.
 *
 * They export the same names, so each is opened RTLD_LOCAL, and with RTLD_DEEPBIND its inner calls (BLIS's cblas_sgemm
 * calls sgemm_) stay in the library even when the program is linked with another BLAS. Sanitizers cannot work with
 * RTLD_DEEPBIND; under them it is left out. A library that the program uses too is the same copy, with the same thread
 * setting: see cblas_thread_setting.h. While a call with another thread count runs, the program's own calls from other
 * threads see that count. */
#include "ops/gemm/host/cblas/cblas_library.h"

#include <ctype.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "src/base/support.h"
#include "src/host/threads.h"
#include "src/process/exit.h"
#include "src/process/fork.h"
#include "src/process/library.h"
#include "src/process/loading.h"

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
  const char *setting;     /* an int that get_threads returns; NULL: there is none */
  const char *end_threads; /* what it calls itself before a fork; NULL: it keeps no threads */
  size_t thread_bytes; /* address space that each thread and each caller takes, and without which it tries for ever; 0:
                          none */
} family;

static const family families[] = {
    {"openblas",
     {"libopenblas.so.0", "libopenblas.so", MULTIARCH "openblas-pthread/libopenblas.so.0",
      MULTIARCH "openblas-openmp/libopenblas.so.0", MULTIARCH "openblas-serial/libopenblas.so.0"},
     "openblas_get_config",
     "openblas_get_num_threads",
     "openblas_set_num_threads",
     "blas_cpu_number",
     "blas_thread_shutdown_",
     (size_t)136 << 20},
    {"blis",
     {"libblis.so.4", "libblis.so.5", "libblis.so.3", "libblis.so", MULTIARCH "blis-pthread/libblis.so.4",
      MULTIARCH "blis-openmp/libblis.so.4", MULTIARCH "blis-serial/libblis.so.4"},
     "bli_info_get_version_str",
     "bli_thread_get_num_threads",
     "bli_thread_set_num_threads",
     NULL,
     NULL,
     0},
};

enum { SETTLE_NS = 5000000 }; /* what a fork needs to come from its start to the library's function */

static at_cblas libraries[AT_COUNT(families)];
static int (*end_threads[AT_COUNT(families)])(void); /* by library; NULL: nothing to end */
static struct {
  size_t bytes;           /* for each thread and caller; 0: not known */
  void *(*allocate)(int); /* a caller's; NULL: it does not say */
  void (*release)(void *);
} caller_memory[AT_COUNT(families)];          /* by library */
static int library_count;                     /* set once, with libraries, by load_all */
static const family *cramped;                 /* not opened, for it would never come back; NULL: none */
static bool narrow;                           /* a limit on address space is near */
static const family *refused;                 /* could not start its threads; NULL: none */
static bool alone;                            /* what attune opens runs with one thread, for it gets no more */
static int threads_startable, threads_wanted; /* besides one, when that was found */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* dlsym gives an object pointer where a function pointer is meant; POSIX makes the two interchangeable, C needs the
 * copy. */
static void symbol(void *handle, const char *name, void *function_out) {
  void *address = dlsym(handle, name);
  if (!address) (void)dlerror(), (void)dlerror(); /* the program's next is not about this; the second frees the text */
  memcpy(function_out, &address, sizeof address);
}

/* True when `name` of the handle lies in the file that was opened, not in a library it depends on or that was there
 * before. */
static bool owns(void *handle, const char *name) {
  void *address = dlsym(handle, name);
  struct link_map *map = NULL;
  Dl_info info;
  return address != NULL && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL && dladdr(address, &info) != 0 &&
         strcmp(info.dli_fname, map->l_name) == 0;
}

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

static bool load_one(at_cblas *out, const family *f, void *handle, bool one_thread);

typedef struct candidate {
  at_cblas *out;
  const family *family;
} candidate;

static bool may_be_blas(const char *file) {
  return strstr(file, "blas") != NULL || strstr(file, "blis") != NULL;
}

static bool load_candidate(const at_library *library, void *user) {
  const candidate *c = user;
  return load_one(c->out, c->family, library->handle, false);
}

/* The copy that the program has loaded, however it did that. One without the plain names (those that packages for
 * Python bring along) is none of ours. */
static bool load_programs(at_cblas *out, const family *f) {
  at_library library;
  candidate c = {out, f};
  out->was_loaded = at_library_open_loaded(&library, may_be_blas, load_candidate, &c);
  return out->was_loaded;
}

/* Sizes and dimensions are passed as int: builds with 64-bit integers are left alone. */
static bool wide_integers(void *handle, const char *config) {
  int (*size)(void) = NULL;
  symbol(handle, "bli_info_get_blas_int_type_size", &size);
  if (size != NULL) return size() != 32;
  return strstr(config, "USE64BITINT") != NULL;
}

/* BLIS up to 1 reads beyond f32 matrices (github.com/flame/blis issues 635 and 821), and 0.9 loses special values:
 * seen on x86-64 by tests/ops/gemm/reference/test_gemm_ieee_specials.c. */
static bool is_early_blis(const family *f, const char *id) {
  return strcmp(f->name, "blis") == 0 && strtol(id + sizeof "blis", NULL, 10) < 2;
}

/* OpenBLAS built for N threads has memory for 2 N threads and callers, of which its own threads take up to N - 1, and
 * crashes when there are more: so N callers are safe. 0: the library has no bound. */
static int built_for(const char *config) {
  static const char key[] = "MAX_THREADS=";
  const char *found = strstr(config, key);
  const long threads = found ? strtol(found + sizeof key - 1, NULL, 10) : 0;
  return threads > 0 && threads < 0xffff ? (int)threads : 0;
}

static bool load_one(at_cblas *out, const family *f, void *handle, bool one_thread) {
  const char *(*version)(void) = NULL;
  int (*get_threads)(void) = NULL;
  void (*set_threads)(int) = NULL;
  symbol(handle, f->version, &version);
  if (version == NULL || !owns(handle, "cblas_sgemm") || !owns(handle, "cblas_dgemm")) return false;
  const char *text = version();
  if (text == NULL || wide_integers(handle, text)) return false;
  symbol(handle, "cblas_sgemm", &out->sgemm);
  symbol(handle, "cblas_dgemm", &out->dgemm);
  symbol(handle, "cblas_sgemv", &out->sgemv);
  symbol(handle, "cblas_dgemv", &out->dgemv);
  symbol(handle, "cblas_cgemm", &out->cgemm);
  symbol(handle, "cblas_zgemm", &out->zgemm);
  symbol(handle, f->get_threads, &get_threads);
  symbol(handle, f->set_threads, &set_threads);
  make_id(out->id, sizeof out->id, f->name, text);
  out->f32_overreads = out->loses_specials = is_early_blis(f, out->id);
  if (get_threads == NULL) set_threads = NULL;
  if (one_thread) {
    if (set_threads) set_threads(1);
    get_threads = NULL;
    set_threads = NULL;
  }
  out->default_threads = get_threads != NULL && get_threads() > 1 ? get_threads() : 1;
  at_cblas_thread_setting_init(&out->gate, get_threads, set_threads);
  const int *setting = f->setting ? dlsym(handle, f->setting) : NULL;
  if (setting) at_cblas_thread_setting_show(&out->gate, setting);
  if (built_for(text) > 0) at_cblas_thread_setting_bound(&out->gate, built_for(text));
  if (f->end_threads) symbol(handle, f->end_threads, &end_threads[out - libraries]);
  caller_memory[out - libraries].bytes = f->thread_bytes;
  symbol(handle, "blas_memory_alloc", &caller_memory[out - libraries].allocate);
  symbol(handle, "blas_memory_free", &caller_memory[out - libraries].release);
  return true;
}

static _Thread_local bool holding; /* this thread forks, and has held the gates */

static void before_fork(void) {
  holding = true;
  for (int i = 0; i < library_count; i++) at_cblas_thread_setting_hold(&libraries[i].gate);
}

static void after_fork(bool child) {
  for (int i = 0; i < library_count; i++)
    if (child)
      at_cblas_thread_setting_after_fork(&libraries[i].gate);
    else
      at_cblas_thread_setting_release(&libraries[i].gate);
  holding = false;
}

static void after_fork_parent(void) {
  after_fork(false);
}

static void after_fork_child(void) {
  after_fork(true);
}

/* The watch sees the fork, too, that waited until the libraries were open: for that one the functions above came too
 * late, and the libraries' own also. */
static _Thread_local bool late_fork; /* from before to after of one */

static void before_late_fork(void *unused) {
  (void)unused;
  if (holding) return;
  late_fork = true;
  before_fork();
  for (int i = 0; i < library_count; i++)
    if (end_threads[i]) (void)end_threads[i]();
}

static void after_late_fork(void *unused, bool child) {
  (void)unused;
  if (late_fork) after_fork(child);
  late_fork = false;
}

static void before_exit(void) {
  for (int i = 0; i < library_count; i++) at_cblas_thread_setting_end(&libraries[i].gate);
}

enum { THREADS_MOST = 256, SLACK = 2, SPARE = 16 };

static int threads_of_library(void) {
  return at_cblas_cpus() < THREADS_MOST ? at_cblas_cpus() : THREADS_MOST;
}

/* Will it get the threads that it starts, at its opening or at its first product? */
static bool has_threads(void) {
  threads_wanted = threads_of_library() - 1;
  threads_startable = at_cblas_startable(threads_wanted);
  return threads_startable == threads_wanted;
}

/* How many times, `most` at most, there is address space for a thread. One after the other, as it is taken: how much
 * may be mapped at once is another matter. */
static int room_for(size_t bytes, int most) {
  void *maps[2 * THREADS_MOST + SPARE];
  int mapped = 0;
  for (; mapped < most; mapped++) {
    maps[mapped] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (maps[mapped] == MAP_FAILED) break;
  }
  for (int i = 0; i < mapped; i++) (void)munmap(maps[i], bytes);
  return mapped;
}

/* What the program, attune's threads and the C library (64 MiB a thread that allocates) take later counts against the
 * same limit (ulimit -v, ulimit -d). */
static bool is_limited(void) {
  struct rlimit space, data;
  return (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) ||
         (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY);
}

/* BLIS ends the process where malloc fails: under a limit it is opened where much is free. */
#define FREE_UNIT ((size_t)128 << 20)
enum { FREE_LEAST = 16 };

/* Is there room for the threads that it starts? Under a limit much has to be free for it to get threads, for a fork
 * ends them, and each takes its memory again: a thread that cannot tries for ever. With little free it gets none. */
static bool has_room(const family *f) {
  const int threads = threads_of_library(), all = 2 * threads + SPARE, one = 1 + SLACK;
  if (f->thread_bytes == 0) return !is_limited() || room_for(FREE_UNIT, FREE_LEAST) == FREE_LEAST;
  if (!is_limited()) return room_for(f->thread_bytes, threads) == threads;
  const int room = room_for(f->thread_bytes, all);
  narrow = narrow || room < all;
  return room >= one;
}

static size_t wanted_bytes(const family *f) {
  return f->thread_bytes * (size_t)(is_limited() ? 1 + SLACK : threads_of_library());
}

/* Under a limit it takes now what memory it needs for its threads, by a product of all of them, and for its callers;
 * more callers than that wait for each other. */
static void take_memory(int index) {
  enum { SIZE = 256 };
  at_cblas *library = &libraries[index];
  const size_t bytes = caller_memory[index].bytes;
  const int most = caller_memory[index].allocate && caller_memory[index].release ? threads_of_library() : 1;
  void *taken[THREADS_MOST];
  float *matrix = (bytes || narrow) && is_limited() ? calloc(2 * SIZE * SIZE, sizeof *matrix) : NULL;
  int count = 0;
  if (!matrix) return;
  library->sgemm(102, 111, 111, SIZE, SIZE, SIZE, 1.0f, matrix, SIZE, matrix, SIZE, 0.0f, matrix + SIZE * SIZE, SIZE);
  free(matrix);
  for (; bytes && count < most && most > 1 && (count == 0 || room_for(bytes, SLACK) == SLACK); count++)
    taken[count] = caller_memory[index].allocate(0); /* the first one is there */
  for (int i = 0; i < count; i++) caller_memory[index].release(taken[i]);
  at_cblas_thread_setting_limit(&library->gate, count > 1 ? count : 1);
}

static int open_all(void) {
  if (at_library_none()) return 0;
  int flags = open_flags(), count = 0;
  bool looked = false;
  for (size_t i = 0; i < AT_COUNT(families); i++) {
    const bool room = has_room(&families[i]);
    if ((room || !is_limited()) && load_programs(&libraries[count], &families[i])) {
      count++;
      continue;
    }
    if (!room) {
      if (families[i].thread_bytes) cramped = &families[i];
      continue;
    }
    if (!looked) alone = narrow || !has_threads();
    looked = true;
    for (size_t j = 0; j < AT_COUNT(families[i].files) && families[i].files[j] != NULL; j++) {
      bool failed = false;
      void *handle = at_cblas_open(families[i].files[j], flags, alone, &failed);
      if (failed) {
        refused = &families[i];
        break;
      }
      if (handle == NULL) continue;
      if (load_one(&libraries[count], &families[i], handle, alone)) {
        count++;
        break;
      }
      dlclose(handle);
    }
  }
  return count;
}

/* A fork that began after a library asked for forks and before attune did runs the library's function first, which ends
 * its threads, and that must not happen under calls. No call of attune is inside yet: the threads end here, after those
 * that are ending already, and for a fork that comes to it later there is nothing left to end. A library that the
 * program has loaded may be at work for the program, and is left alone. */
static void settle_forks(void) {
  (void)nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
  for (int i = 0; i < library_count; i++)
    if (end_threads[i] && !libraries[i].was_loaded) (void)end_threads[i]();
}

static const char thread_limits[] = "(ulimit -u, or a limit of the container or service)";

/* Once, in the log: what a user would wonder about when products are slower than they could be. */
static void tell(void) {
  if (refused)
    at_log(ATTUNE_LOG_WARNING, "%s is not used: its threads could not be started %s", refused->name, thread_limits);
  if (cramped)
    at_log(ATTUNE_LOG_WARNING, "%s is not used: it needs %zu MB of address space (ulimit -v)", cramped->name,
           wanted_bytes(cramped) >> 20);
  if (narrow && library_count > 0 && !libraries[0].was_loaded)
    at_log(ATTUNE_LOG_WARNING, "%s runs with one thread: there is too little address space for more (ulimit -v)",
           libraries[0].id);
  else if (alone && library_count > 0 && !libraries[0].was_loaded)
    at_log(ATTUNE_LOG_WARNING, "%s runs with one thread: only %d of its other %d threads can be started %s",
           libraries[0].id, threads_startable, threads_wanted, thread_limits);
}

/* What is asked for after the libraries were opened comes before what they asked for themselves: our `before` functions
 * run in the reverse order of asking, and functions of exit too. */
static void load_all(void) {
  static at_fork_watch watch = {.before = before_late_fork, .after = after_late_fork};
  library_count = at_loading_begin() && !at_exit_begun() ? open_all() : 0;
  if (library_count > 0) {
    at_fork_watch_add(&watch);
    at_fork_functions(before_fork, after_fork_parent, after_fork_child);
    settle_forks();
    for (int i = 0; i < library_count; i++) take_memory(i);
    at_exit_call(before_exit);
    if (at_exit_begun()) before_exit(); /* exit() began in between, and may not have waited */
  }
  at_loading_end();
  tell();
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

static size_t name_chars(const char *id) {
  return strcspn(id, "-");
}

bool at_cblas_depends(const char *id, char *out, size_t size) {
  const size_t chars = id ? name_chars(id) : 0;
  const int count = at_cblas_count();
  size_t at = 0;
  bool ok = true;
  *out = '\0';
  for (int i = 0; i < count; i++) {
    if (id && (name_chars(libraries[i].id) != chars || memcmp(libraries[i].id, id, chars) != 0)) continue;
    ok = at_append(out, size, &at, "%s%s", at > 0 ? " " : "", libraries[i].id) && ok;
  }
  return at > 0 ? ok : at_append(out, size, &at, "%.*s-none", id ? (int)chars : 5, id ? id : "cblas");
}

int at_cblas_each(attune_library_fn fn, void *user) {
  int end = 0;
  if (at_cblas_count() >= 0 && cramped) {
    char note[160];
    (void)snprintf(note, sizeof note, "not opened: it needs %zu MB of address space, and hangs with less (ulimit -v)",
                   wanted_bytes(cramped) >> 20);
    end = fn(user, &(attune_library){cramped->name, "", "", 0, note});
    if (end != 0 || at_cblas_count() == 0) return end;
  }
  if (at_cblas_count() >= 0 && refused) {
    char note[160];
    (void)snprintf(note, sizeof note, "not used: its threads could not be started %s", thread_limits);
    end = fn(user, &(attune_library){refused->name, "", "", 0, note});
    if (end != 0 || at_cblas_count() == 0) return end;
  }
  if (at_cblas_count() == 0)
    return fn(user,
              &(attune_library){"cblas", "", "", 0,
                                at_library_none()
                                    ? "no CBLAS is opened, as the program is linked with -static; link it dynamically"
                                    : "no OpenBLAS or BLIS was found; install one (Debian, Ubuntu: libopenblas0)"});
  for (int i = 0; i < at_cblas_count() && end == 0; i++) {
    char name[sizeof libraries[i].id], path[AT_LIBRARY_PATH];
    (void)at_copy_text(name, sizeof name, libraries[i].id); /* "openblas-0.3.21" */
    char *dash = strchr(name, '-');
    if (dash) *dash = '\0';
    at_library_of((const void *)(uintptr_t)libraries[i].sgemm, path, sizeof path);
    end = fn(user, &(attune_library){name, dash ? dash + 1 : "", path, libraries[i].was_loaded, ""});
  }
  return end;
}
