/* SPDX-License-Identifier: Apache-2.0
 * test_expression_hostile.c: what an attacker or an accident may give as an expression: expressions_hostile.txt, each
 * line alone and within others, as a name and as a canonical text; then mutants of good and hostile texts. Nothing
 * crashes, and whatever is taken has a canonical text of known words only. ATTUNE_TEST_EXPRESSIONS: a tenth of the
 * mutants (2000), ATTUNE_TEST_FUZZ_S: at least so many seconds of them. */
#include "tests/support/check.h"

#include "tests/ops/elementwise/language/expression_fixture.h"

static const char *const LINE = "f32 a, f32 b, i32 i, bool m, c64 z, bf16 h; f64 s";

enum { TEXT = 260000, LINES = 1200 };

typedef struct hostile {
  char *text; /* exactly its bytes: a read past them is seen */
  size_t length;
} hostile;

static hostile corpus[LINES];
static int corpus_count;

/* ---- the file ---- */

static int hex(char c) {
  return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

/* Without the escapes and the repetitions. */
static size_t decode(const char *line, size_t length, char *out) {
  size_t at = 0;
  for (size_t i = 0; i < length; i++) {
    int times = 0, used = 0;
    if (line[i] == '{' && sscanf(line + i, "{%d:%n", &times, &used) == 1 && used) {
      const char *end = memchr(line + i + used, '}', length - i - (size_t)used);
      assert_non_null(end);
      const size_t part = (size_t)(end - line) - i - (size_t)used;
      for (int k = 0; k < times; k++) at += decode(line + i + used, part, out + at);
      i = (size_t)(end - line);
    } else if (line[i] == '\\' && i + 3 < length && line[i + 1] == 'x') {
      out[at++] = (char)(hex(line[i + 2]) * 16 + hex(line[i + 3]));
      i += 3;
    } else if (line[i] == '\\' && i + 1 < length && (line[i + 1] == 'n' || line[i + 1] == '\\')) {
      out[at++] = line[++i] == 'n' ? '\n' : '\\';
    } else {
      out[at++] = line[i];
    }
    assert_true(at < TEXT / 2);
  }
  return at;
}

static void add(const char *text, size_t length) {
  assert_true(corpus_count < LINES);
  hostile *h = &corpus[corpus_count++];
  h->text = malloc(length + (length == 0));
  assert_non_null(h->text);
  memcpy(h->text, text, length);
  h->length = length;
}

FIXTURE(read_corpus) {
  static char line[4096], text[TEXT];
  FILE *file = fopen(AT_SOURCE_DIR "/tests/ops/elementwise/language/expressions_hostile.txt", "r");
  assert_non_null(file);
  for (int number = 1; fgets(line, sizeof line, file); number++) {
    const size_t length = strcspn(line, "\n");
    if (number > 3) add(text, decode(line, length, text));
  }
  fclose(file);
  assert_true(corpus_count >= 500);
  return 0;
}

FIXTURE(free_corpus) {
  for (int i = 0; i < corpus_count; i++) free(corpus[i].text);
  return 0;
}

/* ---- what is taken ---- */

/* i0, s3, t12: one of the canonical names. */
static bool is_canonical_name(const char *word, size_t length) {
  return length > 1 && strchr("ist", word[0]) && strspn(word + 1, "0123456789") >= length - 1;
}

static void check_taken(const at_expression *e) {
  static const char *const letters = "abcdefghijklmnopqrstuvwxyz_0123456789";
  at_constant ignored;
  for (const char *c = e->text; *c;) {
    const size_t length = strspn(c, letters);
    if (!length) {
      if (!strchr(" .,;:=()+-*/%<>!&|^~", *c)) fail_msg("%s has the character %c", e->text, *c);
      c++;
      continue;
    }
    const bool known = (*c >= '0' && *c <= '9') || is_canonical_name(c, length) || at_function_find(c, length) >= 0 ||
                       at_special_find(c, length) || at_dtype_find(c, length) || at_constant_find(c, length, &ignored);
    if (!known) fail_msg("%s has the word %.*s", e->text, (int)length, c);
    c += length;
  }
  at_expression *again = NULL;
  OK(at_expression_parse_canonical(&again, e->text));
  if (strcmp(e->text, again->text) != 0) fail_msg("%s and then %s", e->text, again->text);
  at_expression_destroy(again);
}

static void check_refused(const char *text, size_t length) {
  at_expression *e = (at_expression *)8;
  const attune_status status = compile_with(&e, LINE, text, length);
  if (status == ATTUNE_OK) fail_msg("%.*s is taken as %s", (int)(length > 200 ? 200 : length), text, e->text);
  assert_int_equal(status, ATTUNE_INVALID_ARGUMENT);
  assert_null(e);
  const char *message = attune_last_message();
  assert_true(message[0] && strlen(message) < AT_MESSAGE_CHARS);
  for (; *message; message++) assert_true(*message == '\n' || (*message >= ' ' && *message < 127));
}

/* ---- the corpus ---- */

TEST(alone) {
  for (int i = 0; i < corpus_count; i++) check_refused(corpus[i].text, corpus[i].length);
}

static void within(const char *before, const hostile *h, const char *after) {
  const size_t first = strlen(before), last = strlen(after), length = first + h->length + last;
  char *text = malloc(length);
  assert_non_null(text);
  memcpy(text, before, first);
  memcpy(text + first, h->text, h->length);
  memcpy(text + first + h->length, after, last);
  at_expression *e = NULL;
  const attune_status status = compile_with(&e, LINE, text, length);
  if (status == ATTUNE_OK) check_taken(e); /* "a + b" around "; a": another expression */
  at_expression_destroy(e);
  free(text);
}

TEST(inside_others) {
  static const char *const places[][2] = {{"a + ", ""},    {"", " + b"}, {"gelu(", ")"},        {"(", ")"},
                                          {"t = ", "; t"}, {"a, ", ""},  {"where(a, ", ", b)"}, {"a ? ", " : b"},
                                          {"f32(", ")"},   {"\"", "\""}, {"a # ", ""}};
  for (int i = 0; i < corpus_count; i++)
    for (size_t k = 0; k < AT_COUNT(places); k++) within(places[k][0], &corpus[i], places[k][1]);
}

/* As the name of an operand, and as a canonical text: with an end at the first NUL. */
TEST(as_names) {
  static const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  for (int i = 0; i < corpus_count; i++) {
    at_operand_name operand = {.dtype = ATTUNE_F32};
    const size_t length = corpus[i].length < AT_EXPRESSION_NAME ? corpus[i].length : AT_EXPRESSION_NAME;
    memcpy(operand.name, corpus[i].text, length);
    const size_t name = strnlen(operand.name, sizeof operand.name);
    const bool good = name && name < AT_EXPRESSION_NAME && strspn(operand.name, letters) == name &&
                      !(operand.name[0] >= '0' && operand.name[0] <= '9') && !at_name_taken(operand.name, name);
    at_expression *e = NULL;
    const at_signature signature = {.tensors = &operand, .tensor_count = 1};
    const attune_status status = at_expression_create(&e, operand.name, name, &signature);
    assert_int_equal(status, good ? ATTUNE_OK : ATTUNE_INVALID_ARGUMENT);
    at_expression_destroy(e);
    char *text = strndup(corpus[i].text, corpus[i].length);
    assert_int_equal(at_expression_parse_canonical(&e, text), ATTUNE_INVALID_ARGUMENT);
    free(text);
  }
}

/* ---- mutants ---- */

static const char *const GOOD[] = {"gelu(a + b) * b",
                                   "t = a + b; t, relu(t) * s",
                                   "where(rand() < 0.9, h / 0.9, 0)",
                                   "i << 3 | i >> 2 & 7 ^ ~i",
                                   "m ? a : b < a && !m",
                                   "min(a, b, h, 2.5e-3) ** 2",
                                   "index(0) <= index(1) ? a : -inf",
                                   "abs(z * 1.5j) + real(z) # comment\n",
                                   "bf16(a) * f16(b) / f64(s)",
                                   "clamp(-a, -1, 0x1f) // 2 % 3",
                                   "x = exp(a - max(a, b)); y = x * x; x / (1 + y), y",
                                   "randn() * s + pi - e",
                                   "i8(i) * u8(3) + 255",
                                   "complex(a, b) * conj(z) == z",
                                   "isnan(a) || isinf(b)",
                                   "fma(a, b, h) + hypot(a, b, 1, 2)",
                                   "sqrt(2 / pi) * nan"};
static const char *const PIECES[] = {"a",
                                     "b",
                                     "i",
                                     "m",
                                     "z",
                                     "h",
                                     "s",
                                     "(",
                                     ")",
                                     ",",
                                     ";",
                                     "=",
                                     "==",
                                     "+",
                                     "-",
                                     "*",
                                     "**",
                                     "/",
                                     "//",
                                     "%",
                                     "<",
                                     "<=",
                                     ">",
                                     "<<",
                                     ">>",
                                     "&",
                                     "&&",
                                     "|",
                                     "||",
                                     "^",
                                     "!",
                                     "~",
                                     "?",
                                     ":",
                                     "1",
                                     "0",
                                     "1.5",
                                     "0x7f",
                                     "1e9",
                                     "2j",
                                     "inf",
                                     "nan",
                                     "true",
                                     "gelu(",
                                     "f32(",
                                     "i8(",
                                     "rand()",
                                     "index()",
                                     "where(",
                                     "min(",
                                     "#",
                                     "\n",
                                     " ",
                                     "t",
                                     "t = a;",
                                     "9223372036854775808",
                                     "18446744073709551615",
                                     "-",
                                     "complex(",
                                     "bf16("};
static uint64_t seed = 60;

static size_t draw(size_t below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (size_t)((seed >> 33) % below);
}

enum { MUTANT = 600 };

static size_t insert(char *text, size_t length, size_t at, const char *piece, size_t size) {
  if (length + size > MUTANT) return length;
  memmove(text + at + size, text + at, length - at);
  memcpy(text + at, piece, size);
  return length + size;
}

static size_t take_out(char *text, size_t length, size_t at, size_t size) {
  if (size > length - at) size = length - at;
  memmove(text + at, text + at + size, length - at - size);
  return length - size;
}

/* One of `set` from `at` on becomes another one of it: operands and operators, so that the text may stay good. */
static size_t exchange(char *text, size_t length, size_t at, const char *set) {
  while (at < length && (!text[at] || !strchr(set, text[at]))) at++;
  if (at < length) text[at] = set[draw(strlen(set))];
  return length;
}

static size_t mutate(char *text, size_t length) {
  char copy[MUTANT];
  const size_t at = draw(length + 1), size = draw(8) + 1;
  switch (draw(10)) {
  case 0: return take_out(text, length, at, size);
  case 1:
    if (at < length) text[at] = (char)draw(256);
    return length;
  case 2: {
    const size_t from = draw(length + 1), part = draw(40) < length - from ? draw(length - from + 1) : length - from;
    memcpy(copy, text + from, part);
    return insert(text, length, at, copy, part);
  }
  case 3:
  case 4: return exchange(text, length, at, "abhsi");
  case 5:
  case 6: return exchange(text, length, at, "+-*/%");
  case 7: return exchange(text, length, at, "0123456789");
  default: {
    const char *piece = PIECES[draw(AT_COUNT(PIECES))];
    if (draw(2)) length = take_out(text, length, at, strlen(piece));
    return insert(text, length, at, piece, strlen(piece));
  }
  }
}

static size_t start(char *text) {
  const size_t which = draw(AT_COUNT(GOOD) * 4);
  if (which >= AT_COUNT(GOOD) * 3) { /* of the corpus */
    const hostile *h = &corpus[draw((size_t)corpus_count)];
    const size_t length = h->length < 200 ? h->length : 200;
    memcpy(text, h->text, length);
    return length;
  }
  const char *good = GOOD[which % AT_COUNT(GOOD)];
  memcpy(text, good, strlen(good));
  return strlen(good);
}

TEST(mutants) {
  const char *asked = getenv("ATTUNE_TEST_EXPRESSIONS"), *fuzz = getenv("ATTUNE_TEST_FUZZ_S");
  const long wanted = 10 * (asked ? atol(asked) : 2000);
  const int64_t until_ns = at_now_ns() + (int64_t)(fuzz ? atof(fuzz) * 1e9 : 0.0);
  long taken = 0, i = 0;
  for (; i < wanted || at_now_ns() < until_ns; i++) {
    char text[MUTANT + 8];
    size_t length = start(text);
    for (size_t k = draw(3) + 1; k > 0; k--) length = mutate(text, length);
    char *exact = malloc(length + (length == 0));
    assert_non_null(exact);
    memcpy(exact, text, length);
    at_expression *e = NULL;
    const attune_status status = compile_with(&e, LINE, exact, length);
    if (status == ATTUNE_OK) {
      check_taken(e);
      taken++;
    } else {
      assert_int_equal(status, ATTUNE_INVALID_ARGUMENT);
      assert_null(e);
    }
    at_expression_destroy(e);
    free(exact);
  }
  assert_true(taken > i / 50);
  print_message("%ld of %ld mutants are expressions\n", taken, i);
}

/* The good ones are good: else the mutants would be of nothing. */
TEST(good) {
  for (size_t i = 0; i < AT_COUNT(GOOD); i++) {
    at_expression *e = NULL;
    if (compile_mentioned(&e, LINE, GOOD[i]) != ATTUNE_OK) fail_msg("%s: %s", GOOD[i], attune_last_message());
    check_taken(e);
    at_expression_destroy(e);
  }
}

int main(void) {
  return RUN_TESTS(read_corpus, free_corpus);
}
