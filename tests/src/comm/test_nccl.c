/* SPDX-License-Identifier: Apache-2.0
 * test_nccl.c: collectives by NCCL: what is asked of it, what comes of its errors, of an old one, of one that is stuck,
 * and of none. Each way is a process of its own with a made libnccl.so.2, fake_nccl.c, which works on host devices. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "src/comm/communicator.h"
#include "tests/support/child.h"
#include "tests/support/host_devices.h"

enum { RANKS = HOST_DEVICES, COUNT = 100 };

static _Alignas(16) unsigned char in[RANKS][COUNT * 16], out[RANKS][COUNT * 16], whole[RANKS * COUNT * 16];
static const void *ins[RANKS];
static void *outs[RANKS];
static char *told; /* fake_nccl_log */

static int prepare(void) {
  if (host_devices_begin() != 0) return 1;
  for (int i = 0; i < HOST_DEVICES; i++) host_devices[i].backend.nccl = true;
  for (int i = 0; i < RANKS; i++) {
    ins[i] = in[i];
    outs[i] = out[i];
    streams[i]->native = (void *)(uintptr_t)(0x1000 + i);
  }
  memset(out, 0xee, sizeof out);
  return 0;
}

/* How often the log of the made library has the words. */
static int said(const char *words) {
  int count = 0;
  if (!told) {
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    told = library ? dlsym(library, "fake_nccl_log") : NULL;
  }
  for (const char *at = told; at && (at = strstr(at, words)); at++) count++;
  return count;
}

/* ---- in the child ---- */

static int data_calls(attune_comm *comm) {
  attune_comm_data data = {ATTUNE_I32, COUNT, ins, outs};
  for (int r = 0; r < RANKS; r++)
    for (int i = 0; i < COUNT; i++) ((int *)(void *)in[r])[i] = 10 * i + r;
  GOOD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
  for (int r = 0; r < RANKS; r++) EXPECT(((int *)(void *)out[r])[COUNT - 1] == 4 * 990 + 6, "rank %d", r);
  EXPECT(said("all_reduce rank 3 count 100 type 2 root 0 stream 0x1003") == 1, "%s", told);
  GOOD(attune_comm_broadcast(comm, 2, streams, &data));
  for (int r = 0; r < RANKS; r++) EXPECT(((int *)(void *)out[r])[5] == 52, "rank %d", r);
  memset(out, 0xee, sizeof out);
  GOOD(attune_comm_reduce(comm, 3, ATTUNE_REDUCE_SUM, streams, &data));
  EXPECT(((int *)(void *)out[3])[1] == 46 && out[0][0] == 0xee, "reduce");
  EXPECT(said("reduce rank 0 count 100 type 2 root 3") == 1, "%s", told);
  data.count = 0;
  GOOD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
  EXPECT(said("count 0") == 0, "%s", told);
  return 0;
}

/* Each reduction by its number in NCCL; all-gather and reduce-scatter. */
static int reductions(attune_comm *comm) {
  static const float right[] = {10.0f, 24.0f, 1.0f, 4.0f, 2.5f};
  const int before = said("all_reduce");
  attune_comm_data data = {ATTUNE_F32, 5, ins, outs};
  for (int op = ATTUNE_REDUCE_SUM; op <= ATTUNE_REDUCE_AVERAGE; op++) {
    for (int r = 0; r < RANKS; r++)
      for (int i = 0; i < 20; i++) ((float *)(void *)in[r])[i] = (float)(r + 1);
    GOOD(attune_comm_all_reduce(comm, (attune_reduction)op, streams, &data));
    for (int r = 0; r < RANKS; r++) EXPECT(((float *)(void *)out[r])[4] == right[op], "reduction %d", op);
    GOOD(attune_comm_reduce(comm, 1, (attune_reduction)op, streams, &data));
    EXPECT(((float *)(void *)out[1])[0] == right[op], "reduction %d", op);
    ((float *)(void *)in[3])[15] = 1.0f; /* rank 3's part */
    GOOD(attune_comm_reduce_scatter(comm, (attune_reduction)op, streams, &data));
    EXPECT(((float *)(void *)out[0])[4] == right[op] && ((float *)(void *)out[3])[1] == right[op], "reduction %d", op);
    EXPECT(op == ATTUNE_REDUCE_MIN || ((float *)(void *)out[3])[0] < right[op], "reduction %d", op);
  }
  EXPECT(said("all_reduce") == before + 5 * RANKS && said("reduce_scatter rank 2 count 5 type 7") == 5, "%s", told);
  data.dtype = ATTUNE_BOOL;
  for (int r = 0; r < RANKS; r++) in[r][0] = r == 2;
  GOOD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_MAX, streams, &data));
  EXPECT(out[0][0] == 1 && said("type 1 root 0") > 0, "or");
  for (int r = 0; r < RANKS; r++) memset(in[r], 'a' + r, 64);
  data.dtype = ATTUNE_F8E4M3;
  GOOD(attune_comm_all_gather(comm, streams, &data));
  for (int r = 0; r < RANKS; r++) EXPECT(memcmp(out[r], "aaaaabbbbbcccccddddd", 20) == 0, "rank %d", r);
  EXPECT(said("all_gather rank 3 count 5 type 1") == 1, "%s", told);
  return 0;
}

