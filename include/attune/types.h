/* SPDX-License-Identifier: Apache-2.0
 * types.h: what every other header of attune needs: export macro, version, element types, handles. */
#ifndef ATTUNE_TYPES_H
#define ATTUNE_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ATTUNE_API __attribute__((visibility("default")))
#else
#define ATTUNE_API
#endif

/* The version of these headers; attune_version() returns the library's. */
#define ATTUNE_VERSION_MAJOR 0
/* See ATTUNE_VERSION_MAJOR. */
#define ATTUNE_VERSION_MINOR 1
/* See ATTUNE_VERSION_MAJOR. */
#define ATTUNE_VERSION_PATCH 0

/* Structs that may gain fields in later versions begin with `size_t size`: the sizeof with which the program was
 * compiled, as set by ATTUNE_..._INIT, or 0. Start from that macro or from zeros, for results too. Programs and
 * libraries of different versions then work together:
 * - Fields that the program's struct lacks count as zero, the default; in a result they are omitted.
 * - Fields that the library lacks must be zero, else the call fails with INVALID_ARGUMENT; in a result they are left
 *   unchanged.
 * - 0 means the struct of version 0.1: fields added later count only if size is set.
 * A size smaller than the struct of version 0.1 is an error: INVALID_ARGUMENT where the call's problem is new; a call
 * that is found among the remembered ones reads all fields of version 0.1 without a check.
 *
 * Structs without a size never gain fields, or only attune creates them (arguments of callbacks, results returned by
 * pointer) and may add fields at their end. */

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. Half types are IEEE binary16 and bfloat16, stored as 16-bit words. The 8-bit floats are those of the
 * OCP specification (OFP8): E4M3 has no infinity, and its largest number is 448; E5M2 has infinities. A bool is a byte,
 * 0 or 1. A complex number is its real part followed by its imaginary part. Not every operation supports every type. */
typedef enum attune_dtype {
  ATTUNE_F64 = 1,
  ATTUNE_F32 = 2,
  ATTUNE_F16 = 3,
  ATTUNE_BF16 = 4,
  ATTUNE_I32 = 5,
  ATTUNE_I64 = 6,
  ATTUNE_I8 = 7,
  ATTUNE_I16 = 8,
  ATTUNE_U8 = 9,
  ATTUNE_U16 = 10,
  ATTUNE_U32 = 11,
  ATTUNE_U64 = 12,
  ATTUNE_BOOL = 13,
  ATTUNE_F8E4M3 = 14,
  ATTUNE_F8E5M2 = 15,
  ATTUNE_C64 = 16, /* two f32 */
  ATTUNE_C128 = 17 /* two f64 */
} attune_dtype;

/* A function that follows a sum: of attune_tensor_bias_activation, and of a product's epilogue. gelu is x Phi(x) =
 * 0.5 x (1 + erf(x / sqrt(2))) (Hendrycks and Gimpel, arXiv:1606.08415), gelu_tanh the approximation 0.5 x (1 +
 * tanh(sqrt(2 / pi) (x + 0.044715 x^3))) of the same paper, silu x / (1 + exp(-x)), sigmoid 1 / (1 + exp(-x)). */
typedef enum attune_activation {
  ATTUNE_ACTIVATION_NONE = 0,
  ATTUNE_ACTIVATION_RELU = 1,
  ATTUNE_ACTIVATION_GELU = 2,
  ATTUNE_ACTIVATION_GELU_TANH = 3,
  ATTUNE_ACTIVATION_SILU = 4,
  ATTUNE_ACTIVATION_SIGMOID = 5,
  ATTUNE_ACTIVATION_TANH = 6
} attune_activation;

/* A GPU, or the host. Valid for the life of the process; the caller never frees it (device.h). */
typedef struct attune_device attune_device;
/* A queue of work that runs in order on a device (stream.h). */
typedef struct attune_stream attune_stream;
/* A point in a stream's work (stream.h). */
typedef struct attune_event attune_event;
/* Databases, mode and plans, for the calls of the operations (tuner.h). */
typedef struct attune_tuner attune_tuner;
/* The choice for one problem, for calls without a look-up (plan.h). */
typedef struct attune_plan attune_plan;
/* A list of problems with their call counts (workload.h). */
typedef struct attune_workload attune_workload;
/* A source of random numbers (random.h). */
typedef struct attune_generator attune_generator;

/* Returns the version of the library in use, "major.minor.patch". Borrowed, never NULL; any thread; allowed in
 * capture. */
ATTUNE_API const char *attune_version(void);

/* Returns the bytes of one element of `dtype`; 0 for a value that is no dtype. Any thread; allowed in capture. */
ATTUNE_API size_t attune_dtype_size(attune_dtype dtype);

/* Returns "f64", "f32", "f16", "bf16", "i8" to "i64", "u8" to "u64", "bool", "f8e4m3", "f8e5m2", "c64" or "c128";
 * "unknown" for a value that is no dtype. Borrowed; any thread; allowed in capture. */
ATTUNE_API const char *attune_dtype_name(attune_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
