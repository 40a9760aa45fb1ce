/* SPDX-License-Identifier: Apache-2.0
 * tuner.h: the tuner, which holds databases, mode, budget and plans; and what it decided, with the reason.
 *
 * Stack. What a thread must have left when it calls: 24 KiB for the first call of a problem and for attune_explain,
 * 52 KiB for expressions, 96 KiB to tune or verify on the host, 192 KiB on a GPU. Of a thread's size
 * (pthread_attr_setstacksize) its thread-local data take 16 KiB and more. With less such calls fail with
 * OUT_OF_MEMORY, whose message says how much there is; runs of plans are not checked. */
#ifndef ATTUNE_TUNER_H
#define ATTUNE_TUNER_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Accuracy levels; each permits what the one before it permits. What that is, in numbers and arithmetic, the header of
 * each operation says. strict: IEEE arithmetic in the operation's accumulation type, in any order. equivalent: other
 * arithmetic with an error bound as good as strict's. reduced: also arithmetic of less precision, for speed. */
typedef enum attune_accuracy { ATTUNE_STRICT = 0, ATTUNE_EQUIVALENT = 1, ATTUNE_REDUCED = 2 } attune_accuracy;

/* What an implementation must keep to be allowed. Start from ATTUNE_CONTRACT_INIT. */
typedef struct attune_contract {
  attune_accuracy accuracy;
  int deterministic;    /* nonzero: equal inputs give equal bits at each run of a plan on its device */
  size_t workspace_cap; /* most bytes of workspace an implementation may use; 0 = ATTUNE_WORKSPACE_DEFAULT */
} attune_contract;

/* Strict, not deterministic, the default cap of workspace. */
#define ATTUNE_CONTRACT_INIT \
  { ATTUNE_STRICT, 0, 0 }
/* Bytes of workspace that a plan may use if the contract does not say. */
#define ATTUNE_WORKSPACE_DEFAULT ((size_t)64 << 20)

/* What happens at a miss: a call whose problem has no plan yet. off: the vendor default runs, and nothing is read or
 * stored. cached: the stored winner runs, else the best guess. record: as cached, and all calls are counted for a later
 * tuning run. A problem without a winner is written to the database at its first call; the counts follow at some of the
 * later misses, when the mode changes, when the tuner is destroyed and when the process ends (a child of fork writes
 * its own). tune: measure now. */
typedef enum attune_mode {
  ATTUNE_MODE_OFF = 1,
  ATTUNE_MODE_CACHED = 2,
  ATTUNE_MODE_RECORD = 3,
  ATTUNE_MODE_TUNE = 4
} attune_mode;

/* How candidates are timed; part of a winner's key. AUTO: cold and graph on CUDA, hot and eager on the host. Cold:
 * inputs rotate over more than twice the last-level cache; hot: they stay the same. Graph: short work is replayed as a
 * graph, so that its launch costs do not count; eager: plain calls. */
typedef enum attune_measure {
  ATTUNE_MEASURE_AUTO = 0,
  ATTUNE_MEASURE_COLD_GRAPH = 1,
  ATTUNE_MEASURE_COLD_EAGER = 2,
  ATTUNE_MEASURE_HOT_GRAPH = 3,
  ATTUNE_MEASURE_HOT_EAGER = 4
} attune_measure;

/* Options; start from ATTUNE_TUNER_OPTIONS_INIT. A zero field takes the environment's value, then the default. The
 * operator has the last word: the variables that ATTUNE_OVERRIDE lists ("mode,db") count even where the program sets
 * the field. */
