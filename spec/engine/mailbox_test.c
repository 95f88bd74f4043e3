/* Order, senders and values of messages, and the memory of a queue. */
#include "host.h"

/* What a system may keep of the memory of queues for the next one that needs some. */
enum { KEPT = 1100000 };

static size_t bytes_held(const host *h) { return host_stats(h).bytes; }

static size_t queued(const host *h) { return host_stats(h).queued; }

static void runs_nothing_inline(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");

  host_send(h, a, 1);
  assert_log(h, "");

  host_run(h);
  assert_log(h, "a:1");
}

static void tell_between_two_lines(host *h, tp_job *job) {
  host_log(h, "begin");
  host_send(h, host_at(h, "/user/b"), 10);
  if (job->envelope.message.as.integer == 1) host_send(h, job->actor, 2);
  host_log(h, "end");
}

static void runs_nothing_inside_a_handler(void **state) {
  host *h = *state;
  host_spawn(h, host_record, "b");
  tp_ref *a = host_spawn(h, tell_between_two_lines, "a");
  host_run(h);

  host_send(h, a, 1);
  host_run_one(h);

  assert_log(h, "begin end");
}

static void keeps_the_order(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");

  for (int i = 1; i <= 9; i++) host_send(h, a, i);
  host_run(h);

  assert_log(h, "a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8 a:9");
}

static void keeps_the_order_while_the_queue_wraps(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  host_run(h);

  for (int i = 1; i <= 3; i++) host_send(h, a, i);
  host_run_one(h);
  host_run_one(h);
  for (int i = 4; i <= 12; i++) host_send(h, a, i);
  host_run(h);

  assert_log(h, "a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8 a:9 a:10 a:11 a:12");
}

static void waits_for_pre_start(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.hooks = TP_HOOK_PRE_START};
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");

  host_send(h, a, 1);
  host_send(h, a, 2);
  host_run(h);

  assert_log(h, "a:pre_start a:1 a:2");
}

/* Counts messages as long as they come in order. */
static void expect_next(host *h, tp_job *job) {
  int64_t *expected = h->data;
  if (job->envelope.message.as.integer == *expected) ++*expected;
}

static void delivers_a_million_and_shrinks(void **state) {
  enum { MILLION = 1000000 };
  host *h = *state;
  int64_t *expected = host_data(h, sizeof *expected);
  tp_ref *a = host_spawn(h, expect_next, "a");
  host_run(h);
  size_t before = bytes_held(h);

  for (int i = 0; i < MILLION; i++) host_send(h, a, i);
  assert_int_equal(queued(h), MILLION);
  assert_in_range(bytes_held(h) - before, MILLION * 24, MILLION * 64);
  host_run(h);

  assert_int_equal(*expected, MILLION);
  assert_int_equal(queued(h), 0);
  assert_in_range(bytes_held(h), 0, before + KEPT);
  assert_int_equal(bytes_held(h), h->bytes);
}

static void shrinks_while_it_drains(void **state) {
  enum { COUNT = 100000, LEFT = 100 };
  host *h = *state;
  int64_t *expected = host_data(h, sizeof *expected);
  tp_ref *a = host_spawn(h, expect_next, "a");
  host_run(h);
  size_t before = bytes_held(h);

  for (int i = 0; i < COUNT; i++) host_send(h, a, i);
  for (int i = 0; i < COUNT - LEFT; i++) host_run_one(h);

  assert_int_equal(queued(h), LEFT);
  assert_in_range(bytes_held(h), 0, before + KEPT);
  host_run(h);
  assert_int_equal(*expected, COUNT);
}

static void tell_oneself_again(host *h, tp_job *job) {
  int64_t *left = h->data;
  if ((*left)-- > 0) host_send(h, job->actor, 1);
}

static void does_not_grow_with_traffic(void **state) {
  host *h = *state;
  int64_t *left = host_data(h, sizeof *left);
  *left = 100000;
  tp_ref *a = host_spawn(h, tell_oneself_again, "a");
  for (int i = 0; i < 100; i++) host_send(h, a, 1);
  host_run_one(h);
  size_t before = bytes_held(h);

  for (int i = 0; i < 90000; i++) host_run_one(h);

  assert_int_equal(bytes_held(h), before);
  host_run(h);
}

static void has_the_sender_it_was_given(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record_from, "a");
  tp_ref *b = host_spawn(h, host_nothing, "b");

  tp_tell(a, tp_integer(1), b);
  tp_tell(a, tp_integer(2), NULL);
  host_run(h);

  assert_log(h, "a:1<b a:2<-");
}

static void log_sender(host *h, tp_job *job) {
  char name[16] = "-";
  tp_ref *sender = tp_actor_sender(job->actor);
  if (sender != NULL) tp_ref_name(sender, name, sizeof name);
  host_log(h, "%s", name);
}

