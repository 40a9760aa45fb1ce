/* SPDX-License-Identifier: Apache-2.0
 * tuner.h: the tuner, which holds databases, mode, budget and plans; its decisions and the reasons for them.
 *
 * Stack. A thread needs this much free stack when it calls: 24 KiB for the first call of a problem and for
 * attune_explain, 52 KiB for expressions, 96 KiB to tune or verify on the host, 192 KiB on a GPU. Thread-local data
 * take 16 KiB or more of the size given to pthread_attr_setstacksize. With less free stack, such calls fail with
 * OUT_OF_MEMORY; the message says how much is free. Runs of plans are not checked. */
#ifndef ATTUNE_TUNER_H
#define ATTUNE_TUNER_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Accuracy levels; each permits everything that the previous one permits. The header of each operation gives the
 * numbers and the arithmetic. strict: IEEE arithmetic in the operation's accumulation type, in any order. equivalent:
 * other arithmetic with an error bound as good as strict's. reduced: also arithmetic of less precision, for speed. */
typedef enum attune_accuracy { ATTUNE_STRICT = 0, ATTUNE_EQUIVALENT = 1, ATTUNE_REDUCED = 2 } attune_accuracy;

/* Requirements on an implementation. Start from ATTUNE_CONTRACT_INIT. */
typedef struct attune_contract {
  attune_accuracy accuracy;
  int deterministic;    /* nonzero: equal inputs give equal bits in every run of a plan on its device */
  size_t workspace_cap; /* maximum bytes of workspace; 0: ATTUNE_WORKSPACE_DEFAULT */
} attune_contract;

/* Strict, not deterministic, default workspace cap. */
#define ATTUNE_CONTRACT_INIT \
  { ATTUNE_STRICT, 0, 0 }
/* Maximum bytes of workspace of a plan if the contract sets none. */
#define ATTUNE_WORKSPACE_DEFAULT ((size_t)64 << 20)

/* Behaviour at a miss: a call whose problem has no plan yet. off: runs the vendor default; nothing is read or stored.
 * cached: runs the stored winner, else the best guess. record: as cached, and counts all calls for a later tuning run.
 * A problem without a winner is written to the database at its first call; the counts follow at some of the later
 * misses, when the mode changes, when the tuner is destroyed and when the process ends (a child of fork writes its own
 * counts). tune: measures now. */
typedef enum attune_mode {
  ATTUNE_MODE_OFF = 1,
  ATTUNE_MODE_CACHED = 2,
  ATTUNE_MODE_RECORD = 3,
  ATTUNE_MODE_TUNE = 4
} attune_mode;

/* How candidates are timed; part of a winner's key. AUTO: cold and graph on CUDA, hot and eager on the host. Cold:
 * inputs rotate over more than twice the last-level cache; hot: every call uses the same inputs. Graph: short work is
 * replayed as a graph, which excludes its launch costs; eager: plain calls. */
typedef enum attune_measure {
  ATTUNE_MEASURE_AUTO = 0,
  ATTUNE_MEASURE_COLD_GRAPH = 1,
  ATTUNE_MEASURE_COLD_EAGER = 2,
  ATTUNE_MEASURE_HOT_GRAPH = 3,
  ATTUNE_MEASURE_HOT_EAGER = 4
} attune_measure;

/* Options of a tuner; start from ATTUNE_TUNER_OPTIONS_INIT. A zero field takes the environment's value, then the
 * default. Environment variables listed in ATTUNE_OVERRIDE ("mode,db") take precedence over fields that the program
 * sets. */
typedef struct attune_tuner_options {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  /* The user database, read and written. NULL: ATTUNE_DB, then $XDG_DATA_HOME/attune/tuning.db. "" or ":memory:": none.
   * The first write creates the file; if the path is given, its directory must exist. */
  const char *database;
  const char *system_database; /* a read-only database, searched after the user's; NULL: none */
  attune_mode mode;            /* 0: ATTUNE_MODE, then cached */
  /* Maximum milliseconds to tune one problem. 0: ATTUNE_BUDGET_MS, else 190 ms (on the host 420 ms) plus the time of
   * 400 calls of the default. A step in progress is finished, and in some cases more is measured after that:
   * - If noise leaves the choice open, the race continues for half of the budget.
   * - On the host the winner is measured once more, alone. If it gains nothing there, the race is repeated for half of
   *   the budget, and up to two other candidates are measured alone. Together these measurements take at most a third
   *   of a budget that was set. If none was set, each takes up to 300 ms and 24 calls; if other programs disturb it,
   *   twice that, or four times for a default that can be called without attune. */
  double budget_ms;
  double total_budget_ms; /* maximum milliseconds of tuning in this tuner's life; 0: no limit */
  attune_measure measure;
} attune_tuner_options;

