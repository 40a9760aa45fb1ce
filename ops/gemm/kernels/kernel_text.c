/* SPDX-License-Identifier: Apache-2.0
 * kernel_text.c: what the families share and no device is needed for: the text of a kernel, its macros, ranking. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/kernels/kernel.h"
#include "ops/gemm/problem/epilogue.h"

#include "gemm_epilogue_cuh.h"
#include "gemm_kernel_cuh.h"
#include "gemm_kernel_ptx_cuh.h"

void at_gemm_define_add(at_gemm_launch_spec *spec, const char *name, int value) {
  if (spec->define_count < AT_GEMM_DEFINES) spec->defines[spec->define_count++] = (at_gemm_define){name, value};
}

void at_gemm_define_tunables(at_gemm_launch_spec *spec, const at_tunables *tunables, const void *choice) {
  for (const at_tunable *t = tunables->rows; t < tunables->rows + tunables->count; t++)
    for (int i = 0; i < 2; i++)
      if (t->of[i].macro) at_gemm_define_add(spec, t->of[i].macro, (int)at_tunable_get(&t->of[i], choice));
}

int at_gemm_dtype_number(unsigned dtype) {
  switch (dtype) {
  case ATTUNE_F64: return 1;
  case ATTUNE_F16: return 2;
  case ATTUNE_BF16: return 3;
  case ATTUNE_C64: return 4;
  case ATTUNE_C128: return 5;
  case ATTUNE_I8:
  case ATTUNE_F8E4M3:
  case ATTUNE_F8E5M2: return 2; /* halves are what tensor cores get */
  default: return 0;
  }
}

void at_gemm_launch_spec_start(at_gemm_launch_spec *spec, const at_gemm *g) {
  const int64_t in = (int64_t)attune_dtype_size((attune_dtype)g->dtype),
                out = (int64_t)attune_dtype_size((attune_dtype)g->dtype_out);
  *spec = (at_gemm_launch_spec){.arguments = {.lda = g->lda * in,
                                              .ldb = g->ldb * in,
                                              .ldc = g->ldc * out,
                                              .ldd = g->ldd * out,
                                              .stride_a = g->stride_a * in,
                                              .stride_b = g->stride_b * in,
                                              .stride_c = g->stride_c * out,
                                              .stride_d = g->stride_d * out,
                                              .m = (int32_t)g->m,
                                              .n = (int32_t)g->n,
                                              .k = (int32_t)g->k,
                                              .batch = (int32_t)g->batch}};
  at_gemm_define_add(spec, "IN", at_gemm_dtype_number(g->dtype));
  at_gemm_define_add(spec, "OUT", at_gemm_dtype_number(g->dtype_out));
}

/* After a change of A and B. */
static void define_epilogue(at_gemm_launch_spec *spec, const at_gemm *g) {
  const attune_gemm_epilogue *e = &g->epilogue;
  const size_t out = attune_dtype_size((attune_dtype)g->dtype_out);
  if (!at_gemm_has_epilogue(g)) return;
  const at_gemm_define all[] = {
      {"EPILOGUE", 1},
      {"SWAPPED", spec->swapped},
      {"MATRICES", at_gemm_epilogue_matrices(g)},
      {"BIAS", e->bias},
      {"BIAS_TYPE", at_gemm_dtype_number(e->bias_dtype)},
      {"ACTIVATION", e->activation},
      {"AUX", e->aux},
      {"GRADIENT", e->gradient},
      {"GATED", g->gated != ATTUNE_GATED_NONE},
      {"RESIDUAL", e->residual},
      {"CLAMP", e->clamp},
      {"SCALE_D", g->scaling.scale_d},
      {"BYTES_BIAS", g->alignment < 16 ? g->alignment : 16},
      {"BYTES_AUX", e->aux == ATTUNE_AUX_INPUT ? at_gemm_grain(g, out, g->n, g->ld_aux, g->stride_aux) : 16},
      {"BYTES_RESIDUAL", e->residual ? at_gemm_grain(g, out, g->n, g->ld_residual, g->stride_residual) : 16}};
  for (size_t i = 0; i < AT_COUNT(all); i++) at_gemm_define_add(spec, all[i].name, all[i].value);
}

