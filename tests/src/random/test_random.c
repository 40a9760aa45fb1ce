/* SPDX-License-Identifier: Apache-2.0
 * test_random.c: generators: state, offsets, order, bad input; and that every instruction set, thread count and split
 * of a call gives the same bits. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <math.h>
#include <pthread.h>

#include "src/base/dtype.h"
#include "src/host/random/fill.h"

#define BAD(call) assert_int_equal((call), ATTUNE_INVALID_ARGUMENT)
#define SEED 0x0123456789abcdefu

static attune_device *host;
static attune_stream *inline_stream;

typedef enum kind {
  UNIFORM,
  NORMAL,
  LOG_NORMAL,
  EXPONENTIAL,
  BERNOULLI,
  INTEGERS,
  WIDE_INTEGERS,
  PERMUTATION,
  KINDS
} kind;

static const attune_dtype dtypes[] = {ATTUNE_F64, ATTUNE_F32, ATTUNE_F16, ATTUNE_BF16, ATTUNE_I32, ATTUNE_I64};
#define DTYPES (sizeof dtypes / sizeof *dtypes)

static int is_integer(attune_dtype dtype) {
  return dtype == ATTUNE_I32 || dtype == ATTUNE_I64;
}

/* Whether the kind has the dtype. */
static int makes_sense(kind k, attune_dtype dtype) {
  if (k == BERNOULLI || k == INTEGERS) return 1;
  if (k == WIDE_INTEGERS) return dtype != ATTUNE_F16 && dtype != ATTUNE_BF16;
  return is_integer(dtype) == (k == PERMUTATION);
}

static attune_status draw(kind k, attune_generator *g, attune_stream *stream, void *out, attune_dtype dtype,
                          size_t count) {
  switch (k) {
  case UNIFORM: return attune_random_uniform(g, stream, out, dtype, count, -1.5, 2.25);
  case NORMAL: return attune_random_normal(g, stream, out, dtype, count, 0.5, 1.25);
  case LOG_NORMAL: return attune_random_log_normal(g, stream, out, dtype, count, 0.25, 0.5);
  case EXPONENTIAL: return attune_random_exponential(g, stream, out, dtype, count, 3.0);
  case BERNOULLI: return attune_random_bernoulli(g, stream, out, dtype, count, 0.3);
  case INTEGERS: return attune_random_integers(g, stream, out, dtype, count, -100, 150);
  case WIDE_INTEGERS: return attune_random_integers(g, stream, out, dtype, count, -5000000, 9000000);
  default: return attune_random_permutation(g, stream, out, dtype, count);
  }
}

static attune_generator *new_generator(void) {
  attune_generator *g = NULL;
  OK(attune_generator_create(&g, SEED));
  return g;
}

static uint64_t offset_of(const attune_generator *g) {
  uint64_t offset = 0;
  OK(attune_generator_get_offset(g, &offset));
  return offset;
}

static uint64_t hash(const void *data, size_t bytes) {
  const unsigned char *at = data;
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < bytes; i++) h = (h ^ at[i]) * 0x100000001b3u;
  return h;
}

/* Hashes of the first 1001 numbers of each distribution and type. They are part of the contract and never change: other
 * versions, compilers and machines must give these bits too. */
