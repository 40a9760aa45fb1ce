/* SPDX-License-Identifier: Apache-2.0
 * report_numbers.c: times, changes, rates and dates for people. What is not known, or is no number, is "-". */
#include "tools/compare/report/report_text.h"

#include <math.h>
#include <time.h>

const char *gate_time_text(char out[GATE_CELL], double ns) {
  static const char *const units[] = {"ns", "us", "ms", "s"};
  int unit = 0;
  if (!(ns > 0) || !isfinite(ns)) return "-";
  while (unit < 3 && ns >= 999.95) {
    ns /= 1000;
    unit++;
  }
  snprintf(out, GATE_CELL, ns < 1e5 ? "%.*f %s" : "%.*e %s", ns < 10 ? 2 : 1, ns, units[unit]);
  return out;
}

#define FACTOR 100 /* from so many times as long, or so many times less, a percentage says little */

/* "+0.4", "+112". A minus of nothing is no minus. */
static int percent(char *out, size_t size, double ratio) {
  const double change = 100 * (ratio - 1), size_of = fabs(change);
  if (size_of < 0.05) return snprintf(out, size, "0.0");
  return snprintf(out, size, "%+.*f", size_of < 99.95 ? 1 : 0, change);
}

/* "10000x", "0.0001x": how many times as long. */
static int factor(char *out, size_t size, double ratio) {
  return snprintf(out, size, ratio >= 100 && ratio < 1e7 ? "%.0fx" : "%.3gx", ratio);
}

static bool is_factor(double ratio) {
  return ratio >= FACTOR || ratio <= 1.0 / FACTOR;
}

const char *gate_change_text(char out[GATE_CELL], double ratio) {
  if (!(ratio > 0) || !isfinite(ratio)) return "-";
  char change[GATE_CELL / 2];
  const bool times = is_factor(ratio);
  (times ? factor : percent)(change, sizeof change, ratio);
  snprintf(out, GATE_CELL, "%s%s", change, times ? "" : " %");
  return out;
}

const char *gate_interval_text(char out[GATE_CELL], const gate_judgement *judged) {
  if (!(judged->low > 0) || !(judged->high > 0) || !isfinite(judged->low) || !isfinite(judged->high)) return "-";
  char low[GATE_CELL / 3], high[GATE_CELL / 3];
  const bool times = is_factor(judged->low) || is_factor(judged->high);
  (times ? factor : percent)(low, sizeof low, judged->low);
  (times ? factor : percent)(high, sizeof high, judged->high);
  snprintf(out, GATE_CELL, "%s to %s%s", low, high, times ? "" : " %");
  return out;
}

const char *gate_rate_text(char out[GATE_CELL], double per_second, const char *unit) {
  static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
  int prefix = 0;
  if (!(per_second > 0) || !isfinite(per_second)) return "-";
  while (prefix < 5 && per_second >= 999.5) {
    per_second /= 1000;
    prefix++;
  }
  const int decimals = per_second < 9.995 ? 2 : per_second < 99.95 ? 1 : 0;
  snprintf(out, GATE_CELL, "%.*f %s%s", decimals, per_second > 1e6 ? 1e6 : per_second, prefixes[prefix], unit);
  return out;
}

const char *gate_share_text(char out[GATE_CELL], double fraction) {
  if (!(fraction >= 0) || !isfinite(100 * fraction)) return "-";
  snprintf(out, GATE_CELL, "%.3g %%", 100 * fraction);
  return out;
}

const char *gate_date_text(char out[GATE_CELL], int64_t seconds) {
  const time_t when = (time_t)seconds;
  struct tm parts;
  if (seconds <= 0 || !gmtime_r(&when, &parts) || !strftime(out, GATE_CELL, "%Y-%m-%d %H:%M UTC", &parts)) return "-";
  return out;
}
