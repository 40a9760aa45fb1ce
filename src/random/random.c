/* SPDX-License-Identifier: Apache-2.0
 * random.c: calls for random numbers: arguments are checked here and become a call, which the device's backend runs. */
#include <attune/random.h>

#include "src/base/backend.h"
#include "src/random/generator.h"
#include "src/random/torch.h"
#include "src/trace/instrument.h"

#include <float.h>
#include <math.h>

_Static_assert(AT_F64 == ATTUNE_F64 && AT_F32 == ATTUNE_F32 && AT_F16 == ATTUNE_F16 && AT_BF16 == ATTUNE_BF16,
               "call.h follows types.h");

#define FLOATS 1
#define INTEGERS 2

/* FLOATS, INTEGERS, or 0: a dtype that has no random numbers. */
static int kind_of(attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_F64:
  case ATTUNE_F32:
  case ATTUNE_F16:
  case ATTUNE_BF16: return FLOATS;
  case ATTUNE_I32:
  case ATTUNE_I64: return INTEGERS;
  default: return 0;
  }
}

static attune_status check_dtype(attune_dtype dtype, int kinds) {
  if (kinds & kind_of(dtype)) return ATTUNE_OK;
  return AT_INVALID("dtype is %s (%d); should be %s", attune_dtype_name(dtype), (int)dtype,
                    kinds == FLOATS     ? "f64, f32, f16 or bf16"
                    : kinds == INTEGERS ? "i32 or i64"
                                        : "f64, f32, f16, bf16, i32 or i64");
}

static attune_status check_place(const attune_generator *generator, const attune_stream *stream, const void *pointer,
                                 attune_dtype dtype, size_t count) {
  AT_REQUIRE_AS(generator, "be a generator from attune_generator_create");
  AT_REQUIRE_STREAM(stream);
  const size_t size = attune_dtype_size(dtype);
  if (count == 0) return ATTUNE_OK;
  if (!pointer)
    return AT_INVALID("pointer is NULL; should point to %zu elements of %s", count, attune_dtype_name(dtype));
  if (count > PTRDIFF_MAX / size || (uintptr_t)pointer > UINTPTR_MAX - count * size)
    return AT_INVALID("count is %zu; should be the number of elements at pointer", count);
  if ((uintptr_t)pointer % size) return AT_INVALID("pointer is %p; should be aligned to %zu bytes", pointer, size);
  return at_needs(stream->device, random);
}

/* The value as an element of dtype holds it. */
static double rounded(double x, attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_F64: return x;
  case ATTUNE_F32: return (float)x;
  case ATTUNE_F16: return at_f16_to_f32(at_f64_to_f16(x));
  case ATTUNE_BF16: return at_bf16_to_f32(at_f64_to_bf16(x));
  default: return x;
  }
}

static void set_parameter(at_random_call *call, int index, double value) {
  call->d[index] = value;
  call->f[index] = (float)value;
}

static attune_status give(attune_generator *generator, attune_stream *stream, at_random_call *call) {
  at_generator_view view;
  at_generator_look(generator, &view);
  if (view.mode == ATTUNE_RANDOM_TORCH && call->distribution != AT_PERMUTATION)
    return at_torch_run(generator, stream, &view, call);
  uint64_t words = AT_PERMUTATION_WORDS;
  if (call->distribution == AT_PERMUTATION && call->count <= AT_RANK_COUNT) {
    words = (2 * call->count + 3) / 4 * 4;
  } else if (call->distribution != AT_PERMUTATION) {
    const uint64_t each = at_random_per_block(call->distribution, call->dtype, call->range);
    words = (call->count / each + (call->count % each != 0)) * 4;
  }
  attune_status status = at_generator_take(generator, stream, words, call);
  return status == ATTUNE_OK ? stream->device->backend.random->run(stream, call) : status;
}