TEST(numbers_never_change) {
  static const uint64_t expected[KINDS][DTYPES] = {
      [UNIFORM] = {0x8f82d2569af6cba8, 0x6d96800f703eaad8, 0x3f386cbff41d6322, 0xa9c56e9f303384bd, 0, 0},
      [NORMAL] = {0x126e6fd155a86bd8, 0x6099149ea5520089, 0xe220ead062372839, 0xe40d8ae97f11ee57, 0, 0},
      [LOG_NORMAL] = {0x846833a173c3f49b, 0x4fd31bc19611968c, 0x782e644692a0defb, 0xe21fdc0c9eaa12e1, 0, 0},
      [EXPONENTIAL] = {0xf318abd5914e0ddb, 0x644081a7dc054ee0, 0xb46b72729c8c646c, 0x7023bac71e8c580f, 0, 0},
      [BERNOULLI] = {0x0c8e8f354876d0b8, 0x824047fa92e068a5, 0x3ed35f6974540a3d, 0x13164b70771b65a5, 0x7c5a98abddf83565,
                     0x4680394cc1593ba4},
      [INTEGERS] = {0xd58d82bdc95c513f, 0x347930c43420cd1c, 0x93e4af06846d129d, 0xd80c548291f7f4dc, 0xb6f465ba0d6c0f49,
                    0x842e1a69bad421cb},
      [WIDE_INTEGERS] = {0xa6c341b3ebd365cf, 0xa5e97ba476af5de8, 0, 0, 0x6878d5157ba70c0f, 0xac512df19ef382c3},
      [PERMUTATION] = {0, 0, 0, 0, 0xe770874ba71db790, 0xb908135391ecc8c0},
  };
  char *out = malloc(1001 * 8);
  int wrong = 0;
  for (int k = 0; k < KINDS; k++)
    for (size_t d = 0; d < DTYPES; d++) {
      uint64_t got = 0;
      if (makes_sense((kind)k, dtypes[d])) {
        attune_generator *g = new_generator();
        OK(draw((kind)k, g, inline_stream, out, dtypes[d], 1001));
        got = hash(out, 1001 * attune_dtype_size(dtypes[d]));
        attune_generator_destroy(g);
      }
      if (got != expected[k][d]) {
        print_message("[%d][%d] is 0x%016llx\n", k, (int)d, (unsigned long long)got);
        wrong++;
      }
    }
  assert_int_equal(wrong, 0);
  free(out);
}

/* Each instruction set against plain C, every length of a rest. */
TEST(instruction_sets_agree) {
  const at_fill_isa *all[4];
  at_fill_all(all);
  enum { BLOCKS = 1000 };
  unsigned char *ours = malloc(BLOCKS * 16 * 2), *plain = malloc(BLOCKS * 16 * 2);
  for (int distribution = AT_UNIFORM; distribution <= AT_INTEGERS; distribution++)
    for (size_t d = 0; d < DTYPES; d++) {
      if (is_integer(dtypes[d]) && distribution < AT_BERNOULLI) continue;
      at_random_call call = {.seed = SEED,
                             .offset = 400,
                             .distribution = distribution,
                             .dtype = (int)dtypes[d],
                             .range = 1000,
                             .from = -300};
      call.d[0] = distribution == AT_BERNOULLI ? 1.0 : -1.5;
      call.d[1] = 3.75;
      call.d[2] = 2.25;
      for (int i = 0; i < 3; i++) call.f[i] = (float)call.d[i];
      call.limit = 1234567890;
      const size_t bytes = attune_dtype_size(dtypes[d]) * at_random_per_block(distribution, (int)dtypes[d], call.range);
      for (int isa = 0; all[isa]; isa++)
        for (size_t count = 1; count <= BLOCKS; count += count < 40 ? 1 : 319) {
          memset(ours, 0xcc, BLOCKS * 32);
          memset(plain, 0xcc, BLOCKS * 32);
          at_fill_portable.fill(&call, 77, count, plain);
          all[isa]->fill(&call, 77, count, ours);
          if (memcmp(ours, plain, BLOCKS * 32))
            fail_msg("%s differs: distribution %d, dtype %d, %zu blocks", all[isa]->name, distribution, (int)dtypes[d],
                     count);
          assert_int_equal(ours[count * bytes], 0xcc);
        }
    }
  free(ours);
  free(plain);
}

/* A call in two parts, the first a multiple of 8 long, on any stream and with any alignment, is the call in one. */
TEST(parts_make_the_whole) {
  attune_stream *stream = NULL;
  OK(attune_stream_create(&stream, host));
  enum { COUNT = 300007 };
  char *whole = malloc(COUNT * 8 + 8), *parts = malloc(COUNT * 8 + 8);
  for (int k = 0; k < PERMUTATION; k++)
    for (size_t d = 0; d < DTYPES; d++) {
      const size_t size = attune_dtype_size(dtypes[d]), cut = 8 * 1111;
      if (!makes_sense((kind)k, dtypes[d])) continue;
      attune_generator *a = new_generator(), *b = new_generator();
      OK(draw((kind)k, a, inline_stream, whole, dtypes[d], COUNT));
      OK(draw((kind)k, b, stream, parts + size, dtypes[d], cut));
      OK(draw((kind)k, b, stream, parts + size + cut * size, dtypes[d], COUNT - cut));
      OK(attune_stream_synchronize(stream));
      assert_memory_equal(whole, parts + size, COUNT * size);
      assert_int_equal(offset_of(a), offset_of(b));
      attune_generator_destroy(a);
      attune_generator_destroy(b);
    }
  free(whole);
  free(parts);
  attune_stream_destroy(stream);
}

