/* SPDX-License-Identifier: Apache-2.0
 * test_jit_compile.c: every kernel, in every form in use, compiles for every kind of device, within its registers and
 * without spilling. No device is needed. A new kernel is one more line in `kernels`. */
#include "ops/gemm/cublas/pad.h"

#include "tests/support/check.h"

#include <pthread.h>

#include "src/cuda/memory/fill.h"
#include "src/cuda/reduce/reduce_cuda.h"
#include "tests/src/cuda/jit_kernels.h"

static const int capabilities[] = {80, 90, 100, 120};

/* One of each type, and each reduction. */
static const at_kernel_source *reduce_source(size_t form) {
  static const struct {
    attune_reduction reduction;
    attune_dtype dtype;
  } forms[] = {{ATTUNE_REDUCE_SUM, ATTUNE_F32},      {ATTUNE_REDUCE_SUM, ATTUNE_F16},
               {ATTUNE_REDUCE_AVERAGE, ATTUNE_BF16}, {ATTUNE_REDUCE_PRODUCT, ATTUNE_I8},
               {ATTUNE_REDUCE_MIN, ATTUNE_I16},      {ATTUNE_REDUCE_MAX, ATTUNE_U64},
               {ATTUNE_REDUCE_AVERAGE, ATTUNE_F64},  {ATTUNE_REDUCE_MAX, ATTUNE_U8}};
  static at_kernel_source source;
  source = at_reduce_source(forms[form].reduction, forms[form].dtype, form != 2);
  return &source;
}

static const at_kernel_source *fill_source(size_t form) {
  static at_kernel_source source;
  (void)form;
  source = at_fill_source();
  return &source;
}

/* Registers: 65536 of a multiprocessor by the threads that should be there at once. Kernels of the tests are compiled
 * up to the first capability that has all that they use. */
static const struct kernel {
  const at_kernel_source *(*source)(size_t form);
  size_t form;
  int registers_max, capability_max;
} kernels[] = {
    {at_pad_source, 2, 40, 999},         {at_pad_source, 4, 40, 999},          {at_pad_source, 8, 40, 999},
    {reduce_source, 0, 64, 999},         {reduce_source, 1, 64, 999},          {reduce_source, 2, 64, 999},
    {reduce_source, 3, 64, 90},          {reduce_source, 4, 64, 90},           {reduce_source, 5, 64, 90},
    {reduce_source, 6, 64, 90},          {reduce_source, 7, 64, 90},           {fill_source, 0, 32, 999},
    {show_source, SHOW_A_PLACE, 40, 90}, {show_source, SHOW_A_SHARED, 40, 90}, {show_source, SHOW_A_CLUSTER, 40, 90},
    {show_source, SHOW_A_FIRST, 40, 90}, {show_source, SHOW_A_SECOND, 40, 90},
};

/* The number before `unit` in the report, which must be there. */
static int number_before(const char *report, const char *unit) {
  const char *at = strstr(report, unit);
  if (!at) fail_msg("\"%s\" is not in: %s", unit, report);
  while (at > report && at[-1] == ' ') at--;
  while (at > report && at[-1] >= '0' && at[-1] <= '9') at--;
  return atoi(at);
}

static void check(const struct kernel *kernel, const at_architecture *architecture) {
  at_kernel_code code;
  char *report = NULL;
  const at_kernel_source *source = kernel->source(kernel->form);
  const attune_status status = at_kernel_compile(&code, source, architecture, &report);
  if (status != ATTUNE_OK) fail_msg("%s", attune_last_message());
  assert_true(code.size > 100);
  if (strncmp(architecture->name, "sm_", 3) == 0) {
    assert_non_null(report);
    assert_int_equal(number_before(report, "bytes stack frame"), 0);
    assert_int_equal(number_before(report, "bytes spill stores"), 0);
    assert_int_equal(number_before(report, "bytes spill loads"), 0);
    const int registers = number_before(report, "registers");
    if (registers < 1 || registers > kernel->registers_max)
      fail_msg("%s (%zu) for %s takes %d registers; should take at most %d", source->entry, kernel->form,
               architecture->name, registers, kernel->registers_max);
  } else {
    assert_non_null(strstr(code.bytes, ".visible .entry"));
  }
  free(report);
  at_kernel_code_free(&code);
}

