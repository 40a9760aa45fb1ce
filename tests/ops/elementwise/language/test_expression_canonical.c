/* SPDX-License-Identifier: Apache-2.0
 * test_expression_canonical.c: equal expressions have equal texts, others have not, and a text read again is the same
 * graph. By hand, and for random graphs, each written twice: with other names, blanks, parentheses, and its commuting
 * arguments the other way round. ATTUNE_TEST_EXPRESSIONS: how many graphs (2000). */
#include "tests/support/check.h"

#include <locale.h>

#include "ops/elementwise/evaluate/element.h"
#include "tests/ops/elementwise/language/expression_fixture.h"

static const char *const OPERANDS = "f32 a, f32 b, f32 c, f32 d, bf16 h, i32 i, i32 j, bool m; f64 s, f64 t, i64 n";

static char *canonical(const char *line, const char *text) {
  at_expression *e = NULL;
  if (compile_mentioned(&e, line, text) != ATTUNE_OK) fail_msg("%s: %s", text, attune_last_message());
  char *out = strdup(e->text);
  at_expression_destroy(e);
  return out;
}

static void check(const char *one, const char *other, bool equal) {
  char *x = canonical(OPERANDS, one), *y = canonical(OPERANDS, other);
  if ((strcmp(x, y) == 0) != equal) fail_msg("%s is %s, %s is %s", one, x, other, y);
  free(x);
  free(y);
}

TEST(equal) {
  static const char *const rows[][2] = {
      {"a + b", "b+a"},
      {"a + b", "c + d"},
      {"a + b", " ( a )\n+ # sum\n b ;"},
      {"a - b", "d - c"},
      {"a * 2 + b", "c + 2 * d"},
      {"a > b", "b < a"},
      {"a >= b", "b <= a"},
      {"x = a + b; x * c", "c * (b + a)"},
      {"a * b + a * c", "c * b + b * a"},
      {"a * b + c * d", "d * a + b * c"},
      {"(a - b) * (c - d)", "(d - c) * (a - b)"},
      {"(a - b) * (a - c)", "(b - d) * (b - c)"},
      {"a + b, a - b", "d + c, d - c"},
      {"rand() < a ? a : 0", "where(b > rand(), b, 0)"},
      {"a * s + b * t", "c * t + d * s"},
      {"a * s + s", "s + s * a"},
      {"f32(s) + f64(s) + t", "t + (f64(s) + f32(s))"},
      {"min(a, b) - max(b, a)", "min(d, c) - max(c, d)"},
      {"gelu(a + h) * h", "h * gelu(h + d)"},
      {"a ? b : c", "where(d, a, b)"},
      {"(a + b) * (c + d) + a * d", "(d + c) * (b + a) + b * c"},
      {"a * b + b * c + c * a", "b * c + c * a + a * b"},
      {"(a - b) + (b - c) + (c - a)", "(b - c) + (c - d) + (d - b)"},
      {"r = rand(); q = rand(); r * 2 + q * 3", "q = rand(); r = rand(); r * 3 + q * 2"},
      {"a * 1", "b"},
      {"q = a * b; sin(b) + sin(a), q", "q = a * b; sin(a) + sin(b), q"},
      {"a * b + (a - b)", "b * a + (a - b)"},
      {"2 + 3", "1 + 4"},
      {"i * n + j", "j + n * i"},
      {"m && i < j", "j > i && m"},
      {"x = exp(a); y = x + 1; y * y", "(exp(b) + 1) ** 2"}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) check(rows[i][0], rows[i][1], true);
}

TEST(not_equal) {
  static const char *const rows[][2] = {{"a - b, a", "b - a, a"},
                                        {"a - b, a * 2", "a - b, b * 2"},
                                        {"a + b", "a + h"},
                                        {"a + b", "a * b"},
                                        {"a / b - a", "a / b - b"},
                                        {"a + 1", "a + 2"},
                                        {"a + 1", "a + 1.0000001"},
                                        {"a * 0.0", "a * -0.0"},
                                        {"a + s", "a + n"},
                                        {"a * s + b * t", "a * s + b * s"},
                                        {"a + b + c", "a + b + b"},
                                        {"rand() - a", "randn() - a"},
                                        {"r = rand(); r - r", "rand() - rand()"},
                                        {"a, b - a", "b - a, a"},
                                        {"index(0)", "index(1)"},
                                        {"index()", "index(0)"},
                                        {"f32(h)", "h"},
                                        {"i + 1", "i + 1.0"},
                                        {"where(m, a, b) - a", "where(m, b, a) - a"},
                                        {"(a - b) * (c - a)", "(a - b) * (a - c)"},
                                        {"a ** b + a", "b ** a + a"},
                                        {"a + b + c + a", "a + (b + c + a)"},
                                        {"i // j - i", "j // i - i"},
                                        {"a < b, a", "a > b, a"},
                                        {"f32(bf16(a)) + a", "a + a"}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) check(rows[i][0], rows[i][1], false);
}

