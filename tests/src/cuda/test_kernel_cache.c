/* SPDX-License-Identifier: Apache-2.0
 * test_kernel_cache.c: compiled kernels in files: what was stored comes back or is a miss; nothing else ever does. */
#include "src/cuda/jit/kernel_cache.h"

#include "tests/support/check.h"
#include "tests/support/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES 1000
#define HEADER 48
#define PROCESSES 4
#define THREADS 4
#define ROUNDS 60
#define KEYS 5

static char root[64];
static at_kernel_cache cache;
static unsigned char code[BYTES];

FIXTURE(set_up) {
  memset(&cache, 0, sizeof cache);
  snprintf(root, sizeof root, "/tmp/attune-kernels-XXXXXX");
  if (!mkdtemp(root)) return -1;
  snprintf(cache.folder, sizeof cache.folder, "%s/deep/er/kernels", root);
  cache.max_bytes = AT_KERNEL_CACHE_BYTES;
  for (int i = 0; i < BYTES; i++) code[i] = (unsigned char)(i * 7 + 1);
  return 0;
}

FIXTURE(tear_down) {
  return folder_remove(root);
}

static at_kernel_key key_of(int number) {
  char text[32];
  snprintf(text, sizeof text, "%d", number);
  const char *parts[] = {"kernel", text};
  return at_kernel_key_of(parts, 2);
}

static void path_of(char out[4200], at_kernel_key key) {
  snprintf(out, 4200, "%s/%016llx%016llx.kernel", cache.folder, (unsigned long long)key.high,
           (unsigned long long)key.low);
}

static void put(int number) {
  assert_null(at_kernel_cache_write(&cache, key_of(number), code, sizeof code));
}

static bool hits(int number) {
  void *bytes = NULL;
  size_t size = 0;
  if (!at_kernel_cache_read(&cache, key_of(number), &bytes, &size)) {
    assert_null(bytes);
    return false;
  }
  assert_int_equal(size, sizeof code);
  assert_memory_equal(bytes, code, size);
  free(bytes);
  return true;
}

static bool is_there(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0;
}

static mode_t mode_of(const char *path) {
  struct stat info;
  assert_int_equal(lstat(path, &info), 0);
  return info.st_mode & 07777;
}

static void there_and_back(void **state) {
  (void)state;
  char path[4200];
  assert_false(hits(1));
  assert_false(is_there(cache.folder)); /* reading makes nothing */
  umask(0);
  put(1);
  umask(022);
  path_of(path, key_of(1));
  assert_int_equal(mode_of(cache.folder), 0700);
  assert_int_equal(mode_of(path), 0600);
  assert_true(hits(1));
  assert_false(hits(2));
  put(1);
  assert_true(hits(1));
  at_kernel_cache_remove(&cache, key_of(1));
  assert_false(hits(1));
  at_kernel_cache_remove(&cache, key_of(1));
}

static void keys_tell_texts_apart(void **state) {
  (void)state;
  const char *lists[][3] = {{"ab", "c", ""}, {"a", "bc", ""}, {"abc", "", ""}, {"", "ab", "c"}, {"ab", "c", "x"}};
  for (size_t i = 0; i < AT_COUNT(lists); i++)
    for (size_t j = 0; j < AT_COUNT(lists); j++) {
      const at_kernel_key x = at_kernel_key_of(lists[i], 3), y = at_kernel_key_of(lists[j], 3);
      assert_int_equal(x.low == y.low && x.high == y.high, i == j);
    }
  const at_kernel_key two = at_kernel_key_of(lists[0], 2), three = at_kernel_key_of(lists[0], 3);
  assert_false(two.low == three.low && two.high == three.high);
}

static unsigned char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  unsigned char *bytes = malloc(2 * BYTES);
  assert_non_null(bytes);
  *size = fread(bytes, 1, 2 * BYTES, file);
  fclose(file);
  return bytes;
}

static void write_file(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, 0600), 0);
}

/* A miss, the bad entry is gone, and the next one takes its place. */
static void expect_recovery(const char *path) {
  assert_false(hits(1));
  assert_false(is_there(path));
  put(1);
  assert_true(hits(1));
}

