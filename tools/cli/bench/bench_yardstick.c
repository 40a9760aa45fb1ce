/* SPDX-License-Identifier: Apache-2.0
 * bench_yardstick.c: what a device can do at best, for a roofline: a copy of memory that no cache holds, and for each
 * dtype and accuracy that cases compute in a large matrix product. */
#include "tools/cli/bench/bench.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KINDS_MOST = 12, COPY_COLUMNS = 4096, CUDA_SIZE = 4096 };
#define COPY_BYTES_LEAST ((uint64_t)64 << 20) /* of one operand */
#define COPY_BYTES_MOST ((uint64_t)1 << 30)

/* Of the dtypes that a matrix product has. */
static bool is_product(attune_dtype dtype) {
  return dtype == ATTUNE_F64 || dtype == ATTUNE_F32 || dtype == ATTUNE_F16 || dtype == ATTUNE_BF16;
}

/* A case of each kind of arithmetic. */
static int kinds_of(const attune_bench *bench, const attune_bench_case **out) {
  int count = 0;
  for (size_t i = 0; i < attune_bench_size(bench) && count < KINDS_MOST; i++) {
    const attune_bench_case *c = attune_bench_at(bench, i);
    bool known = !c->device || !(c->flops > 0) || !is_product(c->dtype);
    for (int j = 0; j < count; j++) known = known || (out[j]->dtype == c->dtype && out[j]->accuracy == c->accuracy);
    if (!known) out[count++] = c;
  }
  return count;
}

/* Twice the last cache, in a part of the memory that is always free. */
static uint64_t copy_bytes(const attune_device_properties *p) {
  uint64_t bytes = 2 * p->cache_bytes;
  if (bytes < COPY_BYTES_LEAST) bytes = COPY_BYTES_LEAST;
  if (bytes > COPY_BYTES_MOST) bytes = COPY_BYTES_MOST;
  return bytes > p->memory_bytes / 16 ? p->memory_bytes / 16 : bytes;
}

/* As small as keeps all processors busy: what takes long is always disturbed by something. */
static int product_size(const attune_device_properties *p) {
  if (p->kind != ATTUNE_DEVICE_HOST) return CUDA_SIZE;
  return p->processors <= 4 ? 512 : p->processors <= 32 ? 1024 : 2048;
}

static void write_rows(FILE *out, const attune_bench *bench, const attune_device_properties *p) {
  static const char *const contracts[] = {"strict", "equivalent", "reduced"};
  const attune_bench_case *kinds[KINDS_MOST];
  const int count = kinds_of(bench, kinds), size = product_size(p);
  fputs("name,op,expression,shape,dtype,contract,m,n,k\n", out);
  fprintf(out, GATE_YARDSTICK "copy,elementwise,a,%llux%d,f32,,,,\n",
          (unsigned long long)(copy_bytes(p) / (COPY_COLUMNS * sizeof(float))), COPY_COLUMNS);
  for (int i = 0; i < count; i++) {
    const char *dtype = attune_dtype_name(kinds[i]->dtype), *contract = contracts[kinds[i]->accuracy];
    fprintf(out, GATE_YARDSTICK "%s/%s,gemm,,,%s,%s,%d,%d,%d\n", dtype, contract, dtype, contract, size, size, size);
  }
}

attune_status bench_add_yardsticks(attune_bench *bench, attune_tuner *tuner, attune_device *device) {
  attune_device_properties p = {0};
  attune_workload *workload = NULL;
  char path[64];
  attune_status status = attune_device_get_properties(device, &p);
  if (status != ATTUNE_OK) return status;
  const int fd = memfd_create("yardsticks", MFD_CLOEXEC);
  FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
  if (!out) return ATTUNE_OUT_OF_MEMORY;
  write_rows(out, bench, &p);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  status = fflush(out) == 0 ? attune_workload_read(&workload, path) : ATTUNE_IO_ERROR;
  if (status == ATTUNE_OK) status = attune_bench_add_workload(bench, tuner, device, workload, 0);
  attune_workload_destroy(workload);
  (void)fclose(out);
  return status;
}
