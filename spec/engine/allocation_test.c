/* What happens when memory is out: each scenario is run with its first allocation failing, then its
 * second, and so on until it needs no more. Whatever fails, nothing crashes and nothing leaks, and
 * when memory is back the system still answers an ask and ends in order. */
#include "host.h"

typedef void (*scenario)(host *h);

enum { KEPT = 4096 }; /* bytes */

/* ---- Running a scenario ----------------------------------------------------------------- */

typedef enum shortage {
  ONE_ALLOCATION, /* fails, and those after it do not */
  ALL_FROM_THERE,
} shortage;

static void assert_it_answers(host *h) {
  tp_ref *slot = NULL;
  tp_ref *echo = host_spawn(h, host_echo, "answers");
  assert_non_null(echo);
  assert_int_equal(tp_ask(echo, host_value(h, 7), 1000 * MS, &slot), TP_OK);
  host_advance(h, 1000);
  assert_answer(h, slot, "#7 from answers");
  tp_ref_release(slot);
}

/* Returns how many allocations failed. */
static size_t run_short_of_memory(scenario run, shortage what, size_t nth, bool abrupt,
                                  size_t keep) {
  host *h = host_open();
  h->keep = keep;
  h->lenient = true;
  if (what == ONE_ALLOCATION) h->fail_at = nth;
  if (what == ALL_FROM_THERE) h->fail_from = nth;
  tp_system_options options = host_defaults();
  options.metrics = true;
  if (host_start(h, &options) == TP_OK) run(h);

  size_t failures = h->failures;
  h->fail_at = h->fail_from = 0;
  h->abrupt = abrupt;
  if (h->system != NULL && !abrupt) {
    host_advance(h, 5000);
    if (!tp_terminating(h->system)) assert_it_answers(h);
  }
  host_close(h);
  return failures;
}

static void survive(scenario run, shortage what, bool abrupt, size_t keep) {
  size_t nth = 1;
  while (run_short_of_memory(run, what, nth, abrupt, keep) > 0) nth++;
  assert_true(nth > 4);
}

static void survives(void **state) {
  const scenario *run = *state;
  survive(*run, ONE_ALLOCATION, false, 0);
  survive(*run, ALL_FROM_THERE, false, 0);
  survive(*run, ALL_FROM_THERE, true, 0);
  survive(*run, ALL_FROM_THERE, false, KEPT);
  survive(*run, ALL_FROM_THERE, true, KEPT);
}

/* ---- Steps ------------------------------------------------------------------------------ */

static void sleep_and_reply(host *h, tp_job *job) { host_sleep(h, job, 10, host_echo); }

static void answer_with_nil(host *h, tp_job *job) { host_reply(h, job, tp_nil(), false); }

static void fail_the_ask(host *h, tp_job *job) { host_reply(h, job, host_value(h, 1), true); }

static void raise_a_value(host *h, tp_job *job) { host_fail(h, job, host_value(h, 1)); }

static void ask_b(host *h, tp_job *job) {
  tp_ref *slot = NULL;
  tp_ref *b = host_at(h, "/user/b");
  if (b != NULL) tp_ask(b, host_value(h, 1), 50 * MS, &slot);
  host_wait(h, job, slot, answer_with_nil);
}

static void forward_to_b(host *h, tp_job *job) {
  tp_ref *b = host_at(h, "/user/b");
  if (b != NULL) tp_forward(job->actor, b, 2);
}

static void decide_restart(host *h, tp_job *job) { host_decide(h, job, TP_DIRECTIVE_RESTART); }

static void by_chance(host *h, tp_job *job) {
  host_rank(h, job, (double)tp_random(job->system, 2));
}

static void pick_two(host *h, tp_job *job) {
  tp_ref *routees[3];
  size_t count = tp_routees(job->actor, routees, 3);
  if (job->kind == TP_JOB_HASH) {
    host_hash(h, job, "a");
  } else {
    host_route(h, job, routees, count < 2 ? count : 2);
  }
}

static void keep_state(host *h, tp_job *job) { tp_actor_set_state(job->actor, host_value(h, 1)); }

