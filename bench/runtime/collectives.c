/* SPDX-License-Identifier: Apache-2.0
 * collectives.c: bench_collectives [--markdown FILE] [--rounds N]: collectives of all GPUs of the machine: attune, NCCL
 * called directly on the same streams and memory, attune's copies. The ways take turns. A sample is calls one by one,
 * each waited for, or calls in a row and a wait at the end. torch_collectives.py has torch.cuda.comm's. */
#include <attune/attune.h>

#include <stdio.h>

#include "bench/common/tool.h"
#include "bench/common/turns.h"
#include "src/comm/nccl_library.h"

enum { GPUS_MOST = 8, CALLS_MOST = 100 };
enum { BY_ATTUNE, BY_NCCL, BY_COPIES, WAYS };
enum { ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, KINDS };
enum { ONE_BY_ONE, IN_A_ROW, MANNERS };

static const char *const names[KINDS] = {"all-reduce", "broadcast", "reduce", "all-gather", "reduce-scatter"};
static const char *const manners[MANNERS] = {"one by one", "in a row"};

typedef struct scene {
  int gpus, kind, manner;
  size_t bytes;
  attune_device *devices[GPUS_MOST];
  attune_stream *streams[GPUS_MOST];
  attune_comm *comms[WAYS]; /* [BY_NCCL]: none */
  void *direct[GPUS_MOST];  /* ncclComm_t */
  void *in[GPUS_MOST], *out[GPUS_MOST];
} scene;

static void check_nccl(int error, const char *what) {
  if (error != AT_NCCL_SUCCESS) bench_die("%s: %s", what, at_nccl.GetErrorString(error));
}

static void call_nccl(const scene *s) {
  const size_t count = s->bytes / sizeof(float);
  check_nccl(at_nccl.GroupStart(), "ncclGroupStart");
  for (int g = 0; g < s->gpus; g++) {
    void *stream = attune_stream_native(s->streams[g]);
    if (s->kind == ALL_REDUCE)
      check_nccl(at_nccl.AllReduce(s->in[g], s->out[g], count, AT_NCCL_F32, AT_NCCL_SUM, s->direct[g], stream),
                 "ncclAllReduce");
    else if (s->kind == BROADCAST)
      check_nccl(at_nccl.Broadcast(s->in[g], s->out[g], count, AT_NCCL_F32, 0, s->direct[g], stream), "ncclBroadcast");
    else if (s->kind == ALL_GATHER)
      check_nccl(at_nccl.AllGather(s->in[g], s->out[g], count / (size_t)s->gpus, AT_NCCL_F32, s->direct[g], stream),
                 "ncclAllGather");
    else if (s->kind == REDUCE_SCATTER)
      check_nccl(at_nccl.ReduceScatter(s->in[g], s->out[g], count / (size_t)s->gpus, AT_NCCL_F32, AT_NCCL_SUM,
                                       s->direct[g], stream),
                 "ncclReduceScatter");
    else
      check_nccl(at_nccl.Reduce(s->in[g], s->out[g], count, AT_NCCL_F32, AT_NCCL_SUM, 0, s->direct[g], stream),
                 "ncclReduce");
  }
  check_nccl(at_nccl.GroupEnd(), "ncclGroupEnd");
}

static void call(const scene *s, int way) {
  const size_t count = s->bytes / sizeof(float), each = s->kind >= ALL_GATHER ? count / (size_t)s->gpus : count;
  const attune_comm_data data = {ATTUNE_F32, each, (const void *const *)s->in, s->out};
  if (way == BY_NCCL)
    call_nccl(s);
  else if (s->kind == ALL_REDUCE)
    bench_check(attune_comm_all_reduce(s->comms[way], ATTUNE_REDUCE_SUM, s->streams, &data), "attune_comm_all_reduce");
  else if (s->kind == BROADCAST)
    bench_check(attune_comm_broadcast(s->comms[way], 0, s->streams, &data), "attune_comm_broadcast");
  else if (s->kind == ALL_GATHER)
    bench_check(attune_comm_all_gather(s->comms[way], s->streams, &data), "attune_comm_all_gather");
  else if (s->kind == REDUCE_SCATTER)
    bench_check(attune_comm_reduce_scatter(s->comms[way], ATTUNE_REDUCE_SUM, s->streams, &data),
                "attune_comm_reduce_scatter");
  else
    bench_check(attune_comm_reduce(s->comms[way], 0, ATTUNE_REDUCE_SUM, s->streams, &data), "attune_comm_reduce");
}

static void wait_all(const scene *s) {
  for (int g = 0; g < s->gpus; g++) bench_check(attune_stream_synchronize(s->streams[g]), "attune_stream_synchronize");
}

