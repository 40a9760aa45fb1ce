/* SPDX-License-Identifier: Apache-2.0
 * cut.c: texts cut to a width so that those which differ still look different. A text loses what all have in common at
 * their ends, where that is enough, else its middle, but not its sizes where there is room for them:
 *
 *   gemm f32 nn 1024x1024x1024 strict lda=2048   in 32 columns:   gemm f32 nn 1024x1024x1024…=2048
 *                                                in 20 columns:   gemm…1024x1024x1024…
 *
 * Where that makes two of them alike, the words before the sizes are shown rather than the first ones; and where that
 * is not enough, each shows what tells it from the others between two marks. */
#include "tools/cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { MARKED = 8 }; /* columns; in fewer a text loses its end */

typedef struct cutting {
  char *clean; /* the text as a terminal may show it */
  char *cut;
  int differs; /* the column where it differs from its nearest neighbour */
  size_t number;
} cutting;

static const char *mark(void) {
  return cli_utf8() ? "\u2026" : "~";
}

/* Appends the columns from `from` to below `to`, characters that lie in them as a whole. */
static char *append(char *out, const char *clean, int from, int to) {
  for (int column = 0; *clean && column < to;) {
    wchar_t c = 0;
    mbstate_t state = {0};
    const size_t got = mbrtowc(&c, clean, strlen(clean), &state);
    const size_t bytes = got == (size_t)-1 || got == (size_t)-2 || got == 0 ? 1 : got;
    const int wide = bytes == got ? wcwidth(c) : 1, step = wide > 0 ? wide : 0;
    if (column >= from && column + step <= to) {
      memcpy(out, clean, bytes);
      out += bytes;
    }
    clean += bytes;
    column += step;
  }
  *out = '\0';
  return out;
}

static char *append_text(char *out, const char *text) {
  return stpcpy(out, text);
}

/* The columns of the sizes in a text, 1024x1024x1024 or 4096, from 0 on: *from to below *to; false: it has none. */
static bool find_sizes(const char *clean, int *from, int *to) {
  for (const char *word = clean; *word; word += strspn(word, " ")) {
    const size_t chars = strcspn(word, " ");
    if (word != clean && chars && strspn(word, "0123456789x") == chars && word[0] != 'x') {
      *from = (int)(word - clean); /* what stands before is ASCII */
      *to = *from + (int)chars;
      return true;
    }
    for (size_t i = 0; i < chars; i++)
      if ((unsigned char)word[i] >= 0x80) return false;
    word += chars;
  }
  return false;
}

int cli_sizes_end(const char *text) {
  int from, to = 0;
  char *clean = cli_clean(text);
  if (!find_sizes(clean, &from, &to)) to = 0;
  free(clean);
  return to;
}

/* The sizes whole, before them the first columns or, `near`, the last ones of what stands there, behind them the last
 * ones but for `common`; false: there is no room. */
static bool cut_at_sizes(cutting *c, int width, int common, bool near) {
  int from, to;
  const int total = cli_width(c->clean), rest = total - common;
  if (width < MARKED || !find_sizes(c->clean, &from, &to)) return false;
  const int behind = total > to, room = width - (to - from) - behind;
  char *out = c->cut;
  if (room < 1) return false;
  if (from <= room) {
    out = append_text(append(out, c->clean, 0, to), mark());
    const int tail = room - from - (common > 0);
    if (rest <= to || tail <= 0) return true;
    out = append(out, c->clean, rest - tail, rest);
    if (common) append_text(out, mark());
    return true;
  }
  if (near)
    out = append(append_text(out, mark()), c->clean, from - (room - 1), from);
  else
    out = append_text(append(out, c->clean, 0, room - 1), mark());
  out = append(out, c->clean, from, to);
  if (behind) append_text(out, mark());
  return true;
}

/* `common`: so many of the last columns all texts have, from the end of a word on: they go first, and where that is not
 * enough, the middle of the rest does. */
static void cut_middle(cutting *c, int width, int common) {
  const int total = cli_width(c->clean), rest = total - common, room = width - 1 - (common > 0);
  const int tail = width < MARKED ? 0 : room / 3, head = room - tail;
  if (total <= width) {
    strcpy(c->cut, c->clean);
    return;
  }
  if (rest >= width && head < cli_sizes_end(c->clean) && cut_at_sizes(c, width, common, false)) return;
  char *out = append_text(append(c->cut, c->clean, 0, rest < width ? rest : head), mark());
  if (rest < width) return;
  out = append(out, c->clean, rest - tail, rest);
  if (common) append_text(out, mark());
}

static void cut_near_sizes(cutting *c, int width) {
  if (cli_width(c->clean) > width) (void)cut_at_sizes(c, width, 0, true);
}

