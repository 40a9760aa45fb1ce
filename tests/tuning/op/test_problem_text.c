/* SPDX-License-Identifier: Apache-2.0
 * test_problem_text.c: texts and columns of an operation that is not gemm: "scan", with integers, an axis, an optional
 * word in the middle and sizes of its own number. What every operation has is read and written without a word of
 * its. */
#include "tests/support/check.h"

#include "tuning/op/columns.h"

typedef struct scan {
  attune_dtype dtype;
  int64_t sizes[5];
  int64_t axis, pitch, stride;
  bool reverse, wide;
  at_contract terms;
} scan;

static bool read_dtype(char *word, void *into) {
  return at_text_dtype(word, strlen(word), AT_DTYPES_ALL, &((scan *)into)->dtype);
}
static bool read_wide(char *word, void *into) {
  return strcmp(word, "wide") == 0 && (((scan *)into)->wide = true);
}
static bool read_reverse(char *word, void *into) {
  return strcmp(word, "reverse") == 0 && (((scan *)into)->reverse = true);
}
static bool read_sizes(char *word, void *into) {
  scan *s = into;
  int64_t *const sizes[] = {&s->sizes[0], &s->sizes[1], &s->sizes[2], &s->sizes[3], &s->sizes[4]};
  return at_text_sizes(word, sizes, 1, 5);
}
static void numbers_of(scan *s, at_number out[3]) {
  const at_number numbers[] = {{"axis", &s->axis, AT_NUMBER_SIZE},
                               {"pitch", &s->pitch, AT_NUMBER_PITCH},
                               {"stride", &s->stride, AT_NUMBER_STRIDE}};
  memcpy(out, numbers, sizeof numbers);
}
static bool read_option(char *word, void *into) {
  scan *s = into;
  at_number numbers[3];
  numbers_of(s, numbers);
  return at_text_number(word, numbers, 3) || at_text_term(word, &s->terms);
}
static bool read_accuracy(char *word, void *into) {
  return at_text_accuracy(word, &((scan *)into)->terms.contract.accuracy);
}

static const at_word_kind kinds[] = {
    {"a dtype", read_dtype, false},       {"wide", read_wide, true},
    {"reverse", read_reverse, true},      {"sizes", read_sizes, false},
    {"an accuracy", read_accuracy, true}, {"axis=, pitch=, stride=", read_option, false}};

static attune_status parse(const char *text, scan *out) {
  *out = (scan){.terms = AT_CONTRACT_INIT};
  return at_text_read(text, "scan", kinds, AT_COUNT(kinds), out);
}

TEST(reads_texts) {
  scan s;
  OK(parse(
      "scan i64 wide reverse 3x4x5x6x7 reduced axis=2 pitch=9 stride=broadcast align=16 deterministic workspace=77",
      &s));
  assert_int_equal(s.dtype, ATTUNE_I64);
  assert_true(s.wide && s.reverse);
  for (int i = 0; i < 5; i++) assert_int_equal(s.sizes[i], 3 + i);
  assert_int_equal(s.axis, 2);
  assert_int_equal(s.pitch, 9);
  assert_int_equal(s.stride, AT_BROADCAST);
  assert_int_equal(s.terms.alignment, 16);
  assert_int_equal(s.terms.contract.accuracy, ATTUNE_REDUCED);
  assert_int_equal(s.terms.contract.deterministic, 1);
  assert_int_equal(s.terms.contract.workspace_cap, 77);
  OK(parse("scan i32 reverse 8", &s));
  assert_true(!s.wide && s.reverse);
  assert_int_equal(s.sizes[0], 8);
  assert_int_equal(s.terms.contract.accuracy, ATTUNE_STRICT);
  assert_int_equal(s.terms.alignment, AT_ALIGNMENT);
  OK(parse("scan f16 1x2 stride=5", &s)); /* both optional words left out, and the accuracy */
  assert_int_equal(s.stride, 5);
}

