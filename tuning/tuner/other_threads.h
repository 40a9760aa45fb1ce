/* SPDX-License-Identifier: Apache-2.0
 * other_threads.h: what a database knows of a problem on the host that was measured with another number of CPU threads
 * than there are here: the nearest winner, with fewer threads if it has too many. It holds nowhere but there, so here
 * it is a guess: dispatch runs it in place of the vendor's default and has it watched (guard.h), and a search races
 * it. */
#ifndef AT_OTHER_THREADS_H
#define AT_OTHER_THREADS_H

#include "tuning/tuner/tuner.h"

/* The guess into *out, without times. NOT_FOUND: there is none. */
attune_status at_find_other_threads(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                                    attune_decision *out);

/* The same and its plan, under guard. None where the same bits are wanted each time: a guard changes what runs. */
attune_status at_guess_other_threads(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                                     attune_decision *out, at_plan **plan);

#endif
