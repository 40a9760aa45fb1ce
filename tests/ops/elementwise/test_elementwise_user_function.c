/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_user_function.c: functions in CUDA C of the program's own, as far as no device is needed: one form
 * for equal sources, problems and their texts, what is refused, and that no expression gets there. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <pthread.h>

#include "ops/elementwise/ir/user_function.h"
#include "ops/elementwise/language/compile.h"
#include "ops/elementwise/language/user_function_expression.h"
#include "ops/elementwise/problem/problem.h"
#include "tuning/op/registry.h"

/* The node of argument k: the inputs in the type of the arguments, then the scalars. */
static int argument_node(const at_expression *e, int k) {
  return k < e->input_count ? e->input_count + e->scalar_count + k : k;
}

#define AXPY "template <typename T> T axpy(T x, T y, T alpha) { return alpha * x + y; }"

static attune_device *host(void) {
  attune_device *device = NULL;
  OK(attune_device_get(&device, "host"));
  return device;
}

/* ---- texts ---- */

static void form_of(char out[512], const char *source, const char *name) {
  at_user_function *raw = NULL;
  OK(at_user_function_get(&raw, source, name));
  snprintf(out, 512, "%s %s", raw->name, raw->text);
  at_user_function_release(raw);
}

TEST(one_form) {
  static const struct {
    const char *source, *name, *form;
  } same[] = {
      {"float f(float x) { return x; }", "f", "at_user_function float at_user_function(float x){return x;}"},
      {"\tfloat  f\n(float x){return x ;}  ", "f", "at_user_function float at_user_function(float x){return x;}"},
      {"// a comment\nfloat g(float x) /* and { one */ { return x; } // at the end", "g",
       "at_user_function float at_user_function(float x){return x;}"},
      {"float f(float x) { return x + +x - -x; }", "f",
       "at_user_function float at_user_function(float x){return x+ +x- -x;}"},
      {"float f(float x) { return x / /* ! */ *&x; }", "f",
       "at_user_function float at_user_function(float x){return x/ *&x;}"},
      {"int f(int x) { return 0xe +x - 0x1e -x + e -x; }", "f",
       "at_user_function int at_user_function(int x){return 0xe +x-0x1e -x+e-x;}"},
      {"T f(T x) { return f<T>(x) >> 2 > > 1; }", "f",
       "at_user_function T at_user_function(T x){return at_user_function<T>(x)>>2> >1;}"},
      {"T f(T x) { return .5f * x + 1.f; }", "f", "f T f(T x){return .5f*x+1.f;}"},
      {"T re(T x) { return x.re; }", "re", "re T re(T x){return x.re;}"},
      {"T re(T *x) { return x->re; }", "re", "re T re(T*x){return x->re;}"},
      {"T sin(T x) { return ::sin(x); }", "sin", "sin T sin(T x){return::sin(x);}"},
      {"T f(T at_user_function) { return at_user_function; }", "f",
       "f T f(T at_user_function){return at_user_function;}"},
      {"T f(T at_user_functions) { return at_user_functions; }", "f",
       "f T f(T at_user_functions){return at_user_functions;}"},
      {"T f(T x) { return x.im; }", "f", "at_user_function T at_user_function(T x){return x.im;}"},
      {"", "f", "at_user_function "},
      /* Text in which blanks may have a meaning stays as it is. */
      {"#define A  1\nT f(T x) { return x + A; }", "f", "f #define A  1\nT f(T x) { return x + A; }"},
      {"T f(T x) { return x + 'a  b'; }", "f", "f T f(T x) { return x + 'a  b'; }"},
      {"T f(T x) { return g(\"//  \"); }", "f", "f T f(T x) { return g(\"//  \"); }"},
      {"T f(T x) { return x; } \\\n // ", "f", "f T f(T x) { return x; } \\\n // "},
      {"T f(T x) { return x; } /* open", "f", "f T f(T x) { return x; } /* open"},
      {"%:define  A\nT f(T x) { return x; }", "f", "f %:define  A\nT f(T x) { return x; }"},
  };
  for (size_t i = 0; i < AT_COUNT(same); i++) {
    char form[512], again[512];
    form_of(form, same[i].source, same[i].name);
    assert_string_equal(form, same[i].form);
    if (strncmp(form, "at_user_function ", 17) == 0) continue; /* no name that a caller may use */
    form_of(again, strchr(form, ' ') + 1, same[i].name);
    assert_string_equal(again, form);
  }
}

