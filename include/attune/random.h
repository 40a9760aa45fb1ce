/* SPDX-License-Identifier: Apache-2.0
 * random.h: random numbers by Philox4x32-10, in stream order, on CUDA and on the host.
 *
 * A generator has a seed, an offset (amount drawn so far, in 32-bit words, a multiple of 4) and a mode:
 *
 * - portable (the default): an element depends only on the seed, the offset and its index in the call. It is
 *   bit-for-bit the same on every GPU and on the host, for every distribution. A sample uses 16, 32 or 64 bits of a
 *   128-bit Philox block: 16 for uniform and normal in f16 and bf16; 64 for f64, i64, and integers of more than 2^20
 *   values; otherwise 32. A call consumes whole blocks, so two calls give the same as one if the first one's count is a
 *   multiple of 8.
 * - torch: the numbers of PyTorch's CUDA generator on the same model of GPU for the same seed and offset. Bit for bit:
 *   torch.rand, Tensor.uniform_, randint and random_ with bounds, Tensor.bernoulli_(p). By the same formulas: randn,
 *   normal_, log_normal_ and exponential_. The host gives the numbers of a GPU of a given size
 *   (attune_generator_set_torch_grid); there logarithm, sine, cosine and exponential differ in the last bits.
 *
 * Values of a sample in the portable mode:
 *
 * - uniform: u is a multiple of 2^-53 for f64 and of 2^-24 for f32; for f16 and bf16 a multiple of 2^-16 rounded toward
 *   zero. The sample is from + u (to - from), never `to`.
 * - normal: f64 and f32 by Box and Muller with arguments of 52 and 32 bits: up to 8.5 and 6.8 deviations. f16 and bf16
 *   by the inverse distribution function, cut into 65536 slices. The inner slices give their medians, up to 3.84
 *   deviations; the outer 8 are resolved to 2^-48 and give all values up to 8.0 deviations. Rounded to nearest.
 * - log-normal: the exponential of a normal sample made from 32 bits (f64: 64) per number.
 * - exponential: -ln(u) / rate, with u from 2^-33 to 1 - 2^-24 (f64: 1 - 2^-53): positive, at most 22.9 / rate (f64:
 *   36.7).
 * - Bernoulli: 1 with probability p, rounded to a multiple of 2^-32 (f64, i64: 2^-53), but not to 0 if p is above 0.
 * - integers: one of n values. Each has probability 1 / n, within a relative error of n / 2^32 for n up to 2^20, else
 *   of n / 2^64.
 *
 * Generators may be used from any thread: each call reserves its range of offsets atomically, and calls get their
 * numbers in the order of those reservations. In a capture of attune (graph.h) a generator must be registered with the
 * graph: each replay then draws fresh numbers. */
#ifndef ATTUNE_RANDOM_H
#define ATTUNE_RANDOM_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which numbers a generator produces, as above. */
typedef enum attune_random_mode { ATTUNE_RANDOM_PORTABLE = 0, ATTUNE_RANDOM_TORCH = 1 } attune_random_mode;

/* Creates a generator with `seed`, offset 0 and mode portable, and stores it in *out. The caller destroys it. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_generator_create(attune_generator **out, uint64_t seed);

/* Releases the generator. Work already given to streams, and graphs that it is registered with, keep what they need.
 * NULL does nothing. */
ATTUNE_API void attune_generator_destroy(attune_generator *generator);

/* Stores the device's default generator in *out: created at the first call, in mode portable, with the seed of
 * attune_seed_all or otherwise PyTorch's, 67280421310721. It lets parts of a program agree on one; attune itself never
 * uses it. Borrowed; never destroyed by the caller. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_device_generator(attune_generator **out, attune_device *device);

/* Sets the seed of every device's default generator, existing or created later, and its offset to 0. Errors: CAPTURING
 * (a graph that one of them is registered with is being captured; that one keeps its seed). Any thread. */
ATTUNE_API attune_status attune_seed_all(uint64_t seed);

/* Sets the seed to a 53-bit number from the system's source of random numbers, stored in *out_seed too unless that is
 * NULL, and the offset to 0. Errors: those of attune_generator_set_seed, IO_ERROR (the source failed). Any thread. */
ATTUNE_API attune_status attune_generator_seed(attune_generator *generator, uint64_t *out_seed);

/* Sets the seed, and the offset to 0. Errors of this and the other setters: INVALID_ARGUMENT, CAPTURING (a graph that
 * the generator is registered with is being captured). Any thread. */
ATTUNE_API attune_status attune_generator_set_seed(attune_generator *generator, uint64_t seed);

/* Stores the seed in *out. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_generator_get_seed(const attune_generator *generator, uint64_t *out);

/* Sets the offset: a multiple of 4, below 2^63. */
ATTUNE_API attune_status attune_generator_set_offset(attune_generator *generator, uint64_t offset);

