/* Asks: replies, deadlines, and the end of whom was asked. */
#include "host.h"

static const tp_fault *fault_of(const tp_ref *slot) {
  tp_outcome outcome = tp_slot_outcome(slot);
  assert_true(outcome.failed);
  assert_int_equal(outcome.value.type, TP_FAULT);
  assert_int_equal(outcome.value.flags & TP_IS_ERROR, TP_IS_ERROR);
  return outcome.value.as.fault;
}

/* ---- Replies ---------------------------------------------------------------------------- */

static void a_reply_settles(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_echo, "a");
  tp_ref *slot = host_ask(h, a, host_value(h, 7), 100);
  assert_answer(h, slot, "open");
  assert_int_equal(host_stats(h).asks, 1);

  host_run(h);

  assert_answer(h, slot, "#7 from a");
  assert_ptr_equal(tp_slot_outcome(slot).from, a);
  assert_int_equal(host_stats(h).asks, 0);
}

static void note_sender(host *h, tp_job *job) {
  tp_ref **sender = h->data;
  *sender = job->envelope.sender;
}

static void the_sender_is_the_slot(void **state) {
  host *h = *state;
  tp_ref **sender = host_data(h, sizeof *sender);
  tp_ref *slot = host_ask(h, host_spawn(h, note_sender, "a"), tp_integer(7), 100);
  host_run(h);
  assert_ptr_equal(*sender, slot);
}

static void reply_twice(host *h, tp_job *job) {
  host_reply(h, job, tp_integer(1), false);
  host_reply(h, job, tp_integer(2), false);
  host_reply(h, job, host_value(h, 3), true);
}

static void the_first_reply_counts(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, reply_twice, "a");
  host_want(h, HOST_DEAD_LETTERS);
  tp_ref *slot = host_ask(h, a, tp_integer(0), 100);
  host_run(h);

  assert_answer(h, slot, "1 from a");
  assert_log(h, "");
}

static void sleep_then_reply(host *h, tp_job *job) { host_sleep(h, job, 50, host_echo); }

static void a_late_reply_is_dropped(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, sleep_then_reply, "a");
  host_want(h, HOST_DEAD_LETTERS);
  tp_ref *slot = host_ask(h, a, host_value(h, 7), 20);
  host_advance(h, 100);

  assert_answer(h, slot, "failed ask-timeout");
  assert_log(h, "");
}

static void fail_ask(host *h, tp_job *job) { host_reply(h, job, host_value(h, 7), true); }

static void a_failing_reply_fails_the_ask(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, fail_ask, "a");
  tp_ref *slot = host_ask(h, a, tp_integer(0), 100);
  host_run(h);
  assert_answer(h, slot, "failed #7 from a");
}

static void an_error_as_reply_fails_the_ask(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_echo, "a");
  tp_ref *slot = host_ask(h, a, host_error(5), 100);
  host_run(h);
  assert_answer(h, slot, "failed 5! from a");
}

static void fail_with_nil(host *h, tp_job *job) { host_reply(h, job, tp_nil(), true); }

static void nil_is_a_reply(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_echo, "a");
  tp_ref *b = host_spawn(h, fail_with_nil, "b");
  tp_ref *replied = host_ask(h, a, tp_nil(), 100);
  tp_ref *failed = host_ask(h, b, tp_nil(), 100);
  host_run(h);
  assert_answer(h, replied, "nil from a");
  assert_answer(h, failed, "failed nil from b");
}

/* Passes the sender of a message on, as a message. */
static void pass_sender_on(host *h, tp_job *job) {
  tp_ref *sender = tp_actor_sender(job->actor);
  tp_ref_retain(sender);
  host_tell(h, host_at(h, "/user/b"), (tp_value){.type = TP_REF, .as.ref = sender});
}

static void tell_the_message(host *h, tp_job *job) {
  tp_tell(job->envelope.message.as.ref, host_value(h, 9), job->actor);
}

static void a_slot_is_a_ref(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, pass_sender_on, "a");
  host_spawn(h, tell_the_message, "b");
  tp_ref *slot = host_ask(h, a, tp_integer(0), 100);
  assert_false(tp_ref_is_actor(slot));
  assert_true(tp_ref_alive(slot));
  host_run(h);

  assert_answer(h, slot, "#9 from b");
  assert_false(tp_ref_alive(slot));
}