/* The defaults. */
#define ATTUNE_TUNER_OPTIONS_INIT \
  { sizeof(attune_tuner_options), NULL, NULL, (attune_mode)0, 0.0, 0.0, ATTUNE_MEASURE_AUTO }

/* Creates a tuner into *out; options NULL: all defaults. The caller destroys it. The tuner finds the plans of the first
 * 32,768 problems without a lock. Of further problems it keeps the latest 1,024 plans, found under a lock, and those
 * that a host graph uses; the others are decided again when they are called. An unusable database is not an error here:
 * the tuner works without it, and attune_tuner_database_status returns the reason. If another process has locked the
 * database, the call waits up to a quarter of a second; a later call uses it once it is free. In mode off no database
 * is opened until another mode is set or a call needs stored data, such as attune_tune. A database that is readable but
 * not writable (a read-only directory or file system) is read: its winners run. Both cases are logged; in modes record
 * and tune, which then store nothing, once at level error, which is on by default. Errors: INVALID_ARGUMENT (a bad
 * option or environment variable; the message names it), OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_tuner_create(attune_tuner **out, const attune_tuner_options *options);

/* Writes the tuner's recorded calls (mode record) and its profile (ATTUNE_PROFILE, see profile.h), then releases it and
 * its plans. Before that, work launched with it must be done and the plans that callers made with it (plan.h)
 * destroyed; no other thread may be using it. NULL does nothing. */
ATTUNE_API void attune_tuner_destroy(attune_tuner *tuner);

/* Reports whether the user database works: OK, or why it is not in use, or why the latest winner is in memory only
 * (NOT_FOUND, PERMISSION, BAD_DATA, IO_ERROR, BUSY ...); attune_last_message then says more. Also OK if no database was
 * requested ("" or ":memory:") or the file does not exist yet. A read-only database works in modes off and cached; in
 * modes record and tune the status says why it cannot be written. NOT_FOUND if there is no place for one (HOME is not
 * set). Opens the database in mode off, and waits up to 5 seconds for one that was locked at creation. Any thread. */
ATTUNE_API attune_status attune_tuner_database_status(attune_tuner *tuner);

/* Sets the mode for later misses; does nothing if ATTUNE_OVERRIDE lists the mode. Errors: INVALID_ARGUMENT. Any
 * thread. */
ATTUNE_API attune_status attune_tuner_set_mode(attune_tuner *tuner, attune_mode mode);

/* Returns the current mode; 0 for NULL. Any thread. */
ATTUNE_API attune_mode attune_tuner_get_mode(const attune_tuner *tuner);

/* Search settings of a tuner; start from ATTUNE_SEARCH_OPTIONS_INIT, or from zeros: 0 is the default in every field.
 * With fewer rounds or less time more choices stay unsure. */
typedef struct attune_search_options {
  size_t size;         /* sizeof this struct, or 0 (types.h) */
  int rounds;          /* of a race, 3 to 61; each takes one sample of every candidate in it */
  int warmups;         /* untimed launches of a candidate before the first timed one, 1 to 1000 */
  double warmup_ms;    /* their minimum duration, 0.001 to 10000; a budget that is set ends them */
  double candidate_ms; /* maximum time of the race per candidate in it, 0.001 to 1e6 */
  int configurations;  /* tried per implementation before the neighbours of the best, 1 to 256 */
  int rotate_mb;       /* memory over which operands rotate in cold timing, to miss the caches, 1 to 1000000 */
  /* Only candidates whose error is at most this fraction of the contract's limit, 0.000001 to 1; the default is
   * exempt. */
  double tolerance;
  /* Nonzero: a problem without a winner runs the default, not a similar problem's winner or a rule's choice. */
  int no_guess;
} attune_search_options;
/* The defaults. */
#define ATTUNE_SEARCH_OPTIONS_INIT \
  { sizeof(attune_search_options), 0, 0, 0.0, 0.0, 0, 0, 0.0, 0 }