bool at_gemm_launch_spec_of(at_gemm_launch_spec *out, const at_gemm_kernels *family, const at_gemm *g,
                            const at_machine *machine, const at_configuration *configuration) {
  if (!family->spec(out, g, machine, configuration)) return false;
  define_epilogue(out, g);
  if (g->pointers) at_gemm_define_add(out, "POINTERS", 1);
  return true;
}

bool at_gemm_in_registers(const at_gemm *g) {
  const bool writes_mask = at_gemm_writes_aux(g) && g->epilogue.aux == ATTUNE_AUX_RELU_MASK;
  return !writes_mask && !g->epilogue.bias_gradient;
}

void at_gemm_launch_spec_swap(at_gemm_launch_spec *r) {
  at_gemm_arguments *a = &r->arguments;
  const at_gemm_arguments was = *a;
  r->swapped = true;
  a->lda = was.ldb, a->ldb = was.lda;
  a->stride_a = was.stride_b, a->stride_b = was.stride_a;
  a->m = was.n, a->n = was.m;
}

at_epilogue_arguments at_epilogue_arguments_of(const at_gemm *g, const at_gemm_operands *o) {
  return (at_epilogue_arguments){.bias = o->bias,
                                 .residual = o->residual,
                                 .aux = o->aux,
                                 .ld_aux = g->ld_aux,
                                 .ld_residual = g->ld_residual,
                                 .stride_aux = g->stride_aux,
                                 .stride_residual = g->stride_residual,
                                 .clamp_min = o->clamp_min,
                                 .clamp_max = o->clamp_max,
                                 .scale = o->scale_d};
}

void at_gemm_bind(at_gemm_arguments *out, const at_gemm *g, bool swapped, const at_gemm_operands *o) {
  out->a = swapped ? o->b : o->a;
  out->b = swapped ? o->a : o->b;
  out->c = g->c == AT_C_SEPARATE ? o->c : o->d;
  out->d = o->d;
  if (at_gemm_has_epilogue(g)) out->epilogue = at_epilogue_arguments_of(g, o);
  out->alpha = o->alpha;
  out->alpha_imag = o->alpha_imag;
  out->beta = g->c == AT_C_NONE ? 0.0 : at_gemm_scalar_in((attune_dtype)g->dtype, o->beta);
  out->beta_imag = g->c == AT_C_NONE ? 0.0 : at_gemm_scalar_in((attune_dtype)g->dtype, o->beta_imag);
}

int at_gemm_grain(const at_gemm *g, size_t element, int64_t columns, int64_t ld, int64_t stride) {
  uint64_t bits = g->alignment | 16u;
  if (columns > 1) bits |= (uint64_t)ld * element;
  if (g->batch > 1) bits |= (uint64_t)stride * element;
  return (int)(bits & (~bits + 1));
}

void at_gemm_define_matrices(at_gemm_launch_spec *spec, const at_gemm *g) {
  const size_t in = attune_dtype_size((attune_dtype)g->dtype), out = attune_dtype_size((attune_dtype)g->dtype_out);
  const bool reads_c = g->c != AT_C_NONE;
  at_gemm_define_add(spec, "TRANS_A", g->trans_a);
  at_gemm_define_add(spec, "TRANS_B", g->trans_b);
  at_gemm_define_add(spec, "BYTES_A", at_gemm_grain(g, in, at_gemm_cols_a(g), g->lda, g->stride_a));
  at_gemm_define_add(spec, "BYTES_B", at_gemm_grain(g, in, at_gemm_cols_b(g), g->ldb, g->stride_b));
  at_gemm_define_add(spec, "BYTES_C", reads_c ? at_gemm_grain(g, out, g->n, g->ldc, g->stride_c) : 16);
  at_gemm_define_add(spec, "BYTES_D", at_gemm_grain(g, out, g->n, g->ldd, g->stride_d));
  at_gemm_define_add(spec, "READS_C", reads_c);
}

void at_gemm_launch_spec_grid(at_gemm_launch_spec *r, int64_t blocks, int split, int64_t batch, int64_t layers,
                              int threads, int shared_bytes) {
  r->config = (at_jit_config){.grid = {(unsigned)(blocks * split), (unsigned)batch, (unsigned)layers},
                              .block = {(unsigned)threads},
                              .shared_bytes = (unsigned)shared_bytes,
                              .dependent = true};
  if (split > 1) r->config.cluster[0] = (unsigned)split;
}

