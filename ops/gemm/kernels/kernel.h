/* SPDX-License-Identifier: Apache-2.0
 * kernel.h: GEMM kernels of attune's own: families, each a kernel text with tunables. What one family knows of itself
 * is an at_gemm_kernels; the rest of an implementation is made of it here. The texts are NAME.cuh behind kernel.cuh and
 * kernel_ptx.cuh. */
#ifndef AT_GEMM_KERNEL_H
#define AT_GEMM_KERNEL_H

#include <stddef.h>

#include "ops/gemm/problem/problem.h"
#include "src/cuda/jit/jit.h"
#include "src/cuda/jit/tensor_map.h"
#include "tuning/model/machine.h"
#include "tuning/op/tunables.h"

/* at_epilogue of kernel.cuh: an epilogue's operands. Pitches in elements of D's type, of a mask in bits. */
typedef struct at_epilogue_arguments {
  const void *bias, *residual;
  void *aux;
  int64_t ld_aux, ld_residual, stride_aux, stride_residual;
  double clamp_min, clamp_max;
  const float *scale;
} at_epilogue_arguments;
at_epilogue_arguments at_epilogue_arguments_of(const at_gemm *g, const at_gemm_operands *o);

/* What every kernel takes: at_arguments of kernel.cuh. Leading dimensions and strides in bytes. */
typedef struct at_gemm_arguments {
  const void *a, *b, *c;
  void *d;
  int64_t lda, ldb, ldc, ldd, stride_a, stride_b, stride_c, stride_d;
  double alpha, beta;
  int32_t m, n, k, batch;
  void *sums;                   /* the workspace, of a spec that asks for one */
  int32_t phase, zero;          /* zero: 0, which a compiler cannot know */
  double alpha_imag, beta_imag; /* of complex problems */
  at_epilogue_arguments epilogue;
} at_gemm_arguments;
_Static_assert(sizeof(at_gemm_arguments) == 28 * 8 + 4 * 4, "kernel.cuh lays it out so");

/* What a kernel takes that copies by tensor maps: those of A and B. */
typedef struct at_gemm_mapped_arguments {
  at_gemm_arguments arguments;
  at_tensor_map maps[2];
} at_gemm_mapped_arguments;

/* What a kernel of a scaled family takes: at_ring_arguments of sm90_skinny_ring.cuh. `l` is A, or B where they have
 * changed places. */
typedef struct at_gemm_scaled_arguments {
  at_gemm_arguments arguments;
  const float *scale_l, *scale_s, *scale_d;
  float *amax;
} at_gemm_scaled_arguments;

/* For the models: of two numbers, none NaN. */
AT_INLINE int at_lesser_int(int x, int y) {
  return x < y ? x : y;
}

AT_INLINE double at_lesser(double x, double y) {
  return x < y ? x : y;
}

AT_INLINE double at_greater(double x, double y) {
  return x > y ? x : y;
}

/* A macro of a kernel's text. */
typedef struct at_gemm_define {
  const char *name;
  int value;
} at_gemm_define;

enum { AT_GEMM_DEFINES = 64 };

/* A configuration for a problem: how its kernel is compiled and launched. */
typedef struct at_gemm_launch_spec {
  at_gemm_define defines[AT_GEMM_DEFINES];
  int define_count;
  int before_defines;          /* those of them, the first ones, that a text of its own launched before has */
  at_jit_config config;        /* with the grid that has a block for all the work */
  bool stays;                  /* a smaller grid may step over the work: as many blocks as the device holds */
  bool swapped;                /* A and B have changed places */
  bool mapped;                 /* the kernel takes at_gemm_mapped_arguments */
  at_tensor_shape maps[2];     /* if mapped: of A and B, as they are after the change */
  bool copied[2];              /* if mapped: the map is of a copy in the workspace */
  size_t places[2];            /* where that begins, a multiple of 16 */
  at_gemm_arguments arguments; /* without pointers and scalars */
  size_t workspace_bytes;      /* of padded operands and of sums */
  at_jit_config before, after; /* with a grid: the kernel is launched before, so, with phase 2; after it with phase 1 */
} at_gemm_launch_spec;

