/* SPDX-License-Identifier: Apache-2.0
 * profile_report.c: writes profiles. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/json_writer.h"
#include "src/process/fork.h"
#include "tuning/workload/dispatch_stats.h"

enum { DONE_MOST = 256, TABLE_ROWS = 40 };

static const char *source_name(attune_source source) {
  static const char *const names[] = {"", "default", "neighbour", "stored", "system", "tuned"};
  return (unsigned)source < AT_COUNT(names) ? names[source] : "";
}

static const char *mode_name(attune_mode mode) {
  static const char *const names[] = {"", "off", "cached", "record", "tune"};
  return (unsigned)mode < AT_COUNT(names) ? names[mode] : "";
}

/* ---- JSON ---- */

/* A time of 0 is not known: null. */
static void put_time(at_json *out, const char *name, double ns) {
  at_json_real(out, name, ns > 0.0 ? ns : (double)NAN, 1);
}

static void put_entry(at_json *out, const attune_profile_entry *e) {
  const attune_decision *d = e->decision;
  at_json_object(out, NULL);
  at_json_word(out, "problem", e->problem);
  at_json_word(out, "stored_as", d->problem);
  at_json_word(out, "device", d->device);
  at_json_number(out, "calls", (int64_t)e->calls);
  at_json_word(out, "implementation", d->implementation);
  at_json_word(out, "configuration", d->configuration);
  at_json_word(out, "source", source_name(d->source));
  at_json_truth(out, "untuned", e->untuned);
  put_time(out, "time_ns", e->time_ns);
  put_time(out, "one_ns", d->time_ns);
  put_time(out, "default_one_ns", d->default_time_ns);
  at_json_real(out, "share", e->share, 6);
  at_json_real(out, "saved_ns", e->saved_ns, 1);
  at_json_real(out, "worth_ns", e->worth_ns, 1);
  at_json_real(out, "flops", e->flops, 0);
  at_json_object_end(out);
}

/* The text of a tuner, which the caller frees; NULL: no memory. */
static char *json_of(const at_dispatch_stats *usage, const attune_tuner *tuner) {
  const attune_profile_totals *t = &usage->totals;
  char *text = NULL;
  size_t bytes;
  at_json out = {.depth = 0};
  at_json_object(&out, NULL);
  at_json_number(&out, "tuner", (int64_t)tuner->id);
  at_json_word(&out, "mode", mode_name(attune_tuner_get_mode(tuner)));
  at_json_number(&out, "calls", (int64_t)t->calls);
  at_json_number(&out, "untuned_calls", (int64_t)t->untuned_calls);
  at_json_number(&out, "unknown_calls", (int64_t)t->unknown_calls);
  at_json_number(&out, "other_calls", (int64_t)t->other_calls);
  put_time(&out, "time_ns", t->time_ns);
  at_json_real(&out, "saved_ns", t->saved_ns, 1);
  at_json_real(&out, "worth_ns", t->worth_ns, 1);
  at_json_list(&out, "problems");
  for (size_t i = 0; i < usage->count; i++) put_entry(&out, &usage->items[i].entry);
  at_json_list_end(&out);
  at_json_object_end(&out);
  (void)at_json_end(&out, &text, &bytes);
  return text;
}

/* ---- the table ---- */

static const char *time_text(char out[AT_TIME_CHARS], double ns) {
  return at_time_text(out, ns, 1);
}

static void put_row(FILE *out, const attune_profile_entry *e) {
  char time[AT_TIME_CHARS] = "?", share[32] = "";
  const attune_decision *d = e->decision;
  if (e->time_ns > 0.0) {
    const unsigned tenths = (unsigned)(e->share * 1000.0 + 0.5);
    time_text(time, e->time_ns);
    snprintf(share, sizeof share, "%u.%u%%", tenths / 10, tenths % 10);
  }
  fprintf(out, "%12llu %10s %7s  %-9s  %s on %s: %s%s%s\n", (unsigned long long)e->calls, time, share,
          source_name(d->source), e->problem, d->device, d->implementation, *d->configuration ? " " : "",
          d->configuration);
}

