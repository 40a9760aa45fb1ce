/* SPDX-License-Identifier: Apache-2.0
 * test_race_random.c: the race check on random programs over streams, events, waits, allocations and captures, beside
 * an oracle that keeps, for each piece of work, the set of all that comes before it. ATTUNE_TEST_RACES: how many
 * programs. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include "src/trace/instrument.h"

enum { STREAMS = 4, EVENTS = 4, SLOTS = 3, OPS = 48, NODES = 512, WORDS = NODES / 64, USES = 256, BYTES = 64 };

static attune_device *host;
static attune_stream *streams[STREAMS]; /* the last two are for captures only while one is made */
static attune_event *events[EVENTS];
static uint64_t seed;

static unsigned draw(unsigned below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(seed >> 33) % below;
}

/* ---- the oracle: nodes, and for each the set of those before it ---- */

typedef struct set {
  uint64_t word[WORDS];
} set;
static set before[NODES];
static int node_count;

static void add(set *s, int node) {
  if (node < 0) return;
  s->word[node / 64] |= UINT64_C(1) << (node % 64);
  for (int w = 0; w < WORDS; w++) s->word[w] |= before[node].word[w];
}
static bool has(const set *s, int node) {
  return s->word[node / 64] >> (node % 64) & 1;
}
/* A node after these; -1: none. */
static int new_node(int a, int b, int c) {
  set s = {{0}};
  assert_true(node_count < NODES);
  add(&s, a);
  add(&s, b);
  add(&s, c);
  before[node_count] = s;
  return node_count++;
}

typedef struct use {
  int node, op, part; /* part: within a capture */
  int slot;           /* of an allocation; -1: the arena */
  uint64_t mask;      /* bytes */
  bool writes, allocates;
} use;

static use uses[USES];
static int use_count;
static int last[STREAMS], host_node, event_node[EVENTS];
static char *arena;

/* Reports of the check in this operation, and the expected ones. */
static int op, told, expected;
static bool wrong;
static char why[256];

static int number_of(const char *call, int *part) {
  const char *at = strstr(call, "op ");
  int number = -1;
  *part = -1;
  if (at) sscanf(at, "op %d.%d", &number, part);
  return number;
}

/* The uses that the current operation makes; a race is between one of them and an earlier use. */
static use now[64];
static int now_count;
static set now_after; /* for a free: what comes before it */
static bool now_frees;

static bool race_of(const use *earlier, const use *later) {
  if (earlier->slot != later->slot || !(earlier->mask & later->mask)) return false;
  if (!earlier->writes && !later->writes && !now_frees) return false;
  return now_frees ? !has(&now_after, earlier->node)
                   : earlier->node != later->node && !has(&before[later->node], earlier->node);
}

static void hear(void *user, const attune_race *race) {
  int part, found = 0;
  (void)user;
  told++;
  const bool allocates = strcmp(race->first.access, "allocates") == 0;
  const int number = number_of(race->first.call, &part);
  for (int i = 0; i < use_count && !found; i++) {
    const use *u = &uses[i];
    if (allocates ? !u->allocates : (u->op != number || u->part != part || u->allocates)) continue;
    for (int k = 0; k < now_count && !found; k++) found = race_of(u, &now[k]);
  }
  if (found || wrong) return;
  wrong = true;
  snprintf(why, sizeof why, "false alarm at op %d: %.180s", op, race->text);
}

static void expect(void) {
  for (int k = 0; k < now_count; k++)
    for (int i = 0; i < use_count; i++) expected += race_of(&uses[i], &now[k]);
}

static void keep(void) {
  for (int k = 0; k < now_count && !now_frees; k++) {
    assert_true(use_count < USES);
    uses[use_count++] = now[k];
  }
  now_count = 0;
  now_frees = false;
}

/* ---- operations ---- */

static void *slot_pointer[SLOTS];
static int slot_stream[SLOTS];
static unsigned slot_named[SLOTS]; /* streams of attune_record_use */

static int give(int s) {
  return last[s] = new_node(last[s], host_node, -1);
}

static void random_touch(at_operand_access *out, use *u) {
  const unsigned element = 1 + draw(6), count = 1 + draw(4), outer = 1 + draw(3);
  const unsigned step = 1 + draw(8), wide = 1 + draw(12);
  const unsigned extent = element + step * (count - 1) + wide * (outer - 1);
  const unsigned at = draw((unsigned)BYTES - extent);
  const bool back = draw(4) == 0;
  u->mask = 0;
  for (unsigned i = 0; i < outer; i++)
    for (unsigned j = 0; j < count; j++)
      for (unsigned k = 0; k < element; k++) u->mask |= UINT64_C(1) << (at + i * wide + j * step + k);
  u->slot = -1;
  u->writes = draw(3) == 0;
  *out = (at_operand_access){.operand = "x",
                             .data = arena + at + (back ? step * (count - 1) : 0),
                             .element = element,
                             .dims = 2,
                             .counts = {(int64_t)count, (int64_t)outer},
                             .steps = {back ? -(int64_t)step : (int64_t)step, (int64_t)wide},
                             .reads = !u->writes || draw(2),
                             .writes = u->writes};
}

