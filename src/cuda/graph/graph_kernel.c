/* SPDX-License-Identifier: Apache-2.0
 * graph_kernel.c: kernels in CUDA graphs: name, launch and argument block. By the driver, which knows kernels of any
 * origin: the runtime's own functions only know those that it loaded itself. */
#include <cuda.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/cuda/graph/graph.h"

enum { ARGUMENTS_MOST = 4096 }; /* what a kernel may have; each is at least one byte */

static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static struct driver {
  CUresult (*get)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *out);
  CUresult (*set)(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p);
  CUresult (*set_executable)(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p);
  CUresult (*function_of)(CUfunction *out, CUkernel kernel);
  CUresult (*argument)(CUfunction function, size_t index, size_t *offset, size_t *size);
  CUresult (*name)(const char **out, CUfunction function);
  bool found, names;
} driver; /* constant after driver_once */

static void find_driver(void) {
  driver.found = at_cuda_driver_call_since(&driver.get, "cuGraphKernelNodeGetParams", 12000) &&
                 at_cuda_driver_call_since(&driver.set, "cuGraphKernelNodeSetParams", 12000) &&
                 at_cuda_driver_call_since(&driver.set_executable, "cuGraphExecKernelNodeSetParams", 12000) &&
                 at_cuda_driver_call_since(&driver.function_of, "cuKernelGetFunction", 12000) &&
                 at_cuda_driver_call_since(&driver.argument, "cuFuncGetParamInfo", 12040);
  driver.names = driver.found && at_cuda_driver_call_since(&driver.name, "cuFuncGetName", 12030);
}

/* The driver's errors have the runtime's numbers. */
static attune_status check(attune_device *device, CUresult result, const char *what) {
  return at_cuda_check(device, (cudaError_t)result, what);
}

/* The node's parameters and function. The device is current to the driver too after cudaSetDevice. */
static attune_status look(attune_device *device, cudaGraphNode_t node, CUDA_KERNEL_NODE_PARAMS_v2 *out,
                          CUfunction *function) {
  pthread_once(&driver_once, find_driver);
  if (!driver.found)
    return at_fail(ATTUNE_UNSUPPORTED,
                   "the driver of %s does not report the arguments of kernels; should be 12.4 or later", device->name);
  memset(out, 0, sizeof *out);
  AT_TRY(at_cuda_check(device, cudaSetDevice(device->ordinal), "cudaSetDevice"));
  AT_TRY(check(device, driver.get(node, out), "cuGraphKernelNodeGetParams"));
  *function = out->func;
  return *function ? ATTUNE_OK : check(device, driver.function_of(function, out->kern), "cuKernelGetFunction");
}

void at_cuda_graph_kernel_name(char *out, size_t size, cudaGraphNode_t node) {
  CUDA_KERNEL_NODE_PARAMS_v2 p = {0};
  CUfunction function = NULL;
  const char *name = NULL;
  pthread_once(&driver_once, find_driver);
  (void)at_copy_text(out, size, "work");
  if (!driver.names || driver.get(node, &p) != CUDA_SUCCESS) return;
  function = p.func;
  if (!function && driver.function_of(&function, p.kern) != CUDA_SUCCESS) return;
  if (driver.name(&name, function) == CUDA_SUCCESS && name) (void)at_copy_text(out, size, name);
}

/* ---- the argument block ---- */

typedef struct block {
  size_t count, bytes;
  size_t offset[ARGUMENTS_MOST], size[ARGUMENTS_MOST];
} block;

/* The driver refuses the number after the last argument's. */
static void measure(block *b, CUfunction function) {
  b->count = b->bytes = 0;
  while (b->count < ARGUMENTS_MOST &&
         driver.argument(function, b->count, &b->offset[b->count], &b->size[b->count]) == CUDA_SUCCESS) {
    const size_t end = b->offset[b->count] + b->size[b->count];
    if (end > b->bytes) b->bytes = end;
    b->count++;
  }
}

/* Where a launch had its arguments in one buffer, that buffer; NULL: it had not. */
static const void *buffer_of(const CUDA_KERNEL_NODE_PARAMS_v2 *p) {
  for (void **at = p->extra; at && *at != CU_LAUNCH_PARAM_END; at += 2)
    if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER) return at[1];
  return NULL;
}

static void copy_out(unsigned char *out, const block *b, const CUDA_KERNEL_NODE_PARAMS_v2 *p) {
  const unsigned char *buffer = buffer_of(p);
  memset(out, 0, b->bytes);
  for (size_t i = 0; i < b->count; i++) {
    const void *from = p->kernelParams ? p->kernelParams[i] : buffer ? buffer + b->offset[i] : NULL;
    if (from) memcpy(out + b->offset[i], from, b->size[i]);
  }
}

attune_status at_cuda_graph_kernel_get(attune_device *device, cudaGraphNode_t node, attune_node_parameters *out) {
  CUDA_KERNEL_NODE_PARAMS_v2 p;
  CUfunction function = NULL;
  AT_TRY(look(device, node, &p, &function));
  block *b = malloc(sizeof *b);
  if (!b) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the arguments of a kernel");
  measure(b, function);
  const unsigned grid[] = {p.gridDimX, p.gridDimY, p.gridDimZ}, threads[] = {p.blockDimX, p.blockDimY, p.blockDimZ};
  memcpy(out->grid, grid, sizeof grid);
  memcpy(out->block, threads, sizeof threads);
  out->shared_bytes = p.sharedMemBytes;
  out->arguments_bytes = b->bytes;
  if (b->bytes && b->bytes <= out->arguments_room) copy_out(out->arguments, b, &p);
  free(b);
  return ATTUNE_OK;
}

static attune_status set(at_graph *graph, cudaGraphNode_t node, bool executable, const CUDA_KERNEL_NODE_PARAMS_v2 *p) {
  if (!executable) return check(graph->device, driver.set(node, p), "cuGraphKernelNodeSetParams");
  return check(graph->device, driver.set_executable((CUgraphExec)graph->executable, node, p),
               "cuGraphExecKernelNodeSetParams");
}

attune_status at_cuda_graph_kernel_set(at_graph *graph, cudaGraphNode_t node, bool executable,
                                       const attune_node_parameters *new) {
  CUDA_KERNEL_NODE_PARAMS_v2 p;
  CUfunction function = NULL;
  attune_status status = look(graph->device, node, &p, &function);
  if (status != ATTUNE_OK) return status;
  block *b = malloc(sizeof *b);
  void **arguments = b ? malloc(ARGUMENTS_MOST * sizeof *arguments) : NULL;
  if (!arguments) {
    free(b);
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the arguments of a kernel");
  }
  measure(b, function);
  if (new->arguments_bytes != b->bytes)
    status = AT_INVALID("arguments_bytes is %zu; should be %zu", new->arguments_bytes, b->bytes);
  for (size_t i = 0; i < b->count; i++) arguments[i] = (char *)new->arguments + b->offset[i];
  p.gridDimX = new->grid[0];
  p.gridDimY = new->grid[1];
  p.gridDimZ = new->grid[2];
  p.blockDimX = new->block[0];
  p.blockDimY = new->block[1];
  p.blockDimZ = new->block[2];
  p.sharedMemBytes = (unsigned)new->shared_bytes;
  p.kernelParams = arguments;
  p.extra = NULL;
  if (status == ATTUNE_OK) status = set(graph, node, executable, &p);
  free(arguments);
  free(b);
  return status;
}
