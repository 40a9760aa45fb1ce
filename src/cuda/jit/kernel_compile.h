/* SPDX-License-Identifier: Apache-2.0
 * kernel_compile.h: a kernel's text to code for one architecture, by NVRTC. Needs no device and no driver. */
#ifndef AT_CUDA_KERNEL_COMPILE_H
#define AT_CUDA_KERNEL_COMPILE_H

#include "src/base/support.h"

/* A kernel: a .cu text that compiles alone, specialised by macros. Everything is borrowed and outlives its use (static,
 * as a rule). */
typedef struct at_kernel_source {
  const char *file; /* named in the compiler's messages */
  const char *text;
  const char *entry;         /* its extern "C" __global__ function */
  const char *const *macros; /* "NAME=VALUE", ended by NULL; NULL: none */
  /* A program's text: functions without __device__ are the device's too, and compile errors are reported with as much
   * of the compiler's log as a message holds; `logged`: and with all of it in attune's log. */
  bool foreign, logged;
} at_kernel_source;

#define AT_ARCHITECTURE_CHARS 16

/* "sm_90a" or "compute_90": machine code for exactly one kind of device, or PTX, which the driver compiles. */
typedef struct at_architecture {
  char name[AT_ARCHITECTURE_CHARS];
} at_architecture;

/* What this NVRTC can make for a device of `capability` (90 for 9.0), best first; the count (at most 2; 0: nothing, or
 * there is no NVRTC). */
int at_architectures(at_architecture out[2], int capability);

/* The capabilities that this NVRTC knows (90 for 9.0), rising, into out[most]; their number, 0: there is no NVRTC. */
int at_architectures_known(int *out, int most);

/* Compiled code; at_kernel_code_free releases it. */
typedef struct at_kernel_code {
  void *bytes;
  size_t size;
} at_kernel_code;

/* Compiles. INTERNAL with the compiler's first error in the message when the text is wrong; UNSUPPORTED when this NVRTC
 * does not know the architecture, or there is none. `report`, if not NULL, receives what the assembler says of
 * registers and memory, to be freed by the caller (NULL for PTX). Any thread, several at once. */
attune_status at_kernel_compile(at_kernel_code *out, const at_kernel_source *source,
                                const at_architecture *architecture, char **report);
void at_kernel_code_free(at_kernel_code *code);

/* Compiler and options, all that the code depends on besides the source and the architecture. Borrowed. */
const char *at_kernel_compiler(void);

#endif