static void a_slot_has_a_path(void **state) {
  host *h = *state;
  char path[64];
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *slot = host_ask(h, a, tp_integer(0), 100);
  tp_ref_path(slot, path, sizeof path);
  assert_memory_equal(path, "troupe://demo/temp/ask-", 23);
  assert_in_range(path[23], '0', '9');
  assert_null(tp_ref_parent(slot));
}

static void a_tell_without_sender_is_a_reply(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *slot = host_ask(h, a, tp_integer(0), 100);
  host_send(h, slot, 3);
  host_run(h);
  assert_answer(h, slot, "3");
  assert_null(tp_slot_outcome(slot).from);
}

static void reply_with_the_slot(host *h, tp_job *job) {
  tp_ref *sender = tp_actor_sender(job->actor);
  tp_ref_retain(sender);
  host_reply(h, job, (tp_value){.type = TP_REF, .as.ref = sender}, false);
}

static void an_answer_may_be_the_slot(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, reply_with_the_slot, "a");
  tp_ref *slot = NULL;
  assert_int_equal(tp_ask(a, tp_integer(0), 100 * MS, &slot), TP_OK);
  host_run(h);
  assert_ptr_equal(tp_slot_outcome(slot).value.as.ref, slot);
  tp_slot_drop(slot);
}

static void an_answer_is_given_back_with_the_slot(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_echo, "a"), *slot = NULL;
  for (int holders = 1; holders <= 2; holders++) {
    assert_int_equal(tp_ask(a, host_value(h, 7), 100 * MS, &slot), TP_OK);
    host_run(h);
    size_t alive = host_values_alive(h);
    if (holders == 2) tp_ref_retain(slot);
    tp_slot_drop(slot);
    assert_int_equal(host_values_alive(h), alive - 1);
  }
  assert_int_equal(tp_slot_outcome(slot).value.type, TP_NIL);
  tp_ref_release(slot);
}

/* ---- Deadlines -------------------------------------------------------------------------- */

static void times_out_at_its_deadline(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *slot = host_ask(h, a, tp_integer(0), 100);
  assert_true(tp_next_deadline(h->system) == 1100 * MS);
  host_advance(h, 99);
  assert_answer(h, slot, "open");
  host_advance(h, 1);
  assert_answer(h, slot, "failed ask-timeout");

  const tp_fault *fault = fault_of(slot);
  assert_ptr_equal(fault->subject, a);
  assert_true(fault->budget == 100 * MS);
}

/* A host that reads its clock now and then. */
static int coarse_setup(void **state) {
  host *h = host_open();
  *state = h;
  tp_system_options options = host_defaults();
  options.coarse = true;
  return host_start(h, &options);
}

#define COARSE_TEST(title, function)                                                               \
  { title, function, coarse_setup, host_teardown, NULL }

static void counts_from_the_next_time_that_is_told(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *longer = host_ask(h, a, tp_integer(0), 200);
  tp_ref *slot = host_ask(h, a, tp_integer(0), 100);
  assert_true(tp_next_deadline(h->system) == TP_NEVER);
  assert_int_equal(host_stats(h).timers, 2);

  tp_set_now(h->system, 1050 * MS);
  assert_true(tp_next_deadline(h->system) == 1150 * MS);
  tp_advance(h->system, 1149 * MS);
  assert_answer(h, slot, "open");
  tp_advance(h->system, 1150 * MS);
  assert_answer(h, slot, "failed ask-timeout");
  assert_answer(h, longer, "open");
  tp_advance(h->system, 1250 * MS);
  assert_answer(h, longer, "failed ask-timeout");
  assert_int_equal(host_stats(h).timers, 0);
}

static void counts_from_an_advance_that_leaps(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *slot = host_ask(h, a, tp_integer(0), 100);
  tp_advance(h->system, 5000 * MS);
  assert_answer(h, slot, "open");
  tp_advance(h->system, 5100 * MS);
  assert_answer(h, slot, "failed ask-timeout");
}

static void answers_come_before_the_time_is_told(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_echo, "a");
  tp_ref *first = host_ask(h, a, tp_integer(1), 100);
  tp_ref *second = host_ask(h, a, tp_integer(2), 100);
  host_run(h);
  assert_answer(h, first, "1 from a");
  assert_answer(h, second, "2 from a");
  assert_int_equal(host_stats(h).timers, 0);
  tp_advance(h->system, 5000 * MS);
  assert_true(tp_next_deadline(h->system) == TP_NEVER);
}

static void no_time_is_told_any_more(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  host_ask(h, a, tp_integer(0), 100);
  host_run(h);
  h->abrupt = true;
}

