/* SPDX-License-Identifier: Apache-2.0
 * numbers.c: the numbers of options: decimal, in one form for all commands, with messages that say the unit and the
 * bounds. */
#include "tools/cli/commands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* strtod alone takes blanks, a plus, hexadecimal numbers, "inf" and "nan". */
bool cli_read_number(const char *text, double *out) {
  char *end = NULL;
  if (strspn(text, "0123456789.eE+-") != strlen(text) || *text == '+' || !*text) return false;
  errno = 0;
  *out = strtod(text, &end);
  return !*end && isfinite(*out);
}

double cli_positive(const char *option, const char *text, const char *unit, double most,
                    const struct argp_state *state) {
  double value = 0;
  if (!cli_read_number(text, &value) || !(value > 0 && value <= most))
    cli_bad_usage(state, "--%s is \"%s\"; should be a number of %s above 0, at most %.0f", option, text, unit, most);
  return value;
}

uint64_t cli_whole(const char *option, const char *text, uint64_t least, uint64_t most, const char *note,
                   const struct argp_state *state) {
  char *end = NULL;
  errno = 0;
  const unsigned long long value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
  if (!end || *end || errno || value < least || value > most)
    cli_bad_usage(state, "--%s is \"%s\"; should be a whole number, %llu to %llu%s", option, text,
                  (unsigned long long)least, (unsigned long long)most, note);
  return value;
}
