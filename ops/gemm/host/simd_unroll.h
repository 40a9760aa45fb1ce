/* SPDX-License-Identifier: Apache-2.0
 * simd_unroll.h: AT_UNROLL before a loop over the registers of a tile: its bound is a constant after inlining, and it
 * must be gone for the tile to live in registers. AT_INSTANCE before a function that is called with constants, once for
 * each tile and type, and becomes code of its own for each. */
#ifndef AT_GEMM_SIMD_UNROLL_H
#define AT_GEMM_SIMD_UNROLL_H

#if defined(__clang__)
#define AT_UNROLL _Pragma("clang loop unroll(full)")
#define AT_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define AT_UNROLL _Pragma("GCC unroll 16")
#define AT_ROLLED _Pragma("GCC unroll 1")
#endif

/* Sanitizers take minutes to compile all of them: there the constants stay arguments of one function. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define AT_INSTANCE static __attribute__((noinline, noclone)) AT_TARGET
#else
#define AT_INSTANCE SIMD
#endif

#endif
