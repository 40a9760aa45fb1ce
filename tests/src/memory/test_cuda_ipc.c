/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_ipc.c: memory of a GPU between processes, in both kinds of segments. What needs no GPU is in test_ipc.c. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include "tests/support/other_process.h"

#include <fcntl.h>

#include <cuda_runtime_api.h>

#define MIB ((size_t)1 << 20)
#define LARGE (50 * 20 * MIB) /* more pages than one answer of the exporter brings */

static attune_device *device;
static attune_stream *stream;

/* ---- the other process ---- */

static bool has(const void *memory, int value) {
  unsigned char bytes[64];
  if (attune_copy(stream, bytes, memory, sizeof bytes) != ATTUNE_OK || attune_stream_synchronize(stream) != ATTUNE_OK)
    return false;
  return bytes[0] == value && bytes[63] == value;
}

/* 0x11 at both ends becomes 0x22. */
static int use(const attune_memory_handle *handle, attune_device *where) {
  char *p = NULL, *again = NULL;
  if (attune_memory_import((void **)&p, where, handle) != ATTUNE_OK) return 10;
  const int before = count_descriptors(false);
  if (attune_memory_import((void **)&again, where, handle) != ATTUNE_OK || p != again) return 11;
  if (count_descriptors(false) != before) return 12;
  char *end = p + handle->bytes - 64;
  if (!has(p, 0x11) || !has(end, 0x11)) return 13;
  if (attune_fill(stream, p, 0x22, 64) != ATTUNE_OK || attune_fill(stream, end, 0x22, 64) != ATTUNE_OK) return 14;
  if (attune_stream_synchronize(stream) != ATTUNE_OK) return 15;
  if (attune_memory_close(p, where) != ATTUNE_OK || !has(end, 0x22)) return 16; /* it is open still */
  if (attune_memory_close(p, where) != ATTUNE_OK) return 17;
  if (attune_memory_close(p, where) != ATTUNE_INVALID_ARGUMENT) return 18;
  return cudaPeekAtLastError() == cudaSuccess ? 0 : 19;
}

static int refuse(const attune_memory_handle *handle, attune_status status, const char *part) {
  void *p = device;
  if (attune_memory_import(&p, device, handle) != status) return 20;
  if (p || !strstr(attune_last_message(), part)) return 21;
  return cudaPeekAtLastError() == cudaSuccess ? 0 : 22;
}

/* Another byte in a handle of either kind: a status, and the next call works. */
static int damaged(const attune_memory_handle *handle) {
  for (size_t i = 0; i < sizeof handle->base; i += 7) {
    attune_memory_handle wrong = *handle;
    void *p = NULL;
    wrong.base[i] ^= 0x55;
    if (attune_memory_import(&p, device, &wrong) == ATTUNE_OK && attune_memory_close(p, device) != ATTUNE_OK) return 30;
  }
  return use(handle, device);
}

/* Writes a handle, then ends with its input. */
static int exporter(void) {
  attune_memory_handle handle;
  char text[HANDLE_TEXT], byte;
  void *p = NULL;
  if (attune_alloc(&p, stream, 4096) != ATTUNE_OK || attune_memory_export(&handle, p) != ATTUNE_OK) return 40;
  write_handle(text, &handle);
  if (write(STDOUT_FILENO, text, sizeof text) != (ssize_t)sizeof text) return 41;
  return read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 42;
}

static int other_process(int count, char **arguments) {
  attune_memory_handle handle;
  attune_device *where = NULL;
  const char *what = arguments[1];
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return 2;
  if (attune_device_get(&where, strcmp(what, "peer") == 0 ? "cuda:1" : "cuda:0") != ATTUNE_OK) return 2;
  if (attune_stream_create(&stream, where) != ATTUNE_OK) return 3;
  if (strcmp(what, "export") == 0) return exporter();
  if (count < 3 || !read_handle(&handle, arguments[2])) return 4;
  if (strcmp(what, "use") == 0 || strcmp(what, "peer") == 0) return use(&handle, where);
  if (strcmp(what, "damaged") == 0) return damaged(&handle);
  if (strcmp(what, "freed") == 0) return refuse(&handle, ATTUNE_NOT_FOUND, "freed");
  return 5;
}

/* ---- this process ---- */

FIXTURE(open_stream) {
  return attune_stream_create(&stream, device) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_stream) {
  attune_stream_destroy(stream);
  return 0;
}

static void set(const char *settings) {
  OK(attune_memory_empty_cache(device));
  OK(attune_memory_configure(device, settings));
}

static char *take(size_t bytes) {
  void *p = NULL;
  OK(attune_alloc(&p, stream, bytes));
  OK(attune_fill(stream, p, 0x11, bytes));
  OK(attune_stream_synchronize(stream));
  return p;
}

static void memory_of(const char *settings, size_t bytes, const char *what) {
  attune_memory_handle handle, first;
  set(settings);
  char *before = take(4096), *p = take(bytes);
  OK(attune_memory_export(&first, before));
  OK(attune_memory_export(&handle, p));
  assert_int_equal(handle.bytes, bytes);
  if (bytes == 4096) {
    assert_int_equal(handle.offset, 4096);
    assert_memory_equal(first.base, handle.base, sizeof first.base);
  }
  finish_other(start_other(what, &handle, NULL));
  assert_true(has(p, 0x22));
  assert_true(has(p + bytes - 64, 0x22));
  OK(attune_free(p, stream));
  OK(attune_free(before, stream));
}

