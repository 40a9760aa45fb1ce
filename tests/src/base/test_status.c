/* SPDX-License-Identifier: Apache-2.0
 * test_status.c: messages, the log, and the small tools of support.c. */
#include "tests/support/check.h"

#include <attune/device.h>

#include "src/base/support.h"
#ifdef AT_WITH_CUDA
#include "src/cuda/context/state.h"
#include "src/process/fork.h"
#endif

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct heard {
  int lines;
  attune_log_level level;
  char line[256];
} heard;

static void hear(void *user, attune_log_level level, const char *line) {
  heard *h = user;
  h->lines++;
  h->level = level;
  (void)at_copy_text(h->line, sizeof h->line, line);
}

/* Standard error of a child with ATTUNE_LOG=setting: the environment is read once a process. */
static void print_of_child(char *out, size_t size, const char *setting, bool quiet) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    if (setting)
      setenv("ATTUNE_LOG", setting, 1);
    else
      unsetenv("ATTUNE_LOG");
    dup2(ends[1], STDERR_FILENO);
    if (quiet) attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
    at_log(ATTUNE_LOG_ERROR, "disk sda is gone");
    at_log(ATTUNE_LOG_WARNING, "disk %s is slow", "sda");
    at_log(ATTUNE_LOG_INFO, "all is well");
    _exit(0);
  }
  close(ends[1]);
  size_t length = 0;
  for (ssize_t got; length < size - 1 && (got = read(ends[0], out + length, size - 1 - length)) > 0;)
    length += (size_t)got;
  out[length] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(child, NULL, 0), child);
}

/* First of all tests: the parent must not have read ATTUNE_LOG yet. */
TEST(standard_error_hears_what_the_environment_says) {
  char text[512];
  print_of_child(text, sizeof text, NULL, false);
  assert_string_equal(text, "attune: error: disk sda is gone\n");
  print_of_child(text, sizeof text, "shout", false);
  assert_string_equal(text, "attune: error: disk sda is gone\n");
  print_of_child(text, sizeof text, "off", false);
  assert_string_equal(text, "");
  print_of_child(text, sizeof text, "warning", false);
  assert_string_equal(text, "attune: error: disk sda is gone\nattune: warning: disk sda is slow\n");
  print_of_child(text, sizeof text, "info", false);
  assert_string_equal(
      text, "attune: error: disk sda is gone\nattune: warning: disk sda is slow\nattune: info: all is well\n");
  print_of_child(text, sizeof text, "info", true);
  assert_string_equal(text, "");
}

/* Lines stay lines, also behind a prefix; what a line holds does not end it; what is too long is cut. */
TEST(lines) {
  static char longest[2 * AT_MESSAGE_CHARS];
  assert_int_equal(at_fail_lines(ATTUNE_BAD_DATA, (const char *const[]){"a\nb", "  c\td", "  ^"}, 3), ATTUNE_BAD_DATA);
  assert_string_equal(attune_last_message(), "a b\n  c d\n  ^");
  at_fail_prefix(ATTUNE_BAD_DATA, "file\n%d: ", 3);
  assert_string_equal(attune_last_message(), "file 3: a b\n  c d\n  ^");
  memset(longest, '\n', sizeof longest - 1);
  at_fail_lines(ATTUNE_BAD_DATA, (const char *const[]){"x", longest, "y"}, 3);
  assert_int_equal(strlen(attune_last_message()), AT_MESSAGE_CHARS - 1);
  assert_true(strspn(attune_last_message() + 2, " ") == AT_MESSAGE_CHARS - 3);
}