/* Sets this tuner's search settings, from the next search on; options NULL: the defaults. The initial settings come
 * from ATTUNE_SEARCH, as text: "rounds:9,warmup_ms:2", with guess:false for no_guess. attune_verify uses them too: set
 * those that the winners were tuned with. Errors: INVALID_ARGUMENT (names the field). Any thread. */
ATTUNE_API attune_status attune_tuner_set_search(attune_tuner *tuner, const attune_search_options *options);

/* Copies the search settings into *out. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_tuner_get_search(attune_tuner *tuner, attune_search_options *out);

/* Excludes implementations by name in the whole process: "host_cblas,cublas"; "" excludes none. They are neither
 * candidates nor defaults (the next one that can do a problem becomes the default), and their stored winners are
 * skipped. Applies to later decisions. ATTUNE_SKIP sets the list at the first tuner, if the program has not. Winners
 * found with exclusions are stored as usual. Errors: INVALID_ARGUMENT (no implementation has the name), OUT_OF_MEMORY.
 * Any thread. */
ATTUNE_API attune_status attune_skip_implementations(const char *names);

/* Returns the excluded names, as set; "": none. Borrowed, never NULL; any thread. */
ATTUNE_API const char *attune_skipped_implementations(void);

/* What a call in mode cached or record does if its winner has kernels that are not compiled yet. background: the
 * default runs at once, and a low-priority thread compiles the kernels; the winner then replaces the default for later
 * calls. wait: the call waits for the compiler, tens to hundreds of milliseconds. Calls in a capture and creation of
 * plans (plan.h), which keep the choice that they get, and calls whose default must be compiled too always wait. In
 * either case kernels in the kernel cache are loaded at once: `attune warm` (warm.h) puts them there. */
typedef enum attune_compile { ATTUNE_COMPILE_BACKGROUND = 1, ATTUNE_COMPILE_WAIT = 2 } attune_compile;

/* Sets the compile behaviour of later calls. Initially ATTUNE_COMPILE's value, else background. Errors:
 * INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_tuner_set_compile(attune_tuner *tuner, attune_compile compile);

/* Returns the number of problems that run their default until a winner's kernels are compiled. With nonzero `wait` it
 * returns when there are none. A child of fork compiles none. 0 for NULL. Any thread; do not wait in capture. */
ATTUNE_API size_t attune_tuner_compiling(const attune_tuner *tuner, int wait);

/* Where a choice comes from. */
typedef enum attune_source {
  ATTUNE_SOURCE_DEFAULT = 1,   /* the vendor default: nothing is known */
  ATTUNE_SOURCE_NEIGHBOUR = 2, /* a guess: the winner of a similar problem, or a fixed rule; note says which */
  ATTUNE_SOURCE_STORED = 3,    /* a winner of the user database */
  ATTUNE_SOURCE_SYSTEM = 4,    /* a winner of the system database */
  ATTUNE_SOURCE_TUNED = 5      /* measured by this tuner */
} attune_source;

/* Maximum size of a problem's text, including the terminating zero. */
#define ATTUNE_PROBLEM_CHARS 4096

/* A choice and the evidence for it, filled by calls such as attune_explain, each of which replaces the previous
 * contents. Used by one thread at a time. */
typedef struct attune_decision attune_decision;

/* Creates a decision into *out: a copy of `from`; NULL: an empty one. The caller destroys it. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_decision_create(attune_decision **out, const attune_decision *from);

/* Releases a decision and its texts. NULL does nothing. Any thread. */
ATTUNE_API void attune_decision_destroy(attune_decision *decision);

/* Contents of a decision. Times are medians of one call in nanoseconds; 0: not measured. On the host they are the times
 * that a program sees. The winner's time includes attune's dispatch; the default's is that of the vendor's own call,
 * without attune. So the best choice may be slower than the default; if it is the default itself, called through
 * attune, it is never reported as faster. If a candidate keeps more CPUs busy than the machine can sustain, its time is
 * the one on the CPUs that the machine does sustain. Texts are never NULL after attune_decision_get_info. */
