/* SPDX-License-Identifier: Apache-2.0
 * sampler.c: how a sample is taken.
 *
 * CUDA: a round gives the stream event, graph, event, graph, event ... at once and waits at the end, so that the device
 * never idles between targets and host cost is not in the times. Each graph replays `calls` launches over operand
 * copies of its own, so that a replay does not find its inputs in the cache. Host: sampler_host.c. */
#include "tuning/measure/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/cpu_capacity.h"
#include "src/host/cpu_preemption.h"
#include "src/process/limit.h"
#include "tuning/measure/sampler_host.h"

attune_status at_sampler_launch(const at_sampler *sampler, const at_plan *plan, int copy) {
  return plan->launch(plan, at_operand_set_operands(sampler->operands, copy % sampler->operands->copies),
                      sampler->timer->stream);
}

attune_status at_sampler_launch_calls(const at_sampler *sampler, const at_timing_target *target, int from, int to) {
  attune_status status = ATTUNE_OK;
  for (int i = from; i < to && status == ATTUNE_OK; i++)
    status = at_sampler_launch(sampler, target->plan, target->first_copy + i);
  return status;
}

static const double QUICK_NS_CUDA = 150e3, QUICK_NS_HOST = AT_SAMPLER_QUICK_NS_HOST; /* a sample of the screening */
static const double SURE_NS_CUDA = 500e3, SURE_NS_HOST = 500e3;                      /* a sample of the race */
/* A graph of the race is so long: what its start costs counts as little as in a program, for kernels that begin while
 * the one before them ends too. */
static const double GRAPH_NS = 500e3;
static const double GRAPH_BELOW_NS = 400e3; /* longer work hides its launch cost */
static const double WARM_BELOW_NS = 2e6;    /* longer work does not see where its inputs were at its start */
static const size_t COLD_BYTES = (size_t)256 << 20;
enum {
  LEAST_GRAPH_CALLS = 5,
  ENOUGH_GRAPH_CALLS = 40,
  MOST_GRAPH_CALLS = 100,
  MOST_EAGER_CALLS = 20000,
  MOST_TURNS = 8
};

static bool on_host(const at_timer *timer) {
  return timer->device->properties.kind == ATTUNE_DEVICE_HOST;
}

attune_status at_timer_create(at_timer **out, attune_device *device) {
  *out = NULL;
  at_timer *timer = calloc(1, sizeof *timer);
  if (!timer) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a timer");
  timer->device = device;
  attune_status status = at_random_create(&timer->random, (uint64_t)at_now_ns());
  if (status == ATTUNE_OK && on_host(timer)) {
    (void)at_cpu_capacity(); /* now, so that no search's time is spent on it */
    timer->stream = attune_stream_default(device);
  } else if (status == ATTUNE_OK) {
    status = attune_stream_create(&timer->stream, device);
    for (int i = 0; i <= AT_ROUND_TARGETS && status == ATTUNE_OK; i++)
      status = attune_event_create(&timer->events[i], device, NULL);
  }
  if (status != ATTUNE_OK) {
    at_timer_destroy(timer);
    return status;
  }
  *out = timer;
  return ATTUNE_OK;
}

void at_timer_destroy(at_timer *timer) {
  if (!timer) return;
  for (int i = 0; i <= AT_ROUND_TARGETS; i++) attune_event_destroy(timer->events[i]);
  attune_stream_destroy(timer->stream);
  at_random_destroy(timer->random);
  free(timer);
}

