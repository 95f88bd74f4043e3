/* What strategies pick by: the depth of mailboxes, turns. */
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
      HOST_TEST("RTR-10 the depth counts what waits and what is in hand",
                depth_counts_what_waits_and_what_is_in_hand),
      HOST_TEST("RTR-10 what takes no mail is deeper than all",
                what_takes_no_mail_is_deeper_than_all),
      HOST_TEST("RTR-6 turns are fair for every size", turns_are_fair_for_every_size),
      HOST_TEST("RTR-10 the index of the message may wrap", the_index_may_wrap),
  };
  return cmocka_run_group_tests_name("strategy", tests, NULL, NULL);
}
