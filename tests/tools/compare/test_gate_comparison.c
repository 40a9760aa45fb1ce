/* SPDX-License-Identifier: Apache-2.0
 * Two runs side by side: matched, refused, counted, named. */
#include "tests/tools/compare/gate_noise.h"

#include "tools/compare/stats/comparison.h"

enum { CASES = 6, ROUNDS = 20, SAMPLES = 6 };
static suite s;
static gate_run base, head;
static gate_comparison c;

static char *text(const char *words) {
  return (char *)(uintptr_t)words;
}

FIXTURE(begin) {
  noise_state = 21;
  suite_make(&s, CASES, NOISE_ROUNDS, NOISE_SAMPLES);
  suite_draw(&s, ROUNDS, SAMPLES, &(noise){.process = 0.002, .sample = 0.002}, 0.05);
  base = head = made_up_run("");
  base.id = 1;
  head.id = 2;
  base.cases = s.base;
  head.cases = s.head;
  base.case_count = head.case_count = CASES;
  return 0;
}

FIXTURE(end) {
  gate_comparison_free(&c);
  suite_free(&s, NOISE_ROUNDS);
  return 0;
}

TEST(matches_judges_and_counts) {
  gate_case other = s.base[5];
  other.name = text("gone");
  s.base[5] = other;
  FINE(gate_compare(&c, &base, &head, NULL, false));
  assert_int_equal(c.row_count, CASES + 1);
  assert_int_equal(c.rows[0].judged.verdict, GATE_SLOWER);
  assert_ptr_equal(c.rows[1].base, &s.base[1]);
  assert_ptr_equal(c.rows[1].head, &s.head[1]);
  assert_null(c.rows[5].base); /* head's order, then what only the base has */
  assert_ptr_equal(c.rows[6].base, &s.base[5]);
  assert_null(c.rows[6].head);
  assert_int_equal(c.counts[GATE_SLOWER], 1);
  assert_int_equal(c.counts[GATE_SAME], 4);
  assert_int_equal(c.counts[GATE_MISSING], 2);
  assert_null(c.differences);
  assert_false(c.alternated);
  assert_true(c.rule.floor == gate_rule_default.floor && c.rule.alpha == gate_rule_default.alpha);
}

TEST(order_does_not_matter) {
  const gate_case first = s.base[0];
  s.base[0] = s.base[3];
  s.base[3] = first;
  FINE(gate_compare(&c, &base, &head, NULL, false));
  assert_ptr_equal(c.rows[0].base, &s.base[3]);
  assert_int_equal(c.counts[GATE_MISSING], 0);
}

TEST(mode_and_device_are_part_of_a_case) {
  s.head[0].mode = text("cold");
  s.head[1].device = text("cuda:0");
  FINE(gate_compare(&c, &base, &head, NULL, false));
  assert_int_equal(c.row_count, CASES + 2);
  assert_int_equal(c.counts[GATE_MISSING], 4);
  char *cold = gate_row_name(&c, &c.rows[0]), *cuda = gate_row_name(&c, &c.rows[1]),
       *plain = gate_row_name(&c, &c.rows[2]);
  assert_string_equal(cold, "case/0 [cold]");
  assert_string_equal(cuda, "case/1 [cuda:0]");
  assert_string_equal(plain, "case/2");
  free(cold);
  free(cuda);
  free(plain);
}

TEST(names_tell_mode_and_device) {
  s.head[0].mode = text("cold");
  s.head[0].device = text("cuda:0");
  FINE(gate_compare(&c, &base, &head, NULL, false));
  char *name = gate_row_name(&c, &c.rows[0]);
  assert_string_equal(name, "case/0 [cold cuda:0]");
  free(name);
}

