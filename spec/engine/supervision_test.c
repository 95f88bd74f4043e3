/* Failures: who decides, what a directive does, and how many restarts a child is granted. */
#include "host.h"

static tp_supervision directive(tp_directive d) {
  return (tp_supervision){
      .given = true,
      .directive = d,
      .max_restarts = -1,
      .within = TP_NEVER,
  };
}

static tp_supervision restarts(int64_t count, tp_time within) {
  tp_supervision s = directive(TP_DIRECTIVE_RESTART);
  s.max_restarts = count;
  s.within = within;
  return s;
}

static tp_supervision decided_by(host *h, host_step step) {
  tp_supervision s = directive(TP_DIRECTIVE_STOP);
  s.decider = host_code(h, step);
  return s;
}

static tp_ref *spawn_fragile(host *h, tp_ref *parent, const char *name, tp_supervision own) {
  tp_behavior_spec spec = {.receive = host_code(h, host_fragile), .own = own};
  return host_spawn_spec(h, parent, spec, name);
}

static tp_ref *spawn_hooked(host *h, tp_ref *parent, const char *name, tp_supervision own,
                            uint32_t hooks) {
  tp_behavior_spec spec = {.receive = host_code(h, host_fragile), .own = own, .hooks = hooks};
  return host_spawn_spec(h, parent, spec, name);
}

static void send_all(host *h, tp_ref *target, const int *numbers, size_t count) {
  for (size_t i = 0; i < count; i++) host_send(h, target, numbers[i]);
}

#define SEND(h, target, ...)                                                                       \
  send_all(h, target, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

/* ---- Directives ------------------------------------------------------------------------- */

/* Records the message with the one before it, which is state of the incarnation. */
static void record_with_last(host *h, tp_job *job) {
  tp_value message = job->envelope.message;
  char last[32];
  host_text(h, tp_actor_state(job->actor), last, sizeof last);
  host_log(h, "%s>%lld", last, (long long)message.as.integer);
  tp_actor_set_state(job->actor, host_value(h, message.as.integer));
  if (message.as.integer < 0) host_fail(h, job, message);
}

static tp_ref *spawn_recorder(host *h, tp_supervision own) {
  tp_behavior_spec spec = {.receive = host_code(h, record_with_last), .own = own};
  return host_spawn_spec(h, host_user(h), spec, "a");
}

static void restart_begins_anew(void **state) {
  host *h = *state;
  tp_ref *a = spawn_recorder(h, directive(TP_DIRECTIVE_RESTART));
  SEND(h, a, 1, -1, 2, 3);
  host_run(h);
  assert_log(h, "nil>1 #1>-1 nil>2 #2>3");
}

static void resume_keeps_the_state(void **state) {
  host *h = *state;
  tp_ref *a = spawn_recorder(h, directive(TP_DIRECTIVE_RESUME));
  SEND(h, a, 1, -1, 2, 3);
  host_run(h);
  assert_log(h, "nil>1 #1>-1 #-1>2 #2>3");
}

static void resume_runs_no_hooks(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, host_user(h), "a", directive(TP_DIRECTIVE_RESUME), HOST_ALL_HOOKS);
  SEND(h, a, -1, 2);
  host_run(h);
  assert_log(h, "a:pre_start a:-1 a:2");
}

static void stop_takes_children_first(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, host_user(h), "a", directive(TP_DIRECTIVE_STOP), TP_HOOK_POST_STOP);
  spawn_hooked(h, a, "b", directive(TP_DIRECTIVE_STOP), TP_HOOK_POST_STOP);
  host_want(h, HOST_DEAD_LETTERS);
  host_run(h);

  SEND(h, a, 1, -1, 2, 3);
  host_run(h);

  assert_log(h, "a:1 a:-1 b:post_stop a:post_stop !dead:a:2:stopped !dead:a:3:stopped");
  assert_false(tp_ref_alive(a));
}

static void escalate_fails_the_parent(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, host_user(h), "a", directive(TP_DIRECTIVE_RESTART), HOST_ALL_HOOKS);
  tp_ref *b = spawn_hooked(h, a, "b", directive(TP_DIRECTIVE_ESCALATE), HOST_ALL_HOOKS);
  host_run(h);
  host_forget(h);
  host_want(h, 1u << TP_EVENT_FAILED);

  host_send(h, b, -7);
  host_run(h);

  assert_log(h, "b:-7 !failed:b:-7:escalate !failed:a:-7:restart "
                "a:pre_restart b:post_stop a:post_restart");
  assert_false(tp_ref_alive(b));
}

