/* SPDX-License-Identifier: Apache-2.0
 * numerical_check.c: runs a plan between guard zones on poisoned output and compares every element with the trusted
 * result; then with special values in operands and scalars. */
#include "tuning/measure/numerical_check.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/dtype.h"
#include "src/host/threads.h"
#include "src/process/limit.h"
#include "tuning/measure/staging.h"

/* Fill of the outputs before a launch, by turn. A real that was not written is a NaN, which nothing expects; an
 * integer is one of two that are far apart, so that it is wrong in one of the turns. Special values may well be
 * expected to give NaN: there it is a finite number that is no result of theirs. */
typedef enum turn { TURN_USUAL, TURN_OTHER, TURN_SPECIAL, TURNS } turn;
static const unsigned char POISON_REAL[TURNS] = {0xFF, 0xFF, 0x7B}, POISON_INTEGER[TURNS] = {0x7B, 0x84, 0x7B};

struct at_numerical_check {
  const at_op *op;
  const void *problem;
  at_operand_set *set;
  void *reference;
  char *host;                     /* the arena as it came back from the device */
  char *pristine[AT_MAX_BUFFERS]; /* what is input and output, as it was first; NULL: it is not both */
  uint64_t input_hash;            /* of all pure inputs */
  double other[AT_MAX_SCALARS];   /* scalars that are not the usual ones */
  at_outputs outputs;             /* as the latest launch left them */
  at_random *random;
  bool damaged; /* a plan wrote where it must not: the operands must be made again */

  /* Special values. */
  void *planted;                /* one buffer's contents, while they are made */
  int contents[AT_MAX_BUFFERS]; /* what the device's buffers hold, as special_contents counts */
  at_plan *base;                /* the default, made when a plan loses something; NULL: not yet, or there is none */
  bool base_made;
  uint32_t base_lost; /* rules that the default breaks, which no candidate is held to */
};

static size_t offset_of(const at_numerical_check *v, int buffer) {
  return (size_t)((char *)v->set->pointers[0][buffer] - v->set->arena);
}

/* Everything to host memory. */
static attune_status fetch(at_numerical_check *v) {
  return at_staging_fetch(v->set->stream, v->host, v->set->arena, v->set->set_bytes);
}

/* Fetches the guard bytes around each buffer. */
static attune_status fetch_guards(at_numerical_check *v) {
  attune_status status = ATTUNE_OK;
  size_t at = 0;
  for (int i = 0; i <= v->set->buffer_count && status == ATTUNE_OK; i++) {
    const size_t end = i < v->set->buffer_count ? offset_of(v, i) : v->set->set_bytes;
    if (end > at) status = attune_copy(v->set->stream, v->host + at, v->set->arena + at, end - at);
    if (i < v->set->buffer_count) at = end + v->set->buffers[i].bytes;
  }
  return status;
}

/* The outputs to host memory; nothing else is looked at. */
static attune_status fetch_outputs(at_numerical_check *v) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < v->set->buffer_count && status == ATTUNE_OK; i++)
    if (v->set->buffers[i].output)
      status =
          at_staging_fetch(v->set->stream, v->host + offset_of(v, i), v->set->pointers[0][i], v->set->buffers[i].bytes);
  return status;
}

/* ---- hashes of large buffers, by all CPUs, while nothing is measured ---- */

enum { PARTS = 64, PART_LEAST = 1 << 20 };

typedef struct large {
  const char *from;
  size_t bytes;
  uint64_t hashes[PARTS];
} large;

static void hash_share(void *arg, const at_team *team) {
  large *l = arg;
  for (int part = team->rank; part < PARTS; part += team->size) {
    const size_t first = l->bytes / PARTS * (size_t)part,
                 end = part + 1 < PARTS ? l->bytes / PARTS * (size_t)(part + 1) : l->bytes;
    l->hashes[part] = XXH3_64bits(l->from + first, end - first);
  }
}