/* Equal ones are one while somebody has them, and are forgotten then. */
TEST(found_while_used) {
  at_user_function *a = NULL, *b = NULL, *c = NULL;
  char hash[AT_USER_FUNCTION_HASH_CHARS];
  OK(at_user_function_get(&a, AXPY, "axpy"));
  OK(at_user_function_get(&b, "template<typename T>T my_axpy(T x,T y,T alpha){return alpha*x+y;}", "my_axpy"));
  assert_ptr_equal(a, b);
  OK(at_user_function_get(&c, "template<typename T>T my_axpy(T x,T y,T alpha){return alpha*y+x;}", "my_axpy"));
  assert_ptr_not_equal(a, c);
  memcpy(hash, a->hash, sizeof hash);
  at_user_function_release(a);
  a = at_user_function_find(hash);
  assert_ptr_equal(a, b);
  at_user_function_release(a);
  at_user_function_release(b);
  assert_null(at_user_function_find(hash));
  assert_null(at_user_function_find("0123"));
  OK(at_user_function_get(&a, AXPY, "axpy")); /* what the thread remembers is gone */
  assert_string_equal(a->hash, hash);
  assert_string_equal(a->own_text, AXPY);
  at_user_function_release(a);
  at_user_function_release(c);
  at_user_function_release(NULL);
}

static float data[4][64];

static void *get_and_release(void *arg) {
  const int rounds = 300;
  for (int i = 0; i < rounds; i++) {
    char source[96];
    at_user_function *raw = NULL, *again;
    snprintf(source, sizeof source, "float f(float x) { return x + %d; }", i % 7);
    if (at_user_function_get(&raw, source, "f") != ATTUNE_OK) return arg;
    again = at_user_function_find(raw->hash);
    if (again != raw || strcmp(raw->own_text, source) != 0) return arg;
    at_user_function_release(again);
    at_user_function_release(raw);
  }
  return NULL;
}

TEST(threads) {
  pthread_t all[4];
  for (size_t i = 0; i < AT_COUNT(all); i++) assert_int_equal(pthread_create(&all[i], NULL, get_and_release, data), 0);
  for (size_t i = 0; i < AT_COUNT(all); i++) {
    void *failed = NULL;
    assert_int_equal(pthread_join(all[i], &failed), 0);
    assert_null(failed);
  }
}

/* ---- problems ---- */

typedef struct call {
  attune_tensor output[2], inputs[2];
  attune_scalar scalar;
  attune_elementwise_operands operands;
} call;

static void make_call(call *c, attune_dtype x, attune_dtype y) {
  memset(c, 0, sizeof *c);
  for (int k = 0; k < 2; k++) {
    c->output[k] = (attune_tensor){.data = data[k], .dtype = ATTUNE_F32, .dims = 1, .sizes = {8}};
    c->inputs[k] = (attune_tensor){.data = data[2 + k], .dtype = k ? y : x, .dims = 1, .sizes = {8}};
  }
  c->operands = (attune_elementwise_operands){.outputs = c->output,
                                              .output_count = 1,
                                              .inputs = c->inputs,
                                              .input_count = 2,
                                              .scalars = &c->scalar,
                                              .scalar_count = 1};
}

static void problem_of(char out[ATTUNE_PROBLEM_CHARS], const char *source, const char *name, const call *c) {
  OK(attune_elementwise_cuda_problem_format(out, ATTUNE_PROBLEM_CHARS, source, name, &c->operands));
}

TEST(one_problem) {
  call c;
  char text[ATTUNE_PROBLEM_CHARS], other[ATTUNE_PROBLEM_CHARS];
  make_call(&c, ATTUNE_F32, ATTUNE_BF16);
  problem_of(text, AXPY, "axpy", &c);
  assert_non_null(strstr(text, "elementwise 8 strict out=f32"));
  assert_non_null(strstr(text, " : f32 i0, bf16 i1, f64 s0: cuda 1 "));
  problem_of(other, "template <class T>\nT f(T x, T y, T alpha) { return alpha * x + y; }", "f", &c);
  assert_string_not_equal(text, other); /* class is not typename */
  problem_of(other, "template <typename T>\nT f(T x, T y, T alpha) {\n  return alpha * x + y; // a x + y\n}\n", "f",
             &c);
  assert_string_equal(text, other);
  c.inputs[0].name = "any", c.inputs[1].name = "if", c.scalar.name = "f32"; /* nobody looks at names */
  c.operands.accuracy = ATTUNE_REDUCED;                                     /* nor is there an accuracy */
  problem_of(other, AXPY, "axpy", &c);
  assert_string_equal(text, other);
  c.operands.output_count = 2;
  problem_of(other, AXPY, "axpy", &c);
  assert_non_null(strstr(other, ": f32 i0, bf16 i1, f64 s0: cuda 2 "));
}

