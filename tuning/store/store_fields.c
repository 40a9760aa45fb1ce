/* SPDX-License-Identifier: Apache-2.0
 * store_fields.c: one table of a winner's fields drives checking, binding, reading and hashing a row. */
#include "tuning/store/store_fields.h"
#include "tuning/store/store_internal.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* True for bytes without control characters. */
static bool plain_text(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)text[i];
    if (byte < 0x20 || byte == 0x7f) return false; /* also what would steer a terminal */
  }
  return true;
}

attune_status at_store_check_text(const char *name, const char *text, size_t size, bool empty) {
  if (!text) return AT_INVALID("%s is NULL; should be text", name);
  size_t length = strnlen(text, size);
  if (length == size) return AT_INVALID("%s has over %zu bytes", name, size - 1);
  if (length == 0 && !empty) return AT_INVALID("%s is empty", name);
  if (!plain_text(text, length)) return AT_INVALID("%s has control characters", name);
  return ATTUNE_OK;
}

bool at_store_real_ok(double value) {
  return isfinite(value) && value >= 0 && value <= AT_STORE_REAL_MAX;
}

typedef enum field_kind { FIELD_TEXT, FIELD_TEXT_OR_EMPTY, FIELD_INT, FIELD_FLAG, FIELD_TIME, FIELD_REAL } field_kind;

typedef struct field {
  const char *name;
  field_kind kind;
  size_t offset;
  size_t size;
} field;

#define FIELD(kind, member, column) \
  {#member, FIELD_##kind, offsetof(attune_decision, member), sizeof(((attune_decision *)0)->member)},

static const field fields[] = {AT_STORE_FIELDS(FIELD)};

enum { FIELD_COUNT = AT_COUNT(fields) };

#define OTHER_COLUMNS 6 /* two texts and the family before the fields, hash and two ids after */
#define REAL_MAX AT_STORE_REAL_MAX
#define TIME_MAX ((int64_t)253402300799) /* the year 9999 */

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
  if (f->kind == FIELD_TEXT || f->kind == FIELD_TEXT_OR_EMPTY)
    return at_store_check_text(f->name, (const char *)decision + f->offset, f->size, f->kind == FIELD_TEXT_OR_EMPTY);
  if (f->kind == FIELD_REAL) {
    double value = get_real(decision, f);
    if (!at_store_real_ok(value)) return AT_INVALID("%s is %g; should be 0 to %g", f->name, value, REAL_MAX);
    return ATTUNE_OK;
  }
  int64_t value = get_int64(decision, f);
  if (value < 0 || value > int_max(f))
    return AT_INVALID("%s is %lld; should be 0 to %lld", f->name, (long long)value, (long long)int_max(f));
  return ATTUNE_OK;
}

attune_status at_store_check_fields(const attune_decision *decision) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < FIELD_COUNT && status == ATTUNE_OK; i++) status = check_field(decision, &fields[i]);
  return status;
}

/* --- the hash --- */

static void add_bytes(XXH64_state_t *hash, const void *bytes, size_t size) {
  (void)XXH64_update(hash, bytes, size);
}

/* Length first, so that the end of one text is never taken for the start of the next. */
static void add_piece(XXH64_state_t *hash, const char *text, size_t chars) {
  uint64_t length = chars;
  add_bytes(hash, &length, sizeof length);
  add_bytes(hash, text, chars);
}

static void add_text(XXH64_state_t *hash, const char *text) {
  add_piece(hash, text, strlen(text));
}

uint64_t at_store_row_key(const char *fingerprint, const char *problem, const char *measure) {
  XXH64_state_t hash;
  (void)XXH64_reset(&hash, 0);
  add_piece(&hash, fingerprint, at_fingerprint_device_chars(fingerprint));
  add_text(&hash, problem);
  add_text(&hash, measure);
  return XXH64_digest(&hash);
}

/* The row's content as stored, in the order of the columns: the texts first. A machine of the other byte order
 * hashes otherwise: a miss, but its fingerprint is another one anyway. */