TEST(other_machines_are_refused) {
  head.fingerprint = text("{\"cpu\": \"another cpu\", \"cpus\": 2, \"same\": [1], "
                          "\"kernel\": \"\", \"governor\": \"fast\"}");
  base.fingerprint = text("{\"same\": [1], \"cpu\": \"a cpu\", \"libc\": \"\", \"governor\": \"\"}");
  SAYS(gate_compare(&c, &base, &head, NULL, false), "--allow-different");
  SAYS(gate_compare(&c, &base, &head, NULL, false), "cpu: a cpu, now another cpu");
  assert_null(c.rows);
  FINE(gate_compare(&c, &base, &head, NULL, true));
  assert_string_equal(c.differences, "cpu: a cpu, now another cpu\ngovernor: unknown, now fast\ncpus: unknown, now 2");
  gate_comparison_free(&c);
  base.fingerprint = text("{\"cpu\": \"a cpu\", \"governor\": \"\"}"); /* neither side knows it */
  head.fingerprint = text("{\"cpu\": \"a cpu\", \"libc\": \"\"}");
  FINE(gate_compare(&c, &base, &head, NULL, false));
  assert_null(c.differences);
}

TEST(fingerprints_of_equal_meaning_are_equal) {
  base.fingerprint = text("{\"a\": 1, \"b\": \"x\"}");
  head.fingerprint = text("{ \"b\":\"x\",\"a\":1 }");
  FINE(gate_compare(&c, &base, &head, NULL, false));
  assert_null(c.differences);
}

TEST(fingerprints_that_are_no_json_are_compared_too) {
  base.fingerprint = text("{\"a\": 1");
  SAYS(gate_compare(&c, &base, &head, NULL, false), "fingerprint: {\"a\": 1, now {\"cpu\": \"a cpu\"}");
  base.fingerprint = NULL;
  SAYS(gate_compare(&c, &base, &head, NULL, false), "fingerprint: none");
  head.fingerprint = NULL;
  FINE(gate_compare(&c, &base, &head, NULL, false));
}

/* Their device is not known, nor does it matter: cases that they share with other runs are commands. */
TEST(runs_of_commands_alone) {
  base.fingerprint = text("{\"cpu\": \"a cpu\"}");
  head.fingerprint =
      text("{\"cpu\": \"a cpu\", \"device\": \"a gpu\", \"driver\": \"13.0\", \"libraries\": [\"cublas 13\"]}");
  FINE(gate_compare(&c, &base, &head, NULL, false));
  assert_null(c.differences);
  gate_comparison_free(&c);
  FINE(gate_compare(&c, &head, &base, NULL, false));
  assert_null(c.differences);
  base.fingerprint =
      text("{\"cpu\": \"a cpu\", \"device\": \"a gpu\", \"driver\": \"12.4\", \"libraries\": [\"cublas 13\"]}");
  gate_comparison_free(&c);
  SAYS(gate_compare(&c, &base, &head, NULL, false), "(driver: 12.4, now 13.0)");
  base.fingerprint = text("{\"cpu\": \"another\"}");
  SAYS(gate_compare(&c, &base, &head, NULL, false), "(cpu: another, now a cpu)");
}

/* The sides of a pair differ in what was built, and are compared. */
TEST(a_pair_alternated) {
  head.pair = base.id;
  head.fingerprint = text("{\"cpu\": \"a cpu\", \"attune\": \"next\"}");
  FINE(gate_compare(&c, &base, &head, NULL, false));
  assert_true(c.alternated && c.rows[0].judged.paired && c.differences);
  gate_comparison_free(&c);
  FINE(gate_compare(&c, &head, &base, NULL, false)); /* the other way round */
  assert_true(c.alternated);
  assert_int_equal(c.rows[0].judged.verdict, GATE_FASTER);
  gate_comparison_free(&c);
  base.started -= 3600; /* a run of another file with the same number */
  SAYS(gate_compare(&c, &base, &head, NULL, false), "attune: unknown, now next");
  FINE(gate_compare(&c, &base, &head, NULL, true));
  assert_false(c.alternated);
}

TEST(no_common_case_is_refused) {
  for (size_t i = 0; i < CASES; i++) s.base[i].device = text("elsewhere");
  SAYS(gate_compare(&c, &base, &head, NULL, false), "no case in common");
  head.pair = base.id; /* in a pair too */
  SAYS(gate_compare(&c, &base, &head, NULL, false), "no case in common");
  head.pair = 0;
  head.case_count = 0;
  SAYS(gate_compare(&c, &base, &head, NULL, false), "the head has no cases");
  base.case_count = 0;
  SAYS(gate_compare(&c, &base, &head, NULL, false), "has no cases");
}

int main(void) {
  return RUN_TESTS_EACH(begin, end, NULL, NULL);
}
