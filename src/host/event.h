/* SPDX-License-Identifier: Apache-2.0
 * event.h: events of the host: the slots that host/device.c collects, and what replays of graphs do with external
 * ones. */
#ifndef AT_HOST_EVENT_H
#define AT_HOST_EVENT_H

#include "src/base/backend.h"
#include "src/host/queue.h"

attune_status at_host_event_open(attune_event *event);
void at_host_event_close(attune_event *event);
attune_status at_host_event_record(attune_event *event, attune_stream *stream);
attune_status at_host_event_wait(attune_stream *stream, attune_event *event);
attune_status at_host_event_query(attune_event *event);
attune_status at_host_event_synchronize(attune_event *event);
attune_status at_host_event_elapsed(double *out_ns, attune_event *start, attune_event *stop);

typedef struct at_host_event at_host_event;

/* The latest record of an event: what to wait for, and when it was reached. A wait takes a copy, so that a later record
 * does not change what is waited for. */
typedef struct at_host_record {
  uint64_t number;   /* 1 for the first; 0: never recorded */
  at_queue *queue;   /* where it was recorded, counted; NULL: on the default stream, reached at once */
  uint64_t position; /* reached when the queue has */
  int64_t time_ns;   /* valid once reached */
} at_host_record;

/* Marks the nodes of external events in a recording; their argument is an at_host_event *. */
void at_host_record_node(const void *args);
void at_host_wait_node(const void *args);

/* A replay that is to be given to the queue (NULL: runs at once) will record the event: its number. place: where the
 * replay lies, once that is known. happen: the replay comes to the record, which gives the time; once for each plan.
 * The record is reached with the whole replay. */
uint64_t at_host_event_plan(at_host_event *event, at_queue *queue);
void at_host_event_place(at_host_event *event, uint64_t number, uint64_t position);
void at_host_event_happen(at_host_event *event, uint64_t number);

/* The state that a wait waits for, held; await waits for it and releases it. */
at_host_record at_host_event_take(at_host_event *event);
void at_host_record_await(const at_host_record *record);

#endif
