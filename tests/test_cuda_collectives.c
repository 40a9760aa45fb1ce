/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_collectives.c: copies and collectives of two GPUs: between devices that are peers and that are not, by copies
 * and by NCCL where it is, in graphs, and over two processes. Needs two GPUs. */
#include "tests/check.h"

#include <attune/attune.h>

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/comm/reduce.h"
#include "tests/child.h"

enum { GPUS = 2, COUNT = 1 << 20 };

static attune_device *devices[GPUS];
static attune_stream *streams[GPUS];
static float *numbers, *back;

static int open_devices(void) {
  for (int i = 0; i < GPUS; i++) {
    char name[24];
    snprintf(name, sizeof name, "cuda:%d", i);
    if (attune_device_get(&devices[i], name) != ATTUNE_OK || attune_stream_create(&streams[i], devices[i]) != ATTUNE_OK)
      return 1;
  }
  numbers = malloc(COUNT * sizeof *numbers);
  back = malloc(COUNT * sizeof *back);
  return numbers && back ? 0 : 1;
}

static void *take(int gpu, size_t bytes) {
  void *p = NULL;
  OK(attune_alloc(&p, streams[gpu], bytes));
  return p;
}

static void put(int gpu, void *p, float from, size_t count) {
  for (size_t i = 0; i < count; i++) numbers[i] = from + (float)(i % 1000);
  OK(attune_copy(streams[gpu], p, numbers, count * sizeof(float)));
  OK(attune_stream_synchronize(streams[gpu]));
}

static void expect(int gpu, const void *p, float from, float step, size_t count) {
  OK(attune_copy(streams[gpu], back, p, count * sizeof(float)));
  OK(attune_stream_synchronize(streams[gpu]));
  for (size_t i = 0; i < count; i++)
    if (back[i] != from + step * (float)(i % 1000))
      fail_msg("number %zu of cuda:%d is %g; should be %g", i, gpu, (double)back[i],
               (double)(from + step * (float)(i % 1000)));
}

/* In a fresh process the two are no peers yet. */
static void copies_between_devices(void **state) {
  static const char *const kinds[] = {"expandable_segments:true", "expandable_segments:false"};
  (void)state;
  for (int peers = 0; peers < 2; peers++)
    for (int kind = 0; kind < 2; kind++) {
      for (int g = 0; g < GPUS; g++) {
        OK(attune_memory_empty_cache(devices[g]));
        OK(attune_memory_configure(devices[g], kinds[kind]));
      }
      if (peers && (attune_device_enable_peer(devices[0], devices[1]) != ATTUNE_OK ||
                    attune_device_enable_peer(devices[1], devices[0]) != ATTUNE_OK))
        print_message("no peers: %s\n", attune_last_message());
      void *first = take(0, COUNT * 4), *second = take(1, COUNT * 4);
      for (int on = 0; on < GPUS; on++) { /* on a stream of the source and of the destination */
        put(0, first, (float)on, COUNT);
        OK(attune_fill(streams[1], second, 0, COUNT * 4));
        OK(attune_stream_synchronize(streams[1]));
        OK(attune_copy(streams[on], second, first, COUNT * 4));
        OK(attune_stream_synchronize(streams[on]));
        expect(1, second, (float)on, 1.0f, COUNT);
      }
      OK(attune_free(first, streams[0]));
      OK(attune_free(second, streams[1]));
    }
  for (int g = 0; g < GPUS; g++) {
    OK(attune_memory_empty_cache(devices[g]));
    OK(attune_memory_configure(devices[g], kinds[0]));
  }
}

