/* SPDX-License-Identifier: Apache-2.0
 * test_expression_memory.c: each allocation of a compilation fails once: OUT_OF_MEMORY, nothing leaks, and the next
 * call works. The locale in which numbers are read; several threads that compile at once. */
#include "tests/support/check.h"

#include <locale.h>
#include <pthread.h>

#include "tests/ops/elementwise/language/expression_fixture.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static _Thread_local int left = -1; /* allocations that succeed; below 0: all */

static bool fails(void) {
  return left >= 0 && left-- == 0;
}

void *__wrap_malloc(size_t size) {
  return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
  return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size) {
  return fails() ? NULL : __real_realloc(old, size);
}

/* ---- numbers are read in the C locale, whatever the program has, and its own is there again after the call ---- */

double __real_strtod_l(const char *text, char **end, locale_t locale);
double __wrap_strtod_l(const char *text, char **end, locale_t locale);

static _Thread_local int reads, in_program_locale;

double __wrap_strtod_l(const char *text, char **end, locale_t locale) {
  reads++;
  in_program_locale += locale == LC_GLOBAL_LOCALE || locale == (locale_t)0;
  return __real_strtod_l(text, end, locale);
}

TEST(locale_of_numbers) {
  at_expression *e = NULL, *again = NULL;
  reads = in_program_locale = 0;
  OK(compile_mentioned(&e, "f32 a", "a * 1.5 + 0.25"));
  OK(at_expression_parse_canonical(&again, e->text));
  assert_true(reads > 4 && in_program_locale == 0 && uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
  at_expression_destroy(e);
  FAILS(compile_mentioned(&e, "f32 a", "a * 1.5 +"), ATTUNE_INVALID_ARGUMENT);
  assert_true(in_program_locale == 0 && uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
  at_expression_destroy(again);
}

static const char *const LINE = "f32 a, bf16 b, c64 z; f64 s";

TEST(each_allocation) {
  static const char *const texts[] = {"a", "t = a + b; u = t * s; t, gelu(u) * rand() + index(1)", "isnan(z) ? 1 : 2",
                                      NULL};
  static char row[AT_EXPRESSION_CHARS]; /* the tables grow */
  size_t at = 0;
  for (int i = 0; i < 300; i++)
    at_append(row, sizeof row, &at, "x%d = a * %d.5 + %s%d;", i, i, i ? "x" : "b * ", i ? i - 1 : 3);
  at_append(row, sizeof row, &at, "x299");
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    const char *text = texts[i] ? texts[i] : row;
    attune_status status = ATTUNE_OUT_OF_MEMORY;
    int failed = 0;
    for (; status == ATTUNE_OUT_OF_MEMORY; failed++) {
      at_expression *e = (at_expression *)8;
      left = failed;
      status = compile_mentioned(&e, LINE, text);
      left = -1;
      if (status == ATTUNE_OUT_OF_MEMORY) assert_null(e);
      at_expression_destroy(e);
    }
    assert_int_equal(status, ATTUNE_OK);
    assert_true(failed > 12);
  }
}

static void *work(void *arg) {
  const char **texts = arg;
  for (int i = 0; i < 200; i++) {
    at_expression *e = NULL, *again = NULL;
    if (compile_mentioned(&e, LINE, texts[0]) != ATTUNE_OK || strcmp(body(e), texts[1]) != 0) return arg;
    if (at_expression_parse_canonical(&again, e->text) != ATTUNE_OK) return arg;
    at_expression_destroy(again);
    at_expression_destroy(e);
    if (compile_mentioned(&e, LINE, "a +") != ATTUNE_INVALID_ARGUMENT) return arg;
  }
  return NULL;
}

TEST(threads) {
  static const char *texts[][2] = {{"a * 1.5 + lgamma(0.5)", "i0 * f32(1.5) + f32(0.5723649)"},
                                   {"b + s", "bf16(f32(i0) + f32(s0))"},
                                   {"t = a - s; t * t", "t0 = i0 - f32(s0); t0 * t0"},
                                   {"real(z)", "real(i0)"}};
  pthread_t thread[4];
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&thread[i], NULL, work, texts[i]), 0);
  for (int i = 0; i < 4; i++) {
    void *wrong = NULL;
    assert_int_equal(pthread_join(thread[i], &wrong), 0);
    if (wrong) fail_msg("%s", texts[i][0]);
  }
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
