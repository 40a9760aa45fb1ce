/* SPDX-License-Identifier: Apache-2.0
 * tree.h: the free blocks of one heap by size, then address: the smallest that is large enough, of those the lowest. */
#ifndef AT_MEMORY_TREE_H
#define AT_MEMORY_TREE_H

#include "src/memory/malloc/allocator.h"

void at_tree_insert(at_tree *tree, at_block *block);
void at_tree_remove(at_tree *tree, at_block *block);

/* The first block of at least `size` bytes; NULL when there is none. */
at_block *at_tree_find(const at_tree *tree, size_t size);

/* The largest block; NULL when there is none. */
at_block *at_tree_last(const at_tree *tree);

#ifndef NDEBUG
/* For assertions: the block is in the tree. */
bool at_tree_has(const at_tree *tree, const at_block *block);
#endif

#endif