/* Bytes for what NCCL has no name of; pairs; and what it cannot add goes by copies. */
static int types(attune_comm *comm) {
  attune_comm_data data = {ATTUNE_C128, 8, ins, outs};
  for (int r = 0; r < RANKS; r++)
    for (int i = 0; i < 16; i++) ((double *)(void *)in[r])[i] = i;
  GOOD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
  EXPECT(((double *)(void *)out[1])[15] == 60.0, "c128");
  EXPECT(said("all_reduce rank 0 count 16 type 8") == 1, "%s", told);
  data.dtype = ATTUNE_I16;
  for (int r = 0; r < RANKS; r++) ((int16_t *)(void *)in[r])[7] = (int16_t)(r + 1);
  GOOD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
  GOOD(host_devices_wait());
  EXPECT(((int16_t *)(void *)out[2])[7] == 10, "i16");
  EXPECT(said("all_reduce") == RANKS * 2, "%s", told);
  GOOD(attune_comm_broadcast(comm, 0, streams, &data));
  EXPECT(said("broadcast rank 1 count 16 type 1 root 0") == 1, "%s", told);
  data.dtype = ATTUNE_BOOL;
  BAD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data), ATTUNE_INVALID_ARGUMENT, "bool");
  return 0;
}

/* One group of all but what must go by copies. */
static int coalesced(attune_comm *comm) {
  attune_comm_data data[5];
  const void *inputs[5][RANKS];
  void *outputs[5][RANKS];
  for (int k = 0; k < 5; k++) {
    for (int r = 0; r < RANKS; r++) {
      inputs[k][r] = in[r] + 256 * k, outputs[k][r] = out[r] + 256 * k;
      for (int i = 0; i < 4; i++) ((int *)(void *)(in[r] + 256 * k))[i] = k;
    }
    data[k] = (attune_comm_data){k == 2 ? ATTUNE_I16 : ATTUNE_I32, 4, inputs[k], outputs[k]};
  }
  GOOD(attune_comm_reduce_add_coalesced(comm, 1, streams, data, 5));
  GOOD(host_devices_wait());
  for (int k = 0; k < 5; k++)
    EXPECT(k == 2 ? ((int16_t *)(void *)(out[1] + 512))[2] == 8 : ((int *)(void *)(out[1] + 256 * k))[3] == 4 * k, "%d",
           k);
  EXPECT(said("reduce rank 2 count 4 type 2 root 1") == 4, "%s", told);
  return 0;
}

