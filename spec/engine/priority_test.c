/* Mailboxes with a priority function: order, bounds, what the function must not do to others. */
#include <math.h>

#include "host.h"

/* ---- Priority functions ----------------------------------------------------------------- */

static double rank_of(tp_value message) {
  return message.type == TP_INTEGER ? (double)message.as.integer : 0;
}

static void by_value(host *h, tp_job *job) { host_rank(h, job, rank_of(job->envelope.message)); }

static void all_alike(host *h, tp_job *job) { host_rank(h, job, 0); }

/* Fails for negative numbers. */
static void by_positive_value(host *h, tp_job *job) {
  tp_value message = job->envelope.message;
  if (rank_of(message) < 0) {
    host_fail(h, job, message);
  } else {
    by_value(h, job);
  }
}

/* Gives NaN for negative numbers, and nothing for 0. */
static void hardly_a_number(host *h, tp_job *job) {
  double number = rank_of(job->envelope.message);
  if (number != 0) host_rank(h, job, number < 0 ? NAN : number);
}

static void by_value_with_a_record(host *h, tp_job *job) {
  host_log(h, "asked:%g", rank_of(job->envelope.message));
  by_value(h, job);
}

/* ---- Actors ----------------------------------------------------------------------------- */

static tp_behavior_spec ranked(host *h, host_step receive, host_step priority) {
  return (tp_behavior_spec){
      .receive = host_code(h, receive),
      .priority = host_code(h, priority),
      .stash_capacity = 10,
  };
}

static tp_ref *spawn_ranked(host *h, host_step receive, host_step priority) {
  tp_ref *a = host_spawn_spec(h, host_user(h), ranked(h, receive, priority), "a");
  host_run(h);
  return a;
}

static tp_ref *spawn_bounded(host *h, host_step receive, uint32_t capacity, tp_overflow overflow) {
  tp_behavior_spec spec = ranked(h, receive, by_value);
  spec.capacity = capacity;
  spec.overflow = overflow;
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_run(h);
  host_want(h, HOST_DEAD_LETTERS | 1u << TP_EVENT_DROPPED);
  return a;
}

static void send_all(host *h, tp_ref *a, const char *numbers) {
  for (char *end; *numbers != '\0'; numbers = end) host_send(h, a, strtoll(numbers, &end, 10));
}

static void start_once(tp_ref *a, int64_t message, tp_tick *out) {
  assert_int_equal(tp_timer_start(a, tp_integer(message), TP_ONCE, 0, 0, out), TP_OK);
}

static void fire(host *h, tp_ref *a, int64_t message) {
  tp_tick tick = 0;
  start_once(a, message, &tick);
  tp_advance(h->system, tp_now(h->system));
}

/* ---- Order ------------------------------------------------------------------------------ */

static void the_lowest_comes_first(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, host_record, by_value);
  send_all(h, a, "5 3 9 -1 4");
  host_run(h);
  assert_log(h, "a:-1 a:3 a:4 a:5 a:9");
}

static void equal_ones_come_in_order(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, host_record, all_alike);
  send_all(h, a, "5 3 9 1 4");
  host_run(h);
  assert_log(h, "a:5 a:3 a:9 a:1 a:4");
}

static void stall_first(host *h, tp_job *job) {
  host_record(h, job);
  if (job->envelope.message.as.integer == 0) host_park(h, job, host_nothing);
}

static void what_comes_later_may_overtake(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, stall_first, by_value);
  send_all(h, a, "0 7");
  host_run(h);
  send_all(h, a, "8 1");
  host_run(h);
  assert_log(h, "a:0");
  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_log(h, "a:1 a:7 a:8");
}

static void a_failure_ranks_last_and_is_told_once(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, host_record, by_positive_value);
  host_want(h, 1u << TP_EVENT_HOOK_FAILED | 1u << TP_EVENT_FAILED);
  send_all(h, a, "-1 5 -2 3");
  host_run(h);
  assert_log(h, "!hook_failed:a:-1 a:3 a:5 a:-1 a:-2");
}

static void no_number_ranks_last(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, host_record, hardly_a_number);
  send_all(h, a, "5 -1 0 7 3 -2");
  host_run(h);
  assert_log(h, "a:3 a:5 a:7 a:-1 a:0 a:-2");
}

/* ---- What is not the user's mail -------------------------------------------------------- */

static void a_stop_drains(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, host_record, by_positive_value);
  host_want(h, HOST_DEAD_LETTERS);
  send_all(h, a, "5 -1 3");
  assert_int_equal(tp_stop(a), TP_OK);
  send_all(h, a, "1");
  host_run(h);
  assert_log(h, "!dead:a:1:stopped a:3 a:5 a:-1");
  assert_false(tp_ref_alive(a));
}

