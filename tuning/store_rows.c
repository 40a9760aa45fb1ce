/* SPDX-License-Identifier: Apache-2.0
 * store_rows.c: a winner as a row and back: one table of fields drives checking, binding, reading and hashing. */
#include "tuning/store_internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef enum field_kind { FIELD_TEXT, FIELD_TEXT_OR_EMPTY, FIELD_INT, FIELD_FLAG, FIELD_TIME, FIELD_REAL } field_kind;

typedef struct field {
  const char *name;
  field_kind kind;
  size_t offset;
  size_t size;
} field;

#define FIELD(kind, member) \
  { #member, kind, offsetof(attune_decision, member), sizeof(((attune_decision *)0)->member) }

/* In the order of the columns: AT_SQL_PUT and AT_SQL_FIND list them so. */
static const field fields[] = {
    FIELD(FIELD_TEXT, problem),
    FIELD(FIELD_TEXT, measure),
    FIELD(FIELD_TEXT_OR_EMPTY, device),
    FIELD(FIELD_TEXT, implementation),
    FIELD(FIELD_INT, implementation_version),
    FIELD(FIELD_TEXT_OR_EMPTY, configuration),
    FIELD(FIELD_REAL, time_ns),
    FIELD(FIELD_REAL, spread),
    FIELD(FIELD_INT, samples),
    FIELD(FIELD_TEXT_OR_EMPTY, default_implementation),
    FIELD(FIELD_REAL, default_time_ns),
    FIELD(FIELD_TEXT_OR_EMPTY, runner_up),
    FIELD(FIELD_TEXT_OR_EMPTY, runner_up_configuration),
    FIELD(FIELD_REAL, runner_up_time_ns),
    FIELD(FIELD_INT, candidates),
    FIELD(FIELD_INT, rejected),
    FIELD(FIELD_INT, disturbed),
    FIELD(FIELD_REAL, max_error),
    FIELD(FIELD_REAL, tuning_ms),
    FIELD(FIELD_FLAG, complete),
    FIELD(FIELD_TIME, tuned_at),
    FIELD(FIELD_TEXT_OR_EMPTY, note),
    FIELD(FIELD_REAL, placement_spread), /* from here on: since version 2 */
    FIELD(FIELD_FLAG, unsure),
};

#define FIELD_COUNT ((int)AT_COUNT(fields))
#define FIELD_COUNT_1 (FIELD_COUNT - 2)  /* of version 1 */
#define OTHER_COLUMNS 4                  /* fingerprint and family before the fields, hash and fingerprint's id after */
#define REAL_MAX 1e18                    /* ns: thirty years */
#define TIME_MAX ((int64_t)253402300799) /* the year 9999 */

static bool plain_text(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)text[i];
    if (byte < 0x20 || byte == 0x7f) return false; /* also what would steer a terminal */
  }
  return true;
}

static bool real_ok(double value) {
  return isfinite(value) && value >= 0 && value <= REAL_MAX;
}

attune_status at_store_check_text(const char *name, const char *text, size_t size, bool empty) {
  if (!text) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL; should be text", name);
  size_t length = strnlen(text, size);
  if (length == size) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s has over %zu bytes", name, size - 1);
  if (length == 0 && !empty) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is empty", name);
  if (!plain_text(text, length)) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s has control characters", name);
  return ATTUNE_OK;
}

static int get_int(const attune_decision *decision, const field *f) {
  int value;
  memcpy(&value, (const char *)decision + f->offset, sizeof value);
  return value;
}

static int64_t get_int64(const attune_decision *decision, const field *f) {
  int64_t value;
  if (f->kind != FIELD_TIME) return get_int(decision, f);
  memcpy(&value, (const char *)decision + f->offset, sizeof value);
  return value;
}

static double get_real(const attune_decision *decision, const field *f) {
  double value;
  memcpy(&value, (const char *)decision + f->offset, sizeof value);
  return value + 0.0; /* -0 becomes 0: SQLite does not keep the sign */
}

static int64_t int_max(const field *f) {
  return f->kind == FIELD_FLAG ? 1 : f->kind == FIELD_INT ? INT_MAX : TIME_MAX;
}