static void escalation_past_the_top_stops_one_actor(void **state) {
  host *h = *state;
  tp_supervision escalate = directive(TP_DIRECTIVE_ESCALATE);
  tp_ref *a = spawn_fragile(h, host_user(h), "a", escalate);
  tp_ref *b = spawn_fragile(h, a, "b", escalate);
  tp_ref *sibling = spawn_fragile(h, host_user(h), "sibling", escalate);

  host_send(h, b, -1);
  host_run(h);
  host_send(h, sibling, 1);
  host_run(h);

  assert_log(h, "b:-1 sibling:1");
  assert_false(tp_ref_alive(a));
  assert_false(tp_ref_alive(b));
  assert_false(tp_terminating(h->system));
}

static void escalates_as_far_as_it_goes(void **state) {
  host *h = *state;
  tp_supervision escalate = directive(TP_DIRECTIVE_ESCALATE);
  tp_ref *a = spawn_hooked(h, host_user(h), "a", directive(TP_DIRECTIVE_RESTART), HOST_ALL_HOOKS);
  tp_ref *b = spawn_fragile(h, a, "b", escalate);
  tp_ref *c = spawn_fragile(h, b, "c", escalate);
  host_run(h);
  host_forget(h);

  host_send(h, c, -1);
  host_run(h);

  assert_log(h, "c:-1 a:pre_restart a:post_restart");
  assert_false(tp_ref_alive(b));
  assert_false(tp_ref_alive(c));
}

/* ---- All for one ------------------------------------------------------------------------ */

static tp_ref *spawn_sibling(host *h, const char *name, tp_supervision own) {
  own.all_for_one = true;
  return spawn_hooked(h, host_user(h), name, own, HOST_ALL_HOOKS);
}

static void all_restart_in_order(void **state) {
  host *h = *state;
  tp_ref *a = spawn_sibling(h, "a", directive(TP_DIRECTIVE_RESTART));
  tp_ref *b = spawn_sibling(h, "b", directive(TP_DIRECTIVE_RESTART));
  tp_ref *c = spawn_sibling(h, "c", directive(TP_DIRECTIVE_RESTART));
  host_run(h);
  host_forget(h);

  host_send(h, b, -1);
  host_send(h, c, 3);
  host_send(h, a, 1);
  host_run(h);

  assert_log(h, "b:-1 a:pre_restart a:post_restart a:1 b:pre_restart b:post_restart "
                "c:pre_restart c:post_restart c:3");
}

static void decide_aloud(host *h, tp_job *job) {
  host_log(h, "decide");
  host_decide(h, job, TP_DIRECTIVE_RESTART);
}

/* Both are killed before either has its turn: the restart that they share comes before the second
 * failure, and is the answer to it too. */
static void siblings_may_fail_together(void **state) {
  host *h = *state;
  tp_ref *a = spawn_sibling(h, "a", decided_by(h, decide_aloud));
  tp_ref *b = spawn_sibling(h, "b", decided_by(h, decide_aloud));
  host_run(h);
  host_forget(h);

  tp_kill(a);
  tp_kill(b);
  host_run(h);
  host_send(h, a, 1);
  host_send(h, b, 2);
  host_run(h);

  assert_int_equal(host_count(h, "decide"), 1);
  assert_int_equal(host_count(h, "a:post_restart"), 1);
  assert_int_equal(host_count(h, "b:post_restart"), 1);
  assert_int_equal(host_count(h, "a:1") + host_count(h, "b:2"), 2);
}

static void all_stop_when_restarts_are_used_up(void **state) {
  host *h = *state;
  tp_ref *a = spawn_sibling(h, "a", restarts(0, TP_NEVER));
  tp_ref *b = spawn_sibling(h, "b", directive(TP_DIRECTIVE_RESTART));
  tp_ref *stopping = spawn_sibling(h, "stopping", directive(TP_DIRECTIVE_RESTART));
  host_run(h);
  host_forget(h);

  tp_stop_now(stopping);
  host_send(h, a, -1);
  host_run(h);

  assert_log(h, "stopping:post_stop a:-1 a:post_stop b:post_stop");
  assert_false(tp_ref_alive(a) || tp_ref_alive(b));
}