static void start_timer(host *h, tp_ref *actor, tp_repeat repeat, int64_t milliseconds) {
  tp_tick tick = 0;
  if (actor == NULL) return;
  tp_timer_start(actor, host_value(h, 1), repeat, milliseconds * MS, milliseconds * MS, &tick);
}

static void want_everything(host *h) { host_want(h, (1u << TP_EVENT_KINDS) - 1); }

static void stop(tp_ref *r) {
  if (r != NULL) tp_stop(r);
}

static void stop_now(tp_ref *r) {
  if (r != NULL) tp_stop_now(r);
}

static void kill(host *h, tp_ref *r) {
  host_tell(h, r, (tp_value){.type = TP_SIGNAL, .as.integer = TP_KILL});
}

static tp_supervision directive(tp_directive d) {
  return (tp_supervision){.given = true, .directive = d, .max_restarts = 3, .within = 1000 * MS};
}

/* ---- Scenarios -------------------------------------------------------------------------- */

static void tells(host *h) {
  tp_behavior_spec spec = {.receive = host_code(h, keep_state), .hooks = HOST_ALL_HOOKS};
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  for (int i = 0; i < 40; i++) host_tell(h, a, host_value(h, i));
  host_run(h);
  for (int i = 0; i < 10; i++) host_tell(h, a, host_value(h, i));
  host_run(h);
}

static void spawns(host *h) {
  tp_behavior *hooked = host_behavior(h, (tp_behavior_spec){.hooks = HOST_ALL_HOOKS});
  tp_ref *a = host_spawn_behavior(h, host_user(h), hooked, "a");
  tp_ref *b = host_spawn_behavior(h, a, hooked, NULL);
  for (int i = 0; i < 20; i++) {
    char name[16];
    snprintf(name, sizeof name, "c%d", i);
    host_spawn_behavior(h, b, hooked, name);
  }
  host_run(h);
  stop(b);
  host_run(h);
  host_spawn_behavior(h, a, hooked, NULL);
  host_run(h);
}

static void stops(host *h) {
  want_everything(h);
  tp_behavior *hooked = host_behavior(h, (tp_behavior_spec){.hooks = HOST_ALL_HOOKS});
  tp_ref *a = host_spawn_behavior(h, host_user(h), hooked, "a");
  tp_ref *b = host_spawn_behavior(h, host_user(h), hooked, "b");
  tp_ref *waiting = host_spawn(h, sleep_and_reply, "waiting");
  host_spawn_behavior(h, a, hooked, "child");
  for (int i = 0; i < 10; i++) host_tell(h, a, host_value(h, i));
  for (int i = 0; i < 10; i++) host_tell(h, b, host_value(h, i));
  host_tell(h, waiting, host_value(h, 1));
  stop(a);
  host_tell(h, a, host_value(h, 11));
  host_run(h);
  stop_now(b);
  stop_now(waiting);
  host_tell(h, b, host_value(h, 12));
  host_run(h);
}

static void asks(host *h) {
  tp_ref *a = host_spawn(h, ask_b, "a");
  tp_ref *b = host_spawn(h, sleep_and_reply, "b");
  host_ask(h, a, host_value(h, 1), 100);
  host_ask(h, b, host_value(h, 2), 5);
  host_tell(h, a, host_value(h, 3));
  host_advance(h, 100);
  host_ask(h, a, host_value(h, 4), 100);
  host_ask(h, b, host_value(h, 5), 100);
  host_run(h);
  stop_now(b);
  host_ask(h, b, host_value(h, 6), 100);
  host_advance(h, 200);
}

static void slots(host *h) {
  char token[] = "token";
  tp_ref *sleep = host_slot(h, 10, true);
  tp_ref *settled = host_slot(h, 10, false);
  tp_ref *failed = host_slot(h, 10, false);
  tp_ref *forgotten = host_slot(h, 10, false);
  if (sleep != NULL) tp_slot_notify(sleep, token);
  if (settled != NULL) tp_slot_settle(settled, host_value(h, 1), false, NULL);
  if (settled != NULL) tp_slot_notify(settled, token);
  if (failed != NULL) tp_slot_fail(failed, "cancelled");
  if (forgotten != NULL) {
    tp_slot_notify(forgotten, token);
    tp_slot_forget(forgotten);
  }
  host_advance(h, 20);
}