typedef struct attune_decision_info {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  const char *device;
  const char *implementation;
  int implementation_version;
  attune_source source;
  const char *configuration;
  double time_ns; /* on the host this and default_time_ns are measured in turns, each alone, if time permits */
  double spread;  /* relative: median absolute deviation / median */
  const char *default_implementation; /* its name; on the host also its threads, and its call if it has several */
  double default_time_ns;
  const char *runner_up;
  const char *runner_up_configuration;
  double runner_up_time_ns;
  const char *measure; /* "cold,graph" ... */
  int samples;
  int candidates;   /* measured */
  int rejected;     /* failed to run or to verify */
  int disturbed;    /* samples thrown away: throttled or disturbed */
  double max_error; /* of the winner: largest error as a fraction of the contract's limit */
  double tuning_ms;
  int64_t tuned_at; /* seconds since 1970; 0: not tuned */
  int complete;     /* 0: the budget ended before every candidate was considered; a later run tunes again */
  /* 1: noise or other work on the CPUs left the choice open, it was measured by older rules, or attune_verify found
   * that it does not hold; a later run tunes again */
  int unsure;
  const char *note;        /* the reason for the choice, in words */
  double placement_spread; /* relative standard deviation of time_ns over placements of the operands in memory */
  /* In words; "": nothing. For a stored winner: what it was compared with and the changes there since, such as the
   * default's library or a new implementation. The winner holds and runs, but default_time_ns may be out of date, and a
   * later run tunes again. For a guess: differences from the stored winner that does not hold here. Set by attune_tune,
   * attune_explain, attune_verify and attune_tuner_winners. */
  const char *changed;
  const char *problem; /* its text */
} attune_decision_info;
/* All zeros but for the size. */
#define ATTUNE_DECISION_INFO_INIT                                                                                    \
  {                                                                                                                  \
    sizeof(attune_decision_info), NULL, NULL, 0, (attune_source)0, NULL, 0.0, 0.0, NULL, 0.0, NULL, NULL, 0.0, NULL, \
        0, 0, 0, 0, 0.0, 0.0, 0, 0, 0, NULL, 0.0, NULL, NULL                                                         \
  }

/* Fills *out. Its texts are borrowed until the decision is filled again or destroyed; those of a decision passed to a
 * callback, until the callback returns. Errors: INVALID_ARGUMENT. Allowed in capture. */
ATTUNE_API attune_status attune_decision_get_info(const attune_decision *decision, attune_decision_info *out);

/* Options of attune_tune; start from ATTUNE_TUNE_OPTIONS_INIT, or from zeros. */
typedef struct attune_tune_options {
  size_t size;      /* sizeof this struct, or 0 (types.h) */
  double budget_ms; /* for this problem; 0 or less: the tuner's */
  /* Above 0: maximum milliseconds in all, at most 1e12. A problem takes the time it needs; if that is more, steps are
   * shortened or skipped. A step that would end later is not begun; one that takes longer than expected ends within
   * half a second, or after the implementation's current call. The result so far is stored, incomplete or unsure, and a
   * later call continues from there. 0: no limit. */
  double most_ms;
  int force; /* nonzero: measures even if a stored winner is complete and sure */
  /* Nonzero: fails with BUSY at once if another process or thread is measuring the problem, so that the caller can tune
   * another one and return for the winner. It still waits for its turn on the device; a signal that the program handles
   * in this thread ends that wait, also with BUSY. */
  int no_wait;
} attune_tune_options;
/* The defaults: the tuner's budget; a winner that holds is kept. */
#define ATTUNE_TUNE_OPTIONS_INIT \
  { sizeof(attune_tune_options), 0, 0, 0, 0 }

