/* SPDX-License-Identifier: Apache-2.0
 * jit_runtime.h: a made-up CUDA runtime for the tests of kernels compiled at run time: a library is a piece of memory
 * with one kernel. Streams remember what was launched on them until they are waited for, graphs what was captured, and
 * each library that is unloaded while one of them has it is counted as a fault. The compiler and the kernel cache are
 * the real ones. Included by one file of a test, whose functions come before those of the real runtime. */
#ifndef AT_TEST_JIT_RUNTIME_H
#define AT_TEST_JIT_RUNTIME_H

#include "src/cuda/jit/jit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/cuda/context/state.h"

#define LIST_MAX 512
#define GRAPHS_MAX 64
#define STREAMS 4
#define SHARED_OPTIN (227 * 1024)
#define SHARED_DEFAULT (48 * 1024)

/* Libraries and kernels of the fake runtime. */
typedef struct fake_library {
  int shared; /* dynamic bytes allowed */
  int wide_clusters;
} fake_library;

typedef struct fake_list {
  const void *libraries[LIST_MAX];
  uint64_t when[LIST_MAX];
  int count;
} fake_list;

typedef struct fake_object {
  void *pointer;
  cudaHostFn_t destroy;
  int references;
} fake_object;

typedef struct fake_graph {
  fake_list nodes;
  fake_object *objects[LIST_MAX];
  int object_count;
} fake_graph;

typedef struct fake_stream {
  fake_list running;
  fake_graph *graph; /* being captured into */
  unsigned long long capture;
  bool hidden; /* asked for its capture, it fails as the legacy stream does beside a capture */
} fake_stream;

typedef struct fake_event {
  fake_stream *stream;
  uint64_t when;
} fake_event;

static struct fake_runtime {
  pthread_mutex_t lock; /* guards what follows, and all lists */
  int loads, alive;
  int failures;      /* so many loads fail, */
  cudaError_t error; /* with this */
  bool elf;          /* the latest code was machine code */
  int meet, met;     /* loads wait until `meet` of them have begun */
  pthread_cond_t meeting;
  uint64_t now;
  int faults, waits, sets, objects;
  int static_shared, threads, clusters, major;
  cudaError_t launch_error; /* of the next launch */
  /* The latest launch. */
  cudaLaunchConfig_t config;
  cudaLaunchAttribute attributes[4];
  int argument;
  fake_stream streams[STREAMS];
  fake_graph *graphs[GRAPHS_MAX];
  unsigned long long captures;
} runtime = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .meeting = PTHREAD_COND_INITIALIZER, .threads = 1024, .clusters = 1, .major = 9};

static attune_stream streams[STREAMS];

static cudaError_t fake_leave(cudaError_t error) {
  pthread_mutex_unlock(&runtime.lock);
  return error;
}

static bool fake_has(const fake_list *list, const void *library) {
  for (int i = 0; i < list->count; i++)
    if (list->libraries[i] == library) return true;
  return false;
}

static void fake_add(fake_list *list, const void *library) {
  if (list->count == LIST_MAX) abort();
  list->when[list->count] = ++runtime.now;
  list->libraries[list->count++] = library;
}

