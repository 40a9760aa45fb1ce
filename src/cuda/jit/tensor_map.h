/* SPDX-License-Identifier: Apache-2.0
 * tensor_map.h: what a kernel's tensor copies (cp.async.bulk.tensor) take: where matrices of halves lie, and the box
 * that a copy moves. Capability 9.0. */
#ifndef AT_CUDA_TENSOR_MAP_H
#define AT_CUDA_TENSOR_MAP_H

#include <attune/status.h>

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

/* As the driver encodes it; a kernel's argument has it by value. */
typedef struct at_tensor_map {
  alignas(64) uint64_t words[16];
} at_tensor_map;

/* `count` matrices of `lines` lines of `length` halves; a copy moves a box of box_length x box_lines of one of them,
 * whose lines of 128 bytes at most lie one after the other in shared memory, their 16-byte pieces changed about as
 * "128-byte swizzle" says. What is outside the matrix is zeros. */
typedef struct at_tensor_shape {
  int64_t length, lines, count;
  int64_t line_bytes, matrix_bytes; /* from one to the next */
  int box_length, box_lines;
  bool bfloat; /* else f16 */
} at_tensor_shape;

/* Whether there can be a map of it: distances are multiples of 16 bytes and below 2^40, sizes 1 to 2^32, boxes 1 to 256
 * (64 along a line). A distance between ones of a kind of which there is just one does not count. Needs no device. */
bool at_tensor_shape_fits(const at_tensor_shape *shape);

/* A map of matrices at `address`, a multiple of 16. Errors: UNSUPPORTED (the driver has no tensor maps, or refuses this
 * one). Any thread; allowed in capture. */
attune_status at_tensor_map_make(at_tensor_map *out, const at_tensor_shape *shape, const void *address);

/* The same map for another address: only the word that has it is written, where the driver's encoding was seen to keep
 * it there, else all of it is made again. Errors as at_tensor_map_make. */
attune_status at_tensor_map_move(at_tensor_map *map, const at_tensor_shape *shape, const void *address);

#endif
