/* Names and paths, starts, stops, restarts, and the end of a system. */
#include "host.h"

static const char *path_of(const tp_ref *r) {
  static char path[512];
  tp_ref_path(r, path, sizeof path);
  return path;
}

static const char *name_of(const tp_ref *r) {
  static char name[512];
  tp_ref_name(r, name, sizeof name);
  return name;
}

static tp_stats stats_of(const host *h) {
  tp_stats stats;
  tp_system_stats(h->system, &stats);
  return stats;
}

static tp_ref *user(const host *h) { return tp_user_guardian(h->system); }

static tp_ref *spawn_hooked(host *h, tp_ref *parent, const char *name, uint32_t hooks) {
  tp_behavior_spec spec = {.receive = host_code(h, host_fragile), .hooks = hooks};
  return host_spawn_spec(h, parent, spec, name);
}

/* ---- Systems, paths, names -------------------------------------------------------------- */

static void has_guardians(void **state) {
  host *h = *state;
  assert_string_equal(path_of(tp_root(h->system)), "troupe://demo/");
  assert_string_equal(path_of(user(h)), "troupe://demo/user");
  assert_string_equal(path_of(host_at(h, "/system")), "troupe://demo/system");
  assert_ptr_equal(tp_ref_parent(user(h)), tp_root(h->system));
  assert_null(tp_ref_parent(tp_root(h->system)));
  assert_int_equal(stats_of(h).actors, 0);
  assert_false(host_run_one(h));
}

static void guardians_ignore_mail(void **state) {
  host *h = *state;
  host_want(h, HOST_DEAD_LETTERS);
  host_tell(h, user(h), host_value(h, 7));
  host_run(h);
  assert_log(h, "");
}

static void guardians_ignore_kill(void **state) {
  host *h = *state;
  host_tell(h, user(h), (tp_value){.type = TP_SIGNAL, .as.integer = TP_KILL});
  host_run(h);
  assert_true(tp_ref_alive(user(h)));
  assert_false(tp_terminating(h->system));
}

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

static void renders_paths(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a b#");
  tp_ref *b = spawn_hooked(h, a, "b", 0);

  assert_string_equal(path_of(b), "troupe://demo/user/a b#/b");
  assert_string_equal(name_of(b), "b");
  assert_string_equal(tp_system_name(h->system), "demo");
}

static void measures_paths(void **state) {
  host *h = *state;
  char buffer[10];
  tp_ref *a = host_spawn(h, host_nothing, "abc");

  assert_int_equal(tp_ref_path(a, buffer, sizeof buffer), strlen("troupe://demo/user/abc"));
  assert_string_equal(buffer, "troupe://");
  assert_int_equal(tp_ref_name(a, buffer, 3), 3);
  assert_string_equal(buffer, "ab");
  assert_int_equal(tp_ref_path(a, NULL, 0), strlen("troupe://demo/user/abc"));
}

static void finds_actors(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *b = spawn_hooked(h, a, "b", 0);

  assert_ptr_equal(host_at(h, "/user/a/b"), b);
  assert_ptr_equal(host_at(h, "/user/a"), a);
  assert_ptr_equal(tp_lookup(h->system, "/user/a/b", 7), a);
  assert_ptr_equal(host_at(h, "/"), tp_root(h->system));
  assert_null(host_at(h, "/user/b"));
  assert_null(host_at(h, "/user/a/b/c"));
  assert_ptr_equal(tp_child(a, "b", 1), b);
  assert_null(tp_child(a, "c", 1));
  assert_ptr_equal(tp_ref_parent(b), a);
}

static void lists_children(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *b = host_spawn(h, host_nothing, "b");
  tp_ref *c = host_spawn(h, host_nothing, "c");
  assert_ptr_equal(tp_next_child(user(h), NULL), a);
  assert_ptr_equal(tp_next_child(user(h), a), b);

  tp_stop(b);
  host_run(h);

  assert_ptr_equal(tp_next_child(user(h), a), c);
  assert_null(tp_next_child(user(h), c));
  assert_null(tp_next_child(a, NULL));
}

static void numbers_the_unnamed(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, NULL);
  char first[32];
  tp_ref_name(a, first, sizeof first);
  assert_int_equal(first[0], '$');
  tp_ref *child = spawn_hooked(h, a, NULL, 0);
  assert_string_equal(name_of(child), first);

  tp_stop(a);
  host_run(h);
  tp_ref *b = host_spawn(h, host_nothing, NULL);

  assert_int_equal(name_of(b)[0], '$');
  assert_string_not_equal(name_of(b), first);
}

