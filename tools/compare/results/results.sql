-- SPDX-License-Identifier: Apache-2.0
-- results.sql: a result file of `attune bench`, version 2. Opening compares the stored schema with this text; a change raises
-- user_version. Times are in nanoseconds, of one call, unless a column says otherwise. checksum: of all that the row, and the
-- rows that belong to it, say (results_checksum.c).

PRAGMA application_id = 1096045139;
PRAGMA user_version = 2;

-- One side of one `attune bench`. state: complete, interrupted, or open (still written, or its writer died).
-- started, ended: seconds since 1970; ended is 0 while it is open. pair: the run (the base) that this one alternated
-- with, 0 for none. fingerprint: a JSON object of what measurements depend on.
CREATE TABLE run (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  suite TEXT NOT NULL,
  label TEXT NOT NULL,
  revision TEXT NOT NULL,
  dirty INTEGER NOT NULL,
  fingerprint TEXT NOT NULL,
  command TEXT NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  pair INTEGER NOT NULL,
  state TEXT NOT NULL
, checksum INTEGER NOT NULL DEFAULT 0) STRICT;

-- What was timed in a run. device: host, cuda:N, - (the calling thread) or process (a command). mode: hot or cold,
-- +graph. bytes, flops: of one call, 0 if not told. state: ok or failed, then message says why.
CREATE TABLE bench_case (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  name TEXT NOT NULL,
  device TEXT NOT NULL,
  mode TEXT NOT NULL,
  dtype TEXT NOT NULL,
  bytes REAL NOT NULL,
  flops REAL NOT NULL,
  state TEXT NOT NULL,
  message TEXT, checksum INTEGER NOT NULL DEFAULT 0,
  UNIQUE (run, name, device, mode)
) STRICT;

-- One process's samples of a case. calls: in each sample. clock_mhz: the device's meanwhile, 0 if not known. load: running
-- processes of the machine when it began, negative if not known.
CREATE TABLE visit (
  id INTEGER PRIMARY KEY,
  bench_case INTEGER NOT NULL,
  round INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  clock_mhz REAL NOT NULL,
  throttled INTEGER NOT NULL,
  load REAL NOT NULL
, checksum INTEGER NOT NULL DEFAULT 0) STRICT;

-- cpu_ns: CPU time of all threads of the process, 0 if not known. start: CLOCK_MONOTONIC.
CREATE TABLE sample (
  visit INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  ns REAL NOT NULL,
  cpu_ns REAL NOT NULL,
  start INTEGER NOT NULL,
  PRIMARY KEY (visit, ordinal)
) STRICT, WITHOUT ROWID;

-- The best that a device did during a run, for a roofline: bytes and operations a second, 0 if not known. dtype: - for memory
-- alone.
CREATE TABLE roof (
  run INTEGER NOT NULL,
  device TEXT NOT NULL,
  dtype TEXT NOT NULL,
  bytes_s REAL NOT NULL,
  flops_s REAL NOT NULL, checksum INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run, device, dtype)
) STRICT, WITHOUT ROWID;

CREATE INDEX visit_case ON visit (bench_case, round);
