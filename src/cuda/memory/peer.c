/* SPDX-License-Identifier: Apache-2.0
 * peer.c: memory of one CUDA device used by work of another. */
#include "src/cuda/context/state.h"
#include "src/cuda/memory/memory.h"

attune_status at_cuda_peer_query(int *out, attune_device *device, attune_device *peer) {
  at_cuda_scope scope;
  attune_status status = at_cuda_enter_relaxed(&scope, device);
  if (status != ATTUNE_OK) return status;
  status =
      at_cuda_check(device, cudaDeviceCanAccessPeer(out, device->ordinal, peer->ordinal), "cudaDeviceCanAccessPeer");
  at_cuda_leave(&scope);
  return status;
}

/* CUDA's own call is for what cudaMalloc gave; mapped memory knows its readers page by page. */
attune_status at_cuda_peer_enable(attune_device *device, attune_device *peer) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  cudaError_t error = cudaDeviceEnablePeerAccess(peer->ordinal, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    (void)cudaGetLastError();
    error = cudaSuccess;
  }
  attune_status status = at_cuda_check(device, error, "cudaDeviceEnablePeerAccess");
  at_cuda_leave(&scope);
  return status == ATTUNE_OK ? at_cuda_vm_let_in(peer, device) : status;
}

attune_status at_cuda_peer_disable(attune_device *device, attune_device *peer) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  cudaError_t error = cudaDeviceDisablePeerAccess(peer->ordinal);
  if (error == cudaErrorPeerAccessNotEnabled) {
    (void)cudaGetLastError();
    error = cudaSuccess;
  }
  attune_status status = at_cuda_check(device, error, "cudaDeviceDisablePeerAccess");
  at_cuda_leave(&scope);
  return status == ATTUNE_OK ? at_cuda_vm_shut_out(peer, device) : status;
}
