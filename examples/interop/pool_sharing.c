/* SPDX-License-Identifier: Apache-2.0
 * pool_sharing.c: a pool of the driver's, given to another process as a whole: attune fills memory of it here, and
 * works on it there; and who may use a pool. */
#include "examples/interop/interop.h"

#include <spawn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { COUNT = 4096, BYTES = COUNT * (int)sizeof(float), POOL_AT = 10 };

static void write_text(char *out, const void *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) sprintf(out + 2 * i, "%02x", ((const unsigned char *)bytes)[i]);
}

static void read_text(void *out, size_t count, const char *text) {
  for (size_t i = 0; i < count; i++) {
    unsigned byte = 0;
    MUST(sscanf(text + 2 * i, "%2x", &byte) == 1);
    ((unsigned char *)out)[i] = (unsigned char)byte;
  }
}

/* The other process has the pool as a descriptor, and one allocation of it as bytes. */
static int other(const char *text) {
  cudaMemPool_t pool = NULL;
  struct cudaMemPoolPtrExportData exported;
  void *memory = NULL;
  attune_stream *stream = interop_begin();
  read_text(&exported, sizeof exported, text);
  CUDA(
      cudaMemPoolImportFromShareableHandle(&pool, (void *)(uintptr_t)POOL_AT, cudaMemHandleTypePosixFileDescriptor, 0));
  const struct cudaMemAccessDesc access = {.location = {.type = cudaMemLocationTypeDevice, .id = 0},
                                           .flags = cudaMemAccessFlagsProtReadWrite};
  CUDA(cudaMemPoolSetAccess(pool, &access, 1));
  struct cudaMemLocation here = access.location;
  enum cudaMemAccessFlags may = cudaMemAccessFlagsProtNone;
  CUDA(cudaMemPoolGetAccess(&may, pool, &here));
  MUST(may == cudaMemAccessFlagsProtReadWrite);
  CUDA(cudaMemPoolImportPointer(&memory, pool, &exported));
  interop_check(stream, memory, COUNT, 5.0f, 1.0f);
  OK(attune_fill(stream, memory, 0, BYTES / 2));
  OK(attune_stream_synchronize(stream));
  CUDA(cudaFreeAsync(memory, interop_native(stream)));
  OK(attune_stream_synchronize(stream));
  CUDA(cudaMemPoolDestroy(pool));
  attune_stream_destroy(stream);
  return 0;
}

static void spawn_other(const char *program, char *text, int descriptor) {
  posix_spawn_file_actions_t actions;
  char name[256];
  pid_t child = 0;
  int status = 1;
  snprintf(name, sizeof name, "%s", program);
  char *arguments[] = {name, text, NULL};
  MUST(posix_spawn_file_actions_init(&actions) == 0);
  MUST(posix_spawn_file_actions_adddup2(&actions, descriptor, POOL_AT) == 0);
  MUST(posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ) == 0);
  MUST(posix_spawn_file_actions_destroy(&actions) == 0);
  MUST(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) interop_skip("the other process cannot use the device");
  MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
  if (argc == 2) return other(argv[1]);
  attune_stream *stream = interop_begin();
  const struct cudaMemPoolProps about = {.allocType = cudaMemAllocationTypePinned,
                                         .handleTypes = cudaMemHandleTypePosixFileDescriptor,
                                         .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
  struct cudaMemPoolPtrExportData exported;
  char text[2 * sizeof exported + 1] = "";
  cudaMemPool_t pool = NULL;
  void *memory = NULL;
  int descriptor = -1;
  float *source = interop_numbers(stream, COUNT, 5.0f);
  CUDA(cudaMemPoolCreate(&pool, &about));
  CUDA(cudaMallocFromPoolAsync(&memory, BYTES, pool, interop_native(stream)));
  OK(attune_copy(stream, memory, source, BYTES));
  OK(attune_stream_synchronize(stream));
  CUDA(cudaMemPoolExportToShareableHandle(&descriptor, pool, cudaMemHandleTypePosixFileDescriptor, 0));
  CUDA(cudaMemPoolExportPointer(&exported, memory));
  write_text(text, &exported, sizeof exported);
  spawn_other(argv[0], text, descriptor);
  interop_check(stream, (float *)memory + COUNT / 2, COUNT / 2, 5.0f + COUNT / 2, 1.0f);
  interop_check(stream, memory, COUNT / 2, 0.0f, 0.0f);
  close(descriptor);
  CUDA(cudaFreeAsync(memory, interop_native(stream)));
  OK(attune_stream_synchronize(stream));
  CUDA(cudaMemPoolDestroy(pool));
  OK(attune_free(source, stream));
  return interop_end(stream, "a pool of another process");
}
