/* SPDX-License-Identifier: Apache-2.0
 * process.h: what /proc says of processes and of the running system. */
#ifndef AT_PROCESS_H
#define AT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a small file, or the start of a larger one, into out[size], always terminated; the bytes read, 0 when it cannot
 * be read. */
size_t at_read_small(const char *path, char *out, size_t size);

/* Start time of a live process in clock ticks since boot; 0: no such process, or it is dead and only not yet waited
 * for, or /proc does not say. */
int64_t at_process_start(int64_t pid);

/* It lives and is stopped now: by SIGSTOP, or by a debugger. A process that a cgroup's freezer keeps is not seen. */
bool at_process_stopped(int64_t pid);

/* There is no such process any more. One that is dead and only not yet waited for counts as there: its first thread may
 * have ended before the others. */
bool at_process_gone(int64_t pid);

/* Identifies this boot of this machine, into out[size]; the host's name where the kernel does not say.
 */
void at_boot_identity(char *out, size_t size);

/* The same with the process namespace: where the same number is the same process. */
#define AT_PLACE_CHARS 192
void at_process_place(char out[AT_PLACE_CHARS]);

#endif
