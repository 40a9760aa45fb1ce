/* SPDX-License-Identifier: Apache-2.0
 * test_file.c: files to memory and back, as host devices do it and as GPUs do it, through buffers: what arrives where,
 * in which order, and what is told when the file ends, shrinks, fills the disk or breaks. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/file/file.h"
#include "tests/support/host_devices.h"

#define MIB ((size_t)1 << 20)
#define ROOM (20 * MIB)

static char folder[64], path[96];
static char *memory, *content;
static attune_stream *as_host, *as_gpu;

/* ---- the system's calls, as a test wants them ---- */

static struct {
  atomic_int calls, fails_at; /* the number of the call that fails; 0: none */
  int error;
  size_t most;         /* that a call moves; 0: no bound */
  int interrupt;       /* each other call is interrupted */
  int shrink_to;       /* the file, before call fails_at */
  int direct;          /* how direct calls fail; 0: they do not */
  atomic_bool *before; /* seen at the first call */
  bool seen;
} fault;

ssize_t __real_at_file_pread(int descriptor, void *out, size_t bytes, off_t offset);
ssize_t __real_at_file_pwrite(int descriptor, const void *in, size_t bytes, off_t offset);
ssize_t __wrap_at_file_pread(int descriptor, void *out, size_t bytes, off_t offset);
ssize_t __wrap_at_file_pwrite(int descriptor, const void *in, size_t bytes, off_t offset);

/* 0: the call is made. */
static int intervene(int descriptor) {
  const int call = atomic_fetch_add(&fault.calls, 1) + 1;
  if (call == 1 && fault.before) fault.seen = atomic_load(fault.before);
  if (fault.direct && (fcntl(descriptor, F_GETFL) & O_DIRECT)) return fault.direct;
  if (fault.interrupt && call % 2) return EINTR;
  if (!fault.fails_at || call < fault.fails_at) return 0;
  if (fault.shrink_to) assert_int_equal(truncate(path, fault.shrink_to), 0);
  return fault.shrink_to ? 0 : fault.error;
}

ssize_t __wrap_at_file_pread(int descriptor, void *out, size_t bytes, off_t offset) {
  errno = intervene(descriptor);
  if (errno) return -1;
  return __real_at_file_pread(descriptor, out, fault.most && bytes > fault.most ? fault.most : bytes, offset);
}

ssize_t __wrap_at_file_pwrite(int descriptor, const void *in, size_t bytes, off_t offset) {
  errno = intervene(descriptor);
  if (errno) return -1;
  return __real_at_file_pwrite(descriptor, in, fault.most && bytes > fault.most ? fault.most : bytes, offset);
}

/* ---- around each test ---- */

