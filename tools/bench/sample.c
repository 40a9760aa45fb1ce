/* SPDX-License-Identifier: Apache-2.0
 * sample.c: how a case is timed.
 *
 * A sample is a batch of calls between two looks at the clock or between two events of the stream. One call goes before
 * it, untimed: another process had the machine, and that one call finds other caches and a device that sleeps. On a
 * stream the timed calls are queued while that one runs, so that what launching the first of them costs does not show.
 * Where the caches are to be empty every call is a batch of its own, and they are emptied before it. */
#include "tools/bench/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/backend.h"
#include "src/host/cpu_capacity.h"
#include "src/host/thread_times.h"
#include "tools/bench/caches.h"

enum { MOST_UNITS = 1 << 26, MOST_GRAPH_CALLS = 100, MOST_LOOKS = 40, GROWTH = 16, WAKE_FROM = 8 };
static const double AGREE = 0.1;       /* two looks that differ by less: it is warm */
static const double LONG_ENOUGH = 0.2; /* of a sample: what a look must take to count */
static const double LIMIT = 16.0;      /* samples' time that warming up may take */
static const double BUSY = 0.05;       /* of a CPU: from here on other threads are at work */

/* The function that failed, before what it said, if it said something. */
static attune_status fail_of(const char *what, attune_status status) {
  const char *name = attune_status_string(status);
  return *attune_last_message() ? at_fail_prefix(status, "%s: %s: ", what, name)
                                : at_fail(status, "%s: %s", what, name);
}

/* From here on, messages are those of the program's function. */
static void forget_message(void) {
  if (*attune_last_message()) (void)at_message_settle(&(at_message){.text = ""}, ATTUNE_OK);
}

static attune_status run_calls(const at_bench_timing *t, attune_stream *stream, int from, int to) {
  const attune_bench_case *c = &t->entry->shown;
  attune_status status = ATTUNE_OK;
  if (t->entry->calls)
    status = t->entry->calls(c->arg, stream, from, to);
  else
    for (int i = from; i < to && status == ATTUNE_OK; i++) status = c->run(c->arg, stream);
  return status == ATTUNE_OK ? ATTUNE_OK : fail_of("run", status);
}

static attune_status give_units(at_bench_timing *t, int64_t units) {
  attune_status status = ATTUNE_OK;
  if (!t->graph) {
    if (t->next > MOST_UNITS) t->next = 0;
    status = run_calls(t, t->stream, t->next, t->next + (int)units);
    t->next += (int)units;
    return status;
  }
  for (int64_t i = 0; i < units && status == ATTUNE_OK; i++) status = attune_graph_replay(t->graph, t->stream);
  return status;
}

/* CPU time so far: of the process, and of it that of threads but the calling one. */
typedef struct cpu_times {
  int64_t all_ns, others_ns;
} cpu_times;

static cpu_times look_at_cpu(void) {
  const int64_t all_ns = at_cpu_time_ns();
  return (cpu_times){all_ns, all_ns - at_thread_time_ns()};
}

/* Some units as one piece, into ns and cpu_ns. */
static attune_status time_units(at_bench_timing *t, int64_t units, double *ns, double *cpu_ns) {
  const cpu_times before = look_at_cpu();
  const int64_t start = at_now_ns();
  attune_status status = t->start ? attune_event_record(t->start, t->stream) : ATTUNE_OK;
  if (status == ATTUNE_OK) status = give_units(t, units);
  if (status == ATTUNE_OK && t->start) status = attune_event_record(t->stop, t->stream);
  if (status == ATTUNE_OK && t->start) status = attune_stream_synchronize(t->stream);
  *ns = (double)(at_now_ns() - start);
  const cpu_times now = look_at_cpu();
  *cpu_ns = (double)(now.all_ns - before.all_ns);
  t->team = (double)(now.others_ns - before.others_ns) > BUSY * *cpu_ns;
  return status == ATTUNE_OK && t->start ? attune_event_elapsed_ns(ns, t->start, t->stop) : status;
}

static attune_status empty_caches(at_bench_timing *t) {
  if (t->start) return attune_fill(t->stream, t->flush, 0, t->flush_bytes);
  at_caches_empty(t->flush, t->flush_bytes);
  return ATTUNE_OK;
}

