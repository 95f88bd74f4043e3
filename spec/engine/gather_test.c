/* Scatter/gather: every routee is asked, the first success answers, failures count. */
#include "host.h"

/* A pool of three whose scatters last 100 ms. */
static tp_ref *spawn_pool_of(host *h, tp_behavior_spec routee) {
  tp_behavior_spec pool = {
      .routing = TP_ROUTE_FIRST_COMPLETED,
      .size = 3,
      .routee = host_behavior(h, routee),
      .gathering = {.timeout = 100 * MS},
  };
  tp_ref *r = host_spawn_spec(h, host_user(h), pool, "pool");
  host_run(h);
  host_forget(h);
  return r;
}

static tp_ref *spawn_pool(host *h, host_step step) {
  return spawn_pool_of(h, (tp_behavior_spec){.receive = host_code(h, step)});
}

static tp_ref *routee(const host *h, int number) {
  char path[32];
  snprintf(path, sizeof path, "/user/pool/routee-%d", number);
  return host_at(h, path);
}

static int number_of(const tp_job *job) {
  char name[32];
  tp_ref_name(job->actor, name, sizeof name);
  return name[7] - '0';
}

static const tp_fault *fault_of(const tp_ref *slot) {
  tp_outcome outcome = tp_slot_outcome(slot);
  assert_true(outcome.failed);
  assert_int_equal(outcome.value.type, TP_FAULT);
  return outcome.value.as.fault;
}

static void assert_fault(const tp_fault *fault, const char *code, uint32_t members) {
  assert_string_equal(fault->code, code);
  assert_int_equal(fault->members, members);
}

static void assert_member(const host *h, const tp_fault *fault, uint32_t i, const char *text) {
  char member[64];
  host_text(h, fault->member[i], member, sizeof member);
  assert_string_equal(member, text);
}

static void reply_with_number(host *h, tp_job *job) {
  host_reply(h, job, host_value(h, number_of(job)), false);
}

static void fail_with_number(host *h, tp_job *job) {
  host_reply(h, job, host_value(h, number_of(job)), true);
}

/* The routees answer after 30, 20 and 10 ms. */
static void last_is_fastest(host *h, tp_job *job) {
  host_sleep(h, job, 40 - 10 * number_of(job), reply_with_number);
}

/* They fail after 30, 10 and 20 ms. */
static void all_fail(host *h, tp_job *job) {
  static const int delays[] = {30, 10, 20};
  host_sleep(h, job, delays[number_of(job) - 1], fail_with_number);
}

/* The first fails at once, the second answers after 20 ms, the third never. */
static void one_of_each(host *h, tp_job *job) {
  switch (number_of(job)) {
    case 1: fail_with_number(h, job); break;
    case 2: host_sleep(h, job, 20, reply_with_number); break;
    default: break;
  }
}

/* ---- Success ---------------------------------------------------------------------------- */

static void the_first_success_answers(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, last_is_fastest);
  tp_ref *slot = host_ask(h, pool, tp_integer(1), 5000);
  host_advance(h, 9);
  assert_answer(h, slot, "open");
  host_advance(h, 1);
  assert_answer(h, slot, "#3 from routee-3");
}

static void every_routee_is_asked_in_order(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, host_record);
  host_ask(h, pool, tp_integer(1), 5000);
  host_ask(h, pool, tp_integer(2), 5000);
  host_run(h);
  assert_log(h, "routee-1:1 routee-1:2 routee-2:1 routee-2:2 routee-3:1 routee-3:2");
}

static void an_actor_is_answered_by_the_routee(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, last_is_fastest);
  tp_ref *a = host_spawn(h, host_record_from, "a");
  tp_tell(pool, tp_integer(1), a);
  host_advance(h, 100);
  assert_log(h, "a:#3<routee-3");
}

static void a_quick_failure_does_not_win(void **state) {
  host *h = *state;
  tp_ref *slot = host_ask(h, spawn_pool(h, one_of_each), tp_integer(1), 5000);
  host_run(h);
  assert_answer(h, slot, "open");
  host_advance(h, 20);
  assert_answer(h, slot, "#2 from routee-2");
}

