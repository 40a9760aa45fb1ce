/* SPDX-License-Identifier: Apache-2.0
 * store_path.c: where a database may lie: the kind, owner and mode of its file, its folder and its filesystem. No
 * descriptor of the file is ever opened here: closing it would drop the locks that this process's other connections
 * hold on it. */
#include "tuning/store/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/base/journal.h"

static const struct {
  uint64_t type;
  const char *name;
} network_filesystems[] = {
    {0x6969, "NFS"},          {0x517b, "SMB"},       {0xff534d42, "CIFS"},  {0xfe534d42, "SMB2"},
    {0x0bd00bd0, "Lustre"},   {0x65735546, "FUSE"},  {0x47504653, "GPFS"},  {0x00c36400, "Ceph"},
    {0x5346414f, "AFS"},      {0x6b414653, "AFS"},   {0x73757245, "Coda"},  {0x01021997, "9P"},
    {0x19830326, "BeeGFS"},   {0xaad7aaea, "PanFS"}, {0x7461636f, "OCFS2"}, {0x01161970, "GFS2"},
    {0x20030528, "OrangeFS"}, {0x564c, "NCP"},
};

const char *at_store_network_filesystem(uint64_t type) {
  for (size_t i = 0; i < AT_COUNT(network_filesystems); i++) {
    if (network_filesystems[i].type == (type & 0xffffffff)) return network_filesystems[i].name;
  }
  return NULL;
}

void at_store_owner(const char *path, char *out, size_t size) {
  struct stat info;
  size_t at = 0;
  *out = '\0';
  if (stat(path, &info) != 0) return;
  (void)at_append(out, size, &at, "mode %04o, of user %lu; this is user %lu", (unsigned)(info.st_mode & 07777),
                  (unsigned long)info.st_uid, (unsigned long)geteuid());
}

static attune_status status_of(int error) {
  if (error == EACCES || error == EPERM || error == EROFS) return ATTUNE_PERMISSION;
  if (error == ENOENT) return ATTUNE_NOT_FOUND;
  if (error == ENOTDIR || error == ELOOP || error == EISDIR) return ATTUNE_BAD_DATA;
  if (error == ENAMETOOLONG) return ATTUNE_INVALID_ARGUMENT;
  return error == ENOMEM ? ATTUNE_OUT_OF_MEMORY : ATTUNE_IO_ERROR;
}

static attune_status fail_errno(const char *path, const char *what, int error) {
  char text[128], owner[96];
  const attune_status status = status_of(error);
  at_store_owner(path, owner, sizeof owner);
  if (status == ATTUNE_PERMISSION && owner[0])
    return at_fail(status, "%s cannot be %s: %s (%s); change that, or name another file with " AT_STORE_NAMED, path,
                   what, strerror_r(error, text, sizeof text), owner);
  return at_fail(status, "%s cannot be %s: %s; name another file with " AT_STORE_NAMED, path, what,
                 strerror_r(error, text, sizeof text));
}

/* Makes `folder` (a copy that is restored) and those above it, 0700. */
static attune_status make_folders(char *folder) {
  struct stat info;
  if (stat(folder, &info) == 0) return ATTUNE_OK;
  for (char *slash = strchr(folder + 1, '/');; slash = strchr(slash + 1, '/')) {
    if (slash) *slash = '\0';
    int error = mkdir(folder, 0700) == 0 ? 0 : errno;
    attune_status status = ATTUNE_OK;
    /* A folder that exists answers EEXIST, on some read-only or foreign filesystems another error: stat decides. */
    if (error != 0 && stat(folder, &info) != 0) status = fail_errno(folder, "made", error);
    if (slash) *slash = '/';
    if (status != ATTUNE_OK || !slash) return status;
  }
}

