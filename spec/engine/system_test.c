/* The end of a system: its phases, its time-outs, and what outlives it. */
#include "host.h"

static void systems_share_nothing(void **state) {
  host *h = *state;
  host *other = host_open();
  assert_int_equal(host_start(other, NULL), TP_OK);
  tp_ref *here = host_spawn(h, host_record, "a");
  tp_ref *there = host_spawn(other, host_record, "a");

  host_send(h, here, 1);
  host_send(other, there, 2);
  host_run(other);
  assert_log(h, "");
  assert_log(other, "a:2");
  host_close(other);

  host_run(h);
  assert_log(h, "a:1");
}

static void cannot_spawn_when_terminating(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_terminate(h->system);
  assert_int_equal(host_try_spawn(h, host_user(h), "b"), TP_ETERMINATED);
  assert_int_equal(host_try_spawn(h, a, "b"), TP_ETERMINATED);

  host_run(h);
  assert_int_equal(host_try_spawn(h, host_user(h), "b"), TP_ETERMINATED);
}

static void terminates_once(void **state) {
  host *h = *state;
  host_spawn_hooked(h, host_user(h), "a", TP_HOOK_POST_STOP);
  assert_false(tp_terminating(h->system));

  tp_terminate(h->system);
  assert_true(tp_terminating(h->system));
  assert_false(tp_terminated(h->system));
  tp_terminate(h->system);
  host_run(h);

  assert_true(tp_terminated(h->system));
  assert_log(h, "a:post_stop");
  tp_terminate(h->system);
  assert_false(host_run_one(h));
  assert_true(tp_next_deadline(h->system) == TP_NEVER);
}

static void pass_on(host *h, tp_job *job) {
  host_record(h, job);
  int64_t n = job->envelope.message.as.integer;
  if (n < 6) host_send(h, host_at(h, n % 2 == 0 ? "/user/a" : "/user/b"), n + 1);
}

static void drains_also_what_is_sent_meanwhile(void **state) {
  host *h = *state;
  tp_behavior *behavior = host_behavior(
      h, (tp_behavior_spec){.receive = host_code(h, pass_on), .hooks = TP_HOOK_POST_STOP});
  tp_ref *a = host_spawn_behavior(h, host_user(h), behavior, "a");
  host_spawn_behavior(h, host_user(h), behavior, "b");
  host_run(h);
  host_want(h, HOST_DEAD_LETTERS);

  host_send(h, a, 1);
  tp_terminate(h->system);
  host_run(h);

  assert_log(h, "a:1 b:2 a:3 b:4 a:5 b:6 a:post_stop b:post_stop");
  assert_true(tp_terminated(h->system));
}

static void sleep_and_tell_oneself(host *h, tp_job *job) {
  host_send(h, job->actor, 1);
  host_sleep(h, job, 150, host_record);
}

static void drains_no_longer_than_its_time_out(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, sleep_and_tell_oneself, "a");
  host_send(h, a, 1);
  host_run(h);

  tp_terminate(h->system);
  host_advance(h, 1999);
  assert_false(tp_terminated(h->system));
  host_forget(h);
  host_advance(h, 1);

  assert_true(tp_terminated(h->system));
  assert_log(h, "closed");
}

static void dead_letters_what_is_left(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_stall, "a");
  host_want(h, HOST_DEAD_LETTERS);
  for (int i = 1; i <= 3; i++) host_send(h, a, i);
  tp_terminate(h->system);
  host_advance(h, 2000);

  assert_true(tp_terminated(h->system));
  assert_int_equal(host_count(h, "a:2"), 0);
  assert_int_equal(host_count(h, "!dead:a:2:system-terminated"), 1);
  assert_int_equal(host_count(h, "!dead:a:3:system-terminated"), 1);
}

static void flood_oneself(host *h, tp_job *job) { host_send(h, job->actor, 1); }

static void cuts_a_flood_off(void **state) {
  host *h = *state;
  host_send(h, host_spawn(h, flood_oneself, "a"), 1);
  tp_terminate(h->system);
  for (int i = 0; i < 1000; i++) assert_true(host_run_one(h));

  tp_advance(h->system, tp_now(h->system) + 2000 * MS);
  host_run(h);

  assert_true(tp_terminated(h->system));
}