attune_status at_sampler_open(at_sampler *sampler, at_timer *timer, const at_op *op, const void *problem,
                              attune_measure measure) {
  memset(sampler, 0, sizeof *sampler);
  sampler->timer = timer;
  sampler->op = op;
  sampler->problem = problem;
  sampler->calls = sampler->turns = 1;
  sampler->open_ns = at_now_ns();
  sampler->open_cpu_ns = at_cpu_time_ns();
  sampler->open_busy_ns = on_host(timer) ? at_busy_time_ns() : -1;
  sampler->seed = (uint64_t)at_now_ns() * 0x9E3779B97F4A7C15u;
  sampler->cold = measure == ATTUNE_MEASURE_COLD_GRAPH || measure == ATTUNE_MEASURE_COLD_EAGER;
  sampler->graphs = (measure == ATTUNE_MEASURE_COLD_GRAPH || measure == ATTUNE_MEASURE_HOT_GRAPH) &&
                    timer->device->backend.graph && !on_host(timer);
  sampler->graph = sampler->graphs;
  size_t one = 0;
  AT_TRY(at_operand_bytes(op, problem, &one));
  AT_TRY(at_operand_room(timer->device, one));
  const size_t cache = (size_t)timer->device->properties.cache_bytes,
               memory = (size_t)timer->device->properties.memory_bytes;
  const size_t usual = 4 * cache > COLD_BYTES ? 4 * cache : COLD_BYTES;
  const size_t wanted = (size_t)timer->settings.rotate_mb << 20;
  const size_t cold = wanted ? wanted : usual;
  const size_t copies = sampler->cold && one ? (cold + one - 1) / one : 1;
  attune_status status = at_operand_set_create(&sampler->operands, op, problem, timer->stream, timer->random,
                                               copies > AT_MAX_COPIES ? AT_MAX_COPIES : (int)copies, memory / 4, false);
  if (status == ATTUNE_OK) at_operand_set_place(sampler->operands, sampler->seed);
  return status;
}

double at_sampler_others(const at_sampler *sampler) {
  const int64_t busy_ns = sampler->open_busy_ns < 0 ? -1 : at_busy_time_ns();
  if (busy_ns < 0) return -1.0;
  const double wall = (double)(at_now_ns() - sampler->open_ns), own = (double)(at_cpu_time_ns() - sampler->open_cpu_ns),
               all = (double)(busy_ns - sampler->open_busy_ns);
  return wall > 0.0 && all > own ? (all - own) / wall : 0.0;
}

void at_sampler_close(at_sampler *sampler) {
  at_operand_set_destroy(sampler->operands);
  sampler->operands = NULL;
}

/* Warm-up that the settings want beyond the first launch. */
static attune_status warm_up(at_sampler *sampler, at_plan *plan) {
  const attune_search_options *s = &sampler->timer->settings;
  const int64_t start_ns = at_now_ns(), until_ns = sampler->warm_until_ns ? sampler->warm_until_ns : INT64_MAX;
  attune_status status = ATTUNE_OK;
  const double least_ns = s->warmup_ms * 1e6;
  for (int i = 1; status == ATTUNE_OK && (i < s->warmups || (double)(at_now_ns() - start_ns) < least_ns); i++) {
    if (at_now_ns() >= until_ns) break;
    status = at_sampler_launch(sampler, plan, sampler->next_copy + i);
    if (status == ATTUNE_OK) status = attune_stream_synchronize(sampler->timer->stream);
  }
  return status;
}

/* Two launches, the second timed by events or, on the host, by the clock. The first is by the clock from when the call
 * returns, which loading the code comes before: enough to know one that is far too slow. */
