/* SPDX-License-Identifier: Apache-2.0
 * device.h: the devices of this process: "host", which every machine has, and "cuda:0", "cuda:1", ...
 *
 * Fork. A child may use the host, whatever the parent's threads were doing. It creates its own streams and events; its
 * tuners keep working; a search in progress continues in the parent only. A capture in progress stays open in the
 * child, where attune_device_synchronize and attune_memory_empty_cache fail with CAPTURING until its graph is destroyed
 * there. A fork waits for products that a CBLAS library is computing. If another thread is in exit() at the fork, the
 * child computes with attune's own loops, cannot tune, and should end by _exit. A child of a fork within a stream's
 * function has the signal mask of the thread that created the stream. CUDA does not survive a fork: if the parent had
 * enumerated devices before, cuda devices fail in the child with DEVICE_ERROR. Start a new process instead
 * (posix_spawn, exec), or enumerate devices first in the child.
 *
 * Exit. The process may end at any time, with work in flight. exit() and a return from main wait for a product that a
 * CBLAS library is computing and for threads inside the GPU libraries (for a compilation until it ends, for a thread
 * that waits for a GPU's work one second), and for nothing else. Later calls, in exit handlers and destructors, still
 * work on the host, with attune's own loops. On a GPU they fail with DEVICE_ERROR, except that the thread that runs
 * exit() may still copy and release its memory; cuBLAS and the compiler are no longer called. Host streams that were
 * created keep working until the process ends. To be sure that work is done, call attune_stream_synchronize first.
 * dlclose does not unload the shared library.
 *
 * Cancellation. A thread that is cancelled (pthread_cancel) while it tunes, waits or uses a database ends after that
 * call, not within it. A thread must not be cancelled while it runs a function of the program as work or as a callback,
 * and no thread with asynchronous cancellation may call attune. */
#ifndef ATTUNE_DEVICE_H
#define ATTUNE_DEVICE_H

#include <attune/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Value of a figure that the device, its driver and the system do not report. */
#define ATTUNE_NOT_KNOWN INT64_MIN

/* The kinds of device. */
typedef enum attune_device_kind { ATTUNE_DEVICE_HOST = 1, ATTUNE_DEVICE_CUDA = 2 } attune_device_kind;

/* Properties of a device. */
typedef struct attune_device_properties {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_device_kind kind;
  char name[128];        /* "NVIDIA H200", or the CPU's model name */
  uint64_t memory_bytes; /* device memory; on the host physical memory */
  int processors;        /* streaming multiprocessors; on the host logical CPUs this process may use */
  int capability_major;  /* CUDA compute capability; 0 on the host */
  int capability_minor;
  uint64_t cache_bytes; /* L2; on the host the last-level cache */
  int driver_version;   /* CUDA driver, 13000 = 13.0; 0 on the host */
  char features[128];   /* host: "avx2 fma f16c avx512f ..."; cuda: "sm_90" */
} attune_device_properties;

/* Returns nonzero if this library was built with CUDA. Initialises nothing. Any thread. */
ATTUNE_API int attune_built_with_cuda(void);

/* Writes the number of GPUs that this process could use, as limited by CUDA_VISIBLE_DEVICES, into *out. The number
 * comes from NVML, so CUDA's driver is not initialised and a child of fork may still use CUDA. 0 in a build without
 * CUDA and on a machine without a driver. Errors: INVALID_ARGUMENT, UNSUPPORTED (there is a driver, but NVML does not
 * report the number; MIG devices). Any thread. */
ATTUNE_API attune_status attune_cuda_count(int *out);

/* Returns nonzero if this process has enumerated devices, so that CUDA's driver, if there is one, is initialised. The
 * call itself initialises nothing. Any thread. */
ATTUNE_API int attune_is_initialized(void);

/* Returns the number of devices, at least 1, since the host always counts. A machine without a CUDA driver has no cuda
 * device; that is not an error. Initialises the CUDA driver, creates no context. Any thread. */
ATTUNE_API int attune_device_count(void);

/* Gets device number `index`, 0 <= index < attune_device_count(), into *out: cuda devices in their order, then the
 * host. Errors: INVALID_ARGUMENT. Borrowed; any thread. */
ATTUNE_API attune_status attune_device_at(attune_device **out, int index);

/* Gets the device named `name` into *out: "host", "cuda" (= "cuda:0"), "cuda:N"; NULL or "best" is the first cuda
 * device, else the host. Errors: INVALID_ARGUMENT (not a device name), NOT_FOUND (no such device here). Borrowed; any
 * thread. */
ATTUNE_API attune_status attune_device_get(attune_device **out, const char *name);

/* Returns "host" or "cuda:N"; "none" for NULL. Borrowed; any thread; allowed in capture. */
ATTUNE_API const char *attune_device_name(const attune_device *device);

/* Creates in advance what the first work would create: on CUDA the context, and the cuBLAS handles of the default
 * stream. A second call does nothing. Errors: INVALID_ARGUMENT, DEVICE_ERROR, OUT_OF_MEMORY, UNSUPPORTED (cuBLAS is not
 * available; the context is created). Any thread that may use the default stream; not in capture. */
ATTUNE_API attune_status attune_device_initialize(attune_device *device);

