/* SPDX-License-Identifier: Apache-2.0
 * test_fork.c: a child of fork has a working host; the streams and events that it inherited fail and do not hang,
 * its generators go on. */
#include "tests/support/check.h"

#include <attune/random.h>

#include "src/base/backend.h"
#include "src/host/host.h"
#include "src/host/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static attune_device *host;

FIXTURE(find_host) {
  return attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

/* Runs check(arg) in a child, ended by SIGALRM should it hang: it must return 0, else the number of what was wrong. */
static void in_child(int (*check)(void *), void *arg) {
  int end = 0;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(600);
    _exit(check(arg));
  }
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_true(WIFEXITED(end));
  assert_int_equal(WEXITSTATUS(end), 0);
}

static void count_member(void *arg, const at_team *team) {
  (void)team;
  atomic_fetch_add((atomic_int *)arg, 1);
}

static bool pool_works(void) {
  atomic_int members = 0;
  at_parallel(3, count_member, &members);
  return atomic_load(&members) == 3;
}

static void set_7(const void *args) {
  **(int *const *)args = 7;
}

static bool stream_works(attune_stream *stream) {
  int value = 0, *slot = &value;
  return at_host_submit(stream, set_7, &slot, sizeof slot) == ATTUNE_OK &&
         attune_stream_synchronize(stream) == ATTUNE_OK && value == 7;
}

static void ignore_line(void *user, attune_log_level level, const char *line) {
  (void)level;
  (void)line;
  ++*(int *)user;
}

static int use_everything(void *arg) {
  (void)arg;
  attune_stream *stream = NULL;
  attune_event *event = NULL;
  int lines = 0;
  if (!pool_works() || !pool_works()) return 1;
  if (!stream_works(attune_stream_default(host))) return 2;
  if (attune_stream_create(&stream, host) != ATTUNE_OK || !stream_works(stream)) return 3;
  if (attune_event_create(&event, host, NULL) != ATTUNE_OK || attune_event_record(event, stream) != ATTUNE_OK ||
      attune_event_synchronize(event) != ATTUNE_OK)
    return 4;
  if (attune_device_synchronize(host) != ATTUNE_OK) return 5;
  attune_event_destroy(event);
  attune_stream_destroy(stream);
  if (at_fail(ATTUNE_BUSY, "child") != ATTUNE_BUSY || strcmp(attune_last_message(), "child") != 0) return 6;
  attune_set_log(ignore_line, &lines, ATTUNE_LOG_INFO);
  at_log(ATTUNE_LOG_INFO, "x");
  return lines == 1 ? 0 : 7;
}

TEST(a_child_has_a_working_host) {
  in_child(use_everything, NULL);
  assert_true(pool_works());
  in_child(use_everything, NULL);
  assert_true(pool_works());
}

typedef struct inherited {
  attune_stream *stream;
  attune_event *event;
} inherited;

static int use_inherited(void *arg) {
  inherited *in = arg;
  int value = 0, *slot = &value;
  char byte = 0;
  if (at_host_submit(in->stream, set_7, &slot, sizeof slot) != ATTUNE_DEVICE_ERROR) return 1;
  if (!strstr(attune_last_message(), "before fork")) return 2;
  if (attune_stream_query(in->stream) != ATTUNE_DEVICE_ERROR) return 3;
  if (attune_stream_synchronize(in->stream) != ATTUNE_DEVICE_ERROR) return 4;
  if (attune_fill(in->stream, &byte, 1, 1) != ATTUNE_DEVICE_ERROR) return 5;
  if (attune_event_query(in->event) != ATTUNE_DEVICE_ERROR) return 6;
  if (attune_event_synchronize(in->event) != ATTUNE_DEVICE_ERROR) return 7;
  if (attune_stream_wait_event(attune_stream_default(host), in->event) != ATTUNE_DEVICE_ERROR) return 8;
  if (attune_event_record(in->event, attune_stream_default(host)) != ATTUNE_DEVICE_ERROR) return 9;
  if (attune_device_synchronize(host) != ATTUNE_OK) return 10; /* the parent's streams are not the child's */
  attune_event_destroy(in->event);
  attune_stream_destroy(in->stream);
  return use_everything(NULL);
}

static atomic_bool gate;

static void wait_for_gate(const void *args) {
  (void)args;
  while (!atomic_load(&gate)) usleep(100);
}

/* The fork happens while the stream's thread works and marks are queued. */
TEST(inherited_streams_fail) {
  inherited in = {0};
  atomic_store(&gate, false);
  assert_int_equal(attune_stream_create(&in.stream, host), ATTUNE_OK);
  assert_int_equal(attune_event_create(&in.event, host, NULL), ATTUNE_OK);
  assert_int_equal(at_host_submit(in.stream, wait_for_gate, NULL, 0), ATTUNE_OK);
  assert_int_equal(attune_event_record(in.event, in.stream), ATTUNE_OK);
  in_child(use_inherited, &in);
  atomic_store(&gate, true);
  assert_true(stream_works(in.stream)); /* the parent's are as before */
  assert_int_equal(attune_event_query(in.event), ATTUNE_OK);
  attune_event_destroy(in.event);
  attune_stream_destroy(in.stream);
}

/* Other threads use the pool, streams and the log all the time while this one forks. */
static atomic_bool ended;

