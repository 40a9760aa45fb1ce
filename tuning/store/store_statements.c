/* SPDX-License-Identifier: Apache-2.0
 * store_statements.c: the text of every SQL statement, and a store's prepared statements. */
#include "tuning/store/store_fields.h"
#include "tuning/store/store_internal.h"

#define COLUMN(kind, member, column) #column ", "
#define PLACE(kind, member, column) "?, "

/* What a walk selects, as at_store_row_read takes it: the texts of the fingerprint, the family, the fields, the hash,
 * the ids of the texts. */
#define WINNER \
  "SELECT f.text, i.text, w.family, " AT_STORE_FIELDS(COLUMN) "row_check, w.fingerprint, w.implementations "

/* A walk goes on after the key ?1 problem, ?2 fingerprint, ?3 measure, ?4 implementations; ?5 is the device's part of a
 * fingerprint, ?6 a family, ?7 a measure, ?8 a problem. */
#define ALL                                                                                                       \
  "FROM winner w CROSS JOIN fingerprint f ON f.id = w.fingerprint CROSS JOIN implementations i ON i.id = "        \
  "w.implementations WHERE (w.problem, w.fingerprint, w.measure, w.implementations) > (?1, ?2, ?3, ?4) ORDER BY " \
  "w.problem, w.fingerprint, w.measure, w.implementations"
#define OF_FAMILY                                                                                             \
  "FROM fingerprint f CROSS JOIN winner w INDEXED BY winner_family ON w.fingerprint = f.id CROSS JOIN "       \
  "implementations i ON i.id = w.implementations WHERE f.text = ?5 AND w.family = ?6 AND w.measure = ?7 AND " \
  "(w.problem, w.implementations) > (?1, ?4) ORDER BY w.problem, w.implementations"
#define OF_KEY                                                                                                     \
  "FROM fingerprint f CROSS JOIN winner w ON w.fingerprint = f.id CROSS JOIN implementations i ON i.id = "         \
  "w.implementations WHERE f.text = ?5 AND w.problem = ?8 AND w.measure = ?7 AND w.implementations > ?4 ORDER BY " \
  "w.implementations"

#define FINGERPRINT "(SELECT id FROM fingerprint WHERE text = ?1)"
#define IMPLEMENTATIONS "(SELECT id FROM implementations WHERE text = ?2)"
#define MOST "9223372036854775807"

static const char *const texts[AT_SQL_COUNT] = {
    [AT_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [AT_SQL_COMMIT] = "COMMIT",
    [AT_SQL_ROLLBACK] = "ROLLBACK",
    [AT_SQL_ADD_FINGERPRINT] = "INSERT INTO fingerprint (text) VALUES (?1) ON CONFLICT DO NOTHING",
    [AT_SQL_ADD_IMPLEMENTATIONS] = "INSERT INTO implementations (text) VALUES (?1) ON CONFLICT DO NOTHING",
    [AT_SQL_PUT] = "INSERT OR REPLACE INTO winner (fingerprint, implementations, family, " AT_STORE_FIELDS(
        COLUMN) "row_check) VALUES (" FINGERPRINT ", " IMPLEMENTATIONS ", ?3, " AT_STORE_FIELDS(PLACE) "?)",
    [AT_SQL_CLEAR_TRIALS] = "DELETE FROM trial WHERE fingerprint = " FINGERPRINT
                            " AND implementations = " IMPLEMENTATIONS " AND problem = ?3 AND measure = ?4",
    [AT_SQL_PUT_TRIAL] = "INSERT INTO trial (fingerprint, implementations, problem, measure, ordinal, implementation, "
                         "configuration, time_ns, spread, samples, verdict) VALUES (" FINGERPRINT ", " IMPLEMENTATIONS
                         ", ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    [AT_SQL_TRIALS] =
        "SELECT t.implementation, t.configuration, t.time_ns, t.spread, t.samples, t.verdict FROM fingerprint f CROSS "
        "JOIN trial t ON t.fingerprint = f.id WHERE f.text = ?1 AND t.problem = ?3 AND t.measure = ?4 AND "
        "t.implementations = " IMPLEMENTATIONS " ORDER BY t.ordinal",
    [AT_SQL_RECORD] =
        "INSERT INTO workload (fingerprint, problem, count, last) VALUES (" FINGERPRINT ", ?2, ?3, ?4) "
        "ON CONFLICT DO UPDATE SET last = max(last, excluded.last), "
        "count = CASE WHEN count > " MOST " - excluded.count THEN " MOST " ELSE count + excluded.count END",
    [AT_SQL_WALK] = WINNER ALL,
    [AT_SQL_WALK_FAMILY] = WINNER OF_FAMILY,
    [AT_SQL_WALK_KEY] = WINNER OF_KEY,
    [AT_SQL_RECORDED] =
        "SELECT problem, count FROM workload WHERE fingerprint = " FINGERPRINT " ORDER BY count DESC, problem",
    [AT_SQL_LEASE_READ] =
        "SELECT token, place, pid, started, expires, fingerprint, problem FROM lease WHERE fingerprint = " FINGERPRINT
        " AND problem = ?2",
    [AT_SQL_LEASE_ALL] = "SELECT token, place, pid, started, expires, fingerprint, problem FROM lease",
    [AT_SQL_LEASE_CLEAR] = "DELETE FROM lease WHERE fingerprint = ?1 AND problem = ?2 AND token = ?3",
    [AT_SQL_LEASE_RENEW] =
        "UPDATE lease SET expires = ?4 WHERE fingerprint = " FINGERPRINT " AND problem = ?2 AND token = ?3",
    [AT_SQL_LEASE_TAKE] = "INSERT OR REPLACE INTO lease (fingerprint, problem, token, place, pid, started, expires) "
                          "VALUES (" FINGERPRINT ", ?2, ?3, ?4, ?5, ?6, ?7)",
    [AT_SQL_TOUCH] = "INSERT OR REPLACE INTO lease (fingerprint, problem, token, place, pid, started, expires) "
                     "VALUES (0, '', 0, '', 0, 0, 0)",
    [AT_SQL_UNTOUCH] = "DELETE FROM lease WHERE fingerprint = 0 AND problem = ''",
    [AT_SQL_LEASE_DROP] = "DELETE FROM lease WHERE fingerprint = " FINGERPRINT " AND problem = ?2 AND token = ?3",
    [AT_SQL_LEASE_DROP_ALL] = "DELETE FROM lease WHERE token = ?1",
};

int at_store_statement(at_store *store, at_statement which, sqlite3_stmt **out) {
  sqlite3_stmt **statement = &store->statements[which];
  int code = SQLITE_OK;
  if (*statement) {
    (void)sqlite3_reset(*statement);
    (void)sqlite3_clear_bindings(*statement);
  } else {
    code = sqlite3_prepare_v3(store->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
  }
  *out = *statement;
  return code;
}

int at_store_step_end(sqlite3_stmt *statement, int code) {
  int reset = sqlite3_reset(statement);
  if (code == SQLITE_ROW || code == SQLITE_DONE) return reset;
  return code;
}

int at_store_step_done(sqlite3_stmt *statement) {
  return at_store_step_end(statement, sqlite3_step(statement));
}

int at_store_bind_device(sqlite3_stmt *statement, int index, const char *fingerprint) {
  return sqlite3_bind_text(statement, index, fingerprint, (int)at_fingerprint_device_chars(fingerprint), SQLITE_STATIC);
}
