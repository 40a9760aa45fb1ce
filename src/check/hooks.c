/* SPDX-License-Identifier: Apache-2.0
 * hooks.c: the race check: its public calls, and what the calls of attune report to it (src/trace/instrument.h). */
#include <attune/check.h>

#include "src/base/settings.h"
#include "src/check/report.h"
#include "src/check/sync_state.h"
#include "src/process/fork.h"
#include "src/trace/instrument.h"

#include <pthread.h>
#include <stdlib.h>

atomic_uint at_instrumented_bits;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of the check; held over fork */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static at_shadow_state main_world;
static uint64_t epoch;       /* of the check: what was kept under another one is void */
static uint64_t worlds_made; /* captures */
static bool failed;          /* memory was short: to be told, and the check ends */

static _Thread_local int quiet; /* this thread runs a function as work of a stream */

static void watch_fork(void) {
  static at_fork_watch watch = {.lock = &lock};
  at_fork_watch_add(&watch);
}

/* False: this thread is not watched, or nothing is by now; the lock is not held then. */
static bool enter(void) {
  if (quiet) return false;
  pthread_mutex_lock(&lock);
  if (at_instrumented() & AT_INSTRUMENT_RACES) return true;
  pthread_mutex_unlock(&lock);
  return false;
}

static void leave(bool good) {
  if (!good) {
    failed = true;
    atomic_fetch_and(&at_instrumented_bits, ~(unsigned)AT_INSTRUMENT_RACES);
  }
  pthread_mutex_unlock(&lock);
}

void at_instrument_tell(void) {
  pthread_mutex_lock(&lock);
  const bool ended = failed, waits = at_report_waits();
  failed = false;
  pthread_mutex_unlock(&lock);
  if (waits) at_report_tell(&lock);
  if (ended) at_log(ATTUNE_LOG_ERROR, "the race check stops: no memory to record accesses");
}

static attune_status switch_check(bool on, attune_race_fn fn, void *user) {
  pthread_once(&fork_once, watch_fork);
  pthread_mutex_lock(&lock);
  atomic_fetch_and(&at_instrumented_bits, ~(unsigned)AT_INSTRUMENT_RACES);
  bool good = true;
  at_shadow_state_clear(&main_world);
  if (on) {
    epoch++;
    failed = false;
    at_report_begin(fn, user);
    good = at_timelines_begin();
    if (good) atomic_fetch_or(&at_instrumented_bits, AT_INSTRUMENT_RACES);
  }
  pthread_mutex_unlock(&lock);
  return good ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the race check");
}

uint64_t attune_race_count(void) {
  pthread_mutex_lock(&lock);
  const uint64_t count = at_report_count();
  pthread_mutex_unlock(&lock);
  return count;
}

/* The watch of forks is older than the allocators', whose locks are held when this one's is taken: so a fork takes this
 * one's last. */
void at_instrument_start(void) {
  pthread_once(&fork_once, watch_fork);
  if (at_settings_check_races()) (void)switch_check(true, NULL, NULL);
}

/* ---- the order of work ---- */

/* The program captures its own stream: what runs when is not known. Without the lock, for it asks CUDA. */
static bool is_foreign_capture(attune_stream *stream) {
  return stream && !stream->owned && !stream->capture && at_stream_capturing(stream);
}

void at_instrument_record(attune_event *event, attune_stream *stream) {
  const bool foreign = !event->unwatched && is_foreign_capture(stream);
  if (event->unwatched || !enter()) return;
  at_timeline *line = at_timelines_of(stream);
  const at_clock *clock = line ? at_timeline_clock(line) : NULL;
  at_mark *mark = event->watched ? event->watched : calloc(1, sizeof *mark);
  event->watched = mark;
  bool good = mark && clock;
  if (good) {
    mark->epoch = foreign ? 0 : epoch;
    mark->world = line->world ? line->world->number : 0;
    good = at_clock_copy(&mark->clock, clock);
  }
  leave(good);
}

static const at_mark *mark_of(const attune_event *event) {
  const at_mark *mark = event->watched;
  return mark && mark->epoch == epoch ? mark : NULL;
}

