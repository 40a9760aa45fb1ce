/* SPDX-License-Identifier: Apache-2.0
 * problem_text.c: a problem as text: "elementwise 64x1024 strict out=bf16 i1=0,1 : bf16 i0, f32 i1: ...".
 *
 * Sizes are those of the layout, outermost dimension first. out= has the dtypes of the outputs in memory. Words are
 * added for an alignment below 128 bytes (align=16), for outputs in an input's memory (in_place=o0:i1), and for strides
 * that are not packed, in elements: of output 0 (o0=...), of input 1 (i1=0,1), of a number of the element (n0=...).
 * Behind " : " stands the canonical expression. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/language/compile.h"
#include "ops/elementwise/problem/problem.h"
#include "src/base/dtype.h"
#include "tuning/op/problem_text.h"

static const char divider[] = " : ";

/* The strides that a text leaves out: packed in the layout's order; of a coordinate, 1 along its dimension. */
static void usual_strides(int64_t *out, const at_elementwise *p, int operand) {
  const int position = operand - at_elementwise_tensors(p) - p->number;
  int64_t stride = 1;
  for (int d = 0; d < p->dims; d++) {
    out[d] = position < 0 ? stride : d == position;
    stride *= p->numbers[d];
  }
}

static bool is_usual(const at_elementwise *p, int operand) {
  int64_t usual[AT_DIMS];
  usual_strides(usual, p, operand);
  return memcmp(usual, at_elementwise_strides(p, operand), p->dims * sizeof *usual) == 0;
}

/* "o0", "i1", "n0" */
static void operand_name(char out[8], const at_elementwise *p, int operand) {
  const int tensors = at_elementwise_tensors(p);
  const bool output = operand < p->output_count;
  const int number = output ? operand : operand < tensors ? operand - p->output_count : operand - tensors;
  snprintf(out, 8, "%c%d", output ? 'o' : operand < tensors ? 'i' : 'n', number);
}

static bool put_sizes(const at_elementwise *p, char *out, size_t size, size_t *at) {
  bool ok = true;
  for (int d = p->dims - 1; d >= 0; d--)
    ok = ok && at_append(out, size, at, "%s%lld", d == p->dims - 1 ? " " : "x", (long long)p->numbers[d]);
  return ok;
}

static bool put_strides(const at_elementwise *p, int operand, char *out, size_t size, size_t *at) {
  char name[8];
  bool ok = true;
  operand_name(name, p, operand);
  for (int d = p->dims - 1; d >= 0; d--) {
    const long long stride = (long long)at_elementwise_strides(p, operand)[d];
    ok = ok && (d == p->dims - 1 ? at_append(out, size, at, " %s=%lld", name, stride)
                                 : at_append(out, size, at, ",%lld", stride));
  }
  return ok;
}

/* The part that does not depend on sizes. */
static bool put_contract(const at_elementwise *p, char *out, size_t size, size_t *at) {
  bool ok = at_text_put_accuracy(out, size, at, (attune_accuracy)p->accuracy, false);
  for (int i = 0; i < p->output_count; i++)
    ok = ok && at_append(out, size, at, "%s%s", i ? "," : " out=", attune_dtype_name((attune_dtype)p->dtypes[i]));
  ok = ok && at_text_put_limits(out, size, at, p->alignment, ATTUNE_WORKSPACE_DEFAULT);
  for (int i = 0; i < p->output_count; i++)
    if (p->in_place[i]) ok = ok && at_append(out, size, at, " in_place=o%d:i%d", i, p->in_place[i] - 1);
  return ok;
}

attune_status at_elementwise_format(const void *problem, char *out, size_t size) {
  const at_elementwise *p = at_elementwise_of(problem);
  size_t at = 0;
  bool ok = at_append(out, size, &at, "elementwise") && put_sizes(p, out, size, &at) && put_contract(p, out, size, &at);
  for (int k = 0; k < at_elementwise_operand_count(p); k++)
    if (!is_usual(p, k)) ok = ok && put_strides(p, k, out, size, &at);
  return ok && at_append(out, size, &at, "%s%s", divider, at_elementwise_text(p)) ? ATTUNE_OK : at_text_too_small(size);
}

/* The dimension's place among those of the operand, by stride; 0: it lies still. */
static int rank_of(const at_elementwise *p, int operand, int dimension) {
  const int64_t *strides = at_elementwise_strides(p, operand);
  int rank = 1;
  if (strides[dimension] == 0) return 0;
  for (int d = 0; d < p->dims; d++) rank += strides[d] != 0 && llabs(strides[d]) < llabs(strides[dimension]);
  return rank;
}

