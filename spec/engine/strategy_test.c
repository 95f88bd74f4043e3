/* What strategies pick by: hashes of keys, the depth of mailboxes, turns. */
#include "hash.h"
#include "host.h"
#include "router.h"

static tp_ref *spawn_pool(host *h, tp_behavior_spec pool, host_step receive) {
  if (pool.size == 0) pool.size = 3;
  pool.routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, receive)});
  tp_ref *r = host_spawn_spec(h, host_user(h), pool, "pool");
  host_run(h);
  host_forget(h);
  return r;
}

static tp_ref *routee(const host *h, int number) {
  char path[32];
  snprintf(path, sizeof path, "/user/pool/routee-%d", number);
  return host_at(h, path);
}

/* ---- Hashes ----------------------------------------------------------------------------- */

/* From the authors' test vectors. */
static void fnv_1a_is_what_was_published(void **state) {
  (void)state;
  assert_int_equal(tp_hash("", 0), 0xcbf29ce484222325u);
  assert_int_equal(tp_hash("a", 1), 0xaf63dc4c8601ec8cu);
  assert_int_equal(tp_hash("b", 1), 0xaf63df4c8601f1a5u);
  assert_int_equal(tp_hash("foobar", 6), 0x85944171f73967e8u);
  assert_int_equal(tp_hash("\0", 1), 0xaf63bd4c8601b7dfu);
  assert_int_equal(tp_hash("\xff\x00\x00\x01", 4), 0x6961196491cc682du);
}

/* The first numbers that the authors' program gives for this seed. */
static void scores_are_numbers_of_splitmix64(void **state) {
  (void)state;
  assert_int_equal(tp_hash_score(1234567, 1), 6457827717110365317u);
  assert_int_equal(tp_hash_score(1234567, 2), 3203168211198807973u);
  assert_int_equal(tp_hash_score(1234567, 3), 9817491932198370423u);
}

/* ---- Consistent hashing ----------------------------------------------------------------- */

static void hash_message(host *h, tp_job *job) {
  static const char *const keys[] = {"ann", "bob", "cid", "dan"};
  int64_t n = job->envelope.message.as.integer;
  if (n < 0) {
    host_fail(h, job, host_value(h, n));
  } else {
    host_hash(h, job, keys[n]);
  }
}

static tp_ref *spawn_hashing(host *h, tp_on_routee_stop policy) {
  tp_behavior_spec pool = {.routing = TP_ROUTE_CONSISTENT_HASHING,
                           .strategy = host_code(h, hash_message),
                           .on_routee_stop = policy};
  return spawn_pool(h, pool, host_record);
}

static void tell_four(host *h, tp_ref *pool) {
  for (int64_t n = 0; n < 4; n++) {
    host_send(h, pool, n);
    host_run(h);
  }
}

static void a_key_stays_with_its_routee(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_hashing(h, TP_ROUTEE_REMOVE);
  tell_four(h, pool);
  assert_log(h, "routee-1:0 routee-2:1 routee-1:2 routee-3:3");
  tell_four(h, pool);
  assert_log(h, "routee-1:0 routee-2:1 routee-1:2 routee-3:3");
}

static void only_keys_of_a_routee_that_leaves_move(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_hashing(h, TP_ROUTEE_REMOVE);
  tp_stop_now(routee(h, 3));
  host_run(h);
  tell_four(h, pool);
  assert_log(h, "routee-1:0 routee-2:1 routee-1:2 routee-2:3");
}

static void keys_come_back_to_one_that_is_respawned(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_hashing(h, TP_ROUTEE_RESPAWN);
  tp_stop_now(routee(h, 3));
  host_run(h);
  tell_four(h, pool);
  assert_log(h, "routee-1:0 routee-2:1 routee-1:2 routee-3:3");
}

static void keys_stay_with_one_that_is_kept(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_hashing(h, TP_ROUTEE_KEEP);
  tp_stop_now(routee(h, 3));
  host_run(h);
  host_want(h, HOST_DEAD_LETTERS);
  tell_four(h, pool);
  assert_log(h, "routee-1:0 routee-2:1 routee-1:2 !dead:routee-3:3:stopped");
}

static void a_key_that_fails_costs_one_message(void **state) {
  host *h = *state;
  tp_ref *pool = spawn_hashing(h, TP_ROUTEE_REMOVE);
  host_want(h, HOST_DEAD_LETTERS | 1u << TP_EVENT_RESTARTED | 1u << TP_EVENT_HOOK_FAILED);
  host_send(h, pool, -4);
  host_send(h, pool, 1);
  host_run(h);
  assert_log(h, "!hook_failed:pool:#-4 !dead:pool:-4:strategy-error routee-2:1");
}

