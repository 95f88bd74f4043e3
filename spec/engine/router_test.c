/* Pool routers: how each strategy picks, and what becomes of routees that stop. */
#include "host.h"

static tp_ref *spawn_pool_of(host *h, tp_behavior_spec pool, tp_behavior_spec routee) {
  if (pool.size == 0) pool.size = 3;
  pool.routee = host_behavior(h, routee);
  tp_ref *r = host_spawn_spec(h, host_user(h), pool, "pool");
  host_run(h);
  host_forget(h);
  return r;
}

/* Three routees that run `step`. */
static tp_ref *spawn_pool(host *h, tp_routing routing, host_step step) {
  return spawn_pool_of(h, (tp_behavior_spec){.routing = routing},
                       (tp_behavior_spec){.receive = host_code(h, step)});
}

static tp_ref *routee(const host *h, int number) {
  char path[32];
  snprintf(path, sizeof path, "/user/pool/routee-%d", number);
  return host_at(h, path);
}

static void stop_routee(host *h, int number) {
  tp_stop_now(routee(h, number));
  host_run(h);
}

static tp_value broadcast(int64_t number) {
  return (tp_value){.type = TP_INTEGER, .flags = TP_BROADCAST, .as.integer = number};
}

static const tp_value kill_message = {.type = TP_SIGNAL, .as.integer = TP_KILL};

/* ---- The pool --------------------------------------------------------------------------- */

static void spawns_routees_in_order(void **state) {
  host *h = *state;
  tp_behavior_spec pool = {
      .routing = TP_ROUTE_ROUND_ROBIN,
      .size = 3,
      .routee = host_behavior(h, (tp_behavior_spec){.hooks = TP_HOOK_PRE_START}),
  };
  tp_ref *r = host_spawn_spec(h, host_user(h), pool, "pool");
  tp_ref *routees[4] = {NULL};
  host_send(h, r, 1);
  host_run(h);

  assert_log(h, "routee-1:pre_start routee-1:1 routee-2:pre_start routee-3:pre_start");
  assert_int_equal(tp_routees(r, routees, 4), 3);
  for (int i = 0; i < 3; i++) assert_ptr_equal(routees[i], routee(h, i + 1));
  assert_null(routees[3]);
  assert_ptr_equal(tp_ref_parent(routees[0]), r);
}

static void counts_routees_without_room(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_record);
  tp_ref *first = NULL;
  assert_int_equal(tp_routees(pool, NULL, 0), 3);
  assert_int_equal(tp_routees(pool, &first, 1), 3);
  assert_ptr_equal(first, routee(h, 1));
  assert_int_equal(tp_routees(host_spawn(h, host_nothing, "a"), NULL, 0), 0);
}

static void keeps_the_sender(void **state) {
  static const tp_routing all[] = {TP_ROUTE_ROUND_ROBIN, TP_ROUTE_RANDOM, TP_ROUTE_SMALLEST_MAILBOX,
                                   TP_ROUTE_BROADCAST};
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    host *h = host_open();
    assert_int_equal(host_start(h, NULL), TP_OK);
    tp_ref *a = host_spawn(h, host_nothing, "a");
    tp_behavior_spec pool = {.routing = all[i], .size = 1};
    tp_ref *r =
        spawn_pool_of(h, pool, (tp_behavior_spec){.receive = host_code(h, host_record_from)});
    tp_tell(r, tp_integer(1), a);
    tp_tell(r, broadcast(2), a);
    host_send(h, r, 3);
    host_run(h);
    assert_log(h, "routee-1:1<a routee-1:2<a routee-1:3<-");
    host_close(h);
  }
}

static void replies_go_straight_to_the_caller(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_echo);
  tp_ref *slot = host_ask(h, pool, host_value(h, 7), 100);
  host_run(h);
  assert_answer(h, slot, "#7 from routee-1");
}

static void a_broadcast_takes_no_turn(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_record);
  host_send(h, pool, 1);
  host_tell(h, pool, broadcast(2));
  host_send(h, pool, 3);
  host_run(h);
  assert_log(h, "routee-1:1 routee-1:2 routee-2:2 routee-2:3 routee-3:2");
}

static void log_flags(host *h, tp_job *job) {
  host_log(h, "%d", job->envelope.message.flags / TP_BROADCAST);
}

static void a_broadcast_arrives_without_its_flag(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_RANDOM, log_flags);
  host_tell(h, pool, broadcast(2));
  host_run(h);
  assert_log(h, "0 0 0");
}

