/* SPDX-License-Identifier: Apache-2.0
 * store_version_2.h: a database as version 2 made it, and rows like its own. The tables are tuning/store/schema_2.sql's; the rows
 * below were written by an attune of version 2. */
#ifndef AT_TESTS_STORE_VERSION_2_H
#define AT_TESTS_STORE_VERSION_2_H

#include "tests/tuning/store/store_fixture.h"

#include "schema_2_sql.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* What of its fingerprints is of the device. Two of them were of one CPU, with two versions of a library. */
#define CPU_2 "Test CPU; avx2 fma; 1024 KiB cache; attune 1"
#define GPU_2 "NVIDIA H200; sm_90; 132 processors; 51200 KiB cache; cc 9.0; driver 13000; attune 1"

/* Winners of numbers 0 to 3 (winner_of), number 1 also by an older library, the trials of two, calls, and a lease. */
static const char ROWS_2[] =
    "INSERT INTO \"fingerprint\" VALUES(1,'Test CPU; avx2 fma; 1024 KiB cache; openblas-0.3.21 "
    "blis-0.9.0; attune 1');"
    "INSERT INTO \"fingerprint\" VALUES(2,'Test CPU; avx2 fma; 1024 KiB cache; openblas-0.3.20 "
    "blis-0.9.0; attune 1');"
    "INSERT INTO \"fingerprint\" VALUES(3,'NVIDIA H200; sm_90; 132 processors; 51200 KiB cache; cc 9.0; "
    "driver 13000; cublas 13.1.0 cublaslt 130100; attune 1');"
    "INSERT INTO \"fingerprint\" VALUES(4,'host|test cpu|avx2');"
    "INSERT INTO \"trial\" VALUES(1,'gemm f32 nn 0x16x1 strict','hot,eager',0,'one','tile=1',10.5,0.5,7,"
    "'winner');"
    "INSERT INTO \"trial\" VALUES(1,'gemm f32 nn 0x16x1 strict','hot,eager',1,'two','',0.0,0.0,0,"
    "'failed');"
    "INSERT INTO \"trial\" VALUES(1,'gemm f32 nn 1x16x2 strict','hot,eager',0,'one','tile=1',10.5,0.5,7,"
    "'winner');"
    "INSERT INTO \"winner\" VALUES(1,'gemm f32 nn strict','gemm f32 nn 0x16x1 strict','hot,eager',"
    "'cuda:0','implementation_0',1,'tile=0x128,stages=0',1000.25,0.001,20,'default_0',2000.5,'runner_0',"
    "'tile=3',1500.0,30,0,0,0.125,12.5,0,1700000000,'note \xc3\x97 0',0.0625,0,643030444791412464);"
    "INSERT INTO \"winner\" VALUES(1,'gemm f32 nn strict','gemm f32 nn 1x16x2 strict','hot,eager',"
    "'cuda:1','implementation_1',2,'tile=1x128,stages=1',1001.25,0.002,21,'default_1',2001.5,'runner_1',"
    "'tile=4',1501.0,31,1,1,0.125,13.5,1,1700000001,'note \xc3\x97 1',0.125,0,-2248313204568057584);"
    "INSERT INTO \"winner\" VALUES(2,'gemm f32 nn strict','gemm f32 nn 1x16x2 strict','hot,eager',"
    "'cuda:1','implementation_1',2,'tile=1x128,stages=1',1001.25,0.002,21,'default_1',2001.5,'runner_1',"
    "'tile=4',1501.0,31,1,1,0.125,13.5,1,1699999901,'by an older library',0.1875,0,1688337878871457272);"
    "INSERT INTO \"winner\" VALUES(3,'gemm f32 nn strict','gemm f32 nn 2x16x3 strict','hot,eager',"
    "'cuda:2','implementation_2',3,'tile=2x128,stages=2',1002.25,0.003,22,'default_2',2002.5,'runner_2',"
    "'tile=5',1502.0,32,2,2,0.125,14.5,0,1700000002,'note \xc3\x97 2',0.25,1,526805259972910584);"
    "INSERT INTO \"winner\" VALUES(4,'gemm f32 nn strict','gemm f32 nn 3x16x4 strict','hot,eager',"
    "'cuda:3','implementation_3',4,'tile=3x128,stages=3',1003.25,0.004,23,'default_0',2003.5,'runner_3',"
    "'tile=6',1503.0,33,3,3,0.125,15.5,1,1700000003,'note \xc3\x97 3',0.3125,0,2113424932125067514);"
    "INSERT INTO \"workload\" VALUES(1,'gemm f64 nn 2x2x2 strict',70,1795312681);"
    "INSERT INTO \"workload\" VALUES(1,'gemm f64 nn 3x3x3 strict',9000000000000000000,1795312681);"
    "INSERT INTO \"workload\" VALUES(2,'gemm f64 nn 2x2x2 strict',7,1795312681);"
    "INSERT INTO \"workload\" VALUES(2,'gemm f64 nn 3x3x3 strict',9000000000000000000,1795312681);"
    "INSERT INTO \"workload\" VALUES(3,'gemm f64 nn 2x2x2 strict',5,1795312681);"
    "INSERT INTO lease VALUES(1,'held',2751108432024702217,'a boot pid:[1]',10927,1444502,1795312741171);";

