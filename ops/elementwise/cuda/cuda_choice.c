/* SPDX-License-Identifier: Apache-2.0
 * cuda_choice.c: the tunables of kernels: as text, which of them a problem is worth, and what alignment allows. */
#include <string.h>

#include "ops/elementwise/cuda/cuda_source.h"

typedef at_cuda_choice choice;

static const char *const form_words[] = {
    [AT_FORM_VECTOR] = "vector",   [AT_FORM_ROWS] = "rows", [AT_FORM_TRANSPOSE] = "transpose",
    [AT_FORM_STRIDED] = "strided", [AT_FORM_BULK] = "bulk", [AT_FORM_COUNT] = NULL};
static const char *const load_words[] = {"plain", "stream", "past_l1", "constant", NULL};
static const char *const store_words[] = {"plain", "stream", NULL};

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                             \
  WORD("form", form, NULL, form_words, 0,                                                                              \
       "`vector`: all operands contiguous, or one element; `rows`: contiguous along the innermost dimension, or the "  \
       "same "                                                                                                         \
       "element along it, such as a bias; `transpose`: some inputs contiguous along another dimension, by tiles in "   \
       "shared "                                                                                                       \
       "memory; `strided`: any strides; `bulk`: as `vector`, brought into shared memory by the copy engine "           \
       "(capability 9.0)")                                                                                             \
  NUMBER("bytes", bytes, NULL, 1, 64, AT_POWERS | AT_LEFT_OUT,                                                         \
         "of a vector of the widest element type; narrower types have as many elements")                               \
  NUMBER("loads", loads, NULL, 1, 8, AT_LEFT_OUT,                                                                      \
         "vectors of a thread in flight; `rows`: rows of a thread; `strided`: elements of a thread; `bulk`: tiles on " \
         "their way")                                                                                                  \
  NUMBER("tile", tile, NULL, 32, 64, AT_POWERS | AT_LEFT_OUT, "columns and rows of a tile of `transpose`")             \
  NUMBER("block", block, NULL, 32, 1024, AT_POWERS, "threads of a block")                                              \
  WORD("load", load, NULL, load_words, AT_LEFT_OUT,                                                                    \
       "left out: as usual; `stream`: read once, evicted first; `past_l1`: not kept in the L1 cache; `constant`: "     \
       "past L1, "                                                                                                     \
       "by the path for memory that nothing writes")                                                                   \
  WORD("store", store, NULL, store_words, AT_LEFT_OUT, "left out: as usual; `stream`: evicted first")                  \
  NUMBER("persistent", persistent, NULL, 1, 1, AT_LEFT_OUT,                                                            \
         "1: the grid is as large as the device holds at once and steps over the work")                                \
  NUMBER("wide", wide, NULL, 1, 1, AT_LEFT_OUT, "1: numbers of elements have 64 bits")                                 \
  NUMBER("dependent", dependent, NULL, 1, 2, AT_LEFT_OUT,                                                              \
         "the kernel may begin before the one in front of it in the stream is done, and waits before it touches "      \
         "memory; 1: "                                                                                                 \
         "lets the next one begin first of all, 2: when it has waited (capability 9.0)")

const at_tunables at_cuda_tunables = AT_TUNABLES(TUNABLES);

static bool is_valid(const at_cuda_choice *c) {
  if (c->block < 32 || c->block > 1024 || !at_is_power_of_two(c->block)) return false;
  if (c->form == AT_FORM_STRIDED) return c->loads >= 1 && c->loads <= 8 && !c->bytes && !c->tile;
  if (!at_is_power_of_two(c->bytes) || c->bytes > 64 || c->wide) return false;
  if (c->form == AT_FORM_TRANSPOSE) return (c->tile == 32 || c->tile == 64) && c->bytes <= 16 && !c->loads;
  return c->loads >= 1 && c->loads <= 8 && !c->tile;
}

bool at_cuda_choice_parse(at_cuda_choice *out, const at_configuration *t) {
  *out = (at_cuda_choice){0};
  return at_tunables_parse(&at_cuda_tunables, out, t) && is_valid(out);
}

bool at_cuda_choice_format(at_configuration *out, const at_cuda_choice *c) {
  return at_tunables_format(&at_cuda_tunables, out, c);
}

bool at_cuda_supports(const at_cuda_problem *p, const at_cuda_choice *c, int capability) {
  const at_cuda_form_type *form = at_cuda_form_of(c->form);
  at_cuda_launch slots;
  if (!form || !is_valid(c) || capability < form->capability || !at_generate_slots(&slots, p->expression)) return false;
  /* AT_LOAD_CONSTANT: of memory that is not written while the kernel runs, not even the one before it. */
  if (c->load == 3 && (p->in_place || c->dependent)) return false;
  if (c->dependent && capability < AT_CUDA_DEPENDENT) return false;
  return form->supports(p, c);
}

/* Up to 16 million elements a kernel takes little more than what lies between two kernels. One that begins while the
 * one before it ends has less of that: the first choices once more so, behind the very first. They let the next kernel
 * begin when they have waited, not before: what reads early, and trusts that only the kernel in front of it is not
 * done, is right to. */
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

const at_cuda_form_type *at_cuda_form_of(int form) {
  static const at_cuda_form_type *const forms[AT_FORM_COUNT] = {
      [AT_FORM_VECTOR] = &at_form_vector,   [AT_FORM_ROWS] = &at_form_rows, [AT_FORM_TRANSPOSE] = &at_form_transpose,
      [AT_FORM_STRIDED] = &at_form_strided, [AT_FORM_BULK] = &at_form_bulk,
  };
  return form >= 0 && form < AT_FORM_COUNT ? forms[form] : NULL;
}