static void park(host *h, tp_job *job) {
  host_record_hook(h, job);
  host_park(h, job, host_nothing);
}

static int try_spawn(host *h, tp_ref *parent, const char *name) {
  tp_ref *r = NULL;
  int status = tp_spawn(parent, host_behavior(h, (tp_behavior_spec){0}), name, strlen(name), &r);
  host_keep(h, r);
  return status;
}

static void keeps_a_name_until_stopped(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.code = host_code(h, park), .hooks = TP_HOOK_POST_STOP};
  host_spawn_spec(h, user(h), spec, "a");
  assert_int_equal(try_spawn(h, user(h), "a"), TP_EEXIST);

  tp_stop(host_at(h, "/user/a"));
  host_run(h);
  assert_int_equal(try_spawn(h, user(h), "a"), TP_EEXIST);

  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_int_equal(try_spawn(h, user(h), "a"), TP_OK);
  assert_int_equal(stats_of(h).actors, 1);
}

static void has_a_uid_for_each_incarnation_of_a_name(void **state) {
  host *h = *state;
  tp_ref *old = host_spawn(h, host_nothing, "a");
  tp_stop(old);
  host_run(h);
  tp_ref *new = host_spawn(h, host_nothing, "a");

  assert_ptr_not_equal(old, new);
  assert_true(tp_ref_uid(old) != tp_ref_uid(new));
  assert_string_equal(path_of(old), "troupe://demo/user/a");
}

/* ---- Starting --------------------------------------------------------------------------- */

static void is_usable_at_once(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", TP_HOOK_PRE_START);
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
  tp_behavior_spec spec = {.code = host_code(h, park), .hooks = TP_HOOK_PRE_START};
  tp_ref *a = host_spawn_spec(h, user(h), spec, "a");
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
  tp_ref *a = host_spawn_spec(h, user(h), spec, "a");
  host_send(h, a, 1);
  host_run(h);

  assert_int_equal(host_count(h, "a:pre_start"), 1 + 10);
  assert_int_equal(host_count(h, "!dead:a:1:stopped"), 1);
  assert_int_equal(host_count(h, "!stopped:a"), 1);
  assert_false(tp_ref_alive(a));
  assert_int_equal(try_spawn(h, user(h), "a"), TP_OK);
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
  tp_ref *a = host_spawn_spec(h, user(h), spec, "a");
  host_send(h, a, 1);
  host_run(h);

  assert_log(h, "a:pre_start a:pre_start a:1");
}

static void spawn_in_hook(host *h, tp_job *job) {
  host_record_hook(h, job);
  assert_false(tp_actor_can_spawn(job->actor));
  assert_int_equal(try_spawn(h, job->actor, "late"), TP_ESTOPPED);
}

static void cannot_spawn_in_post_stop(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.code = host_code(h, spawn_in_hook), .hooks = TP_HOOK_POST_STOP};
  tp_ref *a = host_spawn_spec(h, user(h), spec, "a");
  assert_true(tp_actor_can_spawn(a));
  tp_stop(a);
  host_run(h);

  assert_log(h, "a:post_stop");
  assert_false(tp_actor_can_spawn(a));
  assert_int_equal(try_spawn(h, a, "later"), TP_ESTOPPED);
}

static void stop_then_spawn(host *h, tp_job *job) {
  host_record(h, job);
  tp_stop_after(job->actor);
  assert_false(tp_actor_can_spawn(job->actor));
  assert_int_equal(try_spawn(h, job->actor, "late"), TP_ESTOPPED);
}

static void cannot_spawn_after_stopping_itself(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, stop_then_spawn, "a");
  host_send(h, a, 1);
  host_run(h);
  assert_log(h, "a:1");
}

static void cannot_spawn_when_terminating(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_terminate(h->system);
  assert_int_equal(try_spawn(h, user(h), "b"), TP_ETERMINATED);
  assert_int_equal(try_spawn(h, a, "b"), TP_ETERMINATED);

  host_run(h);
  assert_int_equal(try_spawn(h, user(h), "b"), TP_ETERMINATED);
}

/* ---- Restarting ------------------------------------------------------------------------- */

