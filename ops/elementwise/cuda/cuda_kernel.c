/* SPDX-License-Identifier: Apache-2.0
 * cuda_kernel.c: puts a kernel's text together, and the argument that a launch of it takes. */
#include "ops/elementwise/cuda/cuda_kernel.h"

#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/cuda/cuda_source.h"
#include "src/base/dtype.h"

#include "device_complex_cuh.h"
#include "device_cuh.h"
#include "device_double_cuh.h"
#include "device_gamma_cuh.h"
#include "device_math_cuh.h"
#include "device_neural_cuh.h"
#include "device_operators_cuh.h"
#include "device_random_cuh.h"
#include "device_single_cuh.h"
#include "elementwise_philox_h.h"
#include "elementwise_transforms_h.h"

static bool draws(const at_expression *e) {
  return e->uniform_count + e->normal_count > 0;
}

static uint64_t draw_blocks(const at_cuda_problem *p) {
  return ((uint64_t)p->layout.count + 3) / 4;
}

/* The kernel's one argument: what all forms have, then the form's own. */
static void describe(at_arguments *f, const at_cuda_problem *p, const at_cuda_choice *c, const at_cuda_launch *slots) {
  const uint64_t count = (uint64_t)p->layout.count, blocks = draw_blocks(p);
  int slot_at = -1, random_at = -1;
  if (f->source) at_write(f->source, "struct at_arguments {\n");
  (void)at_argument(f, "at_u64", "count", &count, 1);
  if (draws(p->expression)) {
    random_at = at_argument(f, "at_u64", "seed", NULL, 1);
    (void)at_argument(f, "at_u64", "offset", NULL, 1);
    (void)at_argument(f, "const at_u64 *", "state", NULL, 1);
    (void)at_argument(f, "at_u64", "blocks", &blocks, 1);
  }
  if (slots->slot_count > 0) {
    slot_at = f->count;
    if (f->source) at_write(f->source, "  at_scalar s[%d];\n", slots->slot_count);
    f->count += 2 * slots->slot_count;
  }
  const int tensor_at = f->count;
  for (int k = 0; k < p->layout.operand_count; k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    const uint64_t start = o.letter == 'p' ? (uint64_t)p->layout.operands[k].offset : 0;
    char name[16] = "";
    size_t at = 0;
    (void)at_append(name, sizeof name, &at, "%c%d", o.letter, o.number);
    (void)at_argument(f, o.letter == 'p' ? "at_i64" : o.letter == 'o' ? "char *" : "const char *", name, &start, 1);
  }
  at_cuda_form_of(c->form)->fields(f, p, c);
  if (f->source) at_write(f->source, "};\n");
  if (f->launch) {
    f->launch->tensor_at = tensor_at;
    f->launch->slot_at = slot_at;
    f->launch->random_at = random_at;
    f->launch->word_count = f->count;
  }
}

static bool is_complex(const at_expression *e) {
  for (int i = 0; i < e->node_count; i++)
    if (at_dtype_kind_of((attune_dtype)e->nodes[i].dtype) == AT_KIND_COMPLEX) return true;
  return false;
}

/* Does it compute with f64, strictly? c64 does. Its gamma function is a text of its own. */
static bool is_double(const at_cuda_problem *p, bool gamma) {
  const at_expression *e = p->expression;
  bool wide = false, found = !gamma;
  for (int i = 0; i < e->node_count; i++) {
    const at_node *node = &e->nodes[i];
    const attune_dtype dtype = (attune_dtype)node->dtype;
    const bool is_wide = dtype == ATTUNE_F64 || at_dtype_kind_of(dtype) == AT_KIND_COMPLEX;
    wide = wide || is_wide;
    found = found || (is_wide && node->kind == AT_NODE_FUNCTION &&
                      (node->function == AT_FN_LGAMMA || node->function == AT_FN_TGAMMA));
  }
  return wide && found && !p->reduced;
}

static void add_tunables(at_writer *s, const at_cuda_problem *p, const at_cuda_choice *c) {
  at_write(s, "#define AT_EMBEDDED 1\n#define BLOCK %d\n#define LOADS %d\n#define VECTOR %d\n", c->block,
           c->loads ? c->loads : 1, c->bytes ? at_cuda_width(p, c->bytes) : 1);
  at_write(s,
           "#define PERSISTENT %d\n#define LOAD %d\n#define STORE %d\n#define TILE %d\n#define WIDE %d\n#define "
           "DEPENDENT %d\n",
           c->persistent, c->load, c->store, c->tile, c->wide, c->dependent);
}

/* Its words see none of the tunables' macros; nor do these change with what it may have defined. */
static void add_function(at_writer *s, const at_cuda_problem *p, const at_cuda_choice *c) {
  static const char *const tunables[] = {"AT_EMBEDDED", "BLOCK", "LOADS", "VECTOR", "PERSISTENT",
                                         "LOAD",        "STORE", "TILE",  "WIDE",   "DEPENDENT"};
  for (int turn = 0; turn < 2; turn++) {
    for (size_t i = 0; i < AT_COUNT(tunables); i++) at_write(s, "#undef %s\n", tunables[i]);
    if (turn == 0) at_generate_raw_text(s, p);
  }
  add_tunables(s, p, c);
}

