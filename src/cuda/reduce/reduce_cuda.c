/* SPDX-License-Identifier: Apache-2.0
 * reduce_cuda.c: the reductions of reduce.h on CUDA: picks the kernel of the type and launches it. */
#include "src/cuda/reduce/reduce_cuda.h"

#include <stdatomic.h>

#include "src/comm/reduce.h"
#include "src/cuda/jit/jit.h"

#include "reduce_cu.h"

enum { THREADS = 256, BLOCKS_EACH = 8, DEVICES = 65 };

at_kernel_source at_reduce_source(attune_reduction reduction, attune_dtype as, bool wide) {
#define BOTH(op, type)            \
  {                               \
    {op, type, "WIDE=0", NULL}, { \
      op, type, "WIDE=1", NULL    \
    }                             \
  }
#define EVERY(op)                                                                                                 \
  {                                                                                                               \
    BOTH(op, "DTYPE=1"), BOTH(op, "DTYPE=2"), BOTH(op, "DTYPE=3"), BOTH(op, "DTYPE=4"), BOTH(op, "DTYPE=5"),      \
        BOTH(op, "DTYPE=6"), BOTH(op, "DTYPE=7"), BOTH(op, "DTYPE=8"), BOTH(op, "DTYPE=9"), BOTH(op, "DTYPE=10"), \
        BOTH(op, "DTYPE=11"), BOTH(op, "DTYPE=12")                                                                \
  }
  static const char *const macros[AT_REDUCTIONS][AT_REDUCE_TYPES][2][4] = {EVERY("OP=0"), EVERY("OP=1"), EVERY("OP=2"),
                                                                           EVERY("OP=3"), EVERY("OP=4")};
  return (at_kernel_source){
      .file = "reduce.cu", .text = at_reduce_cu, .entry = "at_reduce", .macros = macros[reduction][(int)as - 1][wide]};
}

/* Made at the first use on a device, kept for ever. The device is current, in the relaxed mode. */
static attune_status find(at_jit_kernel **out, attune_device *device, attune_reduction reduction, attune_dtype as,
                          bool wide) {
  static _Atomic(at_jit_kernel *) kernels[DEVICES][AT_REDUCTIONS][AT_REDUCE_TYPES][2];
  _Atomic(at_jit_kernel *) *place = &kernels[device->index % DEVICES][reduction][(int)as - 1][wide];
  *out = atomic_load_explicit(place, memory_order_acquire);
  if (*out) return ATTUNE_OK;
  const at_kernel_source source = at_reduce_source(reduction, as, wide);
  AT_TRY(at_jit_get(out, device, &source));
  at_jit_keep(*out);
  atomic_store_explicit(place, *out, memory_order_release);
  return ATTUNE_OK;
}

static bool is_wide(const at_reduce_call *call) {
  uintptr_t all = (uintptr_t)call->out;
  for (int i = 0; i < call->inputs; i++) all |= (uintptr_t)call->in[i];
  return all % 16 == 0;
}

attune_status at_reduce_cuda(attune_stream *stream, const at_reduce_call *call) {
  const attune_reduction reduction = (attune_reduction)call->reduction;
  const attune_dtype as = at_reduce_as(reduction, (attune_dtype)call->dtype);
  const bool wide = is_wide(call);
  at_reduce_call given = *call;
  at_jit_kernel *kernel = NULL;
  at_cuda_scope scope;
  given.count *= at_reduce_parts((attune_dtype)call->dtype);
  const size_t each = wide ? 16 / attune_dtype_size(as) : 1;
  const unsigned long long needed = given.count / each / THREADS + 1,
                           most = (unsigned long long)stream->device->properties.processors * BLOCKS_EACH;
  AT_TRY(at_cuda_enter_relaxed(&scope, stream->device));
  attune_status status = find(&kernel, stream->device, reduction, as, wide);
  const at_jit_config config = AT_JIT_ROW((unsigned)(needed < most ? needed : most), THREADS);
  if (status == ATTUNE_OK) status = at_jit_launch(kernel, &config, &given, stream);
  at_cuda_leave(&scope);
  return status;
}
