/* Starts and restarts: the order of hooks, and what an incarnation keeps. */
#include "host.h"

static void is_usable_at_once(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_PRE_START);
  assert_true(tp_ref_is_actor(a));
  assert_true(tp_ref_alive(a));
  assert_ptr_equal(tp_ref_system(a), h->system);
  assert_ptr_equal(host_at(h, "/user/a"), a);
  assert_log(h, "");

  host_run(h);
  assert_log(h, "a:pre_start");
}

static void a_start_may_wait(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.code = host_code(h, host_stall), .hooks = TP_HOOK_PRE_START};
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  tp_ref *b = host_spawn(h, host_record, "b");
  host_send(h, a, 1);
  host_send(h, b, 2);
  host_run(h);
  assert_log(h, "a:pre_start b:2");

  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_log(h, "a:1");
}

static void fail_hook(host *h, tp_job *job) {
  host_record_hook(h, job);
  host_fail(h, job, tp_integer(5));
}

static void a_start_that_fails_uses_up_the_budget(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.code = host_code(h, fail_hook), .hooks = TP_HOOK_PRE_START};
  host_want(h, HOST_DEAD_LETTERS | 1u << TP_EVENT_STOPPED);
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_send(h, a, 1);
  host_run(h);

  assert_int_equal(host_count(h, "a:pre_start"), 1 + 10);
  assert_int_equal(host_count(h, "!dead:a:1:stopped"), 1);
  assert_int_equal(host_count(h, "!stopped:a"), 1);
  assert_false(tp_ref_alive(a));
  assert_int_equal(host_try_spawn(h, host_user(h), "a"), TP_OK);
}

static void fail_to_start_once(host *h, tp_job *job) {
  int *failures = h->data;
  host_record_hook(h, job);
  if ((*failures)++ == 0) host_fail(h, job, tp_integer(5));
}

static void a_start_that_fails_is_tried_again(void **state) {
  host *h = *state;
  host_data(h, sizeof(int));
  tp_behavior_spec spec = {.code = host_code(h, fail_to_start_once), .hooks = TP_HOOK_PRE_START};
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_send(h, a, 1);
  host_run(h);

  assert_log(h, "a:pre_start a:pre_start a:1");
}

static void spawn_in_hook(host *h, tp_job *job) {
  host_record_hook(h, job);
  assert_false(tp_actor_can_spawn(job->actor));
  assert_int_equal(host_try_spawn(h, job->actor, "late"), TP_ESTOPPED);
}

static void cannot_spawn_in_post_stop(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.code = host_code(h, spawn_in_hook), .hooks = TP_HOOK_POST_STOP};
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  assert_true(tp_actor_can_spawn(a));
  tp_stop(a);
  host_run(h);

  assert_log(h, "a:post_stop");
  assert_false(tp_actor_can_spawn(a));
  assert_int_equal(host_try_spawn(h, a, "later"), TP_ESTOPPED);
}

static void stop_then_spawn(host *h, tp_job *job) {
  host_record(h, job);
  tp_stop_after(job->actor);
  assert_false(tp_actor_can_spawn(job->actor));
  assert_int_equal(host_try_spawn(h, job->actor, "late"), TP_ESTOPPED);
}

static void cannot_spawn_after_stopping_itself(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, stop_then_spawn, "a");
  host_send(h, a, 1);
  host_run(h);
  assert_log(h, "a:1");
}

static void restarts_in_order(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", HOST_ALL_HOOKS);
  host_spawn_hooked(h, a, "b", TP_HOOK_POST_STOP);
  host_spawn_hooked(h, a, "c", TP_HOOK_POST_STOP);
  host_run(h);
  assert_log(h, "a:pre_start");

  for (int i = 1; i <= 3; i++) host_send(h, a, i == 2 ? -2 : i);
  host_run(h);

  assert_log(h, "a:1 a:-2 a:pre_restart b:post_stop c:post_stop a:post_restart a:3");
  assert_null(tp_next_child(a, NULL));
}

static void restarts_with_the_default_hooks(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_PRE_START | TP_HOOK_POST_STOP);
  host_run(h);
  host_forget(h);

  host_send(h, a, -1);
  host_run(h);

  assert_log(h, "a:-1 a:post_stop a:pre_start");
}

