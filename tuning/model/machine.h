/* SPDX-License-Identifier: Apache-2.0
 * machine.h: what cost models know of a GPU. A model has no figure of a device in itself: it takes these, times numbers
 * of its kernel. */
#ifndef AT_MACHINE_H
#define AT_MACHINE_H

#include "src/base/backend.h"

enum {
  AT_PROCESSOR_REGISTERS = 65536, /* from capability 3.0 to 12.1 */
  AT_BLOCK_RESERVED = 1024,       /* bytes of shared memory that each block takes besides its own, from 8.0 on */
};

typedef struct at_machine {
  int capability;   /* 90 for 9.0 */
  int processors;   /* at least 1 */
  int clustered;    /* of those, as many as blocks of clusters of 4 and 8 have: what is left of a group holds none */
  int shared_bytes; /* that all blocks of a processor have together, and one may have alone */
  double memory;    /* bytes a microsecond that a kernel reads and writes */
  double level2;    /* likewise from the L2 cache; `level2_one`: one processor, while others have little */
  double level2_one;
  double wanted; /* bytes that a processor has on the way while memory is busy */
  double cycle;  /* microseconds of a cycle, while tensor cores or memory are busy; `cycle_fma`: the other units */
  double cycle_fma;
  double launch; /* microseconds that one more kernel of a stream takes */
  /* Products and sums a cycle of a processor: by its common units, by mma.sync, by wgmma. */
  double fma_f32, fma_f64, mma_f16, mma_tf32, mma_f64, wgmma_f16;
} at_machine;

/* A device with so many processors whose name begins with that of a row of the table; else the first row of its
 * capability, else the first. Each processor has its share of the row's rates. */
at_machine at_machine_make(int capability, int processors, const char *name);

at_machine at_machine_of(const attune_device *device);

/* Bytes that memory brings one processor in a cycle. */
static inline double at_machine_memory_cycle(const at_machine *machine) {
  return machine->memory / machine->processors * machine->cycle;
}

#endif