TEST(another_process_reads_and_writes) {
  memory_of("expandable_segments:true", 4096, "use");
  memory_of("expandable_segments:true", LARGE, "use");
  memory_of("expandable_segments:false", 4096, "use");
  memory_of("expandable_segments:false", LARGE, "use");
  set("expandable_segments:true");
}

static char *whole; /* what the program's allocator has, to be given out in pieces */
static size_t given;

static void *cut(void *user, size_t bytes, attune_device *of, attune_stream *in) {
  (void)user;
  (void)of;
  (void)in;
  char *piece = whole + given;
  given += (bytes + 511) / 512 * 512;
  return piece;
}

static void keep(void *user, void *pointer, size_t bytes, attune_device *of, attune_stream *in) {
  (void)user;
  (void)pointer;
  (void)bytes;
  (void)of;
  (void)in;
}

/* By cudaMalloc: exported with its place in the allocation around it. */
TEST(memory_of_the_programs_allocator) {
  const attune_allocator own = {.alloc = cut, .free = keep};
  attune_memory_handle handle;
  void *pool = NULL;
  OK(attune_memory_empty_cache(device));
  assert_int_equal(cudaMalloc((void **)&whole, 4 * MIB), cudaSuccess);
  OK(attune_memory_set_allocator(device, &own));
  char *before = take(4096), *p = take(8192);
  OK(attune_memory_export(&handle, p));
  assert_int_equal(handle.offset, 4096);
  finish_other(start_other("use", &handle, NULL));
  assert_true(has(p, 0x22));
  assert_true(has(p + 8192 - 64, 0x22));
  OK(attune_free(p, stream));
  OK(attune_free(before, stream));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(cudaFree(whole), cudaSuccess);
  given = 0;
  assert_int_equal(cudaMallocAsync(&pool, 4 * MIB, attune_stream_native(stream)), cudaSuccess);
  whole = pool;
  p = take(4096);
  FAILS(attune_memory_export(&handle, p), ATTUNE_UNSUPPORTED); /* the driver's pool has no such handles */
  OK(attune_free(p, stream));
  assert_int_equal(cudaFreeAsync(pool, attune_stream_native(stream)), cudaSuccess);
  OK(attune_memory_set_allocator(device, NULL));
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

TEST(damaged_handles_are_refused) {
  memory_of("expandable_segments:true", 4096, "damaged");
}

TEST(another_device_of_another_process) {
  attune_device *peer = NULL;
  int can = 0;
  if (attune_device_get(&peer, "cuda:1") != ATTUNE_OK) {
    printf("skipped: %s\n", attune_last_message());
    skip();
  }
  OK(attune_device_can_access_peer(&can, peer, device));
  if (!can) {
    printf("skipped: cuda:1 cannot access the memory of cuda:0\n");
    skip();
  }
  memory_of("expandable_segments:true", 4096, "peer");
}

/* Exporting memory does not keep it alive. */
TEST(freed_memory_goes_back) {
  attune_memory_handle handle;
  uint64_t before = 0, after = 0;
  set("expandable_segments:true");
  OK(attune_device_memory_info(device, &before, NULL));
  char *p = take(LARGE);
  OK(attune_memory_export(&handle, p));
  finish_other(start_other("use", &handle, NULL));
  OK(attune_free(p, stream));
  finish_other(start_other("freed", &handle, NULL)); /* its pages are mapped still */
  OK(attune_memory_empty_cache(device));
  OK(attune_device_memory_info(device, &after, NULL));
  assert_true(after + 64 * MIB >= before);
  finish_other(start_other("freed", &handle, NULL));
}

TEST(an_exporter_that_ended) {
  attune_memory_handle handle;
  int in[2], out[2];
  char text[HANDLE_TEXT];
  void *p = NULL;
  posix_spawn_file_actions_t actions;
  assert_int_equal(pipe2(in, O_CLOEXEC), 0);
  assert_int_equal(pipe2(out, O_CLOEXEC), 0);
  assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO), 0);
  assert_int_equal(posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO), 0);
  pid_t child = start_other("export", NULL, &actions);
  assert_int_equal(posix_spawn_file_actions_destroy(&actions), 0);
  close(in[0]);
  close(out[1]);
  assert_int_equal(read(out[0], text, sizeof text), (ssize_t)sizeof text);
  assert_true(read_handle(&handle, text));
  OK(attune_memory_import(&p, device, &handle));
  close(in[1]);
  finish_other(child);
  close(out[0]);
  OK(attune_fill(stream, p, 3, 4096)); /* what is open stays */
  assert_true(has(p, 3));
  OK(attune_memory_close(p, device));
  FAILS_SAYING(attune_memory_import(&p, device, &handle), ATTUNE_NOT_FOUND, "has ended");
}

TEST(a_process_refuses_its_own) {
  attune_memory_handle handle;
  void *opened = NULL;
  char *p = take(4096);
  OK(attune_memory_export(&handle, p));
  assert_int_equal(attune_memory_import(&opened, device, &handle), ATTUNE_INVALID_ARGUMENT);
  assert_null(opened);
  OK(attune_free(p, stream));
}

int main(int argc, char **argv) {
  if (argc > 1) return other_process(argc, argv);
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("%s", attune_last_message());
  return RUN_TESTS(open_stream, close_stream);
}
