/* SPDX-License-Identifier: Apache-2.0
 * queue.h: the work of one created host stream: an in-order ring of items and the thread that runs them. */
#ifndef AT_HOST_QUEUE_H
#define AT_HOST_QUEUE_H

#include "src/base/backend.h"

/* Counted: the stream holds one, an event one for its latest record, a queued wait one. A closed queue has no work. */
typedef struct at_queue at_queue;

attune_status at_queue_create(at_queue **out);
void at_queue_hold(at_queue *queue);
void at_queue_drop(at_queue *queue);

/* Waits for all work, ends the thread and drops the queue. In a child of the fork it only drops. */
void at_queue_close(at_queue *queue);

/* DEVICE_ERROR in a process that was forked after the queue was made: its thread stayed in the parent. */
attune_status at_queue_check(const at_queue *queue);

/* The same before at_queue_submit and at_queue_wait, which would wait for ever; INVALID_ARGUMENT also where the calling
 * thread runs the queue's work: of a queue that is full, and of a position that is not reached. */
attune_status at_queue_check_submit(const at_queue *queue);
attune_status at_queue_check_wait(const at_queue *queue, uint64_t position);

/* Whether the calling thread runs the queue's work, or with NULL any queue's. */
bool at_queue_runs_here(const at_queue *queue);

/* Puts fn(copy of args[bytes]) at the end; waits while the ring is full. Returns the position that is reached when it
 * is done. */
uint64_t at_queue_submit(at_queue *queue, void (*fn)(const void *args), const void *args, size_t bytes);

/* The number of items given so far: the position that is reached when all of them are done. */
uint64_t at_queue_end(const at_queue *queue);
bool at_queue_reached(const at_queue *queue, uint64_t position);
void at_queue_wait(at_queue *queue, uint64_t position);

/* Waits for what all queues of this process were given before the call. */
void at_queue_wait_all(void);

/* Once, before the first queue and before any other handler that holds a lock over fork: a child has none of the
 * queues.
 */
void at_queue_watch_fork(void);

#endif
