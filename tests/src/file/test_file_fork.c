/* SPDX-License-Identifier: Apache-2.0
 * test_file_fork.c: a process that ends or forks while a thread of it loads a file: it ends, and the child can load
 * too; and one that can have no more threads. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/child.h"

enum { BYTES = 9 << 20, ROUNDS = 4, FORKS = 5 };

static char path[64], content[BYTES], memory[BYTES], mine[BYTES];
static attune_stream *stream;
static attune_file *file;
static atomic_int loads;
static bool no_threads;

int __real_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*fn)(void *), void *arg);

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*fn)(void *), void *arg) {
  return no_threads ? EAGAIN : __real_pthread_create(out, how, fn, arg);
}

static void *load_for_ever(void *unused) {
  (void)unused;
  for (;; loads++) (void)attune_file_load(file, stream, memory, BYTES - 10, 7, NULL);
  return NULL;
}

/* At once, in the calling thread's order. */
static int in_child(void) {
  attune_stream *at_once = attune_stream_default(attune_stream_device(stream));
  if (attune_file_load(file, at_once, mine, BYTES - 5, 5, NULL) != ATTUNE_OK) return 2;
  return memcmp(mine, content + 5, BYTES - 5) == 0 ? 0 : 3;
}

static int as_child(const char *name) {
  attune_device *host = NULL;
  const attune_file_options options = {.direct = strcmp(name, "direct") == 0, .write = 1};
  pthread_t thread;
  snprintf(path, sizeof path, "/tmp/attune-file-XXXXXX");
  for (int i = 0; i < BYTES; i++) content[i] = (char)(i * 31 + i / 251);
  const int made = mkstemp(path);
  EXPECT(made >= 0 && write(made, content, BYTES) == BYTES, "no file");
  close(made);
  EXPECT(attune_device_get(&host, "host") == ATTUNE_OK && attune_stream_create(&stream, host) == ATTUNE_OK &&
             attune_file_open(&file, path, &options) == ATTUNE_OK,
         "%s", attune_last_message());
  unlink(path);
  no_threads = true;
  EXPECT(in_child() == 0, "alone: %s", attune_last_message());
  no_threads = false;
  EXPECT(pthread_create(&thread, NULL, load_for_ever, NULL) == 0, "no thread");
  while (atomic_load(&loads) < 2) sched_yield();
  for (int i = 0, ended = 1; i < FORKS; i++) {
    const pid_t child = fork();
    if (child == 0) _exit(in_child());
    EXPECT(waitpid(child, &ended, 0) == child && ended == 0, "in a child: 0x%x", (unsigned)ended);
  }
  return 0; /* from main, amid a load */
}

TEST(amid_loads) {
  for (int i = 0; i < ROUNDS; i++) assert_int_equal(run_part(i % 2 ? "direct" : "cached"), 0);
}

int main(int argc, char **argv) {
  if (argc > 1) return as_child(argv[1]);
  return RUN_TESTS(NULL, NULL);
}
