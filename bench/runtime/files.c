/* SPDX-License-Identifier: Apache-2.0
 * files.c: bench_files [--device D] [--file PATH] [--mib N] [--rounds N] [--markdown FILE]: a file to memory of a
 * device and back: attune through the system's cache and past it, beside the reading and writing alone, by one thread
 * and by several. The order of the ways is drawn anew each round. What is read past the cache is a file of its own,
 * PATH.direct, which nothing writes meanwhile: a direct call first waits until the cache's changed pages of its range
 * are on the disk, and the first reader after a save would pay for that. torch_files.py has PyTorch's. */
#include <attune/attune.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/common/tool.h"
#include "bench/common/turns.h"

#define MIB ((size_t)1 << 20)
#define BLOCK (8 * MIB)

enum { LOAD, READ, READ_4, LOAD_DIRECT, READ_DIRECT, READ_DIRECT_4, READ_DIRECT_8, SAVE, WRITE, WAYS, THREADS = 8 };

typedef struct scene {
  const char *path;
  char direct_path[1024];
  size_t bytes;
  attune_stream *stream;
  attune_file *plain, *direct;
  int descriptor, direct_descriptor;
  char *memory;           /* of the device */
  char *buffers[THREADS]; /* of the host */
  bool on_host;
} scene;

/* Who reads alone: so many threads, each with so large calls. */
typedef struct reader {
  const scene *s;
  int rank, threads, descriptor;
  size_t block;
} reader;

/* Where a thread's next block goes: always into its one buffer, the least that reading costs; on the host device to
 * where the bytes belong, if the cache gives them, which is the same work then. */
static char *place_of(const scene *s, int rank, size_t at, int descriptor) {
  return s->on_host && descriptor == s->descriptor ? s->memory + at : s->buffers[rank];
}

/* Every so many-th block. */
static void *read_share(void *arg) {
  const reader *r = arg;
  for (size_t at = r->block * (size_t)r->rank; at < r->s->bytes; at += r->block * (size_t)r->threads)
    for (size_t done = 0; done < r->block;) {
      char *to = place_of(r->s, r->rank, at, r->descriptor) + done;
      const ssize_t n = pread(r->descriptor, to, r->block - done, (off_t)(at + done));
      if (n <= 0) bench_die("%s cannot be read", r->s->path);
      done += (size_t)n;
    }
  return NULL;
}

static void read_alone(const scene *s, int threads, size_t block, int descriptor) {
  pthread_t ids[THREADS];
  reader readers[THREADS];
  for (int i = 0; i < threads; i++) {
    readers[i] = (reader){s, i, threads, descriptor, block};
    if (i > 0 && pthread_create(&ids[i], NULL, read_share, &readers[i]) != 0) bench_die("no thread could be started");
  }
  (void)read_share(&readers[0]);
  for (int i = 1; i < threads; i++) pthread_join(ids[i], NULL);
}

static void write_alone(const scene *s) {
  for (size_t at = 0; at < s->bytes; at += BLOCK)
    for (size_t done = 0; done < BLOCK;) {
      const char *from = place_of(s, 0, at, s->descriptor) + done;
      const ssize_t n = pwrite(s->descriptor, from, BLOCK - done, (off_t)(at + done));
      if (n <= 0) bench_die("%s cannot be written", s->path);
      done += (size_t)n;
    }
}

static double sample(void *arg, int way, int round) {
  scene *s = arg;
  (void)round;
  if (way >= LOAD_DIRECT && way <= READ_DIRECT_8 && s->direct_descriptor < 0) return 0.0;
  const double start = bench_now_ns();
  switch (way) {
  case LOAD:
    bench_check(attune_file_load(s->plain, s->stream, s->memory, s->bytes, 0, NULL), "attune_file_load");
    break;
  case READ: read_alone(s, 1, BLOCK, s->descriptor); break;
  case READ_4: read_alone(s, 4, BLOCK, s->descriptor); break;
  case LOAD_DIRECT:
    bench_check(attune_file_load(s->direct, s->stream, s->memory, s->bytes, 0, NULL), "attune_file_load");
    break;
  case READ_DIRECT: read_alone(s, 1, BLOCK, s->direct_descriptor); break;
  case READ_DIRECT_4: read_alone(s, 4, BLOCK, s->direct_descriptor); break;
  case READ_DIRECT_8: read_alone(s, 8, MIB, s->direct_descriptor); break;
  case SAVE:
    bench_check(attune_file_save(s->plain, s->stream, s->memory, s->bytes, 0, NULL), "attune_file_save");
    break;
  default: write_alone(s);
  }
  bench_check(attune_stream_synchronize(s->stream), "attune_stream_synchronize");
  return bench_now_ns() - start;
}

/* Makes a file of all the memory and opens it. */
static void make_file(attune_file **out, const scene *s, const char *path) {
  const attune_file_options options = {.write = 1, .create = 1, .truncate = 1};
  bench_check(attune_file_open(out, path, &options), "attune_file_open");
  bench_check(attune_file_save(*out, s->stream, s->memory, s->bytes, 0, NULL), "attune_file_save");
  bench_check(attune_file_flush(*out), "attune_file_flush");
}

