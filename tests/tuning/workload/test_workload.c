/* SPDX-License-Identifier: Apache-2.0
 * test_workload.c: workloads from CSV, malformed ones named with their place, and from what mode record wrote down. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include "ops/gemm/problem/problem.h"
#include "ops/ops.h"
#include "tuning/tuner/tuner.h"
#include "tuning/workload/workload.h"

#include <dirent.h>
#include <unistd.h>

static char folder[] = "/tmp/attune-test-workload-XXXXXX";
static char path[64];

FIXTURE(make_folder) {
  if (!mkdtemp(folder)) return 1;
  snprintf(path, sizeof path, "%s/w.csv", folder);
  return 0;
}

FIXTURE(remove_folder) {
  DIR *listing = opendir(folder);
  for (struct dirent *entry; listing && (entry = readdir(listing));) unlinkat(dirfd(listing), entry->d_name, 0);
  if (listing) closedir(listing);
  return rmdir(folder);
}

static attune_status read_text(attune_workload **out, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  return attune_workload_read(out, path);
}

/* `message` follows the path of the file. */
static void expect_refused(const char *text, const char *message) {
  attune_workload *workload = NULL;
  assert_int_equal(read_text(&workload, text), ATTUNE_BAD_DATA);
  assert_null(workload);
  const char *said = attune_last_message();
  assert_memory_equal(said, path, strlen(path));
  assert_memory_equal(said + strlen(path), message, strlen(message));
}

TEST(reads_rows) {
  attune_workload *w = NULL;
  assert_int_equal(read_text(&w,
                             "# shapes\nname,dtype,contract,transa,transb,m,n,k,batch\n"
                             "first,bf16,strict,t,n,4096,16,4096,0\n\"a, \"\"quoted\"\"\",f32,reduced,n,t,8,9,10,2\n"),
                   ATTUNE_OK);
  assert_int_equal(attune_workload_size(w), 2);
  assert_string_equal(attune_workload_at(w, 0)->name, "first");
  assert_string_equal(attune_workload_at(w, 0)->problem, "gemm bf16 tn 4096x16x4096 strict");
  assert_int_equal(attune_workload_at(w, 0)->count, 1);
  assert_string_equal(attune_workload_at(w, 1)->name, "a, \"quoted\"");
  attune_gemm_problem problem = {0};
  assert_int_equal(attune_gemm_problem_parse(&problem, attune_workload_at(w, 1)->problem), ATTUNE_OK);
  assert_int_equal(problem.k, 10);
  assert_int_equal(problem.batch, 2);
  assert_int_equal(problem.contract.accuracy, ATTUNE_REDUCED);
  assert_null(attune_workload_at(w, 2));
  attune_workload_destroy(w);
}

TEST(columns_come_in_any_order) {
  attune_workload *w = NULL;
  assert_int_equal(read_text(&w, "\xEF\xBB\xBFK, count ,N,DTYPE,m,op,lda\r\n3,7,2,f64,1,gemm,\r\n3,,2,f64,1,,5\r\n"),
                   ATTUNE_OK);
  assert_int_equal(attune_workload_size(w), 2);
  const attune_workload_entry *entry = attune_workload_at(w, 0);
  assert_string_equal(entry->problem, "gemm f64 nn 1x2x3 strict");
  assert_string_equal(entry->name, entry->problem);
  assert_int_equal(entry->count, 7);
  assert_int_equal(attune_workload_at(w, 1)->count, 1);
  assert_string_not_equal(attune_workload_at(w, 1)->problem, entry->problem);
  attune_workload_destroy(w);
}

TEST(an_alignment_is_part_of_the_problem) {
  attune_workload *w = NULL;
  assert_int_equal(read_text(&w, "dtype,m,n,k,align\nbf16,8,8,8,16\nbf16,8,8,8,\nbf16,8,8,8,128\n"), ATTUNE_OK);
  assert_string_equal(attune_workload_at(w, 0)->problem, "gemm bf16 nn 8x8x8 strict align=16");
  assert_string_equal(attune_workload_at(w, 1)->problem, "gemm bf16 nn 8x8x8 strict");
  assert_string_equal(attune_workload_at(w, 2)->problem, "gemm bf16 nn 8x8x8 strict");
  attune_workload_destroy(w);
  expect_refused("dtype,m,n,k,align\nf32,8,8,8,24\n", ":2:11: align is \"24\"; should be a power of two");
  expect_refused("dtype,m,n,k,align\nf32,8,8,8,256\n", ":2:11: align is \"256\"");
  expect_refused("dtype,m,n,k,align\nf64,8,8,8,4\n", ":2:11: align=4 is below the size of an element");
}

