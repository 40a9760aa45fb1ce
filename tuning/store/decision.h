/* SPDX-License-Identifier: Apache-2.0
 * decision.h: decisions that are kept for long. The text of the problem stands last in an attune_decision, and is
 * short mostly: a kept one has room for its text and no more. So it is never assigned by `=`, which reads the whole
 * struct, but copied by what is here. */
#ifndef AT_DECISION_H
#define AT_DECISION_H

#include <attune/tuner.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The part that attune_decision_get_info shows. */
struct attune_decision {
  char device[16];
  char implementation[32];
  int implementation_version;
  char configuration[192];
  attune_source source;
  double time_ns;
  double spread;
  int samples;
  char default_implementation[48];
  double default_time_ns;
  char runner_up[32];
  char runner_up_configuration[192];
  double runner_up_time_ns;
  char measure[16];
  int candidates;
  int rejected;
  int disturbed;
  double max_error;
  double tuning_ms;
  int complete;
  int64_t tuned_at;
  char note[128];
  double placement_spread;
  int unsure;
  char changed[256];
  char problem[ATTUNE_PROBLEM_CHARS];
};

/* All of a decision but the text, which may lie in another one too. */
#define AT_DECISION_HEAD_BYTES offsetof(attune_decision, problem)

/* The bytes that a kept one needs. */
static inline size_t at_decision_bytes(const attune_decision *decision) {
  return AT_DECISION_HEAD_BYTES + strlen(decision->problem) + 1;
}

/* Into memory of so many bytes, aligned as the struct is. */
static inline void at_decision_keep(attune_decision *kept, const attune_decision *decision) {
  memcpy(kept, decision, at_decision_bytes(decision));
}

/* As above, but the kept one already has the text. */
static inline void at_decision_keep_head(attune_decision *kept, const attune_decision *decision) {
  memcpy(kept, decision, AT_DECISION_HEAD_BYTES);
}

/* Into a whole one, with zeros behind the text. */
static inline void at_decision_give(attune_decision *out, const attune_decision *kept) {
  const size_t bytes = at_decision_bytes(kept);
  memmove(out, kept, bytes);
  memset((char *)out + bytes, 0, sizeof *out - bytes);
}

/* Is `name` the default that the winner was compared with? What follows the first word are the threads it ran with:
 * "host_cblas threads=2". */
static inline bool at_decision_default_is(const attune_decision *winner, const char *name) {
  const size_t chars = strcspn(winner->default_implementation, " ");
  return strlen(name) == chars && strncmp(winner->default_implementation, name, chars) == 0;
}

#endif