/* ---- Who decides ------------------------------------------------------------------------ */

static void the_default_restarts_ten_times(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, host_user(h), "a", (tp_supervision){0}, TP_HOOK_POST_RESTART);
  for (int i = 0; i < 10; i++) host_send(h, a, -1);
  host_run(h);
  assert_int_equal(host_count(h, "a:post_restart"), 10);
  assert_true(tp_ref_alive(a));

  host_send(h, a, -1);
  host_run(h);
  assert_int_equal(host_count(h, "a:post_restart"), 10);
  assert_false(tp_ref_alive(a));
}

static void the_default_forgets_after_a_minute(void **state) {
  host *h = *state;
  tp_ref *a = spawn_fragile(h, host_user(h), "a", (tp_supervision){0});
  for (int i = 0; i < 10; i++) host_send(h, a, -1);
  host_advance(h, 60001);

  for (int i = 0; i < 10; i++) host_send(h, a, -1);
  host_run(h);

  assert_true(tp_ref_alive(a));
}

static void the_parents_rule_beats_the_default(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.children = directive(TP_DIRECTIVE_STOP)};
  tp_ref *parent = host_spawn_spec(h, host_user(h), spec, "parent");
  tp_ref *a = spawn_fragile(h, parent, "a", (tp_supervision){0});

  host_send(h, a, -1);
  host_run(h);

  assert_false(tp_ref_alive(a));
}

static void the_childs_rule_beats_the_parents(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.children = directive(TP_DIRECTIVE_STOP)};
  tp_ref *parent = host_spawn_spec(h, host_user(h), spec, "parent");
  tp_ref *a = spawn_fragile(h, parent, "a", directive(TP_DIRECTIVE_RESUME));

  SEND(h, a, -1, 2);
  host_run(h);

  assert_log(h, "a:-1 a:2");
}

static void decide_by_reason(host *h, tp_job *job) {
  char name[16];
  char reason[32];
  tp_ref_name(job->actor, name, sizeof name);
  host_text(h, job->reason, reason, sizeof reason);
  host_log(h, "decide:%s:%s", name, reason);
  host_decide(h, job, job->reason.as.integer == -1 ? TP_DIRECTIVE_RESUME : TP_DIRECTIVE_STOP);
}

static void a_decider_picks_the_directive(void **state) {
  host *h = *state;
  tp_ref *a = spawn_fragile(h, host_user(h), "a", decided_by(h, decide_by_reason));
  SEND(h, a, -1, 2, -3, 4);
  host_run(h);

  assert_log(h, "a:-1 decide:a:-1 a:2 a:-3 decide:a:-3");
  assert_false(tp_ref_alive(a));
}

static void decide_restart(host *h, tp_job *job) { host_decide(h, job, TP_DIRECTIVE_RESTART); }

static void a_deciders_restarts_are_counted(void **state) {
  host *h = *state;
  tp_supervision own = decided_by(h, decide_restart);
  own.max_restarts = 2;
  tp_ref *a = spawn_hooked(h, host_user(h), "a", own, TP_HOOK_POST_RESTART);
  SEND(h, a, -1, -1);
  host_run(h);
  assert_int_equal(host_count(h, "a:post_restart"), 2);

  host_send(h, a, -1);
  host_run(h);
  assert_int_equal(host_count(h, "a:post_restart"), 2);
  assert_false(tp_ref_alive(a));
}

static void fail_to_decide(host *h, tp_job *job) { host_fail(h, job, tp_integer(99)); }

static void a_decider_that_fails_stops_the_child(void **state) {
  host *h = *state;
  tp_ref *a = spawn_fragile(h, host_user(h), "a", decided_by(h, fail_to_decide));
  host_want(h, HOST_DEAD_LETTERS);
  SEND(h, a, -1, 2);
  host_run(h);

  assert_log(h, "a:-1 !dead:a:2:stopped");
  assert_false(tp_ref_alive(a));
}