TEST(reads_problems_as_text) {
  attune_workload *w = NULL;
  assert_int_equal(read_text(&w, "problem,count\ngemm f32 nn 8x8x8 strict,3\n"), ATTUNE_OK);
  assert_string_equal(attune_workload_at(w, 0)->problem, "gemm f32 nn 8x8x8 strict");
  assert_int_equal(attune_workload_at(w, 0)->count, 3);
  attune_workload_destroy(w);
  expect_refused("name,problem\nx,gemm f99 nn 8x8x8 strict\n", ":2:3: ");
  expect_refused("problem\nconvolve f32\n", ":2:1: there is no operation \"convolve\"");
  expect_refused("op,problem\nscan,gemm f32 nn 8x8x8 strict\n", ":2:1: op is \"scan\"; should be \"gemm\"");
  expect_refused("problem,m\nx,1\n", ":1:9: column \"m\" next to \"problem\"");
}

/* ---- a second operation: "scan LENGTH" ---- */

static attune_status scan_parse(const char *text, void *problem) {
  int64_t length = 0;
  if (strncmp(text, "scan ", 5) != 0 || !at_parse_i64(&length, text + 5) || length < 1)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "problem \"%s\" is no scan; should be scan and a length", text);
  memcpy(problem, &length, sizeof length);
  return ATTUNE_OK;
}
static attune_status scan_format(const void *problem, char *out, size_t size) {
  int64_t length = 0;
  memcpy(&length, problem, sizeof length);
  snprintf(out, size, "scan %lld", (long long)length);
  return ATTUNE_OK;
}
static attune_status scan_from_fields(const at_column *fields, int count, char *out, size_t size, char *label,
                                      size_t label_size) {
  for (int i = 0; i < count; i++) {
    if (strcmp(fields[i].name, "length") != 0)
      return at_fail(ATTUNE_BAD_DATA, "%s is no column of a scan; should be length", fields[i].name);
    snprintf(out, size, "scan %s", fields[i].value);
    snprintf(label, label_size, "a scan of %s", fields[i].value);
  }
  return count == 1 ? ATTUNE_OK : at_fail(ATTUNE_BAD_DATA, "column length is missing; scan needs it");
}
static const char *const scan_columns[] = {"length", NULL};
static at_problem_type scan_problem;
static at_op scan;
static const at_op *both[] = {&at_gemm_op, &scan};

static attune_status read_both(attune_workload **out, const char *text, const at_op *unnamed) {
  const at_workload_ops ops = {both, 2, unnamed};
  scan = at_gemm_op;
  scan.name = "scan";
  scan_problem = *at_gemm_op.problem;
  scan_problem.parse = scan_parse;
  scan_problem.format = scan_format;
  scan_problem.columns = scan_columns;
  scan_problem.from_fields = scan_from_fields;
  scan.problem = &scan_problem;
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  return at_workload_read(out, path, &ops);
}

static void expect_problem(const attune_workload *w, size_t index, const char *problem, const char *name) {
  assert_non_null(attune_workload_at(w, index));
  assert_string_equal(attune_workload_at(w, index)->problem, problem);
  assert_string_equal(attune_workload_at(w, index)->name, name);
}

