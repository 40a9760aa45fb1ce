/* SPDX-License-Identifier: Apache-2.0
 * test_reductions.c: reductions of every kind and type, all-gather and reduce-scatter on several host devices, against
 * a plain reference; and communicators of two. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <semaphore.h>

#include "src/comm/reduce.h"
#include "tests/src/comm/comm_on_host.h"

/* ---- every reduction of every type, against a plain one ---- */

/* Few and small ones, so that products are exact too. */
static double small_number(int rank, size_t i) {
  return (double)((i * 5 + (size_t)rank * 3) % 4) + (rank == 1 ? -1.0 : 1.0);
}

/* As elements of the type: those without a sign have no negative ones. */
static double value(attune_dtype dtype, int rank, size_t i) {
  const double x = small_number(rank, i);
  if (dtype == ATTUNE_BOOL) return x > 2.0;
  return dtype >= ATTUNE_U8 && dtype <= ATTUNE_U64 && x < 0.0 ? 7.0 : x;
}

static double plain(attune_reduction reduction, attune_dtype dtype, size_t i) {
  double all = value(dtype, 0, i);
  for (int r = 1; r < RANKS; r++) {
    const double x = value(dtype, r, i);
    if (reduction == ATTUNE_REDUCE_PRODUCT)
      all *= x;
    else if (reduction == ATTUNE_REDUCE_MIN)
      all = x < all ? x : all;
    else if (reduction == ATTUNE_REDUCE_MAX)
      all = x > all ? x : all;
    else
      all += x;
  }
  return reduction == ATTUNE_REDUCE_AVERAGE ? all / RANKS : all;
}

static void fill_small(attune_dtype dtype, size_t count) {
  memset(out, 0xee, sizeof out);
  for (int r = 0; r < RANKS; r++)
    for (size_t i = 0; i < count; i++) put_number(in[r], dtype, i, value(dtype, r, i));
}

static void expect_right(const unsigned char *at, attune_reduction reduction, attune_dtype dtype, size_t from,
                         size_t count) {
  static _Alignas(16) unsigned char right[ROOM];
  for (size_t i = 0; i < count; i++) put_number(right, dtype, i, plain(reduction, dtype, from + i));
  if (memcmp(at, right, count * attune_dtype_size(dtype)) != 0)
    fail_msg("reduction %d of %zu %s", (int)reduction, count, attune_dtype_name(dtype));
  assert_int_equal(at[count * attune_dtype_size(dtype)], 0xee);
}

static void every_reduction(attune_reduction reduction, attune_dtype dtype, size_t count) {
  attune_comm_data data = {dtype, count, ins, outs};
  fill_small(dtype, count * RANKS);
  OK(attune_comm_all_reduce(comm, reduction, streams, &data));
  OK(host_devices_wait());
  for (int r = 0; r < RANKS; r++) expect_right(out[r], reduction, dtype, 0, count);
  memset(out, 0xee, sizeof out);
  OK(attune_comm_reduce(comm, 2, reduction, streams, &data));
  OK(attune_comm_all_reduce_coalesced(comm, reduction, streams, &data, 0));
  OK(host_devices_wait());
  expect_right(out[2], reduction, dtype, 0, count);
  assert_int_equal(out[1][0], 0xee);
  memset(out, 0xee, sizeof out);
  OK(attune_comm_reduce_scatter(comm, reduction, streams, &data));
  OK(host_devices_wait());
  for (int r = 0; r < RANKS; r++) expect_right(out[r], reduction, dtype, count * (size_t)r, count);
}

TEST(reductions_of_every_type) {
  static const size_t counts[] = {1, 3, COUNT / RANKS - 1};
  int refused = 0;
  for (int op = ATTUNE_REDUCE_SUM; op <= ATTUNE_REDUCE_AVERAGE; op++)
    for (int dtype = ATTUNE_F64; dtype <= ATTUNE_C128; dtype++) {
      attune_comm_data data = {(attune_dtype)dtype, 1, ins, outs};
      if (at_reduce_as((attune_reduction)op, data.dtype)) {
        for (size_t c = 0; c < AT_COUNT(counts); c++) every_reduction((attune_reduction)op, data.dtype, counts[c]);
      } else {
        FAILS_SAYING(attune_comm_all_reduce(comm, (attune_reduction)op, streams, &data), ATTUNE_INVALID_ARGUMENT,
                     "which does not support ");
        refused++;
      }
    }
  assert_int_equal(refused, 3 + 5 + 4 + 4 + 11); /* in collectives.h */
}

/* Of a NaN and a number both are the number, whichever comes first. */
TEST(numbers_win_over_nan) {
  attune_comm_data data = {ATTUNE_F32, 4, ins, outs};
  for (int op = ATTUNE_REDUCE_MIN; op <= ATTUNE_REDUCE_MAX; op++) {
    for (int r = 0; r < RANKS; r++)
      for (int i = 0; i < 4; i++) ((float *)(void *)in[r])[i] = i == r ? 5.0f : __builtin_nanf("");
    OK(attune_comm_all_reduce(comm, (attune_reduction)op, streams, &data));
    OK(host_devices_wait());
    for (int i = 0; i < 4; i++) assert_true(((float *)(void *)out[1])[i] == 5.0f);
  }
}

