/* SPDX-License-Identifier: Apache-2.0
 * numpy_loops.c: a library for numpy_elementwise.py: times calls of C functions from C, so that Python's own cost is
 * not in them. Each returns ns of one call, the mean of `calls` in a row. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

typedef int (*plan_run_fn)(const void *plan, void *stream, const void *operands);
typedef int (*call_fn)(void *tuner, void *stream, const char *expression, const void *operands);
/* NumPy's PyUFuncGenericFunction. */
typedef void (*ufunc_loop_fn)(char **args, const intptr_t *sizes, const intptr_t *steps, void *data);

EXPORT double bench_plan(plan_run_fn run, const void *plan, void *stream, const void *operands, int calls);
EXPORT double bench_call(call_fn call, void *tuner, void *stream, const char *text, const void *operands, int calls);
EXPORT double bench_ufunc(ufunc_loop_fn loop, void *data, void *const *tensors, int count, int64_t n, int size,
                          int calls);
EXPORT double bench_add(float *y, const float *a, const float *b, int64_t n, int calls);
EXPORT double bench_copy(void *to, const void *from, size_t bytes, int threads, int calls);

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double bench_plan(plan_run_fn run, const void *plan, void *stream, const void *operands, int calls) {
  const double start = now();
  int failed = 0;
  for (int i = 0; i < calls; i++) failed |= run(plan, stream, operands);
  return failed ? -1.0 : (now() - start) / calls;
}

double bench_call(call_fn call, void *tuner, void *stream, const char *text, const void *operands, int calls) {
  const double start = now();
  int failed = 0;
  for (int i = 0; i < calls; i++) failed |= call(tuner, stream, text, operands);
  return failed ? -1.0 : (now() - start) / calls;
}

/* f32 throughout: arguments, then the result. */
double bench_ufunc(ufunc_loop_fn loop, void *data, void *const *tensors, int count, int64_t n, int size, int calls) {
  const intptr_t elements = n, steps[3] = {size, size, size};
  char *args[3] = {0};
  for (int i = 0; i < count && i < 3; i++) args[i] = tensors[i];
  const double start = now();
  for (int i = 0; i < calls; i++) loop(args, &elements, steps, data);
  return (now() - start) / calls;
}

static __attribute__((noinline)) void add(float *restrict y, const float *restrict a, const float *restrict b,
                                          int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

double bench_add(float *y, const float *a, const float *b, int64_t n, int calls) {
  const double start = now();
  for (int i = 0; i < calls; i++) {
    add(y, a, b, n);
    __asm__ volatile("" ::: "memory");
  }
  return (now() - start) / calls;
}

typedef struct part {
  char *to;
  const char *from;
  size_t bytes;
  int calls;
} part;

static void *copy_part(void *arg) {
  const part *p = arg;
  for (int i = 0; i < p->calls; i++) memcpy(p->to, p->from, p->bytes);
  return NULL;
}

double bench_copy(void *to, const void *from, size_t bytes, int threads, int calls) {
  enum { MOST = 64 };
  part parts[MOST];
  pthread_t ids[MOST];
  if (threads < 1 || threads > MOST) return -1.0;
  const size_t each = bytes / (size_t)threads / 64 * 64;
  int started = 1;
  const double start = now();
  for (int t = 0; t < threads; t++) {
    const size_t at = each * (size_t)t;
    parts[t] = (part){(char *)to + at, (const char *)from + at, t + 1 == threads ? bytes - at : each, calls};
  }
  while (started < threads && pthread_create(&ids[started], NULL, copy_part, &parts[started]) == 0) started++;
  (void)copy_part(&parts[0]);
  for (int t = 1; t < started; t++) pthread_join(ids[t], NULL);
  return started == threads ? (now() - start) / calls : -1.0;
}
