/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_conformance.c: every CUDA implementation of each operation and every public call keeps the order of its
 * stream; the pages have the keys of their configurations. */
#include "tests/ops/conformance.h"
#include "tests/ops/documented.h"
#include "tests/support/gpu.h"

#include "ops/ops.h"
#include "src/base/backend.h"

enum { CASES = 24, CONFIGURATIONS = 2, PATIENCE_MS = 20000 };

static attune_device *device;
static at_random *data[2];
static char *page;
static int checked;

/* The pages have each key of each configuration. */
static void is_documented(const at_op *op, const at_implementation *implementation, const void *problem) {
  enum { ROOM = 256 };
  static at_configuration room[ROOM];
  const int count = implementation->configurations(implementation, problem, device, room, ROOM);
  for (int i = 0; i < count; i++)
    if (!documented_configuration(op, page, implementation, &room[i]))
      fail_msg("%s: %s", room[i].text, attune_last_message());
}

static void keeps_order(const at_op_test *op_test, const void *problem, const char *text) {
  const at_op *op = op_test->op;
  conform_scene s;
  conform_open_scene(&s, op_test, problem, device, data, PATIENCE_MS);
  for (size_t i = 0; i < op->implementation_count; i++) {
    const at_implementation *implementation = op->implementations[i];
    if (strcmp(implementation->backend, "cuda") != 0 || !implementation->supports(implementation, problem, device))
      continue;
    is_documented(op, implementation, problem);
    checked += conform_implementation(&s, implementation, CONFIGURATIONS, text);
  }
  conform_close_scene(&s);
}

TEST(implementations_keep_the_order) {
  for (int i = 0; i < at_op_count; i++) assert_true(conform_cases(at_op_test_at(i), device, CASES, keeps_order) > 3);
  printf("%d configurations\n", checked);
  assert_true(checked > 40);
}

int main(void) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("%s", attune_last_message());
  for (int i = 0; i < 2; i++)
    if (at_random_create(&data[i], 3 + (uint64_t)i) != ATTUNE_OK) return 1;
  page = documented_page("configurations.md");
  const int failed = RUN_TESTS(NULL, NULL);
  for (int i = 0; i < 2; i++) at_random_destroy(data[i]);
  free(page);
  return failed;
}
