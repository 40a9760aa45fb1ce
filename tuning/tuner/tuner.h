/* SPDX-License-Identifier: Apache-2.0
 * tuner.h: the inside of a tuner. Dispatch reads `plans` without a lock; everything else here is guarded by `lock` or
 * constant. */
#ifndef AT_TUNER_H
#define AT_TUNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "src/process/fork.h"
#include "tuning/measure/sampler.h"
#include "tuning/plans/plan_table.h"
#include "tuning/store/store.h"

#define AT_MAX_DEVICES 64

struct attune_tuner {
  at_plan_table plans;     /* what calls use: first member, the hot path reads it */
  at_plan_table captured;  /* guesses made inside a capture in mode tune, or while a database was busy: kept apart, so
                              that a later call still decides */
  uint64_t id;             /* constant: no other tuner of the process has or had it */
  const at_op *const *ops; /* constant */
  int op_count;
  _Atomic int mode;       /* attune_mode */
  bool mode_fixed;        /* by ATTUNE_OVERRIDE: the program does not change it */
  _Atomic int compile;    /* attune_compile */
  double budget_ns;       /* constant: most for one problem */
  double total_budget_ns; /* constant: most for all; 0: no limit */
  _Atomic int64_t spent_ns;
  attune_measure measure;        /* constant */
  char *user_path, *system_path; /* constant: of the databases; NULL or "": none */
  bool named;                    /* constant: the program or ATTUNE_DB names the first */
  pthread_mutex_t open_lock;     /* held while the databases are opened, and by no fork: the child makes it again */
  atomic_bool opened;            /* they are: at_tuner_open */
  at_store *_Atomic user;        /* NULL: none, or not opened */
  at_store *_Atomic system;
  attune_status database_status; /* of opening it, then of the latest commit; with its message under lock */
  char database_message[512];
  attune_status
      unwritable;        /* constant once opened: why `user` is only read, with the message above; OK: it is written */
  atomic_bool loss_told; /* that what the mode asks for cannot be stored */
  pthread_mutex_t lock;  /* a leaf, held for a moment; the tables' locks too */
  char *fingerprints[AT_MAX_DEVICES];            /* by device index, made once; under lock */
  _Atomic int64_t locked_until_ns;               /* until then no call waits for a database that was locked */
  _Atomic int64_t busy_until_ns[AT_MAX_DEVICES]; /* by device index: until then no call waits for its turn to tune */
  /* By device index; used under tune.c's lock of the device. A child of fork forgets them: their streams' threads are
   * in the parent, and a search may have been changing them. */
  at_timer *timers[AT_MAX_DEVICES];
  at_fork_watch fork;
  _Atomic int64_t flushed_ns;    /* when recorded calls were written last, by the monotonic clock */
  attune_search_options search;  /* how it searches; under lock */
  char *profile;                 /* constant: where ATTUNE_PROFILE wants the profile; NULL: nowhere */
  attune_tuner *next, *previous; /* tuner_create.c's, as the one below */
  bool ending;
};

/* tuner_create.c: a tuner for these ops, options already complete or NULL; ops.c makes attune_tuner_create of it. */
attune_status at_tuner_create(attune_tuner **out, const attune_tuner_options *options, const at_op *const *ops,
                              int op_count);
/* A tuner of attune's own: ATTUNE_OVERRIDE and ATTUNE_PROFILE do not apply to it. */
attune_status at_tuner_create_private(attune_tuner **out, const attune_tuner_options *options, const at_op *const *ops,
                                      int op_count);

/* Opens the databases, unless that was done: at the start, but in mode off, which needs none, by the first call that
 * wants to know what is stored. A locked one is waited for AT_OPEN_WAIT_MS, and tried again when it is used. Without a
 * lock that the log may not be called under. */
enum { AT_OPEN_WAIT_MS = 250 };
void at_tuner_open(attune_tuner *tuner);

/* The op whose name is the first word of `problem`; NULL and a message naming the known ones. */
const at_op *at_tuner_op(const attune_tuner *tuner, const char *problem);

/* The device's part of its fingerprint, made at first use, borrowed for the tuner's life. */
attune_status at_tuner_fingerprint(attune_tuner *tuner, attune_device *device, const char **out);

/* The same if it was made already, else NULL: for use where nothing may be opened. */
const char *at_tuner_fingerprint_known(attune_tuner *tuner, int device_index);

/* The operation of a key; NULL: none of the tuner's. */
const at_op *at_tuner_op_of(const attune_tuner *tuner, const at_key *key);

/* Notes how the latest commit to the user database went; the thread's message says why it failed. */
void at_tuner_database_is(attune_tuner *tuner, attune_status status);

/* How loudly to tell that something could not be stored: the first time as an error, which is heard by default, then as
 * a warning. BUSY, which passes, is a warning too. */
attune_log_level at_tuner_loss_level(attune_tuner *tuner, attune_status status);

/* The user database; NULL: none. */
at_store *at_tuner_store(attune_tuner *tuner);

/* The settings of its searches as they are now. */
attune_search_options at_tuner_search(attune_tuner *tuner);

/* How problems are measured on the device, "cold,graph" ...: part of a winner's key. */
attune_measure at_tuner_measure(const attune_tuner *tuner, const attune_device *device);
const char *at_measure_name(attune_measure measure);

#endif
