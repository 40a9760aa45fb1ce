/* SPDX-License-Identifier: Apache-2.0
 * interpret_run.c: runs a program, block after block. */
#include "ops/elementwise/host/interpret_program.h"

#include <string.h>

#include "ops/elementwise/host/interpret_walk.h"
#include "ops/elementwise/ir/wide_value.h"
#include "src/host/host.h"
#include "src/host/threads.h"

enum {
  LEAST_ROW = 64, /* rows at least so long are cut into blocks of their own, which need no copies */
  FEW_BYTES = 16 << 10,
  CACHE_BYTES = 24 << 10, /* that registers may take of the L1 cache */
  REGISTER_BYTES = AT_REGISTERS * AT_BLOCK_LEAST * 16
};

typedef struct run {
  const at_interpreter *p;
  const at_layout *layout;
  const at_interpreter_call *call;
  int64_t block, row, per_row, blocks; /* elements of a block; of a row; blocks of a row and of all */
  bool direct;                         /* kernels may write to outputs */
} run;

/* State of one thread. */
typedef struct state {
  const run *r;
  at_place place;
  int64_t first, n; /* the block: its first element in the layout's order */
  char *at[AT_JSON];
  char *registers;
} state;

void at_interpret_isas(const at_interpret_isa *out[4]) {
  int count = 0;
#if defined(__x86_64__)
  const at_cpu *cpu = at_cpu_info();
  const bool avx2 = cpu->avx2 && cpu->fma && cpu->f16c;
  if (avx2 && cpu->avx512f && cpu->avx512bw && cpu->avx512dq && cpu->avx512vl) out[count++] = &at_interpret_avx512;
  if (avx2) out[count++] = &at_interpret_avx2;
#endif
  out[count++] = &at_interpret_portable;
  out[count] = NULL;
}

const char *at_interpret_isa_name(const at_interpret_isa *isa) {
  return isa->name;
}

attune_status at_interpreter_layout(at_layout *out, const at_interpreter *p, const at_view *outputs,
                                    const at_view *inputs) {
  at_view views[AT_LAYOUT_OPERANDS];
  const at_shape *shape = &outputs[0].shape;
  int count = 0;
  for (int i = 0; i < p->output_count; i++) {
    if ((uint8_t)outputs[i].dtype != p->output_dtypes[i])
      return AT_INVALID("output %d is %s; should be %s", i, attune_dtype_name(outputs[i].dtype),
                        attune_dtype_name((attune_dtype)p->output_dtypes[i]));
    if (!at_shape_equal(&outputs[i].shape, shape)) return AT_INVALID("output %d differs in shape from output 0", i);
    views[count++] = outputs[i];
  }
  for (int i = 0; i < p->input_count; i++) {
    if ((uint8_t)inputs[i].dtype != p->input_dtypes[i])
      return AT_INVALID("input %d is %s; should be %s", i, attune_dtype_name(inputs[i].dtype),
                        attune_dtype_name((attune_dtype)p->input_dtypes[i]));
    views[count++] = inputs[i];
  }
  if (p->number) views[count++] = at_view_of_number(shape);
  for (int i = 0; i < p->positions; i++) views[count++] = at_view_of_position(shape, i);
  return at_layout_make(out, shape, views, count);
}

/* Where `operand` lies in one piece for the whole block, or NULL. */
static char *in_one_piece(const state *s, int operand, const void *data, size_t size) {
  const at_layout *l = s->r->layout;
  const at_layout_operand *o = &l->operands[operand];
  const char *base = data;
  if (o->layout_class == AT_LAYOUT_CONTIGUOUS)
    return (char *)(uintptr_t)(base + (o->offset + s->first) * (int64_t)size);
  if (o->strides[0] != 1 || s->place.at[0] + s->n > l->sizes[0]) return NULL;
  return (char *)(uintptr_t)(base + at_place_offset(&s->place, l, operand) * (int64_t)size);
}

static char *home(const state *s, int value) {
  const at_interpreter *p = s->r->p;
  return s->registers + (size_t)p->registers[value] * (size_t)s->r->block * (size_t)p->element_bytes;
}

static void load(state *s, const at_instruction *in) {
  const run *r = s->r;
  const int operand = at_operand_of_input(r->p, in->index);
  const size_t size = attune_dtype_size((attune_dtype)r->p->input_dtypes[in->index]);
  const void *data = r->call->inputs[in->index];
  char *piece = in_one_piece(s, operand, data, size);
  /* Of several outputs one may be stored over an input before another is: then the input is copied. */
  if (piece && (r->direct || r->p->output_count == 1)) {
    s->at[in->out] = piece;
    return;
  }
  s->at[in->out] = home(s, in->out);
  at_walk_load(s->at[in->out], r->layout, operand, data, size, s->place, s->n);
}