TEST(state_is_saved_and_restored) {
  attune_generator *g = new_generator();
  unsigned char saved[16], again[16];
  float first[100], second[100];
  OK(attune_random_uniform(g, inline_stream, first, ATTUNE_F32, 10, 0, 1));
  assert_int_equal(offset_of(g), 12);
  OK(attune_generator_get_state(g, saved, sizeof saved));
  const unsigned char expected[16] = {0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, 12};
  assert_memory_equal(saved, expected, 16);
  OK(attune_random_normal(g, inline_stream, first, ATTUNE_F32, 100, 0, 1));
  OK(attune_generator_set_seed(g, 7));
  assert_int_equal(offset_of(g), 0);
  OK(attune_generator_set_state(g, saved, 16));
  OK(attune_random_normal(g, inline_stream, second, ATTUNE_F32, 100, 0, 1));
  assert_memory_equal(first, second, sizeof first);
  OK(attune_generator_set_state(g, saved, 8)); /* the seed alone */
  uint64_t seed = 0;
  OK(attune_generator_get_seed(g, &seed));
  assert_true(seed == SEED);
  assert_int_equal(offset_of(g), 0);
  OK(attune_generator_jump(g, 12));
  OK(attune_generator_get_state(g, again, 16));
  assert_memory_equal(saved, again, 16);
  OK(attune_random_normal(g, inline_stream, second, ATTUNE_F32, 100, 0, 1));
  assert_memory_equal(first, second, sizeof first);
  attune_generator_destroy(g);
}

