/* SPDX-License-Identifier: Apache-2.0
 * number.h: numbers in texts: settings, columns of a workload, texts of problems and configurations, expressions. They are
 * written as in C, with a point, whatever the program's locale says; NaN, infinity, hexadecimal floats and spaces are no
 * numbers, and neither is one that its type cannot hold. errno stays as it was. */
#ifndef AT_NUMBER_H
#define AT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The decimal integer that the text begins with, with a - or none; its characters, 0: there is none, or int64 cannot hold
 * it. */
size_t at_read_i64(int64_t *out, const char *text);

/* As above, and nothing may follow it. */
bool at_parse_i64(int64_t *out, const char *text);

/* The decimal number that the text begins with: "3", "-2.5", ".5", "1e-3"; rounded to the nearest, however many digits it
 * has. Its characters, 0: there is none, or it is above 1.8e308. */
size_t at_read_number(double *out, const char *text);

/* The same without sign and exponent, "0.25", and nothing behind it. */
bool at_parse_decimal(double *out, const char *text);

#endif
