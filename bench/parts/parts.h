/* SPDX-License-Identifier: Apache-2.0
 * parts.h: bench_parts, the cases that attune's parts and their peers are for `attune bench`, a file a part. What cannot go
 * on before a case is opened ends the program with a message. */
#ifndef BENCH_PARTS_H
#define BENCH_PARTS_H

#include <attune/tools.h>

#include "bench/common/tool.h"
#include "bench/parts/part.h"

void parts_alloc(attune_bench *bench, attune_device *device);
void parts_blocked(attune_bench *bench);
void parts_graph(attune_bench *bench);
void parts_hot(attune_bench *bench);
void parts_interpret(attune_bench *bench);
void parts_random(attune_bench *bench, attune_device *device);

#endif
