/* SPDX-License-Identifier: Apache-2.0
 * test_race.c: the race check on what each call uses, what orders calls, and what its reports say. */
#include "tests/support/check.h"

#include <attune/attune.h>
#include <pthread.h>

static attune_device *host;
static attune_stream *a, *b;
static attune_tuner *tuner;
static const char *program; /* this one's file */

static struct {
  int count;
  char text[1024], remedy[320], first[64], second[64], operands[64], access[64], allocation_stream[80];
  const void *begin, *allocation;
  size_t bytes, allocation_bytes;
  uint64_t numbers[2];
} heard;

static void hear(void *user, const attune_race *race) {
  assert_ptr_equal(user, &heard);
  heard.count++;
  snprintf(heard.text, sizeof heard.text, "%s", race->text);
  snprintf(heard.remedy, sizeof heard.remedy, "%s", race->remedy);
  snprintf(heard.first, sizeof heard.first, "%s", race->first.call);
  snprintf(heard.second, sizeof heard.second, "%s", race->second.call);
  snprintf(heard.operands, sizeof heard.operands, "%s|%s", race->first.operand, race->second.operand);
  snprintf(heard.access, sizeof heard.access, "%s|%s", race->first.access, race->second.access);
  snprintf(heard.allocation_stream, sizeof heard.allocation_stream, "%s", race->allocation_stream);
  heard.begin = race->second.begin;
  heard.bytes = race->second.bytes;
  heard.allocation = race->allocation;
  heard.allocation_bytes = race->allocation_bytes;
  heard.numbers[0] = race->first.number;
  heard.numbers[1] = race->second.number;
}

/* How many races the check heard of since the last look. */
static int races(void) {
  const int count = heard.count;
  heard.count = 0;
  return count;
}

static char logged[4096];
static void keep_log(void *user, attune_log_level level, const char *line) {
  (void)user;
  assert_int_equal(level, ATTUNE_LOG_ERROR);
  strncat(logged, line, sizeof logged - strlen(logged) - 2);
  strcat(logged, "\n");
}

