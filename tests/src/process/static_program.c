/* SPDX-License-Identifier: Apache-2.0
 * static_program.c: a program linked with -static: it multiplies, evaluates, tunes and says which libraries there
 * are. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 200 };

static int notices, mentioned;

static void listen(void *user, attune_log_level level, const char *line) {
  (void)user, (void)level;
  notices += strstr(line, "-static") != NULL;
}

static int look(void *user, const attune_library *library) {
  (void)user;
  printf("%s: %s %s\n", library->name, library->path, library->problem);
  mentioned += strstr(library->problem, "-static") != NULL;
  return 0;
}

static int fail(const char *what) {
  printf("%s: %s\n", what, attune_last_message());
  return 1;
}

int main(void) {
  static float a[SIZE * SIZE], b[SIZE * SIZE], c[SIZE * SIZE];
  attune_device *device = NULL;
  attune_tuner *tuner = NULL;
  attune_stream *stream = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  attune_allocator allocator = {0};
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = c};
  const attune_tensor in = {"c", c, ATTUNE_F32, 2, {SIZE, SIZE}, NULL};
  const attune_tensor out = {NULL, a, ATTUNE_F32, 2, {SIZE, SIZE}, NULL};
  const attune_elementwise_operands e = {.outputs = &out, .output_count = 1, .inputs = &in, .input_count = 1};
  attune_set_log(listen, NULL, ATTUNE_LOG_INFO);
  options.database = ":memory:";
  p.dtype = ATTUNE_F32;
  p.m = p.n = p.k = p.lda = p.ldb = p.ldc = p.ldd = SIZE;
  for (int i = 0; i < SIZE * SIZE; i++) a[i] = b[i] = 1.0f;
  if (attune_device_get(&device, "best") != ATTUNE_OK) return fail("best device");
  if (attune_device_get(&device, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK ||
      attune_stream_create(&stream, device) != ATTUNE_OK)
    return fail("set-up");
  if (attune_gemm(tuner, attune_stream_default(device), &p, &o) != ATTUNE_OK || c[7] != SIZE) return fail("product");
  if (attune_gemm(tuner, stream, &p, &o) != ATTUNE_OK || attune_stream_synchronize(stream) != ATTUNE_OK)
    return fail("product on a stream");
  if (attune_tune(tuner, device, "gemm f32 nn 200x200x200 strict",
                  &(attune_tune_options){.budget_ms = 50.0, .force = 1}, NULL) != ATTUNE_OK)
    return fail("tune");
  memset(c, 0, sizeof c);
  if (attune_gemm(tuner, stream, &p, &o) != ATTUNE_OK || attune_stream_synchronize(stream) != ATTUNE_OK || c[9] != SIZE)
    return fail("tuned product");
  if (attune_elementwise(tuner, stream, "exp(c - 200) * 3", &e) != ATTUNE_OK ||
      attune_stream_synchronize(stream) != ATTUNE_OK || a[5] != 3.0f)
    return fail("expression");
  if (attune_device_libraries(device, look, NULL) != ATTUNE_OK || mentioned != 1) return fail("libraries");
  if (attune_allocator_load(&allocator, "/nowhere.so", "a", "b") != ATTUNE_UNSUPPORTED ||
      !strstr(attune_last_message(), "-static"))
    return fail("allocator");
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  if (notices != 1) return printf("%d notices, should be 1\n", notices), 2;
  puts("as it should be");
  return 0;
}