/* ---- text to graph to text ---- */

static void same_graph(const at_expression *a, const at_expression *b) {
  assert_int_equal(a->node_count, b->node_count);
  assert_int_equal(a->input_count, b->input_count);
  assert_int_equal(a->scalar_count, b->scalar_count);
  assert_int_equal(a->output_count, b->output_count);
  assert_int_equal(a->uniform_count, b->uniform_count);
  assert_int_equal(a->normal_count, b->normal_count);
  assert_int_equal(a->max_position, b->max_position);
  assert_int_equal(a->element, b->element);
  for (int i = 0; i < a->output_count; i++) assert_int_equal(a->outputs[i], b->outputs[i]);
  for (int i = 0; i < a->input_count; i++) assert_int_equal(a->inputs[i].dtype, b->inputs[i].dtype);
  for (int i = 0; i < a->scalar_count; i++) assert_int_equal(a->scalars[i].dtype, b->scalars[i].dtype);
  for (int i = 0; i < a->node_count; i++) {
    const at_node *x = &a->nodes[i], *y = &b->nodes[i];
    assert_true(x->kind == y->kind && x->dtype == y->dtype && x->function == y->function && x->count == y->count &&
                x->index == y->index);
    assert_memory_equal(x->argument, y->argument, sizeof x->argument);
    assert_memory_equal(&x->constant, &y->constant, sizeof x->constant);
  }
}

static void round_trip(const at_expression *e, const char *from) {
  at_expression *again = NULL;
  if (at_expression_parse_canonical(&again, e->text) != ATTUNE_OK)
    fail_msg("%s gives %s: %s", from, e->text, attune_last_message());
  if (strcmp(e->text, again->text) != 0) fail_msg("%s gives %s and then %s", from, e->text, again->text);
  same_graph(e, again);
  at_expression_destroy(again);
}

/* ---- random graphs ---- */

static uint64_t seed;

static int draw(int below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int)((seed >> 33) % (uint64_t)below);
}

enum { MOST = 24, TEXT = 12000 };

/* A node as it is written: a word with places for its arguments, $1 to $3. */
typedef struct item {
  const char *form;
  int arguments[3], uses;
  bool swaps;     /* its two arguments may stand the other way round */
  char other[24]; /* the form for that */
} item;

typedef struct writing {
  const item *items;
  const char *const *names; /* of operands */
  bool other;
  char name[MOST][8]; /* of locals */
  char *text;
  size_t at;
} writing;

static const struct {
  const char *form, *swapped;
} FORMS[] = {{"$1 + $2", "$2 + $1"},
             {"$1 * $2", "$2 * $1"},
             {"$1 + $2", "$2 + $1"},
             {"$1 * $2", "$2 * $1"},
             {"$1 - $2", NULL},
             {"$1 / $2", NULL},
             {"$1 < $2", "$2 > $1"},
             {"$1 <= $2", "$2 >= $1"},
             {"$1 == $2", "$2 == $1"},
             {"$1 != $2", "$2 != $1"},
             {"$1 && $2", "$2 && $1"},
             {"$1 || $2", "$2 || $1"},
             {"$1 ** $2", NULL},
             {"$1 // $2", NULL},
             {"$1 % $2", NULL},
             {"min($1, $2)", "min($2, $1)"},
             {"max($1, $2)", "max($2, $1)"},
             {"hypot($1, $2)", "hypot($2, $1)"},
             {"-$1", NULL},
             {"!$1", NULL},
             {"abs($1)", NULL},
             {"exp($1)", NULL},
             {"gelu($1)", NULL},
             {"floor($1)", NULL},
             {"sqrt($1)", NULL},
             {"$1 ? $2 : $3", NULL},
             {"where($1, $2, $3)", NULL},
             {"clamp($1, $2, $3)", NULL},
             {"fma($1, $2, $3)", NULL},
             {"bf16($1)", NULL},
             {"f32($1)", NULL},
             {"f64($1)", NULL},
             {"i8(bool($1))", NULL},
             {"f16($1)", NULL},
             {"bool($1)", NULL},
             {"i32(bool($1)) & i32(bool($2))", "i32(bool($2)) & i32(bool($1))"},
             {"isnan($1)", NULL},
             {"atan2($1, $2)", NULL}};