/* Tunes `problem` (its text) on `device` now, whatever the mode, stores the winner and fills `out` (may be NULL).
 * options NULL: the defaults. A stored winner that is complete and sure is returned without measuring, unless
 * options->force is set or what it was compared with has changed since (attune_decision_info.changed). A stored winner
 * is never replaced by weaker evidence: then it stays and is returned, and its note says so. Complete and sure is
 * stronger than complete, and complete is stronger than incomplete. Between equals the new winner is stored, unless its
 * error is clearly larger; even then it is stored if the old winner, which always takes part in the race, gains clearly
 * less than its claim. A stored winner that now fails or is wrong never stays. Runs on memory and streams of its own.
 *
 * On the host, samples during which other work kept attune's threads from the CPUs are discarded and taken again. If
 * too many were disturbed, the winner is unsure, never complete and sure.
 *
 * A problem is measured once. While another thread, or another process with the same database, measures it for an equal
 * device, this call waits for that winner as long as the other one is alive and makes progress. Threads, and the
 * processes of one user, take turns to measure on a device, whatever their databases. A process that is stopped for two
 * seconds, or has shown no sign of life for a minute, loses its turn; when it continues it measures again. A budget,
 * the problem's or the tuner's, also limits the wait for other processes, and waiting counts toward the tuner's total
 * budget. Without a budget the wait lasts until they end; the log reports it at level warning, with the process. A call
 * of an operation in mode tune waits at most 50 ms for other processes, then runs the default; a later call tunes.
 *
 * Errors: INVALID_ARGUMENT, UNSUPPORTED, OUT_OF_MEMORY, BUDGET_EXHAUSTED (the tuner's total; or most_ms is too short to
 * measure the default and to verify its numbers), BUSY (a budget was spent while another process was still measuring;
 * the message names it; with no_wait also: another process or thread measures the problem), DEVICE_ERROR (also: the
 * process is ending). Any thread. */
ATTUNE_API attune_status attune_tune(attune_tuner *tuner, attune_device *device, const char *problem,
                                     const attune_tune_options *options, attune_decision *out);

/* Tunes now, one after the other, the problems that were called in a capture in mode tune, where a call cannot tune and
 * so guesses. Skips problems that have a winner by now. Takes at most budget_ms in all (<= 0: each problem's default
 * budget). *out_tuned (may be NULL) is the number of problems tuned. A graph keeps the choices that it was captured
 * with: capture it again, or call attune_graph_update. Errors: INVALID_ARGUMENT, BUDGET_EXHAUSTED (some are left), and
 * those of attune_tune, at the first problem that fails. Any thread; not in capture. */
ATTUNE_API attune_status attune_tuner_tune_pending(attune_tuner *tuner, double budget_ms, int *out_tuned);

/* Fills `out` with the candidate that runs for `problem` on `device` and its evidence: source, time of tuning and
 * margin. Measures nothing. On the host, a winner of several threads that ran slower than the default in calls with
 * this tuner is set aside, for this tuner alone, for a time (a second at first) or until the tuner measures the problem
 * again. `out` then names the default, with the winner as runner-up, and the note says so. Errors: INVALID_ARGUMENT,
 * UNSUPPORTED. Any thread. */
ATTUNE_API attune_status attune_explain(attune_tuner *tuner, attune_device *device, const char *problem,
                                        attune_decision *out);

/* Called for a stored winner, once for each device of this process that it holds on, or once if it holds on none. The
 * decision names the device. `fingerprint` says what the winner is valid for: the device it was measured on and, after
 * "; with ", its implementation. `valid` is nonzero if the winner holds on a device here and is used there; if not,
 * attune_decision_info.changed says what differs. A nonzero return ends the walk. No lock is held. */
typedef int (*attune_winner_fn)(void *user, const attune_decision *decision, const char *fingerprint, int valid);

/* Calls `fn` for the stored winners of the databases, ordered by problem. Errors: INVALID_ARGUMENT, BAD_DATA, IO_ERROR.
 * Any thread. */
ATTUNE_API attune_status attune_tuner_winners(attune_tuner *tuner, attune_winner_fn fn, void *user);

/* Writes what measurements on `device` are valid for into out[size], as one terminated line: the device, its driver,
 * attune's way of measuring; then, after "; with ", each implementation with its version and the libraries and
 * compilers that it depends on; on the host, before them, "threads N": the number of CPU threads that a search may use
 * now. A stored winner holds if the first part, the number of threads and its own implementation are equal. Opens the
 * libraries. Errors: INVALID_ARGUMENT (also: out too small; 4096 bytes suffice). Any thread. */
ATTUNE_API attune_status attune_device_fingerprint(attune_device *device, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
