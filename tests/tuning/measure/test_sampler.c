/* SPDX-License-Identifier: Apache-2.0
 * test_sampler.c: timings on the host are those of plans whose cost is known; operands are random, rotate where inputs
 * are to be cold, and lie exactly at their alignment class between guards where they are to be verified. */
#include "tests/support/check.h"

#include <math.h>

#include "ops/gemm/problem/problem.h"
#include "tests/support/toy/toy_clock.h"
#include "tuning/measure/sampler.h"
#include "tuning/measure/statistics.h"
#include "tuning/search/candidates.h"

static attune_device *device;
static at_timer *timer;

static at_plan *plan_of(const at_key *key, const char *configuration) {
  at_configuration text;
  at_plan *plan = NULL;
  at_copy_text(text.text, sizeof text.text, configuration);
  OK(at_plan_create(&plan, &toy_op, &toy_spin_implementation, &text, key->words + 1, device));
  return plan;
}

/* The medians of rounds of a 40 us and a 160 us plan: each near its own time, never below it, and four times apart. */
TEST(known_costs) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  at_sampler sampler;
  OK(at_sampler_open(&sampler, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER));
  assert_false(sampler.cold || sampler.graph);
  at_plan *plans[] = {plan_of(&key, "ns=160000"), plan_of(&key, "ns=40000")};
  at_timing_target targets[2], *both[] = {&targets[0], &targets[1]};
  for (int i = 0; i < 2; i++) OK(at_sampler_try(&sampler, &targets[i], plans[i], HUGE_VAL));
  assert_true(targets[0].once_ns >= 160000.0 && targets[1].once_ns >= 40000.0);
  at_sampler_calibrate(&sampler, 40000.0);
  assert_true(sampler.calls >= 1);
  double fast[15], ratios[15];
  for (int i = 0; i < 2; i++) OK(at_sampler_ready(&sampler, &targets[i]));
  for (int round = 0; round < 15; round++) {
    double ns[2];
    bool good = false;
    OK(at_sampler_round(&sampler, both, 2, ns, &good));
    assert_true(ns[0] >= 160000.0 && ns[1] >= 40000.0);
    ratios[round] = ns[0] / ns[1];
    fast[round] = ns[1];
  }
  const double ratio = at_median(ratios, 15);
  if (!(fabs(ratio - 4.0) < 0.01)) fail_msg("160 us and 40 us are measured as %g to 1", ratio);
  assert_true(at_median(fast, 15) < 41000.0);
  for (int i = 0; i < 2; i++) {
    at_sampler_forget(&sampler, &targets[i]);
    at_plan_destroy(plans[i]);
  }
  at_sampler_close(&sampler);
}

/* A plan's first call after another's takes 100 us longer, as one whose threads sleep and whose data is elsewhere. */
static int64_t awake_ns;
static void pass_after_waking(int64_t start, int64_t ns, int64_t cpus) {
  toy_pass_virtual(start, ns == awake_ns ? ns : ns + 100000, cpus);
  awake_ns = ns;
}

/* That call is no part of a sample, for a program that calls it again and again sees it once. */
TEST(samples_start_awake) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  static const double own_ns[] = {20000.0, 40000.0, 80000.0};
  static const char *const texts[] = {"ns=20000", "ns=40000", "ns=80000"};
  at_sampler sampler;
  at_plan *plans[3];
  at_timing_target targets[3], *all[3];
  OK(at_sampler_open(&sampler, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER));
  for (int i = 0; i < 3; i++) {
    plans[i] = plan_of(&key, texts[i]);
    all[i] = &targets[i];
    OK(at_sampler_try(&sampler, &targets[i], plans[i], HUGE_VAL));
  }
  at_sampler_calibrate(&sampler, 20000.0);
  for (int i = 0; i < 3; i++) OK(at_sampler_ready(&sampler, &targets[i]));
  toy_pass = pass_after_waking;
  for (int round = 0; round < 5; round++) {
    double ns[3];
    bool good = false;
    OK(at_sampler_round(&sampler, all, 3, ns, &good));
    for (int i = 0; i < 3; i++)
      if (!(ns[i] < 1.02 * own_ns[i])) fail_msg("%s takes %g ns a call", texts[i], ns[i]);
  }
  toy_pass = toy_pass_virtual;
  for (int i = 0; i < 3; i++) {
    at_sampler_forget(&sampler, &targets[i]);
    at_plan_destroy(plans[i]);
  }
  at_sampler_close(&sampler);
}

/* Launches that take as long as the host needs for a device's first ones. */
static int slow_launches;
static void pass_slowly_at_first(int64_t start, int64_t ns, int64_t cpus) {
  toy_pass_virtual(start, slow_launches-- > 0 ? ns + 245000 : ns, cpus);
}