static const char *const LEAVES[] = {"@0",  "@1",  "@2",   "@3",     "@4",      "@5",      "@6",      "@7", "@8",
                                     "@9",  "@0",  "@1",   "@2",     "@3",      "1",       "2.5",     "0",  "-3",
                                     "0.1", "inf", "true", "rand()", "randn()", "index()", "index(1)"};
static const char *const NAMES[] = {"a", "b", "c", "d", "h", "i", "j", "m", "s", "n"}, *const OTHERS[] = {
                                                                                           "zz", "y_1", "x", "w0", "h",
                                                                                           "jj", "ii",  "b", "q",  "r"};
static const char *const LINE = "f32 a, f32 b, f32 c, f32 d, bf16 h, i32 i, i32 j, bool m; f64 s, i64 n",
                         *const OTHER_LINE =
                             "bool b, i32 ii, bf16 h, f32 w0, f32 x, i32 jj, f32 y_1, f32 zz; i64 r, f64 q";

static int make_items(item *items) {
  const int leaves = 3 + draw(5), count = leaves + 2 + draw(MOST - leaves - 2);
  memset(items, 0, MOST * sizeof *items);
  for (int i = 0; i < count; i++) {
    item *it = &items[i];
    if (i < leaves) {
      it->form = LEAVES[draw((int)AT_COUNT(LEAVES))];
      continue;
    }
    const int form = draw((int)AT_COUNT(FORMS));
    it->form = FORMS[form].form;
    it->swaps = FORMS[form].swapped != NULL;
    for (int k = 0; k < 3; k++) {
      char place[3] = {'$', (char)('1' + k), '\0'};
      if (!strstr(it->form, place)) continue;
      it->arguments[k] = draw(2) ? draw(i) : i - 1 - draw(i < 4 ? i : 4);
      items[it->arguments[k]].uses++;
    }
  }
  return count;
}

static void put(writing *w, const char *text) {
  const size_t length = strlen(text);
  assert_true(w->at + length < TEXT);
  memcpy(w->text + w->at, text, length + 1);
  w->at += length;
}

static void put_item(writing *w, int i);

/* Has it a name? In the other text operands stand in place, so that they come in another order. */
static bool named(const writing *w, int i) {
  return w->items[i].uses > 1 && !(w->other && w->items[i].form[0] == '@');
}

/* As its argument: by its name where it is used twice, else in place. */
static void put_argument(writing *w, int i) {
  if (named(w, i)) {
    put(w, w->name[i]);
    return;
  }
  put(w, "(");
  if (w->other) put(w, " (");
  put_item(w, i);
  put(w, w->other ? ") )" : ")");
}

static void put_item(writing *w, int i) {
  const item *it = &w->items[i];
  const char *form = it->form;
  for (size_t f = 0; f < AT_COUNT(FORMS) && w->other && it->swaps; f++)
    if (FORMS[f].form == it->form) form = FORMS[f].swapped;
  for (const char *c = form; *c; c++) {
    const char one[2] = {*c, '\0'};
    if (*c == '$')
      put_argument(w, it->arguments[*++c - '1']);
    else if (*c == '@')
      put(w, w->names[*++c - '0']);
    else if (*c == ' ' && w->other)
      put(w, "\t\n");
    else
      put(w, one);
  }
}

/* Locals for what is used twice, in their order; then the outputs: those that nothing uses. */
static void write_text(writing *w, int count) {
  int outputs = 0;
  w->at = 0;
  for (int i = 0; i < count; i++) {
    snprintf(w->name[i], sizeof w->name[i], w->other ? "t%d" : "L_%d", w->other ? 99 - i : i);
    if (!named(w, i)) continue;
    put(w, w->name[i]);
    put(w, " = ");
    put_item(w, i);
    put(w, ";");
  }
  for (int i = 0; i < count; i++) {
    if (w->items[i].uses || outputs == AT_EXPRESSION_OUTPUTS) continue;
    if (outputs++) put(w, ", ");
    put_item(w, i);
  }
}

/* At most 8 items that nothing uses: else the text would have other items than the graph. */
static int make_small(item *items) {
  for (;;) {
    const int count = make_items(items);
    int outputs = 0;
    for (int i = 0; i < count; i++) outputs += items[i].uses == 0;
    if (outputs <= AT_EXPRESSION_OUTPUTS) return count;
  }
}

/* The rewritten graph gives what the text does, and the check of that gives no false alarm. */
static void check_plain(const char *text) {
  operands o;
  at_expression *e = NULL;
  read_operands(&o, LINE);
  o.signature.tensor_count = keep_mentioned(o.tensors, o.signature.tensor_count, text, strlen(text));
  o.signature.scalar_count = keep_mentioned(o.scalars, o.signature.scalar_count, text, strlen(text));
  OK(at_expression_create_checked(&e, text, strlen(text), &o.signature));
  if (at_plain_check(e) != ATTUNE_OK) fail_msg("%s: %s", text, attune_last_message());
  at_expression_destroy(e);
}

