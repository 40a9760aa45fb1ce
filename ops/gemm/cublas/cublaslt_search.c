/* SPDX-License-Identifier: Apache-2.0
 * cublaslt_search.c: which algorithms of cuBLASLt to try: the library's own ranking, then the space around a good
 * one. */
#include "ops/gemm/cublas/cublaslt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/process/exit.h"

#define HEURISTIC_MAX 256
#define IDS_MAX 256
#define LIST_MAX 1024 /* tile or stage numbers of one algorithm */
#define AXIS_MAX 64
#define TILES_OF_ID 4 /* of an algorithm that the ranking leaves out */
#define NEAR 12       /* values of an axis that are tried first */
#define LEAST_K 16    /* of one part of a split sum */
#define CUSTOM_MAX 15u
#define ATTEMPTS_MAX 8192 /* a check takes microseconds */

/* Accepted algorithms, in order and without repetition. `taken` runs parallel to `out`. */
typedef struct collector {
  const at_lt_problem *problem;
  const at_lt_algorithm *leader; /* not to be offered again; NULL: none */
  at_configuration *out;
  at_lt_algorithm *taken;
  int count, max;
  int attempts; /* left */
} collector;

/* Values to try for one attribute, or for two that only make sense together. */
typedef struct axis {
  at_lt_field field, second; /* second == field: there is none */
  int count;
  uint32_t value[AXIS_MAX], second_value[AXIS_MAX];
} axis;

static bool is_known(const collector *c, const at_lt_algorithm *algorithm) {
  if (c->leader && memcmp(c->leader, algorithm, sizeof *algorithm) == 0) return true;
  for (int i = 0; i < c->count; i++)
    if (memcmp(&c->taken[i], algorithm, sizeof *algorithm) == 0) return true;
  return false;
}

/* Takes the algorithm if there is room, it is new and it may run; true when it was taken. */
static bool offer(collector *c, const at_lt_algorithm *algorithm) {
  cublasLtMatmulAlgo_t made;
  cublasLtMatmulHeuristicResult_t result;
  if (c->count >= c->max || is_known(c, algorithm) || --c->attempts < 0) return false;
  if (at_exit_begun()) return false; /* which waits for this thread */
  if (at_lt_check(c->problem, algorithm, &made, &result) ||
      !at_tunables_format(&at_lt_tunables, &c->out[c->count], algorithm))
    return false;
  c->taken[c->count++] = *algorithm;
  return true;
}

static cublasStatus_t set_preferences(cublasLtMatmulPreference_t preference, const at_lt_problem *problem) {
  static const cublasLtMatmulPreferenceAttributes_t alignments[4] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  uint64_t workspace = problem->workspace_cap, flags = ~problem->forbidden;
  cublasStatus_t status = at_cublas.cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = at_cublas.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                            &problem->reductions, sizeof problem->reductions);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = at_cublas.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_IMPL_MASK, &flags,
                                                            sizeof flags);
  for (int i = 0; i < 4 && status == CUBLAS_STATUS_SUCCESS; i++)
    status = at_cublas.cublasLtMatmulPreferenceSetAttribute(preference, alignments[i], &problem->alignment[i],
                                                            sizeof problem->alignment[i]);
  return status;
}

/* The library's ranking, best first. */
static void offer_heuristic(collector *c) {
  const at_lt_problem *p = c->problem;
  cublasLtMatmulPreference_t preference = NULL;
  cublasLtMatmulHeuristicResult_t *found = calloc(HEURISTIC_MAX, sizeof *found);
  int wanted = c->max < HEURISTIC_MAX ? c->max : HEURISTIC_MAX, count = 0;
  cublasStatus_t status = found ? at_cublas.cublasLtMatmulPreferenceCreate(&preference) : CUBLAS_STATUS_ALLOC_FAILED;
  if (status == CUBLAS_STATUS_SUCCESS) status = set_preferences(preference, p);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = at_cublas.cublasLtMatmulAlgoGetHeuristic(p->handle, p->matmul, p->a, p->b, p->c, p->d, preference, wanted,
                                                      found, &count);
  for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; i++) {
    at_lt_algorithm algorithm;
    if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
    at_lt_describe(&algorithm, &found[i].algo);
    (void)offer(c, &algorithm);
  }
  if (preference) (void)at_cublas.cublasLtMatmulPreferenceDestroy(preference);
  free(found);
}

static bool has_id(const collector *c, uint32_t id) {
  for (int i = 0; i < c->count; i++)
    if (c->taken[i].value[AT_LT_ID] == id) return true;
  return false;
}

