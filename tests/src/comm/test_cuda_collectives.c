/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_collectives.c: copies and collectives of two GPUs: between devices that are peers and that are not, by
 * copies and by NCCL where it is, in graphs, and over two processes. Needs two GPUs. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/comm/reduce.h"
#include "tests/src/comm/numbers.h"
#include "tests/support/child.h"

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

/* Boxes from cuda:0 to cuda:1: rows with gaps, slices with gaps, slices that fit no number of rows, one of each. */
static void boxes(void *first, void *second) {
  static const struct {
    size_t pitch_to, slice_to, pitch_from, slice_from, bytes, rows, slices;
  } cases[] = {{512, 512 * 9, 640, 640 * 8, 300, 8, 5},
               {512, 512 * 9 + 4, 640, 640 * 8 + 12, 300, 8, 5},
               {300, 300 * 8, 640, 640 * 8, 300, 8, 5},
               {512, 512 * 8, 640, 640 * 8, 3, 8, 1},
               {512, 512, 640, 640, 300, 1, 7}};
  enum { ROOM = 1 << 16 };
  static unsigned char from[ROOM], right[ROOM], got[ROOM];
  for (size_t c = 0; c < AT_COUNT(cases); c++)
    for (int on = 0; on < GPUS; on++) {
      for (int i = 0; i < ROOM; i++) from[i] = (unsigned char)(i * 7 + i / 251 + on);
      memset(right, 0xee, sizeof right);
      for (size_t z = 0; z < cases[c].slices; z++)
        for (size_t y = 0; y < cases[c].rows; y++)
          memcpy(right + z * cases[c].slice_to + y * cases[c].pitch_to,
                 from + z * cases[c].slice_from + y * cases[c].pitch_from, cases[c].bytes);
      OK(attune_copy(streams[0], first, from, ROOM));
      OK(attune_fill(streams[1], second, 0xee, ROOM));
      for (int g = 0; g < GPUS; g++) OK(attune_stream_synchronize(streams[g]));
      const attune_box_copy box = {second,         cases[c].pitch_to,   cases[c].slice_to,
                                   first,          cases[c].pitch_from, cases[c].slice_from,
                                   cases[c].bytes, cases[c].rows,       cases[c].slices};
      OK(attune_copy_3d(streams[on], &box));
      OK(attune_stream_synchronize(streams[on]));
      OK(attune_copy(streams[1], got, second, ROOM));
      OK(attune_stream_synchronize(streams[1]));
      if (memcmp(got, right, ROOM) != 0) fail_msg("box %zu by the stream of cuda:%d", c, on);
    }
}

