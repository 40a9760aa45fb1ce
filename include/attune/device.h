/* SPDX-License-Identifier: Apache-2.0
 * device.h: the devices of this process: "host", which every machine has, and "cuda:0", "cuda:1", ...
 *
 * Fork. A child may use the host, whatever the parent's threads were doing. It makes its own streams and events; its
 * tuners keep working; a search that was under way stays the parent's. A capture that was under way counts as such in
 * the child, where attune_device_synchronize and attune_memory_empty_cache fail with CAPTURING, until its graph is
 * destroyed there. A fork waits for products that a CBLAS library is computing. If another thread is in exit() at the
 * fork, the child computes by attune's own loops, cannot tune, and should end by _exit. A child of a fork within a
 * stream's function has the signal mask of the thread that made the stream. CUDA does not survive a fork: if the parent
 * had looked for devices before, cuda devices fail in the child with DEVICE_ERROR. Start a new process instead
 * (posix_spawn, exec), or look for devices in the child first.
 *
 * Exit. The process may end at any time, with work in flight. exit() and a return from main wait for a product that a
 * CBLAS library is computing and for threads inside the libraries of GPUs (for a compilation until it ends, for a
 * thread that waits for a GPU's work a second), and for nothing else. Calls made after that, in exit handlers and
 * destructors, still work on the host; attune's own loops compute them. On a GPU they fail with DEVICE_ERROR, but that
 * the thread which runs exit() may still move and release what it has; cuBLAS and the compiler are not called any more.
 * Created streams of the host keep working until the process ends. To be sure that work is done, call
 * attune_stream_synchronize first. dlclose does not unload the shared library.
 *
 * Cancellation. A thread that is cancelled (pthread_cancel) while it tunes, waits or uses a database ends after that call,
 * not within it. Where a function of the program runs as work or as a callback, it must not be cancelled, and no thread
 * with asynchronous cancellation may call attune. */
#ifndef ATTUNE_DEVICE_H
#define ATTUNE_DEVICE_H

#include <attune/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The value of a figure that neither the device nor its driver nor the system tells. */
#define ATTUNE_NOT_KNOWN INT64_MIN

/* The kinds of device. */
typedef enum attune_device_kind { ATTUNE_DEVICE_HOST = 1, ATTUNE_DEVICE_CUDA = 2 } attune_device_kind;

/* What a device is and has. */
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

/* Nonzero: this library was built with CUDA. Starts nothing. Any thread. */
ATTUNE_API int attune_built_with_cuda(void);

/* How many GPUs this process could use into *out, as CUDA_VISIBLE_DEVICES leaves them, asked of NVML: CUDA's driver is
 * not started, so a child of fork may still use CUDA. 0 in a build without CUDA and on a machine without a driver.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (there is a driver, but NVML does not tell; MIG devices). Any thread. */
ATTUNE_API attune_status attune_cuda_count(int *out);

/* Nonzero: this process has looked for devices by now, so CUDA's driver is started if there is one. The question itself
 * starts nothing. Any thread. */
ATTUNE_API int attune_is_initialized(void);

/* The number of devices, at least 1: the host is always there. A machine without a CUDA driver has no cuda device; that
 * is not an error. Initialises the CUDA driver, creates no context. Any thread. */
ATTUNE_API int attune_device_count(void);

/* Device number `index`, 0 <= index < attune_device_count(), into *out: cuda devices in their order, then the host.
 * Errors: INVALID_ARGUMENT. Borrowed; any thread. */
ATTUNE_API attune_status attune_device_at(attune_device **out, int index);

/* The device called `name`: "host", "cuda" (= "cuda:0"), "cuda:N"; NULL or "best" is the first cuda device, else the
 * host. Errors: INVALID_ARGUMENT (not a device name), NOT_FOUND (no such device here). Borrowed; any thread. */
ATTUNE_API attune_status attune_device_get(attune_device **out, const char *name);

/* "host" or "cuda:N". Borrowed; any thread; allowed in capture. NULL gives "none". */
ATTUNE_API const char *attune_device_name(const attune_device *device);

/* Makes now what the first work would make: on CUDA the context, and the cuBLAS handles of the default stream. A second
 * call does nothing. Errors: INVALID_ARGUMENT, DEVICE_ERROR, OUT_OF_MEMORY, UNSUPPORTED (cuBLAS is not here; the
 * context is made). Any thread that may use the default stream; not in capture. */
ATTUNE_API attune_status attune_device_initialize(attune_device *device);

/* Nonzero: the device has a context by now, whoever made it; the host always does. Creates none. Any thread. */
ATTUNE_API int attune_device_is_initialized(const attune_device *device);

/* Fills *out. Errors: INVALID_ARGUMENT. Any thread; allowed in capture. */
ATTUNE_API attune_status attune_device_get_properties(const attune_device *device, attune_device_properties *out);