attune_status at_elementwise_family(const void *problem, char *out, size_t size) {
  const at_elementwise *p = at_elementwise_of(problem);
  size_t at = 0;
  bool ok = at_append(out, size, &at, "elementwise %d", p->dims) && put_contract(p, out, size, &at);
  for (int k = 0; k < at_elementwise_operand_count(p); k++) {
    char name[8];
    if (is_usual(p, k)) continue;
    operand_name(name, p, k);
    ok = ok && at_append(out, size, &at, " %s=", name);
    for (int d = p->dims - 1; d >= 0; d--) {
      const bool unit = llabs(at_elementwise_strides(p, k)[d]) == 1;
      ok = ok && at_append(out, size, &at, "%d%s", rank_of(p, k, d), unit ? "u" : "");
    }
  }
  return ok && at_append(out, size, &at, "%s%s", divider, at_elementwise_text(p)) ? ATTUNE_OK : at_text_too_small(size);
}

/* ---- reading ---- */

typedef struct reading {
  const at_expression *expression;
  at_contract terms;
  at_elementwise_use use;
  int dims, operands, outputs_read;
  int64_t sizes[AT_DIMS]; /* innermost first */
  int64_t strides[AT_LAYOUT_OPERANDS][AT_DIMS];
  bool given[AT_LAYOUT_OPERANDS];
} reading;

/* Numbers with `between` in between, outermost first, into out, innermost first; their count, 0: the word is none. */
static int read_numbers(const char *word, char between, int64_t *out) {
  int64_t numbers[AT_DIMS];
  int count = 0;
  for (;;) {
    int64_t number = 0;
    const size_t chars = count == AT_DIMS ? 0 : at_read_i64(&number, word);
    if (!chars || number == INT64_MAX || number == INT64_MIN) return 0;
    numbers[count++] = number;
    if (word[chars] == '\0') break;
    if (word[chars] != between) return 0;
    word += chars + 1;
  }
  for (int i = 0; i < count; i++) out[i] = numbers[count - 1 - i];
  return count;
}

static bool read_sizes(char *word, void *into) {
  reading *r = into;
  r->dims = read_numbers(word, 'x', r->sizes);
  for (int d = 0; d < r->dims; d++)
    if (r->sizes[d] < 1) return false;
  return r->dims > 0;
}

static bool read_accuracy(char *word, void *into) {
  return at_text_accuracy(word, &((reading *)into)->terms.contract.accuracy);
}

static bool read_outputs(char *word, void *into) {
  reading *r = into;
  if (strncmp(word, "out=", 4) != 0) return false;
  for (const char *at = word + 4;; at++) {
    const size_t chars = strcspn(at, ",");
    attune_dtype dtype;
    if (r->outputs_read == r->expression->output_count || !at_text_dtype(at, chars, AT_DTYPES_ALL, &dtype))
      return false;
    r->use.outputs[r->outputs_read++] = (uint8_t)dtype;
    at += chars;
    if (*at == '\0') return r->outputs_read == r->expression->output_count;
  }
}

static bool read_in_place(const char *word, reading *r) {
  static const char begin[] = "in_place=o";
  int64_t output = 0, input = 0;
  if (strncmp(word, begin, sizeof begin - 1) != 0) return false;
  word += sizeof begin - 1;
  const size_t chars = at_read_i64(&output, word);
  if (!chars || strncmp(word + chars, ":i", 2) != 0 || !at_parse_i64(&input, word + chars + 2)) return false;
  if (output < 0 || output >= r->expression->output_count || input < 0 || input >= r->expression->input_count)
    return false;
  r->use.in_place[output] = (uint8_t)(input + 1);
  return true;
}

static bool read_strides(const char *word, reading *r) {
  const at_expression *e = r->expression;
  const char *equals = strchr(word, '=');
  int64_t number = 0;
  if (!equals || !strchr("oin", word[0])) return false;
  const char *end = word + 1 + at_read_i64(&number, word + 1);
  const int tensors = e->output_count + e->input_count,
            first = word[0] == 'o'   ? 0
                    : word[0] == 'i' ? e->output_count
                                     : tensors,
            behind = word[0] == 'o'   ? e->output_count
                     : word[0] == 'i' ? tensors
                                      : r->operands;
  if (end != equals || number < 0 || number >= behind - first) return false;
  const int operand = first + (int)number;
  r->given[operand] = true;
  return read_numbers(equals + 1, ',', r->strides[operand]) == r->dims;
}

static bool read_word(char *word, void *into) {
  reading *r = into;
  return at_text_term(word, &r->terms) || read_in_place(word, r) || read_strides(word, r);
}

/* Elements that an operand reaches over; false: too many. */
static bool reach(const at_layout *layout, int operand, int64_t *out) {
  *out = 1;
  for (int d = 0; d < layout->dims; d++) {
    const int64_t stride = layout->operands[operand].strides[d];
    int64_t way;
    if (stride == INT64_MIN || !at_mul_i64(&way, stride < 0 ? -stride : stride, layout->sizes[d] - 1) ||
        !at_add_i64(out, *out, way) || *out > INT64_MAX / 16)
      return false;
  }
  return true;
}

