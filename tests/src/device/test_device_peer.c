/* SPDX-License-Identifier: Apache-2.0
 * test_device_peer.c: memory of a device, and of its peers. */
#include "tests/support/check.h"

#include "src/base/backend.h"

static attune_device *host;

FIXTURE(find_host) {
  return attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

TEST(memory_of_the_host) {
  uint64_t available = 0, total = 0, again = 0;
  attune_device_properties p = {0};
  OK(attune_device_memory_info(host, &available, &total));
  OK(attune_device_get_properties(host, &p));
  assert_true(available > (uint64_t)1 << 20 && available <= total);
  assert_true(total <= p.memory_bytes);
  OK(attune_device_memory_info(host, NULL, &again));
  assert_true(again == total);
  OK(attune_device_memory_info(host, NULL, NULL));
  FAILS(attune_device_memory_info(NULL, &available, &total), ATTUNE_INVALID_ARGUMENT);
}

TEST(a_device_is_its_own_peer) {
  int can = 0;
  OK(attune_device_can_access_peer(&can, host, host));
  assert_int_equal(can, 1);
  OK(attune_device_enable_peer(host, host));
  FAILS(attune_device_can_access_peer(NULL, host, host), ATTUNE_INVALID_ARGUMENT);
  FAILS_SAYING(attune_device_can_access_peer(&can, NULL, host), ATTUNE_INVALID_ARGUMENT, "device is NULL");
  FAILS_SAYING(attune_device_can_access_peer(&can, host, NULL), ATTUNE_INVALID_ARGUMENT, "peer is NULL");
  FAILS(attune_device_enable_peer(NULL, host), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_disable_peer(NULL, host), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_device_disable_peer(host, host), ATTUNE_INVALID_ARGUMENT);
}

TEST(a_stranger_is_no_peer) {
  attune_device stranger = *host;
  int can = 1;
  stranger.backend.kind = ATTUNE_DEVICE_CUDA;
  OK(attune_device_can_access_peer(&can, host, &stranger));
  assert_int_equal(can, 0);
  FAILS(attune_device_enable_peer(host, &stranger), ATTUNE_UNSUPPORTED);
  FAILS(attune_device_disable_peer(host, &stranger), ATTUNE_UNSUPPORTED);
}

int main(void) {
  return RUN_TESTS(find_host, NULL);
}
