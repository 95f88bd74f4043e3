/* Deadlines: order, cancelling, repetition, and what the host is told to wait for. */
#include "host.h"

static size_t timers(const host *h) { return host_stats(h).timers; }

/* Starts a timer whose handle the test does not need. */
static void start(tp_ref *actor, int64_t message, tp_repeat repeat, int64_t delay,
                  int64_t interval) {
  tp_tick tick = 0;
  assert_int_equal(
      tp_timer_start(actor, tp_integer(message), repeat, delay * MS, interval * MS, &tick), TP_OK);
}

static void once(tp_ref *actor, int64_t message, int64_t delay) {
  start(actor, message, TP_ONCE, delay, 0);
}

static tp_tick start_held(tp_ref *actor, tp_value message, tp_repeat repeat, int64_t delay,
                          int64_t interval) {
  tp_tick tick = 0;
  assert_int_equal(tp_timer_start(actor, message, repeat, delay * MS, interval * MS, &tick), TP_OK);
  return tick;
}

/* ---- Order ------------------------------------------------------------------------------ */

static void fires_when_due(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record_at, "a");
  once(a, 1, 100);
  assert_int_equal(timers(h), 1);
  host_advance(h, 99);
  assert_log(h, "");
  host_advance(h, 1);
  assert_log(h, "a:1@100");
  assert_int_equal(timers(h), 0);
}

static void fires_in_order_of_due_time(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  once(a, 3, 30);
  once(a, 1, 10);
  once(a, 2, 20);
  once(a, 4, 30);
  tp_advance(h->system, tp_now(h->system) + 100 * MS);
  host_run(h);
  assert_log(h, "a:1 a:2 a:3 a:4");
}

static void equal_times_fire_in_order_of_start(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  once(a, 1, 20);
  host_advance(h, 10);
  for (int i = 2; i <= 8; i++) once(a, i, 10);
  host_advance(h, 10);
  assert_log(h, "a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8");
}

static void other_deadlines_keep_their_place(void **state) {
  host *h = *state;
  char token[] = "slot";
  tp_ref *a = host_spawn(h, host_record, "a");
  host_run(h);
  tp_ref *slot = host_slot(h, 20, true);
  tp_slot_notify(slot, token);
  once(a, 1, 20);
  tp_tick tick = 0;
  tp_schedule(h->system, host_code(h, host_nothing), 20 * MS, 0, &tick);
  host_advance(h, 20);
  assert_false(tp_tick_active(h->system, tick));
  assert_int_equal(host_count(h, "a:1"), 1);
  assert_int_equal(host_count(h, "resumed:slot"), 1);
}

static void a_delay_of_zero_fires_in_the_next_turn(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record_at, "a");
  host_run(h);
  once(a, 1, 0);
  assert_true(tp_next_deadline(h->system) <= tp_now(h->system));
  host_advance(h, 0);
  assert_log(h, "a:1@0");
}

static void long_delays_work(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_tick never = 0;
  once(a, 1, INT64_C(1) << 32);
  assert_int_equal(tp_timer_start(a, tp_integer(2), TP_ONCE, TP_NEVER - 1, 0, &never), TP_OK);

  host_advance(h, (INT64_C(1) << 32) - 1);
  assert_log(h, "");
  host_advance(h, 1);
  assert_log(h, "a:1");
  assert_true(tp_tick_cancel(h->system, never));
}

typedef struct planned {
  int64_t due;
  int64_t number;
  bool cancelled;
  tp_tick tick;
} planned;

static int by_due_time(const void *left, const void *right) {
  const planned *l = left;
  const planned *r = right;
  if (l->due != r->due) return l->due < r->due ? -1 : 1;
  return l->number < r->number ? -1 : 1;
}

enum { RANDOM_TIMERS = 10000 };

typedef struct firings {
  planned plan[RANDOM_TIMERS];
  int64_t number[RANDOM_TIMERS];
  int64_t time[RANDOM_TIMERS];
  size_t count;
} firings;