/* Returns nonzero if the device has a context, whether created by attune or not; always for the host. Creates none. Any
 * thread. */
ATTUNE_API int attune_device_is_initialized(const attune_device *device);

/* Fills *out with the properties of `device`. Errors: INVALID_ARGUMENT. Any thread; allowed in capture. */
ATTUNE_API attune_status attune_device_get_properties(const attune_device *device, attune_device_properties *out);

/* A library used by work on a device. The texts are valid only during the callback. */
typedef struct attune_library {
  const char *name;      /* "cublas", "cublaslt", "nvrtc", "openblas", "blis" */
  const char *version;   /* "13.1.0"; "" if it is not used */
  const char *path;      /* its file; "" if there is none */
  int loaded_by_program; /* nonzero: the program had loaded this copy before attune first needed one */
  const char *problem;   /* "" if it is used; else the reason and a remedy */
} attune_library;

/* Called with a library; a nonzero return ends the walk. */
typedef int (*attune_library_fn)(void *user, const attune_library *library);

/* Calls `fn` once for each library that work on `device` uses, in a fixed order; a nonzero return ends the walk. A
 * library is opened when a device first needs it, at the latest by this call. If the program has already loaded a copy,
 * in whatever way, attune uses that copy. A copy that the program loads later may be a second one. Versions are part of
 * attune_device_fingerprint, paths are not. A program linked with -static opens no libraries and has the host device
 * only; the log says so once. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_device_libraries(attune_device *device, attune_library_fn fn, void *user);

/* Returns the calling thread's current device: the one it set, else the one named "best". It lets the parts of a
 * program agree on a device; attune itself never uses it. CUDA's own current device (cudaSetDevice) does not change.
 * Borrowed; any thread. */
ATTUNE_API attune_device *attune_device_current(void);

/* Makes `device` the calling thread's current one. Creates no context. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_device_set_current(attune_device *device);

/* Writes the free bytes of `device` into *out_free and its total bytes into *out_total; either may be NULL. On the
 * host, free is what the system could provide without swapping. Creates a context on CUDA. Errors: INVALID_ARGUMENT,
 * DEVICE_ERROR, UNSUPPORTED. Any thread; allowed in capture. */
ATTUNE_API attune_status attune_device_memory_info(attune_device *device, uint64_t *out_free, uint64_t *out_total);

/* Sets *out to 1 if work of `device` can access memory of `peer` directly after attune_device_enable_peer, else to 0. A
 * device, including the host, can always access its own memory. Creates no context. Errors: INVALID_ARGUMENT,
 * DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_device_can_access_peer(int *out, attune_device *device, attune_device *peer);

/* Lets work of `device` access memory of `peer`, allocated before or after, from now on and in the whole process.
 * Calling it twice is not an error. Errors: INVALID_ARGUMENT, UNSUPPORTED (no peer access), DEVICE_ERROR. Any thread;
 * not in capture. */
ATTUNE_API attune_status attune_device_enable_peer(attune_device *device, attune_device *peer);

/* Reverts attune_device_enable_peer: work of `device` may no longer access memory of `peer`, and no such work may be in
 * flight. Not an error if it was not enabled. Collectives enable peers again when they need them. Errors:
 * INVALID_ARGUMENT (also: a device and itself), UNSUPPORTED (they are no peers), DEVICE_ERROR. Any thread; not in
 * capture. */
ATTUNE_API attune_status attune_device_disable_peer(attune_device *device, attune_device *peer);

/* Waits for all work in all streams of `device`, including the program's own CUDA streams, and returns the error of
 * that work, if any. Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING (a stream of the device is being captured; this
 * call would break the capture, whatever its thread and mode). Any thread. */
ATTUNE_API attune_status attune_device_synchronize(attune_device *device);

/* Converts the result of the program's own CUDA call for `device`, a cudaError_t, to a status with a message that names
 * `what` (the call; NULL: "a call of the program"): 0 is ATTUNE_OK. An error that makes the device unusable, such as an
 * illegal address, is recorded as if a call of attune had returned it: every later call on the device fails with
 * DEVICE_ERROR and names the error and the call that first reported it. Clears CUDA's last error of this thread.
 * Returns that status, or INVALID_ARGUMENT (device is NULL) or UNSUPPORTED (the host). Any thread; allowed in
 * capture. */
ATTUNE_API attune_status attune_cuda_check(attune_device *device, int error, const char *what);

/* Sets the maximum number of CPU threads per operation on the host, for the whole process and including the caller's
 * thread: attune's own teams and the CPU libraries that attune calls. 1 to 4096; 0: the number of CPUs in the affinity
 * mask, or a cgroup's quota rounded up if that is less, as read when the process first needed it. Stored winners hold
 * for the number of threads that they were found with; those of other numbers are guesses. A plan that needs more
 * threads than are allowed runs the vendor default. Before the first call the bound is ATTUNE_THREADS. Errors:
 * INVALID_ARGUMENT. Any thread; work in flight keeps its team. */
ATTUNE_API attune_status attune_set_threads(int threads);

/* Returns the number of threads that one operation on the host may use now, at least 1. Any thread. */
ATTUNE_API int attune_get_threads(void);

#ifdef __cplusplus
}
#endif
#endif
