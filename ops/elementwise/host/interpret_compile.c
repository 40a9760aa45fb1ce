/* SPDX-License-Identifier: Apache-2.0
 * interpret_compile.c: a graph to a program: instructions, the conversions between them, and registers. */
#include "ops/elementwise/host/interpret_program.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/dtype.h"

typedef struct builder {
  const at_expression *expression;
  at_interpreter *p;
  uint16_t *value_of; /* of nodes */
  bool *wanted;       /* nodes that reach an output */
  int capacity;       /* of values and instructions */
} builder;

static bool is_narrow(attune_dtype dtype) { /* computed as f32 */
  return dtype == ATTUNE_F16 || dtype == ATTUNE_BF16 || dtype == ATTUNE_F8E4M3 || dtype == ATTUNE_F8E5M2;
}

static attune_status unsupported(const char *what, const char *dtype) {
  return at_fail(ATTUNE_UNSUPPORTED, "the host's interpreter has no %s of %s; convert the argument first", what, dtype);
}

static attune_status new_value(builder *b, uint16_t *out, attune_dtype dtype) {
  at_interpreter *p = b->p;
  if (p->value_count == b->capacity)
    return at_fail(ATTUNE_UNSUPPORTED, "the expression needs more than %d values; split it", b->capacity);
  p->dtypes[p->value_count] = (uint8_t)dtype;
  *out = (uint16_t)p->value_count++;
  return ATTUNE_OK;
}

/* There are never more instructions than values. */
static attune_status emit(builder *b, uint16_t *out, attune_dtype dtype, at_instruction instruction) {
  AT_TRY(new_value(b, out, dtype));
  instruction.out = *out;
  b->p->instructions[b->p->instruction_count++] = instruction;
  return ATTUNE_OK;
}

static attune_status emit_kernel(builder *b, uint16_t *out, attune_dtype dtype, at_kernel kernel,
                                 const uint16_t *arguments, int count) {
  at_instruction instruction = {.kernel = kernel, .step = AT_STEP_KERNEL};
  for (int k = 0; k < 3; k++) instruction.argument[k] = arguments[k < count ? k : 0];
  return emit(b, out, dtype, instruction);
}

/* The dtype on the way where no loop converts at once. Half and 8-bit floats go through f32, which holds them; integers
 * that f32 holds go through it to them; complex numbers through their parts' dtype. */
static attune_dtype way_point(attune_dtype to, attune_dtype from) {
  if (is_narrow(from)) return ATTUNE_F32;
  if (from == ATTUNE_C64) return to == ATTUNE_C128 ? to : ATTUNE_F32;
  if (from == ATTUNE_C128) return ATTUNE_F64;
  if (to == ATTUNE_C128) return ATTUNE_F64;
  return ATTUNE_F32; /* to C64, or from a small integer to a half */
}

static attune_status emit_convert(builder *b, uint16_t *value, attune_dtype to) {
  for (int steps = 0; steps < 4; steps++) {
    const attune_dtype from = (attune_dtype)b->p->dtypes[*value];
    if (from == to) return ATTUNE_OK;
    at_kernel kernel = b->p->isa->convert(to, from);
    attune_dtype next = to;
    if (!kernel) {
      next = way_point(to, from);
      kernel = b->p->isa->convert(next, from);
    }
    if (!kernel) break;
    AT_TRY(emit_kernel(b, value, next, kernel, value, 1));
  }
  return (attune_dtype)b->p->dtypes[*value] == to ? ATTUNE_OK : unsupported("conversion", attune_dtype_name(to));
}

static attune_status add_fixed(builder *b, uint16_t *out, const at_node *node) {
  AT_TRY(new_value(b, out, (attune_dtype)node->dtype));
  at_fixed *fixed = &b->p->fixed[b->p->fixed_count++];
  *fixed = (at_fixed){.value = *out, .dtype = node->dtype, .kind = node->dtype, .constant = node->constant};
  if (node->kind == AT_NODE_SCALAR) {
    fixed->scalar = (uint16_t)(node->index + 1);
    fixed->kind = b->expression->scalars[node->index].dtype;
  }
  return ATTUNE_OK;
}

static attune_status add_function(builder *b, uint16_t *out, const at_node *node) {
  uint16_t arguments[3] = {0};
  for (int k = 0; k < node->count; k++) {
    arguments[k] = b->value_of[node->argument[k]];
    if (!is_narrow((attune_dtype)b->p->dtypes[arguments[k]])) continue;
    AT_TRY(emit_convert(b, &arguments[k], ATTUNE_F32));
  }
  const attune_dtype dtype = (attune_dtype)b->p->dtypes[arguments[node->count - 1]];
  const at_function function = (at_function)node->function;
  at_kernel kernel = b->p->isa->function(function, dtype);
  if (!kernel) kernel = at_libm_kernel(function, dtype);
  if (!kernel) return unsupported(at_function_name(function), attune_dtype_name(dtype));
  const attune_dtype result = (attune_dtype)node->dtype;
  const attune_status status =
      emit_kernel(b, out, is_narrow(result) ? ATTUNE_F32 : result, kernel, arguments, node->count);
  return status == ATTUNE_OK ? emit_convert(b, out, result) : status;
}

