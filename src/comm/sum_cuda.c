/* SPDX-License-Identifier: Apache-2.0
 * sum_cuda.c: the addition of sum.h on CUDA: picks the kernel of the type and launches it. */
#include "src/comm/sum_cuda.h"

#include <stdatomic.h>

#include "src/comm/sum.h"
#include "src/cuda/jit.h"

#include "sum_cu.h"

enum { THREADS = 256, TYPES = 8, BLOCKS_EACH = 8, DEVICES = 65 };

/* Unsigned and signed integers have the same sums; complex numbers are pairs. */
static int number_of(attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_C128: return ATTUNE_F64;
  case ATTUNE_C64: return ATTUNE_F32;
  case ATTUNE_U32: return ATTUNE_I32;
  case ATTUNE_U64: return ATTUNE_I64;
  case ATTUNE_U8: return ATTUNE_I8;
  case ATTUNE_U16: return ATTUNE_I16;
  default: return (int)dtype;
  }
}

at_kernel_source at_sum_source(attune_dtype dtype, bool wide) {
#define BOTH(type)            \
  {                           \
    {type, "WIDE=0", NULL}, { \
      type, "WIDE=1", NULL    \
    }                         \
  }
  static const char *const macros[TYPES][2][3] = {BOTH("DTYPE=1"), BOTH("DTYPE=2"), BOTH("DTYPE=3"), BOTH("DTYPE=4"),
                                                  BOTH("DTYPE=5"), BOTH("DTYPE=6"), BOTH("DTYPE=7"), BOTH("DTYPE=8")};
  return (at_kernel_source){
      .file = "sum.cu", .text = at_sum_cu, .entry = "at_sum", .macros = macros[number_of(dtype) - 1][wide]};
}

/* Made at the first use on a device, kept for ever. The device is current, in the relaxed mode. */
static attune_status find(at_jit_kernel **out, attune_device *device, attune_dtype dtype, bool wide) {
  static _Atomic(at_jit_kernel *) kernels[DEVICES][TYPES][2];
  _Atomic(at_jit_kernel *) *place = &kernels[device->index % DEVICES][number_of(dtype) - 1][wide];
  *out = atomic_load_explicit(place, memory_order_acquire);
  if (*out) return ATTUNE_OK;
  const at_kernel_source source = at_sum_source(dtype, wide);
  const attune_status status = at_jit_get(out, device, &source);
  if (status != ATTUNE_OK) return status;
  at_jit_keep(*out);
  atomic_store_explicit(place, *out, memory_order_release);
  return ATTUNE_OK;
}

static bool is_wide(const at_sum_call *call) {
  uintptr_t all = (uintptr_t)call->out;
  for (int i = 0; i < call->inputs; i++) all |= (uintptr_t)call->in[i];
  return all % 16 == 0;
}

attune_status at_sum_cuda(attune_stream *stream, const at_sum_call *call) {
  const attune_dtype dtype = (attune_dtype)call->dtype;
  const bool wide = is_wide(call), pairs = dtype == ATTUNE_C64 || dtype == ATTUNE_C128;
  at_sum_call given = *call;
  at_jit_kernel *kernel = NULL;
  at_cuda_scope scope;
  if (pairs) given.count *= 2;
  const size_t each = wide ? 16 / (attune_dtype_size(dtype) / (pairs ? 2 : 1)) : 1;
  const unsigned long long needed = given.count / each / THREADS + 1,
                           most = (unsigned long long)stream->device->properties.processors * BLOCKS_EACH;
  attune_status status = at_cuda_enter_relaxed(&scope, stream->device);
  if (status != ATTUNE_OK) return status;
  status = find(&kernel, stream->device, dtype, wide);
  const at_jit_config config = AT_JIT_ROW((unsigned)(needed < most ? needed : most), THREADS);
  if (status == ATTUNE_OK) status = at_jit_launch(kernel, &config, &given, stream);
  at_cuda_leave(&scope);
  return status;
}
