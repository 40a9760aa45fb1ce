/* SPDX-License-Identifier: Apache-2.0
 * test_store_bad_files.c: files that are no database of ours, unsafe, unwritable or newer: refused with the
 * remedy, and never changed. */
#include "tests/tuning/store/store_fixture.h"
#include "tuning/store/decision.h"

#include "tuning/store/store_internal.h"

#define NOBODY 65534
#define SUPERUSER 0

static void refused(const char *path, at_store_access access, attune_status expected, const char *word) {
  at_store *store = (at_store *)(void *)&store;
  attune_status status = at_store_open(&store, path, access);
  if (status != expected) fail_msg("%s: %s: %s", path, attune_status_string(status), attune_last_message());
  assert_null(store);
  if (!strstr(attune_last_message(), word)) fail_msg("no '%s' in: %s", word, attune_last_message());
}

TEST(kinds_of_files) {
  at_store *store = NULL;
  refused(path_of("absent.db"), AT_STORE_READ_ONLY, ATTUNE_NOT_FOUND, "absent.db");
  refused(path_of("absent/absent.db"), AT_STORE_READ_ONLY, ATTUNE_NOT_FOUND, "absent");
  assert_int_equal(access(path_of("absent"), F_OK), -1);

  assert_int_equal(mkdir(path_of("folder"), 0700), 0);
  refused(path_of("folder"), AT_STORE_READ_WRITE, ATTUNE_BAD_DATA, "directory");
  refused(path_of("folder"), AT_STORE_READ_ONLY, ATTUNE_BAD_DATA, "directory");
  refused(path_of("folder/"), AT_STORE_READ_WRITE, ATTUNE_BAD_DATA, "directory");
  refused("/", AT_STORE_READ_WRITE, ATTUNE_BAD_DATA, "directory");

  assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
  refused(path_of("fifo"), AT_STORE_READ_WRITE, ATTUNE_BAD_DATA, "regular");
  refused(path_of("fifo"), AT_STORE_READ_ONLY, ATTUNE_BAD_DATA, "regular");

  make_database("real.db", 3);
  char target[300];
  (void)snprintf(target, sizeof target, "%s", path_of("real.db"));
  assert_int_equal(symlink(target, path_of("link.db")), 0);
  refused(path_of("link.db"), AT_STORE_READ_WRITE, ATTUNE_PERMISSION, "symbolic link");
  at_store *read = NULL;
  OK(at_store_open(&read, path_of("link.db"), AT_STORE_READ_ONLY));
  at_store_close(read);
  assert_int_equal(symlink("nowhere.db", path_of("dangling.db")), 0);
  refused(path_of("dangling.db"), AT_STORE_READ_WRITE, ATTUNE_PERMISSION, "symbolic link");
  refused(path_of("dangling.db"), AT_STORE_READ_ONLY, ATTUNE_NOT_FOUND, "dangling.db");
  assert_int_equal(access(path_of("nowhere.db"), F_OK), -1);
  assert_int_equal(symlink(target, path_of("folder/a.db-journal")), 0);
  refused(path_of("folder/a.db"), AT_STORE_READ_WRITE, ATTUNE_PERMISSION, "a.db-journal");

  refused(path_of("real.db/below.db"), AT_STORE_READ_WRITE, ATTUNE_BAD_DATA, "real.db");
  assert_int_equal(symlink("folder", path_of("way")), 0); /* a link on the way to the file is the user's own affair */
  assert_int_equal(at_store_open(&store, path_of("way/b.db"), AT_STORE_READ_WRITE), ATTUNE_OK);
  put_number(store, 1);
  at_store_close(store);
  assert_int_equal(access(path_of("folder/b.db"), F_OK), 0);

  write_file(path_of("empty.db"), "", 0);
  refused(path_of("empty.db"), AT_STORE_READ_ONLY, ATTUNE_NOT_FOUND, "empty");
  make_database("empty.db", 1);
  refused(path_of("absent/absent.db"), AT_STORE_READ_WRITE, ATTUNE_NOT_FOUND, "absent of the tuning database");
  assert_int_equal(access(path_of("absent"), F_OK), -1);
  static const int sizes[] = {1, 2, 100, 511};
  for (size_t i = 0; i < AT_COUNT(sizes); i++) {
    static const char zeros[512];
    write_file(path_of("short.db"), zeros, (size_t)sizes[i]);
    refused(path_of("short.db"), AT_STORE_READ_WRITE, ATTUNE_BAD_DATA, "not a tuning database");
    refused(path_of("short.db"), AT_STORE_READ_ONLY, ATTUNE_BAD_DATA, "not a tuning database");
    refused(path_of("short.db"), AT_STORE_OWN, ATTUNE_BAD_DATA, "not a tuning database");
    assert_unchanged(path_of("short.db"), (const unsigned char *)zeros, (size_t)sizes[i]);
  }
  char *name = malloc(5000);
  assert_non_null(name);
  memset(name, 'x', 4999);
  name[4999] = '\0';
  refused(name, AT_STORE_READ_WRITE, ATTUNE_INVALID_ARGUMENT, "should be shorter");
  free(name);
}