static void a_settled_ask_leaves_no_deadline(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_echo, "a");
  host_ask(h, a, tp_integer(0), 100);
  host_run(h);
  assert_true(tp_next_deadline(h->system) == TP_NEVER);
  assert_int_equal(host_stats(h).timers, 0);
}

static void a_settled_ask_leaves_no_memory(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_echo, "a");
  host_run(h);
  size_t before = host_stats(h).bytes;

  for (int i = 0; i < 10000; i++) {
    tp_ref *slot = NULL;
    assert_int_equal(tp_ask(a, tp_integer(i), 3600000 * MS, &slot), TP_OK);
    host_run(h);
    assert_int_equal(tp_slot_outcome(slot).value.as.integer, i);
    tp_ref_release(slot);
  }

  assert_in_range(host_stats(h).bytes, 0, before + 4096);
}

static void a_million_asks_are_open_at_once(void **state) {
  enum { MILLION = 1000000 };
  host *h = *state;
  tp_ref **slots = host_data(h, MILLION * sizeof *slots);
  tp_ref *a = host_spawn(h, host_nothing, "a");
  host_run(h);
  size_t before = host_stats(h).bytes;

  for (int i = 0; i < MILLION; i++) {
    assert_int_equal(tp_ask(a, tp_integer(i), (1 + i % 1000) * MS, &slots[i]), TP_OK);
  }
  host_run(h);
  assert_int_equal(host_stats(h).asks, MILLION);
  assert_int_equal(host_stats(h).timers, MILLION);

  host_advance(h, 999);
  assert_int_equal(host_stats(h).asks, MILLION / 1000);
  assert_answer(h, slots[MILLION - 1], "open");
  host_advance(h, 1);

  assert_int_equal(host_stats(h).asks, 0);
  assert_answer(h, slots[MILLION - 1], "failed ask-timeout");
  for (int i = 0; i < MILLION; i++) tp_ref_release(slots[i]);
  assert_in_range(host_stats(h).bytes, 0, before + 1100000);
}

static void a_very_long_timeout_is_no_overflow(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *slot = NULL;
  assert_int_equal(tp_ask(a, tp_integer(0), TP_NEVER - 1, &slot), TP_OK);
  host_keep(h, slot);
  host_advance(h, 1000000);
  assert_answer(h, slot, "open");
}

/* ---- The end of whom was asked ---------------------------------------------------------- */

static void a_stopped_actor_is_known_at_once(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_echo, "a");
  tp_stop(a);
  host_run(h);
  host_want(h, HOST_DEAD_LETTERS);

  tp_ref *slot = host_ask(h, a, host_value(h, 1), 60000);
  host_run(h);

  assert_answer(h, slot, "failed actor-stopped");
  assert_ptr_equal(fault_of(slot)->subject, a);
  assert_log(h, "");
}

static void a_request_behind_a_stop_fails(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  host_want(h, HOST_DEAD_LETTERS);
  for (int i = 0; i < 3; i++) host_send(h, a, i);
  tp_stop(a);
  tp_ref *slot = host_ask(h, a, host_value(h, 9), 60000);
  host_run(h);

  assert_answer(h, slot, "failed actor-stopped");
  assert_log(h, "a:0 a:1 a:2");
}

static void a_request_in_hand_fails_when_its_actor_stops(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_stall, "a");
  tp_ref *in_hand = host_ask(h, a, tp_integer(1), 60000);
  tp_ref *queued = host_ask(h, a, tp_integer(2), 60000);
  host_run(h);
  assert_answer(h, in_hand, "open");

  tp_stop_now(a);
  host_run(h);

  assert_answer(h, in_hand, "failed actor-stopped");
  assert_answer(h, queued, "failed actor-stopped");
  assert_int_equal(host_stats(h).timers, 0);
}

static void hand_over_and_stop(host *h, tp_job *job) {
  tp_tell(host_at(h, "/user/b"), job->envelope.message, tp_actor_sender(job->actor));
  tp_stop_after(job->actor);
}

static void an_actor_may_hand_over_and_stop(void **state) {
  host *h = *state;
  host_spawn(h, sleep_then_reply, "b");
  tp_ref *a = host_spawn(h, hand_over_and_stop, "a");
  tp_ref *slot = host_ask(h, a, tp_integer(1), 60000);
  host_run(h);
  assert_false(tp_ref_alive(a));
  host_advance(h, 50);
  assert_answer(h, slot, "1 from b");
}

static void reply_and_stop(host *h, tp_job *job) {
  host_echo(h, job);
  tp_stop_after(job->actor);
}