static void a_broadcast_can_be_asked(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_echo);
  tp_ref *slot = host_ask(h, pool, broadcast(7), 100);
  host_run(h);
  assert_answer(h, slot, "7 from routee-1");
}

static void a_broadcast_shares_one_value(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_BROADCAST, host_nothing);
  tp_value v = host_value(h, 7);
  tp_value_retain(h->system, v);
  host_tell(h, pool, v);
  host_run_one(h);
  assert_in_range(host_value_count(h, v), 3, 5);
  host_run(h);
  assert_int_equal(host_value_count(h, v), 1);
  tp_value_release(h->system, v);
}

/* ---- Strategies ------------------------------------------------------------------------- */

static void round_robin_takes_turns(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_record);
  for (int i = 1; i <= 7; i++) {
    host_send(h, pool, i);
    host_run(h);
  }
  assert_log(h, "routee-1:1 routee-2:2 routee-3:3 routee-1:4 routee-2:5 routee-3:6 routee-1:7");
}

static void round_robin_of_one(void **state) {
  host *h = *state;
  tp_behavior_spec pool = {.routing = TP_ROUTE_ROUND_ROBIN, .size = 1};
  tp_ref *r = spawn_pool_of(h, pool, (tp_behavior_spec){0});
  for (int i = 1; i <= 3; i++) host_send(h, r, i);
  host_run(h);
  assert_log(h, "routee-1:1 routee-1:2 routee-1:3");
}

static void turns_begin_anew_with_the_incarnation(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_record);
  host_send(h, pool, 1);
  host_send(h, pool, 2);
  host_tell(h, pool, kill_message);
  host_run(h);
  host_forget(h);

  for (int i = 3; i <= 6; i++) {
    host_send(h, pool, i);
    host_run(h);
  }
  assert_log(h, "routee-1:3 routee-2:4 routee-3:5 routee-1:6");
}

static void count_routee(host *h, tp_job *job) {
  size_t *counts = h->data;
  char name[32];
  tp_ref_name(job->actor, name, sizeof name);
  counts[name[7] - '1']++;
}

static void random_is_even(void **state) {
  host *h = *state;
  size_t *counts = host_data(h, 3 * sizeof *counts);
  tp_ref *pool = spawn_pool(h, TP_ROUTE_RANDOM, count_routee);
  for (int i = 0; i < 30000; i++) host_send(h, pool, i);
  host_run(h);
  assert_int_equal(counts[0] + counts[1] + counts[2], 30000);
  for (int i = 0; i < 3; i++) assert_in_range(counts[i], 9700, 10300);
}

static void log_number_of_routee(host *h, tp_job *job) {
  char name[32];
  tp_ref_name(job->actor, name, sizeof name);
  host_log(h, "%s", name + 7);
}

static void random_sequence(uint64_t seed, char *text, size_t size) {
  host *h = host_open();
  tp_system_options options = host_defaults();
  options.seed = seed;
  assert_int_equal(host_start(h, &options), TP_OK);
  tp_ref *pool = spawn_pool(h, TP_ROUTE_RANDOM, log_number_of_routee);
  for (int i = 0; i < 40; i++) {
    host_send(h, pool, i);
    host_run(h);
  }
  assert_true(strlen(h->log) < size);
  memcpy(text, h->log, strlen(h->log) + 1);
  host_close(h);
}

static void random_follows_the_seed(void **state) {
  (void)state;
  char first[128];
  char same[128];
  char other[128];
  random_sequence(1, first, sizeof first);
  random_sequence(1, same, sizeof same);
  random_sequence(2, other, sizeof other);
  assert_string_equal(first, same);
  assert_string_not_equal(first, other);
}

static void broadcast_reaches_all(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_BROADCAST, host_record);
  host_send(h, pool, 1);
  host_send(h, pool, 2);
  host_run(h);
  assert_log(h, "routee-1:1 routee-1:2 routee-2:1 routee-2:2 routee-3:1 routee-3:2");
}

static void broadcast_gives_each_reply(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_BROADCAST, host_echo);
  tp_ref *a = host_spawn(h, host_record_from, "a");
  tp_tell(pool, tp_integer(1), a);
  host_run(h);
  assert_log(h, "a:1<routee-1 a:1<routee-2 a:1<routee-3");
}

static void smallest_mailbox_rotates_ties(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_SMALLEST_MAILBOX, host_record);
  for (int i = 1; i <= 4; i++) {
    host_send(h, pool, i);
    host_run(h);
  }
  assert_log(h, "routee-1:1 routee-2:2 routee-3:3 routee-1:4");
}

