/* SPDX-License-Identifier: Apache-2.0
 * processes.c: another process of this machine opens memory of a GPU and an event, as clients of a GPU server do. */
#include <attune/attune.h>

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

enum { COUNT = 4096, BYTES = COUNT * (int)sizeof(float) };

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

typedef struct handles {
  attune_memory_handle memory;
  attune_event_ipc event;
} handles;

/* Handles are plain bytes: here they travel as an argument, in hexadecimal digits. */
static void to_text(char *out, const handles *h) {
  for (size_t i = 0; i < sizeof *h; i++) sprintf(out + 2 * i, "%02x", ((const unsigned char *)h)[i]);
}

static int from_text(handles *out, const char *text) {
  for (size_t i = 0; i < sizeof *out; i++) {
    unsigned byte = 0;
    if (sscanf(text + 2 * i, "%2x", &byte) != 1) return 0;
    ((unsigned char *)out)[i] = (unsigned char)byte;
  }
  return 1;
}

/* The other process: waits on the GPU until the memory is filled, and reads it. */
static int client(attune_device *device, const char *text) {
  static float numbers[COUNT];
  handles h;
  void *memory = NULL;
  attune_event *filled = NULL;
  attune_stream *stream = NULL;
  if (!from_text(&h, text)) return 1;
  check(attune_stream_create(&stream, device));
  check(attune_memory_import(&memory, device, &h.memory));
  check(attune_event_ipc_open(&filled, device, &h.event));
  check(attune_stream_wait_event(stream, filled));
  check(attune_copy(stream, numbers, memory, BYTES));
  check(attune_stream_synchronize(stream));
  printf("the other process sees %g ... %g\n", (double)numbers[0], (double)numbers[COUNT - 1]);
  attune_event_destroy(filled);
  check(attune_memory_close(memory, device));
  attune_stream_destroy(stream);
  return numbers[0] == 0.0f && numbers[COUNT - 1] == COUNT - 1 ? 0 : 1;
}

int main(int argc, char **argv) {
  static float numbers[COUNT];
  handles h;
  char text[2 * sizeof h + 1];
  void *memory = NULL;
  attune_device *device = NULL;
  attune_stream *stream = NULL;
  attune_event *filled = NULL;
  pid_t child = 0;
  int status = 1;
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) {
    printf("skipped: %s\n", attune_last_message());
    return 77;
  }
  if (argc == 2) return client(device, argv[1]);
  for (int i = 0; i < COUNT; i++) numbers[i] = (float)i;
  check(attune_stream_create(&stream, device));
  check(attune_event_create(&filled, device, &(attune_event_options){.no_timing = 1, .interprocess = 1}));
  check(attune_alloc(&memory, stream, BYTES));
  check(attune_copy(stream, memory, numbers, BYTES));
  check(attune_event_record(filled, stream));
  check(attune_memory_export(&h.memory, memory));
  check(attune_event_ipc_export(filled, &h.event));
  to_text(text, &h);

  char *arguments[] = {argv[0], text, NULL};
  if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0) return 1;
  if (waitpid(child, &status, 0) != child) return 1;
  check(attune_free(memory, stream)); /* only now: the other process no longer uses it */
  attune_event_destroy(filled);
  attune_stream_destroy(stream);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
