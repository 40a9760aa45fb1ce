/* SPDX-License-Identifier: Apache-2.0
 * test_jit_unload.c: the bound on loaded kernels: which ones go, which never do, and what is said when none can; with
 * streams, captures and graphs of the made-up runtime, which counts every library that is unloaded while work has it.
 * ATTUNE_TEST_ROUNDS: operations of the random ones. */
#include "tests/support/check.h"
#include "tests/support/folder.h"

#include <unistd.h>

#include "src/host/threads.h"
#include "tests/src/cuda/jit_runtime.h"

#define KINDS 24
#define WORKERS 3
#define ROUNDS 3000
#define GRAPHS 8

static at_cuda_device device_state;
static attune_device device = {.name = "cuda:0", .state = &device_state, .properties = {.capability_major = 9}};
static char root[64], macro_text[KINDS][16];
static const char *macros[KINDS][2];

static at_kernel_source source_of(int kind) {
  return (at_kernel_source){"unload.cu", "extern \"C\" __global__ void k(int *x) { *x = K; }", "k", macros[kind], false,
                            false};
}

static at_jit_counts counts(void) {
  at_jit_counts c;
  at_jit_get_counts(&c);
  return c;
}

static attune_status try(at_jit_kernel **out, int kind) {
  const at_kernel_source source = source_of(kind);
  return at_jit_get(out, &device, &source);
}

static at_jit_kernel *get(int kind) {
  at_jit_kernel *kernel = NULL;
  OK(try(&kernel, kind));
  return kernel;
}

static void launch(at_jit_kernel *kernel, int stream) {
  const int argument = 1;
  OK(at_jit_launch(kernel, &AT_JIT_ROW(1, 32), &argument, &streams[stream]));
}

/* Loaded and released. */
static void touch(int kind) {
  at_jit_release(get(kind));
}

/* Whether the kernel is still there; it is the latest one used then. */
static bool is_loaded(int kind) {
  const int loads = runtime.loads;
  const unsigned before = at_jit_set_most(1000);
  touch(kind);
  (void)at_jit_set_most(before);
  return runtime.loads == loads;
}

/* Refused, and for this reason. */
static void refuses(int kind, const char *why) {
  at_jit_kernel *kernel = NULL;
  char message[AT_MESSAGE_CHARS];
  FAILS(try(&kernel, kind), ATTUNE_UNSUPPORTED);
  assert_null(kernel);
  snprintf(message, sizeof message,
           "%u kernels are loaded, the maximum of a process, and k of unload.cu needs another one: %s", counts().loaded,
           why);
  assert_string_equal(attune_last_message(), message);
}

#define HELD "plans and graphs use all of them; destroy some"

/* Before each test: one kernel, which no test knows, takes the place of all others. */
FIXTURE(empty) {
  static int number;
  char file[32];
  at_jit_kernel *only = NULL;
  snprintf(file, sizeof file, "empty-%d.cu", number++);
  const at_kernel_source source = {file, "extern \"C\" __global__ void k() {}", "k", NULL, false, false};
  for (int i = 0; i < STREAMS; i++) (void)cudaStreamSynchronize((cudaStream_t)streams[i].native);
  (void)at_jit_set_most(1);
  if (at_jit_get(&only, &device, &source) != ATTUNE_OK) return 1; /* somebody still holds one */
  at_jit_release(only);
  (void)at_jit_set_most(4);
  return runtime.faults != 0 || runtime.objects != 0 || runtime.alive != 1;
}

TEST(the_one_unused_for_longest_goes) {
  for (int kind = 0; kind < 3; kind++) touch(kind);
  touch(0); /* with the one that is always there four; used: 1, 2, 0 */
  const at_jit_counts before = counts();
  assert_int_equal(before.loaded, 4);
  touch(3); /* in the place of the one that was always there, and */
  touch(4); /* of 1 */
  assert_int_equal(counts().loaded, 4);
  assert_int_equal(counts().unloaded, before.unloaded + 2);
  assert_int_equal(runtime.alive, 4);
  assert_true(is_loaded(2));
  assert_true(is_loaded(0));
  assert_true(is_loaded(3));
  assert_false(is_loaded(1)); /* comes again, above the bound */
  assert_int_equal(counts().loaded, 5);
  touch(5); /* and the bound holds from the next one on */
  assert_int_equal(counts().loaded, 4);
}

