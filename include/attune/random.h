/* SPDX-License-Identifier: Apache-2.0
 * random.h: random numbers by Philox4x32-10, in stream order, on CUDA and on the host.
 *
 * A generator is a seed, an offset (what was drawn so far, in 32-bit words, a multiple of 4) and a mode:
 *
 * - portable (the default): an element depends on seed, offset and its place in the call only, and is the same, bit for
 *   bit, on every GPU and on the host, for every distribution. Samples take 16, 32 or 64 bits of a Philox block of 128:
 *   16 for uniform and normal in f16 and bf16; 64 for f64, i64, and integers from more than 2^20 values; else 32. A
 *   call takes whole blocks, so two calls give what one would if the first one's count is a multiple of 8.
 * - torch: what PyTorch's CUDA generator gives on the same model of GPU for the same seed and offset: torch.rand,
 *   Tensor.uniform_, randint and random_ with bounds, Tensor.bernoulli_(p) bit for bit, randn, normal_, log_normal_ and
 *   exponential_ by the same formulas. On the host: the same numbers as on a GPU of a given size
 *   (attune_generator_set_torch_grid), where logarithm, sine, cosine and exponential differ in the last bits.
 *
 * What a sample can be, in the portable mode:
 *   uniform      f64 multiples of 2^-53, f32 of 2^-24, f16 and bf16 of 2^-16 rounded toward zero; then from + u (to -
 *                from), `to` excluded
 *   normal       Box and Muller with 32-bit (f64: 52-bit) arguments: up to 6.8 (f64 8.5) deviations. f16, bf16: inverse
 *                distribution function of 65536 slices, the outer 8 of them resolved to 2^-48: medians up to 3.84,
 *                then all, up to 8.0 deviations; rounded to nearest
 *   log-normal   the exponential of a normal sample of 32 bits (f64: 64) a number exponential  -ln(u) / rate, u from
 *                2^-33 to 1 - 2^-24 (f64 2^-53): positive, up to 22.9 / rate (f64 36.7)
 *   Bernoulli    1 with probability p rounded to a multiple of 2^-32 (f64, i64: 2^-53), but never 0 for a p above 0
 *   integers     one of n: probabilities differ by at most n / 2^32 of 1 / n, n <= 2^20, else n / 2^64
 *
 * Generators are safe from any thread: each call takes its stretch of offsets at once, and numbers go to calls in the
 * order in which they take it. In a capture of attune (graph.h) a generator must be registered with the graph: each
 * replay then draws fresh numbers. */
#ifndef ATTUNE_RANDOM_H
#define ATTUNE_RANDOM_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct attune_generator attune_generator;

typedef enum attune_random_mode { ATTUNE_RANDOM_PORTABLE = 0, ATTUNE_RANDOM_TORCH = 1 } attune_random_mode;

/* A generator with `seed`, offset 0 and mode portable into *out. The caller destroys it. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_generator_create(attune_generator **out, uint64_t seed);

/* Releases it; work already given to streams and graphs that it is registered with keep what they need. NULL is left
 * alone. */
ATTUNE_API void attune_generator_destroy(attune_generator *generator);

/* Sets the seed, and the offset to 0. Errors of this and the other setters: INVALID_ARGUMENT, CAPTURING (a graph that
 * the generator is registered with is being captured). Any thread. */
ATTUNE_API attune_status attune_generator_set_seed(attune_generator *generator, uint64_t seed);

/* The seed into *out. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_generator_get_seed(const attune_generator *generator, uint64_t *out);

/* The offset: a multiple of 4 below 2^63. */
ATTUNE_API attune_status attune_generator_set_offset(attune_generator *generator, uint64_t offset);

/* The offset into *out. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_generator_get_offset(const attune_generator *generator, uint64_t *out);

/* Moves the offset on by `words`, a multiple of 4, as if calls had drawn that much: streams of numbers that start 2^k
 * apart do not meet before 2^k words. Errors: INVALID_ARGUMENT (also: the offset would leave its range), CAPTURING. */
ATTUNE_API attune_status attune_generator_jump(attune_generator *generator, uint64_t words);