static void stop_all_routees(host *h, tp_job *job) {
  for (int i = 1; i <= 3; i++) tp_stop_now(routee(h, i));
  host_hash(h, job, "ann");
}

static void a_key_may_find_nobody(void **state) {
  host *h = *state;
  tp_behavior_spec pool = {.routing = TP_ROUTE_CONSISTENT_HASHING,
                           .strategy = host_code(h, stop_all_routees)};
  tp_ref *slot = host_ask(h, spawn_pool(h, pool, host_echo), tp_integer(1), 60000);
  host_run(h);
  assert_answer(h, slot, "failed no-routees");
}

/* ---- Depth ------------------------------------------------------------------------------ */

static void depth_counts_what_waits_and_what_is_in_hand(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_stall, "a");
  host_run(h);
  assert_int_equal(tp_depth(a), 0);
  for (int i = 1; i <= 3; i++) host_send(h, a, i);
  assert_int_equal(tp_depth(a), 3);
  host_run(h);
  assert_int_equal(tp_depth(a), 3); /* one in hand, two wait */
}

static void what_takes_no_mail_is_deeper_than_all(void **state) {
  host *h = *state;
  tp_ref *drains = host_spawn(h, host_stall, "drains"), *stopped = host_spawn(h, host_record, "a");
  host_send(h, drains, 1);
  host_run(h);
  tp_stop(drains);
  tp_stop_now(stopped);
  host_run(h);
  assert_true(tp_depth(drains) == SIZE_MAX);
  assert_true(tp_depth(stopped) == SIZE_MAX);
}

/* ---- Turns ------------------------------------------------------------------------------ */

static void count_handled(host *h, tp_job *job) {
  unsigned *counts = h->data;
  char name[32];
  unsigned number;
  tp_ref_name(job->actor, name, sizeof name);
  assert_int_equal(sscanf(name, "routee-%u", &number), 1);
  counts[number]++;
}

static void turns_are_fair_for_every_size(void **state) {
  (void)state;
  for (uint32_t size = 1; size <= 9; size++) {
    host *h = host_open();
    assert_int_equal(host_start(h, NULL), TP_OK);
    unsigned *counts = host_data(h, 10 * sizeof *counts);
    tp_ref *pool = spawn_pool(h, (tp_behavior_spec){.routing = TP_ROUTE_ROUND_ROBIN, .size = size},
                              count_handled);
    for (uint32_t i = 0; i < 3 * size; i++) host_send(h, pool, 1);
    host_run(h);
    for (uint32_t number = 1; number <= size; number++) assert_int_equal(counts[number], 3);
    host_close(h);
  }
}

static void pick_by_index(host *h, tp_job *job) {
  tp_ref *routees[5];
  size_t count = tp_routees(job->actor, routees, 5);
  host_log(h, "%llu", (unsigned long long)job->index);
  host_route(h, job, &routees[job->index % count], 1);
}

static void the_index_may_wrap(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {
      .routing = TP_ROUTE_CUSTOM, .size = 5, .strategy = host_code(h, pick_by_index)};
  tp_ref *pool = spawn_pool(h, spec, host_nothing);
  tp_actor_of(pool)->router->routed = UINT64_MAX - 1;
  for (int i = 0; i < 4; i++) host_send(h, pool, i);
  host_run(h);
  assert_log(h, "18446744073709551614 18446744073709551615 0 1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("RTR-16 FNV-1a is what was published", fnv_1a_is_what_was_published),
      HOST_TEST("RTR-16 scores are the numbers of SplitMix64", scores_are_numbers_of_splitmix64),
      HOST_TEST("RTR-16 a key stays with its routee", a_key_stays_with_its_routee),
      HOST_TEST("RTR-16 only keys of a routee that leaves move",
                only_keys_of_a_routee_that_leaves_move),
      HOST_TEST("RTR-16 keys come back to a routee that is respawned",
                keys_come_back_to_one_that_is_respawned),
      HOST_TEST("RTR-16 keys stay with a routee that is kept", keys_stay_with_one_that_is_kept),
      HOST_TEST("RTR-16 a key that fails costs that one message",
                a_key_that_fails_costs_one_message),
      HOST_TEST("RTR-16 a key may find that there is nobody left", a_key_may_find_nobody),
      HOST_TEST("RTR-10 the depth counts what waits and what is in hand",
                depth_counts_what_waits_and_what_is_in_hand),
      HOST_TEST("RTR-10 what takes no mail is deeper than all",
                what_takes_no_mail_is_deeper_than_all),
      HOST_TEST("RTR-6 turns are fair for every size", turns_are_fair_for_every_size),
      HOST_TEST("RTR-10 the index of the message may wrap", the_index_may_wrap),
  };
  return cmocka_run_group_tests_name("strategy", tests, NULL, NULL);
}