typedef struct attune_tuner_options {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  /* The user database, read and written. NULL: ATTUNE_DB, then $XDG_DATA_HOME/attune/tuning.db. "" or ":memory:": none.
   * The first write makes the file; the folder of a named one must exist. */
  const char *database;
  const char *system_database; /* a read-only database, looked at after the user's; NULL: none */
  attune_mode mode;            /* 0: ATTUNE_MODE, then cached */
  /* The most milliseconds to tune one problem. 0: ATTUNE_BUDGET_MS, else 190 ms (on the host 420 ms) plus the time of
   * 400 calls of the default. A step that is under way is finished, and in some cases more is measured after that:
   * - Noise leaves the choice open: the race goes on for half of the budget.
   * - On the host the winner is measured once more, alone. If it gains nothing there, the race is run again for half of
   *   the budget, and up to two others are measured alone. All of these measurements alone take at most a third of a
   *   budget that was set. Where none was set each takes up to 300 ms and 24 calls, and twice that, or for a default
   *   that can be called without attune four times that, where other programs disturb it. */
  double budget_ms;
  double total_budget_ms; /* the most milliseconds to tune in this tuner's life; 0: no limit */
  attune_measure measure;
} attune_tuner_options;

/* The defaults. */
#define ATTUNE_TUNER_OPTIONS_INIT \
  { sizeof(attune_tuner_options), NULL, NULL, (attune_mode)0, 0.0, 0.0, ATTUNE_MEASURE_AUTO }

/* A new tuner into *out; options NULL: all defaults. The caller destroys it. The tuner finds the plans of the first
 * 32,768 problems without a lock. Of further problems it keeps the latest 1,024 plans, found under a lock, and those
 * that a graph of the host uses; the others it decides again when they are called. A database that cannot be used is
 * not an error here: the tuner works without it, and attune_tuner_database_status returns the reason. One that another
 * process has locked is waited for a quarter of a second, then used as soon as a later call finds it free. Mode off
 * opens no database until another mode is set or a call asks for what is stored, such as attune_tune. One that can be
 * read and not written (a read-only folder or file system) is read: its winners run. The log says both, and in modes
 * record and tune, which then store nothing, it says so once at level error, which is heard by default.
 * Errors: INVALID_ARGUMENT (a bad option or environment variable; the message names it), OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_tuner_create(attune_tuner **out, const attune_tuner_options *options);

/* Writes the tuner's recorded calls (mode record) and its profile (ATTUNE_PROFILE, see profile.h), then releases it and
 * its plans. Work launched with it must be done, the plans that callers made with it (plan.h) destroyed, and no other
 * thread may be using it. NULL does nothing. */
ATTUNE_API void attune_tuner_destroy(attune_tuner *tuner);

/* Whether the user database works: OK, or why it is not in use, or why the latest winner is in memory only (NOT_FOUND,
 * PERMISSION, BAD_DATA, IO_ERROR, BUSY ...); attune_last_message then says more. Also OK when no database was asked for
 * ("" or ":memory:") and when the file does not exist yet. A database that can only be read works in modes off and
 * cached; in modes record and tune the status says why it cannot be written. NOT_FOUND when there is no place for one
 * (HOME is not set). Opens the database in mode off, and waits up to 5 seconds for one that was locked at the start.
 * Any thread. */
ATTUNE_API attune_status attune_tuner_database_status(attune_tuner *tuner);

/* Makes the user database if it does not exist, and writes to it: OK, or why winners could not be stored. Call it
 * before a long run, to fail early. Also OK when no database was asked for. Errors: those of
 * attune_tuner_database_status. Any thread. */
ATTUNE_API attune_status attune_tuner_database_prepare(attune_tuner *tuner);

/* Changes what a miss does, from now on; does nothing where ATTUNE_OVERRIDE lists the mode. Errors: INVALID_ARGUMENT.
 * Any thread. */
ATTUNE_API attune_status attune_tuner_set_mode(attune_tuner *tuner, attune_mode mode);

/* The current mode; 0 for NULL. Any thread. */
ATTUNE_API attune_mode attune_tuner_get_mode(const attune_tuner *tuner);

/* How a tuner searches; start from ATTUNE_SEARCH_OPTIONS_INIT, or from zeros: 0 is the usual in every field. With fewer
 * rounds or less time more choices stay unsure. */
