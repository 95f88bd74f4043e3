/* The wheels of deadlines, against a list that is kept sorted. */
#include "host.h"
#include "system.h"

enum { RUNS = 300, STEPS = 600, TIMERS = 200 };

/* What is armed, by due time, then in the order of arming. */
typedef struct model {
  tp_timer timers[TIMERS];
  tp_timer *sorted[TIMERS];
  size_t count;
  uint64_t random;
} model;

/* A linear congruential generator (Knuth's MMIX). */
static uint64_t any(model *m, uint64_t n) {
  m->random = m->random * 6364136223846793005u + 1442695040888963407u;
  return (m->random >> 16) % n;
}

/* Of any size, and often the same. */
static tp_time any_delay(model *m) {
  tp_time delay = (tp_time)any(m, 4);
  if (any(m, 3) == 0) return delay;
  delay <<= any(m, 61);
  if (any(m, 4) == 0) delay += (tp_time)any(m, 1 + (uint64_t)delay);
  return delay;
}

static void arm(host *h, model *m, tp_timer *t, tp_time due) {
  size_t at = m->count;
  tp_timer_arm(h->system, t, TP_TIMER_IDLE, due);
  if (due == TP_NEVER) return;
  m->count++;
  for (; at > 0 && m->sorted[at - 1]->due > due; at--) m->sorted[at] = m->sorted[at - 1];
  m->sorted[at] = t;
}

static void forget(model *m, const tp_timer *t) {
  size_t at = 0;
  while (m->sorted[at] != t) at++;
  m->count--;
  for (; at < m->count; at++) m->sorted[at] = m->sorted[at + 1];
}

static void disarm(host *h, model *m, tp_timer *t) {
  if (tp_timer_is_armed(t)) forget(m, t);
  tp_timer_disarm(h->system, t);
  assert_false(tp_timer_is_armed(t));
}

static void arm_any(host *h, model *m) {
  tp_timer *t = &m->timers[any(m, TIMERS)];
  disarm(h, m, t);
  arm(h, m, t, tp_time_after(tp_now(h->system), any_delay(m)));
}

/* Some of those that have come to be due are armed again, before the next is taken. */
static void advance(host *h, model *m, tp_time now) {
  tp_set_now(h->system, now);
  for (tp_timer *t; (t = tp_timers_pop(h->system, now)) != NULL;) {
    assert_true(m->count > 0);
    assert_ptr_equal(t, m->sorted[0]);
    assert_true(t->due <= now);
    assert_false(tp_timer_is_armed(t));
    forget(m, t);
    if (any(m, 4) == 0) arm(h, m, t, tp_time_after(now, 1 + any_delay(m)));
    if (any(m, 4) == 0 && m->count > 0) disarm(h, m, m->sorted[any(m, m->count)]);
  }
  assert_true(m->count == 0 || m->sorted[0]->due > now);
}

static void check(host *h, model *m) {
  assert_int_equal(tp_timers_count(h->system), m->count);
  tp_time next = m->count == 0 ? TP_NEVER : m->sorted[0]->due;
  assert_true(tp_next_deadline(h->system) == next);
}

static void step(host *h, model *m) {
  switch (any(m, 8)) {
    case 0:
    case 1:
    case 2:
    case 3: arm_any(h, m); break;
    case 4: disarm(h, m, &m->timers[any(m, TIMERS)]); break;
    case 5: /* the next one, as the asks do whose answer comes */
      if (m->count > 0) disarm(h, m, m->sorted[0]);
      break;
    case 6: advance(h, m, tp_now(h->system) + (tp_time)(any(m, 1000) << any(m, 20))); break;
    default:
      if (m->count > 0) advance(h, m, m->sorted[any(m, m->count)]->due);
      break;
  }
}

static void agrees_with_a_sorted_list(void **state) {
  (void)state;
  for (uint64_t run = 0; run < RUNS; run++) {
    model m = {.random = run};
    host *h = host_open();
    tp_system_options options = host_defaults();
    options.now = (tp_time)any(&m, UINT64_C(1) << any(&m, 48));
    assert_int_equal(host_start(h, &options), TP_OK);
    bool asks = any(&m, 2) == 0; /* asking for the next one moves things */
    for (int i = 0; i < STEPS; i++) {
      step(h, &m);
      if (asks) check(h, &m);
    }
    check(h, &m);
    for (size_t i = 0; i < TIMERS; i++) disarm(h, &m, &m.timers[i]);
    check(h, &m);
    host_close(h);
  }
}

static void arming_allocates_nothing(void **state) {
  host *h = *state;
  tp_timer timers[100] = {{0}};
  size_t before = h->allocations;
  for (int i = 0; i < 100; i++) {
    tp_timer_arm(h->system, &timers[i], TP_TIMER_IDLE, tp_now(h->system) + i * 1234567);
  }
  (void)tp_next_deadline(h->system);
  for (int i = 0; i < 50; i++) tp_timer_disarm(h->system, &timers[i]);
  while (tp_timers_pop(h->system, tp_now(h->system) + 1000 * MS) != NULL) continue;
  assert_int_equal(h->allocations, before);
  assert_int_equal(tp_timers_count(h->system), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      {"TMR-5 deadlines agree with a sorted list", agrees_with_a_sorted_list, NULL, NULL, NULL},
      HOST_TEST("TMR-5 arming allocates nothing", arming_allocates_nothing),
  };
  return cmocka_run_group_tests_name("wheel", tests, NULL, NULL);
}
