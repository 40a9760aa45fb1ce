/* SPDX-License-Identifier: Apache-2.0
 * store_open.h: opens a database as a test wants it: soon, and nothing is left of one that is busy. */
#ifndef AT_TESTS_STORE_OPEN_H
#define AT_TESTS_STORE_OPEN_H

#include "tuning/store/store.h"

static inline attune_status at_store_open(at_store **out, const char *path, at_store_access access) {
  const attune_status status = at_store_open_within(out, path, access, 5000);
  if (status != ATTUNE_BUSY) return status;
  const at_message kept = at_message_keep();
  at_store_close(*out);
  *out = NULL;
  (void)at_message_settle(&kept, ATTUNE_OK);
  return status;
}

#endif
