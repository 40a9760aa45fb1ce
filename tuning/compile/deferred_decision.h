/* SPDX-License-Identifier: Apache-2.0
 * deferred_decision.h: decisions that are made again later, because what a winner needs is not compiled yet: by one
 * thread of low priority, one problem after the other, while calls run the default. */
#ifndef AT_DEFERRED_DECISION_H
#define AT_DEFERRED_DECISION_H

#include "tuning/tuner/tuner.h"

/* Decides for the problem of `key`, as long as that takes, and gives the plan table what came of it. */
typedef void (*at_deferred_fn)(attune_tuner *tuner, const at_op *op, const at_key *key, attune_device *device);

/* Has fn(tuner, op, key, device) called on that thread, once for each tuner, key and device at a time; false: it will
 * not be (no memory, no thread, the process ends, or very much waits already). Any thread. */
bool at_deferred_add(attune_tuner *tuner, const at_op *op, const at_key *key, attune_device *device, at_deferred_fn fn);

/* Waits until nothing of the tuner is left, of this key or, with NULL, of any. */
void at_deferred_wait(const attune_tuner *tuner, const at_key *key);

/* How much of the tuner is left. */
size_t at_deferred_left(const attune_tuner *tuner);

/* Drops what waits of the tuner, which is destroyed, and waits for what is under way. */
void at_deferred_forget(const attune_tuner *tuner);

#endif
