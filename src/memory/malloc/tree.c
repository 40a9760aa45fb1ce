/* SPDX-License-Identifier: Apache-2.0
 * tree.c: a treap: a search tree by (size, address) that is a heap by a number drawn from the address, so it stays
 * flat. */
#include "src/memory/malloc/tree.h"

#include <assert.h>

static uint64_t priority_of(const at_block *block) {
  uint64_t x = (uint64_t)at_block_address(block) * UINT64_C(0x9e3779b97f4a7c15);
  return (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
}

static bool before(const at_block *a, const at_block *b) {
  return a->size != b->size ? a->size < b->size : at_block_address(a) < at_block_address(b);
}

/* Splits `root` into what comes before `block` and what comes after it. */
static void split(at_block *root, const at_block *block, at_block **less, at_block **greater) {
  while (root) {
    if (before(root, block)) {
      *less = root;
      less = &root->right;
      root = root->right;
    } else {
      *greater = root;
      greater = &root->left;
      root = root->left;
    }
  }
  *less = *greater = NULL;
}

#ifndef NDEBUG
bool at_tree_has(const at_tree *tree, const at_block *block) {
  const at_block *at = tree->root;
  while (at && at != block) at = before(block, at) ? at->left : at->right;
  return at == block;
}

/* Each child lies on its side and is drawn below the block. */
static bool is_in_order(const at_block *block) {
  const at_block *left = block->left, *right = block->right;
  return (!left || (before(left, block) && priority_of(left) <= priority_of(block))) &&
         (!right || (before(block, right) && priority_of(right) <= priority_of(block)));
}
#endif

void at_tree_insert(at_tree *tree, at_block *block) {
  assert(!at_tree_has(tree, block));
  at_block **link = &tree->root;
  uint64_t priority = priority_of(block);
  while (*link && priority_of(*link) > priority) link = before(block, *link) ? &(*link)->left : &(*link)->right;
  at_block *below = *link;
  *link = block;
  split(below, block, &block->left, &block->right);
  assert(is_in_order(block));
}

static at_block *join(at_block *less, at_block *greater) {
  at_block *root = NULL, **link = &root;
  while (less && greater) {
    if (priority_of(less) > priority_of(greater)) {
      *link = less;
      link = &less->right;
      less = less->right;
    } else {
      *link = greater;
      link = &greater->left;
      greater = greater->left;
    }
  }
  *link = less ? less : greater;
  return root;
}

void at_tree_remove(at_tree *tree, at_block *block) {
  at_block **link = &tree->root;
  assert(at_tree_has(tree, block) && is_in_order(block));
  while (*link != block) link = before(block, *link) ? &(*link)->left : &(*link)->right;
  *link = join(block->left, block->right);
  block->left = block->right = NULL;
}

at_block *at_tree_find(const at_tree *tree, size_t size) {
  at_block *found = NULL;
  for (at_block *block = tree->root; block;) {
    if (block->size >= size) {
      assert(is_in_order(block));
      found = block;
      block = block->left;
    } else {
      block = block->right;
    }
  }
  return found;
}

at_block *at_tree_last(const at_tree *tree) {
  at_block *block = tree->root;
  while (block && block->right) block = block->right;
  return block;
}