static void note_firing(host *h, tp_job *job) {
  firings *f = h->data;
  f->number[f->count] = job->envelope.message.as.integer;
  f->time[f->count++] = host_elapsed(h);
}

static void agrees_with_a_sorted_list(void **state) {
  enum { COUNT = RANDOM_TIMERS, STEPS = 100 };
  host *h = *state;
  firings *fired = host_data(h, sizeof *fired);
  planned *plan = fired->plan;
  tp_ref *a = host_spawn(h, note_firing, "a");

  for (size_t i = 0; i < COUNT; i++) {
    int64_t delay = (int64_t)tp_random(h->system, 500);
    plan[i] = (planned){.due = host_elapsed(h) + delay, .number = (int64_t)i};
    plan[i].tick = start_held(a, tp_integer((int64_t)i), TP_ONCE, delay, 0);
    if (tp_random(h->system, 3) == 0) {
      size_t victim = (size_t)tp_random(h->system, i + 1);
      if (tp_tick_cancel(h->system, plan[victim].tick)) plan[victim].cancelled = true;
    }
    if (i % (COUNT / STEPS) == 0) host_advance(h, 7);
  }
  host_advance(h, 1000);

  size_t expected = 0;
  qsort(plan, COUNT, sizeof *plan, by_due_time);
  for (size_t i = 0; i < COUNT; i++) {
    if (plan[i].cancelled) continue;
    assert_int_equal(fired->number[expected], plan[i].number);
    assert_int_equal(fired->time[expected], plan[i].due);
    expected++;
  }
  assert_int_equal(fired->count, expected);
  assert_in_range(expected, COUNT / 2, COUNT - 100);
  assert_int_equal(timers(h), 0);
}

/* ---- Cancelling ------------------------------------------------------------------------- */

static void a_cancelled_timer_does_not_fire(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_tick tick = start_held(a, host_value(h, 1), TP_ONCE, 10, 0);
  assert_true(tp_tick_active(h->system, tick));
  assert_true(tp_tick_cancel(h->system, tick));
  assert_false(tp_tick_active(h->system, tick));
  assert_int_equal(timers(h), 0);
  assert_false(tp_tick_cancel(h->system, tick));

  host_advance(h, 10);
  assert_log(h, "");
}

static void a_queued_tick_can_be_cancelled(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  host_run(h);
  tp_tick tick = start_held(a, host_value(h, 1), TP_ONCE, 10, 0);
  host_send(h, a, 2);
  tp_advance(h->system, tp_now(h->system) + 10 * MS);

  assert_true(tp_tick_active(h->system, tick));
  assert_true(tp_tick_cancel(h->system, tick));
  host_run(h);

  assert_log(h, "a:2");
}

static void a_fired_timer_cannot_be_cancelled(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_tick tick = start_held(a, tp_integer(1), TP_ONCE, 10, 0);
  host_advance(h, 10);
  assert_false(tp_tick_active(h->system, tick));
  assert_false(tp_tick_cancel(h->system, tick));
  assert_log(h, "a:1");
}

static void a_name_stands_for_one_timer_only(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_tick over = start_held(a, host_value(h, 1), TP_ONCE, 10, 0);
  assert_true(tp_tick_cancel(h->system, over));
  tp_tick other = start_held(a, host_value(h, 2), TP_ONCE, 10, 0);
  assert_false(tp_tick_active(h->system, over));
  assert_false(tp_tick_cancel(h->system, over));
  host_advance(h, 10);
  assert_log(h, "a:#2");
  assert_false(tp_tick_cancel(h->system, other));
  assert_false(tp_tick_cancel(h->system, 0));
  assert_false(tp_tick_cancel(h->system, UINT64_MAX));
}

static void cancel_in_handler(host *h, tp_job *job) {
  host_record_at(h, job);
  if (host_elapsed(h) >= 30)
    host_log(h, tp_tick_cancel(h->system, job->tick) ? "cancelled" : "kept");
}

