/* SPDX-License-Identifier: Apache-2.0
 * spec.c: reads the words of spec.h. */
#include "ops/elementwise/problem/spec.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/ir/keywords.h"
#include "ops/elementwise/language/compile.h"
#include "src/base/dtype.h"
#include "tuning/op/problem_text.h"

enum { PARTS = 4, WORD_CHARS = 256 };

static const char *or_empty(const char *text) {
  return text ? text : "";
}

/* "4096x-1" to numbers, outermost first; their count, -1: it is none of that. */
static int read_numbers(const char *text, int64_t least, int64_t *out) {
  int count = 0;
  if (!*text) return 0;
  for (;; text++) {
    int64_t x = 0;
    const size_t chars = count == AT_DIMS ? 0 : at_read_i64(&x, text);
    if (!chars || x < least || x == INT64_MAX || x == INT64_MIN) return -1;
    out[count++] = x;
    text += chars;
    if (*text == '\0') return count;
    if (*text != 'x') return -1;
  }
}

static attune_status read_dtype(const char *text, const char *of, attune_dtype *out) {
  if (at_text_dtype(text, strlen(text), AT_DTYPES_ALL, out)) return ATTUNE_OK;
  return AT_INVALID("the dtype of %.60s is \"%.20s\"; should be f64, f32, f16, bf16, f8e4m3, f8e5m2, i8 to i64, u8 to "
                    "u64, bool, c64 or c128",
                    of, text);
}

/* The next word of *text, with blanks between, into word; false: there is none, or it is too long. */
static bool next_word(const char **text, char word[WORD_CHARS]) {
  *text += strspn(*text, " \t");
  const size_t chars = strcspn(*text, " \t");
  if (chars == 0 || chars >= WORD_CHARS) return false;
  memcpy(word, *text, chars);
  word[chars] = '\0';
  *text += chars;
  return true;
}

/* "a:bf16::1x4" to its parts; those that are not there are "". False: too many. */
static bool split(char *word, char *parts[PARTS], int most) {
  static char nothing[1];
  for (int i = 0; i < PARTS; i++) parts[i] = nothing;
  for (int i = 0;; i++) {
    if (i == most) return false;
    parts[i] = word;
    word = strchr(word, ':');
    if (!word) return true;
    *word++ = '\0';
  }
}

static const char *keep_name(at_spec *s, const char *name, size_t chars) {
  char *to = s->names[s->name_count];
  if (s->name_count == (int)AT_COUNT(s->names) || chars >= sizeof s->names[0]) return NULL;
  memcpy(to, name, chars);
  to[chars] = '\0';
  s->name_count++;
  return to;
}

/* ---- names that the expression uses ---- */

static bool is_name(int c) {
  return isalnum(c) || c == '_';
}

static bool is_known(const at_spec *s, const char *name, size_t chars) {
  for (int i = 0; i < s->name_count; i++)
    if (strlen(s->names[i]) == chars && memcmp(s->names[i], name, chars) == 0) return true;
  return false;
}

/* Is the word that ends at `end` given a value there, or called? */
static bool is_no_operand(const char *end) {
  while (isspace((unsigned char)*end)) end++;
  return *end == '(' || (end[0] == '=' && end[1] != '=');
}

/* Has `name` a value of its own in the text, "name ="? */
static bool is_local(const char *text, const char *name, size_t chars) {
  for (const char *at = text; *at; at++) {
    if ((at != text && is_name((unsigned char)at[-1])) || strncmp(at, name, chars) != 0) continue;
    const char *end = at + chars;
    while (isspace((unsigned char)*end)) end++;
    if (!is_name((unsigned char)at[chars]) && end[0] == '=' && end[1] != '=') return true;
  }
  return false;
}

