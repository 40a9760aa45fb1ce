/* SPDX-License-Identifier: Apache-2.0
 * ipc.c: memory and an event of this process, opened by CUDA in another one: attune works on them there. */
#include "examples/interop/interop.h"

#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

enum { COUNT = 4096, BYTES = COUNT * (int)sizeof(float) };

typedef struct shared {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
} shared;

static void to_text(char *out, const shared *handles) {
  const unsigned char *bytes = (const unsigned char *)handles;
  for (size_t i = 0; i < sizeof *handles; i++) sprintf(out + 2 * i, "%02x", bytes[i]);
}

static void from_text(shared *out, const char *text) {
  unsigned char *bytes = (unsigned char *)out;
  for (size_t i = 0; i < sizeof *out; i++) {
    unsigned byte = 0;
    MUST(sscanf(text + 2 * i, "%2x", &byte) == 1);
    bytes[i] = (unsigned char)byte;
  }
}

/* The other process: waits for the first one's event, and fills the first half by attune. */
static int other(const char *text) {
  shared handles;
  void *memory = NULL;
  cudaEvent_t native = NULL;
  attune_event *event = NULL;
  from_text(&handles, text);
  attune_stream *stream = interop_begin();
  CUDA(cudaIpcOpenMemHandle(&memory, handles.memory, cudaIpcMemLazyEnablePeerAccess));
  CUDA(cudaIpcOpenEventHandle(&native, handles.event));
  OK(attune_event_wrap(&event, interop_device, native));
  OK(attune_stream_wait_event(stream, event));
  interop_check(stream, memory, COUNT, 2.0f, 1.0f);
  OK(attune_fill(stream, memory, 0, BYTES / 2));
  OK(attune_stream_synchronize(stream));
  attune_event_destroy(event);
  CUDA(cudaEventDestroy(native));
  CUDA(cudaIpcCloseMemHandle(memory));
  attune_stream_destroy(stream);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 2) return other(argv[1]);
  attune_stream *stream = interop_begin();
  shared handles;
  char text[2 * sizeof handles + 1] = "";
  void *memory = NULL;
  cudaEvent_t native = NULL;
  pid_t child = 0;
  int status = 1;

  /* What cudaMalloc gave: memory of attune_alloc has attune_memory_export instead. */
  CUDA(cudaMalloc(&memory, BYTES));
  float *numbers = interop_numbers(stream, COUNT, 2.0f);
  OK(attune_copy(stream, memory, numbers, BYTES));
  CUDA(cudaEventCreateWithFlags(&native, cudaEventInterprocess | cudaEventDisableTiming));
  CUDA(cudaEventRecord(native, interop_native(stream)));
  CUDA(cudaIpcGetMemHandle(&handles.memory, memory));
  CUDA(cudaIpcGetEventHandle(&handles.event, native));
  to_text(text, &handles);

  char *arguments[] = {argv[0], text, NULL};
  MUST(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) == 0);
  MUST(waitpid(child, &status, 0) == child);
  MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  interop_check(stream, (float *)memory + COUNT / 2, COUNT / 2, 2.0f + COUNT / 2, 1.0f);
  interop_check(stream, memory, COUNT / 2, 0.0f, 0.0f);

  CUDA(cudaEventDestroy(native));
  OK(attune_free(numbers, stream));
  CUDA(cudaFree(memory));
  return interop_end(stream, "memory and events of another process");
}
