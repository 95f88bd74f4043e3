/* Slots of the host, and jobs that wait for one. */
#include "host.h"

static const tp_fault *fault_of(const tp_ref *slot) {
  tp_outcome outcome = tp_slot_outcome(slot);
  assert_true(outcome.failed);
  assert_int_equal(outcome.value.type, TP_FAULT);
  assert_int_equal(outcome.value.flags & TP_IS_ERROR, TP_IS_ERROR);
  return outcome.value.as.fault;
}

static void sleep_then_reply(host *h, tp_job *job) { host_sleep(h, job, 50, host_echo); }

/* ---- Jobs that wait --------------------------------------------------------------------- */

static void log_outcome(host *h, tp_job *job) {
  char value[64];
  tp_outcome outcome = host_outcome(job);
  host_text(h, outcome.value, value, sizeof value);
  host_log(h, "%s%s", outcome.failed ? "failed:" : "got:", value);
}

static void ask_b(host *h, tp_job *job) {
  tp_ref *slot = NULL;
  host_record(h, job);
  tp_ask(host_at(h, "/user/b"), tp_integer(10), 100 * MS, &slot);
  host_wait(h, job, slot, log_outcome);
}

static void a_handler_waits_for_its_answer(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, ask_b, "a");
  host_spawn(h, host_echo, "b");
  host_send(h, a, 1);
  host_send(h, a, 2);
  host_run(h);
  assert_log(h, "a:1 got:10 a:2 got:10");
  assert_int_equal(host_stats(h).waits, 0);
}

static void the_next_message_waits_for_the_handler(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_stall, "a");
  tp_ref *c = host_spawn(h, host_record, "c");
  host_send(h, a, 1);
  host_run(h);
  tp_ref *first = h->gate;
  host_send(h, a, 2);
  host_send(h, c, 3);
  host_run(h);
  assert_log(h, "a:1 c:3");
  assert_ptr_equal(h->gate, first);
  assert_int_equal(host_stats(h).waits, 1);

  tp_slot_settle(first, tp_nil(), false, NULL);
  host_run(h);
  assert_ptr_not_equal(h->gate, first);
}

static void a_wait_ends_with_the_deadline(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, ask_b, "a");
  host_spawn(h, host_nothing, "b");
  host_send(h, a, 1);
  host_advance(h, 100);
  assert_log(h, "a:1 failed:ask-timeout");
}

static void wait_for_settled(host *h, tp_job *job) {
  tp_ref *slot = NULL;
  tp_slot_new(h->system, TP_NEVER, false, &slot);
  tp_slot_settle(slot, tp_integer(4), false, NULL);
  host_wait(h, job, slot, log_outcome);
}

static void a_settled_slot_can_be_waited_for(void **state) {
  host *h = *state;
  host_send(h, host_spawn(h, wait_for_settled, "a"), 1);
  host_run(h);
  assert_log(h, "got:4");
}

static void sleep_again(host *h, tp_job *job) {
  log_outcome(h, job);
  host_sleep(h, job, 10, log_outcome);
}

static void sleep_twice(host *h, tp_job *job) { host_sleep(h, job, 10, sleep_again); }

static void a_job_may_wait_again(void **state) {
  host *h = *state;
  host_send(h, host_spawn(h, sleep_twice, "a"), 1);
  host_advance(h, 10);
  assert_log(h, "got:nil");
  host_advance(h, 10);
  assert_log(h, "got:nil");
}

static void ask_oneself(host *h, tp_job *job) {
  tp_ref *slot = NULL;
  tp_ask(job->actor, tp_integer(1), 100 * MS, &slot);
  host_wait(h, job, slot, log_outcome);
}

static void asking_oneself_times_out(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, ask_oneself, "a");
  host_send(h, a, 1);
  host_advance(h, 100);
  assert_log(h, "failed:ask-timeout");
  tp_stop_now(a);
}

static void the_asker_may_stop(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, ask_b, "a");
  tp_ref *b = host_spawn(h, sleep_then_reply, "b");
  host_want(h, HOST_DEAD_LETTERS);
  host_send(h, a, 1);
  host_run(h);

  tp_stop_now(a);
  host_run(h);
  assert_log(h, "a:1 closed");
  host_advance(h, 100);
  assert_log(h, "");
  assert_true(tp_ref_alive(b));
}