TEST(bad_input) {
  attune_generator *g = new_generator();
  unsigned char saved[24] = {0};
  _Alignas(16) float x[8] = {0};
  uint64_t value;
  BAD(attune_generator_create(NULL, 0));
  BAD(attune_generator_set_seed(NULL, 0));
  BAD(attune_generator_get_seed(g, NULL));
  BAD(attune_generator_get_seed(NULL, &value));
  BAD(attune_generator_set_offset(g, 3));
  BAD(attune_generator_set_offset(g, (uint64_t)1 << 63));
  BAD(attune_generator_jump(g, 2));
  BAD(attune_generator_jump(NULL, 4));
  BAD(attune_generator_set_offset(NULL, 4));
  BAD(attune_generator_get_offset(NULL, &value));
  BAD(attune_generator_get_offset(g, NULL));
  BAD(attune_generator_set_mode(NULL, ATTUNE_RANDOM_TORCH));
  BAD(attune_generator_get_mode(g, NULL));
  BAD(attune_generator_set_torch_grid(NULL, 132, 2048));
  BAD(attune_generator_get_state(NULL, saved, 16));
  BAD(attune_generator_get_state(g, NULL, 16));
  BAD(attune_generator_set_state(NULL, saved, 16));
  BAD(attune_generator_set_state(g, saved, 0));
  OK(attune_generator_set_offset(g, INT64_MAX - 3));
  BAD(attune_generator_jump(g, 4)); /* past the last offset */
  assert_true(offset_of(g) == INT64_MAX - 3);
  OK(attune_generator_set_offset(g, 0));
  BAD(attune_generator_get_state(g, saved, 15));
  BAD(attune_generator_set_state(g, saved, 15));
  BAD(attune_generator_set_state(g, saved, 24));
  BAD(attune_generator_set_state(g, NULL, 16));
  saved[8] = 1;
  BAD(attune_generator_set_state(g, saved, 16));
  BAD(attune_generator_set_mode(g, (attune_random_mode)2));
  BAD(attune_generator_set_torch_grid(g, 132, 0));
  BAD(attune_generator_set_torch_grid(g, -1, 2048));
  BAD(attune_random_uniform(NULL, inline_stream, x, ATTUNE_F32, 8, 0, 1));
  BAD(attune_random_uniform(g, NULL, x, ATTUNE_F32, 8, 0, 1));
  BAD(attune_random_uniform(g, inline_stream, NULL, ATTUNE_F32, 8, 0, 1));
  BAD(attune_random_uniform(g, inline_stream, x, ATTUNE_I32, 8, 0, 1));
  BAD(attune_random_uniform(g, inline_stream, x, (attune_dtype)0, 8, 0, 1));
  BAD(attune_random_uniform(g, inline_stream, x, (attune_dtype)7, 8, 0, 1));
  BAD(attune_random_uniform(g, inline_stream, x, ATTUNE_F32, 8, 1, 0));
  BAD(attune_random_uniform(g, inline_stream, x, ATTUNE_F32, 8, 0, (double)NAN));
  BAD(attune_random_uniform(g, inline_stream, x, ATTUNE_F32, 8, -3e38, 3e38));
  BAD(attune_random_uniform(g, inline_stream, x, ATTUNE_F16, 8, 0, 70000));
  BAD(attune_random_uniform(g, inline_stream, (char *)x + 1, ATTUNE_F32, 4, 0, 1));
  BAD(attune_random_uniform(g, inline_stream, x, ATTUNE_F32, SIZE_MAX / 4, 0, 1));
  BAD(attune_random_uniform(g, inline_stream, x, ATTUNE_F32, SIZE_MAX, 0, 1));
  BAD(attune_random_normal(g, inline_stream, x, ATTUNE_F32, 8, 0, -1));
  BAD(attune_random_normal(g, inline_stream, x, ATTUNE_F32, 8, (double)INFINITY, 1));
  BAD(attune_random_normal(g, inline_stream, x, ATTUNE_F32, 8, 1e39, 1));
  BAD(attune_random_exponential(g, inline_stream, x, ATTUNE_F32, 8, 0));
  BAD(attune_random_exponential(g, inline_stream, x, ATTUNE_F32, 8, -2));
  BAD(attune_random_bernoulli(g, inline_stream, x, ATTUNE_F32, 8, 1.5));
  BAD(attune_random_bernoulli(g, inline_stream, x, ATTUNE_F32, 8, -0.1));
  BAD(attune_random_integers(g, inline_stream, x, ATTUNE_I32, 8, 5, 5));
  BAD(attune_random_integers(g, inline_stream, x, ATTUNE_I32, 8, 0, (int64_t)1 << 32));
  BAD(attune_random_integers(g, inline_stream, x, ATTUNE_BF16, 8, 0, 300));
  BAD(attune_random_permutation(g, inline_stream, x, ATTUNE_F32, 8));
  assert_int_equal(offset_of(g), 0); /* nothing was drawn */
  OK(attune_generator_set_offset(g, INT64_MAX - 7));
  BAD(attune_random_uniform(g, inline_stream, x, ATTUNE_F32, 8, 0, 1));
  OK(attune_random_uniform(g, inline_stream, NULL, ATTUNE_F32, 0, 0, 1));
  OK(attune_generator_set_offset(g, 0));
  OK(attune_random_uniform(g, inline_stream, x, ATTUNE_F32, 8, 3, 3));
  for (int i = 0; i < 8; i++) assert_true(x[i] == 3.0f);
  attune_generator_destroy(g);
  attune_generator_destroy(NULL);
}

/* Each call takes its wrong parameter through every type, and says which one it was; what is in memory stays. */
typedef struct parameter {
  kind k;
  double a, b;
  const char *said;
} parameter;

static attune_status draw_with(const parameter *p, attune_generator *g, void *out, attune_dtype dtype) {
  switch (p->k) {
  case UNIFORM: return attune_random_uniform(g, inline_stream, out, dtype, 8, p->a, p->b);
  case NORMAL: return attune_random_normal(g, inline_stream, out, dtype, 8, p->a, p->b);
  case LOG_NORMAL: return attune_random_log_normal(g, inline_stream, out, dtype, 8, p->a, p->b);
  case EXPONENTIAL: return attune_random_exponential(g, inline_stream, out, dtype, 8, p->a);
  case BERNOULLI: return attune_random_bernoulli(g, inline_stream, out, dtype, 8, p->a);
  default: return attune_random_integers(g, inline_stream, out, dtype, 8, (int64_t)p->a, (int64_t)p->b);
  }
}