FIXTURE(begin) {
  memset(&heard, 0, sizeof heard);
  *logged = '\0';
  attune_set_log(keep_log, NULL, ATTUNE_LOG_ERROR);
  if (attune_stream_create(&a, host) != ATTUNE_OK || attune_stream_create(&b, host) != ATTUNE_OK) return -1;
  return attune_set_race_check(1, hear, &heard) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(end) {
  attune_stream_destroy(a);
  attune_stream_destroy(b);
  return attune_set_race_check(0, NULL, NULL) == ATTUNE_OK ? 0 : -1;
}

/* torch's example: numbers are drawn on one stream and multiplied in place on another. */
TEST_WITH(test_second_stream, begin, end) {
  float *x = NULL;
  attune_generator *generator = NULL;
  OK(attune_generator_create(&generator, 1));
  OK(attune_alloc((void **)&x, a, 8 * sizeof *x));
  OK(attune_random_uniform(generator, a, x, ATTUNE_F32, 8, 0.0, 1.0));
  const attune_tensor t = {.name = "x", .data = x, .dtype = ATTUNE_F32, .dims = 2, .sizes = {4, 2}};
  const attune_elementwise_operands operands = {.outputs = &t, .output_count = 1, .inputs = &t, .input_count = 1};
  OK(attune_elementwise(tuner, b, "x * 5", &operands));
  assert_true(heard.count >= 1);
  assert_string_equal(heard.first, "attune_random_uniform");
  assert_string_equal(heard.second, "attune_elementwise");
  assert_int_equal(attune_race_count(), heard.count);
  assert_ptr_equal(heard.allocation, x);
  assert_int_equal(heard.bytes, 32);
  assert_int_equal(heard.numbers[0], 2);
  assert_int_equal(heard.numbers[1], 1);
  assert_non_null(strstr(heard.allocation_stream, "of host"));
  assert_non_null(strstr(heard.remedy, "attune_stream_wait_stream"));
  assert_non_null(strstr(heard.text, heard.remedy));
  assert_non_null(strstr(logged, "race: attune_elementwise writes x, 32 bytes"));
  (void)races();
  OK(attune_stream_synchronize(a));
  OK(attune_stream_synchronize(b));
  OK(attune_random_uniform(generator, a, x, ATTUNE_F32, 8, 0.0, 1.0));
  OK(attune_stream_wait_stream(b, a));
  OK(attune_elementwise(tuner, b, "x * 5", &operands));
  OK(attune_stream_wait_stream(a, b));
  OK(attune_free(x, a));
  assert_int_equal(races(), 0);
  attune_generator_destroy(generator);
}

/* Each kind of use, by one call on stream a and one note on stream b, at the first byte, the last one, and beside. */
static void expect_uses(const char *memory, size_t bytes, bool writes) {
  for (int i = 0; i < 4; i++) {
    const size_t at = i == 0 ? 0 : i == 1 ? bytes - 1 : bytes;
    const attune_use use = {"byte", memory + at, 1, i == 3 ? ATTUNE_WRITES : writes ? ATTUNE_READS : ATTUNE_WRITES};
    OK(attune_note_use(b, "the program's kernel", &use, 1));
    assert_int_equal(races(), i < 2);
    OK(attune_note_wait(NULL, b)); /* the next one is not about this one */
  }
}

TEST_WITH(test_copies_and_fills, begin, end) {
  char *from = malloc(256), *to = malloc(256);
  OK(attune_fill(a, to, 3, 100));
  expect_uses(to, 100, true);
  OK(attune_fill(a, from, 3, 100));
  OK(attune_stream_synchronize(a));
  OK(attune_copy(a, to, from, 60));
  expect_uses(to, 60, true);
  OK(attune_copy(a, to, from, 60));
  expect_uses(from, 60, false);
  OK(attune_stream_synchronize(a));
  free(from);
  free(to);
}

/* D of 3 columns of 2 numbers, 4 apart: what lies in the gaps is free. */
TEST_WITH(test_gemm, begin, end) {
  float *m = calloc(64, sizeof *m), *x = calloc(64, sizeof *x);
  attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 2, .n = 3, .k = 2, .ldd = 4, .ldc = 4};
  for (int i = 0; i < 4; i++) {
    const attune_gemm_operands o = {.alpha = 1.0, .a = x, .b = x + 8, .beta = i & 1, .c = m, .d = m};
    p.layout = i < 2 ? ATTUNE_COLUMN_MAJOR : ATTUNE_ROW_MAJOR;
    p.ldd = p.ldc = 4;
    OK(attune_gemm(tuner, a, &p, &o));
    const int per_run = i < 2 ? 2 : 3;
    for (int k = 0; k < 12; k++) {
      const attune_use use = {"number", m + k, sizeof *m, ATTUNE_READS};
      OK(attune_note_use(b, "reader", &use, 1));
      const bool inside = k % 4 < per_run && k / 4 < 6 / per_run;
      assert_int_equal(races(), inside);
      if (inside) assert_string_equal(heard.access, i & 1 ? "reads and writes|reads" : "writes|reads");
    }
    const attune_use inputs[] = {{"a", x, 4 * sizeof *x, ATTUNE_READS}, {"b", x + 8, 6 * sizeof *x, ATTUNE_READS}};
    OK(attune_note_use(b, "reader", inputs, 2));
    assert_int_equal(races(), 0);
    const attune_use write = {"a", x + 3, sizeof *x, ATTUNE_WRITES};
    OK(attune_note_use(b, "writer", &write, 1));
    assert_int_equal(races(), 1);
    assert_string_equal(heard.operands, "a|a");
    const attune_use write_b = {"b", x + 13, sizeof *x, ATTUNE_WRITES};
    OK(attune_note_use(b, "writer", &write_b, 1));
    assert_int_equal(races(), 1);
    assert_string_equal(heard.operands, "b|b");
    OK(attune_stream_synchronize(a));
    OK(attune_note_wait(NULL, b));
  }
  free(m);
  free(x);
}

