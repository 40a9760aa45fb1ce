/* SPDX-License-Identifier: Apache-2.0
 * jit_launch.c: how kernels are launched: what the device offers, what must be set before, and graphs that hold what
 * was captured into them. */
#include "src/cuda/jit/jit_kernel.h"

#include <pthread.h>

#include "src/cuda/context/state.h"

#define PORTABLE_CLUSTER 8u /* blocks that every device with clusters takes, without asking for more */

/* CUDA 12 has the function under the name of its third version. */
#if CUDART_VERSION >= 13000
#define capture_info cudaStreamGetCaptureInfo
#else
#define capture_info cudaStreamGetCaptureInfo_v3
#endif

static pthread_mutex_t admit_lock = PTHREAD_MUTEX_INITIALIZER; /* CUDA wants attributes to be set one after the other */

/* A configuration with the sizes that it leaves out. */
typedef struct shape {
  dim3 grid, block, cluster;
  bool has_cluster;
  unsigned shared;
} shape;

static unsigned or_one(unsigned size) {
  return size > 0 ? size : 1;
}

static shape shape_of(const at_jit_config *c) {
  return (shape){.grid = {c->grid[0], or_one(c->grid[1]), or_one(c->grid[2])},
                 .block = {c->block[0], or_one(c->block[1]), or_one(c->block[2])},
                 .cluster = {or_one(c->cluster[0]), or_one(c->cluster[1]), or_one(c->cluster[2])},
                 .has_cluster = (c->cluster[0] | c->cluster[1] | c->cluster[2]) != 0,
                 .shared = c->shared_bytes};
}

static uint64_t product(dim3 d) {
  return (uint64_t)d.x * d.y * d.z; /* below 2^64 for what is within the limits, and for clusters, which are compared */
}

/* One or more in each direction, and no more than `most`. */
static bool is_within(dim3 d, const unsigned most[3]) {
  return d.x - 1 < most[0] && d.y - 1 < most[1] && d.z - 1 < most[2];
}

static bool divides(dim3 cluster, dim3 grid) {
  return grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}

static bool fits(const at_jit_limits *most, const shape *s) {
  return is_within(s->block, most->block) && product(s->block) <= most->threads && is_within(s->grid, most->grid) &&
         (uint64_t)s->shared + most->static_shared <= most->shared &&
         (!s->has_cluster || (most->clusters && is_within(s->cluster, most->grid) && divides(s->cluster, s->grid)));
}

static attune_status refuse_cluster(const at_jit_kernel *k, const shape *s) {
  const dim3 c = s->cluster, g = s->grid;
  if (!k->code.limits.clusters)
    return at_fail(ATTUNE_UNSUPPORTED, "%s needs clusters of %ux%ux%u blocks; %s has none (compute capability 9.0 has)",
                   k->name, c.x, c.y, c.z, k->device->name);
  return AT_INVALID("%s has a grid of %ux%ux%u blocks in clusters of %ux%ux%u; should be whole clusters", k->name, g.x,
                    g.y, g.z, c.x, c.y, c.z);
}

/* Result of fits(), in words. */
static attune_status refuse(const at_jit_kernel *k, const shape *s) {
  const at_jit_limits *most = &k->code.limits;
  const dim3 b = s->block, g = s->grid;
  if (b.x == 0 || g.x == 0)
    return AT_INVALID("%s has %u blocks of %u threads; should be at least one of each", k->name, g.x, b.x);
  if (!is_within(b, most->block) || product(b) > most->threads)
    return at_fail(ATTUNE_UNSUPPORTED,
                   "%s needs %ux%ux%u threads in a block; %s allows %ux%ux%u, and %u in total for this kernel", k->name,
                   b.x, b.y, b.z, k->device->name, most->block[0], most->block[1], most->block[2], most->threads);
  if (!is_within(g, most->grid))
    return at_fail(ATTUNE_UNSUPPORTED, "%s needs a grid of %ux%ux%u blocks; %s allows %ux%ux%u", k->name, g.x, g.y, g.z,
                   k->device->name, most->grid[0], most->grid[1], most->grid[2]);
  if ((uint64_t)s->shared + most->static_shared > most->shared)
    return at_fail(
        ATTUNE_UNSUPPORTED,
        "%s needs %u bytes (%.1f KiB) of dynamic and %u of static shared memory; %s allows %u (%.1f KiB) in total",
        k->name, s->shared, s->shared / 1024.0, most->static_shared, k->device->name, most->shared,
        most->shared / 1024.0);
  return refuse_cluster(k, s);
}