static void resolutions(host *h) {
  tp_ref *found = host_slot(h, 100, false);
  tp_ref *missed = host_slot(h, 100, false);
  if (found != NULL) tp_resolve(h->system, "/user/a", 7, found);
  if (missed != NULL) tp_resolve(h->system, "/user/b", 7, missed);
  host_spawn(h, host_nothing, "a");
  host_advance(h, 100);
}

static void timers(host *h) {
  tp_ref *a = host_spawn(h, host_fragile, "a");
  tp_tick ticks[3] = {0};
  start_timer(h, a, TP_ONCE, 10);
  start_timer(h, a, TP_FIXED_DELAY, 7);
  start_timer(h, a, TP_FIXED_RATE, 5);
  for (int i = 0; i < 20; i++) start_timer(h, a, TP_ONCE, 10 + i);
  tp_schedule(h->system, host_code(h, host_nothing), 10 * MS, 0, &ticks[0]);
  tp_schedule(h->system, host_code(h, raise_a_value), 10 * MS, 10 * MS, &ticks[1]);
  tp_schedule(h->system, host_code(h, host_nothing), 10 * MS, 10 * MS, &ticks[2]);
  host_advance(h, 20);
  for (int i = 0; i < 3; i++) tp_tick_cancel(h->system, ticks[i]);
  host_send(h, a, -1);
  host_advance(h, 20);
  start_timer(h, a, TP_FIXED_RATE, 5);
  host_advance(h, 20);
  stop(a);
  host_advance(h, 20);
}

static void failures(host *h) {
  want_everything(h);
  tp_behavior_spec spec = {.receive = host_code(h, raise_a_value), .hooks = HOST_ALL_HOOKS};
  spec.own = directive(TP_DIRECTIVE_RESTART);
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  spec = (tp_behavior_spec){.receive = host_code(h, raise_a_value), .keep_children = true};
  spec.own = directive(TP_DIRECTIVE_ESCALATE);
  tp_ref *b = host_spawn_spec(h, a, spec, "b");
  spec = (tp_behavior_spec){.receive = host_code(h, raise_a_value)};
  spec.own = directive(TP_DIRECTIVE_STOP);
  tp_ref *c = host_spawn_spec(h, b, spec, "c");
  spec = (tp_behavior_spec){.receive = host_code(h, host_fragile)};
  spec.own.given = true;
  spec.own.decider = host_code(h, decide_restart);
  spec.own.max_restarts = -1;
  tp_ref *d = host_spawn_spec(h, host_user(h), spec, "d");
  for (int i = 0; i < 3; i++) {
    host_tell(h, a, host_value(h, 1));
    host_send(h, d, -1);
    host_tell(h, c, host_value(h, 3));
    host_run(h);
    host_tell(h, b, host_value(h, 2));
    kill(h, d);
    host_run(h);
  }
}

static void waits(host *h) {
  tp_behavior_spec spec = {.receive = host_code(h, host_fragile)};
  tp_ref *parent = host_spawn_spec(h, host_user(h), spec, "parent");
  spec = (tp_behavior_spec){
      .receive = host_code(h, sleep_and_reply),
      .code = host_code(h, sleep_and_reply),
      .hooks = TP_HOOK_PRE_START | TP_HOOK_POST_STOP,
  };
  tp_ref *child = host_spawn_spec(h, parent, spec, "child");
  host_ask(h, child, host_value(h, 1), 1000);
  host_advance(h, 15);
  host_send(h, parent, -1);
  host_advance(h, 5);
  stop(parent);
  host_advance(h, 100);
}

static void rank_or_fail(host *h, tp_job *job) {
  int64_t payload = host_payload(h, job->envelope.message);
  if (payload % 3 == 0) {
    host_fail(h, job, host_value(h, 1));
  } else {
    host_rank(h, job, (double)(payload % 7));
  }
}

