/* SPDX-License-Identifier: Apache-2.0
 * cuda_choice.c: the tunables of kernels: as text, which of them a problem is worth, and what alignment allows. */
#include <string.h>

#include "ops/elementwise/cuda/cuda_source.h"

static const char *const load_names[] = {"plain", "stream", "past_l1", "constant"};
static const char *const store_names[] = {"plain", "stream"};

static bool word(uint8_t *out, const at_configuration *text, const char *key, const char *const *names, size_t count) {
  char value[24];
  *out = 0;
  if (!at_configuration_get_text(text, key, value, sizeof value)) return true;
  for (size_t i = 0; i < count; i++)
    if (strcmp(value, names[i]) == 0) {
      *out = (uint8_t)i;
      return true;
    }
  return false;
}

/* 0 when the key is left out. */
static bool number(int *out, const at_configuration *text, const char *key, int most) {
  int64_t value = 0;
  char any[24];
  *out = 0;
  if (!at_configuration_get_text(text, key, any, sizeof any)) return true;
  if (!at_configuration_get(text, key, &value) || value < 1 || value > most) return false;
  *out = (int)value;
  return true;
}

static bool is_valid(const at_cuda_choice *c) {
  if (c->block < 32 || c->block > 1024 || !at_is_power_of_two(c->block)) return false;
  if (c->form == AT_FORM_STRIDED) return c->loads >= 1 && c->loads <= 8 && !c->bytes && !c->tile;
  if (!at_is_power_of_two(c->bytes) || c->bytes > 64 || c->wide) return false;
  if (c->form == AT_FORM_TRANSPOSE) return (c->tile == 32 || c->tile == 64) && c->bytes <= 16 && !c->loads;
  return c->loads >= 1 && c->loads <= 8 && !c->tile;
}

bool at_cuda_choice_parse(at_cuda_choice *out, const at_configuration *t) {
  char form[24];
  int loads, bytes, persistent, tile, wide, dependent, block;
  *out = (at_cuda_choice){0};
  if (!at_configuration_get_text(t, "form", form, sizeof form)) return false;
  while (out->form < AT_FORM_COUNT && strcmp(form, at_cuda_form_of(out->form)->name) != 0) out->form++;
  if (out->form == AT_FORM_COUNT || !word(&out->load, t, "load", load_names, AT_COUNT(load_names)) ||
      !word(&out->store, t, "store", store_names, AT_COUNT(store_names)) || !number(&loads, t, "loads", 8) ||
      !number(&bytes, t, "bytes", 64) || !number(&persistent, t, "persistent", 1) || !number(&tile, t, "tile", 64) ||
      !number(&wide, t, "wide", 1) || !number(&dependent, t, "dependent", 2) || !number(&block, t, "block", 1024))
    return false;
  out->loads = (uint8_t)loads;
  out->bytes = (uint8_t)bytes;
  out->persistent = (uint8_t)persistent;
  out->tile = (uint8_t)tile;
  out->wide = (uint8_t)wide;
  out->dependent = (uint8_t)dependent;
  out->block = (uint16_t)block;
  at_configuration again;
  return is_valid(out) && at_cuda_choice_format(&again, out) && strcmp(again.text, t->text) == 0;
}

bool at_cuda_choice_format(at_configuration *out, const at_cuda_choice *c) {
  *out = (at_configuration){""};
  bool ok = at_configuration_put_text(out, "form", at_cuda_form_of(c->form)->name);
  if (c->bytes) ok = ok && at_configuration_put(out, "bytes", c->bytes);
  if (c->loads) ok = ok && at_configuration_put(out, "loads", c->loads);
  if (c->tile) ok = ok && at_configuration_put(out, "tile", c->tile);
  ok = ok && at_configuration_put(out, "block", c->block);
  if (c->load) ok = ok && at_configuration_put_text(out, "load", load_names[c->load]);
  if (c->store) ok = ok && at_configuration_put_text(out, "store", store_names[c->store]);
  if (c->persistent) ok = ok && at_configuration_put(out, "persistent", 1);
  if (c->wide) ok = ok && at_configuration_put(out, "wide", 1);
  if (c->dependent) ok = ok && at_configuration_put(out, "dependent", c->dependent);
  return ok;
}

