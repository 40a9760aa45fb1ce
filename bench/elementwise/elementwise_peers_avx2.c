/* SPDX-License-Identifier: Apache-2.0
 * elementwise_peers_avx2.c: see elementwise_peers.h. */
#include "bench/elementwise/elementwise_peers.h"

#include <stdint.h>
#include <string.h>

#define BYTES 32

#define T float
#define I int32_t
#define NAME(word) word##_f32
#define TABLE peer_avx2_f32
#include "bench/elementwise/elementwise_peers_template.h"

#define T double
#define I int64_t
#define NAME(word) word##_f64
#define TABLE peer_avx2_f64
#include "bench/elementwise/elementwise_peers_template.h"
