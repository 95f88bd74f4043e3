/* Pools that are asked for their routees, resized by requests, and by themselves. */
#include "host.h"
#include "resizer.h"

static tp_ref *spawn_pool(host *h, tp_behavior_spec pool, host_step step) {
  if (pool.routing == TP_ROUTE_NONE) pool.routing = TP_ROUTE_ROUND_ROBIN;
  if (pool.size == 0) pool.size = 3;
  pool.routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, step)});
  tp_ref *r = host_spawn_spec(h, host_user(h), pool, "pool");
  host_run(h);
  return r;
}

static tp_value request(int64_t n) { return (tp_value){.type = TP_POOL_REQUEST, .as.integer = n}; }

static const tp_value get_routees = {.type = TP_POOL_REQUEST};

/* What the pool answers. */
static const char *ask(host *h, tp_ref *pool, tp_value message) {
  tp_ref *slot = host_ask(h, pool, message, 60000);
  host_run(h);
  return host_answer(h, slot);
}

/* The names of those who get mail: "1 2 3". */
static const char *numbers(tp_ref *pool) {
  static char text[256];
  tp_ref *routees[32];
  size_t count = tp_routees(pool, routees, 32);
  size_t at = 0;
  text[0] = '\0';
  for (size_t i = 0; i < count; i++) {
    char name[64];
    tp_ref_name(routees[i], name, sizeof name);
    at += (size_t)snprintf(text + at, sizeof text - at, i == 0 ? "%s" : " %s", name + 7);
  }
  return text;
}

static tp_ref *routee(const host *h, int number) {
  char path[32];
  snprintf(path, sizeof path, "/user/pool/routee-%d", number);
  return host_at(h, path);
}

static const tp_value kill_message = {.type = TP_SIGNAL, .as.integer = TP_KILL};

/* ---- Requests --------------------------------------------------------------------------- */

static void lists_its_routees(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){.size = 2}, host_nothing);
  tp_ref *slot = host_ask(h, pool, get_routees, 60000);
  host_run(h);
  tp_value list = tp_slot_outcome(slot).value;
  assert_answer(h, slot, "bundle-2 from pool");
  for (int i = 0; i < 2; i++) {
    assert_int_equal(list.as.bundle->item[i].type, TP_REF);
    assert_ptr_equal(list.as.bundle->item[i].as.ref, routee(h, i + 1));
  }
}

static void an_answer_keeps_who_stops(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){.size = 2}, host_nothing);
  tp_ref *slot = host_ask(h, pool, get_routees, 60000);
  host_run(h);
  tp_stop(pool);
  host_run(h);
  assert_false(tp_ref_alive(tp_slot_outcome(slot).value.as.bundle->item[0].as.ref));
}

static void grows(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){0}, host_record);
  assert_string_equal(ask(h, pool, request(2)), "5 from pool");
  assert_string_equal(numbers(pool), "1 2 3 4 5");
  for (int i = 1; i <= 6; i++) host_send(h, pool, i);
  host_run(h);
  assert_log(h, "routee-1:1 routee-1:6 routee-2:2 routee-3:3 routee-4:4 routee-5:5");
}

static void shrinks_from_the_end(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){.size = 5}, host_record);
  assert_string_equal(ask(h, pool, request(-2)), "3 from pool");
  assert_string_equal(numbers(pool), "1 2 3");
  assert_int_equal(host_stats(h).actors, 4);
}

static void the_removed_drain(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){0}, host_record);
  host_want(h, HOST_DEAD_LETTERS | 1u << TP_EVENT_STOPPED);
  for (int i = 1; i <= 6; i++) host_send(h, pool, i);
  host_tell(h, pool, request(-1));
  host_send(h, pool, 7);
  host_run(h);
  assert_log(h, "routee-1:1 routee-1:4 routee-1:7 routee-2:2 routee-2:5 routee-3:3 routee-3:6 "
                "!stopped:routee-3");
}