static attune_status check_folder(const char *folder, at_store_access access) {
  struct stat info;
  struct statfs filesystem;
  if (stat(folder, &info) != 0) return fail_errno(folder, "read", errno);
  if (!S_ISDIR(info.st_mode))
    return at_fail(ATTUNE_BAD_DATA, "%s is not a folder; name a file in a folder with " AT_STORE_NAMED, folder);
  if ((info.st_mode & S_IWOTH) && !(info.st_mode & S_ISVTX)) {
    const bool own = info.st_uid == geteuid() || geteuid() == 0;
    return at_fail(ATTUNE_PERMISSION,
                   "%s is writable by all users (mode %04o, of user %lu; this is user %lu), so any of them could put "
                   "another database there; %sname a file in a folder of this user with " AT_STORE_NAMED,
                   folder, (unsigned)(info.st_mode & 07777), (unsigned long)info.st_uid, (unsigned long)geteuid(),
                   own ? "run chmod o-w on it, or " : "");
  }
  if (access == AT_STORE_READ_ONLY) return ATTUNE_OK;
  if (statfs(folder, &filesystem) != 0) return fail_errno(folder, "examined", errno);
  const char *network = at_store_network_filesystem((uint64_t)filesystem.f_type);
  if (network)
    return at_fail(ATTUNE_UNSUPPORTED,
                   "%s is on a network filesystem (%s), whose locks are not safe for a database; name a file on a "
                   "local disk with " AT_STORE_NAMED,
                   folder, network);
  return ATTUNE_OK;
}

/* Of the database and of the files that SQLite would read with it. */
static attune_status check_file(const char *path, at_store_access access) {
  struct stat info;
  if (lstat(path, &info) != 0) return fail_errno(path, "found", errno);
  if (S_ISLNK(info.st_mode))
    return at_fail(ATTUNE_PERMISSION,
                   "%s is a symbolic link, which is followed only to read; give the path of the file itself", path);
  if (S_ISDIR(info.st_mode)) return at_fail(ATTUNE_BAD_DATA, "%s is a directory; should be a file", path);
  if (!S_ISREG(info.st_mode)) return at_fail(ATTUNE_BAD_DATA, "%s is not a regular file; name another file", path);
  if (info.st_uid != geteuid() && !(access == AT_STORE_READ_ONLY && info.st_uid == 0))
    return at_fail(ATTUNE_PERMISSION, "%s belongs to user %lu, not to this one; use your own copy", path,
                   (unsigned long)info.st_uid);
  if (info.st_mode & (S_IWGRP | S_IWOTH))
    return at_fail(ATTUNE_PERMISSION, "%s is writable by other users (mode %04o); run chmod go-w on it", path,
                   (unsigned)(info.st_mode & 07777));
  return ATTUNE_OK;
}

/* Before SQLite sees it, which would delete the file that a journal names. */
static attune_status check_journal(const char *path, const char *journal) {
  struct stat info, own;
  char name[256], shown[AT_SHOWN_CHARS];
  if (lstat(journal, &info) != 0) return ATTUNE_OK;
  if (lstat(path, &own) == 0 && own.st_dev == info.st_dev && own.st_ino == info.st_ino)
    return at_fail(ATTUNE_BAD_DATA, "%s is the database itself by another name; remove it", journal);
  if (!at_journal_names_file(journal, name, sizeof name)) return ATTUNE_OK;
  at_one_line(name);
  return at_fail(ATTUNE_BAD_DATA,
                 "%s names another file (\"%s\"), which SQLite would delete; attune writes no such journal, so another "
                 "program or an attacker made it: move it away, and restore the database from a copy that you trust",
                 journal, at_shown(shown, name));
}

/* SQLite takes a file of one byte for an empty one. */
static attune_status check_size(const char *path, bool *out_there) {
  enum { LEAST = 512 }; /* bytes of the smallest database */
  struct stat info;
  *out_there = false;
  if (lstat(path, &info) != 0) return errno == ENOENT ? ATTUNE_OK : fail_errno(path, "found", errno);
  *out_there = info.st_size > 0;
  if (info.st_size == 0 || info.st_size >= LEAST) return ATTUNE_OK;
  return at_fail(ATTUNE_BAD_DATA,
                 "%s has %lld bytes and is not a tuning database; move it away or name another with " AT_STORE_NAMED,
                 path, (long long)info.st_size);
}

