/* SPDX-License-Identifier: Apache-2.0
 * table_markdown.c: a table as Markdown. What may be any text stands as code, in which nothing but its end means something. */
#include "tools/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "tools/compare/report/report_text.h"

void cli_put_markdown(FILE *out, const char *text) {
  char *clean = cli_clean(text);
  if (!*clean || strpbrk(clean, "`|"))
    gate_put(out, GATE_MARKDOWN, text, 0);
  else
    fprintf(out, "`%s`", clean);
  free(clean);
}

void cli_table_markdown(const cli_table *table, FILE *out) {
  for (int k = 0; k < table->column_count; k++) fprintf(out, "| %s ", table->columns[k].title);
  fputs("|\n", out);
  for (int k = 0; k < table->column_count; k++) fputs(table->columns[k].right ? "|---:" : "|---", out);
  fputs("|\n", out);
  for (size_t i = 0; i < table->rows; i++) {
    for (int k = 0; k < table->column_count; k++) {
      const char *cell = table->cells[i * (size_t)table->column_count + (size_t)k];
      fputs("| ", out);
      if (table->columns[k].shrink && strcmp(cell, "ok") != 0)
        cli_put_markdown(out, cell);
      else
        fputs(cell, out);
      fputc(' ', out);
    }
    fputs("|\n", out);
  }
}