/* Of the inputs that are no outputs, or of the outputs. */
static uint64_t hash_buffers(const at_numerical_check *v, bool outputs) {
  uint64_t hash = 0;
  for (int i = 0; i < v->set->buffer_count; i++) {
    large l = {.from = v->host + offset_of(v, i), .bytes = v->set->buffers[i].bytes};
    if (v->set->buffers[i].output != outputs) continue;
    at_parallel(l.bytes < PART_LEAST ? 1 : at_cpu_count(), hash_share, &l);
    hash = XXH3_64bits_withSeed(l.hashes, sizeof l.hashes, hash);
  }
  return hash;
}

/* Is every byte of the arena that belongs to no buffer still the guard byte? */
static bool guards_unchanged(const at_numerical_check *v) {
  size_t at = 0;
  for (int i = 0; i <= v->set->buffer_count; i++) {
    const size_t end = i < v->set->buffer_count ? offset_of(v, i) : v->set->set_bytes;
    for (; at < end; at++)
      if ((unsigned char)v->host[at] != AT_GUARD_BYTE) return false;
    if (i < v->set->buffer_count) at += v->set->buffers[i].bytes;
  }
  return true;
}

/* Keeps what is input and output, and says where the outputs are found. */
static attune_status keep_outputs(at_numerical_check *v) {
  for (int i = 0; i < v->set->buffer_count; i++) {
    const at_buffer *buffer = &v->set->buffers[i];
    if (!buffer->output) continue;
    v->outputs.bytes[i] = v->host + offset_of(v, i);
    if (!buffer->input) continue;
    v->pristine[i] = at_alloc_touched(buffer->bytes);
    if (!v->pristine[i]) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to verify an in-place problem");
    at_staging_copy(v->pristine[i], v->outputs.bytes[i], buffer->bytes);
  }
  return ATTUNE_OK;
}

/* The same for every plan of the check. */
static void draw_scalars(at_numerical_check *v) {
  for (int i = 0; i < v->set->scalar_count; i++) {
    const at_scalar *scalar = &v->set->scalars[i];
    int index = i;
    do v->other[i] = at_random_number(v->random, index, scalar->range);
    while (v->other[i] == scalar->usual && (index += AT_MAX_SCALARS) < 64 * AT_MAX_SCALARS);
  }
}

attune_status at_numerical_check_create(at_numerical_check **out, const at_op *op, const void *problem,
                                        attune_stream *stream, at_random *random) {
  *out = NULL;
  at_numerical_check *v = calloc(1, sizeof *v);
  if (!v) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a numerical check");
  v->op = op;
  v->problem = problem;
  v->random = random;
  attune_status status = at_operand_set_create(&v->set, op, problem, stream, random, 1, SIZE_MAX, true);
  if (status == ATTUNE_OK) {
    v->host = at_alloc_touched(v->set->set_bytes);
    if (!v->host)
      status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to verify %zu bytes of operands", v->set->set_bytes);
  }
  if (status == ATTUNE_OK) status = at_limit_look();
  if (status == ATTUNE_OK) status = fetch(v);
  if (status == ATTUNE_OK) status = keep_outputs(v);
  if (status == ATTUNE_OK) {
    v->input_hash = hash_buffers(v, false);
    draw_scalars(v);
    status = at_limit_look();
  }
  if (status == ATTUNE_OK)
    status = op->reference->create(&v->reference, problem, stream->device, stream, v->set->pointers[0]);
  if (status != ATTUNE_OK) {
    at_numerical_check_destroy(v);
    return status;
  }
  *out = v;
  return ATTUNE_OK;
}

void at_numerical_check_destroy(at_numerical_check *v) {
  if (!v) return;
  if (v->reference) v->op->reference->destroy(v->reference);
  at_plan_destroy(v->base);
  at_operand_set_destroy(v->set);
  for (int i = 0; i < AT_MAX_BUFFERS; i++) free(v->pristine[i]);
  free(v->host);
  free(v->planted);
  free(v);
}

