/* SPDX-License-Identifier: Apache-2.0
 * foreign.c: files of other programs, recognised where a workload should be. A format is known by what its files begin
 * with, or by their names. */
#include "tuning/workload/csv.h"

#include <string.h>
#include <strings.h>

enum { HEAD = 4096 }; /* bytes that are looked at */

typedef struct format {
  const char *what;      /* "NAME is ..." */
  const char *should;    /* "should be a workload: ..." */
  const char *begins;    /* NULL: with anything */
  const char *holds[3];  /* one of these, in the head; none: it need not */
  const char *line[7];   /* one of these, in the first line; none: it need not */
  const char *suffix[6]; /* or the file's name ends with one of these */
} format;

#define CSV "a workload, CSV with a row for each problem"
#define SEE "; docs/formats.md, Workloads from other programs"

static const format formats[] = {
    {.what = "a result file of PyTorch's TunableOp",
     .should = CSV ": tn_4096_16_2048 in a line of it is transa t, transb n, m 4096, n 16, k 2048" SEE,
     .begins = "Validator,"},
    {.what = "a list of problems of PyTorch's TunableOp",
     .should = CSV ": tn_4096_16_2048 in a line of it is transa t, transb n, m 4096, n 16, k 2048" SEE,
     .line = {"TunableOp_"}},
    {.what = "a file of matrix shapes of aiter",
     .should = CSV ": its columns M, N and K, with dtype, layout row-major and transb t" SEE,
     .line = {"cu_num", "libtype", "solidx", "kernelId", "q_dtype_w", "outdtype", "scaleAB"}},
    {.what = "a Triton configuration for mixtures of experts, of vLLM or SGLang",
     .should =
         CSV ": attune has no grouped product; give the product of one expert, dtype,m,n,k, or equal ones by batch",
     .begins = "{",
     .holds = {"\"BLOCK_SIZE_M\""}},
    {.what = "a YAML file of Tensile",
     .should = CSV ": its exact sizes are m, n, batch and k, in this order" SEE,
     .holds = {"MinimumRequiredVersion", "GlobalParameters:", "BenchmarkProblems:"}},
    {.what = "a profile of rocBLAS, YAML",
     .should = CSV ": its M, N, K, transA, transB and call_count are m, n, k, transa, transb and count" SEE,
     .holds = {"rocblas_function:"}},
    {.what = "a log of rocblas-bench or hipblaslt-bench lines",
     .should = CSV ": -m, -n, -k, --transposeA, --transposeB and -r are m, n, k, transa, transb and dtype" SEE,
     .line = {"rocblas-bench", "hipblas-bench", "hipblaslt-bench"}},
    {.what = "a database of MIOpen",
     .should = CSV ": attune has no convolutions",
     .holds = {"miopenConvolution"},
     .suffix = {".fdb.txt", ".ufdb.txt", ".udb.txt", ".cdb.txt", ".pdb.txt", ".db.txt"}},
    {.what = "a profile of attune",
     .should = CSV ": ATTUNE_MODE=record and `attune tune recorded` tune what a program calls",
     .begins = "{\"process\":"},
    {.what = "a spreadsheet or another ZIP archive", .should = CSV ": save the sheet as CSV", .begins = "PK\x03\x04"},
    {.what = "a compressed file", .should = CSV ", not compressed", .begins = "\x1f\x8b"},
    {.what = "JSON", .should = CSV, .begins = "{"},
    {.what = "JSON", .should = CSV, .begins = "["}};

static bool has_one(const char *text, size_t size, const char *const *words, size_t count) {
  for (size_t i = 0; i < count && words[i]; i++)
    if (memmem(text, size, words[i], strlen(words[i]))) return true;
  return false;
}

static bool ends_so(const format *f, const char *name) {
  const size_t chars = strlen(name);
  for (size_t i = 0; i < AT_COUNT(f->suffix) && f->suffix[i]; i++) {
    const size_t of = strlen(f->suffix[i]);
    if (chars > of && strcasecmp(name + chars - of, f->suffix[i]) == 0) return true;
  }
  return false;
}

static bool is_of(const format *f, const char *name, const char *text, size_t size) {
  const size_t head = size < HEAD ? size : HEAD;
  const char *end = memchr(text, '\n', head);
  const size_t line = end ? (size_t)(end - text) : head;
  if (ends_so(f, name)) return true;
  if (f->begins && (size < strlen(f->begins) || memcmp(text, f->begins, strlen(f->begins)) != 0)) return false;
  if (f->holds[0] && !has_one(text, head, f->holds, AT_COUNT(f->holds))) return false;
  if (f->line[0] && !has_one(text, line, f->line, AT_COUNT(f->line))) return false;
  return f->begins || f->holds[0] || f->line[0];
}

/* A database of SQLite: whose it is stands in its header, after 68 bytes. */
static attune_status check_no_database(const char *name, const char *text, size_t size) {
  static const char magic[] = "SQLite format 3"; /* its NUL belongs to it */
  const unsigned char *id = (const unsigned char *)text + 68;
  if (size < 72 || memcmp(text, magic, sizeof magic) != 0) return ATTUNE_OK;
  const bool ours = id[0] == 'A' && id[1] == 'T';
  return at_fail(ATTUNE_BAD_DATA,
                 "%s is %s; should be a workload: CSV text with a problem in each row (--db names a database; `attune "
                 "tune recorded' tunes the problems recorded in it)",
                 name,
                 ours && memcmp(id + 2, "DB", 2) == 0   ? "a tuning database"
                 : ours && memcmp(id + 2, "RS", 2) == 0 ? "a result file of attune bench"
                                                        : "a SQLite database");
}

/* Behind a byte order mark, comments and empty lines: a comment may say where a workload comes from. */
static size_t first_line(const char *text, size_t size) {
  size_t at = size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
  while (at < size && strchr("#\r\n", text[at]) && text[at]) {
    const char *end = memchr(text + at, '\n', size - at);
    at = end ? (size_t)(end - text) + 1 : size;
  }
  return at;
}

attune_status at_foreign_check(const char *name, const char *text, size_t size) {
  if (check_no_database(name, text, size) != ATTUNE_OK) return ATTUNE_BAD_DATA;
  const size_t from = first_line(text, size);
  for (size_t i = 0; i < AT_COUNT(formats); i++)
    if (is_of(&formats[i], name, text + from, size - from))
      return at_fail(ATTUNE_BAD_DATA, "%s is %s; should be %s", name, formats[i].what, formats[i].should);
  return ATTUNE_OK;
}