static void log_cause(host *h, tp_job *job) {
  char reason[32];
  char message[32];
  host_text(h, job->reason, reason, sizeof reason);
  host_text(h, job->envelope.message, message, sizeof message);
  host_record_hook(h, job);
  if (job->kind == TP_JOB_PRE_RESTART) host_log(h, "%s,%s", reason, message);
  if (job->kind == TP_JOB_POST_RESTART) host_log(h, "%s", reason);
}

static void raise_a_value(host *h, tp_job *job) { host_fail(h, job, host_value(h, 9)); }

static void tells_the_hooks_why(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .receive = host_code(h, raise_a_value),
      .code = host_code(h, log_cause),
      .hooks = TP_HOOK_PRE_RESTART | TP_HOOK_POST_RESTART,
  };
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_tell(h, a, host_value(h, 4));
  host_run(h);

  assert_log(h, "a:pre_restart #9,#4 a:post_restart #9");
}

static void waits_for_children_before_it_begins_anew(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_PRE_START);
  tp_behavior_spec spec = {.code = host_code(h, host_stall), .hooks = TP_HOOK_POST_STOP};
  host_spawn_spec(h, a, spec, "b");
  host_run(h);
  host_forget(h);

  host_send(h, a, -1);
  host_send(h, a, 1);
  host_run(h);
  assert_log(h, "a:-1 b:post_stop");

  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_log(h, "a:pre_start a:1");
}

static void cannot_spawn_while_a_restart_waits_for_children(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_PRE_START);
  tp_behavior_spec spec = {.code = host_code(h, host_stall), .hooks = TP_HOOK_POST_STOP};
  host_spawn_spec(h, a, spec, "b");
  host_run(h);
  host_send(h, a, -1);
  host_run(h);
  host_forget(h);

  assert_false(tp_actor_can_spawn(a));
  assert_int_equal(host_try_spawn(h, a, "late"), TP_ESTOPPED);
  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_log(h, "a:pre_start");
  assert_int_equal(host_try_spawn(h, a, "in time"), TP_OK);
}

static void keeps_its_children_if_told_so(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.receive = host_code(h, host_fragile), .keep_children = true};
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  tp_ref *b = host_spawn_hooked(h, a, "b", HOST_ALL_HOOKS);
  host_run(h);
  host_forget(h);

  host_send(h, a, -1);
  host_send(h, b, 1);
  host_run(h);

  assert_log(h, "a:-1 b:1");
  assert_ptr_equal(tp_child(a, "b", 1), b);
}

static void keeps_its_ref_over_a_restart(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", 0);
  uint64_t uid = tp_ref_uid(a);
  host_send(h, a, -1);
  host_run(h);

  assert_true(tp_ref_alive(a));
  assert_true(tp_ref_uid(a) == uid);
  assert_ptr_equal(host_at(h, "/user/a"), a);
}

static void keep_state(host *h, tp_job *job) {
  char text[32];
  host_text(h, tp_actor_state(job->actor), text, sizeof text);
  host_log(h, "%s", text);
  if (tp_actor_state(job->actor).type == TP_NIL) {
    tp_actor_set_state(job->actor, host_value(h, job->envelope.message.as.integer));
  }
  if (job->envelope.message.as.integer < 0) host_fail(h, job, tp_nil());
}

static void has_state_for_each_incarnation(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, keep_state, "a");
  size_t before = host_values_alive(h);
  host_send(h, a, 1);
  host_send(h, a, 2);
  host_send(h, a, -3);
  host_send(h, a, 4);
  host_send(h, a, 5);
  host_run(h);
  assert_log(h, "nil #1 #1 nil #4");
  assert_int_equal(host_values_alive(h), before + 1);

  tp_stop(a);
  host_run(h);
  assert_int_equal(tp_actor_state(a).type, TP_NIL);
  assert_in_range(host_values_alive(h), 0, before);
}

