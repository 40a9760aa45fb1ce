-- SPDX-License-Identifier: Apache-2.0
-- schema.sql: a tuning database, version 3. Opening compares the stored schema with this text, so tables come first,
-- then indexes, each statement starts a line, and a change raises user_version. Databases of another version are refused.

PRAGMA application_id = 1096041538;
PRAGMA user_version = 3;

-- The device's part of a fingerprint (fingerprint.h), up to "; with ".
CREATE TABLE fingerprint (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;

-- The rest of it: the implementations that a search compared, and what they depend on. '': not known.
CREATE TABLE implementations (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;

-- row_check: a hash of the two texts, the family and every column below; a row that differs from it is a miss.
CREATE TABLE winner (
  fingerprint INTEGER NOT NULL,
  implementations INTEGER NOT NULL,
  family TEXT NOT NULL,
  problem TEXT NOT NULL,
  measure TEXT NOT NULL,
  device TEXT NOT NULL,
  implementation TEXT NOT NULL,
  version INTEGER NOT NULL,
  configuration TEXT NOT NULL,
  time_ns REAL NOT NULL,
  spread REAL NOT NULL,
  samples INTEGER NOT NULL,
  default_implementation TEXT NOT NULL,
  default_time_ns REAL NOT NULL,
  runner_up TEXT NOT NULL,
  runner_up_configuration TEXT NOT NULL,
  runner_up_time_ns REAL NOT NULL,
  candidates INTEGER NOT NULL,
  rejected INTEGER NOT NULL,
  disturbed INTEGER NOT NULL,
  max_error REAL NOT NULL,
  tuning_ms REAL NOT NULL,
  complete INTEGER NOT NULL,
  tuned_at INTEGER NOT NULL,
  note TEXT NOT NULL,
  placement_spread REAL NOT NULL,
  unsure INTEGER NOT NULL,
  row_check INTEGER NOT NULL,
  PRIMARY KEY (problem, fingerprint, measure, implementations)
) STRICT, WITHOUT ROWID;

-- The candidates of the search that found the winner of the same key, in the order they were given.
CREATE TABLE trial (
  fingerprint INTEGER NOT NULL,
  implementations INTEGER NOT NULL,
  problem TEXT NOT NULL,
  measure TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  implementation TEXT NOT NULL,
  configuration TEXT NOT NULL,
  time_ns REAL NOT NULL,
  spread REAL NOT NULL,
  samples INTEGER NOT NULL,
  verdict TEXT NOT NULL,
  PRIMARY KEY (problem, fingerprint, measure, implementations, ordinal)
) STRICT, WITHOUT ROWID;

-- Problems met in mode record; last is in seconds since 1970.
CREATE TABLE workload (
  fingerprint INTEGER NOT NULL,
  problem TEXT NOT NULL,
  count INTEGER NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY (fingerprint, problem)
) STRICT, WITHOUT ROWID;

-- Who tunes a problem now. place: the boot and the process namespace that pid and started are of; token: the open
-- store; expires is in milliseconds since 1970.
CREATE TABLE lease (
  fingerprint INTEGER NOT NULL,
  problem TEXT NOT NULL,
  token INTEGER NOT NULL,
  place TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  PRIMARY KEY (fingerprint, problem)
) STRICT, WITHOUT ROWID;

CREATE INDEX winner_family ON winner (fingerprint, family, measure, problem, implementations);