static void settled_and_stopped_at_once(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_stall, "a");
  host_send(h, a, 1);
  host_run(h);

  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  tp_stop_now(a);
  host_run(h);

  assert_log(h, "a:1 closed");
  assert_false(tp_ref_alive(a));
}

static void a_function_may_wait(void **state) {
  host *h = *state;
  tp_tick tick = 0;
  assert_int_equal(tp_schedule(h->system, host_code(h, sleep_twice), 0, 0, &tick), TP_OK);
  host_advance(h, 20);
  assert_log(h, "got:nil got:nil");
}

/* ---- Slots of the host ------------------------------------------------------------------ */

static void a_sleep_ends_well(void **state) {
  host *h = *state;
  tp_ref *slot = host_slot(h, 50, true);
  host_advance(h, 49);
  assert_answer(h, slot, "open");
  host_advance(h, 1);
  assert_answer(h, slot, "nil");
}

static void other_deadlines_fail(void **state) {
  host *h = *state;
  tp_ref *slot = host_slot(h, 50, false);
  host_advance(h, 50);
  assert_answer(h, slot, "failed timeout");
  assert_true(fault_of(slot)->budget == 50 * MS);
}

static void a_slot_is_settled_once(void **state) {
  host *h = *state;
  tp_ref *slot = host_slot(h, 50, false);
  tp_slot_settle(slot, host_value(h, 1), false, NULL);
  tp_slot_settle(slot, host_value(h, 2), false, NULL);
  tp_slot_fail(slot, "cancelled");
  host_advance(h, 50);
  assert_answer(h, slot, "#1");
}

static void a_slot_can_be_cancelled(void **state) {
  host *h = *state;
  tp_ref *slot = host_slot(h, 50, false);
  tp_slot_fail(slot, "cancelled");
  assert_answer(h, slot, "failed cancelled");
  assert_true(tp_next_deadline(h->system) == TP_NEVER);
}

static void a_slot_without_deadline_stays_open(void **state) {
  host *h = *state;
  tp_ref *slot = NULL;
  assert_int_equal(tp_slot_new(h->system, TP_NEVER, false, &slot), TP_OK);
  assert_true(tp_next_deadline(h->system) == TP_NEVER);
  host_advance(h, 1000000000);
  assert_answer(h, slot, "open");
  tp_slot_settle(slot, tp_nil(), false, NULL);
  tp_ref_release(slot);
}

static void an_open_slot_can_be_dropped(void **state) {
  host *h = *state;
  tp_ref *slot = NULL;
  assert_int_equal(tp_slot_new(h->system, 50 * MS, false, &slot), TP_OK);
  tp_ref_release(slot);
  host_advance(h, 50);
  assert_int_equal(host_stats(h).asks, 0);
  assert_int_equal(host_stats(h).timers, 0);
}

static void notifies_its_token(void **state) {
  host *h = *state;
  char token[] = "t1";
  tp_ref *slot = host_slot(h, 50, false);
  tp_slot_notify(slot, token);
  host_run(h);
  assert_log(h, "");
  tp_slot_settle(slot, tp_nil(), false, NULL);
  host_run(h);
  assert_log(h, "resumed:t1");
}

static void notifies_of_what_has_happened(void **state) {
  host *h = *state;
  char token[] = "t1";
  tp_ref *slot = host_slot(h, 50, false);
  tp_slot_settle(slot, tp_nil(), false, NULL);
  tp_slot_notify(slot, token);
  host_run(h);
  assert_log(h, "resumed:t1");
}

static void forgets_its_token(void **state) {
  host *h = *state;
  char token[] = "t1";
  tp_ref *open = host_slot(h, 50, false);
  tp_ref *settled = host_slot(h, 50, false);
  tp_slot_notify(open, token);
  tp_slot_notify(settled, token);
  tp_slot_settle(settled, tp_nil(), false, NULL);
  tp_slot_forget(open);
  tp_slot_forget(settled);
  host_advance(h, 50);
  assert_log(h, "");
}