TEST(bad_parameters) {
  const double nan = (double)NAN, infinite = (double)INFINITY;
  const parameter wrong[] = {
      {UNIFORM, nan, 1, "from is "},        {UNIFORM, 0, nan, "to "},
      {UNIFORM, -infinite, 0, "from is "},  {UNIFORM, 0, infinite, "to is inf"},
      {UNIFORM, 2, 1, "from <= to"},        {UNIFORM, -1.7e308, 1.7e308, "difference"},
      {NORMAL, nan, 1, "mean is "},         {NORMAL, 0, nan, "deviation is "},
      {NORMAL, infinite, 1, "mean is "},    {NORMAL, 0, infinite, "deviation is "},
      {NORMAL, 0, -1e-300, "deviation is"}, {LOG_NORMAL, nan, 1, "mean is "},
      {LOG_NORMAL, 0, nan, "deviation is"}, {LOG_NORMAL, 0, -1, "deviation is "},
      {EXPONENTIAL, nan, 0, "rate is "},    {EXPONENTIAL, infinite, 0, "rate is inf"},
      {EXPONENTIAL, 0, 0, "rate is 0"},     {EXPONENTIAL, -1, 0, "rate is -1"},
      {BERNOULLI, nan, 0, "p is "},         {BERNOULLI, 1.0000001, 0, "should be from 0 to 1"},
      {BERNOULLI, -1e-300, 0, "p is "},     {BERNOULLI, infinite, 0, "p is inf"},
      {INTEGERS, 3, 3, "from < to"},        {INTEGERS, 4, 3, "from < to"},
  };
  attune_generator *g = new_generator();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    for (size_t d = 0; d < DTYPES; d++) {
      _Alignas(16) unsigned char out[64], before[64];
      if (!makes_sense(wrong[i].k, dtypes[d])) continue;
      memset(out, 0x5a, sizeof out);
      memcpy(before, out, sizeof out);
      BAD(draw_with(&wrong[i], g, out, dtypes[d]));
      if (!strstr(attune_last_message(), wrong[i].said))
        fail_msg("case %zu, %s: \"%s\" does not say \"%s\"", i, attune_dtype_name(dtypes[d]), attune_last_message(),
                 wrong[i].said);
      assert_memory_equal(out, before, sizeof out);
      assert_int_equal(offset_of(g), 0);
      OK(draw(wrong[i].k, g, inline_stream, out, dtypes[d], 8)); /* the next call works */
      assert_true(memcmp(out, before, sizeof out) != 0);
      OK(attune_generator_set_offset(g, 0));
    }
  attune_generator_destroy(g);
}

/* Values that no type of a kind can hold, wrong addresses, wrong counts. */
TEST(bad_places) {
  attune_generator *g = new_generator();
  _Alignas(16) unsigned char out[64];
  for (int k = 0; k < KINDS; k++)
    for (int dtype = ATTUNE_I8; dtype <= AT_DTYPE_LAST; dtype++) { /* without random numbers */
      BAD(draw((kind)k, g, inline_stream, out, (attune_dtype)dtype, 4));
      assert_non_null(strstr(attune_last_message(), "dtype is "));
    }
  for (int k = 0; k < KINDS; k++)
    for (size_t d = 0; d < DTYPES; d++) {
      const size_t size = attune_dtype_size(dtypes[d]);
      if (k == WIDE_INTEGERS && !makes_sense((kind)k, dtypes[d])) continue; /* a matter of the bounds */
      if (!makes_sense((kind)k, dtypes[d])) {
        BAD(draw((kind)k, g, inline_stream, out, dtypes[d], 4));
        assert_non_null(strstr(attune_last_message(), "dtype is "));
        continue;
      }
      BAD(draw((kind)k, NULL, inline_stream, out, dtypes[d], 4));
      assert_non_null(strstr(attune_last_message(), "generator is NULL"));
      BAD(draw((kind)k, g, NULL, out, dtypes[d], 4));
      assert_non_null(strstr(attune_last_message(), "stream is NULL"));
      BAD(draw((kind)k, g, inline_stream, NULL, dtypes[d], 4));
      assert_non_null(strstr(attune_last_message(), "pointer is NULL"));
      BAD(draw((kind)k, g, inline_stream, out + size / 2, dtypes[d], 4));
      assert_non_null(strstr(attune_last_message(), "aligned"));
      BAD(draw((kind)k, g, inline_stream, out, dtypes[d], (size_t)-1));
      assert_non_null(strstr(attune_last_message(), "count is "));
      BAD(draw((kind)k, g, inline_stream, out, (attune_dtype)99, 4));
      OK(draw((kind)k, g, inline_stream, NULL, dtypes[d], 0));
      assert_int_equal(offset_of(g), 0);
      OK(draw((kind)k, g, inline_stream, out, dtypes[d], 4));
      OK(attune_generator_set_offset(g, 0));
    }
  BAD(attune_random_permutation(g, inline_stream, out, ATTUNE_I32, ((size_t)1 << 31) + 1));
  assert_non_null(strstr(attune_last_message(), "2^31"));
  attune_generator_destroy(g);
}

