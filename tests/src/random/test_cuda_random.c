/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_random.c: the GPU's random numbers are the host's: mode portable bit for bit, every distribution, type,
 * alignment and length; mode torch bit for bit where no logarithm or sine is involved. And the square root by hand is
 * the correctly rounded one. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <math.h>

#include "src/base/half.h"
#include "src/cuda/jit/jit.h"
#include "src/random/transforms.h"
#include "tests/support/gpu.h"

#define MOST ((size_t)9 << 20)
#define GUARD 64

static attune_device *gpu;
static attune_stream *stream, *host_stream;
static attune_generator *generator;
static unsigned char *device_memory, *theirs, *ours;

typedef enum kind {
  UNIFORM,
  UNIT,
  NORMAL,
  STANDARD,
  LOG_NORMAL,
  EXPONENTIAL,
  BERNOULLI,
  INTEGERS,
  WIDE_INTEGERS,
  PERMUTATION,
  KINDS
} kind;
static const char *const names[] = {"uniform",     "uniform 0 to 1", "normal",   "standard normal", "log-normal",
                                    "exponential", "Bernoulli",      "integers", "wide integers",   "permutation"};
static const attune_dtype dtypes[] = {ATTUNE_F64, ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16, ATTUNE_I32, ATTUNE_I64};
#define DTYPES (sizeof dtypes / sizeof *dtypes)

static int makes_sense(kind k, attune_dtype dtype) {
  const int integer = dtype == ATTUNE_I32 || dtype == ATTUNE_I64;
  if (k == BERNOULLI || k == INTEGERS) return 1;
  if (k == WIDE_INTEGERS) return dtype != ATTUNE_F16 && dtype != ATTUNE_BF16;
  return integer == (k == PERMUTATION);
}

static attune_status draw(kind k, attune_stream *s, void *out, attune_dtype dtype, size_t count) {
  attune_generator *g = generator;
  switch (k) {
  case UNIFORM: return attune_random_uniform(g, s, out, dtype, count, -1.5, 2.25);
  case UNIT: return attune_random_uniform(g, s, out, dtype, count, 0, 1);
  case NORMAL: return attune_random_normal(g, s, out, dtype, count, 0.5, 1.25);
  case STANDARD: return attune_random_normal(g, s, out, dtype, count, 0, 1);
  case LOG_NORMAL: return attune_random_log_normal(g, s, out, dtype, count, 0.25, 0.5);
  case EXPONENTIAL: return attune_random_exponential(g, s, out, dtype, count, 3.0);
  case BERNOULLI: return attune_random_bernoulli(g, s, out, dtype, count, 0.3);
  case INTEGERS: return attune_random_integers(g, s, out, dtype, count, -100, 150);
  case WIDE_INTEGERS: return attune_random_integers(g, s, out, dtype, count, -5000000, 9000000);
  default: return attune_random_permutation(g, s, out, dtype, count);
  }
}

/* Both sides draw the same call; what lies around stays. */
static void draw_both(kind k, attune_dtype dtype, size_t count, size_t shift, uint64_t offset) {
  const size_t bytes = count * attune_dtype_size(dtype), all = bytes + shift + GUARD;
  OK(attune_fill(stream, device_memory, 0xa5, all));
  memset(ours, 0xa5, all);
  OK(attune_generator_set_offset(generator, offset));
  OK(draw(k, stream, device_memory + shift, dtype, count));
  OK(attune_generator_set_offset(generator, offset));
  OK(draw(k, host_stream, ours + shift, dtype, count));
  OK(attune_copy(stream, theirs, device_memory, all));
  OK(attune_stream_synchronize(stream));
}

static void check_equal(kind k, attune_dtype dtype, size_t count, size_t shift, uint64_t offset) {
  draw_both(k, dtype, count, shift, offset);
  const size_t size = attune_dtype_size(dtype), all = count * size + shift + GUARD;
  for (size_t i = 0; i < all; i++)
    if (ours[i] != theirs[i])
      fail_msg("%s, %s, %zu from %zu: element %zd differs", names[k], attune_dtype_name(dtype), count, shift,
               ((ptrdiff_t)i - (ptrdiff_t)shift) / (ptrdiff_t)size);
}

TEST(portable_numbers_are_the_hosts) {
  OK(attune_generator_set_mode(generator, ATTUNE_RANDOM_PORTABLE));
  const size_t counts[] = {1, 7, 8, 9, 1000, 1025, 65537, MOST - 3, MOST - 3};
  /* The last: the counter's low half wraps around in a call, within a tile. */
  const uint64_t offsets[] = {0, 4, 8, 12, 16 + ((uint64_t)1 << 40), 20, 24, 28, 4 * (((uint64_t)1 << 32) - 12345)};
  for (int k = 0; k < KINDS; k++)
    for (size_t d = 0; d < DTYPES; d++) {
      if (!makes_sense((kind)k, dtypes[d])) continue;
      for (size_t n = 0; n < sizeof counts / sizeof *counts; n++)
        for (size_t shift = 0; shift < 2; shift++)
          check_equal((kind)k, dtypes[d], counts[n], shift * attune_dtype_size(dtypes[d]), offsets[n]);
      print_message("%s %s\n", names[k], attune_dtype_name(dtypes[d]));
    }
}

/* From 2^24 on, kernels with larger tiles; the counter wraps around in one. */
TEST(large_calls_are_the_hosts) {
  const size_t large = ((size_t)1 << 24) + 4099;
  const kind kinds[] = {NORMAL, STANDARD, LOG_NORMAL, EXPONENTIAL};
  OK(attune_generator_set_mode(generator, ATTUNE_RANDOM_PORTABLE));
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    check_equal(kinds[k], ATTUNE_F32, large, 0, 4 * (((uint64_t)1 << 32) - 54321));
    check_equal(kinds[k], ATTUNE_BF16, large, 0, 4 * (((uint64_t)1 << 33) - 7654321));
    check_equal(kinds[k], ATTUNE_F16, large, 2, 0);
  }
}

