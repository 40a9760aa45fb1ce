/* SPDX-License-Identifier: Apache-2.0
 * tuner.h: the tuner: databases, mode, budget and plans; and what it decided, with the reason. */
#ifndef ATTUNE_TUNER_H
#define ATTUNE_TUNER_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Accuracy levels. strict: IEEE FMA arithmetic of the accumulation type (split-K allowed when its partial sums are kept
 * in that type; where an f16 or bf16 result adds beta C, alpha op(A) op(B) may be rounded to that type first, as
 * cuBLAS's default does). equivalent: other arithmetic with an error bound as good as strict's. reduced: TF32 for f32, partial
 * sums in the output type. Each level permits what the one before it permits. */
typedef enum attune_accuracy { ATTUNE_STRICT = 0, ATTUNE_EQUIVALENT = 1, ATTUNE_REDUCED = 2 } attune_accuracy;

typedef struct attune_contract {
  attune_accuracy accuracy;
  int deterministic;    /* nonzero: the same bits at each run of the same plan on the same device */
  size_t workspace_cap; /* most bytes of workspace an implementation may use; 0 = ATTUNE_WORKSPACE_DEFAULT */
} attune_contract;

#define ATTUNE_CONTRACT_INIT \
  { ATTUNE_STRICT, 0, 0 }
#define ATTUNE_WORKSPACE_DEFAULT ((size_t)64 << 20)

/* What a miss does, a problem with no plan yet. off: the vendor default, nothing is read or stored. cached: the stored
 * winner, else the best guess. record: as cached, and every call is counted and written down for a later tuning run: a
 * problem that has no winner at its first call, all calls at a miss now and then, when the mode changes, when the tuner
 * is destroyed and when the process ends (a child of fork writes its own). tune: measure now. */
typedef enum attune_mode {
  ATTUNE_MODE_OFF = 1,
  ATTUNE_MODE_CACHED = 2,
  ATTUNE_MODE_RECORD = 3,
  ATTUNE_MODE_TUNE = 4
} attune_mode;

/* How candidates are timed; part of a winner's key. 0 = the device's own: cuda cold and graph, host hot and eager. Cold
 * inputs rotate over more than twice the last-level cache; graph replays short work so that launch cost is left out. */
typedef enum attune_measure {
  ATTUNE_MEASURE_AUTO = 0,
  ATTUNE_MEASURE_COLD_GRAPH = 1,
  ATTUNE_MEASURE_COLD_EAGER = 2,
  ATTUNE_MEASURE_HOT_GRAPH = 3,
  ATTUNE_MEASURE_HOT_EAGER = 4
} attune_measure;

/* Options; start from ATTUNE_TUNER_OPTIONS_INIT. A zero field takes the environment's value, then the default. */
typedef struct attune_tuner_options {
  const char *database; /* the user database, read and written; NULL: ATTUNE_DB, then $XDG_DATA_HOME/attune/tuning.db;
                                   "" or ":memory:": none. Made by the first write; the folder of a named one must be
                                   there */
  const char *system_database; /* a read-only layer under it; NULL: none */
  attune_mode mode;            /* 0: ATTUNE_MODE, then cached */
  double budget_ms;            /* most milliseconds to tune one problem; 0: ATTUNE_BUDGET_MS, then what the problem
                                   makes sensible: 420 and 400 calls of the default; half as
                                   long again where noise leaves the choice open */
  double total_budget_ms;      /* most milliseconds to tune in this tuner's life; 0: no limit */
  attune_measure measure;
} attune_tuner_options;

#define ATTUNE_TUNER_OPTIONS_INIT \
  { NULL, NULL, (attune_mode)0, 0.0, 0.0, ATTUNE_MEASURE_AUTO }

/* A new tuner into *out; options NULL: all defaults. The caller destroys it. It finds the plans of the first 32,768
 * problems without a lock; of further ones it keeps the latest 1,024, found under a lock, and decides anew what it does
 * not keep; a plan that lies in a graph of the host stays. A database that cannot be used does not
 * fail the call: the tuner works without it, the log says why, and attune_tuner_database_status returns the reason.
 * Errors: INVALID_ARGUMENT (a bad option or environment variable, named), OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_tuner_create(attune_tuner **out, const attune_tuner_options *options);

/* Releases the tuner and its plans; writes its recorded calls (mode record) and its profile (ATTUNE_PROFILE, profile.h). Work launched with it must be done, plans from attune_gemm_plan_create destroyed.
 * NULL is left alone. */
