/* SPDX-License-Identifier: Apache-2.0
 * generate_user_function.c: a function of the program's own in a kernel's text. This is the one place where a caller's
 * words get there. They stand behind what all kernels begin with. */
#include "ops/elementwise/cuda/cuda_source.h"
#include "ops/elementwise/ir/user_function.h"
#include "ops/elementwise/language/user_function_expression.h"

/* at_call calls it where its name is no macro of the kernel's yet. */
void at_generate_raw_text(at_writer *s, const at_cuda_problem *p) {
  const at_user_function *raw = p->expression->function;
  if (p->as_written)
    at_write(s, "#line 1 \"%s\"\n%s\n#line 1 \"elementwise.cu\"\n", raw->own_name, raw->own_text);
  else
    at_write(s, "%s\n", raw->text);
  at_write(
      s,
      "template <class... at_types> AT_INLINE decltype(auto) at_call(at_types &...at_v) {\n  return %s(at_v...);\n}\n",
      p->as_written ? raw->own_name : raw->name);
}

static void add_arguments(at_writer *s, const at_expression *e, bool outputs) {
  for (int k = 0; k < e->input_count + e->scalar_count; k++) at_write(s, "%sat_v%d", k ? ", " : "", k);
  for (int k = 0; k < e->output_count && outputs; k++) at_write(s, ", at_y%d", k);
}

/* Its own names begin with at_, so that the function's can be any other. */
void at_generate_raw_element(at_writer *s, const at_cuda_problem *p) {
  const at_expression *e = p->expression;
  const attune_dtype dtype = (attune_dtype)e->nodes[e->outputs[0]].dtype;
  const char *type = at_cuda_value(dtype);
  int slot = 0;
  at_write(s,
           "AT_INLINE void at_element(const at_arguments &at_a, const at_once &at_o, const at_in &at_x, at_out &at_z) "
           "{\n");
  for (int i = 0; i < e->input_count; i++) at_write(s, "  %s at_v%d = at_cast<%s>(at_x.i%d);\n", type, i, type, i);
  for (int i = 0; i < e->scalar_count; i++)
    at_write(s, "  %s at_v%d = at_scalar_value<%s>(at_a.s[%d]);\n", type, e->input_count + i, at_cuda_tag(dtype),
             slot++);
  if (e->output_count == 1) {
    at_write(s, "  at_z.o0 = at_to<%s>(at_call(", at_cuda_tag((attune_dtype)p->outputs[0]));
    add_arguments(s, e, false);
    at_write(s, "));\n}\n");
    return;
  }
  for (int k = 0; k < e->output_count; k++) at_write(s, "  %s at_y%d{};\n", type, k);
  at_write(s, "  at_call(");
  add_arguments(s, e, true);
  at_write(s, ");\n");
  for (int k = 0; k < e->output_count; k++)
    at_write(s, "  at_z.o%d = at_to<%s>(at_y%d);\n", k, at_cuda_tag((attune_dtype)p->outputs[k]), k);
  at_write(s, "}\n");
}
