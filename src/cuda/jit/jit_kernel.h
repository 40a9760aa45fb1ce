/* SPDX-License-Identifier: Apache-2.0
 * jit_kernel.h: a kernel as jit.c, jit_load.c and jit_launch.c see it. */
#ifndef AT_CUDA_JIT_KERNEL_H
#define AT_CUDA_JIT_KERNEL_H

#include <stdatomic.h>

#include "src/cuda/jit/jit.h"
#include "src/cuda/jit/kernel_cache.h"

/* Limits of the device for a block of the kernel, and for a launch. */
typedef struct at_jit_limits {
  unsigned grid[3], block[3];
  unsigned threads;       /* of a block: the kernel's registers may allow fewer than the device does */
  unsigned shared;        /* bytes, static ones included */
  unsigned static_shared; /* of these, what the kernel itself takes */
  bool clusters, dependent;
} at_jit_limits;

typedef struct at_jit_code {
  cudaLibrary_t loaded;
  cudaKernel_t kernel;
  unsigned shared_allowed; /* dynamic bytes, as it was loaded */
  at_jit_limits limits;
} at_jit_code;

typedef enum at_jit_state { AT_JIT_PENDING, AT_JIT_READY, AT_JIT_FAILED } at_jit_state;

struct at_jit_kernel {
  /* Constant; `code` and `name` from when it is ready. */
  at_kernel_key key;
  attune_device *device;
  at_jit_code code;
  char name[96]; /* "entry of file" */
  /* jit_launch.c's. */
  _Atomic unsigned shared_allowed, cluster_allowed; /* dynamic bytes; blocks */
  _Atomic unsigned long long capture;               /* the latest one whose graph holds the kernel; 0: none */
  atomic_bool kept;
  /* jit.c's: under its lock. */
  at_jit_state state;
  int holders;                                /* threads that wait for it included */
  struct at_jit_kernel *next, *older, *newer; /* in the bucket; among those without a holder */
  attune_status status;                       /* of a failure, with its message */
  char message[AT_MESSAGE_CHARS];
};

/* jit_code.c: the name of what is compiled for `target`: an architecture, or "" for a device's. */
at_kernel_key at_jit_key(const at_kernel_source *source, const char *target);

typedef enum at_jit_origin { AT_JIT_FROM_DISK, AT_JIT_COMPILED } at_jit_origin;

/* jit_code.c: the code of the source for the target, to be freed: from the kernel cache, else compiled and stored
 * there. Another thread that compiles it is waited for. Errors: those of at_kernel_compile. */
attune_status at_jit_code_get(at_kernel_code *out, const at_kernel_source *source, const at_architecture *target,
                              at_jit_origin *origin);

/* jit_code.c: deletes it from the kernel cache: it does not load. */
void at_jit_code_drop(const at_kernel_source *source, const at_architecture *target);

/* jit_code.c: what is compiled for the device, best first; 0: nothing, *status says why. */
int at_jit_targets(at_architecture out[2], const attune_device *device, attune_status *status);

/* jit_code.c: at_jit_compile, in a process that has the device. */
attune_status at_jit_code_make(const attune_device *device, const at_kernel_source *source, bool *made);

/* jit_code.c: is there code of it for the device in the kernel cache? It is not read. */
bool at_jit_on_disk(const attune_device *device, const at_kernel_source *source);

/* jit_code.c: how many were compiled. */
uint64_t at_jit_compiled_count(void);

/* jit_load.c: loads the kernel from the disk or the compiler. */
attune_status at_jit_load(at_jit_code *out, attune_device *device, const at_kernel_source *source);

/* jit_load.c: fills in the first two of the counts. */
void at_jit_load_counts(at_jit_counts *out);

/* jit.c: one more hold of a kernel that the caller holds. */
void at_jit_hold(at_jit_kernel *kernel);

#endif
