/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_padded.c: GEMM through padded copies: every algorithm of both variants, on odd sizes, shifted pointers and
 * batches with gaps, with and without C, in a graph and under a small workspace. */
#include <attune/attune.h>

#include "tests/support/check.h"

#include "ops/gemm/cublas/cublaslt.h"
#include "tests/support/cuda_gemm.h"
#include "tests/support/gpu.h"

#define LIST 24

extern const at_implementation at_gemm_cublaslt_padded;

static attune_device *device;
static attune_stream *stream;

/* beta is not 1 with halves out: some kernels then round alpha A B to the output's type first, and a search refuses
 * them. */
static const shape shapes[] = {
    {ATTUNE_BF16, .m = 99, .n = 101, .k = 103, .alpha = 1},
    {ATTUNE_BF16, .ta = 1, .m = 99, .n = 101, .k = 104, .alpha = 1},
    {ATTUNE_BF16, .ta = 1, .tb = 1, .m = 65, .n = 63, .k = 129, .alpha = 0.5, .c = AT_C_INPLACE, .beta = 0.5},
    {ATTUNE_BF16, .m = 65, .n = 63, .k = 129, .gap = 2, .alpha = 1, .c = AT_C_SEPARATE, .beta = -0.75},
    {ATTUNE_BF16, .m = 65, .n = 63, .k = 129, .alpha = 1, .c = AT_C_SEPARATE, .beta = 0},
    {ATTUNE_BF16, .m = 128, .n = 64, .k = 64, .shift = 1, .alpha = 1},
    {ATTUNE_BF16, .m = 128, .n = 64, .k = 64, .shift = 4, .gap = 8, .c = AT_C_INPLACE, .alpha = 1, .beta = 0.5},
    {ATTUNE_BF16, .m = 33, .n = 31, .k = 35, .batch = 5, .alpha = 1},
    {ATTUNE_BF16, .m = 33, .n = 31, .k = 35, .batch = 3, .step = 3, .share_a = true, .alpha = 1},
    {ATTUNE_BF16, .m = 64, .n = 64, .k = 64, .batch = 4, .step = 5, .c = AT_C_SEPARATE, .share_c = true, .alpha = 0.5,
     .beta = 0.75},
    {ATTUNE_BF16, .dtype_out = ATTUNE_F32, .m = 77, .n = 41, .k = 91, .alpha = 1},
    {ATTUNE_F16, .dtype_out = ATTUNE_F32, .ta = 1, .m = 77, .n = 41, .k = 91, .shift = 2, .c = AT_C_INPLACE, .alpha = 1,
     .beta = 1},
    {ATTUNE_F16, .m = 1, .n = 33, .k = 257, .alpha = 1},
    {ATTUNE_BF16, .m = 999, .n = 1001, .k = 1003, .alpha = 1},
    {ATTUNE_BF16, .tb = 1, .m = 93, .n = 61, .k = 131, .alpha = 1, .c = AT_C_INPLACE, .beta = 0.75},
    {ATTUNE_BF16, .ta = 1, .tb = 1, .m = 77, .n = 63, .k = 99, .batch = 3, .alpha = 1},
    {ATTUNE_F32, .m = 61, .n = 67, .k = 71, .alpha = 1},
    {ATTUNE_F32, .m = 64, .n = 64, .k = 64, .shift = 1, .batch = 2, .alpha = 1},
    {ATTUNE_F64, .m = 31, .n = 17, .k = 43, .alpha = 1},
    {ATTUNE_F64, .tb = 1, .m = 31, .n = 17, .k = 43, .shift = 1, .c = AT_C_SEPARATE, .alpha = 1, .beta = -2},
};

static void assert_good(gemm_case *t, const at_configuration *configuration, size_t number) {
  at_plan *plan = NULL;
  const attune_status made = at_plan_create(&plan, &at_gemm_op, &at_gemm_cublaslt_padded, configuration, &t->g, device);
  if (made != ATTUNE_OK) fail_msg("shape %zu \"%s\": %s", number, configuration->text, attune_last_message());
  assert_true(plan->workspace_bytes <= t->g.workspace_cap);
  assert_true(reset_output(t));
  const attune_status status = plan->launch(plan, &t->operands, stream);
  if (status != ATTUNE_OK) fail_msg("shape %zu \"%s\": %s", number, configuration->text, attune_last_message());
  const double error = output_error(t);
  if (!(error <= 1.0)) fail_msg("shape %zu \"%s\": error %g of what is allowed", number, configuration->text, error);
  at_plan_destroy(plan);
}