static void a_decider_that_fails_is_reported(void **state) {
  host *h = *state;
  tp_ref *a = spawn_fragile(h, host_user(h), "a", decided_by(h, fail_to_decide));
  host_run(h);
  tp_events_want(h->system, 1u << TP_EVENT_FAILED);
  host_send(h, a, -1);
  host_run_one(h);
  host_run_one(h);

  tp_job job;
  assert_true(tp_next(h->system, &job));
  assert_int_equal(job.kind, TP_JOB_EVENT);
  assert_int_equal(job.event.directive, TP_DIRECTIVE_STOP);
  assert_non_null(job.event.code);
  tp_done(&job);
}

static void decides_while_the_parent_waits(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .receive = host_code(h, host_stall),
      .children = decided_by(h, decide_by_reason),
  };
  tp_ref *parent = host_spawn_spec(h, host_user(h), spec, "parent");
  tp_ref *a = spawn_fragile(h, parent, "a", (tp_supervision){0});
  host_send(h, parent, 1);
  host_run(h);

  SEND(h, a, -1, 2);
  host_run(h);

  assert_log(h, "parent:1 a:-1 decide:a:-1 a:2");
  tp_slot_settle(h->gate, tp_nil(), false, NULL);
}

/* ---- Budgets ---------------------------------------------------------------------------- */

static void grants_n_restarts(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, host_user(h), "a", restarts(3, TP_NEVER), TP_HOOK_POST_RESTART);
  host_want(h, HOST_DEAD_LETTERS);
  SEND(h, a, -1, -1, -1, 1, -1, 2);
  host_run(h);

  assert_log(h, "a:-1 a:post_restart a:-1 a:post_restart a:-1 a:post_restart a:1 a:-1 "
                "!dead:a:2:stopped");
}

static void grants_none(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, host_user(h), "a", restarts(0, TP_NEVER), TP_HOOK_POST_RESTART);
  SEND(h, a, 1, -1, 2);
  host_run(h);
  assert_log(h, "a:1 a:-1");
  assert_false(tp_ref_alive(a));
}

static void grants_without_limit(void **state) {
  enum { FAILURES = 10000 };
  host *h = *state;
  tp_ref *a = spawn_fragile(h, host_user(h), "a", restarts(-1, TP_NEVER));
  SEND(h, a, -1);
  host_run(h);
  size_t before = host_stats(h).bytes;

  for (int i = 0; i < FAILURES; i++) {
    host_send(h, a, -1);
    host_run(h);
    host_forget(h);
  }

  assert_true(tp_ref_alive(a));
  assert_int_equal(host_stats(h).bytes, before);
}

static void fail_at(host *h, tp_ref *a, int64_t milliseconds) {
  host_advance(h, milliseconds - host_elapsed(h));
  host_send(h, a, -1);
  host_run(h);
}

static void the_window_slides(void **state) {
  host *h = *state;
  tp_ref *a = spawn_fragile(h, host_user(h), "a", restarts(2, 100 * MS));
  fail_at(h, a, 0);
  fail_at(h, a, 60);
  fail_at(h, a, 110);
  fail_at(h, a, 170);
  assert_true(tp_ref_alive(a));

  fail_at(h, a, 200);
  assert_false(tp_ref_alive(a));
}

static void counts_no_interval_twice(void **state) {
  host *h = *state;
  tp_ref *a = spawn_fragile(h, host_user(h), "a", restarts(3, 1000 * MS));
  fail_at(h, a, 900);
  fail_at(h, a, 950);
  fail_at(h, a, 1050);
  assert_true(tp_ref_alive(a));

  fail_at(h, a, 1100);
  assert_false(tp_ref_alive(a));
}

static void survives_a_late_clock(void **state) {
  (void)state;
  host *h = host_open();
  tp_system_options options = host_defaults();
  options.now = INT64_MAX / 2;
  assert_int_equal(host_start(h, &options), TP_OK);
  tp_ref *a = spawn_fragile(h, host_user(h), "a", restarts(1, INT64_MAX - 1));

  SEND(h, a, -1);
  host_run(h);
  assert_true(tp_ref_alive(a));
  SEND(h, a, -1);
  host_run(h);
  assert_false(tp_ref_alive(a));
  host_close(h);
}

static void has_a_budget_for_each_child(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.children = restarts(1, TP_NEVER)};
  tp_ref *parent = host_spawn_spec(h, host_user(h), spec, "parent");
  tp_ref *a = spawn_fragile(h, parent, "a", (tp_supervision){0});
  tp_ref *b = spawn_fragile(h, parent, "b", (tp_supervision){0});

  host_send(h, a, -1);
  host_send(h, b, -1);
  host_run(h);
  assert_true(tp_ref_alive(a));
  assert_true(tp_ref_alive(b));

  host_send(h, a, -1);
  host_run(h);
  assert_false(tp_ref_alive(a));
  assert_true(tp_ref_alive(b));
}

