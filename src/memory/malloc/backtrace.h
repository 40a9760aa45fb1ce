/* SPDX-License-Identifier: Apache-2.0
 * backtrace.h: return addresses of the calling thread, and names for them. */
#ifndef AT_MEMORY_BACKTRACE_H
#define AT_MEMORY_BACKTRACE_H

#include <stdbool.h>
#include <stddef.h>

#define AT_BACKTRACE_MOST 64

/* Up to `most` return addresses, the innermost first; returns how many, 0 where the platform has none. The first call
 * of a process may open a library: make it without a lock (at_backtrace_prepare). */
int at_backtrace_take(void **out, int most);
void at_backtrace_prepare(void);

/* Names of addresses, made without a lock of attune held: the loader has one of its own. */
typedef struct at_backtrace_names at_backtrace_names;

/* An empty table; NULL: no memory. */
at_backtrace_names *at_backtrace_names_make(void);
void at_backtrace_names_destroy(at_backtrace_names *names);
/* Notes addresses to be named; may be called with locks held. False: no memory. */
bool at_backtrace_names_want(at_backtrace_names *names, void *const *addresses, size_t count);
/* Names all that are noted. Without a lock. */
void at_backtrace_names_find(at_backtrace_names *names);
/* True when all addresses that were looked up so far had been named; forgets the answer. */
bool at_backtrace_names_sufficed(at_backtrace_names *names);

/* The function with its offset, and the file that it is in; "" for what is not known. */
void at_backtrace_names_look(at_backtrace_names *names, const void *address, const char **out_function,
                             const char **out_file);

#endif
