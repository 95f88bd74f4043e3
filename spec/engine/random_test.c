/* Random runs: actors that do anything at any time, with memory and without. Each run must end in
 * order with nothing left open and nothing leaked; a run that does not is told by its seed. */
#include <math.h>

#include "host.h"

enum { REFS = 32, TICKS = 16, STREAMS = 4, POOLS = 10, OUTER_STEPS = 150, INNER_STEPS = 600 };

typedef struct chaos {
  uint64_t random;
  int left; /* actions that handlers may still take */
  tp_ref *refs[REFS];
  tp_tick ticks[TICKS];
  tp_stream *streams[STREAMS];
  tp_behavior *plain;
  tp_behavior *pools[POOLS];
} chaos;

/* ---- Chance ----------------------------------------------------------------------------- */

/* A linear congruential generator (Knuth's MMIX). */
static size_t any(chaos *c, size_t n) {
  c->random = c->random * 6364136223846793005u + 1442695040888963407u;
  return (size_t)((c->random >> 33) % n);
}

static tp_ref *any_ref(chaos *c) { return c->refs[any(c, REFS)]; }

static tp_value any_value(host *h, chaos *c) {
  switch (any(c, 5)) {
    case 0: return tp_integer(1);
    case 1: return host_error(2);
    case 2: return (tp_value){.type = TP_INTEGER, .flags = TP_BROADCAST};
    case 3: {
      tp_ref *r = any_ref(c);
      if (r == NULL || !tp_ref_is_actor(r)) return tp_nil();
      tp_ref_retain(r);
      return (tp_value){.type = TP_REF, .as.ref = r};
    }
    default: return host_value(h, 3);
  }
}

static void remember(chaos *c, tp_ref *r) {
  if (r == NULL) return;
  size_t i = any(c, REFS);
  if (c->refs[i] != NULL) tp_ref_release(c->refs[i]);
  c->refs[i] = r;
}

static void remember_tick(chaos *c, tp_tick t) {
  if (t != 0) c->ticks[any(c, TICKS)] = t;
}

/* ---- Priorities ------------------------------------------------------------------------- */

static void end_ranking(host *h, chaos *c, tp_job *job) {
  if (any(c, 6) == 0) {
    tp_fail(job, host_value(h, 8), tp_nil());
  } else {
    tp_ranked(job, any(c, 6) == 0 ? NAN : (double)any(c, 3));
  }
}

static void rank_at_once(host *h, chaos *c, tp_ref *r) {
  tp_job job;
  if (tp_rank_next(r, &job)) end_ranking(h, c, &job);
}

/* ---- Actions ---------------------------------------------------------------------------- */

static void tell_any(host *h, chaos *c, tp_ref *sender) {
  tp_ref *r = any_ref(c);
  if (r == NULL) return;
  tp_value v = any_value(h, c);
  size_t signal = any(c, 20);
  if (signal < 2 && tp_ref_is_actor(r)) {
    tp_value_release(h->system, v);
    v = (tp_value){.type = TP_SIGNAL, .as.integer = signal == 0 ? TP_KILL : TP_POISON_PILL};
  }
  tp_tell(r, v, sender);
  if (any(c, 2) == 0) rank_at_once(h, c, r);
}

static tp_ref *ask_any(host *h, chaos *c) {
  tp_ref *slot = NULL;
  tp_ref *r = any_ref(c);
  if (r == NULL || !tp_ref_is_actor(r)) return NULL;
  tp_ask(r, any_value(h, c), (tp_time)any(c, 50) * MS, &slot);
  return slot;
}

static void spawn_any(host *h, chaos *c, tp_ref *parent) {
  static const char *const names[] = {"a", "b", "c"};
  tp_behavior *b = any(c, 4) > 0 ? c->plain : c->pools[any(c, POOLS)];
  const char *name = any(c, 2) == 0 ? names[any(c, 3)] : NULL;
  tp_ref *r = NULL;
  if (b == NULL) return;
  tp_spawn(parent != NULL ? parent : host_user(h), b, name, name != NULL ? strlen(name) : 0, &r);
  remember(c, r);
}

static void start_any_timer(host *h, chaos *c, tp_ref *actor) {
  tp_tick t = 0;
  tp_time delay = (tp_time)any(c, 30) * MS;
  tp_time interval = (tp_time)(5 + any(c, 30)) * MS;
  tp_timer_start(actor, any_value(h, c), (tp_repeat)any(c, 3), delay, interval, &t);
  remember_tick(c, t);
}