/* In a fresh process the two are no peers yet. */
TEST(copies_between_devices) {
  static const char *const kinds[] = {"expandable_segments:true", "expandable_segments:false"};
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
      boxes(first, second);
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
    OK(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
    for (int g = 0; g < GPUS; g++) expect(g, out[g], 10.0f, 2.0f, counts[c]);
    OK(attune_comm_broadcast(comm, 1, streams, &data));
    for (int g = 0; g < GPUS; g++) expect(g, out[g], 10.0f, 1.0f, counts[c]);
    OK(attune_comm_reduce(comm, 0, ATTUNE_REDUCE_SUM, streams, &data));
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
  OK(attune_comm_check(comm));
  for (int g = 0; g < GPUS; g++) {
    OK(attune_stream_synchronize(streams[g]));
    OK(attune_free(in[g], streams[g]));
    OK(attune_free(out[g], streams[g]));
  }
  OK(attune_free(whole, streams[1]));
}

/* ---- every reduction and type, against a plain one ---- */

enum { SOME = 1003 };

/* Small whole numbers; the elements as bytes of the type. */
static double small_number(attune_dtype dtype, int gpu, size_t i) {
  const double x = (double)((i * 5 + (size_t)gpu * 3) % 6) - (gpu == 1 ? 2.0 : 0.0);
  if (dtype == ATTUNE_BOOL) return x > 2.0;
  return dtype >= ATTUNE_U8 && dtype <= ATTUNE_U64 && x < 0.0 ? 7.0 : x;
}

static double plain(attune_reduction reduction, attune_dtype dtype, size_t i) {
  const double x = small_number(dtype, 0, i), y = small_number(dtype, 1, i);
  switch (reduction) {
  case ATTUNE_REDUCE_PRODUCT: return x * y;
  case ATTUNE_REDUCE_MIN: return x < y ? x : y;
  case ATTUNE_REDUCE_MAX: return x > y ? x : y;
  case ATTUNE_REDUCE_AVERAGE: return (x + y) / 2;
  default: return x + y;
  }
}

static void expect_plain(int gpu, const void *p, attune_reduction reduction, attune_dtype dtype, size_t from) {
  static _Alignas(16) unsigned char got[SOME * 16], right[SOME * 16];
  const size_t bytes = SOME * attune_dtype_size(dtype);
  for (size_t i = 0; i < SOME; i++) put_number(right, dtype, i, plain(reduction, dtype, from + i));
  OK(attune_copy(streams[gpu], got, p, bytes));
  OK(attune_stream_synchronize(streams[gpu]));
  if (memcmp(got, right, bytes) != 0)
    fail_msg("reduction %d of %s from %zu on, cuda:%d", (int)reduction, attune_dtype_name(dtype), from, gpu);
}

static void reductions(attune_comm *comm) {
  static _Alignas(16) unsigned char given[2 * SOME * 16];
  void *in[GPUS], *out[GPUS];
  for (int g = 0; g < GPUS; g++) in[g] = take(g, sizeof given), out[g] = take(g, sizeof given);
  for (int dtype = ATTUNE_F64; dtype <= ATTUNE_C128; dtype++) {
    const attune_comm_data data = {(attune_dtype)dtype, SOME, (const void *const *)in, out};
    const size_t bytes = SOME * attune_dtype_size(data.dtype);
    for (int g = 0; g < GPUS; g++) {
      for (size_t i = 0; i < 2 * SOME; i++) put_number(given, data.dtype, i, small_number(data.dtype, g, i));
      OK(attune_copy(streams[g], in[g], given, 2 * bytes));
      OK(attune_stream_synchronize(streams[g]));
    }
    for (int op = ATTUNE_REDUCE_SUM; op <= ATTUNE_REDUCE_AVERAGE; op++) {
      const attune_reduction reduction = (attune_reduction)op;
      if (!at_reduce_as(reduction, data.dtype)) continue;
      OK(attune_comm_all_reduce(comm, reduction, streams, &data));
      for (int g = 0; g < GPUS; g++) expect_plain(g, out[g], reduction, data.dtype, 0);
      OK(attune_fill(streams[1], out[1], 0, bytes));
      OK(attune_comm_reduce(comm, 1, reduction, streams, &data));
      expect_plain(1, out[1], reduction, data.dtype, 0);
      OK(attune_comm_reduce_scatter(comm, reduction, streams, &data));
      for (int g = 0; g < GPUS; g++) expect_plain(g, out[g], reduction, data.dtype, SOME * (size_t)g);
    }
    OK(attune_comm_all_gather(comm, streams, &data));
    for (int g = 0; g < GPUS; g++)
      for (int from = 0; from < GPUS; from++) {
        static unsigned char got[SOME * 16], right[SOME * 16];
        OK(attune_copy(streams[g], got, (char *)out[g] + bytes * (size_t)from, bytes));
        OK(attune_copy(streams[from], right, in[from], bytes));
        for (int s = 0; s < GPUS; s++) OK(attune_stream_synchronize(streams[s]));
        assert_memory_equal(got, right, bytes);
      }
  }
  for (int g = 0; g < GPUS; g++) {
    OK(attune_free(in[g], streams[g]));
    OK(attune_free(out[g], streams[g]));
  }
}

/* Memory of the host as the whole, by copies; and odd addresses. */
static void pieces_of_the_host(attune_comm *comm) {
  float *whole = calloc(2000, sizeof *whole);
  void *pieces[GPUS] = {(char *)take(0, 8192) + 4, (char *)take(1, 8192) + 4};
  const attune_comm_split split = {ATTUNE_F32, 1, 2000, 1, NULL, whole, pieces};
  for (int root = 0; root < GPUS; root++) {
    for (int i = 0; i < 2000; i++) whole[i] = (float)(i + root);
    OK(attune_comm_scatter(comm, root, streams, &split));
    for (int g = 0; g < GPUS; g++) OK(attune_stream_synchronize(streams[g]));
    memset(whole, 0, 2000 * sizeof *whole);
    OK(attune_comm_gather(comm, root, streams, &split));
    for (int g = 0; g < GPUS; g++) OK(attune_stream_synchronize(streams[g]));
    for (int i = 0; i < 2000; i++) assert_true(whole[i] == (float)(i + root));
  }
  for (int g = 0; g < GPUS; g++) OK(attune_free((char *)pieces[g] - 4, streams[g]));
  free(whole);
}

TEST(by_copies) {
  attune_comm *comm = NULL;
  OK(attune_comm_create(&comm, devices, GPUS, ATTUNE_COMM_COPIES));
  collectives(comm);
  reductions(comm);
  pieces_of_the_host(comm);
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

TEST(by_nccl) {
  attune_comm *comm = by_nccl_or_skip();
  print_message("%s\n", attune_comm_describe(comm));
  collectives(comm);
  reductions(comm);
  pieces_of_the_host(comm);
  attune_comm_destroy(comm);
}

/* A graph of each device; replayed together, ten times. */
TEST(in_graphs) {
  attune_graph *graphs[GPUS];
  void *in[GPUS], *out[GPUS], *whole = take(0, 4096);
  attune_comm *comm = by_nccl_or_skip();
  for (int g = 0; g < GPUS; g++) {
    in[g] = take(g, COUNT * 4);
    out[g] = take(g, COUNT * 4);
    put(g, in[g], (float)g, COUNT);
    OK(attune_graph_create(&graphs[g], devices[g]));
  }
  const attune_comm_data data = {ATTUNE_F32, COUNT, (const void *const *)in, out};
  const attune_comm_split split = {ATTUNE_F32, 1, 1000, 1, NULL, whole, in};
  OK(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data)); /* connects */
  OK(attune_comm_scatter(comm, 0, streams, &split));
  for (int g = 0; g < GPUS; g++) OK(attune_stream_synchronize(streams[g]));
  for (int g = 0; g < GPUS; g++) OK(attune_graph_capture_begin(graphs[g], streams[g], NULL));
  OK(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
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

/* A rank that is killed leaves a call that does not end until it is aborted. */
static int alone(attune_comm *comm, const attune_comm_data *data) {
  attune_status status = attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, &streams[0], data);
  for (int i = 0; i < 500 && status == ATTUNE_OK && attune_stream_query(streams[0]) != ATTUNE_OK; i++) {
    usleep(1000);
    status = attune_comm_check(comm);
  }
  print_message("after a rank was killed: %s\n", status == ATTUNE_OK ? "nothing told" : attune_last_message());
  EXPECT(attune_comm_abort(comm) == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(attune_stream_synchronize(streams[0]) == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, &streams[0], data) == ATTUNE_DEVICE_ERROR, "aborted");
  attune_comm_destroy(comm);
  void *memory = take(0, 4096); /* the device goes on */
  EXPECT(attune_fill(streams[0], memory, 1, 4096) == ATTUNE_OK, "%s", attune_last_message());
  EXPECT(attune_stream_synchronize(streams[0]) == ATTUNE_OK, "%s", attune_last_message());
  return 0;
}

/* rank, and the id in hexadecimal digits; `dies`: rank 1 does after the first call */
static int as_rank(int rank, const char *digits, bool dies) {
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
  EXPECT(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, &streams[rank], &data) == ATTUNE_OK, "%s",
         attune_last_message());
  expect(rank, out, 3.0f, 2.0f, COUNT);
  if (dies && rank == 1) (void)raise(SIGKILL);
  if (dies) return alone(comm, &data);
  const attune_comm_data half = {ATTUNE_F32, COUNT / 2, (const void *const *)&in, &out};
  EXPECT(attune_comm_reduce_scatter(comm, ATTUNE_REDUCE_MAX, &streams[rank], &half) == ATTUNE_OK, "%s",
         attune_last_message());
  if (rank == 0) expect(0, out, 3.0f, 1.0f, 1000);
  EXPECT(attune_comm_all_gather(comm, &streams[rank], &(attune_comm_data){ATTUNE_F32, 1000, half.inputs, &out}) ==
             ATTUNE_OK,
         "%s", attune_last_message());
  expect(rank, out, 0.0f, 1.0f, 1000);
  expect(rank, (char *)out + 4000, 3.0f, 1.0f, 1000);
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

static void two_processes(bool dies) {
  attune_comm_id id;
  char self[4096] = "", digits[257] = "";
  pid_t children[GPUS];
  const attune_status status = attune_comm_make_id(&id);
  if (status == ATTUNE_UNSUPPORTED) skip();
  OK(status);
  for (size_t i = 0; i < sizeof id.bytes; i++) snprintf(digits + 2 * i, 3, "%02x", id.bytes[i]);
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  for (int r = 0; r < GPUS; r++) {
    const char *const words[] = {self, r ? "1" : "0", digits, dies ? "dies" : "lives", NULL};
    assert_int_equal(posix_spawn(&children[r], self, NULL, NULL, (char **)(uintptr_t)words, environ), 0);
  }
  for (int r = GPUS - 1; r >= 0; r--) {
    int ended = 1;
    assert_int_equal(waitpid(children[r], &ended, 0), children[r]);
    if (dies && r == 1)
      assert_true(WIFSIGNALED(ended));
    else
      assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  }
}

TEST(over_processes) {
  two_processes(false);
}

TEST(a_process_dies) {
  two_processes(true);
}

int main(int argc, char **argv) {
  if (argc > 3) return as_rank(atoi(argv[1]), argv[2], argv[3][0] == 'd');
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  attune_device *found = NULL;
  if (attune_device_get(&found, "cuda:1") != ATTUNE_OK)
    return skip_all("%s; two GPUs are needed", attune_last_message());
  if (open_devices() != 0) return 1;
  return RUN_TESTS(NULL, NULL);
}
