/* SPDX-License-Identifier: Apache-2.0
 * cuda_forms.c: the table of forms. */
#include "ops/elementwise/cuda/cuda_source.h"

const at_cuda_form_type *at_cuda_form_of(int form) {
  static const at_cuda_form_type *const forms[AT_FORM_COUNT] = {
      [AT_FORM_VECTOR] = &at_form_vector,   [AT_FORM_ROWS] = &at_form_rows, [AT_FORM_TRANSPOSE] = &at_form_transpose,
      [AT_FORM_STRIDED] = &at_form_strided, [AT_FORM_BULK] = &at_form_bulk,
  };
  return form >= 0 && form < AT_FORM_COUNT ? forms[form] : NULL;
}