/* Named by a column, by the text, or not: then of the operation that such rows have always been of. */
TEST(rows_name_their_operation) {
  attune_workload *w = NULL;
  OK(read_both(&w, "op,length,dtype,m,n,k\nscan,7,,,,\ngemm,,f32,1,2,3\n,,f64,4,5,6\n", &at_gemm_op));
  assert_int_equal(attune_workload_size(w), 3);
  expect_problem(w, 0, "scan 7", "a scan of 7");
  expect_problem(w, 1, "gemm f32 nn 1x2x3 strict", "gemm f32 nn 1x2x3 strict");
  expect_problem(w, 2, "gemm f64 nn 4x5x6 strict", "gemm f64 nn 4x5x6 strict");
  attune_workload_destroy(w);
  OK(read_both(&w, "problem,op\nscan 9,\ngemm f32 nn 1x2x3,gemm\nscan 8,scan\n", &at_gemm_op));
  expect_problem(w, 0, "scan 9", "scan 9");
  expect_problem(w, 1, "gemm f32 nn 1x2x3 strict", "gemm f32 nn 1x2x3");
  expect_problem(w, 2, "scan 8", "scan 8");
  attune_workload_destroy(w);
  static const char whole[] = "gemm f32 nn 1x2x3 strict lda=1000000 ldb=1000000 ldd=1000000 align=4 workspace=1000001";
  char row[256];
  snprintf(row, sizeof row, "problem\n%s\n", whole);
  OK(read_both(&w, row, &at_gemm_op));
  assert_string_equal(attune_workload_at(w, 0)->name, whole); /* what has no name of its own is told whole */
  attune_workload_destroy(w);
  OK(read_both(&w, "length,count\n5,6\n", &scan));
  expect_problem(w, 0, "scan 5", "a scan of 5");
  assert_int_equal(attune_workload_at(w, 0)->count, 6);
  attune_workload_destroy(w);
}

static void expect_both_refuse(const char *text, const char *message) {
  attune_workload *w = NULL;
  assert_int_equal(read_both(&w, text, &at_gemm_op), ATTUNE_BAD_DATA);
  assert_null(w);
  if (!strstr(attune_last_message(), message)) fail_msg("%s", attune_last_message());
}

TEST(unknown_operations) {
  expect_both_refuse("op,length\nsort,7\n", ":2:1: there is no operation \"sort\"; should be one of: gemm, scan");
  expect_both_refuse("length,op\n7,scans\n", ":2:3: there is no operation \"scans\"");
  expect_both_refuse("problem\nsca 7\n", ":2:1: there is no operation \"sca\"");
  expect_both_refuse("count,problem\n7,\"\"\n", ":2:3: there is no operation \"\"");
  expect_both_refuse("problem,op\nscan 7,gemm\n", ":2:8: op is \"gemm\"; should be \"scan\", as in the problem");
  expect_both_refuse("problem,op\nscan 7,sca\n", ":2:8: op is \"sca\"; should be \"scan\"");
  expect_both_refuse("op,length,m\nscan,7,8\n", ":2:8: m is no column of a scan");
  expect_both_refuse(
      "op,length,size\n",
      ":1:11: \"size\" is not a column of gemm, scan; should be name, op, count or one of gemm: dtype, ");
  expect_both_refuse("op,length,m\ngemm,,8\n", ":2:1: column dtype is missing; gemm needs dtype, m, n and k");
}

/* Told at the header, with all that there are: what was mistyped may be any of them. */
TEST(unknown_columns_are_told_where_they_stand) {
  attune_workload *w = NULL;
  expect_refused("# a comment\ndtype,m,n,k,ldaa\n",
                 ":2:13: \"ldaa\" is not a column of gemm; should be name, op, count or one of dtype, dtype_out, "
                 "transa, transb, m, n, k, batch, layout, lda, ldb, ldc, ldd, stride_a, stride_b, stride_c, stride_d, "
                 "epilogue, scaling, ld_aux, ld_residual, stride_aux, stride_residual, pointers, "
                 "contract, deterministic, align, workspace");
  expect_refused("shape,expression\n8,a\n",
                 ":1:1: column \"shape\" belongs to elementwise; needs a column op with \"elementwise\"");
  expect_refused("dtype,m,n,k,note\nf32,1,1,1,\n", ":1:13: \"note\" is not a column of gemm;"); /* empty fields too */
  expect_refused("dtype,m,n,k,length\nf32,1,1,1,2\n", ":1:13: ");
  for (const char *const *column = at_gemm_op.problem->columns; *column; column++) { /* and each of them is one */
    char text[128], wrong[64];
    const bool needed = strstr("dtype m n k", *column) != NULL;
    snprintf(text, sizeof text, "dtype,m,n,k%s%s\n%s,%s,%s,%s%s\n", needed ? "" : ",", needed ? "" : *column,
             strcmp(*column, "dtype") == 0 ? "?" : "f32", strcmp(*column, "m") == 0 ? "?" : "1",
             strcmp(*column, "n") == 0 ? "?" : "1", strcmp(*column, "k") == 0 ? "?" : "1", needed ? "" : ",?");
    snprintf(wrong, sizeof wrong, ": %s is \"?\"; should be ", *column);
    assert_int_equal(read_text(&w, text), ATTUNE_BAD_DATA);
    if (!strstr(attune_last_message(), wrong)) fail_msg("%s", attune_last_message());
  }
  OK(read_both(&w, "op,length,dtype,m,n,k,lda\nscan,7,,,,,\ngemm,,f32,1,2,3,4\n", &at_gemm_op));
  attune_workload_destroy(w);
}

