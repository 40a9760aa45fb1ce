/* SPDX-License-Identifier: Apache-2.0
 * verify.c: runs a plan between guard zones on poisoned output and compares every element with the trusted result; then
 * with special values in operands and scalars. */
#include "tuning/verify.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <math.h>
#include <stdio.h>
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
  bool damaged; /* a plan wrote where it must not: the operands must be made again */

  /* Special values. */
  void *planted;                /* one buffer's contents, while they are made */
  int contents[AT_MAX_BUFFERS]; /* what the device's buffers hold, as special_contents counts */
  at_plan *base;                /* the default, made when a plan loses something; NULL: not yet, or there is none */
  bool base_made;
  uint32_t base_lost; /* rules that the default breaks: nobody is held to them */
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
  at_plan_destroy(v->base);
  at_operand_set_destroy(v->set);
  free(v->host);
  free(v->pristine);
  free(v->planted);
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
  memset(v->contents, 0, sizeof v->contents);
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

/* The result on ordinary data. */
static attune_status check_numbers(at_verifier *v, const at_plan *plan, double *max_error) {
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

/* ---- special values ---- */

static size_t largest_buffer(const at_verifier *v) {
  size_t bytes = 0;
  for (int i = 0; i < v->set->buffer_count; i++)
    if (v->set->buffers[i].bytes > bytes) bytes = v->set->buffers[i].bytes;
  return bytes;
}

/* Buffer i of launch `which` to the device: as it was, or with what is planted there. An output that is no input is
 * poisoned. v->host has the pure inputs as they were since check_numbers went well. */
static attune_status put_buffer(at_verifier *v, int which, int i) {
  const at_buffer *buffer = &v->set->buffers[i];
  void *to = v->set->pointers[0][i];
  if (!buffer->input) return attune_fill(v->set->stream, to, 0xFF, buffer->bytes);
  const int contents = which < 0 ? 0 : v->op->special_contents(v->problem, which, i);
  if (!buffer->output && v->contents[i] == contents) return ATTUNE_OK;
  const void *from = buffer->output ? (const void *)v->pristine : v->host + offset_of(v, i);
  if (contents) {
    memcpy(v->planted, from, buffer->bytes);
    v->op->special_plant(v->problem, which, i, v->planted);
    from = v->planted;
  }
  v->contents[i] = contents;
  attune_status status = attune_copy(v->set->stream, to, from, buffer->bytes);
  if (status == ATTUNE_OK && contents)
    status = attune_stream_synchronize(v->set->stream); /* v->planted is free again */
  return status;
}

/* One launch with special values; *lost is what the plan breaks. */
static attune_status run_special(at_verifier *v, const at_plan *plan, int which, uint32_t *lost) {
  uint64_t operands[AT_OPERANDS_BYTES / 8];
  attune_stream *stream = v->set->stream;
  char *output = v->host + offset_of(v, v->output);
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < v->set->buffer_count && status == ATTUNE_OK; i++) status = put_buffer(v, which, i);
  v->op->special_bind(v->problem, which, v->set->pointers[0], operands);
  if (status == ATTUNE_OK) status = plan->launch(plan, operands, stream);
  if (status == ATTUNE_OK)
    status = attune_copy(stream, output, v->set->pointers[0][v->output], v->set->buffers[v->output].bytes);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream);
  if (status == ATTUNE_OK) status = v->op->special_compare(v->reference, which, output, lost);
  return status;
}

/* The default, as a program gets it when nothing is tuned: its first configuration. NULL: there is none. */
static const at_implementation *default_of(const at_verifier *v, at_configuration *first) {
  attune_device *device = v->set->stream->device;
  const at_implementation *base = at_registry_default(v->op, v->problem, device);
  *first = (at_configuration){""};
  return base && base->configurations && base->configurations(v->problem, device, first, 1) == 1 ? base : NULL;
}

/* The rules that the default breaks in launch `which` count for nobody from then on. */
static void ask_default(at_verifier *v, int which) {
  uint32_t lost = 0;
  at_configuration first;
  const at_implementation *base = v->base_made ? NULL : default_of(v, &first);
  if (base) (void)at_plan_create(&v->base, v->op, base, &first, v->problem, v->set->stream->device);
  v->base_made = true;
  if (v->base && run_special(v, v->base, which, &lost) == ATTUNE_OK) v->base_lost |= lost;
}

static attune_status begin_special(at_verifier *v) {
  if (!v->planted) v->planted = at_alloc_large(largest_buffer(v));
  return v->planted ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to verify special values");
}

/* The next plan finds everything as this one did. */
static void end_special(at_verifier *v) {
  for (int i = 0; i < v->set->buffer_count; i++)
    if (v->set->buffers[i].input && !v->set->buffers[i].output && put_buffer(v, -1, i) != ATTUNE_OK) v->damaged = true;
}

static int special_count(const at_verifier *v) {
  return v->op->special_count ? v->op->special_count(v->problem) : 0;
}

/* A rule that the default breaks too is no reason to refuse a plan: without tuning the program would get the default.
 * But whatever wins must keep what the default keeps; so the default itself is not asked. */
static attune_status check_special(at_verifier *v, const at_plan *plan) {
  const int count = special_count(v);
  at_configuration first;
  if (!count || (plan->implementation == default_of(v, &first) && strcmp(plan->configuration.text, first.text) == 0))
    return ATTUNE_OK;
  attune_status status = begin_special(v);
  uint32_t broken = 0;
  for (int which = 0; which < count && status == ATTUNE_OK && !broken; which++) {
    uint32_t lost = 0;
    status = run_special(v, plan, which, &lost);
    if (status == ATTUNE_OK && (lost & ~v->base_lost)) ask_default(v, which);
    broken = lost & ~v->base_lost;
  }
  end_special(v);
  if (status != ATTUNE_OK || !broken) return status;
  char names[96];
  at_verifier_rules(v, broken, names, sizeof names);
  return wrong(plan, names);
}

attune_status at_verifier_check(at_verifier *v, const at_plan *plan, double *max_error) {
  attune_status status = check_numbers(v, plan, max_error);
  if (status == ATTUNE_OK) status = check_special(v, plan);
  if (status != ATTUNE_OK && status != ATTUNE_BAD_DATA) v->damaged = true;
  return status;
}

uint32_t at_verifier_default_lost(const at_verifier *v) {
  return v->base_lost;
}

attune_status at_verifier_lost(at_verifier *v, const at_plan *plan, uint32_t *lost) {
  double error = 0.0;
  *lost = 0;
  attune_status status = check_numbers(v, plan, &error);
  if (status == ATTUNE_OK) status = begin_special(v);
  if (status != ATTUNE_OK) return status;
  for (int which = 0; which < special_count(v) && status == ATTUNE_OK; which++) {
    uint32_t here = 0;
    status = run_special(v, plan, which, &here);
    *lost |= here;
  }
  end_special(v);
  if (status != ATTUNE_OK) v->damaged = true;
  return status;
}

void at_verifier_rules(const at_verifier *v, uint32_t rules, char *out, size_t size) {
  size_t at = 0;
  *out = '\0';
  for (int bit = 0; bit < 32; bit++)
    if (rules >> bit & 1)
      if (!at_append(out, size, &at, "%s%s", at ? ", " : "", v->op->special_name(bit))) return;
}
