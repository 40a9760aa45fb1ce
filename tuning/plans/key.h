/* SPDX-License-Identifier: Apache-2.0
 * key.h: a problem on a device as bytes to be compared and hashed: what plans are found by. */
#ifndef AT_KEY_H
#define AT_KEY_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <assert.h>
#include <string.h>

#include "src/base/backend.h"
#include "tuning/op/op.h"

/* Device, op and the problem's bytes in word 0, the normalised problem behind it, zeros up to the end of its last word.
 * What lies behind that word belongs to no key and is not read: a key that is kept has no more bytes than
 * at_key_bytes(), so it is copied by memcpy of so many, never by `=`. */
typedef struct at_key {
  uint64_t words[1 + AT_PROBLEM_BYTES / 8];
} at_key;
_Static_assert(AT_PROBLEM_BYTES % 8 == 0 && AT_PROBLEM_BYTES <= UINT16_MAX, "a key tells its problem's bytes");

static inline void *at_key_problem(at_key *key) {
  return key->words + 1;
}
static inline int at_key_device(const at_key *key) {
  return (int)(unsigned)key->words[0];
}
static inline int at_key_op(const at_key *key) {
  return (int)(key->words[0] >> 32 & UINT16_MAX);
}
static inline size_t at_key_problem_bytes(const at_key *key) {
  return (size_t)(key->words[0] >> 48);
}
static inline size_t at_key_bytes(const at_key *key) {
  return 8 + (at_key_problem_bytes(key) + 7) / 8 * 8;
}
/* Zeros behind the problem, up to the end of its last word? */
static inline bool at_key_tail_is_zero(const at_key *key) {
  const char *bytes = (const char *)(key->words + 1);
  for (size_t i = at_key_problem_bytes(key); i < at_key_bytes(key) - 8; i++)
    if (bytes[i]) return false;
  return true;
}
static inline uint64_t at_key_hash(const at_key *key) {
  assert(at_key_problem_bytes(key) && at_key_problem_bytes(key) <= AT_PROBLEM_BYTES && at_key_tail_is_zero(key));
  return XXH3_64bits(key, at_key_bytes(key));
}
static inline bool at_key_equal(const at_key *a, const at_key *b) {
  return memcmp(a, b, at_key_bytes(a)) == 0; /* the sizes are in the first word */
}

/* Completes a key whose problem is in place: op and device, and the problem as the device tells problems apart. */
static inline void at_key_set(at_key *key, const at_op *op, const attune_device *device) {
  op->problem->fold(at_key_problem(key), device);
  const size_t bytes = at_problem_bytes(op, at_key_problem(key));
  assert(bytes && bytes <= op->problem_bytes && bytes <= AT_PROBLEM_BYTES);
  if (bytes % 8) memset((char *)at_key_problem(key) + bytes, 0, 8 - bytes % 8);
  key->words[0] = (uint64_t)bytes << 48 | (uint64_t)(unsigned)op->id << 32 | (uint64_t)(unsigned)device->index;
}
/* The key of a problem that lies elsewhere. */
static inline void at_key_make(at_key *key, const at_op *op, const void *problem, const attune_device *device) {
  memcpy(at_key_problem(key), problem, at_problem_bytes(op, problem));
  at_key_set(key, op, device);
}

#endif