static void a_tick_is_ranked_and_never_shed(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_record, 1, TP_OVERFLOW_DROP_LOWEST);
  fire(h, a, 5);
  send_all(h, a, "9 1");
  host_run(h);
  assert_log(h, "!dropped:a:9:drop-lowest a:1 a:5");
}

static void a_cancelled_tick_is_not_ranked(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, host_record, by_value_with_a_record);
  tp_tick tick = 0;
  start_once(a, 5, &tick);
  tp_advance(h->system, tp_now(h->system));
  assert_true(tp_tick_cancel(h->system, tick));
  send_all(h, a, "9");
  host_run(h);
  assert_log(h, "asked:9 a:9");
}

static void no_tick_overtakes_a_stop(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, host_record, by_value);
  send_all(h, a, "7");
  assert_int_equal(tp_stop(a), TP_OK);
  fire(h, a, 1);
  host_run(h);
  assert_log(h, "a:7");
}

static void a_notice_comes_after_what_was_told(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, host_record, by_value);
  tp_ref *b = host_spawn(h, host_nothing, "b");
  assert_int_equal(tp_watch(a, b, tp_nil(), false), TP_OK);
  host_run(h);
  send_all(h, a, "9 8");
  tp_stop_now(b);
  host_run(h);
  assert_log(h, "a:8 a:9 a:dead-b");
}

/* ---- Bounds ----------------------------------------------------------------------------- */

static void drop_lowest_keeps_the_best(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_record, 2, TP_OVERFLOW_DROP_LOWEST);
  send_all(h, a, "5 7 3 9");
  host_run(h);
  assert_log(h, "!dropped:a:7:drop-lowest !dropped:a:9:drop-lowest a:3 a:5");
}

static void drop_lowest_sheds_the_latest_of_equals(void **state) {
  host *h = *state;
  tp_behavior_spec spec = ranked(h, host_record, all_alike);
  spec.capacity = 2;
  spec.overflow = TP_OVERFLOW_DROP_LOWEST;
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_want(h, 1u << TP_EVENT_DROPPED);
  send_all(h, a, "1 2 3");
  host_run(h);
  assert_log(h, "!dropped:a:3:drop-lowest a:1 a:2");
}

static void drop_new_and_reject_look_at_the_count(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_record, 2, TP_OVERFLOW_DROP_NEW);
  send_all(h, a, "5 7 3");
  host_run(h);
  assert_log(h, "!dropped:a:3:drop-new a:5 a:7");
  tp_stop_now(a);
  host_run(h);

  tp_ref *b = spawn_bounded(h, host_record, 2, TP_OVERFLOW_REJECT);
  send_all(h, b, "5 7");
  assert_int_equal(tp_tell(b, tp_integer(3), NULL), TP_EFULL);
  host_run(h);
  assert_log(h, "!dropped:a:3:reject a:5 a:7");
  assert_int_equal(tp_tell(b, tp_integer(3), NULL), TP_OK);
}

/* Runs the ranking job that a host may ask for. */
static bool rank_at_once(host *h, tp_ref *a) {
  tp_job job;
  (void)h;
  if (!tp_rank_next(a, &job)) return false;
  assert_int_equal(job.kind, TP_JOB_RANK);
  assert_ptr_equal(job.actor, a);
  tp_ranked(&job, rank_of(job.envelope.message));
  return true;
}

static void a_host_may_rank_at_once(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_record, 2, TP_OVERFLOW_DROP_LOWEST);
  for (int i = 1; i <= 100; i++) {
    host_send(h, a, -i);
    assert_true(tp_unranked(h->system));
    assert_true(rank_at_once(h, a));
    assert_in_range(host_stats(h).queued, 1, 2);
  }
  assert_false(tp_unranked(h->system));
  assert_false(rank_at_once(h, a));
  assert_false(rank_at_once(h, host_slot(h, 10, true)));
  host_forget(h);
  host_want(h, 0);
  host_run(h);
  assert_int_equal(host_count(h, "a:-99"), 1);
  assert_int_equal(host_count(h, "a:-100"), 1);
}

static void an_ask_that_is_shed_fails(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_echo, 1, TP_OVERFLOW_DROP_LOWEST);
  tp_ref *shed = host_ask(h, a, tp_integer(5), 60000);
  tp_ref *served = host_ask(h, a, tp_integer(4), 60000);
  host_run(h);
  assert_answer(h, shed, "failed mailbox-full");
  assert_answer(h, served, "4 from a");
}

