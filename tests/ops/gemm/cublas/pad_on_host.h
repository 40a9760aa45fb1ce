/* SPDX-License-Identifier: Apache-2.0
 * pad_on_host.h: the kernel of pad.cu as C functions, one for each ELEMENT_BYTES, and the few words of CUDA it uses.
 * Every load is checked against the sources' bounds. */
#ifndef AT_TESTS_PAD_ON_HOST_H
#define AT_TESTS_PAD_ON_HOST_H

#include "ops/gemm/cublas/pad.h"

typedef struct uint4 {
  unsigned int x, y, z, w;
} __attribute__((aligned(16))) uint4;

static struct { unsigned x; } blockIdx, threadIdx;
static struct { const char *begin, *end; } source_range[AT_PAD_MATRICES];
static long long loads_outside;

static inline const void *checked(const void *pointer, size_t bytes) {
  static const uint4 nothing;
  const char *p = pointer;
  for (int i = 0; i < AT_PAD_MATRICES; i++)
    if (p >= source_range[i].begin && p + bytes <= source_range[i].end) return pointer;
  loads_outside++;
  return &nothing;
}

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return (uint4){x, y, z, w};
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((uint64_t)a * b >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}
static inline int min(int a, int b) {
  return a < b ? a : b;
}
static inline int max(int a, int b) {
  return a > b ? a : b;
}

#define __device__
#define __forceinline__ inline
#define __global__ static
#define __grid_constant__
#define __launch_bounds__(threads)
#define __ldg(pointer) (*(__typeof__(pointer))checked(pointer, sizeof *(pointer)))

#define PASTE_(name, bytes) name##_##bytes
#define PASTE(name, bytes) PASTE_(name, bytes)
#define element PASTE(element, ELEMENT_BYTES)
#define divider PASTE(divider, ELEMENT_BYTES)
#define pad_matrix PASTE(pad_matrix, ELEMENT_BYTES)
#define pad_arguments PASTE(pad_arguments, ELEMENT_BYTES)
#define piece PASTE(piece, ELEMENT_BYTES)
#define divide PASTE(divide, ELEMENT_BYTES)
#define locate PASTE(locate, ELEMENT_BYTES)
#define load PASTE(load, ELEMENT_BYTES)
#define load_elements PASTE(load_elements, ELEMENT_BYTES)
#define put_element PASTE(put_element, ELEMENT_BYTES)
#define get_element PASTE(get_element, ELEMENT_BYTES)
#define shifted PASTE(shifted, ELEMENT_BYTES)
#define store PASTE(store, ELEMENT_BYTES)
#define at_pad PASTE(at_pad, ELEMENT_BYTES)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#define ELEMENT_BYTES 2
#include "ops/gemm/cublas/pad.cu"
#undef ELEMENT_BYTES
#define ELEMENT_BYTES 4
#include "ops/gemm/cublas/pad.cu"
#undef ELEMENT_BYTES
#define ELEMENT_BYTES 8
#include "ops/gemm/cublas/pad.cu"
#undef ELEMENT_BYTES
#pragma GCC diagnostic pop

_Static_assert(sizeof(struct pad_arguments_2) == sizeof(at_pad_arguments), "pad.h and pad.cu agree");
_Static_assert(THREADS == AT_PAD_THREADS && EACH == AT_PAD_EACH && PIECE == AT_PAD_PIECE, "pad.h and pad.cu agree");

#undef element
#undef divider
#undef pad_matrix
#undef pad_arguments
#undef piece
#undef divide
#undef locate
#undef load
#undef load_elements
#undef put_element
#undef get_element
#undef shifted
#undef store
#undef at_pad

static inline void pad_thread(const at_pad_arguments *arguments, size_t grain) {
  union {
    at_pad_arguments given;
    struct pad_arguments_2 two;
    struct pad_arguments_4 four;
    struct pad_arguments_8 eight;
  } u = {.given = *arguments};
  if (grain == 2) at_pad_2(u.two);
  if (grain == 4) at_pad_4(u.four);
  if (grain == 8) at_pad_8(u.eight);
}

/* One launch, block by block. */
static inline void pad_on_host(const at_pad_arguments *arguments, size_t grain, unsigned blocks) {
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
    for (threadIdx.x = 0; threadIdx.x < AT_PAD_THREADS; threadIdx.x++) pad_thread(arguments, grain);
}

#endif