static void stash_most(host *h, tp_job *job) {
  if (host_payload(h, job->envelope.message) % 5 == 0) {
    tp_unstash_all(job->actor);
  } else {
    tp_stash(job->actor);
  }
}

static void priorities(host *h) {
  want_everything(h);
  tp_behavior_spec spec = {.receive = host_code(h, stash_most),
                           .priority = host_code(h, rank_or_fail),
                           .stash_capacity = 10};
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  spec = (tp_behavior_spec){
      .priority = host_code(h, rank_or_fail), .capacity = 3, .overflow = TP_OVERFLOW_DROP_LOWEST};
  tp_ref *b = host_spawn_spec(h, host_user(h), spec, "b");
  start_timer(h, a, TP_FIXED_RATE, 5);
  for (int i = 0; i < 20; i++) {
    host_tell(h, a, host_value(h, i));
    host_ask(h, b, host_value(h, i), 10);
  }
  host_advance(h, 20);
  for (int i = 0; i < 20; i++) host_tell(h, a, host_value(h, i));
  stop(a);
  stop_now(b);
  host_advance(h, 20);
}

static void dead_letters(host *h) {
  tp_ref *a = host_spawn(h, host_nothing, "a");
  stop(a);
  host_run(h);
  want_everything(h);
  for (int i = 0; i < 100; i++) host_tell(h, a, host_value(h, i));
  host_run(h);
}

static void use_pool(host *h, tp_routing routing, tp_on_routee_stop policy) {
  tp_behavior_spec pool = {
      .routing = routing,
      .size = 3,
      .on_routee_stop = policy,
      .gathering = {.timeout = 50 * MS},
      .strategy = host_code(h, pick_two),
      .routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, sleep_and_reply)}),
  };
  if (pool.routee == NULL) {
    tp_value_release(h->system, pool.strategy);
    return;
  }
  tp_ref *r = host_spawn_spec(h, host_user(h), pool, NULL);
  for (int i = 0; i < 4; i++) host_tell(h, r, host_value(h, i));
  tp_value broadcast = host_value(h, 5);
  broadcast.flags = TP_BROADCAST;
  host_tell(h, r, broadcast);
  host_ask(h, r, host_value(h, 6), 1000);
  host_run(h);
  if (r != NULL && tp_next_child(r, NULL) != NULL) tp_stop_now(tp_next_child(r, NULL));
  host_advance(h, 30);
  host_tell(h, r, host_value(h, 7));
  kill(h, r);
  host_ask(h, r, host_value(h, 8), 1000);
  host_advance(h, 30);
  stop(r);
  host_advance(h, 100);
}

static void routers(host *h) {
  use_pool(h, TP_ROUTE_ROUND_ROBIN, TP_ROUTEE_RESPAWN);
  use_pool(h, TP_ROUTE_BROADCAST, TP_ROUTEE_REMOVE);
  use_pool(h, TP_ROUTE_SMALLEST_MAILBOX, TP_ROUTEE_KEEP);
  use_pool(h, TP_ROUTE_CUSTOM, TP_ROUTEE_REMOVE);
  use_pool(h, TP_ROUTE_CONSISTENT_HASHING, TP_ROUTEE_RESPAWN);
}

static tp_ref *ask_pool(host *h, tp_ref *pool, int64_t request) {
  return host_ask(h, pool, (tp_value){.type = TP_POOL_REQUEST, .as.integer = request}, 1000);
}

static void pools_that_are_resized(host *h) {
  tp_resizer resizer = {
      .lower_bound = 2,
      .upper_bound = 4,
      .pressure_threshold = 1,
      .rampup_rate = 1,
      .messages_per_resize = 1,
  };
  tp_behavior_spec pool = {
      .routing = TP_ROUTE_ROUND_ROBIN,
      .size = 1,
      .resizer = &resizer,
      .on_routee_stop = TP_ROUTEE_RESPAWN,
      .routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, sleep_and_reply)}),
  };
  if (pool.routee == NULL) return;
  want_everything(h);
  tp_ref *r = host_spawn_spec(h, host_user(h), pool, NULL);
  ask_pool(h, r, 3);
  for (int i = 0; i < 8; i++) host_ask(h, r, host_value(h, i), 1000);
  ask_pool(h, r, 0);
  host_run(h);
  ask_pool(h, r, -3);
  ask_pool(h, r, TP_ROUTEES_MAX + 1);
  ask_pool(h, r, 0);
  host_tell(h, r, host_value(h, 9));
  host_advance(h, 50);
}

