/* SPDX-License-Identifier: Apache-2.0
 * trace.h: marks and ranges in the time line of a profiler (Nsight Systems and others that know NVTX), and the stretch
 * that a profiler looks at. Without a profiler every call of this header does nothing and takes a few nanoseconds.
 * Where attune was built without NVTX's headers, which come with the CUDA toolkit, no profiler sees anything. Marks and
 * ranges of the program are in NVTX's default domain.
 *
 * ATTUNE_NVTX=1, or attune_set_trace, makes each call of attune that gives work to a stream a range of its own, in
 * NVTX's domain "attune": "attune_gemm bf16 tn 4096x16x4096 strict, cuda_cublaslt". */
#ifndef ATTUNE_TRACE_H
#define ATTUNE_TRACE_H

#include <attune/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What attune_trace_push and attune_trace_pop return without a profiler, which is what counts the ranges. */
#define ATTUNE_TRACE_NOBODY (-2)

/* Marks a moment. NULL does nothing. Any thread; allowed in capture, as all of this header. */
ATTUNE_API void attune_trace_mark(const char *text);

/* Opens a range of the calling thread, inside those that are open. Returns how many were open before; below 0 without a
 * profiler, and for NULL, which opens none. */
ATTUNE_API int attune_trace_push(const char *text);

/* Closes the thread's innermost range. Returns how many are open now; below 0 without a profiler, and when none was open. */
ATTUNE_API int attune_trace_pop(void);

/* Opens a range that any thread may close. Returns its number; 0 without a profiler, and for NULL. */
ATTUNE_API uint64_t attune_trace_start(const char *text);

/* Closes a range of attune_trace_start. 0 does nothing. */
ATTUNE_API void attune_trace_end(uint64_t range);

/* Switches ranges for attune's own calls on (nonzero) or off, for the whole process. Errors: UNSUPPORTED (built without
 * NVTX). Any thread. */
ATTUNE_API attune_status attune_set_trace(int on);

/* Whether they are on. Any thread. */
ATTUNE_API int attune_get_trace(void);

/* Begins the stretch of the program that a profiler looks at, if it was told to wait for that (nsys profile
 * --capture-range=cudaProfilerApi; ncu --profile-from-start off): cudaProfilerStart. Errors: UNSUPPORTED (there is no
 * cuda device), DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_profiler_start(void);

/* Ends it: cudaProfilerStop. Errors and threads as above. */
ATTUNE_API attune_status attune_profiler_stop(void);

#ifdef __cplusplus
}
#endif
#endif