static void collectives(attune_comm *comm) {
  void *in[GPUS], *out[GPUS], *whole = take(1, COUNT * 4);
  for (int g = 0; g < GPUS; g++) {
    in[g] = take(g, COUNT * 4);
    out[g] = take(g, COUNT * 4);
  }
  static const size_t counts[] = {1, 1000, COUNT};
  for (size_t c = 0; c < AT_COUNT(counts); c++) {
    const attune_comm_data data = {ATTUNE_F32, counts[c], (const void *const *)in, out};
    for (int g = 0; g < GPUS; g++) put(g, in[g], (float)(10 * g), counts[c]);
    OK(attune_comm_all_reduce_add(comm, streams, &data));
    for (int g = 0; g < GPUS; g++) expect(g, out[g], 10.0f, 2.0f, counts[c]);
    OK(attune_comm_broadcast(comm, 1, streams, &data));
    for (int g = 0; g < GPUS; g++) expect(g, out[g], 10.0f, 1.0f, counts[c]);
    OK(attune_comm_reduce_add(comm, 0, streams, &data));
    expect(0, out[0], 10.0f, 2.0f, counts[c]);
    expect(1, out[1], 10.0f, 1.0f, counts[c]);
  }
  put(1, whole, 0.0f, 1000 * 100);
  const size_t chunks[] = {300, 700};
  for (int rows = 0; rows < 2; rows++) { /* along the first dimension and along the second */
    attune_comm_split split = {ATTUNE_F32, rows ? 100 : 1, 1000, rows ? 1 : 100, chunks, whole, out};
    put(1, whole, 0.0f, 1000 * 100);
    OK(attune_comm_scatter(comm, 1, streams, &split));
    if (rows) {
      OK(attune_copy(streams[0], back, out[0], 300 * 100 * 4));
      OK(attune_stream_synchronize(streams[0]));
      for (int i = 0; i < 300 * 100; i++) assert_true(back[i] == (float)(i % 300));
    } else {
      expect(0, out[0], 0.0f, 1.0f, 300 * 100);
      expect(1, out[1], 0.0f, 1.0f, 700 * 100);
    }
    OK(attune_fill(streams[1], whole, 0, 1000 * 100 * 4));
    OK(attune_comm_gather(comm, 1, streams, &split));
    expect(1, whole, 0.0f, 1.0f, 1000 * 100);
  }
  for (int dtype = ATTUNE_F64; dtype <= ATTUNE_C128; dtype++) {
    const attune_comm_data data = {(attune_dtype)dtype, 1001, (const void *const *)in, out};
    if (!at_reduce_as(ATTUNE_REDUCE_SUM, data.dtype)) continue;
    for (int g = 0; g < GPUS; g++) OK(attune_fill(streams[g], in[g], 0, 1001 * 16));
    OK(attune_comm_all_reduce_add(comm, streams, &data));
  }
  OK(attune_comm_check(comm));
  for (int g = 0; g < GPUS; g++) {
    OK(attune_stream_synchronize(streams[g]));
    OK(attune_free(in[g], streams[g]));
    OK(attune_free(out[g], streams[g]));
  }
  OK(attune_free(whole, streams[1]));
}

static void by_copies(void **state) {
  attune_comm *comm = NULL;
  (void)state;
  OK(attune_comm_create(&comm, devices, GPUS, ATTUNE_COMM_COPIES));
  collectives(comm);
  attune_comm_destroy(comm);
}

static attune_comm *by_nccl_or_skip(void) {
  attune_comm *comm = NULL;
  const attune_status status = attune_comm_create(&comm, devices, GPUS, ATTUNE_COMM_NCCL);
  if (status == ATTUNE_UNSUPPORTED) {
    print_message("%s\n", attune_last_message());
    skip();
  }
  OK(status);
  return comm;
}

static void by_nccl(void **state) {
  (void)state;
  attune_comm *comm = by_nccl_or_skip();
  print_message("%s\n", attune_comm_describe(comm));
  collectives(comm);
  attune_comm_destroy(comm);
}

/* A graph of each device; replayed together, ten times. */
static void in_graphs(void **state) {
  attune_graph *graphs[GPUS];
  void *in[GPUS], *out[GPUS], *whole = take(0, 4096);
  (void)state;
  attune_comm *comm = by_nccl_or_skip();
  for (int g = 0; g < GPUS; g++) {
    in[g] = take(g, COUNT * 4);
    out[g] = take(g, COUNT * 4);
    put(g, in[g], (float)g, COUNT);
    OK(attune_graph_create(&graphs[g], devices[g]));
  }
  const attune_comm_data data = {ATTUNE_F32, COUNT, (const void *const *)in, out};
  const attune_comm_split split = {ATTUNE_F32, 1, 1000, 1, NULL, whole, in};
  OK(attune_comm_all_reduce_add(comm, streams, &data)); /* connects */
  OK(attune_comm_scatter(comm, 0, streams, &split));
  for (int g = 0; g < GPUS; g++) OK(attune_stream_synchronize(streams[g]));
  for (int g = 0; g < GPUS; g++) OK(attune_graph_capture_begin(graphs[g], streams[g], NULL));
  OK(attune_comm_all_reduce_add(comm, streams, &data));
  OK(attune_comm_broadcast(comm, 0, streams, &(attune_comm_data){ATTUNE_F32, COUNT, (const void *const *)out, in}));
  OK(attune_comm_scatter(comm, 0, streams, &split));
  for (int g = 0; g < GPUS; g++) OK(attune_graph_capture_end(graphs[g], streams[g]));
  put(0, whole, 5.0f, 1000);
  for (int g = 0; g < GPUS; g++) put(g, in[g], (float)g, COUNT);
  OK(attune_graph_replay(graphs[0], streams[0]));
  OK(attune_graph_replay(graphs[1], streams[1]));
  for (int g = 0; g < GPUS; g++) expect(g, out[g], 1.0f, 2.0f, COUNT);
  expect(0, in[0], 5.0f, 1.0f, 500);
  expect(1, in[1], 505.0f, 1.0f, 495);
  for (int round = 0; round < 9; round++)
    for (int g = 0; g < GPUS; g++) OK(attune_graph_replay(graphs[g], streams[g]));
  for (int g = 0; g < GPUS; g++) {
    OK(attune_stream_synchronize(streams[g]));
    attune_graph_destroy(graphs[g]);
    OK(attune_free(in[g], streams[g]));
    OK(attune_free(out[g], streams[g]));
  }
  OK(attune_free(whole, streams[0]));
  attune_comm_destroy(comm);
}

