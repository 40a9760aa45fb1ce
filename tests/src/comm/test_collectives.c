/* SPDX-License-Identifier: Apache-2.0
 * test_collectives.c: collectives on several host devices: what they compute, in which order, what they refuse, and
 * what the race check hears of them. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/comm/communicator.h"
#include "src/comm/reduce.h"
#include "tests/src/comm/comm_on_host.h"

static void fill_inputs(attune_dtype dtype, size_t count) {
  memset(out, 0xee, sizeof out);
  for (int r = 0; r < RANKS; r++)
    for (size_t i = 0; i < count; i++) put_number(in[r], dtype, i, number(r, i));
}

static void expect_sum(const unsigned char *at, attune_dtype dtype, size_t count) {
  static _Alignas(16) unsigned char right[ROOM];
  const size_t size = attune_dtype_size(dtype);
  for (size_t i = 0; i < count; i++) {
    double sum = 0.0;
    for (int r = 0; r < RANKS; r++) sum += number(r, i);
    put_number(right, dtype, i, sum);
  }
  if (memcmp(at, right, count * size) != 0) fail_msg("wrong sum of %zu %s", count, attune_dtype_name(dtype));
  for (size_t i = count * size; i < ROOM; i++) assert_int_equal(at[i], 0xee);
}

TEST(sums_of_every_type) {
  static const size_t counts[] = {0, 1, 3, 1027, COUNT};
  for (int dtype = ATTUNE_F64; dtype <= ATTUNE_C128; dtype++) {
    if (!at_reduce_as(ATTUNE_REDUCE_SUM, (attune_dtype)dtype)) continue;
    for (size_t c = 0; c < AT_COUNT(counts); c++) {
      attune_comm_data data = {(attune_dtype)dtype, counts[c], ins, outs};
      fill_inputs(data.dtype, data.count);
      OK(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
      OK(host_devices_wait());
      for (int r = 0; r < RANKS; r++) expect_sum(out[r], data.dtype, data.count);
      for (int root = 0; root < RANKS; root += 3) {
        fill_inputs(data.dtype, data.count);
        OK(attune_comm_reduce(comm, root, ATTUNE_REDUCE_SUM, streams, &data));
        OK(host_devices_wait());
        expect_sum(out[root], data.dtype, data.count);
        assert_int_equal(out[1][0], 0xee);
      }
    }
  }
}

/* In place, in many pieces. */
TEST(sums_in_pieces) {
  const size_t before = at_copies_set_staging(3 * 512);
  attune_comm_data data = {ATTUNE_F32, COUNT, ins, (void *const *)(void *)ins};
  fill_inputs(ATTUNE_F32, COUNT);
  memset((float *)(void *)in[0] + COUNT, 0xee, ROOM - COUNT * sizeof(float));
  OK(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
  OK(host_devices_wait());
  (void)at_copies_set_staging(before);
  expect_sum(in[0], ATTUNE_F32, COUNT);
  for (int r = 1; r < RANKS; r++) assert_memory_equal(in[r], in[0], COUNT * sizeof(float));
}

TEST(broadcast) {
  for (int root = 0; root < RANKS; root++) {
    const void *only[RANKS] = {NULL};
    void *others[RANKS];
    memcpy(others, outs, sizeof others);
    only[root] = in[root];
    attune_comm_data data = {ATTUNE_F8E4M3, 1001, only, others};
    fill_inputs(ATTUNE_F8E4M3, 1001);
    OK(attune_comm_broadcast(comm, root, streams, &data));
    OK(host_devices_wait());
    for (int r = 0; r < RANKS; r++) {
      assert_memory_equal(out[r], in[root], 1001);
      assert_int_equal(out[r][1001], 0xee);
    }
    memset(out, 0xee, sizeof out);
    others[root] = NULL; /* and the root's own is left alone */
    OK(attune_comm_broadcast(comm, root, streams, &data));
    OK(host_devices_wait());
    assert_int_equal(out[root][0], 0xee);
    assert_memory_equal(out[(root + 1) % RANKS], in[root], 1001);
  }
}

TEST(many_at_once) {
  const void *inputs[3][RANKS];
  void *outputs[3][RANKS];
  static const attune_dtype types[] = {ATTUNE_I32, ATTUNE_F16, ATTUNE_I16};
  attune_comm_data data[3];
  for (int k = 0; k < 3; k++) {
    for (int r = 0; r < RANKS; r++) inputs[k][r] = in[r] + 4096 * k, outputs[k][r] = out[r] + 4096 * k;
    data[k] = (attune_comm_data){types[k], k == 1 ? 0 : 10 + (size_t)k, inputs[k], outputs[k]};
  }
  memset(out, 0xee, sizeof out);
  for (int r = 0; r < RANKS; r++)
    for (int i = 0; i < 10; i++) ((int32_t *)(void *)in[r])[i] = r + i, ((int16_t *)(void *)(in[r] + 8192))[i] = 5;
  OK(attune_comm_reduce_add_coalesced(comm, 2, streams, data, 3));
  OK(host_devices_wait());
  assert_int_equal(((int32_t *)(void *)out[2])[9], 6 + 4 * 9);
  assert_int_equal(((int16_t *)(void *)(out[2] + 8192))[9], 20);
  assert_int_equal(out[2][4096], 0xee);
  OK(attune_comm_broadcast_coalesced(comm, 2, streams, data, 3));
  OK(host_devices_wait());
  assert_memory_equal(out[0] + 8192, in[2] + 8192, 24);
  OK(attune_comm_broadcast_coalesced(comm, 2, streams, NULL, 0));
  data[2].dtype = ATTUNE_BOOL;
  FAILS_SAYING(attune_comm_reduce_add_coalesced(comm, 2, streams, data, 3), ATTUNE_INVALID_ARGUMENT,
               "data[2]: dtype is bool");
  FAILS(attune_comm_reduce_add_coalesced(comm, 2, streams, data, -1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_comm_reduce_add_coalesced(comm, 2, streams, NULL, 1), ATTUNE_INVALID_ARGUMENT);
}

/* ---- pieces ---- */

static void scatter_and_gather_of(size_t outer, size_t size, size_t inner, const size_t *chunks, int root) {
  const size_t all = outer * size * inner, torch = (size + RANKS - 1) / RANKS;
  /* A dimension that is not there may be left 0. */
  attune_comm_split split = {ATTUNE_I32, outer == 1 ? 0 : outer, size, inner == 1 ? 0 : inner, chunks, whole, outs};
  int32_t *numbers = (int32_t *)(void *)whole;
  for (size_t i = 0; i < all; i++) numbers[i] = (int32_t)i;
  memset(out, 0xee, sizeof out);
  OK(attune_comm_scatter(comm, root, streams, &split));
  OK(host_devices_wait());
  size_t start = 0;
  for (int r = 0; r < RANKS; r++) {
    const size_t left = size - start, mine = chunks ? chunks[r] : left < torch ? left : torch;
    const int32_t *piece = (const int32_t *)(void *)out[r];
    for (size_t o = 0; o < outer; o++)
      for (size_t i = 0; i < mine * inner; i++)
        assert_int_equal(piece[o * mine * inner + i], (int32_t)((o * size + start) * inner + i));
    assert_int_equal(out[r][mine * outer * inner * 4], 0xee);
    start += mine;
  }
  memset(whole, 0, sizeof whole);
  OK(attune_comm_gather(comm, root, streams, &split));
  OK(host_devices_wait());
  for (size_t i = 0; i < all; i++) assert_int_equal(numbers[i], (int32_t)i);
}

TEST(scatter_and_gather) {
  static const size_t chunks[] = {3, 0, 10, 2}, rest[] = {0, 0, 0, 5};
  for (int root = 0; root < RANKS; root++) {
    scatter_and_gather_of(1, 15, 7, chunks, root);
    scatter_and_gather_of(5, 15, 3, chunks, root);
    scatter_and_gather_of(6, 5, 1, rest, root);
    scatter_and_gather_of(1, 10, 4, NULL, root); /* 3, 3, 3, 1 */
    scatter_and_gather_of(3, 2, 2, NULL, root);  /* 1, 1, 0, 0 */
    scatter_and_gather_of(4, 0, 2, NULL, root);
  }
}

/* The root's piece where it lies. */
TEST(a_piece_in_the_whole) {
  void *pieces[RANKS];
  attune_comm_split split = {ATTUNE_U8, 1, 40, 1, NULL, whole, pieces};
  memcpy(pieces, outs, sizeof pieces);
  pieces[1] = whole + 10;
  for (int i = 0; i < 40; i++) whole[i] = (unsigned char)i;
  OK(attune_comm_scatter(comm, 1, streams, &split));
  OK(host_devices_wait());
  assert_int_equal(out[3][9], 39);
  assert_int_equal(whole[19], 19);
  pieces[1] = whole + 11;
  FAILS_SAYING(attune_comm_scatter(comm, 1, streams, &split), ATTUNE_INVALID_ARGUMENT, "pieces[1] and whole overlap");
}

/* ---- order ---- */

typedef struct gate {
  sem_t open;
  float *to;
} gate;

static void pass(void *user) {
  gate *g = user;
  while (sem_wait(&g->open) != 0) {}
  for (int i = 0; g->to && i < COUNT; i++) g->to[i] = 8.0f;
}

/* What a rank's stream was given before is waited for, and its later work waits: here the inputs are written late, and
 * overwritten at once afterwards. */
TEST(each_stream_in_its_order) {
  attune_comm_data data = {ATTUNE_F32, COUNT, ins, outs};
  for (int late = 0; late < RANKS; late++) {
    gate g = {.to = (float *)(void *)in[late]};
    assert_int_equal(sem_init(&g.open, 0, 0), 0);
    memset(out, 0, sizeof out);
    for (int r = 0; r < RANKS; r++)
      for (int i = 0; i < COUNT; i++) ((float *)(void *)in[r])[i] = 1.0f;
    OK(attune_stream_call(streams[late], pass, &g));
    OK(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
    for (int r = 0; r < RANKS; r++) OK(attune_fill(streams[r], in[r], 0, COUNT * sizeof(float)));
    FAILS(attune_stream_query(streams[0]), ATTUNE_NOT_READY);
    sem_post(&g.open);
    OK(host_devices_wait());
    for (int r = 0; r < RANKS; r++)
      for (int i = 0; i < COUNT; i++) assert_true(((float *)(void *)out[r])[i] == 11.0f);
    sem_destroy(&g.open);
  }
}

/* The root's memory is not written anew while another rank, which is late, has still to read it. */
TEST(the_source_is_kept) {
  attune_comm_data data = {ATTUNE_F32, COUNT, ins, outs};
  attune_comm_split split = {ATTUNE_F32, 1, RANKS, 4, NULL, whole, outs};
  for (int round = 0; round < 2; round++) {
    void *source = round ? (void *)whole : (void *)in[1];
    gate g = {.to = NULL};
    assert_int_equal(sem_init(&g.open, 0, 0), 0);
    memset(source, 1, 64);
    OK(attune_stream_call(streams[3], pass, &g));
    OK(round ? attune_comm_scatter(comm, 1, streams, &split) : attune_comm_broadcast(comm, 1, streams, &data));
    OK(attune_fill(streams[1], source, 9, 64));
    FAILS(attune_stream_query(streams[1]), ATTUNE_NOT_READY);
    sem_post(&g.open);
    OK(host_devices_wait());
    assert_int_equal(out[3][0], 1);
    sem_destroy(&g.open);
  }
}

/* ---- captures ---- */

TEST(captures) {
  attune_comm *alone = NULL;
  attune_graph *graph = NULL;
  attune_comm_data data = {ATTUNE_F32, 4, ins, outs};
  attune_comm_split split = {ATTUNE_F32, 2, 2, 2, NULL, whole, outs};
  OK(attune_comm_create(&alone, devices, 1, ATTUNE_COMM_ANY));
  OK(attune_graph_create(&graph, devices[0]));
  fill_inputs(ATTUNE_F32, 4);
  OK(attune_graph_capture_begin(graph, streams[0], NULL));
  OK(attune_comm_all_reduce(alone, ATTUNE_REDUCE_SUM, streams, &data));
  FAILS_SAYING(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data), ATTUNE_CAPTURING, "1 of 4 streams");
  OK(attune_graph_capture_end(graph, streams[0]));
  assert_int_equal(out[0][0], 0xee);
  OK(attune_graph_replay(graph, streams[0]));
  OK(attune_stream_synchronize(streams[0]));
  assert_memory_equal(out[0], in[0], 16);
  attune_graph_destroy(graph);
  attune_graph *graphs[RANKS];
  for (int r = 0; r < RANKS; r++) {
    OK(attune_graph_create(&graphs[r], devices[r]));
    OK(attune_graph_capture_begin(graphs[r], streams[r], NULL));
  }
  FAILS_SAYING(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data), ATTUNE_UNSUPPORTED, "with NCCL");
  FAILS(attune_comm_gather(comm, 0, streams, &split), ATTUNE_UNSUPPORTED);
  for (int r = 0; r < RANKS; r++) {
    OK(attune_graph_capture_end(graphs[r], streams[r]));
    attune_graph_destroy(graphs[r]);
  }
  attune_comm_destroy(alone);
}

/* ---- the race check ---- */

TEST(the_race_check_knows) {
  attune_comm_data data = {ATTUNE_F32, 16, ins, outs};
  attune_comm_split split = {ATTUNE_F32, 1, 16, 1, NULL, whole, outs};
  attune_stream *other = NULL;
  OK(attune_stream_create(&other, devices[1]));
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
  OK(attune_set_race_check(1, NULL, NULL));
  for (int round = 0; round < 2; round++) { /* the calls among themselves are in order */
    OK(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
    OK(attune_comm_broadcast(comm, 2, streams, &data));
    OK(attune_comm_reduce(comm, 1, ATTUNE_REDUCE_SUM, streams, &data));
    OK(attune_comm_scatter(comm, 0, streams, &split));
    OK(attune_comm_gather(comm, 0, streams, &split));
  }
  assert_int_equal(attune_race_count(), 0);
  const struct {
    const void *memory;
    attune_access access;
    int races;
  } uses[] = {{out[1] + 63, ATTUNE_READS, 1},
              {out[1] + 64, ATTUNE_WRITES, 0},
              {in[1], ATTUNE_READS, 0},
              {in[1] + 63, ATTUNE_WRITES, 1}};
  for (size_t i = 0; i < AT_COUNT(uses); i++) {
    OK(host_devices_wait());
    OK(attune_stream_synchronize(other));
    OK(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
    const uint64_t before = attune_race_count();
    const attune_use use = {"it", uses[i].memory, 1, uses[i].access};
    OK(attune_note_use(other, "the program's kernel", &use, 1));
    assert_int_equal(attune_race_count() - before, uses[i].races);
  }
  OK(host_devices_wait());
  OK(attune_stream_synchronize(other));
  OK(attune_comm_broadcast(comm, 0, streams, &data)); /* no order between ranks follows */
  const attune_use late = {"it", in[0], 1, ATTUNE_WRITES};
  uint64_t before = attune_race_count();
  OK(attune_note_use(streams[1], "the program's kernel", &late, 1));
  assert_int_equal(attune_race_count() - before, 1);
  OK(host_devices_wait());
  OK(attune_comm_scatter(comm, 2, streams, &split));
  const attune_use first = {"it", whole, 1, ATTUNE_WRITES}, piece = {"it", out[1], 16, ATTUNE_READS};
  before = attune_race_count();
  OK(attune_note_use(other, "the program's kernel", &first, 1));
  OK(attune_note_use(other, "the program's kernel", &piece, 1));
  assert_int_equal(attune_race_count() - before, 2);
  OK(attune_set_race_check(0, NULL, NULL));
  attune_set_log(NULL, NULL, ATTUNE_LOG_ERROR);
  attune_stream_destroy(other);
}

/* ---- what is refused ---- */

TEST(communicators_refuse) {
  attune_comm *made = comm;
  attune_comm_id id;
  attune_device *twice[] = {devices[0], devices[0]}, *none[] = {devices[0], NULL};
  FAILS(attune_comm_create(NULL, devices, 2, ATTUNE_COMM_ANY), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_comm_create(&made, devices, 0, ATTUNE_COMM_ANY), ATTUNE_INVALID_ARGUMENT);
  assert_null(made);
  FAILS(attune_comm_create(&made, devices, 65, ATTUNE_COMM_ANY), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_comm_create(&made, NULL, 2, ATTUNE_COMM_ANY), ATTUNE_INVALID_ARGUMENT);
  FAILS_SAYING(attune_comm_create(&made, twice, 2, ATTUNE_COMM_ANY), ATTUNE_INVALID_ARGUMENT,
               "devices[0] and devices[1] are both host:0");
  FAILS(attune_comm_create(&made, none, 2, ATTUNE_COMM_ANY), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_comm_create(&made, devices, 2, (attune_comm_way)3), ATTUNE_INVALID_ARGUMENT);
  FAILS_SAYING(attune_comm_create(&made, devices, 2, ATTUNE_COMM_NCCL), ATTUNE_UNSUPPORTED,
               "NCCL does not support device host:0");
  memset(&id, 0, sizeof id);
  FAILS(attune_comm_join(&made, devices[0], &id, 0, 2), ATTUNE_UNSUPPORTED);
  FAILS(attune_comm_join(&made, devices[0], &id, 2, 2), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_comm_join(&made, devices[0], &id, 0, 0), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_comm_join(&made, devices[0], NULL, 0, 2), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_comm_join(&made, NULL, &id, 0, 2), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_comm_join(NULL, devices[0], &id, 0, 2), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_comm_make_id(NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_comm_check(NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_comm_abort(NULL), ATTUNE_INVALID_ARGUMENT);
  attune_comm_destroy(NULL);
  assert_int_equal(attune_comm_size(comm), RANKS);
  assert_int_equal(attune_comm_size(NULL), 0);
  assert_int_equal(attune_comm_rank(comm), 0);
  assert_int_equal(attune_comm_rank(NULL), -1);
  assert_string_equal(attune_comm_describe(comm), "copies");
  assert_string_equal(attune_comm_describe(NULL), "");
}

#define REFUSED(call, words)                                                          \
  do {                                                                                \
    FAILS(call, ATTUNE_INVALID_ARGUMENT);                                             \
    if (!strstr(attune_last_message(), words)) fail_msg("%s", attune_last_message()); \
  } while (0)

TEST(calls_refuse) {
  const void *given[RANKS];
  void *taken[RANKS];
  attune_stream *wrong[RANKS];
  attune_comm_data good = {ATTUNE_F32, 4, given, taken}, d = good;
  memcpy(given, ins, sizeof given);
  memcpy(taken, outs, sizeof taken);
  memcpy(wrong, streams, sizeof wrong);
  REFUSED(attune_comm_all_reduce(NULL, ATTUNE_REDUCE_SUM, streams, &d), "comm is NULL");
  REFUSED(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, NULL, &d), "streams is NULL");
  REFUSED(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, NULL), "data is NULL");
  REFUSED(attune_comm_broadcast(comm, 4, streams, &d), "root is 4");
  REFUSED(attune_comm_broadcast(comm, -1, streams, &d), "root is -1");
  wrong[2] = NULL;
  REFUSED(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, wrong, &d), "streams[2] is NULL");
  wrong[2] = streams[1];
  REFUSED(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, wrong, &d), "streams[2] is of host:1; should be of host:2");
  d.dtype = (attune_dtype)0;
  REFUSED(attune_comm_broadcast(comm, 0, streams, &d), "dtype is 0");
  d.dtype = ATTUNE_F8E5M2;
  REFUSED(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &d), "dtype is f8e5m2, which does not support sums");
  d = good, d.count = SIZE_MAX / 4;
  REFUSED(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &d), "count is");
  d = good, d.inputs = NULL;
  REFUSED(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &d), "inputs is NULL");
  REFUSED(attune_comm_broadcast(comm, 0, streams, &d), "inputs is NULL");
  d = good, d.outputs = NULL;
  REFUSED(attune_comm_reduce(comm, 0, ATTUNE_REDUCE_SUM, streams, &d), "outputs is NULL");
  given[1] = NULL;
  REFUSED(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &good), "inputs[1] is NULL");
  OK(attune_comm_broadcast(comm, 0, streams, &good));
  REFUSED(attune_comm_broadcast(comm, 1, streams, &good), "inputs[1] is NULL");
  given[1] = in[1] + 2;
  REFUSED(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &good), "should be aligned to 4");
  given[1] = out[1] + 4;
  REFUSED(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &good), "inputs[1] and outputs[1] overlap");
  given[1] = (const void *)(UINTPTR_MAX - 3);
  REFUSED(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &good), "exceeds the address space");
  given[1] = in[1];
  taken[3] = NULL;
  REFUSED(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &good), "outputs[3] is NULL");
  OK(attune_comm_reduce(comm, 0, ATTUNE_REDUCE_SUM, streams, &good));
  OK(host_devices_wait());
}

