/* SPDX-License-Identifier: Apache-2.0
 * elementwise_ulp_cuda.c: the functions of expressions on a CUDA device, for elementwise_ulp.c. */
#include "bench/elementwise/elementwise_ulp.h"

#include <stdlib.h>
#include <string.h>

#include <attune/attune.h>

#include "bench/common/tool.h"
#include "ops/elementwise/cuda/cuda_kernel.h"
#include "src/cuda/jit/jit.h"

static attune_device *device;
static attune_stream *stream;
static attune_device_properties properties;

const char *ulp_device(void) {
  if (device) return properties.name;
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) {
    device = NULL;
    return NULL;
  }
  bench_check(attune_device_get_properties(device, &properties), "attune_device_get_properties");
  bench_check(attune_stream_create(&stream, device), "attune_stream_create");
  return properties.name;
}

void ulp_run(void *out, const at_expression *e, attune_dtype dtype, const void *x, const void *y, int64_t n) {
  const at_shape shape = {1, {n}};
  const at_cuda_choice choice = {.form = AT_FORM_VECTOR, .bytes = 16, .loads = 1, .block = 128};
  const size_t bytes = (size_t)n * attune_dtype_size(dtype);
  const void *from[] = {NULL, x, y};
  void *memory[3] = {NULL};
  at_view views[3];
  at_cuda_problem p;
  at_cuda_launch launch;
  at_jit_kernel *kernel = NULL;
  char *text = NULL;
  const int count = 1 + e->input_count;
  for (int k = 0; k < count; k++) {
    bench_check(attune_alloc(&memory[k], stream, bytes), "attune_alloc");
    if (k > 0) bench_check(attune_copy(stream, memory[k], from[k], bytes), "attune_copy");
    views[k] = at_view_packed(memory[k], dtype, &shape);
  }
  memset(&p, 0, sizeof p);
  p.expression = e;
  p.outputs[0] = (uint8_t)dtype;
  bench_check(at_layout_make(&p.layout, &shape, views, count), "at_layout_make");
  at_cuda_align(&p, (const void *const *)memory);
  bench_check(at_cuda_generate(&text, &p, &choice), "at_cuda_generate");
  const at_kernel_source source = {.file = "elementwise.cu", .text = text, .entry = AT_CUDA_ENTRY};
  bench_check(at_jit_get(&kernel, device, &source), "at_jit_get");
  bench_check(at_cuda_plan(&launch, &p, &choice, properties.processors, 1), "at_cuda_plan");
  at_cuda_bind_tensors(&launch, &p, memory);
  bench_check(at_jit_launch(kernel, &launch.config, launch.words, stream), "at_jit_launch");
  bench_check(attune_copy(stream, out, memory[0], bytes), "attune_copy");
  bench_check(attune_stream_synchronize(stream), "attune_stream_synchronize");
  at_jit_release(kernel);
  free(text);
  for (int k = 0; k < count; k++) bench_check(attune_free(memory[k], stream), "attune_free");
}