TEST(unsafe_modes) {
  make_database("tuning.db", 3);
  static const mode_t unsafe[] = {0666, 0620, 0602};
  for (size_t i = 0; i < AT_COUNT(unsafe); i++) {
    assert_int_equal(chmod(path_of("tuning.db"), unsafe[i]), 0);
    refused(path_of("tuning.db"), AT_STORE_READ_WRITE, ATTUNE_PERMISSION, "chmod");
    refused(path_of("tuning.db"), AT_STORE_READ_ONLY, ATTUNE_PERMISSION, "chmod");
  }
  assert_int_equal(chmod(path_of("tuning.db"), 0644), 0);
  make_database("tuning.db", 3);
  assert_int_equal(chmod(folder, 0777), 0);
  refused(path_of("tuning.db"), AT_STORE_READ_WRITE, ATTUNE_PERMISSION, "chmod");
  refused(path_of("new.db"), AT_STORE_READ_WRITE, ATTUNE_PERMISSION, "chmod");
  assert_int_equal(chmod(folder, 01777), 0); /* as /tmp */
  make_database("tuning.db", 3);
  if (geteuid() != SUPERUSER) return;
  assert_int_equal(chown(path_of("tuning.db"), NOBODY, NOBODY), 0);
  refused(path_of("tuning.db"), AT_STORE_READ_WRITE, ATTUNE_PERMISSION, "belongs to user 65534");
  refused(path_of("tuning.db"), AT_STORE_READ_ONLY, ATTUNE_PERMISSION, "belongs to user 65534");
  assert_int_equal(chown(path_of("tuning.db"), SUPERUSER, SUPERUSER), 0);
  assert_int_equal(chown(path_of("tuning.db-journal"), NOBODY, NOBODY), 0);
  refused(path_of("tuning.db"), AT_STORE_READ_WRITE, ATTUNE_PERMISSION, "tuning.db-journal belongs");
}

static void child_failed(int line, const char *what) {
  fprintf(stderr, "line %d: %s: %s\n", line, what, attune_last_message());
  _exit(1);
}

#define WANT(condition) ((condition) ? (void)0 : child_failed(__LINE__, #condition))