static bool is_to_be_tuned(const at_dispatch_stats_item *item) {
  return item->entry.untuned && !item->stored;
}

static void put_summary(FILE *out, const at_dispatch_stats *usage) {
  const attune_profile_totals *t = &usage->totals;
  char text[AT_TIME_CHARS];
  if (t->other_calls) fprintf(out, "%12llu calls of further problems\n", (unsigned long long)t->other_calls);
  if (t->saved_ns != 0.0) fprintf(out, "saved against the default: %s\n", time_text(text, t->saved_ns));
  if (t->worth_ns > 0.0)
    fprintf(out, "stored winners that are not used (mode off) would save %s: run with ATTUNE_MODE=cached\n",
            time_text(text, t->worth_ns));
  uint64_t untuned = 0;
  for (size_t i = 0; i < usage->count; i++)
    if (is_to_be_tuned(&usage->items[i])) untuned += usage->items[i].entry.calls;
  if (!untuned) return;
  fprintf(out, "%llu of %llu calls run untuned:\n", (unsigned long long)untuned, (unsigned long long)t->calls);
  int rows = 0;
  for (size_t i = 0; i < usage->count; i++) {
    const attune_profile_entry *e = &usage->items[i].entry;
    if (is_to_be_tuned(&usage->items[i]) && ++rows <= TABLE_ROWS)
      fprintf(out, "%12llu  %s on %s\n", (unsigned long long)e->calls, e->problem, e->decision->device);
  }
  if (rows > TABLE_ROWS) fprintf(out, "              and %d more\n", rows - TABLE_ROWS);
  fputs("to tune them, run with ATTUNE_MODE=record, then run `attune tune recorded'\n", out);
}

static void put_table(FILE *out, const at_dispatch_stats *usage, const attune_tuner *tuner) {
  const attune_profile_totals *t = &usage->totals;
  char text[AT_TIME_CHARS];
  fprintf(out, "attune: profile of process %ld, tuner %llu, mode %s: %llu calls of %zu problem%s, ", (long)getpid(),
          (unsigned long long)tuner->id, mode_name(attune_tuner_get_mode(tuner)), (unsigned long long)t->calls,
          usage->count, usage->count == 1 ? "" : "s");
  if (t->time_ns > 0.0) fprintf(out, "%s estimated", time_text(text, t->time_ns));
  if (t->unknown_calls)
    fprintf(out, "%s%llu calls of problems that were never measured", t->time_ns > 0.0 ? "; " : "",
            (unsigned long long)t->unknown_calls);
  fputs("\n       calls       time   share  source     problem, device, implementation\n", out);
  for (size_t i = 0; i < usage->count && i < TABLE_ROWS; i++) put_row(out, &usage->items[i].entry);
  if (usage->count > TABLE_ROWS) fprintf(out, "%12s and %zu more problems\n", "", usage->count - TABLE_ROWS);
  put_summary(out, usage);
}

/* ---- to files ---- */

static attune_status fail_file(const char *path, int error) {
  const attune_status status = error == ENOENT || error == ENOTDIR                   ? ATTUNE_NOT_FOUND
                               : error == EACCES || error == EPERM || error == EROFS ? ATTUNE_PERMISSION
                                                                                     : ATTUNE_IO_ERROR;
  return at_fail(status, "the profile cannot be written to %s: %s", path, strerror(error));
}

/* The table, which the caller frees; NULL: no memory. */
static char *table_of(const at_dispatch_stats *usage, const attune_tuner *tuner) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (!out) return NULL;
  put_table(out, usage, tuner);
  const bool ok = !ferror(out);
  if (fclose(out) == 0 && ok) return text;
  free(text);
  return NULL;
}

