/* SPDX-License-Identifier: Apache-2.0
 * store_internal.h: what the files of the store share: the open store, its statements, its transactions, its rows. */
#ifndef AT_STORE_INTERNAL_H
#define AT_STORE_INTERNAL_H

#include "tuning/store/store.h"

#include <pthread.h>
#include <sqlite3.h>
#include <sys/types.h>

#define AT_STORE_REAL_MAX 1e18 /* ns: thirty years */
/* How a database is named: messages that ask for another one end so. */
#define AT_STORE_NAMED "ATTUNE_DB, attune --db or the tuner's options"
#define AT_STORE_READ_WAIT_MS 50 /* a reader's patience with a commit in another process */

/* A winner on its way to the database: rows wait in a queue, oldest first, until a transaction wrote them. */
typedef struct at_store_row {
  struct at_store_row *next;
  uint64_t ticket;
  uint64_t key;                     /* hash of the fingerprint's device, problem and measure */
  const char *fingerprint, *family; /* these three behind the trials, no longer than their texts */
  attune_decision *winner;          /* a kept one (decision.h) */
  int trial_count;
  at_trial trials[];
} at_store_row;

/* Every statement there is; store_statements.c has their text. */
typedef enum at_statement {
  AT_SQL_BEGIN,
  AT_SQL_COMMIT,
  AT_SQL_ROLLBACK,
  AT_SQL_ADD_FINGERPRINT,
  AT_SQL_ADD_IMPLEMENTATIONS,
  AT_SQL_PUT,
  AT_SQL_CLEAR_TRIALS,
  AT_SQL_PUT_TRIAL,
  AT_SQL_TRIALS,
  AT_SQL_RECORD,
  AT_SQL_WALK,
  AT_SQL_WALK_FAMILY,
  AT_SQL_WALK_KEY,
  AT_SQL_RECORDED,
  AT_SQL_TOUCH,
  AT_SQL_UNTOUCH,
  AT_SQL_LEASE_READ,
  AT_SQL_LEASE_ALL,
  AT_SQL_LEASE_CLEAR,
  AT_SQL_LEASE_TAKE,
  AT_SQL_LEASE_RENEW,
  AT_SQL_LEASE_DROP,
  AT_SQL_LEASE_DROP_ALL,
  AT_SQL_COUNT
} at_statement;

/* A lease that this store holds. */
typedef struct at_lease {
  struct at_lease *next;
  bool released;     /* its row could not be deleted yet */
  char *fingerprint; /* of the device; behind the problem */
  char problem[];
} at_lease;

/* A holder of a lease that this store met stopped: since when, and which expiry it had then. */
typedef struct at_stopped {
  int64_t pid, expires_ms, since_ns;
} at_stopped;

struct at_store {
  at_store *next; /* among all stores of the process; the list's lock in store_fork.c guards it */
  char *path;
  at_store_access access;
  bool read_only;
  pid_t pid; /* of the process that opened it: a child made by fork must not touch the connection, and opens its own */
  uint64_t token; /* tells this open store from all others, in leases */

  /* Guards the connection and the fields down to the queue. Held for one transaction, never while waiting for another
   * process's transaction to end, except while a commit waits for its readers. */
  pthread_mutex_t lock;
  sqlite3 *db; /* NULL: the database is not there yet */
  sqlite3_stmt *statements[AT_SQL_COUNT];
  int64_t deadline_ns;          /* until when SQLite itself may wait for another connection's lock; 0: not at all */
  int64_t steps_left;           /* what a statement may still do before it is taken for a walk in a damaged tree */
  bool locks_known, locks_work; /* on the filesystem; looked at when it seems locked */
  bool damaged;                 /* SQLite met damage: nothing is written any more */
  bool moved;                   /* the file is not at its path any more, as a write found out: to be reopened */
  bool false_row;               /* a row was met that does not match its checksum */
  bool false_row_told;          /* and the log says so */
  bool made;                    /* the database was made new, and that is not logged yet */
  bool leased;                  /* a lease was taken: closing drops what is left */
  at_lease *leases;             /* held */
  at_stopped stopped[4];
  unsigned next_stopped; /* whose place the next one takes */
  int batch;             /* rows in the next transaction: one after a failure, so that retries stay cheap */

  pthread_mutex_t queue_lock; /* guards the fields below; taken alone or after `lock`. Rows are freed under both. */
  at_store_row *first;
  at_store_row *last;
  int queued;
  uint64_t last_ticket;
  uint64_t written_ticket; /* rows up to this one are committed */
};

/* --- store_path.c: may this path be a store? --- */

/* The path of the database with its parent folder resolved, into *out (free it). Refuses a network filesystem (to
 * write), unsafe owners, modes and kinds of files, and a folder that is not there, unless it is the user's own place.
 * *out_there: the file is there and is not empty; otherwise, with `make`, an empty file is there now. */
attune_status at_store_path(char **out, bool *out_there, const char *path, at_store_access access, bool make);

/* "mode 0600, of user 0; this is user 1000"; "" where the file is not seen. */
void at_store_owner(const char *path, char *out, size_t size);

/* Can files be locked in the database's folder? True too where that cannot be found out. */
bool at_store_locks_work(const char *path);

/* The name of the network filesystem whose statfs type this is; NULL for a local one. */
const char *at_store_network_filesystem(uint64_t type);

/* --- store_error.c --- */

/* SQLite says that another has the lock, also where the filesystem knows no locks: then false. */
bool at_store_is_locked(at_store *store);

/* SQLite's text, in which a damaged file may have put anything: what is not printable ASCII as \\xNN; cut where it is
 * long. */
void at_store_escape(char *out, size_t size, const char *text);