typedef struct attune_search_options {
  size_t size;         /* sizeof this struct, or 0 (types.h) */
  int rounds;          /* of a race, 3 to 61, each one sample of every candidate in it */
  int warmups;         /* launches of a candidate before the first that is timed, 1 to 1000 */
  double warmup_ms;    /* and for so long at least, 0.001 to 10000; a budget that is set ends them */
  double candidate_ms; /* of the race for each candidate in it, at most, 0.001 to 1e6 */
  int configurations;  /* tried of one implementation before the neighbours of the best, 1 to 256 */
  int rotate_mb;       /* over which operands rotate where times are cold, so that caches lack them, 1 to 1000000 */
  /* Only candidates whose error is at most this fraction, 0.000001 to 1, of what the contract allows; the default is
   * taken as it is. */
  double tolerance;
  /* Nonzero: a problem without a winner runs the default, not a similar problem's winner nor a rule's choice. */
  int no_guess;
} attune_search_options;
/* The usual. */
#define ATTUNE_SEARCH_OPTIONS_INIT {sizeof(attune_search_options), 0, 0, 0.0, 0.0, 0, 0, 0.0, 0}

/* Sets how this tuner searches, from the next search on; options NULL: as usual. ATTUNE_SEARCH sets it at first, as
 * text: "rounds:9,warmup_ms:2", with guess:false for no_guess. attune_verify measures by the same settings: use those
 * that the winners were tuned with. Errors: INVALID_ARGUMENT (names the field). Any thread. */
ATTUNE_API attune_status attune_tuner_set_search(attune_tuner *tuner, const attune_search_options *options);

/* The settings into *out. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_tuner_get_search(attune_tuner *tuner, attune_search_options *out);

/* Leaves implementations out in all of the process, by their names: "host_cblas,cublas"; "" takes all in again. They
 * are no candidates, no defaults (the next that can do a problem is that), and stored winners of theirs are passed
 * over. Holds for what is decided from now on; ATTUNE_SKIP sets it at the first tuner, if the program did not. Winners
 * that are found so are stored like others. Errors: INVALID_ARGUMENT (no implementation has the name), OUT_OF_MEMORY.
 * Any thread. */
ATTUNE_API attune_status attune_skip_implementations(const char *names);

/* The names, as set; "": none. Borrowed, never NULL; any thread. */
ATTUNE_API const char *attune_skipped_implementations(void);

/* What a call in mode cached or record does whose winner has kernels that are not compiled yet. background: the default
 * runs at once, and the kernels are compiled on a thread of low priority; then the winner takes the default's place,
 * for the calls from then on. wait: the call waits for the compiler, tens to hundreds of milliseconds. Calls in a
 * capture, the making of plans (plan.h), and those whose default must be compiled too always wait: they keep what they
 * get. What is in the kernel cache is loaded at once in either case: `attune warm` (warm.h) puts it there. */
typedef enum attune_compile { ATTUNE_COMPILE_BACKGROUND = 1, ATTUNE_COMPILE_WAIT = 2 } attune_compile;

/* Changes that, from now on. It is ATTUNE_COMPILE's, else background. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_tuner_set_compile(attune_tuner *tuner, attune_compile compile);

/* How many problems run their default until a winner's kernels are compiled; with `wait` it returns when there are
 * none. A child of fork compiles none. 0 for NULL. Any thread; waiting not in capture. */
ATTUNE_API size_t attune_tuner_compiling(const attune_tuner *tuner, int wait);

/* Where a choice comes from. */
typedef enum attune_source {
  ATTUNE_SOURCE_DEFAULT = 1,   /* the vendor default: nothing is known */
  ATTUNE_SOURCE_NEIGHBOUR = 2, /* a guess: the winner of a similar problem, or a fixed rule; note says which */
  ATTUNE_SOURCE_STORED = 3,    /* a winner of the user database */
  ATTUNE_SOURCE_SYSTEM = 4,    /* a winner of the system database */
  ATTUNE_SOURCE_TUNED = 5      /* measured by this tuner */
} attune_source;

/* A problem's text, with the end, is at most this long. */
#define ATTUNE_PROBLEM_CHARS 4096

/* A choice and the evidence for it, which calls fill. A second call replaces what it had. Used by one thread at a
 * time. */
typedef struct attune_decision attune_decision;

/* A decision into *out: a copy of `from`, or NULL: an empty one, to be filled. The caller destroys it. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_decision_create(attune_decision **out, const attune_decision *from);

/* Releases it and its texts. NULL does nothing. */
ATTUNE_API void attune_decision_destroy(attune_decision *decision);