static void reply_with_error_or_sleep(host *h, tp_job *job) {
  if (number_of(job) == 1) {
    host_reply(h, job, host_error(1), false);
  } else {
    host_sleep(h, job, 20, reply_with_number);
  }
}

static void an_error_as_reply_does_not_win(void **state) {
  host *h = *state;
  tp_ref *slot = host_ask(h, spawn_pool(h, reply_with_error_or_sleep), tp_integer(1), 5000);
  host_advance(h, 20);
  assert_answer(h, slot, "#2 from routee-2");
}

static void losers_run_on_in_silence(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, last_is_fastest);
  host_want(h, HOST_DEAD_LETTERS | 1u << TP_EVENT_WARNING);
  tp_ref *slot = host_ask(h, pool, tp_integer(1), 5000);
  host_advance(h, 10);
  assert_int_equal(host_stats(h).waits, 2);
  host_advance(h, 100);
  assert_int_equal(host_stats(h).waits, 0);
  assert_log(h, "");
  assert_answer(h, slot, "#3 from routee-3");
}

static void nil_is_a_success(void **state) {
  host *h = *state;
  tp_ref *slot = host_ask(h, spawn_pool(h, host_echo), tp_nil(), 5000);
  host_run(h);
  assert_answer(h, slot, "nil from routee-1");
}

static void each_request_has_a_slot_as_its_sender(void **state) {
  host *h = *state;
  tp_ref *slot = host_ask(h, spawn_pool(h, host_record_from), tp_integer(1), 5000);
  host_run(h);
  char leg[32];
  assert_int_equal(sscanf(h->log, "routee-1:1<%31s", leg), 1);
  assert_memory_equal(leg, "ask-", 4);
  assert_answer(h, slot, "open");
}

static void reply_without_a_name(host *h, tp_job *job) {
  if (number_of(job) == 2) host_send(h, tp_actor_sender(job->actor), 7);
}

static void an_answer_without_a_name_is_the_routees(void **state) {
  host *h = *state;
  tp_ref *slot = host_ask(h, spawn_pool(h, reply_without_a_name), tp_integer(1), 5000);
  host_run(h);
  assert_answer(h, slot, "7 from routee-2");
}

static void answers_in_the_turn_of_the_scatter(void **state) {
  host *h = *state;
  tp_ref *slot = host_ask(h, spawn_pool(h, reply_with_number), tp_integer(1), 5000);
  host_run(h);
  assert_answer(h, slot, "#1 from routee-1");
  assert_int_equal(host_stats(h).scatters, 0);
}

static void reply_three_times(host *h, tp_job *job) {
  host_reply(h, job, host_value(h, 1), number_of(job) == 1);
  host_reply(h, job, host_value(h, 2), false);
  host_reply(h, job, host_value(h, 3), true);
}

static void there_is_one_answer(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, reply_three_times);
  tp_ref *a = host_spawn(h, host_record_from, "a");
  tp_tell(pool, tp_integer(1), a);
  host_advance(h, 100);
  assert_log(h, "a:#1<routee-2");
}

static void a_settled_scatter_leaves_nothing(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, reply_with_number);
  tp_ref *slot = NULL;
  size_t before = 0;
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(tp_ask(pool, tp_integer(1), 5000 * MS, &slot), TP_OK);
    host_run(h);
    assert_true(tp_slot_settled(slot));
    tp_ref_release(slot);
    if (i == 0) before = host_stats(h).bytes;
  }
  assert_int_equal(host_stats(h).bytes, before);
  assert_int_equal(host_stats(h).timers, 0);
  assert_true(tp_next_deadline(h->system) == TP_NEVER);
}

static void values_are_given_back(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, one_of_each);
  size_t before = host_values_alive(h);
  tp_ref *slot = NULL;
  assert_int_equal(tp_ask(pool, host_value(h, 9), 5000 * MS, &slot), TP_OK);
  host_advance(h, 100);
  tp_ref_release(slot);
  assert_int_equal(host_values_alive(h), before);
}