static attune_status find_names(at_spec *s, const char *text) {
  if (strnlen(text, AT_EXPRESSION_CHARS + 1) > AT_EXPRESSION_CHARS) return ATTUNE_OK; /* refused when it is compiled */
  for (const char *at = text; *at;) {
    const char *end = at;
    if (*at == '#') {
      at += strcspn(at, "\n");
      continue;
    }
    while (is_name((unsigned char)*end) || (*end == '.' && isdigit((unsigned char)*at))) end++;
    if (*end == '.' && is_name((unsigned char)end[1]) && !isdigit((unsigned char)*at)) { /* torch.float32, a cast */
      const char *last = end + 1;
      while (is_name((unsigned char)*last)) last++;
      if (at_dtype_from_text(at, (size_t)(last - at))) end = last;
    }
    const size_t chars = (size_t)(end - at);
    if (chars > 0 && !isdigit((unsigned char)*at) && !is_no_operand(end) && !at_name_taken(at, chars) &&
        !is_known(s, at, chars) && !is_local(text, at, chars)) {
      if (s->operands.input_count == AT_EXPRESSION_INPUTS || chars >= AT_EXPRESSION_NAME)
        return AT_INVALID("the expression has more than %d inputs, or a name of more than %d characters",
                          AT_EXPRESSION_INPUTS, AT_EXPRESSION_NAME - 1);
      s->inputs[s->operands.input_count++].name = keep_name(s, at, chars);
    }
    at = chars ? end : at + 1;
  }
  return ATTUNE_OK;
}

/* ---- the columns ---- */

/* "0.5", "3", "true", "1.5-2j" by the scalar's kind; the end must be reached. */
static bool read_value(attune_scalar *s, const char *text) {
  if (s->kind == ATTUNE_BOOL) {
    s->integer = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return s->integer || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
  }
  if (text[0] == '+') text++;
  if (s->kind == ATTUNE_I64) return at_parse_i64(&s->integer, text);
  s->imaginary = 0.0;
  size_t chars = at_read_number(&s->value, text);
  if (s->kind != ATTUNE_C128 || !text[chars]) return chars && !text[chars];
  text += chars;
  if (!chars || (*text != '+' && *text != '-')) return false;
  if (*text == '+') text++;
  chars = at_read_number(&s->imaginary, text);
  return chars && strcmp(text + chars, "j") == 0;
}

/* Of a scalar without one. */
static void set_usual(attune_scalar *s) {
  s->value = 0.625;
  s->imaginary = s->kind == ATTUNE_C128 ? 0.3125 : 0.0;
  s->integer = s->kind == ATTUNE_BOOL ? 1 : 3;
}

static attune_status read_scalar(at_spec *s, attune_scalar *to, char *word) {
  char *part[PARTS], whole[WORD_CHARS];
  (void)at_copy_text(whole, sizeof whole, word);
  char *value = strchr(word, '=');
  if (value) *value++ = '\0';
  if (!split(word, part, 2))
    return AT_INVALID("scalar \"%.60s\" should be a name, its kind and its value: n:i64=3", whole);
  *to = (attune_scalar){.name = keep_name(s, part[0], strlen(part[0])), .kind = ATTUNE_F64};
  if (!to->name) return AT_INVALID("the name of a scalar has more than %d characters", AT_EXPRESSION_NAME - 1);
  attune_status status = ATTUNE_OK;
  if (part[1][0]) status = read_dtype(part[1], part[0], &to->kind);
  if (status != ATTUNE_OK) return status;
  set_usual(to);
  if (!value || read_value(to, value)) return ATTUNE_OK;
  return AT_INVALID("the value of scalar \"%.60s\" should be %s", whole,
                    to->kind == ATTUNE_BOOL   ? "true or false"
                    : to->kind == ATTUNE_I64  ? "a whole number, such as -3"
                    : to->kind == ATTUNE_C128 ? "a complex number, such as 1.5-2j"
                                              : "a number, such as 0.5");
}

