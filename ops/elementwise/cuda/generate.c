/* SPDX-License-Identifier: Apache-2.0
 * generate.c: from a graph to the CUDA function that computes one element. Every name is a letter and a number, every
 * function comes from functions.def, every constant is its bits: nothing of a user's text can get here. */
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/cuda/cuda_source.h"
#include "src/base/dtype.h"
#include "src/base/float8.h"

enum { STRICT, NARROW, REDUCED };

/* The functions' names on the device: fn_ and the id in small letters. */
static const char *const ids[] = {
#define AT_FUNCTION(id, name, arity, rule, precedence, commutes) #id,
#include "ops/elementwise/ir/functions.def"
#undef AT_FUNCTION
};
static const at_type_rule rules[] = {
#define AT_FUNCTION(id, name, arity, rule, precedence, commutes) rule,
#include "ops/elementwise/ir/functions.def"
#undef AT_FUNCTION
};

static bool is_narrow(attune_dtype dtype) {
  return dtype == ATTUNE_F16 || dtype == ATTUNE_BF16 || dtype == ATTUNE_F8E4M3 || dtype == ATTUNE_F8E5M2;
}

/* Properties of a node before its code is written. */
typedef struct note {
  bool needed;
  bool exact; /* some use shows more of it than a half float does */
} note;

/* The node that an output stores: a cast to just what is stored is done by the store. */
static int stored_node(const at_cuda_problem *p, int output) {
  const at_expression *e = p->expression;
  const at_node *node = &e->nodes[e->outputs[output]];
  const bool same = node->kind == AT_NODE_CAST && node->dtype == p->outputs[output];
  return same ? node->argument[0] : e->outputs[output];
}

/* Whether an argument's relative error is no larger in the result: then it may be as wrong as the result may. */
static bool keeps_error(const at_node *node, int argument) {
  switch ((at_function)node->function) {
  case AT_FN_SELECT: return argument > 0;
  case AT_FN_MULTIPLY:
  case AT_FN_DIVIDE:
  case AT_FN_NEGATE:
  case AT_FN_ABS:
  case AT_FN_RELU:
  case AT_FN_MINIMUM:
  case AT_FN_MAXIMUM:
  case AT_FN_CLAMP:
  case AT_FN_LEAKY_RELU:
  case AT_FN_SQRT:
  case AT_FN_RSQRT:
  case AT_FN_RECIPROCAL: return true;
  default: return false;
  }
}

static void take_notes(note *notes, const at_cuda_problem *p) {
  const at_expression *e = p->expression;
  for (int o = 0; o < e->output_count; o++) {
    note *n = &notes[stored_node(p, o)];
    n->needed = true;
    n->exact = n->exact || !is_narrow((attune_dtype)p->outputs[o]);
  }
  for (int i = e->node_count - 1; i >= 0; i--) {
    const at_node *node = &e->nodes[i];
    for (int a = 0; notes[i].needed && a < node->count; a++) {
      note *n = &notes[node->argument[a]];
      const bool hidden =
          node->kind == AT_NODE_CAST ? is_narrow((attune_dtype)node->dtype) : keeps_error(node, a) && !notes[i].exact;
      n->needed = true;
      n->exact = n->exact || !hidden;
    }
  }
}

/* ---- constants and scalars ---- */

static float narrowed(double x, attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_F16: return at_f16_to_f32(at_f64_to_f16(x));
  case ATTUNE_BF16: return at_bf16_to_f32(at_f64_to_bf16(x));
  case ATTUNE_F8E4M3: return at_f8e4m3_to_f32(at_f64_to_f8e4m3(x));
  case ATTUNE_F8E5M2: return at_f8e5m2_to_f32(at_f64_to_f8e5m2(x));
  default: return (float)x;
  }
}

static void add_constant(at_writer *s, attune_dtype dtype, const at_constant *c) {
  const char *type = at_cuda_value(dtype);
  switch (at_dtype_kind_of(dtype)) {
  case AT_KIND_BOOL: at_write(s, "%s", c->integer ? "true" : "false"); return;
  case AT_KIND_INTEGER: at_write(s, "(%s)0x%llxull", type, (unsigned long long)c->integer); return;
  case AT_KIND_COMPLEX:
    if (dtype == ATTUNE_C64)
      at_write(s, "at_c64{__uint_as_float(0x%08xu), __uint_as_float(0x%08xu)}", at_bits_of_f32((float)c->re),
               at_bits_of_f32((float)c->im));
    else
      at_write(s,
               "at_c128{__longlong_as_double((long long)0x%016llxull), __longlong_as_double((long long)0x%016llxull)}",
               (unsigned long long)at_bits_of_f64(c->re), (unsigned long long)at_bits_of_f64(c->im));
    return;
  default: break;
  }
  if (dtype == ATTUNE_F64)
    at_write(s, "__longlong_as_double((long long)0x%016llxull)", (unsigned long long)at_bits_of_f64(c->re));
  else
    at_write(s, "__uint_as_float(0x%08xu)", at_bits_of_f32(narrowed(c->re, dtype)));
}

