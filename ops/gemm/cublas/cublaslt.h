/* SPDX-License-Identifier: Apache-2.0
 * cublaslt.h: the parts of the cublaslt implementation: a problem as descriptors, an algorithm as numbers and text, and
 * the search of the algorithm space. */
#ifndef AT_GEMM_CUBLASLT_H
#define AT_GEMM_CUBLASLT_H

#include "ops/gemm/cublas/cuda_types.h"
#include "src/cuda/context/cuda.h"
#include "tuning/op/tunables.h"

/* Of matrix layouts and of what algorithms are capable of, by number: headers before CUDA 12.9 lack the names. */
enum { AT_LT_BATCH_MODE = 8, AT_LT_POINTER_ARRAY = 1, AT_LT_POINTER_ARRAY_SUPPORT = 21 };

/* One GEMM in cuBLASLt's words, and what its contract lets an algorithm do. Read-only once open: any thread. */
struct at_lt_plan;
typedef struct at_lt_problem {
  at_gemm gemm;
  attune_device *device;
  cublasLtHandle_t handle; /* borrowed */
  cublasLtMatmulDesc_t matmul;
  cublasLtMatrixLayout_t a, b, c, d;
  uint32_t reductions; /* split-K reduction schemes permitted, besides none */
  uint64_t forbidden;  /* numerical implementation flags that no algorithm may have */
  size_t workspace_cap;
  uint32_t alignment[4]; /* in bytes, of every matrix of A, B, C, D */
} at_lt_problem;

/* cublaslt_problem.c: descriptors of *g; at_lt_close also after a failure. Creates the device's context at first use.
 * `copied`: these matrices are copies in a workspace, which begin at multiples of 256 bytes whatever g->alignment says.
 */
#define AT_LT_COPIED_A 1u
#define AT_LT_COPIED_B 2u
#define AT_LT_COPIED_CD 4u
attune_status at_lt_open(at_lt_problem *out, const at_gemm *g, unsigned copied, attune_device *device);
void at_lt_close(at_lt_problem *problem);

/* cublaslt_epilogue.c: has cuBLASLt the problem's epilogue? True without one. */
bool at_lt_has_epilogue(const at_gemm *g);

/* The problem with its residual in the place of C; as it is without one. */
at_gemm at_lt_with_residual(const at_gemm *g);

/* Puts the epilogue into a descriptor, with stand-ins for the operands; then those of a call. */
cublasStatus_t at_lt_set_epilogue(cublasLtMatmulDesc_t matmul, const at_gemm *g);
cublasStatus_t at_lt_move_epilogue(cublasLtMatmulDesc_t matmul, const at_gemm *g, const at_gemm_operands *o);

/* cublaslt_scaled.c: can cuBLASLt perhaps do this product of 8-bit elements, by what is known of layouts, types, scales
 * and the device? Only a search says whether it can. */
bool at_lt_may_scale(const at_gemm *g, const attune_device *device);

/* Bytes of workspace in front of the algorithm's, for scales that are not aligned. */
size_t at_lt_scale_bytes(const at_gemm *g);

/* Types of products, scale modes and where scales lie, of a descriptor; `operands` NULL: somewhere, as well aligned. */
cublasStatus_t at_lt_set_scaling(cublasLtMatmulDesc_t matmul, const at_gemm *g, const at_gemm_operands *operands);

/* at_lt_multiply for such a product: the descriptor is the launch's own. */
attune_status at_lt_multiply_scaled(const struct at_lt_plan *lt, const at_gemm_operands *operands, void *workspace,
                                    attune_stream *stream);

/* The descriptor of *g but for its scaling: operations and nothing else. */
cublasStatus_t at_lt_set_operations(cublasLtMatmulDesc_t matmul, const at_gemm *g);

/* True when a matrix has 2 GiB or more, or a batch reaches to element 2^31: wrong results of cuBLASLt have been
 * reported at 2^31 elements exactly, and past 2 GiB. Such problems are left to cuBLAS, whatever the version, device or
 * algorithm. */
bool at_lt_is_huge(const at_gemm *g);

/* What tells an algorithm from all others of one library version: its configuration attributes, in the library's own
 * numbers. */
typedef enum at_lt_field {
  AT_LT_ID,
  AT_LT_TILE,
  AT_LT_STAGES,
  AT_LT_SPLITK,
  AT_LT_REDUCTION,
  AT_LT_SWIZZLE,
  AT_LT_CUSTOM,
  AT_LT_INNER,
  AT_LT_CLUSTER,
  AT_LT_FIELDS
} at_lt_field;
typedef struct at_lt_algorithm {
  uint32_t value[AT_LT_FIELDS];
} at_lt_algorithm;