static bool spec_has_epilogue(const at_gemm_launch_spec *spec) {
  for (int i = 0; i < spec->define_count; i++)
    if (strcmp(spec->defines[i].name, "EPILOGUE") == 0) return true;
  return false;
}

attune_status at_gemm_text(char **out, const at_gemm_kernels *family, const at_gemm_launch_spec *spec, bool before) {
  const bool apart = before && family->before_text;
  const char *first = !apart && family->first[0] ? family->first[0] : "",
             *second = !apart && family->first[1] ? family->first[1] : "",
             *text = apart ? family->before_text : family->text;
  const char *epilogue = !apart && spec_has_epilogue(spec) ? at_gemm_epilogue_cuh : "";
  const int defines = apart ? spec->before_defines : spec->define_count;
  const size_t size = strlen(at_gemm_kernel_cuh) + strlen(at_gemm_kernel_ptx_cuh) + strlen(epilogue) + strlen(first) +
                      strlen(second) + strlen(text) + 48 * (size_t)(AT_GEMM_DEFINES + 1);
  size_t at = 0;
  *out = malloc(size);
  if (!*out) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the text of a kernel");
  bool fits = true;
  for (int i = 0; i < defines; i++)
    fits = fits && at_append(*out, size, &at, "#define %s %d\n", spec->defines[i].name, spec->defines[i].value);
  if (before && !apart) fits = fits && at_append(*out, size, &at, "#define BEFORE 1\n");
  fits = fits && at_append(*out, size, &at, "%s%s%s%s%s%s", at_gemm_kernel_cuh, at_gemm_kernel_ptx_cuh, epilogue, first,
                           second, text);
  if (fits) return ATTUNE_OK;
  free(*out);
  *out = NULL;
  return at_fail(ATTUNE_INTERNAL, "the source of %s is too long", family->file);
}

int at_gemm_resident(const at_machine *machine, int threads, int registers, int shared_bytes, int most) {
  const int by_shared = machine->shared_bytes / (shared_bytes + AT_BLOCK_RESERVED),
            by_registers = AT_PROCESSOR_REGISTERS / ((registers + 7) / 8 * 8 * threads);
  const int blocks = at_lesser_int(at_lesser_int(by_shared, by_registers), most);
  return blocks < 1 ? 1 : blocks;
}

static double cost_at(const char *list, int i, size_t size, size_t cost) {
  double out;
  memcpy(&out, list + (size_t)i * size + cost, sizeof out);
  return out;
}

int at_gemm_insert(void *list, int count, int most, size_t size, size_t cost, const void *item) {
  char *all = list;
  const double mine = cost_at(item, 0, size, cost);
  int at = count;
  while (at > 0 && cost_at(all, at - 1, size, cost) > mine) at--;
  if (at >= most) return count;
  const int kept = count < most ? count : most - 1;
  memmove(all + (size_t)(at + 1) * size, all + (size_t)at * size, (size_t)(kept - at) * size);
  memcpy(all + (size_t)at * size, item, size);
  return kept + 1;
}

int at_gemm_prepend(void *list, int count, const void *all, int all_count, int most, double part, size_t size,
                    size_t cost) {
  const double bound = count > 0 ? part * cost_at(list, 0, size, cost) : 0.0;
  int more = 0;
  while (more < most && more < all_count && cost_at(all, more, size, cost) < bound) more++;
  memmove((char *)list + (size_t)more * size, list, (size_t)count * size);
  memcpy(list, all, (size_t)more * size);
  return count + more;
}

int at_gemm_offer(at_configuration *out, int max, const at_tunables *tunables, const void *list, int count, size_t size,
                  size_t cost, double hopeless) {
  int given = 0;
  for (int i = 0; i < count && given < max; i++)
    if ((hopeless == 0.0 || cost_at(list, i, size, cost) < hopeless * cost_at(list, 0, size, cost)) &&
        at_tunables_format(tunables, &out[given], (const char *)list + (size_t)i * size))
      given++;
  return given;
}