/* Its first columns, those where it differs from its neighbours, and its last ones. */
static void cut_around(cutting *c, int width) {
  const int total = cli_width(c->clean), part = (width - 2) / 4, window = width - 2 - 2 * part;
  const int from = c->differs - 1;
  if (total <= width || width < MARKED) return;
  char *out = append_text(append(c->cut, c->clean, 0, part), mark());
  if (from + window + part >= total) {
    append(out, c->clean, total - (width - 1 - part), total);
    return;
  }
  out = append_text(append(out, c->clean, from, from + window), mark());
  append(out, c->clean, total - part, total);
}

/* Its first columns and its place in the list. */
static void cut_numbered(cutting *c, int width) {
  char number[32];
  const int chars = snprintf(number, sizeof number, "#%zu", c->number + 1);
  if (cli_width(c->clean) <= width || width <= chars) return;
  append_text(append_text(append(c->cut, c->clean, 0, width - 1 - chars), mark()), number);
}

static int by_cut(const void *left, const void *right) {
  const cutting *const *a = left, *const *b = right;
  const int order = strcmp((*a)->cut, (*b)->cut);
  return order ? order : strcmp((*a)->clean, (*b)->clean);
}

/* Of two texts that differ, the column where they do. */
static int first_difference(const char *a, const char *b) {
  size_t same = 0;
  while (a[same] && a[same] == b[same]) same++;
  while (same > 0 && ((unsigned char)a[same] & 0xC0) == 0x80) same--;
  char *head = cli_alloc(same + 1, 1);
  memcpy(head, a, same);
  const int column = cli_width(head);
  free(head);
  return column;
}

static void copy(const cutting *from, cutting *to, bool *alike) {
  *alike = true;
  if (from->differs > to->differs) to->differs = from->differs;
}

/* Cuts those again that look like another text. They are sorted, so a text's nearest neighbours stand next to it. */
static bool part_alike(cutting **sorted, size_t count, int width, void (*again)(cutting *, int)) {
  bool any = false;
  bool *alike = cli_alloc(count + 1, sizeof *alike);
  qsort(sorted, count, sizeof *sorted, by_cut);
  for (size_t i = 0; i < count; i++) sorted[i]->differs = 0;
  for (size_t i = 1; i < count; i++) {
    cutting *a = sorted[i - 1], *b = sorted[i];
    if (strcmp(a->cut, b->cut) != 0 || strcmp(a->clean, b->clean) == 0) continue;
    const int column = first_difference(a->clean, b->clean);
    any = alike[i - 1] = alike[i] = true;
    if (column > a->differs) a->differs = column;
    if (column > b->differs) b->differs = column;
  }
  for (size_t i = 1; i < count; i++) /* equal texts are cut in the same way */
    if (alike[i - 1] && strcmp(sorted[i - 1]->clean, sorted[i]->clean) == 0) copy(sorted[i - 1], sorted[i], &alike[i]);
  for (size_t i = count; i-- > 1;)
    if (alike[i] && strcmp(sorted[i - 1]->clean, sorted[i]->clean) == 0) copy(sorted[i], sorted[i - 1], &alike[i - 1]);
  for (size_t i = 0; i < count; i++)
    if (alike[i]) again(sorted[i], width);
  free(alike);
  return any;
}

/* Bytes of a clean text behind its sizes, all if it has none. */
static size_t behind_sizes(const char *clean) {
  int from, to = 0;
  return strlen(clean) - (find_sizes(clean, &from, &to) ? (size_t)to : 0);
}

/* How many columns at their ends, behind the sizes, all texts have in common, from the end of a word on. */
static int common_end(const cutting *all, size_t count) {
  if (count < 2) return 0;
  const char *first = all[0].clean + strlen(all[0].clean), *from = first;
  size_t most = behind_sizes(all[0].clean);
  for (size_t i = 1; i < count; i++) {
    const char *end = all[i].clean + strlen(all[i].clean);
    const size_t behind = behind_sizes(all[i].clean);
    if (behind < most) most = behind;
    size_t same = 0;
    while (same < most && end - same > all[i].clean && first[-1 - (long)same] == end[-1 - (long)same]) same++;
    most = same;
  }
  for (size_t chars = 1; chars <= most; chars++)
    if (strchr(" ,", first[-(long)chars])) from = first - chars;
  return cli_width(from);
}

void cli_cut_apart(char **texts, size_t count, int width) {
  cutting *all = cli_alloc(count + 1, sizeof *all), **sorted = cli_alloc(count + 1, sizeof *sorted);
  for (size_t i = 0; i < count; i++) {
    char *clean = cli_clean(texts[i]);
    all[i] = (cutting){.clean = clean, .cut = cli_alloc(strlen(clean) + 64, 1), .number = i};
    sorted[i] = &all[i];
  }
  const int common = common_end(all, count);
  for (size_t i = 0; i < count; i++) cut_middle(&all[i], width, common);
  if (part_alike(sorted, count, width, cut_near_sizes) && part_alike(sorted, count, width, cut_around))
    (void)part_alike(sorted, count, width, cut_numbered);
  for (size_t i = 0; i < count; i++) {
    free(texts[i]);
    free(all[i].clean);
    texts[i] = all[i].cut;
  }
  free(sorted);
  free(all);
}