bool at_generate_slots(at_cuda_launch *out, const at_expression *e) {
  out->slot_count = 0;
  for (int i = 0; i < e->node_count; i++) {
    const at_node *node = &e->nodes[i];
    bool known = node->kind != AT_NODE_SCALAR;
    for (int k = 0; k < out->slot_count && !known; k++)
      known = out->slot_scalar[k] == node->index && out->slot_dtype[k] == node->dtype;
    if (known) continue;
    if (out->slot_count == AT_CUDA_SLOTS) return false;
    out->slot_scalar[out->slot_count] = (uint8_t)node->index;
    out->slot_dtype[out->slot_count++] = node->dtype;
  }
  return true;
}

static int slot_of(const at_cuda_launch *slots, const at_node *node) {
  int k = 0;
  while (slots->slot_scalar[k] != node->index || slots->slot_dtype[k] != node->dtype) k++;
  return k;
}

/* Truncated to the dtype's range, as a cast does; NaN gives 0. */
static uint64_t whole_bits(double x, attune_dtype dtype) {
  const int bits = 8 * (int)attune_dtype_size(dtype);
  const double half = (double)(UINT64_C(1) << (bits - 1)), end = at_dtype_unsigned(dtype) ? 2 * half : half;
  const uint64_t all = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
  if (x != x) return 0;
  if (at_dtype_unsigned(dtype)) return x >= end ? all : x <= 0 ? 0 : (uint64_t)x;
  return x >= end ? all >> 1 : x <= -end ? (uint64_t)0 - (UINT64_C(1) << (bits - 1)) : (uint64_t)(int64_t)x;
}

static double real_of(const at_constant *c, attune_dtype from) {
  return at_dtype_whole(from) ? (double)c->integer : c->re;
}

void at_cuda_bind_scalars(at_cuda_launch *launch, const at_expression *expression, const at_constant *scalars) {
  for (int k = 0; k < launch->slot_count; k++) {
    const attune_dtype to = (attune_dtype)launch->slot_dtype[k],
                       from = (attune_dtype)expression->scalars[launch->slot_scalar[k]].dtype;
    const at_constant *c = &scalars[launch->slot_scalar[k]];
    const bool whole = at_dtype_whole(from);
    const double x = real_of(c, from);
    uint64_t *word = &launch->words[launch->slot_at + 2 * k];
    word[1] = 0;
    if (to == ATTUNE_BOOL)
      word[0] = whole ? c->integer != 0 : x != 0 || (from == ATTUNE_C128 && c->im != 0);
    else if (at_dtype_whole(to))
      word[0] = whole ? (uint64_t)c->integer : whole_bits(x, to);
    else if (to == ATTUNE_F64 || to == ATTUNE_C128)
      word[0] = at_bits_of_f64(x);
    else if ((to == ATTUNE_F32 || to == ATTUNE_C64) && whole)
      word[0] = at_bits_of_f32((float)c->integer);
    else
      word[0] = at_bits_of_f32(narrowed(x, to));
    if (from == ATTUNE_C128 && to == ATTUNE_C64) word[1] = at_bits_of_f32((float)c->im);
    if (from == ATTUNE_C128 && to == ATTUNE_C128) word[1] = at_bits_of_f64(c->im);
  }
}

/* ---- nodes ---- */

/* Which p a dimension's coordinate is; -1: the element's number. */
static int index_number(const at_expression *e, int dimension) {
  int list[AT_CUDA_INDICES];
  const int count = at_cuda_indices(e, list);
  for (int k = 0; k < count; k++)
    if (list[k] == dimension) return k;
  return 0;
}

