/* SPDX-License-Identifier: Apache-2.0
 * search_settings.h: how a tuner searches, as a program or ATTUNE_SEARCH sets it: "key:value,key:value". */
#ifndef AT_SEARCH_SETTINGS_H
#define AT_SEARCH_SETTINGS_H

#include <attune/tuner.h>

#include <stdbool.h>
#include <stddef.h>

/* 0: as usual. */
typedef struct at_search_settings {
  int rounds;          /* of a race, at most */
  int warmups;         /* launches of a candidate before the first that is timed */
  int configurations;  /* asked of one implementation, at most */
  double warmup_ns;    /* for so long at least */
  double candidate_ns; /* of the race for each candidate in it, at most */
  size_t rotate_bytes; /* operands rotate over so much, where they rotate */
  double tolerance;    /* of the error that the contract allows */
  bool no_guess;       /* a problem without a winner runs the default, not a guess: a similar problem's winner, or by a rule */
} at_search_settings;

/* Sets the keys of `text`; those not named stay. INVALID_ARGUMENT names `source`, key and value, and *out is as
 * before. */
attune_status at_search_settings_parse(at_search_settings *out, const char *text, const char *source);

/* All that differs from the usual, in the same words; INVALID_ARGUMENT: size is too small. */
attune_status at_search_settings_write(const at_search_settings *settings, char *out, size_t size);

#endif