static void a_repeating_timer_can_be_cancelled_by_its_handler(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, cancel_in_handler, "a");
  start(a, 1, TP_FIXED_RATE, 10, 10);
  tp_ref *b = host_spawn(h, cancel_in_handler, "b");
  start(b, 1, TP_FIXED_DELAY, 16, 16);
  host_advance(h, 100);
  assert_log(h, "a:1@10 b:1@16 a:1@20 a:1@30 cancelled b:1@32 cancelled");
  assert_int_equal(timers(h), 0);
}

static void cancelled_timers_leave_nothing(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  host_run(h);
  size_t before = host_stats(h).bytes;

  for (int i = 0; i < 100000; i++) {
    tp_tick tick = start_held(a, host_value(h, i), TP_ONCE, 1000000, 0);
    assert_true(tp_tick_cancel(h->system, tick));
  }

  assert_in_range(host_stats(h).bytes, 0, before + 12288);
  assert_true(tp_next_deadline(h->system) == TP_NEVER);
}

/* ---- With the incarnation --------------------------------------------------------------- */

static void ends_with_a_restart(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_fragile, "a");
  host_run(h);
  tp_tick waiting = start_held(a, host_value(h, 1), TP_ONCE, 50, 0);
  tp_tick queued = start_held(a, host_value(h, 2), TP_FIXED_RATE, 10, 10);
  host_send(h, a, -1);
  tp_advance(h->system, tp_now(h->system) + 10 * MS);
  host_advance(h, 100);

  assert_log(h, "a:-1");
  assert_false(tp_tick_active(h->system, waiting));
  assert_false(tp_tick_active(h->system, queued));
  assert_int_equal(timers(h), 0);
}

static void ends_with_a_stop(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  host_want(h, HOST_DEAD_LETTERS);
  host_run(h);
  tp_tick waiting = start_held(a, host_value(h, 1), TP_ONCE, 50, 0);
  tp_tick queued = start_held(a, host_value(h, 2), TP_ONCE, 10, 0);
  tp_stop(a);
  tp_advance(h->system, tp_now(h->system) + 10 * MS);
  host_advance(h, 100);

  assert_log(h, "");
  assert_false(tp_tick_active(h->system, waiting));
  assert_false(tp_tick_active(h->system, queued));
  assert_int_equal(timers(h), 0);
}

static void a_stopped_actor_starts_no_timer(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_stop(a);
  host_run(h);

  tp_tick tick = 0;
  assert_int_equal(tp_timer_start(a, host_value(h, 1), TP_ONCE, 0, 0, &tick), TP_ESTOPPED);
  assert_int_equal(tick, 0);
}

static void a_stopping_actor_starts_no_timer(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_behavior_spec spec = {.code = host_code(h, host_stall), .hooks = TP_HOOK_POST_STOP};
  host_spawn_spec(h, a, spec, "b");
  host_run(h);
  tp_stop(a);
  host_run(h);
  assert_true(tp_ref_alive(a));

  tp_tick tick = 0;
  assert_int_equal(tp_timer_start(a, host_value(h, 1), TP_ONCE, 0, 0, &tick), TP_ESTOPPED);
  assert_int_equal(tick, 0);
}

static void start_timer_in_hook(host *h, tp_job *job) {
  (void)h;
  assert_string_equal(host_hook(job), "pre_start");
  start(job->actor, 1, TP_FIXED_RATE, 10, 10);
}

static void starts_once_for_each_incarnation(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .receive = host_code(h, host_fragile),
      .code = host_code(h, start_timer_in_hook),
      .hooks = TP_HOOK_PRE_START,
  };
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  for (int i = 0; i < 5; i++) host_send(h, a, -1);
  host_run(h);
  host_forget(h);

  host_advance(h, 50);
  assert_log(h, "a:1 a:1 a:1 a:1 a:1");
}

/* ---- Repetition ------------------------------------------------------------------------- */

static void sleep_in_handler(host *h, tp_job *job) {
  host_record_at(h, job);
  host_sleep(h, job, 30, host_nothing);
}

