/* SPDX-License-Identifier: Apache-2.0
 * scale_host.c: D = beta C on the host, what is left of a GEMM with k = 0 or alpha = 0. */
#include <string.h>

#include "ops/gemm/problem/problem.h"
#include "src/base/half.h"
#include "src/host/host.h"

typedef struct work {
  at_gemm g;
  double beta, beta_imag;
  bool zero;
  const void *c;
  void *d;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

#define SCALE_COMPLEX(TYPE)                                                                           \
  do {                                                                                                \
    const TYPE *z = (const TYPE *)w->c + 2 * (from + i), re = (TYPE)w->beta, im = (TYPE)w->beta_imag; \
    TYPE *d = (TYPE *)w->d + 2 * (to + i);                                                            \
    const TYPE x = im == 0 ? re * z[0] : re * z[0] - im * z[1];                                       \
    d[1] = im == 0 ? re * z[1] : re * z[1] + im * z[0];                                               \
    d[0] = x;                                                                                         \
  } while (0)

static void scale_column(const work *w, int64_t from, int64_t to, float beta) {
  for (int64_t i = 0; i < w->g.m; i++) {
    switch (w->g.dtype_out) {
    case ATTUNE_C128: SCALE_COMPLEX(double); break;
    case ATTUNE_C64: SCALE_COMPLEX(float); break;
    case ATTUNE_F64: ((double *)w->d)[to + i] = w->beta * ((const double *)w->c)[from + i]; break;
    case ATTUNE_F32: ((float *)w->d)[to + i] = beta * ((const float *)w->c)[from + i]; break;
    case ATTUNE_F16: {
      double x = (double)at_f16_to_f32(((const uint16_t *)w->c)[from + i]);
      ((uint16_t *)w->d)[to + i] = at_f64_to_f16((double)beta * x);
      break;
    }
    default: {
      double x = (double)at_bf16_to_f32(((const uint16_t *)w->c)[from + i]);
      ((uint16_t *)w->d)[to + i] = at_f64_to_bf16((double)beta * x);
      break;
    }
    }
  }
}

static void run(const void *args) {
  const work *w = (const work *)args;
  const at_gemm *g = &w->g;
  size_t size = attune_dtype_size((attune_dtype)g->dtype_out);
  float beta = (float)w->beta;
  for (int64_t batch = 0; batch < g->batch; batch++)
    for (int64_t j = 0; j < g->n; j++) {
      int64_t to = batch * g->stride_d + j * g->ldd;
      if (w->zero)
        memset((char *)w->d + (size_t)to * size, 0, (size_t)g->m * size);
      else
        scale_column(w, batch * g->stride_c + j * g->ldc, to, beta);
    }
}

attune_status at_gemm_scale_host(attune_stream *stream, const at_gemm *g, const at_gemm_operands *operands) {
  const bool zero = g->c == AT_C_NONE || at_gemm_beta_is_0((attune_dtype)g->dtype, operands);
  work w = {*g, operands->beta, operands->beta_imag, zero, operands->c, operands->d};
  return at_host_submit(stream, run, &w, sizeof w);
}