/* Does each dimension step over all that smaller strides reach? */
static bool is_distinct(const at_layout *layout, int operand) {
  const int64_t *strides = layout->operands[operand].strides;
  for (int d = 0; d < layout->dims; d++) {
    const int64_t stride = strides[d] < 0 ? -strides[d] : strides[d];
    int64_t inside = 1;
    for (int e = 0; e < layout->dims; e++) {
      const int64_t other = strides[e] < 0 ? -strides[e] : strides[e];
      if (e != d && (other < stride || (other == stride && e < d))) inside += other * (layout->sizes[e] - 1);
    }
    if (layout->sizes[d] > 1 && stride < inside) return false;
  }
  return true;
}

static attune_status check_output(const reading *r, const at_layout *layout, int i) {
  const at_expression *e = r->expression;
  const int input = r->use.in_place[i] - 1;
  if (!is_distinct(layout, i))
    return AT_INVALID("elements of output %d overlap; its strides should keep them apart", i);
  if (input < 0) return ATTUNE_OK;
  if (attune_dtype_size((attune_dtype)r->use.outputs[i]) == attune_dtype_size((attune_dtype)e->inputs[input].dtype) &&
      memcmp(layout->operands[i].strides, layout->operands[e->output_count + input].strides,
             sizeof layout->operands[i].strides) == 0)
    return ATTUNE_OK;
  return AT_INVALID("output %d shares the memory of input %d, but has another layout", i, input);
}

static attune_status check(const reading *r, const at_layout *layout) {
  const at_expression *e = r->expression;
  attune_status status = ATTUNE_OK;
  size_t least = AT_ALIGNMENT; /* of the smallest elements */
  int64_t any;
  for (int k = 0; k < r->operands; k++)
    if (!reach(layout, k, &any))
      return AT_INVALID("operand %d spans more than 2^63 bytes; should have smaller strides", k);
  for (int i = 0; i < e->output_count && status == ATTUNE_OK; i++) status = check_output(r, layout, i);
  for (int i = 0; i < e->output_count; i++)
    if (at_element_alignment((attune_dtype)r->use.outputs[i]) < least)
      least = at_element_alignment((attune_dtype)r->use.outputs[i]);
  for (int i = 0; i < e->input_count; i++)
    if (at_element_alignment((attune_dtype)e->inputs[i].dtype) < least)
      least = at_element_alignment((attune_dtype)e->inputs[i].dtype);
  return status == ATTUNE_OK ? at_text_check_alignment(r->terms.alignment, least) : status;
}

static attune_status read_head(reading *r, const char *head) {
  static const at_word_kind kinds[] = {
      {"sizes, such as 64x1024", read_sizes, false},
      {"strict, equivalent or reduced", read_accuracy, true},
      {"out= and the dtype of each output", read_outputs, false},
      {"align=, in_place=o0:i1, or strides of an operand such as i1=0,1, one for each size", read_word, true}};
  return at_text_read(head, "elementwise", kinds, AT_COUNT(kinds), r);
}

static attune_status parse_with(at_expression *e, const char *head, at_elementwise *out) {
  reading r = {.expression = e, .terms = AT_CONTRACT_INIT};
  at_layout layout = {0};
  const int number = e->element || e->uniform_count + e->normal_count > 0;
  r.operands = e->output_count + e->input_count + number + (e->max_position + 1);
  AT_TRY(read_head(&r, head));
  layout.dims = r.dims;
  layout.operand_count = r.operands;
  layout.count = 1;
  memcpy(layout.sizes, r.sizes, sizeof layout.sizes);
  for (int d = 0; d < r.dims; d++)
    if (!at_mul_i64(&layout.count, layout.count, r.sizes[d]) || layout.count > INT64_MAX / 16)
      return AT_INVALID("the sizes are too large: more than 2^59 elements");
  r.use.accuracy = (uint8_t)r.terms.contract.accuracy;
  r.use.alignment = r.terms.alignment;
  attune_status status = at_elementwise_make(out, e, &layout, &r.use); /* for what the usual strides are of */
  if (status != ATTUNE_OK) return status;
  for (int k = 0; k < r.operands; k++) {
    usual_strides(layout.operands[k].strides, out, k);
    if (r.given[k]) memcpy(layout.operands[k].strides, r.strides[k], sizeof r.strides[k]);
  }
  status = check(&r, &layout);
  if (status != ATTUNE_OK) return status;
  status = at_elementwise_make(out, e, &layout, &r.use);
  at_elementwise_set_offsets(out);
  return status;
}

attune_status at_elementwise_parse(const char *text, void *problem) {
  const char *behind = strstr(text, divider);
  char head[AT_PROBLEM_CHARS];
  at_expression *expression = NULL;
  if (!behind || (size_t)(behind - text) >= sizeof head)
    return AT_INVALID(
        "a problem of elementwise has sizes and dtypes, then \" : \" and its expression in canonical form, "
        "as attune_elementwise_problem_format writes it");
  memcpy(head, text, (size_t)(behind - text));
  head[behind - text] = '\0';
  attune_status status = at_expression_parse_canonical(&expression, behind + strlen(divider));
  if (status == ATTUNE_OK) status = parse_with(expression, head, problem);
  at_expression_destroy(expression);
  return status;
}