static void resumes_are_not_counted(void **state) {
  host *h = *state;
  tp_supervision own = directive(TP_DIRECTIVE_RESUME);
  own.max_restarts = 1;
  tp_ref *a = spawn_fragile(h, host_user(h), "a", own);
  SEND(h, a, -1, -1, -1, 1);
  host_run(h);
  assert_log(h, "a:-1 a:-1 a:-1 a:1");
}

/* ---- Suspension ------------------------------------------------------------------------- */

static tp_ref *spawn_slow_to_restart(host *h) {
  tp_behavior_spec spec = {
      .receive = host_code(h, host_fragile),
      .code = host_code(h, host_stall),
      .hooks = TP_HOOK_PRE_RESTART,
      .keep_children = true,
      .own = directive(TP_DIRECTIVE_RESTART),
  };
  return host_spawn_spec(h, host_user(h), spec, "a");
}

static void descendants_are_suspended(void **state) {
  host *h = *state;
  tp_supervision none = {0};
  tp_ref *a = spawn_slow_to_restart(h);
  tp_ref *b = spawn_fragile(h, a, "b", none);
  tp_ref *c = spawn_fragile(h, b, "c", none);
  host_run(h);

  SEND(h, a, -1, 2);
  host_run(h);
  SEND(h, b, 3);
  SEND(h, c, 4);
  host_run(h);
  assert_log(h, "a:-1 a:pre_restart");

  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_int_equal(host_count(h, "a:2") + host_count(h, "b:3") + host_count(h, "c:4"), 3);
}

static void sleep_and_record(host *h, tp_job *job) { host_sleep(h, job, 10, host_record); }

static void a_wait_ends_when_the_actor_is_resumed(void **state) {
  host *h = *state;
  tp_ref *a = spawn_slow_to_restart(h);
  tp_behavior_spec spec = {.receive = host_code(h, sleep_and_record)};
  tp_ref *b = host_spawn_spec(h, a, spec, "b");
  host_send(h, b, 1);
  host_send(h, b, 2);
  host_run(h);
  host_send(h, a, -1);
  host_advance(h, 100);
  assert_log(h, "a:-1 a:pre_restart");

  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_log(h, "b:1");
  host_advance(h, 10);
  assert_log(h, "b:2");
}

static void overlapping_failures_do_not_freeze(void **state) {
  host *h = *state;
  tp_behavior *fragile = host_behavior(
      h, (tp_behavior_spec){.receive = host_code(h, host_fragile), .keep_children = true});
  tp_ref *a = host_spawn_behavior(h, host_user(h), fragile, "a");
  tp_ref *b = host_spawn_behavior(h, a, fragile, "b");
  tp_ref *c = host_spawn_behavior(h, b, fragile, "c");
  for (int round = 0; round < 3; round++) {
    SEND(h, c, -1);
    SEND(h, b, -1);
    SEND(h, a, -1);
    host_run(h);
  }
  host_forget(h);

  SEND(h, a, 1);
  SEND(h, b, 2);
  SEND(h, c, 3);
  host_run(h);

  assert_log(h, "a:1 b:2 c:3");
}

static void a_resumed_parent_resumes_its_children(void **state) {
  host *h = *state;
  tp_ref *a = spawn_fragile(h, host_user(h), "a", directive(TP_DIRECTIVE_RESUME));
  tp_ref *b = spawn_fragile(h, a, "b", directive(TP_DIRECTIVE_ESCALATE));
  tp_ref *c = spawn_fragile(h, b, "c", directive(TP_DIRECTIVE_RESTART));

  SEND(h, b, -1, 2);
  SEND(h, c, 3);
  host_run(h);

  assert_int_equal(host_count(h, "b:2"), 1);
  assert_int_equal(host_count(h, "c:3"), 1);
}

/* ---- What is told ----------------------------------------------------------------------- */

static void raise_value(host *h, tp_job *job) { host_fail(h, job, host_value(h, 5)); }

