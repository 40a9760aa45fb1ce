/* SPDX-License-Identifier: Apache-2.0
 * store_fields.h: the fields of a winner's row in the order of its columns: kind, member of attune_decision, column. */
#ifndef AT_STORE_FIELDS_H
#define AT_STORE_FIELDS_H

/* clang-format off */
#define AT_STORE_FIELDS(FIELD)                      \
  FIELD(TEXT, problem, problem)                     \
  FIELD(TEXT, measure, measure)                     \
  FIELD(TEXT_OR_EMPTY, device, device)              \
  FIELD(TEXT, implementation, implementation)       \
  FIELD(INT, implementation_version, version)       \
  FIELD(TEXT_OR_EMPTY, configuration, configuration) \
  FIELD(REAL, time_ns, time_ns)                     \
  FIELD(REAL, spread, spread)                       \
  FIELD(INT, samples, samples)                      \
  FIELD(TEXT_OR_EMPTY, default_implementation, default_implementation) \
  FIELD(REAL, default_time_ns, default_time_ns)     \
  FIELD(TEXT_OR_EMPTY, runner_up, runner_up)        \
  FIELD(TEXT_OR_EMPTY, runner_up_configuration, runner_up_configuration) \
  FIELD(REAL, runner_up_time_ns, runner_up_time_ns) \
  FIELD(INT, candidates, candidates)                \
  FIELD(INT, rejected, rejected)                    \
  FIELD(INT, disturbed, disturbed)                  \
  FIELD(REAL, max_error, max_error)                 \
  FIELD(REAL, tuning_ms, tuning_ms)                 \
  FIELD(FLAG, complete, complete)                   \
  FIELD(TIME, tuned_at, tuned_at)                   \
  FIELD(TEXT_OR_EMPTY, note, note)                  \
  FIELD(REAL, placement_spread, placement_spread)   \
  FIELD(FLAG, unsure, unsure)
/* clang-format on */

#endif
