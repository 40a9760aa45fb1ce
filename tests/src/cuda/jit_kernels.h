/* SPDX-License-Identifier: Apache-2.0
 * jit_kernels.h: kernels that show how they were launched: test_cuda_launch.c runs them, test_jit_compile.c compiles
 * them for every kind of device. */
#ifndef AT_TEST_JIT_KERNELS_H
#define AT_TEST_JIT_KERNELS_H

#include "src/cuda/jit/kernel_compile.h"

/* Arguments of the kernels. */
typedef struct show_argument {
  unsigned long long *out;
  unsigned count; /* words of shared memory; of `dependent` values */
  unsigned base;
} show_argument;

#define SHOW_ARGUMENT "struct argument { unsigned long long *out; unsigned count, base; };\n"
#define SHOW_KERNEL(name) "extern \"C\" __global__ void " #name "(const __grid_constant__ argument a) {\n"

/* Each thread of grid and block writes where it is: block x, y, z and thread x, y, z, ten bits each. */
#define SHOW_PLACE                                                                                              \
  SHOW_ARGUMENT SHOW_KERNEL(                                                                                    \
      place) "  const unsigned long long block = (blockIdx.z * gridDim.y + blockIdx.y) * (unsigned long "       \
             "long)gridDim.x +\n"                                                                               \
             "      blockIdx.x;\n"                                                                              \
             "  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;\n" \
             "  unsigned long long v = blockIdx.x;\n"                                                           \
             "  v = v << 10 | blockIdx.y, v = v << 10 | blockIdx.z, v = v << 10 | threadIdx.x, v = v << 10 | "  \
             "threadIdx.y;\n"                                                                                   \
             "  a.out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] = v << 10 | threadIdx.z;\n"      \
             "}\n"

/* One block fills `count` words of dynamic shared memory and writes them out the other way round. */
#define SHOW_SHARED                                                                                                   \
  SHOW_ARGUMENT "extern __shared__ unsigned words[];\n" SHOW_KERNEL(                                                  \
      shared) "  for (unsigned i = threadIdx.x; i < a.count; i += blockDim.x) words[i] = i * 2654435761u + a.base;\n" \
              "  __syncthreads();\n"                                                                                  \
              "  for (unsigned i = threadIdx.x; i < a.count; i += blockDim.x) a.out[i] = words[a.count - 1 - i];\n"   \
              "}\n"

/* Each block reads a word of the next block's shared memory in its cluster. Written: its rank, the cluster's size, and
 * the word, which is that block's number in the grid plus `base`. */
#define SHOW_CLUSTER                                                                                                   \
  SHOW_ARGUMENT SHOW_KERNEL(                                                                                           \
      cluster) "#if __CUDA_ARCH__ >= 900\n"                                                                            \
               "  __shared__ unsigned word;\n"                                                                         \
               "  unsigned rank, size, there, value;\n"                                                                \
               "  const unsigned here = (unsigned)__cvta_generic_to_shared(&word);\n"                                  \
               "  asm volatile(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(rank));\n"                                  \
               "  asm volatile(\"mov.u32 %0, %%cluster_nctarank;\" : \"=r\"(size));\n"                                 \
               "  if (threadIdx.x == 0) word = blockIdx.x + a.base;\n"                                                 \
               "  asm volatile(\"barrier.cluster.arrive.release.aligned;\\nbarrier.cluster.wait.acquire.aligned;\" "   \
               "::: \"memory\");\n"                                                                                    \
               "  asm volatile(\"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(there) : \"r\"(here), \"r\"((rank + " \
               "1) % size));\n"                                                                                        \
               "  asm volatile(\"ld.shared::cluster.u32 %0, [%1];\" : \"=r\"(value) : \"r\"(there) : \"memory\");\n"   \
               "  asm volatile(\"barrier.cluster.arrive.release.aligned;\\nbarrier.cluster.wait.acquire.aligned;\" "   \
               "::: \"memory\");\n"                                                                                    \
               "  if (threadIdx.x == 0) a.out[blockIdx.x] = (unsigned long long)rank << 48 | (unsigned long "          \
               "long)size << 32 | value;\n"                                                                            \
               "#else\n"                                                                                               \
               "  if (threadIdx.x == 0) a.out[blockIdx.x] = a.base;\n"                                                 \
               "#endif\n"                                                                                              \
               "}\n"

/* The first of two: lets the other begin, waits until it has (or for long enough), and writes its values after that.
 * out[count]: the other's sign; out[count + 1]: whether it was seen. */
#define SHOW_FIRST                                                                                     \
  SHOW_ARGUMENT SHOW_KERNEL(                                                                           \
      first) "#if __CUDA_ARCH__ >= 900\n"                                                              \
             "  asm volatile(\"griddepcontrol.launch_dependents;\" ::: \"memory\");\n"                 \
             "#endif\n"                                                                                \
             "  volatile unsigned long long *sign = a.out + a.count;\n"                                \
             "  unsigned long long seen = 0;\n"                                                        \
             "  for (unsigned i = 0; i < 200000u && !(seen = *sign); i++) __nanosleep(50);\n"          \
             "  if (threadIdx.x == 0) a.out[a.count + 1] = seen;\n"                                    \
             "  for (unsigned i = threadIdx.x; i < a.count; i += blockDim.x) a.out[i] = i + a.base;\n" \
             "}\n"

/* The other one: gives its sign, waits for the first one's end, and adds to the values. */
#define SHOW_SECOND                                                                                  \
  SHOW_ARGUMENT SHOW_KERNEL(                                                                         \
      second) "  if (threadIdx.x == 0) *(volatile unsigned long long *)(a.out + a.count) = 1;\n"     \
              "#if __CUDA_ARCH__ >= 900\n"                                                           \
              "  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"                           \
              "#endif\n"                                                                             \
              "  for (unsigned i = threadIdx.x; i < a.count; i += blockDim.x) a.out[i] += a.base;\n" \
              "}\n"

typedef enum show_kernel { SHOW_A_PLACE, SHOW_A_SHARED, SHOW_A_CLUSTER, SHOW_A_FIRST, SHOW_A_SECOND } show_kernel;

static inline const at_kernel_source *show_source(size_t kernel) {
  static const at_kernel_source sources[] = {{"place.cu", SHOW_PLACE, "place", NULL, false, false},
                                             {"shared.cu", SHOW_SHARED, "shared", NULL, false, false},
                                             {"cluster.cu", SHOW_CLUSTER, "cluster", NULL, false, false},
                                             {"first.cu", SHOW_FIRST, "first", NULL, false, false},
                                             {"second.cu", SHOW_SECOND, "second", NULL, false, false}};
  return &sources[kernel];
}

#endif