/* The stream is in the capture that the event lies in, now at the latest. Lock held. */
static void join_capture(at_timeline *line, const attune_stream *stream) {
  at_shadow_state *world = stream->capture ? at_sync_state_world(stream->capture->watched, epoch) : NULL;
  if (line->world == world) return;
  line->world = world;
  line->captured.count = 0;
}

void at_instrument_wait(attune_stream *stream, const attune_event *event) {
  if (!enter()) return;
  const at_mark *mark = mark_of(event);
  at_timeline *line = mark ? at_timelines_of(stream) : NULL;
  if (line) join_capture(line, stream);
  at_clock *clock = line ? at_timeline_clock(line) : NULL;
  bool good = !mark || clock;
  if (clock && mark->world == (line->world ? line->world->number : 0))
    good = line == at_timelines_host() ? at_timelines_host_joins(&mark->clock) : at_clock_join(clock, &mark->clock);
  leave(good);
}

void at_instrument_reached(const attune_event *event) {
  if (event->unwatched || !enter()) return;
  const at_mark *mark = mark_of(event);
  leave(!mark || mark->world != 0 || at_timelines_host_joins(&mark->clock));
}

/* Lock held. What is in a capture has not run. */
static bool host_waited(at_timeline *line) {
  if (!line) return false;
  if (line->world || line == at_timelines_host()) return true;
  const at_clock *clock = at_timeline_clock(line);
  return clock && at_timelines_host_joins(clock);
}

void at_instrument_idle(attune_stream *stream) {
  if (enter()) leave(host_waited(at_timelines_of(stream)));
}

void at_instrument_device_idle(const attune_device *device) {
  if (!enter()) return;
  bool good = true;
  at_timeline *line = NULL;
  for (uint32_t i = 1; good && (line = at_timelines_at(i)) != NULL; i++)
    if (line->device == device) good = host_waited(line);
  leave(good);
}

static void note_wait(attune_stream *stream, attune_stream *other) {
  if (!enter()) return;
  at_timeline *line = at_timelines_of(stream), *waited = at_timelines_of(other);
  at_clock *clock = line && waited ? at_timeline_clock(line) : NULL;
  const at_clock *from = clock ? at_timeline_clock(waited) : NULL;
  bool good = from != NULL;
  if (good && line != waited)
    good = line == at_timelines_host() ? at_timelines_host_joins(from) : at_clock_join(clock, from);
  leave(good);
}

void at_instrument_event_gone(attune_event *event) {
  at_mark *mark = event->watched;
  event->watched = NULL;
  if (!mark) return;
  at_clock_release(&mark->clock);
  free(mark);
}

void at_instrument_stream_gone(attune_stream *stream) {
  if (enter()) {
    at_timelines_stream_gone(stream);
    leave(true);
  }
}

/* ---- functions that run as work ---- */

typedef struct quiet_call {
  attune_call_fn fn;
  void *user;
  struct quiet_call *captured; /* of those that replays run again, kept for good */
} quiet_call;

static void run_quiet(void *user) {
  quiet_call *call = user;
  const quiet_call c = *call;
  if (!c.captured) free(call);
  quiet++;
  c.fn(c.user);
  quiet--;
}

void at_instrument_call(const attune_stream *stream, attune_call_fn *fn, void **user) {
  static quiet_call first, *captured = &first; /* under the lock */
  const bool again = stream->capture || is_foreign_capture((attune_stream *)(uintptr_t)stream);
  quiet_call *call = enter() ? malloc(sizeof *call) : NULL;
  if (!call) return;
  *call = (quiet_call){*fn, *user, again ? captured : NULL};
  if (again) captured = call;
  leave(true);
  *fn = run_quiet;
  *user = call;
}

/* ---- the uses of memory ---- */

static at_shadow_state *world_of(const at_timeline *line) {
  return line->world ? line->world : &main_world;
}

static void describe(at_access *out, const at_timeline *line, const char *call) {
  *out = (at_access){.line = line->index, .position = line->position};
  (void)at_copy_text(out->call, sizeof out->call, call);
  (void)at_copy_text(out->stream, sizeof out->stream, line->name);
}