/* Whether the database may be where it is or, when it is not there, may be made. */
static attune_status check_files(const char *path, const char *folder, at_store_access access, bool *out_there) {
  static const char *const beside[] = {"-journal", "-wal", "-shm"};
  attune_status status = check_file(path, access);
  const bool absent = status == ATTUNE_NOT_FOUND && access != AT_STORE_READ_ONLY;
  if (absent) status = ATTUNE_OK;
  if (status == ATTUNE_OK) status = check_size(path, out_there);
  char name[PATH_MAX + 16];
  for (size_t i = 0; i < AT_COUNT(beside) && status == ATTUNE_OK; i++) {
    struct stat info;
    size_t at = 0;
    (void)at_append(name, sizeof name, &at, "%s%s", path, beside[i]);
    if (lstat(name, &info) == 0) status = check_file(name, access);
    if (status == ATTUNE_OK && i == 0) status = check_journal(path, name);
    if (status == ATTUNE_NOT_FOUND) status = ATTUNE_OK; /* its owner finished in between */
  }
  if (status == ATTUNE_OK && !absent && faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
    return fail_errno(path, "read", errno);
  if (status != ATTUNE_OK || access == AT_STORE_READ_ONLY) return status;
  if (!absent && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) return fail_errno(path, "written", errno);
  if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0) return fail_errno(folder, "written", errno);
  return ATTUNE_OK;
}