static void resolves_an_actor_that_exists(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *slot = host_slot(h, 1000, false);
  assert_int_equal(tp_resolve(h->system, "/user/a", 7, slot), TP_OK);
  host_run(h);
  assert_answer(h, slot, "a");
  assert_ptr_equal(tp_slot_outcome(slot).value.as.ref, a);
}

static void resolves_an_actor_that_comes_later(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *slot = host_slot(h, 1000, false);
  tp_ref *other = host_slot(h, 1000, false);
  char path[] = "/user/a/b";
  assert_int_equal(tp_resolve(h->system, path, 9, slot), TP_OK);
  assert_int_equal(tp_resolve(h->system, "/user/b", 7, other), TP_OK);
  memset(path, 'x', 9);
  host_run(h);
  assert_answer(h, slot, "open");

  host_spawn_spec(h, a, (tp_behavior_spec){0}, "b");
  host_run(h);
  assert_answer(h, slot, "b");
  host_advance(h, 1000);
  assert_answer(h, other, "failed timeout");
}

static void notifies_again(void **state) {
  host *h = *state;
  char token[] = "t1";
  tp_ref *slot = host_slot(h, 50, false);
  tp_slot_settle(slot, tp_nil(), false, NULL);
  for (int i = 0; i < 2; i++) {
    tp_slot_notify(slot, token);
    host_run(h);
    assert_log(h, "resumed:t1");
  }
  assert_int_equal(host_stats(h).waits, 0);
}

static void paths_that_lead_nowhere_leave_no_memory(void **state) {
  host *h = *state;
  size_t before = 0;
  for (int i = 0; i < 1000; i++) {
    tp_ref *slot = NULL;
    assert_int_equal(tp_slot_new(h->system, 10 * MS, false, &slot), TP_OK);
    assert_int_equal(tp_resolve(h->system, "/user/nobody", 12, slot), TP_OK);
    tp_ref_release(slot);
    host_advance(h, 10);
    if (i == 1) before = host_stats(h).bytes;
  }
  assert_in_range(host_stats(h).bytes, 0, before + 1024);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("ASK-2 a handler waits for its answer", a_handler_waits_for_its_answer),
      HOST_TEST("LIFE-2 the next message waits until the handler has returned",
                the_next_message_waits_for_the_handler),
      HOST_TEST("ASK-6 a wait ends with the deadline", a_wait_ends_with_the_deadline),
      HOST_TEST("ASK-2 a settled slot can be waited for", a_settled_slot_can_be_waited_for),
      HOST_TEST("ASK-2 a job may wait again", a_job_may_wait_again),
      HOST_TEST("ASK-6 asking oneself times out", asking_oneself_times_out),
      HOST_TEST("LIFE-9 an asker that is stopped is closed, the reply dropped", the_asker_may_stop),
      HOST_TEST("LIFE-9 a stop beats an answer that has not been taken up",
                settled_and_stopped_at_once),
      HOST_TEST("TMR-6 a function of a timer may wait", a_function_may_wait),
      HOST_TEST("PAT-1 a sleep ends well", a_sleep_ends_well),
      HOST_TEST("SYS-13 other deadlines fail with a time-out", other_deadlines_fail),
      HOST_TEST("SYS-13 a slot is settled once", a_slot_is_settled_once),
      HOST_TEST("SYS-13 a slot can be cancelled", a_slot_can_be_cancelled),
      HOST_TEST("SYS-13 a slot without deadline stays open", a_slot_without_deadline_stays_open),
      HOST_TEST("SYS-13 an open slot can be dropped", an_open_slot_can_be_dropped),
      HOST_TEST("ASK-2 a slot notifies its token", notifies_its_token),
      HOST_TEST("ASK-2 a slot notifies of what has happened already",
                notifies_of_what_has_happened),
      HOST_TEST("ASK-2 a slot forgets its token", forgets_its_token),
      HOST_TEST("SEL-1 a path resolves to the actor there", resolves_an_actor_that_exists),
      HOST_TEST("SEL-1 a path resolves when its actor comes", resolves_an_actor_that_comes_later),
      HOST_TEST("ASK-2 a slot notifies again", notifies_again),
      HOST_TEST("SEL-1 paths that lead nowhere leave no memory",
                paths_that_lead_nowhere_leave_no_memory),
  };
  return cmocka_run_group_tests_name("slot", tests, NULL, NULL);
}