void at_instrument_use(attune_stream *stream, const char *call, const at_operand_access *uses, int count) {
  at_access access;
  if (stream && stream->capture) at_inputs_note(stream->capture, uses, count);
  if (is_foreign_capture(stream) || !enter()) return;
  at_timeline *line = at_timelines_of(stream);
  bool good = line && at_timeline_step(line) > 0;
  if (good) describe(&access, line, call);
  for (int i = 0; i < count && good; i++) {
    if (!at_span_make(&access.span, &uses[i])) continue;
    access.reads = uses[i].reads;
    access.writes = uses[i].writes;
    (void)at_copy_text(access.operand, sizeof access.operand, uses[i].operand);
    good = at_shadow_state_access(world_of(line), &access, line->world ? &line->captured : &line->now, at_report_add);
  }
  leave(good);
  at_instrument_tell();
}

void at_instrument_alloc(attune_stream *stream, const void *pointer, size_t bytes) {
  at_access access;
  if (!enter()) return;
  at_timeline *line = at_timelines_of(stream);
  bool good = line && at_timeline_step(line) > 0;
  if (good) {
    describe(&access, line, stream ? "attune_alloc" : "attune_pinned_alloc");
    access.span = at_span_bytes((uintptr_t)pointer, bytes);
    access.writes = access.allocates = true;
    good = at_shadow_state_alloc(world_of(line), &access, stream ? line : NULL);
  }
  leave(good);
}

/* Memory that was allocated before a capture may be freed in it: it lies in what runs. */
static at_shadow_state *world_with(at_timeline *line, const at_span *span) {
  at_shadow_state *world = world_of(line);
  return at_interval_find(world->allocations, span->start, span->end) ? world : &main_world;
}

void at_instrument_free(const char *call, attune_stream *stream, const void *pointer, size_t bytes,
                        attune_stream *const *after, int count) {
  at_access access;
  at_clock clock = {0};
  if (!enter()) return;
  at_timeline *line = at_timelines_of(stream);
  bool good = line != NULL;
  if (good) {
    describe(&access, line, call);
    access.span = at_span_bytes((uintptr_t)pointer, bytes);
    access.writes = access.frees = true;
    at_shadow_state *world = world_with(line, &access.span);
    for (int i = 0; i < count && good; i++) {
      at_timeline *each = at_timelines_of(after[i]);
      const at_clock *own = each ? at_timeline_clock(each) : NULL;
      good = own && at_clock_join(&clock, world->number == 0 ? &each->now : own);
    }
    if (good) at_shadow_state_free(world, &access, &clock, at_report_add);
  }
  at_clock_release(&clock);
  leave(good);
}

/* ---- captures and graphs ---- */

void at_instrument_capture_begin(struct at_capture *capture, attune_stream *stream) {
  if (!enter()) return;
  at_timeline *line = at_timelines_of(stream);
  at_sync_state *kept = line ? at_sync_state_make(epoch, ++worlds_made) : NULL;
  capture->watched = kept;
  if (kept) join_capture(line, stream);
  leave(kept != NULL);
}

void at_instrument_capture_end(struct at_capture *capture, void **graph, bool keep) {
  at_sync_state *kept = capture->watched;
  capture->watched = NULL;
  if (!kept) {
    if (keep) at_instrument_graph_gone(graph);
    return;
  }
  pthread_mutex_lock(&lock);
  at_timeline *line = NULL;
  if (kept->epoch == epoch)
    for (uint32_t i = 1; (line = at_timelines_at(i)) != NULL; i++)
      if (line->world == &kept->world) line->world = NULL;
  at_sync_state *old = keep ? *graph : kept;
  if (keep) *graph = kept;
  at_sync_state_release(old);
  pthread_mutex_unlock(&lock);
}

void at_instrument_graph_gone(void **graph) {
  at_sync_state *kept = *graph;
  if (!kept) return;
  *graph = NULL;
  pthread_mutex_lock(&lock);
  at_sync_state_release(kept);
  pthread_mutex_unlock(&lock);
}

