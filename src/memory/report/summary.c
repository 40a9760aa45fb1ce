/* SPDX-License-Identifier: Apache-2.0
 * summary.c: the statistics of a device's memory as a table for people. */
#include "src/base/backend.h"
#include "src/base/string_builder.h"

#include <attune/memory.h>

#include <stdio.h>

static void write_bytes(char out[16], uint64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = (double)bytes;
  size_t unit = 0;
  for (; value >= 1024.0 && unit + 1 < AT_COUNT(units); unit++) value /= 1024.0;
  snprintf(out, 16, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void write_row(at_string_builder *out, const char *name, const attune_memory_figure *figure, bool bytes) {
  char columns[4][16];
  const uint64_t values[4] = {figure->current, figure->peak, figure->allocated, figure->freed};
  for (int i = 0; i < 4; i++) {
    if (bytes)
      write_bytes(columns[i], values[i]);
    else
      snprintf(columns[i], sizeof columns[i], "%llu", (unsigned long long)values[i]);
  }
  at_string_builder_add(out, "| %-22s | %12s | %12s | %12s | %12s |\n", name, columns[0], columns[1], columns[2],
                        columns[3]);
}

static void write_rows(at_string_builder *out, const char *name, const attune_memory_figure figures[3], bool bytes) {
  write_row(out, name, &figures[ATTUNE_MEMORY_ALL], bytes);
  write_row(out, "  large", &figures[ATTUNE_MEMORY_LARGE], bytes);
  write_row(out, "  small", &figures[ATTUNE_MEMORY_SMALL], bytes);
}

static void write_long(at_string_builder *text, const attune_memory_statistics *s) {
  write_rows(text, "allocated memory", s->allocated_bytes, true);
  write_rows(text, "requested memory", s->requested_bytes, true);
  write_rows(text, "active memory", s->active_bytes, true);
  write_rows(text, "reserved memory", s->reserved_bytes, true);
  write_rows(text, "free blocks' memory", s->inactive_split_bytes, true);
  write_rows(text, "allocations", s->allocation, false);
  write_rows(text, "active allocations", s->active, false);
  write_rows(text, "segments", s->segment, false);
  write_rows(text, "free pieces", s->inactive_split, false);
  write_row(text, "oversize allocations", &s->oversize_allocations, false);
  write_row(text, "oversize segments", &s->oversize_segments, false);
}

/* The sums alone. */
static void write_short(at_string_builder *text, const attune_memory_statistics *s) {
  write_row(text, "allocated memory", &s->allocated_bytes[ATTUNE_MEMORY_ALL], true);
  write_row(text, "reserved memory", &s->reserved_bytes[ATTUNE_MEMORY_ALL], true);
  write_row(text, "allocations", &s->allocation[ATTUNE_MEMORY_ALL], false);
  write_row(text, "segments", &s->segment[ATTUNE_MEMORY_ALL], false);
}

attune_status attune_memory_summary(char **out, attune_device *device, int brief) {
  AT_REQUIRE_AS(out, "point to a text");
  *out = NULL;
  attune_memory_statistics s = {0};
  AT_TRY(attune_memory_get_statistics(device, &s));
  at_string_builder text = {0};
  at_string_builder_add(&text,
                        "memory of %s: %llu failed requests, %llu retries, %llu segments allocated, %llu returned\n",
                        device->name, (unsigned long long)s.out_of_memory, (unsigned long long)s.alloc_retries,
                        (unsigned long long)s.device_allocs, (unsigned long long)s.device_frees);
  at_string_builder_add(&text, "| %-22s | %12s | %12s | %12s | %12s |\n", "", "now", "peak", "allocated", "freed");
  at_string_builder_add(&text,
                        "|------------------------|--------------|--------------|--------------|--------------|\n");
  if (brief)
    write_short(&text, &s);
  else
    write_long(&text, &s);
  return at_string_builder_take(&text, out);
}
