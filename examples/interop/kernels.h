/* SPDX-License-Identifier: Apache-2.0
 * kernels.h: kernels for the programs of this folder, as the text that nvcc -ptx makes of CUDA C, so that neither nvcc
 * nor NVRTC is needed. */
#ifndef INTEROP_KERNELS_H
#define INTEROP_KERNELS_H

#include "examples/interop/interop.h"

#define KERNELS_HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

/* extern "C" __global__ void twice(float *p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] +=
 * p[i]; } */
#define KERNEL_TWICE                                                         \
  ".visible .entry twice(.param .u64 p, .param .u32 n)"                      \
  "{ .reg .pred %q; .reg .b32 %r<5>; .reg .f32 %f<2>; .reg .b64 %d<3>;"      \
  "  ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n];"                          \
  "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;"      \
  "  mad.lo.s32 %r4, %r1, %r2, %r3; setp.ge.s32 %q, %r4, %r0; @%q bra done;" \
  "  mul.wide.s32 %d1, %r4, 4; add.s64 %d2, %d0, %d1;"                       \
  "  ld.f32 %f0, [%d2]; add.f32 %f1, %f0, %f0; st.f32 [%d2], %f1;"           \
  "done: ret; }\n"

/* One thread a block. Each block writes its number + 1, all meet at the counter, and each writes what its neighbour
 * wrote into the second half: it ends only if all blocks run at the same time.
 * extern "C" __global__ void meet(float *p, unsigned *counter) {
 *   p[blockIdx.x] = blockIdx.x + 1; __threadfence(); atomicAdd(counter, 1);
 *   while (*(volatile unsigned *)counter < gridDim.x) {} __threadfence();
 *   p[gridDim.x + blockIdx.x] = p[(blockIdx.x + 1) % gridDim.x]; } */
#define KERNEL_MEET                                                                                \
  ".visible .entry meet(.param .u64 p, .param .u64 counter)"                                       \
  "{ .reg .pred %q; .reg .b32 %r<8>; .reg .f32 %f<2>; .reg .b64 %d<8>;"                            \
  "  ld.param.u64 %d0, [p]; ld.param.u64 %d1, [counter];"                                          \
  "  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %nctaid.x; add.s32 %r2, %r0, 1;"                          \
  "  cvt.rn.f32.u32 %f0, %r2; mul.wide.u32 %d2, %r0, 4; add.s64 %d3, %d0, %d2; st.f32 [%d3], %f0;" \
  "  membar.gl; atom.add.u32 %r3, [%d1], 1;"                                                       \
  "again: ld.volatile.u32 %r4, [%d1]; setp.lt.u32 %q, %r4, %r1; @%q bra again;"                    \
  "  membar.gl; rem.u32 %r5, %r2, %r1; mul.wide.u32 %d4, %r5, 4; add.s64 %d5, %d0, %d4;"           \
  "  ld.volatile.f32 %f1, [%d5]; mul.wide.u32 %d6, %r1, 4; add.s64 %d7, %d3, %d6; st.f32 [%d7], %f1; ret; }\n"

/* out[y * w + x] = tex2D<float>(texture, x + 0.5f, y + 0.5f), one block a row. */
#define KERNEL_LOOK                                                                                                 \
  ".visible .entry look(.param .u64 out, .param .u64 texture)"                                                      \
  "{ .reg .b32 %r<4>; .reg .f32 %f<6>; .reg .b64 %d<5>;"                                                            \
  "  ld.param.u64 %d0, [out]; ld.param.u64 %d1, [texture];"                                                         \
  "  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;"                                             \
  "  cvt.rn.f32.u32 %f0, %r0; cvt.rn.f32.u32 %f1, %r1; add.f32 %f0, %f0, 0f3F000000; add.f32 %f1, %f1, 0f3F000000;" \
  "  tex.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%d1, {%f0, %f1}];"                                                    \
  "  mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %d2, %r3, 4; add.s64 %d3, %d0, %d2; st.f32 [%d3], %f2; ret; }\n"

/* A kernel of `text`; the library stays loaded. */
static inline cudaKernel_t kernels_load(const char *text, const char *name) {
  cudaLibrary_t library = NULL;
  cudaKernel_t kernel = NULL;
  CUDA(cudaLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
  CUDA(cudaLibraryGetKernel(&kernel, library, name));
  return kernel;
}

#endif