void *at_instrument_graph_clone(void *graph) {
  at_sync_state *kept = graph;
  pthread_mutex_lock(&lock);
  kept->clones++;
  pthread_mutex_unlock(&lock);
  return kept;
}

static bool replay_one(at_timeline *line, const at_access *captured) {
  at_access access = *captured;
  size_t at = 0;
  access.line = line->index;
  access.position = line->position;
  (void)at_copy_text(access.stream, sizeof access.stream, line->name);
  (void)at_append(access.call, sizeof access.call, &at, "attune_graph_replay of %.34s", captured->call);
  return at_shadow_state_access(&main_world, &access, &line->now, at_report_add);
}

/* The whole graph is one piece of the stream's work. */
void at_instrument_replay(void *const *graph, attune_stream *stream) {
  at_sync_state *kept = *graph;
  if (!kept || is_foreign_capture(stream) || !enter()) return;
  at_timeline *line = at_timelines_of(stream);
  bool good = line && at_timeline_step(line) > 0;
  at_interval *each = at_interval_find(kept->world.accesses, 0, UINTPTR_MAX);
  for (; each && good; each = each->next) good = replay_one(line, (const at_access *)each);
  for (each = kept->world.past; each && good; each = each->next) good = replay_one(line, (const at_access *)each);
  leave(good);
  at_instrument_tell();
}

/* ---- the public calls ---- */

attune_status attune_set_race_check(int on, attune_race_fn fn, void *user) {
  if (!on && (fn || user)) return AT_INVALID("fn or user is not NULL, but on is 0; should be NULL");
  (void)attune_device_count(); /* what the environment asks for comes first */
  const attune_status status = switch_check(on != 0, fn, user);
  at_memory_watch();
  return status;
}

int attune_get_race_check(void) {
  (void)attune_device_count();
  return (at_instrumented() & AT_INSTRUMENT_RACES) != 0;
}

static attune_status check_use(const attune_use *use, int i) {
  if ((int)use->access < ATTUNE_READS || use->access > ATTUNE_READS_AND_WRITES)
    return AT_INVALID("uses[%d].access is %d; should be reads (1), writes (2) or both (3)", i, (int)use->access);
  if (!use->pointer && use->bytes > 0)
    return AT_INVALID("uses[%d].pointer is NULL; should point to %zu bytes", i, use->bytes);
  if ((uintptr_t)use->pointer > UINTPTR_MAX - use->bytes || use->bytes > PTRDIFF_MAX)
    return AT_INVALID("uses[%d].bytes is %zu; should be the size of the memory at pointer", i, use->bytes);
  return ATTUNE_OK;
}

attune_status attune_note_use(attune_stream *stream, const char *name, const attune_use *uses, int count) {
  at_operand_access all[AT_INSTRUMENT_USES];
  AT_REQUIRE_AS(name, "describe the work that uses the memory");
  if (count < 0 || count > AT_INSTRUMENT_USES)
    return AT_INVALID("count is %d; should be from 0 to %d", count, AT_INSTRUMENT_USES);
  if (!uses && count > 0) return AT_INVALID("uses is NULL; should point to %d", count);
  for (int i = 0; i < count; i++) {
    AT_TRY(check_use(&uses[i], i));
    all[i] = (at_operand_access){.operand = uses[i].name ? uses[i].name : "",
                                 .data = uses[i].pointer,
                                 .element = uses[i].bytes,
                                 .reads = (uses[i].access & ATTUNE_READS) != 0,
                                 .writes = (uses[i].access & ATTUNE_WRITES) != 0};
  }
  if (at_instrumented_races()) at_instrument_use(stream, name, all, count);
  return ATTUNE_OK;
}

attune_status attune_note_wait(attune_stream *stream, attune_stream *other) {
  AT_REQUIRE_AS(other, "be a stream");
  struct at_capture *in = stream ? stream->capture : NULL;
  if (in != other->capture)
    return at_fail(ATTUNE_CAPTURING,
                   "stream and other are not in the same capture; should be in one capture, or in none");
  if (at_instrumented_races()) note_wait(stream, other);
  return ATTUNE_OK;
}
