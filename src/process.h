/* SPDX-License-Identifier: Apache-2.0
 * process.h: what /proc says of processes and of the running system. */
#ifndef AT_PROCESS_H
#define AT_PROCESS_H

#include <stddef.h>
#include <stdint.h>

/* Reads a small file, or the start of a larger one, into out[size], always terminated; the bytes read, 0 when it cannot be read. */
size_t at_read_small(const char *path, char *out, size_t size);

/* Start time of a live process in clock ticks since boot; 0: no such process, or it is dead and only not yet waited
 * for, or /proc does not say. */
int64_t at_process_start(int64_t pid);

/* What tells this boot of this machine from all others, into out[size]; the host's name where the kernel does not say.
 */
void at_boot_identity(char *out, size_t size);

#endif
