/* SPDX-License-Identifier: Apache-2.0
 * store.h: a tuning database: winners, trials, recorded workload, leases. Layers are separate stores; tuner.c stacks
 * them. Every call is safe from any thread; none keeps a lock or a transaction open when it returns or while it calls
 * back. */
#ifndef AT_STORE_H
#define AT_STORE_H

#include <attune/tuner.h>

#include "tuning/store/fingerprint.h"

typedef struct at_store at_store;

/* READ_WRITE: the folder of the path must be there. AT_STORE_OWN: read and written too, at the user's own place, whose
 * folders are made with the database. */
typedef enum at_store_access { AT_STORE_READ_WRITE, AT_STORE_READ_ONLY, AT_STORE_OWN } at_store_access;

/* Opens `path`. A database that may be written and is not there yet is empty; the first write makes it (0600, its
 * folders 0700). Refuses what is not ours, with a status and a message that names the path and the remedy: a directory,
 * another program's file, another version's, unsafe owner or mode, a symbolic link (to write), a damaged file, a folder
 * that is not there or cannot be written. Waits no longer than `wait_ms` for a locked database. BUSY: *out is there all
 * the same (else NULL), and connects when it is used and the database is free; the caller closes it. */
attune_status at_store_open_within(at_store **out, const char *path, at_store_access access, int wait_ms);
void at_store_close(at_store *store);

/* Everywhere below `fingerprint` is a text of fingerprint.h. Rows are kept by all of it: a winner replaces one of the
 * same device, implementations, problem and measure, so that programs with different libraries each have theirs. Calls
 * and leases belong to the device's part alone, and a fingerprint that a walk is asked for means its device's part.
 * Which of several winners holds here is decided in winner.c.
 */

/* The winner for the key, the latest if there are several: of the device, or, where `fingerprint` names
 * implementations, of exactly these. NOT_FOUND when there is none, it is damaged or its row fails a range check. */
attune_status at_store_find(at_store *store, const char *fingerprint, const char *problem, const char *measure,
                            attune_decision *out);

/* One measured candidate of a search. */
typedef struct at_trial {
  char implementation[32];
  char configuration[192];
  double time_ns; /* 0: did not run */
  double spread;
  int samples;
  char verdict[24]; /* "winner", "runner-up", "default", "slower", "wrong", "failed" */
} at_trial;

/* Stores a winner and its trials in one transaction, replacing an older row of the same key. Waits at most `wait_ms`
 * for other writers; on BUSY or IO_ERROR the row is kept in memory, found by at_store_find, and written with the next
 * put or at close. */
attune_status at_store_put(at_store *store, const char *fingerprint, const char *family, const attune_decision *winner,
                           const at_trial *trials, int trial_count, int wait_ms);

/* Up to `most` trials of the winner with this key, whose fingerprint is whole, the best first, into out; *out_count. */
attune_status at_store_trials(at_store *store, const char *fingerprint, const char *problem, const char *measure,
                              at_trial *out, int most, int *out_count);

/* Writes a winner over the row of its key, without its trials, which stay. */
attune_status at_store_doubt(at_store *store, const char *fingerprint, const char *family,
                             const attune_decision *winner, int wait_ms);

/* Calls of one problem on a device. */
typedef struct at_record {
  const char *fingerprint;
  const char *problem;
  int64_t calls;
} at_record;

/* Adds calls to the recorded workload, all in one transaction: all of them or none. */
attune_status at_store_record_all(at_store *store, const at_record *records, size_t count, int wait_ms);
attune_status at_store_record(at_store *store, const char *fingerprint, const char *problem, int64_t count,
                              int wait_ms);

/* Walks. fn's nonzero return ends the walk; it is given the whole fingerprint of each winner. */
typedef int (*at_store_winner_fn)(void *user, const char *fingerprint, const attune_decision *decision);
attune_status at_store_each_winner(at_store *store, at_store_winner_fn fn, void *user);
attune_status at_store_each_of_family(at_store *store, const char *fingerprint, const char *family, const char *measure,
                                      at_store_winner_fn fn, void *user);
/* Every winner of the key, of whatever implementations, in no order; waits no longer than at_store_find. */
attune_status at_store_each_of_key(at_store *store, const char *fingerprint, const char *problem, const char *measure,
                                   at_store_winner_fn fn, void *user);
/* Every winner of the problem, whatever device it was measured on. */
attune_status at_store_each_of_problem(at_store *store, const char *problem, at_store_winner_fn fn, void *user);
typedef int (*at_store_recorded_fn)(void *user, const char *problem, int64_t count);
attune_status at_store_each_recorded(at_store *store, const char *fingerprint, at_store_recorded_fn fn, void *user);

/* Connects to the database if it is there, and reads from it: OK, or why it cannot be used. */
attune_status at_store_try_read(at_store *store, int wait_ms);

/* Makes the database if it is not there and writes to it: OK, or why nothing could be stored. */
attune_status at_store_try_write(at_store *store, int wait_ms);

/* One tuner of a key among processes and threads. acquire: OK, or BUSY (the message names the holder's process) while
 * the holder lives and renews; it waits up to `wait_ms` for a locked database. What the dead, the late and those held
 * who were seen stopped for AT_LEASE_STOPPED_MS is taken over, and their rows are cleared. The late: whose lease has
 * expired, so renew it in time. renew: NOT_FOUND when it is lost. */
enum { AT_STORE_LEASE_WAIT_MS = 500 };
attune_status at_store_lease_acquire(at_store *store, const char *fingerprint, const char *problem, int64_t lifetime_ms,
                                     int wait_ms);
attune_status at_store_lease_renew(at_store *store, const char *fingerprint, const char *problem, int64_t lifetime_ms);
void at_store_lease_release(at_store *store, const char *fingerprint, const char *problem);

#endif