TEST(refuses_texts) {
  static const struct {
    const char *text, *message;
  } samples[] = {
      {"", "the problem ends after 0 words; should continue with scan"},
      {"gemm f32 nn", "word 1 of the problem is \"gemm\"; should be scan"},
      {"scan", "the problem ends after 1 word; should continue with a dtype"},
      {"scan f99 3", "word 2 of the problem is \"f99\"; should be a dtype"},
      {"scan f32 wide", "the problem ends after 3 words; should continue with sizes"},
      {"scan f32 tall 3", "word 3 of the problem is \"tall\"; should be wide, or one of sizes"},
      {"scan f32 reverse wide 3", "word 4 of the problem is \"wide\"; should be sizes"},
      {"scan f32 1x2x3x4x5x6", "word 3 of the problem is \"1x2x3x4x5x6\"; should be wide, or one of sizes"},
      {"scan f32 3 exact",
       "word 4 of the problem is \"exact\"; should be an accuracy, or one of axis=, pitch=, stride="},
      {"scan f32 3 strict axis=0",
       "word 5 of the problem is \"axis=0\"; its value should be a whole number, 1 or more"},
      {"scan f32 3 strict stride=-1",
       "word 5 of the problem is \"stride=-1\"; its value should be a whole number, 1 or more, or broadcast"},
      {"scan f32 3 strict axis=broadcast", "\"axis=broadcast\""},
      {"scan f32 3 strict pitch=broadcast", "\"pitch=broadcast\""},
      {"scan f32 3 strict axis", "\"axis\""},
      {"scan f32 3 strict axi=3", "\"axi=3\""},
      {"scan f32 3 strict align=48",
       "word 5 of the problem is \"align=48\"; should be align= and a power of two, 1 to 128"},
      {"scan f32 3 strict workspace=0", "\"workspace=0\"; should be workspace= and a number of bytes, 1 or more"},
      {"scan f32 3x9223372036854775808", "; a number in it is too large; should be at most 9223372036854775807"},
      {"scan f32 3 pitch=99999999999999999999", "a number in it is too large"},
      {"scan align=3", "word 2 of the problem is \"align=3\"; should be a dtype"},
      {"scan f32 3x00000000000000000000004x9223372036854775807x", "; should be wide, or one of sizes"}};
  scan s;
  for (size_t i = 0; i < AT_COUNT(samples); i++) {
    assert_int_equal(parse(samples[i].text, &s), ATTUNE_INVALID_ARGUMENT);
    if (!strstr(attune_last_message(), samples[i].message))
      fail_msg("\"%s\": %s, not %s", samples[i].text, attune_last_message(), samples[i].message);
  }
  char longest[AT_PROBLEM_CHARS + 1];
  memset(longest, 'x', sizeof longest);
  longest[AT_PROBLEM_CHARS] = '\0';
  FAILS_SAYING(parse(longest, &s), ATTUNE_INVALID_ARGUMENT, "characters long");
}

/* Text is read back as written; into a buffer of any size it is written completely or not at all. */
TEST(writes_terms) {
  for (int accuracy = 0; accuracy <= 2; accuracy++)
    for (int deterministic = 0; deterministic <= 1; deterministic++)
      for (int alignment = 1; alignment <= AT_ALIGNMENT; alignment *= 2)
        for (uint64_t cap = 1; cap <= (uint64_t)1 << 62; cap *= 8) {
          char text[128] = "scan f32 4", part[128];
          size_t at = strlen(text);
          scan s;
          assert_true(at_text_put_accuracy(text, sizeof text, &at, (attune_accuracy)accuracy, deterministic));
          assert_true(at_text_put_limits(text, sizeof text, &at, (uint8_t)alignment, cap));
          OK(parse(text, &s));
          assert_int_equal(s.terms.contract.accuracy, accuracy);
          assert_int_equal(s.terms.contract.deterministic, deterministic);
          assert_int_equal(s.terms.alignment, alignment);
          assert_int_equal(at_workspace_cap(s.terms.contract.workspace_cap), cap);
          size_t none = 0;
          assert_int_equal(at_text_put_limits(part, 4, &none, (uint8_t)alignment, cap),
                           alignment == AT_ALIGNMENT && cap == ATTUNE_WORKSPACE_DEFAULT);
        }
  assert_int_equal(at_workspace_cap(0), ATTUNE_WORKSPACE_DEFAULT);
  assert_int_equal(at_workspace_cap(SIZE_MAX), INT64_MAX);
  assert_int_equal(at_text_check_alignment(8, 8), ATTUNE_OK);
  assert_int_equal(at_text_check_alignment(4, 8), ATTUNE_INVALID_ARGUMENT);
  attune_dtype dtype = ATTUNE_F64;
  assert_true(!at_text_dtype("i32", 3, AT_DTYPES_FLOAT, &dtype) && !at_text_dtype("i3", 2, AT_DTYPES_ALL, &dtype));
  assert_true(at_text_dtype("i32:f64", 3, AT_DTYPES_ALL, &dtype) && dtype == ATTUNE_I32);
  for (int d = 1; d <= AT_DTYPE_LAST; d++) {
    const char *name = attune_dtype_name((attune_dtype)d);
    assert_true(at_text_dtype(name, strlen(name), AT_DTYPES_ALL, &dtype) && (int)dtype == d);
  }
  assert_true(!at_text_dtype("unknown", 7, ~0u, &dtype));
  static const struct {
    const char *name;
    attune_dtype dtype;
  } synonyms[] = {{"float32", ATTUNE_F32},
                  {"torch.bfloat16", ATTUNE_BF16},
                  {"np.float64", ATTUNE_F64},
                  {"half", ATTUNE_F16},
                  {"double", ATTUNE_F64},
                  {"float", ATTUNE_F32},
                  {"FP16", ATTUNE_F16},
                  {"uint8_t", ATTUNE_U8},
                  {"long", ATTUNE_I64},
                  {"torch.long", ATTUNE_I64},
                  {"int", ATTUNE_I32},
                  {"complex64", ATTUNE_C64},
                  {"float8_e4m3fn", ATTUNE_F8E4M3}};
  for (size_t i = 0; i < AT_COUNT(synonyms); i++)
    assert_true(at_text_dtype(synonyms[i].name, strlen(synonyms[i].name), AT_DTYPES_ALL, &dtype) &&
                dtype == synonyms[i].dtype);
  static const char *const none[] = {"torch.",          "np.",  "",  "float3", "float320",
                                     "torch.torch.f32", "char", "f", "int128"};
  for (size_t i = 0; i < AT_COUNT(none); i++)
    assert_false(at_text_dtype(none[i], strlen(none[i]), AT_DTYPES_ALL, &dtype));
  assert_false(at_text_dtype("int32", 5, AT_DTYPES_FLOAT, &dtype));
}