TEST(what_is_held_stays) {
  at_jit_kernel *held[4];
  for (int kind = 0; kind < 4; kind++) held[kind] = get(kind);
  refuses(4, HELD);
  at_jit_kernel *again = get(2); /* those that are there go on */
  assert_ptr_equal(again, held[2]);
  at_jit_release(held[2]);
  refuses(4, HELD); /* it is held twice */
  at_jit_release(again);
  touch(4);
  assert_false(is_loaded(2));
  for (int kind = 0; kind < 4; kind++)
    if (kind != 2) at_jit_release(held[kind]);
  at_jit_release(NULL);
}

TEST(what_is_in_flight_is_waited_for) {
  at_jit_kernel *kernel = get(0);
  (void)at_jit_set_most(1);
  launch(kernel, 1);
  launch(kernel, 2);
  at_jit_release(kernel);
  const int waits = runtime.waits;
  touch(1);
  assert_int_equal(runtime.waits, waits + 2);
  assert_int_equal(runtime.faults, 0);
}

/* Nothing waits for what a capture's stream was given before. */
TEST(nothing_goes_beside_a_capture) {
  at_jit_kernel *kernel = get(0);
  (void)at_jit_set_most(2);
  launch(kernel, 1);
  at_jit_release(kernel);
  fake_capture_begin(1);
  for (int i = 0; i < 2; i++) refuses(1, "none can be unloaded while a stream of cuda:0 is being captured");
  assert_true(is_loaded(0)); /* and can be found again */
  fake_graph_destroy(fake_capture_end(1));
  touch(1);
  assert_int_equal(runtime.faults, 0);
  runtime.streams[3].hidden = true; /* the legacy stream, beside a capture that attune does not know */
  refuses(2, "none can be unloaded while a stream of cuda:0 is being captured");
  runtime.streams[3].hidden = false;
  touch(2);
}

TEST(graphs_hold_what_they_captured) {
  (void)at_jit_set_most(3);
  at_jit_kernel *one = get(0), *two = get(1);
  fake_capture_begin(0);
  for (int i = 0; i < 5; i++) launch(one, 0);
  launch(two, 0);
  assert_int_equal(runtime.objects, 2); /* one a kernel and capture */
  fake_graph *graph = fake_capture_end(0);
  fake_capture_begin(0);
  launch(one, 0);
  fake_graph *second = fake_capture_end(0);
  at_jit_release(one);
  at_jit_release(two);
  touch(2);
  touch(3); /* one place is left for others */
  assert_int_equal(counts().loaded, 3);
  assert_true(is_loaded(0));
  assert_true(is_loaded(1));
  fake_replay(graph, 2);
  (void)cudaStreamSynchronize((cudaStream_t)streams[2].native);
  fake_graph_destroy(graph);
  touch(2);
  touch(3);
  assert_false(is_loaded(1));
  assert_true(is_loaded(0)); /* the second graph's */
  fake_graph_destroy(second);
  assert_int_equal(runtime.objects, 0);
  assert_int_equal(runtime.faults, 0);
}

/* Streams whose end nobody can wait for later: nothing of the device goes from then on. */
TEST(untracked_launches) {
  at_jit_kernel *kernel = get(0);
  const int argument = 1;
  attune_stream stream = {.device = &device, .native = cudaStreamPerThread};
  OK(at_jit_launch(kernel, &AT_JIT_ROW(1, 32), &argument, &stream));
  at_jit_release(kernel);
  (void)at_jit_set_most(counts().loaded);
  refuses(9, "those without a plan or graph may still be running where attune cannot wait for them");
  atomic_store(&device_state.untracked, false);
  fake_capture_begin(3); /* by the program, which closes the stream meanwhile */
  at_cuda_stream_close(&streams[3]);
  runtime.streams[3].graph = NULL;
  assert_true(atomic_load(&device_state.untracked));
  refuses(9, "those without a plan or graph may still be running where attune cannot wait for them");
  atomic_store(&device_state.untracked, false);
  touch(9);
  for (int i = 0; i < GRAPHS_MAX; i++)
    if (runtime.graphs[i]) fake_graph_destroy(runtime.graphs[i]);
  streams[3] =
      (attune_stream){.device = &device, .native = &runtime.streams[3], .state = calloc(1, sizeof(at_cuda_stream))};
  at_cuda_stream_enlist(&streams[3]);
}