static void numbers_are_never_given_again(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){0}, host_nothing);
  ask(h, pool, request(-2));
  ask(h, pool, request(2));
  assert_string_equal(numbers(pool), "1 4 5");
  ask(h, pool, request(-1));
  ask(h, pool, request(1));
  assert_string_equal(numbers(pool), "1 4 6");
}

static void a_restart_brings_back_the_size(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){0}, host_nothing);
  ask(h, pool, request(4));
  ask(h, pool, request(-1));
  host_tell(h, pool, kill_message);
  host_run(h);
  assert_string_equal(numbers(pool), "1 2 3");
  ask(h, pool, request(1));
  assert_string_equal(numbers(pool), "1 2 3 4");
}

static void removing_too_many_removes_all(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){0}, host_record);
  assert_string_equal(ask(h, pool, request(-TP_ROUTEES_MAX)), "0 from pool");
  assert_string_equal(ask(h, pool, tp_integer(1)), "failed no-routees");
  assert_string_equal(ask(h, pool, request(1)), "1 from pool");
  host_send(h, pool, 2);
  host_run(h);
  assert_log(h, "routee-4:2");
}

static void no_number_is_too_low(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){0}, host_nothing);
  assert_string_equal(ask(h, pool, request(INT64_MIN)), "0 from pool");
}

static void has_a_largest_size(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){0}, host_nothing);
  assert_string_equal(ask(h, pool, request(TP_ROUTEES_MAX - 2)), "failed too-many-routees");
  assert_string_equal(ask(h, pool, request(INT64_MAX)), "failed too-many-routees");
  assert_string_equal(numbers(pool), "1 2 3");
}

static void answers_whoever_sent(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){0}, host_record);
  tp_ref *a = host_spawn(h, host_record_from, "a");
  tp_tell(pool, request(1), a);
  tp_tell(pool, get_routees, a);
  host_run(h);
  assert_log(h, "a:4<pool a:bundle-4<pool");
}

static void answers_nobody(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){0}, host_record);
  host_want(h, HOST_DEAD_LETTERS);
  host_tell(h, pool, request(1));
  host_tell(h, pool, get_routees);
  tp_tell(pool, get_routees, pool);
  host_run(h);
  assert_log(h, "");
  assert_string_equal(numbers(pool), "1 2 3 4");
}

static void requests_take_no_turn(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){0}, host_record);
  host_send(h, pool, 1);
  host_tell(h, pool, get_routees);
  host_tell(h, pool, request(1));
  host_send(h, pool, 2);
  host_tell(h, pool, request(-1));
  host_send(h, pool, 3);
  host_run(h);
  assert_log(h, "routee-1:1 routee-2:2 routee-3:3");
}

static void take_first(host *h, tp_job *job) {
  tp_ref *first = NULL;
  tp_routees(job->actor, &first, 1);
  host_log(h, "strategy");
  host_route(h, job, &first, 1);
}

static void requests_ask_no_strategy(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.routing = TP_ROUTE_CUSTOM, .strategy = host_code(h, take_first)};
  tp_ref *pool = spawn_pool(h, spec, host_record);
  assert_string_equal(ask(h, pool, request(1)), "4 from pool");
  assert_log(h, "");
}

static void requests_are_not_scattered(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.routing = TP_ROUTE_FIRST_COMPLETED, .gathering = {.timeout = 100 * MS}};
  tp_ref *pool = spawn_pool(h, spec, host_record);
  host_want(h, 1u << TP_EVENT_WARNING);
  host_tell(h, pool, request(1));
  assert_string_equal(ask(h, pool, get_routees), "bundle-4 from pool");
  assert_log(h, "");
}

static void a_request_can_be_broadcast(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){.size = 2}, host_record);
  tp_value wrapped = request(1);
  wrapped.flags = TP_BROADCAST;
  host_tell(h, pool, wrapped);
  host_run(h);
  assert_log(h, "routee-1:request+1 routee-2:request+1");
  assert_string_equal(numbers(pool), "1 2");
}

