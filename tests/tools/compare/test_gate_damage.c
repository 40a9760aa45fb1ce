/* SPDX-License-Identifier: Apache-2.0
 * test_gate_damage.c: a result file whose numbers changed on their way is told as damaged, and where.
 * ATTUNE_TEST_FLIPS: how many bits are flipped, one at a time. */
#include "tests/tools/compare/gate_fixture.h"

enum { VISITS = 6, MANY_VISITS = 120 };

static void save_one(int visits) {
  gate_file *file;
  save("r.db", "mine", visits, GATE_RUN_COMPLETE);
  FINE(gate_file_open(&file, path_of("r.db"), true));
  FINE(gate_file_roof(file, 1, &(gate_roof){"host", "f32", 1e10, 1e11}));
  gate_file_close(file);
}

TEST(every_number_counts) {
  static const struct {
    const char *sql, *words;
  } bad[] = {
      {"UPDATE sample SET ns = ns * 1.01 WHERE visit = 3 AND ordinal = 1",
       "is damaged (case \"sum/1M\", round 2: wrong"},
      {"UPDATE sample SET cpu_ns = 1 WHERE visit = 1", "round 0: wrong checksum"},
      {"UPDATE sample SET start = 1 WHERE visit = 6", "round 5: wrong checksum"},
      {"DELETE FROM sample WHERE visit = 2 AND ordinal = 2", "round 1: wrong checksum"},
      {"UPDATE visit SET round = 9 WHERE id = 2", "round 9: wrong checksum"},
      {"UPDATE visit SET calls = 8 WHERE id = 2", "round 1: wrong checksum"},
      {"UPDATE visit SET throttled = 0 WHERE id = 2", "round 1: wrong checksum"},
      {"UPDATE visit SET load = 1, clock_mhz = 0 WHERE id = 2", "round 1: wrong checksum"},
      {"UPDATE visit SET bench_case = 77 WHERE id = 2", "is damaged (case \"sum/1M\": wrong checksum"},
      {"DELETE FROM visit WHERE id = 6", "is damaged (case \"sum/1M\": wrong checksum"},
      {"UPDATE bench_case SET flops = 2 * flops", "is damaged (case \"sum/1M\": wrong checksum"},
      {"UPDATE bench_case SET message = 'x'", "is damaged (case \"sum/1M\": wrong checksum"},
      {"UPDATE bench_case SET name = 'sum/1N'", "is damaged (case \"sum/1N\", round 0: wrong checksum"},
      {"UPDATE run SET revision = 'f'", "is damaged (run 1 has a wrong checksum"},
      {"UPDATE run SET pair = 7", "is damaged (run 1 has a wrong checksum"},
      {"UPDATE roof SET flops_s = 2e11", "run 1 has a roof with a wrong checksum"},
      {"UPDATE run SET checksum = 0", "is damaged (run 1 has a wrong checksum"},
      {"UPDATE bench_case SET checksum = 0", "is damaged (case \"sum/1M\": wrong checksum"},
      {"UPDATE visit SET checksum = 0 WHERE id = 3", "round 2: wrong checksum"},
      {"UPDATE roof SET checksum = 0", "run 1 has a roof with a wrong checksum"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    gate_run run;
    (void)unlink(path_of("r.db"));
    save_one(VISITS);
    FINE(gate_load(path_of("r.db"), &run));
    gate_run_free(&run);
    sql("r.db", bad[i].sql);
    SAYS(gate_load(path_of("r.db"), &run), bad[i].words);
    assert_int_equal(run.case_count, 0);
  }
}

/* --- one bit --- */

static uint64_t drawn(uint64_t below) {
  static uint64_t random = 20261122;
  random = random * 6364136223846793005u + 1442695040888963407u;
  return (random >> 33) % below;
}

static bool alike(const gate_visit *a, const gate_visit *b) {
  if (a->round != b->round || a->calls != b->calls || a->clock_mhz != b->clock_mhz || a->throttled != b->throttled ||
      a->load != b->load || a->sample_count != b->sample_count)
    return false;
  for (int i = 0; i < a->sample_count; i++)
    if (a->samples[i].ns != b->samples[i].ns || a->samples[i].cpu_ns != b->samples[i].cpu_ns ||
        a->samples[i].start != b->samples[i].start)
      return false;
  return true;
}

/* But for the end and the state of a run, and for what is not there any more. */
static bool says_the_same(const gate_run *a, const gate_run *b) {
  if (strcmp(a->label, b->label) != 0 || strcmp(a->fingerprint, b->fingerprint) != 0 || a->pair != b->pair ||
      a->started != b->started || a->dirty != b->dirty || b->case_count > a->case_count)
    return false;
  for (size_t i = 0; i < b->case_count; i++) {
    const gate_case *x = &a->cases[i], *y = &b->cases[i];
    if (strcmp(x->name, y->name) != 0 || x->bytes != y->bytes || x->flops != y->flops || x->state != y->state ||
        x->visit_count != y->visit_count)
      return false;
    for (int k = 0; k < x->visit_count; k++)
      if (!alike(&x->visits[k], &y->visits[k])) return false;
  }
  for (size_t i = 0; i < b->roof_count; i++)
    if (a->roofs[i].bytes_s != b->roofs[i].bytes_s || a->roofs[i].flops_s != b->roofs[i].flops_s) return false;
  return true;
}

static void write_bytes(const char *name, const char *bytes, size_t size) {
  FILE *stream = fopen(path_of(name), "wb");
  assert_non_null(stream);
  assert_int_equal(fwrite(bytes, 1, size, stream), size);
  assert_int_equal(fclose(stream), 0);
}

/* Bits are flipped where rows are: the others are nobody's. */
TEST(no_flipped_bit_changes_a_number) {
  static char whole[1 << 20], copy[1 << 20];
  const char *told = getenv("ATTUNE_TEST_FLIPS");
  const int flips = told ? atoi(told) : 60;
  int refused = 0, same = 0;
  gate_run true_run, run;
  save_one(MANY_VISITS);
  FINE(gate_load(path_of("r.db"), &true_run));
  FILE *stream = fopen(path_of("r.db"), "rb");
  assert_non_null(stream);
  const size_t size = fread(whole, 1, sizeof whole, stream);
  fclose(stream);
  assert_in_range(size, 4096, sizeof whole - 1);
  for (int i = 0; i < flips; i++) {
    size_t at = drawn(size);
    while (!whole[at]) at = (at + 1) % size;
    memcpy(copy, whole, size);
    copy[at] = (char)(copy[at] ^ 1 << drawn(8));
    write_bytes("flipped.db", copy, size);
    char *name = gate_say("%s:1", path_of("flipped.db")), *error = gate_load(name, &run);
    refused += error != NULL;
    if (!error && !says_the_same(&true_run, &run)) fail_msg("a bit of byte %zu changed what is read", at);
    same += !error;
    if (!error) gate_run_free(&run);
    free(error);
    free(name);
  }
  print_message("%d bits flipped: %d told, %d changed nothing\n", flips, refused, same);
  assert_true(refused >= flips / 3);
  gate_run_free(&true_run);
}

int main(void) {
  return RUN_TESTS_EACH(set_up, tear_down, NULL, NULL);
}