/* In a capture pieces go by NCCL; the copies of the root are part of its graph, as NCCL's work would be. */
static int captured(attune_comm *comm) {
  attune_graph *graphs[RANKS];
  attune_comm_split split = {ATTUNE_I32, 1, 8, 1, NULL, whole, outs};
  attune_comm_data data = {ATTUNE_I16, 8, ins, outs};
  memset(out, 0xee, sizeof out);
  for (int i = 0; i < 8; i++) ((int *)(void *)whole)[i] = i;
  for (int r = 0; r < RANKS; r++) {
    GOOD(attune_graph_create(&graphs[r], devices[r]));
    GOOD(attune_graph_capture_begin(graphs[r], streams[r], NULL));
  }
  GOOD(attune_comm_scatter(comm, 1, streams, &split));
  BAD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data), ATTUNE_UNSUPPORTED,
      "NCCL does not reduce this dtype");
  BAD(attune_comm_reduce_scatter(comm, ATTUNE_REDUCE_MAX, streams, &data), ATTUNE_UNSUPPORTED, "does not reduce");
  data.count = 9;
  GOOD(attune_comm_all_gather(comm, streams, &data)); /* as bytes */
  data.dtype = ATTUNE_F64;
  GOOD(attune_comm_reduce_scatter(comm, ATTUNE_REDUCE_MAX, streams, &data));
  EXPECT(said("all_gather rank 1 count 18 type 1") == 1 && said("reduce_scatter rank 1 count 9 type 8") == 1, "%s",
         told);
  memset(out, 0xee, sizeof out);
  GOOD(attune_comm_scatter(comm, 1, streams, &split));
  for (int r = 0; r < RANKS; r++) {
    GOOD(attune_graph_capture_end(graphs[r], streams[r]));
    if (r == 1) EXPECT(attune_graph_node_count(graphs[r]) == 2, "the root's own piece, twice");
    attune_graph_destroy(graphs[r]);
  }
  EXPECT(said("send rank 1 count 8 type 1 root 3 stream 0x1001") == 2 && said("recv rank 0 count 8") == 2, "%s", told);
  EXPECT(((int *)(void *)out[3])[1] == 7 && out[1][0] == 0xee, "pieces");
  return 0;
}

static int all_ranks(void) {
  attune_comm *comm = NULL;
  GOOD(attune_comm_create(&comm, devices, RANKS, ATTUNE_COMM_ANY));
  EXPECT(strcmp(attune_comm_describe(comm), "nccl 2.28.9") == 0, "%s", attune_comm_describe(comm));
  if (data_calls(comm) || types(comm) || reductions(comm) || coalesced(comm) || captured(comm)) return 1;
  GOOD(attune_comm_check(comm));
  attune_comm_destroy(comm);
  GOOD(attune_comm_create(&comm, devices, RANKS, ATTUNE_COMM_COPIES));
  EXPECT(strcmp(attune_comm_describe(comm), "copies") == 0, "copies");
  attune_comm_destroy(comm);
  return 0;
}

/* Two peers: what is small goes by copies, unless NCCL was asked for. */
static attune_status are_peers(int *can, attune_device *device, attune_device *peer) {
  *can = device != peer;
  return ATTUNE_OK;
}
static attune_status be_peers(attune_device *device, attune_device *peer) {
  return device != peer ? ATTUNE_OK : ATTUNE_INTERNAL;
}

static int two_peers(void) {
  static float large[2][(1 << 14) + 1];
  const void *larges[] = {large[0], large[1]};
  attune_comm_data data = {ATTUNE_F32, COUNT, ins, outs};
  static const at_backend_peer peers = {are_peers, be_peers, NULL};
  for (int i = 0; i < HOST_DEVICES; i++) host_devices[i].backend.peer = &peers;
  for (int way = ATTUNE_COMM_ANY; way <= ATTUNE_COMM_NCCL; way++) {
    attune_comm *comm = NULL;
    GOOD(attune_comm_create(&comm, devices, 2, (attune_comm_way)way));
    *(float *)(void *)in[0] = *(float *)(void *)in[1] = 3.0f;
    GOOD(attune_comm_reduce(comm, 1, ATTUNE_REDUCE_SUM, streams, &data));
    GOOD(host_devices_wait());
    EXPECT(*(float *)(void *)out[1] == 6.0f, "sum");
    EXPECT(said("reduce rank 1 count 100") == (way == ATTUNE_COMM_NCCL), "%s", told);
    const attune_comm_data more = {ATTUNE_F32, (1 << 14) + 1, larges, (void *const *)(void *)larges};
    GOOD(attune_comm_broadcast(comm, 0, streams, &more));
    EXPECT(said("broadcast rank 1 count 16385") == 1 + (way == ATTUNE_COMM_NCCL), "%s", told);
    attune_comm_destroy(comm);
  }
  return 0;
}

/* Each rank in a thread of its own, as processes have them. */
static attune_comm_id id;
static int wrong[RANKS];