static void restarts_in_order(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", HOST_ALL_HOOKS);
  spawn_hooked(h, a, "b", TP_HOOK_POST_STOP);
  spawn_hooked(h, a, "c", TP_HOOK_POST_STOP);
  host_run(h);
  assert_log(h, "a:pre_start");

  for (int i = 1; i <= 3; i++) host_send(h, a, i == 2 ? -2 : i);
  host_run(h);

  assert_log(h, "a:1 a:-2 a:pre_restart b:post_stop c:post_stop a:post_restart a:3");
  assert_null(tp_next_child(a, NULL));
}

static void restarts_with_the_default_hooks(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", TP_HOOK_PRE_START | TP_HOOK_POST_STOP);
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
  tp_ref *a = host_spawn_spec(h, user(h), spec, "a");
  host_tell(h, a, host_value(h, 4));
  host_run(h);

  assert_log(h, "a:pre_restart #9,#4 a:post_restart #9");
}

static void waits_for_children_before_it_begins_anew(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", TP_HOOK_PRE_START);
  tp_behavior_spec spec = {.code = host_code(h, park), .hooks = TP_HOOK_POST_STOP};
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

static void keeps_its_children_if_told_so(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.receive = host_code(h, host_fragile), .keep_children = true};
  tp_ref *a = host_spawn_spec(h, user(h), spec, "a");
  tp_ref *b = spawn_hooked(h, a, "b", HOST_ALL_HOOKS);
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
  tp_ref *a = spawn_hooked(h, user(h), "a", 0);
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
      .code = host_code(h, park),
      .hooks = TP_HOOK_PRE_RESTART | TP_HOOK_POST_RESTART,
  };
  tp_ref *a = host_spawn_spec(h, user(h), spec, "a");
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
  tp_ref *a = spawn_hooked(h, user(h), "a", TP_HOOK_POST_RESTART);
  tp_behavior_spec spec = {.code = host_code(h, park), .hooks = TP_HOOK_POST_STOP};
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
  tp_ref *a = host_spawn_spec(h, user(h), spec, "a");
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
  tp_ref *a = spawn_hooked(h, user(h), "a", HOST_ALL_HOOKS);
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
  tp_ref *a = spawn_hooked(h, user(h), "a", 0);
  tp_stop(a);
  host_run(h);
  host_send(h, a, 1);
  host_run(h);
  assert_log(h, "");
}

/* ---- Stopping --------------------------------------------------------------------------- */

static void a_stop_drains(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", TP_HOOK_POST_STOP);
  host_want(h, HOST_DEAD_LETTERS);
  for (int i = 1; i <= 3; i++) host_send(h, a, i);
  assert_int_equal(tp_stop(a), TP_OK);
  host_send(h, a, 4);
  host_send(h, a, 5);
  host_run(h);

  assert_log(h, "!dead:a:4:stopped !dead:a:5:stopped a:1 a:2 a:3 a:post_stop");
  assert_false(tp_ref_alive(a));
  assert_int_equal(stats_of(h).actors, 0);
}

static void a_poison_pill_drains(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", TP_HOOK_POST_STOP);
  host_want(h, HOST_DEAD_LETTERS);
  host_send(h, a, 1);
  host_tell(h, a, (tp_value){.type = TP_SIGNAL, .as.integer = TP_POISON_PILL});
  host_send(h, a, 2);
  host_run(h);

  assert_log(h, "!dead:a:2:stopped a:1 a:post_stop");
}

static void a_stop_waits_for_the_handler_in_hand(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, park, "a");
  host_send(h, a, 1);
  host_run(h);
  host_forget(h);

  tp_stop(a);
  host_run(h);
  assert_true(tp_ref_alive(a));

  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_false(tp_ref_alive(a));
  assert_log(h, "");
}

static void a_second_stop_changes_nothing(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", TP_HOOK_POST_STOP);
  host_run(h);
  assert_int_equal(tp_stop(a), TP_OK);
  assert_int_equal(tp_stop(a), TP_OK);
  tp_stop_now(a);
  host_run(h);
  assert_int_equal(host_count(h, "a:post_stop"), 1);

  assert_int_equal(tp_stop(a), TP_OK);
  tp_stop_now(a);
  host_run(h);
  assert_int_equal(host_count(h, "a:post_stop"), 1);
}