/* Stores the offset in *out. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_generator_get_offset(const attune_generator *generator, uint64_t *out);

/* Advances the offset by `words`, a multiple of 4, as if calls had drawn that much. Two sequences whose starts are 2^k
 * words apart do not overlap in their first 2^k words. Errors: INVALID_ARGUMENT (also: the offset would leave its
 * range), CAPTURING. Any thread. */
ATTUNE_API attune_status attune_generator_jump(attune_generator *generator, uint64_t words);

/* Sets the mode, which is not part of the state; set it before the first draw. */
ATTUNE_API attune_status attune_generator_set_mode(attune_generator *generator, attune_random_mode mode);

/* Stores the mode in *out. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_generator_get_mode(const attune_generator *generator, attune_random_mode *out);

/* In mode torch: draw like a GPU with `processors` multiprocessors of `threads` threads each. 0 and 0: like the
 * stream's device; on the host, like the first cuda device, or an H200 (132 and 2048) if there is none. Errors:
 * INVALID_ARGUMENT, CAPTURING. Any thread. */
ATTUNE_API attune_status attune_generator_set_torch_grid(attune_generator *generator, int processors, int threads);

/* Size of the state that attune_generator_get_state writes. */
#define ATTUNE_GENERATOR_STATE_BYTES 16

/* Writes the state in the format of PyTorch's CUDA generators: the seed, then the offset, 64 bits each, little-endian,
 * to `state`, whose size is `bytes` >= 16. Errors: INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_generator_get_state(const attune_generator *generator, void *state, size_t bytes);

/* Sets the state from 16 bytes, or from 8: only the seed, with offset 0. Errors: INVALID_ARGUMENT (another size, or a
 * bad offset), CAPTURING. Any thread. */
ATTUNE_API attune_status attune_generator_set_state(attune_generator *generator, const void *state, size_t bytes);

/* Uniform: from <= x < to, or always `from` if both round to the same value; f64, f32, f16, bf16. to - from must be
 * finite.
 *
 * This and each call below write `count` elements of `dtype` at `pointer`, in stream order, and advance the generator;
 * count = 0 draws nothing. The memory must be accessible to the stream's device and aligned to its elements (16 bytes
 * and more are fastest). Parameters must be in the range of the type, and are rounded to it (for f16 and bf16 only
 * bounds are; other parameters are rounded to f32). Errors: INVALID_ARGUMENT, UNSUPPORTED (no kernel can be made for
 * the device), DEVICE_ERROR, OUT_OF_MEMORY, CAPTURING (the generator is not registered with the graph that is being
 * captured). Allowed in capture. */
ATTUNE_API attune_status attune_random_uniform(attune_generator *generator, attune_stream *stream, void *pointer,
                                               attune_dtype dtype, size_t count, double from, double to);

/* Normal, with a mean and a standard deviation >= 0; f64, f32, f16, bf16. */
ATTUNE_API attune_status attune_random_normal(attune_generator *generator, attune_stream *stream, void *pointer,
                                              attune_dtype dtype, size_t count, double mean, double deviation);

/* Log-normal: exp(x) for a normal x; f64, f32, f16, bf16. */
ATTUNE_API attune_status attune_random_log_normal(attune_generator *generator, attune_stream *stream, void *pointer,
                                                  attune_dtype dtype, size_t count, double mean, double deviation);

/* Exponential: the density is rate exp(-rate x), rate > 0; f64, f32, f16, bf16. */
ATTUNE_API attune_status attune_random_exponential(attune_generator *generator, attune_stream *stream, void *pointer,
                                                   attune_dtype dtype, size_t count, double rate);

/* Bernoulli: 1 with probability p, 0 <= p <= 1, else 0; f64, f32, f16, bf16, i32, i64. For other types, including bool,
 * use an expression: attune_elementwise's "rand() < p". */
ATTUNE_API attune_status attune_random_bernoulli(attune_generator *generator, attune_stream *stream, void *pointer,
                                                 attune_dtype dtype, size_t count, double p);

/* Integers: from <= x < to; f64, f32, f16, bf16, i32, i64. A floating-point type must represent every integer of the
 * range exactly: within 2^53 of 0 for f64, 2^24 for f32, 2^11 for f16, 2^8 for bf16. */
ATTUNE_API attune_status attune_random_integers(attune_generator *generator, attune_stream *stream, void *pointer,
                                                attune_dtype dtype, size_t count, int64_t from, int64_t to);

/* Permutation: the numbers 0 to count - 1 in random order; i32 (count at most 2^31), i64. Up to 1024 of them: by
 * sorting 64-bit keys, so that every order is equally likely. Beyond: by a Feistel network of 12 rounds keyed with seed
 * and offset, which has 2^64 orders; good for shuffling, not for secrets. Identical in both modes, and different from
 * torch.randperm. */
ATTUNE_API attune_status attune_random_permutation(attune_generator *generator, attune_stream *stream, void *pointer,
                                                   attune_dtype dtype, size_t count);

#ifdef __cplusplus
}
#endif
#endif