static void damaged_entries(void **state) {
  (void)state;
  char path[4200];
  size_t size = 0;
  path_of(path, key_of(1));
  put(1);
  unsigned char *good = read_file(path, &size);
  assert_int_equal(size, HEADER + BYTES);
  for (size_t byte = 0; byte < size; byte += byte < HEADER ? 1 : 97) {
    good[byte] ^= (unsigned char)(1u << byte % 8);
    write_file(path, good, size);
    good[byte] ^= (unsigned char)(1u << byte % 8);
    expect_recovery(path);
  }
  for (size_t length = 0; length < size; length += length < HEADER + 2 ? 1 : 101) {
    write_file(path, good, length);
    expect_recovery(path);
  }
  good[size] = 0;
  write_file(path, good, size + 1);
  expect_recovery(path);
  write_file(path, "#!/bin/sh\n", 10);
  expect_recovery(path);
  free(good);
}

/* Another kernel's entry under this name is whole, but not this one. */
static void a_foreign_entry(void **state) {
  (void)state;
  char path[4200], other[4200];
  path_of(path, key_of(1));
  path_of(other, key_of(2));
  put(2);
  assert_int_equal(rename(other, path), 0);
  expect_recovery(path);
}

static void unsafe_entries(void **state) {
  (void)state;
  char path[4200], other[4200];
  path_of(path, key_of(1));
  path_of(other, key_of(2));
  put(1);
  assert_int_equal(chmod(path, 0620), 0);
  expect_recovery(path);
  assert_int_equal(chmod(path, 0602), 0);
  expect_recovery(path);
  assert_int_equal(rename(path, other), 0); /* a good entry, but behind a link */
  assert_int_equal(symlink(other, path), 0);
  expect_recovery(path);
  assert_true(is_there(other));
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkfifo(path, 0600), 0);
  expect_recovery(path);
  if (geteuid() != 0) return;
  assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
  expect_recovery(path);
}

static void unsafe_folders(void **state) {
  (void)state;
  char moved[160];
  put(1);
  assert_int_equal(chmod(cache.folder, 0770), 0);
  assert_false(hits(1));
  assert_non_null(at_kernel_cache_write(&cache, key_of(2), code, sizeof code));
  assert_int_equal(chmod(cache.folder, 0707), 0);
  assert_false(hits(1));
  assert_int_equal(chmod(cache.folder, 0700), 0);
  assert_true(hits(1));
  assert_false(hits(2));
  if (geteuid() == 0) {
    assert_int_equal(chown(cache.folder, 12345, (gid_t)-1), 0);
    assert_false(hits(1));
    assert_non_null(at_kernel_cache_write(&cache, key_of(2), code, sizeof code));
    assert_int_equal(chown(cache.folder, 0, (gid_t)-1), 0);
  }
  snprintf(moved, sizeof moved, "%s/moved", root);
  assert_int_equal(rename(cache.folder, moved), 0);
  assert_int_equal(symlink(moved, cache.folder), 0);
  assert_false(hits(1));
  assert_non_null(at_kernel_cache_write(&cache, key_of(2), code, sizeof code));
  assert_int_equal(unlink(cache.folder), 0);
  write_file(cache.folder, "file", 4);
  assert_false(hits(1));
  assert_non_null(at_kernel_cache_write(&cache, key_of(2), code, sizeof code));
}

static void no_folder(void **state) {
  (void)state;
  at_kernel_cache none = {.folder = "", .max_bytes = AT_KERNEL_CACHE_BYTES},
                  impossible = {.folder = "/proc/nowhere/kernels"};
  void *bytes;
  size_t size;
  impossible.max_bytes = AT_KERNEL_CACHE_BYTES;
  assert_non_null(at_kernel_cache_write(&none, key_of(1), code, sizeof code));
  assert_false(at_kernel_cache_read(&none, key_of(1), &bytes, &size));
  at_kernel_cache_remove(&none, key_of(1));
  assert_non_null(at_kernel_cache_write(&impossible, key_of(1), code, sizeof code));
  assert_false(at_kernel_cache_read(&impossible, key_of(1), &bytes, &size));
}