static void cancel_any_timer(host *h, chaos *c) {
  tp_tick_cancel(h->system, c->ticks[any(c, TICKS)]);
}

static void stop_any(chaos *c) {
  tp_ref *r = any_ref(c);
  if (r == NULL || !tp_ref_is_actor(r)) return;
  if (any(c, 2) == 0) {
    tp_stop(r);
  } else {
    tp_stop_now(r);
  }
}

static void open_any_stream(host *h, chaos *c) {
  tp_stream **st = &c->streams[any(c, STREAMS)];
  tp_ref *r = any_ref(c);
  if (r == NULL || !tp_ref_is_actor(r)) return;
  if (*st != NULL) tp_stream_release(*st);
  *st = NULL;
  tp_stream_open(r, any_value(h, c), (tp_time)any(c, 50) * MS, st);
}

/* The next reply of a stream, or NULL. */
static tp_ref *next_of_any_stream(chaos *c) {
  tp_stream *st = c->streams[any(c, STREAMS)];
  tp_ref *slot = NULL;
  if (st != NULL && any(c, 10) == 0) tp_stream_close(st);
  if (st != NULL && !tp_stream_waits(st)) tp_stream_next(st, &slot);
  return slot;
}

static void wait_for_any(host *h, chaos *c, tp_job *job, host_step then) {
  tp_ref *slot = NULL;
  if (any(c, 3) == 0) slot = next_of_any_stream(c);
  if (slot == NULL && any(c, 2) == 0) slot = ask_any(h, c);
  if (slot == NULL) tp_slot_new(h->system, (tp_time)any(c, 40) * MS, true, &slot);
  host_wait(h, job, slot, then);
}

static tp_ref *any_actor(chaos *c) {
  tp_ref *r = any_ref(c);
  return r != NULL && tp_ref_is_actor(r) ? r : NULL;
}

static void watch_any(host *h, chaos *c, tp_ref *self) {
  tp_ref *target = any_actor(c);
  if (target == NULL || target == self) return;
  switch (any(c, 3)) {
    case 0: tp_watch(self, target, tp_nil(), false); break;
    case 1: tp_watch(self, target, any_value(h, c), true); break;
    default: tp_unwatch(self, target); break;
  }
}

static void kill_any(chaos *c) {
  tp_ref *r = any_actor(c);
  if (r != NULL) tp_kill(r);
}

static void await_any_stop(chaos *c) {
  tp_ref *slot = NULL;
  tp_ref *target = any_actor(c);
  if (target == NULL) return;
  tp_await_stop(target, (tp_time)any(c, 50) * MS, &slot);
  remember(c, slot);
}

static void go_on(host *h, tp_job *job);

/* What concerns an actor's own mail. */
static void turn_over(host *h, chaos *c, tp_ref *self) {
  tp_ref *other = any_actor(c);
  switch (any(c, 6)) {
    case 0: tp_become(self, any(c, 3) == 0 ? tp_nil() : host_code(h, go_on)); break;
    case 1: tp_unstash_all(self); break;
    case 2:
      tp_set_receive_timeout(self, any(c, 3) == 0 ? TP_NEVER : (tp_time)(1 + any(c, 20)) * MS);
      break;
    case 3:
      if (other != NULL) tp_forward(self, other, 1 + (uint32_t)any(c, 3));
      break;
    default: tp_stash(self); break;
  }
}

static void act(host *h, chaos *c, tp_ref *self) {
  switch (any(c, 13)) {
    case 12: open_any_stream(h, c); break;
    case 9: watch_any(h, c, self); break;
    case 10: turn_over(h, c, self); break;
    case 11:
      if (any(c, 4) == 0) kill_any(c);
      break;
    case 0: spawn_any(h, c, self); break;
    case 1: start_any_timer(h, c, self); break;
    case 2: cancel_any_timer(h, c); break;
    case 3: tp_actor_set_state(self, host_value(h, 4)); break;
    case 4:
      if (any(c, 4) == 0) tp_stop_after(self);
      break;
    case 5:
      if (any(c, 4) == 0) stop_any(c);
      break;
    default: tell_any(h, c, self); break;
  }
}