static attune_status read_scalars(at_spec *s, const char *text) {
  char word[WORD_CHARS];
  while (next_word(&text, word)) {
    if (s->operands.scalar_count == AT_EXPRESSION_SCALARS)
      return AT_INVALID("there are more than %d scalars", AT_EXPRESSION_SCALARS);
    AT_TRY(read_scalar(s, &s->scalars[s->operands.scalar_count++], word));
  }
  return *text ? AT_INVALID("a word of the scalars is too long") : ATTUNE_OK;
}

static attune_status read_strides(attune_tensor *t, int64_t *strides, const char *text, const char *name) {
  if (!text[0]) return ATTUNE_OK;
  if (read_numbers(text, INT64_MIN, strides) != t->dims)
    return AT_INVALID("the strides of %.60s are \"%.80s\"; should be %d numbers, in elements, such as 1x64", name, text,
                      t->dims);
  t->strides = strides;
  return ATTUNE_OK;
}

static attune_status read_input(at_spec *s, attune_tensor *t, char *part[PARTS], const attune_tensor *whole) {
  attune_status status = ATTUNE_OK;
  t->dtype = whole->dtype;
  t->dims = whole->dims;
  memcpy(t->sizes, whole->sizes, sizeof t->sizes);
  if (part[1][0]) status = read_dtype(part[1], t->name, &t->dtype);
  if (status == ATTUNE_OK && part[2][0] && (t->dims = read_numbers(part[2], 0, t->sizes)) < 0)
    status = AT_INVALID("the shape of %.60s is \"%.80s\"; should be up to %d sizes of 1 or more, such as 64x1024",
                        t->name, part[2], AT_DIMS);
  if (status != ATTUNE_OK) return status;
  return read_strides(t, s->strides[AT_EXPRESSION_OUTPUTS + (t - s->inputs)], part[3], t->name);
}

static attune_status read_inputs(at_spec *s, const char *text, const char *expression, const attune_tensor *whole) {
  char word[WORD_CHARS], *part[PARTS];
  attune_status status = ATTUNE_OK;
  while (status == ATTUNE_OK && next_word(&text, word)) {
    if (s->operands.input_count == AT_EXPRESSION_INPUTS)
      return AT_INVALID("there are more than %d inputs", AT_EXPRESSION_INPUTS);
    if (!split(word, part, PARTS))
      return AT_INVALID("input \"%.60s\" should be a name, dtype, shape and strides: a:f32:64x8:1x64", word);
    attune_tensor *t = &s->inputs[s->operands.input_count++];
    t->name = keep_name(s, part[0], strlen(part[0]));
    status = t->name ? read_input(s, t, part, whole)
                     : AT_INVALID("the name of an input has more than %d characters", AT_EXPRESSION_NAME - 1);
  }
  if (status == ATTUNE_OK && *text) return AT_INVALID("a word of the inputs is too long");
  const int given = s->operands.input_count;
  if (status == ATTUNE_OK) status = find_names(s, expression);
  for (int i = given; i < s->operands.input_count && status == ATTUNE_OK; i++) {
    char *nothing[PARTS] = {"", "", "", ""};
    status = read_input(s, &s->inputs[i], nothing, whole);
  }
  return status;
}

/* "@a": the output is input a's memory. */
static attune_status read_place(at_spec *s, int output, const char *name) {
  for (int i = 0; i < s->operands.input_count; i++)
    if (strcmp(s->inputs[i].name, name) == 0) {
      const char *own = s->outputs[output].name;
      s->in_place[output] = i;
      s->outputs[output] = s->inputs[i];
      s->outputs[output].name = own;
      return ATTUNE_OK;
    }
  return AT_INVALID("output %d is \"@%.60s\"; should be @ and the name of an input", output, name);
}