static const char *name_of(const at_random_call *call) {
  switch (call->distribution) {
  case AT_UNIFORM: return "attune_random_uniform";
  case AT_NORMAL: return "attune_random_normal";
  case AT_LOG_NORMAL: return "attune_random_log_normal";
  case AT_EXPONENTIAL: return "attune_random_exponential";
  case AT_BERNOULLI: return "attune_random_bernoulli";
  case AT_INTEGERS: return "attune_random_integers";
  default: return "attune_random_permutation";
  }
}

static attune_status run(attune_generator *generator, attune_stream *stream, at_random_call *call) {
  if (call->count == 0) return ATTUNE_OK;
  if (AT_LIKELY(!at_instrumented())) return give(generator, stream, call);
  const attune_dtype dtype = (attune_dtype)call->dtype;
  const char *name = name_of(call);
  const bool named = at_instrument_name("%s %s %llu", name, attune_dtype_name(dtype), (unsigned long long)call->count);
  attune_status status = give(generator, stream, call);
  status = at_instrument_end(named, stream, status);
  const at_operand_access use = at_instrument_bytes("pointer", call->out, call->count * attune_dtype_size(dtype), true);
  if (at_instrumented_races() && status == ATTUNE_OK) at_instrument_use(stream, name, &use, 1);
  return status;
}

static at_random_call new_call(int distribution, void *pointer, attune_dtype dtype, size_t count) {
  return (at_random_call){
      .out = pointer, .count = count, .distribution = distribution, .dtype = (int)dtype, .range = 1};
}

attune_status attune_random_uniform(attune_generator *generator, attune_stream *stream, void *pointer,
                                    attune_dtype dtype, size_t count, double from, double to) {
  AT_TRY(check_dtype(dtype, FLOATS));
  AT_TRY(check_place(generator, stream, pointer, dtype, count));
  const double low = rounded(from, dtype), high = rounded(to, dtype), extent = rounded(high - low, dtype);
  if (!isfinite(low) || !isfinite(high) || !(from <= to) || !isfinite(extent))
    return AT_INVALID("from is %g, to is %g; should be from <= to, with a difference within the range of %s", from, to,
                      attune_dtype_name(dtype));
  at_random_call call = new_call(AT_UNIFORM, pointer, dtype, count);
  set_parameter(&call, 0, low);
  set_parameter(&call, 1, extent);
  set_parameter(&call, 2, high);
  return run(generator, stream, &call);
}

static attune_status run_normal(int distribution, attune_generator *generator, attune_stream *stream, void *pointer,
                                attune_dtype dtype, size_t count, double mean, double deviation) {
  AT_TRY(check_dtype(dtype, FLOATS));
  AT_TRY(check_place(generator, stream, pointer, dtype, count));
  const double most = dtype == ATTUNE_F64 ? DBL_MAX : (double)FLT_MAX;
  if (!(fabs(mean) <= most))
    return AT_INVALID("mean is %g; should be finite as %s", mean, dtype == ATTUNE_F64 ? "f64" : "f32");
  if (!(deviation >= 0.0 && deviation <= most))
    return AT_INVALID("deviation is %g; should be 0 or more and finite as %s", deviation,
                      dtype == ATTUNE_F64 ? "f64" : "f32");
  at_random_call call = new_call(distribution, pointer, dtype, count);
  set_parameter(&call, 0, mean);
  set_parameter(&call, 1, deviation);
  return run(generator, stream, &call);
}

attune_status attune_random_normal(attune_generator *generator, attune_stream *stream, void *pointer,
                                   attune_dtype dtype, size_t count, double mean, double deviation) {
  return run_normal(AT_NORMAL, generator, stream, pointer, dtype, count, mean, deviation);
}

attune_status attune_random_log_normal(attune_generator *generator, attune_stream *stream, void *pointer,
                                       attune_dtype dtype, size_t count, double mean, double deviation) {
  return run_normal(AT_LOG_NORMAL, generator, stream, pointer, dtype, count, mean, deviation);
}

