/* SPDX-License-Identifier: Apache-2.0
 * test_random_torch.c: mode torch on the host: numbers that PyTorch prints on a GPU, and its kernel's loops written
 * down as they are: threads with a generator each, several samples a step. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <math.h>

#include "src/base/half.h"
#include "src/random/philox.h"

static attune_stream *stream;
static attune_generator *generator;

/* What torch.rand and torch.randn print after torch.manual_seed, on any CUDA device: see the documentation and forum of
 * PyTorch. */
TEST(known_numbers) {
  static const struct {
    uint64_t seed;
    float uniform[3], normal[3];
  } known[] = {
      {0, {0.3990f, 0.5167f, 0.0249f}, {-0.9247f, -0.4253f, -2.6438f}},
      {42, {0.6130f, 0.0101f, 0.3984f}, {0.1940f, 2.1614f, -0.1721f}},
  };
  float x[3];
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    OK(attune_generator_set_seed(generator, known[k].seed));
    OK(attune_random_uniform(generator, stream, x, ATTUNE_F32, 3, 0, 1));
    for (int i = 0; i < 3; i++) assert_true(fabsf(x[i] - known[k].uniform[i]) < 0.00006f);
    OK(attune_generator_set_seed(generator, known[k].seed));
    OK(attune_random_normal(generator, stream, x, ATTUNE_F32, 3, 0, 1));
    for (int i = 0; i < 3; i++) assert_true(fabsf(x[i] - known[k].normal[i]) < 0.00006f);
  }
}

/* One thread's generator: the block at its counter, then the next. */
typedef struct thread_generator {
  uint64_t seed, counter, sequence;
} thread_generator;

static at_philox_block next(thread_generator *g) {
  return at_philox(g->seed, g->counter++, g->sequence);
}

typedef enum kind { UNIFORM, BERNOULLI, INTEGERS, WIDE_INTEGERS } kind;

static void put(kind k, attune_dtype dtype, void *out, size_t i, const uint32_t *w, int sample) {
  const float u = (float)((double)(float)w[sample] * 0x1p-32 + 0x1p-33);
  if (k == WIDE_INTEGERS) {
    const uint64_t bits = (uint64_t)w[2 * sample] << 32 | w[2 * sample + 1];
    ((int64_t *)out)[i] = (int64_t)(bits % 5000000000u) - 77;
  } else if (k == INTEGERS) {
    ((int32_t *)out)[i] = (int32_t)(w[sample] % 1000u) - 77;
  } else if (dtype == ATTUNE_F64) {
    const uint64_t z = w[2 * sample] ^ (uint64_t)w[2 * sample + 1] << 21;
    const double v = (double)z * 0x1p-53 + 0x1p-54;
    ((double *)out)[i] = k == BERNOULLI ? v < 0.3 : v * 1.0 == 1.0 ? 0.0 : v;
  } else if (dtype == ATTUNE_F32) {
    ((float *)out)[i] = k == BERNOULLI ? u < 0.3f : u == 1.0f ? 0.0f : u;
  } else {
    const uint16_t one = dtype == ATTUNE_F16 ? 0x3c00 : 0x3f80,
                   h = dtype == ATTUNE_F16 ? at_f32_to_f16(u) : at_f32_to_bf16(u);
    ((uint16_t *)out)[i] = k == BERNOULLI ? (u < 0.3f ? one : 0) : h == one ? 0 : h;
  }
}

/* Returns how far the offset moves. */
static uint64_t model(kind k, attune_dtype dtype, void *out, size_t count, uint64_t seed, uint64_t offset,
                      size_t processors, size_t threads) {
  const size_t unroll = k == WIDE_INTEGERS || dtype == ATTUNE_F64 ? 2 : 4;
  size_t grid = (count + 255) / 256;
  if (grid > processors * (threads / 256)) grid = processors * (threads / 256);
  const size_t all = grid * 256;
  for (size_t t = 0; t < all; t++) {
    thread_generator g = {seed, offset / 4, t};
    for (size_t linear = t; linear < ((count - 1) / (all * unroll) + 1) * all * unroll; linear += all * unroll) {
      const at_philox_block block = next(&g);
      for (size_t s = 0; s < unroll; s++)
        if (linear + s * all < count) put(k, dtype, out, linear + s * all, block.w, (int)s);
    }
  }
  return ((count - 1) / (all * unroll) + 1) * 4;
}

