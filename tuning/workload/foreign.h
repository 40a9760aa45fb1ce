/* SPDX-License-Identifier: Apache-2.0
 * foreign.h: files of other programs, recognised where a workload should be. */
#ifndef AT_FOREIGN_H
#define AT_FOREIGN_H

#include "src/base/support.h"

/* BAD_DATA if the file is of a known other format: the message names it, and says how to make a workload of it. `text`
 * may hold any bytes; text[size] is 0. */
attune_status at_foreign_check(const char *name, const char *text, size_t size);

#endif
