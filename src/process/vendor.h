/* SPDX-License-Identifier: Apache-2.0
 * vendor.h: calls into the libraries of vendors: CUDA's driver and runtime, cuBLAS, NVRTC, NVML, cuFile, NCCL.
 * exit() runs their destructors while threads go on, and a thread that is inside then crashes. So each call lies
 * between enter and leave; exit() first waits for the threads inside, and lets no other in. Libraries of the host have
 * gates of their own, for products go on without them. */
#ifndef AT_VENDOR_H
#define AT_VENDOR_H

#include <stdbool.h>

#include <attune/status.h>

/* What is called. The driver and CUDA's runtime refuse calls by themselves once they are gone, so the thread that runs
 * exit() may still call them: the program's own functions of exit() release streams and memory. Any other library must
 * not be called by then. */
typedef enum at_vendor { AT_VENDOR_DRIVER, AT_VENDOR_LIBRARY } at_vendor;

/* Any thread; may be nested, and costs a few nanoseconds. False: the process ends, there is nothing to leave, and
 * at_vendor_refuse gives the status. */
bool at_vendor_enter(at_vendor what);
void at_vendor_leave(void);
attune_status at_vendor_refuse(void);

/* For a thread inside: true when the process ends and it is this thread that ends it, see AT_VENDOR_DRIVER. */
bool at_vendor_gone(void);

/* Around a wait for a device, inside. exit() waits for that a moment only: kernels may run for hours. */
void at_vendor_wait_begin(void);
void at_vendor_wait_end(void);

/* A library was opened: exit() calls attune's functions before this library's, from now on. */
void at_vendor_opened(void);

#endif