/* So many units, in one piece or in one for each. */
static attune_status time_batch(at_bench_timing *t, int64_t units, double *ns, double *cpu_ns) {
  if (!t->flushed) return time_units(t, units, ns, cpu_ns);
  attune_status status = ATTUNE_OK;
  *ns = *cpu_ns = 0.0;
  for (int64_t i = 0; i < units && status == ATTUNE_OK; i++) {
    double one = 0.0, cpu = 0.0;
    status = empty_caches(t);
    if (status == ATTUNE_OK) status = time_units(t, 1, &one, &cpu);
    *ns += one;
    *cpu_ns += cpu;
  }
  return status;
}

/* Threads that worked for a sample may spin on for a while, in wait for more, and so be in the way of what is timed
 * next, here or in another process. Waits until they sleep, but not for ever. */
static void settle(bool team) {
  enum { LOOKS = 150, NAP_NS = 400000 };
  for (int look = 0; look < LOOKS && team; look++) {
    const cpu_times before = look_at_cpu();
    const int64_t start = at_now_ns();
    (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    const cpu_times now = look_at_cpu();
    team = (double)(now.others_ns - before.others_ns) > BUSY * (double)(at_now_ns() - start);
  }
}

/* ---- opening ---- */

static attune_status make_streams(at_bench_timing *t) {
  const at_bench_entry *entry = t->entry;
  attune_device *device = entry->shown.device;
  attune_status status = ATTUNE_OK;
  if (!device) return ATTUNE_OK;
  if (!entry->inside || (entry->shown.flags & ATTUNE_BENCH_GRAPH)) status = attune_stream_create(&t->made, device);
  t->stream = entry->inside ? attune_stream_default(device) : t->made;
  if (entry->inside || status != ATTUNE_OK) return status;
  status = attune_event_create(&t->start, device, NULL);
  return status == ATTUNE_OK ? attune_event_create(&t->stop, device, NULL) : status;
}

static int turn_of(const at_bench_entry *entry) {
  return entry->turn ? entry->turn(entry->shown.arg) : 0;
}

/* From now on the caches are emptied before every unit. */
static attune_status make_flush(at_bench_timing *t) {
  t->flushed = true;
  t->flush_bytes = at_caches_bytes(t->entry->shown.device);
  if (t->start) return attune_alloc(&t->flush, t->stream, t->flush_bytes);
  t->flush = at_caches_memory(t->flush_bytes);
  return t->flush ? ATTUNE_OK
                  : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu bytes to empty the caches", t->flush_bytes);
}

static attune_status capture_calls(void *user, attune_stream *stream) {
  const at_bench_timing *t = user;
  return run_calls(t, stream, 0, t->unit);
}

/* A graph of some calls: one where the caches are emptied between replays, else as many as a part of a sample takes,
 * and a whole turn of the operands. Where that takes too long, the caches are emptied instead. */
static attune_status make_graph(at_bench_timing *t, double once_ns, double sample_ns) {
  const at_bench_entry *entry = t->entry;
  const bool cold = entry->shown.flags & ATTUNE_BENCH_COLD;
  const int turn = cold ? turn_of(entry) : 0;
  const double calls = once_ns > 0.0 ? sample_ns / once_ns : MOST_GRAPH_CALLS;
  attune_status status = ATTUNE_OK;
  if (cold && !t->flushed && (double)turn > 2.0 * calls) status = make_flush(t);
  t->unit = t->flushed ? 1 : calls > MOST_GRAPH_CALLS ? MOST_GRAPH_CALLS : calls < 1.0 ? 1 : (int)calls;
  if (!t->flushed && t->unit < turn) t->unit = turn;
  attune_graph *graph = NULL;
  if (status == ATTUNE_OK) status = attune_graph_create(&graph, entry->shown.device);
  if (status == ATTUNE_OK) status = attune_graph_capture_callback(graph, t->made, NULL, capture_calls, t);
  t->graph = graph;
  return status;
}

/* Looks at more and more units until they take long enough, and as long as the look before; each look's number of them
 * grows by a bounded factor, so that one that was too short by chance does no harm. */
static attune_status warm_up(at_bench_timing *t, double sample_ns, double *unit_ns) {
  const int64_t until = at_now_ns() + (int64_t)(LIMIT * sample_ns);
  double before = 0.0;
  int64_t units = 1;
  for (int look = 0; look < MOST_LOOKS; look++) {
    double ns = 0.0, cpu_ns = 0.0;
    const int64_t start = at_now_ns();
    const attune_status status = time_batch(t, units, &ns, &cpu_ns);
    const double wall = (double)(at_now_ns() - start), all = ns > wall ? ns : wall, each = all / (double)units;
    if (status != ATTUNE_OK) return status;
    const bool enough = all >= LONG_ENOUGH * sample_ns, warm = fabs(each - before) <= AGREE * each;
    *unit_ns = each;
    if ((enough && warm) || at_now_ns() >= until) return ATTUNE_OK;
    before = enough ? each : 0.0; /* short looks agree too easily */
    if (enough) continue;
    const double wanted = each > 0.0 ? 2.0 * LONG_ENOUGH * sample_ns / each : MOST_UNITS;
    const int64_t most = units * GROWTH < MOST_UNITS ? units * GROWTH : MOST_UNITS;
    units = wanted > (double)most ? most : wanted < 1.0 ? 1 : (int64_t)ceil(wanted);
  }
  return ATTUNE_OK;
}

static attune_status calibrate(at_bench_timing *t, double sample_ns) {
  double unit_ns = 0.0;
  t->unit = 1;
  attune_status status = warm_up(t, sample_ns, &unit_ns);
  if (status == ATTUNE_OK && (t->entry->shown.flags & ATTUNE_BENCH_GRAPH)) status = make_graph(t, unit_ns, sample_ns);
  if (status == ATTUNE_OK && t->graph) status = warm_up(t, sample_ns, &unit_ns);
  const double units = unit_ns > 0.0 ? sample_ns / unit_ns : MOST_UNITS;
  t->units = units > MOST_UNITS ? MOST_UNITS : units < 1.0 ? 1 : (int64_t)(units + 0.5);
  t->wakes = !t->flushed && (t->start || t->units >= WAKE_FROM);
  settle(t->team);
  return status;
}

attune_status at_bench_open(at_bench_timing *out, const at_bench_entry *entry, double sample_ns, uint64_t seed) {
  const attune_bench_case *c = &entry->shown;
  *out = (at_bench_timing){.unit = 1, .units = 1};
  if (entry->seed) entry->seed(c->arg, seed);
  forget_message();
  attune_status status = c->set_up ? c->set_up(c->arg) : ATTUNE_OK;
  if (status != ATTUNE_OK) return fail_of("set_up", status);
  out->entry = entry;
  status = make_streams(out);
  if (status == ATTUNE_OK && (c->flags & ATTUNE_BENCH_COLD) && turn_of(entry) == 0) status = make_flush(out);
  if (status == ATTUNE_OK) status = calibrate(out, sample_ns);
  if (status != ATTUNE_OK) at_bench_close(out);
  return status;
}

int64_t at_bench_calls(const at_bench_timing *timing) {
  const unsigned repeats = timing->entry->shown.repeats;
  return timing->units * timing->unit * (repeats ? repeats : 1);
}

attune_status at_bench_take(at_bench_timing *t, at_bench_sample *out) {
  attune_status status = t->wakes ? give_units(t, 1) : ATTUNE_OK;
  const double calls = (double)at_bench_calls(t);
  out->start_ns = at_now_ns();
  if (status == ATTUNE_OK) status = time_batch(t, t->units, &out->ns, &out->cpu_ns);
  out->ns /= calls;
  out->cpu_ns /= calls;
  settle(t->team);
  return status;
}

static void look_at_clock(at_bench_clock *clock, const at_bench_timing *t) {
  attune_device *device = t->entry->shown.device;
  at_clock_state now = {0};
  if (!device || device->backend.telemetry->clock_state(device, &now) != ATTUNE_OK) return;
  clock->mhz = now.clock_mhz;
  clock->throttled = clock->throttled || now.slowed;
}

void at_bench_clock_begin(at_bench_clock *clock, const at_bench_timing *timing) {
  *clock = (at_bench_clock){0};
  look_at_clock(clock, timing);
}

void at_bench_clock_end(at_bench_clock *clock, const at_bench_timing *timing) {
  look_at_clock(clock, timing);
}

void at_bench_close(at_bench_timing *t) {
  if (!t->entry) return;
  const attune_bench_case *c = &t->entry->shown;
  const at_message kept = at_message_keep(); /* of what failed, if something did */
  if (t->stream) (void)attune_stream_synchronize(t->stream);
  attune_graph_destroy(t->graph);
  if (t->flush && t->start)
    (void)attune_free(t->flush, t->stream);
  else
    free(t->flush);
  attune_event_destroy(t->start);
  attune_event_destroy(t->stop);
  if (c->tear_down) c->tear_down(c->arg);
  attune_stream_destroy(t->made);
  (void)at_message_settle(&kept, ATTUNE_OK);
  *t = (at_bench_timing){.unit = 1, .units = 1};
}
