/* SPDX-License-Identifier: Apache-2.0
 * gemm_mirror.h: a GEMM case of gemm_oracle.h in a device's memory, and one call compared. */
#ifndef AT_TEST_GEMM_MIRROR_H
#define AT_TEST_GEMM_MIRROR_H

#include <attune/attune.h>

#include "tests/ops/gemm/gemm_oracle.h"

/* The oracle's blocks in device memory. */
typedef struct mirror {
  oracle *o;
  attune_stream *stream;
  void *raw[ORACLE_BLOCKS];
} mirror;

static inline void mirror_write(mirror *m) {
  for (int i = 0; i < ORACLE_BLOCKS; i++)
    OK(attune_copy(m->stream, m->raw[i], m->o->block[i].before, m->o->block[i].bytes));
}

static inline void mirror_open(mirror *m, oracle *o, attune_stream *on) {
  *m = (mirror){.o = o, .stream = on};
  for (int i = 0; i < ORACLE_BLOCKS; i++) OK(attune_alloc(&m->raw[i], on, o->block[i].bytes));
  mirror_write(m);
}

static inline void mirror_close(mirror *m) {
  OK(attune_stream_synchronize(m->stream));
  for (int i = 0; i < ORACLE_BLOCKS; i++) OK(attune_free(m->raw[i], m->stream));
}

static inline void *mirror_pointer(const mirror *m, int which) {
  return (char *)m->raw[which] + m->o->block[which].first;
}

static inline attune_gemm_operands mirror_operands(const mirror *m) {
  attune_gemm_operands operands = oracle_operands(m->o);
  if (operands.a) operands.a = mirror_pointer(m, ORACLE_A);
  if (operands.b) operands.b = mirror_pointer(m, ORACLE_B);
  if (operands.c) operands.c = mirror_pointer(m, m->o->c.c == AT_C_INPLACE ? ORACLE_D : ORACLE_C);
  operands.d = mirror_pointer(m, ORACLE_D);
  return operands;
}

/* Brings everything back and compares. */
static inline void mirror_check(mirror *m, const char *who) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < ORACLE_BLOCKS && status == ATTUNE_OK; i++)
    status = attune_copy(m->stream, m->o->block[i].raw, m->raw[i], m->o->block[i].bytes);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(m->stream);
  if (status != ATTUNE_OK) fail_msg("%s, %s: %s", m->o->c.name, who, attune_last_message());
  oracle_check(m->o, who);
}

static inline at_gemm_case plain_case(attune_dtype in, attune_dtype out, int m_size, int n, int k, int batch) {
  at_gemm_case c = {.name = "plain",
                    .problem = ATTUNE_GEMM_PROBLEM_INIT,
                    .alpha = -1.5,
                    .c = AT_C_NONE,
                    .alignment = 128,
                    .data = AT_DATA_NORMAL,
                    .seed = 11};
  c.problem.dtype = in;
  c.problem.dtype_out = out;
  c.problem.m = m_size;
  c.problem.n = n;
  c.problem.k = k;
  c.problem.batch = batch;
  return c;
}

/* GPUs take complex operands that are aligned to whole elements only. */
static inline bool is_for_gpus(const at_gemm_case *c) {
  return !at_gemm_complex(c->problem.dtype) || (size_t)c->alignment >= attune_dtype_size(c->problem.dtype);
}

/* One call through the tuner, compared. */
static inline void call_and_check(attune_tuner *tuner, attune_stream *on, const at_gemm_case *c, const char *who) {
  oracle o;
  mirror m;
  oracle_open(&o, c);
  o.rounds_product = c->beta != 0.0;
  mirror_open(&m, &o, on);
  const attune_gemm_operands operands = mirror_operands(&m);
  OK(attune_gemm(tuner, on, &c->problem, &operands));
  mirror_check(&m, who);
  mirror_close(&m);
  oracle_close(&o);
}

#endif
