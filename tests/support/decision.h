/* SPDX-License-Identifier: Apache-2.0
 * decision.h: a decision that is destroyed at the end of its scope, and its contents, by the public interface. */
#ifndef AT_TEST_DECISION_H
#define AT_TEST_DECISION_H

#include <attune/tuner.h>

#include "tests/support/check.h"

static inline attune_decision *decision_create(void) {
  attune_decision *decision = NULL;
  assert_int_equal(attune_decision_create(&decision, NULL), ATTUNE_OK);
  return decision;
}

static inline void decision_destroy(attune_decision **decision) {
  attune_decision_destroy(*decision);
}

#define DECISION(name) __attribute__((cleanup(decision_destroy))) attune_decision *name = decision_create()

/* Its texts are those of the decision. */
static inline attune_decision_info info_of(const attune_decision *decision) {
  attune_decision_info info = ATTUNE_DECISION_INFO_INIT;
  assert_int_equal(attune_decision_get_info(decision, &info), ATTUNE_OK);
  return info;
}

#endif
