-- SPDX-License-Identifier: Apache-2.0
-- results_2.sql: what version 2 of a result file has beside version 1. New files are made by both, older ones by this when
-- they are first written to. checksum: of all that the row, and the rows that belong to it, say: results_checksum.c; 0: not
-- known, for the row was made by version 1.

PRAGMA user_version = 2;
ALTER TABLE run ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE bench_case ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE visit ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE roof ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
