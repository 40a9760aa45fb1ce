/* SPDX-License-Identifier: Apache-2.0
 * contract.h: what problems of any operation have in addition to their sizes: the contract, and the alignment class.
 * The class of a call is the largest power of two, AT_ALIGNMENT at most, that divides the addresses of all its
 * operands: kernels differ by it, so it belongs to the problem. */
#ifndef AT_CONTRACT_H
#define AT_CONTRACT_H

#include <attune/tuner.h>

#include "src/base/backend.h"

/* The best class, and what a text without the word means: a line of a GPU's L2 cache. */
#define AT_ALIGNMENT 128

/* The class of these address bits, or-ed together: the least aligned pointer's. */
static inline uint8_t at_alignment_of(uintptr_t bits) {
  const uintptr_t low = (bits & (AT_ALIGNMENT - 1)) | AT_ALIGNMENT;
  return (uint8_t)(low & (~low + 1));
}

/* As above, as far as the device distinguishes classes. */
static inline uint8_t at_alignment_on(const attune_device *device, uintptr_t bits) {
  const unsigned low = ((unsigned)bits & device->alignment_mask) | AT_ALIGNMENT;
  return (uint8_t)(low & -low);
}

/* A class read from words, as keys of the device have it. */
static inline uint8_t at_alignment_fold(const attune_device *device, uint8_t alignment) {
  return alignment >= at_device_alignment(device) ? AT_ALIGNMENT : alignment;
}

/* What a plan made with operands of this class demands of later ones: the least that the device does not tell from
 * it. */
static inline int at_alignment_least(const attune_device *device, int alignment) {
  const int best = at_device_alignment(device);
  return alignment < best ? alignment : best;
}

/* Their values in a text or a workload's row. */
typedef struct at_contract {
  attune_contract contract;
  uint8_t alignment;
} at_contract;

#define AT_CONTRACT_INIT \
  { ATTUNE_CONTRACT_INIT, AT_ALIGNMENT }

/* As keys have it: never 0, and within what a text can say. SIZE_MAX is a caller's way of "any". */
static inline uint64_t at_workspace_cap(size_t asked) {
  return !asked ? ATTUNE_WORKSPACE_DEFAULT : asked > INT64_MAX ? INT64_MAX : asked;
}

#endif