static void broadcast_flag_scatters_nothing(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, host_record);
  host_tell(h, pool, (tp_value){.type = TP_INTEGER, .flags = TP_BROADCAST, .as.integer = 1});
  host_run(h);
  assert_log(h, "routee-1:1 routee-2:1 routee-3:1");
  assert_int_equal(host_stats(h).scatters, 0);
}

/* ---- Failure ---------------------------------------------------------------------------- */

static void all_failures_are_told_in_order(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, all_fail);
  tp_ref *slot = host_ask(h, pool, tp_integer(1), 5000);
  host_advance(h, 29);
  assert_answer(h, slot, "open");
  host_advance(h, 1);

  const tp_fault *fault = fault_of(slot);
  assert_fault(fault, "scatter-failed", 3);
  assert_int_equal(fault->asked, 3);
  assert_member(h, fault, 0, "#1");
  assert_member(h, fault, 1, "#2");
  assert_member(h, fault, 2, "#3");
  assert_ptr_equal(fault->subject, pool);
  assert_ptr_equal(tp_slot_outcome(slot).from, pool);
}

static void nobody_in_time(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, host_nothing);
  tp_ref *slot = host_ask(h, pool, tp_integer(1), 5000);
  host_advance(h, 99);
  assert_answer(h, slot, "open");
  host_advance(h, 1);

  const tp_fault *fault = fault_of(slot);
  assert_fault(fault, "scatter-timeout", 3);
  assert_int_equal(fault->asked, 3);
  assert_true(fault->budget == 100 * MS);
  for (uint32_t i = 0; i < 3; i++) {
    assert_member(h, fault, i, "ask-timeout");
    assert_ptr_equal(fault->member[i].as.fault->subject, routee(h, (int)i + 1));
    assert_true(fault->member[i].as.fault->budget == 100 * MS);
  }
  assert_ptr_equal(tp_slot_outcome(slot).from, pool);
}

static void fail_or_stay_silent(host *h, tp_job *job) {
  if (number_of(job) == 2) fail_with_number(h, job);
}

static void failures_and_time_outs_mix(void **state) {
  host *h = *state;
  tp_ref *slot = host_ask(h, spawn_pool(h, fail_or_stay_silent), tp_integer(1), 5000);
  host_advance(h, 100);
  const tp_fault *fault = fault_of(slot);
  assert_int_equal(fault->members, 3);
  assert_member(h, fault, 0, "ask-timeout");
  assert_member(h, fault, 1, "#2");
  assert_member(h, fault, 2, "ask-timeout");
}

static void an_actor_is_told_of_the_failure(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, host_nothing);
  tp_ref *a = host_spawn(h, host_record_from, "a");
  tp_tell(pool, tp_integer(1), a);
  host_advance(h, 100);
  assert_log(h, "a:scatter-timeout<pool");
}

static void no_routees_are_left(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, host_echo);
  for (int i = 1; i <= 3; i++) {
    tp_stop(routee(h, i));
    host_run(h);
  }
  tp_ref *slot = host_ask(h, pool, tp_integer(1), 60000);
  host_run(h);
  assert_fault(fault_of(slot), "scatter-empty", 0);
  assert_ptr_equal(tp_slot_outcome(slot).from, pool);
}

static void a_stopped_routee_is_not_asked(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, all_fail);
  tp_stop(routee(h, 1));
  host_run(h);
  tp_ref *slot = host_ask(h, pool, tp_integer(1), 5000);
  host_advance(h, 20);
  const tp_fault *fault = fault_of(slot);
  assert_fault(fault, "scatter-failed", 2);
  assert_member(h, fault, 0, "#2");
  assert_member(h, fault, 1, "#3");
}