bool at_cuda_supports(const at_cuda_problem *p, const at_cuda_choice *c, int capability) {
  const at_cuda_form_type *form = at_cuda_form_of(c->form);
  at_cuda_launch slots;
  if (!form || !is_valid(c) || capability < form->capability || !at_generate_slots(&slots, p->expression)) return false;
  /* AT_LOAD_CONSTANT: of what nobody writes while the kernel runs, not even the one before it. */
  if (c->load == 3 && (p->in_place || c->dependent)) return false;
  if (c->dependent && capability < AT_CUDA_DEPENDENT) return false;
  return form->supports(p, c);
}

/* Up to 16 million elements a kernel takes little more than what lies between two kernels. One that begins while the one
 * before it ends has less of that: the first choices once more so, behind the very first. They let the next kernel begin
 * when they have waited, not before: what reads early, and trusts that only the kernel in front of it is not done, is
 * right to. */
static int with_dependent(const at_cuda_problem *p, int capability, at_cuda_choice *out, int count, int max) {
  enum { TWINS = 6, MOST_ELEMENTS = 1 << 24 };
  at_cuda_choice twins[TWINS];
  int found = 0;
  if (p->layout.count > MOST_ELEMENTS) return count;
  for (int i = 0; i < count && i < TWINS && count + found < max; i++) {
    twins[found] = out[i];
    twins[found].dependent = 2;
    if (at_cuda_supports(p, &twins[found], capability)) found++;
  }
  if (found == 0) return count;
  memmove(&out[1 + found], &out[1], (size_t)(count - 1) * sizeof *out);
  memcpy(&out[1], twins, (size_t)found * sizeof *out);
  return count + found;
}

int at_cuda_candidates(const at_cuda_problem *p, int capability, at_cuda_choice *out, int max) {
  static const uint8_t many[] = {AT_FORM_VECTOR, AT_FORM_ROWS, AT_FORM_BULK, AT_FORM_TRANSPOSE, AT_FORM_STRIDED},
                       few[] = {AT_FORM_VECTOR, AT_FORM_ROWS, AT_FORM_STRIDED, AT_FORM_TRANSPOSE};
  const uint8_t *order = at_cuda_is_small(p) ? few : many;
  const size_t forms = at_cuda_is_small(p) ? AT_COUNT(few) : AT_COUNT(many);
  at_cuda_choice some[64];
  int count = 0;
  for (size_t f = 0; f < forms; f++) {
    const int found = at_cuda_form_of(order[f])->candidates(p, some, (int)AT_COUNT(some));
    for (int i = 0; i < found && count < max; i++)
      if (at_cuda_supports(p, &some[i], capability)) out[count++] = some[i];
  }
  return with_dependent(p, capability, out, count, max);
}

static int64_t alignment_of(const at_cuda_problem *p, const void *const *tensors, int k, int64_t head) {
  const at_cuda_operand o = at_cuda_operand_of(p, k);
  const uintptr_t address = (uintptr_t)tensors[k] + (uintptr_t)(head * (int64_t)o.bytes);
  int64_t alignment = 256;
  while (address % (uintptr_t)alignment != 0) alignment /= 2;
  return alignment;
}

/* The head after which the least aligned tensor is aligned best. */
void at_cuda_align(at_cuda_problem *p, const void *const *tensors) {
  int64_t best = -1;
  const int most = p->layout.dims == 1 && p->layout.count >= 64 ? 16 : 1; /* elements: one byte each has the most */
  p->head = 0;
  for (int head = 0; head < most; head++) {
    int64_t least = 16;
    for (int k = 0; k < at_cuda_tensor_count(p); k++) {
      const int64_t stride = p->layout.operands[k].strides[0], alignment = alignment_of(p, tensors, k, head);
      if (head > 0 && stride != 0 && stride != 1) return;
      if (at_cuda_moves(p, k) && alignment < least) least = alignment;
    }
    if (least <= best) continue;
    best = least;
    p->head = head;
    for (int k = 0; k < at_cuda_tensor_count(p); k++)
      p->alignment[k] = (uint16_t)alignment_of(p, tensors, k, at_cuda_moves(p, k) ? head : 0);
  }
}