static attune_status check_field(const attune_decision *decision, const field *f) {
  if (f->kind == FIELD_TEXT || f->kind == FIELD_TEXT_OR_EMPTY) {
    return at_store_check_text(f->name, (const char *)decision + f->offset, f->size, f->kind == FIELD_TEXT_OR_EMPTY);
  }
  if (f->kind == FIELD_REAL) {
    double value = get_real(decision, f);
    if (!real_ok(value))
      return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is %g; should be 0 to %g", f->name, value, REAL_MAX);
    return ATTUNE_OK;
  }
  int64_t value = get_int64(decision, f);
  if (value < 0 || value > int_max(f)) {
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is %lld; should be 0 to %lld", f->name, (long long)value,
                   (long long)int_max(f));
  }
  return ATTUNE_OK;
}

static attune_status check_trial(const at_trial *trial) {
  attune_status status =
      at_store_check_text("trial implementation", trial->implementation, sizeof trial->implementation, false);
  if (status == ATTUNE_OK) {
    status = at_store_check_text("trial configuration", trial->configuration, sizeof trial->configuration, true);
  }
  if (status == ATTUNE_OK) status = at_store_check_text("trial verdict", trial->verdict, sizeof trial->verdict, false);
  if (status != ATTUNE_OK) return status;
  if (!real_ok(trial->time_ns) || !real_ok(trial->spread) || trial->samples < 0) {
    return at_fail(ATTUNE_INVALID_ARGUMENT, "trial %s: time, spread and samples should be 0 or more and finite",
                   trial->implementation);
  }
  return ATTUNE_OK;
}

attune_status at_store_row_make(at_store_row **out, const char *fingerprint, const char *family,
                                const attune_decision *winner, const at_trial *trials, int trial_count) {
  if (!winner || trial_count < 0 || trial_count > 65536 || (trial_count > 0 && !trials)) {
    return at_fail(ATTUNE_INVALID_ARGUMENT, "winner is NULL or trial_count %d is not that of trials (65536 at most)",
                   trial_count);
  }
  attune_status status = at_store_check_text("fingerprint", fingerprint, AT_FINGERPRINT_CHARS, false);
  if (status == ATTUNE_OK) status = at_store_check_text("family", family, AT_FAMILY_CHARS, false);
  attune_decision copy = status == ATTUNE_OK ? *winner : (attune_decision){0};
  copy.complete = copy.complete != 0;
  copy.unsure = copy.unsure != 0;
  for (int i = 0; i < FIELD_COUNT && status == ATTUNE_OK; i++) status = check_field(&copy, &fields[i]);
  for (int i = 0; i < trial_count && status == ATTUNE_OK; i++) status = check_trial(&trials[i]);
  if (status != ATTUNE_OK) return status;
  at_store_row *row = calloc(1, sizeof *row + (size_t)trial_count * sizeof *trials);
  if (!row) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to keep the winner of %s", winner->problem);
  (void)at_copy_text(row->fingerprint, sizeof row->fingerprint, fingerprint);
  (void)at_copy_text(row->family, sizeof row->family, family);
  row->winner = copy;
  row->winner.source = ATTUNE_SOURCE_STORED;
  row->trial_count = trial_count;
  if (trial_count > 0) memcpy(row->trials, trials, (size_t)trial_count * sizeof *trials);
  row->key = at_store_row_key(fingerprint, copy.problem, copy.measure);
  *out = row;
  return ATTUNE_OK;
}

/* What is hashed: more room than a whole row takes. */
typedef struct content {
  size_t size;
  unsigned char bytes[8192];
} content;

_Static_assert(AT_FINGERPRINT_CHARS + AT_FAMILY_CHARS + sizeof(attune_decision) + 2 * FIELD_COUNT * sizeof(uint64_t) <
                   sizeof(((content *)0)->bytes),
               "a row's content must fit");

/* Leaves out what does not fit: only a key that no row can have is that long. */
static void add_bytes(content *c, const void *bytes, size_t size) {
  size_t room = sizeof c->bytes - c->size;
  if (size > room) size = room;
  memcpy(c->bytes + c->size, bytes, size);
  c->size += size;
}