static void a_routee_that_stops_is_out(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, host_stall);
  tp_ref *slot = host_ask(h, pool, tp_integer(1), 5000);
  host_run(h);
  tp_ref *third = host_keep(h, routee(h, 3));
  tp_ref_retain(third);
  for (int i = 1; i <= 3; i++) {
    assert_answer(h, slot, "open");
    tp_stop_now(routee(h, i));
    host_run(h);
  }
  const tp_fault *fault = fault_of(slot);
  assert_fault(fault, "scatter-failed", 3);
  for (uint32_t i = 0; i < 3; i++) assert_member(h, fault, i, "actor-stopped");
  assert_ptr_equal(fault->member[2].as.fault->subject, third);
}

static void fail_the_job(host *h, tp_job *job) { host_fail(h, job, host_value(h, 1)); }

static void a_routee_that_raises_times_out(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, fail_the_job);
  tp_ref *slot = host_ask(h, pool, tp_integer(1), 5000);
  host_advance(h, 99);
  assert_answer(h, slot, "open");
  host_advance(h, 1);
  assert_fault(fault_of(slot), "scatter-timeout", 3);
  assert_int_equal(tp_routees(pool, NULL, 0), 3);
}

static void raise_or_sleep(host *h, tp_job *job) {
  if (number_of(job) == 1) {
    host_fail(h, job, tp_nil());
  } else {
    host_sleep(h, job, 30, reply_with_number);
  }
}

static void one_that_raises_is_no_matter(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, raise_or_sleep);
  for (int i = 0; i < 2; i++) {
    tp_ref *slot = host_ask(h, pool, tp_integer(1), 5000);
    host_advance(h, 30);
    assert_answer(h, slot, "#2 from routee-2");
  }
}

/* ---- The router ------------------------------------------------------------------------- */

static void a_bare_tell_scatters_nothing(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, host_record);
  host_want(h, HOST_DEAD_LETTERS | 1u << TP_EVENT_WARNING | 1u << TP_EVENT_FAILED);
  host_tell(h, pool, host_value(h, 1));
  host_run(h);
  assert_log(h, "!warning:pool:no-reply-target");
}

static void the_router_is_no_reply_target(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, host_record);
  host_want(h, 1u << TP_EVENT_WARNING);
  tp_tell(pool, tp_integer(1), pool);
  host_run(h);
  assert_log(h, "!warning:pool:no-reply-target");
}

static void the_failure_of_a_router_is_not_gathered(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, host_nothing);
  tp_behavior_spec other_spec = {
      .routing = TP_ROUTE_FIRST_COMPLETED,
      .size = 1,
      .routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, host_record)}),
      .gathering = {.timeout = 100 * MS},
  };
  tp_ref *other = host_spawn_spec(h, host_user(h), other_spec, "other");
  host_want(h, 1u << TP_EVENT_WARNING);
  tp_tell(pool, tp_integer(1), other);
  host_advance(h, 1000);
  assert_log(h, "!warning:other:no-reply-target");
}

static void stopping_fails_open_scatters(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, host_stall);
  tp_ref *slots[20];
  for (int i = 0; i < 20; i++) slots[i] = host_ask(h, pool, tp_integer(i), 60000);
  host_run(h);
  assert_int_equal(host_stats(h).scatters, 20);

  tp_stop(pool);
  host_run(h);

  for (int i = 0; i < 20; i++) {
    assert_fault(fault_of(slots[i]), "scatter-stopped", 0);
    assert_ptr_equal(tp_slot_outcome(slots[i]).from, pool);
  }
  assert_int_equal(host_stats(h).scatters, 0);
  assert_false(tp_ref_alive(pool));
}

static void stopping_hard_fails_open_scatters(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, host_nothing);
  tp_ref *slot = host_ask(h, pool, tp_integer(1), 60000);
  host_run(h);
  tp_stop_now(pool);
  host_run(h);
  assert_fault(fault_of(slot), "scatter-stopped", 0);
}

static void restarting_fails_open_scatters(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, last_is_fastest);
  tp_ref *slot = host_ask(h, pool, tp_integer(1), 60000);
  host_run(h);
  host_tell(h, pool, (tp_value){.type = TP_SIGNAL, .as.integer = TP_KILL});
  host_run(h);
  assert_fault(fault_of(slot), "scatter-stopped", 0);
  assert_true(tp_ref_alive(pool));

  tp_ref *next = host_ask(h, pool, tp_integer(1), 60000);
  host_advance(h, 10);
  assert_answer(h, next, "#3 from routee-3");
}

