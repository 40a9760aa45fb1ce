/* SPDX-License-Identifier: Apache-2.0
 * frames.h: who called: return addresses of the calling thread, and names for them. */
#ifndef AT_MEMORY_FRAMES_H
#define AT_MEMORY_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#define AT_FRAMES_MOST 64

/* Up to `most` return addresses, the innermost first; returns how many, 0 where the platform has none. The first call of
 * a process may open a library: make it without a lock (at_frames_prepare). */
int at_frames_take(void **out, int most);
void at_frames_prepare(void);

/* Names of addresses, made without a lock of attune held: the loader has one of its own. */
typedef struct at_frame_names at_frame_names;

/* An empty table; NULL: no memory. */
at_frame_names *at_frame_names_make(void);
void at_frame_names_destroy(at_frame_names *names);
/* Notes addresses to be named; may be called with locks held. False: no memory. */
bool at_frame_names_want(at_frame_names *names, void *const *addresses, size_t count);
/* Names all that are noted. Without a lock. */
void at_frame_names_find(at_frame_names *names);
/* True when all addresses that were looked up so far had been named; forgets the answer. */
bool at_frame_names_sufficed(at_frame_names *names);

/* The function with its offset, and the file that it is in; "" for what is not known. */
void at_frame_names_look(at_frame_names *names, const void *address, const char **out_function, const char **out_file);

#endif
