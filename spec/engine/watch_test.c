/* Death watch: who is told of an end, and when. */
#include "host.h"

static void tells_of_a_death(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_ref *b = host_spawn(h, host_record, "b");
  assert_int_equal(tp_watch(a, b, tp_nil(), false), TP_OK);
  assert_int_equal(tp_watch(a, b, tp_nil(), false), TP_OK);
  host_run(h);
  tp_stop(b);
  host_run(h);
  assert_log(h, "a:dead-b");
}

static void tells_at_once_of_one_that_is_dead(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_ref *b = host_spawn(h, host_record, "b");
  tp_stop(b);
  host_run(h);
  assert_int_equal(tp_watch(a, b, tp_nil(), false), TP_OK);
  host_run(h);
  assert_log(h, "a:dead-b");
}

static void the_last_message_counts(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_ref *b = host_spawn(h, host_record, "b");
  assert_int_equal(tp_watch(a, b, host_value(h, 1), true), TP_OK);
  assert_int_equal(tp_watch(a, b, host_value(h, 2), true), TP_OK);
  host_run(h);
  tp_stop(b);
  host_run(h);
  assert_log(h, "a:#2");
}

static void a_queued_notice_is_taken_back(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_stall, "a");
  tp_ref *b = host_spawn(h, host_record, "b");
  assert_int_equal(tp_watch(a, b, tp_nil(), false), TP_OK);
  host_send(h, a, 1);
  host_run(h);
  tp_stop(b);
  host_run(h);
  assert_int_equal(host_stats(h).queued, 1);
  tp_unwatch(a, b);
  tp_unwatch(a, b);
  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_log(h, "a:1");
}

static void watches_end_with_the_watcher(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_ref *b = host_spawn(h, host_record, "b");
  host_want(h, 1u << TP_EVENT_DEAD_LETTER);
  assert_int_equal(tp_watch(a, b, tp_nil(), false), TP_OK);
  assert_int_equal(tp_watch(b, a, tp_nil(), false), TP_OK);
  tp_stop(a);
  tp_stop(b);
  host_run(h);
  assert_log(h, "");
}

static void a_slot_waits_for_the_end(void **state) {
  host *h = *state;
  tp_ref *b = host_spawn(h, host_record, "b");
  tp_ref *late = NULL, *slot = NULL, *over = NULL;
  assert_int_equal(tp_await_stop(b, 10 * MS, &late), TP_OK);
  host_run(h);
  host_advance(h, 10);
  assert_string_equal(host_answer(h, late), "failed timeout");
  assert_int_equal(tp_await_stop(b, 10 * MS, &slot), TP_OK);
  tp_stop(b);
  host_run(h);
  assert_string_equal(host_answer(h, slot), "true");
  assert_int_equal(tp_await_stop(b, 10 * MS, &over), TP_OK);
  assert_string_equal(host_answer(h, over), "true");
  tp_ref_release(late);
  tp_ref_release(slot);
  tp_ref_release(over);
}

/* The mailbox of the watcher cannot take the notice: it comes when there is memory again. */
static void a_notice_without_memory_comes_later(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record, "a");
  tp_ref *b = host_spawn(h, host_record, "b");
  assert_int_equal(tp_watch(a, b, tp_nil(), false), TP_OK);
  host_run(h);
  tp_stop_now(b);
  h->fail_from = h->allocations + 1;
  host_run(h);
  h->fail_from = 0;
  host_advance(h, 1);
  assert_log(h, "a:dead-b");
}

static void killing_fails_what_waits(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_stall, "a");
  host_want(h, 1u << TP_EVENT_FAILED);
  host_send(h, a, 1);
  host_run(h);
  assert_int_equal(host_stats(h).waits, 1);
  tp_kill(a);
  host_run(h);
  assert_int_equal(host_stats(h).waits, 0);
  assert_log(h, "a:1 closed !failed:a:killed:restart");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("WATCH-1 an end is told of, once", tells_of_a_death),
      HOST_TEST("WATCH-2 a death before is told of at once", tells_at_once_of_one_that_is_dead),
      HOST_TEST("WATCH-2 a queued notice is taken back", a_queued_notice_is_taken_back),
      HOST_TEST("WATCH-3 the last message counts", the_last_message_counts),
      HOST_TEST("WATCH-4 watches end with the watcher", watches_end_with_the_watcher),
      HOST_TEST("WATCH-5 a slot waits for the end", a_slot_waits_for_the_end),
      HOST_TEST("MBX-5 a notice without memory comes later", a_notice_without_memory_comes_later),
      HOST_TEST("SUP-11 killing fails what waits", killing_fails_what_waits),
  };
  return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
