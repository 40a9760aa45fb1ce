/* SPDX-License-Identifier: Apache-2.0
 * visible_devices.c: see visible_devices.h. CUDA_VISIBLE_DEVICES is a list of numbers or of UUIDs, which may be cut
 * short. What comes from the first wrong one on does not count; a GPU named twice leaves none. */
#include "src/cuda/library/visible_devices.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/settings.h"
#include "src/cuda/library/nvml.h"
#include "src/process/library.h"
#include "src/process/loading.h"

enum { GPUS_MOST = 256 };

/* The GPU that a word of the list names; -1: none, or several. */
static int named(const char *word, size_t length, int total, bool (*uuid_of)(int index, char *out, size_t size)) {
  char uuid[96];
  int found = -1;
  if (length >= 4 && strncmp(word, "GPU-", 4) == 0) {
    for (int i = 0; i < total; i++) {
      if (!uuid_of(i, uuid, sizeof uuid) || strncmp(uuid, word, length) != 0) continue;
      if (found >= 0) return -1;
      found = i;
    }
    return found;
  }
  char *end = NULL;
  const long number = strtol(word, &end, 10);
  return end != word && number >= 0 && number < total ? (int)number : -1;
}

int at_visible_of(const char *text, int total, bool (*uuid_of)(int index, char *out, size_t size)) {
  bool used[GPUS_MOST] = {false};
  int count = 0;
  if (!text) return total;
  if (total > GPUS_MOST || strncmp(text, "MIG-", 4) == 0) return -1;
  while (*text) {
    text += strspn(text, " \t");
    const size_t length = strcspn(text, ", \t");
    const int gpu = named(text, length, total, uuid_of);
    if (gpu < 0) break;
    if (used[gpu]) return 0;
    used[gpu] = true;
    count++;
    text += strcspn(text, ",");
    if (*text) text++;
  }
  return count;
}

/* Only looked for: what is in it is not called. */
static bool has_driver(void) {
  at_library library;
  const bool found = at_loading_begin() && at_library_open(&library, "libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  at_loading_end();
  return found;
}

attune_status at_cuda_visible_count(int *out) {
  *out = 0;
  if (!has_driver()) return ATTUNE_OK;
  const int total = at_nvml_count();
  const int count = total < 0 ? -1 : at_visible_of(at_settings_visible_devices(), total, at_nvml_uuid);
  if (count < 0)
    return at_fail(ATTUNE_UNSUPPORTED,
                   "NVML does not report the number of GPUs%s; attune_device_count starts CUDA to get it",
                   total < 0 ? "" : " for MIG devices");
  *out = count;
  return ATTUNE_OK;
}
