/* SPDX-License-Identifier: Apache-2.0
 * comm_on_host.h: a communicator of several host devices, with memory of each, for tests. */
#ifndef AT_TEST_COMM_ON_HOST_H
#define AT_TEST_COMM_ON_HOST_H

#include <attune/collectives.h>

#include "src/half.h"
#include "tests/host_devices.h"

enum { RANKS = HOST_DEVICES, COUNT = 2500, ROOM = COUNT * 16 };

static attune_comm *comm;
static _Alignas(16) unsigned char in[RANKS][ROOM], out[RANKS][ROOM], whole[RANKS * ROOM];
static const void *ins[RANKS];
static void *outs[RANKS];

static inline int comm_begin(void **state) {
  (void)state;
  if (host_devices_begin() != 0) return -1;
  for (int i = 0; i < RANKS; i++) ins[i] = in[i], outs[i] = out[i];
  return attune_comm_create(&comm, devices, RANKS, ATTUNE_COMM_ANY) == ATTUNE_OK ? 0 : -1;
}

static inline int comm_end(void **state) {
  (void)state;
  attune_comm_destroy(comm);
  host_devices_end();
  return 0;
}

/* Small whole numbers: their sums are exact in every type, but for 8 bits, where they wrap. */
static inline double number(int rank, size_t i) {
  return (double)((i * 7 + (size_t)rank * 31) % 97) - (rank == 2 ? 40.0 : 0.0);
}

static inline void put(void *at, attune_dtype dtype, size_t i, double x) {
  switch (dtype) {
  case ATTUNE_F64: ((double *)at)[i] = x; return;
  case ATTUNE_F32: ((float *)at)[i] = (float)x; return;
  case ATTUNE_F16: ((uint16_t *)at)[i] = at_f64_to_f16(x); return;
  case ATTUNE_BF16: ((uint16_t *)at)[i] = at_f64_to_bf16(x); return;
  case ATTUNE_I8: ((int8_t *)at)[i] = (int8_t)(int64_t)x; return;
  case ATTUNE_U8: ((uint8_t *)at)[i] = (uint8_t)(int64_t)x; return;
  case ATTUNE_I16: ((int16_t *)at)[i] = (int16_t)(int64_t)x; return;
  case ATTUNE_U16: ((uint16_t *)at)[i] = (uint16_t)(int64_t)x; return;
  case ATTUNE_I32: ((int32_t *)at)[i] = (int32_t)x; return;
  case ATTUNE_U32: ((uint32_t *)at)[i] = (uint32_t)(int64_t)x; return;
  case ATTUNE_I64: ((int64_t *)at)[i] = (int64_t)x; return;
  case ATTUNE_U64: ((uint64_t *)at)[i] = (uint64_t)(int64_t)x; return;
  case ATTUNE_C64: ((float *)at)[2 * i] = (float)x, ((float *)at)[2 * i + 1] = (float)(-x); return;
  case ATTUNE_C128: ((double *)at)[2 * i] = x, ((double *)at)[2 * i + 1] = -x; return;
  default: ((uint8_t *)at)[i] = (uint8_t)((int64_t)x & 1);
  }
}

#endif