attune_status at_sampler_try(at_sampler *sampler, at_timing_target *target, at_plan *plan, double slow_ns) {
  at_timer *timer = sampler->timer;
  const bool host = on_host(timer);
  memset(target, 0, sizeof *target);
  target->plan = plan;
  attune_status status = at_timer_between(timer);
  int64_t given_ns = at_now_ns();
  if (status == ATTUNE_OK) status = at_sampler_launch(sampler, plan, sampler->next_copy);
  if (!host) given_ns = at_now_ns();
  if (status == ATTUNE_OK) status = attune_stream_synchronize(timer->stream);
  target->once_ns = (double)(at_now_ns() - given_ns);
  if (status != ATTUNE_OK || at_limit_left_ns() <= 0.0) return status; /* the limit ends with it */
  if (host) status = warm_up(sampler, plan);
  if (status == ATTUNE_OK && host) return at_sampler_try_host(sampler, target);
  if (status == ATTUNE_OK && target->once_ns > slow_ns) return ATTUNE_OK;
  if (status == ATTUNE_OK) status = warm_up(sampler, plan);
  if (status == ATTUNE_OK) status = attune_event_record(timer->events[0], timer->stream);
  if (status == ATTUNE_OK) status = at_sampler_launch(sampler, plan, sampler->next_copy + 1);
  if (status == ATTUNE_OK) status = attune_event_record(timer->events[1], timer->stream);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(timer->stream);
  return status == ATTUNE_OK ? attune_event_elapsed_ns(&target->once_ns, timer->events[0], timer->events[1]) : status;
}

static int clamp(double value, int least, int most) {
  return value < least ? least : value > most ? most : (int)value;
}

void at_sampler_calibrate(at_sampler *sampler, double once_ns) {
  const bool host = on_host(sampler->timer);
  sampler->graph = sampler->graphs && once_ns <= GRAPH_BELOW_NS;
  if (once_ns < 1.0) once_ns = 1.0;
  double calls = (host ? QUICK_NS_HOST : QUICK_NS_CUDA) / once_ns;
  if (sampler->cold &&
      sampler->operands->set_bytes) { /* one sample should not find its own first inputs in the cache again */
    const double turn =
        2.0 * (double)sampler->timer->device->properties.cache_bytes / (double)sampler->operands->set_bytes;
    if (calls < turn) calls = turn;
  }
  const int most = sampler->graph ? MOST_GRAPH_CALLS : host ? MOST_EAGER_CALLS : MOST_GRAPH_CALLS;
  sampler->calls = clamp(calls, 1, most);
  sampler->once_ns = once_ns;
}

bool at_sampler_be_sure(at_sampler *sampler) {
  const int calls = sampler->calls;
  if (sampler->graph) {
    const int least = clamp(GRAPH_NS / sampler->once_ns, LEAST_GRAPH_CALLS, ENOUGH_GRAPH_CALLS);
    if (calls < least) sampler->calls = least;
  }
  const bool host = on_host(sampler->timer);
  const double turns = (host ? SURE_NS_HOST : SURE_NS_CUDA) / (sampler->once_ns * sampler->calls);
  sampler->turns = clamp(turns + (host ? 1.0 : 0.5), 1, MOST_TURNS);
  return sampler->calls != calls;
}

int at_sampler_placements(const at_sampler *sampler) {
  return sampler->graph ? AT_GRAPH_PLACEMENTS : AT_MAX_SAMPLES;
}

void at_sampler_place(at_sampler *sampler, int placement) {
  if (placement == sampler->placement) return;
  at_operand_set_place(sampler->operands, sampler->seed + (uint64_t)placement);
  sampler->placement = placement;
  sampler->moved = true;
}

/* A graph of a sample's calls at the present placement. */
static attune_status capture(at_sampler *sampler, at_timing_target *target) {
  attune_stream *stream = sampler->timer->stream;
  const at_backend_graph *backend = stream->device->backend.graph;
  attune_status status = backend->capture_begin(stream);
  if (status != ATTUNE_OK) return status;
  for (int i = 0; i < sampler->calls && status == ATTUNE_OK; i++)
    status = at_sampler_launch(sampler, target->plan, target->first_copy + i);
  at_graph *graph = NULL;
  const attune_status ended = backend->capture_end(stream, &graph);
  if (status == ATTUNE_OK) status = ended;
  if (status == ATTUNE_OK)
    target->graphs[sampler->placement] = graph;
  else if (graph)
    backend->destroy(graph);
  return status;
}