static int as_rank(int rank) {
  static const size_t chunks[] = {1, 2, 0, 3};
  attune_comm *comm = NULL;
  attune_comm_data data = {ATTUNE_F32, COUNT, &ins[rank], &outs[rank]};
  attune_comm_split split = {ATTUNE_I64, 3, 6, 2, chunks, rank == 1 ? whole : NULL, &outs[rank]};
  GOOD(attune_comm_join(&comm, devices[rank], &id, rank, RANKS));
  EXPECT(attune_comm_size(comm) == RANKS && attune_comm_rank(comm) == rank, "rank %d", rank);
  for (int i = 0; i < COUNT; i++) ((float *)(void *)in[rank])[i] = (float)(rank + i);
  GOOD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, &streams[rank], &data));
  EXPECT(((float *)(void *)out[rank])[COUNT - 1] == 4 * 99 + 6.0f, "sum");
  GOOD(attune_comm_broadcast(comm, 2, &streams[rank], &data));
  EXPECT(((float *)(void *)out[rank])[3] == 5.0f, "broadcast");
  attune_comm_data few = {ATTUNE_F32, COUNT / RANKS, &ins[rank], &outs[rank]};
  GOOD(attune_comm_reduce_scatter(comm, ATTUNE_REDUCE_MAX, &streams[rank], &few));
  EXPECT(((float *)(void *)out[rank])[0] == (float)(3 + rank * (COUNT / RANKS)), "reduce_scatter");
  few.count = 3;
  GOOD(attune_comm_all_gather(comm, &streams[rank], &few));
  for (int i = 0; i < 12; i++) EXPECT(((float *)(void *)out[rank])[i] == (float)(i / 3 + i % 3), "all_gather");
  if (rank != 2) data.inputs = NULL;
  GOOD(attune_comm_broadcast(comm, 2, &streams[rank], &data));
  data.inputs = &ins[rank];
  if (rank != 0) data.outputs = NULL;
  GOOD(attune_comm_reduce(comm, 0, ATTUNE_REDUCE_SUM, &streams[rank], &data));
  data.dtype = ATTUNE_U16;
  BAD(attune_comm_reduce(comm, 0, ATTUNE_REDUCE_SUM, &streams[rank], &data), ATTUNE_UNSUPPORTED,
      "cannot reduce between processes");
  GOOD(attune_comm_scatter(comm, 1, &streams[rank], &split));
  GOOD(attune_stream_synchronize(streams[rank]));
  size_t start = 0;
  for (int r = 0; r < rank; r++) start += chunks[r];
  for (size_t o = 0; o < 3; o++)
    for (size_t i = 0; i < chunks[rank] * 2; i++)
      EXPECT(((int64_t *)(void *)out[rank])[o * chunks[rank] * 2 + i] == (int64_t)(o * 12 + start * 2 + i), "piece");
  attune_comm_destroy(comm);
  return 0;
}

static void *run_rank(void *user) {
  const int rank = (int)(intptr_t)user;
  wrong[rank] = as_rank(rank);
  return NULL;
}

/* The made library works at once, and the packing is work of a stream: so the root's runs at once too. */
static int one_rank_each(void) {
  pthread_t threads[RANKS];
  int bad = 0;
  attune_stream_destroy(streams[1]);
  streams[1] = attune_stream_default(devices[1]);
  for (int i = 0; i < 36; i++) ((int64_t *)(void *)whole)[i] = i;
  GOOD(attune_comm_make_id(&id));
  for (intptr_t r = 0; r < RANKS; r++) pthread_create(&threads[r], NULL, run_rank, (void *)r);
  for (int r = 0; r < RANKS; r++) pthread_join(threads[r], NULL);
  for (int r = 0; r < RANKS; r++) bad += wrong[r];
  attune_comm *alone = NULL; /* gather, as the only process */
  GOOD(attune_comm_make_id(&id));
  GOOD(attune_comm_join(&alone, devices[1], &id, 0, 1));
  attune_comm_split split = {ATTUNE_I64, 3, 6, 2, NULL, whole, &outs[0]};
  GOOD(attune_comm_gather(alone, 0, &streams[1], &split));
  attune_comm_destroy(alone);
  return bad;
}

