/* SPDX-License-Identifier: Apache-2.0
 * arrays.c: see arrays.h. */
#include "ops/gemm/problem/arrays.h"

#include "ops/gemm/problem/epilogue.h"

const char *const at_gemm_pointers_names[] = {"none", "host", "device", NULL};

bool at_gemm_read_pointers(const char *name, uint8_t *out) {
  for (uint8_t i = ATTUNE_POINTERS_HOST; i <= ATTUNE_POINTERS_DEVICE; i++)
    if (strcmp(name, at_gemm_pointers_names[i]) == 0) return (*out = i) != 0;
  return false;
}

/* ---- the problem ---- */

static attune_status check_no_strides(const attune_gemm_problem *p) {
  const int64_t strides[] = {p->stride_a, p->stride_b, p->stride_c, p->stride_d};
  for (int i = 0; i < 4; i++)
    if (strides[i])
      return AT_INVALID("problem.stride_%c is %lld, but problem.pointers is %s (%d); should be 0", "abcd"[i],
                        (long long)strides[i], at_gemm_pointers_names[p->pointers], p -> pointers);
  return ATTUNE_OK;
}

attune_status at_gemm_check_pointers(const attune_gemm_problem *p) {
  if (p->pointers > ATTUNE_POINTERS_DEVICE)
    return AT_INVALID("problem.pointers is %d; should be none (0), host (1) or device (2)", p->pointers);
  if (p->alignment && p->pointers != ATTUNE_POINTERS_DEVICE)
    return AT_INVALID("problem.alignment is %d, but problem.pointers is %s (%d); should be 0", p->alignment,
                      at_gemm_pointers_names[p->pointers], p->pointers);
  if (p->alignment & (p->alignment - 1))
    return AT_INVALID("problem.alignment is %d; should be 0 or a power of two, up to %d", p->alignment, AT_ALIGNMENT);
  if (!p->pointers) return ATTUNE_OK;
  if (at_gemm_asks_epilogue(p))
    return AT_INVALID("problem.epilogue is not empty, but problem.pointers is %s (%d); should be empty",
                      at_gemm_pointers_names[p->pointers], p->pointers);
  if (at_gemm_8bit(p->dtype))
    return AT_INVALID("problem.dtype is %s, but problem.pointers is %s (%d); should be none (0)",
                      attune_dtype_name(p->dtype), at_gemm_pointers_names[p->pointers], p->pointers);
  return check_no_strides(p);
}

/* Bytes rounded up, in elements. */
static int64_t apart(int64_t ld, int64_t columns, unsigned dtype) {
  const int64_t element = (int64_t)attune_dtype_size((attune_dtype)dtype), bytes = ld * columns * element;
  return (bytes + AT_ALIGNMENT - 1) / AT_ALIGNMENT * AT_ALIGNMENT / element;
}

void at_gemm_normalise_pointers(const attune_gemm_problem *p, at_gemm *g) {
  g->pointers = p->pointers;
  if (g->batch < 2) return;
  g->stride_a = apart(g->lda, at_gemm_cols_a(g), g->dtype);
  g->stride_b = apart(g->ldb, at_gemm_cols_b(g), g->dtype);
  g->stride_d = apart(g->ldd, g->n, g->dtype_out);
  if (g->c != AT_C_NONE) g->stride_c = apart(g->ldc, g->n, g->dtype_out);
}

void at_gemm_add_arrays(const at_gemm *g, at_buffer *out, int *count) {
  const int64_t in = (int64_t)attune_dtype_size((attune_dtype)g->dtype),
                result = (int64_t)attune_dtype_size((attune_dtype)g->dtype_out);
  const int64_t steps[] = {g->stride_a * in, g->stride_b * in, g->stride_d * result, g->stride_c * result};
  for (int i = AT_GEMM_A; i <= (g->c == AT_C_SEPARATE ? AT_GEMM_C : AT_GEMM_D); i++)
    out[(*count)++] = (at_buffer){.bytes = (size_t)g->batch * sizeof(void *),
                                  .alignment = g->alignment > sizeof(void *) ? g->alignment : sizeof(void *),
                                  .dtype = ATTUNE_U64,
                                  .input = true,
                                  .addresses = true,
                                  .on_host = g->pointers == ATTUNE_POINTERS_HOST,
                                  .address_of = i,
                                  .address_step = (size_t)steps[i]};
}

/* ---- the operands ---- */

typedef struct named_array {
  const void *const *pointers;
  char name;
  bool needed;
  size_t element; /* what each pointer is a multiple of */
} named_array;

enum { ARRAYS = 4 };

static void arrays_of(const attune_gemm_problem *p, const attune_gemm_operands *o, named_array out[ARRAYS]) {
  const size_t in = attune_dtype_size(at_gemm_part(p->dtype)),
               result = attune_dtype_size(at_gemm_part(p->dtype_out ? p->dtype_out : p->dtype));
  const bool products = at_gemm_reads_inputs(p, o);
  out[0] = (named_array){o->a, 'a', products, in};
  out[1] = (named_array){o->b, 'b', products, in};
  out[2] = (named_array){o->c, 'c', !at_gemm_beta_is_0(p->dtype, o), result};
  out[3] = (named_array){o->d, 'd', true, result};
}