static void terminating_fails_open_scatters(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool_of(h, (tp_behavior_spec){.receive = host_code(h, host_stall)});
  tp_ref *slot = host_ask(h, pool, tp_integer(1), 60000);
  host_run(h);
  tp_terminate(h->system);
  host_advance(h, 2000);
  assert_true(tp_terminated(h->system));
  assert_true(tp_slot_settled(slot));
  assert_true(tp_slot_outcome(slot).failed);
}

static void sleep_then_reply(host *h, tp_job *job) { host_sleep(h, job, 50, reply_with_number); }

/* Keeps its sender and returns, so that the routee takes the next request at once. */
static void keep_senders(host *h, tp_job *job) {
  tp_ref **senders = h->data;
  size_t i = 0;
  while (senders[i] != NULL) i++;
  senders[i] = tp_actor_sender(job->actor);
  tp_ref_retain(senders[i]);
}

static void hundreds_overlap(void **state) {
  enum { COUNT = 500 };
  host *h = *state;
  tp_ref **senders = host_data(h, (3 * COUNT + 1) * sizeof *senders);
  tp_ref *slots[COUNT];
  tp_ref *pool = spawn_pool(h, keep_senders);
  for (int i = 0; i < COUNT; i++) slots[i] = host_ask(h, pool, tp_integer(i), 5000);
  host_run(h);
  assert_int_equal(host_stats(h).scatters, COUNT);
  host_advance(h, 50);

  for (size_t i = 0; senders[i] != NULL; i++) {
    tp_reply(senders[i], tp_integer(7), false, routee(h, 1));
    tp_ref_release(senders[i]);
  }
  for (int i = 0; i < COUNT; i++) assert_answer(h, slots[i], "7 from routee-1");
  assert_int_equal(host_stats(h).scatters, 0);
}

static void stall_or_reply(host *h, tp_job *job) {
  if (number_of(job) == 1) {
    host_park(h, job, host_nothing);
  } else {
    reply_with_number(h, job);
  }
}

static void a_stalled_routee_holds_up_nobody(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, stall_or_reply);
  for (int i = 0; i < 10; i++) {
    tp_ref *slot = host_ask(h, pool, tp_integer(i), 5000);
    host_run(h);
    assert_answer(h, slot, "#2 from routee-2");
  }
}

/* ---- The caller ------------------------------------------------------------------------- */

static void a_caller_may_give_up_first(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, sleep_then_reply);
  host_want(h, HOST_DEAD_LETTERS);
  tp_ref *slot = host_ask(h, pool, tp_integer(1), 20);
  host_advance(h, 20);
  assert_answer(h, slot, "failed ask-timeout");
  host_advance(h, 100);
  assert_answer(h, slot, "failed ask-timeout");
  assert_int_equal(host_stats(h).scatters, 0);
  assert_log(h, "");
}

static void a_caller_may_be_gone(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, sleep_then_reply);
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_ref *slot = NULL;
  tp_tell(pool, tp_integer(1), a);
  assert_int_equal(tp_ask(pool, tp_integer(2), 5000 * MS, &slot), TP_OK);
  tp_ref_release(slot);
  host_run(h);
  tp_stop_now(a);
  host_advance(h, 200);
  assert_int_equal(host_stats(h).scatters, 0);
  assert_int_equal(host_stats(h).asks, 0);
  assert_log(h, "");
}

/* Asks the pool that it belongs to and keeps busy, so that its own request stays in its mailbox. */
static void scatter_then_stall(host *h, tp_job *job) {
  tp_tell(tp_ref_parent(job->actor), tp_integer(2), job->actor);
  host_park(h, job, host_nothing);
}

