/* SPDX-License-Identifier: Apache-2.0
 * problem_text.h: what the texts of all operations have in common. A text is words with a blank between them; the first
 * is the operation's name. Dtypes, sizes and numbers are written alike, and so is what contract.h has: an accuracy,
 * "deterministic", "align=16", "workspace=4096". */
#ifndef AT_PROBLEM_TEXT_H
#define AT_PROBLEM_TEXT_H

#include "src/base/dtype.h"
#include "tuning/op/contract.h"
#include "tuning/op/op.h"

/* ---- writing: true when it fitted, as at_append ---- */

/* " strict", " strict deterministic" */
bool at_text_put_accuracy(char *out, size_t size, size_t *at, attune_accuracy accuracy, bool deterministic);

/* " align=16 workspace=4096", each where it is not the usual. `workspace_cap` is one of at_workspace_cap. */
bool at_text_put_limits(char *out, size_t size, size_t *at, uint8_t alignment, uint64_t workspace_cap);

/* INVALID_ARGUMENT: out[size] does not hold a problem's text. */
attune_status at_text_too_small(size_t size);

/* ---- reading ---- */

/* Has the word a number that no int64_t holds? */
bool at_text_too_large(const char *word);

/* One kind of word. `read` is false for a word that is not of the kind; it may change those that are. */
typedef struct at_word_kind {
  const char *expected; /* for messages: "nn, nt, tn or tt" */
  bool (*read)(char *word, void *into);
  bool optional;
} at_word_kind;

/* Reads a text: the operation's name, a word of each kind in this order, without the optional ones if it likes, and of
 * the last kind any number, also none. INVALID_ARGUMENT naming the word that it cannot read, or the end. */
attune_status at_text_read(const char *text, const char *operation, const at_word_kind *kinds, int count, void *into);

/* "f32" or "float32" (at_dtype_from_text), chars of it, if it is among `dtypes`: bits 1 << dtype. */
#define AT_DTYPE_BIT(dtype) (1u << (unsigned)(dtype))
#define AT_DTYPES_FLOAT \
  (AT_DTYPE_BIT(ATTUNE_F64) | AT_DTYPE_BIT(ATTUNE_F32) | AT_DTYPE_BIT(ATTUNE_F16) | AT_DTYPE_BIT(ATTUNE_BF16))
#define AT_DTYPES_ALL ((AT_DTYPE_BIT(AT_DTYPE_LAST) << 1) - 2u)
bool at_text_dtype(const char *word, size_t chars, unsigned dtypes, attune_dtype *out);

/* "4096x16x4096": `least` to `most` sizes. */
bool at_text_sizes(char *word, int64_t *const *sizes, size_t least, size_t most);

/* "strict", "equivalent", "reduced" */
bool at_text_accuracy(const char *word, attune_accuracy *out);

/* "deterministic", "align=16", "workspace=4096" */
bool at_text_term(const char *word, at_contract *terms);

/* A number of a problem: "lda=128" in a text, a column lda of a workload. */
typedef enum at_number_kind {
  AT_NUMBER_SIZE,  /* 1 or more */
  AT_NUMBER_BATCH, /* 1 or more; in a column also 0, which is one */
  AT_NUMBER_PITCH, /* 1 or more, or not given: packed; in a column also 0 */
  AT_NUMBER_STRIDE /* the same, or "broadcast": AT_BROADCAST */
} at_number_kind;
#define AT_BROADCAST (-1)
typedef struct at_number {
  const char *name;
  int64_t *value;
  at_number_kind kind;
} at_number;
bool at_text_number(const char *word, const at_number *numbers, size_t count);

/* `failure` naming two of the words that contradict or repeat each other: of one name, as "lda=4 lda=5", or both among
 * `exclusive`, "relu gelu". `subject`: whose words they are, "the problem". */
attune_status at_text_check_once(attune_status failure, const char *subject, const char *words,
                                 const char *const *exclusive, size_t count);

/* INVALID_ARGUMENT when operands at addresses of this class would not be aligned to elements of these bytes. */
attune_status at_text_check_alignment(uint8_t alignment, size_t element);

/* INVALID_ARGUMENT: the contract's accuracy is none. */
attune_status at_fail_accuracy(const attune_contract *contract);

#endif
