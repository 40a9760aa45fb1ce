/* SPDX-License-Identifier: Apache-2.0
 * gemm_kernel_times.c: times the configurations of attune's own GEMM kernels, for their models: cold operands that take
 * turns, graphs of launches, the least and the median of some replays, beside the default's.
 * Usage: gemm_kernel_times [NAME...]: of the shapes below those whose names begin so; ATTUNE_TEST_CONFIGURATIONS: how
 * many of each (64), best guess first; ATTUNE_TEST_LIST: a file of those to time, lines of shape, implementation,
 * configuration; ATTUNE_TEST_OFFSET: bytes from a multiple of 256 to every operand (0). Behind a shape's times stand
 * each implementation's first and best. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/implementations.h"
#include "ops/gemm/kernels/kernel.h"
#include "ops/gemm/problem/scaling.h"
#include "tests/support/check.h"

enum { ROOM = 256, REPLAYS = 9, MOST_SETS = 64, LEAST_LAUNCHES = 24 };
static const double ROTATE_BYTES = 400e6;

/* The default, its matrix-vector call, then attune's. */
static const at_implementation *const tried[] = {&at_gemm_cublas,
                                                 &at_gemm_cublas_gemv,
                                                 &at_gemm_sm80_batched_smem,
                                                 &at_gemm_sm80_batched_reg_16b,
                                                 &at_gemm_sm80_skinny_mmajor,
                                                 &at_gemm_sm80_skinny_reg,
                                                 &at_gemm_sm90_skinny_ring_16b,
                                                 &at_gemm_sm80_mma,
                                                 &at_gemm_sm90_wgmma_bf16x6,
                                                 &at_gemm_sm90_wgmma_16b,
                                                 &at_gemm_sm80_simt_f32,
                                                 &at_gemm_cublaslt, /* of 8-bit types only */
                                                 &at_gemm_sm90_skinny_ring_8b};

typedef struct named {
  const char *name;
  attune_dtype dtype;
  int ta, tb;
  int64_t m, n, k, batch;
} named;

/* Scales of A and B and the type of D, by the first letters of a shape's name. */
static const struct {
  const char *begin;
  attune_dtype out;
  uint8_t scale_a, scale_b;
} scaled[] = {{"f8_", ATTUNE_BF16, ATTUNE_SCALE_TENSOR, ATTUNE_SCALE_TENSOR},
              {"f8v_", ATTUNE_BF16, ATTUNE_SCALE_VECTOR, ATTUNE_SCALE_VECTOR},
              {"f8b_", ATTUNE_BF16, ATTUNE_SCALE_128X128, ATTUNE_SCALE_1X128},
              {"f8l_", ATTUNE_BF16, ATTUNE_SCALE_1X128, ATTUNE_SCALE_1X128},
              {"i8_", ATTUNE_I32, ATTUNE_SCALE_NONE, ATTUNE_SCALE_NONE}};