static void a_removed_routee_is_not_respawned(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.on_routee_stop = TP_ROUTEE_RESPAWN};
  tp_ref *pool = spawn_pool(h, spec, host_nothing);
  ask(h, pool, request(-1));
  assert_string_equal(numbers(pool), "1 2");
  tp_stop_now(routee(h, 2));
  host_run(h);
  assert_string_equal(numbers(pool), "1 2");
}

static void a_routee_is_respawned_in_its_place(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.on_routee_stop = TP_ROUTEE_RESPAWN};
  tp_ref *pool = spawn_pool(h, spec, host_stall);
  host_send(h, routee(h, 2), 1);
  host_run(h);
  tp_stop(routee(h, 2));
  assert_string_equal(ask(h, pool, request(4)), "6 from pool");
  assert_string_equal(ask(h, pool, request(-4)), "2 from pool");
  assert_string_equal(numbers(pool), "1 3");
  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_string_equal(numbers(pool), "1 2 3");
}

static void a_respawned_routee_shifts_no_turn(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.on_routee_stop = TP_ROUTEE_RESPAWN};
  tp_ref *pool = spawn_pool(h, spec, host_record);
  for (int i = 1; i <= 2; i++) host_send(h, pool, i);
  host_run(h);
  tp_stop_now(routee(h, 1));
  host_run(h);
  for (int i = 3; i <= 4; i++) {
    host_send(h, pool, i);
    host_run(h);
  }
  assert_log(h, "routee-1:1 routee-2:2 routee-3:3 routee-1:4");
}

static void a_kept_routee_can_be_removed(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.on_routee_stop = TP_ROUTEE_KEEP};
  tp_ref *pool = spawn_pool(h, spec, host_nothing);
  tp_stop_now(routee(h, 3));
  host_run(h);
  assert_string_equal(ask(h, pool, request(-2)), "1 from pool");
  assert_string_equal(numbers(pool), "1");
  assert_int_equal(host_stats(h).actors, 2);
}

static void stopping_comes_after_requests(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){0}, host_record);
  tp_ref *early = host_ask(h, pool, request(1), 60000);
  tp_stop(pool);
  tp_ref *late = host_ask(h, pool, request(1), 60000);
  host_run(h);
  assert_answer(h, early, "4 from pool");
  assert_answer(h, late, "failed actor-stopped");
  assert_int_equal(host_stats(h).actors, 0);
}

static void a_terminating_system_adds_nobody(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){0}, host_record);
  tp_ref *slot = host_ask(h, pool, request(1), 60000);
  tp_terminate(h->system);
  host_run(h);
  assert_answer(h, slot, "failed system-terminated");
}

static void many_come_and_go(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){.size = 1}, host_nothing);
  assert_string_equal(ask(h, pool, request(50000)), "50001 from pool");
  assert_string_equal(ask(h, pool, request(-50000)), "1 from pool");
  assert_int_equal(host_stats(h).actors, 2);
}

/* ---- Resizers --------------------------------------------------------------------------- */

/* Akka's defaults. */
static tp_resizer resizer(uint32_t lower, uint32_t upper) {
  return (tp_resizer){
      .lower_bound = lower,
      .upper_bound = upper,
      .pressure_threshold = 1,
      .rampup_rate = 0.2,
      .backoff_threshold = 0.3,
      .backoff_rate = 0.1,
      .messages_per_resize = 10,
  };
}