attune_status attune_random_exponential(attune_generator *generator, attune_stream *stream, void *pointer,
                                        attune_dtype dtype, size_t count, double rate) {
  AT_TRY(check_dtype(dtype, FLOATS));
  AT_TRY(check_place(generator, stream, pointer, dtype, count));
  const double least = dtype == ATTUNE_F64 ? DBL_MIN : (double)FLT_MIN, most = 1.0 / least;
  if (!(rate >= least && rate <= most)) return AT_INVALID("rate is %g; should be from %g to %g", rate, least, most);
  at_random_call call = new_call(AT_EXPONENTIAL, pointer, dtype, count);
  set_parameter(&call, 0, 0.5 / rate);
  set_parameter(&call, 1, rate);
  return run(generator, stream, &call);
}

/* The number of 2^bits samples that give 1, less one. */
static uint64_t bernoulli_limit(double p, int bits) {
  const double samples = ldexp(p, bits);
  if (samples <= 1.0) return 0;
  if (bits == 64) return samples >= 0x1p64 ? UINT64_MAX : (uint64_t)samples - 1;
  return (uint64_t)llrint(samples) - 1;
}

attune_status attune_random_bernoulli(attune_generator *generator, attune_stream *stream, void *pointer,
                                      attune_dtype dtype, size_t count, double p) {
  AT_TRY(check_dtype(dtype, FLOATS | INTEGERS));
  AT_TRY(check_place(generator, stream, pointer, dtype, count));
  if (!(p >= 0.0 && p <= 1.0)) return AT_INVALID("p is %g; should be from 0 to 1", p);
  at_random_call call = new_call(AT_BERNOULLI, pointer, dtype, count);
  call.limit = bernoulli_limit(p, at_random_wide(AT_BERNOULLI, (int)dtype, 1) ? 64 : 32);
  set_parameter(&call, 0, p > 0.0 ? 1.0 : 0.0);
  set_parameter(&call, 1, p);
  return run(generator, stream, &call);
}

/* Integers from -bound to bound are exact in the type. */
static attune_status check_bounds(attune_dtype dtype, int64_t from, int64_t to) {
  const int64_t bound = dtype == ATTUNE_F64    ? (int64_t)1 << 53
                        : dtype == ATTUNE_F32  ? 1 << 24
                        : dtype == ATTUNE_F16  ? 1 << 11
                        : dtype == ATTUNE_BF16 ? 1 << 8
                        : dtype == ATTUNE_I32  ? INT32_MAX
                                               : INT64_MAX;
  const int64_t least = kind_of(dtype) == INTEGERS ? -bound - 1 : -bound;
  if (from >= to) return AT_INVALID("from is %lld, to is %lld; should be from < to", (long long)from, (long long)to);
  if (from >= least && to - 1 <= bound) return ATTUNE_OK;
  return AT_INVALID("from is %lld, to is %lld; should be within %lld to %lld for %s", (long long)from, (long long)to,
                    (long long)least, (long long)bound, attune_dtype_name(dtype));
}

attune_status attune_random_integers(attune_generator *generator, attune_stream *stream, void *pointer,
                                     attune_dtype dtype, size_t count, int64_t from, int64_t to) {
  AT_TRY(check_dtype(dtype, FLOATS | INTEGERS));
  AT_TRY(check_place(generator, stream, pointer, dtype, count));
  AT_TRY(check_bounds(dtype, from, to));
  at_random_call call = new_call(AT_INTEGERS, pointer, dtype, count);
  call.from = from;
  call.range = (uint64_t)to - (uint64_t)from;
  return run(generator, stream, &call);
}

attune_status attune_random_permutation(attune_generator *generator, attune_stream *stream, void *pointer,
                                        attune_dtype dtype, size_t count) {
  AT_TRY(check_dtype(dtype, INTEGERS));
  AT_TRY(check_place(generator, stream, pointer, dtype, count));
  if (dtype == ATTUNE_I32 && count > (size_t)1 << 31)
    return AT_INVALID("count is %zu; should be at most 2^31 for i32", count);
  at_random_call call = new_call(AT_PERMUTATION, pointer, dtype, count);
  return run(generator, stream, &call);
}
