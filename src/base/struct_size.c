/* SPDX-License-Identifier: Apache-2.0
 * struct_size.c: structs of programs that were compiled with other headers. */
#include "src/base/struct_size.h"

#include <string.h>

/* No public struct is larger, whatever is added to it: what was never set mostly is no such size. */
enum { SIZE_MOST = 65536 };

/* The size that `given` says. A struct that gets fields after version 0.1 needs the size that it had there, for 0 and
 * as the least one. */
static attune_status read_size(size_t *out, const void *given, size_t own, const char *name) {
  const size_t first = own; /* that of version 0.1 */
  memcpy(out, given, sizeof *out);
  if (*out == 0) *out = first;
  if (*out < first)
    return AT_INVALID("%s->size is %zu; should be %zu, that of version 0.1, or more, or 0: initialize the struct with "
                      "zeros or its ATTUNE_..._INIT",
                      name, *out, first);
  if (*out <= SIZE_MOST && *out % sizeof(size_t) == 0) return ATTUNE_OK;
  return AT_INVALID(
      "%s->size is %zu; should be sizeof *%s, %zu here, or 0: initialize the struct with zeros or its ATTUNE_..._INIT",
      name, *out, name, own);
}

static attune_status check_unknown(const unsigned char *given, size_t size, size_t own, const char *name) {
  for (size_t i = own; i < size; i++)
    if (given[i])
      return AT_INVALID("%s->size is %zu; this attune, %s, knows the first %zu bytes, and later fields should be zero",
                        name, size, attune_version(), own);
  return ATTUNE_OK;
}

attune_status at_struct_take(void *full, size_t own, const void *given, const char *name) {
  size_t size = own;
  memset(full, 0, own);
  attune_status status = given ? read_size(&size, given, own, name) : ATTUNE_OK;
  if (status == ATTUNE_OK && given) status = check_unknown(given, size, own, name);
  if (status != ATTUNE_OK) return status;
  if (given) memcpy(full, given, size < own ? size : own);
  memcpy(full, &own, sizeof own);
  return ATTUNE_OK;
}

attune_status at_struct_give(void *out, const void *full, size_t own, const char *name) {
  size_t size = 0;
  AT_TRY(read_size(&size, out, own, name));
  if (size > own) size = own;
  if (full)
    memcpy((char *)out + sizeof size, (const char *)full + sizeof size, size - sizeof size);
  else
    memset((char *)out + sizeof size, 0, size - sizeof size);
  return ATTUNE_OK;
}