static void a_reply_before_the_stop_counts(void **state) {
  host *h = *state;
  tp_ref *slot = host_ask(h, host_spawn(h, reply_and_stop, "a"), tp_integer(1), 60000);
  host_run(h);
  assert_answer(h, slot, "1 from a");
}

static void a_handled_request_is_out_of_hand(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *slot = host_ask(h, a, tp_integer(1), 100);
  host_run(h);
  tp_stop(a);
  host_run(h);
  assert_answer(h, slot, "open");
  host_advance(h, 100);
  assert_answer(h, slot, "failed ask-timeout");
}

static void a_restart_is_no_stop(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_fragile, "a");
  tp_ref *in_hand = host_ask(h, a, tp_integer(-1), 100);
  host_advance(h, 99);
  assert_answer(h, in_hand, "open");
  host_advance(h, 1);
  assert_answer(h, in_hand, "failed ask-timeout");
}

static void a_request_queued_over_a_restart_is_answered(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_echo, "a");
  host_tell(h, a, (tp_value){.type = TP_SIGNAL, .as.integer = TP_KILL});
  tp_ref *slot = host_ask(h, a, tp_integer(1), 100);
  host_run(h);
  assert_answer(h, slot, "1 from a");
}

static void a_failure_that_stops_fails_the_ask(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .receive = host_code(h, host_fragile),
      .own = {.given = true, .directive = TP_DIRECTIVE_STOP},
  };
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  tp_ref *slot = host_ask(h, a, tp_integer(-1), 60000);
  host_run(h);
  assert_answer(h, slot, "failed actor-stopped");
}

static void termination_settles_asks(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_stall, "a");
  tp_ref *slot = host_ask(h, a, tp_integer(1), 60000);
  host_run(h);
  tp_terminate(h->system);
  host_advance(h, 2000);

  assert_true(tp_terminated(h->system));
  assert_true(tp_slot_settled(slot));
  assert_true(tp_slot_outcome(slot).failed);
}

/* The first routee waits for ever, the second for 20 ms. */
static void reply_unless_first(host *h, tp_job *job) {
  char name[32];
  tp_ref_name(job->actor, name, sizeof name);
  if (strcmp(name, "routee-1") == 0) {
    host_park(h, job, host_nothing);
  } else {
    host_sleep(h, job, 20, host_echo);
  }
}

static tp_ref *spawn_broadcast(host *h) {
  tp_behavior_spec spec = {
      .routing = TP_ROUTE_BROADCAST,
      .size = 2,
      .routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, reply_unless_first)}),
  };
  return host_spawn_spec(h, host_user(h), spec, "pool");
}

static void one_who_stops_does_not_fail_a_broadcast(void **state) {
  host *h = *state;
  tp_ref *slot = host_ask(h, spawn_broadcast(h), tp_integer(5), 60000);
  host_run(h);
  tp_stop_now(host_at(h, "/user/pool/routee-1"));
  host_run(h);
  assert_answer(h, slot, "open");
  host_advance(h, 20);
  assert_answer(h, slot, "5 from routee-2");
}

static void a_broadcast_fails_when_all_have_stopped(void **state) {
  host *h = *state;
  tp_ref *slot = host_ask(h, spawn_broadcast(h), tp_integer(5), 60000);
  host_run(h);
  tp_stop_now(host_at(h, "/user/pool/routee-2"));
  tp_stop_now(host_at(h, "/user/pool/routee-1"));
  host_run(h);
  assert_answer(h, slot, "failed actor-stopped");
}

static void keep_and_pass_on(host *h, tp_job *job) {
  tp_ref **kept = host_data(h, sizeof *kept);
  *kept = host_keep(h, tp_actor_sender(job->actor));
  tp_ref_retain(*kept);
  tp_tell(host_at(h, "/user/b"), tp_integer(2), *kept);
}

static void a_slot_that_was_kept_can_still_be_answered(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, keep_and_pass_on, "a");
  tp_ref *b = host_spawn(h, host_nothing, "b");
  tp_ref *slot = host_ask(h, a, tp_integer(1), 60000);
  host_run_one(h);
  assert_int_equal(host_stats(h).queued, 1);
  tp_stop_now(b);
  host_run(h);
  assert_answer(h, slot, "open");

  tp_ref **kept = h->data;
  tp_reply(*kept, tp_integer(3), false, a);
  assert_answer(h, slot, "3 from a");
}

