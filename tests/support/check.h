/* SPDX-License-Identifier: Apache-2.0
 * check.h: cmocka, the tests' definitions, and the checks that every test makes of a call of attune. Include it before
 * all others; of the C library it brings what nearly every test needs. */
#ifndef AT_TEST_CHECK_H
#define AT_TEST_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <attune/status.h>

/* The call succeeds; else its status and the thread's message are told. */
#define OK(call)                                                                                                       \
  do {                                                                                                                 \
    const attune_status ok_status = (call);                                                                            \
    if (ok_status != ATTUNE_OK) fail_msg("%s: %s: %s", #call, attune_status_string(ok_status), attune_last_message()); \
  } while (0)

/* The call fails with this status; and the thread's message has these words. */
#define FAILS(call, status) assert_int_equal((call), (status))
#define FAILS_SAYING(call, status, words) (FAILS(call, status), says(words))

static inline void says(const char *words) {
  if (!strstr(attune_last_message(), words)) fail_msg("\"%s\" does not say \"%s\"", attune_last_message(), words);
}

/* Return value of main if none of the file's tests can run: 77, with the reason. */
static inline __attribute__((format(printf, 1, 2))) int skip_all(const char *reason, ...) {
  va_list arguments;
  va_start(arguments, reason);
  fputs("skipped: ", stdout);
  vprintf(reason, arguments);
  putchar('\n');
  va_end(arguments);
  return 77;
}

/* TEST(name) { ... } defines a test, TEST_WITH(name, begin, end) one with a set-up and a tear-down of its own.
 * RUN_TESTS runs the file's tests in the order of their definitions; RUN_TESTS_EACH does so with a set-up and a
 * tear-down for each test that has none. Both take the group's set-up and tear-down too, and return the number of
 * failures. The environment's ATTUNE_TEST_ONLY names the test to run, with * for any characters. */
static struct CMUnitTest check_tests[64] __attribute__((unused));
static size_t check_count __attribute__((unused));

#define TEST(test) TEST_WITH(test, NULL, NULL)
#define TEST_WITH(test, begin, end)                                                  \
  static void test(void **);                                                         \
  __attribute__((constructor(1000 + __LINE__))) static void add_test_##test(void) {  \
    assert_true(check_count < sizeof(check_tests) / sizeof(*check_tests));           \
    check_tests[check_count++] = (struct CMUnitTest){#test, test, begin, end, NULL}; \
  }                                                                                  \
  static void test(__attribute__((unused)) void **check_state)

/* A set-up or a tear-down: FIXTURE(name) { ... return 0; } */
#define FIXTURE(name) static int name(__attribute__((unused)) void **check_state)

#define RUN_TESTS(group_begin, group_end)                                            \
  (assert_true(check_count > 0), cmocka_set_test_filter(getenv("ATTUNE_TEST_ONLY")), \
   _cmocka_run_group_tests("tests", check_tests, check_count, group_begin, group_end))
#define RUN_TESTS_EACH(begin, end, group_begin, group_end) (check_each(begin, end), RUN_TESTS(group_begin, group_end))

static inline void check_each(CMFixtureFunction begin, CMFixtureFunction end) {
  for (struct CMUnitTest *test = check_tests; test < check_tests + check_count; test++)
    if (!test->setup_func && !test->teardown_func) test->setup_func = begin, test->teardown_func = end;
}

#endif