/* The nearest folder above one that is not there yet: may folders be made in it? */
static attune_status check_above(const char *folder) {
  char *above = strdup(folder);
  if (!above) return fail_errno(folder, "made", ENOMEM);
  struct stat info;
  for (char *slash = strrchr(above, '/'); slash && stat(above, &info) != 0; slash = strrchr(above, '/'))
    slash[slash == above ? 1 : 0] = '\0';
  const int error = faccessat(AT_FDCWD, above, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
  free(above);
  return error == 0 ? ATTUNE_OK : fail_errno(folder, "made", error);
}

static attune_status join(char **out, const char *folder, const char *name) {
  const size_t size = strlen(folder) + strlen(name) + 2;
  size_t at = 0;
  if (size > PATH_MAX - 16) return fail_errno(name, "used", ENAMETOOLONG);
  *out = malloc(size);
  if (!*out) return fail_errno(name, "opened", ENOMEM);
  (void)at_append(*out, size, &at, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
  return ATTUNE_OK;
}

/* `folder` is there, and resolved. */
static attune_status look_in(char **out, bool *out_there, const char *folder, const char *name, at_store_access access,
                             bool make) {
  char *path = NULL;
  attune_status status = check_folder(folder, access);
  if (status == ATTUNE_OK) status = join(&path, folder, name);
  if (status == ATTUNE_OK && make && mknod(path, S_IFREG | 0600, 0) != 0 && errno != EEXIST)
    status = fail_errno(path, "made", errno);
  if (status == ATTUNE_OK) status = check_files(path, folder, access, out_there);
  if (status == ATTUNE_OK && !*out_there && access == AT_STORE_READ_ONLY)
    status = at_fail(ATTUNE_NOT_FOUND,
                     "%s is an empty file; name another database, or fill this one by tuning (attune tune --db)", path);
  if (status != ATTUNE_OK)
    free(path);
  else
    *out = path;
  return status;
}

static bool is_link(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISLNK(info.st_mode) && (info.st_uid == geteuid() || info.st_uid == 0);
}

/* Of a database that is only read, and lies in a folder that is safe, its user's or root's link is followed to the
 * file: that one's name is what SQLite needs, for the journal lies by it. To write the file itself must be named.
 * *found: else NULL. */
static attune_status follow(char **found, const char *folder, const char *name, at_store_access access) {
  char *path = NULL;
  *found = NULL;
  attune_status status = access == AT_STORE_READ_ONLY ? join(&path, folder, name) : ATTUNE_OK;
  if (path && is_link(path)) {
    status = check_folder(folder, access);
    if (status == ATTUNE_OK && !(*found = realpath(path, NULL))) status = fail_errno(path, "read", errno);
  }
  free(path);
  return status;
}

/* `folder` is there, and resolved. */
static attune_status look_behind(char **out, bool *out_there, const char *folder, const char *name,
                                 at_store_access access, bool make) {
  char *file = NULL;
  attune_status status = follow(&file, folder, name, access);
  char *slash = file ? strrchr(file, '/') : NULL;
  if (status != ATTUNE_OK) return status;
  if (!slash) return look_in(out, out_there, folder, name, access, make);
  *slash = '\0';
  status = look_in(out, out_there, slash == file ? "/" : file, slash + 1, access, make);
  free(file);
  return status;
}

/* `folder` and `name` are the two parts of the path. */
static attune_status resolve(char **out, bool *out_there, char *folder, const char *name, at_store_access access,
                             bool make) {
  attune_status status = make && access == AT_STORE_OWN ? make_folders(folder) : ATTUNE_OK;
  if (status != ATTUNE_OK) return status;
  char *real = realpath(folder, NULL); /* SQLite must not follow links, so those above the file are followed here */
  if (real) {
    status = look_behind(out, out_there, real, name, access, make);
    free(real);
    return status;
  }
  if (errno != ENOENT) return fail_errno(folder, "read", errno);
  if (access != AT_STORE_OWN)
    return at_fail(ATTUNE_NOT_FOUND,
                   "the folder %s of the tuning database %s does not exist; create it, or name another", folder, name);
  status = check_above(folder);
  return status == ATTUNE_OK ? join(out, folder, name) : status;
}

attune_status at_store_path(char **out, bool *out_there, const char *path, at_store_access access, bool make) {
  size_t length = strnlen(path, PATH_MAX);
  *out_there = false;
  if (length == 0) return AT_INVALID("the path of the database is empty; should name a file");
  if (length >= PATH_MAX)
    return AT_INVALID("the path of the database has %d bytes or more; should be shorter", PATH_MAX);
  if (path[length - 1] == '/') return at_fail(ATTUNE_BAD_DATA, "%s is a directory; should be a file", path);
  char *folder = strdup(path);
  if (!folder) return fail_errno(path, "opened", ENOMEM);
  char *slash = strrchr(folder, '/');
  const char *name = path;
  if (slash) {
    name = path + (slash - folder) + 1;
    slash[slash == folder ? 1 : 0] = '\0';
  }
  char here[] = ".";
  attune_status status = resolve(out, out_there, slash ? folder : here, name, access, make);
  free(folder);
  return status;
}

/* By a file without a name, where the filesystem can have one; else by one that is gone at once. Not by the database:
 * to close that would drop the locks that this process has on it. */
bool at_store_locks_work(const char *path) {
  char name[PATH_MAX + 16];
  size_t at = 0;
  if (!at_append(name, sizeof name, &at, "%s", path)) return true;
  char *slash = strrchr(name, '/');
  if (!slash) return true;
  *slash = '\0';
  int file = open(name, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) {
    at = (size_t)(slash - name);
    if (!at_append(name, sizeof name, &at, "/.attune-XXXXXX")) return true;
    file = mkostemp(name, O_CLOEXEC);
    if (file >= 0) (void)unlink(name);
  }
  if (file < 0) return true; /* nothing is known */
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  const bool work = fcntl(file, F_SETLK, &lock) == 0;
  (void)close(file);
  return work;
}