ATTUNE_API void attune_tuner_destroy(attune_tuner *tuner);

/* OK, or why the user database is not in use, or why the latest winner is not in it but in memory only (NOT_FOUND,
 * PERMISSION, BAD_DATA, IO_ERROR, BUSY ...), with the message of attune_last_message set. OK too when no database was
 * asked for ("" or ":memory:") and when it is not made yet; NOT_FOUND when there is no place for one (no HOME). Any
 * thread. */
ATTUNE_API attune_status attune_tuner_database_status(attune_tuner *tuner);

/* Makes the user database if it is not there yet, and writes to it: OK, or why winners could not be stored, so that a
 * long run may be refused before it measures. OK too when no database was asked for. Errors: those of
 * attune_tuner_database_status. Any thread. */
ATTUNE_API attune_status attune_tuner_database_prepare(attune_tuner *tuner);

/* Changes what a miss does from now on. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_tuner_set_mode(attune_tuner *tuner, attune_mode mode);

/* The present mode; 0 for NULL. Any thread. */
ATTUNE_API attune_mode attune_tuner_get_mode(const attune_tuner *tuner);

/* Where a choice comes from. */
typedef enum attune_source {
  ATTUNE_SOURCE_DEFAULT = 1,   /* the vendor default: nothing is known */
  ATTUNE_SOURCE_NEIGHBOUR = 2, /* the winner of a near problem, by guess */
  ATTUNE_SOURCE_STORED = 3,    /* a winner of the user database */
  ATTUNE_SOURCE_SYSTEM = 4,    /* a winner of the system database */
  ATTUNE_SOURCE_TUNED = 5      /* measured by this tuner */
} attune_source;

/* A problem's text, with the end, is at most this long. */
#define ATTUNE_PROBLEM_CHARS 512

/* A choice and the evidence for it. Times are medians of one call in nanoseconds; 0 where nothing was measured. On the
 * host they are what a program sees: attune's with the cost of its dispatch, the default's that of the vendor's own call
 * with nothing of attune around it, so that the best choice may be slower than the default; and what keeps more CPUs busy
 * than the machine sustains counts as long as it takes with those it does sustain. */
typedef struct attune_decision {
  char problem[ATTUNE_PROBLEM_CHARS];
  char device[16];
  char implementation[32];
  int implementation_version;
  char configuration[192];
  attune_source source;
  double time_ns;
  double spread; /* relative: median absolute deviation / median */
  int samples;
  char default_implementation[32]; /* its name; on the host with the threads it ran with: "host_cblas threads=2" */
  double default_time_ns;
  char runner_up[32];
  char runner_up_configuration[192];
  double runner_up_time_ns;
  char measure[16]; /* "cold,graph" ... */
  int candidates;   /* measured */
  int rejected;     /* failed to run or to verify */
  int disturbed;    /* samples thrown away: throttled or disturbed */
  double max_error; /* of the winner: largest error as a fraction of what the contract allows */
  double tuning_ms;
  int complete;            /* 0: the budget ended before every candidate was looked at; a later run tunes anew */
  int64_t tuned_at;        /* seconds since 1970, 0: not tuned */
  char note[128];          /* in words: why this one */
  double placement_spread; /* relative: how far time_ns moves with where the operands lie, a standard deviation */
  int unsure; /* 1: noise left the choice open, or it was measured by older rules; a later run tunes anew */
} attune_decision;

/* Tunes `problem` (text as attune_gemm_problem_format writes it) on `device` now, whatever the mode, commits the winner
 * and fills *out (may be NULL). A complete and sure winner already stored is returned unmeasured unless `force`. A stored
 * winner stays, is returned, and out->note says so, where the new evidence is weaker: complete and sure is stronger than
 * complete, complete than incomplete, and of equals the new one counts unless its error is clearly larger. budget_ms <=
 * 0: the tuner's. Runs on memory and streams of its own.
 *
 * A problem is measured once: while another process with the same database, or another thread, measures it for an equal
 * device, this call waits for that winner as long as the other lives. One measurement at a time runs on a device,
 * whatever the databases: other threads, and other processes of this user, take turns. Waiting counts as time spent of
 * the tuner's total budget, which ends it.
 *
 * Errors: INVALID_ARGUMENT, UNSUPPORTED, OUT_OF_MEMORY, BUDGET_EXHAUSTED (the tuner's total), BUSY (that total ended
 * while another process still measured; the message names it), DEVICE_ERROR (also once the process ends). Any thread. */
ATTUNE_API attune_status attune_tune(attune_tuner *tuner, attune_device *device, const char *problem, double budget_ms,
                                     int force, attune_decision *out);

