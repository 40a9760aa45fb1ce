/* SPDX-License-Identifier: Apache-2.0
 * parts_random.c: random numbers on the host and on CUDA, beside a fill of the same memory and, on CUDA, cuRAND's
 * Philox. torch_random.py measures PyTorch's.
 *
 * What the kernels should reach on an H200: uniform and Bernoulli what a fill does, 4.5 TB/s. Normal f32 about 100
 * instructions for 16 bytes, of which Philox takes 39; wide multiplications, logic operations and conversions take two
 * issue slots, so about 146 clocks a warp and multiprocessor's quarter: 3.6 TB/s at 1.96 GHz. Normal bf16 about 140
 * clocks, 3.5 TB/s, where its 8 table look-ups would allow 3.9. */
#include <dlfcn.h>
#include <stdio.h>

#include "bench/parts/parts.h"

#define CURAND_PHILOX 161

typedef enum kind { UNIFORM, NORMAL, BERNOULLI, EXPONENTIAL, KINDS } kind;

/* cuRAND, if it is here: the host interface, with Philox as its generator. */
typedef struct curand {
  void *curand, *generator;
  int (*destroy)(void *generator);
  int (*set_stream)(void *generator, void *stream);
  int (*uniform)(void *generator, float *out, size_t count);
  int (*normal)(void *generator, float *out, size_t count, float mean, float deviation);
} curand;

typedef struct numbers {
  attune_device *device;
  kind of;
  attune_dtype dtype;
  size_t count;
  attune_generator *generator;
  curand peer;
  void *memory;
} numbers;

static attune_status make(void *arg) {
  numbers *n = arg;
  attune_stream *stream = attune_stream_default(n->device);
  attune_status status = attune_generator_create(&n->generator, 1);
  if (status == ATTUNE_OK) status = attune_alloc(&n->memory, stream, n->count * attune_dtype_size(n->dtype));
  return status == ATTUNE_OK ? attune_stream_synchronize(stream) : status;
}

static void drop(void *arg) {
  numbers *n = arg;
  (void)attune_free(n->memory, attune_stream_default(n->device));
  attune_generator_destroy(n->generator);
  if (n->peer.generator) (void)n->peer.destroy(n->peer.generator);
  n->peer.generator = n->memory = n->generator = NULL;
}

static attune_stream *stream_of(const numbers *n, attune_stream *stream) {
  return stream ? stream : attune_stream_default(n->device);
}

static attune_status draw(void *arg, attune_stream *given) {
  const numbers *n = arg;
  attune_stream *stream = stream_of(n, given);
  switch (n->of) {
  case UNIFORM: return attune_random_uniform(n->generator, stream, n->memory, n->dtype, n->count, 0, 1);
  case NORMAL: return attune_random_normal(n->generator, stream, n->memory, n->dtype, n->count, 0, 1);
  case BERNOULLI: return attune_random_bernoulli(n->generator, stream, n->memory, n->dtype, n->count, 0.5);
  default: return attune_random_exponential(n->generator, stream, n->memory, n->dtype, n->count, 1);
  }
}

static attune_status fill(void *arg, attune_stream *stream) {
  const numbers *n = arg;
  return attune_fill(stream_of(n, stream), n->memory, 1, n->count * attune_dtype_size(n->dtype));
}

static attune_status make_curand(void *arg) {
  curand *p = &((numbers *)arg)->peer;
  int (*create)(void **, int) = NULL;
  *(void **)&create = dlsym(p->curand, "curandCreateGenerator");
  *(void **)&p->destroy = dlsym(p->curand, "curandDestroyGenerator");
  *(void **)&p->set_stream = dlsym(p->curand, "curandSetStream");
  *(void **)&p->uniform = dlsym(p->curand, "curandGenerateUniform");
  *(void **)&p->normal = dlsym(p->curand, "curandGenerateNormal");
  if (!create || !p->destroy || !p->set_stream || !p->uniform || !p->normal) return ATTUNE_UNSUPPORTED;
  return create(&p->generator, CURAND_PHILOX) == 0 ? make(arg) : ATTUNE_DEVICE_ERROR;
}

static attune_status draw_curand(void *arg, attune_stream *stream) {
  const numbers *n = arg;
  const curand *p = &n->peer;
  int failed = p->set_stream(p->generator, attune_stream_native(stream));
  failed |= n->of == UNIFORM ? p->uniform(p->generator, n->memory, n->count)
                             : p->normal(p->generator, n->memory, n->count, 0.0f, 1.0f);
  return failed ? ATTUNE_DEVICE_ERROR : ATTUNE_OK;
}

static void add(attune_bench *bench, const numbers *n, bool cuda) {
  static const char *const names[KINDS] = {"uniform", "normal", "Bernoulli", "exponential"};
  char name[96];
  snprintf(name, sizeof name, "random/%s/%s %s x %zu", attune_device_name(n->device), names[n->of],
           attune_dtype_name(n->dtype), n->count);
  part_case c = {.name = name,
                 .device = cuda ? n->device : NULL,
                 .set_up = make,
                 .run = draw,
                 .tear_down = drop,
                 .bytes = (double)(n->count * attune_dtype_size(n->dtype))};
  parts_add(bench, &c, n, sizeof *n);
  c.peer_of = name;
  c.name = "fill";
  c.run = fill;
  parts_add(bench, &c, n, sizeof *n);
  if (!n->peer.curand || n->dtype != ATTUNE_F32 || n->of > NORMAL) return;
  c.name = "cuRAND";
  c.set_up = make_curand;
  c.run = draw_curand;
  parts_add(bench, &c, n, sizeof *n);
}

void parts_random(attune_bench *bench, attune_device *device) {
  static const attune_dtype dtypes[] = {ATTUNE_F32, ATTUNE_BF16, ATTUNE_F16, ATTUNE_F64};
  const bool cuda = bench_is_cuda(device);
  /* On the host one thread within its L2 cache, and all threads. */
  const size_t counts[] = {(size_t)1 << (cuda ? 28 : 15), (size_t)1 << (cuda ? 20 : 24)};
  numbers n = {.device = device};
  if (cuda) n.peer.curand = dlopen("libcurand.so.10", RTLD_NOW | RTLD_LOCAL);
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < KINDS; k++)
      for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        n.count = counts[i];
        n.of = (kind)k;
        n.dtype = dtypes[d];
        add(bench, &n, cuda);
      }
}