static attune_status set(const at_jit_kernel *k, enum cudaFuncAttribute attribute, int value) {
  return at_cuda_check(k->device, cudaKernelSetAttributeForDevice(k->code.kernel, attribute, value, k->device->ordinal),
                       "cudaKernelSetAttributeForDevice");
}

/* Under admit_lock. All that the device has, so that it is set once: what a launch really takes is said there. */
static attune_status allow_shared(at_jit_kernel *k, unsigned bytes) {
  if (bytes <= atomic_load(&k->shared_allowed)) return ATTUNE_OK;
  const unsigned all = k->code.limits.shared - k->code.limits.static_shared;
  const attune_status status = set(k, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)all);
  if (status == ATTUNE_OK) atomic_store(&k->shared_allowed, all);
  return status;
}

/* Under admit_lock. How large a cluster may be depends on what its blocks take. */
static attune_status allow_cluster(at_jit_kernel *k, const shape *s) {
  const uint64_t blocks = product(s->cluster);
  int most = 0;
  attune_status status = ATTUNE_OK;
  if (blocks > PORTABLE_CLUSTER && atomic_load(&k->cluster_allowed) <= PORTABLE_CLUSTER)
    status = set(k, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  if (status != ATTUNE_OK) return status;
  const cudaLaunchConfig_t config = {.gridDim = s->grid, .blockDim = s->block, .dynamicSmemBytes = s->shared};
  status = at_cuda_check(k->device, cudaOccupancyMaxPotentialClusterSize(&most, (const void *)k->code.kernel, &config),
                         "cudaOccupancyMaxPotentialClusterSize");
  if (status != ATTUNE_OK) return status;
  if (most < 0 || blocks > (uint64_t)most)
    return at_fail(ATTUNE_UNSUPPORTED,
                   "%s needs clusters of %ux%ux%u blocks; %s allows %d blocks with %u threads and %u bytes of dynamic "
                   "shared memory each",
                   k->name, s->cluster.x, s->cluster.y, s->cluster.z, k->device->name, most,
                   (unsigned)product(s->block), s->shared);
  if (blocks > atomic_load(&k->cluster_allowed)) atomic_store(&k->cluster_allowed, (unsigned)blocks);
  return ATTUNE_OK;
}

/* The device is current, in a relaxed scope. */
static attune_status admit(at_jit_kernel *k, const shape *s) {
  pthread_mutex_lock(&admit_lock);
  attune_status status = allow_shared(k, s->shared);
  if (status == ATTUNE_OK && s->has_cluster) status = allow_cluster(k, s);
  pthread_mutex_unlock(&admit_lock);
  return status;
}

attune_status at_jit_check(at_jit_kernel *kernel, const at_jit_config *config) {
  const shape s = shape_of(config);
  if (!fits(&kernel->code.limits, &s)) return refuse(kernel, &s);
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, kernel->device));
  attune_status status = admit(kernel, &s);
  at_cuda_leave(&scope);
  return status;
}

/* What a launch needs was set before; if not, it is now. */
static attune_status make_ready(at_jit_kernel *k, const shape *s) {
  if (AT_UNLIKELY(!fits(&k->code.limits, s))) return refuse(k, s);
  if (AT_LIKELY(
          s->shared <= atomic_load_explicit(&k->shared_allowed, memory_order_acquire) &&
          (!s->has_cluster || product(s->cluster) <= atomic_load_explicit(&k->cluster_allowed, memory_order_acquire))))
    return ATTUNE_OK;
  enum cudaStreamCaptureMode mode;
  at_cuda_relax(&mode);
  const attune_status status = admit(k, s);
  at_cuda_restore(mode);
  return status;
}

/* CUDA calls it when the last graph, executable or replay with the kernel is gone. */
static void CUDART_CB let_go(void *kernel) {
  at_jit_release(kernel);
}