/* Tile `tile` of algorithm `start` with the first stages that the library takes it with. */
static bool offer_tile(collector *c, const at_lt_algorithm *start, uint32_t tile, const uint32_t *stages,
                       int stage_count) {
  at_lt_algorithm algorithm = *start;
  algorithm.value[AT_LT_TILE] = tile;
  for (int s = 0; s < stage_count; s++) {
    algorithm.value[AT_LT_STAGES] = stages[s];
    if (offer(c, &algorithm)) return true;
  }
  return false;
}

/* Algorithm `id` with a few tiles from all over its list: enough to see whether it is worth widening. */
static void offer_id(collector *c, uint32_t id) {
  cublasLtMatmulAlgo_t made;
  if (!at_lt_start(c->problem, id, &made)) return;
  uint32_t tiles[LIST_MAX] = {0}, stages[LIST_MAX] = {0};
  int tile_count = at_lt_list(&made, CUBLASLT_ALGO_CAP_TILE_IDS, tiles, LIST_MAX);
  int stage_count = at_lt_list(&made, CUBLASLT_ALGO_CAP_STAGES_IDS, stages, LIST_MAX);
  if (tile_count == 0) tile_count = 1; /* tile and stages 0: undefined */
  if (stage_count == 0) stage_count = 1;
  at_lt_algorithm start;
  at_lt_describe(&start, &made);
  for (int part = 0; part < TILES_OF_ID; part++) {
    int last = tile_count * (part + 1) / TILES_OF_ID;
    for (int t = tile_count * part / TILES_OF_ID; t < last; t++)
      if (offer_tile(c, &start, tiles[t], stages, stage_count)) break;
  }
}

/* Algorithms that the ranking leaves out altogether. */
static void offer_other_ids(collector *c) {
  const at_gemm *g = &c->problem->gemm;
  cudaDataType_t in = at_gemm_cuda_type(g->dtype), b = at_gemm_cuda_type((uint8_t)at_gemm_dtype_b(g)),
                 type_c = at_gemm_cuda_type((uint8_t)at_gemm_dtype_c(g)), result = at_gemm_cuda_type(g->dtype_out);
  int ids[IDS_MAX], count = 0;
  if (at_cublas.cublasLtMatmulAlgoGetIds(c->problem->handle, at_gemm_compute_type(g), at_gemm_scale_type(g), in, b,
                                         type_c, result, IDS_MAX, ids, &count) != CUBLAS_STATUS_SUCCESS)
    return;
  for (int i = 0; i < count && c->count < c->max; i++)
    if (ids[i] >= 0 && !has_id(c, (uint32_t)ids[i])) offer_id(c, (uint32_t)ids[i]);
}

static void add_pair(axis *a, uint32_t value, uint32_t second) {
  for (int i = 0; i < a->count; i++)
    if (a->value[i] == value && a->second_value[i] == second) return;
  if (a->count == AXIS_MAX) return;
  a->value[a->count] = value;
  a->second_value[a->count++] = second;
}

/* How far `splits` parts are from filling the device once; `waves` is what one part of each tile fills. */
static double distance(uint32_t splits, double waves) {
  return waves > 0.0 ? fabs(log2((double)splits * waves)) : (double)splits;
}

/* Numbers of parts worth trying, those that fill the device first. */
static int split_counts(uint32_t out[AXIS_MAX], const at_lt_problem *problem, uint32_t leader, double waves) {
  static const uint32_t usual[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128};
  uint32_t sms = (uint32_t)problem->device->properties.processors;
  uint32_t fill = waves > 0.0 && waves < 1.0 ? (uint32_t)(1.0 / waves) : 1;
  const uint32_t device[] = {sms / 4,  sms / 2,  sms,        fill,       fill + 1,
                             fill / 2, 2 * fill, leader - 1, leader + 1, 2 * leader};
  uint64_t most = (uint64_t)problem->gemm.k / LEAST_K;
  axis all = {.field = AT_LT_SPLITK, .second = AT_LT_SPLITK};
  for (size_t i = 0; i < AT_COUNT(usual); i++) add_pair(&all, usual[i], 0);
  for (size_t i = 0; i < AT_COUNT(device); i++) add_pair(&all, device[i], 0);
  int count = 0;
  for (int i = 0; i < all.count; i++) {
    uint32_t splits = all.value[i];
    if (splits == 0 || (splits > 1 && splits > most)) continue;
    int at = count++;
    for (; at > 0 && distance(out[at - 1], waves) > distance(splits, waves); at--) out[at] = out[at - 1];
    out[at] = splits;
  }
  return count;
}