/* Every number once, for all small counts and some beyond the change of method. */
TEST(permutations_are_permutations) {
  attune_generator *g = new_generator();
  enum { MOST = 70000 };
  int64_t *wide = malloc(MOST * sizeof *wide);
  int32_t *narrow = malloc(MOST * sizeof *narrow);
  char *seen = malloc(MOST);
  for (size_t count = 1; count <= MOST; count = count < 1100 ? count + 1 : count * 3 / 2) {
    OK(attune_generator_set_seed(g, count));
    OK(attune_random_permutation(g, inline_stream, wide, ATTUNE_I64, count));
    OK(attune_generator_set_seed(g, count));
    OK(attune_random_permutation(g, inline_stream, narrow, ATTUNE_I32, count));
    memset(seen, 0, MOST);
    for (size_t i = 0; i < count; i++) {
      assert_true(wide[i] >= 0 && (size_t)wide[i] < count && wide[i] == narrow[i] && !seen[wide[i]]);
      seen[wide[i]] = 1;
    }
  }
  free(wide);
  free(narrow);
  free(seen);
  attune_generator_destroy(g);
}

enum { THREADS = 8, DRAWS = 200, EACH = 64 };

typedef struct drawer {
  attune_generator *generator;
  float values[DRAWS * EACH];
} drawer;

static void *draw_many(void *arg) {
  drawer *d = arg;
  for (int i = 0; i < DRAWS; i++)
    if (attune_random_uniform(d->generator, inline_stream, d->values + i * EACH, ATTUNE_F32, EACH, 0, 1) != ATTUNE_OK)
      return NULL;
  return d;
}

static int by_bits(const void *x, const void *y) {
  return memcmp(x, y, EACH * sizeof(float));
}

/* Threads that share a generator get, together, what one would: no stretch twice. */
TEST(threads_share_a_generator) {
  attune_generator *g = new_generator();
  pthread_t threads[THREADS];
  drawer *all = calloc(THREADS, sizeof *all);
  float *together = malloc(sizeof(float) * THREADS * DRAWS * EACH),
        *alone = malloc(sizeof(float) * THREADS * DRAWS * EACH);
  for (int i = 0; i < THREADS; i++) {
    all[i].generator = g;
    assert_int_equal(pthread_create(&threads[i], NULL, draw_many, &all[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *result = NULL;
    pthread_join(threads[i], &result);
    assert_non_null(result);
    memcpy(together + i * DRAWS * EACH, all[i].values, sizeof all[i].values);
  }
  assert_int_equal(offset_of(g), THREADS * DRAWS * EACH);
  OK(attune_generator_set_seed(g, SEED));
  OK(attune_random_uniform(g, inline_stream, alone, ATTUNE_F32, THREADS * DRAWS * EACH, 0, 1));
  qsort(together, THREADS * DRAWS, EACH * sizeof(float), by_bits);
  qsort(alone, THREADS * DRAWS, EACH * sizeof(float), by_bits);
  assert_memory_equal(together, alone, sizeof(float) * THREADS * DRAWS * EACH);
  free(all);
  free(together);
  free(alone);
  attune_generator_destroy(g);
}

int main(void) {
  OK(attune_device_get(&host, "host"));
  inline_stream = attune_stream_default(host);
  return RUN_TESTS(NULL, NULL);
}