static void a_stop_wins_over_a_waiting_pre_restart(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .receive = host_code(h, host_fragile),
      .code = host_code(h, host_stall),
      .hooks = TP_HOOK_PRE_RESTART | TP_HOOK_POST_RESTART,
  };
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_want(h, HOST_DEAD_LETTERS);
  host_send(h, a, -1);
  host_send(h, a, 2);
  host_run(h);
  assert_log(h, "a:-1 a:pre_restart");

  tp_stop_now(a);
  host_run(h);

  assert_log(h, "closed !dead:a:2:stopped");
  assert_false(tp_ref_alive(a));
}

static void a_stop_wins_while_children_stop(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_POST_RESTART);
  tp_behavior_spec spec = {.code = host_code(h, host_stall), .hooks = TP_HOOK_POST_STOP};
  host_spawn_spec(h, a, spec, "b");
  host_run(h);
  host_send(h, a, -1);
  host_run(h);

  tp_stop_now(a);
  host_run(h);
  assert_non_null(host_at(h, "/user/a/b"));
  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);

  assert_log(h, "a:-1 b:post_stop");
  assert_false(tp_ref_alive(a));
}

static void hooks_that_fail_interrupt_nothing(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .receive = host_code(h, host_fragile),
      .code = host_code(h, fail_hook),
      .hooks = TP_HOOK_PRE_RESTART | TP_HOOK_POST_STOP,
  };
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_want(h, 1u << TP_EVENT_HOOK_FAILED);
  host_send(h, a, -1);
  host_send(h, a, 2);
  host_run(h);
  assert_log(h, "a:-1 a:pre_restart !hook_failed:a:5 a:2");

  tp_stop(a);
  host_run(h);
  assert_log(h, "a:post_stop !hook_failed:a:5");
  assert_false(tp_ref_alive(a));
}

static void publishes_its_life(void **state) {
  host *h = *state;
  host_want(h, 1u << TP_EVENT_STARTED | 1u << TP_EVENT_RESTARTED | 1u << TP_EVENT_STOPPED);
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", HOST_ALL_HOOKS);
  host_run(h);
  assert_log(h, "a:pre_start !started:a");

  host_send(h, a, -1);
  host_run(h);
  assert_log(h, "a:-1 a:pre_restart a:post_restart !restarted:a:-1");

  tp_stop(a);
  host_run(h);
  assert_log(h, "a:post_stop !stopped:a");
}

static void publishes_only_what_is_wanted(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", 0);
  tp_stop(a);
  host_run(h);
  host_send(h, a, 1);
  host_run(h);
  assert_log(h, "");
}

static void fail_then_record(host *h, tp_job *job) {
  host_record_hook(h, job);
  if (job->kind == TP_JOB_PRE_START) host_fail(h, job, tp_nil());
}

static void a_start_that_fails_can_be_resumed(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .code = host_code(h, fail_then_record),
      .hooks = TP_HOOK_PRE_START | TP_HOOK_POST_STOP,
      .own = {.given = true, .directive = TP_DIRECTIVE_RESUME},
  };
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_send(h, a, 1);
  tp_stop(a);
  host_run(h);
  assert_log(h, "a:pre_start a:1 a:post_stop");
}

static void fail_post_restart_once(host *h, tp_job *job) {
  int *failures = h->data;
  host_record_hook(h, job);
  if (job->kind == TP_JOB_POST_RESTART && (*failures)++ == 0) host_fail(h, job, tp_nil());
}

static void what_has_not_started_has_nothing_to_clean_up(void **state) {
  host *h = *state;
  host_data(h, sizeof(int));
  tp_behavior_spec spec = {
      .receive = host_code(h, host_fragile),
      .code = host_code(h, fail_post_restart_once),
      .hooks = HOST_ALL_HOOKS,
  };
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_send(h, a, -1);
  host_run(h);
  assert_log(h, "a:pre_start a:-1 a:pre_restart a:post_restart a:post_restart");
}

static void each_restart_stops_the_children_it_has(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", 0);
  for (int i = 0; i < 3; i++) {
    host_spawn_hooked(h, a, "b", TP_HOOK_POST_STOP);
    host_run(h);
    host_send(h, a, -1);
    host_run(h);
    assert_log(h, "a:-1 b:post_stop");
  }
}