/* What a decision says. Times are medians of one call in nanoseconds; 0 where nothing was measured. On the host they
 * are what a program sees. The winner's time includes attune's dispatch; the default's is that of the vendor's own
 * call, with nothing of attune around it. So the best choice may be slower than the default; one that is the default
 * itself, called through attune, is never reported as faster. If a candidate keeps more CPUs busy than the machine can
 * sustain, its time is the one it takes on those that the machine does sustain. Texts are never NULL after
 * attune_decision_get_info. */
typedef struct attune_decision_info {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  const char *device;
  const char *implementation;
  int implementation_version;
  attune_source source;
  const char *configuration;
  double time_ns; /* and default_time_ns: on the host of both in turns, each alone, where there was time for that */
  double spread;  /* relative: median absolute deviation / median */
  const char *default_implementation; /* its name; on the host also its threads, and its call where there are several */
  double default_time_ns;
  const char *runner_up;
  const char *runner_up_configuration;
  double runner_up_time_ns;
  const char *measure; /* "cold,graph" ... */
  int samples;
  int candidates;   /* measured */
  int rejected;     /* failed to run or to verify */
  int disturbed;    /* samples thrown away: throttled or disturbed */
  double max_error; /* of the winner: largest error as a fraction of what the contract allows */
  double tuning_ms;
  int64_t tuned_at; /* seconds since 1970, 0: not tuned */
  int complete;     /* 0: the budget ended before every candidate was looked at; a later run tunes again */
  /* 1: noise or other work on the CPUs left the choice open, it was measured by older rules, or attune_verify found
   * that it does not hold; a later run tunes again */
  int unsure;
  const char *note;        /* in words: why this one */
  double placement_spread; /* relative standard deviation of time_ns over places of the operands in memory */
  /* In words; "": nothing. For a stored winner: what it was compared with and what has changed there since, such as the
   * default's library, or a new implementation. The winner holds and runs, but default_time_ns may be out of date, and
   * a later run tunes again. For a guess: what differs from the stored winner that does not hold here. Set by
   * attune_tune, attune_explain, attune_verify and attune_tuner_winners. */
  const char *changed;
  const char *problem; /* its text */
} attune_decision_info;
/* Zeros, and the size. */
#define ATTUNE_DECISION_INFO_INIT                                                                                   \
  {                                                                                                                 \
    sizeof(attune_decision_info), NULL, NULL, 0, (attune_source)0, NULL, 0.0, 0.0, NULL, 0.0, NULL, NULL, 0.0, NULL, \
        0, 0, 0, 0, 0.0, 0.0, 0, 0, 0, NULL, 0.0, NULL, NULL                                                        \
  }

/* Fills *out. Its texts are borrowed until the decision is filled again or destroyed; those of a callback's decision,
 * until it returns. Errors: INVALID_ARGUMENT. Allowed in capture. */
ATTUNE_API attune_status attune_decision_get_info(const attune_decision *decision, attune_decision_info *out);

/* How attune_tune measures; start from ATTUNE_TUNE_OPTIONS_INIT, or from zeros. */
typedef struct attune_tune_options {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  double budget_ms; /* of this problem; 0 or less: the tuner's */
  /* Above 0: at most so many milliseconds in all, at most 1e12. A problem takes what it needs, and where that is more,
   * steps are made shorter or left out. A step that would end later is not begun; what proves to take longer than
   * expected ends within half a second, or after one call of the implementation that is under way. What is found by
   * then is stored, incomplete or unsure, and a later call goes on from there. 0: no limit. */
  double most_ms;
  int force; /* nonzero: measures although a stored winner is complete and sure */
  /* Nonzero: BUSY at once if another process or thread is measuring the problem, so that the caller can tune another
   * one and come back for the winner. It still waits for its turn on the device; a signal that the program handles in
   * this thread ends that wait, also with BUSY. */
  int no_wait;
} attune_tune_options;
/* The usual: the tuner's budget, a winner that holds is kept. */
#define ATTUNE_TUNE_OPTIONS_INIT {sizeof(attune_tune_options), 0, 0, 0, 0}