static void log_sender_around_a_wait(host *h, tp_job *job) {
  log_sender(h, job);
  host_sleep(h, job, 10, log_sender);
}

static void keeps_the_sender_over_a_wait(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, log_sender_around_a_wait, "a");
  tp_ref *b = host_spawn(h, host_nothing, "b");
  tp_ref *c = host_spawn(h, host_nothing, "c");

  tp_tell(a, tp_integer(1), b);
  tp_tell(a, tp_integer(2), c);
  host_advance(h, 20);
  assert_log(h, "b b c c");

  assert_null(tp_actor_sender(a));
}

static void stays_with_the_incarnation(void **state) {
  host *h = *state;
  tp_ref *old = host_spawn(h, host_record, "a");
  tp_stop(old);
  host_run(h);
  host_spawn(h, host_record, "a");
  host_want(h, HOST_DEAD_LETTERS);

  host_send(h, old, 1);
  host_run(h);

  assert_log(h, "!dead:a:1:stopped");
  assert_false(tp_ref_alive(old));
}

static void dead_letters_have_their_sender(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_ref *b = host_spawn(h, host_nothing, "b");
  tp_stop(a);
  host_run(h);
  host_want(h, HOST_DEAD_LETTERS);
  tp_tell(a, tp_integer(1), b);

  tp_job job;
  assert_true(tp_next(h->system, &job));
  assert_int_equal(job.kind, TP_JOB_EVENT);
  assert_ptr_equal(job.event.sender, b);
  assert_ptr_equal(job.event.subject, a);
  tp_done(&job);
}

static void carries_any_value(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");

  host_tell(h, a, tp_nil());
  host_tell(h, a, (tp_value){.type = TP_BOOLEAN, .as.boolean = false});
  host_tell(h, a, (tp_value){.type = TP_NUMBER, .as.number = 0.5});
  host_tell(h, a, tp_integer(INT64_MIN));
  host_tell(h, a, (tp_value){.type = TP_POINTER, .as.pointer = h});
  host_tell(h, a, host_value(h, 7));
  tp_ref_retain(a);
  host_tell(h, a, (tp_value){.type = TP_REF, .as.ref = a});
  host_run(h);

  assert_log(h, "a:nil a:false a:0.5 a:-9223372036854775808 a:pointer a:#7 a:a");
}

static void gives_values_back(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_value v = host_value(h, 7);
  tp_value_retain(h->system, v);

  host_tell(h, a, v);
  assert_int_equal(host_value_count(h, v), 2);
  host_run(h);

  assert_int_equal(host_value_count(h, v), 1);
  tp_value_release(h->system, v);
}

static tp_ref *spawn_bounded(host *h, host_step receive, uint32_t capacity, tp_overflow overflow) {
  tp_behavior_spec spec = {
      .receive = host_code(h, receive),
      .capacity = capacity,
      .overflow = overflow,
  };
  tp_ref *a = host_spawn_spec(h, host_user(h), spec, "a");
  host_run(h);
  host_want(h, HOST_DEAD_LETTERS | 1u << TP_EVENT_DROPPED);
  return a;
}

static void drop_head_keeps_the_latest(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_record, 3, TP_OVERFLOW_DROP_HEAD);
  for (int i = 1; i <= 5; i++) host_send(h, a, i);
  host_run(h);
  assert_log(h, "!dropped:a:1:drop-head !dropped:a:2:drop-head a:3 a:4 a:5");
}

static void drop_new_keeps_the_earliest(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_record, 2, TP_OVERFLOW_DROP_NEW);
  for (int i = 1; i <= 4; i++) host_send(h, a, i);
  host_run(h);
  assert_log(h, "!dropped:a:3:drop-new !dropped:a:4:drop-new a:1 a:2");
}

static void reject_tells_the_sender(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_record, 2, TP_OVERFLOW_REJECT);
  tp_value refused = host_value(h, 3);
  tp_value_retain(h->system, refused);
  host_send(h, a, 1);
  host_send(h, a, 2);

  assert_int_equal(tp_tell(a, refused, NULL), TP_EFULL);
  host_run(h);

  assert_int_equal(host_value_count(h, refused), 1);
  tp_value_release(h->system, refused);
  assert_log(h, "!dropped:a:#3:reject a:1 a:2");
  assert_int_equal(tp_tell(a, tp_integer(4), NULL), TP_OK);
}

static void the_message_in_hand_does_not_count(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_stall, 2, TP_OVERFLOW_DROP_NEW);
  host_send(h, a, 1);
  host_run(h);
  for (int i = 2; i <= 4; i++) host_send(h, a, i);
  host_run(h);
  assert_log(h, "a:1 !dropped:a:4:drop-new");
}

