/* SPDX-License-Identifier: Apache-2.0
 * default.c: each device's default generator, and seeds from the system. */
#include <attune/random.h>

#include "src/base/backend.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

enum { DEVICES_MOST = 65 };
#define TORCH_SEED UINT64_C(67280421310721)

static _Atomic(attune_generator *) generators[DEVICES_MOST]; /* made once, never destroyed */
static _Atomic uint64_t first_seed = TORCH_SEED;             /* of those that are made later */

attune_status attune_device_generator(attune_generator **out, attune_device *device) {
  AT_REQUIRE_AS(out, "point to an attune_generator *");
  *out = NULL;
  AT_REQUIRE_DEVICE(device);
  attune_generator *present = generators[device->index], *made = NULL;
  if (!present) {
    AT_TRY(attune_generator_create(&made, first_seed));
    if (atomic_compare_exchange_strong(&generators[device->index], &present, made))
      present = made;
    else
      attune_generator_destroy(made);
  }
  *out = present;
  return ATTUNE_OK;
}

attune_status attune_seed_all(uint64_t seed) {
  attune_status status = ATTUNE_OK;
  first_seed = seed;
  for (int i = 0; i < DEVICES_MOST; i++) {
    attune_generator *generator = generators[i];
    const attune_status one = generator ? attune_generator_set_seed(generator, seed) : ATTUNE_OK;
    if (one != ATTUNE_OK) status = one;
  }
  return status;
}

attune_status attune_generator_seed(attune_generator *generator, uint64_t *out_seed) {
  uint64_t seed = 0;
  ssize_t got;
  while ((got = getrandom(&seed, sizeof seed, 0)) < 0 && errno == EINTR) continue;
  if (got != (ssize_t)sizeof seed)
    return at_fail(ATTUNE_IO_ERROR, "the system provides no random number: %s",
                   got < 0 ? strerror(errno) : "too few bytes");
  seed >>= 11;
  attune_status status = attune_generator_set_seed(generator, seed);
  if (status == ATTUNE_OK && out_seed) *out_seed = seed;
  return status;
}
