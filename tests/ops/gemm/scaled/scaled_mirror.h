/* SPDX-License-Identifier: Apache-2.0
 * scaled_mirror.h: a case of scaled_oracle.h in a device's memory: its operands there, and the result compared. */
#ifndef AT_TEST_SCALED_MIRROR_H
#define AT_TEST_SCALED_MIRROR_H

#include "tests/ops/gemm/scaled/scaled_oracle.h"

typedef struct scaled_mirror {
  scaled_case *c;
  attune_stream *stream;
  char *raw[SCALED_BLOCKS];
} scaled_mirror;

static inline const void *scaled_moved(const scaled_mirror *m, const void *host) {
  for (int i = 0; i < m->c->blocks; i++) {
    const uintptr_t offset = (uintptr_t)host - (uintptr_t)m->c->block[i].raw;
    if (offset < m->c->block[i].bytes) return m->raw[i] + offset;
  }
  return NULL;
}

static inline attune_gemm_operands scaled_mirror_operands(const scaled_mirror *m) {
  attune_gemm_operands o = m->c->o;
  const void **const all[] = {&o.a,
                              &o.b,
                              &o.c,
                              (const void **)&o.scale_a,
                              (const void **)&o.scale_b,
                              (const void **)&o.scale_d,
                              (const void **)&o.zero_a,
                              (const void **)&o.zero_b};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i] = scaled_moved(m, *all[i]);
  o.d = (void *)(uintptr_t)scaled_moved(m, o.d);
  o.amax_d = (float *)(uintptr_t)scaled_moved(m, o.amax_d);
  return o;
}

/* All operands, and D, as they were before the first run. */
static inline void scaled_mirror_write(const scaled_mirror *m) {
  for (int i = 0; i < m->c->blocks; i++)
    OK(attune_copy(m->stream, m->raw[i], m->c->block[i].before, m->c->block[i].bytes));
}

static inline void scaled_mirror_open(scaled_mirror *m, scaled_case *c, attune_stream *stream) {
  *m = (scaled_mirror){.c = c, .stream = stream};
  for (int i = 0; i < c->blocks; i++) OK(attune_alloc((void **)&m->raw[i], stream, c->block[i].bytes));
  scaled_mirror_write(m);
}

static inline void scaled_mirror_close(const scaled_mirror *m) {
  for (int i = 0; i < m->c->blocks; i++) OK(attune_free(m->raw[i], m->stream));
  OK(attune_stream_synchronize(m->stream));
}

static inline void scaled_mirror_check(const scaled_mirror *m, const char *who) {
  for (int i = 0; i < m->c->blocks; i++)
    OK(attune_copy(m->stream, m->c->block[i].raw, m->raw[i], m->c->block[i].bytes));
  if (attune_stream_synchronize(m->stream) != ATTUNE_OK) fail_msg("%s, %s: %s", m->c->name, who, attune_last_message());
  scaled_check(m->c, who);
}

#endif