static void changes_as_akka_says(void **state) {
  static const struct {
    uint32_t lower, upper;
    double rampup_rate, backoff_threshold, backoff_rate;
    uint32_t size, pressed;
    int64_t change;
  } table[] = {
      /* all under pressure: ceil(rampup_rate * size) more */
      {1, 1000, 0.2, 0.3, 0.1, 1, 1, 1},
      {1, 1000, 0.2, 0.3, 0.1, 5, 5, 1},
      {1, 1000, 0.2, 0.3, 0.1, 6, 6, 2},
      {1, 1000, 0.2, 0.3, 0.1, 100, 100, 20},
      {1, 1000, 0.0, 0.3, 0.1, 100, 100, 0},
      {1, 1000, 2.5, 0.3, 0.1, 3, 3, 8},
      {1, 1000000, 1e300, 0.3, 0.1, 3, 3, 999997},
      {1, 1000000, 1.7e308, 0.3, 0.1, 1000, 1000, 999000},
      /* not all: no more */
      {1, 1000, 0.2, 0.3, 0.1, 100, 99, 0},
      /* fewer than the threshold: floor(-backoff_rate * size) */
      {1, 1000, 0.2, 0.3, 0.1, 100, 30, 0},
      {1, 1000, 0.2, 0.3, 0.1, 100, 29, -10},
      {1, 1000, 0.2, 0.3, 0.1, 11, 0, -2},
      {1, 1000, 0.2, 0.3, 0.1, 2, 0, -1},
      {1, 1000, 0.2, 0.3, 1.0, 100, 0, -99},
      {1, 1000, 0.2, 1.0, 0.1, 100, 99, -10},
      {1, 1000, 0.2, 0.0, 0.1, 100, 0, 0},
      {1, 1000, 0.2, 0.3, 0.0, 100, 0, 0},
      /* within the bounds, whatever the pressure */
      {1, 10, 0.2, 0.3, 0.1, 10, 10, 0},
      {1, 10, 0.2, 0.3, 0.1, 9, 9, 1},
      {1, 10, 0.2, 0.3, 0.1, 12, 12, -2},
      {1, 10, 0.2, 0.3, 0.1, 100, 50, -90},
      {5, 10, 0.2, 0.3, 0.1, 5, 0, 0},
      {5, 10, 0.2, 0.3, 0.1, 3, 1, 2},
      {5, 10, 0.2, 0.3, 0.1, 3, 3, 2},
      {3, 3, 0.2, 0.3, 0.1, 3, 3, 0},
      {3, 3, 0.2, 0.3, 0.1, 3, 0, 0},
      /* nobody */
      {1, 10, 0.2, 0.3, 0.1, 0, 0, 1},
      {4, 10, 0.2, 0.3, 0.1, 0, 0, 4},
  };
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    tp_resizer z = resizer(table[i].lower, table[i].upper);
    z.rampup_rate = table[i].rampup_rate;
    z.backoff_threshold = table[i].backoff_threshold;
    z.backoff_rate = table[i].backoff_rate;
    int64_t change = tp_resizer_change(&z, table[i].size, table[i].pressed);
    if (change != table[i].change) {
      fail_msg("row %zu: %lld instead of %lld", i, (long long)change, (long long)table[i].change);
    }
  }
}

static tp_ref *spawn_resized(host *h, tp_resizer z, uint32_t size, host_step step) {
  return spawn_pool(h, (tp_behavior_spec){.size = size, .resizer = &z}, step);
}

static void resizes_at_the_first_message_and_then_at_intervals(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_resized(h, resizer(1, 10), 10, host_nothing);
  static const size_t sizes[] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 8, 8};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    host_send(h, pool, 1);
    host_run(h);
    assert_int_equal(tp_routees(pool, NULL, 0), sizes[i]);
  }
}

static void the_first_message_moves_the_size_into_the_bounds(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_resized(h, resizer(5, 10), 2, host_record);
  assert_string_equal(numbers(pool), "1 2");
  host_send(h, pool, 1);
  host_run(h);
  assert_string_equal(numbers(pool), "1 2 3 4 5");
  assert_log(h, "routee-1:1");
}

