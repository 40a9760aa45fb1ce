/* SPDX-License-Identifier: Apache-2.0
 * device_lease.c: locks that belong to an open file description (F_OFD_SETLK): two copies of attune in a process
 * exclude each other too, and closing the file elsewhere does not drop them. A device has a file. Its locks are a gate,
 * which the next one in turn holds while it waits, so that a process which releases the lease and wants it again at
 * once comes after the waiting processes; and the lease, a byte of its own for each generation. The file says which
 * generation holds, who has the lease, who holds the gate, and a number of each that changes at each renewal. A stopped
 * process cannot give its lock back, so whoever takes the lease from it takes the lock of the next generation and
 * writes that into the file; the holder before finds it there when it goes on. The gate gives nothing but an order: one
 * whose holder is stopped, or shows no life, is passed by. A child of fork may keep the locks of a process that is
 * dead, so neither counts then. No clocks are compared: who waits measures for how long that number has not changed.
 * Two that take a lease at the same moment may both come to believe that it was lost, and measure again. */
#include "src/device/device_lease.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/base/settings.h"
#include "src/process/fork.h"
#include "src/process/process.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define DEVICES_MAX 65
#define SHOW_NS 100000000

/* The bytes that are locked lie behind all that is written. */
#define GATE ((off_t)1 << 20)

/* A generation and, behind it, its holder; they are written apart, so that one who lost the lease and does not know it
 * yet does not put the generation back. Zeros in a new file. */
typedef struct holder {
  uint64_t place; /* where the process number means something */
  int64_t pid;    /* 0: free */
  int64_t since;  /* seconds since 1970 */
  uint64_t beat;  /* another number at each renewal */
} holder;

typedef struct record {
  uint64_t generation;
  holder holder;
} record;

/* Behind it the holder of the gate, while it waits. */
#define WAITER_AT ((off_t)sizeof(record))

/* The other processes' lease of a device, as this one saw it. */
typedef struct sighting {
  uint64_t generation, beat;
  int64_t since_ns;   /* since when each check saw them so; 0: it was free */
  int64_t stopped_ns; /* and the holder stopped; 0: it was not */
  int64_t gate_ns;    /* the gate was another's, of this number; 0: it was not */
  uint64_t gate_beat;
} sighting;

/* By device index, for the thread that the device's lease belongs to or that wants it. */
static sighting sightings[DEVICES_MAX];
static uint64_t generations[DEVICES_MAX]; /* of the lease that is held */

/* By device index: the open file, +1; 0: none. Guarded by the lock, so that a fork finds every file in the table. */
static int files[DEVICES_MAX];
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The child must not keep the parent's lease alive. */
static void after_fork(void *unused, bool child) {
  (void)unused;
  for (int i = 0; i < DEVICES_MAX && child; i++) {
    if (files[i]) (void)close(files[i] - 1);
    files[i] = 0;
  }
}