TEST(every_kernel_for_every_device) {
  for (size_t k = 0; k < AT_COUNT(kernels); k++)
    for (size_t c = 0; c < AT_COUNT(capabilities) && capabilities[c] <= kernels[k].capability_max; c++) {
      at_architecture architectures[2];
      const int count = at_architectures(architectures, capabilities[c]);
      if (count == 0) continue; /* an NVRTC that no longer, or not yet, knows this one */
      for (int a = 0; a < count; a++) check(&kernels[k], &architectures[a]);
    }
}

TEST(architectures_of_devices) {
  at_architecture a[2];
  assert_int_equal(at_architectures(a, 90), 2);
  assert_string_equal(a[0].name, "sm_90a");
  assert_string_equal(a[1].name, "compute_90");
  assert_int_equal(at_architectures(a, 80), 2);
  assert_string_equal(a[0].name, "sm_80");
  assert_int_equal(at_architectures(a, 999), 1); /* newer than the compiler: PTX */
  assert_int_equal(strncmp(a[0].name, "compute_", 8), 0);
  assert_int_equal(at_architectures(a, 10), 0);
}

TEST(the_first_error_is_in_the_message) {
  const at_architecture sm_90a = {"sm_90a"}, unknown = {"sm_97"};
  at_kernel_source source = {.file = "wrong.cu",
                             .entry = "f",
                             .text = "#warning looked at\n\nextern \"C\" __global__ void f() { x = 1; y = 2; }\n"};
  at_kernel_code code = {&source, 1};
  assert_int_equal(at_kernel_compile(&code, &source, &sm_90a, NULL), ATTUNE_INTERNAL);
  assert_null(code.bytes);
  const char *message = attune_last_message();
  assert_non_null(strstr(message, "f of wrong.cu"));
  assert_non_null(strstr(message, "wrong.cu(3)"));
  assert_non_null(strstr(message, "\"x\" is undefined"));
  assert_null(strchr(message, '\n'));
  FAILS_SAYING(at_kernel_compile(&code, at_pad_source(2), &unknown, NULL), ATTUNE_UNSUPPORTED, "sm_97");
}

TEST(macros_reach_the_text) {
  const at_architecture sm_80 = {"sm_80"};
  const char *const macros[] = {"ANSWER=42", "TYPE=unsigned int", NULL};
  at_kernel_source source = {.file = "macros.cu", .entry = "f"};
  source.text =
      "#if ANSWER != 42\n#error no answer\n#endif\nextern \"C\" __global__ void f(TYPE *x) { *x = ANSWER; }\n";
  at_kernel_code code;
  assert_int_equal(at_kernel_compile(&code, &source, &sm_80, NULL), ATTUNE_INTERNAL);
  source.macros = macros;
  assert_int_equal(at_kernel_compile(&code, &source, &sm_80, NULL), ATTUNE_OK);
  at_kernel_code_free(&code);
}

static void *compile_once(void *form) {
  const at_architecture sm_80 = {"sm_80"};
  at_kernel_code code;
  const attune_status status = at_kernel_compile(&code, at_pad_source(*(const size_t *)form), &sm_80, NULL);
  at_kernel_code_free(&code);
  return status == ATTUNE_OK ? form : NULL;
}

TEST(several_at_once) {
  static size_t forms[] = {2, 4, 8, 2};
  pthread_t threads[AT_COUNT(forms)];
  for (size_t i = 0; i < AT_COUNT(forms); i++)
    assert_int_equal(pthread_create(&threads[i], NULL, compile_once, &forms[i]), 0);
  for (size_t i = 0; i < AT_COUNT(forms); i++) {
    void *result = NULL;
    assert_int_equal(pthread_join(threads[i], &result), 0);
    assert_ptr_equal(result, &forms[i]);
  }
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