static void needs_no_draining(void **state) {
  (void)state;
  host *other = host_open();
  tp_system_options options = host_defaults();
  options.drain_timeout = 0;
  assert_int_equal(host_start(other, &options), TP_OK);
  tp_ref *a = host_spawn_hooked(other, host_user(other), "a", TP_HOOK_POST_STOP);
  host_run(other);
  host_want(other, HOST_DEAD_LETTERS);
  host_send(other, a, 1);

  tp_terminate(other->system);
  host_run(other);

  assert_true(tp_terminated(other->system));
  assert_int_equal(host_count(other, "a:1"), 0);
  assert_int_equal(host_count(other, "a:post_stop"), 1);
  assert_int_equal(host_count(other, "!dead:a:1:system-terminated"), 1);
  host_close(other);
}

static void record_after_a_sleep(host *h, tp_job *job) { host_sleep(h, job, 500, host_record_at); }

static void a_waiting_handler_is_busy(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, record_after_a_sleep, "a");
  host_send(h, a, 1);
  host_send(h, a, 2);
  host_run(h);

  tp_terminate(h->system);
  host_advance(h, 999);
  assert_false(tp_terminated(h->system));
  host_advance(h, 1);

  assert_log(h, "a:1@500 a:2@1000");
  assert_true(tp_terminated(h->system));
}

static void tell_keeper(host *h, tp_job *job) {
  host_record_hook(h, job);
  host_send(h, host_at(h, "/system/keeper"), 1);
}

static void user_stops_before_system(void **state) {
  host *h = *state;
  host_spawn_hooked(h, host_at(h, "/system"), "keeper", TP_HOOK_POST_STOP);
  tp_behavior_spec spec = {.code = host_code(h, tell_keeper), .hooks = TP_HOOK_POST_STOP};
  host_spawn_spec(h, host_user(h), spec, "a");
  host_run(h);

  tp_terminate(h->system);
  host_run(h);

  assert_log(h, "a:post_stop keeper:1 keeper:post_stop");
}

static void mail_to_a_terminated_system_is_dead(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_terminate(h->system);
  host_run(h);
  host_want(h, HOST_DEAD_LETTERS);

  assert_int_equal(tp_tell(a, host_value(h, 7), NULL), TP_OK);
  host_run(h);

  assert_log(h, "!dead:a:#7:system-terminated");
}

static void can_be_freed_at_any_time(void **state) {
  host *h = *state;
  tp_tick tick = 0;
  tp_behavior *routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, host_nothing)});
  tp_behavior_spec scatter = {
      .routing = TP_ROUTE_FIRST_COMPLETED,
      .size = 3,
      .routee = routee,
      .gathering = {.timeout = 50 * MS},
  };
  tp_ref *pool = host_spawn_spec(h, host_user(h), scatter, "pool");
  tp_ref *a = host_spawn(h, host_stall, "a");
  tp_ref *stopping = host_spawn_hooked(h, a, "stopping", TP_HOOK_POST_STOP);
  for (int i = 0; i < 10; i++) host_tell(h, a, host_value(h, i));
  host_ask(h, a, host_value(h, 11), 100);
  host_ask(h, pool, host_value(h, 12), 100);
  host_run(h);
  host_ask(h, pool, host_value(h, 13), 100);
  tp_timer_start(a, host_value(h, 14), TP_FIXED_RATE, 10 * MS, 10 * MS, &tick);
  tp_schedule(h->system, host_code(h, host_nothing), 10 * MS, 0, &tick);
  tp_advance(h->system, tp_now(h->system) + 10 * MS);
  char token[] = "token";
  tp_ref *settled = host_slot(h, 100, false);
  tp_slot_notify(settled, token);
  tp_slot_settle(settled, host_value(h, 16), false, NULL);
  tp_stop(stopping);
  host_want(h, HOST_DEAD_LETTERS);
  host_tell(h, stopping, host_value(h, 15));
  h->abrupt = true;
}

static void refs_outlive_the_system(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_ref *slot = host_ask(h, a, tp_integer(1), 100);
  tp_system_free(h->system);
  h->system = NULL;

  assert_null(tp_ref_system(a));
  assert_false(tp_ref_alive(a));
  assert_false(tp_ref_alive(slot));
  assert_int_equal(tp_tell(a, tp_integer(1), NULL), TP_OK);
  assert_int_equal(tp_tell(slot, tp_integer(1), a), TP_OK);
  tp_stop(a);
  tp_stop_now(a);
  tp_ref *again = NULL;
  assert_int_not_equal(tp_ask(a, tp_integer(1), 100 * MS, &again), TP_OK);
  assert_null(again);
}

