/* SPDX-License-Identifier: Apache-2.0
 * inner.c: see inner.h. */
#include "ops/gemm/inner.h"

#include <stdlib.h>

#ifdef AT_WITH_CUDA
#include "src/cuda/jit/jit.h"
#endif

const at_implementation *at_gemm_inner(size_t i, const at_gemm *product, attune_device *device) {
  const at_implementation *one = at_gemm_op.implementations[i];
  return at_registry_usable(one, product, device) ? one : NULL;
}

bool at_gemm_inner_any(const at_gemm *product, attune_device *device) {
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++)
    if (at_gemm_inner(i, product, device)) return true;
  return false;
}

int at_gemm_inner_prefix(const at_implementation *one, at_configuration *out, int count) {
  int kept = 0;
  for (int i = 0; i < count; i++) {
    at_configuration whole;
    size_t at = 0;
    if (!at_append(whole.text, sizeof whole.text, &at, "product=%s%s%s", one->name, out[i].text[0] ? "," : "",
                   out[i].text))
      continue;
    out[kept++] = whole;
  }
  return kept;
}

const at_implementation *at_gemm_inner_read(const at_implementation *self, const at_configuration *whole,
                                            const attune_device *device, at_configuration *inner) {
  char name[64];
  const char *from = strstr(whole->text, "product=");
  if (!from || !at_configuration_get_text(whole, "product", name, sizeof name)) return NULL;
  const char *comma = strchr(from, ',');
  at_copy_text(inner->text, sizeof inner->text, comma ? comma + 1 : "");
  const at_implementation *one = at_registry_find(&at_gemm_op, name, device);
  return one == self ? NULL : one;
}

int at_gemm_inner_configurations(const at_gemm *product, attune_device *device, at_configuration *out, int max,
                                 int most) {
  int count = 0;
  for (size_t i = 0; i < at_gemm_op.implementation_count && count < max; i++) {
    const at_implementation *one = at_gemm_inner(i, product, device);
    if (!one || (one->fallback && count > 0)) continue;
    const int room = max - count < most ? max - count : most;
    count += at_gemm_inner_prefix(one, out + count, one->configurations(one, product, device, out + count, room));
  }
  return count;
}

int at_gemm_inner_neighbours(const at_implementation *self, const at_gemm *product, attune_device *device,
                             const at_configuration *leader, at_configuration *out, int max) {
  at_configuration inner;
  const at_implementation *one = at_gemm_inner_read(self, leader, device, &inner);
  return one && one->neighbours
             ? at_gemm_inner_prefix(one, out, one->neighbours(one, product, device, &inner, out, max))
             : 0;
}

void at_gemm_inner_prepare_many(const at_implementation *self, const at_gemm *product, attune_device *device,
                                const at_configuration *all, int count) {
  at_configuration *inner = calloc((size_t)count, sizeof *inner);
  for (size_t i = 0; inner && i < at_gemm_op.implementation_count; i++) {
    const at_implementation *one = at_gemm_op.implementations[i];
    int found = 0;
    if (!one->prepare_many) continue;
    for (int j = 0; j < count; j++) found += at_gemm_inner_read(self, &all[j], device, &inner[found]) == one;
    if (found > 0) one->prepare_many(one, product, device, inner, found);
  }
  free(inner);
}

attune_status at_gemm_inner_compile(const at_implementation *self, const at_gemm *product, attune_device *device,
                                    const at_configuration *configuration, bool *made) {
  at_configuration inner;
  const at_implementation *one = at_gemm_inner_read(self, configuration, device, &inner);
  if (made) *made = false;
  if (!one)
    return at_fail(ATTUNE_NOT_FOUND, "configuration \"%s\" is not one of %s for this problem", configuration->text,
                   self->name);
  return one->compile ? one->compile(one, product, device, &inner, made) : ATTUNE_OK;
}

attune_status at_gemm_inner_plan(at_plan **out, const at_plan *plan, const at_gemm *product) {
  at_configuration inner;
  const at_implementation *one = at_gemm_inner_read(plan->implementation, &plan->configuration, plan->device, &inner);
  if (!one || !at_registry_usable(one, product, plan->device))
    return at_fail(ATTUNE_NOT_FOUND, "configuration is \"%s\"; should be product= and an implementation of products",
                   plan->configuration.text);
  return at_plan_create(out, &at_gemm_op, one, &inner, product, plan->device);
}

bool at_gemm_inner_untuned(const at_gemm *product, attune_device *device, at_configuration *out) {
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *one = at_gemm_inner(i, product, device);
    if (one && one->untuned && one->untuned(one, product, device, out)) return at_gemm_inner_prefix(one, out, 1) == 1;
  }
  return false;
}

/* Adds those of `words` that are not in the text yet. */
static bool add_words(char *out, size_t size, char *words) {
  char *rest = NULL;
  for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    size_t at = strlen(out);
    if (strstr(out, word)) continue;
    if (!at_append(out, size, &at, "%s%s", at ? " " : "", word)) return false;
  }
  return true;
}

bool at_gemm_inner_depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                           char *out, size_t size) {
  char words[512];
  at_configuration inner;
  const at_implementation *chosen = configuration ? at_gemm_inner_read(self, configuration, device, &inner) : NULL;
  *out = '\0';
#ifdef AT_WITH_CUDA
  if (device->properties.kind == ATTUNE_DEVICE_CUDA && !at_jit_depends(out, size)) return false;
#endif
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *one = at_gemm_op.implementations[i];
    if (!one->depends || one->depends == self->depends || strcmp(one->backend, self->backend) != 0) continue;
    if (configuration && one != chosen) continue;
    if (!one->depends(one, configuration ? &inner : NULL, device, words, sizeof words)) return false;
    if (!add_words(out, size, words)) return false;
  }
  return true;
}