static void keep_and_stall(host *h, tp_job *job) {
  tp_ref **kept = host_data(h, sizeof *kept);
  *kept = host_keep(h, tp_actor_sender(job->actor));
  tp_ref_retain(*kept);
  host_stall(h, job);
}

static void what_was_kept_outlives_its_actor(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, keep_and_stall, "a");
  tp_ref *slot = host_ask(h, a, tp_integer(1), 60000);
  host_run(h);
  tp_stop_now(a);
  host_run(h);
  assert_answer(h, slot, "open");

  tp_ref **kept = h->data;
  host_send(h, *kept, 2);
  assert_answer(h, slot, "2");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("ASK-1 a reply settles the ask", a_reply_settles),
      HOST_TEST("ASK-3 the slot is the sender of the request", the_sender_is_the_slot),
      HOST_TEST("ASK-4 the first reply counts", the_first_reply_counts),
      HOST_TEST("ASK-4 a late reply is dropped in silence", a_late_reply_is_dropped),
      HOST_TEST("ASK-5 a failing reply fails the ask", a_failing_reply_fails_the_ask),
      HOST_TEST("ASK-5 replying with an error fails the ask", an_error_as_reply_fails_the_ask),
      HOST_TEST("ASK-5 a reply of nil is told from a failure of nil", nil_is_a_reply),
      HOST_TEST("ASK-10 a slot is a ref that anyone may answer", a_slot_is_a_ref),
      HOST_TEST("ASK-10 a slot has a path below /temp", a_slot_has_a_path),
      HOST_TEST("ASK-10 to tell a slot is to reply", a_tell_without_sender_is_a_reply),
      HOST_TEST("ASK-10 an answer may be the slot itself", an_answer_may_be_the_slot),
      HOST_TEST("ASK-8 an answer is given back with the slot",
                an_answer_is_given_back_with_the_slot),
      HOST_TEST("ASK-6 times out at its deadline, with target and budget",
                times_out_at_its_deadline),
      COARSE_TEST("ASK-6 where time is coarse, counts from the next time that is told",
                  counts_from_the_next_time_that_is_told),
      COARSE_TEST("ASK-6 where time is coarse, a leap of time is not counted",
                  counts_from_an_advance_that_leaps),
      COARSE_TEST("ASK-6 where time is coarse, an answer may come before any time is told",
                  answers_come_before_the_time_is_told),
      COARSE_TEST("ASK-6 where time is coarse, a system may end before any time is told",
                  no_time_is_told_any_more),
      HOST_TEST("ASK-6 a very long time-out is no overflow", a_very_long_timeout_is_no_overflow),
      HOST_TEST("ASK-8 a settled ask leaves no deadline", a_settled_ask_leaves_no_deadline),
      HOST_TEST("ASK-8 a settled ask leaves no memory", a_settled_ask_leaves_no_memory),
      HOST_TEST("ASK-8 a million asks are open at once", a_million_asks_are_open_at_once),
      HOST_TEST("ASK-7 asking a stopped actor fails at once", a_stopped_actor_is_known_at_once),
      HOST_TEST("ASK-7 a request behind a stop fails", a_request_behind_a_stop_fails),
      HOST_TEST("ASK-7 requests in hand and queued fail when the actor is stopped hard",
                a_request_in_hand_fails_when_its_actor_stops),
      HOST_TEST("ASK-7 an actor may hand a request over and stop", an_actor_may_hand_over_and_stop),
      HOST_TEST("ASK-7 a reply before the stop counts", a_reply_before_the_stop_counts),
      HOST_TEST("ASK-7 a request that was handled is not in hand",
                a_handled_request_is_out_of_hand),
      HOST_TEST("ASK-7 a restart is no stop: the request in hand times out", a_restart_is_no_stop),
      HOST_TEST("ASK-7 a request queued over a restart is answered",
                a_request_queued_over_a_restart_is_answered),
      HOST_TEST("ASK-7 a failure that stops the actor fails the ask",
                a_failure_that_stops_fails_the_ask),
      HOST_TEST("ASK-7 terminating settles open asks", termination_settles_asks),
      HOST_TEST("ASK-7 one routee that stops does not fail a broadcast",
                one_who_stops_does_not_fail_a_broadcast),
      HOST_TEST("ASK-7 a broadcast fails when every routee has stopped",
                a_broadcast_fails_when_all_have_stopped),
      HOST_TEST("ASK-7 a slot that was kept can still be answered",
                a_slot_that_was_kept_can_still_be_answered),
      HOST_TEST("ASK-7 a slot that was kept outlives its actor", what_was_kept_outlives_its_actor),
  };
  return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
