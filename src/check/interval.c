/* SPDX-License-Identifier: Apache-2.0
 * interval.c: see interval.h. */
#include "src/check/interval.h"

#include <stdbool.h>

static uint64_t draw(void) {
  static uint64_t state = 0x9E3779B97F4A7C15u; /* under the check's lock */
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static bool before(const at_interval *a, const at_interval *b) {
  return a->start != b->start ? a->start < b->start : (uintptr_t)a < (uintptr_t)b;
}

static void update(at_interval *t) {
  t->last = t->end;
  if (t->left && t->left->last > t->last) t->last = t->left->last;
  if (t->right && t->right->last > t->last) t->last = t->right->last;
}

static void split(at_interval *t, const at_interval *at, at_interval **left, at_interval **right) {
  if (!t) {
    *left = *right = NULL;
  } else if (before(t, at)) {
    *left = t;
    split(t->right, at, &t->right, right);
    update(t);
  } else {
    *right = t;
    split(t->left, at, left, &t->left);
    update(t);
  }
}

static at_interval *merge(at_interval *a, at_interval *b) {
  if (!a || !b) return a ? a : b;
  if (a->order > b->order) {
    a->right = merge(a->right, b);
    update(a);
    return a;
  }
  b->left = merge(a, b->left);
  update(b);
  return b;
}

static at_interval *insert(at_interval *t, at_interval *node) {
  if (!t || node->order > t->order) {
    split(t, node, &node->left, &node->right);
    update(node);
    return node;
  }
  if (before(node, t))
    t->left = insert(t->left, node);
  else
    t->right = insert(t->right, node);
  update(t);
  return t;
}

static at_interval *take_out(at_interval *t, const at_interval *node) {
  if (t == node) return merge(t->left, t->right);
  if (before(node, t))
    t->left = take_out(t->left, node);
  else
    t->right = take_out(t->right, node);
  update(t);
  return t;
}

void at_interval_insert(at_interval **root, at_interval *node) {
  node->order = draw();
  *root = insert(*root, node);
}

void at_interval_remove(at_interval **root, at_interval *node) {
  *root = take_out(*root, node);
}

static void find(at_interval *t, uintptr_t start, uintptr_t end, at_interval **list) {
  if (!t || t->last <= start) return;
  if (t->start < end) {
    find(t->right, start, end, list);
    if (t->end > start) {
      t->next = *list;
      *list = t;
    }
  }
  find(t->left, start, end, list);
}

at_interval *at_interval_find(at_interval *root, uintptr_t start, uintptr_t end) {
  at_interval *list = NULL;
  find(root, start, end, &list);
  return list;
}