/* A plan is checked as the call; alpha = 0 reads neither A nor B. */
TEST_WITH(test_gemm_plan, begin, end) {
  float *m = calloc(64, sizeof *m);
  attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 2, .n = 2, .k = 2};
  attune_plan *plan = NULL;
  attune_gemm_operands o = {.alpha = 1.0, .a = m + 16, .b = m + 32, .beta = 1.0, .c = m + 48, .d = m};
  OK(attune_gemm_plan_create(&plan, tuner, a, &p, &o));
  OK(attune_gemm_plan_run(plan, a, &o));
  for (int i = 0; i < 4; i++) {
    const attune_use use = {"it", m + 16 * i, 4, ATTUNE_WRITES};
    OK(attune_note_use(b, "writer", &use, 1));
    assert_int_equal(races(), 1);
    const char *const operands[] = {"d|it", "a|it", "b|it", "c|it"};
    assert_string_equal(heard.operands, operands[i]);
  }
  OK(attune_stream_synchronize(a));
  OK(attune_note_wait(NULL, b));
  o.alpha = 0.0;
  OK(attune_gemm_plan_run(plan, a, &o));
  const attune_use unread = {"it", m + 16, 16, ATTUNE_WRITES};
  OK(attune_note_use(b, "writer", &unread, 1));
  assert_int_equal(races(), 0);
  OK(attune_stream_synchronize(a));
  attune_plan_destroy(plan);
  free(m);
}

TEST_WITH(test_elementwise_plan, begin, end) {
  float *m = calloc(64, sizeof *m);
  const int64_t every_second = 2, reversed = -1;
  const attune_tensor out = {.data = m, .dtype = ATTUNE_F32, .dims = 1, .sizes = {8}, .strides = &every_second};
  const attune_tensor in = {
      .name = "x", .data = m + 40, .dtype = ATTUNE_F32, .dims = 1, .sizes = {8}, .strides = &reversed};
  const attune_elementwise_operands o = {.outputs = &out, .output_count = 1, .inputs = &in, .input_count = 1};
  attune_plan *plan = NULL;
  OK(attune_elementwise_plan_create(&plan, tuner, a, "x + 1", &o));
  OK(attune_elementwise_plan_run(plan, a, &o));
  for (int k = 0; k < 64; k++) {
    const attune_use use = {"it", m + k, 4, ATTUNE_WRITES};
    OK(attune_note_use(b, "writer", &use, 1));
    assert_int_equal(races(), (k < 16 && k % 2 == 0) || (k > 32 && k <= 40));
  }
  OK(attune_stream_synchronize(a));
  attune_plan_destroy(plan);
  free(m);
}

/* Memory freed while another stream uses it; the same with attune_record_use, and after a wait. */
TEST_WITH(test_frees, begin, end) {
  void *memory = NULL;
  for (int i = 0; i < 4; i++) {
    OK(attune_alloc(&memory, a, 1000));
    OK(attune_stream_wait_stream(b, a));
    OK(attune_fill(b, memory, 1, 1000));
    if (i == 1) OK(attune_record_use(memory, b));
    if (i == 2) OK(attune_stream_wait_stream(a, b));
    OK(attune_free(memory, i == 3 ? b : a));
    assert_int_equal(races(), i == 0);
    if (i == 0) {
      assert_string_equal(heard.second, "attune_free");
      assert_string_equal(heard.access, "writes|frees");
      assert_non_null(strstr(heard.remedy, "attune_record_use"));
    }
  }
  OK(attune_alloc(&memory, a, 1000));
  OK(attune_fill(b, memory, 1, 1000));
  assert_int_equal(races(), 1);
  assert_string_equal(heard.access, "allocates|writes");
  OK(attune_stream_synchronize(b));
  OK(attune_free(memory, a));
  OK(attune_pinned_alloc(&memory, host, 100));
  OK(attune_fill(b, memory, 1, 100));
  assert_int_equal(races(), 0);
  OK(attune_pinned_free(memory));
  assert_int_equal(races(), 1);
  assert_string_equal(heard.second, "attune_pinned_free");
  OK(attune_stream_synchronize(b));
}