/* A problem's text is one again, with or without its source. */
TEST(problems_are_read) {
  call c;
  char text[ATTUNE_PROBLEM_CHARS], again[ATTUNE_PROBLEM_CHARS];
  static uint64_t problem[AT_PROBLEM_BYTES / 8];
  at_expression *e = NULL;
  at_user_function *raw = NULL;
  make_call(&c, ATTUNE_F32, ATTUNE_BF16);
  problem_of(text, AXPY, "axpy", &c);
  OK(at_elementwise_parse(text, problem));
  assert_true(at_elementwise_of(problem)->raw);
  OK(at_elementwise_format(problem, again, sizeof again));
  assert_string_equal(again, text);
  OK(at_elementwise_expression(&e, at_elementwise_of(problem)));
  assert_true(e->raw);
  assert_null(e->function);
  at_expression_destroy(e);
  OK(at_user_function_get(&raw, AXPY, "axpy"));
  OK(at_elementwise_expression(&e, at_elementwise_of(problem)));
  assert_ptr_equal(e->function, raw);
  at_user_function_release(raw);
  assert_string_equal(e->function->own_text, AXPY); /* the expression has it now */
  at_expression_destroy(e);
  const at_implementation *last = at_elementwise_op.implementations[at_elementwise_op.implementation_count - 1];
  assert_false(last->supports(last, problem, host()));
}

TEST(canonical_texts_that_are_none) {
  static const char *const texts[] = {"f32 i0: cuda",
                                      "f32 i0: cuda 1",
                                      "f32 i0: cuda 0 0123456789abcdef0123456789abcdef",
                                      "f32 i0: cuda 9 0123456789abcdef0123456789abcdef",
                                      "f32 i0: cuda 1 0123456789abcdef0123456789abcde",
                                      "f32 i0: cuda 1 0123456789abcdef0123456789abcdef0",
                                      "f32 i0: cuda 1 0123456789ABCDEF0123456789abcdef",
                                      "f32 i0: cuda 1 0123456789abcdef0123456789abcdef; 1",
                                      ": cuda 1 0123456789abcdef0123456789abcdef",
                                      "u64 i0, i64 i1: cuda 1 0123456789abcdef0123456789abcdef"};
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    at_expression *e = NULL;
    if (at_expression_parse_canonical(&e, texts[i]) != ATTUNE_INVALID_ARGUMENT) fail_msg("\"%s\" is taken", texts[i]);
    assert_null(e);
  }
}

/* The type of all arguments. */
TEST(promotion) {
  static const struct {
    attune_dtype x, y, type;
  } all[] = {{ATTUNE_F32, ATTUNE_F32, ATTUNE_F32},   {ATTUNE_F16, ATTUNE_F16, ATTUNE_F32},
             {ATTUNE_F64, ATTUNE_I64, ATTUNE_F64},   {ATTUNE_I32, ATTUNE_U8, ATTUNE_F32}, /* the scalar is f64 */
             {ATTUNE_C64, ATTUNE_F64, ATTUNE_C128},  {ATTUNE_F8E4M3, ATTUNE_F8E4M3, ATTUNE_F32},
             {ATTUNE_BOOL, ATTUNE_BOOL, ATTUNE_F32}, {ATTUNE_BF16, ATTUNE_C64, ATTUNE_C64}};
  at_user_function *raw = NULL;
  OK(at_user_function_get(&raw, AXPY, "axpy"));
  for (size_t i = 0; i < AT_COUNT(all); i++) {
    const at_operand_name tensors[] = {{"a", (uint8_t)all[i].x, 0}, {"b", (uint8_t)all[i].y, 0}},
                          scalar = {"s", ATTUNE_F64, 0};
    const at_signature signature = {tensors, &scalar, 2, 1};
    at_expression *e = NULL;
    OK(at_user_function_expression_create(&e, raw, &signature, 2));
    for (int k = 0; k < 3; k++) assert_int_equal(e->nodes[argument_node(e, k)].dtype, all[i].type);
    for (int k = 0; k < 2; k++) assert_int_equal(e->nodes[e->outputs[k]].kind, AT_NODE_RAW);
    at_expression_destroy(e);
  }
  at_user_function_release(raw);
}

/* ---- what is refused ---- */

static void told(attune_status status, attune_status expected, const char *words) {
  assert_int_equal(status, expected);
  if (!strstr(attune_last_message(), words)) fail_msg("\"%s\" says nothing of \"%s\"", attune_last_message(), words);
}

