/* SPDX-License-Identifier: Apache-2.0
 * test_candidate_build.c: what candidates need is made by a thread of its own, list after list, while the caller does
 * something else. */
#include "tests/support/check.h"

#include <pthread.h>

#include "tuning/search/candidate_build.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char made[200][AT_CONFIGURATION_CHARS];
static int made_count;
static pthread_t maker;
static const int problem = 7;

/* Begins only when the test lets it. */
static void make(const at_implementation *self, const void *what, attune_device *device,
                 const at_configuration *configurations, int count) {
  (void)self;
  pthread_mutex_lock(&lock);
  assert_ptr_equal(what, &problem);
  assert_null(device);
  maker = pthread_self();
  for (int i = 0; i < count; i++) at_copy_text(made[made_count++], sizeof made[0], configurations[i].text);
  pthread_mutex_unlock(&lock);
}

static const at_implementation one = {.name = "one", .prepare_many = make}, two = {.name = "two", .prepare_many = make};

TEST(a_thread_makes_all) {
  static at_candidate_build build;
  const at_configuration a[] = {{"a=1"}, {"a=2"}}, b[] = {{"b=1"}};
  made_count = 0;
  assert_int_equal(at_candidate_build_add(&build, &one, a, 2), 2);
  assert_int_equal(at_candidate_build_add(&build, &two, b, 1), 1);
  pthread_mutex_lock(&lock);
  at_candidate_build_start(&build, &problem, NULL);
  assert_false(at_candidate_build_done(&build));
  pthread_mutex_unlock(&lock);
  at_candidate_build_wait(&build);
  assert_true(at_candidate_build_done(&build));
  assert_int_equal(at_candidate_build_made(&build), 3);
  assert_int_equal(made_count, 3);
  assert_string_equal(made[0], "a=1");
  assert_string_equal(made[1], "a=2");
  assert_string_equal(made[2], "b=1");
  assert_false(pthread_equal(maker, pthread_self()));
  at_candidate_build_wait(&build);
}

/* Candidates not yet begun are left out; those under way are finished, and counted from the first on. */
TEST(what_is_left_is_not_made) {
  static at_candidate_build build;
  const at_configuration a[] = {{"a=1"}, {"a=2"}, {"a=3"}, {"a=4"}, {"a=5"}};
  made_count = 0;
  build.at_once = 2;
  assert_int_equal(at_candidate_build_add(&build, &one, a, 5), 5);
  pthread_mutex_lock(&lock);
  at_candidate_build_start(&build, &problem, NULL);
  assert_int_equal(at_candidate_build_made(&build), 0);
  assert_false(at_candidate_build_left(&build));
  at_candidate_build_leave(&build);
  assert_true(at_candidate_build_left(&build));
  pthread_mutex_unlock(&lock);
  at_candidate_build_wait(&build);
  assert_false(at_candidate_build_done(&build));
  assert_in_range(made_count, 0, 2);
  assert_int_equal(at_candidate_build_made(&build), made_count);
}

TEST(nothing_to_make_is_done) {
  static at_candidate_build build;
  at_candidate_build_start(&build, &problem, NULL);
  assert_true(at_candidate_build_done(&build));
  at_candidate_build_wait(&build);
}

TEST(it_takes_what_there_is_room_for) {
  static at_candidate_build build;
  static at_configuration many[AT_CANDIDATE_BUILD_ROOM];
  assert_int_equal(at_candidate_build_add(&build, &one, many, 0), 0);
  assert_int_equal(at_candidate_build_add(&build, &one, many, AT_CANDIDATE_BUILD_ROOM - 1),
                   AT_CANDIDATE_BUILD_ROOM - 1);
  assert_int_equal(at_candidate_build_add(&build, &two, many, 5), 1);
  assert_int_equal(build.count, AT_CANDIDATE_BUILD_ROOM);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