FIXTURE(begin_all) {
  if (host_devices_begin() != 0) return -1;
  for (int i = 0; i < HOST_DEVICES; i++)
    host_devices[i].backend.kind = ATTUNE_DEVICE_CUDA; /* files go through buffers */
  as_gpu = streams[0];
  attune_device *host = NULL;
  if (attune_device_get(&host, "host") != ATTUNE_OK || attune_stream_create(&as_host, host) != ATTUNE_OK) return -1;
  snprintf(folder, sizeof folder, "/tmp/attune-file-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/file", folder);
  memory = malloc(ROOM);
  content = malloc(ROOM);
  return memory && content ? 0 : -1;
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
  if (host_devices_wait() != ATTUNE_OK) return -1; /* a save that failed may still copy */
  memset(&fault, 0, sizeof fault);
  for (size_t i = 0; i < ROOM / 8; i++) ((uint64_t *)(void *)content)[i] = i * 0x9e3779b97f4a7c15u;
  return 0;
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

static const attune_file_options reading = {0}, writing = {.write = 1, .create = 1, .truncate = 1};

/* ---- bytes ---- */

static void load_one(attune_stream *stream, int direct, size_t bytes, size_t offset) {
  size_t moved = 0;
  attune_file *file = open_file((attune_file_options){.direct = direct});
  memset(memory, 0x5a, bytes + 2);
  OK(attune_file_load(file, stream, memory + 1, bytes, offset, &moved));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(moved, bytes);
  if (memcmp(memory + 1, content + offset, bytes) != 0) fail_msg("%zu bytes at %zu, direct %d", bytes, offset, direct);
  assert_true(memory[0] == 0x5a && memory[bytes + 1] == 0x5a);
  attune_file_close(file);
}

static void save_one(attune_stream *stream, int direct, size_t bytes, size_t offset) {
  size_t moved = 0;
  struct stat found;
  attune_file *file = open_file((attune_file_options){.write = 1, .create = 1, .truncate = 1, .direct = direct});
  OK(attune_file_save(file, stream, content + 1, bytes, offset, &moved));
  if (bytes == 1) OK(attune_file_flush(file));
  assert_int_equal(moved, bytes);
  assert_int_equal(stat(path, &found), 0);
  assert_int_equal(found.st_size, offset + bytes);
  memset(memory, 1, offset + bytes);
  const int from = open(path, O_RDONLY);
  assert_int_equal(pread(from, memory, offset + bytes, 0), offset + bytes);
  close(from);
  for (size_t i = 0; i < offset; i++)
    if (memory[i] != 0) fail_msg("byte %zu was written", i);
  if (memcmp(memory + offset, content + 1, bytes) != 0) fail_msg("%zu bytes at %zu, direct %d", bytes, offset, direct);
  attune_file_close(file);
}

TEST(loads_and_saves) {
  static const struct {
    size_t bytes, offset;
  } cases[] = {{1, 0}, {1, 4095}, {4096, 0}, {4097, 4095}, {100, 8 * MIB - 50}, {8 * MIB, 0}, {17 * MIB + 5, 3}};
  for (int gpu = 0; gpu < 2; gpu++)
    for (int direct = 0; direct < 2; direct++)
      for (size_t i = 0; i < AT_COUNT(cases) - !gpu; i++) { /* the last: more blocks than buffers */
        save_one(gpu ? as_gpu : as_host, direct, cases[i].bytes, cases[i].offset);
        write_file(cases[i].offset + cases[i].bytes + (i % 2) * 100);
        load_one(gpu ? as_gpu : as_host, direct, cases[i].bytes, cases[i].offset);
      }
}

TEST(far_offsets) {
  const uint64_t far = ((uint64_t)5 << 30) + 123;
  uint64_t size = 0;
  for (int gpu = 0; gpu < 2; gpu++) {
    attune_stream *stream = gpu ? as_gpu : as_host;
    attune_file *file = open_file((attune_file_options){.write = 1, .create = 1, .truncate = 1, .direct = gpu});
    OK(attune_file_save(file, stream, content, 1000, far, NULL));
    OK(attune_file_size(&size, file));
    assert_true(size == far + 1000);
    memset(memory, 1, 1010);
    OK(attune_file_load(file, stream, memory, 1010, far - 10, NULL));
    OK(attune_stream_synchronize(stream));
    assert_true(memory[9] == 0);
    assert_memory_equal(memory + 10, content, 1000);
    FAILS(attune_file_load(file, stream, memory, 10, UINT64_MAX - 5, NULL), ATTUNE_INVALID_ARGUMENT);
    attune_file_close(file);
    assert_int_equal(unlink(path), 0);
  }
}

/* ---- order ---- */

typedef struct gate {
  sem_t open;
  atomic_bool passed;
  char *to;
} gate;

static void pass(void *user) {
  gate *g = user;
  while (sem_wait(&g->open) != 0) {}
  memset(g->to, 7, 100);
  atomic_store(&g->passed, true);
}

static void *open_gate(void *user) {
  usleep(20000); /* a call that does not wait is through by then, as a rule; one that waits is right at any time */
  sem_post(&((gate *)user)->open);
  return NULL;
}

TEST(after_what_the_stream_had) {
  for (int gpu = 0; gpu < 2; gpu++)
    for (int saves = 0; saves < 2; saves++) {
      attune_stream *stream = gpu ? as_gpu : as_host;
      gate g = {.to = memory};
      pthread_t opener;
      write_file(100);
      attune_file *file = open_file((attune_file_options){.write = 1});
      memset(memory, 0, 100);
      fault.before = saves || !gpu ? &g.passed : NULL; /* a load through buffers reads ahead */
      atomic_store(&fault.calls, 0);
      assert_int_equal(sem_init(&g.open, 0, 0), 0);
      OK(attune_stream_call(stream, pass, &g));
      assert_int_equal(pthread_create(&opener, NULL, open_gate, &g), 0);
      OK(saves ? attune_file_save(file, stream, memory, 100, 0, NULL)
               : attune_file_load(file, stream, memory, 100, 0, NULL));
      char after[100];
      OK(attune_copy(stream, after, memory, 100)); /* and before what it is given later */
      OK(attune_stream_synchronize(stream));
      pthread_join(opener, NULL);
      if (fault.before) assert_true(fault.seen);
      if (saves) {
        OK(attune_file_load(file, as_host, memory, 100, 0, NULL));
        assert_int_equal(memory[99], 7);
      } else {
        assert_memory_equal(after, content, 100);
      }
      attune_file_close(file);
      sem_destroy(&g.open);
    }
}

/* ---- what goes wrong ---- */

#define TOLD(words) \
  if (!strstr(attune_last_message(), words)) fail_msg("%s", attune_last_message())

TEST(the_file_ends) {
  for (int way = 0; way < 3; way++) {
    attune_stream *stream = way ? as_gpu : as_host;
    size_t moved = 0;
    write_file(9 * MIB + 1000);
    attune_file *file = open_file((attune_file_options){.direct = way == 2});
    memset(memory, 0x5a, 12 * MIB);
    FAILS(attune_file_load(file, stream, memory, 10 * MIB, 5, &moved), ATTUNE_IO_ERROR);
    TOLD("the file ends at byte 9438184, after 9438179 of 10485760 bytes; it should reach byte 10485765");
    OK(attune_stream_synchronize(stream));
    assert_int_equal(moved, 9 * MIB + 995);
    assert_memory_equal(memory, content + 5, moved);
    assert_true(memory[moved] == 0x5a);
    FAILS(attune_file_load(file, stream, memory, 1, 20 * MIB, &moved), ATTUNE_IO_ERROR);
    TOLD("the file ends before byte 20971520; it should reach byte 20971521");
    assert_int_equal(moved, 0);
    assert_int_equal(at_file_is_direct(file), file->direct >= 0); /* an end amid a grain is no refusal */
    attune_file_close(file);
  }
}

TEST(the_file_shrinks) {
  size_t moved = 0;
  write_file(17 * MIB);
  attune_file *file = open_file((attune_file_options){.direct = 1});
  fault.fails_at = 2;
  fault.shrink_to = 3 * (int)MIB;
  FAILS(attune_file_load(file, as_gpu, memory, 17 * MIB, 0, &moved), ATTUNE_IO_ERROR);
  TOLD("the file ends at byte");
  OK(attune_stream_synchronize(as_gpu));
  assert_true(moved >= 3 * MIB && moved <= 4 * MIB); /* one call came before: perhaps of the block after the new end */
  assert_memory_equal(memory, content, moved);
  attune_file_close(file);
}

TEST(the_disk_breaks) {
  size_t moved = 0;
  write_file(MIB);
  attune_file *file = open_file((attune_file_options){.write = 1});
  fault.fails_at = 3;
  fault.error = EIO;
  fault.most = 1000;
  FAILS(attune_file_load(file, as_gpu, memory, 10000, 100, &moved), ATTUNE_IO_ERROR);
  TOLD("reading the file at byte 2100: Input/output error, after 2000 of 10000 bytes");
  assert_int_equal(moved, 2000);
  OK(attune_stream_synchronize(as_gpu));
  assert_memory_equal(memory, content + 100, 2000);
  atomic_store(&fault.calls, 0);
  fault.error = ENOSPC;
  FAILS(attune_file_save(file, as_gpu, content, 10000, 100, &moved), ATTUNE_IO_ERROR);
  TOLD("writing the file at byte 2100: No space left on device, after 2000 of 10000 bytes");
  assert_int_equal(moved, 2000);
  atomic_store(&fault.calls, 0);
  FAILS(attune_file_save(file, as_host, content, 10000, 100, &moved), ATTUNE_IO_ERROR);
  assert_int_equal(moved, 2000);
  fault.most = 0;
  fault.fails_at = 2;
  atomic_store(&fault.calls, 0); /* the second block of 1 MiB */
  FAILS(attune_file_save(file, as_gpu, content, 8 * MIB, 0, &moved), ATTUNE_IO_ERROR);
  assert_int_equal(moved, MIB);
  fault.error = EIO;
  for (int gpu = 0; gpu < 2; gpu++) { /* all slices, or blocks, but one */
    atomic_store(&fault.calls, 0);
    FAILS(attune_file_load(file, gpu ? as_gpu : as_host, memory, MIB * 2, 0, &moved), ATTUNE_IO_ERROR);
    assert_true(moved == 0 || moved == (gpu ? MIB : MIB / 2 + 4096)); /* the first one, or none */
  }
  attune_file_close(file);
}

TEST(signals_and_small_steps) {
  size_t moved = 0;
  for (int way = 0; way < 4; way++) {
    attune_stream *stream = way % 2 ? as_gpu : as_host;
    attune_file *file = open_file((attune_file_options){.write = 1, .create = 1, .truncate = 1, .direct = way / 2});
    fault.interrupt = 1;
    fault.most = way / 2 ? 65536 : 60001; /* direct calls stop at grains only */
    OK(attune_file_save(file, stream, content, 9 * MIB + 7, 11, &moved));
    assert_int_equal(moved, 9 * MIB + 7);
    memset(memory, 0, 10 * MIB);
    OK(attune_file_load(file, stream, memory, 9 * MIB + 7, 11, &moved));
    OK(attune_stream_synchronize(stream));
    assert_memory_equal(memory, content, 9 * MIB + 7);
    attune_file_close(file);
  }
}

TEST(no_direct_calls_after_all) {
  for (int saves = 0; saves < 2; saves++) {
    write_file(9 * MIB);
    attune_file *file = open_file((attune_file_options){.direct = 1, .write = 1});
    if (file->direct < 0) file->direct = open(path, O_RDWR | O_DIRECT);
    fault.direct = EINVAL;
    if (saves)
      OK(attune_file_save(file, as_gpu, content + 1, 9 * MIB, 0, NULL));
    else
      OK(attune_file_load(file, as_gpu, memory, 9 * MIB, 0, NULL));
    OK(attune_stream_synchronize(as_gpu));
    assert_string_equal(attune_file_describe(file), "copies");
    if (saves) OK(attune_file_load(file, as_host, memory, 9 * MIB, 0, NULL));
    assert_memory_equal(memory, content + saves, 9 * MIB);
    attune_file_close(file);
  }
}

/* The limit on files raises no signal, which would end the program. */
TEST(limit_of_files) {
  struct rlimit before, low;
  size_t moved = 0;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  low = (struct rlimit){3 * MIB, before.rlim_max};
  attune_file *file = open_file(writing);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
  const attune_status status = attune_file_save(file, as_gpu, content, 9 * MIB, 0, &moved);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(status, ATTUNE_IO_ERROR);
  TOLD("File too large");
  assert_true(moved > 0 && moved <= 3 * MIB);
  attune_file_close(file);
}

/* ---- what is refused ---- */

#define REFUSED(call, status, words) \
  do {                               \
    FAILS(call, status);             \
    TOLD(words);                     \
  } while (0)

TEST(files_that_cannot_be) {
  attune_file *file = (attune_file *)path;
  char pipe[128];
  (void)unlink(path);
  REFUSED(attune_file_open(NULL, path, NULL), ATTUNE_INVALID_ARGUMENT, "out is NULL");
  REFUSED(attune_file_open(&file, NULL, NULL), ATTUNE_INVALID_ARGUMENT, "path is NULL");
  assert_null(file);
  REFUSED(attune_file_open(&file, "", NULL), ATTUNE_INVALID_ARGUMENT, "path is empty");
  REFUSED(attune_file_open(&file, path, NULL), ATTUNE_NOT_FOUND, "No such file");
  REFUSED(attune_file_open(&file, folder, NULL), ATTUNE_INVALID_ARGUMENT, "a directory, not a regular file");
  REFUSED(attune_file_open(&file, folder, &writing), ATTUNE_INVALID_ARGUMENT, "directory");
  REFUSED(attune_file_open(&file, path, &(attune_file_options){.create = 1}), ATTUNE_INVALID_ARGUMENT,
          "options.create is set without");
  REFUSED(attune_file_open(&file, path, &(attune_file_options){.way = (attune_file_way)5}), ATTUNE_INVALID_ARGUMENT,
          "options.way is 5");
  snprintf(pipe, sizeof pipe, "%s/pipe", folder);
  assert_int_equal(mkfifo(pipe, 0600), 0);
  REFUSED(attune_file_open(&file, pipe, NULL), ATTUNE_INVALID_ARGUMENT, "not a regular file");
  attune_file_close(NULL);
  assert_string_equal(attune_file_describe(NULL), "");
}

TEST(calls_that_cannot_be) {
  attune_graph *graph = NULL;
  uint64_t size = 0;
  size_t moved = 5;
  write_file(100);
  attune_file *file = open_file(reading);
  assert_string_equal(attune_file_describe(file), "copies");
  REFUSED(attune_file_load(NULL, as_host, memory, 1, 0, &moved), ATTUNE_INVALID_ARGUMENT, "file is NULL");
  assert_int_equal(moved, 0);
  REFUSED(attune_file_load(file, NULL, memory, 1, 0, NULL), ATTUNE_INVALID_ARGUMENT, "stream is NULL");
  REFUSED(attune_file_load(file, as_host, NULL, 1, 0, NULL), ATTUNE_INVALID_ARGUMENT, "destination is NULL");
  REFUSED(attune_file_load(file, as_host, memory, SIZE_MAX, 0, NULL), ATTUNE_INVALID_ARGUMENT, "bytes is");
  REFUSED(attune_file_save(file, as_host, memory, 1, 0, NULL), ATTUNE_INVALID_ARGUMENT, "opened for reading");
  OK(attune_file_load(file, as_host, NULL, 0, 1000, NULL));
  REFUSED(attune_file_size(NULL, file), ATTUNE_INVALID_ARGUMENT, "out is NULL");
  REFUSED(attune_file_size(&size, NULL), ATTUNE_INVALID_ARGUMENT, "file is NULL");
  REFUSED(attune_file_flush(NULL), ATTUNE_INVALID_ARGUMENT, "file is NULL");
  REFUSED(attune_file_register_memory(NULL, memory, 1), ATTUNE_INVALID_ARGUMENT, "device is NULL");
  REFUSED(attune_file_register_memory(devices[0], NULL, 1), ATTUNE_INVALID_ARGUMENT, "pointer is NULL");
  REFUSED(attune_file_register_memory(devices[0], memory, 0), ATTUNE_INVALID_ARGUMENT, "bytes is 0");
  REFUSED(attune_file_forget_memory(devices[0], NULL), ATTUNE_INVALID_ARGUMENT, "pointer is NULL");
  OK(attune_file_register_memory(devices[0], memory, 100)); /* without cuFile: nothing to do */
  OK(attune_file_forget_memory(devices[0], memory));
  OK(attune_graph_create(&graph, attune_stream_device(as_host)));
  OK(attune_graph_capture_begin(graph, as_host, NULL));
  FAILS(attune_file_load(file, as_host, memory, 1, 0, NULL), ATTUNE_CAPTURING);
  OK(attune_graph_capture_end(graph, as_host));
  attune_graph_destroy(graph);
  attune_file_close(file);
}

TEST(the_race_check_knows) {
  write_file(100);
  attune_file *file = open_file((attune_file_options){.write = 1});
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
  OK(attune_set_race_check(1, NULL, NULL));
  OK(attune_file_load(file, as_gpu, memory, 100, 0, NULL));
  const attune_use last = {"it", memory + 99, 1, ATTUNE_READS}, next = {"it", memory + 100, 1, ATTUNE_WRITES};
  OK(attune_note_use(streams[1], "the program's kernel", &next, 1));
  assert_int_equal(attune_race_count(), 0);
  OK(attune_note_use(streams[1], "the program's kernel", &last, 1));
  assert_int_equal(attune_race_count(), 1);
  OK(host_devices_wait());
  OK(attune_file_save(file, as_gpu, memory, 100, 0, NULL));
  const attune_use again = {"it", memory, 100, ATTUNE_WRITES};
  OK(attune_note_use(streams[1], "the program's kernel", &again, 1)); /* the save waited */
  assert_int_equal(attune_race_count(), 1);
  OK(attune_file_save(file, as_gpu, memory, 100, 0, NULL)); /* but not for that */
  assert_int_equal(attune_race_count(), 2);
  OK(attune_set_race_check(0, NULL, NULL));
  attune_set_log(NULL, NULL, ATTUNE_LOG_ERROR);
  attune_file_close(file);
}

TEST(in_a_child) {
  int ended = 0;
  write_file(100);
  attune_file *file = open_file(reading);
  attune_stream *at_once = attune_stream_default(attune_stream_device(as_host));
  const pid_t child = fork();
  if (child == 0) {
    const bool good =
        attune_file_load(file, at_once, memory, 100, 0, NULL) == ATTUNE_OK && memcmp(memory, content, 100) == 0;
    _exit(good ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  attune_file_close(file);
}

int main(void) {
  return RUN_TESTS_EACH(begin, NULL, begin_all, end_all);
}
