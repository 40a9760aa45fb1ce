/* SPDX-License-Identifier: Apache-2.0
 * test_random_capture.c: random numbers in graphs, on every device of the machine: replays draw what eager calls would,
 * and misuse is refused. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include "src/base/backend.h"

#define COUNT 10001

typedef struct scene {
  attune_stream *stream;
  attune_generator *generator;
  float *x; /* two calls' numbers, on the device */
} scene;

static attune_device *device;

static scene open_scene(attune_random_mode mode) {
  scene s = {NULL, NULL, NULL};
  OK(attune_stream_create(&s.stream, device));
  OK(attune_generator_create(&s.generator, 99));
  OK(attune_generator_set_mode(s.generator, mode));
  OK(attune_alloc((void **)&s.x, s.stream, 2 * COUNT * sizeof *s.x));
  return s;
}

static void close_scene(scene *s) {
  OK(attune_free(s->x, s->stream));
  attune_generator_destroy(s->generator);
  attune_stream_destroy(s->stream);
}

static attune_status draw(void *user, attune_stream *stream) {
  const scene *s = user;
  attune_status status = attune_random_uniform(s->generator, stream, s->x, ATTUNE_F32, COUNT, 0, 1);
  return status == ATTUNE_OK ? attune_random_normal(s->generator, stream, s->x + COUNT, ATTUNE_F32, COUNT, 0, 1)
                             : status;
}

static void take(const scene *s, float *out) {
  OK(attune_copy(s->stream, out, s->x, 2 * COUNT * sizeof *out));
  OK(attune_stream_synchronize(s->stream));
}

static uint64_t offset_of(const attune_generator *g) {
  uint64_t offset = 0;
  OK(attune_generator_get_offset(g, &offset));
  return offset;
}

static void replays_draw_fresh_numbers(attune_random_mode mode) {
  scene s = open_scene(mode);
  attune_graph *graph = NULL;
  float *eager = malloc(3 * 2 * COUNT * sizeof *eager), *replayed = malloc(2 * COUNT * sizeof *replayed);
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_register_generator(graph, s.generator));
  OK(attune_graph_capture_callback(graph, s.stream, NULL, draw, &s));
  assert_int_equal(offset_of(s.generator), 0); /* a capture draws nothing */
  for (int i = 0; i < 3; i++) {
    OK(draw(&s, s.stream));
    take(&s, eager + i * 2 * COUNT);
  }
  assert_true(memcmp(eager, eager + 2 * COUNT, 2 * COUNT * sizeof *eager) != 0);
  const uint64_t offset = offset_of(s.generator);
  OK(attune_generator_set_seed(s.generator, 99));
  for (int i = 0; i < 3; i++) {
    if (i == 1) { /* an eager call between two replays takes its place */
      OK(draw(&s, s.stream));
    } else {
      OK(attune_graph_replay(graph, s.stream));
    }
    take(&s, replayed);
    assert_memory_equal(replayed, eager + i * 2 * COUNT, 2 * COUNT * sizeof *eager);
  }
  assert_int_equal(offset_of(s.generator), offset);
  OK(attune_generator_set_seed(s.generator, 100)); /* replays follow a new seed */
  OK(attune_graph_replay(graph, s.stream));
  take(&s, replayed);
  OK(attune_generator_set_seed(s.generator, 100));
  OK(draw(&s, s.stream));
  take(&s, eager);
  assert_memory_equal(replayed, eager, 2 * COUNT * sizeof *eager);
  attune_graph_destroy(graph);
  close_scene(&s);
  free(eager);
  free(replayed);
}

TEST(replays_in_mode_portable) {
  replays_draw_fresh_numbers(ATTUNE_RANDOM_PORTABLE);
}

TEST(replays_in_mode_torch) {
  replays_draw_fresh_numbers(ATTUNE_RANDOM_TORCH);
}

static attune_status permute(void *user, attune_stream *stream) {
  const scene *s = user;
  attune_status status = attune_random_permutation(s->generator, stream, s->x, ATTUNE_I32, 1000);
  return status == ATTUNE_OK ? attune_random_permutation(s->generator, stream, s->x + COUNT, ATTUNE_I32, COUNT)
                             : status;
}

TEST(permutations_replay) {
  scene s = open_scene(ATTUNE_RANDOM_PORTABLE);
  attune_graph *graph = NULL;
  float *eager = calloc(2 * COUNT, sizeof *eager), *replayed = calloc(2 * COUNT, sizeof *replayed);
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_register_generator(graph, s.generator));
  OK(attune_graph_capture_callback(graph, s.stream, NULL, permute, &s));
  OK(attune_fill(s.stream, s.x, 0, 2 * COUNT * sizeof *eager));
  OK(attune_generator_jump(s.generator, 400));
  OK(permute(&s, s.stream));
  take(&s, eager);
  OK(attune_generator_set_offset(s.generator, 400));
  OK(attune_fill(s.stream, s.x, 0, 2 * COUNT * sizeof *eager));
  OK(attune_graph_replay(graph, s.stream));
  take(&s, replayed);
  assert_memory_equal(replayed, eager, 2 * COUNT * sizeof *eager);
  attune_graph_destroy(graph);
  close_scene(&s);
  free(eager);
  free(replayed);
}

