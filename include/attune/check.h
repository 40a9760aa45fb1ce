/* SPDX-License-Identifier: Apache-2.0
 * check.h: the race check: finds memory that two streams use although nothing orders the two uses, where at least one
 * writes. Such a program may give right results a thousand times and wrong ones the next. It is for tests and for
 * searches after a bug: ATTUNE_CHECK=races switches it on for a whole program, attune_set_race_check for a part of it.
 *
 * The check looks at what the program gave to the streams, not at when it ran: a race is found in every run, on the
 * host device too, but for its default stream: that is the calling thread, which is in order with itself. It knows
 * - what attune's calls read and write: operations (strides and gaps too, byte by byte), copies, fills, random
 *   numbers, replays of graphs; work that a capture writes down, among itself and at each replay;
 * - what orders work: the order of a stream; an event that was recorded and waited for; attune_stream_wait_stream; what
 *   the program itself waited for or saw done (attune_stream_synchronize, attune_event_query that answers OK ...), which
 *   comes before all it gives to any stream later. Streams made by CUDA's own functions wait for the legacy default
 *   stream and it for them, as CUDA has it;
 * - memory of attune_alloc and attune_pinned_alloc: it may be used on its own stream at once, on another one only after
 *   a wait; and all its uses must come before the free, or be named by attune_record_use.
 *
 * A use after the free is not told as such, only where it meets a later owner's use on another stream.
 *
 * It does not know what the program's own kernels do (attune_note_use tells it), events and waits by CUDA's own
 * functions (attune_note_wait tells it), and what functions of attune_stream_call do. Threads count as one: their calls
 * are taken in the order in which they came. */
#ifndef ATTUNE_CHECK_H
#define ATTUNE_CHECK_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One of the two uses. All texts are valid during the callback only. */
typedef struct attune_race_use {
  const char *call;    /* "attune_gemm", the name given to attune_note_use, "attune_free" ... */
  const char *operand; /* "d", "source" ...; "" where there is none */
  const char *access;  /* "reads", "writes", "reads and writes", "allocates" or "frees" */
  const char *stream;  /* "stream 2 of cuda:0 (0x...)", where the number says when the check first met it; "the default
                          stream of cuda:0"; "the calling thread", which also runs the host's default stream */
  uint64_t number;     /* which piece of that stream's work it is, from 1; 0 for a free */
  const void *begin;   /* of the memory */
  size_t bytes;        /* from its first byte to its last one */
} attune_race_use;

/* Two uses of the same memory that nothing orders, in the order of their calls. */
typedef struct attune_race {
  attune_race_use first, second;
  const void *allocation;        /* the memory of attune_alloc or attune_pinned_alloc that it lies in; NULL: none */
  size_t allocation_bytes;       /* rounded up */
  const char *allocation_stream; /* "" when there is none */
  const char *remedy;            /* a call that would order them */
  const char *text;              /* all of it, in one line */
} attune_race;

/* Called in the thread whose call is the second use, after that call went well and without a lock. It may make calls. */
typedef void (*attune_race_fn)(void *user, const attune_race *race);

/* Switches the check on (nonzero; what happened before counts as ordered) or off. Each race is told to `fn` (may be
 * NULL); the log has an error for the first of each kind: the same calls, operands and streams. Memory that is short
 * ends the check, with an error in the log. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread; work of other threads
 * under way may go unseen. */
ATTUNE_API attune_status attune_set_race_check(int on, attune_race_fn fn, void *user);

/* Whether it is on. Any thread. */
ATTUNE_API int attune_get_race_check(void);

/* How many races were found since it was last switched on. Any thread. */
ATTUNE_API uint64_t attune_race_count(void);

/* How memory is used. */
typedef enum attune_access { ATTUNE_READS = 1, ATTUNE_WRITES = 2, ATTUNE_READS_AND_WRITES = 3 } attune_access;

/* Memory that a piece of work uses. */
typedef struct attune_use {
  const char *name; /* for reports; NULL: none */
  const void *pointer;
  size_t bytes; /* 0: none */
  attune_access access;
} attune_use;

/* Says that work which the program itself just gave to `stream`, such as a kernel, uses this memory; `name` is not
 * NULL; reports have its first 55 bytes, and the first 23 of the names of uses. stream NULL: the calling thread itself
 * uses it now. Does nothing while the check is off.
 * Errors: INVALID_ARGUMENT (more than 32 uses, too). Allowed in capture. */
ATTUNE_API attune_status attune_note_use(attune_stream *stream, const char *name, const attune_use *uses, int count);

/* Says that work given to `stream` from now on comes after all work given to `other` so far: the program made sure of it
 * in a way that attune does not see. stream NULL: the calling thread has waited for `other`. Does nothing while the check
 * is off. Errors: INVALID_ARGUMENT, CAPTURING (one of the two is in a capture that the other is not in). */
ATTUNE_API attune_status attune_note_wait(attune_stream *stream, attune_stream *other);

#ifdef __cplusplus
}
#endif
#endif
