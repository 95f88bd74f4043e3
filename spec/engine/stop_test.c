/* Stops: draining, hard ones, and those of whole families. */
#include "host.h"

static void a_stop_drains(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_POST_STOP);
  host_want(h, HOST_DEAD_LETTERS);
  for (int i = 1; i <= 3; i++) host_send(h, a, i);
  assert_int_equal(tp_stop(a), TP_OK);
  host_send(h, a, 4);
  host_send(h, a, 5);
  host_run(h);

  assert_log(h, "!dead:a:4:stopped !dead:a:5:stopped a:1 a:2 a:3 a:post_stop");
  assert_false(tp_ref_alive(a));
  assert_int_equal(host_stats(h).actors, 0);
}

static void a_poison_pill_drains(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_POST_STOP);
  host_want(h, HOST_DEAD_LETTERS);
  host_send(h, a, 1);
  host_tell(h, a, (tp_value){.type = TP_SIGNAL, .as.integer = TP_POISON_PILL});
  host_send(h, a, 2);
  host_run(h);

  assert_log(h, "!dead:a:2:stopped a:1 a:post_stop");
}

static void a_stop_waits_for_the_handler_in_hand(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_stall, "a");
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
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_POST_STOP);
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
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_want(h, HOST_DEAD_LETTERS);
  host_send(h, a, 1);
  host_send(h, a, 2);
  host_run(h);

  assert_log(h, "a:1 a:post_stop !dead:a:2:stopped");
}

static void a_hard_stop_drops_the_mail(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_POST_STOP);
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
  tp_behavior_spec spec = {.receive = host_code(h, host_stall), .hooks = TP_HOOK_POST_STOP};
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_send(h, a, 1);
  host_run(h);
  host_forget(h);
  assert_int_equal(host_stats(h).waits, 1);

  tp_stop_now(a);
  host_run(h);
  assert_log(h, "closed a:post_stop");
  assert_int_equal(host_stats(h).waits, 0);

  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_log(h, "");
}

static void a_restarting_parent_gives_up_its_childrens_waits(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", 0);
  tp_behavior_spec spec = {.receive = host_code(h, host_stall), .hooks = TP_HOOK_POST_STOP};
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
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_POST_STOP);
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
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_POST_STOP);
  tp_ref *b = host_spawn_hooked(h, a, "b", TP_HOOK_POST_STOP);
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
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_POST_STOP);
  tp_ref *b = host_spawn_hooked(h, a, "b", TP_HOOK_POST_STOP);
  host_spawn_hooked(h, b, "c", TP_HOOK_POST_STOP);
  host_run(h);

  tp_stop(a);
  host_run(h);

  assert_log(h, "c:post_stop b:post_stop a:post_stop");
  assert_int_equal(host_stats(h).actors, 0);
}

static void stops_in_order(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_POST_STOP);
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
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", 0);
  tp_behavior_spec spec = {.code = host_code(h, host_stall), .hooks = TP_HOOK_POST_STOP};
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
  size_t before = host_stats(h).bytes;

  for (int i = 0; i < COUNT; i++) {
    tp_ref *r = NULL;
    assert_int_equal(tp_spawn(host_user(h), behavior, NULL, 0, &r), TP_OK);
    tp_ref_release(r);
  }
  host_run(h);
  assert_int_equal(host_stats(h).actors, COUNT);
  assert_in_range(host_stats(h).bytes - before, 0, COUNT * 400);

  while (tp_next_child(host_user(h), NULL) != NULL) {
    tp_stop(tp_next_child(host_user(h), NULL));
    host_run(h);
  }
  assert_int_equal(host_stats(h).actors, 0);
  assert_in_range(host_stats(h).bytes, 0, before + 4096);
}

static void stop_oneself_now(host *h, tp_job *job) {
  tp_stop_now(job->actor);
  host_record(h, job);
}

static void stops_itself_hard_after_the_handler(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.receive = host_code(h, stop_oneself_now), .hooks = TP_HOOK_POST_STOP};
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_want(h, HOST_DEAD_LETTERS);
  host_send(h, a, 1);
  host_send(h, a, 2);
  host_run(h);
  assert_log(h, "a:1 a:post_stop !dead:a:2:stopped");
}

static void stop_and_wait(host *h, tp_job *job) {
  tp_stop_now(job->actor);
  host_stall(h, job);
}

static void a_hard_stop_does_not_outlast_a_wait(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, stop_and_wait, "a");
  host_send(h, a, 1);
  host_run(h);
  assert_log(h, "a:1 closed");
  assert_false(tp_ref_alive(a));
}

static void stop_after_and_wait(host *h, tp_job *job) {
  tp_stop_after(job->actor);
  host_sleep(h, job, 10, host_record);
}

static void a_stop_after_the_handler_waits_for_its_waits(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, stop_after_and_wait, "a");
  host_send(h, a, 1);
  host_run(h);
  assert_true(tp_ref_alive(a));
  host_advance(h, 10);
  assert_log(h, "a:1");
  assert_false(tp_ref_alive(a));
}

static void an_idle_actor_stops_at_once(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn_hooked(h, host_user(h), "a", TP_HOOK_POST_STOP);
  host_run(h);
  tp_stop_after(a);
  host_send(h, a, 1);
  host_run(h);
  assert_log(h, "a:post_stop");
  assert_false(tp_ref_alive(a));
}

int main(void) {
  const struct CMUnitTest tests[] = {
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
      HOST_TEST("STOP-2 a hard stop of oneself comes after the job in hand",
                stops_itself_hard_after_the_handler),
      HOST_TEST("STOP-2 a hard stop of oneself does not outlast a wait",
                a_hard_stop_does_not_outlast_a_wait),
      HOST_TEST("STOP-2 a stop after the job in hand waits for its waits",
                a_stop_after_the_handler_waits_for_its_waits),
      HOST_TEST("STOP-2 without a job in hand an actor stops at once", an_idle_actor_stops_at_once),
  };
  return cmocka_run_group_tests_name("stop", tests, NULL, NULL);
}