static void smallest_mailbox_spreads_a_burst(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_SMALLEST_MAILBOX, host_record);
  for (int i = 1; i <= 6; i++) host_send(h, pool, i);
  host_run(h);
  assert_log(h, "routee-1:1 routee-1:4 routee-2:2 routee-2:5 routee-3:3 routee-3:6");
}

static void smallest_mailbox_counts_the_message_in_hand(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.routing = TP_ROUTE_SMALLEST_MAILBOX, .size = 2};
  tp_ref *pool = spawn_pool_of(h, spec, (tp_behavior_spec){.receive = host_code(h, host_stall)});
  for (int i = 1; i <= 2; i++) {
    host_send(h, pool, i);
    host_run(h);
  }
  assert_log(h, "routee-1:1 routee-2:2");
  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);

  host_send(h, pool, 3);
  host_run(h);
  assert_log(h, "routee-2:3");
}

static void smallest_mailbox_prefers_the_shortest(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_SMALLEST_MAILBOX, host_stall);
  host_tell(h, pool, broadcast(0));
  host_run(h);
  for (int i = 0; i < 3; i++) host_send(h, routee(h, 1), i);
  for (int i = 0; i < 2; i++) host_send(h, routee(h, 3), i);
  size_t before = host_stats(h).queued;

  for (int i = 0; i < 2; i++) host_send(h, pool, 10 + i);
  host_run(h);
  host_forget(h);
  assert_int_equal(host_stats(h).queued, before + 2);

  host_want(h, HOST_DEAD_LETTERS);
  stop_routee(h, 2);
  assert_int_equal(host_count(h, "!dead:routee-2:10:stopped"), 1);
  assert_int_equal(host_count(h, "!dead:routee-2:11:stopped"), 1);
}

static void smallest_mailbox_passes_over_the_stopped(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .routing = TP_ROUTE_SMALLEST_MAILBOX,
      .on_routee_stop = TP_ROUTEE_KEEP,
  };
  tp_ref *pool = spawn_pool_of(h, spec, (tp_behavior_spec){.receive = host_code(h, host_stall)});
  host_tell(h, pool, broadcast(0));
  host_run(h);
  stop_routee(h, 2);
  host_forget(h);
  host_want(h, HOST_DEAD_LETTERS);

  for (int i = 1; i <= 10; i++) host_send(h, pool, i);
  host_run(h);

  assert_log(h, "");
}

/* ---- Custom strategies ------------------------------------------------------------------ */

static tp_ref *spawn_custom(host *h, host_step strategy) {
  tp_behavior_spec pool = {.routing = TP_ROUTE_CUSTOM, .strategy = host_code(h, strategy)};
  return spawn_pool_of(h, pool, (tp_behavior_spec){0});
}

static void pick_by_index(host *h, tp_job *job) {
  tp_ref *routees[3];
  size_t count = tp_routees(job->actor, routees, 3);
  host_log(h, "index:%llu", (unsigned long long)job->index);
  host_route(h, job, &routees[(job->index * 2) % count], 1);
}

static void a_strategy_picks_one(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_custom(h, pick_by_index);
  for (int i = 1; i <= 3; i++) {
    host_send(h, pool, i);
    host_run(h);
  }
  assert_log(h, "index:0 routee-1:1 index:1 routee-3:2 index:2 routee-2:3");
}

static void pick_by_message(host *h, tp_job *job) {
  tp_ref *routees[3];
  tp_routees(job->actor, routees, 3);
  switch (job->envelope.message.as.integer) {
    case 0: host_route(h, job, NULL, 0); break;
    case 2: host_route(h, job, (tp_ref *[]){routees[2], routees[0]}, 2); break;
    case 3: host_route(h, job, (tp_ref *[]){routees[1], routees[1]}, 2); break;
    case 4: host_fail(h, job, host_value(h, 4)); break;
    case 5: host_route(h, job, (tp_ref *[]){host_at(h, "/user/a")}, 1); break;
    default: host_route(h, job, routees, 1); break;
  }
}

static void a_strategy_picks_several(void **state) {
  host *h = *state;
  host_send(h, spawn_custom(h, pick_by_message), 2);
  host_run(h);
  assert_log(h, "routee-3:2 routee-1:2");
}

static void a_strategy_picks_one_twice(void **state) {
  host *h = *state;
  host_send(h, spawn_custom(h, pick_by_message), 3);
  host_run(h);
  assert_log(h, "routee-2:3 routee-2:3");
}

