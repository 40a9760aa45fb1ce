/* SPDX-License-Identifier: Apache-2.0
 * bench.c: two functions of a program as cases of `attune bench`: one that works in the calling thread, and one that
 * gives its work to a stream. Run by hand, it lists them; to time them:
 *   attune bench --program ./bench --save results.db */
#include <attune/attune.h>
#include <attune/tools.h>

#include <stdlib.h>

enum { COUNT = 1 << 20 };

/* ---- a sum in the calling thread ---- */

typedef struct numbers {
  float *values;
  double sum;
} numbers;

static attune_status make_numbers(void *arg) {
  numbers *n = arg;
  n->values = malloc(COUNT * sizeof *n->values);
  if (!n->values) return ATTUNE_OUT_OF_MEMORY;
  for (int i = 0; i < COUNT; i++) n->values[i] = (float)(i % 1000) * 0.001f;
  return ATTUNE_OK;
}

static attune_status add_up(void *arg, attune_stream *stream) {
  numbers *n = arg;
  (void)stream; /* NULL: the case has no device */
  n->sum = 0.0;
  for (int i = 0; i < COUNT; i++) n->sum += (double)n->values[i];
  return ATTUNE_OK;
}

static void free_numbers(void *arg) {
  numbers *n = arg;
  free(n->values);
  n->values = NULL;
}

/* ---- random numbers of a device ---- */

typedef struct noise {
  attune_stream *stream; /* owns the memory */
  attune_generator *generator;
  void *memory;
} noise;

static void free_noise(void *arg) {
  noise *n = arg;
  (void)attune_free(n->memory, n->stream);
  attune_generator_destroy(n->generator);
  *n = (noise){.stream = n->stream};
}

static attune_status make_noise(void *arg) {
  noise *n = arg;
  attune_status status = attune_generator_create(&n->generator, 42);
  if (status == ATTUNE_OK) status = attune_alloc(&n->memory, n->stream, COUNT * sizeof(float));
  if (status == ATTUNE_OK) status = attune_stream_synchronize(n->stream);
  if (status != ATTUNE_OK) free_noise(n); /* a failed set-up is not torn down */
  return status;
}

static attune_status draw(void *arg, attune_stream *stream) {
  const noise *n = arg;
  return attune_random_normal(n->generator, stream, n->memory, ATTUNE_F32, COUNT, 0.0, 1.0);
}

int main(int argc, char **argv) {
  static numbers some;
  static noise more;
  attune_bench *bench = NULL;
  attune_device *device = NULL;
  if (attune_device_get(&device, "best") != ATTUNE_OK || attune_bench_create(&bench) != ATTUNE_OK) return 1;
  more.stream = attune_stream_default(device);
  const attune_bench_case cases[] = {{.size = sizeof(attune_bench_case),
                                      .name = "sum/1M",
                                      .set_up = make_numbers,
                                      .run = add_up,
                                      .tear_down = free_numbers,
                                      .arg = &some,
                                      .bytes = 4.0 * COUNT,
                                      .flops = 1.0 * COUNT,
                                      .dtype = ATTUNE_F64},
                                     {.size = sizeof(attune_bench_case),
                                      .name = "normal/1M",
                                      .device = device,
                                      .set_up = make_noise,
                                      .run = draw,
                                      .tear_down = free_noise,
                                      .arg = &more,
                                      .bytes = 4.0 * COUNT}};
  for (int i = 0; i < 2; i++)
    if (attune_bench_add(bench, &cases[i]) != ATTUNE_OK) return 1;
  return attune_bench_main(bench, argc, argv);
}