TEST(splits_refuse) {
  static const size_t short_of[] = {1, 1, 1, 1}, over[] = {SIZE_MAX, 6, 0, 0};
  const attune_comm_split good = {ATTUNE_F32, 1, 5, 1, NULL, whole, outs};
  attune_comm_split s = good;
  REFUSED(attune_comm_scatter(comm, 0, streams, NULL), "split is NULL");
  s.dtype = (attune_dtype)99;
  REFUSED(attune_comm_scatter(comm, 0, streams, &s), "dtype is 99");
  s = good, s.chunks = short_of;
  REFUSED(attune_comm_gather(comm, 0, streams, &s), "chunks do not add up to size, 5");
  s.chunks = over;
  REFUSED(attune_comm_gather(comm, 0, streams, &s), "chunks do not add up to size");
  s = good, s.whole = NULL;
  REFUSED(attune_comm_gather(comm, 0, streams, &s), "whole is NULL");
  s = good, s.pieces = NULL;
  REFUSED(attune_comm_gather(comm, 0, streams, &s), "pieces is NULL");
  s = good, s.outer = SIZE_MAX;
  REFUSED(attune_comm_gather(comm, 0, streams, &s), "should fit into memory");
  REFUSED(attune_comm_gather(comm, 9, streams, &good), "root is 9");
}