static void groups(host *h) {
  tp_ref *a = host_spawn(h, host_echo, "a");
  if (a == NULL) return;
  tp_behavior_spec group = {
      .routing = TP_ROUTE_ROUND_ROBIN,
      .members = (tp_member[]){{.actor = a}, {.path = "/user/b", .length = 7}},
      .size = 2,
  };
  tp_ref *r = host_spawn_spec(h, host_user(h), group, NULL);
  for (int i = 0; i < 3; i++) host_ask(h, r, host_value(h, i), 1000);
  host_run(h);
  stop(a);
  host_spawn(h, host_echo, "b");
  host_ask(h, r, host_value(h, 4), 1000);
  ask_pool(h, r, 0);
  ask_pool(h, r, 1);
  host_run(h);
  kill(h, r);
  host_ask(h, r, host_value(h, 5), 1000);
  host_advance(h, 50);
}

static void forwards(host *h) {
  want_everything(h);
  tp_ref *a = host_spawn(h, forward_to_b, "a");
  tp_ref *b = host_spawn(h, host_echo, "b");
  for (int i = 0; i < 4; i++) host_ask(h, a, host_value(h, i), 1000);
  host_run(h);
  host_ask(h, a, host_value(h, 5), 1000);
  stop(b);
  host_advance(h, 2000);
}

static void scatters(host *h) { use_pool(h, TP_ROUTE_FIRST_COMPLETED, TP_ROUTEE_RESPAWN); }

static void scatter_to(host *h, host_step step) {
  tp_behavior_spec pool = {
      .routing = TP_ROUTE_FIRST_COMPLETED,
      .size = 3,
      .gathering = {.timeout = 50 * MS},
      .routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, step)}),
  };
  if (pool.routee == NULL) return;
  tp_ref *r = host_spawn_spec(h, host_user(h), pool, NULL);
  tp_ref *a = host_spawn(h, host_nothing, NULL);
  host_ask(h, r, host_value(h, 1), 1000);
  if (r != NULL) tp_tell(r, host_value(h, 2), a);
  host_tell(h, r, host_value(h, 3));
  host_advance(h, 20);
  host_ask(h, r, host_value(h, 4), 1000);
  host_run(h);
  stop(r);
  host_advance(h, 100);
}

/* Routers that ask one after another, cancel, or wait for several. */
static void gathers(host *h) {
  tp_gathering hows[] = {
      {.order = TP_ASK_IN_TURN, .delay = 5 * MS, .max_extra_load = 1, .cancel_losers = true},
      {.order = TP_ASK_IN_TURN, .percentile = 0.5, .max_extra_load = 1},
      {.order = TP_ASK_AT_RANDOM, .delay = 5 * MS},
      {.wait_for = TP_WAIT_FOR_MAJORITY, .list = true, .cancel_losers = true},
      {.wait_for = TP_WAIT_FOR_ALL, .list = true},
  };
  for (size_t i = 0; i < sizeof hows / sizeof hows[0]; i++) {
    tp_behavior_spec pool = {
        .routing = i < 2 ? TP_ROUTE_HEDGED : TP_ROUTE_SCATTER_GATHER,
        .size = 3,
        .gathering = hows[i],
        .routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, sleep_and_reply)}),
    };
    pool.gathering.timeout = 25 * MS;
    if (pool.routee == NULL) continue;
    tp_ref *r = host_spawn_spec(h, host_user(h), pool, NULL);
    for (int n = 0; n < 3; n++) host_ask(h, r, host_value(h, n), 1000);
    host_advance(h, 50);
    stop(r);
    host_advance(h, 50);
  }
}