/* As a user without the superuser's rights. */
static int as_a_user(int number) {
  at_store *store = NULL;
  if (geteuid() == SUPERUSER) WANT(setegid(NOBODY) == 0 && seteuid(NOBODY) == 0);
  WANT(at_store_open(&store, path_of("own.db"), AT_STORE_READ_WRITE) == ATTUNE_OK);
  attune_decision d = winner_of(number), found;
  WANT(at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 1000) == ATTUNE_OK);
  at_store_close(store);

  WANT(chmod(path_of("own.db"), 0400) == 0);
  WANT(at_store_open(&store, path_of("own.db"), AT_STORE_READ_WRITE) == ATTUNE_PERMISSION);
  WANT(at_store_open(&store, path_of("own.db"), AT_STORE_READ_ONLY) == ATTUNE_OK);
  WANT(find_number(store, number, &found) == ATTUNE_OK);
  at_store_close(store);
  WANT(chmod(path_of("own.db"), 0000) == 0);
  WANT(at_store_open(&store, path_of("own.db"), AT_STORE_READ_ONLY) == ATTUNE_PERMISSION);
  WANT(chmod(path_of("own.db"), 0600) == 0);

  WANT(chmod(folder, 0500) == 0); /* the file could be written, but no journal made beside it */
  WANT(at_store_open(&store, path_of("own.db"), AT_STORE_READ_WRITE) == ATTUNE_PERMISSION);
  WANT(at_store_open(&store, path_of("new.db"), AT_STORE_READ_WRITE) == ATTUNE_PERMISSION);
  WANT(at_store_open(&store, path_of("new/new.db"), AT_STORE_OWN) == ATTUNE_PERMISSION);
  WANT(at_store_open(&store, path_of("new/er/new.db"), AT_STORE_OWN) == ATTUNE_PERMISSION);
  WANT(at_store_open(&store, path_of("own.db"), AT_STORE_READ_ONLY) == ATTUNE_OK);
  WANT(find_number(store, number, &found) == ATTUNE_OK);
  at_store_close(store);
  WANT(chmod(folder, 0700) == 0);

  /* The folder is closed while the store is open: the row stays in memory until it can be written. */
  WANT(unlink(path_of("own.db-journal")) == 0);
  WANT(at_store_open(&store, path_of("own.db"), AT_STORE_READ_WRITE) == ATTUNE_OK);
  WANT(chmod(folder, 0500) == 0);
  d = winner_of(number + 1);
  attune_status status = at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 100);
  WANT(status == ATTUNE_PERMISSION || status == ATTUNE_IO_ERROR);
  WANT(find_number(store, number + 1, &found) == ATTUNE_OK);
  WANT(chmod(folder, 0700) == 0);
  at_store_close(store);
  WANT(at_store_open(&store, path_of("own.db"), AT_STORE_READ_ONLY) == ATTUNE_OK);
  WANT(find_number(store, number + 1, &found) == ATTUNE_OK);
  at_store_close(store);
  return 0;
}

static int reads_the_superusers(int number) {
  at_store *store = NULL;
  attune_decision found;
  WANT(setegid(NOBODY) == 0 && seteuid(NOBODY) == 0);
  WANT(at_store_open(&store, path_of("system.db"), AT_STORE_READ_WRITE) == ATTUNE_PERMISSION);
  WANT(at_store_open(&store, path_of("system.db"), AT_STORE_READ_ONLY) == ATTUNE_OK);
  WANT(find_number(store, number, &found) == ATTUNE_OK);
  at_store_close(store);
  /* As a container's user often meets it: the message has what the system said, mode and owners. */
  at_store_access both[] = {AT_STORE_READ_ONLY, AT_STORE_READ_WRITE};
  for (size_t i = 0; i < AT_COUNT(both); i++) {
    WANT(at_store_open(&store, path_of("closed.db"), both[i]) == ATTUNE_PERMISSION);
    WANT(strstr(attune_last_message(), "closed.db"));
    WANT(strstr(attune_last_message(), "user 0"));
    WANT(!strstr(attune_last_message(), "write-ahead"));
    WANT(both[i] != AT_STORE_READ_ONLY ||
         strstr(attune_last_message(), "Permission denied (mode 0600, of user 0; this is"));
  }
  return 0;
}

static int meets_an_open_folder(int number) {
  at_store *store = NULL;
  (void)number;
  WANT(setegid(NOBODY) == 0 && seteuid(NOBODY) == 0);
  WANT(at_store_open(&store, path_of("open/own.db"), AT_STORE_READ_WRITE) == ATTUNE_PERMISSION);
  WANT(strstr(attune_last_message(), "mode 0777, of user 0; this is user"));
  WANT(strstr(attune_last_message(), "name a file in a folder of this user"));
  WANT(!strstr(attune_last_message(), "chmod")); /* which is not this user's to do */
  return 0;
}

TEST(without_rights) {
  if (geteuid() == SUPERUSER) {
    make_database("system.db", 3);
    assert_int_equal(chmod(path_of("system.db"), 0644), 0);
    assert_int_equal(chown(folder, NOBODY, NOBODY), 0);
    make_database("closed.db", 3);
    assert_int_equal(chmod(path_of("closed.db"), 0600), 0);
    assert_int_equal(wait_for(spawn(reads_the_superusers, 2)), 0);
    assert_int_equal(mkdir(path_of("open"), 0777), 0);
    assert_int_equal(chmod(path_of("open"), 0777), 0);
    assert_int_equal(wait_for(spawn(meets_an_open_folder, 0)), 0);
  }
  assert_int_equal(wait_for(spawn(as_a_user, 7)), 0);
}