/* One or two uses in one piece of work. `node` is that of the oracle. */
static void touch(attune_stream *stream, int node, int part) {
  char name[32];
  at_operand_access touches[2];
  snprintf(name, sizeof name, "op %d.%d", op, part);
  const int count = 1 + (int)draw(2);
  for (int i = 0; i < count; i++) {
    use *u = &now[now_count++];
    *u = (use){.node = node, .op = op, .part = part};
    random_touch(&touches[i], u);
  }
  expect();
  at_instrument_use(stream, name, touches, count);
  keep();
}

static void op_touch(void) {
  const int s = (int)draw(STREAMS + 1);
  if (s == STREAMS) {
    host_node = new_node(host_node, -1, -1);
    touch(draw(2) ? NULL : attune_stream_default(host), host_node, 0);
  } else {
    touch(streams[s], give(s), 0);
  }
}

static void op_slot(void) {
  char name[32];
  const int i = (int)draw(SLOTS), s = (int)draw(STREAMS);
  if (!slot_pointer[i]) {
    OK(attune_alloc(&slot_pointer[i], streams[s], 600));
    slot_stream[i] = s;
    slot_named[i] = 0;
    for (int k = 0; k < use_count; k++)
      if (uses[k].slot == i) uses[k].mask = 0;
    now[now_count++] = (use){.node = give(s), .op = op, .slot = i, .mask = 1, .writes = true, .allocates = true};
    keep();
  } else if (draw(4) == 0) {
    OK(attune_record_use(slot_pointer[i], streams[s]));
    slot_named[i] |= 1u << s;
  } else if (draw(4) == 0) {
    now_after = (set){{0}};
    now_frees = true;
    add(&now_after, host_node);
    add(&now_after, last[slot_stream[i]]);
    add(&now_after, last[s]);
    for (int k = 0; k < STREAMS; k++)
      if (slot_named[i] >> k & 1) add(&now_after, last[k]);
    now[now_count++] = (use){.op = op, .slot = i, .mask = 1, .writes = true};
    expect();
    OK(attune_free(slot_pointer[i], streams[s]));
    slot_pointer[i] = NULL;
    keep();
  } else {
    const attune_use u = {"slot", slot_pointer[i], 100, draw(2) ? ATTUNE_WRITES : ATTUNE_READS};
    now[now_count++] = (use){.node = give(s), .op = op, .slot = i, .mask = 1, .writes = u.access == ATTUNE_WRITES};
    expect();
    snprintf(name, sizeof name, "op %d.0", op);
    OK(attune_note_use(streams[s], name, &u, 1));
    keep();
  }
}

static void op_order(void) {
  const int s = (int)draw(STREAMS), e = (int)draw(EVENTS), other = (int)draw(STREAMS);
  switch (draw(8)) {
  case 0:
  case 1:
    OK(attune_event_record(events[e], streams[s]));
    event_node[e] = give(s);
    break;
  case 2:
  case 3:
    OK(attune_stream_wait_event(streams[s], events[e]));
    if (event_node[e] >= 0) last[s] = new_node(last[s], event_node[e], host_node);
    break;
  case 4:
    OK(attune_stream_wait_stream(streams[s], streams[other]));
    if (s != other) last[s] = new_node(last[s], last[other], host_node);
    break;
  case 5:
    OK(attune_note_wait(streams[s], streams[other]));
    last[s] = new_node(last[s], last[other], host_node);
    break;
  case 6:
    if (draw(3) == 0) {
      OK(draw(2) ? attune_stream_synchronize(streams[s]) : attune_note_wait(NULL, streams[s]));
      host_node = new_node(host_node, last[s], -1);
    }
    break;
  default:
    if (draw(4) != 0) break;
    OK(attune_event_synchronize(events[e]));
    if (event_node[e] >= 0) host_node = new_node(host_node, event_node[e], -1);
  }
}

/* A capture of two streams in one operation, and what a replay of it uses. */
static use captured[USES];
static int captured_count, races_of_captures;
static attune_graph *graph;