static void a_strategy_picks_nobody(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_custom(h, pick_by_message);
  host_want(h, HOST_DEAD_LETTERS);
  host_send(h, pool, 0);
  host_send(h, pool, 1);
  host_run(h);
  assert_log(h, "routee-1:1");
}

static void a_strategy_picks_an_actor_elsewhere(void **state) {
  host *h = *state;
  host_spawn(h, host_record, "a");
  host_send(h, spawn_custom(h, pick_by_message), 5);
  host_run(h);
  assert_log(h, "a:5");
}

static void a_strategy_that_fails_costs_one_message(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_custom(h, pick_by_message);
  host_want(h, HOST_DEAD_LETTERS | 1u << TP_EVENT_RESTARTED | 1u << TP_EVENT_HOOK_FAILED);
  host_send(h, pool, 4);
  host_send(h, pool, 1);
  host_run(h);
  assert_log(h, "!hook_failed:pool:#4 !dead:pool:4:strategy-error routee-1:1");
}

static void a_strategy_that_fails_fails_the_ask(void **state) {
  host *h = *state;
  tp_ref *slot = host_ask(h, spawn_custom(h, pick_by_message), tp_integer(4), 60000);
  host_run(h);
  assert_answer(h, slot, "failed strategy-error");
}

static void a_broadcast_asks_no_strategy(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_custom(h, pick_by_index);
  host_tell(h, pool, broadcast(1));
  host_send(h, pool, 2);
  host_run(h);
  assert_int_equal(host_count(h, "index:0"), 1);
  assert_int_equal(host_count(h, "index:1"), 0);
  assert_int_equal(host_count(h, "routee-2:1"), 1);
}

static void the_index_begins_anew(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_custom(h, pick_by_index);
  host_send(h, pool, 1);
  host_tell(h, pool, kill_message);
  host_send(h, pool, 2);
  host_run(h);
  assert_int_equal(host_count(h, "index:0"), 2);
}

/* ---- Routees that stop ------------------------------------------------------------------ */

static void a_stopped_routee_leaves(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_record);
  host_want(h, HOST_DEAD_LETTERS);
  stop_routee(h, 2);
  assert_int_equal(tp_routees(pool, NULL, 0), 2);
  for (int i = 1; i <= 4; i++) {
    host_send(h, pool, i);
    host_run(h);
  }
  assert_log(h, "routee-1:1 routee-3:2 routee-1:3 routee-3:4");
}

static void turns_go_on_when_a_routee_leaves(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_record);
  host_send(h, pool, 1);
  host_send(h, pool, 2);
  host_run(h);
  stop_routee(h, 1);
  for (int i = 3; i <= 5; i++) {
    host_send(h, pool, i);
    host_run(h);
  }
  assert_log(h, "routee-1:1 routee-2:2 routee-3:3 routee-2:4 routee-3:5");
}

static void a_routee_that_drains_gets_no_more_mail(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_record);
  host_want(h, HOST_DEAD_LETTERS);
  host_send(h, routee(h, 1), 9);
  tp_stop(routee(h, 1));
  for (int i = 1; i <= 2; i++) host_send(h, pool, i);
  host_run(h);
  assert_log(h, "routee-1:9 routee-2:1 routee-3:2");
}

static tp_ref *spawn_round_robin(host *h, tp_on_routee_stop policy) {
  tp_behavior_spec pool = {.routing = TP_ROUTE_ROUND_ROBIN, .on_routee_stop = policy};
  return spawn_pool_of(h, pool, (tp_behavior_spec){.receive = host_code(h, host_fragile)});
}

static void a_kept_routees_share_is_dead(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_round_robin(h, TP_ROUTEE_KEEP);
  host_want(h, HOST_DEAD_LETTERS);
  stop_routee(h, 2);
  for (int i = 1; i <= 4; i++) {
    host_send(h, pool, i);
    host_run(h);
  }
  assert_log(h, "routee-1:1 !dead:routee-2:2:stopped routee-3:3 routee-1:4");
}

static void a_kept_routee_comes_back_with_the_router(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_round_robin(h, TP_ROUTEE_KEEP);
  stop_routee(h, 2);
  host_tell(h, pool, kill_message);
  host_tell(h, pool, broadcast(1));
  host_run(h);
  assert_log(h, "routee-1:1 routee-2:1 routee-3:1");
}