/* Large ones: about 5 ms of them. */
static double sample(void *arg, int way, int round) {
  const scene *s = arg;
  const size_t room = ((size_t)1 << 30) / s->bytes;
  const int calls = room < 4 ? 4 : room > CALLS_MOST ? CALLS_MOST : (int)room;
  (void)round;
  call(s, way);
  wait_all(s);
  const double start = bench_now_ns();
  for (int i = 0; i < calls; i++) {
    call(s, way);
    if (s->manner == ONE_BY_ONE) wait_all(s);
  }
  wait_all(s);
  return (bench_now_ns() - start) / calls;
}

static void open_scene(scene *s) {
  const size_t most = (size_t)256 << 20;
  int ordinals[GPUS_MOST];
  for (s->gpus = 0; s->gpus < GPUS_MOST; s->gpus++) {
    char name[24];
    snprintf(name, sizeof name, "cuda:%d", s->gpus);
    if (attune_device_get(&s->devices[s->gpus], name) != ATTUNE_OK) break;
    ordinals[s->gpus] = s->gpus;
  }
  if (s->gpus < 2) bench_die("two GPUs are needed, but this machine has %d", s->gpus);
  bench_check(attune_comm_create(&s->comms[BY_ATTUNE], s->devices, s->gpus, ATTUNE_COMM_ANY), "attune_comm_create");
  bench_check(attune_comm_create(&s->comms[BY_COPIES], s->devices, s->gpus, ATTUNE_COMM_COPIES), "attune_comm_create");
  check_nccl(at_nccl.CommInitAll(s->direct, s->gpus, ordinals), "ncclCommInitAll");
  for (int g = 0; g < s->gpus; g++) {
    bench_check(attune_stream_create(&s->streams[g], s->devices[g]), "attune_stream_create");
    bench_check(attune_alloc(&s->in[g], s->streams[g], most), "attune_alloc");
    bench_check(attune_alloc(&s->out[g], s->streams[g], most), "attune_alloc");
    bench_check(attune_fill(s->streams[g], s->in[g], 1, most), "attune_fill");
  }
}

static void close_scene(scene *s) {
  wait_all(s);
  for (int g = 0; g < s->gpus; g++) {
    bench_check(attune_free(s->in[g], s->streams[g]), "attune_free");
    bench_check(attune_free(s->out[g], s->streams[g]), "attune_free");
    check_nccl(at_nccl.CommDestroy(s->direct[g]), "ncclCommDestroy");
  }
  for (int way = 0; way < WAYS; way++) attune_comm_destroy(s->comms[way]);
  for (int g = 0; g < s->gpus; g++) attune_stream_destroy(s->streams[g]);
}

static void measure(scene *s, int rounds) {
  static const size_t sizes[] = {1024, 16384, 65536, 262144, 1 << 20, 16 << 20, 256 << 20};
  bench_turns turns;
  bench_table("| call | bytes >| calls | attune us >| NCCL us >| copies us >| NCCL / attune >| GB/s >|");
  for (s->kind = 0; s->kind < KINDS; s->kind++)
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] * MANNERS; i++) {
      s->bytes = sizes[i / MANNERS];
      s->manner = (int)(i % MANNERS);
      if (s->manner == ONE_BY_ONE && s->bytes > 1 << 20) continue;
      bench_take_turns(&turns, WAYS, 2, rounds, BENCH_ROTATED, sample, s);
      bench_line("| %s | %zu | %s | %.1f | %.1f | %.1f | %.3f | %.1f |", names[s->kind], s->bytes, manners[s->manner],
                 bench_turns_median(&turns, BY_ATTUNE) * 1e-3, bench_turns_median(&turns, BY_NCCL) * 1e-3,
                 bench_turns_median(&turns, BY_COPIES) * 1e-3, bench_turns_ratio(&turns, BY_NCCL, BY_ATTUNE),
                 (double)s->bytes / bench_turns_median(&turns, BY_ATTUNE));
    }
}

int main(int argc, char **argv) {
  const char *markdown = NULL;
  int rounds = 21;
  const bench_option options[] = {{"markdown", BENCH_TEXT, &markdown, 0, 0},
                                  {"rounds", BENCH_WHOLE, &rounds, 3, BENCH_TURN_ROUNDS},
                                  {NULL, BENCH_FLAG, NULL, 0, 0}};
  static scene s;
  (void)bench_read_options(argc, argv, options, "bench_collectives [--rounds N] [--markdown FILE]", NULL, 0);
  open_scene(&s);
  bench_markdown_open(markdown);
  char title[96], libraries[64];
  snprintf(title, sizeof title, "Collectives of %d GPUs", s.gpus);
  snprintf(libraries, sizeof libraries, "NCCL %s", at_nccl_version());
  bench_head(
      title, s.devices[0], libraries,
      "f32; the ways take turns, medians; calls one by one are each waited for; bytes: of the array that all ranks "
      "give or get; the ratio is the median of the rounds' ratios, above 1 attune is faster");
  measure(&s, rounds);
  bench_markdown_close();
  close_scene(&s);
  return 0;
}