static void set_age(int number, time_t seconds) {
  char path[4200];
  path_of(path, key_of(number));
  struct timespec times[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void the_oldest_goes_first(void **state) {
  (void)state;
  char leftover[4200], fresh[4200];
  cache.max_bytes = 3 * (HEADER + BYTES) + 10;
  for (int i = 1; i <= 3; i++) {
    put(i);
    set_age(i, 10000 * (4 - i)); /* 1 is the oldest */
  }
  assert_true(hits(1)); /* which makes it the newest */
  snprintf(leftover, sizeof leftover, "%s/.tmp-1-2-3", cache.folder);
  snprintf(fresh, sizeof fresh, "%s/.tmp-4-5-6", cache.folder);
  write_file(leftover, "left", 4);
  write_file(fresh, "mine", 4);
  const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  assert_int_equal(utimensat(AT_FDCWD, leftover, old, 0), 0);
  put(4);
  assert_true(hits(4));
  assert_false(hits(2));
  assert_true(hits(1));
  assert_true(hits(3));
  assert_false(is_there(leftover));
  assert_true(is_there(fresh));
  cache.max_bytes = BYTES;
  assert_non_null(at_kernel_cache_write(&cache, key_of(5), code, sizeof code));
}

/* Readers see whole entries or none while others write, delete and evict. */
static void *work(void *seed) {
  unsigned state = (unsigned)(uintptr_t)seed;
  for (int i = 0; i < ROUNDS; i++) {
    const at_kernel_key key = key_of(rand_r(&state) % KEYS);
    void *bytes = NULL;
    size_t size = 0;
    if (at_kernel_cache_read(&cache, key, &bytes, &size)) {
      const bool whole = size == sizeof code && memcmp(bytes, code, size) == 0;
      free(bytes);
      if (!whole) return NULL;
    } else if (at_kernel_cache_write(&cache, key, code, sizeof code)) {
      return NULL;
    }
    if (rand_r(&state) % 8 == 0) at_kernel_cache_remove(&cache, key);
  }
  return seed;
}

static int count_files(void) {
  int count = 0;
  DIR *listing = opendir(cache.folder);
  assert_non_null(listing);
  for (struct dirent *item = readdir(listing); item; item = readdir(listing))
    count += item->d_name[0] != '.' || strlen(item->d_name) > 2;
  closedir(listing);
  return count;
}

static void processes_at_once(void **state) {
  (void)state;
  cache.max_bytes = (KEYS - 1) * (HEADER + BYTES);
  pid_t children[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i] == 0) _exit(work((void *)(uintptr_t)(i + 1)) ? 0 : 1);
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status = -1;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  assert_true(count_files() <= KEYS - 1); /* and no temporary file is left */
}

static void threads_at_once(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)), 0);
  for (int i = 0; i < THREADS; i++) {
    void *result = NULL;
    assert_int_equal(pthread_join(threads[i], &result), 0);
    assert_non_null(result);
  }
  assert_true(count_files() <= KEYS);
}

/* A child, whose limit no other test meets: SIGXFSZ would end it. */
static void beyond_the_limit_on_file_sizes(void **state) {
  (void)state;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const struct rlimit limit = {.rlim_cur = BYTES / 2, .rlim_max = BYTES / 2};
    void *bytes = NULL;
    size_t size = 0;
    (void)signal(SIGXFSZ, SIG_DFL);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
    if (!at_kernel_cache_write(&cache, key_of(1), code, BYTES)) _exit(2);
    _exit(at_kernel_cache_read(&cache, key_of(1), &bytes, &size) ? 3 : 0);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(count_files(), 0);
}

int main(void) {
#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      EACH(there_and_back),
      EACH(keys_tell_texts_apart),
      EACH(damaged_entries),
      EACH(a_foreign_entry),
      EACH(unsafe_entries),
      EACH(unsafe_folders),
      EACH(no_folder),
      EACH(the_oldest_goes_first),
      EACH(processes_at_once),
      EACH(threads_at_once),
      EACH(beyond_the_limit_on_file_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
