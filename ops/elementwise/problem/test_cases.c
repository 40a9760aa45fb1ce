/* SPDX-License-Identifier: Apache-2.0
 * test_cases.c: rows of words, as a workload has them, of every kind of expression, dtype and layout. Those that are aligned to
 * less than 16 bytes have rows with gaps: what lies in one piece is walked from its first aligned element on, where the
 * operands allow it, and is then another problem (call_bind.c). */
#include "ops/elementwise/problem/test_cases.h"

#include <string.h>

#include "ops/elementwise/problem/workload_columns.h"

static const at_spec_words cases[] = {
    {"a + b", "1000", "f32", "", "", "", 0, ATTUNE_STRICT},
    {"gelu(a + b) * b", "33x65", "bf16", "", "", "", 0, ATTUNE_STRICT},
    {"relu(a)", "17x241", "f16", "", "f16:256x1", "", 2, ATTUNE_STRICT},
    {"exp(a)", "64x63", "f64", "", "f64:65x1", "", 8, ATTUNE_STRICT},
    {"alpha * x * y + x", "2048", "f32", "", "@x", "alpha", 16, ATTUNE_STRICT},
    {"alpha * x + beta * y", "100x3", "f32", "x y:::4x1", "@y", "alpha beta", 4, ATTUNE_STRICT},
    {"x + bias", "48x96", "bf16", "x bias::96", "", "", 0, ATTUNE_STRICT},
    {"x + bias", "48x97", "f32", "x bias::48x1", "", "", 4, ATTUNE_STRICT},
    {"a + b", "64x96", "f32", "a b:::1x64", "", "", 0, ATTUNE_STRICT},
    {"a * b", "7x5x9", "f32", "a:::45x1x5 b::9:", "", "", 4, ATTUNE_STRICT},
    {"a - b", "30x20", "f32", "a:::64x1 b:::40x2", "f32:24x1", "", 4, ATTUNE_STRICT},
    {"a", "5x6x7", "i32", "", "i32:1x5x30", "", 0, ATTUNE_STRICT},
    {"a + 1", "40", "i64", "a:::-1", "", "", 0, ATTUNE_STRICT},
    {"a << 2 ^ b", "9x37", "u8", "", "u8:40x1", "", 1, ATTUNE_STRICT},
    {"a % b + a // 7", "100", "i16", "", "", "", 0, ATTUNE_STRICT},
    {"a % (b ^ b) + (a << ~(b - b)) + (a >> ~(b - b)) + a ** ~(b - b)", "99", "i16", "", "", "", 0, ATTUNE_STRICT},
    {"a < b ? a : b * 2", "77x3", "f16", "", "", "", 0, ATTUNE_STRICT},
    {"f16(a)", "500", "f32", "", "", "", 0, ATTUNE_STRICT},
    {"f32(q) * s", "512", "f8e4m3", "", "bf16", "s", 0, ATTUNE_STRICT},
    {"f8e5m2(clamp(f32(a), -2, 2))", "10x13", "f16", "", ":14x1", "", 2, ATTUNE_STRICT},
    {"s = a + b; s, s * s, a > b", "257", "f32", "", "", "", 0, ATTUNE_STRICT},
    {"min(a, b), max(a, b)", "16x16", "bf16", "a b::16", "@a", "", 0, ATTUNE_STRICT},
    {"rand() < p ? a / p : 0", "1025", "f32", "", "", "p", 0, ATTUNE_STRICT},
    {"a + 0.1 * randn()", "40x30", "f32", "", "f32:1x40", "", 0, ATTUNE_STRICT},
    {"f32(index())", "321", "f32", "", "", "", 0, ATTUNE_STRICT},
    {"index(0) <= index(1) ? a : -inf", "20x30", "f32", "", "", "", 0, ATTUNE_STRICT},
    {"index(0) + 100 * index(2)", "3x4x5", "f32", "", "i64:1x3x12", "", 0, ATTUNE_STRICT},
    {"a * b", "64", "c64", "", "", "", 0, ATTUNE_STRICT},
    {"abs(a) + real(b)", "65", "c128", "", "", "", 0, ATTUNE_STRICT},
    {"log(a) + sqrt(b)", "2000", "f32", "", "", "", 0, ATTUNE_STRICT},
    {"tanh(a) + sigmoid(b)", "2000", "f32", "", "", "", 0, ATTUNE_REDUCED},
    {"!a || b", "90", "bool", "", "", "", 0, ATTUNE_STRICT},
    {"a + b * c - d / e", "12x13", "f32", "a b::13 c::12x1 d::1 e", "", "", 0, ATTUNE_STRICT},
    {"n * a + k", "50", "i32", "", "", "n:i64 k:bool", 0, ATTUNE_STRICT},
    {"2.5", "100x100", "f32", "", "f32:128x1", "", 0, ATTUNE_STRICT},
    {"a", "2x3x2x3x2x3x2x3", "f32", "a:::1x2x6x12x36x72x216x432", "", "", 0, ATTUNE_STRICT},
    {"softplus(a) - silu(b)", "9", "f64", "", "", "", 0, ATTUNE_STRICT},
};

int at_elementwise_case_count(void) {
  return (int)AT_COUNT(cases);
}

bool at_elementwise_case_at(int index, void *problem) {
  char text[AT_PROBLEM_CHARS];
  return at_elementwise_describe(&cases[index], text, sizeof text) == ATTUNE_OK &&
         at_elementwise_parse(text, problem) == ATTUNE_OK;
}