static void a_failure_is_published_once(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.receive = host_code(h, raise_value)};
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_want(h, 1u << TP_EVENT_FAILED);
  host_send(h, a, 1);
  host_run(h);
  assert_log(h, "!failed:a:#5:restart");
}

static void the_last_failure_is_published_as_a_stop(void **state) {
  host *h = *state;
  tp_ref *a = spawn_fragile(h, host_user(h), "a", restarts(1, TP_NEVER));
  host_want(h, 1u << TP_EVENT_FAILED | 1u << TP_EVENT_STOPPED);
  SEND(h, a, -1, -2);
  host_run(h);
  assert_log(h, "a:-1 !failed:a:-1:restart a:-2 !failed:a:-2:stop !stopped:a");
}

static void a_failure_is_published_with_its_trace(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  host_run(h);
  tp_events_want(h->system, 1u << TP_EVENT_FAILED);
  host_send(h, a, 1);

  tp_job job;
  assert_true(tp_next(h->system, &job));
  tp_fail(&job, tp_integer(1), tp_integer(2));
  assert_true(tp_next(h->system, &job));

  assert_int_equal(job.kind, TP_JOB_EVENT);
  assert_ptr_equal(job.event.subject, a);
  assert_int_equal(job.event.value.as.integer, 1);
  assert_int_equal(job.event.trace.as.integer, 2);
  tp_done(&job);
}

static void raise_nil(host *h, tp_job *job) { host_fail(h, job, tp_nil()); }

static void nil_is_a_reason(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, raise_nil, "a");
  host_want(h, 1u << TP_EVENT_RESTARTED);
  host_send(h, a, 1);
  host_run(h);
  assert_log(h, "!restarted:a:nil");
}

static void kill_fails_in_its_turn(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, host_user(h), "a", (tp_supervision){0}, TP_HOOK_POST_RESTART);
  host_want(h, 1u << TP_EVENT_FAILED);
  host_send(h, a, 1);
  host_tell(h, a, (tp_value){.type = TP_SIGNAL, .as.integer = TP_KILL});
  host_send(h, a, 2);
  host_run(h);

  assert_int_equal(host_count(h, "!failed:a:killed:restart"), 1);
  host_want(h, 0);
  assert_memory_equal(h->log, "a:1 ", 4);
  assert_true(strstr(h->log, "a:post_restart") < strstr(h->log, "a:2"));
}

static void kill_can_stop(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, host_user(h), "a", directive(TP_DIRECTIVE_STOP), TP_HOOK_POST_STOP);
  host_tell(h, a, (tp_value){.type = TP_SIGNAL, .as.integer = TP_KILL});
  host_run(h);
  assert_log(h, "a:post_stop");
  assert_false(tp_ref_alive(a));
}

static void fail_after_sleep(host *h, tp_job *job) { host_fail(h, job, job->envelope.message); }

static void sleep_then_fail(host *h, tp_job *job) {
  host_record(h, job);
  host_sleep(h, job, 10, fail_after_sleep);
}

static void a_failure_after_a_wait_counts(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .receive = host_code(h, sleep_then_fail),
      .hooks = TP_HOOK_POST_RESTART,
  };
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  SEND(h, a, 1, 2);
  host_advance(h, 10);
  assert_log(h, "a:1 a:post_restart a:2");
  host_advance(h, 10);
  assert_log(h, "a:post_restart");
}

static void who_is_spawned_meanwhile_is_suspended_too(void **state) {
  host *h = *state;
  tp_ref *a = spawn_slow_to_restart(h);
  tp_ref *b = spawn_fragile(h, a, "b", (tp_supervision){0});
  host_run(h);
  host_send(h, a, -1);
  host_run(h);
  host_forget(h);

  tp_ref *c = spawn_fragile(h, b, "c", (tp_supervision){0});
  host_send(h, c, 1);
  host_run(h);
  assert_log(h, "");

  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_log(h, "c:1");
}

/* Its child escalates while its own handler waits. */
static tp_ref *fail_while_waiting(host *h, tp_directive own) {
  tp_behavior_spec spec = {.receive = host_code(h, host_stall), .own = directive(own)};
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  tp_ref *b = spawn_fragile(h, a, "b", directive(TP_DIRECTIVE_ESCALATE));
  host_send(h, a, 1);
  host_run(h);
  host_send(h, b, -1);
  host_run(h);
  return a;
}