TEST(names) {
  for (int s = ATTUNE_OK; s <= ATTUNE_INTERNAL; s++) {
    assert_string_not_equal(attune_status_string((attune_status)s), "unknown status");
    for (int t = ATTUNE_OK; t < s; t++)
      assert_string_not_equal(attune_status_string((attune_status)s), attune_status_string((attune_status)t));
  }
  assert_string_equal(attune_status_string((attune_status)99), "unknown status");
  assert_string_equal(attune_dtype_name(ATTUNE_BF16), "bf16");
  assert_string_equal(attune_dtype_name((attune_dtype)0), "unknown");
  static const struct {
    const char *name;
    size_t size;
  } dtypes[] = {{"f64", 8},  {"f32", 4},    {"f16", 2},    {"bf16", 2}, {"i32", 4},  {"i64", 8},
                {"i8", 1},   {"i16", 2},    {"u8", 1},     {"u16", 2},  {"u32", 4},  {"u64", 8},
                {"bool", 1}, {"f8e4m3", 1}, {"f8e5m2", 1}, {"c64", 8},  {"c128", 16}};
  for (int i = 0; i < 17; i++) {
    assert_string_equal(attune_dtype_name((attune_dtype)(i + 1)), dtypes[i].name);
    assert_int_equal(attune_dtype_size((attune_dtype)(i + 1)), dtypes[i].size);
  }
  assert_int_equal(attune_dtype_size((attune_dtype)18), 0);
  assert_string_equal(attune_dtype_name((attune_dtype)18), "unknown");
  assert_int_equal(attune_dtype_size((attune_dtype)77), 0);
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", ATTUNE_VERSION_MAJOR, ATTUNE_VERSION_MINOR, ATTUNE_VERSION_PATCH);
  assert_string_equal(attune_version(), version);
}

TEST(a_failure_leaves_one_line) {
  errno = 42;
  assert_int_equal(at_fail(ATTUNE_NOT_FOUND, "no %s at\n%d", "file", 7), ATTUNE_NOT_FOUND);
  assert_string_equal(attune_last_message(), "no file at 7");
  assert_int_equal(errno, 42);
  assert_int_equal(at_fail_prefix(ATTUNE_BAD_DATA, "%s:%d: ", "w.csv", 3), ATTUNE_BAD_DATA);
  assert_string_equal(attune_last_message(), "w.csv:3: no file at 7");
  (void)at_fail(ATTUNE_IO_ERROR, "again: %s", attune_last_message());
  assert_string_equal(attune_last_message(), "again: w.csv:3: no file at 7");
}

