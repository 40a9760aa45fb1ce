/* SPDX-License-Identifier: Apache-2.0
 * vmath_pow_tables.h: tables and constants of powers of f32. vmath_pow256.h and vmath_pow512.h use
 * them; both give the same bits. */
#ifndef AT_VMATH_POW_TABLES_H
#define AT_VMATH_POW_TABLES_H

/* For m from 3/4 to 3/2 next to j / 16, at place j modulo 16: a factor near 1 / m of so few bits that r = m factor - 1
 * is exact in f32, |r| < 1/18; and log2(1 / factor) in two parts, the first of 15 bits behind the point, so that a
 * whole number plus that is exact. Next to m = 1 the factor is 1 and the logarithm 0, as good as elsewhere. */
/* clang-format off */
static const _Alignas(64) float power_factor[16] = {
    0x1p+0f,   0x1.ep-1f, 0x1.cp-1f, 0x1.bp-1f, 0x1.ap-1f, 0x1.8p-1f, 0x1.7p-1f, 0x1.6p-1f,
    0x1.6p-1f, 0.0f,      0.0f,      0.0f,      0x1.5p+0f, 0x1.4p+0f, 0x1.2p+0f, 0x1.1p+0f,
};
static const _Alignas(64) float power_log[16] = {
    0.0f,         0x1.7d6p-4f, 0x1.8a9p-3f, 0x1.f6p-3f, 0x1.32cp-2f,   0x1.a9p-2f,    0x1.e7ep-2f, 0x1.14c4p-1f,
    0x1.14c4p-1f, 0.0f,        0.0f,        0.0f,       -0x1.91b8p-2f, -0x1.49a8p-2f, -0x1.5cp-3f, -0x1.664p-4f,
};
static const _Alignas(64) float power_log_low[16] = {
    0.0f, 0x1.25b3eep-22f, -0x1.9fd502p-17f, -0x1.3ab7cep-18f, -0x1.1c8f12p-22f, -0x1.a39fbep-20f,
    -0x1.40358ep-19f, 0x1.60fe68p-17f, 0x1.60fe68p-17f, 0.0f, 0.0f, 0.0f,
    -0x1.d448f8p-17f, 0x1.ed0cbap-20f, -0x1.a39fbep-19f, 0x1.20a6dep-21f,
};
/* clang-format on */

/* log2(1 + r) = (r - r^2 / 2) / ln(2) - r^3 / 2 q(r), q off by 2^-37 of the logarithm of m */
#define POWER_Q0 -0x1.ec709ep-1f
#define POWER_Q1 0x1.715454p-1f
#define POWER_Q2 -0x1.27773cp-1f
#define POWER_Q3 0x1.edcd5ep-2f
#define POWER_Q4 -0x1.a4d628p-2f

/* 1 / ln(2) in two parts */
#define POWER_LOG2_E 0x1.715476p+0f
#define POWER_LOG2_E_LOW 0x1.4ae0cp-26f

/* 2^(i / 8), and the share of it that it is off by */
/* clang-format off */
static const _Alignas(64) float power_root[8] = {0x1p+0f,        0x1.172b84p+0f, 0x1.306fep+0f,  0x1.4bfdaep+0f,
                                                 0x1.6a09e6p+0f, 0x1.8ace54p+0f, 0x1.ae89fap+0f, 0x1.d5818ep+0f};
static const _Alignas(64) float power_root_low[8] = {
    0.0f, -0x1.9c0c22p-27f, 0x1.125002p-25f, -0x1.0a3550p-25f,
    0x1.26055cp-26f, 0x1.67a1cap-28f, -0x1.f9c304p-27f, -0x1.a5217cp-28f,
};
/* clang-format on */

/* (2^x - 1) / x for |x| <= 1/16, off by 2^-33 of 2^x */
#define POWER_E0 0x1.62e43p-1f
#define POWER_E1 0x1.ebfbep-3f
#define POWER_E2 0x1.c6be34p-5f
#define POWER_E3 0x1.3b31c8p-7f

#endif