static const named shapes[] = {
    {"f32_bmm_tiny", ATTUNE_F32, 0, 0, 16, 16, 16, 16384},
    {"f16_bmm_tiny", ATTUNE_F16, 0, 0, 32, 32, 32, 16384},
    {"bmm_small", ATTUNE_BF16, 0, 0, 64, 64, 64, 4096},
    {"f32_skinny", ATTUNE_F32, 0, 0, 4096, 16, 4096, 1},
    {"f64_skinny", ATTUNE_F64, 0, 0, 4096, 16, 4096, 1},
    {"decode1_qkv", ATTUNE_BF16, 1, 0, 6144, 1, 4096, 1},
    {"decode8_o", ATTUNE_BF16, 1, 0, 4096, 8, 4096, 1},
    {"decode16_up", ATTUNE_BF16, 1, 0, 28672, 16, 4096, 1},
    {"decode32_down", ATTUNE_BF16, 1, 0, 4096, 32, 14336, 1},
    {"decode64_o", ATTUNE_BF16, 1, 0, 4096, 64, 4096, 1},
    {"d_kv16", ATTUNE_BF16, 1, 0, 2048, 16, 8192, 1},
    {"d_qkv5", ATTUNE_BF16, 1, 0, 4608, 5, 3584, 1},
    {"d_up3", ATTUNE_BF16, 1, 0, 4864, 3, 896, 1},
    {"d_moe8", ATTUNE_BF16, 1, 0, 1024, 8, 2816, 16},
    {"d_down48", ATTUNE_F16, 1, 0, 4096, 48, 14336, 1},
    {"b_f32_64", ATTUNE_F32, 0, 0, 64, 64, 64, 4096},
    {"b_f64_32", ATTUNE_F64, 0, 0, 32, 32, 32, 4096},
    {"b_f32_tn24", ATTUNE_F32, 1, 0, 24, 24, 24, 8192},
    {"b_f16_tt48", ATTUNE_F16, 1, 1, 48, 48, 48, 4096},
    {"s_f32_t8", ATTUNE_F32, 1, 0, 4096, 8, 4096, 1},
    {"s_f32_gemv", ATTUNE_F32, 0, 0, 8192, 1, 8192, 1},
    {"s_f32_gemv_t", ATTUNE_F32, 1, 0, 8192, 1, 8192, 1},
    {"s_f64_t4", ATTUNE_F64, 1, 0, 4096, 4, 4096, 1},
    {"s_bf16_n1", ATTUNE_BF16, 0, 0, 8192, 1, 8192, 1},
    {"s_bf16_n8", ATTUNE_BF16, 0, 0, 4096, 8, 4096, 1},
    {"s_f32_m4", ATTUNE_F32, 0, 0, 4, 4096, 4096, 1},
    {"s_bf16_small", ATTUNE_BF16, 1, 0, 1024, 4, 1024, 1},
    {"splitk", ATTUNE_BF16, 0, 1, 64, 64, 131072, 1},
    {"tall", ATTUNE_BF16, 0, 0, 131072, 64, 64, 1},
    {"sq512", ATTUNE_BF16, 0, 0, 512, 512, 512, 1},
    {"odd999", ATTUNE_BF16, 0, 0, 999, 1001, 1003, 1},
    {"decode128_qkv", ATTUNE_BF16, 1, 0, 6144, 128, 4096, 1},
    {"decode32_down", ATTUNE_BF16, 1, 0, 4096, 32, 14336, 1},
    {"prefill512_o", ATTUNE_BF16, 1, 0, 4096, 512, 4096, 1},
    {"prefill1000_o", ATTUNE_BF16, 1, 0, 4096, 1000, 4096, 1},
    {"sq2048", ATTUNE_BF16, 0, 0, 2048, 2048, 2048, 1},
    {"bmm_attn", ATTUNE_BF16, 1, 0, 1024, 1024, 128, 32},
    {"tf32_skinny", ATTUNE_F32, 0, 0, 4096, 16, 4096, 1},
    {"r_f32_n8", ATTUNE_F32, 0, 0, 4096, 8, 4096, 1},
    {"r_f32_n4", ATTUNE_F32, 0, 0, 4096, 4, 4096, 1},
    {"r_f32_n1", ATTUNE_F32, 0, 0, 4096, 1, 4096, 1},
    {"r_f32_nt16", ATTUNE_F32, 0, 1, 4096, 16, 4096, 1},
    {"r_f32_m16", ATTUNE_F32, 0, 1, 16, 4096, 4096, 1},
    {"r_f32_odd", ATTUNE_F32, 0, 0, 4095, 13, 4095, 1},
    {"r_f32_short", ATTUNE_F32, 0, 0, 262144, 16, 64, 1},
    {"r_f64_n8", ATTUNE_F64, 0, 0, 4096, 8, 4096, 1},
    {"r_f64_n4", ATTUNE_F64, 0, 0, 4096, 4, 4096, 1},
    {"e_2048", ATTUNE_F32, 0, 0, 2048, 2048, 2048, 1},
    {"e_1024", ATTUNE_F32, 0, 0, 1024, 1024, 1024, 1},
    {"e_512", ATTUNE_F32, 0, 0, 512, 512, 512, 1},
    {"r_f64_n1", ATTUNE_F64, 0, 0, 4096, 1, 4096, 1},
    {"r_f64_999", ATTUNE_F64, 0, 0, 999, 1, 5001, 1},
    {"s_f64_999", ATTUNE_F64, 1, 0, 999, 1, 5001, 1},
    {"s_f32_512", ATTUNE_F32, 1, 0, 512, 1, 8192, 1},
    {"f32_512", ATTUNE_F32, 0, 0, 512, 512, 512, 1},
    {"f32_splitk", ATTUNE_F32, 0, 1, 128, 128, 65536, 1},
    {"f32_1024", ATTUNE_F32, 0, 0, 1024, 1024, 1024, 1},
    {"f32_2048", ATTUNE_F32, 0, 0, 2048, 2048, 2048, 1},
    {"f32_4096", ATTUNE_F32, 0, 0, 4096, 4096, 4096, 1},
    {"f32_256", ATTUNE_F32, 0, 0, 256, 256, 256, 1},
    {"f32_tn512", ATTUNE_F32, 1, 0, 512, 512, 512, 1},
    {"f32_nt1000", ATTUNE_F32, 0, 1, 1000, 1000, 1000, 1},
    {"f32_odd777", ATTUNE_F32, 0, 0, 777, 777, 777, 1},
    {"f32_bmm128", ATTUNE_F32, 0, 0, 128, 128, 128, 256},
    {"f32_bmm100", ATTUNE_F32, 1, 0, 100, 100, 100, 512},
    {"f32_tall", ATTUNE_F32, 0, 0, 65536, 128, 128, 1},
    {"f32_deep256", ATTUNE_F32, 1, 0, 256, 256, 16384, 1},
    {"f64_512", ATTUNE_F64, 0, 0, 512, 512, 512, 1},
    {"f64_1024", ATTUNE_F64, 0, 0, 1024, 1024, 1024, 1},
    {"f64_deep", ATTUNE_F64, 1, 0, 128, 128, 16384, 1},
    {"f8_n1_4096x7168", ATTUNE_F8E4M3, 1, 0, 4096, 1, 7168, 1},
    {"f8_n1_7168x16384", ATTUNE_F8E4M3, 1, 0, 7168, 1, 16384, 1},
    {"f8_n1_28672x8192", ATTUNE_F8E4M3, 1, 0, 28672, 1, 8192, 1},
    {"f8_n1_24576x1536", ATTUNE_F8E4M3, 1, 0, 24576, 1, 1536, 1},
    {"f8_n1_2112x7168", ATTUNE_F8E4M3, 1, 0, 2112, 1, 7168, 1},
    {"f8_n2_4096x7168", ATTUNE_F8E4M3, 1, 0, 4096, 2, 7168, 1},
    {"f8_n4_7168x2048", ATTUNE_F8E4M3, 1, 0, 7168, 4, 2048, 1},
    {"f8_n8_4096x7168", ATTUNE_F8E4M3, 1, 0, 4096, 8, 7168, 1},
    {"f8_n8_7168x16384", ATTUNE_F8E4M3, 1, 0, 7168, 8, 16384, 1},
    {"f8_n8_28672x8192", ATTUNE_F8E4M3, 1, 0, 28672, 8, 8192, 1},
    {"f8_n16_4096x7168", ATTUNE_F8E4M3, 1, 0, 4096, 16, 7168, 1},
    {"f8_n16_7168x16384", ATTUNE_F8E4M3, 1, 0, 7168, 16, 16384, 1},
    {"f8_n16_24576x1536", ATTUNE_F8E4M3, 1, 0, 24576, 16, 1536, 1},
    {"f8_n32_4096x7168", ATTUNE_F8E4M3, 1, 0, 4096, 32, 7168, 1},
    {"f8_n32_7168x16384", ATTUNE_F8E4M3, 1, 0, 7168, 32, 16384, 1},
    {"f8_n32_28672x8192", ATTUNE_F8E4M3, 1, 0, 28672, 32, 8192, 1},
    {"f8v_n8", ATTUNE_F8E4M3, 1, 0, 4096, 8, 7168, 1},
    {"f8b_n1", ATTUNE_F8E4M3, 1, 0, 4096, 1, 7168, 1},
    {"f8b_n8", ATTUNE_F8E4M3, 1, 0, 4096, 8, 7168, 1},
    {"f8b_n32", ATTUNE_F8E4M3, 1, 0, 7168, 32, 16384, 1},
    {"f8l_n8", ATTUNE_F8E4M3, 1, 0, 4096, 8, 7168, 1},
    {"i8_n1", ATTUNE_I8, 1, 0, 4096, 1, 7168, 1},
    {"i8_n8", ATTUNE_I8, 1, 0, 4096, 8, 7168, 1},
};

