/* SPDX-License-Identifier: Apache-2.0
 * gate_page.c: gate_page COUNT [NAME...]: prints the page of a made comparison of COUNT cases, the first ones so named,
 * for test_gate_page.sh; COUNT 0: with no histories and no roofs either. */
#include "tests/support/check.h"

#include "tests/support/gate_made.h"

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  const size_t count = (size_t)atoi(argv[1]);
  made m;
  made_create(&m, count, (const char *const *)argv + 2, (size_t)argc - 2, 16);
  const bool good =
      gate_report_html(stdout, &m.comparison, m.histories, count ? MADE_HISTORIES : 0, m.roofs, count ? MADE_ROOFS : 0);
  made_free(&m);
  return good ? 0 : 1;
}