static void fake_finish(fake_stream *stream, uint64_t until) {
  int kept = 0;
  for (int i = 0; i < stream->running.count; i++)
    if (stream->running.when[i] > until) {
      stream->running.when[kept] = stream->running.when[i];
      stream->running.libraries[kept++] = stream->running.libraries[i];
    }
  stream->running.count = kept;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *out, const void *code, enum cudaJitOption *options, void **values,
                                unsigned count, enum cudaLibraryOption *library_options, void **library_values,
                                unsigned library_count) {
  (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
  pthread_mutex_lock(&runtime.lock);
  runtime.loads++;
  runtime.met++;
  pthread_cond_broadcast(&runtime.meeting);
  while (runtime.met < runtime.meet) pthread_cond_wait(&runtime.meeting, &runtime.lock);
  runtime.elf = memcmp(code, "\177ELF", 4) == 0;
  const cudaError_t error = runtime.failures > 0 ? runtime.error : cudaSuccess;
  if (error != cudaSuccess) runtime.failures--;
  runtime.alive += error == cudaSuccess;
  const int shared = SHARED_DEFAULT - runtime.static_shared;
  (void)fake_leave(error);
  if (error != cudaSuccess) return error;
  fake_library *made = calloc(1, sizeof *made);
  if (!made) abort();
  made->shared = shared;
  *out = (cudaLibrary_t)(void *)made;
  return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library, const char *name) {
  *out = (cudaKernel_t)(void *)library;
  return strcmp(name, "absent") == 0 ? cudaErrorSymbolNotFound : cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  pthread_mutex_lock(&runtime.lock);
  runtime.alive--;
  for (int i = 0; i < STREAMS; i++) runtime.faults += fake_has(&runtime.streams[i].running, library);
  for (int i = 0; i < GRAPHS_MAX; i++)
    if (runtime.graphs[i]) runtime.faults += fake_has(&runtime.graphs[i]->nodes, library);
  free(library);
  return fake_leave(cudaSuccess);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *kernel) {
  memset(out, 0, sizeof *out);
  pthread_mutex_lock(&runtime.lock);
  out->maxThreadsPerBlock = runtime.threads;
  out->sharedSizeBytes = (size_t)runtime.static_shared;
  out->maxDynamicSharedSizeBytes = ((const fake_library *)kernel)->shared;
  return fake_leave(cudaSuccess);
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute, int value, int on) {
  fake_library *library = (void *)kernel;
  (void)on;
  pthread_mutex_lock(&runtime.lock);
  runtime.sets++;
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value + runtime.static_shared > SHARED_OPTIN) return fake_leave(cudaErrorInvalidValue);
    library->shared = value;
  }
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) library->wide_clusters = value;
  return fake_leave(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr attribute, int on) {
  (void)on;
  switch ((int)attribute) {
  case cudaDevAttrMaxGridDimX: *out = 2147483647; break;
  case cudaDevAttrMaxGridDimY:
  case cudaDevAttrMaxGridDimZ: *out = 65535; break;
  case cudaDevAttrMaxBlockDimX:
  case cudaDevAttrMaxBlockDimY: *out = 1024; break;
  case cudaDevAttrMaxBlockDimZ: *out = 64; break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin: *out = SHARED_OPTIN; break;
  case cudaDevAttrClusterLaunch: *out = runtime.clusters; break;
  case cudaDevAttrComputeCapabilityMajor: *out = runtime.major; break;
  default: return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

/* Half as many blocks when each takes more than half of the shared memory. */
cudaError_t cudaOccupancyMaxPotentialClusterSize(int *out, const void *kernel, const cudaLaunchConfig_t *config) {
  *out = ((const fake_library *)kernel)->wide_clusters ? 16 : 8;
  if (config->dynamicSmemBytes > SHARED_OPTIN / 2) *out /= 2;
  return cudaSuccess;
}

static unsigned fake_cluster(const cudaLaunchConfig_t *config) {
  for (unsigned i = 0; i < config->numAttrs; i++)
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
      return config->attrs[i].val.clusterDim.x * config->attrs[i].val.clusterDim.y * config->attrs[i].val.clusterDim.z;
  return 1;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments) {
  const fake_library *library = kernel;
  fake_stream *stream = (void *)config->stream;
  pthread_mutex_lock(&runtime.lock);
  if (runtime.launch_error != cudaSuccess) {
    const cudaError_t error = runtime.launch_error;
    runtime.launch_error = cudaSuccess;
    return fake_leave(error);
  }
  if (config->dynamicSmemBytes > (size_t)library->shared) return fake_leave(cudaErrorInvalidValue);
  if (fake_cluster(config) > (library->wide_clusters ? 16u : 8u)) return fake_leave(cudaErrorInvalidClusterSize);
  runtime.config = *config;
  memcpy(runtime.attributes, config->attrs, config->numAttrs * sizeof *config->attrs);
  runtime.argument = *(const int *)arguments[0];
  if ((void *)stream != (void *)cudaStreamPerThread)
    fake_add(stream->graph ? &stream->graph->nodes : &stream->running, library);
  return fake_leave(cudaSuccess);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t native, enum cudaStreamCaptureStatus *out) {
  const fake_stream *stream = (void *)native;
  *out = cudaStreamCaptureStatusNone;
  if (native == cudaStreamPerThread) return cudaSuccess;
  pthread_mutex_lock(&runtime.lock);
  if (stream->hidden) return fake_leave(cudaErrorStreamCaptureImplicit);
  if (stream->graph) *out = cudaStreamCaptureStatusActive;
  return fake_leave(cudaSuccess);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t native, enum cudaStreamCaptureStatus *out, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                                     size_t *count) {
#else
cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t native, enum cudaStreamCaptureStatus *out, unsigned long long *id,
                                        cudaGraph_t *graph, const cudaGraphNode_t **nodes,
                                        const cudaGraphEdgeData **edges, size_t *count) {
#endif
  const fake_stream *stream = (void *)native;
  (void)nodes, (void)edges, (void)count;
  pthread_mutex_lock(&runtime.lock);
  *out = stream->graph ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  *id = stream->capture;
  *graph = (cudaGraph_t)(void *)stream->graph;
  return fake_leave(cudaSuccess);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *out, void *pointer, cudaHostFn_t destroy, unsigned references,
                                 unsigned flags) {
  fake_object *object = calloc(1, sizeof *object);
  if (!object || flags != cudaUserObjectNoDestructorSync) abort();
  *object = (fake_object){pointer, destroy, (int)references};
  pthread_mutex_lock(&runtime.lock);
  runtime.objects++;
  *out = (cudaUserObject_t)(void *)object;
  return fake_leave(cudaSuccess);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t native, unsigned count) {
  fake_object *object = (void *)native;
  pthread_mutex_lock(&runtime.lock);
  const bool last = (object->references -= (int)count) == 0;
  runtime.objects -= last;
  (void)fake_leave(cudaSuccess);
  if (!last) return cudaSuccess;
  object->destroy(object->pointer);
  free(object);
  return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t native, cudaUserObject_t object, unsigned count, unsigned flags) {
  fake_graph *graph = (void *)native;
  if (count != 1 || flags != cudaGraphUserObjectMove) return cudaErrorInvalidValue;
  pthread_mutex_lock(&runtime.lock);
  if (graph->object_count == LIST_MAX) return fake_leave(cudaErrorMemoryAllocation);
  graph->objects[graph->object_count++] = (void *)object;
  return fake_leave(cudaSuccess);
}

cudaError_t cudaStreamQuery(cudaStream_t native) {
  pthread_mutex_lock(&runtime.lock);
  return fake_leave(((fake_stream *)(void *)native)->running.count > 0 ? cudaErrorNotReady : cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  (void)flags;
  *out = (cudaEvent_t)calloc(1, sizeof(fake_event));
  return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  pthread_mutex_lock(&runtime.lock);
  *(fake_event *)(void *)event = (fake_event){(void *)stream, runtime.now};
  return fake_leave(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t native) {
  const fake_event *event = (void *)native;
  pthread_mutex_lock(&runtime.lock);
  runtime.waits++;
  fake_finish(event->stream, event->when);
  return fake_leave(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  free(event);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  pthread_mutex_lock(&runtime.lock);
  fake_finish((void *)stream, UINT64_MAX);
  return fake_leave(cudaSuccess);
}

cudaError_t cudaGetDevice(int *out) {
  return *out = 0, cudaSuccess;
}
cudaError_t cudaSetDevice(int ordinal) {
  return (void)ordinal, cudaSuccess;
}
cudaError_t cudaGetLastError(void) {
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  return (void)mode, cudaSuccess;
}

/* What follows is for the tests. */

static inline void fake_capture_begin(int stream) {
  pthread_mutex_lock(&runtime.lock);
  fake_graph *graph = calloc(1, sizeof *graph);
  int at = 0;
  while (at < GRAPHS_MAX && runtime.graphs[at]) at++;
  if (!graph || at == GRAPHS_MAX) abort();
  runtime.graphs[at] = graph;
  runtime.streams[stream].graph = graph;
  runtime.streams[stream].capture = ++runtime.captures;
  (void)fake_leave(cudaSuccess);
}

static inline fake_graph *fake_capture_end(int stream) {
  pthread_mutex_lock(&runtime.lock);
  fake_graph *graph = runtime.streams[stream].graph;
  runtime.streams[stream].graph = NULL;
  (void)fake_leave(cudaSuccess);
  return graph;
}

static inline void fake_replay(const fake_graph *graph, int stream) {
  pthread_mutex_lock(&runtime.lock);
  for (int i = 0; i < graph->nodes.count; i++) fake_add(&runtime.streams[stream].running, graph->nodes.libraries[i]);
  (void)fake_leave(cudaSuccess);
}

/* With its replays done. */
static inline void fake_graph_destroy(fake_graph *graph) {
  pthread_mutex_lock(&runtime.lock);
  for (int i = 0; i < GRAPHS_MAX; i++)
    if (runtime.graphs[i] == graph) runtime.graphs[i] = NULL;
  (void)fake_leave(cudaSuccess);
  for (int i = 0; i < graph->object_count; i++)
    (void)cudaUserObjectRelease((cudaUserObject_t)(void *)graph->objects[i], 1);
  free(graph);
}

/* A stream of `device`, which attune knows; at_cuda_stream_close takes its state. */
static inline void fake_open_stream(attune_device *device, int number) {
  streams[number] = (attune_stream){.device = device, .native = &runtime.streams[number]};
  streams[number].state = calloc(1, sizeof(at_cuda_stream));
  if (!streams[number].state) abort();
  at_cuda_stream_enlist(&streams[number]);
}

static inline void fake_open_streams(attune_device *device) {
  for (int i = 0; i < STREAMS; i++) fake_open_stream(device, i);
}

static inline void fake_close_streams(void) {
  for (int i = 0; i < STREAMS; i++) at_cuda_stream_close(&streams[i]);
}

#endif
