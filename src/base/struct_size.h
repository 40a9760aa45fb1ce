/* SPDX-License-Identifier: Apache-2.0
 * struct_size.h: the `size` that public structs begin with (attune/types.h): structs of programs that were compiled
 * with other headers become the library's own, and results go back as far as the program has room. */
#ifndef AT_STRUCT_SIZE_H
#define AT_STRUCT_SIZE_H

#include "src/base/support.h"

/* The program's struct `given` into *full, the library's own; missing fields are zero, and all are for NULL. Fails
 * where the size is no size or below that of version 0.1, or where fields are set that this library does not know. */
#define AT_TAKE(full, given) ((void)sizeof((full) == (given)), at_struct_take(full, sizeof *(full), given, #given))

/* Clears the program's result but for its size; fails where that is no size. First of all, before there is a result. */
#define AT_CLEAR(out) at_struct_give(out, NULL, sizeof *(out), #out)

/* *full into the program's result, whose size stays. */
#define AT_GIVE(out, full) ((void)sizeof((out) == (full)), at_struct_give(out, full, sizeof *(full), #out))

/* Whether *given can be used as it is: it has all fields of the library's own struct, and no others. */
#define AT_IS_OWN_SIZE(given) ((given)->size == sizeof *(given) || (given)->size == 0)

/* See AT_TAKE. */
attune_status at_struct_take(void *full, size_t own, const void *given, const char *name);
/* See AT_GIVE; full NULL: zeros. */
attune_status at_struct_give(void *out, const void *full, size_t own, const char *name);

#endif
