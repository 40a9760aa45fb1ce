/* SPDX-License-Identifier: Apache-2.0
 * interpret_small.c: a program on elements that lie one after the other in every tensor. There are no places to keep,
 * so a run is its loops and little else: on few elements, and on many where nothing stands between inputs and
 * outputs. */
#include "ops/elementwise/host/interpret_program.h"

#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/ir/wide_value.h"

enum {
  REGISTER_BYTES = 16 << 10, /* on the stack */
  MOST = 64,                 /* tensors and registers of such a program */
  VECTOR = 16,               /* registers begin at multiples of so many elements */
  DIRECT_MOST = 1 << 20      /* elements of one loop: more are worth a look at the threads at least */
};

/* An instruction whose values are places: 0 and on for outputs, then inputs, then registers. */
struct at_small_step {
  at_kernel kernel;
  uint8_t out, argument[3];
};

/* Places of the values that are tensors, and of the others the registers renumbered, into place[value_count]; how many
 * registers they need, or -1: more than there may be. */
static int find_places(const at_interpreter *p, uint8_t *place) {
  const int tensors = p->output_count + p->input_count;
  uint8_t numbers[AT_REGISTERS] = {0}; /* 0: not used */
  int count = 0;
  for (int i = 0; i < p->value_count; i++) place[i] = UINT8_MAX;
  for (int i = 0; i < p->instruction_count; i++)
    if (p->instructions[i].step == AT_STEP_LOAD)
      place[p->instructions[i].out] = (uint8_t)(p->output_count + p->instructions[i].index);
  for (int i = 0; i < p->output_count; i++) place[p->outputs[i]] = (uint8_t)i;
  for (int i = 0; i < p->value_count; i++) {
    if (place[i] != UINT8_MAX) continue;
    uint8_t *number = &numbers[p->registers[i]];
    if (*number == 0) {
      if (tensors + count >= MOST) return -1;
      *number = (uint8_t)++count;
    }
    place[i] = (uint8_t)(tensors + *number - 1);
  }
  return count;
}

static bool suits(const at_interpreter *p) {
  bool good = !p->number && p->positions == 0;
  for (int i = 0; i < p->output_count; i++) good = good && p->made[i];
  return good;
}

attune_status at_small_make(at_interpreter *p) {
  uint8_t place[AT_JSON];
  if (!suits(p)) return ATTUNE_OK;
  const int registers = find_places(p, place);
  if (registers < 0) return ATTUNE_OK;
  p->small_steps = calloc((size_t)p->instruction_count + 1, sizeof *p->small_steps);
  p->small_fixed = calloc((size_t)p->fixed_count + 1, sizeof *p->small_fixed);
  if (!p->small_steps || !p->small_fixed)
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %d instructions", p->instruction_count);
  for (int i = 0; i < p->instruction_count; i++) {
    const at_instruction *in = &p->instructions[i];
    if (in->step != AT_STEP_KERNEL) continue;
    struct at_small_step *step = &p->small_steps[p->small_count++];
    *step = (struct at_small_step){.kernel = in->kernel, .out = place[in->out]};
    for (int k = 0; k < 3; k++) step->argument[k] = place[in->argument[k]];
  }
  for (int i = 0; i < p->fixed_count; i++) p->small_fixed[i] = place[p->fixed[i].value];
  p->small_registers = registers;
  p->direct = registers == 0 && p->small_count == 1;
  if (registers == 0)
    p->small_most = p->direct ? DIRECT_MOST : p->block;
  else
    p->small_most = REGISTER_BYTES / (registers * p->element_bytes) / VECTOR * VECTOR;
  if (registers > 0 && p->small_most > p->block) p->small_most = p->block;
  return ATTUNE_OK;
}

void at_small_free(at_interpreter *p) {
  free(p->small_steps);
  free(p->small_fixed);
}

int64_t at_interpreter_small_most(const at_interpreter *p) {
  return p->small_most;
}

at_straight at_interpreter_straight(const at_interpreter *p) {
  const struct at_small_step *s = p->small_steps;
  const int second = p->input_count;
  if (!p->direct || p->output_count != 1 || second < 1 || second > 2) return NULL;
  return s->out == 0 && s->argument[0] == 1 && s->argument[1] == second && s->argument[2] == 1 ? s->kernel : NULL;
}

/* The same number n times: twice what is there, again and again. */
static void fill(const at_fixed *fixed, const at_constant *scalars, char *to, size_t n) {
  const attune_dtype dtype = (attune_dtype)fixed->dtype;
  const at_constant constant = fixed->scalar ? scalars[fixed->scalar - 1] : fixed->constant;
  const size_t size = attune_dtype_size(dtype), bytes = size * n;
  at_wide_value_store(dtype, to, at_wide_value_of_constant(dtype, (attune_dtype)fixed->kind, constant));
  for (size_t done = size; done < bytes; done *= 2) memcpy(to + done, to, done < bytes - done ? done : bytes - done);
}

void at_direct_run(const at_interpreter *p, char *const *tensors, size_t n) {
  const struct at_small_step *s = &p->small_steps[0];
  s->kernel(tensors[s->out], tensors[s->argument[0]], tensors[s->argument[1]], tensors[s->argument[2]], n);
}

static void run(const at_interpreter *p, char *const *at, size_t n) {
  for (int i = 0; i < p->small_count; i++) {
    const struct at_small_step *s = &p->small_steps[i];
    s->kernel(at[s->out], at[s->argument[0]], at[s->argument[1]], at[s->argument[2]], n);
  }
}

/* Of its own, so that what needs no registers has no room for them on its stack. */
static __attribute__((noinline)) void run_with_registers(const at_interpreter *p, void *const *tensors,
                                                         const at_constant *scalars, size_t n) {
  _Alignas(64) char registers[REGISTER_BYTES];
  char *at[MOST];
  const int count = p->output_count + p->input_count;
  const size_t each = (n + VECTOR - 1) / VECTOR * VECTOR * (size_t)p->element_bytes;
  for (int k = 0; k < count; k++) at[k] = tensors[k];
  for (int k = 0; k < p->small_registers; k++) at[count + k] = registers + (size_t)k * each;
  for (int i = 0; i < p->fixed_count; i++) fill(&p->fixed[i], scalars, at[p->small_fixed[i]], n);
  run(p, at, n);
}

void at_interpreter_run_small(const at_interpreter *p, void *const *tensors, const at_constant *scalars, int64_t n) {
  if (p->small_registers == 0)
    run(p, (char *const *)tensors, (size_t)n);
  else
    run_with_registers(p, tensors, scalars, (size_t)n);
}