/* Length first, so that the end of one text is never taken for the start of the next. */
static void add_text(content *c, const char *text) {
  uint64_t length = strlen(text);
  add_bytes(c, &length, sizeof length);
  add_bytes(c, text, length);
}

uint64_t at_store_row_key(const char *fingerprint, const char *problem, const char *measure) {
  content c;
  c.size = 0;
  add_text(&c, fingerprint);
  add_text(&c, problem);
  add_text(&c, measure);
  return XXH64(c.bytes, c.size, 0);
}

/* The row's content as stored, in the order of the columns. A machine of the other byte order hashes otherwise:
 * a miss, but its fingerprint is another one anyway. */
static int64_t row_check(const char *fingerprint, const char *family, const attune_decision *decision, int count) {
  content c;
  c.size = 0;
  add_text(&c, fingerprint);
  add_text(&c, family);
  for (int i = 0; i < count; i++) {
    const field *f = &fields[i];
    if (f->kind == FIELD_TEXT || f->kind == FIELD_TEXT_OR_EMPTY) {
      add_text(&c, (const char *)decision + f->offset);
    } else if (f->kind == FIELD_REAL) {
      double value = get_real(decision, f);
      add_bytes(&c, &value, sizeof value);
    } else {
      int64_t value = get_int64(decision, f);
      add_bytes(&c, &value, sizeof value);
    }
  }
  uint64_t digest = XXH64(c.bytes, c.size, 1);
  int64_t check;
  memcpy(&check, &digest, sizeof check);
  return check;
}

static int bind_text(sqlite3_stmt *statement, int index, const char *text) {
  return sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

static int bind_field(sqlite3_stmt *statement, int index, const attune_decision *decision, const field *f) {
  if (f->kind == FIELD_TEXT || f->kind == FIELD_TEXT_OR_EMPTY) {
    return bind_text(statement, index, (const char *)decision + f->offset);
  }
  if (f->kind == FIELD_REAL) return sqlite3_bind_double(statement, index, get_real(decision, f));
  return sqlite3_bind_int64(statement, index, get_int64(decision, f));
}

/* Binds the key that AT_SQL_CLEAR_TRIALS and AT_SQL_PUT_TRIAL begin with. */
static int trial_statement(at_store *store, at_statement which, const at_store_row *row, sqlite3_stmt **out) {
  int code = at_store_statement(store, which, out);
  if (code == SQLITE_OK) code = bind_text(*out, 1, row->fingerprint);
  if (code == SQLITE_OK) code = bind_text(*out, 2, row->winner.problem);
  if (code == SQLITE_OK) code = bind_text(*out, 3, row->winner.measure);
  return code;
}

static int write_trials(at_store *store, const at_store_row *row) {
  sqlite3_stmt *statement;
  int code = trial_statement(store, AT_SQL_CLEAR_TRIALS, row, &statement);
  if (code == SQLITE_OK) code = at_store_step_done(statement);
  for (int i = 0; i < row->trial_count && code == SQLITE_OK; i++) {
    const at_trial *trial = &row->trials[i];
    code = trial_statement(store, AT_SQL_PUT_TRIAL, row, &statement);
    if (code == SQLITE_OK) code = sqlite3_bind_int(statement, 4, i);
    if (code == SQLITE_OK) code = bind_text(statement, 5, trial->implementation);
    if (code == SQLITE_OK) code = bind_text(statement, 6, trial->configuration);
    if (code == SQLITE_OK) code = sqlite3_bind_double(statement, 7, trial->time_ns);
    if (code == SQLITE_OK) code = sqlite3_bind_double(statement, 8, trial->spread);
    if (code == SQLITE_OK) code = sqlite3_bind_int(statement, 9, trial->samples);
    if (code == SQLITE_OK) code = bind_text(statement, 10, trial->verdict);
    if (code == SQLITE_OK) code = at_store_step_done(statement);
  }
  return code;
}

int at_store_winner_write(at_store *store, const char *fingerprint, const char *family, const attune_decision *winner) {
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_PUT, &statement);
  if (code == SQLITE_OK) code = bind_text(statement, 1, fingerprint);
  if (code == SQLITE_OK) code = bind_text(statement, 2, family);
  for (int i = 0; i < FIELD_COUNT && code == SQLITE_OK; i++) code = bind_field(statement, 3 + i, winner, &fields[i]);
  if (code == SQLITE_OK)
    code = sqlite3_bind_int64(statement, 3 + FIELD_COUNT, row_check(fingerprint, family, winner, FIELD_COUNT));
  return code == SQLITE_OK ? at_store_step_done(statement) : code;
}