static attune_device *device;
static attune_stream *stream;

typedef struct memory {
  char *a, *b, *d;
  float *scales; /* ones, as many as A or B may have */
  int64_t a_bytes, b_bytes, d_bytes;
  int sets, launches;
} memory;

static int by_size(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

/* Microseconds a launch: least and median. */
static bool time_plan(const at_plan *plan, const memory *m, double *least, double *median) {
  at_graph *graph = NULL;
  attune_event *begin = NULL, *end = NULL;
  double us[REPLAYS];
  OK(attune_event_create(&begin, device, NULL));
  OK(attune_event_create(&end, device, NULL));
  OK(device->backend.graph->capture_begin(stream));
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < m->launches && status == ATTUNE_OK; i++) {
    const int set = i % m->sets;
    at_gemm_operands o = {.alpha = 1.0,
                          .a = m->a + set * m->a_bytes,
                          .b = m->b + set * m->b_bytes,
                          .d = m->d + set * m->d_bytes,
                          .scale_a = m->scales,
                          .scale_b = m->scales};
    status = plan->launch(plan, &o, stream);
  }
  OK(device->backend.graph->capture_end(stream, &graph));
  for (int i = 0; i < REPLAYS && status == ATTUNE_OK; i++) {
    OK(attune_event_record(begin, stream));
    OK(device->backend.graph->launch(graph, stream));
    OK(attune_event_record(end, stream));
    status = attune_stream_synchronize(stream);
    double elapsed = 0.0;
    if (status == ATTUNE_OK) OK(attune_event_elapsed_ns(&elapsed, begin, end));
    us[i] = elapsed / 1e3 / m->launches;
  }
  device->backend.graph->destroy(graph);
  attune_event_destroy(begin);
  attune_event_destroy(end);
  if (status != ATTUNE_OK) return false;
  qsort(us, REPLAYS, sizeof *us, by_size);
  *least = us[0], *median = us[REPLAYS / 2];
  return true;
}