/* The host's model of torch's kernels, for this GPU's size. */
TEST(torch_numbers_are_the_models) {
  OK(attune_generator_set_mode(generator, ATTUNE_RANDOM_TORCH));
  const size_t counts[] = {1, 255, 1000, 270336, 1081344, 1081345, MOST - 3};
  for (int k = 0; k < PERMUTATION; k++)
    for (size_t d = 0; d < DTYPES; d++) {
      const int rounds = k == NORMAL || k == STANDARD || k == LOG_NORMAL || k == EXPONENTIAL;
      if (!makes_sense((kind)k, dtypes[d]) || rounds) continue;
      for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) check_equal((kind)k, dtypes[d], counts[n], 0, 4 * n);
    }
}

static double value_at(const void *data, attune_dtype dtype, size_t i) {
  if (dtype == ATTUNE_F64) return ((const double *)data)[i];
  if (dtype == ATTUNE_F32) return ((const float *)data)[i];
  return dtype == ATTUNE_F16 ? at_f16_to_f32(((const uint16_t *)data)[i]) : at_bf16_to_f32(((const uint16_t *)data)[i]);
}

/* Fast sines on the GPU are good to 2^-21, and a half may fall to the next value. */
TEST(torch_transforms_are_close_to_the_models) {
  OK(attune_generator_set_mode(generator, ATTUNE_RANDOM_TORCH));
  const kind kinds[] = {NORMAL, STANDARD, LOG_NORMAL, EXPONENTIAL};
  for (size_t k = 0; k < 4; k++)
    for (size_t d = 0; d < 4; d++) {
      const double relative = dtypes[d] == ATTUNE_F64   ? 1e-13
                              : dtypes[d] == ATTUNE_F32 ? 2e-6
                              : dtypes[d] == ATTUNE_F16 ? 0x1p-9
                                                        : 0x1p-6;
      const double absolute = dtypes[d] == ATTUNE_F64 ? 1e-13 : 1e-5;
      draw_both(kinds[k], dtypes[d], MOST - 3, 0, 8);
      for (size_t i = 0; i < MOST - 3; i++) {
        const double x = value_at(ours, dtypes[d], i), y = value_at(theirs, dtypes[d], i);
        if (!(fabs(x - y) <= absolute + relative * fabs(x)))
          fail_msg("%s, %s: element %zu is %.17g, the model says %.17g", names[kinds[k]], attune_dtype_name(dtypes[d]),
                   i, y, x);
      }
    }
}

/* Counts the floats of a range whose at_sqrt32 is not the compiler's own, which is correctly rounded. */
static const char sqrt_text[] =
    "struct argument { unsigned first, count; unsigned long long *wrong; };\n"
    "extern \"C\" __global__ void check(const __grid_constant__ argument a) {\n"
    "  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < a.count; i += gridDim.x * blockDim.x) {\n"
    "    const float x = __uint_as_float(a.first + i);\n"
    "    if (__float_as_uint(at_sqrt32(x)) != __float_as_uint(__fsqrt_rn(x))) atomicAdd(a.wrong, 1ull);\n"
    "  }\n"
    "}\n";

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = calloc(1, 1 << 20);
  assert_non_null(file);
  assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
  fclose(file);
  return text;
}

TEST(square_roots_are_correctly_rounded) {
  char *parts[] = {read_file(AT_SOURCE_DIR "/src/random/philox.h"),
                   read_file(AT_SOURCE_DIR "/src/random/transforms.h")};
  char *text = calloc(1, strlen(parts[0]) + strlen(parts[1]) + sizeof sqrt_text);
  strcat(strcat(strcat(text, parts[0]), parts[1]), sqrt_text);
  const at_kernel_source source = {.file = "sqrt.cu", .text = text, .entry = "check"};
  struct {
    unsigned first, count;
    unsigned long long *wrong;
  } argument = {at_bits_of_f32(0x1p-60f), at_bits_of_f32(0x1p60f) - at_bits_of_f32(0x1p-60f),
                (unsigned long long *)(void *)device_memory};
  at_jit_kernel *kernel = NULL;
  unsigned long long wrong = 1;
  at_cuda_scope scope;
  OK(attune_fill(stream, device_memory, 0, sizeof wrong));
  OK(at_cuda_enter(&scope, gpu));
  OK(at_jit_get(&kernel, gpu, &source));
  OK(at_jit_launch(kernel, &AT_JIT_ROW(1024, 256), &argument, stream));
  at_cuda_leave(&scope);
  at_jit_release(kernel);
  OK(attune_copy(stream, &wrong, device_memory, sizeof wrong));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(wrong, 0);
  free(parts[0]);
  free(parts[1]);
  free(text);
}

int main(void) {
  attune_device *host = NULL;
  if (attune_device_get(&gpu, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  OK(attune_device_get(&host, "host"));
  host_stream = attune_stream_default(host);
  OK(attune_stream_create(&stream, gpu));
  OK(attune_generator_create(&generator, 0x0123456789abcdef));
  OK(attune_alloc((void **)&device_memory, stream, MOST * 8 + 16 + GUARD));
  ours = malloc(MOST * 8 + 16 + GUARD);
  theirs = malloc(MOST * 8 + 16 + GUARD);
  const int failed = RUN_TESTS(NULL, NULL);
  free(ours);
  free(theirs);
  attune_generator_destroy(generator);
  OK(attune_free(device_memory, stream));
  attune_stream_destroy(stream);
  return failed;
}
