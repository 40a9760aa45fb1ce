/* SPDX-License-Identifier: Apache-2.0
 * main_thread_exit.h: a program whose main thread ended (pthread_exit) and that has attune's threads left. */
#ifndef AT_HOST_MAIN_THREAD_EXIT_H
#define AT_HOST_MAIN_THREAD_EXIT_H

#include <stdint.h>

/* How long a thread of attune sleeps before it looks. */
#define AT_MAIN_THREAD_EXIT_LOOK_NS INT64_C(2000000000)

/* If the main thread is gone, the calling thread of attune, which blocks all signals, lets those through that end a
 * process and that the program has not taken for itself: else nothing but SIGKILL might end it. */
void at_main_thread_exit_look(void);

#endif