static void fixed_delay_counts_from_the_handling(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, sleep_in_handler, "a");
  start(a, 1, TP_FIXED_DELAY, 50, 100);
  host_advance(h, 450);
  assert_log(h, "a:1@50 a:1@180 a:1@310 a:1@440");
}

static void fixed_rate_does_not_drift(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, sleep_in_handler, "a");
  start(a, 1, TP_FIXED_RATE, 50, 100);
  host_advance(h, 450);
  assert_log(h, "a:1@50 a:1@150 a:1@250 a:1@350 a:1@450");
}

static void fixed_rate_skips_what_it_missed(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record_at, "a");
  host_run(h);
  start(a, 1, TP_FIXED_RATE, 100, 100);

  tp_advance(h->system, tp_now(h->system) + 1050 * MS);
  host_run(h);
  assert_log(h, "a:1@1050");
  host_advance(h, 150);
  assert_log(h, "a:1@1100 a:1@1200");
}

static void sleep_long_in_handler(host *h, tp_job *job) {
  host_record_at(h, job);
  host_sleep(h, job, 250, host_nothing);
}

static void fixed_rate_queues_one_tick_at_most(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, sleep_long_in_handler, "a");
  start(a, 1, TP_FIXED_RATE, 100, 100);
  host_advance(h, 1080);
  assert_log(h, "a:1@100 a:1@350 a:1@600 a:1@850");
  assert_int_equal(host_stats(h).queued, 1);
}

/* ---- The host's side -------------------------------------------------------------------- */

static void tells_the_next_deadline(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  host_run(h);
  assert_true(tp_next_deadline(h->system) == TP_NEVER);

  once(a, 1, 50);
  assert_true(tp_next_deadline(h->system) == 1050 * MS);
  tp_tick sooner = start_held(a, tp_integer(2), TP_ONCE, 20, 0);
  assert_true(tp_next_deadline(h->system) == 1020 * MS);
  assert_true(tp_tick_cancel(h->system, sooner));
  assert_true(tp_next_deadline(h->system) == 1050 * MS);

  host_advance(h, 50);
  assert_true(tp_next_deadline(h->system) == TP_NEVER);
}

static void the_clock_never_moves_back(void **state) {
  host *h = *state;
  tp_advance(h->system, 1500 * MS);
  tp_advance(h->system, 1200 * MS);
  assert_true(tp_now(h->system) == 1500 * MS);
}

static void gives_the_tick_with_the_message(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  host_run(h);
  tp_tick tick = start_held(a, host_value(h, 1), TP_ONCE, 0, 0);
  host_send(h, a, 2);
  tp_advance(h->system, tp_now(h->system));

  tp_job job;
  for (int i = 0; i < 2; i++) {
    assert_true(tp_next(h->system, &job));
    assert_int_equal(job.kind, TP_JOB_RECEIVE);
    bool from_timer = job.envelope.message.type == TP_HOST;
    assert_int_equal(job.tick, from_timer ? tick : 0);
    tp_done(&job);
  }
}

static void log_time(host *h, tp_job *job) {
  (void)job;
  host_log(h, "tick@%lld", (long long)host_elapsed(h));
}

static void a_function_is_called_once(void **state) {
  host *h = *state;
  tp_tick tick = 0;
  assert_int_equal(tp_schedule(h->system, host_code(h, log_time), 10 * MS, 0, &tick), TP_OK);
  host_advance(h, 100);
  assert_log(h, "tick@10");
  assert_false(tp_tick_cancel(h->system, tick));
}

static void a_function_is_called_again_and_again(void **state) {
  host *h = *state;
  tp_tick tick = 0;
  tp_schedule(h->system, host_code(h, log_time), 10 * MS, 20 * MS, &tick);
  host_advance(h, 55);
  assert_log(h, "tick@10 tick@30 tick@50");
  assert_true(tp_tick_cancel(h->system, tick));
  host_advance(h, 100);
  assert_log(h, "");
}