/* What the calling thread itself does, and what it knows to be done. */
TEST_WITH(test_host, begin, end) {
  char *memory = malloc(100);
  attune_event *event = NULL;
  OK(attune_event_create(&event, host, NULL));
  for (int i = 0; i < 8; i++) {
    const attune_use use = {"it", memory, 100, ATTUNE_READS};
    OK(attune_fill(a, memory, 1, 100));
    OK(attune_event_record(event, a));
    attune_status status = ATTUNE_OK;
    if (i == 1) OK(attune_stream_synchronize(a));
    if (i == 2) OK(attune_event_synchronize(event));
    if (i == 3) OK(attune_device_synchronize(host));
    if (i == 4)
      while ((status = attune_stream_query(a)) != ATTUNE_OK) assert_int_equal(status, ATTUNE_NOT_READY);
    if (i == 5)
      while ((status = attune_event_query(event)) != ATTUNE_OK) assert_int_equal(status, ATTUNE_NOT_READY);
    if (i == 6) OK(attune_stream_wait_event(attune_stream_default(host), event));
    if (i == 7) OK(attune_note_wait(NULL, a));
    OK(attune_note_use(NULL, "main", &use, 1));
    assert_int_equal(races(), i == 0);
    if (i == 0) assert_non_null(strstr(heard.remedy, "attune_stream_synchronize"));
    OK(attune_stream_synchronize(a));
  }
  OK(attune_fill(attune_stream_default(host), memory, 1, 100)); /* runs at once: others come after it */
  OK(attune_fill(a, memory, 1, 100));
  assert_int_equal(races(), 0);
  OK(attune_stream_synchronize(a));
  attune_event_destroy(event);
  free(memory);
}

static attune_status fork_in_capture(void *user, attune_stream *stream) {
  char *memory = user;
  OK(attune_stream_wait_stream(b, stream));
  OK(attune_fill(b, memory, 1, 50));
  OK(attune_fill(stream, memory + 40, 2, 50));
  return attune_stream_wait_stream(stream, b);
}

static attune_status one_fill(void *user, attune_stream *stream) {
  return attune_fill(stream, user, 3, 64);
}

TEST_WITH(test_graphs, begin, end) {
  char *memory = malloc(200);
  attune_graph *graph = NULL, *clone = NULL;
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, a, &(attune_capture_options){.keep_graph = 1}, fork_in_capture, memory));
  assert_int_equal(races(), 1);
  OK(attune_graph_update(graph, a, one_fill, memory, NULL));
  OK(attune_fill(b, memory, 1, 10));
  assert_int_equal(races(), 0);
  OK(attune_graph_replay(graph, a));
  assert_int_equal(races(), 1);
  assert_string_equal(heard.second, "attune_graph_replay of attune_fill");
  OK(attune_stream_synchronize(b));
  OK(attune_graph_replay(graph, a));
  assert_int_equal(races(), 0);
  OK(attune_stream_synchronize(a));
  OK(attune_graph_clone(&clone, graph)); /* knows what it uses, also when the first graph is gone */
  attune_graph_destroy(graph);
  OK(attune_fill(b, memory, 1, 10));
  OK(attune_graph_replay(clone, a));
  assert_int_equal(races(), 1);
  OK(attune_device_synchronize(host));
  attune_graph_destroy(clone);
  free(memory);
}

/* A repeated mistake is logged once, and reported each time. */
TEST_WITH(test_log_once, begin, end) {
  char *memory = malloc(100);
  for (int i = 0; i < 50; i++) {
    OK(attune_fill(a, memory, 1, 100));
    OK(attune_fill(b, memory, 1, 100));
  }
  assert_int_equal(races(), 99);
  assert_int_equal(attune_race_count(), 99);
  int lines = 0;
  for (const char *at = logged; (at = strchr(at, '\n')) != NULL; at++) lines++;
  assert_int_equal(lines, 2); /* b after a, and a after b */
  OK(attune_device_synchronize(host));
  free(memory);
}

/* A function that runs as work of a stream may use attune itself: it is not watched. */
static void call_attune(void *user) {
  (void)attune_fill(attune_stream_default(host), user, 2, 100);
}