static tp_ref *spawn_pool_that_asks_itself(host *h) {
  tp_behavior_spec routee_spec = {
      .receive = host_code(h, scatter_then_stall),
      .capacity = 1,
      .overflow = TP_OVERFLOW_DROP_HEAD,
  };
  tp_behavior_spec pool_spec = {
      .routing = TP_ROUTE_FIRST_COMPLETED,
      .size = 1,
      .routee = host_behavior(h, routee_spec),
      .gathering = {.timeout = 100 * MS},
  };
  tp_ref *pool = host_spawn_spec(h, host_user(h), pool_spec, "pool");
  host_run(h);
  host_want(h, 1u << TP_EVENT_DROPPED | HOST_DEAD_LETTERS);
  host_send(h, routee(h, 1), 1);
  host_run(h);
  assert_int_equal(host_stats(h).scatters, 1);
  return pool;
}

static void an_answer_may_shed_a_request_of_its_own_scatter(void **state) {
  host *h = *state;
  tp_stop(spawn_pool_that_asks_itself(h));
  host_run(h);
  assert_log(h, "!dropped:routee-1:2:drop-head closed !dead:routee-1:scatter-stopped:stopped");
  assert_int_equal(host_stats(h).scatters, 0);
}

static void the_bound_holds_when_a_shed_request_is_answered_there(void **state) {
  host *h = *state;
  spawn_pool_that_asks_itself(h);
  host_send(h, routee(h, 1), 3);
  host_run(h);
  assert_log(h, "!dropped:routee-1:2:drop-head !dropped:routee-1:scatter-failed:drop-head");
  assert_int_equal(host_stats(h).queued, 1);
}

/* ---- Chains ----------------------------------------------------------------------------- */

struct chain {
  tp_ref *pool;
  int left;
  bool fails;
};

/* Has the pool that it belongs to ask for what it was asked, and so on; the last one answers. */
static void pass_on(host *h, tp_job *job) {
  struct chain *c = h->data;
  if (c->left-- > 0) {
    tp_forward(job->actor, c->pool, UINT32_MAX);
  } else {
    host_reply(h, job, tp_integer(7), c->fails);
  }
}

static tp_ref *ask_through_chain(host *h, int length, bool fails, bool list) {
  struct chain *c = host_data(h, sizeof *c);
  tp_behavior_spec pool = {
      .routing = TP_ROUTE_SCATTER_GATHER,
      .size = 1,
      .routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, pass_on)}),
      .gathering = {.timeout = 100 * MS, .list = list},
  };
  *c = (struct chain){host_spawn_spec(h, host_user(h), pool, "pool"), length - 1, fails};
  tp_ref *slot = host_ask(h, c->pool, tp_integer(1), 5000);
  host_run(h);
  return slot;
}

static void a_long_chain_needs_no_deep_stack(void **state) {
  tp_ref *slot = ask_through_chain(*state, 100000, false, false);
  assert_answer((host *)*state, slot, "7 from routee-1");
}

static void a_long_chain_of_failures_is_cut_short(void **state) {
  const tp_fault *fault = fault_of(ask_through_chain(*state, 100000, true, false));
  int depth = 0;
  for (; fault->members > 0; depth++) fault = fault->member[0].as.fault;
  assert_in_range(depth, 1, 100);
  assert_string_equal(fault->code, "scatter-deep");
}

static void lists_are_nested_a_hundred_deep(void **state) {
  tp_value list = tp_slot_outcome(ask_through_chain(*state, 100, false, true)).value;
  int depth = 0;
  for (; list.type == TP_BUNDLE; depth++) list = list.as.bundle->item[1];
  assert_int_equal(depth, 100);
  assert_int_equal(list.as.integer, 7);
}

