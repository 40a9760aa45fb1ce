/* SPDX-License-Identifier: Apache-2.0
 * fork.h: whether this process is still the one that made a thing. */
#ifndef AT_FORK_H
#define AT_FORK_H

/* A number that changes in a child of fork. */
unsigned at_fork_generation(void);

#endif
