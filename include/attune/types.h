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

/* The version of these headers; attune_version() tells that of the library. */
#define ATTUNE_VERSION_MAJOR 0
/* See ATTUNE_VERSION_MAJOR. */
#define ATTUNE_VERSION_MINOR 1
/* See ATTUNE_VERSION_MAJOR. */
#define ATTUNE_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. Half types are IEEE binary16 and bfloat16, stored as 16-bit words. */
typedef enum attune_dtype {
  ATTUNE_F64 = 1,
  ATTUNE_F32 = 2,
  ATTUNE_F16 = 3,
  ATTUNE_BF16 = 4,
  ATTUNE_I32 = 5, /* integers: random numbers have them, GEMMs do not */
  ATTUNE_I64 = 6
} attune_dtype;

/* A GPU, or the host. It lives as long as the process and is never freed by the caller (device.h). */
typedef struct attune_device attune_device;
/* Work that runs in order on a device (stream.h). */
typedef struct attune_stream attune_stream;
/* A point in a stream's work (stream.h). */
typedef struct attune_event attune_event;
/* Databases, mode and plans, for the calls of the operations (tuner.h). */
typedef struct attune_tuner attune_tuner;
/* A choice made for one problem, for calls without a look-up (plan.h). */
typedef struct attune_plan attune_plan;
/* A list of problems with their numbers of calls (workload.h). */
typedef struct attune_workload attune_workload;
typedef struct attune_generator attune_generator;

/* The version of the library in use, "major.minor.patch". Borrowed, never NULL; any thread; allowed in capture. */
ATTUNE_API const char *attune_version(void);

/* Bytes of one element of `dtype`; 0 for a value that is no dtype. Any thread; allowed in capture. */
ATTUNE_API size_t attune_dtype_size(attune_dtype dtype);

/* "f64", "f32", "f16", "bf16", "i32" or "i64"; "unknown" for a value that is no dtype. Borrowed; any thread; allowed in
 * capture. */
ATTUNE_API const char *attune_dtype_name(attune_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
