/* SPDX-License-Identifier: Apache-2.0
 * expression_fixture.h: expressions for tests: operands from one line, "f32 a, bf16 b; f64 s" (tensors; scalars), and
 * the canonical text or the message that a text gives. */
#ifndef AT_TEST_EXPRESSION_FIXTURE_H
#define AT_TEST_EXPRESSION_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/ir/keywords.h"
#include "ops/elementwise/language/compile.h"

typedef struct operands {
  at_operand_name tensors[32], scalars[32];
  at_signature signature;
} operands;

static inline void read_operands(operands *o, const char *line) {
  memset(o, 0, sizeof *o);
  bool scalar = false;
  while (*line) {
    char dtype[16], name[AT_EXPRESSION_NAME + 8];
    int used = 0;
    line += strspn(line, " ,");
    if (*line == ';') {
      scalar = true;
      line++;
      continue;
    }
    if (sscanf(line, "%15[a-z0-9] %70[^,; ]%n", dtype, name, &used) != 2) break;
    at_operand_name *to = scalar ? &o->scalars[o->signature.scalar_count++] : &o->tensors[o->signature.tensor_count++];
    to->dtype = (uint8_t)at_dtype_find(dtype, strlen(dtype));
    snprintf(to->name, sizeof to->name, "%.63s", name);
    line += used;
  }
  o->signature.tensors = o->tensors;
  o->signature.scalars = o->scalars;
}

/* Is the name a word of the text? */
static inline bool mentions(const char *text, size_t length, const char *name) {
  static const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  const size_t chars = strlen(name);
  for (size_t i = 0; i + chars <= length; i++)
    if (memcmp(text + i, name, chars) == 0 && (i == 0 || !strchr(letters, text[i - 1]) || !text[i - 1]) &&
        (i + chars == length || !strchr(letters, text[i + chars]) || !text[i + chars]))
      return true;
  return false;
}

static inline int keep_mentioned(at_operand_name *names, int count, const char *text, size_t length) {
  int kept = 0;
  for (int i = 0; i < count; i++)
    if (mentions(text, length, names[i].name)) names[kept++] = names[i];
  return kept;
}

/* With those of the operands that the text mentions. */
static inline attune_status compile_with(at_expression **out, const char *line, const char *text, size_t length) {
  operands o;
  read_operands(&o, line);
  o.signature.tensor_count = keep_mentioned(o.tensors, o.signature.tensor_count, text, length);
  o.signature.scalar_count = keep_mentioned(o.scalars, o.signature.scalar_count, text, length);
  return at_expression_create(out, text, length, &o.signature);
}

static inline attune_status compile_mentioned(at_expression **out, const char *line, const char *text) {
  return compile_with(out, line, text, strlen(text));
}

/* With all of them. */
static inline attune_status compile(at_expression **out, const char *line, const char *text) {
  operands o;
  read_operands(&o, line);
  return at_expression_create(out, text, strlen(text), &o.signature);
}

/* The canonical text of `text` after its operands; the caller frees the expression. */
static inline const char *body(const at_expression *e) {
  return strstr(e->text, ": ") + 2;
}

/* The text compiles to this body. */
#define GIVES(line, source, expected)                                                                              \
  do {                                                                                                             \
    at_expression *gives_e = NULL;                                                                                 \
    if (compile_mentioned(&gives_e, line, source) != ATTUNE_OK) fail_msg("%s: %s", source, attune_last_message()); \
    if (strcmp(body(gives_e), expected) != 0)                                                                      \
      fail_msg("%s gives \"%s\"; should be \"%s\"", source, body(gives_e), expected);                              \
    at_expression_destroy(gives_e);                                                                                \
  } while (0)

#endif