/* An unregistered generator breaks nothing, and a registered one keeps its seed and offset until the capture is over,
 * also one that failed. */
TEST(misuse_is_refused) {
  scene s = open_scene(ATTUNE_RANDOM_PORTABLE);
  attune_graph *graph = NULL;
  unsigned char saved[16] = {0};
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_begin(graph, s.stream, NULL));
  assert_int_equal(draw(&s, s.stream), ATTUNE_CAPTURING);
  OK(attune_generator_set_seed(s.generator, 99));
  OK(attune_graph_register_generator(graph, s.generator));
  OK(draw(&s, s.stream));
  assert_int_equal(attune_generator_set_seed(s.generator, 1), ATTUNE_CAPTURING);
  assert_int_equal(attune_generator_set_offset(s.generator, 4), ATTUNE_CAPTURING);
  assert_int_equal(attune_generator_jump(s.generator, 4), ATTUNE_CAPTURING);
  assert_int_equal(attune_generator_set_state(s.generator, saved, 16), ATTUNE_CAPTURING);
  assert_int_equal(attune_generator_set_mode(s.generator, ATTUNE_RANDOM_TORCH), ATTUNE_CAPTURING);
  OK(attune_generator_get_state(s.generator, saved, 16));
  OK(attune_graph_capture_end(graph, s.stream));
  OK(attune_generator_set_seed(s.generator, 5));
  OK(attune_graph_replay(graph, s.stream));
  OK(attune_stream_synchronize(s.stream));
  assert_true(offset_of(s.generator) > 0);
  OK(attune_graph_reset(graph));
  OK(attune_graph_capture_begin(graph, s.stream, NULL));
  assert_int_equal(attune_generator_set_seed(s.generator, 1), ATTUNE_CAPTURING);
  attune_graph_destroy(graph); /* ends the capture */
  OK(attune_generator_set_seed(s.generator, 1));
  close_scene(&s);
}

/* The graph holds the generator: the program may let go of it. */
TEST(a_graph_outlives_the_programs_hold) {
  scene s = open_scene(ATTUNE_RANDOM_PORTABLE);
  attune_graph *graph = NULL;
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_register_generator(graph, s.generator));
  OK(attune_graph_capture_callback(graph, s.stream, NULL, draw, &s));
  attune_generator_destroy(s.generator);
  s.generator = NULL;
  OK(attune_graph_replay(graph, s.stream));
  OK(attune_stream_synchronize(s.stream));
  attune_graph_destroy(graph);
  close_scene(&s);
}

static int device_allocs, device_frees;
static const at_backend_memory *usual;

static attune_status count_alloc(attune_device *of, void **out, size_t bytes) {
  device_allocs++;
  return usual->alloc(of, out, bytes);
}

static attune_status count_free(attune_device *of, void *pointer) {
  device_frees++;
  return usual->free(of, pointer);
}

/* The device is not asked, which waits for its work and which a capture forbids; the next generator takes the place. */
TEST(generators_leave_in_a_capture) {
  scene s = open_scene(ATTUNE_RANDOM_PORTABLE), other = open_scene(ATTUNE_RANDOM_PORTABLE);
  attune_graph *graphs[100], *captured = NULL;
  float numbers[2][2 * COUNT];
  at_backend_memory counting = *device->backend.memory;
  usual = device->backend.memory;
  counting.alloc = count_alloc;
  counting.free = count_free;
  OK(draw(&s, s.stream));
  take(&s, numbers[0]);
  for (int i = 0; i < 100; i++) {
    OK(attune_graph_create(&graphs[i], device));
    OK(attune_graph_register_generator(graphs[i], s.generator));
  }
  OK(attune_graph_create(&captured, device));
  OK(attune_graph_capture_begin(captured, other.stream, NULL));
  device->backend.memory = &counting;
  device_allocs = device_frees = 0;
  for (int i = 0; i < 100; i++) attune_graph_destroy(graphs[i]);
  for (int i = 0; i < 100; i++) {
    OK(attune_graph_create(&graphs[i], device));
    OK(attune_graph_register_generator(graphs[i], s.generator));
  }
  for (int i = 1; i < 100; i++) attune_graph_destroy(graphs[i]);
  device->backend.memory = usual;
  assert_int_equal(device_allocs, 0);
  assert_int_equal(device_frees, 0);
  OK(attune_fill(other.stream, other.x, 0, COUNT));
  OK(attune_graph_capture_end(captured, other.stream));
  OK(attune_generator_set_seed(s.generator, 99));
  OK(attune_graph_capture_callback(graphs[0], s.stream, NULL, draw, &s));
  OK(attune_graph_replay(graphs[0], s.stream));
  take(&s, numbers[1]);
  assert_memory_equal(numbers[0], numbers[1], sizeof numbers[0]);
  attune_graph_destroy(graphs[0]);
  attune_graph_destroy(captured);
  close_scene(&other);
  close_scene(&s);
}

int main(void) {
  int failed = 0;
  for (int i = 0; i < attune_device_count(); i++) {
    if (attune_device_at(&device, i) != ATTUNE_OK) return 1;
    print_message("%s\n", attune_device_name(device));
    failed += RUN_TESTS(NULL, NULL);
  }
  return failed;
}
