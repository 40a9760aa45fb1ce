/* SPDX-License-Identifier: Apache-2.0
 * sampler_host.c: how a sample is taken on the host: the default stream runs inline, so the clock around the calls is
 * the time. The vendor's own call is made bare; attune's short ones go through the public function, so that what
 * dispatch costs counts. A sample that keeps more CPUs busy than the machine sustains counts as long as it would take
 * with those that it does sustain: a burst is no evidence. Nor is a sample whose threads others kept from the CPUs: it
 * is taken again. */
#include "tuning/measure/sampler_host.h"

#include <math.h>
#include <time.h>

#include "src/host/cpu_capacity.h"
#include "src/host/cpu_preemption.h"
#include "src/host/thread_times.h"

/* Calls longer than this hide what dispatch costs. */
static const double CALLER_BELOW_NS = 5000.0;

static at_bare_calls calls_of(const at_sampler *sampler, int from, int to) {
  const at_operand_set *set = sampler->operands;
  return (at_bare_calls){set->operands, set->operands_stride, set->copies, from, to};
}

void at_sampler_ready_host(at_sampler *sampler, at_timing_target *target) {
  const at_op *op = sampler->op;
  if (target->bare || target->called || !op->timed_call || sampler->once_ns >= CALLER_BELOW_NS) return;
  target->called = true;
  const at_bare_calls all = calls_of(sampler, 0, 0);
  if (op->timed_call->create(&target->caller, target->plan, &all, sampler->timer->stream) != ATTUNE_OK)
    target->caller = NULL; /* launched, then */
}

void at_sampler_forget_host(at_sampler *sampler, at_timing_target *target) {
  if (target->caller) sampler->op->timed_call->destroy(target->caller);
  target->caller = NULL;
}

static attune_status make_calls(at_sampler *sampler, const at_timing_target *target, int from, int to) {
  const at_bare_calls calls = calls_of(sampler, target->first_copy + from, target->first_copy + to);
  if (target->bare) return target->plan->implementation->bare(target->plan, &calls);
  if (target->caller) return sampler->op->timed_call->run(target->caller, sampler->timer->stream, calls.from, calls.to);
  return at_sampler_launch_calls(sampler, target, from, to);
}

/* CPUs that a sample of a team kept busy: its threads at most, for a library's may spin on after its calls. */
static double busy_cpus(int64_t cpu_ns, int64_t wall_ns, int threads) {
  const double cpus = wall_ns > 0 ? (double)cpu_ns / (double)wall_ns : 1.0;
  return cpus < 1.0 ? 1.0 : cpus > (double)threads ? (double)threads : cpus;
}

/* Threads that a target may have at work. */
static int threads_of(const at_timing_target *target) {
  const at_plan *plan = target->plan;
  int64_t threads = 1;
  if (target->bare && plan->implementation->bare_threads) return plan->implementation->bare_threads(plan);
  return at_configuration_get(&plan->configuration, "threads", &threads) && threads > 1 ? (int)threads : 1;
}

/* CPU time that a stretch of work got. */
typedef struct stretch {
  at_waits waits; /* of a team */
  int threads;
  int64_t start_ns, thread_ns, cpu_ns;
} stretch;

/* A thread that others keep from its CPU loses milliseconds at a time; what a team's threads lose to each other and to
 * waking up is less than this. */
static const double MOST_TAKEN = 0.05, MOST_TAKEN_OF_TEAM = 0.15;

static void begin(stretch *s, int threads) {
  s->threads = threads;
  if (threads > 1) at_waits_look(&s->waits);
  s->cpu_ns = threads > 1 ? at_cpu_time_ns() : 0;
  s->thread_ns = at_thread_time_ns();
  s->start_ns = at_now_ns();
}

/* How long it took; and into the target: the CPUs that were busy, and what others took. One thread alone does nothing
 * but compute, so what it lacks of the clock's time was taken; those of a team may also sleep. */
static int64_t end(const stretch *s, at_timing_target *target) {
  const int64_t wall = at_now_ns() - s->start_ns, own = at_thread_time_ns() - s->thread_ns;
  int64_t lost = wall - own;
  target->cpus = 1.0;
  if (s->threads > 1) {
    at_waits now;
    target->cpus = busy_cpus(at_cpu_time_ns() - s->cpu_ns, wall, s->threads);
    at_waits_look(&now);
    lost = at_waits_most(&s->waits, &now);
  }
  target->taken = wall > 0 && lost > 0 ? (double)lost / (double)wall : 0.0;
  target->rough = target->taken > (s->threads > 1 ? MOST_TAKEN_OF_TEAM : MOST_TAKEN);
  return wall;
}

/* A call's time with the CPUs that the machine sustains. */
static double sustained_ns(const at_timing_target *target, const stretch *s, int64_t wall, int calls) {
  const double sustained = s->threads > 1 ? at_cpu_capacity() : 1.0;
  return (double)wall / calls * (target->cpus > sustained ? target->cpus / sustained : 1.0);
}

/* What came before left other data in the caches, another clock, threads asleep: a program that calls it again and
 * again sees none of that, nor does `attune verify`. So the first calls do not count, where they are short. */
static const double LEAD_SHARE = 0.1, LEAD_BELOW_NS = 1e6;

static attune_status lead(at_sampler *sampler, const at_timing_target *target, int calls) {
  if (sampler->once_ns >= LEAD_BELOW_NS) return ATTUNE_OK;
  return make_calls(sampler, target, 0, 1 + (int)(LEAD_SHARE * calls));
}