TEST(the_contract_is_a_column) {
  attune_workload *w = NULL;
  OK(read_text(&w, "dtype,m,n,k,contract,deterministic,workspace\nf32,1,2,3,reduced,1,4096\nf32,1,2,3,,0,\n"));
  assert_string_equal(attune_workload_at(w, 0)->problem, "gemm f32 nn 1x2x3 reduced deterministic workspace=4096");
  assert_string_equal(attune_workload_at(w, 1)->problem, "gemm f32 nn 1x2x3 strict");
  attune_workload_destroy(w);
  expect_refused("dtype,m,n,k,deterministic\nf32,1,2,3,maybe\n", ":2:11: deterministic is \"maybe\"; should be 0 or 1");
}

/* Every workload that the repository has, as it always was: no row of them names its operation. */
TEST(files_of_the_repository) {
  static const char folder_of[] = AT_SOURCE_DIR "/bench/workloads";
  DIR *listing = opendir(folder_of);
  int files = 0;
  assert_non_null(listing);
  for (struct dirent *entry; (entry = readdir(listing));) {
    char name[512];
    attune_workload *w = NULL;
    if (!strstr(entry->d_name, ".csv")) continue;
    snprintf(name, sizeof name, "%s/%s", folder_of, entry->d_name);
    OK(attune_workload_read(&w, name));
    for (size_t i = 0; i < attune_workload_size(w); i++) {
      const char *problem = attune_workload_at(w, i)->problem, *end = strchr(problem, ' ');
      bool known = false;
      for (int op = 0; end && op < at_op_count; op++)
        known = known || strncmp(problem, at_ops[op]->name, (size_t)(end - problem)) == 0;
      if (!known) fail_msg("%s: \"%s\" is of no operation", name, problem);
    }
    files += attune_workload_size(w) > 0;
    attune_workload_destroy(w);
  }
  closedir(listing);
  assert_true(files >= 5);
}

/* Empty columns before, between and behind the others, empty rows, semicolons, a mark, CRLF. */
TEST(reads_what_spreadsheets_write) {
  static const char *const texts[] = {
      ("\xEF\xBB\xBF"
       "name;dtype;m;n;k;;\r\n;;;;;;\r\nfirst;f32;8;9;10;;\r\n;;;;;;\r\n\"a;b\";f64;1;2;3;;\r\n;;;;;;\r\n"),
      ",name,,dtype,m,n,k\n,first,,f32,8,9,10\n,a;b,,f64,1,2,3\n",
      "name\tdtype\tm\tn\tk\nfirst\tf32\t8\t9\t10\n\na;b\tf64\t1\t2\t3",
      "sep=,\nname,dtype,m,n,k,,,\n\"# a comment, quoted\",,,,\nfirst,f32,8,9,10,,,\na;b,f64,1,2,3\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    attune_workload *w = NULL;
    OK(read_text(&w, texts[i]));
    assert_int_equal(attune_workload_size(w), 2);
    assert_string_equal(attune_workload_at(w, 0)->name, "first");
    assert_string_equal(attune_workload_at(w, 0)->problem, "gemm f32 nn 8x9x10 strict");
    assert_string_equal(attune_workload_at(w, 1)->name, "a;b");
    assert_string_equal(attune_workload_at(w, 1)->problem, "gemm f64 nn 1x2x3 strict");
    attune_workload_destroy(w);
  }
}