/* Split-K with each reduction that the contract and the algorithm have: partial sums in the compute type first. */
static void split_axis(axis *a, const at_lt_problem *problem, const cublasLtMatmulAlgo_t *made, uint32_t leader,
                       double waves) {
  static const uint32_t schemes[] = {CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_INPLACE,
                                     CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE};
  uint32_t splits[AXIS_MAX];
  *a = (axis){.field = AT_LT_SPLITK, .second = AT_LT_REDUCTION};
  add_pair(a, 1, CUBLASLT_REDUCTION_SCHEME_NONE);
  if (at_lt_capability(made, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, 0) == 0) return;
  uint32_t supported =
      (uint32_t)at_lt_capability(made, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK, 0) & problem->reductions;
  int count = split_counts(splits, problem, leader, waves);
  for (size_t s = 0; s < AT_COUNT(schemes); s++)
    for (int i = 0; i < count && (supported & schemes[s]); i++)
      if (splits[i] > 1) add_pair(a, splits[i], schemes[s]);
}

/* Entries of a list attribute, those nearest to the leader's first: the library numbers similar shapes closely. */
static void list_axis(axis *a, at_lt_field field, const cublasLtMatmulAlgo_t *made,
                      cublasLtMatmulAlgoCapAttributes_t attribute, uint32_t leader) {
  uint32_t list[LIST_MAX];
  int count = at_lt_list(made, attribute, list, LIST_MAX), middle = 0;
  *a = (axis){.field = field, .second = field};
  while (middle < count && list[middle] != leader) middle++;
  if (middle == count) middle = 0;
  for (int step = 1; step <= count; step++) {
    if (middle + step < count) add_pair(a, list[middle + step], 0);
    if (step <= middle) add_pair(a, list[middle - step], 0);
  }
}

static void range_axis(axis *a, at_lt_field field, uint32_t first, uint32_t last) {
  *a = (axis){.field = field, .second = field};
  for (uint32_t v = first; v <= last && a->count < AXIS_MAX; v++) add_pair(a, v, 0);
}

/* Cluster shapes, the small ones first. Algorithms without clusters accept any and ignore it: for them there are
 * none. */
static void cluster_axis(axis *a, const at_lt_algorithm *leader) {
  static const uint32_t shapes[] = {
      CUBLASLT_CLUSTER_SHAPE_1x1x1, CUBLASLT_CLUSTER_SHAPE_2x1x1,  CUBLASLT_CLUSTER_SHAPE_1x2x1,
      CUBLASLT_CLUSTER_SHAPE_2x2x1, CUBLASLT_CLUSTER_SHAPE_4x1x1,  CUBLASLT_CLUSTER_SHAPE_1x4x1,
      CUBLASLT_CLUSTER_SHAPE_4x2x1, CUBLASLT_CLUSTER_SHAPE_2x4x1,  CUBLASLT_CLUSTER_SHAPE_8x1x1,
      CUBLASLT_CLUSTER_SHAPE_1x8x1, CUBLASLT_CLUSTER_SHAPE_4x4x1,  CUBLASLT_CLUSTER_SHAPE_8x2x1,
      CUBLASLT_CLUSTER_SHAPE_2x8x1, CUBLASLT_CLUSTER_SHAPE_16x1x1, CUBLASLT_CLUSTER_SHAPE_1x16x1};
  *a = (axis){.field = AT_LT_CLUSTER, .second = AT_LT_CLUSTER};
  if (leader->value[AT_LT_CLUSTER] == CUBLASLT_CLUSTER_SHAPE_AUTO) return;
  for (size_t i = 0; i < AT_COUNT(shapes); i++) add_pair(a, shapes[i], 0);
}

static void move(at_lt_algorithm *algorithm, const axis *a, int i) {
  algorithm->value[a->field] = a->value[i];
  if (a->second != a->field) algorithm->value[a->second] = a->second_value[i];
}

/* The first `most` values of an axis. */
static void offer_axis(collector *c, const axis *a, int most) {
  for (int i = 0; i < a->count && i < most && c->count < c->max; i++) {
    at_lt_algorithm algorithm = *c->leader;
    move(&algorithm, a, i);
    (void)offer(c, &algorithm);
  }
}

static void offer_plane(collector *c, const axis *a, int most_a, const axis *b, int most_b) {
  for (int i = 0; i < a->count && i < most_a; i++)
    for (int j = 0; j < b->count && j < most_b && c->count < c->max; j++) {
      at_lt_algorithm algorithm = *c->leader;
      move(&algorithm, a, i);
      move(&algorithm, b, j);
      (void)offer(c, &algorithm);
    }
}