/* Each is refused both ways, with the word, and left as it was. */
static void refused_unchanged(const char *path, const char *word) {
  size_t size;
  unsigned char *bytes = read_file(path, &size);
  refused(path, AT_STORE_READ_WRITE, ATTUNE_BAD_DATA, word);
  refused(path, AT_STORE_READ_ONLY, ATTUNE_BAD_DATA, word);
  assert_unchanged(path, bytes, size);
  free(bytes);
}

TEST(foreign_files) {
  static const char text[] =
      "problem,implementation\nthis is a list, not a database, and longer than a header of a hundred bytes, "
      "so that SQLite looks at it\n";
  write_file(path_of("list.csv"), text, sizeof text - 1);
  refused_unchanged(path_of("list.csv"), "list.csv has 127 bytes and is not a tuning database");
  char page[1024]; /* as long as a database may be */
  memset(page, 'a', sizeof page);
  write_file(path_of("text.db"), page, sizeof page);
  refused_unchanged(path_of("text.db"), "text.db is not a tuning database (file is not a database); move it away");
  execute(path_of("other.db"), "CREATE TABLE mail (text); INSERT INTO mail VALUES ('hello');");
  assert_int_equal(chmod(path_of("other.db"), 0600), 0);
  refused_unchanged(path_of("other.db"), "another program's");
  execute(path_of("other.db"), "PRAGMA application_id = 1096045139");
  refused_unchanged(path_of("other.db"), "is a result file of attune bench, not a tuning database");
  execute(path_of("other.db"), "PRAGMA application_id = 12345");
  refused_unchanged(path_of("other.db"), "another program's");

  make_database("newer.db", 2);
  execute(path_of("newer.db"), "PRAGMA user_version = 4");
  refused_unchanged(path_of("newer.db"), "newer attune");
  static const char *const older[] = {"-1", "0", "1", "2"};
  for (size_t i = 0; i < AT_COUNT(older); i++) {
    char sql[64], said[160];
    (void)snprintf(sql, sizeof sql, "PRAGMA user_version = %s", older[i]);
    (void)snprintf(said, sizeof said,
                   "newer.db was made by an older attune (database version %s, this one reads 3) and is left "
                   "unchanged; move it away",
                   older[i]);
    execute(path_of("newer.db"), sql);
    refused_unchanged(path_of("newer.db"), said);
  }
  execute(path_of("newer.db"), "PRAGMA user_version = 3");
  make_database("newer.db", 2);

  static const char *const changes[] = {
      "CREATE TRIGGER t AFTER INSERT ON winner BEGIN DELETE FROM winner; END",
      "CREATE VIEW v AS SELECT 1",
      "CREATE TABLE t (x)",
      "DROP INDEX winner_family",
      "ALTER TABLE lease ADD COLUMN x TEXT",
      "DROP TABLE trial",
      "DROP TABLE workload; CREATE VIEW workload AS SELECT 1",
  };
  for (size_t i = 0; i < AT_COUNT(changes); i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "changed%zu.db", i);
    make_database(name, 1);
    execute(path_of(name), changes[i]);
    refused_unchanged(path_of(name), "does not have the schema");
  }
  execute(path_of("newer.db"), "VACUUM"); /* the same tables, rewritten */
  make_database("newer.db", 2);
  execute(path_of("newer.db"), "PRAGMA journal_mode = WAL");
  make_database("newer.db", 2);
  assert_int_equal(access(path_of("newer.db-wal"), F_OK), -1);
}

TEST(network_filesystems) {
  assert_string_equal(at_store_network_filesystem(0x6969), "NFS");
  assert_string_equal(at_store_network_filesystem(0xff534d42), "CIFS");
  assert_string_equal(at_store_network_filesystem((uint64_t)(int64_t)(int32_t)0xff534d42),
                      "CIFS"); /* as a signed word */
  assert_string_equal(at_store_network_filesystem(0x0bd00bd0), "Lustre");
  assert_string_equal(at_store_network_filesystem(0x65735546), "FUSE");
  static const uint64_t local[] = {0xef53,     0x58465342, 0x9123683e,
                                   0x01021994, 0x794c7630, 0x2fc12fc1}; /* ext, xfs, btrfs, tmpfs, overlay, zfs */
  for (size_t i = 0; i < AT_COUNT(local); i++) assert_null(at_store_network_filesystem(local[i]));
}

int main(void) {
  return RUN_TESTS_EACH(setup, teardown, NULL, NULL);
}