static void stop_after(host *h, tp_job *job) {
  tp_stop_after(job->actor);
  host_record(h, job);
}

static void stops_itself_after_the_handler(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.receive = host_code(h, stop_after), .hooks = TP_HOOK_POST_STOP};
  tp_ref *a = host_spawn_spec(h, user(h), spec, "a");
  host_want(h, HOST_DEAD_LETTERS);
  host_send(h, a, 1);
  host_send(h, a, 2);
  host_run(h);

  assert_log(h, "a:1 a:post_stop !dead:a:2:stopped");
}

static void a_hard_stop_drops_the_mail(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", TP_HOOK_POST_STOP);
  host_want(h, HOST_DEAD_LETTERS);
  host_run(h);
  host_send(h, a, 1);
  host_send(h, a, 2);
  tp_stop_now(a);
  host_send(h, a, 3);
  host_run(h);

  assert_int_equal(host_count(h, "a:post_stop"), 1);
  assert_int_equal(host_count(h, "a:1") + host_count(h, "a:2") + host_count(h, "a:3"), 0);
  const char *first = strstr(h->log, "!dead:a:1:stopped");
  const char *second = strstr(h->log, "!dead:a:2:stopped");
  assert_true(first != NULL && second != NULL && first < second);
  assert_int_equal(host_count(h, "!dead:a:3:stopped"), 1);
}

static void a_hard_stop_gives_up_a_wait(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.receive = host_code(h, park), .hooks = TP_HOOK_POST_STOP};
  tp_ref *a = host_spawn_spec(h, user(h), spec, "a");
  host_send(h, a, 1);
  host_run(h);
  host_forget(h);
  assert_int_equal(stats_of(h).waits, 1);

  tp_stop_now(a);
  host_run(h);
  assert_log(h, "closed a:post_stop");
  assert_int_equal(stats_of(h).waits, 0);

  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_log(h, "");
}

static void a_restarting_parent_gives_up_its_childrens_waits(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", 0);
  tp_behavior_spec spec = {.receive = host_code(h, park), .hooks = TP_HOOK_POST_STOP};
  tp_ref *b = host_spawn_spec(h, a, spec, "b");
  host_send(h, b, 1);
  host_run(h);
  host_forget(h);

  host_send(h, a, -1);
  host_run(h);

  assert_log(h, "a:-1 closed b:post_stop");
}

static void sleep_then_log(host *h, tp_job *job) {
  char name[16];
  tp_ref_name(job->actor, name, sizeof name);
  host_log(h, "%s:slept@%lld", name, (long long)host_elapsed(h));
}

static void sleep_in_hook(host *h, tp_job *job) { host_sleep(h, job, 100, sleep_then_log); }

static void children_stop_at_the_same_time(void **state) {
  host *h = *state;
  tp_behavior_spec slow = {.code = host_code(h, sleep_in_hook), .hooks = TP_HOOK_POST_STOP};
  tp_behavior *behavior = host_behavior(h, slow);
  tp_ref *a = spawn_hooked(h, user(h), "a", TP_HOOK_POST_STOP);
  tp_ref *b = host_spawn_behavior(h, a, behavior, "b");
  host_spawn_behavior(h, a, behavior, "c");
  host_run(h);

  tp_stop(a);
  host_run(h);
  assert_log(h, "");
  assert_true(tp_ref_alive(b));
  assert_false(host_run_one(h));

  host_advance(h, 100);
  assert_log(h, "b:slept@100 c:slept@100 a:post_stop");
}

static void children_stop_hard(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", TP_HOOK_POST_STOP);
  tp_ref *b = spawn_hooked(h, a, "b", TP_HOOK_POST_STOP);
  host_run(h);
  host_want(h, HOST_DEAD_LETTERS);

  tp_stop_now(a);
  host_send(h, b, 1);
  host_run(h);

  assert_int_equal(host_count(h, "b:1"), 0);
  assert_int_equal(host_count(h, "!dead:b:1:stopped"), 1);
  assert_true(strstr(h->log, "b:post_stop") < strstr(h->log, "a:post_stop"));
}

static void leaves_stop_before_roots(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", TP_HOOK_POST_STOP);
  tp_ref *b = spawn_hooked(h, a, "b", TP_HOOK_POST_STOP);
  spawn_hooked(h, b, "c", TP_HOOK_POST_STOP);
  host_run(h);

  tp_stop(a);
  host_run(h);

  assert_log(h, "c:post_stop b:post_stop a:post_stop");
  assert_int_equal(stats_of(h).actors, 0);
}