/* ---- two processes ---- */

/* rank, and the id in hexadecimal digits */
static int as_rank(int rank, const char *digits) {
  attune_comm_id id;
  attune_comm *comm = NULL;
  if (open_devices() != 0) return 1;
  for (size_t i = 0; i < sizeof id.bytes; i++) {
    unsigned byte = 0;
    if (sscanf(digits + 2 * i, "%2x", &byte) != 1) return 1;
    id.bytes[i] = (unsigned char)byte;
  }
  EXPECT(attune_comm_join(&comm, devices[rank], &id, rank, GPUS) == ATTUNE_OK, "%s", attune_last_message());
  void *in = take(rank, COUNT * 4), *out = take(rank, COUNT * 4), *whole = rank ? NULL : take(0, COUNT * 4);
  put(rank, in, (float)(3 * rank), COUNT);
  const attune_comm_data data = {ATTUNE_F32, COUNT, (const void *const *)&in, &out};
  const attune_comm_split split = {ATTUNE_F32, 100, 1000, 1, NULL, whole, &in};
  EXPECT(attune_comm_all_reduce_add(comm, &streams[rank], &data) == ATTUNE_OK, "%s", attune_last_message());
  expect(rank, out, 3.0f, 2.0f, COUNT);
  if (rank == 0) put(0, whole, 0.0f, 100000);
  EXPECT(attune_comm_scatter(comm, 0, &streams[rank], &split) == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(attune_copy(streams[rank], back, in, 50000 * 4) == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(attune_stream_synchronize(streams[rank]) == ATTUNE_OK, "%s", attune_last_message());
  for (int i = 0; i < 50000; i++)
    EXPECT(back[i] == (float)(rank * 500 + i % 500), "number %d is %g", i, (double)back[i]);
  if (rank == 0) EXPECT(attune_fill(streams[0], whole, 0, 400000) == ATTUNE_OK, "fill");
  EXPECT(attune_comm_gather(comm, 0, &streams[rank], &split) == ATTUNE_OK, "%s", attune_last_message());
  if (rank == 0) expect(0, whole, 0.0f, 1.0f, 100000);
  attune_comm_destroy(comm);
  return 0;
}

static void over_processes(void **state) {
  attune_comm_id id;
  char self[4096] = "", digits[257] = "";
  pid_t children[GPUS];
  (void)state;
  const attune_status status = attune_comm_make_id(&id);
  if (status == ATTUNE_UNSUPPORTED) skip();
  OK(status);
  for (size_t i = 0; i < sizeof id.bytes; i++) snprintf(digits + 2 * i, 3, "%02x", id.bytes[i]);
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  for (int r = 0; r < GPUS; r++) {
    const char *const words[] = {self, r ? "1" : "0", digits, NULL};
    assert_int_equal(posix_spawn(&children[r], self, NULL, NULL, (char **)(uintptr_t)words, environ), 0);
  }
  for (int r = 0; r < GPUS; r++) {
    int ended = 1;
    assert_int_equal(waitpid(children[r], &ended, 0), children[r]);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  }
}

int main(int argc, char **argv) {
  if (argc > 2) return as_rank(atoi(argv[1]), argv[2]);
  attune_device *found = NULL;
  if (attune_device_get(&found, "cuda:1") != ATTUNE_OK) {
    printf("skipped: %s; two GPUs are needed\n", attune_last_message());
    return 77;
  }
  if (open_devices() != 0) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(copies_between_devices),
      cmocka_unit_test(by_copies),
      cmocka_unit_test(by_nccl),
      cmocka_unit_test(in_graphs),
      cmocka_unit_test(over_processes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