/* All at once: each is there or says why not, and the thread's message is left alone. */
TEST(several_at_once) {
  static at_jit_request requests[KINDS];
  (void)at_jit_set_most(1000);
  for (int i = 0; i < KINDS; i++) requests[i] = (at_jit_request){.source = source_of(i % (KINDS / 2))};
  requests[5].source = (at_kernel_source){"bad.cu", "void f() { x }", "f", NULL, false, false};
  requests[6].source = source_of(KINDS - 1);
  const uint64_t before = counts().from_memory;
  const int loads = runtime.loads;
  (void)at_fail(ATTUNE_NOT_FOUND, "mine");
  runtime.met = 0;
  runtime.meet = at_cpu_count() < 2 ? 1 : 2; /* no load goes on before a second one: alone it would wait for ever */
  at_jit_get_all(requests, KINDS, &device);
  runtime.meet = 0;
  assert_string_equal(attune_last_message(), "mine");
  for (int i = 0; i < KINDS; i++) {
    assert_int_equal(requests[i].status, i == 5 ? ATTUNE_INTERNAL : ATTUNE_OK);
    assert_true((requests[i].kernel != NULL) == (i != 5));
    if (i >= KINDS / 2 && i != 17 && i != 18) assert_ptr_equal(requests[i].kernel, requests[i - KINDS / 2].kernel);
  }
  assert_non_null(strstr(requests[5].message, "bad.cu(1)"));
  assert_string_equal(requests[4].message, "");
  assert_true(runtime.loads - loads == KINDS / 2 + 1); /* each kernel once */
  assert_int_equal(counts().from_memory - before + (uint64_t)(runtime.loads - loads), KINDS - 1);
  for (int i = 0; i < KINDS; i++) at_jit_release(requests[i].kernel);
  at_jit_get_all(requests, 0, &device); /* none is no error */
  (void)at_jit_set_most(2);
  for (int i = 0; i < 6; i++) requests[i] = (at_jit_request){.source = source_of(i)};
  touch(20); /* at the bound, all but two are refused, as nobody lets one go */
  at_jit_get_all(requests, 6, &device);
  int there = 0;
  for (int i = 0; i < 6; i++) {
    there += requests[i].kernel != NULL;
    if (!requests[i].kernel) assert_int_equal(requests[i].status, ATTUNE_UNSUPPORTED);
    at_jit_release(requests[i].kernel);
  }
  assert_true(there >= 2);
}

static uint64_t draw(uint64_t *seed) {
  *seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
  return *seed;
}

static int rounds(void) {
  const char *wanted = getenv("ATTUNE_TEST_ROUNDS");
  return wanted ? atoi(wanted) : ROUNDS;
}

/* One thread's holds, and one stream, with which it does as it likes. */
typedef struct player {
  int stream, refused, failures;
  uint64_t seed;
  bool capturing, captures; /* it is in one; it may begin some */
  fake_graph *graph[GRAPHS];
} player;

static void end_capture(player *p) {
  int at = 0;
  while (at < GRAPHS - 1 && p->graph[at]) at++;
  if (p->graph[at]) {
    (void)cudaStreamSynchronize((cudaStream_t)streams[p->stream].native);
    fake_graph_destroy(p->graph[at]);
  }
  p->graph[at] = fake_capture_end(p->stream);
  p->capturing = false;
}

static void use_one(player *p) {
  at_jit_kernel *kernel = NULL;
  const int argument = 1;
  const attune_status status = try(&kernel, (int)(draw(&p->seed) % KINDS));
  if (status == ATTUNE_UNSUPPORTED)
    p->refused++;
  else if (status != ATTUNE_OK)
    p->failures++;
  if (!kernel) return;
  for (uint64_t i = draw(&p->seed) % 3; i > 0; i--)
    p->failures += at_jit_launch(kernel, &AT_JIT_ROW(1, 32), &argument, &streams[p->stream]) != ATTUNE_OK;
  at_jit_release(kernel);
}