attune_status at_sampler_ready(at_sampler *sampler, at_timing_target *target) {
  if (sampler->graph && target->graphs[sampler->placement]) return ATTUNE_OK;
  target->first_copy = sampler->next_copy;
  sampler->next_copy = (sampler->next_copy + sampler->calls) % sampler->operands->copies;
  if (on_host(sampler->timer)) at_sampler_ready_host(sampler, target);
  if (!sampler->graph) return ATTUNE_OK;
  const int64_t start_ns = at_now_ns();
  const attune_status status = capture(sampler, target);
  const double took_ns = (double)(at_now_ns() - start_ns);
  sampler->ready_ns = sampler->ready_ns > 0.0 ? 0.8 * sampler->ready_ns + 0.2 * took_ns : took_ns;
  return status;
}

void at_sampler_forget(at_sampler *sampler, at_timing_target *target) {
  at_sampler_forget_host(sampler, target);
  for (int i = 0; i < AT_GRAPH_PLACEMENTS; i++) {
    if (target->graphs[i]) sampler->timer->device->backend.graph->destroy(target->graphs[i]);
    target->graphs[i] = NULL;
  }
}

/* Gives the stream one sample's work. */
static attune_status enqueue(at_sampler *sampler, const at_timing_target *target) {
  attune_stream *stream = sampler->timer->stream;
  at_graph *graph = sampler->graph ? target->graphs[sampler->placement] : NULL;
  attune_status status = ATTUNE_OK;
  for (int turn = 0; turn < sampler->turns && status == ATTUNE_OK; turn++) {
    if (graph)
      status = stream->device->backend.graph->launch(graph, stream);
    else
      status = at_sampler_launch_calls(sampler, target, 0, sampler->calls);
  }
  if (status != ATTUNE_OK) sampler->failed = target;
  return status;
}

static attune_status round_events(at_sampler *sampler, at_timing_target *const *targets, int count, double *ns) {
  at_timer *timer = sampler->timer;
  attune_status status =
      enqueue(sampler, targets[0]); /* untimed: wakes the device, so that the first is no worse off than the rest */
  if (status == ATTUNE_OK) status = attune_event_record(timer->events[0], timer->stream);
  for (int i = 0; i < count && status == ATTUNE_OK; i++) {
    status = enqueue(sampler, targets[i]);
    if (status == ATTUNE_OK) status = attune_event_record(timer->events[i + 1], timer->stream);
  }
  if (status == ATTUNE_OK) status = attune_stream_synchronize(timer->stream);
  for (int i = 0; i < count && status == ATTUNE_OK; i++) {
    status = attune_event_elapsed_ns(&ns[i], timer->events[i], timer->events[i + 1]);
    ns[i] /= sampler->calls * sampler->turns;
  }
  return status;
}

/* Where operands were moved, the first target of the round is not the one to bring them into the cache. */
static attune_status warm_host(at_sampler *sampler, const at_timing_target *first) {
  if (!sampler->moved || sampler->once_ns >= WARM_BELOW_NS) return ATTUNE_OK;
  const attune_status status = at_sampler_launch_calls(sampler, first, 0, 1);
  if (status != ATTUNE_OK) sampler->failed = first;
  return status;
}

attune_status at_sampler_round(at_sampler *sampler, at_timing_target *const *targets, int count, double *ns,
                               bool *good) {
  at_timer *timer = sampler->timer;
  at_clock_state before = {0}, after = {0};
  sampler->failed = NULL;
  attune_status status = at_timer_between(timer);
  if (status != ATTUNE_OK) return status;
  (void)timer->device->backend.telemetry->clock_state(timer->device, &before);
  if (on_host(timer)) status = warm_host(sampler, targets[0]);
  if (status == ATTUNE_OK)
    status =
        on_host(timer) ? at_sampler_round_host(sampler, targets, count, ns) : round_events(sampler, targets, count, ns);
  sampler->moved = false;
  (void)timer->device->backend.telemetry->clock_state(timer->device, &after);
  *good = !(before.slowed || after.slowed);
  if (!*good) sampler->disturbed += count;
  return status;
}