static void a_respawned_routee_has_its_name(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_round_robin(h, TP_ROUTEE_RESPAWN);
  tp_ref *old = host_keep(h, routee(h, 2));
  tp_ref_retain(old);
  stop_routee(h, 2);
  assert_false(tp_ref_alive(old));
  assert_ptr_not_equal(routee(h, 2), old);
  assert_int_equal(tp_routees(pool, NULL, 0), 3);

  for (int i = 1; i <= 4; i++) {
    host_send(h, pool, i);
    host_run(h);
  }
  assert_log(h, "routee-1:1 routee-2:2 routee-3:3 routee-1:4");
}

static void respawning_ends(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_round_robin(h, TP_ROUTEE_RESPAWN);
  host_want(h, 1u << TP_EVENT_WARNING);
  for (int i = 0; i < 1000 && routee(h, 1) != NULL; i++) stop_routee(h, 1);
  assert_null(routee(h, 1));
  assert_log(h, "!warning:pool:respawn-limit");
  assert_int_equal(tp_routees(pool, NULL, 0), 2);
}

static void a_restarted_routee_stays(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_fragile);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 3; i++) host_send(h, pool, -1);
  }
  host_run(h);
  host_forget(h);
  host_tell(h, pool, broadcast(1));
  host_run(h);
  assert_log(h, "routee-1:1 routee-2:1 routee-3:1");
}

static void a_restarted_routee_keeps_its_mail(void **state) {
  host *h = *state;
  tp_behavior_spec pool = {.routing = TP_ROUTE_ROUND_ROBIN, .size = 1};
  tp_ref *r = spawn_pool_of(h, pool, (tp_behavior_spec){.receive = host_code(h, host_fragile)});
  host_send(h, r, 1);
  host_send(h, r, -2);
  host_send(h, r, 3);
  host_run(h);
  assert_log(h, "routee-1:1 routee-1:-2 routee-1:3");
}

static void one_failing_routee_spares_the_others(void **state) {
  host *h = *state;
  spawn_pool_of(
      h, (tp_behavior_spec){.routing = TP_ROUTE_ROUND_ROBIN},
      (tp_behavior_spec){.receive = host_code(h, host_fragile), .hooks = TP_HOOK_POST_RESTART});
  host_want(h, 1u << TP_EVENT_RESTARTED | 1u << TP_EVENT_FAILED);
  host_send(h, routee(h, 3), -1);
  host_run(h);
  assert_log(h, "routee-3:-1 !failed:routee-3:-1:restart routee-3:post_restart "
                "!restarted:routee-3:-1");
}

static void restart_budgets_are_per_routee(void **state) {
  host *h = *state;
  tp_behavior_spec fragile = {
      .receive = host_code(h, host_fragile),
      .own = {.given = true,
              .directive = TP_DIRECTIVE_RESTART,
              .max_restarts = 1,
              .within = TP_NEVER},
  };
  tp_ref *pool = spawn_pool_of(h, (tp_behavior_spec){.routing = TP_ROUTE_ROUND_ROBIN}, fragile);
  for (int i = 0; i < 3; i++) host_send(h, pool, -1);
  host_run(h);
  assert_int_equal(tp_routees(pool, NULL, 0), 3);
  host_send(h, pool, -1);
  host_run(h);
  assert_int_equal(tp_routees(pool, NULL, 0), 2);
}

/* ---- Nobody left ------------------------------------------------------------------------ */

static void stop_all_routees(host *h) {
  for (int i = 1; i <= 3; i++) stop_routee(h, i);
}

static void mail_without_routees_is_dead(void **state) {
  static const tp_routing all[] = {TP_ROUTE_ROUND_ROBIN, TP_ROUTE_RANDOM, TP_ROUTE_BROADCAST,
                                   TP_ROUTE_SMALLEST_MAILBOX, TP_ROUTE_CUSTOM};
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    host *h = host_open();
    assert_int_equal(host_start(h, NULL), TP_OK);
    tp_behavior_spec pool = {.routing = all[i], .strategy = host_code(h, pick_by_index)};
    tp_ref *r = spawn_pool_of(h, pool, (tp_behavior_spec){0});
    stop_all_routees(h);
    host_want(h, HOST_DEAD_LETTERS);

    host_send(h, r, 1);
    host_tell(h, r, broadcast(2));
    tp_ref *slot = host_ask(h, r, tp_integer(3), 60000);
    host_run(h);

    assert_log(h, "!dead:pool:1:no-routees !dead:pool:2:no-routees");
    assert_answer(h, slot, "failed no-routees");
    assert_true(tp_ref_alive(r));
    host_close(h);
  }
}