/* Pointers among the inputs are other ones in another arena. */
static attune_status renew_hash(at_numerical_check *v) {
  bool addresses = false;
  for (int i = 0; i < v->set->buffer_count; i++) addresses = addresses || v->set->buffers[i].addresses;
  if (!addresses) return ATTUNE_OK;
  const attune_status status = fetch(v);
  if (status == ATTUNE_OK) v->input_hash = hash_buffers(v, false);
  return status;
}

/* The same operands again, as the first plan found them: random data of one source is the same each time. */
static attune_status renew(at_numerical_check *v) {
  at_operand_set *set = NULL;
  const attune_status status =
      at_operand_set_create(&set, v->op, v->problem, v->set->stream, v->random, 1, SIZE_MAX, true);
  if (status != ATTUNE_OK) return status;
  at_operand_set_destroy(v->set);
  v->set = set;
  memset(v->contents, 0, sizeof v->contents);
  v->damaged = false;
  return renew_hash(v);
}

static bool is_integer(const at_buffer *buffer) {
  return at_dtype_whole(buffer->dtype);
}

static attune_status poison(at_numerical_check *v, int i, turn which) {
  const at_buffer *buffer = &v->set->buffers[i];
  v->outputs.poison[i] = (is_integer(buffer) ? POISON_INTEGER : POISON_REAL)[which];
  return attune_fill(v->set->stream, v->set->pointers[0][i], v->outputs.poison[i], buffer->bytes);
}

/* Large operands come back once, after all launches: bringing them takes longer than all else. */
static bool are_large(const at_numerical_check *v) {
  return v->set->set_bytes > (size_t)16 << 20;
}

/* Inputs that hold special values since an earlier plan get back what they held. */
static attune_status restore_inputs(at_numerical_check *v) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < v->set->buffer_count && status == ATTUNE_OK; i++) {
    if (!v->contents[i]) continue;
    if (!v->set->buffers[i].output)
      status =
          at_staging_put(v->set->stream, v->set->pointers[0][i], v->host + offset_of(v, i), v->set->buffers[i].bytes);
    v->contents[i] = 0;
  }
  return status;
}

/* Poisons each output, or restores it where it is an input too; runs the plan; fetches all that may have changed, of
 * large operands not the inputs. */
static attune_status run(at_numerical_check *v, const at_plan *plan, turn which) {
  uint64_t operands[AT_OPERANDS_BYTES / 8];
  attune_status status = at_limit_look();
  if (status == ATTUNE_OK) status = v->damaged ? renew(v) : restore_inputs(v);
  if (status != ATTUNE_OK) return status;
  for (int i = 0; i < v->set->buffer_count && status == ATTUNE_OK; i++) {
    if (v->pristine[i])
      status = at_staging_put(v->set->stream, v->set->pointers[0][i], v->pristine[i], v->set->buffers[i].bytes);
    else if (v->set->buffers[i].output)
      status = poison(v, i, which);
  }
  at_operand_set_bind(v->set, 0, which == TURN_USUAL ? v->set->usual : v->other, operands);
  if (status == ATTUNE_OK) status = plan->launch(plan, operands, v->set->stream);
  if (status == ATTUNE_OK) status = are_large(v) ? fetch_guards(v) : fetch(v);
  if (status == ATTUNE_OK && are_large(v)) status = fetch_outputs(v);
  return status;
}

static attune_status wrong(const at_plan *plan, const char *what) {
  return at_fail(ATTUNE_BAD_DATA, "%s %s %s", plan->implementation->name, plan->configuration.text, what);
}

/* Which scalars it was wrong with: " with alpha=0.75, beta=-2". */
static attune_status wrong_result(const at_numerical_check *v, const at_plan *plan, turn which) {
  char words[160] = "is outside the contract's tolerance";
  size_t at = strlen(words);
  for (int i = 0; which == TURN_OTHER && i < v->set->scalar_count; i++)
    (void)at_append(words, sizeof words, &at, "%s%s=%g", i ? ", " : " with ", v->set->scalars[i].name, v->other[i]);
  return wrong(plan, words);
}

