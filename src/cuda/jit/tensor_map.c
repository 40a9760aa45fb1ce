/* SPDX-License-Identifier: Apache-2.0
 * tensor_map.c: tensor maps are the driver's to encode. Where an address lies in one is not documented: the first call
 * looks whether it is the first word, and only then is it ever written there. */
#include "src/cuda/jit/tensor_map.h"

#include <cuda.h>

#include <pthread.h>
#include <string.h>

#include "src/cuda/context/state.h"

_Static_assert(sizeof(at_tensor_map) == sizeof(CUtensorMap), "a map is 128 bytes");

typedef CUresult (*encode_call)(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static encode_call encode; /* constant after once; NULL: there is none */
static bool address_first; /* likewise */

static bool is_distance(int64_t bytes) {
  return bytes > 0 && bytes % 16 == 0 && bytes < (int64_t)1 << 40;
}

static bool is_size(int64_t size) {
  return size >= 1 && size <= (int64_t)1 << 32;
}

bool at_tensor_shape_fits(const at_tensor_shape *s) {
  return is_size(s->length) && is_size(s->lines) && is_size(s->count) &&
         (s->lines == 1 || is_distance(s->line_bytes)) && (s->count == 1 || is_distance(s->matrix_bytes)) &&
         s->box_length >= 8 && s->box_length <= 64 && s->box_length % 8 == 0 && s->box_lines >= 1 &&
         s->box_lines <= 256;
}

static CUresult make(CUtensorMap *map, const at_tensor_shape *s, const void *address) {
  const int64_t line = s->lines == 1 ? (s->length + 7) / 8 * 16 : s->line_bytes,
                matrix = s->count == 1 ? line : s->matrix_bytes;
  const cuuint64_t sizes[] = {(cuuint64_t)s->length, (cuuint64_t)s->lines, (cuuint64_t)s->count},
                   strides[] = {(cuuint64_t)line, (cuuint64_t)matrix};
  const cuuint32_t box[] = {(cuuint32_t)s->box_length, (cuuint32_t)s->box_lines, 1}, steps[] = {1, 1, 1};
  return encode(map, s->bfloat ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3,
                (void *)(uintptr_t)address, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/* Two maps of the same shape at different addresses: all bits of an address change between them. */
static void find_encode(void) {
  static const uintptr_t addresses[] = {0x00007f5555555550, 0x00007eaaaaaaaaa0};
  static const at_tensor_shape shape = {
      .length = 64, .lines = 8, .count = 2, .line_bytes = 128, .matrix_bytes = 1024, .box_length = 64, .box_lines = 8};
  CUtensorMap made[2];
  uint64_t words[2][16];
  if (!at_cuda_driver_call_since(&encode, "cuTensorMapEncodeTiled", 12000)) {
    encode = NULL;
    return;
  }
  address_first = true;
  for (int i = 0; i < 2; i++) {
    if (make(&made[i], &shape, (const void *)addresses[i]) != CUDA_SUCCESS) address_first = false;
    memcpy(words[i], &made[i], sizeof words[i]);
    if (words[i][0] != addresses[i]) address_first = false;
  }
  if (memcmp(words[0] + 1, words[1] + 1, sizeof words[0] - sizeof words[0][0]) != 0) address_first = false;
}

attune_status at_tensor_map_make(at_tensor_map *out, const at_tensor_shape *shape, const void *address) {
  CUtensorMap map;
  pthread_once(&once, find_encode);
  if (!encode) return at_fail(ATTUNE_UNSUPPORTED, "the driver has no tensor maps; should be for CUDA 12.0 or later");
  const CUresult result = at_tensor_shape_fits(shape) ? make(&map, shape, address) : CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS)
    return at_fail(ATTUNE_UNSUPPORTED,
                   "the driver cannot create a tensor map of %lld matrices of %lld x %lld halves: error %d",
                   (long long)shape->count, (long long)shape->lines, (long long)shape->length, (int)result);
  memcpy(out->words, &map, sizeof out->words);
  return ATTUNE_OK;
}

attune_status at_tensor_map_move(at_tensor_map *map, const at_tensor_shape *shape, const void *address) {
  if (!address_first) return at_tensor_map_make(map, shape, address);
  map->words[0] = (uint64_t)(uintptr_t)address;
  return ATTUNE_OK;
}