TEST(a_long_message_is_cut) {
  char text[2000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  (void)at_fail(ATTUNE_INTERNAL, "%s", text);
  assert_int_equal(strlen(attune_last_message()), AT_MESSAGE_CHARS - 1);
  (void)at_fail_prefix(ATTUNE_INTERNAL, "ab");
  assert_int_equal(strlen(attune_last_message()), AT_MESSAGE_CHARS - 1);
  assert_memory_equal(attune_last_message(), "abxx", 4);
  (void)at_fail_prefix(ATTUNE_INTERNAL, "%s", text);
  assert_int_equal(strlen(attune_last_message()), AT_MESSAGE_CHARS - 1);
}

static void *fail_in_thread(void *arg) {
  bool empty = attune_last_message()[0] == '\0';
  (void)at_fail(ATTUNE_BUSY, "theirs");
  *(bool *)arg = empty;
  return NULL;
}

TEST(a_message_belongs_to_its_thread) {
  bool empty = false;
  pthread_t thread;
  (void)at_fail(ATTUNE_BUSY, "ours");
  assert_int_equal(pthread_create(&thread, NULL, fail_in_thread, &empty), 0);
  pthread_join(thread, NULL);
  assert_true(empty);
  assert_string_equal(attune_last_message(), "ours");
}

TEST(a_callback_hears_its_level) {
  heard h = {0};
  attune_set_log(hear, &h, ATTUNE_LOG_WARNING);
  assert_true(at_log_wanted(ATTUNE_LOG_ERROR) && at_log_wanted(ATTUNE_LOG_WARNING));
  assert_false(at_log_wanted(ATTUNE_LOG_INFO) || at_log_wanted(ATTUNE_LOG_OFF));
  at_log(ATTUNE_LOG_INFO, "not this");
  at_log(ATTUNE_LOG_WARNING, "one\nline %d", 1);
  assert_int_equal(h.lines, 1);
  assert_int_equal(h.level, ATTUNE_LOG_WARNING);
  assert_string_equal(h.line, "one line 1");
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
  at_log(ATTUNE_LOG_ERROR, "nobody");
  assert_int_equal(h.lines, 1);
}

/* It would deadlock if a lock were held, and never end if its own lines came back to it. */
static void log_from_log(void *user, attune_log_level level, const char *line) {
  (void)level;
  (void)line;
  ++*(int *)user;
  at_log(ATTUNE_LOG_ERROR, "inner");
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
}

TEST(a_callback_may_call_attune) {
  int calls = 0;
  attune_set_log(log_from_log, &calls, ATTUNE_LOG_INFO);
  at_log(ATTUNE_LOG_ERROR, "outer");
  at_log(ATTUNE_LOG_ERROR, "after");
  assert_int_equal(calls, 1);
}

TEST(checked_arithmetic) {
  int64_t out = 0;
  assert_true(at_mul_i64(&out, INT64_C(3037000499), INT64_C(3037000499)));
  assert_true(out == INT64_C(9223372030926249001));
  assert_false(at_mul_i64(&out, INT64_C(3037000500), INT64_C(3037000500)));
  assert_false(at_mul_i64(&out, -1, 2) || at_mul_i64(&out, 2, -1));
  assert_true(at_add_i64(&out, INT64_MAX, 0) && out == INT64_MAX);
  assert_false(at_add_i64(&out, INT64_MAX, 1) || at_add_i64(&out, -1, 2));
}

TEST(parsed_integers) {
  int64_t out = 0;
  assert_true(at_parse_i64(&out, "-9223372036854775808") && out == INT64_MIN);
  assert_true(at_parse_i64(&out, "9223372036854775807") && out == INT64_MAX);
  assert_true(at_parse_i64(&out, "007") && out == 7);
  static const char *const wrong[] = {
      "", "-", " 1", "1 ", "+1", "1x", "0x1", "9223372036854775808", "-9223372036854775809", "99999999999999999999"};
  for (size_t i = 0; i < AT_COUNT(wrong); i++) {
    out = 5;
    assert_false(at_parse_i64(&out, wrong[i]));
    assert_true(out == 5);
  }
}

TEST(bounded_text) {
  char out[8] = "";
  size_t at = 0;
  assert_true(at_append(out, sizeof out, &at, "%s", "abc"));
  assert_true(at_append(out, sizeof out, &at, "%d", 1234));
  assert_int_equal(at, 7);
  assert_false(at_append(out, sizeof out, &at, "x"));
  assert_string_equal(out, "abc1234");
  assert_int_equal(at, 7);
  assert_true(at_copy_text(out, sizeof out, "1234567"));
  assert_false(at_copy_text(out, sizeof out, "12345678"));
  assert_string_equal(out, "1234567");
  assert_false(at_copy_text(out, 0, "x"));
}

TEST(the_clock_moves_on) {
  int64_t before = at_now_ns();
  usleep(2000);
  int64_t passed = at_now_ns() - before;
  assert_true(passed >= 2000000 && passed < INT64_C(10000000000));
}

/* ---- the last error ---- */

static void *other_thread(void *unused) {
  (void)unused;
  return (void *)(intptr_t)(attune_last_status() == ATTUNE_OK && attune_last_cuda_error() == 0);
}

TEST(the_last_failure_can_be_asked) {
  pthread_t thread;
  void *clean = NULL;
  (void)attune_clear_error();
  assert_int_equal(attune_last_status(), ATTUNE_OK);
  assert_string_equal(attune_last_message(), "");
  (void)at_fail(ATTUNE_IO_ERROR, "disk sda is gone");
  assert_int_equal(attune_last_status(), ATTUNE_IO_ERROR);
  assert_int_equal(attune_last_cuda_error(), 0);
  (void)at_fail_cuda(at_fail(ATTUNE_DEVICE_ERROR, "lost"), 700);
  assert_int_equal(attune_last_status(), ATTUNE_DEVICE_ERROR);
  assert_int_equal(attune_last_cuda_error(), 700);
  assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
  assert_int_equal(pthread_join(thread, &clean), 0);
  assert_non_null(clean);
  const at_message kept = at_message_keep(); /* what succeeds after all leaves it alone */
  (void)at_fail(ATTUNE_NOT_FOUND, "not here");
  assert_int_equal(at_message_settle(&kept, ATTUNE_OK), ATTUNE_OK);
  assert_int_equal(attune_last_status(), ATTUNE_DEVICE_ERROR);
  assert_int_equal(attune_last_cuda_error(), 700);
  assert_string_equal(attune_last_message(), "lost");
  (void)at_fail_prefix(ATTUNE_BAD_DATA, "row 3: ");
  assert_int_equal(attune_last_status(), ATTUNE_BAD_DATA);
  assert_int_equal(attune_clear_error(), ATTUNE_BAD_DATA);
  assert_int_equal(attune_last_status(), ATTUNE_OK);
  assert_string_equal(attune_last_message(), "");
}

TEST(errors_of_cuda_are_not_the_hosts) {
  attune_device *host = NULL;
  OK(attune_device_get(&host, "host"));
  assert_int_equal(attune_cuda_check(host, 0, "cudaMalloc"), ATTUNE_UNSUPPORTED);
  assert_int_equal(attune_cuda_check(NULL, 0, "cudaMalloc"), ATTUNE_INVALID_ARGUMENT);
}

#ifdef AT_WITH_CUDA
/* A device that is none: what a number of CUDA becomes needs no GPU. */
TEST(errors_of_cuda_become_statuses) {
  at_cuda_device inside = {.generation = at_fork_generation_now()};
  attune_device gpu = {.backend = at_cuda_backend, .name = "cuda:7", .state = &inside};
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
  assert_int_equal(attune_cuda_check(&gpu, 0, "cudaMalloc"), ATTUNE_OK);
  assert_int_equal(attune_cuda_check(&gpu, 2, "cudaMalloc(&p, n)"), ATTUNE_OUT_OF_MEMORY);
  FAILS_SAYING(attune_last_cuda_error(), 2, "cudaMalloc(&p, n) on cuda:7: cudaErrorMemoryAllocation");
  FAILS_SAYING(attune_cuda_check(&gpu, 1, NULL), ATTUNE_INVALID_ARGUMENT, "a call of the program");
  assert_int_equal(attune_cuda_check(&gpu, 600, "cudaStreamQuery"), ATTUNE_NOT_READY);
  assert_int_equal(attune_cuda_check(&gpu, 801, "cudaIpc"), ATTUNE_UNSUPPORTED);
  assert_int_equal(attune_cuda_check(&gpu, 900, "cudaMalloc"), ATTUNE_CAPTURING);
  assert_int_equal(attune_cuda_check(&gpu, 9, "my_kernel<<<>>>"), ATTUNE_DEVICE_ERROR);
  /* One that ends the use of the device: whoever comes later hears of the call that saw it first. */
  at_cuda_scope scope;
  FAILS_SAYING(attune_cuda_check(&gpu, 700, "my_wait"), ATTUNE_DEVICE_ERROR, "my_wait is the first call to notice");
  FAILS_SAYING(attune_cuda_check(&gpu, 719, "another"), ATTUNE_DEVICE_ERROR,
               "cuda:7 has been lost since my_wait reported cudaErrorIllegalAddress");
  FAILS_SAYING(at_cuda_enter(&scope, &gpu), ATTUNE_DEVICE_ERROR, "since my_wait reported cudaErrorIllegalAddress");
  assert_int_equal(attune_last_cuda_error(), 700);
}
#endif

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