/* A row may name a dtype in every way in which a problem's text may, and in capitals. */
TEST(dtypes_are_named_as_in_texts) {
  static const char *const names[] = {"f32",    "F32",  "bf16",           "f16",     "f64",          "float32", "float",
                                      "double", "half", "torch.bfloat16", "float16", "torch.float32"};
  int read = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char text[128], row[128];
    attune_workload *w = NULL;
    uint64_t problem[AT_PROBLEM_BYTES / 8] = {0};
    snprintf(text, sizeof text, "gemm %s nn 1x2x3 strict", names[i]);
    snprintf(row, sizeof row, "dtype,m,n,k\n%s,1,2,3\n", names[i]);
    const bool known = at_gemm_op.problem->parse(text, problem) == ATTUNE_OK || strcmp(names[i], "F32") == 0;
    assert_int_equal(read_text(&w, row), known ? ATTUNE_OK : ATTUNE_BAD_DATA);
    attune_workload_destroy(w);
    read += known;
  }
  assert_true(read >= 5);
}

static void expect_foreign(const char *file, const char *text, size_t size, const char *what) {
  char name[128];
  attune_workload *workload = NULL;
  snprintf(name, sizeof name, "%s/%s", folder, file);
  FILE *out = fopen(name, "w");
  assert_non_null(out);
  fwrite(text, 1, size, out);
  fclose(out);
  assert_int_equal(attune_workload_read(&workload, name), ATTUNE_BAD_DATA);
  if (!strstr(attune_last_message(), what)) fail_msg("%s: %s", file, attune_last_message());
  if (!strstr(attune_last_message(), "should be a workload")) fail_msg("%s: %s", file, attune_last_message());
}