/* Tunes `problem` (its text) on `device` now, whatever the mode, stores the winner and fills `out` (may be NULL).
 * options NULL: the usual. A stored winner that is complete and sure is returned without measuring, unless
 * options->force, or if what it was compared with has changed since (attune_decision_info.changed). A stored winner is
 * never replaced by weaker evidence: then it stays and is returned, and its note says so. Complete and sure is stronger
 * than complete, complete is stronger than incomplete. Between equals the new one is taken unless its error is clearly
 * larger; even then if the stored winner, which is always raced again, gains clearly less than it claims. One that
 * fails or is wrong now never stays. Runs on memory and streams of its own.
 *
 * On the host samples during which other work kept attune's threads from the CPUs are thrown away and taken again.
 * Where too many were disturbed the winner is unsure, never complete and sure.
 *
 * A problem is measured once. While another thread, or another process with the same database, measures it for an equal
 * device, this call waits for that winner, as long as the other lives and goes on. A device is measured by one at a
 * time, whatever the databases: threads, and the processes of one user, take turns. A process that is stopped for two
 * seconds, or has shown no sign of life for a minute, loses its turn; when it goes on it measures again. A budget, the
 * problem's or the tuner's, is also the longest wait for other processes, and waiting counts toward the tuner's total
 * budget. Without one the wait has no end but theirs; the log tells it at level warning, with the process. A call of an
 * operation in mode tune waits 50 ms for other processes at most, then runs the default, and a later call tunes.
 *
 * Errors: INVALID_ARGUMENT, UNSUPPORTED, OUT_OF_MEMORY, BUDGET_EXHAUSTED (the tuner's total), BUSY (a budget was spent
 * while another process still measured; the message names it; with no_wait also: another process or thread measures the
 * problem), DEVICE_ERROR (also: the process is ending). BUDGET_EXHAUSTED also: most_ms is too short to measure the
 * default and to verify its numbers. Any thread. */
ATTUNE_API attune_status attune_tune(attune_tuner *tuner, attune_device *device, const char *problem,
                                     const attune_tune_options *options, attune_decision *out);

/* Whether a stored winner still holds. */
typedef enum attune_verdict {
  ATTUNE_VERDICT_HOLDS = 1,
  ATTUNE_VERDICT_GAINS_LESS = 2, /* than was stored, by more than 3 % and three standard errors */
  ATTUNE_VERDICT_SLOWER = 3,     /* than the default, by more than 1 % and three standard errors */
  ATTUNE_VERDICT_WRONG = 4,      /* its numbers are outside the contract */
  ATTUNE_VERDICT_UNSURE = 5      /* its numbers are right; other work used the CPUs, so the times say nothing */
} attune_verdict;

/* A stored winner and what it measured now. Times are medians of one call in nanoseconds. */
typedef struct attune_recheck {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  double time_ns, default_time_ns;
  double speedup, error; /* the default's time over the winner's, round by round, and the standard error of that */
  double max_error;      /* largest error as a fraction of what the contract allows */
  int samples;
  attune_verdict verdict;
  int marked; /* 1: it does not hold, and is marked so in the user database */
} attune_recheck;

/* Times the stored winner of `problem`, which is put into `stored` (may be NULL), again, beside the default and with
 * operands at new places in memory, and checks its numbers on new data. Takes about budget_ms (<= 0: 150 ms plus the
 * time of 150 calls). A winner of the user database that does not hold (GAINS_LESS, SLOWER, WRONG) is marked there as
 * unsure, with a note: it still runs, and the next attune_tune measures its problem again; out->marked says that it is.
 * One of a database that may not be written, or of the system database, is not. Nothing else is stored. The settings of
 * attune_tuner_set_search hold here too. Errors: INVALID_ARGUMENT, NOT_FOUND (no stored winner holds on this device, or
 * it can no longer run), OUT_OF_MEMORY, BUSY (another process measures on the device and does not end), DEVICE_ERROR.
 * Any thread; measures in turns as attune_tune does. */
ATTUNE_API attune_status attune_verify(attune_tuner *tuner, attune_device *device, const char *problem,
                                       double budget_ms, attune_decision *stored, attune_recheck *out);

