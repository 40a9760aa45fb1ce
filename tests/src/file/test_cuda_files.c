/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_files.c: files to memory of a GPU and back, by each way that the machine has, on each file system that the
 * test can write to: by cuFile too where it takes the file. */
#include "tests/support/check.h"
#include "tests/support/gpu.h"

#include <attune/attune.h>

#include <unistd.h>

enum { BYTES = 40 << 20 };

static attune_stream *stream;
static char *right, *got;
static void *from, *to;

/* An odd place in the file and in memory, so that nothing is aligned. */
static void there_and_back(attune_file *file, size_t bytes, size_t over) {
  OK(attune_copy(stream, from, right, BYTES));
  OK(attune_file_save(file, stream, (char *)from + over, bytes, over, NULL));
  OK(attune_fill(stream, to, 0, BYTES));
  OK(attune_file_load(file, stream, (char *)to + over, bytes, over, NULL));
  OK(attune_copy(stream, got, to, BYTES));
  OK(attune_stream_synchronize(stream));
  assert_memory_equal(got + over, right + over, bytes);
  for (size_t i = 0; i < over; i++) assert_int_equal(got[i], 0);
  for (size_t i = over + bytes; i < BYTES; i++) assert_int_equal(got[i], 0);
}

static void each_way(const char *path) {
  static const size_t sizes[] = {1, 4096, 1000000, BYTES - 4099};
  for (int way = ATTUNE_FILE_ANY; way <= ATTUNE_FILE_COPIES; way++)
    for (int direct = 0; direct < 2; direct++) {
      attune_file *file = NULL;
      const attune_file_options options = {.write = 1, .truncate = 1, .direct = direct, .way = (attune_file_way)way};
      const attune_status status = attune_file_open(&file, path, &options);
      if (status == ATTUNE_UNSUPPORTED && way == ATTUNE_FILE_CUFILE) {
        print_message("%s, direct %d: %s\n", path, direct, attune_last_message());
        continue;
      }
      OK(status);
      print_message("%s, way %d, direct %d: %s\n", path, way, direct, attune_file_describe(file));
      for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t over = 0; over < 3 * 4096; over += 4099)
          there_and_back(file, sizes[i] - (over ? sizes[i] / 3 : 0), over);
      attune_file_close(file);
    }
}

TEST(every_way_and_place) {
  static const char *const folders[] = {"/tmp", "/dev/shm", "."};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    char path[64];
    snprintf(path, sizeof path, "%s/attune-cuda-file-XXXXXX", folders[i]);
    const int made = mkstemp(path);
    if (made < 0) continue;
    close(made);
    each_way(path);
    assert_int_equal(unlink(path), 0);
  }
}

/* Memory that cuFile was told of, used from its middle. */
TEST(registered_memory) {
  char path[] = "/tmp/attune-cuda-file-XXXXXX";
  const attune_file_options options = {.write = 1, .direct = 1, .way = ATTUNE_FILE_CUFILE};
  attune_device *device = NULL;
  attune_file *file = NULL;
  OK(attune_device_get(&device, test_gpu()));
  const int made = mkstemp(path);
  assert_true(made >= 0);
  close(made);
  const attune_status status = attune_file_open(&file, path, &options);
  if (status == ATTUNE_UNSUPPORTED) {
    print_message("%s\n", attune_last_message());
    unlink(path);
    skip();
  }
  OK(status);
  OK(attune_file_register_memory(device, to, BYTES));
  there_and_back(file, 3000000, 4096);
  OK(attune_file_forget_memory(device, to));
  attune_file_close(file);
  assert_int_equal(unlink(path), 0);
}

int main(void) {
  attune_device *device = NULL;
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("%s", attune_last_message());
  right = malloc(BYTES);
  got = malloc(BYTES);
  if (!right || !got || attune_stream_create(&stream, device) != ATTUNE_OK ||
      attune_alloc(&from, stream, BYTES) != ATTUNE_OK || attune_alloc(&to, stream, BYTES) != ATTUNE_OK)
    return 1;
  for (size_t i = 0; i < BYTES; i++) right[i] = (char)(i * 131 + i / 4093);
  const int failed = RUN_TESTS(NULL, NULL);
  free(right);
  free(got);
  return failed;
}
