/* What a system counts, when it is asked to. */
#include "host.h"

/* A host whose system counts. */
static int counting_setup(void **state) {
  host *h = host_open();
  tp_system_options options = host_defaults();
  options.metrics = true;
  *state = h;
  return host_start(h, &options);
}

#define COUNTING_TEST(title, function)                                                             \
  { title, function, counting_setup, host_teardown, NULL }

static uint64_t count_of(const host *h, tp_counter counter) {
  return tp_system_metrics(h->system)->counters[counter];
}

static uint64_t dead_letters(const host *h, const char *reason) {
  size_t i = 0;
  while (strcmp(tp_dead_letter_reasons[i], reason) != 0) i++;
  return tp_system_metrics(h->system)->dead_letters[i];
}

static void counts_only_when_asked_to(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  host_send(h, a, 1);
  host_run(h);
  tp_metrics_delivered(h->system);
  tp_metrics_handled(h->system, MS);

  assert_null(tp_system_metrics(h->system));
  assert_log(h, "a:1");
}

static void needs_memory_to_count(void **state) {
  (void)state;
  tp_system_options options = host_defaults();
  options.metrics = true;
  size_t failures = 1;
  for (size_t nth = 1; failures > 0; nth++) {
    host *h = host_open();
    h->fail_at = nth;
    int status = host_start(h, &options);
    failures = h->failures;
    assert_int_equal(status, failures > 0 ? TP_ENOMEM : TP_OK);
    host_close(h);
  }
}

static void counts_actors(void **state) {
  host *h = *state;
  assert_int_equal(count_of(h, TP_COUNT_CREATED), 0);

  tp_ref *a = host_spawn(h, host_fragile, "a");
  host_spawn(h, host_nothing, "b");
  host_send(h, a, -1);
  host_send(h, a, -2);
  host_run(h);
  assert_int_equal(count_of(h, TP_COUNT_CREATED), 2);
  assert_int_equal(count_of(h, TP_COUNT_RESTARTED), 2);
  assert_int_equal(count_of(h, TP_COUNT_TERMINATED), 0);

  tp_stop(a);
  host_run(h);
  assert_int_equal(count_of(h, TP_COUNT_TERMINATED), 1);
}

static void counts_no_actor_that_there_was_no_memory_for(void **state) {
  host *h = *state;
  h->lenient = true;
  h->fail_from = h->allocations + 1;
  assert_null(host_spawn(h, host_nothing, "a"));
  h->fail_from = 0;

  assert_int_equal(count_of(h, TP_COUNT_CREATED), 0);
}

static void counts_what_it_has_no_memory_to_route(void **state) {
  host *h = *state;
  tp_ref *pool = host_spawn_spec(
      h, host_user(h),
      (tp_behavior_spec){
          .routing = TP_ROUTE_BROADCAST,
          .size = 2,
          .routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, host_nothing)})},
      "pool");
  host_run(h);

  host_send(h, pool, 1);
  h->fail_from = h->allocations + 1;
  host_run(h);
  h->fail_from = 0;

  /* The other routee has the buffer that the message was in before. */
  assert_int_equal(dead_letters(h, "out-of-memory"), 1);
  assert_int_equal(tp_system_metrics(h->system)->routed[TP_ROUTE_BROADCAST], 1);
}

static void sorts_times_by_their_bounds(void **state) {
  host *h = *state;
  const tp_histogram *handled = &tp_system_metrics(h->system)->handled;
  uint64_t sum = 0;

  tp_metrics_handled(h->system, 0);
  for (size_t i = 0; i < TP_HISTOGRAM_BOUNDS; i++) {
    tp_time bound = tp_histogram_bounds[i];
    assert_true(i == 0 || bound > tp_histogram_bounds[i - 1]);
    tp_metrics_handled(h->system, bound);
    tp_metrics_handled(h->system, bound + 1);
    sum += (uint64_t)bound * 2 + 1;
  }

  for (size_t i = 0; i < TP_HISTOGRAM_BOUNDS; i++) assert_int_equal(handled->counts[i], 2);
  assert_int_equal(handled->counts[TP_HISTOGRAM_BOUNDS], 1);
  assert_int_equal(handled->sum, sum);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("MET-1 a system counts only when it is asked to", counts_only_when_asked_to),
      {"MET-1 a system that has no memory to count is not made", needs_memory_to_count, NULL, NULL,
       NULL},
      COUNTING_TEST("MET-2 actors are counted", counts_actors),
      COUNTING_TEST("MET-2 no actor is counted that there was no memory for",
                    counts_no_actor_that_there_was_no_memory_for),
      COUNTING_TEST("MET-2 what there is no memory to route is counted",
                    counts_what_it_has_no_memory_to_route),
      COUNTING_TEST("MET-2 times are sorted by their bounds", sorts_times_by_their_bounds),
  };
  return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