static void *keep_busy(void *arg) {
  int lines = 0;
  (void)arg;
  while (!atomic_load(&ended)) {
    attune_stream *stream = NULL;
    (void)pool_works();
    attune_set_log(ignore_line, &lines, ATTUNE_LOG_INFO);
    if (attune_stream_create(&stream, host) == ATTUNE_OK) (void)stream_works(stream);
    attune_stream_destroy(stream);
  }
  return NULL;
}

static void *keep_logging(void *arg) {
  int lines = 0;
  (void)arg;
  while (!atomic_load(&ended)) attune_set_log(ignore_line, &lines, ATTUNE_LOG_INFO);
  return NULL;
}

/* The sanitizers' own allocators hang in a child that was forked while another thread allocated. */
#if defined(__SANITIZE_ADDRESS__)
#define ALLOCATOR_SURVIVES_FORK 0
#elif defined(__has_feature)
#define ALLOCATOR_SURVIVES_FORK !__has_feature(address_sanitizer)
#else
#define ALLOCATOR_SURVIVES_FORK 1
#endif

TEST(forks_at_any_time) {
  if (!ALLOCATOR_SURVIVES_FORK) {
    print_message("skipped: the sanitizer's allocator does not survive a fork beside other threads\n");
    skip();
  }
  pthread_t busy, logger;
  atomic_store(&ended, false);
  assert_int_equal(pthread_create(&busy, NULL, keep_busy, NULL), 0);
  assert_int_equal(pthread_create(&logger, NULL, keep_logging, NULL), 0);
  for (int i = 0; i < 100; i++) {
    usleep((useconds_t)(i * 7));
    in_child(use_everything, NULL);
  }
  atomic_store(&ended, true);
  pthread_join(busy, NULL);
  pthread_join(logger, NULL);
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
}

/* Another thread draws all the time while this one forks: the child has the generator, whoever held its lock. */
static attune_generator *generator;

static void *keep_drawing(void *arg) {
  float x[4];
  (void)arg;
  while (!atomic_load(&ended))
    (void)attune_random_uniform(generator, attune_stream_default(host), x, ATTUNE_F32, 4, 0, 1);
  return NULL;
}

/* The numbers go on where the parent's were at the fork. */
static int draw_on(void *arg) {
  (void)arg;
  float x[4], again[4];
  uint64_t offset = 0;
  if (attune_generator_get_offset(generator, &offset) != ATTUNE_OK || offset % 4 != 0) return 1;
  if (attune_random_uniform(generator, attune_stream_default(host), x, ATTUNE_F32, 4, 0, 1) != ATTUNE_OK) return 2;
  if (attune_generator_set_offset(generator, offset) != ATTUNE_OK) return 3;
  if (attune_random_uniform(generator, attune_stream_default(host), again, ATTUNE_F32, 4, 0, 1) != ATTUNE_OK) return 4;
  if (memcmp(x, again, sizeof x) != 0) return 5;
  attune_generator_destroy(generator);
  return 0;
}

TEST(generators_survive_a_fork) {
  if (!ALLOCATOR_SURVIVES_FORK) skip();
  pthread_t drawers[3];
  atomic_store(&ended, false);
  assert_int_equal(attune_generator_create(&generator, 7), ATTUNE_OK);
  for (size_t i = 0; i < AT_COUNT(drawers); i++)
    assert_int_equal(pthread_create(&drawers[i], NULL, keep_drawing, NULL), 0);
  for (int i = 0; i < 100; i++) {
    usleep((useconds_t)(i * 7));
    in_child(draw_on, NULL);
  }
  atomic_store(&ended, true);
  for (size_t i = 0; i < AT_COUNT(drawers); i++) pthread_join(drawers[i], NULL);
  attune_generator_destroy(generator);
}

/* A fork from inside a team: the child leaves the team alone and then has a pool of its own. */
typedef struct forked {
  pid_t child;
  int rank;
} forked;

static void fork_inside(void *arg, const at_team *team) {
  forked *f = arg;
  if (team->rank == f->rank) f->child = fork();
}

TEST(a_member_may_fork) {
  forked f = {.rank = 0};
  at_parallel(2, fork_inside, &f);
  if (f.child == 0) {
    alarm(600);
    _exit(use_everything(NULL));
  }
  int end = 0;
  assert_int_equal(waitpid(f.child, &end, 0), f.child);
  assert_true(WIFEXITED(end) && WEXITSTATUS(end) == 0);
  assert_true(pool_works());
}

/* A child of fork that comes back from the function ends; one that goes on has the host as any child. */
static void fork_in_it(void *user) {
  int *codes = user;
  for (int i = 0; i < 2; i++) {
    const pid_t child = fork();
    if (child == 0 && i == 0) return;
    if (child == 0) _exit(attune_device_synchronize(host) == ATTUNE_OK ? 7 : 8);
    for (int wait = 0; wait < 500 && waitpid(child, &codes[i], WNOHANG) == 0; wait++) usleep(10000);
  }
}

TEST(forks_within) {
  int codes[2] = {-1, -1};
  attune_stream *stream = NULL;
  OK(attune_stream_create(&stream, host));
  OK(attune_stream_call(stream, fork_in_it, codes));
  OK(attune_stream_synchronize(stream));
  assert_true(WIFEXITED(codes[0]) && WEXITSTATUS(codes[0]) == 0);
  assert_true(WIFEXITED(codes[1]) && WEXITSTATUS(codes[1]) == 7);
  attune_stream_destroy(stream);
}

int main(void) {
  return RUN_TESTS(find_host, NULL);
}