/* A library that work on a device calls. The texts are valid only during the callback. */
typedef struct attune_library {
  const char *name;      /* "cublas", "cublaslt", "nvrtc", "openblas", "blis" */
  const char *version;   /* "13.1.0"; "" when it is not used */
  const char *path;      /* its file; "" when there is none */
  int loaded_by_program; /* nonzero: the program had loaded this copy before attune first needed one */
  const char *problem;   /* "" when it is used; else why not, and what would help */
} attune_library;

/* Called with a library; a nonzero return ends the walk. */
typedef int (*attune_library_fn)(void *user, const attune_library *library);

/* Calls `fn` once for each library that work on `device` uses, in a fixed order; a nonzero return ends the walk. A
 * library is opened when a device first needs it, at the latest by this call. If the program has loaded a copy by then,
 * in whatever way, attune uses that copy. A copy that the program loads later may be a second one. Versions are part of
 * attune_device_fingerprint, paths are not. A program linked with -static opens none, and has the host device only; the
 * log says so once. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_device_libraries(attune_device *device, attune_library_fn fn, void *user);

/* The calling thread's current device: the one it set, else the one called "best". It lets the parts of a program agree
 * on a device; attune itself never looks at it. CUDA's own current device (cudaSetDevice) does not change. Borrowed. */
ATTUNE_API attune_device *attune_device_current(void);

/* Makes `device` the calling thread's current one. Creates no context. Errors: INVALID_ARGUMENT. */
ATTUNE_API attune_status attune_device_set_current(attune_device *device);

/* How many bytes are free on `device` into *out_free and how many it has into *out_total; either may be NULL. On the
 * host, free is what the system could give without swapping. Creates a context on CUDA. Errors: INVALID_ARGUMENT,
 * DEVICE_ERROR, UNSUPPORTED. Any thread; allowed in capture. */
ATTUNE_API attune_status attune_device_memory_info(attune_device *device, uint64_t *out_free, uint64_t *out_total);

/* Sets *out to 1 when work of `device` can use memory of `peer` directly after attune_device_enable_peer, else to 0. A
 * device can always use its own memory, the host included. Creates no context. Errors: INVALID_ARGUMENT,
 * DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_device_can_access_peer(int *out, attune_device *device, attune_device *peer);

/* Lets work of `device` use memory of `peer`, allocated before or after, from now on and for the whole process. Calling
 * it twice is not an error. Errors: INVALID_ARGUMENT, UNSUPPORTED (it cannot), DEVICE_ERROR. Any thread; not in
 * capture. */
ATTUNE_API attune_status attune_device_enable_peer(attune_device *device, attune_device *peer);

/* Takes that back: no work of `device` may use memory of `peer` any more, nor be under way that does. Not an error
 * where it was not enabled. Collectives enable peers again where they need them. Errors: INVALID_ARGUMENT (also: a
 * device and itself), UNSUPPORTED (they are no peers), DEVICE_ERROR. Any thread; not in capture. */
ATTUNE_API attune_status attune_device_disable_peer(attune_device *device, attune_device *peer);

/* Waits for all work of all streams of `device`, the program's own CUDA streams too, and returns what failed in it.
 * Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING (some stream of the device is being captured; this call would
 * break the capture, whatever its thread and mode). Any thread. */
ATTUNE_API attune_status attune_device_synchronize(attune_device *device);

/* What the program's own call of CUDA returned for `device`, a cudaError_t, as a status with a message that names
 * `what` (the call; NULL: "a call of the program"): 0 is ATTUNE_OK. An error that ends the use of the device, such as
 * an illegal address, is noted as if a call of attune had seen it: every later call on the device fails with
 * DEVICE_ERROR and names the error and the call that saw it first. Clears CUDA's last error of this thread. The status
 * is the return value, and beside those of errors: INVALID_ARGUMENT (device is NULL), UNSUPPORTED (the host). Any
 * thread; allowed in capture. */
ATTUNE_API attune_status attune_cuda_check(attune_device *device, int error, const char *what);

/* Sets the most CPU threads that one operation on the host may use from now on, in the whole process and counting the
 * caller's: attune's own teams and the CPU libraries that attune calls. 1 to 4096; 0 for as many as there are CPUs:
 * those in the affinity mask, or a cgroup's quota rounded up if that is less, as the process found them when it first
 * looked. Stored winners hold for the number of threads that they were found with; those of other numbers are guesses.
 * A plan that needs more than there are now runs the vendor default. Before the first call the bound is
 * ATTUNE_THREADS. Errors: INVALID_ARGUMENT. Any thread; work in flight keeps its team. */
ATTUNE_API attune_status attune_set_threads(int threads);

/* The number of threads that one operation on the host may use now, at least 1. Any thread. */
ATTUNE_API int attune_get_threads(void);

#ifdef __cplusplus
}
#endif
#endif