/* One sample in parts; a target that takes far longer than the default (a library whose threads wait for a busy CPU)
 * is stopped after one. */
static attune_status sample_host(at_sampler *sampler, at_timing_target *target, double *ns, int64_t *wall) {
  enum { PARTS = 8 };
  const int calls = sampler->calls * sampler->turns, part = (calls + PARTS - 1) / PARTS;
  const int64_t limit = (int64_t)(4.0 * AT_SAMPLER_QUICK_NS_HOST);
  stretch s;
  const attune_status led = lead(sampler, target, calls);
  if (led != ATTUNE_OK) return led;
  begin(&s, threads_of(target));
  int done = 0;
  while (done < calls && (done == 0 || at_now_ns() - s.start_ns < limit)) {
    const int to = done + part < calls ? done + part : calls;
    AT_TRY(make_calls(sampler, target, done, to));
    done = to;
  }
  *wall = end(&s, target);
  *ns = sustained_ns(target, &s, *wall, done);
  return ATTUNE_OK;
}

/* Taken again when others disturbed it; the one that they took least from counts. */
enum { TAKES = 3 };
static const int64_t AGAIN_BELOW_NS = 20000000;

static attune_status take_sample(at_sampler *sampler, at_timing_target *target, double *ns) {
  at_timing_target best = {.taken = HUGE_VAL};
  for (int take = 0; take < TAKES; take++) {
    double one = 0.0;
    int64_t wall = 0;
    AT_TRY(sample_host(sampler, target, &one, &wall));
    sampler->disturbed += take > 0;
    if (target->taken < best.taken) {
      best.taken = target->taken;
      best.rough = target->rough;
      best.cpus = target->cpus;
      *ns = one;
    }
    if (!target->rough || wall > AGAIN_BELOW_NS) break;
  }
  target->taken = best.taken;
  target->rough = best.rough;
  target->cpus = best.cpus;
  sampler->sampled++;
  sampler->rough += target->rough;
  return ATTUNE_OK;
}

attune_status at_sampler_round_host(at_sampler *sampler, at_timing_target *const *targets, int count, double *ns) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < count && status == ATTUNE_OK; i++) {
    status = take_sample(sampler, targets[i], &ns[i]);
    if (status != ATTUNE_OK) sampler->failed = targets[i];
  }
  return status;
}

/* Untimed calls before a sample alone, and calls between two readings of the clock. */
static const double ALONE_LEAD = 0.15, ALONE_LEAD_BELOW_NS = 20e6, ALONE_PART_NS = 100e3;

/* Calls until so much time has passed, once at least; their count into *done. */
static attune_status call_for(at_sampler *sampler, const at_timing_target *target, double ns, int *done) {
  const int64_t start_ns = at_now_ns();
  const double most = ALONE_PART_NS / sampler->once_ns;
  const int part = most < 1.0 ? 1 : most > 1000.0 ? 1000 : (int)most;
  attune_status status = ATTUNE_OK;
  for (*done = 0; status == ATTUNE_OK && (*done == 0 || (double)(at_now_ns() - start_ns) < ns); *done += part)
    status = make_calls(sampler, target, 0, part);
  return status;
}

attune_status at_sampler_alone_host(at_sampler *sampler, at_timing_target *target, double slice_ns, double *ns) {
  int done = 0;
  stretch s;
  attune_status status = ATTUNE_OK;
  if (sampler->once_ns < ALONE_LEAD_BELOW_NS) status = call_for(sampler, target, ALONE_LEAD * slice_ns, &done);
  if (status != ATTUNE_OK) return status;
  begin(&s, threads_of(target));
  status = call_for(sampler, target, slice_ns, &done);
  const int64_t wall = end(&s, target);
  *ns = sustained_ns(target, &s, wall, done);
  return status;
}

attune_status at_sampler_try_host(at_sampler *sampler, at_timing_target *target) {
  double least = HUGE_VAL;
  for (int take = 0; take < TAKES; take++) {
    stretch s;
    begin(&s, threads_of(target));
    AT_TRY(at_sampler_launch(sampler, target->plan, sampler->next_copy + 1));
    AT_TRY(attune_stream_synchronize(sampler->timer->stream));
    const int64_t wall = end(&s, target);
    if ((double)wall < least) least = (double)wall;
    if (!target->rough || wall > AGAIN_BELOW_NS) break;
  }
  target->once_ns = least;
  return ATTUNE_OK;
}

/* --- alone --- */

/* How often the other threads of the process are checked, and what they may do in between. */
enum { NAPS = 60, STILL = 2 };
static const long NAP_NS = 1000000;
static const int64_t IDLE_NS = 50000;

bool at_sampler_rest(void) {
  int64_t before = at_cpu_time_ns() - at_thread_time_ns();
  for (int nap = 0, still = 0; nap < NAPS; nap++) {
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    const int64_t now = at_cpu_time_ns() - at_thread_time_ns();
    still = now - before <= IDLE_NS ? still + 1 : 0;
    before = now;
    if (still == STILL) return true;
  }
  return false;
}

attune_status at_sampler_alone(at_sampler *sampler, at_timing_target *target, int placement, double slice_ns,
                               double *ns, bool *good) {
  const at_timer *timer = sampler->timer;
  attune_status status = at_timer_between(timer);
  if (status == ATTUNE_OK) at_sampler_place(sampler, placement);
  if (status == ATTUNE_OK) status = at_sampler_ready(sampler, target);
  if (status == ATTUNE_OK) status = at_sampler_alone_host(sampler, target, slice_ns, ns);
  *good = !target->rough;
  sampler->disturbed += !*good;
  return status;
}
