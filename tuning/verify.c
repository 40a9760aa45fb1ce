/* SPDX-License-Identifier: Apache-2.0
 * verify.c: runs a plan between guard zones on poisoned output and compares every element with the trusted result. */
#include "tuning/verify.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct at_verifier {
  const at_op *op;
  const void *problem;
  at_operand_set *set;
  void *reference;
  char *host;          /* the arena as it came back from the device */
  char *pristine;      /* input-and-output buffers as they were first, at their place in the arena; NULL: none */
  uint64_t input_hash; /* of all pure inputs */
  int output;          /* index of the output buffer */
  at_random *random;
  bool damaged; /* a plan wrote where it must not: the operands must be made anew */
};

static size_t offset_of(const at_verifier *v, int buffer) {
  return (size_t)((char *)v->set->pointers[0][buffer] - v->set->arena);
}

static attune_status fetch(at_verifier *v) {
  const attune_status status = attune_copy(v->set->stream, v->host, v->set->arena, v->set->set_bytes);
  return status == ATTUNE_OK ? attune_stream_synchronize(v->set->stream) : status;
}

static uint64_t hash_inputs(const at_verifier *v) {
  uint64_t hash = 0;
  for (int i = 0; i < v->set->buffer_count; i++)
    if (!v->set->buffers[i].output)
      hash = XXH3_64bits_withSeed(v->host + offset_of(v, i), v->set->buffers[i].bytes, hash);
  return hash;
}

/* Is every byte of the arena that belongs to no buffer still the guard byte? */
static bool guards_unchanged(const at_verifier *v) {
  size_t at = 0;
  for (int i = 0; i <= v->set->buffer_count; i++) {
    const size_t end = i < v->set->buffer_count ? offset_of(v, i) : v->set->set_bytes;
    for (; at < end; at++)
      if ((unsigned char)v->host[at] != AT_GUARD_BYTE) return false;
    if (i < v->set->buffer_count) at += v->set->buffers[i].bytes;
  }
  return true;
}

attune_status at_verifier_create(at_verifier **out, const at_op *op, const void *problem, attune_stream *stream,
                                 at_random *random) {
  *out = NULL;
  at_verifier *v = calloc(1, sizeof *v);
  if (!v) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a verifier");
  v->op = op;
  v->problem = problem;
  v->random = random;
  attune_status status = at_operand_set_create(&v->set, op, problem, stream, random, 1, SIZE_MAX, true);
  if (status == ATTUNE_OK) {
    v->host = at_alloc_large(v->set->set_bytes);
    if (!v->host)
      status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to verify %zu bytes of operands", v->set->set_bytes);
    for (int i = 0; i < v->set->buffer_count; i++)
      if (v->set->buffers[i].output) v->output = i;
  }
  if (status == ATTUNE_OK) status = fetch(v);
  if (status == ATTUNE_OK) v->input_hash = hash_inputs(v);
  if (status == ATTUNE_OK && v->set->buffers[v->output].input) {
    v->pristine = at_alloc_large(v->set->buffers[v->output].bytes);
    if (!v->pristine)
      status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to verify an in-place problem");
    else
      memcpy(v->pristine, v->host + offset_of(v, v->output), v->set->buffers[v->output].bytes);
  }
  if (status == ATTUNE_OK)
    status = op->reference_create(&v->reference, problem, stream->device, stream, v->set->pointers[0]);
  if (status != ATTUNE_OK) {
    at_verifier_destroy(v);
    return status;
  }
  *out = v;
  return ATTUNE_OK;
}

void at_verifier_destroy(at_verifier *v) {
  if (!v) return;
  if (v->reference) v->op->reference_destroy(v->reference);
  at_operand_set_destroy(v->set);
  free(v->host);
  free(v->pristine);
  free(v);
}

/* The same operands again, as the first plan found them: random data of one source is the same each time. */
static attune_status renew(at_verifier *v) {
  at_operand_set *set = NULL;
  const attune_status status =
      at_operand_set_create(&set, v->op, v->problem, v->set->stream, v->random, 1, SIZE_MAX, true);
  if (status != ATTUNE_OK) return status;
  at_operand_set_destroy(v->set);
  v->set = set;
  v->damaged = false;
  return ATTUNE_OK;
}

/* Poisons the output (all bits set: a NaN in each dtype), or restores it where it is an input too; runs the plan;
 * fetches everything. */
static attune_status run(at_verifier *v, const at_plan *plan) {
  attune_status status = v->damaged ? renew(v) : ATTUNE_OK;
  if (status != ATTUNE_OK) return status;
  attune_stream *stream = v->set->stream;
  void *output = v->set->pointers[0][v->output];
  const size_t bytes = v->set->buffers[v->output].bytes;
  status = v->pristine ? attune_copy(stream, output, v->pristine, bytes) : attune_fill(stream, output, 0xFF, bytes);
  if (status == ATTUNE_OK) status = plan->launch(plan, v->set->operands[0], stream);
  return status == ATTUNE_OK ? fetch(v) : status;
}

static attune_status wrong(const at_plan *plan, const char *what) {
  return at_fail(ATTUNE_BAD_DATA, "%s %s %s", plan->implementation->name, plan->configuration.text, what);
}

attune_status at_verifier_check(at_verifier *v, const at_plan *plan, double *max_error) {
  *max_error = INFINITY;
  attune_status status = run(v, plan);
  v->damaged = status != ATTUNE_OK || !guards_unchanged(v) || hash_inputs(v) != v->input_hash;
  if (status != ATTUNE_OK) return status;
  const char *output = v->host + offset_of(v, v->output);
  const size_t bytes = v->set->buffers[v->output].bytes;
  if (v->damaged) return wrong(plan, guards_unchanged(v) ? "changes its inputs" : "writes outside its operands");
  status = v->op->reference_compare(v->reference, output, max_error);
  if (status != ATTUNE_OK) return status;
  if (!(*max_error <= 1.0)) return wrong(plan, "is outside the contract's tolerance");
  if (v->op->deterministic(v->problem)) {
    const uint64_t first = XXH3_64bits(output, bytes);
    for (int i = 0; i < 3 && status == ATTUNE_OK; i++) {
      status = run(v, plan);
      if (status == ATTUNE_OK && XXH3_64bits(output, bytes) != first)
        status = wrong(plan, "gives other bits at each run");
    }
  }
  return status;
}