static void a_restart_closes_what_waits(void **state) {
  host *h = *state;
  tp_ref *a = fail_while_waiting(h, TP_DIRECTIVE_RESTART);
  assert_log(h, "a:1 b:-1 closed");
  host_send(h, a, 2);
  host_run(h);
  assert_log(h, "a:2");
}

static void a_resume_lets_it_wait_on(void **state) {
  host *h = *state;
  tp_ref *a = fail_while_waiting(h, TP_DIRECTIVE_RESUME);
  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_send(h, a, 2);
  host_run(h);
  assert_log(h, "a:1 b:-1 a:2");
}

static void stop_and_fail(host *h, tp_job *job) {
  host_record(h, job);
  tp_stop_after(job->actor);
  host_fail(h, job, tp_integer(5));
}

static void a_stop_wins_over_a_failure(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.receive = host_code(h, stop_and_fail), .hooks = HOST_ALL_HOOKS};
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_want(h, 1u << TP_EVENT_FAILED);
  host_send(h, a, 1);
  host_run(h);
  assert_log(h, "a:pre_start a:1 !failed:a:5:stop a:post_stop");
}

static void a_resume_is_published(void **state) {
  host *h = *state;
  tp_ref *a = spawn_fragile(h, host_user(h), "a", directive(TP_DIRECTIVE_RESUME));
  host_want(h, 1u << TP_EVENT_FAILED);
  SEND(h, a, -1);
  host_run(h);
  assert_log(h, "a:-1 !failed:a:-1:resume");
}

static void a_failure_that_was_resumed_is_forgotten(void **state) {
  host *h = *state;
  tp_ref *a = spawn_fragile(h, host_user(h), "a", directive(TP_DIRECTIVE_RESUME));
  tp_behavior_spec spec = {
      .receive = host_code(h, raise_value),
      .own = directive(TP_DIRECTIVE_ESCALATE),
  };
  tp_ref *b = host_spawn_spec(h, a, spec, "b");
  host_run(h);
  size_t before = host_values_alive(h);
  for (int i = 0; i < 3; i++) {
    host_tell(h, b, host_value(h, i));
    host_run(h);
    assert_int_equal(host_values_alive(h), before + 1); /* the latest, for who looks at "b" */
  }
}

static void decide_escalate(host *h, tp_job *job) { host_decide(h, job, TP_DIRECTIVE_ESCALATE); }

static void a_decider_can_escalate(void **state) {
  host *h = *state;
  tp_ref *a =
      spawn_hooked(h, host_user(h), "a", directive(TP_DIRECTIVE_RESTART), TP_HOOK_POST_RESTART);
  tp_ref *b = spawn_fragile(h, a, "b", decided_by(h, decide_escalate));
  SEND(h, b, -1);
  host_run(h);
  assert_log(h, "b:-1 a:post_restart");
  assert_false(tp_ref_alive(b));
}

