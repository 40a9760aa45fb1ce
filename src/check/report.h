/* SPDX-License-Identifier: Apache-2.0
 * report.h: races found, kept until they can be reported without a lock. */
#ifndef AT_CHECK_REPORT_H
#define AT_CHECK_REPORT_H

#include <attune/check.h>

#include <pthread.h>

#include "src/check/shadow_state.h"

/* Under the check's lock: an at_race_found. */
void at_report_add(const at_access *first, const at_access *second, const at_allocation *allocation);

/* Under the lock: how many were found since the last at_report_begin, which forgets them. */
uint64_t at_report_count(void);
void at_report_begin(attune_race_fn fn, void *user);

/* Under the lock: some are waiting. */
bool at_report_waits(void);

/* Takes and gives the lock: tells all that wait. Nothing when this thread is telling already. */
void at_report_tell(pthread_mutex_t *lock);

#endif