static void lists_that_are_nested_deeper_fail(void **state) {
  const tp_fault *fault = fault_of(ask_through_chain(*state, 101, false, true));
  assert_fault(fault, "scatter-failed", 1);
  assert_string_equal(fault->member[0].as.fault->code, "scatter-deep");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("SG-1 the first success answers, in the routee's name", the_first_success_answers),
      HOST_TEST("SG-1 every routee is asked, in order", every_routee_is_asked_in_order),
      HOST_TEST("SG-1 an actor is answered by the routee", an_actor_is_answered_by_the_routee),
      HOST_TEST("SG-2 a quick failure does not win", a_quick_failure_does_not_win),
      HOST_TEST("SG-2 an error as a reply does not win", an_error_as_reply_does_not_win),
      HOST_TEST("SG-3 losers run on, their replies vanish", losers_run_on_in_silence),
      HOST_TEST("SG-1 nil is a success", nil_is_a_success),
      HOST_TEST("SG-1 each routee has a reply slot as its sender",
                each_request_has_a_slot_as_its_sender),
      HOST_TEST("SG-1 an answer without a name is the routee's",
                an_answer_without_a_name_is_the_routees),
      HOST_TEST("SG-12 answers that come at once are taken", answers_in_the_turn_of_the_scatter),
      HOST_TEST("SG-12 there is one answer", there_is_one_answer),
      HOST_TEST("SG-13 a settled scatter leaves no timer and no memory",
                a_settled_scatter_leaves_nothing),
      HOST_TEST("SG-3 values of losers are given back", values_are_given_back),
      HOST_TEST("RTR-5 a broadcast to a scatter router is passed on",
                broadcast_flag_scatters_nothing),
      HOST_TEST("SG-5 all failures are told, in scatter order", all_failures_are_told_in_order),
      HOST_TEST("SG-5 nobody replied in time", nobody_in_time),
      HOST_TEST("SG-5 failures and time-outs keep their places", failures_and_time_outs_mix),
      HOST_TEST("SG-5 an actor is told of the failure by the router",
                an_actor_is_told_of_the_failure),
      HOST_TEST("SG-5 no routees left fails at once", no_routees_are_left),
      HOST_TEST("SG-5 a routee that has stopped is not asked", a_stopped_routee_is_not_asked),
      HOST_TEST("ASK-7 a routee that stops is out at once", a_routee_that_stops_is_out),
      HOST_TEST("SG-7 a routee that raises times out", a_routee_that_raises_times_out),
      HOST_TEST("SG-7 one routee that raises is no matter", one_that_raises_is_no_matter),
      HOST_TEST("SG-4 a bare tell scatters nothing and warns", a_bare_tell_scatters_nothing),
      HOST_TEST("SG-4 the router itself is no reply target", the_router_is_no_reply_target),
      HOST_TEST("SG-4 the failure of another router is not gathered",
                the_failure_of_a_router_is_not_gathered),
      HOST_TEST("SG-8 stopping fails open scatters at once", stopping_fails_open_scatters),
      HOST_TEST("SG-8 a hard stop fails open scatters at once", stopping_hard_fails_open_scatters),
      HOST_TEST("SG-8 restarting fails open scatters at once", restarting_fails_open_scatters),
      HOST_TEST("SYS-5 terminating settles open scatters", terminating_fails_open_scatters),
      HOST_TEST("SG-9 hundreds of scatters overlap", hundreds_overlap),
      HOST_TEST("SG-9 a stalled routee holds up nobody", a_stalled_routee_holds_up_nobody),
      HOST_TEST("SG-3 a caller may give up first", a_caller_may_give_up_first),
      HOST_TEST("SG-12 a caller may be gone", a_caller_may_be_gone),
      HOST_TEST("SG-12 an answer may shed a request of its own scatter",
                an_answer_may_shed_a_request_of_its_own_scatter),
      HOST_TEST("MBX-2 the bound holds when the asker of what was shed is answered there",
                the_bound_holds_when_a_shed_request_is_answered_there),
      HOST_TEST("SG-1 a long chain of gathers needs no deep stack",
                a_long_chain_needs_no_deep_stack),
      HOST_TEST("SG-5 failures are nested a hundred deep", a_long_chain_of_failures_is_cut_short),
      HOST_TEST("SG-17 lists are nested a hundred deep", lists_are_nested_a_hundred_deep),
      HOST_TEST("SG-17 lists that are nested deeper fail", lists_that_are_nested_deeper_fail),
  };
  return cmocka_run_group_tests_name("scatter", tests, NULL, NULL);
}
