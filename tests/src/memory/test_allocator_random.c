/* SPDX-License-Identifier: Apache-2.0
 * test_allocator_random.c: the allocator against an oracle of intervals. Random operations on the host device; whatever
 * is handed out must overlap nothing that the program holds, and nothing freed that another stream may still use. Work
 * is gates that the test opens, so it knows what can be done and what cannot.
 *   test_allocator_random [OPERATIONS [SEEDS [FIRST_SEED]]]   operations of each seed (ATTUNE_TEST_OPERATIONS or 3000),
 *                                                             seeds (100) */
#include <attune/graph.h>

#include "src/base/splitmix64.h"
#include "src/host/host.h"
#include "src/memory/malloc/allocator.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STREAMS = 4, LIVE_MAX = 600, FREED_MAX = 300 };
#define MIB ((size_t)1 << 20)

/* A stream and its gates: gate number n, given after n - 1 others, is passed when `opened` >= n. */
typedef struct lane {
  attune_stream *stream;
  uint64_t given, opened; /* opened: with the mutex of gates */
  attune_graph *capture;  /* under way on the stream */
  attune_pool *using;
} lane;

/* Memory that the program holds or held. Freed: each of `uses` is done once its lane has opened `until` gates. */
typedef struct held {
  uintptr_t begin, end;
  size_t bytes;
  int owner;     /* -1: its stream is gone */
  bool waited;   /* another stream's work was not done at the free */
  unsigned uses; /* bit per lane, the owner's too */
  uint64_t until[STREAMS];
} held;

static lane lanes[STREAMS];
static held live[LIVE_MAX], freed[FREED_MAX];
static int live_count, freed_count;
static attune_device *host;
static uint64_t seed, operation, random_state;
static uint64_t most_reserved = UINT64_MAX;
static size_t smaller; /* all sizes are divided by it: memory that is poisoned is touched */
static uint64_t alloc_total, free_total;
static held done[64]; /* waited for and reached: the latest ones, a ring */
static unsigned done_next;

/* What happened, over all seeds: a run in which some of it never did proves little. */
enum { ALLOCATIONS, FREES, FOREIGN_USES, WAITED, REACHED, REUSED, IN_CAPTURE, REFUSED, EARLY, COUNTS };
static const char *const counted[COUNTS] = {
    "allocations",
    "frees",
    "uses on another stream",
    "frees that had to wait for one",
    "of them reached",
    "used again",
    "allocations and frees in a capture",
    "requests that met the limit",
    "reuses by the same stream before its work was done",
};
static uint64_t counts[COUNTS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t beat; /* with the mutex: grows with each operation */
static bool over;

static void die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "seed %llu operation %llu: ", (unsigned long long)seed, (unsigned long long)operation);
  vfprintf(stderr, format, args);
  fprintf(stderr, " (%s)\n", attune_last_message());
  va_end(args);
  _exit(1);
}

static uint64_t draw(uint64_t below) {
  return at_splitmix64(&random_state) % below;
}

typedef struct gate {
  int lane;
  uint64_t number;
} gate;