/* Translates a SQLite code to a status and a message that names the path, and marks the store damaged where it is. */
attune_status at_store_fail(at_store *store, int code);

/* at_now_ns() in wait_ms milliseconds. */
int64_t at_store_deadline(int64_t wait_ms);

/* Sleeps for a quarter to two milliseconds, unlike other waiters'. */
void at_store_nap(void);

/* --- store_connect.c: under the lock --- */

#define AT_STORE_OPEN_WAIT_MS 5000

/* Opens a connection to the file, or to ":memory:". With `make` an empty file gets its tables, else it stays
 * unconnected. */
attune_status at_store_connect_to(at_store *store, const char *path, bool make, int64_t deadline_ns);
void at_store_disconnect(at_store *store);

/* Opens the connection of a store that has none, unless there is no database yet and not `make`. */
attune_status at_store_connect(at_store *store, bool make, int64_t deadline_ns);

/* The same again in a child made by fork, where the inherited connection was forgotten: with a token of its own. */
attune_status at_store_reconnect(at_store *store);

/* --- store_configure.c --- */

/* Sets limits and safety switches of a new connection. Its busy and progress handlers obey deadline_ns and
 * steps_left. */
int at_store_configure(at_store *store);

/* Gives a statement all its steps again. */
void at_store_steps_again(at_store *store);

/* --- store_fork.c: no transaction of this process is in flight while it forks --- */
attune_status at_store_list_add(at_store *store);
void at_store_list_remove(at_store *store);

/* True in a child made by fork after the store was opened, until the store was opened again there. */
bool at_store_inherited(const at_store *store);

/* Opens an inherited store again, at its first use in the child. True: that failed, and there is no connection. */
bool at_store_forked(at_store *store);
attune_status at_store_fail_forked(const at_store *store);

/* --- store_statements.c --- */

/* The statement, prepared, reset and unbound, into *out; a SQLite code. The lock is held. */
int at_store_statement(at_store *store, at_statement which, sqlite3_stmt **out);
/* Steps a statement that returns no row, and resets it; a SQLite code. */
int at_store_step_done(sqlite3_stmt *statement);
/* Resets after the last row was read; `code` unless it is SQLITE_ROW or SQLITE_DONE, then SQLITE_OK. */
int at_store_step_end(sqlite3_stmt *statement, int code);
/* Binds the device's part of a fingerprint, which must live until the statement has run. */
int at_store_bind_device(sqlite3_stmt *statement, int index, const char *fingerprint);

/* --- store_transaction.c --- */

/* One piece of work on the connection. `work` is run under the lock, more than once if another process is in the
 * way, and returns a SQLite code. `committed`, if any, is called after the commit and still under the lock. */
typedef struct at_store_job {
  bool write;
  int (*work)(at_store *store, void *user);
  void (*committed)(at_store *store, void *user);
  void *user;
} at_store_job;

/* Runs a job in one transaction (BEGIN IMMEDIATE when it writes), trying until deadline_ns, at least once. The lock
 * is not held between two tries. While there is no database, a job that only reads is not run, and that is OK. */
attune_status at_store_run(at_store *store, const at_store_job *job, int64_t deadline_ns);

/* --- store_rows.c; the first and the third: store_fields.c --- */

/* INVALID_ARGUMENT unless `text` is 1..size-1 bytes (0.. when `empty`) without control characters. */
attune_status at_store_check_text(const char *name, const char *text, size_t size, bool empty);
/* A row made of checked copies, into *out (free it). */
attune_status at_store_row_make(at_store_row **out, const char *fingerprint, const char *family,
                                const attune_decision *winner, const at_trial *trials, int trial_count);
/* Of the fingerprint only the device's part counts. */
uint64_t at_store_row_key(const char *fingerprint, const char *problem, const char *measure);
/* Writes the row and its trials; a SQLite code. Inside a transaction. */
int at_store_row_write(at_store *store, const at_store_row *row);
/* The winner alone. */
int at_store_winner_write(at_store *store, const char *fingerprint, const char *family, const attune_decision *winner);

/* --- store_fields.c: one table of a winner's fields --- */

/* True for a time or an error that a row may have. */
bool at_store_real_ok(double value);
/* OK when every field is one that a row may have. */
attune_status at_store_check_fields(const attune_decision *decision);
/* Binds all fields from `index` on, and the row's hash after them; a SQLite code. */
int at_store_bind_fields(sqlite3_stmt *statement, int index, const char *fingerprint, const char *family,
                         const attune_decision *decision);
/* Copies a text column into out[size]; false when it is absent, too long, or has control characters. */
bool at_store_column_text(sqlite3_stmt *statement, int column, char *out, size_t size, bool empty);

/* A winner as it was read; the ids are those of the two texts of its fingerprint. */
typedef struct at_stored_row {
  char fingerprint[AT_FINGERPRINT_CHARS];
  int64_t fingerprint_id, implementations_id;
  char family[AT_FAMILY_CHARS];
  attune_decision decision;
} at_stored_row;

/* Reads the current row of a statement that selects winners. False: damaged, a miss. */
bool at_store_row_read(sqlite3_stmt *statement, at_stored_row *out);

/* --- store_lease.c --- */

/* Drops every lease of this store: for closing. */
void at_store_lease_drop_all(at_store *store, int64_t deadline_ns);

/* --- store_put.c --- */

/* OK, or why nothing can be stored: it is open read-only, or inherited by a child that cannot open it. */
attune_status at_store_check_writable(at_store *store);
/* Writes the queued rows up to `ticket`; 0: all. */
attune_status at_store_flush(at_store *store, uint64_t ticket, int64_t deadline_ns);

#endif