static void the_message_in_hand_does_not_count(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_stall, 2, TP_OVERFLOW_DROP_LOWEST);
  send_all(h, a, "1");
  host_run(h);
  send_all(h, a, "2 3 4");
  host_run(h);
  assert_log(h, "a:1 !dropped:a:4:drop-lowest");
}

/* ---- Stash, restart, end ---------------------------------------------------------------- */

/* Sets aside all but 9, which puts it back, and a message before it. */
static void set_aside_until_nine(host *h, tp_job *job) {
  bool *open = h->data;
  host_record(h, job);
  if (rank_of(job->envelope.message) == 9) {
    *open = true;
    host_send(h, job->actor, INT64_MIN);
    assert_int_equal(tp_unstash_all(job->actor), TP_OK);
  } else if (!*open) {
    assert_int_equal(tp_stash(job->actor), TP_OK);
  }
}

static void lowest_of_all(host *h, tp_job *job) {
  int64_t number = job->envelope.message.as.integer;
  host_rank(h, job, number == INT64_MIN ? -INFINITY : (double)number);
}

static void what_was_set_aside_comes_first_and_in_order(void **state) {
  host *h = *state;
  host_data(h, sizeof(bool));
  tp_ref *a = spawn_ranked(h, set_aside_until_nine, lowest_of_all);
  tp_ref *b = host_spawn(h, host_nothing, "b");
  assert_int_equal(tp_watch(a, b, tp_nil(), false), TP_OK);
  send_all(h, a, "8");
  tp_stop_now(b);
  host_run(h);
  send_all(h, a, "7 9 10");
  host_run(h);
  assert_log(h, "a:8 a:dead-b a:7 a:9 a:8 a:dead-b a:7 a:-9223372036854775808 a:10");
}

static void a_restart_keeps_the_ranks(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, host_fragile, by_value);
  send_all(h, a, "5 -1 3");
  host_run(h);
  assert_log(h, "a:-1 a:3 a:5");
}

static void dead_letters_come_in_the_order_of_ranks(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, host_record, by_value);
  host_want(h, HOST_DEAD_LETTERS);
  send_all(h, a, "5 3 9");
  tp_stop_now(a);
  host_run(h);
  assert_log(h, "!dead:a:3:stopped !dead:a:5:stopped !dead:a:9:stopped");
}

static void stop_and_rank(host *h, tp_job *job) {
  tp_stop_now(job->actor);
  by_value(h, job);
}

static void its_function_may_stop_the_actor(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, host_record, stop_and_rank);
  host_want(h, HOST_DEAD_LETTERS);
  send_all(h, a, "5 3");
  host_run(h);
  assert_log(h, "!dead:a:3:stopped !dead:a:5:stopped");
}

static void cut_off_while_ranking(host *h, tp_job *job) {
  host_log(h, "asked:%lld", (long long)job->envelope.message.as.integer);
}

static void it_can_be_cut_off_at_any_time(void **state) {
  (void)state;
  for (int jobs = 0; jobs < 8; jobs++) {
    host *h = host_open();
    h->abrupt = true;
    assert_int_equal(host_start(h, NULL), TP_OK);
    tp_ref *a =
        host_spawn_spec(h, host_user(h), ranked(h, host_nothing, cut_off_while_ranking), "a");
    for (int i = 0; i < 3; i++) {
      tp_ref_retain(a);
      host_tell(h, a, (tp_value){.type = TP_REF, .as.ref = a});
    }
    for (int i = 0; i < jobs; i++) host_run_one(h);
    host_close(h);
  }
}

/* The one who frees the system while a message is being ranked never ends that job. */
static void it_can_be_cut_off_while_it_ranks(void **state) {
  host *h = *state;
  tp_job job;
  tp_ref *a = spawn_ranked(h, host_nothing, by_value);
  tp_ref_retain(a);
  host_tell(h, a, (tp_value){.type = TP_REF, .as.ref = a});
  assert_true(tp_next(h->system, &job));
  assert_int_equal(job.kind, TP_JOB_RANK);
  h->abrupt = true;
}

/* ---- Everybody else --------------------------------------------------------------------- */

static void tell_a_three(host *h, tp_job *job) {
  host_record(h, job);
  for (int i = 3; i > 0; i--) host_send(h, host_at(h, "/user/a"), i);
}

static void all_is_ranked_before_the_turn(void **state) {
  host *h = *state;
  spawn_ranked(h, host_record, by_value);
  tp_ref *b = host_spawn(h, tell_a_three, "b");
  host_send(h, b, 0);
  host_run(h);
  assert_log(h, "b:0 a:1 a:2 a:3");
}