static void stream_from(host *h, tp_ref *r) {
  tp_stream *st = NULL;
  tp_ref *slot = NULL;
  if (r == NULL || tp_stream_open(r, host_value(h, 1), 25 * MS, &st) != TP_OK) return;
  for (int i = 0; i < 3; i++) {
    if (!tp_stream_waits(st) && tp_stream_next(st, &slot) == TP_OK) host_keep(h, slot);
    host_advance(h, 10);
  }
  tp_stream_release(st);
}

static void streams(host *h) {
  tp_behavior_spec pool = {
      .routing = TP_ROUTE_BROADCAST,
      .size = 3,
      .routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, sleep_and_reply)}),
  };
  if (pool.routee == NULL) return;
  stream_from(h, host_spawn_spec(h, host_user(h), pool, NULL));
  stream_from(h, host_spawn(h, host_echo, NULL));
  stream_from(h, host_spawn(h, host_nothing, NULL));
}

/* Two pools that gather and cancel, of two pools each: their askers and streams are passed on. */
static void pools_of_pools(host *h) {
  static const tp_routing kinds[] = {TP_ROUTE_BROADCAST, TP_ROUTE_CUSTOM, TP_ROUTE_FIRST_COMPLETED};
  want_everything(h);
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    tp_gathering how = {.timeout = 25 * MS, .cancel_losers = true};
    tp_behavior *routee =
        host_behavior(h, (tp_behavior_spec){.receive = host_code(h, sleep_and_reply),
                                            .priority = host_code(h, by_chance),
                                            .capacity = 1,
                                            .overflow = TP_OVERFLOW_DROP_LOWEST});
    if (routee == NULL) continue;
    tp_behavior_spec inner = {.routing = kinds[i],
                              .size = 2,
                              .gathering = how,
                              .strategy = host_code(h, pick_two),
                              .routee = routee};
    tp_behavior_spec outer = {.routing = TP_ROUTE_FIRST_COMPLETED,
                              .size = 2,
                              .gathering = how,
                              .routee = host_behavior(h, inner)};
    if (outer.routee == NULL) continue;
    tp_ref *r = host_spawn_spec(h, host_user(h), outer, NULL);
    for (int n = 0; n < 3; n++) host_ask(h, r, host_value(h, n), 1000);
    stream_from(h, r);
    stop(r);
    host_advance(h, 50);
  }
}

static void failing_scatters(host *h) {
  want_everything(h);
  scatter_to(h, fail_the_ask);
  scatter_to(h, host_nothing);
}

static void set_aside(host *h, tp_job *job) {
  (void)h;
  (void)tp_stash(job->actor);
}

static void put_back(host *h, tp_job *job) {
  (void)tp_become(job->actor, host_code(h, host_nothing));
  (void)tp_unstash_all(job->actor);
}

static void stashes(host *h) {
  want_everything(h);
  tp_ref *a = host_spawn(h, set_aside, "a");
  for (int i = 0; i < 10; i++) host_tell(h, a, host_value(h, i));
  host_ask(h, a, host_value(h, 11), 100);
  host_run(h);
  if (a != NULL) (void)tp_become(a, host_code(h, put_back));
  host_send(h, a, 12);
  host_run(h);
}

static void watches(host *h) {
  want_everything(h);
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *b = host_spawn(h, host_nothing, "b");
  tp_ref *slot = NULL;
  if (a == NULL || b == NULL) return;
  (void)tp_watch(a, b, tp_nil(), false);
  (void)tp_watch(a, b, host_value(h, 1), true);
  if (tp_await_stop(b, 100 * MS, &slot) == TP_OK) host_keep(h, slot);
  stop_now(b);
  host_run(h);
}

static void receive_timeouts(host *h) {
  want_everything(h);
  tp_ref *a = host_spawn(h, host_nothing, "a");
  if (a == NULL) return;
  (void)tp_set_receive_timeout(a, 10 * MS);
  host_send(h, a, 1);
  host_advance(h, 35);
  stop_now(a);
  host_run(h);
}

