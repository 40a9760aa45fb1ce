/* SPDX-License-Identifier: Apache-2.0
 * pass.c: an epilogue as a pass over D, on the host, and the choice of the device's. */
#include "ops/gemm/epilogue/pass.h"

#include "ops/gemm/host/blocked_run.h"
#include "ops/gemm/reference/reference.h"
#include "src/host/host.h"
#include "src/host/threads.h"

static at_pass_fn loops(void) {
#if defined(__x86_64__)
  const at_blocked_isa *isa = at_blocked_isa_find(NULL);
  if (strcmp(isa->name, "avx512") == 0) return at_pass_avx512;
  if (strcmp(isa->name, "avx2") == 0) return at_pass_avx2;
#endif
  return at_pass_portable;
}

typedef struct host_pass {
  const at_gemm *g;
  const at_gemm_operands *o;
  at_pass_input from;
  at_pass_fn fn;
  int64_t pieces; /* of a column */
} host_pass;

static void share(void *arg, const at_team *team) {
  const host_pass *p = arg;
  const int64_t rows = at_gemm_rows_d(p->g), columns = at_gemm_cols_d(p->g);
  const int64_t all = p->pieces * columns * p->g->batch, from = all * team->rank / team->size,
                to = all * (team->rank + 1) / team->size;
  for (int64_t i = from; i < to; i++) {
    const int64_t row = i % p->pieces * AT_PASS_ROWS, column = i / p->pieces;
    const at_pass_piece piece = {.g = p->g,
                                 .o = p->o,
                                 .from = p->from,
                                 .batch = column / columns,
                                 .row = row,
                                 .rows = rows - row < AT_PASS_ROWS ? rows - row : AT_PASS_ROWS,
                                 .column = column % columns};
    p->fn(&piece);
  }
}

/* ---- bias gradients ---- */

static void put_number(void *to, attune_dtype dtype, int64_t at, double x) {
  switch (dtype) {
  case ATTUNE_F64: ((double *)to)[at] = x; break;
  case ATTUNE_F32: ((float *)to)[at] = (float)x; break;
  case ATTUNE_F16: ((uint16_t *)to)[at] = at_f64_to_f16(x); break;
  default: ((uint16_t *)to)[at] = at_f64_to_bf16(x); break;
  }
}

/* Sums in f64, SUMS of them at a time so that memory is read in its order. */
enum { SUMS = 128 };
typedef struct gradient {
  at_gemm_summed from;
  void *to;
  attune_dtype dtype;
} gradient;

static void gradient_share(void *arg, const at_team *team) {
  const gradient *p = arg;
  const at_gemm_summed *s = &p->from;
  const int64_t blocks = (s->count + SUMS - 1) / SUMS;
  for (int64_t block = team->rank; block < blocks; block += team->size) {
    double sums[SUMS] = {0.0};
    const int64_t first = block * SUMS, count = s->count - first < SUMS ? s->count - first : SUMS;
    if (s->stride == 1) {
      for (int64_t x = 0; x < s->length; x++)
        for (int64_t i = 0; i < count; i++)
          sums[i] += at_reference_value(s->data, s->dtype, (size_t)(first + i + x * s->step));
    } else {
      for (int64_t i = 0; i < count; i++)
        for (int64_t x = 0; x < s->length; x++)
          sums[i] += at_reference_value(s->data, s->dtype, (size_t)((first + i) * s->stride + x * s->step));
    }
    for (int64_t i = 0; i < count; i++) put_number(p->to, p->dtype, first + i, sums[i]);
  }
}

static int threads_for(double elements, int most) {
  const double least = 32768.0; /* elements that are worth waking a thread */
  const int wanted = elements / least < (double)most ? (int)(elements / least) : most;
  return wanted < 1 ? 1 : wanted;
}

void at_gemm_pass_host(const at_gemm *g, const at_gemm_operands *o, at_pass_input from, int threads) {
  host_pass p = {g, o, from, loops(), (at_gemm_rows_d(g) + AT_PASS_ROWS - 1) / AT_PASS_ROWS};
  if (at_gemm_epilogue_changes_d(g))
    at_parallel(threads_for((double)g->m * (double)g->n * (double)g->batch, threads), share, &p);
  if (!g->epilogue.bias_gradient) return;
  gradient sums = {at_gemm_summed_of(g, o), o->bias_gradient, at_gemm_bias_dtype(g)};
  at_parallel(threads_for((double)sums.from.count * (double)sums.from.length, threads), gradient_share, &sums);
}

typedef struct work {
  at_gemm g;
  at_gemm_operands o;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

static at_pass_input of_nothing(const at_gemm *g, const at_gemm_operands *o) {
  return g->gated ? (at_pass_input){0} : at_pass_input_of_d(g, o);
}

static void run(const void *args) {
  const work *w = args;
  at_gemm_pass_host(&w->g, &w->o, of_nothing(&w->g, &w->o), at_cpu_count());
}

attune_status at_gemm_pass(attune_stream *stream, const at_gemm *g, const at_gemm_operands *o) {
#ifdef AT_WITH_CUDA
  if (stream->device->properties.kind == ATTUNE_DEVICE_CUDA) {
    at_pass_kernels kernels;
    AT_TRY(at_pass_open(&kernels, g, stream->device));
    const attune_status status = at_pass_launch(&kernels, g, o, of_nothing(g, o), stream);
    at_pass_release(&kernels);
    return status;
  }
#endif
  const work w = {*g, *o};
  return at_host_submit(stream, run, &w, sizeof w);
}