/* Writes of the latest launch outside its outputs. */
static attune_status check_damage(at_numerical_check *v, const at_plan *plan, bool inputs) {
  const bool guards = guards_unchanged(v);
  v->damaged = !guards || (inputs && hash_buffers(v, false) != v->input_hash);
  if (!v->damaged) return ATTUNE_OK;
  return wrong(plan, guards ? "changes its inputs" : "writes outside its operands");
}

/* One launch on ordinary data, all of it compared; *max_error grows to its error. */
static attune_status check_turn(at_numerical_check *v, const at_plan *plan, turn which, double *max_error) {
  double error = (double)INFINITY;
  attune_status status = run(v, plan, which);
  v->damaged = status != ATTUNE_OK;
  if (status == ATTUNE_OK) status = check_damage(v, plan, !are_large(v));
  if (status == ATTUNE_OK)
    status =
        v->op->reference->compare(v->reference, which == TURN_USUAL ? v->set->usual : v->other, &v->outputs, &error);
  if (!(error <= *max_error)) *max_error = error;
  return status == ATTUNE_OK && !(error <= 1.0) ? wrong_result(v, plan, which) : status;
}

/* Of large operands, after the last launch. */
static attune_status check_inputs(at_numerical_check *v, const at_plan *plan) {
  const attune_status status = fetch(v);
  v->damaged = status != ATTUNE_OK;
  return status == ATTUNE_OK ? check_damage(v, plan, true) : status;
}

static attune_status check_bits(at_numerical_check *v, const at_plan *plan) {
  const uint64_t first = hash_buffers(v, true);
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < 3 && status == ATTUNE_OK; i++) {
    status = run(v, plan, TURN_USUAL);
    if (status == ATTUNE_OK && hash_buffers(v, true) != first)
      status = wrong(plan, "gives different bits from run to run");
  }
  return status;
}

/* Does one launch not tell all? Scalars may be ignored, and what an integer held before may be what is right. */
static bool needs_other_turn(const at_numerical_check *v) {
  bool integers = false;
  for (int i = 0; i < v->set->buffer_count; i++)
    integers = integers || (v->outputs.bytes[i] && !v->pristine[i] && is_integer(&v->set->buffers[i]));
  return integers || v->set->scalar_count > 0;
}

/* The results on ordinary data. Changed inputs are reported first, as they may be the cause of wrong results. */
static attune_status check_numbers(at_numerical_check *v, const at_plan *plan, double *max_error) {
  *max_error = 0.0;
  attune_status status = check_turn(v, plan, TURN_USUAL, max_error);
  if (status == ATTUNE_OK && v->op->problem->deterministic(v->problem)) status = check_bits(v, plan);
  if (status == ATTUNE_OK && needs_other_turn(v)) status = check_turn(v, plan, TURN_OTHER, max_error);
  if (!are_large(v) || v->damaged) return status;
  const attune_status inputs = check_inputs(v, plan);
  if (inputs == ATTUNE_OK) return status;
  *max_error = (double)INFINITY;
  return inputs;
}

/* ---- special values ---- */

static size_t largest_buffer(const at_numerical_check *v) {
  size_t bytes = 0;
  for (int i = 0; i < v->set->buffer_count; i++)
    if (v->set->buffers[i].bytes > bytes) bytes = v->set->buffers[i].bytes;
  return bytes;
}

/* Buffer i of launch `which` to the device: as it was, or with what is planted there. An output that is no input is
 * poisoned. v->host has the pure inputs as they were since check_numbers went well. */
static attune_status put_buffer(at_numerical_check *v, int which, int i) {
  const at_buffer *buffer = &v->set->buffers[i];
  void *to = v->set->pointers[0][i];
  if (!buffer->input) return poison(v, i, TURN_SPECIAL);
  const int contents = which < 0 ? 0 : v->op->specials->contents(v->problem, which, i);
  if (!buffer->output && v->contents[i] == contents) return ATTUNE_OK;
  const void *from = buffer->output ? (const void *)v->pristine[i] : v->host + offset_of(v, i);
  if (contents) {
    at_staging_copy(v->planted, from, buffer->bytes);
    v->op->specials->plant(v->problem, which, i, v->planted);
    from = v->planted;
  }
  v->contents[i] = contents;
  return at_staging_put(v->set->stream, to, from, buffer->bytes); /* v->planted is free again */
}

