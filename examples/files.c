/* SPDX-License-Identifier: Apache-2.0
 * files.c: a checkpoint: memory of the best device is saved to a file and loaded again. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000000, BYTES = COUNT * (int)sizeof(float), HEAD = 12 };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

int main(void) {
  const char *path = "attune-checkpoint.bin";
  attune_device *device = NULL;
  attune_stream *stream = NULL;
  attune_generator *generator = NULL;
  attune_file *file = NULL;
  void *weights = NULL;
  float before = 0.0f, after = 0.0f;
  uint64_t size = 0;
  check(attune_device_get(&device, NULL));
  check(attune_stream_create(&stream, device));
  check(attune_generator_create(&generator, 7));
  check(attune_alloc(&weights, stream, BYTES));
  check(attune_random_normal(generator, stream, weights, ATTUNE_F32, COUNT, 0.0, 1.0));
  check(attune_copy(stream, &before, (float *)weights + COUNT - 1, sizeof before));

  /* Bypasses the system's cache where possible; any offset will do. A save waits for the stream's work. */
  const attune_file_options options = {.write = 1, .create = 1, .truncate = 1, .direct = 1};
  check(attune_file_open(&file, path, &options));
  check(attune_file_register_memory(device, weights, BYTES)); /* for many loads and saves; only cuFile needs it */
  check(attune_file_save(file, stream, weights, BYTES, HEAD, NULL));
  check(attune_file_flush(file));
  check(attune_file_size(&size, file));

  check(attune_fill(stream, weights, 0, BYTES));
  size_t moved = 0;
  if (attune_file_load(file, stream, weights, BYTES, HEAD, &moved) != ATTUNE_OK) {
    fprintf(stderr, "%s; %zu bytes came\n", attune_last_message(), moved);
    return 1;
  }
  check(attune_copy(stream, &after, (float *)weights + COUNT - 1, sizeof after));
  check(attune_stream_synchronize(stream));
  printf("%d bytes by \"%s\": %s\n", BYTES, attune_file_describe(file), before == after ? "the same" : "others");

  check(attune_file_forget_memory(device, weights));
  attune_file_close(file);
  (void)remove(path);
  check(attune_free(weights, stream));
  attune_generator_destroy(generator);
  attune_stream_destroy(stream);
  return before == after && size == HEAD + BYTES ? 0 : 1;
}