/* In mode tune a call in a capture cannot tune, so it guesses. This tunes those problems now, one after the other,
 * unless they have a winner by now; for at most budget_ms in all (<= 0: each for its usual time). *out_tuned (may be
 * NULL) is how many were tuned. A graph keeps the choices that it was captured with: capture it again, or call
 * attune_graph_update. Errors: INVALID_ARGUMENT, BUDGET_EXHAUSTED (some are left), and those of attune_tune, at the
 * first problem that fails. Any thread; not in capture. */
ATTUNE_API attune_status attune_tuner_tune_pending(attune_tuner *tuner, double budget_ms, int *out_tuned);

/* Which candidate runs for `problem` on `device`, since when, and by what margin, into `out`. Measures nothing. On the
 * host a winner of several threads that ran slower than the default in calls with this tuner is set aside, for this
 * tuner alone, for a time (a second at first) or until it measures the problem again: it then names the default, with
 * the winner as runner-up, and the note says so. Errors: INVALID_ARGUMENT, UNSUPPORTED. Any thread. */
ATTUNE_API attune_status attune_explain(attune_tuner *tuner, attune_device *device, const char *problem,
                                        attune_decision *out);

/* A candidate that was measured beside a stored winner. The texts are valid during the call only. */
typedef struct attune_trial {
  const char *implementation, *configuration;
  const char *verdict; /* "winner", "runner-up", "default", "slower", "wrong" (its numbers) or "failed" (to run) */
  double time_ns;      /* the median of one call; 0: it was not raced */
  double spread;       /* relative */
  int samples;
} attune_trial;

/* Called with a trial; a nonzero return ends the walk. */
typedef int (*attune_trial_fn)(void *user, const attune_trial *trial);

/* Calls `fn` for the candidates that the search for the stored winner of `problem` on `device` raced, and those that
 * failed or were wrong, the fastest first, at most 32: as the databases have them. Where no winner holds they are of
 * the latest search, on the host of the latest with as many CPU threads. Those that a first look ruled out are reported
 * by the log alone, at level debug. Errors: INVALID_ARGUMENT, UNSUPPORTED, NOT_FOUND (nothing is stored), BAD_DATA,
 * IO_ERROR, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_tuner_trials(attune_tuner *tuner, attune_device *device, const char *problem,
                                             attune_trial_fn fn, void *user);

/* Called for a stored winner, once for each device here that it holds on, or once if it holds on none. The decision
 * names the device. `fingerprint` is what the winner is valid for: the device it was measured on and, after "; with ",
 * its implementation. `valid` is nonzero if the winner holds on a device here and is the one that is used there; else
 * what changed says what differs. A nonzero return ends the walk. No lock is held. */
typedef int (*attune_winner_fn)(void *user, const attune_decision *decision, const char *fingerprint, int valid);

/* Calls `fn` for the stored winners of the databases, ordered by problem. Errors: INVALID_ARGUMENT, BAD_DATA, IO_ERROR.
 * Any thread. */
ATTUNE_API attune_status attune_tuner_winners(attune_tuner *tuner, attune_winner_fn fn, void *user);

/* What measurements on `device` are valid for, as one line into out[size], terminated: the device, its driver, attune's
 * way of measuring; then, after "; with ", each implementation with its version and the libraries and compilers that it
 * depends on; on the host before them "threads N", how many CPU threads a search may use now. A stored winner holds
 * where the first part is the same, the number of threads, and its own implementation. Opens the libraries. Errors:
 * INVALID_ARGUMENT (4096 bytes suffice). Any thread. */
ATTUNE_API attune_status attune_device_fingerprint(attune_device *device, char *out, size_t size);

/* Called with an implementation and the number of configurations that it offers; a nonzero return ends the walk. */
typedef int (*attune_implementation_fn)(void *user, const char *implementation, int version, int configurations);

/* Calls `fn` for each implementation that can do `problem` on `device`, best guess first. Errors: INVALID_ARGUMENT. Any
 * thread. */
ATTUNE_API attune_status attune_tuner_implementations(attune_tuner *tuner, attune_device *device, const char *problem,
                                                      attune_implementation_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