TEST_WITH(test_function_of_stream, begin, end) {
  char *memory = malloc(100);
  OK(attune_fill(a, memory, 1, 100));
  OK(attune_stream_call(a, call_attune, memory));
  OK(attune_fill(a, memory, 3, 100));
  OK(attune_stream_synchronize(a));
  assert_int_equal(races(), 0);
  assert_int_equal(memory[0], 3);
  free(memory);
}

TEST_WITH(test_arguments, begin, end) {
  const attune_use good = {"x", &heard, 4, ATTUNE_READS};
  attune_use bad = good;
  FAILS(attune_note_use(a, NULL, &good, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_note_use(a, "name", &good, 33), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_note_use(a, "name", &good, -1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_note_use(a, "name", NULL, 1), ATTUNE_INVALID_ARGUMENT);
  OK(attune_note_use(a, "name", NULL, 0));
  bad.access = (attune_access)4;
  FAILS(attune_note_use(a, "name", &bad, 1), ATTUNE_INVALID_ARGUMENT);
  bad = good;
  bad.pointer = NULL;
  FAILS_SAYING(attune_note_use(a, "name", &bad, 1), ATTUNE_INVALID_ARGUMENT, "uses[0].pointer");
  bad.bytes = 0;
  OK(attune_note_use(a, "name", &bad, 1));
  bad = good;
  bad.bytes = SIZE_MAX;
  FAILS(attune_note_use(a, "name", &bad, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_note_wait(a, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_set_race_check(0, hear, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_get_race_check(), 1);
  OK(attune_set_race_check(0, NULL, NULL));
  assert_int_equal(attune_get_race_check(), 0);
  char *memory = malloc(8);
  OK(attune_fill(a, memory, 1, 8));
  OK(attune_fill(b, memory, 1, 8));
  assert_int_equal(races(), 0);
  OK(attune_device_synchronize(host));
  free(memory);
}

/* Threads that each have streams of their own and memory of their own: no race, whatever their order; streams come and
 * go, and the check is switched meanwhile. */
static void *churn(void *user) {
  char *memory = user;
  for (int i = 0; i < 40; i++) {
    attune_stream *one = NULL, *two = NULL;
    void *more = NULL;
    OK(attune_stream_create(&one, host));
    OK(attune_stream_create(&two, host));
    OK(attune_alloc(&more, one, 5000));
    OK(attune_fill(one, memory, i & 255, 64));
    OK(attune_stream_wait_stream(two, one));
    OK(attune_copy(two, more, memory, 64));
    OK(attune_record_use(more, two));
    OK(attune_free(more, one));
    attune_stream_destroy(one);
    attune_stream_destroy(two);
  }
  return NULL;
}

TEST_WITH(test_threads, begin, end) {
  pthread_t threads[4];
  char *memory = calloc(4, 64);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, churn, memory + 64 * i), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  assert_int_equal(races(), 0);
  free(memory);
}

/* A program that knows nothing of the check. */
static int plain_program(void) {
  attune_stream *one = NULL, *two = NULL;
  char memory[64];
  OK(attune_device_get(&host, "host"));
  OK(attune_stream_create(&one, host));
  OK(attune_stream_create(&two, host));
  OK(attune_fill(one, memory, 1, sizeof memory));
  OK(attune_fill(two, memory, 2, sizeof memory));
  attune_stream_destroy(one);
  attune_stream_destroy(two);
  return 0;
}

TEST(test_environment) {
  static const char *const values[] = {"races", "off", ""};
  for (int i = 0; i < 3; i++) {
    char command[600], line[1200] = "";
    snprintf(command, sizeof command, "ATTUNE_CHECK=%s '%s' plain 2>&1", values[i], program);
    FILE *from = popen(command, "r");
    assert_non_null(from);
    const char *got = fgets(line, sizeof line, from);
    assert_int_equal(pclose(from), 0);
    assert_int_equal(got != NULL, i == 0);
    if (i == 0) assert_non_null(strstr(line, "race: attune_fill writes destination, 64 bytes"));
  }
}

FIXTURE(start) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  return attune_tuner_create(&tuner, &(attune_tuner_options){.database = ":memory:"}) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(stop) {
  attune_tuner_destroy(tuner);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "plain") == 0) return plain_program();
  program = argv[0];
  return RUN_TESTS(start, stop);
}