static attune_status read_outputs(at_spec *s, const char *text) {
  char word[WORD_CHARS], *part[PARTS];
  attune_status status = ATTUNE_OK;
  for (int i = 0; status == ATTUNE_OK && next_word(&text, word); i++) {
    if (i == s->operands.output_count)
      return AT_INVALID("there are more outputs than the expression's %d", s->operands.output_count);
    if (word[0] == '@') {
      status = read_place(s, i, word + 1);
      continue;
    }
    if (!split(word, part, 2)) return AT_INVALID("output \"%.60s\" should be a dtype and strides: f32:1x64", word);
    if (part[0][0]) status = read_dtype(part[0], "an output", &s->outputs[i].dtype);
    if (status == ATTUNE_OK) status = read_strides(&s->outputs[i], s->strides[i], part[1], "an output");
  }
  return status == ATTUNE_OK && *text ? AT_INVALID("a word of the outputs is too long") : status;
}

/* As many outputs as the expression has, of its dtypes. */
static attune_status type_outputs(at_spec *s, const char *text, const attune_tensor *whole) {
  at_operand_name tensors[AT_EXPRESSION_INPUTS] = {0}, scalars[AT_EXPRESSION_SCALARS] = {0};
  for (int i = 0; i < s->operands.input_count; i++) {
    (void)at_copy_text(tensors[i].name, sizeof tensors[i].name, s->inputs[i].name);
    tensors[i].dtype = (uint8_t)s->inputs[i].dtype;
  }
  for (int i = 0; i < s->operands.scalar_count; i++) {
    (void)at_copy_text(scalars[i].name, sizeof scalars[i].name, s->scalars[i].name);
    scalars[i].dtype = (uint8_t)s->scalars[i].kind;
  }
  const at_signature signature = {tensors, scalars, s->operands.input_count, s->operands.scalar_count};
  at_expression *e = NULL;
  AT_TRY(at_expression_create(&e, text, strlen(text), &signature));
  s->operands.output_count = e->output_count;
  for (int i = 0; i < e->output_count; i++) {
    s->outputs[i] = *whole;
    s->outputs[i].dtype = (attune_dtype)e->nodes[e->outputs[i]].dtype;
    s->in_place[i] = -1;
  }
  at_expression_destroy(e);
  return ATTUNE_OK;
}

/* No address is another's multiple, so that the class is what was asked for. */
static void set_addresses(at_spec *s, int alignment) {
  uintptr_t at = (uintptr_t)(alignment > 0 ? alignment : AT_ALIGNMENT);
  const uintptr_t step = 2 * at;
  for (int i = 0; i < s->operands.input_count; i++, at += step) s->inputs[i].data = (void *)at;
  for (int i = 0; i < s->operands.output_count; i++, at += step)
    s->outputs[i].data = s->in_place[i] < 0 ? (void *)at : s->inputs[s->in_place[i]].data;
}

attune_status at_spec_read(at_spec *s, const at_spec_words *words) {
  attune_tensor whole = {.dtype = ATTUNE_F32};
  memset(s, 0, sizeof *s);
  s->operands.outputs = s->outputs;
  s->operands.inputs = s->inputs;
  s->operands.scalars = s->scalars;
  s->operands.accuracy = words->accuracy;
  if (!words->expression || !words->expression[0])
    return AT_INVALID("there is no expression; should be text, as in \"a + b\"");
  attune_status status = ATTUNE_OK;
  whole.dims = read_numbers(or_empty(words->shape), 0, whole.sizes);
  if (whole.dims < 0)
    return AT_INVALID("shape is \"%.80s\"; should be up to %d sizes of 1 or more, such as 64x1024", words->shape,
                      AT_DIMS);
  if (or_empty(words->dtype)[0]) status = read_dtype(words->dtype, "the tensors", &whole.dtype);
  if (status == ATTUNE_OK) status = read_scalars(s, or_empty(words->scalars));
  if (status == ATTUNE_OK) status = read_inputs(s, or_empty(words->inputs), words->expression, &whole);
  if (status == ATTUNE_OK) status = type_outputs(s, words->expression, &whole);
  if (status == ATTUNE_OK) status = read_outputs(s, or_empty(words->outputs));
  if (status == ATTUNE_OK) set_addresses(s, words->alignment);
  return status;
}
