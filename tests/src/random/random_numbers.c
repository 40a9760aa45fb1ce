/* SPDX-License-Identifier: Apache-2.0
 * random_numbers.c: random_numbers FILE SEED OFFSET KIND DTYPE COUNT A B: writes what mode torch draws on cuda:0, and
 * then the generator's state, to FILE. torch_random_check.py compares it with PyTorch. Exit 77: no CUDA device. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what) {
  fprintf(stderr, "random_numbers: %s: %s\n", what, attune_last_message());
  exit(1);
}

static attune_dtype dtype_of(const char *name) {
  const attune_dtype all[] = {ATTUNE_F64, ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16, ATTUNE_I32, ATTUNE_I64};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(attune_dtype_name(all[i]), name) == 0) return all[i];
  die(name);
  return ATTUNE_F32;
}

static attune_status draw(const char *kind, attune_generator *g, attune_stream *s, void *out, attune_dtype dtype,
                          size_t count, const char *a, const char *b) {
  const double x = strtod(a, NULL), y = strtod(b, NULL);
  if (strcmp(kind, "uniform") == 0) return attune_random_uniform(g, s, out, dtype, count, x, y);
  if (strcmp(kind, "normal") == 0) return attune_random_normal(g, s, out, dtype, count, x, y);
  if (strcmp(kind, "log_normal") == 0) return attune_random_log_normal(g, s, out, dtype, count, x, y);
  if (strcmp(kind, "exponential") == 0) return attune_random_exponential(g, s, out, dtype, count, x);
  if (strcmp(kind, "bernoulli") == 0) return attune_random_bernoulli(g, s, out, dtype, count, x);
  return attune_random_integers(g, s, out, dtype, count, strtoll(a, NULL, 10), strtoll(b, NULL, 10));
}

int main(int argc, char **argv) {
  attune_device *device = NULL;
  attune_stream *stream = NULL;
  attune_generator *generator = NULL;
  void *memory = NULL;
  unsigned char state[ATTUNE_GENERATOR_STATE_BYTES];
  if (argc != 9) {
    fprintf(stderr, "usage: random_numbers FILE SEED OFFSET KIND DTYPE COUNT A B\n");
    return 2;
  }
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return 77;
  const attune_dtype dtype = dtype_of(argv[5]);
  const size_t count = (size_t)strtoull(argv[6], NULL, 10), bytes = count * attune_dtype_size(dtype);
  if (attune_stream_create(&stream, device) != ATTUNE_OK || attune_alloc(&memory, stream, bytes) != ATTUNE_OK)
    die("memory");
  if (attune_generator_create(&generator, strtoull(argv[2], NULL, 10)) != ATTUNE_OK) die("generator");
  if (attune_generator_set_mode(generator, ATTUNE_RANDOM_TORCH) != ATTUNE_OK) die("mode");
  if (attune_generator_set_offset(generator, strtoull(argv[3], NULL, 10)) != ATTUNE_OK) die("offset");
  if (draw(argv[4], generator, stream, memory, dtype, count, argv[7], argv[8]) != ATTUNE_OK) die(argv[4]);
  void *host = malloc(bytes ? bytes : 1);
  if (!host || attune_copy(stream, host, memory, bytes) != ATTUNE_OK || attune_stream_synchronize(stream) != ATTUNE_OK)
    die("copy");
  if (attune_generator_get_state(generator, state, sizeof state) != ATTUNE_OK) die("state");
  FILE *file = fopen(argv[1], "wb");
  if (!file || fwrite(host, 1, bytes, file) != bytes || fwrite(state, 1, sizeof state, file) != sizeof state ||
      fclose(file))
    die(argv[1]);
  free(host);
  attune_generator_destroy(generator);
  if (attune_free(memory, stream) != ATTUNE_OK) die("free");
  attune_stream_destroy(stream);
  return 0;
}