static void requests_do_not_count(void **state) {
  host *h = *state;
  tp_resizer z = resizer(1, 10);
  z.messages_per_resize = 1;
  tp_ref *pool = spawn_resized(h, z, 5, host_nothing);
  for (int i = 0; i < 5; i++) assert_string_equal(ask(h, pool, get_routees), "bundle-5 from pool");
  host_send(h, pool, 1);
  assert_string_equal(ask(h, pool, get_routees), "bundle-4 from pool");
}

/* How large a pool of two is after one more message, with this threshold: each routee is busy or not,
 * and so many messages wait in its mailbox. */
static size_t size_under(uint32_t threshold, bool busy, int waiting) {
  host *h = host_open();
  assert_int_equal(host_start(h, NULL), TP_OK);
  tp_resizer z = resizer(1, 10);
  z.pressure_threshold = threshold;
  z.backoff_rate = 0;
  tp_ref *pool = spawn_resized(h, z, 2, host_stall);
  for (int i = 1; busy && i <= 2; i++) host_send(h, routee(h, i), 0);
  host_run(h);
  host_send(h, pool, 1); /* its turn comes before theirs */
  for (int i = 1; i <= 2; i++) {
    for (int n = 0; n < waiting; n++) host_send(h, routee(h, i), 1);
  }
  host_run_one(h);
  size_t size = tp_routees(pool, NULL, 0);
  host_close(h);
  return size;
}

static void pressure_is_what_the_threshold_says(void **state) {
  (void)state;
  assert_int_equal(size_under(0, true, 0), 3);
  assert_int_equal(size_under(0, false, 5), 2);
  assert_int_equal(size_under(1, true, 0), 2);
  assert_int_equal(size_under(1, true, 1), 3);
  assert_int_equal(size_under(1, false, 5), 2);
  assert_int_equal(size_under(3, true, 2), 2);
  assert_int_equal(size_under(3, true, 3), 3);
  assert_int_equal(size_under(3, false, 3), 3);
}

static void a_pool_that_is_empty_gets_its_least_size(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_resized(h, resizer(2, 10), 3, host_record);
  ask(h, pool, request(-3));
  host_send(h, pool, 1);
  host_run(h);
  assert_log(h, "routee-4:1");
  assert_string_equal(numbers(pool), "4 5");
}

static void resizes_before_it_scatters(void **state) {
  host *h = *state;
  tp_resizer z = resizer(4, 10);
  tp_behavior_spec spec = {
      .routing = TP_ROUTE_FIRST_COMPLETED,
      .gathering = {.timeout = 100 * MS},
      .size = 1,
      .resizer = &z,
  };
  tp_ref *pool = spawn_pool(h, spec, host_record);
  host_ask(h, pool, tp_integer(1), 1000);
  host_run(h);
  assert_log(h, "routee-2:1 routee-3:1 routee-4:1 routee-1:1");
}

static void an_incarnation_begins_to_count_anew(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_resized(h, resizer(1, 10), 5, host_nothing);
  host_send(h, pool, 1);
  host_run(h);
  assert_string_equal(numbers(pool), "1 2 3 4");
  host_tell(h, pool, kill_message);
  host_run(h);
  assert_string_equal(numbers(pool), "1 2 3 4 5");
  host_send(h, pool, 1);
  host_run(h);
  assert_string_equal(numbers(pool), "1 2 3 4");
}

static void a_terminating_system_resizes_nobody(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_resized(h, resizer(5, 10), 2, host_record);
  host_send(h, pool, 1);
  tp_terminate(h->system);
  host_run_one(h);
  assert_log(h, "routee-1:1");
  assert_string_equal(numbers(pool), "1 2");
}

static void says_when_it_cannot_grow(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_resized(h, resizer(5, 10), 2, host_record);
  host_want(h, 1u << TP_EVENT_WARNING);
  host_send(h, pool, 1);
  h->fail_at = h->allocations + 1;
  host_run(h);
  assert_log(h, "!warning:pool:resize-failed routee-1:1");
  assert_string_equal(numbers(pool), "1 2");
}

