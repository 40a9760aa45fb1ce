/* SPDX-License-Identifier: Apache-2.0
 * attune.h: all of attune's public headers. */
#ifndef ATTUNE_H
#define ATTUNE_H

#include <attune/check.h>
#include <attune/collectives.h>
#include <attune/details.h>
#include <attune/device.h>
#include <attune/elementwise.h>
#include <attune/elementwise_cuda.h>
#include <attune/file.h>
#include <attune/gemm.h>
#include <attune/graph.h>
#include <attune/graph_callable.h>
#include <attune/graph_hooks.h>
#include <attune/graph_nodes.h>
#include <attune/managed.h>
#include <attune/memory.h>
#include <attune/pinned.h>
#include <attune/plan.h>
#include <attune/pointer.h>
#include <attune/pool.h>
#include <attune/profile.h>
#include <attune/random.h>
#include <attune/snapshot.h>
#include <attune/status.h>
#include <attune/stream.h>
#include <attune/telemetry.h>
#include <attune/tensor.h>
#include <attune/trace.h>
#include <attune/transfer.h>
#include <attune/tuner.h>
#include <attune/types.h>
#include <attune/warm.h>
#include <attune/workload.h>

#endif
