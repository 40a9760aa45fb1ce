/* SPDX-License-Identifier: Apache-2.0
 * loading.h: libraries that are opened at run time, and attune's own code. */
#ifndef AT_LOADING_H
#define AT_LOADING_H

#include <stdbool.h>

/* Between the two a library is opened. Until then a fork and exit() of another thread wait: neither finds the library
 * half there. May be nested. False: open nothing, the process ends, or it is the child of a fork that could not
 * wait. */
bool at_loading_begin(void);
void at_loading_end(void);

/* For fork.c and exit.c: from hold to release nothing is opened. False: not held, what is opened takes over two
 * seconds. A child of fork calls renew in place of release, and says whether the parent held. One that cannot, for
 * the handlers of this copy of attune did not run, sees that the holder is of another process. */
bool at_loading_hold(void);
bool at_loading_try(void); /* false also when it is held by another just now */
void at_loading_release(void);
void at_loading_renew(bool held);

/* The code of attune stays loaded until the process ends, also when the program closes the library or the plug-in that
 * it is part of: attune's threads run it, and the C library calls it at forks, ends of threads and exit. */
void at_loading_stay(void);

/* It does from now on. */
bool at_loading_stays(void);

#endif
