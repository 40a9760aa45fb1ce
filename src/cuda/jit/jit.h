/* SPDX-License-Identifier: Apache-2.0
 * jit.h: kernels compiled at run time for the device they run on, kept in memory and in the user's kernel cache, and
 * how they are launched.
 *
 * A plan gets its kernels in prepare, checks there what it will launch (at_jit_check), and releases them in destroy.
 *
 * A process has 4,096 kernels loaded at most. A kernel that is released stays loaded, and the next at_jit_get finds it.
 * At the bound those without a holder are unloaded, the least recently used first. A kernel is held
 * - by whoever got it, until released: every launch is made by a holder;
 * - by every graph that it was captured into, attune's or the program's, by each clone and executable of it, and by
 *   replays that still run: CUDA counts these (a user object of the graph) and releases the kernel with the last one.
 * So one without a holder can only be in flight by launches that came before its release. Before it is unloaded the
 * work of all streams of the device is waited for. While one of them is in a capture that wait is not possible, and
 * nothing is unloaded; nor, for the rest of the process, after a launch whose end cannot be waited for later (on
 * cudaStreamPerThread, or on a stream that was closed while the program captured it). */
#ifndef AT_CUDA_JIT_H
#define AT_CUDA_JIT_H

#include "src/cuda/context/cuda.h"
#include "src/cuda/jit/kernel_compile.h"

typedef struct at_jit_kernel at_jit_kernel;

/* The kernel of `source`, loaded on the device, into *out; the caller releases it. The first call for it compiles (tens
 * of milliseconds) or reads the cache; calls for the same kernel wait for it, others run in parallel. Later ones cost a
 * lock. Errors: INTERNAL (the text does not compile; the compiler's first error is in the message), UNSUPPORTED (no
 * code that this compiler can make runs on the device, or there are 4,096 kernels and none can be unloaded),
 * OUT_OF_MEMORY, DEVICE_ERROR (also: a child of fork). *out is NULL after an error, which is not remembered. Any
 * thread; allowed in capture, though a plan does better to have its kernels before. At the bound it may wait for the
 * device. */
attune_status at_jit_get(at_jit_kernel **out, attune_device *device, const at_kernel_source *source);

/* A hold less; what was launched need not be done. NULL is left alone. Any thread, also one of CUDA's. */
void at_jit_release(at_jit_kernel *kernel);

/* The kernel is held for the process's life. Its launches do not look whether the stream is in a capture. */
void at_jit_keep(at_jit_kernel *kernel);

/* Several kernels at once: what one request asks for, and what came of it. */
typedef struct at_jit_request {
  at_kernel_source source;
  at_jit_kernel *kernel; /* the caller's to release; NULL: status and message say why */
  attune_status status;
  char message[AT_MESSAGE_CHARS];
} at_jit_request;

/* at_jit_get for each of `count` requests, by this thread and as many others as attune_set_threads permits, at most one
 * a CPU. A request that fails stops no other. The thread's message is left alone. Any thread; allowed in capture. */
void at_jit_get_all(at_jit_request *requests, int count, attune_device *device);

/* Compiles the kernel into the kernel cache, unless it is there: for whoever will want it later, in this process or in
 * another. *made: it was compiled now. Loads nothing and does not touch the device, so that it may run in parallel with
 * whatever is measured there. `made` NULL: nothing is compiled, and NOT_FOUND says that at_jit_get would have to.
 * Errors: those of the compiler, as at_jit_get has them; IO_ERROR (the cache cannot keep it, and why); DEVICE_ERROR (a
 * child of fork). Any thread; what another one compiles it waits for. */
attune_status at_jit_compile(attune_device *device, const at_kernel_source *source, bool *made);

/* How a kernel is launched. Of each size 0 counts as 1, except for the first of grid and block. */
typedef struct at_jit_config {
  unsigned grid[3];      /* blocks: x, y, z */
  unsigned block[3];     /* threads of a block */
  unsigned cluster[3];   /* blocks of a cluster; all 0: no clusters. The grid is a multiple of it. Capability 9.0 */
  unsigned shared_bytes; /* dynamic shared memory of a block */
  /* The kernel may begin while the one before it in the stream still runs, and says itself when it needs that one's
   * results (griddepcontrol.wait). Devices before 9.0 begin it when the other has ended. */
  bool dependent;
} at_jit_config;

/* A row of `blocks` blocks of `threads` threads. */
#define AT_JIT_ROW(blocks, threads) ((at_jit_config){.grid = {(blocks)}, .block = {(threads)}})

/* Whether the device can launch the kernel so. Errors: INVALID_ARGUMENT (a size is 0, the grid is no multiple of the
 * cluster), UNSUPPORTED (more threads, blocks, shared memory or blocks of a cluster than the device offers this kernel:
 * the message names the kernel, what was asked and what is offered), DEVICE_ERROR. Sets what the kernel needs once on a
 * device: the right to more than 48 KiB of shared memory, clusters of more than 8 blocks. Any thread; allowed in
 * capture. */
attune_status at_jit_check(at_jit_kernel *kernel, const at_jit_config *config);

/* Launches with one argument, a structure passed by value (it may hold tensor maps: its alignment is the kernel's). The
 * caller holds the kernel, and the device is current. Errors: those of at_jit_check, which is not needed before;
 * INVALID_ARGUMENT (the stream is another device's), CAPTURING, DEVICE_ERROR. The stream's thread; allowed in capture:
 * the node has cluster and shared memory, a dependent launch becomes a programmatic edge, and the graph holds the
 * kernel. */
attune_status at_jit_launch(at_jit_kernel *kernel, const at_jit_config *config, const void *argument,
                            attune_stream *stream);

/* For questions to the runtime (occupancy). Borrowed. */
cudaKernel_t at_jit_native(const at_jit_kernel *kernel);

/* What a compiled kernel depends on besides its source and the device, as at_implementation.depends says it:
 * "nvrtc-13.0 jit-1". Opens NVRTC. False: it does not fit. */
bool at_jit_depends(char *out, size_t size);

/* Another bound on the kernels of the process, for tests; the one before is returned. */
unsigned at_jit_set_most(unsigned most);

/* For tests: how often kernels came from where, and how many went, since the process started; and how many are loaded
 * or about to be. */
typedef struct at_jit_counts {
  uint64_t compiled, from_disk, from_memory, unloaded;
  unsigned loaded;
} at_jit_counts;
void at_jit_get_counts(at_jit_counts *out);

#endif
