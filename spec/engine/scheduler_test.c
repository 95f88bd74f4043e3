/* Turns: how long they last, who is next, and whether there is anything to do. */
#include "host.h"

static tp_behavior_spec with_throughput(host *h, uint32_t messages) {
  return (tp_behavior_spec){.receive = host_code(h, host_record), .throughput = messages};
}

static void shares_by_turns(void **state) {
  host *h = *state;
  tp_ref *user = host_user(h);
  tp_ref *a = host_spawn_spec(h, user, with_throughput(h, 2), "a");
  tp_ref *b = host_spawn_spec(h, user, with_throughput(h, 1), "b");
  host_run(h);

  for (int i = 1; i <= 4; i++) host_send(h, a, i);
  for (int i = 1; i <= 4; i++) host_send(h, b, i);
  host_run(h);

  assert_log(h, "a:1 a:2 b:1 a:3 a:4 b:2 b:3 b:4");
}

static void has_turns_of_the_systems_length(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_ref *b = host_spawn(h, host_record, "b");
  host_run(h);

  for (int i = 0; i < 100; i++) host_send(h, a, 1);
  host_send(h, b, 2);
  for (int i = 0; i < 32; i++) host_run_one(h);
  assert_int_equal(host_count(h, "a:1"), 32);
  assert_int_equal(host_count(h, "b:2"), 0);
  host_run_one(h);

  assert_int_equal(host_count(h, "b:2"), 1);
  host_run(h);
  assert_int_equal(host_count(h, "a:1"), 100);
}

/* ---- Shuffling -------------------------------------------------------------------------- */

static host *open_shuffled(uint64_t seed, uint32_t throughput) {
  host *h = host_open();
  tp_system_options options = host_defaults();
  options.seed = seed;
  options.throughput = throughput;
  options.shuffle = true;
  assert_int_equal(host_start(h, &options), TP_OK);
  return h;
}

enum { LOG_SIZE = 64 };

/* Writes the log of a run in which three actors get two messages each. */
static void run_shuffled(uint64_t seed, char *log) {
  static const char *const names[] = {"a", "b", "c"};
  host *h = open_shuffled(seed, 2);
  for (int i = 0; i < 3; i++) {
    tp_ref *r = host_spawn(h, host_record, names[i]);
    host_send(h, r, 1);
    host_send(h, r, 2);
  }
  host_run(h);
  snprintf(log, LOG_SIZE, "%s", h->log);
  host_close(h);
}

static bool in_order(const char *log, const char *first, const char *second) {
  const char *at = strstr(log, first);
  return at != NULL && strstr(at, second) != NULL;
}

static void draws_whose_turn_is_next(void **state) {
  (void)state;
  size_t began[3] = {0}, whole_turns = 0;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    char log[LOG_SIZE], again[LOG_SIZE];
    run_shuffled(seed, log);
    run_shuffled(seed, again);
    assert_string_equal(log, again);
    assert_true(in_order(log, "a:1", "a:2"));
    assert_true(in_order(log, "b:1", "b:2"));
    assert_true(in_order(log, "c:1", "c:2"));
    assert_int_equal(strlen(log), 23);
    began[log[0] - 'a']++;
    if (log[0] == log[4]) whole_turns++;
  }
  for (int i = 0; i < 3; i++) assert_in_range(began[i], 60, 140);
  /* a turn of two messages, or a turn of one and then one more: 1/2 + 1/2 * 1/3 of 300 */
  assert_in_range(whole_turns, 160, 240);
}

static void draws_among_what_waits_outside_actors(void **state) {
  (void)state;
  size_t actor_first = 0;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    host *h = open_shuffled(seed, 32);
    tp_ref *a = host_spawn(h, host_record, "a");
    host_run(h);
    host_send(h, a, 1);
    tp_ref *slot = host_slot(h, 10, false);
    tp_slot_notify(slot, "x");
    tp_slot_settle(slot, tp_nil(), false, NULL);
    host_run(h);
    if (strcmp(h->log, "a:1 resumed:x") == 0) {
      actor_first++;
      host_forget(h);
    } else {
      assert_log(h, "resumed:x a:1");
    }
    host_close(h);
  }
  assert_in_range(actor_first, 25, 75);
}

static void keeps_deadlines_in_order(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    host *h = open_shuffled(seed, 32);
    tp_ref *a = host_spawn(h, host_record, "a");
    tp_tick ticks[3];
    for (int i = 0; i < 3; i++) {
      tp_timer_start(a, tp_integer(i), TP_ONCE, 5 * MS, 0, &ticks[i]);
    }
    host_advance(h, 5);
    assert_log(h, "a:0 a:1 a:2");
    host_close(h);
  }
}

static void flood_oneself(host *h, tp_job *job) { host_send(h, job->actor, 0); }

static void is_not_starved(void **state) {
  enum { FLOODERS = 1000 };
  host *h = *state;
  for (int i = 0; i < FLOODERS; i++) host_send(h, host_spawn(h, flood_oneself, NULL), 0);
  tp_ref *quiet = host_spawn(h, host_record, "quiet");
  for (int i = 0; i < 32 * FLOODERS; i++) host_run_one(h);

  host_forget(h);
  host_send(h, quiet, 1);
  for (int i = 0; i < 33 * FLOODERS; i++) host_run_one(h);

  assert_log(h, "quiet:1");
  h->abrupt = true;
}