/* One launch with special values; *lost is what the plan breaks. */
static attune_status run_special(at_numerical_check *v, const at_plan *plan, int which, uint32_t *lost) {
  uint64_t operands[AT_OPERANDS_BYTES / 8];
  double scalars[AT_MAX_SCALARS];
  attune_status status = at_limit_look();
  for (int i = 0; i < v->set->buffer_count && status == ATTUNE_OK; i++) status = put_buffer(v, which, i);
  memcpy(scalars, v->set->usual, sizeof scalars);
  if (v->op->specials->scalars) v->op->specials->scalars(v->problem, which, scalars);
  at_operand_set_bind(v->set, 0, scalars, operands);
  if (status == ATTUNE_OK) status = plan->launch(plan, operands, v->set->stream);
  if (status == ATTUNE_OK) status = fetch_outputs(v);
  return status == ATTUNE_OK ? v->op->specials->compare(v->reference, which, &v->outputs, lost) : status;
}

/* The default, as a program gets it when nothing is tuned: its first configuration. NULL: there is none. */
static const at_implementation *default_of(const at_numerical_check *v, at_configuration *first) {
  attune_device *device = v->set->stream->device;
  const at_implementation *base = at_registry_default(v->op, v->problem, device);
  *first = (at_configuration){""};
  return base && base->configurations && base->configurations(base, v->problem, device, first, 1) == 1 ? base : NULL;
}

/* From then on the rules that the default breaks in launch `which` count for no candidate. */
static void ask_default(at_numerical_check *v, int which) {
  uint32_t lost = 0;
  at_configuration first;
  const at_implementation *base = v->base_made ? NULL : default_of(v, &first);
  if (base) (void)at_plan_create(&v->base, v->op, base, &first, v->problem, v->set->stream->device);
  v->base_made = true;
  if (v->base && run_special(v, v->base, which, &lost) == ATTUNE_OK) v->base_lost |= lost;
}

static attune_status begin_special(at_numerical_check *v) {
  if (!v->planted) v->planted = at_alloc_touched(largest_buffer(v));
  return v->planted ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to verify special values");
}

static int special_count(const at_numerical_check *v) {
  return v->op->specials ? v->op->specials->count(v->problem) : 0;
}

/* A rule that the default breaks too is no reason to refuse a plan: without tuning the program would get the default.
 * But whatever wins must keep what the default keeps; so the default itself is not asked. */
static attune_status check_special(at_numerical_check *v, const at_plan *plan) {
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
  if (status != ATTUNE_OK || !broken) return status;
  char names[96];
  at_numerical_check_rules(v, broken, names, sizeof names);
  return wrong(plan, names);
}

attune_status at_numerical_check_run(at_numerical_check *v, const at_plan *plan, double *max_error) {
  attune_status status = check_numbers(v, plan, max_error);
  if (status == ATTUNE_OK) status = check_special(v, plan);
  if (status != ATTUNE_OK && status != ATTUNE_BAD_DATA) v->damaged = true;
  return status;
}

uint32_t at_numerical_check_default_lost(const at_numerical_check *v) {
  return v->base_lost;
}

attune_status at_numerical_check_lost(at_numerical_check *v, const at_plan *plan, uint32_t *lost) {
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
  if (status != ATTUNE_OK) v->damaged = true;
  return status;
}

void at_numerical_check_rules(const at_numerical_check *v, uint32_t rules, char *out, size_t size) {
  size_t at = 0;
  *out = '\0';
  for (int bit = 0; bit < 32; bit++)
    if (rules >> bit & 1)
      if (!at_append(out, size, &at, "%s%s", at ? ", " : "", v->op->specials->name(bit))) return;
}