static void add_call(at_writer *s, const at_cuda_problem *p, const at_node *node, bool exact) {
  const at_expression *e = p->expression;
  const at_type_rule rule = rules[node->function];
  char name[24] = "";
  for (size_t i = 0; ids[node->function][i] && i + 1 < sizeof name; i++) {
    const char c = ids[node->function][i];
    name[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  at_write(s, "fn_%s<%d>(", name, p->reduced ? REDUCED : exact ? STRICT : NARROW);
  for (int a = 0; a < node->count; a++) {
    const at_node *argument = &e->nodes[node->argument[a]];
    const bool truth = (rule == AT_RULE_LOGIC || (rule == AT_RULE_SELECT && a == 0)) && argument->dtype != ATTUNE_BOOL;
    at_write(s, truth ? "%sat_cast<bool>(v%d)" : "%sv%d", a ? ", " : "", node->argument[a]);
  }
  at_write(s, ")");
}

static void add_draw(at_writer *s, const at_expression *e, const at_node *node) {
  if (node->kind == AT_NODE_NORMAL)
    at_write(s, "__uint_as_float(x.r%d)", node->index + e->uniform_count);
  else
    at_write(s, "at_uniform_of(x.r%d)", node->index);
}

static void add_node(at_writer *s, const at_cuda_problem *p, const at_cuda_launch *slots, int i, bool exact) {
  const at_node *node = &p->expression->nodes[i];
  const attune_dtype dtype = (attune_dtype)node->dtype;
  at_write(s, "  const %s v%d = ", at_cuda_value(dtype), i);
  switch ((at_node_kind)node->kind) {
  case AT_NODE_INPUT: at_write(s, "x.i%d", node->index); break;
  case AT_NODE_SCALAR: at_write(s, "at_scalar_value<%s>(a.s[%d])", at_cuda_tag(dtype), slot_of(slots, node)); break;
  case AT_NODE_CONSTANT: add_constant(s, dtype, &node->constant); break;
  case AT_NODE_POSITION: at_write(s, "x.p%d", index_number(p->expression, node->index)); break;
  case AT_NODE_ELEMENT: at_write(s, "x.p%d", index_number(p->expression, -1)); break;
  case AT_NODE_UNIFORM:
  case AT_NODE_NORMAL: add_draw(s, p->expression, node); break;
  case AT_NODE_CAST:
    if (is_narrow(dtype))
      at_write(s, "at_round<%s>(at_to<%s>(v%d))", at_cuda_tag(dtype), at_cuda_tag(dtype), node->argument[0]);
    else
      at_write(s, "at_cast<%s>(v%d)", at_cuda_value(dtype), node->argument[0]);
    break;
  case AT_NODE_RAW: break; /* at_generate_raw_element */
  case AT_NODE_FUNCTION:
    if (!at_generate_draw_below(s, p->expression, node)) add_call(s, p, node, exact);
    break;
  }
  at_write(s, ";\n");
}

static void add_structs(at_writer *s, const at_cuda_problem *p) {
  const at_expression *e = p->expression;
  int list[AT_CUDA_INDICES];
  const int indices = at_cuda_indices(e, list);
  at_write(s, "struct at_in {\n");
  for (int i = 0; i < e->input_count; i++)
    at_write(s, "  %s i%d;\n", at_cuda_value((attune_dtype)e->inputs[i].dtype), i);
  for (int i = 0; i < indices; i++) at_write(s, "  at_i64 p%d;\n", i);
  at_generate_draw_members(s, e);
  at_write(s, "};\nstruct at_out {\n");
  for (int o = 0; o < e->output_count; o++) at_write(s, "  %s o%d;\n", at_cuda_value((attune_dtype)p->outputs[o]), o);
  at_write(s, "};\n");
}

attune_status at_generate_element(at_writer *s, const at_cuda_problem *p) {
  const at_expression *e = p->expression;
  at_cuda_launch slots;
  note *notes = calloc((size_t)e->node_count + 1, sizeof *notes);
  if (!notes) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an expression of %d nodes", e->node_count);
  (void)at_generate_slots(&slots, e);
  add_structs(s, p);
  if (e->raw) {
    at_generate_raw_element(s, p);
    free(notes);
    return ATTUNE_OK;
  }
  take_notes(notes, p);
  at_write(s, "AT_INLINE void at_element(const at_arguments &a, const at_once &once, const at_in &x, at_out &y) {\n");
  for (int i = 0; i < e->node_count; i++)
    if (notes[i].needed) add_node(s, p, &slots, i, notes[i].exact);
  for (int o = 0; o < e->output_count; o++)
    at_write(s, "  y.o%d = at_to<%s>(v%d);\n", o, at_cuda_tag((attune_dtype)p->outputs[o]), stored_node(p, o));
  at_write(s, "}\n");
  free(notes);
  return ATTUNE_OK;
}