/* As attune_tune, but BUSY at once when another process or thread measures the problem now, so that the caller may take
 * another one and come back: its winner will be there then. It still waits for its turn on the device; a signal that
 * the program handles in this thread ends that wait, with BUSY too. Errors: those of attune_tune. Any thread. */
ATTUNE_API attune_status attune_tune_try(attune_tuner *tuner, attune_device *device, const char *problem,
                                         double budget_ms, int force, attune_decision *out);

/* Whether a stored winner still holds. */
typedef enum attune_verdict {
  ATTUNE_VERDICT_HOLDS = 1,
  ATTUNE_VERDICT_GAINS_LESS = 2, /* by more than 3 % and three standard errors less than was stored */
  ATTUNE_VERDICT_SLOWER = 3,     /* than the default, by more than 1 % and three standard errors */
  ATTUNE_VERDICT_WRONG = 4       /* its numbers are outside the contract */
} attune_verdict;

/* A stored winner and what it showed now. Times are medians of one call in nanoseconds. */
typedef struct attune_recheck {
  attune_decision stored;
  double time_ns, default_time_ns;
  double speedup, error; /* default's time over the winner's, paired by round, and its standard error */
  double max_error;      /* largest error as a fraction of what the contract allows */
  int samples;
  attune_verdict verdict;
} attune_recheck;

/* Times the stored winner of `problem` beside the default anew, at fresh placements of the operands, and verifies its
 * numbers on fresh data; for budget_ms (<= 0: as long as is sensible). Stores nothing. Errors: INVALID_ARGUMENT,
 * NOT_FOUND (no winner that holds on this device is stored, or it cannot be run any more), OUT_OF_MEMORY, BUSY (another
 * process measures on the device and does not end), DEVICE_ERROR. Any thread; measures in turns as attune_tune does. */
ATTUNE_API attune_status attune_verify(attune_tuner *tuner, attune_device *device, const char *problem,
                                       double budget_ms, attune_recheck *out);

/* Tunes now, one after the other, the problems that calls in a capture had to guess at because a capture never tunes
 * (mode tune), and that have no winner since; for at most budget_ms in all (<= 0: as long as each makes sensible).
 * *out_tuned (may be NULL): how many were. A graph keeps the choices that it was captured with: capture it anew, or
 * attune_graph_update. Errors: INVALID_ARGUMENT, BUDGET_EXHAUSTED (some are left), and those of attune_tune, at the
 * first problem that fails. Any thread; not in capture. */
ATTUNE_API attune_status attune_tuner_tune_pending(attune_tuner *tuner, double budget_ms, int *out_tuned);

/* Which candidate runs for `problem` on `device`, since when, and by what margin, into *out. Measures nothing. On the
 * host a winner of several threads that ran slower here than the default is set aside until the tuner is destroyed: then
 * the default is told, the winner as the runner-up, and the note says so.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED. Any thread. */
ATTUNE_API attune_status attune_explain(attune_tuner *tuner, attune_device *device, const char *problem,
                                        attune_decision *out);

/* Called for a stored winner, once for each device here that it holds on, one after the other, or once when it holds on
 * none; decision->device names the device. A nonzero return ends the walk. `fingerprint` is the measured machine's;
 * `valid` is nonzero when it is that of a device here. No lock is held. */
typedef int (*attune_winner_fn)(void *user, const attune_decision *decision, const char *fingerprint, int valid);

/* Walks the stored winners of the databases, ordered by problem. Errors: INVALID_ARGUMENT, BAD_DATA, IO_ERROR. Any
 * thread. */
ATTUNE_API attune_status attune_tuner_winners(attune_tuner *tuner, attune_winner_fn fn, void *user);

/* The identity of `device` that measurements are valid for: device, driver, libraries, attune's code generation; one
 * line into out[size], terminated. Errors: INVALID_ARGUMENT (1024 bytes do). Any thread. */
ATTUNE_API attune_status attune_device_fingerprint(attune_device *device, char *out, size_t size);

/* The implementations known for the operation of `problem` that can do it on `device`, best guess first, one a call of
 * `fn` with the number of configurations it offers; a nonzero return ends the walk. Errors: INVALID_ARGUMENT. Any
 * thread. */
typedef int (*attune_implementation_fn)(void *user, const char *implementation, int version, int configurations);
ATTUNE_API attune_status attune_tuner_implementations(attune_tuner *tuner, attune_device *device, const char *problem,
                                                      attune_implementation_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