/* Microseconds; 0: it failed. */
static double time_one(const at_implementation *implementation, const at_configuration *configuration, const at_gemm *g,
                       const memory *m, const char *name, double bytes) {
  at_plan *plan = NULL;
  double least = 0.0, median = 0.0;
  if (at_plan_create(&plan, &at_gemm_op, implementation, configuration, g, device) != ATTUNE_OK ||
      !time_plan(plan, m, &least, &median))
    printf("%s | %s | %s | FAILED %s\n", name, implementation->name, configuration->text, attune_last_message());
  else
    printf("%s | %s | %s | %.2f | %.2f | %.0f GB/s\n", name, implementation->name, configuration->text, least, median,
           bytes / least / 1e3);
  fflush(stdout);
  if (plan) at_plan_destroy(plan);
  return least;
}

static void time_all(const at_implementation *one, const at_configuration *list, int count, const at_gemm *g,
                     const memory *m, const char *name, double bytes) {
  double first = 0.0, best = 0.0;
  int of = 0;
  for (int c = 0; c < count; c++) {
    const double us = time_one(one, &list[c], g, m, name, bytes);
    if (c == 0) first = us;
    if (us > 0.0 && (best == 0.0 || us < best)) best = us, of = c;
  }
  if (best > 0.0)
    printf("= %s | %s | first %.2f | best %.2f | %.0f GB/s | %s\n", name, one->name, first, best, bytes / best / 1e3,
           list[of].text);
}

/* Halves, or bytes of halves. */
static void fill(attune_generator *generator, void *to, attune_dtype dtype, int64_t bytes) {
  const attune_dtype as = at_gemm_8bit(dtype) ? ATTUNE_F16 : dtype;
  OK(attune_random_normal(generator, stream, to, as, (size_t)bytes / attune_dtype_size(as), 0.0, 1.0));
}

static void make_scales(memory *m, const at_gemm *g) {
  const size_t a = at_gemm_scale_count(g, false), b = at_gemm_scale_count(g, true), count = (a > b ? a : b) + 1;
  float *ones = malloc(count * sizeof *ones);
  assert_non_null(ones);
  for (size_t i = 0; i < count; i++) ones[i] = 1.0f;
  OK(attune_alloc((void **)&m->scales, stream, count * sizeof *ones));
  OK(attune_copy(stream, m->scales, ones, count * sizeof *ones));
  OK(attune_stream_synchronize(stream));
  free(ones);
}

/* The configurations that a file names for a shape and an implementation, three words a line. */
static int read_list(const char *path, const char *shape, const char *implementation, at_configuration *list) {
  char of[64], by[64];
  int count = 0;
  FILE *file = fopen(path, "r");
  while (file && count < ROOM && fscanf(file, "%63s %63s %191s", of, by, list[count].text) == 3)
    if (strcmp(of, shape) == 0 && strcmp(by, implementation) == 0) count++;
  if (file) fclose(file);
  return count;
}