/* The tunables of an algorithm; IN, a member and its dot, is where it lies in the choice. */
#define AT_LT_TUNABLES(NUMBER, IN)                                                                                \
  AT_LT_TUNABLE(NUMBER, "id", IN value[AT_LT_ID], "the algorithm")                                                \
  AT_LT_TUNABLE(NUMBER, "tile", IN value[AT_LT_TILE], "the tile of D that one block computes")                    \
  AT_LT_TUNABLE(NUMBER, "stages", IN value[AT_LT_STAGES], "the depth of the pipeline that loads A and B")         \
  AT_LT_TUNABLE(NUMBER, "splitk", IN value[AT_LT_SPLITK],                                                         \
                "number of parts that k is split into; 4294967295 is what cuBLASLt reports for some algorithms, " \
                "not a number of parts")                                                                          \
  AT_LT_TUNABLE(NUMBER, "reduction", IN value[AT_LT_REDUCTION],                                                   \
                "how the parts are added: 0 none, 1 in place, 2 in the compute type, 4 in the output type")       \
  AT_LT_TUNABLE(NUMBER, "swizzle", IN value[AT_LT_SWIZZLE], "1: blocks are reordered for the cache")              \
  AT_LT_TUNABLE(NUMBER, "custom", IN value[AT_LT_CUSTOM], "an option of the algorithm, without a public name")    \
  AT_LT_TUNABLE(NUMBER, "inner", IN value[AT_LT_INNER], "the shape of one instruction")                           \
  AT_LT_TUNABLE(NUMBER, "cluster", IN value[AT_LT_CLUSTER], "the shape of a cluster of blocks")
#define AT_LT_TUNABLE(NUMBER, KEY, FIELD, ABOUT) NUMBER(KEY, FIELD, NULL, 0, UINT32_MAX, 0, ABOUT)

extern const at_tunables at_lt_tunables; /* of an at_lt_algorithm */

/* The numbers of an algorithm of the library. */
void at_lt_describe(at_lt_algorithm *out, const cublasLtMatmulAlgo_t *algorithm);

/* The library's algorithm of a given number, unconfigured; false when it has none for these types. */
bool at_lt_start(const at_lt_problem *problem, uint32_t id, cublasLtMatmulAlgo_t *out);

/* The list attribute (tile or stage numbers) of an algorithm into out[max]; the count. */
int at_lt_list(const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulAlgoCapAttributes_t attribute, uint32_t *out,
               int max);

/* A 4-byte capability; `otherwise` when the library does not say. */
int32_t at_lt_capability(const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulAlgoCapAttributes_t attribute,
                         int32_t otherwise);

/* Restores the algorithm into *out and checks it against this library, device, problem, contract and workspace cap.
 * NULL when it may run, with result->workspaceSize and wavesCount set; else why not, in words. */
const char *at_lt_check(const at_lt_problem *problem, const at_lt_algorithm *algorithm, cublasLtMatmulAlgo_t *out,
                        cublasLtMatmulHeuristicResult_t *result);

/* cublaslt_plan.c: what the plans of cuBLASLt's implementations begin with. Read-only while plans share it among
 * threads. */
typedef struct at_lt_plan {
  at_lt_problem problem;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace_bytes; /* the algorithm's */
} at_lt_plan;

/* An implementation's prepare: plan->state becomes `bytes` of memory, zeros that `open` fills, with the device current.
 * When it fails the implementation's destroy releases what there is. */
attune_status at_lt_prepare(at_plan *plan, size_t bytes, attune_status (*open)(at_plan *plan));

/* The wanted algorithm for *g, with copied matrices (at_lt_open), into the plan's state. NOT_FOUND: it may not run
 * here, and the message says why. */
attune_status at_lt_restore(at_plan *plan, const at_gemm *g, unsigned copied, const at_lt_algorithm *wanted);

/* Around what a launch does: the device is current and the stream's workspace is of the plan's size. at_cuda_leave ends
 * it, after success only. */
attune_status at_lt_enter(at_cuda_scope *scope, void **workspace, const at_plan *plan, attune_stream *stream);

/* The multiplication, with a workspace of the algorithm's bytes and at_lt_scale_bytes. */
attune_status at_lt_multiply(const at_lt_plan *lt, const at_gemm_operands *operands, void *workspace,
                             attune_stream *stream);

/* An implementation's destroy. */
void at_lt_destroy(at_plan *plan);

/* The slot `depends` of an implementation that copies matrices by kernels of its own and then calls cuBLASLt. */
bool at_lt_depends_on_kernels(const at_implementation *self, const at_configuration *configuration,
                              attune_device *device, char *out, size_t size);

/* `size` rounded up to a multiple of `unit`. */
static inline int64_t at_lt_up(int64_t size, int64_t unit) {
  return (size + unit - 1) / unit * unit;
}

/* cublaslt_search.c: the at_implementation slots of the same names. */
int at_lt_configurations(const at_implementation *self, const void *problem, attune_device *device,
                         at_configuration *out, int max);
int at_lt_neighbours(const at_implementation *self, const void *problem, attune_device *device,
                     const at_configuration *leader, at_configuration *out, int max);

/* Either of them for *g with copied matrices: a list for leader = NULL, else what is around the leader. */
int at_lt_search(const at_gemm *g, unsigned copied, attune_device *device, const at_lt_algorithm *leader,
                 at_configuration *out, int max);

#endif