static void hooks_that_wait_do_not_hold_up_the_end(void **state) {
  host *h = *state;
  tp_behavior *stalls = host_behavior(
      h, (tp_behavior_spec){.code = host_code(h, host_stall), .hooks = TP_HOOK_POST_STOP});
  tp_ref *a = host_spawn_behavior(h, host_user(h), stalls, "a");
  host_spawn_behavior(h, a, stalls, "b");
  host_run(h);

  tp_terminate(h->system);
  host_advance(h, 10000);

  assert_log(h, "b:post_stop closed a:post_stop closed");
  assert_true(tp_terminated(h->system));
}

static void a_task_that_waits_does_not_hold_up_the_end(void **state) {
  host *h = *state;
  char token[] = "task";
  host_spawn(h, host_nothing, "a");
  tp_ref *slot = host_slot(h, 60000, false);
  tp_slot_notify(slot, token);
  tp_terminate(h->system);
  host_run(h);

  assert_true(tp_terminated(h->system));
  assert_answer(h, slot, "failed system-terminated");
  assert_log(h, "resumed:task");
}

static void waits_that_begin_afterwards_end_at_once(void **state) {
  host *h = *state;
  tp_terminate(h->system);
  host_run(h);
  assert_true(tp_terminated(h->system));
  assert_answer(h, host_slot(h, 60000, true), "failed system-terminated");
}

static void waits_end_between_user_and_system(void **state) {
  host *h = *state;
  tp_behavior *stalls = host_behavior(
      h, (tp_behavior_spec){.code = host_code(h, host_stall), .hooks = TP_HOOK_POST_STOP});
  host_spawn_behavior(h, host_user(h), stalls, "a");
  host_spawn_behavior(h, host_at(h, "/system"), stalls, "b");
  tp_ref *slot = host_slot(h, 60000, false);
  host_run(h);
  assert_false(tp_waits_ended(h->system));
  tp_terminate(h->system);
  host_run(h);
  assert_log(h, "a:post_stop");
  assert_false(tp_waits_ended(h->system));
  assert_answer(h, slot, "open");

  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_log(h, "b:post_stop");
  assert_true(tp_waits_ended(h->system));
  assert_answer(h, slot, "failed system-terminated");
  assert_true(tp_terminated(h->system));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("SYS-3 two systems share nothing", systems_share_nothing),
      HOST_TEST("SYS-7 a terminating system spawns nothing", cannot_spawn_when_terminating),
      HOST_TEST("SYS-4 terminate is idempotent", terminates_once),
      HOST_TEST("SYS-5 mail sent while draining is handled too",
                drains_also_what_is_sent_meanwhile),
      HOST_TEST("SYS-5 draining ends at its time-out", drains_no_longer_than_its_time_out),
      HOST_TEST("SYS-5 what is left at the time-out is dead-lettered", dead_letters_what_is_left),
      HOST_TEST("SYS-5 an actor that floods itself does not hold up the end", cuts_a_flood_off),
      HOST_TEST("SYS-5 a time-out of 0 drains nothing", needs_no_draining),
      HOST_TEST("SYS-5 a waiting handler counts as busy", a_waiting_handler_is_busy),
      HOST_TEST("SYS-6 /user stops before /system", user_stops_before_system),
      HOST_TEST("SYS-7 mail to a terminated system is dead-lettered",
                mail_to_a_terminated_system_is_dead),
      HOST_TEST("SYS-8 a system can be freed whatever is going on", can_be_freed_at_any_time),
      HOST_TEST("SYS-8 refs outlive their system", refs_outlive_the_system),
      HOST_TEST("SYS-5 hooks that wait do not hold up the end",
                hooks_that_wait_do_not_hold_up_the_end),
      HOST_TEST("SYS-5 a task that waits does not hold up the end",
                a_task_that_waits_does_not_hold_up_the_end),
      HOST_TEST("SYS-5 waits that begin afterwards end at once",
                waits_that_begin_afterwards_end_at_once),
      HOST_TEST("SYS-5 waits outside actors end when /user has stopped",
                waits_end_between_user_and_system),
  };
  return cmocka_run_group_tests_name("system", tests, NULL, NULL);
}
