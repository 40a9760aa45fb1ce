/* SPDX-License-Identifier: Apache-2.0
 * kernel_cache.c: the files of compiled kernels: folder, names, format, reading and writing. Entries appear whole, by
 * renaming, and are checked when read. The folder is opened for every operation: a descriptor kept open might belong to
 * something else by then. */
#include "src/cuda/jit/kernel_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/base/array.h"
#include "src/base/file_limit.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAGIC 0x31306c6e726b7461ull /* "atkrnl01" */
#define NAME_CHARS 48
#define ENTRY_MAX ((uint64_t)64 << 20)
#define TOUCH_SECONDS 3600    /* a hit renews the entry's time at most so often */
#define TEMPORARY_SECONDS 600 /* a temporary file this old was left behind by a process that died */
#define FILES_MAX 65536

typedef struct header {
  uint64_t magic;
  at_kernel_key key;
  uint64_t size;
  uint64_t check_low, check_high; /* of the four words above and the bytes */
} header;

/* One file, for deleting the oldest. */
typedef struct entry {
  char name[NAME_CHARS];
  struct timespec time;
  uint64_t bytes;
} entry;

at_kernel_key at_kernel_key_of(const char *const *parts, int count) {
  XXH3_state_t state;
  (void)XXH3_128bits_reset(&state);
  for (int i = 0; i < count; i++) (void)XXH3_128bits_update(&state, parts[i], strlen(parts[i]) + 1);
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return (at_kernel_key){hash.low64, hash.high64};
}

static void seal(header *h, at_kernel_key key, const void *bytes, size_t size) {
  XXH3_state_t state;
  *h = (header){.magic = MAGIC, .key = key, .size = size};
  (void)XXH3_128bits_reset(&state);
  (void)XXH3_128bits_update(&state, h, offsetof(header, check_low));
  (void)XXH3_128bits_update(&state, bytes, size);
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  h->check_low = hash.low64;
  h->check_high = hash.high64;
}

static void name_of(char out[NAME_CHARS], at_kernel_key key) {
  size_t at = 0;
  (void)at_append(out, NAME_CHARS, &at, "%016llx%016llx.kernel", (unsigned long long)key.high,
                  (unsigned long long)key.low);
}

static bool is_entry_name(const char *name) {
  return strlen(name) == 39 && strcmp(name + 32, ".kernel") == 0;
}
static bool is_temporary_name(const char *name) {
  return strncmp(name, ".tmp-", 5) == 0 && strlen(name) < NAME_CHARS;
}

/* Owned by this user and not writable by others. */
static bool is_safe(const struct stat *info, mode_t kind) {
  return (info->st_mode & S_IFMT) == kind && info->st_uid == geteuid() && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

static void make_folders(const char *path) {
  char folder[sizeof((at_kernel_cache *)NULL)->folder];
  if (!at_copy_text(folder, sizeof folder, path)) return;
  for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    (void)mkdir(folder, 0700);
    *slash = '/';
  }
  (void)mkdir(folder, 0700);
}

/* A descriptor of the folder, or -1 and why. */
static int open_folder(const at_kernel_cache *cache, bool make, const char **why) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  *why = "it has no folder; set ATTUNE_CACHE_DIR";
  if (!cache->folder[0]) return -1;
  int folder = open(cache->folder, flags);
  if (folder < 0 && errno == ENOENT && make) {
    make_folders(cache->folder);
    folder = open(cache->folder, flags);
  }
  *why = "its folder cannot be opened, or is a symbolic link or not a folder";
  if (folder < 0) return -1;
  struct stat info;
  *why = "its folder belongs to another user or is writable by others";
  if (fstat(folder, &info) == 0 && is_safe(&info, S_IFDIR)) return folder;
  close(folder);
  return -1;
}

