/* SPDX-License-Identifier: Apache-2.0
 * blocks.c: blocks: cut, merged, kept free in trees and found there. */
#include "src/memory/malloc/tree.h"

#include "src/process/cancel.h"

#include <assert.h>
#include <stdlib.h>

#define CHUNK_BLOCKS 256

/* Listed, so that checkers of leaks find the start of each. */
typedef struct at_chunk {
  struct at_chunk *next;
  _Alignas(64) at_block blocks[CHUNK_BLOCKS];
} at_chunk;

static bool add_chunk(at_allocator *allocator) {
  at_chunk *chunk = NULL;
  if (posix_memalign((void **)&chunk, _Alignof(at_chunk), sizeof *chunk) != 0) return false;
  chunk->next = allocator->chunks;
  allocator->chunks = chunk;
  for (int i = 0; i < CHUNK_BLOCKS; i++) {
    chunk->blocks[i] = (at_block){.entry.kind = AT_ENTRY_BLOCK, .link = allocator->spare};
    allocator->spare = &chunk->blocks[i];
  }
  return true;
}

/* Chunks are never freed: a thread that frees a wrong pointer may look at a block at any time. */
at_block *at_block_new(at_allocator *allocator) {
  if (!allocator->spare && !add_chunk(allocator)) return NULL;
  at_block *block = allocator->spare;
  assert(at_block_get_state(block) == AT_BLOCK_SPARE);
  allocator->spare = block->link;
  block->small = block->plain = false;
  block->rounded = block->requested = block->size = 0;
  block->uses = NULL;
  block->segment = NULL;
  block->link = block->previous = block->next = block->left = block->right = NULL;
  block->waits = 0;
  return block;
}

static at_tree *tree_of(const at_block *block) {
  return &block->segment->heap->trees[block->small];
}

void at_block_drop(at_allocator *allocator, at_block *block) {
  assert(at_is_locked(&allocator->lock) && block != allocator->spare);
  assert(!block->segment || !at_tree_has(tree_of(block), block));
  at_address_table_remove(&block->entry);
  at_block_set_state(block, AT_BLOCK_SPARE);
  block->link = allocator->spare;
  allocator->spare = block;
}

bool at_block_is_piece(const at_block *block) {
  return block->previous || block->next;
}

static void count_piece(at_allocator *allocator, const at_block *block, bool add) {
  if (!at_block_is_piece(block) || at_segment_expandable(block->segment)) return;
  if (add) {
    at_figure_add(allocator->pieces, block->small, 1);
    at_figure_add(allocator->piece_bytes, block->small, block->size);
  } else {
    at_figure_sub(allocator->pieces, block->small, 1);
    at_figure_sub(allocator->piece_bytes, block->small, block->size);
  }
}

void at_block_uncache(at_allocator *allocator, at_block *block) {
  assert(at_is_locked(&allocator->lock) && at_block_get_state(block) == AT_BLOCK_CACHED);
  at_tree_remove(tree_of(block), block);
  count_piece(allocator, block, false);
}

void at_block_swallow(at_allocator *allocator, at_block *first, at_block *second) {
  assert(first->next == second && second->previous == first && first->segment == second->segment);
  assert(at_block_address(first) + first->size == at_block_address(second));
  assert(!at_tree_has(tree_of(first), first));
  first->size += second->size;
  first->next = second->next;
  if (second->next) second->next->previous = first;
  at_block_drop(allocator, second);
}

static bool is_cached(at_block *block) {
  return block && at_block_get_state(block) == AT_BLOCK_CACHED;
}

at_block *at_block_cache(at_allocator *allocator, at_block *block) {
  at_block *previous = block->previous, *next = block->next;
  assert(at_is_locked(&allocator->lock) && block->size > 0 && block->waits == 0);
  if (is_cached(next)) {
    at_block_uncache(allocator, next);
    at_block_swallow(allocator, block, next);
  }
  if (is_cached(previous)) {
    at_block_uncache(allocator, previous);
    at_block_swallow(allocator, previous, block);
    block = previous;
  }
  at_block_set_state(block, AT_BLOCK_CACHED);
  block->freed_at = ++allocator->tick;
  at_tree_insert(tree_of(block), block);
  count_piece(allocator, block, true);
  return block;
}

at_block *at_block_cut(at_allocator *allocator, at_block *block, size_t size) {
  assert(at_is_locked(&allocator->lock) && size > 0 && size < block->size);
  assert(!at_tree_has(tree_of(block), block));
  at_block *rest = at_block_new(allocator);
  if (!rest) return NULL;
  rest->small = block->small;
  rest->plain = block->plain;
  rest->segment = block->segment;
  rest->size = block->size - size;
  rest->freed_at = block->freed_at;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next) rest->next->previous = rest;
  block->next = rest;
  block->size = size;
  atomic_store_explicit(&rest->cache, atomic_load_explicit(&block->cache, memory_order_relaxed), memory_order_relaxed);
  at_block_set_state(rest, at_block_get_state(block));
  at_address_table_insert(&rest->entry, at_block_address(block) + size);
  return rest;
}

/* True when what is left of the block beyond the request is worth being a block of its own. */
static bool is_worth_cutting(const at_allocator *allocator, const at_block *block, size_t size) {
  size_t rest = block->size - size;
  if (block->segment->heap->pool->no_split) return false;
  if (block->small || at_segment_expandable(block->segment)) return rest >= AT_BLOCK_BYTES;
  return size < allocator->options.max_split && rest > AT_SMALL_REQUEST;
}

/* An oversize block is for requests of about its size only. */
bool at_block_may_serve(const at_memory_options *options, const at_block *block, size_t size) {
  if (block->segment->exact) return false;
  if (at_segment_expandable(block->segment)) return true;
  if (size < options->max_split) return block->size < options->max_split;
  return block->size < options->max_split || block->size < size + options->max_non_split_rounding;
}

void at_block_trim(at_allocator *allocator, at_block *block, size_t size) {
  if (!is_worth_cutting(allocator, block, size)) return;
  at_block *rest = at_block_cut(allocator, block, size);
  if (rest) (void)at_block_cache(allocator, rest); /* without memory for the rest the block is served whole */
}

static at_block *find(const at_allocator *allocator, const at_heap *heap, bool small, size_t size) {
  at_block *block = at_tree_find(&heap->trees[small], size);
  return block && at_block_may_serve(&allocator->options, block, size) ? block : NULL;
}

at_block *at_heap_take(at_allocator *allocator, at_heap *heap, size_t size) {
  bool small = at_heap_prefers_small(heap, size);
  bool either = allocator->options.expandable && size > AT_TINY_REQUEST && size <= AT_SMALL_REQUEST;
  at_block *block = find(allocator, heap, small, size);
  if (!block && either) block = find(allocator, heap, !small, size);
  if (!block) return NULL;
  at_block_uncache(allocator, block);
  at_block_set_state(block, AT_BLOCK_LEAVING); /* in no tree and owned by none: neighbours do not merge with it */
  at_block_trim(allocator, block, size);
  assert(block->size >= size);
  return block;
}
