/* SPDX-License-Identifier: Apache-2.0
 * guard.h: watches a team's plan while a program runs it. A team that was fast when it was measured may be slow where
 * others want the CPUs; then the default runs in its place for a time. That is known to this plan and to
 * the plans that callers made from it; other tuners find out for themselves. */
#ifndef AT_GUARD_H
#define AT_GUARD_H

#include "tuning/op/registry.h"

/* Puts a guard on a host plan of two threads or more that is not the default itself; `decision` says what the default
 * took. Where it does not say that, as of a guess, the calls must show it, and a plan of one thread has a guard too.
 * Other plans of one thread, and those that must give the same bits each time, are left as they are. The plan owns its
 * guard. Without memory the plan has none. */
void at_guard_attach(at_plan *plan, const attune_decision *decision);

/* The plan was measured again and won: it has another chance, and `decision` says what the default took. */
void at_guard_renew(const at_plan *plan, const attune_decision *decision);

/* If the plan was set aside, or needs more threads than it may have now: what runs in its place, into the decision that
 * chose the plan. */
void at_guard_tell(const at_plan *plan, attune_decision *decision);

#endif