static int64_t row_check(const char *fingerprint, const char *family, const attune_decision *decision) {
  XXH64_state_t hash;
  (void)XXH64_reset(&hash, 1);
  add_piece(&hash, fingerprint, at_fingerprint_device_chars(fingerprint));
  add_text(&hash, at_fingerprint_implementations(fingerprint));
  add_text(&hash, family);
  for (int i = 0; i < FIELD_COUNT; i++) {
    const field *f = &fields[i];
    if (f->kind == FIELD_TEXT || f->kind == FIELD_TEXT_OR_EMPTY) {
      add_text(&hash, (const char *)decision + f->offset);
    } else if (f->kind == FIELD_REAL) {
      double value = get_real(decision, f);
      add_bytes(&hash, &value, sizeof value);
    } else {
      int64_t value = get_int64(decision, f);
      add_bytes(&hash, &value, sizeof value);
    }
  }
  uint64_t digest = XXH64_digest(&hash);
  int64_t check;
  memcpy(&check, &digest, sizeof check);
  return check;
}

/* --- columns --- */

static int bind_text(sqlite3_stmt *statement, int index, const char *text) {
  return sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

static int bind_field(sqlite3_stmt *statement, int index, const attune_decision *decision, const field *f) {
  if (f->kind == FIELD_TEXT || f->kind == FIELD_TEXT_OR_EMPTY)
    return bind_text(statement, index, (const char *)decision + f->offset);
  if (f->kind == FIELD_REAL) return sqlite3_bind_double(statement, index, get_real(decision, f));
  return sqlite3_bind_int64(statement, index, get_int64(decision, f));
}

int at_store_bind_fields(sqlite3_stmt *statement, int index, const char *fingerprint, const char *family,
                         const attune_decision *decision) {
  int code = SQLITE_OK;
  for (int i = 0; i < FIELD_COUNT && code == SQLITE_OK; i++)
    code = bind_field(statement, index + i, decision, &fields[i]);
  if (code != SQLITE_OK) return code;
  return sqlite3_bind_int64(statement, index + FIELD_COUNT, row_check(fingerprint, family, decision));
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
  if (f->kind == FIELD_TEXT || f->kind == FIELD_TEXT_OR_EMPTY)
    return at_store_column_text(statement, column, at, f->size, f->kind == FIELD_TEXT_OR_EMPTY);
  if (f->kind == FIELD_REAL) {
    double value = sqlite3_column_double(statement, column);
    if (type != SQLITE_FLOAT || !at_store_real_ok(value)) return false;
    memcpy(at, &value, sizeof value);
    return true;
  }
  int64_t value = sqlite3_column_int64(statement, column);
  if (type != SQLITE_INTEGER || value < 0 || value > int_max(f)) return false;
  int narrow = f->kind == FIELD_TIME ? 0 : (int)value;
  memcpy(at, f->kind == FIELD_TIME ? (const void *)&value : (const void *)&narrow, f->size);
  return true;
}

/* The two texts joined. */
static bool read_fingerprint(sqlite3_stmt *statement, char out[AT_FINGERPRINT_CHARS]) {
  char implementations[AT_FINGERPRINT_CHARS];
  if (!at_store_column_text(statement, 0, out, AT_FINGERPRINT_CHARS, false)) return false;
  if (!at_store_column_text(statement, 1, implementations, sizeof implementations, true)) return false;
  return at_fingerprint_join(out, AT_FINGERPRINT_CHARS, implementations);
}

bool at_store_row_read(sqlite3_stmt *statement, at_stored_row *out) {
  const int check = 3 + FIELD_COUNT;
  attune_decision *d = &out->decision;
  memset(d, 0, sizeof *d);
  bool ok = sqlite3_column_count(statement) == FIELD_COUNT + OTHER_COLUMNS &&
            read_fingerprint(statement, out->fingerprint) &&
            at_store_column_text(statement, 2, out->family, sizeof out->family, false);
  for (int i = 0; i < FIELD_COUNT && ok; i++) ok = read_field(statement, 3 + i, d, &fields[i]);
  ok = ok && sqlite3_column_type(statement, check) == SQLITE_INTEGER &&
       sqlite3_column_int64(statement, check) == row_check(out->fingerprint, out->family, d);
  out->fingerprint_id = sqlite3_column_int64(statement, check + 1);
  out->implementations_id = sqlite3_column_int64(statement, check + 2);
  d->source = ATTUNE_SOURCE_STORED;
  return ok;
}