/* The capture's graph holds the kernel: once for each capture, as far as that is easily known. */
static attune_status hold_by_graph(at_jit_kernel *k, cudaStream_t stream) {
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = NULL;
  cudaUserObject_t object = NULL;
  cudaError_t error = capture_info(stream, &capture, &id, &graph, NULL, NULL, NULL);
  if (error != cudaSuccess || capture != cudaStreamCaptureStatusActive)
    return at_cuda_check(k->device, error, "cudaStreamGetCaptureInfo");
  if (atomic_load(&k->capture) == id) return ATTUNE_OK;
  at_jit_hold(k);
  error = cudaUserObjectCreate(&object, k, let_go, 1, cudaUserObjectNoDestructorSync);
  if (error != cudaSuccess) {
    at_jit_release(k);
    return at_cuda_check(k->device, error, "cudaUserObjectCreate");
  }
  error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
  if (error == cudaSuccess)
    atomic_store(&k->capture, id);
  else
    (void)cudaUserObjectRelease(object, 1); /* which lets the kernel go */
  return at_cuda_check(k->device, error, "cudaGraphRetainUserObject");
}

/* What will know when this launch is done: the graph that it is captured into, or a wait for the stream. */
static attune_status track(at_jit_kernel *k, cudaStream_t stream) {
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(stream, &capture);
  if (AT_UNLIKELY(error != cudaSuccess)) return at_cuda_check(k->device, error, "cudaStreamIsCapturing");
  if (AT_UNLIKELY(stream == cudaStreamPerThread)) atomic_store(&at_cuda_device_of(k->device)->untracked, true);
  if (AT_LIKELY(capture != cudaStreamCaptureStatusActive)) return ATTUNE_OK;
  enum cudaStreamCaptureMode mode;
  at_cuda_relax(&mode);
  const attune_status status = hold_by_graph(k, stream);
  at_cuda_restore(mode);
  return status;
}

static attune_status fail_launch(const at_jit_kernel *k, const shape *s, cudaError_t error) {
  char what[256];
  size_t at = 0;
  (void)at_append(what, sizeof what, &at, "launching %s, %ux%ux%u blocks of %ux%ux%u threads and %u bytes,", k->name,
                  s->grid.x, s->grid.y, s->grid.z, s->block.x, s->block.y, s->block.z, s->shared);
  return at_cuda_check(k->device, error, what);
}

static unsigned attributes_of(cudaLaunchAttribute out[2], const at_jit_kernel *k, const at_jit_config *config,
                              const shape *s) {
  unsigned count = 0;
  if (s->has_cluster) {
    out[count].id = cudaLaunchAttributeClusterDimension;
    out[count].val.clusterDim.x = s->cluster.x;
    out[count].val.clusterDim.y = s->cluster.y;
    out[count++].val.clusterDim.z = s->cluster.z;
  }
  if (config->dependent && k->code.limits.dependent) {
    out[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    out[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  return count;
}

attune_status at_jit_launch(at_jit_kernel *kernel, const at_jit_config *config, const void *argument,
                            attune_stream *stream) {
  const shape s = shape_of(config);
  if (AT_UNLIKELY(stream->device != kernel->device))
    return AT_INVALID("%s is loaded on %s; the stream should be of that device, not of %s", kernel->name,
                      kernel->device->name, stream->device->name);
  attune_status status = make_ready(kernel, &s);
  if (status == ATTUNE_OK && !atomic_load_explicit(&kernel->kept, memory_order_relaxed))
    status = track(kernel, at_cuda_native(stream));
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  cudaLaunchAttribute attributes[2];
  const cudaLaunchConfig_t launch = {.gridDim = s.grid,
                                     .blockDim = s.block,
                                     .dynamicSmemBytes = s.shared,
                                     .stream = at_cuda_native(stream),
                                     .attrs = attributes,
                                     .numAttrs = attributes_of(attributes, kernel, config, &s)};
  void *arguments[] = {(void *)(uintptr_t)argument};
  const cudaError_t error = cudaLaunchKernelExC(&launch, (const void *)kernel->code.kernel, arguments);
  return AT_LIKELY(error == cudaSuccess) ? ATTUNE_OK : fail_launch(kernel, &s, error);
}

cudaKernel_t at_jit_native(const at_jit_kernel *kernel) {
  return kernel->code.kernel;
}
