/* SPDX-License-Identifier: Apache-2.0
 * elementwise_peers.h: loops over arrays that call a library's functions of whole vectors (SLEEF, glibc's libmvec), one
 * call a vector: what attune's own vector math is compared with. Built for AVX2 and for AVX-512 from one text. */
#ifndef BENCH_ELEMENTWISE_PEERS_H
#define BENCH_ELEMENTWISE_PEERS_H

#include <stddef.h>

/* An expression in x, y and up to three functions of vectors, F0, F1 and F2 of one argument, G0 of two. What no library
 * has is made as a program would make it. */
typedef enum peer_form {
  PEER_ONE,       /* F0(x) */
  PEER_TWO,       /* G0(x, y) */
  PEER_SIGMOID,   /* of exp */
  PEER_SILU,      /* of exp */
  PEER_GELU,      /* of erfc */
  PEER_GELU_TANH, /* of exp */
  PEER_SOFTPLUS,  /* of exp and log1p */
  PEER_MISH,      /* of exp */
  PEER_LOGIT,     /* of log */
  PEER_ELU,       /* of expm1 */
  PEER_CHAIN,     /* F0(x) * F1(y) + F2(y) */
  PEER_NESTED,    /* F0(F1(x)) * F2(y) */
  PEER_FORMS
} peer_form;

enum { PEER_FUNCTIONS = 3 };

typedef struct peer {
  void (*f[PEER_FUNCTIONS])(void); /* of vectors */
} peer;

/* out[i] = the form of x[i] and y[i]; n is a multiple of 16. */
typedef void (*peer_run)(const peer *p, void *out, const void *x, const void *y, size_t n);

/* By form; f32, then f64. */
extern const peer_run peer_avx2_f32[PEER_FORMS], peer_avx2_f64[PEER_FORMS];
extern const peer_run peer_avx512_f32[PEER_FORMS], peer_avx512_f64[PEER_FORMS];

#endif
