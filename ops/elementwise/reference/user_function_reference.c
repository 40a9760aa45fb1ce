/* SPDX-License-Identifier: Apache-2.0
 * user_function_reference.c: see reference.h. */
#include "ops/elementwise/reference/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/ir/wide_value.h"
#include "src/base/dtype.h"
#include "tuning/op/registry.h"

enum { MOST_CONFIGURATIONS = 64 };

struct at_user_function_reference {
  at_elementwise *problem; /* a copy */
  at_plan *plan;
  attune_stream *stream;
  at_buffer buffers[AT_MAX_BUFFERS];
  int buffer_count;
  char *inputs[AT_MAX_BUFFERS]; /* what the buffers held, in host memory; NULL: no input */
  void *memory[AT_MAX_BUFFERS]; /* on the device */
  char *expected;               /* the largest output, in host memory */
};

void at_user_function_reference_destroy(at_user_function_reference *r) {
  if (!r) return;
  at_plan_destroy(r->plan);
  for (int i = 0; i < r->buffer_count; i++) {
    if (r->memory[i]) (void)attune_free(r->memory[i], r->stream);
    free(r->inputs[i]);
  }
  free(r->expected);
  free(r->problem);
  free(r);
}

/* The last configuration of the last implementation is the plainest: strided, an element a thread. */
static attune_status make_plan(at_user_function_reference *r, attune_device *device) {
  at_configuration list[MOST_CONFIGURATIONS];
  const at_implementation *plain = NULL;
  for (size_t i = 0; i < at_elementwise_op.implementation_count; i++) {
    const at_implementation *one = at_elementwise_op.implementations[i];
    if (strcmp(one->backend, device->backend.name) == 0 && one->supports(one, r->problem, device)) plain = one;
  }
  const int count = plain ? plain->configurations(plain, r->problem, device, list, MOST_CONFIGURATIONS) : 0;
  if (count < 1)
    return at_fail(ATTUNE_UNSUPPORTED, "a function in CUDA C needs a CUDA device; %s is not one", device->name);
  return at_plan_create(&r->plan, &at_elementwise_op, plain, &list[count - 1], r->problem, device);
}

static attune_status make_buffer(at_user_function_reference *r, int i, const void *from) {
  const size_t bytes = r->buffers[i].bytes;
  const attune_status status = attune_alloc(&r->memory[i], r->stream, bytes);
  if (status != ATTUNE_OK || !r->buffers[i].input) return status;
  r->inputs[i] = at_alloc_large(bytes);
  if (!r->inputs[i]) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu bytes of operands", bytes);
  return attune_copy(r->stream, r->inputs[i], from, bytes);
}

static attune_status make(at_user_function_reference *r, const at_elementwise *p, attune_device *device,
                          void *const pointers[AT_MAX_BUFFERS]) {
  size_t most = 1;
  r->problem = malloc(p->bytes);
  if (!r->problem) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a reference");
  memcpy(r->problem, p, p->bytes);
  attune_status status = make_plan(r, device);
  if (status == ATTUNE_OK) status = at_elementwise_buffers(p, r->buffers, &r->buffer_count);
  for (int i = 0; i < r->buffer_count && status == ATTUNE_OK; i++) {
    status = make_buffer(r, i, pointers[i]);
    if (r->buffers[i].output && r->buffers[i].bytes > most) most = r->buffers[i].bytes;
  }
  if (status == ATTUNE_OK) status = attune_stream_synchronize(r->stream);
  if (status == ATTUNE_OK && !(r->expected = at_alloc_large(most)))
    status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu bytes of results", most);
  return status;
}

attune_status at_user_function_reference_create(at_user_function_reference **out, const at_elementwise *p,
                                                attune_device *device, attune_stream *stream,
                                                void *const pointers[AT_MAX_BUFFERS]) {
  at_user_function_reference *r = calloc(1, sizeof *r);
  *out = NULL;
  if (!r) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a reference");
  r->stream = stream;
  const attune_status status = make(r, p, device, pointers);
  if (status == ATTUNE_OK)
    *out = r;
  else
    at_user_function_reference_destroy(r);
  return status;
}

const char *at_user_function_reference_input(const at_user_function_reference *r, int i) {
  return r->inputs[i];
}

/* ---- comparing ---- */

/* What is written is compared with all that lies between: the output holds beforehand what the candidate's did. */
static attune_status fill(const at_user_function_reference *r, char *const contents[AT_MAX_BUFFERS],
                          const at_outputs *outputs) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < r->buffer_count && status == ATTUNE_OK; i++) {
    const char *from = contents && contents[i] ? contents[i] : r->inputs[i];
    status = from ? attune_copy(r->stream, r->memory[i], from, r->buffers[i].bytes)
                  : attune_fill(r->stream, r->memory[i], outputs->poison[i], r->buffers[i].bytes);
  }
  return status;
}

static bool is_nan(attune_dtype dtype, const char *element) {
  const at_dtype_kind kind = at_dtype_kind_of(dtype);
  if (kind != AT_KIND_FLOAT && kind != AT_KIND_COMPLEX) return false;
  const at_wide_value x = at_wide_value_load(dtype, element);
  return isnan(x.re) || (kind == AT_KIND_COMPLEX && isnan(x.im));
}

static bool are_alike(attune_dtype dtype, const char *got, const char *wanted, size_t bytes) {
  const size_t size = attune_dtype_size(dtype);
  if (memcmp(got, wanted, bytes) == 0) return true;
  for (size_t at = 0; at < bytes; at += size)
    if (memcmp(got + at, wanted + at, size) != 0 && !(is_nan(dtype, got + at) && is_nan(dtype, wanted + at)))
      return false;
  return true;
}

static attune_status launch(const at_user_function_reference *r, const double *scalars) {
  at_elementwise_operands operands;
  at_elementwise_bind(r->problem, r->memory, scalars, &operands);
  return r->plan->launch(r->plan, &operands, r->stream);
}

attune_status at_user_function_reference_compare(at_user_function_reference *r, char *const contents[AT_MAX_BUFFERS],
                                                 const double *scalars, const at_outputs *outputs, double *max_error) {
  attune_status status = fill(r, contents, outputs);
  if (status == ATTUNE_OK) status = launch(r, scalars);
  *max_error = 0.0;
  for (int i = 0; i < r->buffer_count && status == ATTUNE_OK; i++) {
    if (!r->buffers[i].output) continue;
    status = attune_copy(r->stream, r->expected, r->memory[i], r->buffers[i].bytes);
    if (status == ATTUNE_OK) status = attune_stream_synchronize(r->stream);
    if (status == ATTUNE_OK && !are_alike(r->buffers[i].dtype, outputs->bytes[i], r->expected, r->buffers[i].bytes))
      *max_error = (double)INFINITY;
  }
  return status;
}
