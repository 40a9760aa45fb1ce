/* SPDX-License-Identifier: Apache-2.0
 * check.h: the race check: finds memory that is used by two streams, written by at least one of them, with nothing to
 * order the two uses. Such a program may give right results a thousand times and wrong ones the next. For tests and
 * debugging: ATTUNE_CHECK=races enables it for a whole program, attune_set_race_check for a part of it.
 *
 * The check considers the work given to streams, not when it ran: a race is found in every run, also on the host
 * device, except for its default stream, which is the calling thread and so always in order with it. It knows
 * - what attune's calls read and write: operations (strides and gaps too, byte by byte; of ATTUNE_POINTERS_DEVICE the
 *   arrays, not the matrices), copies, fills, random numbers, graph replays; captured work is checked within the
 *   capture and at each replay;
 * - what orders work: the order of a stream; an event that was recorded and waited for; attune_stream_wait_stream; what
 *   the program itself waited for or saw done (attune_stream_synchronize, attune_event_query returning OK ...), which
 *   comes before everything it gives to any stream later. Streams created by CUDA's own functions and the legacy
 *   default stream wait for each other, as in CUDA;
 * - memory of attune_alloc and attune_pinned_alloc: it may be used on its own stream at once, on another one only after
 *   a wait; and all its uses must come before the free, or be registered with attune_record_use.
 *
 * A use after free is not reported as such, only where it races with a later owner's use on another stream.
 *
 * It does not know what the program's own kernels do (report it with attune_note_use), events and waits by CUDA's own
 * functions (report them with attune_note_wait), or what functions of attune_stream_call do. Threads count as one:
 * their calls are taken in the order in which they came. */
#ifndef ATTUNE_CHECK_H
#define ATTUNE_CHECK_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One of the two uses. All strings are valid only during the callback. */
typedef struct attune_race_use {
  const char *call;    /* "attune_gemm", the name given to attune_note_use, "attune_free" ... */
  const char *operand; /* "d", "source" ...; "" if there is none */
  const char *access;  /* "reads", "writes", "reads and writes", "allocates" or "frees" */
  const char *stream;  /* "stream 2 of cuda:0 (0x...)", numbered in the order in which the check first met the streams;
                          "the default stream of cuda:0"; "the calling thread", which also runs the host's default
                          stream */
  uint64_t number;     /* index of the work in that stream, from 1; 0 for a free */
  const void *begin;   /* start of the memory */
  size_t bytes;        /* from the first byte to the last */
} attune_race_use;

/* Two unordered uses of the same memory, in the order of their calls. */
typedef struct attune_race {
  attune_race_use first, second;
  const void *allocation;        /* the allocation of attune_alloc or attune_pinned_alloc that contains the memory;
                                    NULL: none */
  size_t allocation_bytes;       /* rounded up */
  const char *allocation_stream; /* "" if there is no allocation */
  const char *remedy;            /* a call that would order them */
  const char *text;              /* the whole report, in one line */
} attune_race;

/* Called in the thread whose call is the second use, after that call succeeded and with no lock held. It may make
 * calls. */
typedef void (*attune_race_fn)(void *user, const attune_race *race);

/* Enables the check (nonzero; earlier work counts as ordered) or disables it. Each race is reported to `fn` (may be
 * NULL); the log has an error for the first of each kind: same calls, operands and streams. If memory runs out the
 * check ends, with an error in the log. Errors: INVALID_ARGUMENT (also: fn or user not NULL when disabling),
 * OUT_OF_MEMORY. Any thread; work that other threads are giving at that moment may be missed. */
ATTUNE_API attune_status attune_set_race_check(int on, attune_race_fn fn, void *user);

/* Returns whether the check is enabled. Any thread. */
ATTUNE_API int attune_get_race_check(void);

/* Returns the number of races found since the check was last enabled. Any thread. */
ATTUNE_API uint64_t attune_race_count(void);

/* How memory is used. */
typedef enum attune_access { ATTUNE_READS = 1, ATTUNE_WRITES = 2, ATTUNE_READS_AND_WRITES = 3 } attune_access;

/* Memory used by a piece of work. */
typedef struct attune_use {
  const char *name; /* for reports; NULL: none */
  const void *pointer;
  size_t bytes; /* 0: none */
  attune_access access;
} attune_use;

/* Reports the memory used by work, such as a kernel, that the program itself just gave to `stream`. `name` is not NULL;
 * reports show its first 55 bytes, and the first 23 of the names of uses. stream NULL: the calling thread itself uses
 * the memory now. Does nothing while the check is disabled. Errors: INVALID_ARGUMENT (also: more than 32 uses). Allowed
 * in capture. */
ATTUNE_API attune_status attune_note_use(attune_stream *stream, const char *name, const attune_use *uses, int count);

/* Reports that work given to `stream` from now on comes after all work given to `other` so far, because the program
 * ordered them in a way that attune does not see. stream NULL: the calling thread has waited for `other`. Does nothing
 * while the check is disabled. Errors: INVALID_ARGUMENT, CAPTURING (one of the two is in a capture that the other is
 * not in). */
ATTUNE_API attune_status attune_note_wait(attune_stream *stream, attune_stream *other);

#ifdef __cplusplus
}
#endif
#endif