int at_store_row_write(at_store *store, const at_store_row *row) {
  sqlite3_stmt *statement;
  int code = at_store_statement(store, AT_SQL_ADD_FINGERPRINT, &statement);
  if (code == SQLITE_OK) code = bind_text(statement, 1, row->fingerprint);
  if (code == SQLITE_OK) code = at_store_step_done(statement);
  if (code == SQLITE_OK) code = at_store_winner_write(store, row->fingerprint, row->family, &row->winner);
  return code == SQLITE_OK ? write_trials(store, row) : code;
}

bool at_store_column_text(sqlite3_stmt *statement, int column, char *out, size_t size, bool empty) {
  if (sqlite3_column_type(statement, column) != SQLITE_TEXT) return false;
  const char *text = (const char *)sqlite3_column_text(statement, column);
  size_t length = (size_t)sqlite3_column_bytes(statement, column);
  if (!text || length >= size || (length == 0 && !empty) || !plain_text(text, length)) return false;
  memcpy(out, text, length);
  out[length] = '\0';
  return true;
}

static bool read_field(sqlite3_stmt *statement, int column, attune_decision *out, const field *f) {
  char *at = (char *)out + f->offset;
  int type = sqlite3_column_type(statement, column);
  if (f->kind == FIELD_TEXT || f->kind == FIELD_TEXT_OR_EMPTY) {
    return at_store_column_text(statement, column, at, f->size, f->kind == FIELD_TEXT_OR_EMPTY);
  }
  if (f->kind == FIELD_REAL) {
    double value = sqlite3_column_double(statement, column);
    if (type != SQLITE_FLOAT || !real_ok(value)) return false;
    memcpy(at, &value, sizeof value);
    return true;
  }
  int64_t value = sqlite3_column_int64(statement, column);
  if (type != SQLITE_INTEGER || value < 0 || value > int_max(f)) return false;
  int narrow = f->kind == FIELD_TIME ? 0 : (int)value;
  memcpy(at, f->kind == FIELD_TIME ? (const void *)&value : (const void *)&narrow, f->size);
  return true;
}

bool at_store_row_read_family(sqlite3_stmt *statement, char fingerprint[AT_FINGERPRINT_CHARS],
                              char family[AT_FAMILY_CHARS], attune_decision *out) {
  const int count = sqlite3_column_count(statement) - OTHER_COLUMNS, check = 2 + count;
  memset(out, 0, sizeof *out);
  bool ok = (count == FIELD_COUNT || count == FIELD_COUNT_1) &&
            at_store_column_text(statement, 0, fingerprint, AT_FINGERPRINT_CHARS, false) &&
            at_store_column_text(statement, 1, family, AT_FAMILY_CHARS, false);
  for (int i = 0; i < count && ok; i++) ok = read_field(statement, 2 + i, out, &fields[i]);
  ok = ok && sqlite3_column_type(statement, check) == SQLITE_INTEGER &&
       sqlite3_column_int64(statement, check) == row_check(fingerprint, family, out, count);
  if (count == FIELD_COUNT_1) out->unsure = 1; /* measured at one placement of its operands */
  out->source = ATTUNE_SOURCE_STORED;
  return ok;
}

bool at_store_row_read(sqlite3_stmt *statement, char fingerprint[AT_FINGERPRINT_CHARS], attune_decision *out) {
  char family[AT_FAMILY_CHARS];
  return at_store_row_read_family(statement, fingerprint, family, out);
}