static void a_soft_stop_wins_over_a_restart(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .receive = host_code(h, host_fragile),
      .code = host_code(h, host_stall),
      .hooks = TP_HOOK_PRE_RESTART | TP_HOOK_POST_RESTART,
  };
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_send(h, a, -1);
  host_run(h);
  assert_int_equal(tp_stop(a), TP_OK);
  host_run(h);
  assert_log(h, "a:-1 a:pre_restart closed");
  assert_false(tp_ref_alive(a));
}

static void start_timer_in_pre_restart(host *h, tp_job *job) {
  tp_tick tick = 0;
  host_record_hook(h, job);
  if (job->kind != TP_JOB_PRE_RESTART) return;
  tp_timer_start(job->actor, host_value(h, 1), TP_ONCE, 10 * MS, 0, &tick);
}

static void a_timer_of_pre_restart_ends_with_the_incarnation(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .receive = host_code(h, host_fragile),
      .code = host_code(h, start_timer_in_pre_restart),
      .hooks = TP_HOOK_PRE_RESTART,
  };
  host_send(h, host_spawn_spec(h, host_user(h), spec, "a"), -1);
  host_advance(h, 20);
  assert_log(h, "a:-1 a:pre_restart");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("SPAWN-1 a ref is usable at once", is_usable_at_once),
      HOST_TEST("LIFE-1 pre_start may wait and is finished before the first message",
                a_start_may_wait),
      HOST_TEST("LIFE-3 a failing pre_start is restarted within the budget, then stops",
                a_start_that_fails_uses_up_the_budget),
      HOST_TEST("LIFE-3 a pre_start that fails once is tried again",
                a_start_that_fails_is_tried_again),
      HOST_TEST("SPAWN-6 a stopping actor cannot spawn", cannot_spawn_in_post_stop),
      HOST_TEST("SPAWN-6 nor can one that stops after the job in hand",
                cannot_spawn_after_stopping_itself),
      HOST_TEST("LIFE-4 a restart runs hooks and stops children in order", restarts_in_order),
      HOST_TEST("LIFE-4 post_stop and pre_start stand in for missing restart hooks",
                restarts_with_the_default_hooks),
      HOST_TEST("LIFE-4 restart hooks are given the reason and the failed message",
                tells_the_hooks_why),
      HOST_TEST("LIFE-4 a restart waits until all children have stopped",
                waits_for_children_before_it_begins_anew),
      HOST_TEST("LIFE-4 a restart that waits for children takes no new ones",
                cannot_spawn_while_a_restart_waits_for_children),
      HOST_TEST("LIFE-4 a restart keeps the ref", keeps_its_ref_over_a_restart),
      HOST_TEST("LIFE-5 children survive a restart if told so", keeps_its_children_if_told_so),
      HOST_TEST("SPAWN-4 each incarnation has its own state", has_state_for_each_incarnation),
      HOST_TEST("LIFE-6 a stop wins over a pre_restart that waits",
                a_stop_wins_over_a_waiting_pre_restart),
      HOST_TEST("LIFE-6 a stop wins while a restart waits for children",
                a_stop_wins_while_children_stop),
      HOST_TEST("LIFE-7 failing post_stop and pre_restart interrupt nothing",
                hooks_that_fail_interrupt_nothing),
      HOST_TEST("LIFE-8 start, restart and stop are published", publishes_its_life),
      HOST_TEST("LIFE-8 nothing is published that nobody wants", publishes_only_what_is_wanted),
      HOST_TEST("LIFE-3 a pre_start that fails can be resumed", a_start_that_fails_can_be_resumed),
      HOST_TEST("LIFE-3 an incarnation that did not start has no pre_restart",
                what_has_not_started_has_nothing_to_clean_up),
      HOST_TEST("LIFE-4 each restart stops the children it has",
                each_restart_stops_the_children_it_has),
      HOST_TEST("LIFE-6 a stop wins over a restart, though it would drain",
                a_soft_stop_wins_over_a_restart),
      HOST_TEST("TMR-3 a timer that pre_restart starts ends with the incarnation",
                a_timer_of_pre_restart_ends_with_the_incarnation),
  };
  return cmocka_run_group_tests_name("lifecycle", tests, NULL, NULL);
}