static void stops_in_order(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", TP_HOOK_POST_STOP);
  host_run(h);
  host_want(h, HOST_DEAD_LETTERS | 1u << TP_EVENT_STOPPED);
  host_send(h, a, 1);
  host_send(h, a, 2);
  tp_stop_now(a);
  host_run(h);

  assert_log(h, "a:post_stop !dead:a:1:stopped !dead:a:2:stopped !stopped:a");
}

static void waiting_for_children_is_idle(void **state) {
  host *h = *state;
  tp_ref *a = spawn_hooked(h, user(h), "a", 0);
  tp_behavior_spec spec = {.code = host_code(h, park), .hooks = TP_HOOK_POST_STOP};
  host_spawn_spec(h, a, spec, "b");
  host_run(h);
  tp_stop(a);
  host_run(h);

  assert_false(host_run_one(h));
  assert_true(tp_next_deadline(h->system) == TP_NEVER);
  tp_slot_settle(h->gate, tp_nil(), false, NULL);
}

static void a_hundred_thousand_come_and_go(void **state) {
  enum { COUNT = 100000 };
  host *h = *state;
  tp_behavior *behavior = host_behavior(h, (tp_behavior_spec){0});
  size_t before = stats_of(h).bytes;

  for (int i = 0; i < COUNT; i++) {
    tp_ref *r = NULL;
    assert_int_equal(tp_spawn(user(h), behavior, NULL, 0, &r), TP_OK);
    tp_ref_release(r);
  }
  host_run(h);
  assert_int_equal(stats_of(h).actors, COUNT);
  assert_in_range(stats_of(h).bytes - before, 0, COUNT * 400);

  while (tp_next_child(user(h), NULL) != NULL) {
    tp_stop(tp_next_child(user(h), NULL));
    host_run(h);
  }
  assert_int_equal(stats_of(h).actors, 0);
  assert_in_range(stats_of(h).bytes, 0, before + 4096);
}

/* ---- The end of a system ---------------------------------------------------------------- */