/* Numbers of elements that follow one another are drawn at once. */
static void draw(state *s, const at_instruction *in) {
  const run *r = s->r;
  int64_t numbers[AT_BLOCK_MOST];
  float *out = (float *)(void *)s->at[in->out];
  at_walk_offsets(numbers, r->layout, at_operand_of_number(r->p), s->place, s->n);
  for (int64_t i = 0; i < s->n;) {
    int64_t end = i + 1;
    while (end < s->n && numbers[end] == numbers[end - 1] + 1) end++;
    at_draw_row(out + i, r->call->draws, r->layout->count, in->index, in->normal, numbers[i], end - i);
    i = end;
  }
}

static void store(state *s, int i) {
  const run *r = s->r;
  const size_t size = attune_dtype_size((attune_dtype)r->p->output_dtypes[i]);
  const char *from = s->at[r->p->outputs[i]];
  char *piece = in_one_piece(s, i, r->call->outputs[i], size);
  if (piece == from) return; /* it was computed there */
  if (piece && r->call->stream)
    r->p->isa->stream(piece, from, (size_t)s->n * size);
  else
    at_walk_store(from, r->layout, i, r->call->outputs[i], size, s->place, s->n);
}

/* Kernels write straight to memory that is not read any more. */
static void aim(state *s) {
  const run *r = s->r;
  for (int i = 0; i < r->p->output_count; i++) {
    if (!r->p->made[i]) continue;
    char *piece = r->direct && !r->call->stream
                      ? in_one_piece(s, i, r->call->outputs[i], attune_dtype_size((attune_dtype)r->p->output_dtypes[i]))
                      : NULL;
    s->at[r->p->outputs[i]] = piece ? piece : home(s, r->p->outputs[i]);
  }
}

static void run_block(state *s) {
  const at_interpreter *p = s->r->p;
  aim(s);
  for (int i = 0; i < p->instruction_count; i++) {
    const at_instruction *in = &p->instructions[i];
    switch (in->step) {
    case AT_STEP_KERNEL:
      in->kernel(s->at[in->out], s->at[in->argument[0]], s->at[in->argument[1]], s->at[in->argument[2]], (size_t)s->n);
      break;
    case AT_STEP_LOAD: load(s, in); break;
    case AT_STEP_PLACE:
      at_walk_offsets((int64_t *)(void *)s->at[in->out], s->r->layout, in->index, s->place, s->n);
      break;
    default: draw(s, in); break;
    }
  }
  for (int i = 0; i < p->output_count; i++) store(s, i);
}

/* The same number in all of a register: twice what is there, again and again. */
static void fill_fixed(state *s) {
  const run *r = s->r;
  const int64_t most = r->layout->count < r->block ? r->layout->count : r->block;
  for (int i = 0; i < r->p->fixed_count; i++) {
    const at_fixed *fixed = &r->p->fixed[i];
    const at_constant constant = fixed->scalar ? r->call->scalars[fixed->scalar - 1] : fixed->constant;
    char *to = s->at[fixed->value];
    const size_t size = attune_dtype_size((attune_dtype)fixed->dtype), bytes = size * (size_t)most;
    at_wide_value_store((attune_dtype)fixed->dtype, to,
                        at_wide_value_of_constant((attune_dtype)fixed->dtype, (attune_dtype)fixed->kind, constant));
    for (size_t done = size; done < bytes; done *= 2) memcpy(to + done, to, done < bytes - done ? done : bytes - done);
  }
}

/* Registers: on the stack where they are few, else in the thread's scratch memory, and on the stack all the same where
 * there is no memory. */
static size_t register_bytes(const run *r) {
  return (size_t)r->p->register_count * (size_t)r->block * (size_t)r->p->element_bytes;
}
#define REGISTERS(r)                                                                    \
  _Alignas(64) char few[FEW_BYTES];                                                     \
  const size_t register_room = register_bytes(r);                                       \
  char *registers = register_room <= sizeof few ? few : at_host_scratch(register_room); \
  if (!registers) registers = __builtin_alloca_with_align(register_room, 512)

static void begin(state *s, const run *r, char *registers) {
  s->r = r;
  s->registers = registers;
  for (int i = 0; i < r->p->value_count; i++) s->at[i] = home(s, i);
  fill_fixed(s);
}