/* All numbers wrap: 255 * 255 of u8, and what would overflow an int on the way. */
TEST(products_wrap) {
  attune_comm_data data = {ATTUNE_U16, 1, ins, outs};
  for (int r = 0; r < RANKS; r++) *(uint16_t *)(void *)in[r] = 65535;
  OK(attune_comm_all_reduce(comm, ATTUNE_REDUCE_PRODUCT, streams, &data));
  OK(host_devices_wait());
  assert_int_equal(*(uint16_t *)(void *)out[3], 1);
}

/* 1 + 2^-9 three times: each addition alone rounds the small part away in bf16. */
TEST(halves_are_added_in_f32) {
  attune_comm_data data = {ATTUNE_BF16, 1, ins, outs};
  for (int r = 0; r < RANKS; r++) *(uint16_t *)(void *)in[r] = at_f32_to_bf16(r ? 0x1p-9f : 1.0f);
  OK(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
  OK(host_devices_wait());
  assert_int_equal(*(uint16_t *)(void *)out[3], at_f32_to_bf16(1.0f + 3 * 0x1p-9f));
  assert_int_not_equal(*(uint16_t *)(void *)out[3], at_f32_to_bf16(1.0f));
}

/* ---- all-gather, and in place ---- */

TEST(all_gather) {
  static const size_t counts[] = {1, 7, COUNT / RANKS - 1};
  for (int dtype = ATTUNE_F64; dtype <= ATTUNE_C128; dtype++)
    for (size_t c = 0; c < AT_COUNT(counts); c++) {
      const size_t bytes = counts[c] * attune_dtype_size((attune_dtype)dtype);
      attune_comm_data data = {(attune_dtype)dtype, counts[c], ins, outs};
      memset(out, 0xee, sizeof out);
      for (int r = 0; r < RANKS; r++) memset(in[r], 'a' + r, bytes);
      OK(attune_comm_all_gather(comm, streams, &data));
      OK(host_devices_wait());
      for (int r = 0; r < RANKS; r++) {
        for (int from = 0; from < RANKS; from++) assert_memory_equal(out[r] + bytes * (size_t)from, in[from], bytes);
        assert_int_equal(out[r][bytes * RANKS], 0xee);
      }
    }
}

TEST(a_rank_at_its_place) {
  const void *inputs[RANKS];
  void *outputs[RANKS];
  attune_comm_data data = {ATTUNE_I32, 10, inputs, outputs};
  for (int r = 0; r < RANKS; r++) {
    inputs[r] = out[r] + 40 * r, outputs[r] = out[r];
    for (int i = 0; i < 10; i++) ((int32_t *)(void *)(out[r] + 40 * r))[i] = 10 * r + i;
  }
  OK(attune_comm_all_gather(comm, streams, &data));
  OK(host_devices_wait());
  for (int i = 0; i < 40; i++) assert_int_equal(((int32_t *)(void *)out[2])[i], i);
  for (int r = 0; r < RANKS; r++) inputs[r] = out[r], outputs[r] = out[r] + 40 * r;
  OK(attune_comm_reduce_scatter(comm, ATTUNE_REDUCE_SUM, streams, &data));
  OK(host_devices_wait());
  for (int r = 0; r < RANKS; r++)
    for (int i = 0; i < 40; i++) assert_int_equal(((int32_t *)(void *)out[r])[i], i / 10 == r ? 4 * i : i);
  outputs[1] = out[1];
  FAILS_SAYING(attune_comm_reduce_scatter(comm, ATTUNE_REDUCE_SUM, streams, &data), ATTUNE_INVALID_ARGUMENT,
               "inputs[1] and outputs[1] overlap; should be the rank's own place");
  inputs[1] = out[1] + 80;
  FAILS(attune_comm_all_gather(comm, streams, &data), ATTUNE_INVALID_ARGUMENT);
}

/* Two ranks are served otherwise than several: in what comes out, and in order. */
TEST(two_ranks) {
  attune_comm *pair = NULL;
  attune_comm_data data = {ATTUNE_F32, COUNT / 2, ins, outs};
  attune_comm_split split = {ATTUNE_F32, 1, 1001, 2, NULL, whole, outs};
  OK(attune_comm_create(&pair, devices, 2, ATTUNE_COMM_ANY));
  for (int root = 0; root < 2; root++) {
    for (int r = 0; r < RANKS; r++)
      for (size_t i = 0; i < COUNT; i++) put_number(in[r], ATTUNE_F32, i, number(r, i));
    OK(attune_comm_broadcast(pair, root, streams, &data));
    OK(attune_fill(streams[root], in[root], 0, 4)); /* after it was read */
    OK(host_devices_wait());
    for (int r = 0; r < 2; r++) assert_true(((float *)(void *)out[r])[0] == (float)number(root, 0));
    OK(attune_comm_all_reduce(pair, ATTUNE_REDUCE_MAX, streams, &data));
    OK(host_devices_wait());
    for (int i = 1; i < COUNT / 2; i++) {
      const double a = number(0, (size_t)i), b = number(1, (size_t)i);
      assert_true((double)((float *)(void *)out[1 - root])[i] == (a > b ? a : b));
    }
    for (int i = 0; i < 2002; i++) ((float *)(void *)whole)[i] = (float)i;
    OK(attune_comm_scatter(pair, root, streams, &split));
    OK(attune_fill(streams[root], whole, 0, 2002 * 4));
    OK(attune_comm_gather(pair, root, streams, &split));
    OK(host_devices_wait());
    for (int i = 0; i < 2002; i++) assert_true(((float *)(void *)whole)[i] == (float)i);
  }
  attune_comm_destroy(pair);
}

/* ---- order ---- */

typedef struct gate {
  sem_t open;
  float *to;
} gate;

/* Earlier work of a stream, which writes late. */
static void pass(void *user) {
  gate *g = user;
  while (sem_wait(&g->open) != 0) {}
  for (int i = 0; i < 16; i++) g->to[i] = 8.0f;
}

static void hold(gate *g, int rank, void *to) {
  *g = (gate){.to = to};
  assert_int_equal(sem_init(&g->open, 0, 0), 0);
  OK(attune_stream_call(streams[rank], pass, g));
}

static void let_go(gate *g) {
  sem_post(&g->open);
  OK(host_devices_wait());
  sem_destroy(&g->open);
}

static void all_ones(void) {
  memset(out, 0, sizeof out);
  for (int r = 0; r < RANKS; r++)
    for (int i = 0; i < 64; i++) ((float *)(void *)in[r])[i] = 1.0f;
}

/* Late inputs are waited for, and no input is written anew before all have read it. */
TEST(all_gather_in_order) {
  attune_comm_data data = {ATTUNE_F32, 16, ins, outs};
  gate g;
  for (int late = 0; late < RANKS; late++) {
    all_ones();
    hold(&g, late, in[late]);
    OK(attune_comm_all_gather(comm, streams, &data));
    for (int r = 0; r < RANKS; r++) OK(attune_fill(streams[r], in[r], 0, 64));
    let_go(&g);
    for (int r = 0; r < RANKS; r++)
      for (int i = 0; i < 64; i++) assert_true(((float *)(void *)out[r])[i] == (i / 16 == late ? 8.0f : 1.0f));
  }
}

/* The receiver's stream has written there before, late; the root's source comes late; and what follows on either stream
 * sees it done. */
TEST(two_ranks_in_order) {
  attune_comm *pair = NULL;
  attune_comm_data data = {ATTUNE_F32, 16, ins, outs};
  attune_comm_split split = {ATTUNE_F32, 1, 32, 1, NULL, NULL, outs};
  float *seen = (float *)(void *)whole;
  gate g;
  OK(attune_comm_create(&pair, devices, 2, ATTUNE_COMM_ANY));
  for (int round = 0; round < 8; round++) {
    const int root = round / 4, other = 1 - root, late = round % 2 ? root : other;
    const bool scatters = round / 2 % 2;
    float *source = (float *)(void *)in[root];
    all_ones();
    split.whole = source;
    hold(&g, late, late == root ? source + (scatters ? 16 * other : 0) : (float *)(void *)out[other]);
    OK(scatters ? attune_comm_scatter(pair, root, streams, &split) : attune_comm_broadcast(pair, root, streams, &data));
    OK(attune_copy(streams[other], seen, out[other], 64));
    OK(attune_fill(streams[other], out[other], 0, 64));
    OK(attune_fill(streams[root], source, 0, 128));
    let_go(&g);
    for (int i = 0; i < 16; i++) assert_true(seen[i] == (late == root ? 8.0f : 1.0f));
    for (int i = 0; i < 16; i++) assert_true(((float *)(void *)out[other])[i] == 0.0f);
  }
  attune_comm_destroy(pair);
}

TEST(what_is_refused) {
  attune_comm_data d = {ATTUNE_F32, 4, ins, outs};
  FAILS_SAYING(attune_comm_all_reduce(comm, (attune_reduction)5, streams, &d), ATTUNE_INVALID_ARGUMENT,
               "reduction is 5");
  FAILS(attune_comm_reduce_scatter(comm, (attune_reduction)-1, streams, &d), ATTUNE_INVALID_ARGUMENT);
  d.count = SIZE_MAX / 16;
  FAILS_SAYING(attune_comm_all_gather(comm, streams, &d), ATTUNE_INVALID_ARGUMENT, "count is");
  d.count = 0;
  OK(attune_comm_reduce_scatter(comm, ATTUNE_REDUCE_MIN, streams, &d));
}

int main(void) {
  return RUN_TESTS(comm_begin, comm_end);
}