static void time_shape(const named *s, int most) {
  static at_configuration list[ROOM];
  const int64_t in = (int64_t)attune_dtype_size(s->dtype);
  at_gemm g = {.m = s->m, .n = s->n, .k = s->k, .batch = s->batch, .workspace_cap = ATTUNE_WORKSPACE_DEFAULT};
  g.dtype = g.dtype_out = (uint8_t)s->dtype;
  for (size_t i = 0; i < AT_COUNT(scaled); i++)
    if (strncmp(s->name, scaled[i].begin, strlen(scaled[i].begin)) == 0) {
      g.dtype_out = (uint8_t)scaled[i].out;
      g.scaling.scale_a = scaled[i].scale_a, g.scaling.scale_b = scaled[i].scale_b;
    }
  const int64_t out = (int64_t)attune_dtype_size((attune_dtype)g.dtype_out);
  if (strncmp(s->name, "tf32", 4) == 0) g.accuracy = ATTUNE_REDUCED;
  if (strncmp(s->name, "e_", 2) == 0) g.accuracy = ATTUNE_EQUIVALENT;
  const int64_t offset = getenv("ATTUNE_TEST_OFFSET") ? atoi(getenv("ATTUNE_TEST_OFFSET")) : 0;
  g.trans_a = (uint8_t)s->ta, g.trans_b = (uint8_t)s->tb, g.alignment = 128;
  while (offset % g.alignment != 0) g.alignment /= 2;
  g.lda = at_gemm_rows_a(&g), g.ldb = at_gemm_rows_b(&g), g.ldd = g.m;
  if (g.batch > 1) g.stride_a = g.m * g.k, g.stride_b = g.k * g.n, g.stride_d = g.m * g.n;
  memory m = {.a_bytes = (g.m * g.k * g.batch * in + 511) / 256 * 256,
              .b_bytes = (g.n * g.k * g.batch * in + 511) / 256 * 256,
              .d_bytes = (g.m * g.n * g.batch * out + 511) / 256 * 256};
  const double bytes = (double)((g.m * g.k + g.n * g.k) * in + g.m * g.n * out) * (double)g.batch;
  m.sets = (int)(ROTATE_BYTES / (double)(m.a_bytes + m.b_bytes + m.d_bytes)) + 1;
  if (m.sets > MOST_SETS) m.sets = MOST_SETS;
  if (m.sets < 2) m.sets = 2;
  m.launches = (LEAST_LAUNCHES + m.sets - 1) / m.sets * m.sets;
  OK(attune_alloc((void **)&m.a, stream, (size_t)(m.a_bytes * m.sets + offset)));
  OK(attune_alloc((void **)&m.b, stream, (size_t)(m.b_bytes * m.sets + offset)));
  OK(attune_alloc((void **)&m.d, stream, (size_t)(m.d_bytes * m.sets + offset)));
  m.a += offset, m.b += offset, m.d += offset;
  attune_generator *generator = NULL;
  OK(attune_generator_create(&generator, 5));
  fill(generator, m.a, s->dtype, m.a_bytes * m.sets);
  fill(generator, m.b, s->dtype, m.b_bytes * m.sets);
  make_scales(&m, &g);
  for (size_t i = 0; i < AT_COUNT(tried); i++) {
    const at_implementation *one = tried[i];
    if ((one == &at_gemm_cublaslt && !at_gemm_8bit(g.dtype)) || !one->supports(one, &g, device)) continue;
    const at_machine machine = at_machine_of(device);
    int count = one->data ? at_gemm_kernels_of(one)->candidates(&g, &machine, list, ROOM, true)
                          : one->configurations(one, &g, device, list, ROOM);
    if (count > most) count = most;
    if (getenv("ATTUNE_TEST_LIST") && one->data)
      count = read_list(getenv("ATTUNE_TEST_LIST"), s->name, one->name, list);
    if (one->prepare_many) one->prepare_many(one, &g, device, list, count);
    time_all(one, list, count, &g, &m, s->name, bytes);
  }
  attune_generator_destroy(generator);
  OK(attune_free(m.a - offset, stream));
  OK(attune_free(m.b - offset, stream));
  OK(attune_free(m.d - offset, stream));
  OK(attune_free(m.scales, stream));
  OK(attune_stream_synchronize(stream));
}

int main(int argc, char **argv) {
  const char *given = getenv("ATTUNE_TEST_CONFIGURATIONS");
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("no CUDA device");
  if (attune_stream_create(&stream, device) != ATTUNE_OK) return 1;
  for (size_t i = 0; i < AT_COUNT(shapes); i++) {
    bool wanted = argc < 2;
    for (int a = 1; a < argc; a++) wanted = wanted || strncmp(shapes[i].name, argv[a], strlen(argv[a])) == 0;
    if (wanted) time_shape(&shapes[i], given ? atoi(given) : 64);
  }
  attune_stream_destroy(stream);
  return 0;
}