static void wait_at_gate(const void *args) {
  const gate *g = args;
  pthread_mutex_lock(&mutex);
  while (lanes[g->lane].opened < g->number) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void open_gates(int which, uint64_t number) {
  pthread_mutex_lock(&mutex);
  if (lanes[which].opened < number) lanes[which].opened = number;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

/* When the test itself is stuck, because the allocator waits for the device, everything opens. */
static void *unstick(void *arg) {
  (void)arg;
  uint64_t seen = 0;
  pthread_mutex_lock(&mutex);
  while (!over) {
    seen = beat;
    pthread_mutex_unlock(&mutex);
    usleep(300);
    pthread_mutex_lock(&mutex);
    if (beat != seen) continue;
    for (int i = 0; i < STREAMS; i++) lanes[i].opened = lanes[i].given;
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static uint64_t opened_of(int which) {
  pthread_mutex_lock(&mutex);
  uint64_t opened = lanes[which].opened;
  pthread_mutex_unlock(&mutex);
  return opened;
}

/* The lanes whose work may still use the freed memory. */
static unsigned unfinished(const held *h) {
  unsigned left = 0;
  for (int i = 0; i < STREAMS; i++)
    if ((h->uses >> i & 1) && opened_of(i) < h->until[i]) left |= 1u << i;
  return left;
}

static void forget_finished(void) {
  int kept = 0;
  for (int i = 0; i < freed_count; i++) {
    if (unfinished(&freed[i])) {
      freed[kept++] = freed[i];
    } else if (freed[i].waited) {
      counts[REACHED]++;
      done[done_next++ % AT_COUNT(done)] = freed[i];
    }
  }
  freed_count = kept;
}

/* What is handed out to `owner` may be memory that only the owner's earlier work uses: its own order keeps them apart.
 */
static void check_interval(const held *h) {
  for (int i = 0; i < live_count; i++)
    if (h->begin < live[i].end && live[i].begin < h->end)
      die("%zu bytes at %#zx overlap %zu bytes at %#zx, which the program holds", h->bytes, (size_t)h->begin,
          live[i].bytes, (size_t)live[i].begin);
  for (int i = 0; i < freed_count; i++) {
    if (h->begin >= freed[i].end || freed[i].begin >= h->end) continue;
    unsigned left = unfinished(&freed[i]);
    if (left & ~(1u << h->owner))
      die("%zu bytes at %#zx for stream %d overlap memory freed of stream %d, in use by streams %#x", h->bytes,
          (size_t)h->begin, h->owner, freed[i].owner, left);
    if (left) counts[EARLY]++;
  }
  for (size_t i = 0; i < AT_COUNT(done); i++) {
    if (h->begin >= done[i].end || done[i].begin >= h->end) continue;
    counts[REUSED]++;
    done[i] = (held){0};
  }
}

static bool is_captured(int which) {
  return which >= 0 && lanes[which].capture;
}

static size_t draw_size(void) {
  static const size_t usual[] = {64, 512, 4096, 65536, MIB, 2 * MIB, 3 * MIB, 20 * MIB};
  switch (draw(8)) {
  case 0:
  case 1: return usual[draw(AT_COUNT(usual))];
  case 2:
  case 3: return 1 + draw(4096);
  case 4: return 1 + draw(MIB);
  case 5: return 1 + draw(12 * MIB);
  case 6: return 1 + draw(300000);
  default: return draw(16) == 0 ? 1 + draw(200 * MIB) : 1 + draw(3 * MIB);
  }
}

static void allocate(void) {
  int owner = (int)draw(STREAMS);
  void *p = NULL;
  held h = {.owner = owner, .bytes = (draw_size() + smaller - 1) / smaller};
  if (live_count == LIVE_MAX) return;
  attune_status status = attune_alloc(&p, lanes[owner].stream, h.bytes);
  if (status == ATTUNE_OUT_OF_MEMORY) {
    if (p || !strstr(attune_last_message(), "cached")) die("a failed request gave %p", p);
    counts[REFUSED]++;
    return;
  }
  if (status != ATTUNE_OK) die("attune_alloc gave %d", (int)status);
  if ((uintptr_t)p % 256) die("%p is not aligned", p);
  h.begin = (uintptr_t)p;
  h.end = h.begin + h.bytes;
  check_interval(&h);
  live[live_count++] = h;
  alloc_total++;
  counts[ALLOCATIONS]++;
  counts[IN_CAPTURE] += is_captured(owner);
}

static int pick_live(void) {
  return (int)draw((uint64_t)live_count);
}

static void release(int index, int from) {
  held h = live[index];
  attune_status status = attune_free((void *)h.begin, lanes[from].stream);
  if (status != ATTUNE_OK) die("attune_free gave %d", (int)status);
  if (h.owner >= 0) h.uses |= 1u << h.owner;
  h.uses |= 1u << from;
  for (int i = 0; i < STREAMS; i++) h.until[i] = lanes[i].given;
  live[index] = live[--live_count];
  h.waited = (unfinished(&h) & ~(h.owner >= 0 ? 1u << h.owner : 0)) != 0;
  counts[FREES]++;
  counts[WAITED] += h.waited;
  counts[IN_CAPTURE] += is_captured(from);
  forget_finished();
  if (freed_count == FREED_MAX) {
    for (int i = 0; i < STREAMS; i++) open_gates(i, lanes[i].given);
    forget_finished();
  }
  freed[freed_count++] = h;
  free_total++;
}

static void use_elsewhere(void) {
  int index = pick_live(), user = (int)draw(STREAMS);
  if (attune_record_use((void *)live[index].begin, lanes[user].stream) != ATTUNE_OK) die("attune_record_use failed");
  live[index].uses |= 1u << user;
  counts[FOREIGN_USES] += user != live[index].owner;
}

static void add_gate(int which) {
  if (lanes[which].capture) return; /* would be work of the graph, which never runs */
  if (lanes[which].given - opened_of(which) > 20) open_gates(which, lanes[which].given);
  gate g = {which, lanes[which].given + 1};
  pthread_mutex_lock(&mutex);
  lanes[which].given++;
  pthread_mutex_unlock(&mutex);
  if (at_host_submit(lanes[which].stream, wait_at_gate, &g, sizeof g) != ATTUNE_OK) die("no work can be given");
}

/* The device waits for everything before memory goes back to it, so nothing freed is in use afterwards. */
static void empty_cache(void) {
  attune_status status = attune_memory_empty_cache(host);
  bool capturing = false;
  for (int i = 0; i < STREAMS; i++) capturing |= lanes[i].capture != NULL;
  if (status != (capturing ? ATTUNE_CAPTURING : ATTUNE_OK)) die("attune_memory_empty_cache gave %d", (int)status);
}

static void toggle_capture(lane *l) {
  if (l->capture) {
    if (draw(2) && attune_graph_capture_end(l->capture, l->stream) != ATTUNE_OK) die("a capture cannot end");
    attune_graph_destroy(l->capture);
    l->capture = NULL;
    return;
  }
  if (attune_graph_create(&l->capture, host) != ATTUNE_OK ||
      attune_graph_capture_begin(l->capture, l->stream, NULL) != ATTUNE_OK)
    die("a capture cannot begin");
}

static void toggle_pool(lane *l) {
  if (l->using) {
    if (attune_pool_end(l->using, l->stream) != ATTUNE_OK) die("attune_pool_end failed");
    attune_pool_destroy(l->using);
    l->using = NULL;
    return;
  }
  attune_pool_options options = ATTUNE_POOL_OPTIONS_INIT;
  options.use_on_out_of_memory = draw(2) == 0;
  options.no_split = draw(4) == 0;
  if (attune_pool_create(&l->using, host, &options) != ATTUNE_OK || attune_pool_begin(l->using, l->stream) != ATTUNE_OK)
    die("a pool cannot begin");
}

/* A stream ends with memory of its own still held, which then is no stream's; another takes its place. */
static void renew_stream(int which) {
  lane *l = &lanes[which];
  if (l->capture) toggle_capture(l);
  if (l->using) toggle_pool(l);
  open_gates(which, l->given);
  attune_stream_destroy(l->stream);
  if (attune_stream_create(&l->stream, host) != ATTUNE_OK) die("no stream");
  for (int i = 0; i < live_count; i++) {
    live[i].uses &= ~(1u << which);
    if (live[i].owner == which) live[i].owner = -1;
  }
}

/* The allocator's own books against the oracle's. */
static void check_books(void) {
  attune_memory_statistics s = {0};
  uint64_t bytes = 0;
  if (attune_memory_get_statistics(host, &s) != ATTUNE_OK) die("no statistics");
  for (int i = 0; i < live_count; i++) bytes += live[i].bytes;
  if (s.allocation[0].current != (uint64_t)live_count)
    die("%llu allocations; should be %d", (unsigned long long)s.allocation[0].current, live_count);
  if (s.requested_bytes[0].current != bytes)
    die("%llu requested bytes; should be %llu", (unsigned long long)s.requested_bytes[0].current,
        (unsigned long long)bytes);
  if (s.allocation[0].allocated != alloc_total || s.allocation[0].freed != free_total)
    die("allocations and frees do not add up");
  if (s.allocated_bytes[0].current < bytes || s.active_bytes[0].current < s.allocated_bytes[0].current ||
      s.reserved_bytes[0].current < s.active_bytes[0].current)
    die("requested, allocated, active and reserved bytes do not grow");
  if (s.reserved_bytes[0].current != s.reserved_bytes[1].current + s.reserved_bytes[2].current ||
      s.reserved_bytes[0].current != s.reserved_bytes[0].allocated - s.reserved_bytes[0].freed)
    die("reserved bytes do not add up");
  if (s.reserved_bytes[0].current > most_reserved) die("the limit is passed");
}

/* Memory allocated before a lower limit is kept. */
static void set_limit(uint64_t limit) {
  attune_memory_statistics s = {0};
  if (attune_memory_set_limit(host, limit) != ATTUNE_OK || attune_memory_get_statistics(host, &s) != ATTUNE_OK)
    die("no limit can be set");
  if (limit == 0) limit = UINT64_MAX;
  most_reserved = limit > s.reserved_bytes[0].current ? limit : s.reserved_bytes[0].current;
}

static void misuse(void) {
  int index = pick_live();
  uintptr_t p = live[index].begin;
  attune_stream *stream = lanes[draw(STREAMS)].stream;
  if (live[index].bytes > 1 && attune_free((void *)(p + 1), stream) != ATTUNE_INVALID_ARGUMENT)
    die("a pointer into memory was freed");
  if (attune_free(&index, stream) != ATTUNE_NOT_FOUND) die("foreign memory was freed");
}

static void step(void) {
  uint64_t what = draw(1000);
  bool wants_memory = (what >= 420 && what < 780) || what >= 992;
  if (what < 420 || (live_count == 0 && wants_memory))
    allocate();
  else if (what < 640) {
    int index = pick_live();
    release(index, live[index].owner >= 0 ? live[index].owner : (int)draw(STREAMS));
  } else if (what < 700)
    release(pick_live(), (int)draw(STREAMS));
  else if (what < 780)
    use_elsewhere();
  else if (what < 860)
    add_gate((int)draw(STREAMS));
  else if (what < 940) {
    int which = (int)draw(STREAMS);
    open_gates(which, opened_of(which) + 1 < lanes[which].given ? opened_of(which) + 1 + draw(2) : lanes[which].given);
  } else if (what < 960)
    toggle_capture(&lanes[draw(STREAMS)]);
  else if (what < 970)
    toggle_pool(&lanes[draw(STREAMS)]);
  else if (what < 975)
    empty_cache();
  else if (what < 980)
    set_limit(draw(3) ? (600 * MIB + draw(400 * MIB)) / smaller : 0);
  else if (what < 984)
    renew_stream((int)draw(STREAMS));
  else if (what < 992)
    check_books();
  else
    misuse();
}

/* Settings that differ between seeds, besides the operations. */
static void configure(void) {
  static const char *const settings[] = {"",
                                         "expandable_segments:true",
                                         "max_split_size_mb:40",
                                         "roundup_power2_divisions:4",
                                         "expandable_segments:true,poison:true",
                                         "garbage_collection_threshold:0.6",
                                         "backend:none",
                                         "large_segment_size_mb:64"};
  static const char defaults[] =
      "expandable_segments:false,poison:false,backend:caching,roundup_power2_divisions:1,max_split_size_"
      "mb:1000000,large_segment_size_mb:20";
  const char *chosen = settings[seed % AT_COUNT(settings)];
  smaller = strstr(chosen, "poison") ? 6 : 1;
  if (attune_memory_configure(host, defaults) != ATTUNE_OK || attune_memory_configure(host, chosen) != ATTUNE_OK)
    die("the allocator cannot be configured");
}

static void run_seed(uint64_t operations) {
  pthread_t thread;
  random_state = seed * UINT64_C(0x2545f4914f6cdd1d);
  alloc_total = free_total = 0;
  over = false;
  for (int i = 0; i < STREAMS; i++) lanes[i] = (lane){0};
  for (int i = 0; i < STREAMS; i++)
    if (attune_stream_create(&lanes[i].stream, host) != ATTUNE_OK) die("no stream");
  if (pthread_create(&thread, NULL, unstick, NULL) != 0) die("no thread");
  configure();
  if (attune_memory_reset_accumulated(host) != ATTUNE_OK) die("no reset");
  for (operation = 0; operation < operations; operation++) {
    step();
    pthread_mutex_lock(&mutex);
    beat++;
    pthread_mutex_unlock(&mutex);
  }
  check_books();
  while (live_count > 0) release(live_count - 1, live[live_count - 1].owner >= 0 ? live[live_count - 1].owner : 0);
  for (int i = 0; i < STREAMS; i++) {
    if (lanes[i].capture) toggle_capture(&lanes[i]);
    if (lanes[i].using) toggle_pool(&lanes[i]);
    open_gates(i, lanes[i].given);
  }
  set_limit(0);
  empty_cache();
  attune_memory_statistics s = {0};
  if (attune_memory_get_statistics(host, &s) != ATTUNE_OK || s.reserved_bytes[0].current != 0 ||
      s.active[0].current != 0 || s.inactive_split[0].current != 0)
    die("%llu bytes are left", (unsigned long long)s.reserved_bytes[0].current);
  for (int i = 0; i < STREAMS; i++) attune_stream_destroy(lanes[i].stream);
  freed_count = 0;
  memset(done, 0, sizeof done);
  pthread_mutex_lock(&mutex);
  over = true;
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
  const char *text = argc > 1 ? argv[1] : getenv("ATTUNE_TEST_OPERATIONS");
  uint64_t operations = text ? strtoull(text, NULL, 10) : 3000, seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
  uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  if (attune_device_get(&host, "host") != ATTUNE_OK) die("no host");
  for (seed = first; seed < first + seeds; seed++) run_seed(operations);
  printf("%llu seeds of %llu operations: no overlap\n", (unsigned long long)seeds, (unsigned long long)operations);
  for (int i = 0; i < COUNTS; i++) {
    printf("  %12llu %s\n", (unsigned long long)counts[i], counted[i]);
    if (counts[i] == 0 && seeds * operations >= 100000) die("no %s", counted[i]);
  }
  return 0;
}
