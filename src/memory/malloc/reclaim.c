/* SPDX-License-Identifier: Apache-2.0
 * reclaim.c: takes back what streams are done with since the latest look. */
#include "src/memory/malloc/allocator.h"

void at_memory_catch_up(at_allocator *allocator, bool all) {
  if (allocator->captures > 0) return;
  if (allocator->deferred) at_pending_record_deferred(allocator);
  if (allocator->abandoned > 0) at_pools_record_abandoned(allocator);
  at_pending_finish(allocator, all);
}
