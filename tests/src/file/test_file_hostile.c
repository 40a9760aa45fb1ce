/* SPDX-License-Identifier: Apache-2.0
 * test_file_hostile.c: files in hostile surroundings: what is no file, leases, no descriptors left, threads that are
 * cancelled; and how many requests a direct load has under way. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "src/file/file.h"
#include "src/host/threads.h"
#include "tests/support/host_devices.h"

#define MIB ((size_t)1 << 20)
#define ROOM (20 * MIB)

enum { IN_FLIGHT = 8 };

static char folder[64], path[96];
static char *memory, *content;
static attune_stream *as_host, *as_gpu;

/* ---- the system's calls, as a test wants them ---- */

static struct {
  pthread_mutex_t lock;
  pthread_cond_t came;
  int together; /* calls that wait for each other; 0: none does */
  int inside, most;
  bool alone; /* they did not come */
  atomic_int calls, fails_at;
} fault = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};

ssize_t __real_at_file_pread(int descriptor, void *out, size_t bytes, off_t offset);
ssize_t __wrap_at_file_pread(int descriptor, void *out, size_t bytes, off_t offset);

/* The first calls wait until so many are under way; a minute is for ever. */
static void meet(void) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 60;
  pthread_mutex_lock(&fault.lock);
  if (++fault.inside > fault.most) fault.most = fault.inside;
  pthread_cond_broadcast(&fault.came);
  while (fault.most < fault.together && !fault.alone)
    if (pthread_cond_timedwait(&fault.came, &fault.lock, &end) == ETIMEDOUT) fault.alone = true;
  pthread_mutex_unlock(&fault.lock);
}

static void part(void) {
  pthread_mutex_lock(&fault.lock);
  fault.inside--;
  pthread_mutex_unlock(&fault.lock);
}

ssize_t __wrap_at_file_pread(int descriptor, void *out, size_t bytes, off_t offset) {
  const int call = atomic_fetch_add(&fault.calls, 1) + 1;
  if (call == atomic_load(&fault.fails_at)) {
    errno = EIO;
    return -1;
  }
  if (fault.together) meet();
  const ssize_t n = __real_at_file_pread(descriptor, out, bytes, offset);
  if (fault.together) part();
  return n;
}

/* ---- around each test ---- */

static void nothing(void *unused, const at_team *team) {
  (void)unused;
  (void)team;
}

FIXTURE(begin_all) {
  attune_device *host = NULL;
  if (host_devices_begin() != 0) return -1;
  at_parallel(4, nothing, NULL); /* the pool's threads first: one on the stack of a joined one is a leak to valgrind */
  for (int i = 0; i < HOST_DEVICES; i++)
    host_devices[i].backend.kind = ATTUNE_DEVICE_CUDA; /* files go through buffers */
  as_gpu = streams[0];
  if (attune_device_get(&host, "host") != ATTUNE_OK || attune_stream_create(&as_host, host) != ATTUNE_OK) return -1;
  snprintf(folder, sizeof folder, "/tmp/attune-file-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/file", folder);
  memory = malloc(ROOM);
  content = malloc(ROOM);
  if (!memory || !content) return -1;
  for (size_t i = 0; i < ROOM / 8; i++) ((uint64_t *)(void *)content)[i] = i * 0x9e3779b97f4a7c15u;
  return 0;
}

FIXTURE(end_all) {
  char command[96];
  attune_stream_destroy(as_host);
  host_devices_end();
  free(memory);
  free(content);
  snprintf(command, sizeof command, "rm -rf -- '%s'", folder);
  return system(command);
}

FIXTURE(begin) {
  fault.together = fault.inside = fault.most = 0;
  fault.alone = false;
  atomic_store(&fault.calls, 0);
  atomic_store(&fault.fails_at, 0);
  return host_devices_wait() == ATTUNE_OK ? 0 : -1;
}

static void write_file(size_t bytes) {
  const int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(to >= 0);
  assert_int_equal(write(to, content, bytes), bytes);
  close(to);
}

static attune_file *open_file(attune_file_options options) {
  attune_file *file = NULL;
  OK(attune_file_open(&file, path, &options));
  return file;
}

#define REFUSED(call, status, words)                                                  \
  do {                                                                                \
    FAILS(call, status);                                                              \
    if (!strstr(attune_last_message(), words)) fail_msg("%s", attune_last_message()); \
  } while (0)

static int descriptors(void) {
  int count = 0;
  DIR *all = opendir("/proc/self/fd");
  assert_non_null(all);
  while (readdir(all)) count++;
  closedir(all);
  return count;
}

/* ---- requests under way ---- */

