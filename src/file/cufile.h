/* SPDX-License-Identifier: Apache-2.0
 * cufile.h: cuFile, opened at run time and absent without harm. Its few types and functions are declared in cufile.c as
 * its interface defines them. The device is current in calls that name memory. */
#ifndef AT_FILE_CUFILE_H
#define AT_FILE_CUFILE_H

#include <sys/types.h>

#include "src/base/support.h"

/* Opens library and driver; the first call opens, later ones only say how that went. UNSUPPORTED: one of them is not
 * here; the message says which. */
attune_status at_cufile_open(void);

/* Whether its kernel driver is there: without it cuFile reads through memory of the host, as attune does. */
bool at_cufile_has_driver(void);

/* Whether it was opened, without opening it. */
bool at_cufile_is_open(void);

attune_status at_cufile_register(void **out, int descriptor);
void at_cufile_forget(void *handle);
attune_status at_cufile_register_memory(void *pointer, size_t bytes);
attune_status at_cufile_forget_memory(void *pointer);

/* As pread and pwrite; -1: *out_error is errno, or 0 and the message says what is wrong. */
ssize_t at_cufile_read(void *handle, void *memory, size_t bytes, off_t offset, int *out_error);
ssize_t at_cufile_write(void *handle, const void *memory, size_t bytes, off_t offset, int *out_error);

#endif
