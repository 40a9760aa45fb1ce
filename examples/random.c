/* SPDX-License-Identifier: Apache-2.0
 * random.c: random numbers of many distributions; a generator whose state is saved, parts of one sequence for several
 * workers, and the numbers that PyTorch draws. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000, WORKERS = 2 };
static const uint64_t PART = (uint64_t)1 << 32; /* of the sequence, for each worker */

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

typedef struct numbers {
  attune_stream *stream;
  void *memory; /* of the device */
  double mean;  /* of the latest ones */
  float of_host[COUNT];
} numbers;

/* Brings what was drawn to the host. */
static double mean_of(numbers *n) {
  n->mean = 0.0;
  check(attune_copy(n->stream, n->of_host, n->memory, sizeof n->of_host));
  check(attune_stream_synchronize(n->stream));
  for (int i = 0; i < COUNT; i++) n->mean += (double)n->of_host[i] / COUNT;
  return n->mean;
}

/* Means that are as expected, to a tenth or so: the seed is fixed. */
static int draw_all(attune_generator *g, numbers *n) {
  int good = 1;
  check(attune_random_log_normal(g, n->stream, n->memory, ATTUNE_F32, COUNT, 0.0, 0.25));
  good = mean_of(n) > 0.9 && n->mean < 1.2 && good;
  check(attune_random_exponential(g, n->stream, n->memory, ATTUNE_F32, COUNT, 2.0));
  good = mean_of(n) > 0.4 && n->mean < 0.6 && good;
  check(attune_random_bernoulli(g, n->stream, n->memory, ATTUNE_F32, COUNT, 0.25));
  good = mean_of(n) > 0.2 && n->mean < 0.3 && good;
  check(attune_random_integers(g, n->stream, n->memory, ATTUNE_F32, COUNT, 1, 7)); /* a die */
  good = mean_of(n) > 3.2 && n->mean < 3.8 && good;
  return good;
}

/* The numbers 0 to COUNT - 1, each once. */
static int shuffle(attune_generator *g, numbers *n) {
  static int order[COUNT], seen[COUNT];
  int good = 1;
  check(attune_random_permutation(g, n->stream, n->memory, ATTUNE_I32, COUNT));
  check(attune_copy(n->stream, order, n->memory, sizeof order));
  check(attune_stream_synchronize(n->stream));
  for (int i = 0; i < COUNT; i++) good = order[i] >= 0 && order[i] < COUNT && seen[order[i]]++ == 0 && good;
  return good;
}

/* From a saved state the same numbers come again. */
static int again(attune_generator *g, numbers *n) {
  unsigned char state[ATTUNE_GENERATOR_STATE_BYTES];
  float first[COUNT];
  check(attune_generator_get_state(g, state, sizeof state));
  check(attune_random_uniform(g, n->stream, n->memory, ATTUNE_F32, COUNT, 0.0, 1.0));
  (void)mean_of(n);
  memcpy(first, n->of_host, sizeof first);
  check(attune_generator_set_state(g, state, sizeof state));
  check(attune_random_uniform(g, n->stream, n->memory, ATTUNE_F32, COUNT, 0.0, 1.0));
  (void)mean_of(n);
  return memcmp(first, n->of_host, sizeof first) == 0;
}

/* Workers with one seed draw from parts of the sequence that do not overlap. */
static int in_parts(attune_generator *workers[WORKERS], uint64_t seed) {
  uint64_t offset = 0, its_seed = 0;
  for (int i = 0; i < WORKERS; i++) {
    check(attune_generator_set_seed(workers[i], seed));
    check(attune_generator_set_offset(workers[i], 8)); /* after what was drawn before the parts */
    for (int k = 0; k < i; k++) check(attune_generator_jump(workers[i], PART));
    check(attune_generator_get_offset(workers[i], &offset));
    check(attune_generator_get_seed(workers[i], &its_seed));
    printf("worker %d: seed %llu, offset %llu\n", i, (unsigned long long)its_seed, (unsigned long long)offset);
  }
  return its_seed == seed && offset == 8 + PART * (WORKERS - 1);
}

int main(void) {
  static numbers n;
  attune_device *device = NULL;
  attune_generator *of_device = NULL, *workers[WORKERS];
  attune_random_mode mode = ATTUNE_RANDOM_PORTABLE;
  uint64_t seed = 0;
  check(attune_device_get(&device, "best"));
  check(attune_stream_create(&n.stream, device));
  check(attune_alloc(&n.memory, n.stream, sizeof n.of_host));
  check(attune_seed_all(42));
  check(attune_device_generator(&of_device, device)); /* one that all parts of the program may share */
  int good = draw_all(of_device, &n);
  good = shuffle(of_device, &n) && good;
  good = again(of_device, &n) && good;

  for (int i = 0; i < WORKERS; i++) check(attune_generator_create(&workers[i], 0));
  check(attune_generator_seed(workers[0], &seed)); /* from the system: another one in each run */
  good = in_parts(workers, seed) && good;
  check(attune_generator_set_mode(workers[0], ATTUNE_RANDOM_TORCH));
  check(attune_generator_set_torch_grid(workers[0], 132, 2048)); /* what an H200 draws, on any device */
  check(attune_generator_get_mode(workers[0], &mode));
  check(attune_random_uniform(workers[0], n.stream, n.memory, ATTUNE_F32, COUNT, 0.0, 1.0));
  printf("%s: the mean of %d numbers is %g\n", attune_device_name(device), COUNT, mean_of(&n));
  good = mode == ATTUNE_RANDOM_TORCH && n.mean > 0.4 && n.mean < 0.6 && good;

  for (int i = 0; i < WORKERS; i++) attune_generator_destroy(workers[i]);
  check(attune_free(n.memory, n.stream));
  attune_stream_destroy(n.stream);
  return good ? 0 : 1;
}