static void terminates_once(void **state) {
  host *h = *state;
  spawn_hooked(h, user(h), "a", TP_HOOK_POST_STOP);
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
  tp_ref *a = host_spawn_behavior(h, user(h), behavior, "a");
  host_spawn_behavior(h, user(h), behavior, "b");
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

static size_t count_dead(const host *h, const char *letter) {
  char word[64];
  snprintf(word, sizeof word, "!dead:%s:stopped", letter);
  size_t count = host_count(h, word);
  snprintf(word, sizeof word, "!dead:%s:system-terminated", letter);
  return count + host_count(h, word);
}

static void stays_parked(host *h, tp_job *job) {
  host_record(h, job);
  host_park(h, job, host_nothing);
}

static void dead_letters_what_is_left(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, stays_parked, "a");
  host_want(h, HOST_DEAD_LETTERS);
  for (int i = 1; i <= 3; i++) host_send(h, a, i);
  tp_terminate(h->system);
  host_advance(h, 2000);

  assert_true(tp_terminated(h->system));
  assert_int_equal(host_count(h, "a:2"), 0);
  assert_int_equal(count_dead(h, "a:2"), 1);
  assert_int_equal(count_dead(h, "a:3"), 1);
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
  tp_ref *a = spawn_hooked(other, user(other), "a", TP_HOOK_POST_STOP);
  host_run(other);
  host_want(other, HOST_DEAD_LETTERS);
  host_send(other, a, 1);

  tp_terminate(other->system);
  host_run(other);

  assert_true(tp_terminated(other->system));
  assert_int_equal(host_count(other, "a:1"), 0);
  assert_int_equal(host_count(other, "a:post_stop"), 1);
  assert_int_equal(count_dead(other, "a:1"), 1);
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
  spawn_hooked(h, host_at(h, "/system"), "keeper", TP_HOOK_POST_STOP);
  tp_behavior_spec spec = {.code = host_code(h, tell_keeper), .hooks = TP_HOOK_POST_STOP};
  host_spawn_spec(h, user(h), spec, "a");
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
  tp_tick *tick = NULL;
  tp_behavior *routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, host_nothing)});
  tp_behavior_spec scatter = {
      .routing = TP_ROUTE_FIRST_COMPLETED,
      .size = 3,
      .routee = routee,
      .timeout = 50 * MS,
  };
  tp_ref *pool = host_spawn_spec(h, user(h), scatter, "pool");
  tp_ref *a = host_spawn(h, stays_parked, "a");
  tp_ref *stopping = spawn_hooked(h, a, "stopping", TP_HOOK_POST_STOP);
  for (int i = 0; i < 10; i++) host_tell(h, a, host_value(h, i));
  host_ask(h, a, host_value(h, 11), 100);
  host_ask(h, pool, host_value(h, 12), 100);
  host_run(h);
  host_ask(h, pool, host_value(h, 13), 100);
  tp_timer_start(a, host_value(h, 14), TP_FIXED_RATE, 10 * MS, 10 * MS, &tick);
  tp_tick_release(tick);
  tp_schedule(h->system, host_code(h, host_nothing), 10 * MS, 0, &tick);
  tp_tick_release(tick);
  tp_advance(h->system, tp_now(h->system) + 10 * MS);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("SYS-2 a system has a root, /user and /system", has_guardians),
      HOST_TEST("SYS-2 guardians ignore messages", guardians_ignore_mail),
      HOST_TEST("SYS-2 guardians ignore kill messages", guardians_ignore_kill),
      HOST_TEST("SYS-3 two systems share nothing", systems_share_nothing),
      HOST_TEST("PATH-1 paths render with system and parents", renders_paths),
      HOST_TEST("PATH-1 a buffer that is too short is filled, and the length told", measures_paths),
      HOST_TEST("SEL-1 an actor is found by its path", finds_actors),
      HOST_TEST("PATH-2 children are listed in the order they were spawned", lists_children),
      HOST_TEST("PATH-4 unnamed actors are numbered per parent, for life", numbers_the_unnamed),
      HOST_TEST("PATH-5 a name is taken until its actor has stopped", keeps_a_name_until_stopped),
      HOST_TEST("PATH-6 each incarnation of a name has its own uid",
                has_a_uid_for_each_incarnation_of_a_name),
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
      HOST_TEST("SYS-7 a terminating system spawns nothing", cannot_spawn_when_terminating),
      HOST_TEST("LIFE-4 a restart runs hooks and stops children in order", restarts_in_order),
      HOST_TEST("LIFE-4 post_stop and pre_start stand in for missing restart hooks",
                restarts_with_the_default_hooks),
      HOST_TEST("LIFE-4 restart hooks are given the reason and the failed message",
                tells_the_hooks_why),
      HOST_TEST("LIFE-4 a restart waits until all children have stopped",
                waits_for_children_before_it_begins_anew),
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
      HOST_TEST("STOP-1 a stop lets everything told before be handled", a_stop_drains),
      HOST_TEST("STOP-1 a poison pill does the same", a_poison_pill_drains),
      HOST_TEST("STOP-1 a stop waits for the handler in hand",
                a_stop_waits_for_the_handler_in_hand),
      HOST_TEST("STOP-1 a second stop changes nothing", a_second_stop_changes_nothing),
      HOST_TEST("STOP-2 an actor stops itself after the job in hand",
                stops_itself_after_the_handler),
      HOST_TEST("STOP-2 a hard stop leaves the mail unread", a_hard_stop_drops_the_mail),
      HOST_TEST("LIFE-9 a hard stop gives up a wait, before post_stop",
                a_hard_stop_gives_up_a_wait),
      HOST_TEST("LIFE-9 a restarting parent gives up its children's waits",
                a_restarting_parent_gives_up_its_childrens_waits),
      HOST_TEST("STOP-3 children stop at the same time, then the parent",
                children_stop_at_the_same_time),
      HOST_TEST("STOP-3 children are stopped hard", children_stop_hard),
      HOST_TEST("STOP-3 leaves stop before roots", leaves_stop_before_roots),
      HOST_TEST("STOP-4 post_stop, then dead letters, then the event", stops_in_order),
      HOST_TEST("STOP-6 waiting for children costs nothing", waiting_for_children_is_idle),
      HOST_TEST("STOP-4 a hundred thousand actors come and go without a trace",
                a_hundred_thousand_come_and_go),
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
  };
  return cmocka_run_group_tests_name("lifecycle", tests, NULL, NULL);
}