enum { MANY = 4000 };

/* First tells z a message, then everybody one, and z the last of all. */
static void tell_all_then_z(host *h, tp_job *job) {
  tp_ref *z = host_at(h, "/user/z");
  if (job->envelope.message.as.integer == 1) {
    host_send(h, z, 9);
    return;
  }
  tp_ref **others = h->data;
  for (int i = 0; i < MANY; i++) host_send(h, others[i], 5);
  host_send(h, z, 1);
}

static void so_much_that_ranking_pauses_changes_no_order(void **state) {
  host *h = *state;
  tp_ref **others = host_data(h, MANY * sizeof(tp_ref *));
  tp_behavior *b = host_behavior(h, ranked(h, host_nothing, by_value));
  for (int i = 0; i < MANY; i++) others[i] = host_spawn_behavior(h, host_user(h), b, NULL);
  tp_ref *teller = host_spawn(h, tell_all_then_z, "teller");
  host_spawn_spec(h, host_user(h), ranked(h, host_record, by_value), "z");
  host_run(h);
  send_all(h, teller, "1 2");
  host_run(h);
  assert_log(h, "z:1 z:9");
}

/* Also while the actor waits, and is itself in no queue. */
static void what_has_no_rank_is_work(void **state) {
  host *h = *state;
  tp_ref *a = spawn_ranked(h, stall_first, by_value);
  send_all(h, a, "0");
  host_run(h);
  for (int i = 1; i <= MANY; i++) host_send(h, a, i);
  for (int i = 0; i < MANY; i++) {
    assert_true(tp_ready(h->system));
    assert_true(host_run_one(h));
  }
  assert_false(host_run_one(h));
  assert_false(tp_ready(h->system));
}

static void rank_and_tell_again(host *h, tp_job *job) {
  int *left = h->data;
  host_record(h, job);
  if ((*left)-- > 0) host_send(h, job->actor, 1);
  all_alike(h, job);
}

/* As events do, it keeps nobody from their turns. */
static void a_function_that_tells_itself_lets_others_run(void **state) {
  host *h = *state;
  int *left = host_data(h, sizeof *left);
  *left = 10000;
  tp_ref *a = spawn_ranked(h, host_nothing, rank_and_tell_again);
  tp_ref *b = host_spawn(h, host_record, "b");
  host_run(h);
  host_send(h, a, 1);
  host_send(h, b, 1);
  for (int i = 0; i < 6000; i++) host_run_one(h);
  assert_int_equal(host_count(h, "b:1"), 1);
  assert_in_range(*left, 1, 9000);
  *left = 0;
  host_run(h);
}

static void a_router_may_have_priorities(void **state) {
  host *h = *state;
  tp_behavior_spec pool = {
      .routing = TP_ROUTE_ROUND_ROBIN,
      .size = 1,
      .routee = host_behavior(h, (tp_behavior_spec){.receive = host_code(h, host_record)}),
      .priority = host_code(h, by_value),
  };
  tp_ref *r = host_spawn_spec(h, host_user(h), pool, "r");
  host_run(h);
  send_all(h, r, "3 1 2");
  assert_int_equal(tp_stop(r), TP_OK);
  host_run(h);
  assert_log(h, "routee-1:1 routee-1:2 routee-1:3");
}

static void routees_may_have_priorities(void **state) {
  host *h = *state;
  tp_behavior_spec routee = ranked(h, host_record, by_value);
  routee.capacity = 2;
  routee.overflow = TP_OVERFLOW_DROP_LOWEST;
  tp_behavior_spec pool = {
      .routing = TP_ROUTE_SMALLEST_MAILBOX, .size = 2, .routee = host_behavior(h, routee)};
  tp_ref *r = host_spawn_spec(h, host_user(h), pool, "r");
  host_run(h);
  send_all(h, r, "8 7 6 5 4 3");
  host_run(h);
  assert_log(h, "routee-1:4 routee-1:6 routee-2:3 routee-2:5");
}

static void the_depth_is_that_of_both_parts(void **state) {
  host *h = *state;
  tp_behavior_spec routee = ranked(h, stall_first, by_value);
  tp_behavior_spec pool = {
      .routing = TP_ROUTE_SMALLEST_MAILBOX, .size = 2, .routee = host_behavior(h, routee)};
  tp_ref *r = host_spawn_spec(h, host_user(h), pool, "r");
  host_run(h);
  tp_ref *first = tp_next_child(r, NULL);
  tp_ref *second = tp_next_child(r, first);
  send_all(h, first, "0 8 9");
  send_all(h, second, "0");
  host_run(h);
  host_forget(h);
  assert_int_equal(host_stats(h).queued, 2);

  send_all(h, r, "5 6");
  host_run(h);
  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_log(h, "routee-2:5 routee-2:6");
}

