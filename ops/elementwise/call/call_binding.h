/* SPDX-License-Identifier: Apache-2.0
 * call_binding.h: a call made ready: expression compiled, operands checked and laid out, the problem normalised. What
 * is left for a later call just like it are addresses, the scalars' values and the generator. */
#ifndef AT_ELEMENTWISE_CALL_BINDING_H
#define AT_ELEMENTWISE_CALL_BINDING_H

#include "ops/elementwise/problem/problem.h"

/* Computation of a call: an expression, or a function of the program's own, and then `text` is its hash. */
typedef struct at_formula {
  const char *text;
  struct at_user_function *function; /* NULL: text is an expression */
  bool checked;                      /* its graph before any rewriting is kept: plain.h */
  bool verified;                     /* it is compiled only if rewriting changes no result: at_plain_check */
} at_formula;

/* How a tensor of a call lies, for comparison with later calls. */
typedef struct at_kept_tensor {
  attune_dtype dtype;
  int dims;
  int64_t sizes[AT_DIMS], strides[AT_DIMS];
  bool packed; /* also where strides were given */
} at_kept_tensor;

/* The part of a call of few elements that small_fast_path.h compares and uses. */
typedef struct at_small_tensor {
  uint64_t kind; /* dtype and dims as they lie in an attune_tensor */
  int64_t size;  /* of the first dimension */
  uintptr_t bytes;
  uint8_t caller; /* an input's place among the caller's */
} at_small_tensor;
typedef struct at_small {
  const struct at_host_plan *plan;     /* NULL: calls do not run so */
  uintptr_t mask;                      /* bits that no address of such a call has */
  at_small_tensor tensors[AT_TENSORS]; /* in the expression's order */
  bool straight; /* at_small_quick may look: one output, one input or two, each of one dimension */
} at_small;

typedef struct at_call_binding {
  at_expression *expression;
  at_elementwise *problem;                /* not folded */
  uint8_t input_of[AT_EXPRESSION_INPUTS]; /* the expression's input i is the caller's inputs[input_of[i]] */
  uint8_t scalar_of[AT_EXPRESSION_SCALARS];
  int tensors;
  int output_count, input_count, scalar_count; /* the caller's */
  at_kept_tensor kept_tensors[AT_TENSORS];     /* in the caller's order */
  int64_t first[AT_TENSORS];                   /* bytes from a tensor's data to its first element walked */
  int64_t low[AT_TENSORS], high[AT_TENSORS];   /* and to its first byte, and behind its last one */
  uint8_t size[AT_TENSORS];                    /* bytes of an element */
  uint8_t step[AT_TENSORS];                    /* the same; 0: the tensor is one element */
  int32_t head;
  at_layout layout;
  at_small small;
  at_elementwise_kept kept;
} at_call_binding;

/* What kind of number it is; 0: it was left 0, but the value lies where f64 does not look, as at_scalar_fail says. */
AT_INLINE attune_dtype at_scalar_kind(const attune_scalar *s) {
  if (AT_LIKELY(s->kind != 0)) return s->kind;
  return AT_LIKELY(s->integer == 0 && s->imaginary == 0.0) ? ATTUNE_F64 : (attune_dtype)0;
}
attune_status at_scalar_fail(const attune_scalar *s, int i);

/* Does the tensor lie as the kept one did? */
AT_INLINE bool at_kept_is_like(const at_kept_tensor *k, const attune_tensor *t) {
  bool same = t->dtype == k->dtype && t->dims == k->dims && (t->strides || k->packed);
  for (int d = 0; d < k->dims && same; d++) same = t->sizes[d] == k->sizes[d];
  if (t->strides)
    for (int d = 0; d < k->dims && same; d++) same = t->strides[d] == k->strides[d];
  return same;
}

/* A caller's tensor, whose number of dimensions was checked, as a view. */
void at_call_binding_view(at_view *out, const attune_tensor *tensor);

/* call_layout.c: the rest of a call whose expression and layout are known: where its tensors lie, and its problem.
 * `views` are in the expression's order. device NULL: see at_call_binding_describe. Errors: as at_elementwise_make,
 * OUT_OF_MEMORY. */
attune_status at_call_binding_lay_out(at_call_binding *prepared, const at_view *views, const attune_device *device,
                                      const attune_elementwise_operands *operands);

void at_call_binding_destroy(at_call_binding *prepared);

/* Have the operands the dtypes, shapes and strides of the prepared call's? */
bool at_call_binding_is_like(const at_call_binding *prepared, const attune_elementwise_operands *operands);

/* INVALID_ARGUMENT, naming the first operand that differs, where that is false. */
attune_status at_call_binding_fail_unlike(const at_call_binding *prepared, const attune_elementwise_operands *operands);

/* And its scalars the kinds? The counts are equal. */
bool at_call_binding_has_kinds(const at_call_binding *prepared, const attune_elementwise_operands *operands);

/* The operands of a launch, of a call that is like the prepared one. */
void at_call_binding_bind(at_call_binding *prepared, const attune_elementwise_operands *operands,
                          at_elementwise_operands *out);

/* Whether such a call's outputs lie apart from all else, or in an input as the prepared one's do: told by the address
 * ranges alone. False: at_call_binding_check must look. */
bool at_call_binding_apart(const at_call_binding *prepared, const attune_elementwise_operands *operands);

/* Whether an output of such a call is the memory of an input, and was not that of one in the prepared call. */
bool at_call_binding_elsewhere(const at_call_binding *prepared, const attune_elementwise_operands *operands);

/* Is `accuracy` one of the enumeration? A plan's run does not look at it else. */
static inline bool at_call_binding_accuracy_is_one(const attune_elementwise_operands *operands) {
  return operands->accuracy >= ATTUNE_STRICT && operands->accuracy <= ATTUNE_REDUCED;
}
attune_status at_call_binding_accuracy_fail(const attune_elementwise_operands *operands);

/* INVALID_ARGUMENT where a scalar of such a call is of another kind than the prepared one's. */
attune_status at_call_binding_check_scalars(const at_call_binding *prepared,
                                            const attune_elementwise_operands *operands);

/* Whether the first elements that are walked as one piece lie at multiples of `least`, and each tensor at one of what
 * its dtype needs. */
bool at_call_binding_aligned(const at_call_binding *prepared, const attune_elementwise_operands *operands, int least);

/* INVALID_ARGUMENT, naming the first operand that does not, where that is false. */
attune_status at_call_binding_fail_aligned(const at_call_binding *prepared, const attune_elementwise_operands *operands,
                                           int least);

/* All that may be wrong with such a call's addresses. Errors: INVALID_ARGUMENT. */
attune_status at_call_binding_check(const at_call_binding *prepared, const attune_elementwise_operands *operands);

/* INVALID_ARGUMENT where the expression draws numbers and the generator cannot give them, or the other way round. */
attune_status at_call_binding_check_generator(const at_expression *expression, attune_generator *generator);

/* call_bind.c: checks a call and makes it ready, into *out; at_call_binding_destroy releases it. *empty: there is no
 * element, and nothing to do; *out is NULL then. Errors: see attune_elementwise. */
attune_status at_call_binding_create(at_call_binding **out, bool *empty, const attune_device *device,
                                     const at_formula *formula, const attune_elementwise_operands *operands);

/* The same for the problem's text: addresses say the alignment and what is in place only, and may be NULL; there must
 * be an element. */
attune_status at_call_binding_describe(at_call_binding **out, const at_formula *formula,
                                       const attune_elementwise_operands *operands);

#endif
