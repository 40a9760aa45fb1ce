/* SPDX-License-Identifier: Apache-2.0
 * gate_noise.h: made-up suites with noise as machines have it, from a seed: processes that differ, samples with tails,
 * outliers, a machine that drifts, processes of two kinds. */
#ifndef AT_TESTS_GATE_NOISE_H
#define AT_TESTS_GATE_NOISE_H

#include "src/base/splitmix64.h"
#include "tests/tools/compare/gate_fixture.h"

#include <math.h>

enum { NOISE_ROUNDS = 40, NOISE_SAMPLES = 40 };

/* Fractions of the time, but for what says else. */
typedef struct noise {
  double process;  /* deviation between processes */
  double sample;   /* deviation of a sample */
  double outliers; /* how many samples of 1 are disturbed, by up to five times the time */
  double bimodal;  /* how much slower one process of three is */
  double drift;    /* of the machine, deviation from a round to the next, the same for all cases and both sides */
  bool heavy;      /* processes differ by Student's t of 3 degrees of freedom */
} noise;

typedef struct suite {
  size_t count;
  gate_case *base, *head;
  const gate_case **bases, **heads;
  char (*names)[24];
} suite;

static uint64_t noise_state = 1;

static inline double noise_uniform(void) {
  return ((double)(at_splitmix64(&noise_state) >> 11) + 0.5) * 0x1p-53;
}

static inline double noise_normal(void) {
  return sqrt(-2.0 * log(noise_uniform())) * cos(6.283185307179586 * noise_uniform());
}

static inline double noise_of_process(const noise *n) {
  const double normal = noise_normal(), x = noise_normal(), y = noise_normal(), z = noise_normal();
  const double tail = n->heavy ? normal / sqrt((x * x + y * y + z * z) / 3.0) : normal;
  return n->process * tail + (noise_uniform() < 1.0 / 3.0 ? n->bimodal : 0.0);
}

static inline void noise_visit(gate_visit *visit, const noise *n, double log_ns, int samples) {
  const double own = log_ns + noise_of_process(n);
  visit->load = -1.0;
  visit->calls = 1;
  visit->sample_count = samples;
  for (int i = 0; i < samples; i++) {
    const double disturbed = noise_uniform() < n->outliers ? 1.0 + 4.0 * noise_uniform() : 1.0;
    visit->samples[i].ns = exp(own + n->sample * noise_normal()) * disturbed;
  }
}

static inline void suite_make(suite *s, size_t count, int rounds, int samples) {
  *s = (suite){count,
               gate_alloc(count, sizeof *s->base),
               gate_alloc(count, sizeof *s->head),
               gate_alloc(count, sizeof *s->bases),
               gate_alloc(count, sizeof *s->heads),
               gate_alloc(count, sizeof *s->names)};
  for (size_t i = 0; i < count; i++) {
    snprintf(s->names[i], sizeof s->names[i], "case/%zu", i);
    s->bases[i] = &s->base[i];
    s->heads[i] = &s->head[i];
    for (int side = 0; side < 2; side++) {
      gate_case *c = side ? &s->head[i] : &s->base[i];
      *c = made_up_case(s->names[i]);
      c->visits = gate_alloc((size_t)rounds, sizeof *c->visits);
      for (int r = 0; r < rounds; r++) c->visits[r].samples = gate_alloc((size_t)samples, sizeof(gate_sample));
    }
  }
}

/* Every sample anew; head's case 0 is slower by `slower`, a fraction. */
static inline void suite_draw(suite *s, int rounds, int samples, const noise *n, double slower) {
  double machine = 0.0;
  for (int r = 0; r < rounds; r++) {
    machine += n->drift * noise_normal();
    for (size_t i = 0; i < s->count; i++) {
      s->base[i].visit_count = s->head[i].visit_count = r + 1;
      s->base[i].visits[r].round = s->head[i].visits[r].round = r;
      noise_visit(&s->base[i].visits[r], n, log(1000.0) + machine, samples);
      noise_visit(&s->head[i].visits[r], n, log(1000.0) + machine + (i ? 0.0 : log1p(slower)), samples);
    }
  }
}

static inline void suite_free(suite *s, int rounds) {
  for (size_t i = 0; i < s->count; i++) {
    for (int r = 0; r < rounds; r++) {
      free(s->base[i].visits[r].samples);
      free(s->head[i].visits[r].samples);
    }
    free(s->base[i].visits);
    free(s->head[i].visits);
  }
  free(s->base);
  free(s->head);
  free(s->bases);
  free(s->heads);
  free(s->names);
}

#endif
