/* SPDX-License-Identifier: Apache-2.0
 * form_contiguous.h: what the vector form and the bulk form share: the same operands, another way to fetch them. */
#ifndef AT_FORM_CONTIGUOUS_H
#define AT_FORM_CONTIGUOUS_H

#include "ops/elementwise/cuda/cuda_source.h"

/* form_vector.c: what few elements are worth, the best guess first; also in rows. */
enum { AT_FEW_CHOICES = 8 };
extern const at_cuda_choice at_few_choices[AT_FEW_CHOICES];

bool at_contiguous_supports(const at_cuda_problem *p, const at_cuda_choice *c);
void at_contiguous_fields(at_arguments *f, const at_cuda_problem *p, const at_cuda_choice *c);
void at_contiguous_functions(at_writer *s, const at_cuda_problem *p, const at_cuda_choice *c);
/* Which p is the element's number, if it grows by 1 along the innermost dimension; else -1. */
int at_contiguous_number(const at_cuda_problem *p);

#endif