static void a_due_function_can_be_cancelled(void **state) {
  host *h = *state;
  tp_tick tick = 0;
  tp_schedule(h->system, host_code(h, log_time), 10 * MS, 0, &tick);
  tp_advance(h->system, tp_now(h->system) + 10 * MS);
  assert_true(tp_tick_cancel(h->system, tick));
  host_run(h);
  assert_log(h, "");
}

static void log_and_fail(host *h, tp_job *job) {
  log_time(h, job);
  host_fail(h, job, host_value(h, 1));
}

static void a_function_that_fails_is_called_again(void **state) {
  host *h = *state;
  tp_tick tick = 0;
  tp_schedule(h->system, host_code(h, log_and_fail), 10 * MS, 10 * MS, &tick);
  host_advance(h, 30);
  assert_log(h, "tick@10 tick@20 tick@30");
  tp_tick_cancel(h->system, tick);
}

static void cancel_oneself(host *h, tp_job *job) {
  tp_tick *tick = h->data;
  log_time(h, job);
  tp_tick_cancel(h->system, *tick);
}

static void a_function_can_cancel_itself(void **state) {
  host *h = *state;
  tp_tick *tick = host_data(h, sizeof *tick);
  tp_schedule(h->system, host_code(h, cancel_oneself), 10 * MS, 10 * MS, tick);
  host_advance(h, 100);
  assert_log(h, "tick@10");
  assert_int_equal(timers(h), 0);
}

static void a_terminated_system_has_no_timers(void **state) {
  host *h = *state;
  tp_tick tick = 0;
  tp_schedule(h->system, host_code(h, log_time), 10 * MS, 10 * MS, &tick);
  tp_terminate(h->system);
  host_run(h);

  assert_true(tp_terminated(h->system));
  assert_true(tp_next_deadline(h->system) == TP_NEVER);
  assert_false(tp_tick_active(h->system, tick));
}

static void count_call(host *h, tp_job *job) {
  (void)job;
  int64_t *calls = h->data;
  ++*calls;
}

static void a_system_can_be_freed_with_timers_that_are_due(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_tick ticks[4];
  for (int i = 0; i < 4; i++) {
    tp_schedule(h->system, host_code(h, log_time), 10 * MS, i % 2 * 10 * MS, &ticks[i]);
    start(a, i, i % 2 == 0 ? TP_ONCE : TP_FIXED_DELAY, i * 5, 10);
  }
  tp_advance(h->system, tp_now(h->system) + 10 * MS);
  tp_tick_cancel(h->system, ticks[0]);
  tp_tick_cancel(h->system, ticks[1]);
  h->abrupt = true;
}

static void many_timers_leave_nothing(void **state) {
  enum { COUNT = 100000 };
  host *h = *state;
  int64_t *calls = host_data(h, sizeof *calls);
  size_t before = host_stats(h).bytes;
  tp_tick *ticks = calloc(COUNT, sizeof *ticks);
  assert_non_null(ticks);
  for (int i = 0; i < COUNT; i++) {
    tp_schedule(h->system, host_code(h, count_call), i % 100 * MS, 0, &ticks[i]);
  }
  assert_in_range(host_stats(h).bytes, 0, before + COUNT * 70);
  for (int i = 0; i < COUNT; i += 2) assert_true(tp_tick_cancel(h->system, ticks[i]));
  host_advance(h, 100);
  assert_int_equal(*calls, COUNT / 2);
  assert_in_range(host_stats(h).bytes, 0, before + 12288);
  free(ticks);
}

static void sleep_in_function(host *h, tp_job *job) { host_sleep(h, job, 50, host_nothing); }

static void a_system_can_be_freed_while_a_function_waits(void **state) {
  host *h = *state;
  tp_tick tick = 0;
  tp_schedule(h->system, host_code(h, sleep_in_function), 0, 10 * MS, &tick);
  host_advance(h, 1);
  h->abrupt = true;
}