static void a_pool_that_cannot_grow_says_so(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_pool(h, (tp_behavior_spec){.size = 8}, host_record);
  tp_ref *slot = host_ask(h, pool, request(4), 60000);
  h->fail_from = h->allocations + 6;
  host_run(h);
  h->fail_from = 0;
  assert_answer(h, slot, "failed out-of-memory");
  assert_in_range(tp_routees(pool, NULL, 0), 9, 11);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("RTR-15 a pool lists its routees", lists_its_routees),
      HOST_TEST("RTR-15 refs in an answer stay good when their actors have stopped",
                an_answer_keeps_who_stops),
      HOST_TEST("RTR-15 a pool grows", grows),
      HOST_TEST("RTR-15 a pool shrinks from the end", shrinks_from_the_end),
      HOST_TEST("RTR-15 removed routees get no more mail and drain", the_removed_drain),
      HOST_TEST("RTR-15 numbers are never given again", numbers_are_never_given_again),
      HOST_TEST("RTR-15 a restart brings back the size", a_restart_brings_back_the_size),
      HOST_TEST("RTR-15 removing more than there are removes all", removing_too_many_removes_all),
      HOST_TEST("RTR-15 no number is too low", no_number_is_too_low),
      HOST_TEST("RTR-15 a pool has a largest size", has_a_largest_size),
      HOST_TEST("RTR-15 the sender of a tell is answered", answers_whoever_sent),
      HOST_TEST("RTR-15 without a sender nobody is answered", answers_nobody),
      HOST_TEST("RTR-15 requests take no turn", requests_take_no_turn),
      HOST_TEST("RTR-15 requests ask no strategy", requests_ask_no_strategy),
      HOST_TEST("RTR-15 requests are not scattered", requests_are_not_scattered),
      HOST_TEST("RTR-15 a request can be broadcast", a_request_can_be_broadcast),
      HOST_TEST("RTR-15 a removed routee is not respawned", a_removed_routee_is_not_respawned),
      HOST_TEST("RTR-12 a routee is respawned in its place, whatever came and went",
                a_routee_is_respawned_in_its_place),
      HOST_TEST("RTR-12 a routee that is respawned shifts no turn",
                a_respawned_routee_shifts_no_turn),
      HOST_TEST("RTR-15 a routee that is kept can be removed", a_kept_routee_can_be_removed),
      HOST_TEST("RTR-15 a stop comes after the requests before it", stopping_comes_after_requests),
      HOST_TEST("SYS-7 a terminating system adds nobody", a_terminating_system_adds_nobody),
      HOST_TEST("RTR-15 many routees come and go", many_come_and_go),
      HOST_TEST("RTR-18 a size changes by Akka's formulas", changes_as_akka_says),
      HOST_TEST("RTR-18 a pool is resized at the first message, and then at intervals",
                resizes_at_the_first_message_and_then_at_intervals),
      HOST_TEST("RTR-18 the first message moves the size into the bounds",
                the_first_message_moves_the_size_into_the_bounds),
      HOST_TEST("RTR-18 requests do not count as messages", requests_do_not_count),
      HOST_TEST("RTR-18 pressure is what the threshold says", pressure_is_what_the_threshold_says),
      HOST_TEST("RTR-18 a pool that is empty gets its least size",
                a_pool_that_is_empty_gets_its_least_size),
      HOST_TEST("RTR-18 a router that gathers is resized first", resizes_before_it_scatters),
      HOST_TEST("RTR-18 an incarnation begins to count anew", an_incarnation_begins_to_count_anew),
      HOST_TEST("RTR-18 a terminating system resizes nobody", a_terminating_system_resizes_nobody),
      HOST_TEST("RTR-18 a pool that has no memory to grow says so", says_when_it_cannot_grow),
      HOST_TEST("RTR-15 an ask fails when there is no memory to grow; those spawned stay",
                a_pool_that_cannot_grow_says_so),
  };
  return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