TEST(a_direct_load_keeps_the_disk_busy) {
  write_file(17 * MIB);
  attune_file *file = open_file((attune_file_options){.direct = 1});
  if (!at_file_is_direct(file)) {
    attune_file_close(file);
    skip();
  }
  fault.together = IN_FLIGHT;
  OK(attune_file_load(file, as_gpu, memory, 17 * MIB - 5, 3, NULL));
  OK(attune_stream_synchronize(as_gpu));
  assert_false(fault.alone);
  assert_int_equal(fault.most, IN_FLIGHT);
  assert_memory_equal(memory, content + 3, 17 * MIB - 5);
  attune_file_close(file);
}

/* Whichever call fails, in whichever lane: what came before it is told and there. */
TEST(any_call_breaks) {
  write_file(17 * MIB);
  for (int direct = 0; direct < 2; direct++) {
    attune_file *file = open_file((attune_file_options){.direct = direct});
    for (int call = 1; call <= 9; call += 2) {
      size_t moved = 0;
      memset(memory, 0, 17 * MIB);
      atomic_store(&fault.calls, 0);
      atomic_store(&fault.fails_at, call);
      REFUSED(attune_file_load(file, as_gpu, memory, 17 * MIB - 9, 9, &moved), ATTUNE_IO_ERROR, "Input/output error");
      OK(attune_stream_synchronize(as_gpu));
      assert_true(moved < 17 * MIB - 9);
      assert_memory_equal(memory, content + 9, moved);
    }
    attune_file_close(file);
  }
}

/* ---- what is no file ---- */

/* Opening is no question: it lets who waits for a FIFO's other end go on, and starts devices. */
TEST(what_is_no_file_is_not_opened) {
  attune_file *file = NULL;
  char pipe[128], seen[4096];
  snprintf(pipe, sizeof pipe, "%s/pipe", folder);
  assert_int_equal(mkfifo(pipe, 0600), 0);
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  assert_true(watch >= 0 && inotify_add_watch(watch, pipe, IN_OPEN) >= 0);
  for (int write = 0; write < 2; write++) {
    const attune_file_options options = {.write = write, .create = write, .truncate = write};
    REFUSED(attune_file_open(&file, pipe, &options), ATTUNE_INVALID_ARGUMENT, "not a regular file");
    assert_true(read(watch, seen, sizeof seen) < 0 && errno == EAGAIN);
    REFUSED(attune_file_open(&file, folder, &options), ATTUNE_INVALID_ARGUMENT, "a directory");
    REFUSED(attune_file_open(&file, "/dev/null", &options), ATTUNE_INVALID_ARGUMENT, "not a regular file");
  }
  close(watch);
}

TEST(a_socket_is_no_file) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  attune_file *file = NULL;
  snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", folder);
  const int end = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(end >= 0);
  assert_int_equal(bind(end, (struct sockaddr *)&name, sizeof name), 0);
  REFUSED(attune_file_open(&file, name.sun_path, NULL), ATTUNE_INVALID_ARGUMENT, "not a regular file");
  close(end);
}

static int leased = -1;

static void give_lease_back(int number) {
  (void)number;
  (void)fcntl(leased, F_SETLEASE, F_UNLCK);
}

/* Another program holds the file until it is asked for it: an open waits for that, and is interrupted meanwhile. */
TEST(a_leased_file) {
  const struct sigaction back = {.sa_handler = give_lease_back};
  struct sigaction before;
  write_file(100);
  leased = open(path, O_RDONLY | O_CLOEXEC);
  assert_true(leased >= 0);
  if (fcntl(leased, F_SETLEASE, F_RDLCK) != 0) {
    close(leased);
    skip();
  }
  assert_int_equal(sigaction(SIGIO, &back, &before), 0);
  attune_file *file = open_file((attune_file_options){.write = 1});
  OK(attune_file_load(file, as_host, memory, 100, 0, NULL));
  assert_int_equal(sigaction(SIGIO, &before, NULL), 0);
  attune_file_close(file);
  close(leased);
}

/* ---- nothing left ---- */

TEST(no_descriptors_left) {
  struct rlimit before, low;
  attune_file *file = NULL;
  int taken[64], count = 0;
  write_file(100);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int free_from = open(path, O_RDONLY | O_CLOEXEC);
  close(free_from);
  low = (struct rlimit){(rlim_t)free_from + 1, before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0); /* one is left: the file's own, and none for its direct calls */
  const attune_status direct = attune_file_open(&file, path, &(attune_file_options){.direct = 1});
  while (count < 64 && (taken[count] = dup(0)) >= 0) count++;
  const attune_status plain = attune_file_open(&file, path, NULL);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  while (count > 0) close(taken[--count]);
  assert_int_equal(direct, ATTUNE_IO_ERROR);
  assert_int_equal(plain, ATTUNE_IO_ERROR);
  assert_null(file);
}

