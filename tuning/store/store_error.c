/* SPDX-License-Identifier: Apache-2.0
 * store_error.c: what SQLite's codes mean, and until when a call waits. */
#include "tuning/store/store_internal.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

int64_t at_store_deadline(int64_t wait_ms) {
  if (wait_ms < 0) wait_ms = 0;
  if (wait_ms > 3600000) wait_ms = 3600000;
  return at_now_ns() + wait_ms * 1000000;
}

void at_store_nap(void) {
  struct timespec time = {0, 250000 + (long)((uint64_t)at_now_ns() * 2654435761u % 1750000u)};
  (void)nanosleep(&time, NULL);
}

/* The system's error, with the mode and the owner of the file and of its folder. */
static attune_status fail_open(const at_store *store, const char *reason, const char *remedy) {
  char text[128], file[96], folder[PATH_MAX], above[96];
  const int error = sqlite3_system_errno(store->db);
  at_store_owner(store->path, file, sizeof file);
  above[0] = '\0';
  if (at_copy_text(folder, sizeof folder, store->path) && strrchr(folder, '/') && strrchr(folder, '/') != folder) {
    *strrchr(folder, '/') = '\0';
    at_store_owner(folder, above, sizeof above);
  }
  return at_fail(error == EACCES || error == EPERM || error == EROFS ? ATTUNE_PERMISSION : ATTUNE_IO_ERROR,
                 "%s: %s: %s (the file has %s; its folder has %s); %s", store->path, reason,
                 error ? strerror_r(error, text, sizeof text) : "no reason given", file[0] ? file : "no mode",
                 above[0] ? above : "no mode", remedy);
}

/* Readers of a write-ahead log write files next to the database. attune makes none, but other programs can. */
static attune_status cannot_read_here(const at_store *store) {
  char text[128];
  const int error = sqlite3_system_errno(store->db);
  return at_fail(ATTUNE_PERMISSION,
                 "%s cannot be read because its folder is not writable%s%s; if another program gave it a write-ahead "
                 "log, run PRAGMA journal_mode = DELETE on it where its folder is writable",
                 store->path, error ? ": " : "", error ? strerror_r(error, text, sizeof text) : "");
}

bool at_store_is_locked(at_store *store) {
  if (!store->locks_known) store->locks_work = at_store_locks_work(store->path);
  store->locks_known = true;
  return store->locks_work;
}

static attune_status fail_busy(at_store *store) {
  if (!at_store_is_locked(store))
    return at_fail(ATTUNE_UNSUPPORTED,
                   "%s is on a filesystem without file locks; name a file on a local disk with " AT_STORE_NAMED,
                   store->path);
  return at_fail(ATTUNE_BUSY, "%s is in use by another thread or process; try again", store->path);
}

void at_store_escape(char *out, size_t size, const char *text) {
  size_t at = 0;
  *out = '\0';
  for (const unsigned char *c = (const unsigned char *)text; *c; c++)
    if (!at_append(out, size, &at, *c >= ' ' && *c < 0x7f ? "%c" : "\\x%02x", *c)) return;
}

attune_status at_store_fail(at_store *store, int code) {
  const char *path = store->path;
  struct rlimit limit;
  char reason[256];
  const bool latest = store->db && (sqlite3_extended_errcode(store->db) & 0xff) == (code & 0xff);
  at_store_escape(reason, sizeof reason, latest ? sqlite3_errmsg(store->db) : sqlite3_errstr(code));
  switch (code & 0xff) {
  case SQLITE_BUSY:
  case SQLITE_LOCKED: return fail_busy(store);
  case SQLITE_NOMEM: return at_fail(ATTUNE_OUT_OF_MEMORY, "%s: SQLite has no memory", path);
  case SQLITE_FULL: return at_fail(ATTUNE_IO_ERROR, "%s cannot grow: %s; free space on its filesystem", path, reason);
  case SQLITE_IOERR:
    if (code == SQLITE_IOERR_WRITE && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      return at_fail(ATTUNE_IO_ERROR, "%s: %s; this process may write files of up to %llu bytes (ulimit -f)", path,
                     reason, (unsigned long long)limit.rlim_cur);
    return at_fail(ATTUNE_IO_ERROR, "%s: %s (SQLite code %d)", path, reason, code);
  case SQLITE_NOTADB:
    store->damaged = true;
    return at_fail(ATTUNE_BAD_DATA,
                   "%s is not a tuning database (%s); move it away or name another with " AT_STORE_NAMED, path, reason);
  case SQLITE_CORRUPT:
  case SQLITE_FORMAT:
  case SQLITE_TOOBIG:
  case SQLITE_CONSTRAINT:
  case SQLITE_MISMATCH:
  case SQLITE_INTERRUPT:
  case SQLITE_ERROR: /* the statements are right, so what they work on is not */
    store->damaged = true;
    return at_fail(ATTUNE_BAD_DATA, "%s is damaged (%s); move it away while no program uses it, and tune again", path,
                   reason);
  case SQLITE_CANTOPEN:
    if (store->read_only) return cannot_read_here(store);
    return fail_open(store, reason, "the file and its folder must be writable");
  case SQLITE_READONLY:
    if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY)
      return at_fail(ATTUNE_PERMISSION,
                     "%s contains an unfinished write that must be undone first; open it once (attune show) where its "
                     "folder is writable",
                     path);
    if (store->read_only) return cannot_read_here(store);
    return at_fail(ATTUNE_PERMISSION,
                   "%s cannot be written (%s, SQLite code %d); check the permissions of the file and its folder", path,
                   reason, code);
  case SQLITE_PERM:
  case SQLITE_AUTH:
    return at_fail(ATTUNE_PERMISSION,
                   "%s cannot be written (%s, SQLite code %d); check the permissions of the file and its folder", path,
                   reason, code);
  default: return at_fail(ATTUNE_INTERNAL, "%s: %s (SQLite code %d)", path, reason, code);
  }
}