static void families(host *h) {
  want_everything(h);
  tp_supervision own = directive(TP_DIRECTIVE_RESTART);
  own.all_for_one = true;
  tp_behavior *b = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, host_fragile),
                                                       .hooks = HOST_ALL_HOOKS,
                                                       .own = own});
  tp_ref *first = host_spawn_behavior(h, host_user(h), b, "a");
  tp_ref *second = host_spawn_behavior(h, host_user(h), b, "b");
  host_run(h);
  host_send(h, first, -1);
  host_send(h, second, 1);
  host_run(h);
}

static void terminations(host *h) {
  want_everything(h);
  tp_ref *a = host_spawn(h, sleep_and_reply, "a");
  tp_ref *b = host_spawn(h, host_nothing, "b");
  for (int i = 0; i < 10; i++) host_tell(h, a, host_value(h, i));
  host_ask(h, a, host_value(h, 11), 60000);
  host_slot(h, 60000, false);
  start_timer(h, b, TP_FIXED_RATE, 5);
  host_run(h);
  tp_terminate(h->system);
  host_tell(h, b, host_value(h, 12));
  host_advance(h, 5000);
  host_tell(h, b, host_value(h, 13));
  host_run(h);
}

static void a_tick_comes_later(void **state) {
  (void)state;
  host *h = host_open();
  assert_int_equal(host_start(h, NULL), TP_OK);
  tp_ref *a = host_spawn(h, host_record_at, "a");
  host_run(h);
  start_timer(h, a, TP_ONCE, 10);
  h->fail_from = h->allocations + 1;
  host_advance(h, 15);
  assert_log(h, "");
  assert_in_range(h->failures, 1, 10);

  h->fail_from = 0;
  host_advance(h, 5);
  assert_log(h, "a:#1@16");
  host_close(h);
}

#define SCENARIO(title, run)                                                                       \
  {                                                                                                \
    title, survives, NULL, NULL, &(scenario) { run }                                               \
  }

int main(void) {
  const struct CMUnitTest tests[] = {
      SCENARIO("SUP-12 tells survive a lack of memory", tells),
      SCENARIO("SUP-12 spawns survive a lack of memory", spawns),
      SCENARIO("SUP-12 stops survive a lack of memory", stops),
      SCENARIO("SUP-12 asks survive a lack of memory", asks),
      SCENARIO("SUP-12 slots survive a lack of memory", slots),
      SCENARIO("SUP-12 resolutions survive a lack of memory", resolutions),
      SCENARIO("SUP-12 timers survive a lack of memory", timers),
      SCENARIO("SUP-12 failures survive a lack of memory", failures),
      SCENARIO("SUP-12 waits survive a lack of memory", waits),
      SCENARIO("SUP-12 priorities survive a lack of memory", priorities),
      SCENARIO("SUP-12 dead letters survive a lack of memory", dead_letters),
      SCENARIO("SUP-12 routers survive a lack of memory", routers),
      SCENARIO("SUP-12 pools that are resized survive a lack of memory", pools_that_are_resized),
      SCENARIO("SUP-12 groups survive a lack of memory", groups),
      SCENARIO("SUP-12 forwards survive a lack of memory", forwards),
      SCENARIO("SUP-12 scatters survive a lack of memory", scatters),
      SCENARIO("SUP-12 failing scatters survive a lack of memory", failing_scatters),
      SCENARIO("SUP-12 hedged requests and quorums survive a lack of memory", gathers),
      SCENARIO("SUP-12 streams survive a lack of memory", streams),
      SCENARIO("SUP-12 pools of pools survive a lack of memory", pools_of_pools),
      SCENARIO("SUP-12 stashes survive a lack of memory", stashes),
      SCENARIO("SUP-12 watches survive a lack of memory", watches),
      SCENARIO("SUP-12 receive timeouts survive a lack of memory", receive_timeouts),
      SCENARIO("SUP-12 all for one survives a lack of memory", families),
      SCENARIO("SUP-12 terminating survives a lack of memory", terminations),
      {"TMR-5 a tick that finds no memory comes later", a_tick_comes_later, NULL, NULL, NULL},
  };
  return cmocka_run_group_tests_name("allocation", tests, NULL, NULL);
}
