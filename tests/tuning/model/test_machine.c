/* SPDX-License-Identifier: Apache-2.0
 * test_machine.c: the figures of a device that has a row, of a part of one, and of one that has none. */
#include "tests/support/check.h"

#include "tuning/model/machine.h"

TEST(a_row) {
  const at_machine m = at_machine_make(90, 132, "NVIDIA H200");
  assert_int_equal(m.capability, 90);
  assert_int_equal(m.processors, 132);
  assert_int_equal(m.clustered, 120);
  assert_int_equal(m.shared_bytes, 227 * 1024);
  assert_true(m.memory == 4.25e6 && m.level2 > m.memory);
  assert_true(m.level2_one * m.processors > m.level2); /* one alone has more than its share */
  assert_true(m.cycle_fma < m.cycle);
  assert_true(m.mma_f64 < m.mma_tf32 && m.mma_tf32 < m.mma_f16 && m.mma_f16 < m.wgmma_f16);
}

/* A slice has its share of what all processors have together, and the rest as it is. */
TEST(a_part) {
  const at_machine whole = at_machine_make(90, 132, "NVIDIA H200"), m = at_machine_make(90, 33, "NVIDIA H200 MIG");
  assert_int_equal(m.processors, 33);
  assert_int_equal(m.clustered, 30);
  assert_true(m.memory == whole.memory / 4 && m.level2 == whole.level2 / 4);
  assert_true(m.level2_one == whole.level2_one && m.wanted == whole.wanted && m.launch == whole.launch);
  assert_true(at_machine_memory_cycle(&m) == at_machine_memory_cycle(&whole));
  assert_int_equal(at_machine_make(90, 0, "NVIDIA H200").processors, 1);
}

TEST(no_row) {
  static const int kib[][2] = {{80, 163}, {86, 99}, {89, 99}, {90, 227}, {100, 227}, {120, 99}};
  for (size_t i = 0; i < AT_COUNT(kib); i++) {
    const at_machine m = at_machine_make(kib[i][0], 108, "GPU");
    assert_int_equal(m.capability, kib[i][0]);
    assert_int_equal(m.shared_bytes, kib[i][1] * 1024);
    assert_int_equal(m.clustered, 98);
    assert_true(m.memory == 4.25e6 * 108 / 132);
  }
}

TEST(of_a_device) {
  attune_device device = {.properties = {.processors = 66, .capability_major = 9}};
  strcpy(device.properties.name, "NVIDIA H200 NVL");
  const at_machine m = at_machine_of(&device);
  assert_int_equal(m.capability, 90);
  assert_int_equal(m.processors, 66);
  assert_true(m.memory == 2.125e6);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