static void time_can_pass_without_deadlines(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record_at, "a");
  host_run(h);
  once(a, 1, 10);
  tp_set_now(h->system, tp_now(h->system) + 20 * MS);
  once(a, 2, 10);
  host_run(h);
  assert_log(h, "");
  assert_true(tp_next_deadline(h->system) == 1010 * MS);

  host_advance(h, 10);
  assert_log(h, "a:1@20 a:2@30");
  tp_set_now(h->system, 0);
  assert_int_equal(host_elapsed(h), 30);
}

static void a_function_that_is_due_waits_for_no_turn(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  host_run(h);
  tp_tick tick = 0;
  for (int i = 1; i <= 4; i++) host_send(h, a, i);
  tp_schedule(h->system, host_code(h, log_time), 0, 0, &tick);
  host_run_one(h);
  tp_advance(h->system, tp_now(h->system));
  host_run(h);
  assert_log(h, "a:1 tick@0 a:2 a:3 a:4");
}

static void fixed_delay_goes_on_after_a_failure(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .receive = host_code(h, host_fragile),
      .own = {.given = true, .directive = TP_DIRECTIVE_RESUME},
  };
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  start(a, -1, TP_FIXED_DELAY, 10, 10);
  host_advance(h, 30);
  assert_log(h, "a:-1 a:-1 a:-1");
}

static void a_terminating_system_schedules_nothing(void **state) {
  host *h = *state;
  tp_tick tick = 0;
  tp_terminate(h->system);
  size_t before = host_values_alive(h);
  assert_int_equal(tp_schedule(h->system, host_code(h, log_time), 0, 0, &tick), TP_ETERMINATED);
  assert_int_equal(tick, 0);
  assert_int_equal(host_values_alive(h), before);
}

static void any_function_that_is_due_can_be_cancelled(void **state) {
  enum { COUNT = 4 };
  host *h = *state;
  int64_t *calls = host_data(h, sizeof *calls);
  for (int victim = 0; victim < COUNT; victim++) {
    tp_tick ticks[COUNT];
    tp_tick late = 0;
    for (int i = 0; i < COUNT; i++)
      tp_schedule(h->system, host_code(h, count_call), 0, 0, &ticks[i]);
    tp_advance(h->system, tp_now(h->system));
    assert_true(tp_tick_cancel(h->system, ticks[victim]));
    tp_schedule(h->system, host_code(h, count_call), 0, 0, &late);
    tp_advance(h->system, tp_now(h->system));
    *calls = 0;
    host_run(h);
    assert_int_equal(*calls, COUNT);
  }
}

/* ---- Receive timeouts ------------------------------------------------------------------- */

static void idleness_is_told_again_and_again(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record_at, "a");
  host_run(h);
  assert_int_equal(tp_set_receive_timeout(a, 10 * MS), TP_OK);
  host_advance(h, 5);
  host_send(h, a, 1);
  host_advance(h, 30);
  assert_log(h, "a:1@5 a:idle@15 a:idle@25 a:idle@35");
}