static void watch_forks(void) {
  static at_fork_watch watch = {.lock = &files_lock, .after = after_fork};
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

static int open_in(const char *folder, const char *name, bool above) {
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
    file = openat(place, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
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
  char name[48];
  int file = -1;
  (void)snprintf(name, sizeof name, "device-%016llx.lock",
                 (unsigned long long)XXH64(device->identity, strlen(device->identity), 0));
  if (device->index < 0 || device->index >= DEVICES_MAX || at_settings_meeting_places(&places) != ATTUNE_OK) return -1;
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&files_lock);
  for (int i = 0; i < 2 && file < 0; i++) file = open_in(places.folder[i], name, i == 1);
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

static void close_file(const attune_device *device, int file) {
  pthread_mutex_lock(&files_lock);
  files[device->index] = 0;
  (void)close(file);
  pthread_mutex_unlock(&files_lock);
}

/* EAGAIN: another has it. */
static int set_lock(int file, off_t byte, short kind) {
  struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
  if (fcntl(file, F_OFD_SETLK, &lock) == 0) return 0;
  return errno == EACCES ? EAGAIN : errno;
}

static off_t lease_byte(uint64_t generation) {
  return GATE + 1 + (off_t)(generation & 0xffffffff);
}

static record read_record(int file) {
  record r = {0};
  if (pread(file, &r, sizeof r, 0) != (ssize_t)sizeof r) r = (record){0};
  return r;
}

static void write_generation(int file, uint64_t generation) {
  (void)!pwrite(file, &generation, sizeof generation, offsetof(record, generation));
}

static holder read_waiter(int file) {
  holder h = {0};
  if (pread(file, &h, sizeof h, WAITER_AT) != (ssize_t)sizeof h) h = (holder){0};
  return h;
}

static void write_waiter(int file, const holder *h) {
  (void)!pwrite(file, h, sizeof *h, WAITER_AT);
}

static void write_holder(int file, const holder *h) {
  (void)!pwrite(file, h, sizeof *h, offsetof(record, holder));
}

static uint64_t own_place;
static pthread_once_t place_once = PTHREAD_ONCE_INIT;

static void read_own_place(void) {
  char place[AT_PLACE_CHARS];
  at_process_place(place);
  own_place = XXH64(place, strlen(place), 0);
}

static uint64_t this_place(void) {
  pthread_once(&place_once, read_own_place);
  return own_place;
}

/* Never the same number twice, whoever writes it. */
static uint64_t next_beat(void) {
  const uint64_t parts[] = {(uint64_t)at_now_ns(), (uint64_t)getpid()};
  return XXH64(parts, sizeof parts, 0) | 1;
}

static bool is_stopped(const holder *h) {
  return h->pid > 0 && h->place == this_place() && at_process_stopped(h->pid);
}

static bool is_gone(const holder *h) {
  return h->pid > 0 && h->place == this_place() && at_process_gone(h->pid);
}

static const char *place_text(const holder *h) {
  return h->place == this_place() ? "" : " of another container or machine";
}

static attune_status fail_busy(const attune_device *device, const holder *h) {
  char since[AT_UTC_CHARS];
  if (h->pid < 1 || h->since < 1) return at_fail(ATTUNE_BUSY, "another process is measuring on %s", device->name);
  at_utc_text(since, h->since);
  return at_fail(ATTUNE_BUSY, "another process is measuring on %s: process %lld%s, since %s%s", device->name,
                 (long long)h->pid, place_text(h), since, is_stopped(h) ? "; it is suspended" : "");
}

static attune_status fail_next(const attune_device *device, const holder *h) {
  char since[AT_UTC_CHARS];
  if (h->pid < 1 || h->since < 1) return at_fail(ATTUNE_BUSY, "another process is next to measure on %s", device->name);
  at_utc_text(since, h->since);
  return at_fail(ATTUNE_BUSY, "process %lld%s is next to measure on %s, since %s", (long long)h->pid, place_text(h),
                 device->name, since);
}

static bool is_over(int64_t since_ns, int64_t now, int64_t most_ms) {
  return since_ns && now - since_ns >= most_ms * 1000000;
}

/* Another has the lock of the generation. True: it has not renewed its lease for too long, or never will. */
static bool is_late(sighting *w, const record *r) {
  const int64_t now = at_now_ns();
  if (!r->holder.beat || !w->since_ns || w->generation != r->generation || w->beat != r->holder.beat) {
    w->generation = r->generation;
    w->beat = r->holder.beat;
    w->since_ns = now;
    w->stopped_ns = 0;
  }
  const bool stopped = is_stopped(&r->holder);
  if (is_gone(&r->holder)) return true;
  if (!stopped) w->stopped_ns = 0;
  if (stopped && !w->stopped_ns) w->stopped_ns = now;
  return is_over(w->stopped_ns, now, AT_LEASE_STOPPED_MS) || is_over(w->since_ns, now, AT_LEASE_LATE_MS);
}

static void begin(const attune_device *device, int file, uint64_t generation) {
  const holder me = {this_place(), getpid(), (int64_t)time(NULL), next_beat()};
  write_holder(file, &me);
  generations[device->index] = generation;
  sightings[device->index] = (sighting){0};
}

/* One attempt. EAGAIN: another process has it, see *seen. On a filesystem without locks every attempt succeeds. */
static int look(const attune_device *device, int file, holder *seen) {
  sighting *w = &sightings[device->index];
  const record r = read_record(file);
  *seen = r.holder;
  const int error = set_lock(file, lease_byte(r.generation), F_WRLCK);
  if (error == EAGAIN && !is_late(w, &r)) return EAGAIN;
  uint64_t generation = r.generation;
  if (error == EAGAIN) {
    generation = r.generation + 1;
    if (set_lock(file, lease_byte(generation), F_WRLCK) == EAGAIN) return EAGAIN; /* another was first */
  }
  if (read_record(file).generation != r.generation) {
    (void)set_lock(file, lease_byte(generation), F_UNLCK);
    return EAGAIN;
  }
  if (generation != r.generation) write_generation(file, generation);
  begin(device, file, generation);
  return 0;
}

/* By another; false where that cannot be seen. */
static bool is_leased(int file) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  lock.l_start = lease_byte(read_record(file).generation);
  return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

typedef enum turn { LATER, NEXT, UNORDERED } turn;

/* NEXT: the gate is this process's. UNORDERED: it is that of one which cannot come in: it is gone, stopped, or has not
 * shown for long that it lives. LATER: another is next, *seen. */
static turn pass_gate(const attune_device *device, int file, holder *seen) {
  sighting *w = &sightings[device->index];
  const int64_t now = at_now_ns();
  if (set_lock(file, GATE, F_WRLCK) != EAGAIN) {
    w->gate_ns = 0;
    return NEXT;
  }
  *seen = read_waiter(file);
  if (!w->gate_ns || w->gate_beat != seen->beat) w->gate_ns = now;
  w->gate_beat = seen->beat;
  return is_gone(seen) || is_stopped(seen) || is_over(w->gate_ns, now, AT_LEASE_STOPPED_MS) ? UNORDERED : LATER;
}

/* One that waits shows that it lives. */
static void show(int file, int64_t since, int64_t *shown_ns) {
  const int64_t now = at_now_ns();
  if (*shown_ns && now - *shown_ns < SHOW_NS) return;
  *shown_ns = now;
  write_waiter(file, &(holder){this_place(), getpid(), since, next_beat()});
}

static attune_status take(attune_device *device, int file, attune_status (*wait)(void *user), void *user) {
  const int64_t since = (int64_t)time(NULL);
  attune_status status = ATTUNE_OK;
  int64_t shown_ns = 0;
  for (turn t = LATER; status == ATTUNE_OK;) {
    holder seen = {0};
    if (t == LATER) t = pass_gate(device, file, &seen);
    if (t != LATER && look(device, file, &seen) != EAGAIN) break;
    const bool leased = t != LATER || is_leased(file);
    if (t == LATER && leased) seen = read_record(file).holder;
    status = leased ? fail_busy(device, &seen) : fail_next(device, &seen);
    if (wait && t == NEXT) show(file, since, &shown_ns);
    if (wait) status = wait(user);
  }
  if (shown_ns) write_waiter(file, &(holder){0});
  return status;
}

attune_status at_device_lease_acquire(attune_device *device, attune_status (*wait)(void *user), void *user) {
  const int file = open_file(device);
  if (file < 0) return ATTUNE_OK;
  const attune_status status = take(device, file, wait, user);
  (void)set_lock(file, GATE, F_UNLCK);
  if (status != ATTUNE_OK) close_file(device, file);
  return status;
}

attune_status at_device_lease_try(attune_device *device) {
  return at_device_lease_acquire(device, NULL, NULL);
}

attune_status at_device_lease_renew(attune_device *device) {
  const int file = file_of(device);
  if (file < 0) return ATTUNE_OK;
  const record r = read_record(file);
  if (r.generation != generations[device->index])
    return at_fail(ATTUNE_BUSY,
                   "the lease on %s was lost: this process was suspended, or did not renew it within %d s, and process "
                   "%lld took it",
                   device->name, AT_LEASE_LATE_MS / 1000, (long long)r.holder.pid);
  const uint64_t beat = next_beat();
  (void)!pwrite(file, &beat, sizeof beat, offsetof(record, holder) + offsetof(holder, beat));
  return ATTUNE_OK;
}

/* Unlocked first: a child of fork that another thread makes just now may hold the file for a moment longer. */
void at_device_lease_release(attune_device *device) {
  const int file = file_of(device);
  if (file < 0) return;
  const uint64_t generation = generations[device->index];
  if (read_record(file).generation == generation) write_holder(file, &(holder){0});
  (void)set_lock(file, lease_byte(generation), F_UNLCK);
  close_file(device, file);
}