/* ---- The end ---------------------------------------------------------------------------- */

static void stopping_drains_the_routees(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool_of(h, (tp_behavior_spec){.routing = TP_ROUTE_ROUND_ROBIN},
                               (tp_behavior_spec){.hooks = TP_HOOK_POST_STOP});
  host_want(h, 1u << TP_EVENT_STOPPED);
  for (int i = 1; i <= 6; i++) host_send(h, pool, i);
  tp_stop(pool);
  host_run(h);
  assert_log(h, "routee-1:1 routee-1:4 routee-1:post_stop !stopped:routee-1 "
                "routee-2:2 routee-2:5 routee-2:post_stop !stopped:routee-2 "
                "routee-3:3 routee-3:6 routee-3:post_stop !stopped:routee-3 !stopped:pool");
}

static void a_hard_stop_does_not_drain(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_record);
  host_want(h, HOST_DEAD_LETTERS);
  for (int i = 1; i <= 3; i++) host_send(h, routee(h, i), i);
  host_send(h, pool, 4);
  tp_stop_now(pool);
  host_run(h);
  assert_int_equal(host_count(h, "!dead:pool:4:stopped"), 1);
  assert_false(tp_ref_alive(pool));
}

static void a_hard_stop_overtakes_draining(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_stall);
  host_tell(h, pool, broadcast(1));
  tp_stop(pool);
  host_run(h);
  assert_true(tp_ref_alive(pool));

  tp_stop_now(pool);
  host_run(h);

  assert_int_equal(host_count(h, "closed"), 3);
  assert_false(tp_ref_alive(pool));
}

static void routees_are_gone_with_the_router(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_RANDOM, host_record);
  tp_stop(pool);
  host_run(h);
  assert_int_equal(host_stats(h).actors, 0);
  assert_int_equal(tp_routees(pool, NULL, 0), 0);
}

static void a_router_can_be_a_routee(void **state) {
  host *h = *state;
  tp_behavior_spec inner = {
      .routing = TP_ROUTE_BROADCAST,
      .size = 2,
      .routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, host_record)}),
  };
  tp_behavior_spec outer = {.routing = TP_ROUTE_ROUND_ROBIN, .size = 2};
  tp_ref *r = spawn_pool_of(h, outer, inner);
  host_send(h, r, 1);
  host_run(h);
  assert_log(h, "routee-1:1 routee-2:1");
  host_tell(h, r, broadcast(2));
  host_run(h);
  assert_int_equal(host_count(h, "routee-1:2") + host_count(h, "routee-2:2"), 4);
}

static void an_ask_that_is_routed_nowhere_times_out(void **state) {
  host *h = *state;
  tp_ref *slot = host_ask(h, spawn_custom(h, pick_by_message), tp_integer(0), 100);
  host_advance(h, 99);
  assert_answer(h, slot, "open");
  host_advance(h, 1);
  assert_answer(h, slot, "failed ask-timeout");
}

static void an_ask_fails_with_the_routee_it_went_to(void **state) {
  host *h = *state;
  tp_behavior_spec pool = {.routing = TP_ROUTE_CUSTOM, .strategy = host_code(h, pick_by_index)};
  tp_ref *r = spawn_pool_of(h, pool, (tp_behavior_spec){.receive = host_code(h, host_stall)});
  tp_ref *slot = host_ask(h, r, tp_integer(0), 60000);
  host_run(h);
  stop_routee(h, 1);
  assert_answer(h, slot, "failed actor-stopped");
}

static tp_ref *spawn_full(host *h, tp_routing routing, tp_overflow overflow) {
  tp_behavior_spec bounded = {
      .receive = host_code(h, host_record),
      .capacity = 1,
      .overflow = overflow,
  };
  tp_ref *pool = spawn_pool_of(h, (tp_behavior_spec){.routing = routing}, bounded);
  host_want(h, HOST_DEAD_LETTERS);
  return pool;
}

static void what_a_routee_rejects_is_dead(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_full(h, TP_ROUTE_ROUND_ROBIN, TP_OVERFLOW_REJECT);
  for (int i = 1; i <= 4; i++) host_send(h, pool, i);
  host_run(h);
  assert_log(h, "!dead:routee-1:4:mailbox-full routee-1:1 routee-2:2 routee-3:3");
}