/* How many calls a device's sample has is told by what a call takes in a sample, not by its first launches alone. */
TEST(calls_are_by_a_sample) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  at_configuration text;
  at_copy_text(text.text, sizeof text.text, "ns=8000");
  int calls[2];
  for (int slow = 0; slow < 2; slow++) {
    at_sampler sampler;
    at_race race = {.sampler = &sampler, .steady = true};
    double once_ns = 0.0;
    OK(at_sampler_open(&sampler, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER));
    assert_non_null(at_race_add(&race, &toy_spin_implementation, &text));
    slow_launches = slow ? 6 : 0;
    toy_pass = pass_slowly_at_first;
    OK(at_race_start(&race, &once_ns));
    toy_pass = toy_pass_virtual;
    assert_true(slow_launches <= 0);
    if (!(once_ns >= 8000.0 && once_ns < 8400.0)) fail_msg("a call is taken to need %g ns", once_ns);
    calls[slow] = sampler.calls;
    at_race_free(&race);
    at_sampler_close(&sampler);
  }
  assert_in_range(calls[1], calls[0] * 9 / 10, calls[0] * 11 / 10);
}

/* memory_info of a host that has little left. */
static uint64_t free_now;
static attune_status little_free(attune_device *of, uint64_t *out_free, uint64_t *out_total) {
  *out_free = free_now;
  *out_total = of->properties.memory_bytes;
  return ATTUNE_OK;
}

static void expect_no_room(size_t bytes, const char *text) {
  FAILS(at_operand_room(device, bytes), ATTUNE_OUT_OF_MEMORY);
  if (!strstr(attune_last_message(), text)) fail_msg("%s", attune_last_message());
}

TEST(what_is_too_large_is_told) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  const at_backend_memory *usual = device->backend.memory;
  const uint64_t all = device->properties.memory_bytes;
  at_backend_memory stub = *usual;
  at_sampler sampler;
  device->properties.memory_bytes = UINT64_C(20000000000);
  free_now = UINT64_C(10000000000);
  stub.info = little_free;
  device->backend.memory = &stub;
  OK(at_operand_room(device, 2000000000));
  expect_no_room(3000000000, "its operands are 3 GB, measuring and verifying it needs about 15 GB, and the free memory "
                             "there is 10 GB; free some, or");
  expect_no_room((size_t)48000000000000, "its operands are 48 TB, measuring and verifying it needs about 240 TB, and "
                                         "the memory there is 20 GB; tune it on a device with more");
  expect_no_room(SIZE_MAX / 2, "PB");
  free_now = 0; /* not known */
  OK(at_operand_room(device, 3000000000));
  device->properties.memory_bytes = 1000;
  FAILS(at_sampler_open(&sampler, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER), ATTUNE_OUT_OF_MEMORY);
  at_sampler_close(&sampler);
  device->backend.memory = usual;
  device->properties.memory_bytes = all;
}

TEST(a_failing_plan_fails_here) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  at_sampler sampler;
  at_timing_target target;
  OK(at_sampler_open(&sampler, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER));
  at_plan *plan = plan_of(&key, "ns=1,fault=launch");
  assert_int_equal(at_sampler_try(&sampler, &target, plan, HUGE_VAL), ATTUNE_DEVICE_ERROR);
  at_plan_destroy(plan);
  at_sampler_close(&sampler);
}

/* The longer the work, the fewer calls a sample; always at least one. */
TEST(calls_of_a_sample) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  at_sampler sampler;
  int before = 1 << 30;
  OK(at_sampler_open(&sampler, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER));
  static const double ns[] = {0.0, 10.0, 1e3, 1e5, 1e7, 1e10};
  for (size_t i = 0; i < AT_COUNT(ns); i++) {
    at_sampler_calibrate(&sampler, ns[i]);
    assert_true(sampler.calls >= 1 && sampler.calls <= before);
    before = sampler.calls;
  }
  assert_int_equal(before, 1);
  at_sampler_close(&sampler);
}

/* Cold inputs rotate over more than the last-level cache, as far as copies go; hot ones do not. */
TEST(cold_operands_rotate) {
  const at_key key = toy_key(TOY("f32 512x512"), device);
  at_sampler sampler;
  OK(at_sampler_open(&sampler, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_COLD_EAGER));
  assert_true(sampler.cold);
  const size_t bytes = sampler.operands->set_bytes * (size_t)sampler.operands->copies;
  assert_true(sampler.operands->copies > 1 && sampler.operands->copies <= AT_MAX_COPIES);
  assert_true(bytes > 2 * device->properties.cache_bytes || sampler.operands->copies == AT_MAX_COPIES ||
              bytes > device->properties.memory_bytes / 8);
  for (int i = 1; i < sampler.operands->copies; i++)
    assert_ptr_not_equal(sampler.operands->pointers[i][0], sampler.operands->pointers[i - 1][0]);
  at_sampler_close(&sampler);
  OK(at_sampler_open(&sampler, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER));
  assert_int_equal(sampler.operands->copies, 1);
  at_sampler_close(&sampler);
}

static bool is_aligned_exactly(const void *pointer, size_t alignment) {
  return (uintptr_t)pointer % alignment == 0 && (uintptr_t)pointer % (2 * alignment) != 0;
}