/* What handlers and hooks do: a few actions, then they return, raise, wait or answer. */
static void go_on(host *h, tp_job *job) {
  chaos *c = h->data;
  if (c->left <= 0 || tp_actor_cancelled(job->actor)) return;
  for (size_t i = any(c, 3); i > 0; i--, c->left--) act(h, c, job->actor);
  if (job->kind == TP_JOB_RECEIVE && any(c, 2) == 0) {
    tp_ref *sender = tp_actor_sender(job->actor);
    if (sender != NULL) tp_reply(sender, any_value(h, c), any(c, 4) == 0, job->actor);
    if (sender != NULL && any(c, 4) == 0) tp_ref_retain(sender), remember(c, sender);
  }
  switch (any(c, 8)) {
    case 0: host_fail(h, job, host_value(h, 5)); break;
    case 1:
    case 2: wait_for_any(h, c, job, go_on); break;
    default: break;
  }
}

static void decide_any(host *h, tp_job *job) {
  chaos *c = h->data;
  if (any(c, 6) == 0) {
    host_fail(h, job, host_value(h, 6));
  } else {
    host_decide(h, job, (tp_directive)any(c, 4));
  }
}

/* Not in the name of a router: two that answer each other would do so for ever. */
static void route_to_any(host *h, tp_job *job) {
  chaos *c = h->data;
  tp_ref *routees[3];
  if (c->left-- > 0) tell_any(h, c, NULL);
  if (any(c, 10) == 0) stop_any(c);
  size_t count = tp_routees(job->actor, routees, 3);
  if (any(c, 6) == 0) {
    host_fail(h, job, host_value(h, 7));
  } else if (job->kind == TP_JOB_HASH) {
    host_hash(h, job, any(c, 2) == 0 ? "a" : "b");
  } else {
    host_route(h, job, routees, count > 3 ? 3 : any(c, count + 1));
  }
}

static void rank_any(host *h, tp_job *job) {
  chaos *c = h->data;
  bool is_router = tp_behavior_look(job->behavior)->routing != TP_ROUTE_NONE;
  if (c->left-- > 0) tell_any(h, c, is_router ? NULL : job->actor);
  if (any(c, 10) == 0) stop_any(c);
  if (any(c, 6) == 0) {
    host_fail(h, job, host_value(h, 8));
  } else {
    host_rank(h, job, (double)any(c, 3));
  }
}

static void run_function(host *h, tp_job *job) {
  chaos *c = h->data;
  if (c->left-- > 0) tell_any(h, c, NULL);
  if (any(c, 4) == 0) wait_for_any(h, c, job, run_function);
}

/* ---- Runs ------------------------------------------------------------------------------- */

static void make_behaviors(host *h, chaos *c) {
  bool ranks = any(c, 3) == 0;
  tp_behavior_spec plain = {
      .receive = host_code(h, go_on),
      .code = host_code(h, go_on),
      .hooks = (uint32_t)any(c, HOST_ALL_HOOKS + 1),
      .keep_children = any(c, 2) == 0,
      .drain_children = any(c, 2) == 0,
      .capacity = any(c, 2) == 0 ? 1 + (uint32_t)any(c, 4) : 0,
      .overflow = (tp_overflow)(any(c, 3) + (ranks ? TP_OVERFLOW_DROP_NEW : 0)),
      .priority = ranks ? host_code(h, rank_any) : tp_nil(),
      .stash_capacity = 4,
      .own = {.given = true,
              .all_for_one = any(c, 4) == 0,
              .directive = TP_DIRECTIVE_RESTART,
              .decider = host_code(h, decide_any),
              .max_restarts = 5,
              .within = 50 * MS},
  };
  c->plain = host_behavior(h, plain);
  for (size_t i = 0; i < POOLS && c->plain != NULL; i++) {
    tp_behavior_spec pool = {
        .routing = (tp_routing)(TP_ROUTE_ROUND_ROBIN + i),
        .size = 1 + (uint32_t)any(c, 3),
        .routee = c->plain,
        .on_routee_stop = (tp_on_routee_stop)any(c, 3),
        .gathering = {.order = (tp_ask_order)any(c, 3),
                      .delay = (tp_time)any(c, 10) * MS,
                      .percentile = any(c, 2) == 0 ? 0.5 : 0,
                      .max_extra_load = (double)any(c, 2),
                      .wait_for = any(c, 3) == 0 ? TP_WAIT_FOR_MAJORITY : (uint32_t)any(c, 3),
                      .list = any(c, 2) == 0,
                      .cancel_losers = any(c, 2) == 0,
                      .timeout = (tp_time)(1 + any(c, 30)) * MS},
        .strategy = host_code(h, route_to_any),
        .priority = any(c, 4) == 0 ? host_code(h, rank_any) : tp_nil(),
    };
    c->pools[i] = host_behavior(h, pool);
  }
}