static void *play(void *pointer) {
  player *p = pointer;
  for (int round = rounds(); round > 0; round--) {
    const uint64_t what = draw(&p->seed) % 16;
    const int graph = (int)(draw(&p->seed) % GRAPHS);
    if (what < 12) {
      use_one(p);
    } else if (what == 12) {
      if (p->capturing) continue;
      (void)cudaStreamSynchronize((cudaStream_t)streams[p->stream].native);
    } else if (what == 13 && p->captures) {
      if (!p->capturing) fake_capture_begin(p->stream);
      p->capturing = true;
    } else if (what == 14 && p->capturing) {
      end_capture(p);
    } else if (what == 15 && p->graph[graph] && !p->capturing) {
      fake_replay(p->graph[graph], p->stream);
      (void)cudaStreamSynchronize((cudaStream_t)streams[p->stream].native);
      if (draw(&p->seed) % 2 == 0) continue;
      fake_graph_destroy(p->graph[graph]);
      p->graph[graph] = NULL;
    }
  }
  if (p->capturing) end_capture(p);
  (void)cudaStreamSynchronize((cudaStream_t)streams[p->stream].native);
  for (int i = 0; i < GRAPHS; i++)
    if (p->graph[i]) fake_graph_destroy(p->graph[i]);
  return NULL;
}

/* Nothing is unloaded that runs or may be replayed, and the bound holds. */
TEST(at_random) {
  player p = {.stream = 0, .seed = 5, .captures = true};
  const uint64_t unloaded = counts().unloaded;
  (void)at_jit_set_most(KINDS / 2);
  (void)play(&p);
  assert_int_equal(runtime.faults, 0);
  assert_int_equal(p.failures, 0);
  assert_true(p.refused > 0);
  assert_true(counts().unloaded > unloaded + 10);
  assert_int_equal(runtime.objects, 0);
  assert_true(counts().loaded <= KINDS / 2);
  assert_int_equal(runtime.alive, counts().loaded);
}

TEST(at_random_by_threads) {
  pthread_t threads[WORKERS];
  static player players[WORKERS];
  const uint64_t unloaded = counts().unloaded;
  (void)at_jit_set_most(KINDS / 2);
  for (int i = 0; i < WORKERS; i++) {
    players[i] = (player){.stream = i, .seed = 77 + (uint64_t)i, .captures = i == 0};
    assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
  }
  for (int i = 0; i < WORKERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < WORKERS; i++) assert_int_equal(players[i].failures, 0);
  assert_int_equal(runtime.faults, 0);
  assert_int_equal(runtime.objects, 0);
  assert_true(counts().unloaded > unloaded);
  assert_true(counts().loaded <= KINDS / 2);
  assert_int_equal(runtime.alive, counts().loaded);
}

/* Launches of a kernel that is kept ask nothing. The last test: its kernel stays. */
TEST(kept_kernels) {
  at_jit_kernel *kept = NULL;
  const at_kernel_source source = {"kept.cu", "extern \"C\" __global__ void k(int *x) { *x = 7; }", "k", NULL, false,
                                   false};
  OK(at_jit_get(&kept, &device, &source));
  at_jit_keep(kept);
  at_jit_release(kept);
  fake_capture_begin(0);
  launch(kept, 0);
  assert_int_equal(runtime.objects, 0);
  fake_graph_destroy(fake_capture_end(0));
  (void)at_jit_set_most(2);
  touch(0);
  touch(1);
  const int loads = runtime.loads;
  at_jit_kernel *again = NULL;
  OK(at_jit_get(&again, &device, &source));
  assert_ptr_equal(again, kept);
  assert_int_equal(runtime.loads, loads);
  at_jit_release(again);
}

int main(void) {
  snprintf(root, sizeof root, "/tmp/attune-jit-XXXXXX");
  if (!mkdtemp(root) || setenv("ATTUNE_CACHE_DIR", root, 1) != 0) return 1;
  for (int kind = 0; kind < KINDS; kind++) {
    snprintf(macro_text[kind], sizeof macro_text[kind], "K=%d", kind);
    macros[kind][0] = macro_text[kind];
  }
  fake_open_streams(&device);
  const int failures = RUN_TESTS_EACH(empty, NULL, NULL, NULL);
  fake_close_streams();
  return folder_remove(root) == 0 ? failures : 1;
}