static int refusing(void) {
  attune_comm *comm = NULL;
  BAD(attune_comm_create(&comm, devices, 2, ATTUNE_COMM_NCCL), ATTUNE_DEVICE_ERROR, "unhandled system error");
  EXPECT(!comm, "comm");
  GOOD(attune_comm_make_id(&id));
  BAD(attune_comm_join(&comm, devices[0], &id, 0, 2), ATTUNE_INVALID_ARGUMENT, "ncclCommInitRank");
  setenv("FAKE_NCCL", "", 1);
  GOOD(attune_comm_create(&comm, devices, 2, ATTUNE_COMM_NCCL));
  setenv("FAKE_NCCL", "refusing", 1);
  attune_comm_data data = {ATTUNE_F32, 4, ins, outs};
  BAD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data), ATTUNE_DEVICE_ERROR,
      "ncclAllReduce of nccl 2.28.9");
  setenv("FAKE_NCCL", "broken", 1);
  BAD(attune_comm_check(comm), ATTUNE_DEVICE_ERROR, "remote process exited");
  setenv("FAKE_NCCL", "", 1);
  for (int r = 0; r < 2; r++) *(float *)(void *)in[r] = 2.0f;
  GOOD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data)); /* the group was ended: this one is done */
  EXPECT(*(float *)(void *)out[1] == 4.0f, "sum");
  attune_comm_destroy(comm);
  return 0;
}

/* ---- aborts ---- */

static void *abort_it(void *user) {
  while (said("all_reduce rank 1") == 0) usleep(1000);
  return (void *)(intptr_t)attune_comm_abort(user);
}

static int stuck(void) {
  attune_comm *comm = NULL;
  pthread_t thread;
  void *ended = NULL;
  attune_comm_data data = {ATTUNE_F32, 4, ins, outs};
  GOOD(attune_comm_create(&comm, devices, 2, ATTUNE_COMM_NCCL));
  (void)said("all_reduce");
  pthread_create(&thread, NULL, abort_it, comm);
  BAD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data), ATTUNE_DEVICE_ERROR, "remote process exited");
  pthread_join(thread, &ended);
  EXPECT((intptr_t)ended == ATTUNE_OK, "abort");
  BAD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data), ATTUNE_DEVICE_ERROR, "was aborted");
  attune_comm_destroy(comm);
  return 0;
}

static int absent(const char *words) {
  attune_comm *comm = NULL;
  attune_comm_data data = {ATTUNE_F32, 4, ins, outs};
  BAD(attune_comm_create(&comm, devices, 2, ATTUNE_COMM_NCCL), ATTUNE_UNSUPPORTED, words);
  BAD(attune_comm_make_id(&id), ATTUNE_UNSUPPORTED, words);
  BAD(attune_comm_join(&comm, devices[0], &id, 0, 2), ATTUNE_UNSUPPORTED, words);
  (void)attune_device_at(NULL, 0); /* another message, which a call that succeeds leaves alone */
  GOOD(attune_comm_create(&comm, devices, 2, ATTUNE_COMM_ANY));
  EXPECT(strstr(attune_last_message(), "attune_device"), "%s", attune_last_message());
  EXPECT(strcmp(attune_comm_describe(comm), "copies") == 0, "%s", attune_comm_describe(comm));
  GOOD(attune_comm_all_reduce(comm, ATTUNE_REDUCE_SUM, streams, &data));
  GOOD(host_devices_wait());
  attune_comm_destroy(comm);
  return 0;
}

static int as_child(const char *name) {
  if (prepare() != 0) return 1;
  const int ended = strcmp(name, "all") == 0        ? all_ranks()
                    : strcmp(name, "each") == 0     ? one_rank_each()
                    : strcmp(name, "peers") == 0    ? two_peers()
                    : strcmp(name, "refusing") == 0 ? refusing()
                    : strcmp(name, "stuck") == 0    ? stuck()
                                                    : absent(name);
  host_devices_end();
  return ended;
}

/* ---- in the test ---- */

static void run(const char *folder, const char *mode, const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", FAKES, folder);
  setenv("LD_LIBRARY_PATH", path, 1);
  setenv("FAKE_NCCL", mode, 1);
  assert_int_equal(run_part(name), 0);
}

TEST(ranks_of_one_process) {
  run("nccl", "", "all");
  run("nccl", "", "peers");
}

TEST(ranks_of_their_own) {
  run("nccl", "", "each");
}

TEST(its_errors) {
  run("nccl", "refusing", "refusing");
  run("nccl", "stuck", "stuck");
}

TEST(none_or_an_old_one) {
  run("nccl", "old", "is of version 20907; should be NCCL 2.10");
  void *real = dlopen("libnccl.so.2", RTLD_LAZY);
  if (real)
    dlclose(real);
  else
    run("nowhere", "", "libnccl.so.2 was not found; install NCCL");
}

int main(int argc, char **argv) {
  if (argc > 1) return as_child(argv[1]);
  return RUN_TESTS(NULL, NULL);
}
