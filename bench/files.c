/* SPDX-License-Identifier: Apache-2.0
 * files.c: bench_files [--device D] [--file PATH] [--mib N] [--markdown FILE]: a file to memory of a device and back: attune
 * through the system's cache and past it, beside the reading and writing alone, by one thread and by four. The ways take
 * turns. torch_files.py has PyTorch's. */
#include <attune/attune.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/tool.h"
#include "bench/turns.h"

#define BLOCK ((size_t)8 << 20)

enum { LOAD, READ, READ_4, LOAD_DIRECT, READ_DIRECT, READ_DIRECT_4, SAVE, WRITE, WAYS, THREADS = 4 };

typedef struct scene {
  const char *path;
  size_t bytes;
  attune_stream *stream;
  attune_file *plain, *direct;
  int descriptor, direct_descriptor;
  void *memory;           /* of the device */
  char *buffers[THREADS]; /* of the host */
} scene;

typedef struct share {
  const scene *s;
  int rank, size, descriptor;
} share;

/* Every size-th block, always into the same memory: the least that reading costs. */
static void *read_share(void *arg) {
  const share *r = arg;
  for (size_t at = BLOCK * (size_t)r->rank; at < r->s->bytes; at += BLOCK * (size_t)r->size)
    for (size_t done = 0; done < BLOCK;) {
      const ssize_t n = pread(r->descriptor, r->s->buffers[r->rank] + done, BLOCK - done, (off_t)(at + done));
      if (n <= 0) bench_die("%s cannot be read", r->s->path);
      done += (size_t)n;
    }
  return NULL;
}

static void read_alone(const scene *s, int threads, int descriptor) {
  pthread_t ids[THREADS];
  share shares[THREADS];
  for (int i = 0; i < threads; i++) {
    shares[i] = (share){s, i, threads, descriptor};
    if (i > 0 && pthread_create(&ids[i], NULL, read_share, &shares[i]) != 0) bench_die("no thread");
  }
  (void)read_share(&shares[0]);
  for (int i = 1; i < threads; i++) pthread_join(ids[i], NULL);
}

static void write_alone(const scene *s) {
  for (size_t at = 0; at < s->bytes; at += BLOCK)
    for (size_t done = 0; done < BLOCK;) {
      const ssize_t n = pwrite(s->descriptor, s->buffers[0] + done, BLOCK - done, (off_t)(at + done));
      if (n <= 0) bench_die("%s cannot be written", s->path);
      done += (size_t)n;
    }
}

static double sample(void *arg, int way, int round) {
  scene *s = arg;
  (void)round;
  if ((way == LOAD_DIRECT || way == READ_DIRECT || way == READ_DIRECT_4) && s->direct_descriptor < 0) return 0.0;
  const double start = bench_now_ns();
  switch (way) {
  case LOAD:
    bench_check(attune_file_load(s->plain, s->stream, s->memory, s->bytes, 0, NULL), "attune_file_load");
    break;
  case READ: read_alone(s, 1, s->descriptor); break;
  case READ_4: read_alone(s, THREADS, s->descriptor); break;
  case LOAD_DIRECT:
    bench_check(attune_file_load(s->direct, s->stream, s->memory, s->bytes, 0, NULL), "attune_file_load");
    break;
  case READ_DIRECT: read_alone(s, 1, s->direct_descriptor); break;
  case READ_DIRECT_4: read_alone(s, THREADS, s->direct_descriptor); break;
  case SAVE:
    bench_check(attune_file_save(s->plain, s->stream, s->memory, s->bytes, 0, NULL), "attune_file_save");
    break;
  default: write_alone(s);
  }
  bench_check(attune_stream_synchronize(s->stream), "attune_stream_synchronize");
  return bench_now_ns() - start;
}

static void open_scene(scene *s, attune_device *device) {
  attune_file_options options = {.write = 1, .create = 1, .truncate = 1};
  bench_check(attune_stream_create(&s->stream, device), "attune_stream_create");
  bench_check(attune_alloc(&s->memory, s->stream, s->bytes), "attune_alloc");
  bench_check(attune_fill(s->stream, s->memory, 3, s->bytes), "attune_fill");
  bench_check(attune_file_open(&s->plain, s->path, &options), "attune_file_open");
  bench_check(attune_file_save(s->plain, s->stream, s->memory, s->bytes, 0, NULL), "attune_file_save");
  bench_check(attune_file_flush(s->plain), "attune_file_flush");
  options = (attune_file_options){.direct = 1};
  bench_check(attune_file_open(&s->direct, s->path, &options), "attune_file_open");
  s->descriptor = open(s->path, O_RDWR | O_CLOEXEC);
  s->direct_descriptor = open(s->path, O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (s->descriptor < 0) bench_die("%s cannot be opened", s->path);
  for (int i = 0; i < THREADS; i++) {
    s->buffers[i] = aligned_alloc(4096, BLOCK);
    if (!s->buffers[i]) bench_die("no memory");
    memset(s->buffers[i], 1, BLOCK);
  }
}

static void close_scene(scene *s) {
  attune_file_close(s->plain);
  attune_file_close(s->direct);
  close(s->descriptor);
  if (s->direct_descriptor >= 0) close(s->direct_descriptor);
  (void)unlink(s->path);
  for (int i = 0; i < THREADS; i++) free(s->buffers[i]);
  bench_check(attune_free(s->memory, s->stream), "attune_free");
  attune_stream_destroy(s->stream);
}

static void tell(const bench_turns *t, const scene *s, const char *what, int way, int of, int also) {
  const double gb = (double)s->bytes;
  if (bench_turns_median(t, way) == 0.0) return;
  char other[64] = "-";
  if (also >= 0)
    snprintf(other, sizeof other, "%.2f (%.3f)", gb / bench_turns_median(t, also), bench_turns_ratio(t, also, way));
  bench_line("| %s | %.2f | %.2f | %.3f | %s |", what, gb / bench_turns_median(t, way), gb / bench_turns_median(t, of),
             bench_turns_ratio(t, of, way), other);
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
  bench_head("Files to memory and back", device, NULL,
             "the ways take turns, medians in GB/s; alone: the system's calls with blocks of 8 MiB into the same "
             "memory; ratios are "
             "medians of the rounds' ratios, above 1 attune is faster; saves and writes go to the system's cache");
  bench_take_turns(&turns, WAYS, 1, rounds, BENCH_ROTATED, sample, &s);
  bench_table("| what | attune >| alone >| attune / alone >| alone, 4 threads >|");
  tell(&turns, &s, "load, from the cache", LOAD, READ, READ_4);
  char what[64];
  snprintf(what, sizeof what, "load, direct (%s)", attune_file_describe(s.direct));
  tell(&turns, &s, what, LOAD_DIRECT, READ_DIRECT, READ_DIRECT_4);
  tell(&turns, &s, "save, to the cache", SAVE, WRITE, -1);
  bench_markdown_close();
  close_scene(&s);
  return 0;
}
