/* SPDX-License-Identifier: Apache-2.0
 * hooks.h: the race check's inside, as its public calls need it. */
#ifndef AT_CHECK_HOOKS_H
#define AT_CHECK_HOOKS_H

#include <attune/check.h>

#include "src/trace/instrument.h"

attune_status at_check_switch(bool on, attune_race_fn fn, void *user);
void at_check_wait(attune_stream *stream, attune_stream *other);
uint64_t at_check_count(void);

#endif