static void expect_next(host *h, tp_job *job) {
  int64_t *expected = h->data;
  if (job->envelope.message.as.integer == *expected) ++*expected;
}

static void a_million_come_in_order(void **state) {
  enum { MILLION = 1000000, KEPT = 1100000 };
  host *h = *state;
  int64_t *expected = host_data(h, sizeof *expected);
  tp_ref *a = spawn_ranked(h, expect_next, by_value);
  size_t before = host_stats(h).bytes;

  for (int64_t i = 0; i < MILLION; i++) host_send(h, a, i * 7919 % MILLION);
  host_run(h);

  assert_int_equal(*expected, MILLION);
  assert_int_equal(host_stats(h).queued, 0);
  assert_in_range(host_stats(h).bytes, 0, before + KEPT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("MBX-7 the lowest rank comes first", the_lowest_comes_first),
      HOST_TEST("MBX-7 equal ranks come in order of arrival", equal_ones_come_in_order),
      HOST_TEST("MBX-7 what comes later may overtake what waits", what_comes_later_may_overtake),
      HOST_TEST("MBX-7 a function that fails ranks its message last and is reported once",
                a_failure_ranks_last_and_is_told_once),
      HOST_TEST("MBX-7 NaN ranks last, and so does no answer", no_number_ranks_last),
      HOST_TEST("STOP-1 a pill comes after all that was told before it", a_stop_drains),
      HOST_TEST("MBX-7 a timer's message is ranked and never shed",
                a_tick_is_ranked_and_never_shed),
      HOST_TEST("MBX-7 a cancelled tick is not ranked", a_cancelled_tick_is_not_ranked),
      HOST_TEST("MBX-7 no tick overtakes a pill", no_tick_overtakes_a_stop),
      HOST_TEST("WATCH-1 a death notice comes after what was told before",
                a_notice_comes_after_what_was_told),
      HOST_TEST("MBX-7 drop-lowest keeps the lowest ranks", drop_lowest_keeps_the_best),
      HOST_TEST("MBX-7 drop-lowest sheds the latest of equals",
                drop_lowest_sheds_the_latest_of_equals),
      HOST_TEST("MBX-7 drop-new and reject look at the count alone",
                drop_new_and_reject_look_at_the_count),
      HOST_TEST("MBX-7 a host may rank at once, so that the bound holds at once",
                a_host_may_rank_at_once),
      HOST_TEST("MBX-7 an ask that is shed fails", an_ask_that_is_shed_fails),
      HOST_TEST("MBX-4 the message in hand does not count", the_message_in_hand_does_not_count),
      HOST_TEST("STASH-1 what was set aside comes first, in its order",
                what_was_set_aside_comes_first_and_in_order),
      HOST_TEST("MBX-7 a restart keeps the ranks", a_restart_keeps_the_ranks),
      HOST_TEST("MBX-7 dead letters come in the order of ranks",
                dead_letters_come_in_the_order_of_ranks),
      HOST_TEST("MBX-7 the function may stop its actor", its_function_may_stop_the_actor),
      {"SYS-8 a priority mailbox can be cut off", it_can_be_cut_off_at_any_time, NULL, NULL, NULL},
      HOST_TEST("SYS-8 a priority mailbox can be cut off while it ranks",
                it_can_be_cut_off_while_it_ranks),
      HOST_TEST("MBX-7 all mail is ranked before the actor's turn", all_is_ranked_before_the_turn),
      HOST_TEST("MBX-7 a lot that is told at once changes no order",
                so_much_that_ranking_pauses_changes_no_order),
      HOST_TEST("MBX-7 what has no rank is work to do", what_has_no_rank_is_work),
      HOST_TEST("DISP-3 a function that tells its own actor lets others run",
                a_function_that_tells_itself_lets_others_run),
      HOST_TEST("MBX-7 a router may have priorities", a_router_may_have_priorities),
      HOST_TEST("MBX-7 routees may have priorities", routees_may_have_priorities),
      HOST_TEST("RTR-9 the depth counts ranked mail", the_depth_is_that_of_both_parts),
      HOST_TEST("MBX-7 a million messages come in order, then the memory is given back",
                a_million_come_in_order),
  };
  return cmocka_run_group_tests_name("priority", tests, NULL, NULL);
}
