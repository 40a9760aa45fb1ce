/* SPDX-License-Identifier: Apache-2.0
 * device_lease.c: locks that belong to an open file description (F_OFD_SETLK): two copies of attune in a process
 * exclude each other too, and closing the file elsewhere does not drop them. A device has two bytes: the second is the
 * lease, the first a gate that the next one in turn holds while it waits, so that a process which releases the lease
 * and wants it again at once comes after those who wait. */
#include "src/device_lease.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/fork.h"
#include "src/settings.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define DEVICES_MAX 65

/* By device index: the open file, +1; 0: none. Guarded by the lock, so that a fork finds every file in the table. */
static int files[DEVICES_MAX];
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void *unused) {
  (void)unused;
  pthread_mutex_lock(&files_lock);
}

/* The child must not keep the parent's lease alive. */
static void after_fork(void *unused, bool child) {
  (void)unused;
  for (int i = 0; i < DEVICES_MAX && child; i++) {
    if (files[i]) (void)close(files[i] - 1);
    files[i] = 0;
  }
  pthread_mutex_unlock(&files_lock);
}

static void watch_forks(void) {
  static at_fork_watch watch = {.before = before_fork, .after = after_fork};
  at_fork_watch_add(&watch);
}

static bool is_ours(const struct stat *info, mode_t kind) {
  return (info->st_mode & S_IFMT) == kind && info->st_uid == geteuid() && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

/* The folder above is made too, unless it must be there: a run-time folder is the system's to make, and in that of
 * another user nothing is made. */
static void make_folder(const char *path, bool above) {
  char parent[4096];
  struct stat info;
  if (!at_copy_text(parent, sizeof parent, path)) return;
  char *slash = strrchr(parent, '/');
  if (!slash || slash == parent) return;
  *slash = '\0';
  if (above) make_folder(parent, true);
  if (!above && (stat(parent, &info) != 0 || info.st_uid != geteuid())) return;
  (void)mkdir(path, 0700);
}

static int open_in(const char *folder, bool above) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  struct stat info;
  if (!folder[0]) return -1;
  int place = open(folder, flags);
  if (place < 0 && errno == ENOENT) {
    make_folder(folder, above);
    place = open(folder, flags);
  }
  if (place < 0) return -1;
  int file = -1;
  if (fstat(place, &info) == 0 && is_ours(&info, S_IFDIR))
    file = openat(place, "devices.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  close(place);
  if (file >= 0 && (fstat(file, &info) != 0 || !is_ours(&info, S_IFREG))) {
    close(file);
    return -1;
  }
  return file;
}

/* -1: there is no safe place for it. */
static int open_file(attune_device *device) {
  at_meeting_places places;
  int file = -1;
  if (device->index < 0 || device->index >= DEVICES_MAX || at_settings_meeting_places(&places) != ATTUNE_OK) return -1;
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&files_lock);
  for (int i = 0; i < 2 && file < 0; i++) file = open_in(places.folder[i], i == 1);
  files[device->index] = file + 1;
  pthread_mutex_unlock(&files_lock);
  return file;
}

static int file_of(const attune_device *device) {
  pthread_mutex_lock(&files_lock);
  const int file = device->index >= 0 && device->index < DEVICES_MAX ? files[device->index] - 1 : -1;
  pthread_mutex_unlock(&files_lock);
  return file;
}

/* `which`: 0 the gate, 1 the lease. EAGAIN: another has it. */
static int set_lock(const attune_device *device, int file, int which, short kind) {
  const uint64_t place = XXH64(device->identity, strlen(device->identity), 0) >> 3;
  struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = (off_t)(2 * place) + which, .l_len = 1};
  if (fcntl(file, F_OFD_SETLK, &lock) == 0) return 0;
  return errno == EACCES ? EAGAIN : errno;
}

/* A lock that the filesystem cannot give keeps nobody away. */
static attune_status take(attune_device *device, int file, int which, attune_status (*wait)(void *user), void *user) {
  for (;;) {
    const int error = set_lock(device, file, which, F_WRLCK);
    if (error != EAGAIN) return ATTUNE_OK;
    attune_status status = at_fail(ATTUNE_BUSY, "another process measures on %s", device->name);
    if (wait) status = wait(user);
    if (status != ATTUNE_OK) return status;
  }
}

attune_status at_device_lease_acquire(attune_device *device, attune_status (*wait)(void *user), void *user) {
  const int file = open_file(device);
  if (file < 0) return ATTUNE_OK;
  attune_status status = take(device, file, 0, wait, user);
  if (status == ATTUNE_OK) status = take(device, file, 1, wait, user);
  (void)set_lock(device, file, 0, F_UNLCK);
  if (status != ATTUNE_OK) at_device_lease_release(device);
  return status;
}

attune_status at_device_lease_try(attune_device *device) {
  return at_device_lease_acquire(device, NULL, NULL);
}

/* Unlocked first: a child of fork that another thread makes just now may hold the file for a moment longer. */
void at_device_lease_release(attune_device *device) {
  const int file = file_of(device);
  if (file < 0) return;
  (void)set_lock(device, file, 0, F_UNLCK);
  (void)set_lock(device, file, 1, F_UNLCK);
  pthread_mutex_lock(&files_lock);
  files[device->index] = 0;
  (void)close(file);
  pthread_mutex_unlock(&files_lock);
}