static attune_memory_kind kind_of(const attune_device *device, const void *pointer) {
  attune_pointer_info info = {.kind = ATTUNE_KIND_UNKNOWN};
  const at_message kept = at_message_keep();
  if (device->backend.memory->pointer_info((attune_device *)(uintptr_t)device, &info, pointer) != ATTUNE_OK)
    info.kind = ATTUNE_KIND_UNKNOWN;
  (void)at_message_settle(&kept, ATTUNE_OK);
  return info.kind;
}

static attune_status check_side(const attune_device *device, const attune_gemm_problem *p, const named_array *array) {
  const attune_memory_kind kind = kind_of(device, array->pointers);
  if (p->pointers == ATTUNE_POINTERS_HOST && kind == ATTUNE_KIND_DEVICE)
    return AT_INVALID("operands.%c is in memory of %s, but problem.pointers is host (1); should be device (2)",
                      array->name, device->name);
  if (p->pointers == ATTUNE_POINTERS_DEVICE && (kind == ATTUNE_KIND_HOST || kind == ATTUNE_KIND_UNKNOWN))
    return AT_INVALID("operands.%c is in host memory, but problem.pointers is device (2); should be host (1), or the "
                      "array in memory of %s",
                      array->name, device->name);
  return ATTUNE_OK;
}

attune_status at_gemm_check_sides(const attune_device *device, const attune_gemm_problem *p,
                                  const attune_gemm_operands *o) {
  named_array each[ARRAYS];
  if (device->properties.kind == ATTUNE_DEVICE_HOST)
    return p->pointers != ATTUNE_POINTERS_DEVICE
               ? ATTUNE_OK
               : AT_INVALID("problem.pointers is device (2), but the stream is one of the host; should be host (1)");
  arrays_of(p, o, each);
  for (int i = 0; i < ARRAYS; i++)
    if (each[i].needed && each[i].pointers) AT_TRY(check_side(device, p, &each[i]));
  return ATTUNE_OK;
}

/* Is no pointer NULL or misaligned? Adds their bits to *bits. */
static attune_status check_pointers(const named_array *array, int64_t batch, uintptr_t *bits) {
  for (int64_t i = 0; i < batch; i++) {
    const uintptr_t pointer = (uintptr_t)array->pointers[i];
    if (AT_UNLIKELY(!pointer))
      return AT_INVALID("operands.%c[%lld] is NULL; should point to the matrix", array->name, (long long)i);
    if (AT_UNLIKELY(pointer & (array->element - 1)))
      return AT_INVALID("operands.%c[%lld] is %p, which is not aligned for its elements; should be a multiple of %zu",
                        array->name, (long long)i, array->pointers[i], array->element);
    *bits |= pointer;
  }
  return ATTUNE_OK;
}

static attune_status check_array(const attune_gemm_problem *p, const named_array *array, uintptr_t *bits) {
  if (!array->pointers)
    return AT_INVALID("operands.%c is NULL; should be an array of %lld pointers%s", array->name,
                      (long long)at_gemm_batch(p), array->name == 'c' ? ", or operands.beta be 0" : "");
  if ((uintptr_t)array->pointers % sizeof(void *))
    return AT_INVALID("operands.%c is %p, which is not aligned for pointers; should be a multiple of %zu", array->name,
                      (const void *)array->pointers, sizeof(void *));
  if (p->pointers == ATTUNE_POINTERS_HOST) return check_pointers(array, at_gemm_batch(p), bits);
  const size_t promised = p->alignment ? p->alignment : array->element;
  if (promised < array->element)
    return AT_INVALID("problem.alignment is %d; should be 0 or at least %zu, for the elements of operands.%c",
                      p->alignment, array->element, array->name);
  *bits |= promised;
  return ATTUNE_OK;
}

static bool are_equal(const attune_gemm_problem *p, const named_array *x, const named_array *y) {
  return x->pointers == y->pointers ||
         (p->pointers == ATTUNE_POINTERS_HOST &&
          memcmp(x->pointers, y->pointers, (size_t)at_gemm_batch(p) * sizeof(void *)) == 0);
}

attune_status at_gemm_check_arrays(const attune_gemm_problem *p, const attune_gemm_operands *o, at_gemm_use *use) {
  named_array each[ARRAYS];
  uintptr_t bits = 0;
  arrays_of(p, o, each);
  for (int i = 0; i < ARRAYS; i++)
    if (each[i].needed) AT_TRY(check_array(p, &each[i], &bits));
  use->alignment = at_alignment_of(bits);
  use->c = !each[2].needed ? AT_C_NONE : are_equal(p, &each[2], &each[3]) ? AT_C_INPLACE : AT_C_SEPARATE;
  return ATTUNE_OK;
}

attune_status at_gemm_fail_array_alignment(const attune_gemm_problem *p, const attune_gemm_operands *o, int least) {
  named_array each[ARRAYS];
  int64_t at = 0;
  arrays_of(p, o, each);
  const named_array *array = each;
  while (!array->needed || (uintptr_t)array->pointers[at] % (uintptr_t)least == 0)
    if (!array->needed || ++at == at_gemm_batch(p)) array++, at = 0;
  const uint8_t alignment = at_alignment_of((uintptr_t)array->pointers[at]);
  return AT_INVALID("operands.%c[%lld] is aligned to %d byte%s; should be aligned to %d, like those that the plan was "
                    "created with, or create one with these",
                    array->name, (long long)at, alignment, alignment == 1 ? "" : "s", least);
}