static void step_from_outside(host *h, chaos *c) {
  tp_tick t = 0;
  tp_ref *slot = NULL;
  switch (any(c, 16)) {
    case 14: open_any_stream(h, c); break;
    case 15: remember(c, next_of_any_stream(c)); break;
    case 12: kill_any(c); break;
    case 13: await_any_stop(c); break;
    case 0:
    case 1:
    case 2: spawn_any(h, c, NULL); break;
    case 3:
    case 4: tell_any(h, c, NULL); break;
    case 5: remember(c, ask_any(h, c)); break;
    case 6: stop_any(c); break;
    case 7:
      tp_slot_new(h->system, (tp_time)any(c, 50) * MS, false, &slot), remember(c, slot);
      break;
    case 8:
      tp_schedule(h->system, host_code(h, run_function), (tp_time)any(c, 20) * MS,
                  (tp_time)any(c, 2) * 7 * MS, &t);
      remember_tick(c, t);
      break;
    case 9: cancel_any_timer(h, c); break;
    default: host_advance(h, (int64_t)any(c, 20)); break;
  }
  for (size_t i = any(c, 10); i > 0; i--) host_run_one(h);
}

static void release_all(host *h, chaos *c) {
  for (size_t i = 0; i < REFS; i++) {
    if (c->refs[i] != NULL) tp_ref_release(c->refs[i]);
  }
  for (size_t i = 0; i < TICKS; i++) tp_tick_cancel(h->system, c->ticks[i]);
  for (size_t i = 0; i < STREAMS; i++) {
    if (c->streams[i] != NULL) tp_stream_release(c->streams[i]);
  }
}

static void run_at_random(uint64_t seed, size_t fail_from, size_t until, bool abrupt) {
  host *h = host_open();
  chaos *c = host_data(h, sizeof *c);
  c->random = seed;
  c->left = INNER_STEPS;
  h->lenient = true;
  h->fail_from = fail_from;
  if (host_start(h, NULL) == TP_OK) {
    host_want(h, (1u << TP_EVENT_KINDS) - 1);
    make_behaviors(h, c);
    for (int i = 0; i < OUTER_STEPS; i++) {
      if (h->allocations >= until) h->fail_from = 0;
      step_from_outside(h, c);
    }
  }
  h->fail_from = 0;
  c->left = 0;
  if (h->system != NULL && !abrupt) {
    host_advance(h, 5000);
    tp_terminate(h->system);
    host_advance(h, 10000);
  }
  release_all(h, c);
  h->abrupt = abrupt;
  host_close(h);
}

/* The seed of the run that goes on, 0 after the last. */
static int tell_seed(void **state) {
  const uint64_t *seed = *state;
  if (*seed != 0) print_error("the seed was %llu\n", (unsigned long long)*seed);
  return 0;
}

enum { RUNS = 1000 };

static void with_memory(void **state) {
  uint64_t *seed = *state;
  for (*seed = 1; *seed <= RUNS; ++*seed) run_at_random(*seed, 0, 0, false);
  *seed = 0;
}

static void with_memory_failing_for_a_while(void **state) {
  uint64_t *seed = *state;
  for (*seed = 1; *seed <= RUNS; ++*seed) {
    run_at_random(*seed, (size_t)*seed, (size_t)(*seed + 1 + *seed % 40), false);
  }
  *seed = 0;
}

static void freed_at_any_time(void **state) {
  uint64_t *seed = *state;
  for (*seed = 1; *seed <= RUNS; ++*seed) run_at_random(*seed, 0, 0, true);
  *seed = 0;
}

static void freed_without_memory(void **state) {
  uint64_t *seed = *state;
  for (*seed = 1; *seed <= RUNS; ++*seed) run_at_random(*seed, (size_t)*seed, SIZE_MAX, true);
  *seed = 0;
}

#define RANDOM_TEST(title, function)                                                               \
  {                                                                                                \
    title, function, NULL, tell_seed, &(uint64_t) { 0 }                                            \
  }

int main(void) {
  const struct CMUnitTest tests[] = {
      RANDOM_TEST("SYS-4 random runs end in order and leave nothing", with_memory),
      RANDOM_TEST("SUP-12 random runs survive a lack of memory", with_memory_failing_for_a_while),
      RANDOM_TEST("SYS-8 random runs can be cut off", freed_at_any_time),
      RANDOM_TEST("SUP-12 random runs without memory can be cut off", freed_without_memory),
  };
  return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
