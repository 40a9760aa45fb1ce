/* SPDX-License-Identifier: Apache-2.0
 * ieee_specials.h: private to special*.c and reference*.c: NaN, infinities, denormals, zeros and huge numbers in the
 * operands and the scalars of a GEMM, and what must become of them.
 *
 * Planted rows of op(A) and columns of op(B) ("lines") are zeros but for one or two of a few fixed places along k. So
 * each planted element of the product is a sum of at most AT_SPECIAL_PLACES terms, which is computed as it stands. */
#ifndef AT_GEMM_IEEE_SPECIALS_H
#define AT_GEMM_IEEE_SPECIALS_H

#include "ops/gemm/problem/problem.h"

/* What a line is made of. */
typedef enum at_special_role {
  AT_ROLE_ORDINARY, /* as it was */
  AT_ROLE_NAN_LAST,
  AT_ROLE_INF_FIRST,
  AT_ROLE_ZERO,
  AT_ROLE_DENORMAL_LAST,
  AT_ROLE_HUGE_LAST,
  AT_ROLE_NAN_FIRST,
  AT_ROLE_MINUS_INF,
  AT_ROLE_BOTH_INF,
  AT_ROLE_DENORMAL,
  AT_ROLE_HUGE,
  AT_ROLE_NAN,
  AT_SPECIAL_ROLES
} at_special_role;

enum { AT_SPECIAL_PLACES = 4 }; /* along k: the first, the last, two drawn from the problem */

/* Which lines of a matrix have which role. */
typedef enum at_special_pattern {
  AT_PATTERN_NONE = 0,
  AT_PATTERN_SPREAD = 1, /* each role once, over the whole matrix, the first and the last line too; the rest ordinary */
  AT_PATTERN_TURNS = 16, /* + offset: line i has role i + offset, in turns */
  AT_PATTERN_UNIFORM = 32 /* + role: every line */
} at_special_pattern;

/* How C is filled: as it was, all NaN (it must not be read), or special values here and there; + turn. */
typedef enum at_special_c { AT_C_ORDINARY = 0, AT_C_POISON = 1, AT_C_PLANTED = 2 } at_special_c;

/* One launch of verification. */
typedef struct at_special_case {
  int a, b, c; /* patterns of op(A)'s rows and op(B)'s columns; at_special_c */
  double alpha, beta;
} at_special_case;

/* ieee_specials.c: case `want` into *out where there is one; the number of all of them. */
int at_special_cases(const at_gemm *g, int want, at_special_case *out);

/* The places along k, each once; their number. */
int at_special_places(const at_gemm *g, int64_t out[AT_SPECIAL_PLACES]);

/* The role of line i of `count` in matrix `matrix` of the batch, for all lines, into roles[count]. */
void at_special_line_roles(signed char *roles, int pattern, int64_t count, int64_t matrix);

/* The value of a role at place `place` of `places`. */
double at_special_line_value(const at_gemm *g, at_special_role role, int place, int places);

/* What element (i, j) of matrix `matrix` of C becomes in a case, as a number's turn; -1: it stays as it was. */
int at_special_c_turn(const at_gemm *g, int c, int64_t i, int64_t j, int64_t matrix);
double at_special_c_number(const at_gemm *g, int turn);

/* Slots of at_gemm_op; see op.h. */
int at_gemm_ieee_specials_count(const void *problem);
int at_gemm_ieee_specials_contents(const void *problem, int which, int buffer);
void at_gemm_ieee_specials_plant(const void *problem, int which, int buffer, void *bytes);
void at_gemm_ieee_specials_scalars(const void *problem, int which, double *scalars);
attune_status at_gemm_ieee_specials_compare(void *reference, int which, const at_outputs *outputs, uint32_t *lost);
const char *at_gemm_ieee_specials_name(int bit);

#endif
