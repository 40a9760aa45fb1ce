/* SPDX-License-Identifier: Apache-2.0
 * trace.h: marks and ranges in a profiler's timeline (Nsight Systems and others that support NVTX), and the start and
 * end of profiling. Without a profiler every function of this header does nothing and takes a few nanoseconds. If
 * attune was built without NVTX's headers, which come with the CUDA toolkit, profilers see no marks or ranges. Marks
 * and ranges of the program are in NVTX's default domain.
 *
 * ATTUNE_NVTX=1, or attune_set_trace, makes each call of attune that launches work on a stream a range of its own, in
 * NVTX's domain "attune": "attune_gemm bf16 tn 4096x16x4096 strict, cuda_cublaslt". */
#ifndef ATTUNE_TRACE_H
#define ATTUNE_TRACE_H

#include <attune/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returned by attune_trace_push and attune_trace_pop without a profiler, since the profiler counts the ranges. */
#define ATTUNE_TRACE_NOBODY (-2)

/* Marks a moment in the timeline. NULL does nothing. Any thread; allowed in capture, as are all functions of this
 * header. */
ATTUNE_API void attune_trace_mark(const char *text);

/* Opens a range of the calling thread, nested in those that are open. Returns the number of ranges that were open
 * before; negative without a profiler, and for NULL, which opens no range. */
ATTUNE_API int attune_trace_push(const char *text);

/* Closes the thread's innermost range. Returns the number of ranges still open; negative without a profiler, or if none
 * was open. */
ATTUNE_API int attune_trace_pop(void);

/* Opens a range that any thread may close. Returns its id; 0 without a profiler, and for NULL. */
ATTUNE_API uint64_t attune_trace_start(const char *text);

/* Closes a range opened by attune_trace_start. 0 does nothing. */
ATTUNE_API void attune_trace_end(uint64_t range);

/* Enables (nonzero) or disables ranges for attune's own calls, for the whole process. Errors: UNSUPPORTED (built
 * without NVTX). Any thread. */
ATTUNE_API attune_status attune_set_trace(int on);

/* Returns nonzero if ranges for attune's own calls are enabled. Any thread. */
ATTUNE_API int attune_get_trace(void);

/* Starts profiling, if the profiler was set to wait for that (nsys profile --capture-range=cudaProfilerApi; ncu
 * --profile-from-start off): calls cudaProfilerStart. Errors: UNSUPPORTED (there is no cuda device), DEVICE_ERROR. Any
 * thread. */
ATTUNE_API attune_status attune_profiler_start(void);

/* Ends profiling: calls cudaProfilerStop. Errors and threads as attune_profiler_start. */
ATTUNE_API attune_status attune_profiler_stop(void);

#ifdef __cplusplus
}
#endif
#endif