TEST(aborted) {
  attune_comm *gone = NULL;
  attune_comm_data data = {ATTUNE_F32, 4, ins, outs};
  OK(attune_comm_create(&gone, devices, 2, ATTUNE_COMM_COPIES));
  OK(attune_comm_check(gone));
  OK(attune_comm_abort(gone));
  OK(attune_comm_abort(gone));
  FAILS(attune_comm_check(gone), ATTUNE_DEVICE_ERROR);
  FAILS_SAYING(attune_comm_all_reduce(gone, ATTUNE_REDUCE_SUM, streams, &data), ATTUNE_DEVICE_ERROR, "was aborted");
  attune_comm_destroy(gone);
}

TEST(of_a_parent) {
  attune_comm_data data = {ATTUNE_F32, 4, ins, outs};
  int ended = 0;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const bool told = attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data) == ATTUNE_DEVICE_ERROR &&
                      strstr(attune_last_message(), "before fork") && attune_comm_check(comm) == ATTUNE_DEVICE_ERROR &&
                      attune_comm_abort(comm) == ATTUNE_DEVICE_ERROR;
    attune_comm_destroy(comm);
    _exit(told ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  OK(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data)); /* the parent's goes on */
  OK(host_devices_wait());
}

int main(void) {
  return RUN_TESTS(comm_begin, comm_end);
}
