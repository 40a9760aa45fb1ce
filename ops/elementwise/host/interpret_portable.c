/* SPDX-License-Identifier: Apache-2.0
 * interpret_portable.c: the interpreter's loops for any CPU. */
#include "ops/elementwise/host/interpret_kernels.h"
#include "src/base/half.h"

#include <stddef.h>
#include <string.h>

static void decode_f16(float *out, const uint16_t *x, size_t n) {
  for (size_t i = 0; i < n; i++) out[i] = at_f16_to_f32(x[i]);
}
static void encode_f16(uint16_t *out, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) out[i] = at_f32_to_f16(x[i]);
}
static void stream(void *to, const void *from, size_t bytes) {
  memcpy(to, from, bytes);
}
static void fence(void) {}
static void load_part_F32(float *to, const float *from, size_t n) {
  memcpy(to, from, n * sizeof *to);
}
static void store_part_F32(float *to, const float *from, size_t n) {
  memcpy(to, from, n * sizeof *to);
}

#ifdef __FMA__ /* without it nothing uses them */
static void load_part_F64(double *to, const double *from, size_t n) {
  memcpy(to, from, n * sizeof *to);
}
static void store_part_F64(double *to, const double *from, size_t n) {
  memcpy(to, from, n * sizeof *to);
}
#endif

/* There are no vectors to call with. */
static at_kernel find_vector(at_function function, attune_dtype dtype) {
  (void)function, (void)dtype;
  return NULL;
}

#define LANES_F32 1
#define LANES_F64 1

#define AT_ISA at_interpret_portable
#define AT_ISA_NAME "portable"
#include "ops/elementwise/host/interpret_template.h"
