/* SPDX-License-Identifier: Apache-2.0
 * machine.c: the figures of devices. bench_machine measures what it can of a row, on an idle device; the rest, and the
 * H200's, were fitted to the times of attune's own kernels (kernel_times, in tests/). A device without a row has the
 * H200's figures for each of its processors: that keeps the order of candidates much the same. */
#include "tuning/model/machine.h"

#include <string.h>

static const struct {
  const char *name;
  at_machine whole;
} rows[] = {
    {"NVIDIA H200",
     {.capability = 90,
      .processors = 132,
      .clustered = 120, /* it holds 66 clusters of 2, 30 of 4 and 15 of 8, with a block a processor */
      .memory = 4.25e6,
      .level2 = 5.3e6,
      .level2_one = 1.0e5,
      .wanted = 40960.0,
      .cycle = 1.0 / 1700.0,
      .cycle_fma = 1.0 / 1900.0,
      .launch = 2.0,
      .fma_f32 = 128.0,
      .fma_f64 = 64.0,
      .mma_f16 = 1024.0,
      .mma_tf32 = 512.0,
      .mma_f64 = 128.0,
      .wgmma_f16 = 2048.0}},
};

static const at_machine *row_of(int capability, const char *name) {
  const at_machine *alike = NULL;
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    if (strncmp(name, rows[i].name, strlen(rows[i].name)) == 0) return &rows[i].whole;
    if (!alike && rows[i].whole.capability == capability) alike = &rows[i].whole;
  }
  return alike ? alike : &rows[0].whole;
}

/* The programming guide's table of technical specifications. */
static int shared_kib(int capability) {
  const bool small = capability == 86 || capability == 89 || capability >= 120;
  return small ? 99 : capability < 90 ? 163 : 227;
}

at_machine at_machine_make(int capability, int processors, const char *name) {
  const at_machine *whole = row_of(capability, name);
  at_machine m = *whole;
  m.capability = capability;
  m.processors = processors > 0 ? processors : 1;
  m.clustered = m.processors * whole->clustered / whole->processors;
  m.shared_bytes = shared_kib(capability) * 1024;
  m.memory = whole->memory * m.processors / whole->processors;
  m.level2 = whole->level2 * m.processors / whole->processors;
  return m;
}

at_machine at_machine_of(const attune_device *device) {
  const attune_device_properties *p = &device->properties;
  return at_machine_make(10 * p->capability_major + p->capability_minor, p->processors, p->name);
}