/* How much of the device the leader fills without split-K; 0: the library does not say. */
static double unsplit_waves(const at_lt_problem *problem, const at_lt_algorithm *leader) {
  at_lt_algorithm one = *leader;
  one.value[AT_LT_SPLITK] = 1;
  one.value[AT_LT_REDUCTION] = CUBLASLT_REDUCTION_SCHEME_NONE;
  cublasLtMatmulAlgo_t made;
  cublasLtMatmulHeuristicResult_t result;
  return at_lt_check(problem, &one, &made, &result) ? 0.0 : (double)result.wavesCount;
}

/* One attribute at a time, then two, the nearest values of each first. A leader that fills the device gains little from
 * split-K, so there it comes late. */
static void offer_around(collector *c, const cublasLtMatmulAlgo_t *made) {
  const at_lt_algorithm *leader = c->leader;
  axis split, tile, cluster, stages, swizzle, custom;
  double waves = unsplit_waves(c->problem, leader);
  bool fills = waves >= 1.0;
  uint32_t custom_max = (uint32_t)at_lt_capability(made, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX, 0);
  split_axis(&split, c->problem, made, leader->value[AT_LT_SPLITK], waves);
  cluster_axis(&cluster, leader);
  list_axis(&tile, AT_LT_TILE, made, CUBLASLT_ALGO_CAP_TILE_IDS, leader->value[AT_LT_TILE]);
  list_axis(&stages, AT_LT_STAGES, made, CUBLASLT_ALGO_CAP_STAGES_IDS, leader->value[AT_LT_STAGES]);
  range_axis(&swizzle, AT_LT_SWIZZLE, 0, (uint32_t)at_lt_capability(made, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT, 0));
  range_axis(&custom, AT_LT_CUSTOM, 0, custom_max < CUSTOM_MAX ? custom_max : CUSTOM_MAX);
  offer_axis(c, &split, fills ? 4 : AXIS_MAX);
  offer_axis(c, &swizzle, AXIS_MAX);
  offer_axis(c, &cluster, NEAR);
  offer_axis(c, &custom, NEAR);
  offer_axis(c, &tile, NEAR);
  offer_axis(c, &stages, NEAR);
  if (!fills) offer_plane(c, &split, NEAR, &cluster, NEAR / 2);
  offer_plane(c, &cluster, NEAR / 2, &tile, NEAR);
  offer_axis(c, &tile, AXIS_MAX);
  offer_axis(c, &stages, AXIS_MAX);
  offer_axis(c, &cluster, AXIS_MAX);
  offer_plane(c, &cluster, NEAR / 2, &custom, NEAR);
  offer_plane(c, &split, NEAR, &tile, NEAR);
  offer_plane(c, &stages, NEAR, &tile, NEAR);
  offer_plane(c, &split, NEAR, &stages, NEAR);
  offer_plane(c, &swizzle, AXIS_MAX, &tile, AXIS_MAX);
  offer_plane(c, &cluster, AXIS_MAX, &tile, AXIS_MAX);
}

/* Descriptors, the device made current, the list of what was taken. */
int at_lt_search(const at_gemm *g, unsigned copied, attune_device *device, const at_lt_algorithm *leader,
                 at_configuration *out, int max) {
  if (max < 1) return 0;
  at_cuda_scope scope;
  if (at_cuda_enter(&scope, device) != ATTUNE_OK) return 0;
  at_lt_problem lt;
  collector c = {.problem = &lt, .leader = leader, .out = out, .max = max, .attempts = ATTEMPTS_MAX};
  c.taken = calloc((size_t)max, sizeof *c.taken);
  attune_status status = at_lt_open(&lt, g, copied, device);
  cublasLtMatmulAlgo_t made;
  cublasLtMatmulHeuristicResult_t result;
  bool usable = status == ATTUNE_OK && c.taken && (!leader || !at_lt_check(&lt, leader, &made, &result));
  if (usable && leader) offer_around(&c, &made);
  if (usable && !leader) offer_heuristic(&c), offer_other_ids(&c);
  at_lt_close(&lt);
  free(c.taken);
  at_cuda_leave(&scope);
  return c.count;
}

int at_lt_configurations(const at_implementation *self, const void *problem, attune_device *device,
                         at_configuration *out, int max) {
  (void)self;
  return at_lt_search(at_gemm_of(problem), 0, device, NULL, out, max);
}

int at_lt_neighbours(const at_implementation *self, const void *problem, attune_device *device,
                     const at_configuration *leader, at_configuration *out, int max) {
  (void)self;
  at_lt_algorithm from;
  return at_tunables_parse(&at_lt_tunables, &from, leader)
             ? at_lt_search(at_gemm_of(problem), 0, device, &from, out, max)
             : 0;
}