static attune_status draw(kind k, attune_dtype dtype, void *out, size_t count) {
  switch (k) {
  case UNIFORM: return attune_random_uniform(generator, stream, out, dtype, count, 0, 1);
  case BERNOULLI: return attune_random_bernoulli(generator, stream, out, dtype, count, 0.3);
  case INTEGERS: return attune_random_integers(generator, stream, out, ATTUNE_I32, count, -77, 923);
  default: return attune_random_integers(generator, stream, out, ATTUNE_I64, count, -77, 4999999923);
  }
}

TEST(the_kernels_loops) {
  const struct {
    kind k;
    attune_dtype dtype;
  } cases[] = {{UNIFORM, ATTUNE_F32},    {UNIFORM, ATTUNE_F64},   {UNIFORM, ATTUNE_F16},
               {UNIFORM, ATTUNE_BF16},   {BERNOULLI, ATTUNE_F32}, {BERNOULLI, ATTUNE_F64},
               {BERNOULLI, ATTUNE_BF16}, {INTEGERS, ATTUNE_I32},  {WIDE_INTEGERS, ATTUNE_I64}};
  const size_t counts[] = {1, 255, 256, 257, 1000, 3 * 1024, 3 * 1024 * 4, 3 * 1024 * 4 + 1, 100003};
  void *ours = malloc(100003 * 8), *theirs = malloc(100003 * 8);
  OK(attune_generator_set_torch_grid(generator, 3, 1100)); /* 3 multiprocessors of 4 blocks */
  OK(attune_generator_set_seed(generator, 0xfedcba9876543210));
  uint64_t offset = 0, got = 0;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
      memset(ours, 0, 100003 * 8);
      memset(theirs, 0, 100003 * 8);
      OK(draw(cases[c].k, cases[c].dtype, ours, counts[n]));
      offset += model(cases[c].k, cases[c].dtype, theirs, counts[n], 0xfedcba9876543210, offset, 3, 1100);
      assert_memory_equal(ours, theirs, 100003 * 8);
      OK(attune_generator_get_offset(generator, &got));
      assert_int_equal(got, offset);
    }
  OK(attune_generator_set_torch_grid(generator, 0, 0));
  free(ours);
  free(theirs);
}

/* Normal samples from the uniform ones of the same words: sine first, radius of the first word. */
TEST(normal_samples_follow_the_words) {
  enum { COUNT = 1024 };
  float x[COUNT];
  double y[COUNT];
  OK(attune_generator_set_seed(generator, 7));
  OK(attune_random_normal(generator, stream, x, ATTUNE_F32, COUNT, 2, 3));
  OK(attune_generator_set_seed(generator, 7));
  OK(attune_random_normal(generator, stream, y, ATTUNE_F64, COUNT, 2, 3));
  for (size_t i = 0; i < 256; i++) { /* one block of threads each, the fewest that hold 1024 elements: 4 blocks, one
                                        sample a thread and pass */
    const at_philox_block b = at_philox(7, 0, i);
    const double u = ((double)b.w[0] + 0.5) * 0x1p-32, v = ((double)b.w[1] + 0.5) * 0x1p-32;
    assert_true(fabs(x[i] - (2 + 3 * sqrt(-2 * log(u)) * sin(2 * 3.14159265358979323846 * v))) < 2e-5);
    const double p = ((double)(b.w[0] ^ (uint64_t)b.w[1] << 21) + 0.5) * 0x1p-53,
                 q = ((double)(b.w[2] ^ (uint64_t)b.w[3] << 21) + 0.5) * 0x1p-52;
    assert_true(fabs(y[i] - (2 + 3 * sqrt(-2 * log(p)) * sin(3.14159265358979323846 * q))) < 1e-12);
  }
}

int main(void) {
  attune_device *host = NULL;
  OK(attune_device_get(&host, "host"));
  stream = attune_stream_default(host);
  OK(attune_generator_create(&generator, 0));
  OK(attune_generator_set_mode(generator, ATTUNE_RANDOM_TORCH));
  const int failed = RUN_TESTS(NULL, NULL);
  attune_generator_destroy(generator);
  return failed;
}