TEST(random_graphs) {
  const char *asked = getenv("ATTUNE_TEST_EXPRESSIONS");
  const int wanted = asked ? atoi(asked) : 2000;
  static char text[TEXT], other[TEXT];
  int good = 0, refused = 0;
  seed = 20251122;
  while (good < wanted) {
    item items[MOST];
    const int count = make_small(items);
    writing w = {.items = items, .names = NAMES, .text = text};
    write_text(&w, count);
    writing v = {.items = items, .names = OTHERS, .other = true, .text = other};
    write_text(&v, count);
    at_expression *e = NULL, *f = NULL;
    const attune_status one = compile_mentioned(&e, LINE, text), two = compile_mentioned(&f, OTHER_LINE, other);
    if (one != two)
      fail_msg("%s\nis %s, and\n%s\nis not\n%s", text, e ? e->text : "refused", other, attune_last_message());
    if (one == ATTUNE_OK) {
      if (strcmp(e->text, f->text) != 0) fail_msg("%s\nis %s;\n%s\nis %s", text, e->text, other, f->text);
      round_trip(e, text);
      if (good % 4 == 0) check_plain(text);
      good++;
    } else {
      refused++;
    }
    at_expression_destroy(e);
    at_expression_destroy(f);
  }
  assert_true(refused < 2 * wanted);
}

/* ---- large and deep ---- */

TEST(large) {
  static char text[AT_EXPRESSION_CHARS + 1];
  at_expression *e = NULL;
  size_t at = 0;
  for (int i = 0; i < 330; i++) at_append(text, sizeof text, &at, "%sa * %d.5", i ? " + " : "", i); /* a row */
  OK(compile(&e, "f32 a", text));
  round_trip(e, "a row");
  at_expression_destroy(e);
  at = (size_t)(snprintf(text, sizeof text, "x0 = a;") > 0 ? strlen(text) : 0);
  for (int i = 1; i < 500; i++)
    at_append(text, sizeof text, &at, "x%d = sin(x%d - 1);", i, i - 1); /* deeper than a text may nest */
  at_append(text, sizeof text, &at, "x499");
  OK(compile(&e, "f32 a", text));
  round_trip(e, "a chain");
  at_expression_destroy(e);
  at = (size_t)(snprintf(text, sizeof text, "x0 = a;") > 0 ? strlen(text) : 0);
  for (int i = 1; i < 400; i++)
    at_append(text, sizeof text, &at, "x%d = x%d * x%d;", i, i - 1, i - 1); /* 2^400 paths */
  at_append(text, sizeof text, &at, "x399");
  OK(compile(&e, "f32 a", text));
  round_trip(e, "a tower");
  at_expression_destroy(e);
  at = 0;
  for (int i = 0; i < 32; i++) at_append(text, sizeof text, &at, "%s(rand() - 1) * (rand() - 1)", i ? " + " : "");
  OK(compile(&e, "", text)); /* many that look alike */
  assert_int_equal(e->uniform_count, 64);
  round_trip(e, "draws");
  at_expression_destroy(e);
}

/* The program's locale does not change what a number is, nor how it is written. */
TEST(locales) {
  static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "da_DK.UTF-8"};
  for (size_t i = 0; i < AT_COUNT(names); i++)
    if (setlocale(LC_ALL, names[i])) break;
  GIVES("f64 a", "a * 1.5 + 1e-3", "i0 * 1.5 + 0.001");
  setlocale(LC_ALL, "C");
}

TEST(canonical_errors) {
  static const char *const texts[] = {"",
                                      "i0",
                                      "f32 i0",
                                      "f32 i1: i1",
                                      "f32 a: a",
                                      "f33 i0: i0",
                                      "f32 i0 i0",
                                      "f32 i0,: i0 +",
                                      ": ",
                                      "f32 i0, f32 i0: i0",
                                      "f32 s0: f32(s0)",
                                      "f32 i0: i0 + f64(i0) ; i0",
                                      "f32 i0, : i0 @",
                                      "f32 i0 : i0, f32 i1",
                                      "bool i0 i1: i0",
                                      "\xff",
                                      ":",
                                      "f32 i0: i0 /* c */"};
  at_expression *e = (at_expression *)8;
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    if (at_expression_parse_canonical(&e, texts[i]) != ATTUNE_INVALID_ARGUMENT) fail_msg("\"%s\" is taken", texts[i]);
    assert_null(e);
  }
  FAILS(at_expression_parse_canonical(&e, NULL), ATTUNE_INVALID_ARGUMENT);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
