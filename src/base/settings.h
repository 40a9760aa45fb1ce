/* SPDX-License-Identifier: Apache-2.0
 * settings.h: the environment, read here only. Ignored under AT_SECURE (setuid programs). */
#ifndef AT_SETTINGS_H
#define AT_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include <attune/tuner.h>

#define AT_SEARCH_CHARS 512
#define AT_SKIP_CHARS 1024

typedef struct at_settings {
  char database[4096];          /* ATTUNE_DB or the XDG default; "" when there is no home */
  bool database_named;          /* by ATTUNE_DB: its folder must be there, that of the default is made */
  char cache_dir[4096];         /* ATTUNE_CACHE_DIR or the XDG default; "" when there is no home */
  attune_mode mode;             /* ATTUNE_MODE, else cached */
  attune_compile compile;       /* ATTUNE_COMPILE, else background */
  char profile[4096];           /* ATTUNE_PROFILE: "stderr" or a path that ends in .json; "": none */
  double budget_ms;             /* ATTUNE_BUDGET_MS, else 0: the tuner's own, search.h */
  char search[AT_SEARCH_CHARS]; /* ATTUNE_SEARCH as it is; "": nothing */
  char skip[AT_SKIP_CHARS];     /* ATTUNE_SKIP as it is; "": nothing */
  /* ATTUNE_OVERRIDE: these count whatever the program sets. Their variables are set. */
  bool override_mode, override_database, override_budget;
  int threads; /* ATTUNE_THREADS, else 0: as many as there are */
} at_settings;

#define AT_THREADS_MAX 4096

/* Reads the environment, now. INVALID_ARGUMENT names the variable, its value and what would be right. */
attune_status at_settings_read(at_settings *out);

/* The i-th variable that is read here: attune's own, then those of others; NULL: there are no more. */
const char *at_settings_variable(size_t i);

/* ATTUNE_ALLOC, the allocator's settings, as it is; "" when unset. INVALID_ARGUMENT when it does not fit. */
attune_status at_settings_alloc(char *out, size_t size);

/* The folders in which processes of this user meet to take turns, best first, each a path or "": attune's in the
 * user's run-time folder ($XDG_RUNTIME_DIR, else /run/user/UID), then attune's cache. */
typedef struct at_meeting_places {
  char folder[2][4096];
} at_meeting_places;
attune_status at_settings_meeting_places(at_meeting_places *out);

/* ATTUNE_THREADS, the most threads of a team, into *out; 0 when unset. INVALID_ARGUMENT as at_settings_read. */
attune_status at_settings_threads(int *out);

/* Tells, once in a process and at level warning, each variable whose name begins with ATTUNE_ and that attune does not
 * know, with the nearest name that it knows. Those of the tests, ATTUNE_TEST_, are left alone. */
void at_settings_tell_unknown(void);

/* CUDA_VISIBLE_DEVICES as it is, empty too; NULL: not set. Borrowed from the environment. */
const char *at_settings_visible_devices(void);

/* ATTUNE_CHECK is "races", and ATTUNE_NVTX is 1. at_settings_read refuses other words than these, and off and 0. */
bool at_settings_check_races(void);
bool at_settings_nvtx(void);

/* ATTUNE_TF32 is 1; likewise. */
bool at_settings_tf32(void);

/* ATTUNE_LOG_FILE, with %p as the process number; "": none. False: it does not fit. */
bool at_settings_log_file(char *out, size_t size);

/* ATTUNE_LOG: off, error, warning, info, debug; error when unset or unknown, which at_settings_read refuses. */
attune_log_level at_settings_log_level(void);

#endif
