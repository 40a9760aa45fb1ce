/* SPDX-License-Identifier: Apache-2.0
 * alloc_plugin.c: an allocator in a shared object, of the form that PyTorch's pluggable allocators have. */
#include <stdlib.h>
#include <sys/types.h>

static int plugin_live, plugin_device = -1;
static ssize_t plugin_bytes;

__attribute__((visibility("default"))) void *plugin_alloc(ssize_t bytes, int device, void *stream);
__attribute__((visibility("default"))) void plugin_free(void *pointer, ssize_t bytes, int device, void *stream);
__attribute__((visibility("default"))) void plugin_look(int *live, ssize_t *bytes, int *device);

void *plugin_alloc(ssize_t bytes, int device, void *stream) {
  if (stream || bytes > (ssize_t)1 << 30) return NULL;
  plugin_live++;
  plugin_bytes += bytes;
  plugin_device = device;
  return aligned_alloc(512, ((size_t)bytes + 511) / 512 * 512);
}

void plugin_free(void *pointer, ssize_t bytes, int device, void *stream) {
  (void)device;
  if (stream) return;
  plugin_live--;
  plugin_bytes -= bytes;
  free(pointer);
}

void plugin_look(int *live, ssize_t *bytes, int *device) {
  *live = plugin_live;
  *bytes = plugin_bytes;
  *device = plugin_device;
}
