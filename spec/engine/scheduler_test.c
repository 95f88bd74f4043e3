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
  tp_tick *tick = NULL;
  tp_schedule(h->system, host_code(h, host_nothing), 10 * MS, 0, &tick);
  assert_false(tp_ready(h->system));
  tp_advance(h->system, tp_now(h->system) + 10 * MS);
  assert_true(tp_ready(h->system));
  host_run(h);
  assert_false(tp_ready(h->system));
  tp_tick_release(tick);
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
      HOST_TEST("SYS-12 whether something can run is known", knows_whether_something_can_run),
      HOST_TEST("SYS-12 what is due can run", what_is_due_can_run),
      HOST_TEST("SYS-12 an event can run", an_event_can_run),
      HOST_TEST("SYS-12 an idle system can run to its end", an_idle_system_can_run_to_its_end),
      HOST_TEST("EVT-1 a receiver that fails is passed over", a_receiver_that_fails_is_passed_over),
      HOST_TEST("DL-1 dead letters leave no memory", events_leave_no_memory),
  };
  return cmocka_run_group_tests_name("scheduler", tests, NULL, NULL);
}