/* Of any operation. */
static const struct {
  const at_op *op;
  const char *problem;
  size_t bytes;
} CLASSES[] = {{&toy_op, TOY_PROBLEM, 128},
               {&toy_op, TOY_PROBLEM " align=4", 4},
               {&toy_op, TOY("f64:i64 9x7") " align=8", 8},
               {&at_gemm_op, "gemm bf16 nn 9x7x8 strict align=2", 2},
               {&at_gemm_op, "gemm f16:f32 nn 9x7x8 strict beta=inplace align=4", 4}};

static at_key class_key(size_t i) {
  at_key key;
  OK(CLASSES[i].op->problem->parse(CLASSES[i].problem, at_key_problem(&key)));
  at_key_set(&key, CLASSES[i].op, device);
  return key;
}

/* For verification each operand lies at exactly its class, between guards. */
TEST(guarded_operands_have_their_alignment_class) {
  for (size_t i = 0; i < AT_COUNT(CLASSES); i++) {
    const at_key key = class_key(i);
    at_operand_set *set = NULL;
    OK(at_operand_set_create(&set, CLASSES[i].op, key.words + 1, attune_stream_default(device), timer->random, 3,
                             SIZE_MAX, true));
    assert_int_equal(set->copies, 1);
    for (int j = 0; j < set->buffer_count; j++) {
      assert_true(is_aligned_exactly(set->pointers[0][j], CLASSES[i].bytes));
      const unsigned char *start = set->pointers[0][j], *end = start + set->buffers[j].bytes;
      for (int byte = 0; byte < AT_GUARD_BYTES; byte++)
        assert_true(start[-1 - byte] == AT_GUARD_BYTE && end[byte] == AT_GUARD_BYTE);
    }
    at_operand_set_destroy(set);
  }
}

/* Buffers of one placement: apart, inside the arena, at multiples of the class, one of them at no better; copies alike.
 */
static void check_placement(const at_operand_set *set, size_t alignment, size_t best) {
  for (int copy = 0; copy < set->copies; copy++) {
    bool exact = alignment >= best;
    for (int j = 0; j < set->buffer_count; j++) {
      const char *start = set->pointers[copy][j], *end = start + set->buffers[j].bytes;
      const char *after = j + 1 < set->buffer_count ? set->pointers[copy][j + 1]
                          : copy + 1 < set->copies  ? set->pointers[copy + 1][0]
                                                    : set->arena + set->stride * (size_t)set->copies;
      assert_true((uintptr_t)start % (alignment < best ? alignment : best) == 0);
      assert_true(start >= set->arena && end <= after);
      if (is_aligned_exactly(start, alignment)) exact = true;
      assert_int_equal((char *)set->pointers[copy][j] - (char *)set->pointers[copy][0],
                       (char *)set->pointers[0][j] - (char *)set->pointers[0][0]);
    }
    assert_true(exact);
  }
}

/* Placements differ from each other and are the same for one seed; on a GPU as on the host, but for the best class. */
TEST(operands_move_between_placements) {
  static attune_device gpu;
  static attune_stream on_gpu;
  on_gpu = *attune_stream_default(device);
  gpu = *device;
  gpu.properties.kind = ATTUNE_DEVICE_CUDA;
  gpu.alignment_mask = 127;
  on_gpu.device = &gpu;
  for (size_t i = 0; i < AT_COUNT(CLASSES); i++)
    for (int cuda = 0; cuda < 2; cuda++) {
      const at_key key = class_key(i);
      at_operand_set *set = NULL;
      OK(at_operand_set_create(&set, CLASSES[i].op, key.words + 1, attune_stream_default(device), timer->random, 3,
                               SIZE_MAX, false));
      assert_true(set->copies == 3 && set->slack >= 4096);
      if (cuda) set->stream = &on_gpu;
      uint64_t seen[40];
      int distinct = 0;
      for (uint64_t seed = 1; seed <= 40; seed++) {
        at_operand_set_place(set, seed);
        check_placement(set, CLASSES[i].bytes, cuda ? 128 : 16);
        const uint64_t place = (uint64_t)((char *)set->pointers[0][1] - (char *)set->pointers[0][0]);
        bool old = false;
        for (int j = 0; j < distinct; j++) old = old || seen[j] == place;
        if (!old) seen[distinct++] = place;
        for (int copy = 0; copy < set->copies; copy++) /* what moved is no other data: every byte of a slot is random */
          for (size_t byte = 0; byte + 8 <= set->buffers[0].bytes; byte += 8) {
            uint64_t word;
            memcpy(&word, (char *)set->pointers[copy][0] + byte, sizeof word);
            assert_true(word != 0);
          }
      }
      assert_true(distinct > 15);
      void *first = set->pointers[0][1];
      at_operand_set_place(set, 7);
      at_operand_set_place(set, 40);
      assert_ptr_equal(set->pointers[0][1], first);
      set->stream = attune_stream_default(device);
      at_operand_set_destroy(set);
    }
}

int main(void) {
  toy_reset();
  virtual_clock_start();
  if (attune_device_get(&device, "host") != ATTUNE_OK || at_timer_create(&timer, device) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  at_timer_destroy(timer);
  return failed;
}