static void reasons_are_given_back(void **state) {
  static const tp_directive all[] = {TP_DIRECTIVE_RESUME, TP_DIRECTIVE_RESTART, TP_DIRECTIVE_STOP};
  host *h = *state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    tp_behavior_spec spec = {.receive = host_code(h, raise_value), .own = directive(all[i])};
    tp_ref *a = host_spawn_spec(h, host_user(h), spec, NULL);
    host_run(h);
    size_t before = host_values_alive(h);
    host_tell(h, a, host_value(h, 1));
    host_tell(h, a, host_value(h, 2));
    host_run(h);
    assert_int_equal(host_values_alive(h), before + (tp_ref_alive(a) ? 1 : 0));
    tp_stop_now(a);
    host_run(h);
    assert_true(host_values_alive(h) <= before);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("SUP-6 all restart, in the order they were spawned", all_restart_in_order),
      HOST_TEST("SUP-6 siblings may fail together", siblings_may_fail_together),
      HOST_TEST("SUP-5 all stop when the restarts of one are used up",
                all_stop_when_restarts_are_used_up),
      HOST_TEST("SUP-4 restart begins anew with the next message", restart_begins_anew),
      HOST_TEST("SUP-4 resume keeps the state and skips the message", resume_keeps_the_state),
      HOST_TEST("SUP-4 resume runs no hooks", resume_runs_no_hooks),
      HOST_TEST("SUP-4 stop takes children first, then dead-letters the mail in order",
                stop_takes_children_first),
      HOST_TEST("SUP-4 escalate fails the parent with the same cause", escalate_fails_the_parent),
      HOST_TEST("SUP-4 an escalation goes on from parent to parent", escalates_as_far_as_it_goes),
      HOST_TEST("SUP-10 escalation past the top stops that actor alone",
                escalation_past_the_top_stops_one_actor),
      HOST_TEST("SUP-1 the default restarts ten times", the_default_restarts_ten_times),
      HOST_TEST("SUP-1 the default forgets after a minute", the_default_forgets_after_a_minute),
      HOST_TEST("SPAWN-5 the parent's rule beats the default", the_parents_rule_beats_the_default),
      HOST_TEST("SPAWN-5 the child's rule beats the parent's", the_childs_rule_beats_the_parents),
      HOST_TEST("SUP-2 a decider picks the directive", a_decider_picks_the_directive),
      HOST_TEST("SUP-5 restarts that a decider picks are counted", a_deciders_restarts_are_counted),
      HOST_TEST("SUP-7 a decider that fails stops the child", a_decider_that_fails_stops_the_child),
      HOST_TEST("SUP-7 a decider that fails is reported", a_decider_that_fails_is_reported),
      HOST_TEST("SUP-13 a failure is decided while the parent's handler waits",
                decides_while_the_parent_waits),
      HOST_TEST("SUP-5 grants n restarts, the next failure stops", grants_n_restarts),
      HOST_TEST("SUP-5 a budget of 0 grants none", grants_none),
      HOST_TEST("SUP-5 a budget of -1 has no limit, and no history that grows",
                grants_without_limit),
      HOST_TEST("SUP-5 the window slides", the_window_slides),
      HOST_TEST("SUP-5 the window has no fixed borders", counts_no_interval_twice),
      HOST_TEST("SUP-5 windows longer than the clock's past are no matter", survives_a_late_clock),
      HOST_TEST("SUP-5 each child has its own budget", has_a_budget_for_each_child),
      HOST_TEST("SUP-5 resumes are not counted", resumes_are_not_counted),
      HOST_TEST("SUP-3 descendants of a failed actor are suspended", descendants_are_suspended),
      HOST_TEST("SUP-3 a wait that ends in a suspended actor takes effect afterwards",
                a_wait_ends_when_the_actor_is_resumed),
      HOST_TEST("SUP-3 overlapping failures leave nobody suspended",
                overlapping_failures_do_not_freeze),
      HOST_TEST("SUP-4 a parent that is resumed resumes its children",
                a_resumed_parent_resumes_its_children),
      HOST_TEST("SUP-8 a failure is published once", a_failure_is_published_once),
      HOST_TEST("SUP-8 the failure past the budget is published as a stop",
                the_last_failure_is_published_as_a_stop),
      HOST_TEST("SUP-8 a failure is published with its trace",
                a_failure_is_published_with_its_trace),
      HOST_TEST("SUP-9 nil is a reason", nil_is_a_reason),
      HOST_TEST("SUP-11 a kill message fails the actor in its turn", kill_fails_in_its_turn),
      HOST_TEST("SUP-11 a kill goes through supervision", kill_can_stop),
      HOST_TEST("SUP-3 a failure after a wait is a failure like any other",
                a_failure_after_a_wait_counts),
      HOST_TEST("SUP-3 who is spawned below a failed actor is suspended too",
                who_is_spawned_meanwhile_is_suspended_too),
      HOST_TEST("LIFE-9 a restart closes a handler that waits", a_restart_closes_what_waits),
      HOST_TEST("SUP-4 a resume lets a handler wait on", a_resume_lets_it_wait_on),
      HOST_TEST("LIFE-6 a stop wins over a failure", a_stop_wins_over_a_failure),
      HOST_TEST("SUP-8 a resume is published", a_resume_is_published),
      HOST_TEST("SUP-4 a failure that was resumed is forgotten",
                a_failure_that_was_resumed_is_forgotten),
      HOST_TEST("SUP-2 a decider can escalate", a_decider_can_escalate),
      HOST_TEST("SUP-9 reasons are given back when they are dealt with", reasons_are_given_back),
  };
  return cmocka_run_group_tests_name("supervision", tests, NULL, NULL);
}
