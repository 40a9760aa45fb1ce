/* SPDX-License-Identifier: Apache-2.0
 * ipc_event.c: events that other processes use. */
#include "src/cuda/context/state.h"

#include <string.h>

_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(attune_event_ipc), "a handle must fit into attune_event_ipc");

attune_status at_cuda_event_export(attune_event *event, attune_event_ipc *out) {
  at_cuda_scope scope;
  attune_status status = at_cuda_enter_relaxed(&scope, event->device);
  if (status != ATTUNE_OK) return status;
  cudaIpcEventHandle_t handle;
  status =
      at_cuda_check(event->device, cudaIpcGetEventHandle(&handle, (cudaEvent_t)event->native), "cudaIpcGetEventHandle");
  if (status == ATTUNE_OK) memcpy(out, &handle, sizeof *out);
  at_cuda_leave(&scope);
  return status;
}

attune_status at_cuda_event_import(attune_event *event, const attune_event_ipc *words) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, event->device));
  cudaIpcEventHandle_t handle;
  cudaEvent_t native = NULL;
  memcpy(&handle, words, sizeof handle);
  attune_status status =
      at_cuda_check(event->device, cudaIpcOpenEventHandle(&native, handle), "cudaIpcOpenEventHandle");
  event->native = native;
  at_cuda_leave(&scope);
  return status;
}