static void run_part(void *arg, const at_team *team) {
  const run *r = arg;
  REGISTERS(r);
  state s; /* large, and each part is set before it is read */
  const int64_t each = r->blocks / team->size, rest = r->blocks % team->size;
  int64_t from = each * team->rank + (team->rank < rest ? team->rank : rest);
  const int64_t to = from + each + (team->rank < rest);
  if (from == to) return;
  begin(&s, r, registers);
  s.first = from / r->per_row * r->row + from % r->per_row * r->block;
  s.place = at_place_of(r->layout, s.first);
  for (;;) {
    const int64_t left = r->row - from % r->per_row * r->block; /* in the row */
    s.n = left < r->block ? left : r->block;
    run_block(&s);
    if (++from == to) break;
    s.first += s.n;
    at_place_move(&s.place, r->layout, s.n);
  }
  if (r->call->stream) r->p->isa->fence();
}

/* All elements as one block, on this thread: small work has no time for more. */
static void run_one(const run *r) {
  REGISTERS(r);
  state s;
  begin(&s, r, registers);
  s.first = 0;
  s.n = r->layout->count;
  memset(&s.place, 0, sizeof s.place);
  run_block(&s);
  if (r->call->stream) r->p->isa->fence();
}

/* One loop over the thread's share, of a direct program whose tensors are contiguous. */
static void run_directly(void *arg, const at_team *team) {
  enum { VECTOR = 64 }; /* elements: shares begin at cache lines if the tensors do */
  const run *r = arg;
  const at_interpreter *p = r->p;
  const int64_t each = ((r->layout->count - 1) / team->size + VECTOR) / VECTOR * VECTOR;
  const int64_t from = each * team->rank, end = from + each < r->layout->count ? from + each : r->layout->count;
  char *tensors[1 + AT_EXPRESSION_INPUTS];
  if (from >= end) return;
  for (int k = 0; k < 1 + p->input_count; k++) {
    const char *data = k ? r->call->inputs[k - 1] : r->call->outputs[0];
    const int64_t size = (int64_t)attune_dtype_size((attune_dtype)(k ? p->input_dtypes[k - 1] : p->output_dtypes[0]));
    tensors[k] = (char *)(uintptr_t)(data + (r->layout->operands[k].offset + from) * size);
  }
  at_direct_run(p, tensors, (size_t)(end - from));
}

static bool is_direct(const run *r) {
  bool good = r->p->direct && !r->call->stream;
  for (int k = 0; k < 1 + r->p->input_count && good; k++)
    good = r->layout->operands[k].layout_class == AT_LAYOUT_CONTIGUOUS;
  return good;
}

int at_interpreter_block(const at_interpreter *p, int asked) {
  const int64_t bytes = (int64_t)p->register_count * p->element_bytes;
  int64_t block = asked > 0 ? asked : CACHE_BYTES / (bytes > 0 ? bytes : 1);
  const int64_t room = bytes > 0 ? REGISTER_BYTES / bytes : AT_BLOCK_MOST;
  if (block > room) block = room;
  if (block > AT_BLOCK_MOST) block = AT_BLOCK_MOST;
  block -= block % AT_BLOCK_LEAST; /* registers begin at vectors */
  return block < AT_BLOCK_LEAST ? AT_BLOCK_LEAST : (int)block;
}

/* True when an output is also an input: what is computed must then not be written before all is read. */
static bool shares(const at_interpreter *p, const at_interpreter_call *call) {
  for (int i = 0; i < p->output_count; i++)
    for (int j = 0; j < p->input_count; j++)
      if (call->outputs[i] == call->inputs[j]) return true;
  return false;
}

void at_interpreter_run(const at_interpreter *p, const at_layout *layout, const at_interpreter_call *call) {
  if (layout->count == 0) return;
  run r = {
      .p = p, .layout = layout, .call = call, .block = call->block ? at_interpreter_block(p, call->block) : p->block};
  r.direct = p->output_count == 1 || !shares(p, call);
  if (layout->count <= r.block) {
    run_one(&r);
    return;
  }
  r.row = layout->dims > 1 && layout->sizes[0] >= LEAST_ROW ? layout->sizes[0] : layout->count;
  r.per_row = (r.row - 1) / r.block + 1;
  r.blocks = layout->count / r.row * r.per_row;
  int threads = call->threads > 1 ? call->threads : 1;
  if (threads > r.blocks) threads = (int)r.blocks;
  void (*const part)(void *, const at_team *) = is_direct(&r) ? run_directly : run_part;
  if (threads == 1)
    part(&r, &(at_team){.rank = 0, .size = 1});
  else
    at_parallel(threads, part, &r);
}