static void knows_whether_something_can_run(void **state) {
  host *h = *state;
  assert_false(tp_ready(h->system));
  tp_ref *a = host_spawn(h, host_nothing, "a");
  assert_true(tp_ready(h->system));
  host_run(h);
  assert_false(tp_ready(h->system));

  host_send(h, a, 1);
  host_send(h, a, 2);
  assert_true(tp_ready(h->system));
  host_run_one(h);
  assert_true(tp_ready(h->system));
  host_run(h);
  assert_false(tp_ready(h->system));
}

static void what_is_due_can_run(void **state) {
  host *h = *state;
  tp_tick tick = 0;
  tp_schedule(h->system, host_code(h, host_nothing), 10 * MS, 0, &tick);
  assert_false(tp_ready(h->system));
  tp_advance(h->system, tp_now(h->system) + 10 * MS);
  assert_true(tp_ready(h->system));
  host_run(h);
  assert_false(tp_ready(h->system));
}

static void an_event_can_run(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_stop(a);
  host_run(h);
  host_want(h, HOST_DEAD_LETTERS);
  host_send(h, a, 1);
  assert_true(tp_ready(h->system));
  host_run(h);
  assert_false(tp_ready(h->system));
}

static void an_idle_system_can_run_to_its_end(void **state) {
  host *h = *state;
  host_spawn(h, host_nothing, "a");
  host_run(h);
  tp_terminate(h->system);
  assert_true(tp_ready(h->system));
  host_run(h);
  assert_false(tp_ready(h->system));
  assert_true(tp_terminated(h->system));
}

static void routers_that_send_for_ever_let_the_clock_go_on(void **state) {
  host *h = *state;
  static const tp_member to_b = {.path = "/user/b", .length = 7},
                         to_a = {.path = "/user/a", .length = 7};
  tp_behavior_spec a = {.routing = TP_ROUTE_ROUND_ROBIN, .size = 1, .members = &to_b};
  tp_behavior_spec b = {.routing = TP_ROUTE_ROUND_ROBIN, .size = 1, .members = &to_a};
  host_send(h, host_spawn_spec(h, host_user(h), a, "a"), 1);
  host_spawn_spec(h, host_user(h), b, "b");
  tp_job job;

  assert_false(tp_next(h->system, &job));
  assert_true(tp_ready(h->system));

  tp_terminate(h->system);
  tp_advance(h->system, tp_now(h->system) + 2000 * MS);
  host_run(h);
  assert_true(tp_terminated(h->system));
}

static void a_receiver_that_fails_is_passed_over(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_stop(a);
  host_run(h);
  host_want(h, (1u << TP_EVENT_KINDS) - 1);
  host_tell(h, a, host_value(h, 1));
  size_t before = host_values_alive(h);

  tp_job job;
  assert_true(tp_next(h->system, &job));
  assert_int_equal(job.kind, TP_JOB_EVENT);
  tp_fail(&job, host_value(h, 2), host_value(h, 3));

  assert_false(tp_next(h->system, &job));
  assert_int_equal(host_values_alive(h), before - 1);
}

static void events_leave_no_memory(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_stop(a);
  host_run(h);
  host_want(h, HOST_DEAD_LETTERS);
  size_t before = host_stats(h).bytes;
  for (int i = 0; i < 10000; i++) host_send(h, a, i);
  host_run(h);
  assert_int_equal(host_count(h, "!dead:a:9999:stopped"), 1);
  assert_in_range(host_stats(h).bytes, 0, before + 32768);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("DISP-1 an actor's turn is as long as its throughput", shares_by_turns),
      HOST_TEST("DISP-1 a turn is as long as the system says", has_turns_of_the_systems_length),
      HOST_TEST("DISP-3 a thousand flooding actors do not starve one", is_not_starved),
      HOST_TEST("TK-3 a system that shuffles draws whose turn is next, by its seed",
                draws_whose_turn_is_next),
      HOST_TEST("TK-3 what waits outside actors is shuffled too",
                draws_among_what_waits_outside_actors),
      HOST_TEST("TK-3 shuffling leaves deadlines in order", keeps_deadlines_in_order),
      HOST_TEST("SYS-12 whether something can run is known", knows_whether_something_can_run),
      HOST_TEST("SYS-12 what is due can run", what_is_due_can_run),
      HOST_TEST("SYS-12 an event can run", an_event_can_run),
      HOST_TEST("DISP-2 routers that send to each other for ever let the clock go on",
                routers_that_send_for_ever_let_the_clock_go_on),
      HOST_TEST("SYS-12 an idle system can run to its end", an_idle_system_can_run_to_its_end),
      HOST_TEST("EVT-1 a receiver that fails is passed over", a_receiver_that_fails_is_passed_over),
      HOST_TEST("DL-1 dead letters leave no memory", events_leave_no_memory),
  };
  return cmocka_run_group_tests_name("scheduler", tests, NULL, NULL);
}
