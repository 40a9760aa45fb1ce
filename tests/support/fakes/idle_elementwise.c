/* SPDX-License-Identifier: Apache-2.0
 * idle_elementwise.c: a library to preload: attune_elementwise says that all is well and does nothing, so that results
 * are wrong. */
#include <attune/elementwise.h>

attune_status attune_elementwise(attune_tuner *tuner, attune_stream *stream, const char *expression,
                                 const attune_elementwise_operands *operands) {
  (void)tuner, (void)stream, (void)expression, (void)operands;
  return ATTUNE_OK;
}