static bool read_all(int file, void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = read(file, (char *)bytes + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

static bool write_all(int file, const void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t put = write(file, (const char *)bytes + done, size - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += (size_t)put;
  }
  return true;
}

/* The bytes of an open entry, or NULL: not one that this user's attune wrote whole under this key. */
static void *read_entry(int file, at_kernel_key key, size_t *size) {
  struct stat info;
  header found, expected;
  if (fstat(file, &info) != 0 || !is_safe(&info, S_IFREG)) return NULL;
  if (!read_all(file, &found, sizeof found) || found.magic != MAGIC || found.size == 0 || found.size > ENTRY_MAX)
    return NULL;
  if ((uint64_t)info.st_size != sizeof found + found.size) return NULL;
  void *bytes = malloc(found.size);
  if (!bytes) return NULL;
  if (read_all(file, bytes, found.size)) {
    seal(&expected, key, bytes, found.size);
    if (memcmp(&expected, &found, sizeof found) == 0) {
      *size = found.size;
      if (time(NULL) - info.st_mtim.tv_sec > TOUCH_SECONDS) (void)futimens(file, NULL);
      return bytes;
    }
  }
  free(bytes);
  return NULL;
}

bool at_kernel_cache_read(const at_kernel_cache *cache, at_kernel_key key, void **out, size_t *size) {
  const char *why;
  char name[NAME_CHARS];
  *out = NULL;
  const int folder = open_folder(cache, false, &why);
  if (folder < 0) return false;
  name_of(name, key);
  const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  const int error = errno;
  if (file >= 0) {
    *out = read_entry(file, key, size);
    close(file);
  }
  if (!*out && (file >= 0 || error == EACCES || error == ELOOP)) (void)unlinkat(folder, name, 0);
  close(folder);
  return *out != NULL;
}

bool at_kernel_cache_has(const at_kernel_cache *cache, at_kernel_key key) {
  const char *why;
  char name[NAME_CHARS];
  struct stat info;
  const int folder = open_folder(cache, false, &why);
  if (folder < 0) return false;
  name_of(name, key);
  const bool has = fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && is_safe(&info, S_IFREG);
  close(folder);
  return has;
}

static int by_time(const void *a, const void *b) {
  const struct timespec *x = &((const entry *)a)->time, *y = &((const entry *)b)->time;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* The folder's entries; deletes what dead processes left. */
static size_t list_entries(DIR *listing, int folder, entry **out) {
  size_t count = 0, room = 0;
  entry *list = NULL;
  for (struct dirent *item = readdir(listing); item && count < FILES_MAX; item = readdir(listing)) {
    struct stat info;
    const bool temporary = is_temporary_name(item->d_name);
    if (!temporary && !is_entry_name(item->d_name)) continue;
    if (fstatat(folder, item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (temporary) {
      if (time(NULL) - info.st_mtim.tv_sec > TEMPORARY_SECONDS) (void)unlinkat(folder, item->d_name, 0);
      continue;
    }
    if (!AT_ARRAY_ROOM(list, count, room)) break;
    list[count] = (entry){.time = info.st_mtim, .bytes = (uint64_t)info.st_size};
    (void)at_copy_text(list[count++].name, NAME_CHARS, item->d_name);
  }
  *out = list;
  return count;
}

/* Deletes entries, those unused for longest first, until the rest is within the bound. Processes that do so at once
 * delete the same ones. */
static void evict(const at_kernel_cache *cache, int folder) {
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* closedir closes it */
  DIR *listing = copy < 0 ? NULL : fdopendir(copy);
  if (!listing) {
    if (copy >= 0) close(copy);
    return;
  }
  entry *list = NULL;
  uint64_t total = 0;
  const size_t count = list_entries(listing, folder, &list);
  for (size_t i = 0; i < count; i++) total += list[i].bytes;
  if (total > cache->max_bytes && list) qsort(list, count, sizeof *list, by_time);
  for (size_t i = 0; i < count && total > cache->max_bytes; i++) {
    (void)unlinkat(folder, list[i].name, 0);
    total -= list[i].bytes;
  }
  free(list);
  closedir(listing);
}

/* A name that no other writer has: process, and count within it. */
static void temporary_name(char out[NAME_CHARS]) {
  static atomic_uint made;
  size_t at = 0;
  (void)at_append(out, NAME_CHARS, &at, ".tmp-%lx-%x-%llx", (unsigned long)getpid(), atomic_fetch_add(&made, 1u),
                  (unsigned long long)at_now_ns());
}

static const char *write_entry(int folder, at_kernel_key key, const void *bytes, size_t size) {
  char temporary[NAME_CHARS], name[NAME_CHARS];
  header h;
  seal(&h, key, bytes, size);
  name_of(name, key);
  temporary_name(temporary);
  const int file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return "no file can be created in its folder";
  bool ok = write_all(file, &h, sizeof h) && write_all(file, bytes, size) && fsync(file) == 0;
  ok = close(file) == 0 && ok;
  ok = ok && renameat(folder, temporary, folder, name) == 0;
  if (!ok) (void)unlinkat(folder, temporary, 0);
  return ok ? NULL : "a file in its folder cannot be written";
}

const char *at_kernel_cache_write(const at_kernel_cache *cache, at_kernel_key key, const void *bytes, size_t size) {
  const char *why = "the kernel is too large for it";
  if (size == 0 || size > ENTRY_MAX || size + sizeof(header) > cache->max_bytes) return why;
  const int folder = open_folder(cache, true, &why);
  if (folder < 0) return why;
  at_file_limit limit;
  at_file_limit_begin(&limit);
  why = write_entry(folder, key, bytes, size);
  at_file_limit_end(&limit);
  if (!why) evict(cache, folder);
  close(folder);
  return why;
}

void at_kernel_cache_remove(const at_kernel_cache *cache, at_kernel_key key) {
  const char *why;
  char name[NAME_CHARS];
  const int folder = open_folder(cache, false, &why);
  if (folder < 0) return;
  name_of(name, key);
  (void)unlinkat(folder, name, 0);
  close(folder);
}
