/* SPDX-License-Identifier: Apache-2.0
 * comm_on_host.h: a communicator of several host devices, with memory of each, for tests. */
#ifndef AT_TEST_COMM_ON_HOST_H
#define AT_TEST_COMM_ON_HOST_H

#include <attune/collectives.h>

#include "tests/src/comm/numbers.h"
#include "tests/support/host_devices.h"

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

#endif