static void signals_and_ticks_are_never_shed(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_record, 1, TP_OVERFLOW_DROP_HEAD);
  tp_tick tick = 0;
  tp_timer_start(a, tp_integer(7), TP_ONCE, 0, 0, &tick);
  tp_advance(h->system, tp_now(h->system));
  for (int i = 1; i <= 3; i++) host_send(h, a, i);
  assert_int_equal(tp_stop(a), TP_OK);
  host_run(h);
  assert_log(h, "!dropped:a:1:drop-head !dropped:a:2:drop-head a:7 a:3");
  assert_false(tp_ref_alive(a));
}

static void an_ask_that_is_shed_fails(void **state) {
  static const tp_overflow policies[] = {TP_OVERFLOW_DROP_HEAD, TP_OVERFLOW_DROP_NEW};
  (void)state;
  for (int i = 0; i < 2; i++) {
    host *h = host_open();
    assert_int_equal(host_start(h, NULL), TP_OK);
    tp_ref *a = spawn_bounded(h, host_echo, 1, policies[i]);
    tp_ref *first = host_ask(h, a, host_value(h, 1), 60000);
    tp_ref *second = host_ask(h, a, host_value(h, 2), 60000);
    host_run(h);
    bool first_is_shed = policies[i] == TP_OVERFLOW_DROP_HEAD;
    assert_answer(h, first_is_shed ? first : second, "failed mailbox-full");
    assert_answer(h, first_is_shed ? second : first, first_is_shed ? "#2 from a" : "#1 from a");
    host_close(h);
  }
}

static void an_ask_that_is_rejected_is_none(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_record, 1, TP_OVERFLOW_REJECT);
  tp_ref *slot = NULL;
  host_send(h, a, 1);
  assert_int_equal(tp_ask(a, host_value(h, 2), 60000 * MS, &slot), TP_EFULL);
  assert_null(slot);
  host_run(h);
  assert_int_equal(host_stats(h).asks, 0);
  assert_int_equal(host_stats(h).timers, 0);
}

static void a_bound_holds_after_it_was_reached(void **state) {
  host *h = *state;
  tp_ref *a = spawn_bounded(h, host_record, 2, TP_OVERFLOW_DROP_NEW);
  for (int round = 0; round < 3; round++) {
    for (int i = 1; i <= 3; i++) host_send(h, a, i);
    host_run(h);
    assert_log(h, "!dropped:a:3:drop-new a:1 a:2");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("TELL-1 tell runs nothing inline", runs_nothing_inline),
      HOST_TEST("TELL-1 tell runs nothing inside a handler", runs_nothing_inside_a_handler),
      HOST_TEST("TELL-2 messages of one sender arrive in order", keeps_the_order),
      HOST_TEST("TELL-2 order holds while the queue wraps and grows",
                keeps_the_order_while_the_queue_wraps),
      HOST_TEST("SPAWN-1 mail told before the start is handled after pre_start",
                waits_for_pre_start),
      HOST_TEST("MBX-1 a million messages arrive in order, then the memory is given back",
                delivers_a_million_and_shrinks),
      HOST_TEST("MBX-1 memory is given back while a backlog drains", shrinks_while_it_drains),
      HOST_TEST("MBX-1 memory follows the backlog, not the traffic", does_not_grow_with_traffic),
      HOST_TEST("TELL-3 the sender is the explicit one, else there is none",
                has_the_sender_it_was_given),
      HOST_TEST("TELL-4 the sender is right after a wait, and gone outside the handler",
                keeps_the_sender_over_a_wait),
      HOST_TEST("TELL-5 a stopped actor's ref stays dead when its name is taken anew",
                stays_with_the_incarnation),
      HOST_TEST("DL-1 a dead letter names recipient and sender", dead_letters_have_their_sender),
      HOST_TEST("TELL-6 any value can be a message", carries_any_value),
      HOST_TEST("TELL-6 a value is given back when its message has been handled",
                gives_values_back),
      HOST_TEST("MBX-3 drop-head keeps the latest", drop_head_keeps_the_latest),
      HOST_TEST("MBX-3 drop-new keeps the earliest", drop_new_keeps_the_earliest),
      HOST_TEST("MBX-3 reject tells the sender and loses nothing", reject_tells_the_sender),
      HOST_TEST("MBX-4 the message in hand does not count", the_message_in_hand_does_not_count),
      HOST_TEST("MBX-5 signals and ticks are never shed", signals_and_ticks_are_never_shed),
      HOST_TEST("MBX-3 an ask that is shed fails", an_ask_that_is_shed_fails),
      HOST_TEST("MBX-3 an ask that is rejected leaves nothing", an_ask_that_is_rejected_is_none),
      HOST_TEST("MBX-2 a bound holds after it was reached", a_bound_holds_after_it_was_reached),
  };
  return cmocka_run_group_tests_name("mailbox", tests, NULL, NULL);
}