static void an_ask_that_a_routee_rejects_fails(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_full(h, TP_ROUTE_ROUND_ROBIN, TP_OVERFLOW_REJECT);
  for (int i = 1; i <= 3; i++) host_send(h, pool, i);
  tp_ref *slot = host_ask(h, pool, tp_integer(4), 60000);
  host_run(h);
  assert_answer(h, slot, "failed mailbox-full");
}

static void smallest_mailbox_spreads_what_is_too_much(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_full(h, TP_ROUTE_SMALLEST_MAILBOX, TP_OVERFLOW_DROP_HEAD);
  for (int i = 1; i <= 6; i++) host_send(h, pool, i);
  host_run(h);
  assert_log(h, "routee-1:4 routee-2:5 routee-3:6");
}

static void each_router_takes_one_wrapping_off(void **state) {
  host *h = *state;
  tp_behavior_spec inner = {
      .routing = TP_ROUTE_ROUND_ROBIN,
      .size = 2,
      .routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, log_flags)}),
  };
  tp_behavior_spec outer = {.routing = TP_ROUTE_ROUND_ROBIN, .size = 2};
  tp_ref *r = spawn_pool_of(h, outer, inner);
  tp_value twice = {.type = TP_INTEGER, .flags = 2 * TP_BROADCAST};
  host_tell(h, r, twice);
  host_run(h);
  assert_log(h, "0 0 0 0");
  host_tell(h, r, broadcast(1));
  host_run(h);
  assert_log(h, "0 0");
}

static void a_signal_can_be_broadcast(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_record);
  host_tell(h, pool,
            (tp_value){.type = TP_SIGNAL, .flags = TP_BROADCAST, .as.integer = TP_POISON_PILL});
  host_run(h);
  assert_true(tp_ref_alive(pool));
  assert_int_equal(tp_routees(pool, NULL, 0), 0);
  assert_int_equal(host_stats(h).actors, 1);
}

static void the_turn_of_one_who_leaves_goes_to_the_next(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, TP_ROUTE_ROUND_ROBIN, host_record);
  host_send(h, pool, 1);
  host_run(h);
  stop_routee(h, 2);
  for (int i = 2; i <= 3; i++) {
    host_send(h, pool, i);
    host_run(h);
  }
  assert_log(h, "routee-1:1 routee-3:2 routee-1:3");
}

