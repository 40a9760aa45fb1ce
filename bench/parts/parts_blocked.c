/* SPDX-License-Identifier: Apache-2.0
 * parts_blocked.c: every configuration of attune's own host_blocked beside OpenBLAS, both on one thread. What attune is
 * held to is the f32 product of 1024^3: the fastest at most 1.67 x OpenBLAS. It looks inside the library to run that
 * one implementation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/cblas.h"
#include "bench/common/problem.h"
#include "bench/parts/parts.h"
#include "ops/gemm/problem/problem.h"
#include "tuning/op/registry.h"

enum { CONFIGURATIONS_MOST = 256 };

typedef struct product {
  bench_problem problem;
  bench_cblas blas;
  const at_implementation *blocked; /* NULL: OpenBLAS */
  at_configuration configuration;
  attune_device *host;
  at_plan *plan;
  attune_gemm_operands operands;
} product;

static attune_status make(void *arg) {
  product *p = arg;
  const attune_dtype dtype = p->problem.gemm.dtype;
  at_gemm g;
  p->operands = (attune_gemm_operands){.alpha = 1.0,
                                       .a = bench_random_new(dtype, p->problem.bytes_a, 1),
                                       .b = bench_random_new(dtype, p->problem.bytes_b, 2),
                                       .d = bench_random_new(dtype, p->problem.bytes_d, 3)};
  if (!p->blocked) p->blas.set_threads(1);
  if (!p->blocked) return ATTUNE_OK;
  const attune_status status = at_gemm_op.problem->parse(p->problem.text, &g);
  return status == ATTUNE_OK ? at_plan_create(&p->plan, &at_gemm_op, p->blocked, &p->configuration, &g, p->host)
                             : status;
}

static void drop(void *arg) {
  product *p = arg;
  if (p->plan) at_plan_destroy(p->plan);
  p->plan = NULL;
  free((void *)(uintptr_t)p->operands.a);
  free((void *)(uintptr_t)p->operands.b);
  free(p->operands.d);
}

static attune_status run(void *arg, attune_stream *stream) {
  const product *p = arg;
  (void)stream;
  if (p->blocked) return p->plan->launch(p->plan, &p->operands, attune_stream_default(p->host));
  bench_cblas_run(&p->blas, &p->problem.gemm, &p->operands, false);
  return ATTUNE_OK;
}

/* With one thread instead of its own number: large problems are not offered that on several CPUs. */
static void take_one_thread(at_configuration *configuration) {
  char *number = strstr(configuration->text, "threads=");
  if (!number) return;
  number += strlen("threads=");
  char *rest = number + strspn(number, "0123456789");
  *number = '1';
  memmove(number + 1, rest, strlen(rest) + 1);
}

static void add(attune_bench *bench, product *p, const char *text) {
  static at_configuration all[CONFIGURATIONS_MOST];
  at_gemm g;
  char first[96];
  bench_problem_read(&p->problem, &(attune_workload_entry){.problem = text});
  bench_check(at_gemm_op.problem->parse(text, &g), text);
  const attune_gemm_problem *sizes = &p->problem.gemm;
  snprintf(first, sizeof first, "blocked/%s", text);
  part_case c = {.name = first,
                 .set_up = make,
                 .run = run,
                 .tear_down = drop,
                 .flops = 2.0 * (double)sizes->m * (double)sizes->n * (double)sizes->k,
                 .dtype = sizes->dtype};
  p->blocked = NULL;
  parts_add(bench, &c, p, sizeof *p);
  c.peer_of = first;
  p->blocked = at_registry_find(&at_gemm_op, "host_blocked", p->host);
  const int count = p->blocked ? p->blocked->configurations(p->blocked, &g, p->host, all, CONFIGURATIONS_MOST) : 0;
  for (int i = 0; i < count; i++) {
    bool again = false;
    take_one_thread(&all[i]);
    for (int j = 0; j < i; j++) again = again || strcmp(all[i].text, all[j].text) == 0;
    p->configuration = all[i];
    c.name = all[i].text;
    if (!again) parts_add(bench, &c, p, sizeof *p);
  }
}

void parts_blocked(attune_bench *bench) {
  product p = {.plan = NULL};
  bench_check(attune_device_get(&p.host, "host"), "attune_device_get");
  if (!bench_cblas_load(&p.blas, "libopenblas.so.0") || !p.blas.set_threads) return; /* nothing to compare with */
  add(bench, &p, "gemm f32 nn 1024x1024x1024 strict");
  add(bench, &p, "gemm f64 nn 256x256x256 strict");
}
