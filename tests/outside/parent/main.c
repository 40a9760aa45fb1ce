/* SPDX-License-Identifier: Apache-2.0
 * main.c: a program whose assertion holds in a release build only, where it is not there. */
#include <assert.h>

int main(void) {
  assert(1 + 1 == 3);
  return 0;
}