/* Files of other programs, by their names or contents; a comment that names one does not make it one. */
TEST(knows_foreign_files) {
  static const struct {
    const char *file, *text, *what;
  } cases[] = {
      {"tunableop_results0.csv",
       "Validator,PT_VERSION,2.6.0\nValidator,GCN_ARCH_NAME,gfx942\nGemmTunableOp_float_NT,nt_25088_4096_64,Default,1."
       "2\n",
       "is a result file of PyTorch's TunableOp"},
      {"tunableop_untuned0.csv", "GemmTunableOp_BFloat16_TN,tn_4096_16_2048\n",
       "a list of problems of PyTorch's TunableOp"},
      {"a8w8_tuned_gemm.csv", "cu_num,M,N,K,kernelId,splitK,us,kernelName\n80,128,1536,7168,23,0,32.99,x\n",
       "of aiter"},
      {"untuned_gemm.csv",
       "M,N,K,bias,dtype,outdtype,scaleAB\n128,1536,7168,False,torch.bfloat16,torch.bfloat16,False\n", "of aiter"},
      {"E=8,N=14336,device_name=NVIDIA_H100.json", "{\n  \"1\": {\n    \"BLOCK_SIZE_M\": 16,\n", "mixtures of experts"},
      {"Tensile.yaml", "# Copyright\n- {MinimumRequiredVersion: 4.33.0}\n- vega20\n", "a YAML file of Tensile"},
      {"gfx90a68.HIP.3_2_0.ufdb.txt", "64-112-112-3x3-64-1-NCHW-FP32-F=x\n", "a database of MIOpen"},
      {"renamed.txt", "1-1-1=miopenConvolutionFwdAlgoGEMM:gemm,0.1,0\n", "a database of MIOpen"},
      {"bench.log", "./rocblas-bench -f gemm -r f32_r --transposeA N --transposeB T -m 4 -n 4 -k 4\n", "rocblas-bench"},
      {"profile.yaml", "- { rocblas_function: \"rocblas_sgemm\", transA: 'N', transB: 'T', M: 4, call_count: 2 }\n",
       "a profile of rocBLAS"},
      {"profile.json", "{\"process\": 12, \"tuners\": []}", "a profile of attune"},
      {"book.xlsx", "PK\x03\x04\x14", "a spreadsheet"},
      {"w.csv.gz", "\x1f\x8b\x08", "a compressed file"},
      {"some.json", "[1, 2]", "is JSON"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_foreign(cases[i].file, cases[i].text, strlen(cases[i].text), cases[i].what);
  expect_foreign("nul.xlsx", "PK\x03\x04\x00\x01", 6, "a spreadsheet");
  attune_workload *w = NULL;
  OK(read_text(&w, "# from a log of rocblas-bench; see Validator, GlobalParameters: "
                   "{\n\nname,dtype,m,n,k\nrocblas-bench,f32,1,1,1\n"));
  attune_workload_destroy(w);
}

TEST(refuses_malformed_files) {
  expect_refused("", ":1:1: no header");
  expect_refused("# only a comment\n\n", ":3:1: no header");
  expect_refused("dtype,m,n,k\n", ":2:1: no rows");
  expect_refused("dtype,m,n,m\nf32,1,1,1\n", ":1:11: column \"m\" occurs twice");
  expect_refused("dtype,,m,n,k\nf32,9,1,1,1\n",
                 ":2:5: \"9\" is in column 2, which has no name in line 1; should have one");
  expect_refused("dtype,m,n,k\nf32,1,1\n", ":2:7: the row has 3 fields; should have 4, like the header in line 1");
  expect_refused("dtype,m,n,k\nf32,1,1,1,9\n", ":2:11: the row has 5 fields; should have 4");
  /* Empty ones too, unless the header has as many. */
  expect_refused("dtype,m,n,k\nf32,1,1,1\nf32,1,1,1,\n",
                 ":3:11: the row has 5 fields; should have 4, like the header in line 1");
  expect_refused("dtype,m,n,k,,\nf32,1,1,1,,,\n",
                 ":2:13: the row has 7 fields; should have 6, like the header in line 1");
  expect_refused("dtype,m,n,k,,\nf32,1,1,1,2,\n", ":2:11: the row has 5 fields; should have 4");
  expect_refused("dtype,m,n,k\nf32,1,\"1,1\n", ":2:7: a quote that is never closed");
  expect_refused("dtype,m,n,k,count\nf32,1,1,1,0\n", ":2:11: count is \"0\"; should be a whole number of 1 or more");
  expect_refused("dtype,m,n,k,lda\nf32,1,1,1,-1\n",
                 ":2:11: lda is \"-1\"; should be a whole number of 1 or more, or 0");
  expect_refused("dtype,m,n,k\nf32,99999999999999999999,1,1\n",
                 ":2:5: m is \"99999999999999999999\", which is too large");
  attune_workload *w = NULL;
  OK(read_text(&w, "dtype,m,n,k,deterministic\nf32,1,2,3,TRUE\nf32,1,2,3,False\n")); /* as spreadsheets have it */
  assert_string_equal(attune_workload_at(w, 0)->problem, "gemm f32 nn 1x2x3 strict deterministic");
  assert_string_equal(attune_workload_at(w, 1)->problem, "gemm f32 nn 1x2x3 strict");
  attune_workload_destroy(w);
  expect_refused("dtype,m,n,k,op\nf32,1,1,1,scan\n", ":2:11: there is no operation \"scan\"");
  expect_refused("dtype,m,n,k,name\nf32,1,1,1,\"a\nb\"\n", ":2:11: name contains the control character 0x0a");
  expect_refused("name,dtype,m,n,k\n0123456789012345678901234567890123456789012345678901234567890123,f32,1,1,1\n",
                 ":2:1: name has 64 bytes; should have at most 63");
}

/* The operation's message names the position of the field. */
TEST(names_the_wrong_field) {
  expect_refused("dtype,m,n,k\nf32,1,-1,1\n", ":2:7: ");
  expect_refused("dtype,m,n,k\nf32,1,1,99999999999999999999\n", ":2:9: ");
  expect_refused("dtype,m,n,k\nf99,1,1,1\n", ":2:1: ");
  expect_refused("dtype,m,n,k\n\n#\nf32,1,x,1\n", ":4:7: ");
  expect_refused("dtype,m,n,k,colour\nf32,1,1,1,red\n", ":1:13: ");
  expect_refused("dtype,m,n\nf32,1,1\n", ":2:");
  expect_refused("dtype,m,n,k,lda\nf32,8,8,8,4\n", ":2:");
  assert_non_null(strstr(attune_last_message(), "lda"));
  expect_refused("dtype,m,n,k,batch\nf32,9223372036854775807,9223372036854775807,8,8\n", ":2:");
}

TEST(refuses_what_is_no_file) {
  attune_workload *w = NULL;
  assert_int_equal(attune_workload_read(&w, folder), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_workload_read(&w, "/nonexistent/w.csv"), ATTUNE_NOT_FOUND);
  assert_int_equal(attune_workload_read(&w, ""), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_workload_read(&w, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_workload_read(NULL, path), ATTUNE_INVALID_ARGUMENT);
  assert_null(w);
  assert_int_equal(attune_workload_size(NULL), 0);
  assert_null(attune_workload_at(NULL, 0));
  attune_workload_destroy(NULL);
}

static attune_tuner *open_tuner(const char *database) {
  attune_tuner_options options = {.database = database, .mode = ATTUNE_MODE_RECORD};
  attune_tuner *tuner = NULL;
  assert_int_equal(attune_tuner_create(&tuner, &options), ATTUNE_OK);
  return tuner;
}

/* A program's call in mode record is found by a later tuner; what is called most comes first. */
TEST(finds_what_was_recorded) {
  char database[64];
  snprintf(database, sizeof database, "%s/w.db", folder);
  attune_device *host = NULL;
  attune_workload *w = NULL;
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  attune_tuner *tuner = open_tuner(database);
  assert_int_equal(attune_workload_recorded(&w, tuner, host), ATTUNE_OK);
  assert_int_equal(attune_workload_size(w), 0);
  attune_workload_destroy(w);

  static _Alignas(128) float a[32], b[32], d[32];
  attune_gemm_problem problem = {.dtype = ATTUNE_F32, .m = 4, .n = 4, .k = 4};
  attune_gemm_operands operands = {.alpha = 1, .a = a, .b = b, .d = d};
  char called[256];
  assert_int_equal(attune_gemm(tuner, attune_stream_default(host), &problem, &operands), ATTUNE_OK);
  assert_int_equal(attune_gemm_problem_format(called, sizeof called, &problem, &operands), ATTUNE_OK);
  const char *fingerprint = NULL;
  assert_int_equal(at_tuner_fingerprint(tuner, host, &fingerprint), ATTUNE_OK);
  assert_int_equal(at_store_record(at_tuner_store(tuner), fingerprint, "gemm f64 nn 2x2x2 strict", 1000, 1000),
                   ATTUNE_OK);
  static const char long_text[] = "gemm f32 nn 1x2x3 strict align=4 lda=1000000 ldb=1000000 ldd=1000001 workspace=1000";
  assert_int_equal(at_store_record(at_tuner_store(tuner), fingerprint, long_text, 1, 1000), ATTUNE_OK);
  assert_int_equal(at_store_record(at_tuner_store(tuner), "another machine", "gemm f64 nn 3x3x3 strict", 9, 1000),
                   ATTUNE_OK);
  attune_tuner_destroy(tuner);

  tuner = open_tuner(database);
  assert_int_equal(attune_workload_recorded(&w, tuner, host), ATTUNE_OK);
  assert_int_equal(attune_workload_size(w), 3);
  assert_string_equal(attune_workload_at(w, 0)->problem, "gemm f64 nn 2x2x2 strict");
  assert_int_equal(attune_workload_at(w, 0)->count, 1000);
  assert_string_equal(attune_workload_at(w, 1)->problem, called);
  assert_string_equal(attune_workload_at(w, 2)->problem, long_text);
  assert_string_equal(attune_workload_at(w, 2)->name, long_text);
  attune_workload_destroy(w);
  attune_tuner_destroy(tuner);
}

TEST(needs_a_database_for_the_recorded) {
  attune_device *host = NULL;
  attune_workload *w = NULL;
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  attune_tuner *tuner = open_tuner(":memory:");
  assert_int_equal(attune_workload_recorded(&w, tuner, host), ATTUNE_NOT_FOUND);
  assert_int_equal(attune_workload_recorded(&w, NULL, host), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_workload_recorded(&w, tuner, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_workload_recorded(NULL, tuner, host), ATTUNE_INVALID_ARGUMENT);
  attune_tuner_destroy(tuner);
}

int main(void) {
  return RUN_TESTS(make_folder, remove_folder);
}