static void add_random(at_writer *s, const at_cuda_problem *p) {
  at_write(s, "struct at_once {\n");
  if (draws(p->expression)) at_write(s, "  at_random_draws draws;\n");
  at_write(s, "};\nAT_INLINE void at_prepare(const at_arguments &a, at_once &once) {\n");
  if (draws(p->expression))
    at_write(s, "  once.draws.seed = a.state ? a.state[0] : a.seed;\n"
                "  once.draws.first = ((a.state ? a.state[1] : 0) + a.offset) / 4u;\n");
  at_write(s, "}\n");
}

at_kernel_source at_cuda_source(const at_cuda_problem *p, const char *text) {
  return (at_kernel_source){.file = "elementwise.cu",
                            .text = text,
                            .entry = AT_CUDA_ENTRY,
                            .foreign = p->expression->raw,
                            .logged = p->as_written};
}

attune_status at_cuda_generate(char **out, const at_cuda_problem *p, const at_cuda_choice *c) {
  at_writer s = {0};
  at_cuda_launch slots;
  *out = NULL;
  if (!at_generate_slots(&slots, p->expression))
    return at_fail(ATTUNE_UNSUPPORTED, "the expression uses its scalars in more than %d dtypes", AT_CUDA_SLOTS);
  if (p->expression->raw && !p->expression->function)
    return at_fail(ATTUNE_UNSUPPORTED, "the problem uses a function in CUDA C whose source this process does not have; "
                                       "call attune_elementwise_cuda with it");
  const at_cuda_form_type *form = at_cuda_form_of(c->form);
  if (!form || !at_cuda_supports(p, c, c->dependent ? AT_CUDA_DEPENDENT : form->capability))
    return at_fail(ATTUNE_UNSUPPORTED, "this form of the kernel does not support the layout of the operands");
  at_arguments fields = {.source = &s};
  add_tunables(&s, p, c);
  if (draws(p->expression)) at_write(&s, "%s%s", at_elementwise_philox_h, at_elementwise_transforms_h);
  at_write(&s, "%s%s%s%s%s%s", at_device_cuh, at_device_single_cuh, is_double(p, false) ? at_device_double_cuh : "",
           is_double(p, true) ? at_device_gamma_cuh : "", at_device_math_cuh, at_device_neural_cuh);
  if (is_complex(p->expression)) at_write(&s, "%s", at_device_complex_cuh);
  if (is_complex(p->expression) && p->expression->raw) at_write(&s, "%s", at_device_operators_cuh);
  if (draws(p->expression)) at_write(&s, "%s", at_device_random_cuh);
  if (p->expression->raw) add_function(&s, p, c);
  describe(&fields, p, c, &slots);
  add_random(&s, p);
  const attune_status status = at_generate_element(&s, p);
  if (status == ATTUNE_OK) form->functions(&s, p, c);
  at_write(&s, "%s", form->skeleton);
  if (status != ATTUNE_OK || s.failed || fields.count > AT_CUDA_WORDS) {
    free(s.data);
    return status != ATTUNE_OK ? status
           : s.failed          ? at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a kernel's text")
                               : at_fail(ATTUNE_UNSUPPORTED, "the kernel would take more than %d bytes of arguments",
                                         8 * AT_CUDA_WORDS);
  }
  *out = s.data;
  return ATTUNE_OK;
}

attune_status at_cuda_plan(at_cuda_launch *out, const at_cuda_problem *p, const at_cuda_choice *c, int processors,
                           int blocks) {
  const at_cuda_form_type *form = at_cuda_form_of(c->form);
  *out = (at_cuda_launch){0};
  if (!at_generate_slots(out, p->expression) || !form || !form->supports(p, c))
    return at_fail(ATTUNE_UNSUPPORTED, "this form of the kernel does not support the layout of the operands");
  at_arguments fields = {.launch = out};
  at_cuda_launch slots = *out;
  describe(&fields, p, c, &slots);
  uint64_t grid = p->layout.count > 0 ? form->blocks(p, c) : 0;
  const uint64_t resident = (uint64_t)processors * (uint64_t)blocks;
  if (c->persistent && grid > resident) grid = resident;
  if (grid > INT32_MAX)
    return at_fail(ATTUNE_UNSUPPORTED, "the grid would have %llu blocks; should be at most %d",
                   (unsigned long long)grid, INT32_MAX);
  if (p->layout.count > 0 && grid == 0)
    return at_fail(ATTUNE_UNSUPPORTED, "the operands are too large for this form of the kernel");
  out->config.grid[0] = (unsigned)grid;
  out->config.block[0] = c->block;
  out->config.dependent = c->dependent > 0; /* at_begin and at_wait of device.cuh */
  return ATTUNE_OK;
}

void at_cuda_bind_tensors(at_cuda_launch *launch, const at_cuda_problem *p, void *const *tensors) {
  for (int k = 0; k < at_cuda_tensor_count(p); k++)
    launch->words[launch->tensor_at + k] = (uint64_t)(uintptr_t)tensors[k];
}

void at_cuda_bind_random(at_cuda_launch *launch, uint64_t seed, uint64_t offset, const uint64_t *state) {
  if (launch->random_at < 0) return;
  uint64_t *words = &launch->words[launch->random_at];
  words[0] = seed;
  words[1] = offset;
  words[2] = (uint64_t)(uintptr_t)state;
}