static attune_status add_node(builder *b, int i) {
  const at_node *node = &b->expression->nodes[i];
  uint16_t *out = &b->value_of[i];
  const attune_dtype dtype = (attune_dtype)node->dtype;
  const bool normal = node->kind == AT_NODE_NORMAL;
  attune_status status;
  switch (node->kind) {
  case AT_NODE_CONSTANT:
  case AT_NODE_SCALAR: return add_fixed(b, out, node);
  case AT_NODE_INPUT:
    status = emit(b, out, (attune_dtype)b->expression->inputs[node->index].dtype,
                  (at_instruction){.step = AT_STEP_LOAD, .index = node->index});
    return status == ATTUNE_OK ? emit_convert(b, out, dtype) : status;
  case AT_NODE_POSITION:
    return emit(b, out, dtype,
                (at_instruction){.step = AT_STEP_PLACE, .index = (uint16_t)at_operand_of_position(b->p, node->index)});
  case AT_NODE_ELEMENT:
    return emit(b, out, dtype, (at_instruction){.step = AT_STEP_PLACE, .index = (uint16_t)at_operand_of_number(b->p)});
  case AT_NODE_UNIFORM:
  case AT_NODE_NORMAL:
    return emit(b, out, dtype,
                (at_instruction){.step = AT_STEP_DRAW,
                                 .normal = normal,
                                 .index = (uint16_t)(node->index + (normal ? b->expression->uniform_count : 0))});
  case AT_NODE_CAST: *out = b->value_of[node->argument[0]]; return emit_convert(b, out, dtype);
  default: return add_function(b, out, node);
  }
}

static attune_status check_node(const at_expression *e, int i) {
  const at_node *node = &e->nodes[i];
  const int arguments = node->kind == AT_NODE_CAST ? 1 : node->kind == AT_NODE_FUNCTION ? node->count : 0;
  bool good = node->kind <= AT_NODE_FUNCTION && attune_dtype_size((attune_dtype)node->dtype) > 0 &&
              (node->kind != AT_NODE_FUNCTION || (node->function < AT_FN_COUNT && arguments >= 1 && arguments <= 3));
  for (int k = 0; k < arguments && good; k++) good = node->argument[k] < i;
  if (node->kind == AT_NODE_INPUT) good = good && node->index < e->input_count;
  if (node->kind == AT_NODE_SCALAR) good = good && node->index < e->scalar_count;
  if (node->kind == AT_NODE_POSITION) good = good && node->index < AT_DIMS;
  return good ? ATTUNE_OK : AT_INVALID("node %d of the expression is malformed", i);
}

/* Which nodes are computed at all, and which places of the element they need. */
static attune_status look_ahead(builder *b) {
  const at_expression *e = b->expression;
  for (int i = 0; i < e->node_count; i++) AT_TRY(check_node(e, i));
  for (int i = 0; i < e->output_count; i++) {
    if (e->outputs[i] >= e->node_count) return AT_INVALID("output %d is not a node", i);
    b->wanted[e->outputs[i]] = true;
  }
  for (int i = e->node_count - 1; i >= 0; i--) {
    const at_node *node = &e->nodes[i];
    if (!b->wanted[i]) continue;
    const int arguments = node->kind == AT_NODE_CAST ? 1 : node->kind == AT_NODE_FUNCTION ? node->count : 0;
    for (int k = 0; k < arguments; k++) b->wanted[node->argument[k]] = true;
    if (node->kind == AT_NODE_POSITION && node->index >= b->p->positions) b->p->positions = node->index + 1;
    if (node->kind == AT_NODE_ELEMENT || node->kind == AT_NODE_UNIFORM || node->kind == AT_NODE_NORMAL)
      b->p->number = true;
  }
  return ATTUNE_OK;
}

static attune_status add_outputs(builder *b, const attune_dtype *dtypes) {
  at_interpreter *p = b->p;
  for (int i = 0; i < p->output_count; i++) {
    const attune_dtype dtype = dtypes ? dtypes[i] : (attune_dtype)b->expression->nodes[b->expression->outputs[i]].dtype;
    p->outputs[i] = b->value_of[b->expression->outputs[i]];
    p->output_dtypes[i] = (uint8_t)dtype;
    AT_TRY(emit_convert(b, &p->outputs[i], dtype));
  }
  for (int i = 0; i < p->output_count; i++) {
    bool made = false;
    for (int k = 0; k < p->instruction_count; k++)
      if (p->instructions[k].out == p->outputs[i]) made = p->instructions[k].step == AT_STEP_KERNEL;
    for (int k = 0; k < p->output_count; k++) made = made && (k == i || p->outputs[k] != p->outputs[i]);
    p->made[i] = made;
  }
  return ATTUNE_OK;
}

/* A register is free again after its value's last use. It may be the result's at once if elements have the same
 * size. */