static void a_new_setting_makes_it_stale(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  host_run(h);
  (void)tp_set_receive_timeout(a, 10 * MS);
  tp_advance(h->system, tp_now(h->system) + 10 * MS);
  (void)tp_set_receive_timeout(a, 10 * MS);
  tp_advance(h->system, tp_now(h->system) + 10 * MS);
  host_run(h);
  assert_log(h, "a:idle");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("TMR-7 idleness is told again and again", idleness_is_told_again_and_again),
      HOST_TEST("TMR-7 a new setting makes a queued timeout stale", a_new_setting_makes_it_stale),
      HOST_TEST("TMR-5 a timer fires when it is due, not before", fires_when_due),
      HOST_TEST("TMR-5 timers fire in the order of their due times", fires_in_order_of_due_time),
      HOST_TEST("TMR-5 equal times fire in the order of their starts",
                equal_times_fire_in_order_of_start),
      HOST_TEST("TMR-5 deadlines of all kinds take effect", other_deadlines_keep_their_place),
      HOST_TEST("TMR-4 a delay of 0 fires in the next turn",
                a_delay_of_zero_fires_in_the_next_turn),
      HOST_TEST("TMR-4 long delays work", long_delays_work),
      HOST_TEST("TMR-5 ten thousand timers agree with a sorted list", agrees_with_a_sorted_list),
      HOST_TEST("TMR-2 a cancelled timer does not fire", a_cancelled_timer_does_not_fire),
      HOST_TEST("TMR-2 a queued tick can be cancelled", a_queued_tick_can_be_cancelled),
      HOST_TEST("TMR-6 cancelling what has fired prevents nothing",
                a_fired_timer_cannot_be_cancelled),
      HOST_TEST("TMR-6 a name stands for one timer only", a_name_stands_for_one_timer_only),
      HOST_TEST("TMR-2 a handler can cancel the timer that called it",
                a_repeating_timer_can_be_cancelled_by_its_handler),
      HOST_TEST("TMR-2 cancelled timers leave no memory", cancelled_timers_leave_nothing),
      HOST_TEST("TMR-3 timers end with a restart, queued ticks too", ends_with_a_restart),
      HOST_TEST("TMR-3 timers end with a stop, and leave no dead letters", ends_with_a_stop),
      HOST_TEST("TMR-3 a stopped actor starts no timer", a_stopped_actor_starts_no_timer),
      HOST_TEST("TMR-3 nor does one that is stopping", a_stopping_actor_starts_no_timer),
      HOST_TEST("TMR-3 five restarts do not make six timers", starts_once_for_each_incarnation),
      HOST_TEST("TMR-3 fixed delay counts from the handling", fixed_delay_counts_from_the_handling),
      HOST_TEST("TMR-3 fixed rate does not drift", fixed_rate_does_not_drift),
      HOST_TEST("TMR-3 fixed rate skips what it missed", fixed_rate_skips_what_it_missed),
      HOST_TEST("TMR-3 fixed rate queues one tick at most", fixed_rate_queues_one_tick_at_most),
      HOST_TEST("SYS-10 the next deadline is known", tells_the_next_deadline),
      HOST_TEST("TMR-5 the clock never moves back", the_clock_never_moves_back),
      HOST_TEST("TMR-1 a timer's message comes with its handle", gives_the_tick_with_the_message),
      HOST_TEST("TMR-6 a scheduled function is called once", a_function_is_called_once),
      HOST_TEST("TMR-6 a scheduled function is called again and again",
                a_function_is_called_again_and_again),
      HOST_TEST("TMR-6 a function that is due can still be cancelled",
                a_due_function_can_be_cancelled),
      HOST_TEST("TMR-6 a repeating function that fails goes on",
                a_function_that_fails_is_called_again),
      HOST_TEST("TMR-6 a repeating function can cancel itself", a_function_can_cancel_itself),
      HOST_TEST("TMR-6 a terminated system has no timers", a_terminated_system_has_no_timers),
      HOST_TEST("SYS-8 a system can be freed while a function of a timer waits",
                a_system_can_be_freed_while_a_function_waits),
      HOST_TEST("SYS-8 a system can be freed with timers that are due",
                a_system_can_be_freed_with_timers_that_are_due),
      HOST_TEST("TMR-6 many timers leave no memory", many_timers_leave_nothing),
      HOST_TEST("TMR-5 time can pass in a job without deadlines", time_can_pass_without_deadlines),
      HOST_TEST("DISP-2 a function that is due waits for no actor's turn",
                a_function_that_is_due_waits_for_no_turn),
      HOST_TEST("TMR-3 fixed delay goes on after a failure that is resumed",
                fixed_delay_goes_on_after_a_failure),
      HOST_TEST("TMR-6 a terminating system schedules nothing",
                a_terminating_system_schedules_nothing),
      HOST_TEST("TMR-6 any of the functions that are due can be cancelled",
                any_function_that_is_due_can_be_cancelled),
  };
  return cmocka_run_group_tests_name("timer", tests, NULL, NULL);
}