static attune_status write_file(const char *path, const char *const *tuners, size_t count) {
  FILE *out = fopen(path, "we");
  if (!out) return fail_file(path, errno);
  fprintf(out, "{\"process\": %ld, \"tuners\": [", (long)getpid());
  for (size_t i = 0; i < count; i++) fprintf(out, "%s\n %s", i ? "," : "", tuners[i]);
  fputs("]}\n", out);
  errno = 0;
  const bool bad = ferror(out) != 0, unwritten = fclose(out) != 0;
  return bad || unwritten ? fail_file(path, errno ? errno : EIO) : ATTUNE_OK;
}

attune_status attune_tuner_profile_write(attune_tuner *tuner, const char *path) {
  AT_REQUIRE(tuner);
  if (!path || !*path) return AT_INVALID("path is NULL or empty; should name a file");
  at_tuner_open(tuner);
  at_dispatch_stats usage;
  const at_message kept = at_message_keep();
  AT_TRY(at_dispatch_stats_take(&usage, tuner));
  char *text = json_of(&usage, tuner);
  at_dispatch_stats_free(&usage);
  attune_status status = text ? write_file(path, (const char *const *)&text, 1)
                              : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the profile");
  free(text);
  return at_message_settle(&kept, status);
}

/* ---- ATTUNE_PROFILE ---- */

/* The profiles of this process so far, for each writes its file again: those of tuners that are gone, and at the end of
 * the process of all. */
typedef struct done_profile {
  char *path, *text;
} done_profile;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t done_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf; guards the two below */
static done_profile done[DONE_MOST];
static size_t done_count;

/* A child tells of itself only. */
static void after_fork(void *unused, bool child) {
  (void)unused;
  for (; child && done_count; done_count--) {
    free(done[done_count - 1].path);
    free(done[done_count - 1].text);
  }
}

static void watch_forks(void) {
  static at_fork_watch watch = {.lock = &done_lock, .after = after_fork};
  at_fork_watch_add(&watch);
}

/* "%p" is the process's number. */
static bool expand(const char *path, char *out, size_t size) {
  size_t at = 0;
  bool ok = true;
  *out = '\0';
  for (; *path && ok; path++) {
    const bool process = path[0] == '%' && path[1] == 'p';
    ok = process ? at_append(out, size, &at, "%ld", (long)getpid()) : at_append(out, size, &at, "%c", *path);
    path += process;
  }
  return ok;
}

/* Both texts become the list's. *out: the texts of that file, borrowed: none is freed while the process lives but in a
 * child of fork. */
static size_t add_done(char *path, char *text, const char *out[DONE_MOST]) {
  size_t count = 0;
  pthread_mutex_lock(&done_lock);
  if (done_count < DONE_MOST) {
    done[done_count++] = (done_profile){path, text};
  } else {
    free(path);
    free(text);
    path = NULL;
  }
  for (size_t i = 0; i < done_count && path; i++)
    if (strcmp(done[i].path, path) == 0) out[count++] = done[i].text;
  pthread_mutex_unlock(&done_lock);
  return count;
}

static void end_in_file(const attune_tuner *tuner, char *text) {
  char path[4352];
  const char *texts[DONE_MOST];
  char *own = expand(tuner->profile, path, sizeof path) ? strdup(path) : NULL;
  if (!own) {
    free(text);
    return;
  }
  pthread_once(&once, watch_forks);
  const size_t count = add_done(own, text, texts);
  if (count && write_file(path, texts, count) != ATTUNE_OK) at_log(ATTUNE_LOG_ERROR, "%s", attune_last_message());
}

void at_profile_end(attune_tuner *tuner) {
  at_dispatch_stats usage;
  if (!tuner->profile) return;
  if (at_dispatch_stats_take(&usage, tuner) != ATTUNE_OK) {
    at_log(ATTUNE_LOG_ERROR, "the profile is not written: %s", attune_last_message());
    return;
  }
  const bool table = strcmp(tuner->profile, "stderr") == 0;
  char *text = !usage.totals.calls ? NULL : table ? table_of(&usage, tuner) : json_of(&usage, tuner);
  at_dispatch_stats_free(&usage);
  if (!text) return;
  if (table) {
    fputs(text, stderr);
    free(text);
  } else {
    end_in_file(tuner, text);
  }
}
