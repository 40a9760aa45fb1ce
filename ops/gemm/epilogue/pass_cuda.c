/* SPDX-License-Identifier: Apache-2.0
 * pass_cuda.c: an epilogue's pass over D on CUDA: its kernels' texts, and their launches. */
#include <stdlib.h>

#include "ops/gemm/epilogue/pass.h"
#include "ops/gemm/kernels/kernel.h"

#include "gemm_epilogue_cuh.h"
#include "gemm_kernel_cuh.h"
#include "gemm_pass_cuh.h"

/* at_pass_arguments and at_sums_arguments of pass.cuh. */
typedef struct pass_arguments {
  at_epilogue_arguments epilogue;
  const void *z;
  void *d;
  int64_t ldz, stride_z, ldd, stride_d, half;  /* half: elements from g to u, of a gated product */
  int32_t m, n, batch, pieces, bias_m, bias_n; /* bias_m, bias_n: rows and columns from g to u */
} pass_arguments;
typedef struct sums_arguments {
  const void *data;
  void *out;
  int64_t count, length, stride, step;
} sums_arguments;

/* The widest access, in elements of D, that D and all the epilogue's matrices permit. */
static int width_of(const at_gemm *g) {
  const attune_gemm_epilogue e = g->epilogue;
  const size_t element = attune_dtype_size((attune_dtype)g->dtype_out);
  int bytes = at_gemm_grain(g, element, g->n, g->ldd, g->stride_d);
  if (e.aux == ATTUNE_AUX_INPUT) {
    const int aux = at_gemm_grain(g, element, g->n, g->ld_aux, g->stride_aux);
    bytes = aux < bytes ? aux : bytes;
  }
  if (g->gated == ATTUNE_GATED_M) { /* u begins half of the rows behind g */
    const int half = at_gemm_grain(g, element, 2, g->m / 2, 0);
    bytes = half < bytes ? half : bytes;
  }
  if (e.residual) {
    const int residual = at_gemm_grain(g, element, g->n, g->ld_residual, g->stride_residual);
    bytes = residual < bytes ? residual : bytes;
  }
  if (e.aux == ATTUNE_AUX_RELU_MASK) return 8;
  const int width = bytes / (int)element < 1 ? 1 : bytes / (int)element;
  return e.bias == ATTUNE_BIAS_M && g->alignment < width * (int)attune_dtype_size(at_gemm_bias_dtype(g)) ? 1 : width;
}

/* A mask's byte is one thread's: do the matrices permit no accesses of 8 elements, or of 16 bytes? */
static bool mask_is_slow(const at_gemm *g) {
  at_gemm without = *g;
  if (g->epilogue.aux != ATTUNE_AUX_RELU_MASK) return false;
  without.epilogue.aux = ATTUNE_AUX_NONE;
  const size_t element = attune_dtype_size((attune_dtype)g->dtype_out);
  return (size_t)width_of(&without) * element < (element < 2 ? 8 : 16);
}

static attune_status text_of(char **out, const at_gemm *g, bool sums) {
  const attune_gemm_epilogue e = g->epilogue;
  const bool inputs = at_gemm_sums_inputs(g);
  const struct {
    const char *name;
    int value;
  } defines[] = {{"IN", at_gemm_dtype_number(g->dtype)},
                 {"OUT", at_gemm_dtype_number(g->dtype_out)},
                 {"BIAS", e.bias},
                 {"BIAS_TYPE", at_gemm_dtype_number(e.bias_dtype)},
                 {"ACTIVATION", e.activation},
                 {"AUX", e.aux},
                 {"GRADIENT", e.gradient},
                 {"GATED", g->gated != ATTUNE_GATED_NONE},
                 {"RESIDUAL", e.residual},
                 {"CLAMP", e.clamp},
                 {"SCALE_D", g->scaling.scale_d},
                 {"BYTES_D", 16}, /* width_of sees to it that they all permit this */
                 {"BYTES_BIAS", 16},
                 {"BYTES_AUX", 16},
                 {"BYTES_RESIDUAL", 16},
                 {"WIDTH", width_of(g)},
                 {"UNALIGNED", mask_is_slow(g)},
                 {"SUMS", sums},
                 {"SUM_TYPE", at_gemm_dtype_number(inputs ? g->dtype : g->dtype_out)}};
  const size_t size = strlen(at_gemm_kernel_cuh) + strlen(at_gemm_epilogue_cuh) + strlen(at_gemm_pass_cuh) + 1024;
  size_t at = 0;
  bool fits = true;
  *out = malloc(size);
  if (!*out) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the text of a kernel");
  for (size_t i = 0; i < AT_COUNT(defines); i++)
    fits = fits && at_append(*out, size, &at, "#define %s %d\n", defines[i].name, defines[i].value);
  if (fits && at_append(*out, size, &at, "%s%s%s", at_gemm_kernel_cuh, at_gemm_epilogue_cuh, at_gemm_pass_cuh))
    return ATTUNE_OK;
  free(*out);
  *out = NULL;
  return at_fail(ATTUNE_INTERNAL, "the source of an epilogue is too long");
}