static attune_status give_registers(at_interpreter *p) {
  int *last = calloc((size_t)p->value_count + 1, sizeof *last);
  uint16_t *free_list = calloc((size_t)p->value_count + 1, sizeof *free_list);
  if (!last || !free_list) {
    free(last);
    free(free_list);
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %d values", p->value_count);
  }
  for (int i = 0; i < p->instruction_count; i++)
    for (int k = 0; k < 3; k++)
      if (p->instructions[i].step == AT_STEP_KERNEL) last[p->instructions[i].argument[k]] = i;
  for (int i = 0; i < p->output_count; i++) last[p->outputs[i]] = p->instruction_count;
  for (int i = 0; i < p->fixed_count; i++) {
    last[p->fixed[i].value] = p->instruction_count;
    p->registers[p->fixed[i].value] = (uint16_t)p->register_count++;
  }
  int free_count = 0;
  for (int i = 0; i < p->instruction_count; i++) {
    const at_instruction *in = &p->instructions[i];
    const size_t size = attune_dtype_size((attune_dtype)p->dtypes[in->out]);
    uint16_t ended[3];
    int ended_count = 0;
    for (int k = 0; k < 3 && in->step == AT_STEP_KERNEL; k++) {
      const uint16_t value = in->argument[k];
      if (last[value] != i) continue;
      last[value] = -1; /* once, though it stands there twice */
      if (attune_dtype_size((attune_dtype)p->dtypes[value]) == size)
        free_list[free_count++] = p->registers[value];
      else
        ended[ended_count++] = p->registers[value];
    }
    p->registers[in->out] = free_count > 0 ? free_list[--free_count] : (uint16_t)p->register_count++;
    while (ended_count > 0) free_list[free_count++] = ended[--ended_count];
  }
  free(last);
  free(free_list);
  for (int i = 0; i < p->value_count; i++) {
    const int size = (int)attune_dtype_size((attune_dtype)p->dtypes[i]);
    p->element_bytes = size > p->element_bytes ? size : p->element_bytes;
  }
  return p->register_count <= AT_REGISTERS
             ? ATTUNE_OK
             : at_fail(ATTUNE_UNSUPPORTED, "more than %d values are live at once", AT_REGISTERS);
}

static attune_status build(builder *b, const attune_dtype *output_dtypes) {
  attune_status status = look_ahead(b);
  for (int i = 0; i < b->expression->node_count && status == ATTUNE_OK; i++)
    if (b->wanted[i]) status = add_node(b, i);
  if (status == ATTUNE_OK) status = add_outputs(b, output_dtypes);
  if (status == ATTUNE_OK) status = give_registers(b->p);
  if (status != ATTUNE_OK) return status;
  b->p->block = at_interpreter_block(b->p, 0);
  return at_small_make(b->p);
}

attune_status at_interpreter_create(at_interpreter **out, const at_expression *e, const attune_dtype *output_dtypes,
                                    const at_interpret_isa *isa) {
  const at_interpret_isa *all[4];
  *out = NULL;
  at_interpret_isas(all);
  if (e->node_count < 1 || e->node_count > AT_EXPRESSION_NODES || e->output_count < 1)
    return AT_INVALID("the expression has %d nodes and %d outputs", e->node_count, e->output_count);
  at_interpreter *p = calloc(1, sizeof *p);
  builder b = {.expression = e, .p = p, .capacity = 4 * e->node_count + 4 * AT_EXPRESSION_OUTPUTS};
  if (b.capacity > AT_JSON) b.capacity = AT_JSON;
  const size_t nodes = (size_t)e->node_count, values = (size_t)b.capacity;
  b.value_of = calloc(nodes, sizeof *b.value_of);
  b.wanted = calloc(nodes, sizeof *b.wanted);
  bool good = p && b.value_of && b.wanted;
  if (good) {
    p->isa = isa ? isa : all[0];
    p->input_count = e->input_count;
    p->output_count = e->output_count;
    p->scalar_count = e->scalar_count;
    p->uniform_count = e->uniform_count;
    for (int i = 0; i < e->input_count; i++) p->input_dtypes[i] = e->inputs[i].dtype;
    p->dtypes = calloc(values, sizeof *p->dtypes);
    p->registers = calloc(values, sizeof *p->registers);
    p->instructions = calloc(values, sizeof *p->instructions);
    p->fixed = calloc(nodes, sizeof *p->fixed);
    good = p->dtypes && p->registers && p->instructions && p->fixed;
  }
  const attune_status status = good ? build(&b, output_dtypes)
                                    : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an expression of %zu nodes", nodes);
  free(b.value_of);
  free(b.wanted);
  if (status == ATTUNE_OK)
    *out = p;
  else
    at_interpreter_destroy(p);
  return status;
}

void at_interpreter_destroy(at_interpreter *p) {
  if (!p) return;
  free(p->dtypes);
  free(p->registers);
  free(p->instructions);
  free(p->fixed);
  at_small_free(p);
  free(p);
}
