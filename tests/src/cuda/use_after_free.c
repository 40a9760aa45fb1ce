/* SPDX-License-Identifier: Apache-2.0
 * use_after_free.c: a kernel that writes to cached memory, for test_cuda_use_after_free.sh, which runs it under
 * compute-sanitizer.
 *   use_after_free held|freed SETTINGS     the kernel's memory; ATTUNE_ALLOC's keys */
#include <attune/attune.h>

#include <stdio.h>
#include <string.h>

#define COUNT ((size_t)1 << 18)

static int complain(const char *what) {
  fprintf(stderr, "%s: %s\n", what, attune_last_message());
  return 1;
}

int main(int argc, char **argv) {
  attune_device *device = NULL;
  attune_stream *stream = NULL;
  attune_generator *generator = NULL;
  void *p = NULL, *neighbour = NULL;
  if (argc != 3) return 2;
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) {
    printf("skipped: %s\n", attune_last_message());
    return 77;
  }
  const attune_status status = attune_memory_configure(device, argv[2]);
  if (status == ATTUNE_UNSUPPORTED) {
    printf("skipped: %s\n", attune_last_message());
    return 77;
  }
  if (status != ATTUNE_OK) return complain("configure");
  if (attune_stream_create(&stream, device) != ATTUNE_OK) return complain("stream");
  if (attune_generator_create(&generator, 1) != ATTUNE_OK) return complain("generator");
  if (attune_alloc(&p, stream, COUNT * 4) != ATTUNE_OK) return complain("alloc");
  if (attune_alloc(&neighbour, stream, COUNT * 4) != ATTUNE_OK) return complain("alloc");
  if (attune_random_uniform(generator, stream, p, ATTUNE_F32, COUNT, 0, 1) != ATTUNE_OK) return complain("uniform");
  if (strcmp(argv[1], "freed") == 0 && attune_free(p, stream) != ATTUNE_OK) return complain("free");
  if (attune_random_uniform(generator, stream, p, ATTUNE_F32, COUNT, 0, 1) != ATTUNE_OK) return complain("uniform");
  if (attune_stream_synchronize(stream) != ATTUNE_OK) return complain("synchronize");
  if (strcmp(argv[1], "held") == 0 && attune_free(p, stream) != ATTUNE_OK) return complain("free");
  if (attune_free(neighbour, stream) != ATTUNE_OK) return complain("free");
  attune_generator_destroy(generator);
  attune_stream_destroy(stream);
  return attune_memory_empty_cache(device) == ATTUNE_OK ? 0 : complain("empty_cache");
}