TEST(nothing_is_kept) {
  attune_file *file = NULL;
  write_file(3 * MIB);
  const int before = descriptors();
  for (int i = 0; i < 200; i++) {
    OK(attune_file_open(&file, path, &(attune_file_options){.direct = 1, .write = 1}));
    OK(attune_file_load(file, as_gpu, memory, 3 * MIB, 0, NULL));
    FAILS(attune_file_load(file, as_gpu, memory, MIB, 3 * MIB, NULL), ATTUNE_IO_ERROR);
    OK(attune_file_save(file, as_gpu, content, 5000, 100, NULL));
    attune_file_close(file);
    FAILS(attune_file_open(&file, folder, NULL), ATTUNE_INVALID_ARGUMENT);
  }
  assert_true(descriptors() < before + 20); /* the library may open some of its own, once */
}

/* ---- threads and processes ---- */

typedef struct cancelled {
  attune_file *file;
  attune_stream *stream;
  char *to;
  size_t moved;
  attune_status status;
} cancelled;

static void *load_cancelled(void *arg) {
  cancelled *c = arg;
  pthread_cancel(pthread_self());
  c->status = attune_file_load(c->file, c->stream, c->to, 9 * MIB, 0, &c->moved);
  pthread_testcancel();
  return NULL;
}

/* It ends when the call is over: others work with what lies on its stack. */
TEST(a_thread_is_cancelled) {
  write_file(9 * MIB);
  for (int way = 0; way < 4; way++) {
    pthread_t thread;
    void *ended = NULL;
    attune_file *file = open_file((attune_file_options){.direct = way / 2});
    cancelled c = {file, way % 2 ? as_gpu : as_host, memory, 0, ATTUNE_IO_ERROR};
    assert_int_equal(pthread_create(&thread, NULL, load_cancelled, &c), 0);
    assert_int_equal(pthread_join(thread, &ended), 0);
    assert_true(ended == PTHREAD_CANCELED);
    assert_int_equal(c.status, ATTUNE_OK);
    assert_int_equal(c.moved, 9 * MIB);
    OK(attune_stream_synchronize(c.stream));
    attune_file_close(file);
  }
}

typedef struct many {
  attune_file *file;
  attune_stream *stream;
  char *to;
  size_t from;
  bool good;
} many;

static void *load_many(void *arg) {
  many *m = arg;
  m->good = true;
  for (int i = 0; i < 10; i++) {
    memset(m->to, 0, 4 * MIB);
    m->good = m->good && attune_file_load(m->file, m->stream, m->to, 4 * MIB, m->from, NULL) == ATTUNE_OK &&
              attune_stream_synchronize(m->stream) == ATTUNE_OK && memcmp(m->to, content + m->from, 4 * MIB) == 0;
  }
  return NULL;
}

TEST(two_threads_and_one_file) {
  write_file(17 * MIB);
  for (int direct = 0; direct < 2; direct++) {
    pthread_t thread;
    attune_file *file = open_file((attune_file_options){.direct = direct});
    many one = {file, as_gpu, memory, 1, false}, other = {file, as_host, memory + 8 * MIB, 12 * MIB, false};
    assert_int_equal(pthread_create(&thread, NULL, load_many, &one), 0);
    (void)load_many(&other);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(one.good && other.good);
    attune_file_close(file);
  }
}

/* A call that no file system takes says nothing of this one. */
TEST(beyond_every_file) {
  write_file(MIB);
  attune_file *file = open_file((attune_file_options){.write = 1, .direct = 1});
  char before[32];
  size_t moved = 1;
  (void)snprintf(before, sizeof before, "%s", attune_file_describe(file));
  assert_int_equal(attune_file_load(file, as_gpu, memory, 1, INT64_MAX - 1, &moved), ATTUNE_IO_ERROR);
  assert_int_equal(moved, 0);
  assert_string_equal(attune_file_describe(file), before);
  assert_int_equal(attune_file_save(file, as_gpu, memory, 8192, (uint64_t)INT64_MAX - 8192, &moved), ATTUNE_IO_ERROR);
  assert_int_equal(moved, 0);
  assert_string_equal(attune_file_describe(file), before);
  assert_int_equal(attune_file_load(file, as_gpu, memory, MIB, 0, &moved), ATTUNE_OK);
  assert_int_equal(attune_stream_synchronize(as_gpu), ATTUNE_OK);
  assert_memory_equal(memory, content, MIB);
  attune_file_close(file);
}

int main(void) {
  return RUN_TESTS_EACH(begin, NULL, begin_all, end_all);
}