static void a_router_that_has_drained_can_be_stopped_again(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .routing = TP_ROUTE_ROUND_ROBIN,
      .size = 1,
      .routee = host_behavior(h, (tp_behavior_spec){.hooks = 0}),
  };
  tp_ref *pool = NULL;
  assert_int_equal(tp_spawn(host_user(h), host_behavior(h, spec), "pool", 4, &pool), TP_OK);
  host_run(h);
  tp_stop(pool);
  host_run(h);
  assert_false(tp_ref_alive(pool));

  tp_stop_now(pool);
  assert_false(tp_ready(h->system));
  tp_ref_release(pool);
  host_run(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("RTR-3 routees are spawned in order in the router's start",
                spawns_routees_in_order),
      HOST_TEST("RTR-15 routees are counted without room for them", counts_routees_without_room),
      HOST_TEST("RTR-4 a routee sees the sender", keeps_the_sender),
      HOST_TEST("RTR-4 a reply goes straight to the caller", replies_go_straight_to_the_caller),
      HOST_TEST("RTR-5 a broadcast reaches everyone and takes no turn", a_broadcast_takes_no_turn),
      HOST_TEST("RTR-5 a broadcast arrives unwrapped", a_broadcast_arrives_without_its_flag),
      HOST_TEST("RTR-5 a broadcast can be asked", a_broadcast_can_be_asked),
      HOST_TEST("RTR-5 a broadcast shares one value", a_broadcast_shares_one_value),
      HOST_TEST("RTR-6 round robin takes turns", round_robin_takes_turns),
      HOST_TEST("RTR-6 round robin of one", round_robin_of_one),
      HOST_TEST("RTR-6 turns begin anew with the incarnation",
                turns_begin_anew_with_the_incarnation),
      HOST_TEST("RTR-7 random is even", random_is_even),
      HOST_TEST("RTR-7 random follows the system's seed", random_follows_the_seed),
      HOST_TEST("RTR-8 broadcast reaches all", broadcast_reaches_all),
      HOST_TEST("RTR-8 broadcast gives a real sender each reply", broadcast_gives_each_reply),
      HOST_TEST("RTR-9 smallest mailbox rotates ties", smallest_mailbox_rotates_ties),
      HOST_TEST("RTR-9 smallest mailbox spreads a burst", smallest_mailbox_spreads_a_burst),
      HOST_TEST("RTR-9 smallest mailbox counts the message in hand",
                smallest_mailbox_counts_the_message_in_hand),
      HOST_TEST("RTR-9 smallest mailbox prefers the shortest queue",
                smallest_mailbox_prefers_the_shortest),
      HOST_TEST("RTR-9 smallest mailbox passes over stopped routees",
                smallest_mailbox_passes_over_the_stopped),
      HOST_TEST("RTR-10 a strategy picks one, by the index of the message", a_strategy_picks_one),
      HOST_TEST("RTR-10 a strategy picks several", a_strategy_picks_several),
      HOST_TEST("RTR-10 a strategy picks one twice", a_strategy_picks_one_twice),
      HOST_TEST("RTR-10 a strategy that picks nobody drops the message silently",
                a_strategy_picks_nobody),
      HOST_TEST("RTR-11 a strategy may pick a live actor elsewhere",
                a_strategy_picks_an_actor_elsewhere),
      HOST_TEST("RTR-11 a strategy that fails costs that one message",
                a_strategy_that_fails_costs_one_message),
      HOST_TEST("RTR-11 a strategy that fails fails the ask", a_strategy_that_fails_fails_the_ask),
      HOST_TEST("RTR-5 a broadcast asks no strategy", a_broadcast_asks_no_strategy),
      HOST_TEST("RTR-10 the index begins anew with the incarnation", the_index_begins_anew),
      HOST_TEST("RTR-12 a routee that stops leaves", a_stopped_routee_leaves),
      HOST_TEST("RTR-12 turns go on when a routee leaves", turns_go_on_when_a_routee_leaves),
      HOST_TEST("RTR-15 a routee that drains gets no more mail",
                a_routee_that_drains_gets_no_more_mail),
      HOST_TEST("RTR-12 the share of a routee that is kept is dead-lettered",
                a_kept_routees_share_is_dead),
      HOST_TEST("RTR-12 a routee that was kept comes back with the router's restart",
                a_kept_routee_comes_back_with_the_router),
      HOST_TEST("RTR-12 a routee is respawned under its name, in its place",
                a_respawned_routee_has_its_name),
      HOST_TEST("RTR-12 respawning ends with a warning", respawning_ends),
      HOST_TEST("RTR-12 a routee that restarts stays", a_restarted_routee_stays),
      HOST_TEST("RTR-14 a routee that restarts keeps its mail", a_restarted_routee_keeps_its_mail),
      HOST_TEST("RTR-14 one failing routee spares the others",
                one_failing_routee_spares_the_others),
      HOST_TEST("RTR-14 restart budgets are per routee", restart_budgets_are_per_routee),
      HOST_TEST("RTR-19 without routees a tell is dead-lettered and an ask fails at once",
                mail_without_routees_is_dead),
      HOST_TEST("RTR-13 stopping drains the routees first", stopping_drains_the_routees),
      HOST_TEST("RTR-13 a hard stop does not drain", a_hard_stop_does_not_drain),
      HOST_TEST("RTR-13 a hard stop overtakes one that drains", a_hard_stop_overtakes_draining),
      HOST_TEST("RTR-13 routees are gone with the router", routees_are_gone_with_the_router),
      HOST_TEST("RTR-4 a router can be a routee", a_router_can_be_a_routee),
      HOST_TEST("RTR-10 an ask that is routed to nobody times out",
                an_ask_that_is_routed_nowhere_times_out),
      HOST_TEST("ASK-7 an ask fails with the routee it was routed to",
                an_ask_fails_with_the_routee_it_went_to),
      HOST_TEST("MBX-3 what a routee rejects is dead-lettered", what_a_routee_rejects_is_dead),
      HOST_TEST("MBX-3 an ask that a routee rejects fails", an_ask_that_a_routee_rejects_fails),
      HOST_TEST("RTR-9 smallest mailbox spreads what is too much",
                smallest_mailbox_spreads_what_is_too_much),
      HOST_TEST("RTR-5 each router takes one wrapping off", each_router_takes_one_wrapping_off),
      HOST_TEST("RTR-5 a poison pill can be broadcast", a_signal_can_be_broadcast),
      HOST_TEST("RTR-12 the turn of a routee that leaves goes to the next",
                the_turn_of_one_who_leaves_goes_to_the_next),
      HOST_TEST("RTR-13 a router that has drained can be stopped again",
                a_router_that_has_drained_can_be_stopped_again),
  };
  return cmocka_run_group_tests_name("router", tests, NULL, NULL);
}
