/* SPDX-License-Identifier: Apache-2.0
 * test_philox.c: Philox4x32-10 against the known answers that Random123 publishes, and the vector versions against the
 * plain one. */
#include "tests/support/check.h"

#include "src/host/random/fill.h"

typedef struct answer {
  uint32_t counter[4], key[2], out[4];
} answer;

static const answer answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static uint64_t join(uint32_t low, uint32_t high) {
  return (uint64_t)high << 32 | low;
}

TEST(known_answers) {
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    const answer *a = &answers[i];
    const at_philox_block block =
        at_philox(join(a->key[0], a->key[1]), join(a->counter[0], a->counter[1]), join(a->counter[2], a->counter[3]));
    assert_memory_equal(block.w, a->out, sizeof a->out);
  }
}

/* Carries of the counter, all lengths of a rest, the upper half of the counter. */
TEST(vectors_agree) {
  const uint64_t starts[] = {0, 5, 0xfffffff8, UINT64_MAX - 3, 0x0123456789abcdef};
  const at_fill_isa *all[4];
  at_fill_all(all);
  for (int isa = 0; all[isa]; isa++) {
    print_message("%s\n", all[isa]->name);
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++)
      for (size_t count = 0; count < 70; count++) {
        uint32_t words[4 * 71];
        for (size_t i = 0; i < 4 * 71; i++) words[i] = 0xdeadbeef;
        all[isa]->philox(words, 0x299f31d0a4093822 + s, starts[s], s << 40, count);
        for (size_t i = 0; i < count; i++) {
          const at_philox_block block = at_philox(0x299f31d0a4093822 + s, starts[s] + i, s << 40);
          assert_memory_equal(words + 4 * i, block.w, sizeof block.w);
        }
        assert_int_equal(words[4 * count], 0xdeadbeef);
      }
  }
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