/* The mode. It is no part of the state; set it before the first draw. */
ATTUNE_API attune_status attune_generator_set_mode(attune_generator *generator, attune_random_mode mode);

/* The mode into *out. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_generator_get_mode(const attune_generator *generator, attune_random_mode *out);

/* Mode torch: draw as a GPU with `processors` multiprocessors of `threads` threads would. 0 and 0: as the stream's
 * device; the host then takes the first cuda device, or an H200 (132 and 2048) if there is none. Errors:
 * INVALID_ARGUMENT, CAPTURING. */
ATTUNE_API attune_status attune_generator_set_torch_grid(attune_generator *generator, int processors, int threads);

#define ATTUNE_GENERATOR_STATE_BYTES 16

/* The state as PyTorch writes that of a CUDA generator: the seed, then the offset, 64 bits each, little-endian; bytes
 * >= 16. Errors: INVALID_ARGUMENT. */
ATTUNE_API attune_status attune_generator_get_state(const attune_generator *generator, void *state, size_t bytes);

/* Takes a state of 16 bytes, or of 8: the seed alone, offset 0. Errors: INVALID_ARGUMENT (another size, or a bad
 * offset), CAPTURING. */
ATTUNE_API attune_status attune_generator_set_state(attune_generator *generator, const void *state, size_t bytes);

/* Each of these writes `count` elements of `dtype` at `pointer`, memory that the stream's device can reach, aligned to
 * its elements (fastest from 16 bytes), in stream order, and moves the generator on. The range of a type bounds the
 * parameters, which are rounded to it (f16 and bf16: to f32 where they are no bounds). count = 0 draws nothing. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (a device that no kernel can be made for), DEVICE_ERROR, OUT_OF_MEMORY, CAPTURING (the
 * generator is not registered with the graph that is being captured). Allowed in capture.
 *
 * from <= x < to, all from where the two round to the same; f64, f32, f16, bf16; to - from must be finite. */
ATTUNE_API attune_status attune_random_uniform(attune_generator *generator, attune_stream *stream, void *pointer,
                                               attune_dtype dtype, size_t count, double from, double to);

/* Mean and deviation >= 0; f64, f32, f16, bf16. */
ATTUNE_API attune_status attune_random_normal(attune_generator *generator, attune_stream *stream, void *pointer,
                                              attune_dtype dtype, size_t count, double mean, double deviation);

/* exp(x), x normal; f64, f32, f16, bf16. */
ATTUNE_API attune_status attune_random_log_normal(attune_generator *generator, attune_stream *stream, void *pointer,
                                                  attune_dtype dtype, size_t count, double mean, double deviation);

/* Density rate exp(-rate x), rate > 0; f64, f32, f16, bf16. */
ATTUNE_API attune_status attune_random_exponential(attune_generator *generator, attune_stream *stream, void *pointer,
                                                   attune_dtype dtype, size_t count, double rate);

/* 1 with probability p, 0 <= p <= 1, else 0; every dtype. */
ATTUNE_API attune_status attune_random_bernoulli(attune_generator *generator, attune_stream *stream, void *pointer,
                                                 attune_dtype dtype, size_t count, double p);

/* from <= x < to; every dtype; in a floating-point one all integers between must be exact: from -2^53, -2^24, -2^11,
 * -2^8 to the same above. */
ATTUNE_API attune_status attune_random_integers(attune_generator *generator, attune_stream *stream, void *pointer,
                                                attune_dtype dtype, size_t count, int64_t from, int64_t to);

/* The numbers 0 to count - 1 in random order; i32, i64. Up to 1024: by sorting 64-bit keys, every order equally likely.
 * Beyond: a keyed bijection (a Feistel network of 12 rounds), one of 2^64 orders for a seed and an offset; made for
 * shuffling, not for secrets. The same in both modes, and not torch.randperm. */
ATTUNE_API attune_status attune_random_permutation(attune_generator *generator, attune_stream *stream, void *pointer,
                                                   attune_dtype dtype, size_t count);

#ifdef __cplusplus
}
#endif
#endif