TEST(every_variant_is_right) {
  static at_configuration list[LIST], around[LIST];
  int with_d = 0;
  for (size_t i = 0; i < AT_COUNT(shapes); i++) {
    gemm_case t;
    assert_true(make_case(&t, &shapes[i], stream));
    assert_true(at_gemm_cublaslt_padded.supports(&at_gemm_cublaslt_padded, &t.g, device));
    const int count = at_gemm_cublaslt_padded.configurations(&at_gemm_cublaslt_padded, &t.g, device, list, LIST);
    if (count < 1) fail_msg("shape %zu has no configuration", i);
    const int more = at_gemm_cublaslt_padded.neighbours(&at_gemm_cublaslt_padded, &t.g, device, &list[0], around, LIST);
    for (int j = 0; j < count; j++) {
      with_d += strncmp(list[j].text, "pad=abd,", 8) == 0;
      assert_good(&t, &list[j], i);
    }
    for (int j = 0; j < more; j++) assert_good(&t, &around[j], i);
    print_message("shape %zu: %d listed, %d around \"%s\"\n", i, count, more, list[0].text);
    free_case(&t);
  }
  assert_true(with_d > 0);
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

TEST(only_where_there_is_something_to_pad) {
  at_gemm g;
  set_problem(&g, &(shape){ATTUNE_BF16, .m = 64, .n = 64, .k = 64});
  assert_false(at_gemm_cublaslt_padded.supports(&at_gemm_cublaslt_padded, &g, device));
  set_problem(&g, &(shape){ATTUNE_BF16, .ta = 1, .m = 63, .n = 64, .k = 64}); /* only D */
  assert_true(at_gemm_cublaslt_padded.supports(&at_gemm_cublaslt_padded, &g, device));
  set_problem(&g, &(shape){ATTUNE_BF16, .m = 63, .n = 63, .k = 63});
  assert_true(at_gemm_cublaslt_padded.supports(&at_gemm_cublaslt_padded, &g, device));
  g.workspace_cap = 4096; /* less than the copies take */
  assert_false(at_gemm_cublaslt_padded.supports(&at_gemm_cublaslt_padded, &g, device));
  set_problem(&g, &(shape){ATTUNE_BF16, .m = 20001, .n = 64, .k = 20001});
  assert_false(at_gemm_cublaslt_padded.supports(&at_gemm_cublaslt_padded, &g, device));
  set_problem(&g, &(shape){ATTUNE_BF16, .m = 32768, .n = 9, .k = 1032}); /* a large A that stays where it is */
  g.ldb += 1;
  assert_true(at_gemm_cublaslt_padded.supports(&at_gemm_cublaslt_padded, &g, device));
}

TEST(foreign_configurations_are_misses) {
  static const char *const texts[] = {"", "pad=ab", "pad=ab,", "pad=abc,id=1", "id=1,tile=1", "pad=abd,nonsense"};
  at_gemm g;
  set_problem(&g, &shapes[0]);
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    at_plan *plan = NULL;
    at_configuration configuration = {{0}};
    assert_true(at_copy_text(configuration.text, sizeof configuration.text, texts[i]));
    assert_int_equal(at_plan_create(&plan, &at_gemm_op, &at_gemm_cublaslt_padded, &configuration, &g, device),
                     ATTUNE_NOT_FOUND);
    assert_null(plan);
  }
}

TEST(graphs_replay) {
  at_configuration list[2];
  gemm_case t;
  at_plan *plan = NULL;
  at_graph *graph = NULL;
  assert_true(make_case(&t, &shapes[0], stream));
  assert_true(at_gemm_cublaslt_padded.configurations(&at_gemm_cublaslt_padded, &t.g, device, list, 2) >= 1);
  OK(at_plan_create(&plan, &at_gemm_op, &at_gemm_cublaslt_padded, &list[0], &t.g, device));
  OK(plan->launch(plan, &t.operands, stream)); /* makes the workspace */
  OK(attune_stream_synchronize(stream));
  OK(device->backend.graph->capture_begin(stream));
  const attune_status status = plan->launch(plan, &t.operands, stream);
  OK(device->backend.graph->capture_end(stream, &graph));
  OK(status);
  for (int i = 0; i < 3; i++) {
    assert_true(reset_output(&t));
    OK(device->backend.graph->launch(graph, stream));
    assert_true(output_error(&t) <= 1.0);
  }
  device->backend.graph->destroy(graph);
  at_plan_destroy(plan);
  free_case(&t);
}

int main(void) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  if (attune_stream_create(&stream, device) != ATTUNE_OK) return 1;
  const int failures = RUN_TESTS(NULL, NULL);
  attune_stream_destroy(stream);
  return failures;
}