static inline void make_version_2(const char *path, const char *rows) {
  write_file(path, "", 0);
  execute(path, at_schema_2_sql);
  execute(path, rows);
  assert_int_equal(chmod(path, 0600), 0);
}

/* --- the hash of a row, as version 2 made it --- */

static inline size_t put_bytes(unsigned char *to, const void *bytes, size_t size) {
  memcpy(to, bytes, size);
  return size;
}

static inline size_t put_text(unsigned char *to, const char *text) {
  const uint64_t length = strlen(text);
  const size_t used = put_bytes(to, &length, sizeof length);
  return used + put_bytes(to + used, text, length);
}

static inline size_t put_int(unsigned char *to, int64_t value) {
  return put_bytes(to, &value, sizeof value);
}

static inline long long check_of_version_2(const char *fingerprint, const char *family, const attune_decision *d) {
  unsigned char c[8192];
  size_t n = put_text(c, fingerprint);
  n += put_text(c + n, family);
  n += put_text(c + n, d->problem);
  n += put_text(c + n, d->measure);
  n += put_text(c + n, d->device);
  n += put_text(c + n, d->implementation);
  n += put_int(c + n, d->implementation_version);
  n += put_text(c + n, d->configuration);
  n += put_bytes(c + n, &d->time_ns, sizeof d->time_ns);
  n += put_bytes(c + n, &d->spread, sizeof d->spread);
  n += put_int(c + n, d->samples);
  n += put_text(c + n, d->default_implementation);
  n += put_bytes(c + n, &d->default_time_ns, sizeof d->default_time_ns);
  n += put_text(c + n, d->runner_up);
  n += put_text(c + n, d->runner_up_configuration);
  n += put_bytes(c + n, &d->runner_up_time_ns, sizeof d->runner_up_time_ns);
  n += put_int(c + n, d->candidates);
  n += put_int(c + n, d->rejected);
  n += put_int(c + n, d->disturbed);
  n += put_bytes(c + n, &d->max_error, sizeof d->max_error);
  n += put_bytes(c + n, &d->tuning_ms, sizeof d->tuning_ms);
  n += put_int(c + n, d->complete);
  n += put_int(c + n, d->tuned_at);
  n += put_text(c + n, d->note);
  n += put_bytes(c + n, &d->placement_spread, sizeof d->placement_spread);
  n += put_int(c + n, d->unsure);
  return (long long)XXH64(c, n, 1);
}

/* A database of version 2 with one winner, complete and sure, of a fingerprint of that version. */
static inline void make_winner_of_version_2(const char *path, const char *fingerprint, const char *family,
                                            const attune_decision *d) {
  char sql[4096];
  const int chars = snprintf(
      sql, sizeof sql,
      "INSERT INTO fingerprint VALUES (1, '%s'); INSERT INTO winner VALUES (1, '%s', '%s', '%s', '%s', '%s', %d, '%s', "
      "%.17g, 0.0, %d, '%s', %.17g, '', '', 0.0, 0, 0, 0, 0.0, 0.0, 1, %lld, '', 0.0, 0, %lld);",
      fingerprint, family, d->problem, d->measure, d->device, d->implementation, d->implementation_version,
      d->configuration, d->time_ns, d->samples, d->default_implementation, d->default_time_ns, (long long)d->tuned_at,
      check_of_version_2(fingerprint, family, d));
  assert_in_range(chars, 1, (int)sizeof sql - 1);
  make_version_2(path, sql);
}

#endif