TEST(wrong_arguments) {
  call c;
  char text[ATTUNE_PROBLEM_CHARS], *million = malloc(1 << 20);
  const attune_status invalid = ATTUNE_INVALID_ARGUMENT;
  make_call(&c, ATTUNE_F32, ATTUNE_F32);
  assert_non_null(million);
  memset(million, ' ', 1 << 20);
  million[(1 << 20) - 1] = '\0';
#define FORMAT(source, name) attune_elementwise_cuda_problem_format(text, sizeof text, source, name, &c.operands)
  told(FORMAT(NULL, "f"), invalid, "source is NULL");
  told(FORMAT(AXPY, NULL), invalid, "name is NULL");
  told(FORMAT(million, "f"), invalid, "65536");
  static const char *const names[] = {"", "1f", "f g", "f;", "a::b", "f\n", "\"", "é"};
  for (size_t i = 0; i < AT_COUNT(names); i++) told(FORMAT(AXPY, names[i]), invalid, "letters, digits and _");
  told(FORMAT(AXPY, "at_cast"), invalid, "reserved");
  told(FORMAT(AXPY, "fn_add"), invalid, "reserved");
  static const char *const bytes[] = {"\xff", "ab\x01", "\x7f", "float f() { return 1; }\xc0"};
  for (size_t i = 0; i < AT_COUNT(bytes); i++) told(FORMAT(bytes[i], "f"), invalid, "UTF-8");
  told(attune_elementwise_cuda_problem_format(NULL, 0, AXPY, "axpy", &c.operands), invalid, "out is NULL");
  told(attune_elementwise_cuda_problem_format(text, sizeof text, AXPY, "axpy", NULL), invalid, "operands is NULL");
  c.operands.inputs = NULL;
  told(FORMAT(AXPY, "axpy"), invalid, "inputs is NULL");
  c.operands.input_count = 17;
  told(FORMAT(AXPY, "axpy"), invalid, "input_count is 17");
  make_call(&c, ATTUNE_U64, ATTUNE_I64);
  told(FORMAT(AXPY, "axpy"), invalid, "no common dtype");
  make_call(&c, ATTUNE_F32, ATTUNE_F32);
  c.inputs[1].sizes[0] = 5;
  told(FORMAT(AXPY, "axpy"), invalid, "should be 8 or 1");
  make_call(&c, ATTUNE_F32, ATTUNE_F32);
  c.scalar.kind = ATTUNE_F32;
  told(FORMAT(AXPY, "axpy"), invalid, "f64, i64, bool or c128");
  make_call(&c, ATTUNE_F32, ATTUNE_F32);
  c.operands.input_count = c.operands.scalar_count = 0;
  told(FORMAT(AXPY, "axpy"), invalid, "neither inputs nor scalars");
  free(million);
}

/* There is no compiler for the host. */
TEST(host_device) {
  call c;
  attune_tuner *tuner = NULL;
  attune_plan *plan = NULL;
  attune_stream *stream = attune_stream_default(host());
  make_call(&c, ATTUNE_F32, ATTUNE_F32);
  OK(attune_tuner_create(&tuner, NULL));
  told(attune_elementwise_cuda(tuner, stream, AXPY, "axpy", &c.operands), ATTUNE_UNSUPPORTED, "needs a CUDA device");
  told(attune_elementwise_cuda_plan_create(&plan, tuner, stream, AXPY, "axpy", &c.operands), ATTUNE_UNSUPPORTED,
       "host");
  assert_null(plan);
  told(attune_elementwise_cuda(NULL, stream, AXPY, "axpy", &c.operands), ATTUNE_INVALID_ARGUMENT, "tuner is NULL");
  told(attune_elementwise_cuda(tuner, NULL, AXPY, "axpy", &c.operands), ATTUNE_INVALID_ARGUMENT, "stream is NULL");
  told(attune_elementwise_cuda(tuner, stream, AXPY, "axpy", NULL), ATTUNE_INVALID_ARGUMENT, "operands is NULL");
  told(attune_elementwise_cuda_plan_create(NULL, tuner, stream, AXPY, "axpy", &c.operands), ATTUNE_INVALID_ARGUMENT,
       "out is NULL");
  attune_tuner_destroy(tuner);
}

/* No expression becomes a function in C, whatever it says, also after such a function was used. */
TEST(not_by_an_expression) {
  call c;
  at_user_function *raw = NULL;
  attune_tuner *tuner = NULL;
  attune_stream *stream = attune_stream_default(host());
  char body[64], problem[ATTUNE_PROBLEM_CHARS];
  make_call(&c, ATTUNE_F32, ATTUNE_F32);
  OK(attune_tuner_create(&tuner, NULL));
  OK(at_user_function_get(&raw, AXPY, "axpy"));
  problem_of(problem, AXPY, "axpy", &c);
  snprintf(body, sizeof body, "cuda 1 %s", raw->hash);
  const char *const texts[] = {body, body + 7, problem, strstr(problem, "f32 i0"), AXPY};
  c.inputs[0].name = "i0", c.inputs[1].name = "i1", c.scalar.name = "s0";
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    char text[ATTUNE_PROBLEM_CHARS];
    FAILS(attune_elementwise(tuner, stream, texts[i], &c.operands), ATTUNE_INVALID_ARGUMENT);
    FAILS(attune_elementwise_problem_format(text, sizeof text, texts[i], &c.operands), ATTUNE_INVALID_ARGUMENT);
  }
  at_user_function_release(raw);
  attune_tuner_destroy(tuner);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
