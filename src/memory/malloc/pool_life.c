/* SPDX-License-Identifier: Apache-2.0
 * pool_life.c: the steps of a pool that nobody holds: abandoned, then waiting for its events, then idle. */
#include "src/memory/malloc/allocator.h"

void at_pool_abandon(at_allocator *allocator, attune_pool *pool) {
  if (pool->references > 0 || pool->life == AT_POOL_ABANDONED) return;
  pool->life = AT_POOL_ABANDONED;
  allocator->abandoned++;
}

void at_pool_waits_less(attune_pool *pool) {
  if (--pool->waits == 0 && pool->life == AT_POOL_WAITING) pool->life = AT_POOL_IDLE;
}

void at_pools_forget(at_allocator *allocator) {
  for (attune_pool *pool = allocator->common.next; pool; pool = pool->next)
    if (pool->life == AT_POOL_ABANDONED) pool->life = AT_POOL_IDLE;
  allocator->abandoned = 0;
}
