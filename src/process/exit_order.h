/* SPDX-License-Identifier: Apache-2.0
 * exit_order.h: exit() calls the functions that were registered last first, and a vendor's library registers some in
 * the middle of its calls, at the first use of this or that. exit() in another thread would call those before attune's,
 * while the thread is still inside. */
#ifndef AT_EXIT_ORDER_H
#define AT_EXIT_ORDER_H

/* Registers attune's function (exit.h) after each function that a loaded library of CUDA registers from now on. Looks
 * only at libraries that were loaded since the last time, and not at those that are still being opened. Any thread. */
void at_exit_order_keep(void);

#endif
