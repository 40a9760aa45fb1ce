/* SPDX-License-Identifier: Apache-2.0
 * test_scaled_kernel.c: the kernel of scaled.cuh compiles for every architecture that we care for, for each kind of
 * problem. Needs no GPU. */
#include "tests/support/check.h"

#include "ops/gemm/scaled/scaled_cuda.h"
#include "pack_bytes_cu.h"

static void compile(const char *problem, const at_kernel_source *source) {
  static const char *const targets[] = {"sm_80", "sm_90a", "sm_100", "sm_120"};
  int made = 0;
  for (size_t i = 0; i < AT_COUNT(targets); i++) {
    at_architecture architecture;
    at_kernel_code code = {NULL, 0};
    char *report = NULL;
    snprintf(architecture.name, sizeof architecture.name, "%s", targets[i]);
    const attune_status status = at_kernel_compile(&code, source, &architecture, &report);
    if (status == ATTUNE_UNSUPPORTED) continue;
    if (status != ATTUNE_OK) fail_msg("%s for %s: %s", problem, targets[i], attune_last_message());
    if (!report || !strstr(report, "0 bytes spill stores"))
      fail_msg("%s for %s spills: %s", problem, targets[i], report);
    at_kernel_code_free(&code);
    free(report);
    made++;
  }
  if (made == 0) skip(); /* no compiler */
}

TEST(each_kind_compiles) {
  static const char *const problems[] = {
      "gemm f8e4m3:bf16 tn 64x64x64 strict",
      "gemm f8e4m3:f32 tn 64x64x64 strict beta scale_a=tensor scale_b=vector amax_d",
      "gemm f8e5m2:f16 nn 64x64x64 strict beta dtype_b=f8e4m3 scale_a=1x128 scale_b=128x128",
      "gemm f8e4m3 tt 64x64x64 strict beta scale_d amax_d",
      "gemm f8e4m3:f8e5m2 nt 64x64x64 strict dtype_b=f8e5m2 scale_a=128x128 scale_b=1x128 scale_d",
      "gemm i8:i32 tn 64x64x64 strict beta zero_a zero_b",
      "gemm i8 tn 64x64x64 strict beta scale_a=vector scale_b=tensor scale_d amax_d",
      "gemm i8:f16 tn 64x64x64 strict zero_b",
      "gemm i8:bf16 tn 64x64x64 strict scale_a=tensor"};
  for (size_t i = 0; i < AT_COUNT(problems); i++) {
    at_gemm g;
    char *text = NULL;
    OK(at_gemm_parse(problems[i], &g));
    OK(at_scaled_text(&g, &text));
    const at_kernel_source source = at_scaled_source(text);
    compile(problems[i], &source);
    free(text);
  }
}

TEST(copies_compile) {
  compile("copies", &(at_kernel_source){.file = "pack_bytes.cu", .text = at_pack_bytes_cu, .entry = "at_pack_bytes"});
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
