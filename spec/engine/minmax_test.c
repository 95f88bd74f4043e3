/* The priority queue with two ends, against a list that is kept sorted. */
#include <math.h>

#include "host.h"
#include "minmax.h"

enum { RUNS = 200, STEPS = 400 };

typedef struct model {
  tp_minmax_entry entries[STEPS]; /* sorted */
  uint32_t count;
  int64_t order;
} model;

/* A linear congruential generator (Knuth's MMIX). */
static uint32_t any(uint64_t *random, uint32_t n) {
  *random = *random * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((*random >> 33) % n);
}

static double any_rank(uint64_t *random) {
  uint32_t i = any(random, 14);
  if (i == 0) return -INFINITY;
  if (i == 1) return INFINITY;
  return (double)i / 4 - 2; /* few enough to be equal often */
}

static void insert(model *m, tp_minmax_entry e) {
  uint32_t at = m->count++;
  for (; at > 0 && tp_minmax_less(&e, &m->entries[at - 1]); at--) {
    m->entries[at] = m->entries[at - 1];
  }
  m->entries[at] = e;
}

static int64_t remove_first(model *m) {
  int64_t order = m->entries[0].order;
  memmove(m->entries, m->entries + 1, --m->count * sizeof m->entries[0]);
  return order;
}

static int64_t remove_last(model *m) { return m->entries[--m->count].order; }

/* Its message is its order, so that what comes out can be told. */
static void push(host *h, tp_minmax *q, model *m, double rank) {
  tp_minmax_entry e = {rank, ++m->order, {.message = tp_integer(m->order)}};
  assert_int_equal(tp_minmax_reserve(h->system, q, 1), TP_OK);
  tp_minmax_push(q, e);
  insert(m, e);
}

static void pop_any(host *h, tp_minmax *q, model *m, bool min) {
  tp_envelope e = min ? tp_minmax_pop_min(h->system, q) : tp_minmax_pop_max(h->system, q);
  assert_int_equal(e.message.as.integer, min ? remove_first(m) : remove_last(m));
}

static void check_first(const tp_minmax *q, const model *m) {
  const tp_minmax_entry *first = tp_minmax_first(q);
  assert_int_equal(q->count, m->count);
  if (m->count == 0) {
    assert_null(first);
  } else {
    assert_int_equal(first->order, m->entries[0].order);
  }
}

/* Grows for a while, then shrinks, so that queues of all sizes are met. */
static void agrees_with_a_sorted_list(void **state) {
  host *h = *state;
  model *m = host_data(h, sizeof *m);
  for (uint64_t seed = 1; seed <= RUNS; seed++) {
    uint64_t random = seed;
    tp_minmax q = {0};
    *m = (model){0};
    for (int i = 0; i < STEPS; i++) {
      bool grows = any(&random, 10) < (i < STEPS / 2 ? 7 : 3);
      if (grows) {
        push(h, &q, m, any_rank(&random));
      } else if (m->count > 0) {
        pop_any(h, &q, m, any(&random, 2) == 0);
      }
      check_first(&q, m);
    }
    while (m->count > 0) pop_any(h, &q, m, true);
    tp_minmax_fini(h->system, &q);
  }
}

static void gives_memory_back_as_it_drains(void **state) {
  enum { MANY = 100000 };
  host *h = *state;
  tp_minmax q = {0};
  size_t before = h->bytes;
  assert_int_equal(tp_minmax_reserve(h->system, &q, MANY), TP_OK);
  for (int i = 0; i < MANY; i++) tp_minmax_push(&q, (tp_minmax_entry){.rank = i % 7, .order = i});
  assert_in_range(h->bytes - before, MANY * sizeof *q.entries, 2 * MANY * sizeof *q.entries);

  for (int i = 0; i < MANY - 10; i++) tp_minmax_pop_max(h->system, &q);
  assert_in_range(h->bytes - before, 0, 64 * sizeof *q.entries);

  while (q.count > 0) tp_minmax_pop_min(h->system, &q);
  tp_minmax_fini(h->system, &q);
  assert_int_equal(h->bytes, before);
}

/* Nothing that was reserved is lost while others come and go, or when there is no memory to shrink
 * or to grow. */
static void keeps_the_places_it_has_promised(void **state) {
  enum { MANY = 1000 };
  host *h = *state;
  tp_minmax q = {0};
  assert_int_equal(tp_minmax_reserve(h->system, &q, MANY), TP_OK);
  h->fail_from = h->allocations + 1;
  assert_int_equal(tp_minmax_reserve(h->system, &q, MANY), TP_ENOMEM);
  for (int i = 0; i < MANY; i++) tp_minmax_push(&q, (tp_minmax_entry){.order = i});
  while (q.count > 1) tp_minmax_pop_min(h->system, &q);
  h->fail_from = 0;
  assert_int_equal(tp_minmax_reserve(h->system, &q, 1), TP_OK);
  tp_minmax_give_back(h->system, &q, 1);
  assert_int_equal(tp_minmax_first(&q)->order, MANY - 1);
  tp_minmax_pop_min(h->system, &q);
  tp_minmax_fini(h->system, &q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("MBX-7 the queue of ranks agrees with a sorted list", agrees_with_a_sorted_list),
      HOST_TEST("MBX-7 the queue of ranks gives memory back as it drains",
                gives_memory_back_as_it_drains),
      HOST_TEST("MBX-7 the queue of ranks keeps the places it has promised",
                keeps_the_places_it_has_promised),
  };
  return cmocka_run_group_tests_name("minmax", tests, NULL, NULL);
}