static void op_capture(void) {
  use outside[USES];
  int inside[2], saved = use_count;
  if (graph) return;
  const int before_it = (int)attune_race_count();
  memcpy(outside, uses, sizeof uses);
  use_count = 0;
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_begin(graph, streams[2], NULL));
  inside[0] = inside[1] = new_node(-1, -1, -1);
  OK(attune_stream_wait_stream(streams[3], streams[2]));
  for (int part = 1; part < 8; part++) {
    const int s = (int)draw(2);
    if (draw(3) == 0) {
      OK(attune_stream_wait_stream(streams[2 + s], streams[3 - s]));
      inside[s] = new_node(inside[s], inside[1 - s], -1);
    } else {
      inside[s] = new_node(inside[s], -1, -1);
      touch(streams[2 + s], inside[s], part);
    }
  }
  OK(attune_stream_wait_stream(streams[2], streams[3]));
  OK(attune_graph_capture_end(graph, streams[2]));
  races_of_captures += (int)attune_race_count() - before_it;
  memcpy(captured, uses, sizeof uses);
  captured_count = use_count;
  memcpy(uses, outside, sizeof uses);
  use_count = saved;
}

static void op_replay(void) {
  if (!graph) return;
  const int s = (int)draw(STREAMS), node = give(s);
  for (int i = 0; i < captured_count; i++) {
    assert_true(now_count < (int)(sizeof now / sizeof *now));
    now[now_count] = captured[i];
    now[now_count++].node = node;
  }
  expect();
  OK(attune_graph_replay(graph, streams[s]));
  keep();
}

/* Every stream comes after all that was given so far. */
static void wait_all(void) {
  for (int i = 1; i < STREAMS; i++) {
    OK(attune_stream_wait_stream(streams[0], streams[i]));
    last[0] = new_node(last[0], last[i], host_node);
  }
  for (int i = 1; i < STREAMS; i++) {
    OK(attune_stream_wait_stream(streams[i], streams[0]));
    last[i] = new_node(last[i], last[0], host_node);
  }
}

/* In an ordered program the host makes no use of its own: only waits for it would order that. */
static void run_op(bool ordered) {
  const unsigned kind = ordered ? 5 + draw(11) : draw(16);
  if (ordered) wait_all();
  told = expected = 0;
  if (kind < 5)
    op_touch();
  else if (kind < 9)
    op_slot();
  else if (kind < 14)
    op_order();
  else if (kind < 15)
    op_capture();
  else
    op_replay();
  if (wrong || (told > 0) == (expected > 0)) return;
  wrong = true;
  snprintf(why, sizeof why, "op %d: told %d, expected %d", op, told, expected);
}

static void start_program(void) {
  node_count = use_count = captured_count = races_of_captures = 0;
  host_node = new_node(-1, -1, -1);
  for (int i = 0; i < STREAMS; i++) last[i] = -1;
  for (int i = 0; i < EVENTS; i++) event_node[i] = -1;
  for (int i = 0; i < EVENTS; i++) OK(attune_event_create(&events[i], host, NULL));
  OK(attune_set_race_check(1, hear, NULL));
}

static void end_program(void) {
  OK(attune_set_race_check(0, NULL, NULL));
  for (int i = 0; i < EVENTS; i++) attune_event_destroy(events[i]);
  for (int i = 0; i < SLOTS; i++) {
    if (slot_pointer[i]) OK(attune_free(slot_pointer[i], streams[slot_stream[i]]));
    slot_pointer[i] = NULL;
  }
  for (int i = 0; i < STREAMS; i++) OK(attune_stream_synchronize(streams[i]));
  attune_graph_destroy(graph);
  graph = NULL;
}

TEST(test_programs) {
  const char *asked = getenv("ATTUNE_TEST_RACES");
  const int programs = asked ? atoi(asked) : 200;
  uint64_t races = 0;
  int racy = 0, ordered_races = 0;
  for (int program = 0; program < programs; program++) {
    seed = (uint64_t)program * 2654435761u + 12345;
    start_program();
    const bool ordered = program % 4 == 0;
    for (op = 0; op < OPS && !wrong; op++) run_op(ordered);
    races += attune_race_count();
    racy += attune_race_count() > 0;
    if (ordered) ordered_races += (int)attune_race_count() - races_of_captures;
    end_program();
    if (wrong) fail_msg("program %d: %s", program, why);
  }
  printf("%d programs, %d of them with races, %llu races\n", programs, racy, (unsigned long long)races);
  assert_int_equal(ordered_races, 0);
  assert_true(racy > programs / 4);
}

FIXTURE(start) {
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
  if (attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  arena = malloc(BYTES);
  for (int i = 0; i < STREAMS; i++)
    if (attune_stream_create(&streams[i], host) != ATTUNE_OK) return -1;
  return arena ? 0 : -1;
}

FIXTURE(stop) {
  for (int i = 0; i < STREAMS; i++) attune_stream_destroy(streams[i]);
  free(arena);
  return 0;
}

int main(void) {
  return RUN_TESTS(start, stop);
}
