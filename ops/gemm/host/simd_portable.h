/* SPDX-License-Identifier: Apache-2.0
 * simd_portable.h: the vector words that the blocked kernels are written in, in plain C with compiler vectors, for any
 * CPU. Included by blocked_portable.c only. */
#ifndef AT_GEMM_SIMD_H
#define AT_GEMM_SIMD_H

#include <stdint.h>
#include <string.h>

#include "src/base/half.h"

#define AT_TARGET
#define SIMD static inline __attribute__((always_inline))

#define VF_LANES 4
#define VF_BLOCK 4
typedef float vf __attribute__((vector_size(16)));
typedef int64_t vf_mask; /* how many of the first lanes */

SIMD vf_mask vf_first(int64_t count) {
  return count;
}
SIMD vf vf_zero(void) {
  return (vf){0.0f, 0.0f, 0.0f, 0.0f};
}
SIMD vf vf_set1(float x) {
  return (vf){x, x, x, x};
}
SIMD vf vf_fma(vf a, vf b, vf c) {
  return a * b + c;
}
SIMD vf vf_mul(vf a, vf b) {
  return a * b;
}
SIMD vf vf_add(vf a, vf b) {
  return a + b;
}
SIMD vf vf_pair(float x, float y) {
  return (vf){x, y, x, y};
}
SIMD vf vf_swap_pairs(vf a) {
  return (vf){a[1], a[0], a[3], a[2]};
}
SIMD float vf_sum(vf a) {
  return (a[0] + a[2]) + (a[1] + a[3]);
}
SIMD vf vf_load(const float *p) {
  vf x;
  memcpy(&x, p, sizeof x);
  return x;
}
SIMD vf vf_load_part(const float *p, vf_mask mask) {
  float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int64_t i = 0; i < mask; i++) part[i] = p[i];
  return vf_load(part);
}
SIMD void vf_store(float *p, vf x) {
  memcpy(p, &x, sizeof x);
}
SIMD void vf_store_part(float *p, vf_mask mask, vf x) {
  for (int64_t i = 0; i < mask; i++) p[i] = x[i];
}

SIMD vf vf_load_f16(const uint16_t *p) {
  return (vf){at_f16_to_f32(p[0]), at_f16_to_f32(p[1]), at_f16_to_f32(p[2]), at_f16_to_f32(p[3])};
}
SIMD vf vf_load_bf16(const uint16_t *p) {
  return (vf){at_bf16_to_f32(p[0]), at_bf16_to_f32(p[1]), at_bf16_to_f32(p[2]), at_bf16_to_f32(p[3])};
}
SIMD vf vf_load_part_f16(const uint16_t *p, vf_mask mask) {
  uint16_t part[4] = {0, 0, 0, 0};
  for (int64_t i = 0; i < mask; i++) part[i] = p[i];
  return vf_load_f16(part);
}
SIMD vf vf_load_part_bf16(const uint16_t *p, vf_mask mask) {
  uint16_t part[4] = {0, 0, 0, 0};
  for (int64_t i = 0; i < mask; i++) part[i] = p[i];
  return vf_load_bf16(part);
}
SIMD void vf_store_part_f16(uint16_t *p, vf_mask mask, vf x) {
  for (int64_t i = 0; i < mask; i++) p[i] = at_f32_to_f16(x[i]);
}
SIMD void vf_store_part_bf16(uint16_t *p, vf_mask mask, vf x) {
  for (int64_t i = 0; i < mask; i++) p[i] = at_f32_to_bf16(x[i]);
}

SIMD void vf_transpose(float *to, int64_t to_step, const float *from, int64_t from_step) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) to[j * to_step + i] = from[i * from_step + j];
}
SIMD void vf_transpose_f16(float *to, int64_t to_step, const uint16_t *from, int64_t from_step) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) to[j * to_step + i] = at_f16_to_f32(from[i * from_step + j]);
}
SIMD void vf_transpose_bf16(float *to, int64_t to_step, const uint16_t *from, int64_t from_step) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) to[j * to_step + i] = at_bf16_to_f32(from[i * from_step + j]);
}

#define VD_LANES 2
#define VD_BLOCK 2
typedef double vd __attribute__((vector_size(16)));
typedef int64_t vd_mask;

SIMD vd_mask vd_first(int64_t count) {
  return count;
}
SIMD vd vd_zero(void) {
  return (vd){0.0, 0.0};
}
SIMD vd vd_set1(double x) {
  return (vd){x, x};
}
SIMD vd vd_fma(vd a, vd b, vd c) {
  return a * b + c;
}
SIMD vd vd_mul(vd a, vd b) {
  return a * b;
}
SIMD vd vd_add(vd a, vd b) {
  return a + b;
}
SIMD vd vd_pair(double x, double y) {
  return (vd){x, y};
}
SIMD vd vd_swap_pairs(vd a) {
  return (vd){a[1], a[0]};
}
SIMD double vd_sum(vd a) {
  return a[0] + a[1];
}
SIMD vd vd_load(const double *p) {
  vd x;
  memcpy(&x, p, sizeof x);
  return x;
}
SIMD vd vd_load_part(const double *p, vd_mask mask) {
  return (vd){mask > 0 ? p[0] : 0.0, mask > 1 ? p[1] : 0.0};
}
SIMD void vd_store(double *p, vd x) {
  memcpy(p, &x, sizeof x);
}
SIMD void vd_store_part(double *p, vd_mask mask, vd x) {
  for (int64_t i = 0; i < mask; i++) p[i] = x[i];
}
SIMD void vd_transpose(double *to, int64_t to_step, const double *from, int64_t from_step) {
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) to[j * to_step + i] = from[i * from_step + j];
}

SIMD void vd_transpose_pairs(double *to, int64_t to_step, const double *from, int64_t from_step) {
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) memcpy(to + j * to_step + 2 * i, from + i * from_step + 2 * j, 2 * sizeof *to);
}

/* A vector of lines is one block here. */
#define vf_transpose_lanes vf_transpose
#define vf_transpose_lanes_f16 vf_transpose_f16
#define vf_transpose_lanes_bf16 vf_transpose_bf16
#define vd_transpose_lanes vd_transpose

#endif