/* ---- columns ---- */

static attune_status read_field(const at_column *field, scan *s, bool *known) {
  static const char *const ways[] = {"up", "down", "both"};
  at_number numbers[3];
  int way = s->reverse;
  numbers_of(s, numbers);
  attune_status status = at_column_number(field, numbers, 3, known);
  if (!*known) status = at_column_dtype(field, "dtype", AT_DTYPES_ALL & ~AT_DTYPE_BIT(ATTUNE_F16), &s->dtype, known);
  if (!*known) status = at_column_word(field, "way", ways, 3, &way, known);
  if (!*known) status = at_column_contract(field, &s->terms, known);
  s->reverse = way == 1;
  return status;
}

TEST(reads_columns) {
  static const at_column fields[] = {{"dtype", "I32", 1},        {"axis", "3", 2},        {"pitch", "0", 3},
                                     {"stride", "BROADCAST", 4}, {"way", "Down", 5},      {"contract", "Reduced", 6},
                                     {"deterministic", "1", 7},  {"workspace", "512", 8}, {"align", "8", 9}};
  scan s = {.pitch = 4, .terms = AT_CONTRACT_INIT};
  for (size_t i = 0; i < AT_COUNT(fields); i++) {
    bool known = false;
    OK(read_field(&fields[i], &s, &known));
    assert_true(known);
  }
  assert_int_equal(s.dtype, ATTUNE_I32);
  assert_int_equal(s.axis, 3);
  assert_int_equal(s.pitch, 0);
  assert_int_equal(s.stride, AT_BROADCAST);
  assert_true(s.reverse);
  assert_int_equal(s.terms.contract.accuracy, ATTUNE_REDUCED);
  assert_int_equal(s.terms.contract.deterministic, 1);
  assert_int_equal(s.terms.contract.workspace_cap, 512);
  assert_int_equal(s.terms.alignment, 8);
  bool known = false;
  const at_column other = {"colour", "red", 1};
  OK(read_field(&other, &s, &known));
  assert_false(known);
}

TEST(refuses_columns) {
  static const struct {
    at_column field;
    const char *message;
  } samples[] = {{{"dtype", "f16", 1},
                  "dtype is \"f16\"; should be f64, f32, bf16, i32, i64, i8, i16, u8, u16, u32, u64, bool, f8e4m3, "
                  "f8e5m2, c64 or c128"},
                 {{"axis", "0", 1}, "axis is \"0\"; should be a whole number of 1 or more"},
                 {{"pitch", "-1", 1}, "pitch is \"-1\"; should be a whole number of 1 or more, or 0 for packed"},
                 {{"axis", "9223372036854775808", 1},
                  "axis is \"9223372036854775808\", which is too large; should be at most 9223372036854775807"},
                 {{"axis", "broadcast", 1}, "axis is \"broadcast\""},
                 {{"way", "left", 1}, "way is \"left\"; should be up, down or both"},
                 {{"contract", "exact", 1}, "contract is \"exact\"; should be strict, equivalent or reduced"},
                 {{"deterministic", "yes", 1}, "deterministic is \"yes\"; should be 0 or 1"},
                 {{"workspace", "0", 1}, "workspace is \"0\"; should be a whole number of bytes, 1 or more"},
                 {{"align", "24", 1}, "align is \"24\"; should be a power of two"}};
  for (size_t i = 0; i < AT_COUNT(samples); i++) {
    scan s = {.terms = AT_CONTRACT_INIT};
    bool known = false;
    assert_int_equal(read_field(&samples[i].field, &s, &known), ATTUNE_BAD_DATA);
    assert_true(known);
    if (!strstr(attune_last_message(), samples[i].message)) fail_msg("%s", attune_last_message());
  }
  static const char *const needed[] = {"dtype", "axis", "way"};
  static const at_column fields[] = {{"dtype", "f32", 1}, {"way", "", 2}, {"axis", "1", 3}};
  assert_int_equal(at_columns_need("scan", fields, 3, needed, 3), ATTUNE_BAD_DATA);
  assert_string_equal(attune_last_message(), "column way is missing; scan needs dtype, axis and way");
  OK(at_columns_need("scan", fields, 3, needed, 2));
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
