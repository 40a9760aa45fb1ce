/* SPDX-License-Identifier: Apache-2.0
 * blas_handle_pool.c: cuBLAS handles of closed streams, kept for the next streams. Making one costs milliseconds, and
 * destroying one waits for the whole device, which breaks every capture under way in the process: it is never done. So
 * there are as many as there were streams with cuBLAS at one time, and a few keep their workspace. */
#include "src/cuda/context/state.h"

#include <stdlib.h>

enum { WORKSPACES_MOST = 4 };

struct at_cuda_idle_blas {
  at_cuda_idle_blas *next;
  cublasHandle_t handle;
  cublasMath_t math;
  void *workspace; /* NULL: given back */
  size_t workspace_bytes;
};

void at_cuda_blas_keep(attune_stream *stream) {
  at_cuda_device *device = at_cuda_device_of(stream->device);
  at_cuda_stream *state = at_cuda_stream_of(stream);
  at_cuda_idle_blas *idle = state->blas ? malloc(sizeof *idle) : NULL;
  if (!idle) return; /* without memory to note it the handle is lost, which no program notices */
  *idle = (at_cuda_idle_blas){.handle = state->blas, .math = state->math};
  state->blas = NULL;
  pthread_mutex_lock(&device->lock);
  if (state->workspace && device->idle_workspaces < WORKSPACES_MOST) {
    idle->workspace = state->workspace;
    idle->workspace_bytes = state->workspace_bytes;
    state->workspace = NULL;
    state->workspace_bytes = 0;
    device->idle_workspaces++;
  }
  idle->next = device->idle;
  device->idle = idle;
  pthread_mutex_unlock(&device->lock);
}

/* One with a workspace if it is wanted and there is one; one without if it is not. */
static at_cuda_idle_blas *take(at_cuda_device *device, bool with_workspace) {
  at_cuda_idle_blas **link = &device->idle;
  pthread_mutex_lock(&device->lock);
  while (*link && ((*link)->workspace != NULL) != with_workspace && (*link)->next) link = &(*link)->next;
  at_cuda_idle_blas *idle = *link;
  if (idle) *link = idle->next;
  if (idle && idle->workspace) device->idle_workspaces--;
  pthread_mutex_unlock(&device->lock);
  return idle;
}

/* A workspace that came along is given back where the stream has one already. */
bool at_cuda_blas_take(attune_stream *stream) {
  at_cuda_stream *state = at_cuda_stream_of(stream);
  at_cuda_idle_blas *idle = take(at_cuda_device_of(stream->device), state->workspace == NULL);
  if (!idle) return false;
  state->blas = idle->handle;
  state->math = idle->math;
  state->blas_bytes = SIZE_MAX;
  if (idle->workspace && !state->workspace) {
    state->workspace = idle->workspace;
    state->workspace_bytes = idle->workspace_bytes;
  } else if (idle->workspace) {
    (void)stream->device->backend.memory->free(stream->device, idle->workspace);
  }
  free(idle);
  return true;
}