typedef struct at_gemm_kernels {
  const char *file, *entry, *text;
  bool complex;         /* takes complex types, too */
  bool pointers;        /* finds the matrices of a batch by arrays of pointers in device memory, too */
  bool scaled;          /* takes 8-bit types, and no others: its launch is at_gemm_kernel_launch_scaled */
  const char *first[2]; /* what goes between kernel.cuh and the text; NULL: nothing */
  bool has_epilogue;    /* its sums become D by at_put, at_write, and at_finish_at where there are no MATRICES */
  bool has_gated;       /* and it makes gated products */
  bool before_apart;    /* what launch specs launch before is a kernel of its own: the text with BEFORE defined as 1 */
  const char *before_text; /* or, if not NULL, this behind kernel.cuh, with the spec's first before_defines */
  bool (*supports)(const at_gemm *g, const at_machine *machine);
  /* Those that a search tries, best guess first; the count. Each is compiled, so they are few. With `wide` all that the
   * model ranks: for measuring what the few should be. */
  int (*candidates)(const at_gemm *g, const at_machine *machine, at_configuration *out, int max, bool wide);
  /* False: the text is no configuration of the family, or not one for this problem. */
  bool (*spec)(at_gemm_launch_spec *out, const at_gemm *g, const at_machine *machine,
               const at_configuration *configuration);
} at_gemm_kernels;

/* Of one of them, whose slots are AT_GEMM_KERNEL_SLOTS. */
static inline const at_gemm_kernels *at_gemm_kernels_of(const at_implementation *implementation) {
  return implementation->data;
}

/* Blocks that a processor holds at a time, at least 1 and no more than `most`. */
int at_gemm_resident(const at_machine *machine, int threads, int registers, int shared_bytes, int most);

/* Puts *item into a list of structs of `size` bytes, least cost first; `cost` is the offset of the double that tells
 * it. Where the list has `most` the worst falls out. The new count. */
int at_gemm_insert(void *list, int count, int most, size_t size, size_t cost, const void *item);

#define AT_GEMM_INSERT(list, count, most, item) \
  at_gemm_insert(list, count, most, sizeof *(item), offsetof(choice, cost), item)

/* Puts the first `most` of `all`, sorted like the list, before it: those that cost less than `part` of its first. The
 * new count. */
int at_gemm_prepend(void *list, int count, const void *all, int all_count, int most, double part, size_t size,
                    size_t cost);

#define AT_GEMM_PREPEND(list, count, all, all_count, most, part) \
  at_gemm_prepend(list, count, all, all_count, most, part, sizeof *(list), offsetof(choice, cost))

/* The texts of a list's choices into out[max], those that cost less than `hopeless` times the first (0: all);
 * the count. */
int at_gemm_offer(at_configuration *out, int max, const at_tunables *tunables, const void *list, int count, size_t size,
                  size_t cost, double hopeless);

#define AT_GEMM_OFFER(out, max, list, count, hopeless) \
  at_gemm_offer(out, max, &tunables, list, count, sizeof *(list), offsetof(choice, cost), hopeless)

/* size / unit, rounded up. */
AT_INLINE int64_t at_gemm_parts(int64_t size, int64_t unit) {
  return (size + unit - 1) / unit;
}

/* Number of a type in the macros IN, OUT and BIAS_TYPE of kernel.cuh. */
int at_gemm_dtype_number(unsigned dtype);

/* Appends NAME=VALUE. */
void at_gemm_define_add(at_gemm_launch_spec *spec, const char *name, int value);

/* The problem without pointers and scalars; IN and OUT are defined. */
void at_gemm_launch_spec_start(at_gemm_launch_spec *spec, const at_gemm *g);

/* The spec's A and B change places, and so do m and n. */
void at_gemm_launch_spec_swap(at_gemm_launch_spec *spec);