static void open_scene(scene *s, attune_device *device) {
  const attune_file_options direct = {.direct = 1};
  snprintf(s->direct_path, sizeof s->direct_path, "%s.direct", s->path);
  s->on_host = strcmp(attune_device_name(device), "host") == 0;
  bench_check(attune_stream_create(&s->stream, device), "attune_stream_create");
  bench_check(attune_alloc((void **)&s->memory, s->stream, s->bytes), "attune_alloc");
  bench_check(attune_fill(s->stream, s->memory, 3, s->bytes), "attune_fill");
  make_file(&s->direct, s, s->direct_path);
  attune_file_close(s->direct);
  bench_check(attune_file_open(&s->direct, s->direct_path, &direct), "attune_file_open");
  make_file(&s->plain, s, s->path);
  s->descriptor = open(s->path, O_RDWR | O_CLOEXEC);
  s->direct_descriptor = open(s->direct_path, O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (s->descriptor < 0) bench_die("%s cannot be opened", s->path);
  for (int i = 0; i < THREADS; i++) {
    s->buffers[i] = aligned_alloc(2 * MIB, BLOCK);
    if (!s->buffers[i]) bench_die("no memory");
    (void)madvise(s->buffers[i], BLOCK,
                  MADV_HUGEPAGE); /* a disk reads into scattered pages at half the speed or less */
    memset(s->buffers[i], 1, BLOCK);
  }
}

static void close_scene(scene *s) {
  attune_file_close(s->plain);
  attune_file_close(s->direct);
  close(s->descriptor);
  if (s->direct_descriptor >= 0) close(s->direct_descriptor);
  (void)unlink(s->path);
  (void)unlink(s->direct_path);
  for (int i = 0; i < THREADS; i++) free(s->buffers[i]);
  bench_check(attune_free(s->memory, s->stream), "attune_free");
  attune_stream_destroy(s->stream);
}

/* A cell: the speed of a way, and attune's beside it. */
static void say(char *cell, size_t room, const bench_turns *t, const scene *s, int way, int beside) {
  snprintf(cell, room, "-");
  if (beside < 0) return;
  snprintf(cell, room, "%.2f (%.3f)", (double)s->bytes / bench_turns_median(t, beside),
           bench_turns_ratio(t, beside, way));
}

static void tell(const bench_turns *t, const scene *s, const char *what, int way, int of, int four, int eight) {
  char alone[64], by_four[64], by_eight[64];
  if (bench_turns_median(t, way) == 0.0) return;
  say(alone, sizeof alone, t, s, way, of);
  say(by_four, sizeof by_four, t, s, way, four);
  say(by_eight, sizeof by_eight, t, s, way, eight);
  bench_line("| %s | %.2f | %s | %s | %s |", what, (double)s->bytes / bench_turns_median(t, way), alone, by_four,
             by_eight);
}

int main(int argc, char **argv) {
  const char *markdown = NULL, *name = NULL;
  int rounds = 11, mib = 2048;
  static scene s = {.path = "/tmp/attune-bench-file"};
  const bench_option options[] = {
      {"device", BENCH_TEXT, &name, 0, 0},       {"file", BENCH_TEXT, &s.path, 0, 0},
      {"mib", BENCH_WHOLE, &mib, 8, 1 << 20},    {"rounds", BENCH_WHOLE, &rounds, 3, BENCH_TURN_ROUNDS},
      {"markdown", BENCH_TEXT, &markdown, 0, 0}, {NULL, BENCH_FLAG, NULL, 0, 0}};
  (void)bench_read_options(argc, argv, options,
                           "bench_files [--device D] [--file PATH] [--mib N] [--rounds N] [--markdown FILE]", NULL, 0);
  attune_device *device = NULL;
  bench_turns turns;
  bench_check(attune_device_get(&device, name), "attune_device_get");
  s.bytes = (size_t)mib / 8 * BLOCK;
  open_scene(&s, device);
  bench_markdown_open(markdown);
  bench_head(
      "Files to memory and back", device, NULL,
      "the order of the ways is drawn anew each round, medians in GB/s; alone: the system's calls with blocks of 8 "
      "MiB, into one buffer of large pages for each thread; in brackets the median of the rounds' ratios attune / "
      "alone, above 1 "
      "attune is faster; direct calls read a file of their own; saves and writes go to the system's cache");
  bench_take_turns(&turns, WAYS, 1, rounds, BENCH_DRAWN, sample, &s);
  bench_table("| what | attune >| alone >| alone, 4 threads >| alone, 8 threads of 1 MiB >|");
  tell(&turns, &s, "load, from the cache", LOAD, READ, READ_4, -1);
  char what[64];
  snprintf(what, sizeof what, "load, direct (%s)", attune_file_describe(s.direct));
  tell(&turns, &s, what, LOAD_DIRECT, READ_DIRECT, READ_DIRECT_4, READ_DIRECT_8);
  tell(&turns, &s, "save, to the cache", SAVE, WRITE, -1, -1);
  bench_markdown_close();
  close_scene(&s);
  return 0;
}