at_kernel_source at_pass_source(const char *text, bool sums) {
  return (at_kernel_source){.file = "pass.cuh", .text = text, .entry = sums ? "at_sums" : "at_pass"};
}

attune_status at_pass_texts(const at_gemm *g, char **pass, char **sums) {
  *pass = *sums = NULL;
  attune_status status = at_gemm_epilogue_changes_d(g) ? text_of(pass, g, false) : ATTUNE_OK;
  if (status == ATTUNE_OK && g->epilogue.bias_gradient) status = text_of(sums, g, true);
  if (status == ATTUNE_OK) return ATTUNE_OK;
  free(*pass);
  *pass = NULL;
  return status;
}

attune_status at_pass_open(at_pass_kernels *out, const at_gemm *g, attune_device *device) {
  char *pass, *sums;
  *out = (at_pass_kernels){0};
  AT_TRY(at_pass_texts(g, &pass, &sums));
  const at_kernel_source of_pass = at_pass_source(pass, false), of_sums = at_pass_source(sums, true);
  attune_status status = pass ? at_jit_get(&out->pass, device, &of_pass) : ATTUNE_OK;
  if (status == ATTUNE_OK && sums) status = at_jit_get(&out->sums, device, &of_sums);
  free(pass);
  free(sums);
  if (status != ATTUNE_OK) at_pass_release(out);
  return status;
}

void at_pass_release(at_pass_kernels *kernels) {
  at_jit_release(kernels->pass);
  at_jit_release(kernels->sums);
  *kernels = (at_pass_kernels){0};
}

static unsigned least(int64_t x, int64_t y) {
  return (unsigned)(x < y ? x : y);
}

static attune_status launch_pass(at_jit_kernel *kernel, const at_gemm *g, const at_gemm_operands *o, at_pass_input from,
                                 attune_stream *stream) {
  const int width = width_of(g);
  const int64_t rows = at_gemm_rows_d(g), columns = at_gemm_cols_d(g);
  const at_gemm_place half = at_gemm_second_half(g, 0, 0);
  pass_arguments a = {.epilogue = at_epilogue_arguments_of(g, o),
                      .z = from.z,
                      .d = o->d,
                      .ldz = from.ld,
                      .stride_z = from.stride,
                      .ldd = g->ldd,
                      .stride_d = g->stride_d,
                      .half = half.row + half.column * from.ld,
                      .m = (int32_t)rows,
                      .n = (int32_t)columns,
                      .batch = (int32_t)g->batch,
                      .pieces = (int32_t)((rows + width - 1) / width),
                      .bias_m = (int32_t)half.row,
                      .bias_n = (int32_t)half.column};
  unsigned x = 8;
  while (x < 256 && x < (unsigned)a.pieces) x *= 2;
  const unsigned y = 256 / x;
  const at_jit_config config = {
      .grid = {least(((unsigned)a.pieces + x - 1) / x, 1 << 20), least((columns * g->batch + y - 1) / y, 65535)},
      .block = {x, y}};
  return at_jit_launch(kernel, &config, &a, stream);
}

static attune_status launch_sums(at_jit_kernel *kernel, const at_gemm *g, const at_gemm_operands *o,
                                 attune_stream *stream) {
  const at_gemm_summed from = at_gemm_summed_of(g, o);
  sums_arguments a = {.data = from.data,
                      .out = o->bias_gradient,
                      .count = from.count,
                      .length = from.length,
                      .stride = from.stride,
                      .step = from.step};
  const int64_t each = a.stride == 1 ? 32 : 8;
  const at_jit_config config = {.grid = {(unsigned)((a.count + each - 1) / each)}, .block = {32, 8}};
  return at_jit_launch(kernel, &config, &a, stream);
}

attune_status at_pass_launch(const at_pass_kernels *kernels, const at_gemm *g, const at_gemm_operands *o,
                             at_pass_input from, attune_stream *stream) {
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, stream->device);
  if (status != ATTUNE_OK) return status;
  if (kernels->pass) status = launch_pass(kernels->pass, g, o, from, stream);
  if (status == ATTUNE_OK && kernels->sums) status = launch_sums(kernels->sums, g, o, stream);
  at_cuda_leave(&scope);
  return status;
}