/* The widest load, 1 to 16 bytes, that a matrix's pointer, columns and matrices of the batch permit. */
int at_gemm_grain(const at_gemm *g, size_t element, int64_t columns, int64_t ld, int64_t stride);

/* TRANS_A and TRANS_B, the widest accesses BYTES_A, BYTES_B, BYTES_C and BYTES_D, and READS_C. */
void at_gemm_define_matrices(at_gemm_launch_spec *spec, const at_gemm *g);

/* Is the problem's epilogue, if it has one, of those that a kernel with an epilogue does with its sums in registers?
 * All but a mask that is written and the gradient of a bias; only some have gated products, too. */
bool at_gemm_in_registers(const at_gemm *g);

/* The family's slot of this name, and the macros of the problem's epilogue. */
bool at_gemm_launch_spec_of(at_gemm_launch_spec *out, const at_gemm_kernels *family, const at_gemm *g,
                            const at_machine *machine, const at_configuration *configuration);

/* A grid of `blocks` clusters of `split` blocks, by `batch` and `layers`, 0 as 1. */
void at_gemm_launch_spec_grid(at_gemm_launch_spec *spec, int64_t blocks, int split, int64_t batch, int64_t layers,
                              int threads, int shared_bytes);

/* A call's operands: pointers and scalars. */
void at_gemm_bind(at_gemm_arguments *out, const at_gemm *g, bool swapped, const at_gemm_operands *operands);

/* The kernel's text into *out, to be freed; `before`: of the one that is launched before it. OUT_OF_MEMORY. */
attune_status at_gemm_text(char **out, const at_gemm_kernels *family, const at_gemm_launch_spec *spec, bool before);

static inline bool at_gemm_has_before(const at_gemm_kernels *family, const at_gemm_launch_spec *spec) {
  return family->before_apart && spec->before.grid[0] > 0;
}

/* The macros of the tunables, with the choice's values. */
void at_gemm_define_tunables(at_gemm_launch_spec *spec, const at_tunables *tunables, const void *choice);

bool at_gemm_kernel_supports(const at_implementation *self, const void *problem, attune_device *device);
int at_gemm_kernel_configurations(const at_implementation *self, const void *problem, attune_device *device,
                                  at_configuration *out, int max);
attune_status at_gemm_kernel_prepare(at_plan *plan);
void at_gemm_kernel_prepare_many(const at_implementation *self, const void *problem, attune_device *device,
                                 const at_configuration *configurations, int count);
attune_status at_gemm_kernel_compile(const at_implementation *self, const void *problem, attune_device *device,
                                     const at_configuration *configuration, bool *made);
attune_status at_gemm_kernel_launch(const at_plan *plan, const void *operands, attune_stream *stream);
attune_status at_gemm_kernel_launch_scaled(const at_plan *plan, const void *operands, attune_stream *stream);
void at_gemm_kernel_destroy(at_plan *plan);
bool at_gemm_kernel_depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                            char *out, size_t size);

/* All that an implementation has besides its name and version; FAMILY is its at_gemm_kernels. */
#define AT_GEMM_KERNEL_SLOTS(FAMILY, TUNABLES) AT_GEMM_KERNEL_SLOTS_BY(FAMILY, TUNABLES, at_gemm_kernel_launch)
#define AT_GEMM_KERNEL_SLOTS_BY(FAMILY, TUNABLES, LAUNCH)                                             \
  .backend = "cuda", .tunables = &(TUNABLES), .data = &(FAMILY), .supports = at_gemm_kernel_supports, \
  .configurations = at_gemm_kernel_configurations, .prepare = at_gemm_kernel_prepare,                 \
  .prepare_many = at_gemm_kernel_prepare_many, .compile = at_gemm_kernel_compile, .launch = (LAUNCH), \
  .destroy = at_gemm_kernel_destroy, .depends = at_gemm_kernel_depends

#endif
