/* Small blocks that have been given back and are used again. */
#include "alloc.h"
#include "host.h"
#include "system.h"

enum { KEEP = 1000 }; /* bytes */

static int setup(void **state) {
  host *h = host_open();
  h->keep = KEEP;
  *state = h;
  return host_start(h, NULL);
}

#define KEPT_TEST(title, function)                                                                 \
  { title, function, setup, host_teardown, NULL }

static void a_block_is_used_again(void **state) {
  host *h = *state;
  void *first = tp_alloc(h->system, 100);
  tp_free(h->system, first, 100);
  size_t allocations = h->allocations;

  void *again = tp_alloc(h->system, 97);

  assert_ptr_equal(again, first);
  assert_int_equal(h->allocations, allocations);
  tp_free(h->system, again, 97);
}

static void a_block_is_not_used_for_more_than_its_size(void **state) {
  host *h = *state;
  void *first = tp_alloc(h->system, 104);
  tp_free(h->system, first, 104);

  void *larger = tp_alloc(h->system, 105);

  assert_ptr_not_equal(larger, first);
  tp_free(h->system, larger, 105);
}

static void a_block_is_zero_again(void **state) {
  host *h = *state;
  static const char zeros[64];
  char *block = tp_alloc(h->system, sizeof zeros);
  memset(block, 7, sizeof zeros);
  tp_free(h->system, block, sizeof zeros);

  block = tp_alloc(h->system, sizeof zeros);

  assert_memory_equal(block, zeros, sizeof zeros);
  tp_free(h->system, block, sizeof zeros);
}

static void a_block_that_has_grown_is_kept_by_its_size(void **state) {
  host *h = *state;
  void *block = tp_resize(h->system, tp_alloc(h->system, 40), 40, 81);
  tp_free(h->system, block, 81);

  char *again = tp_alloc(h->system, 88);

  assert_ptr_equal(again, block);
  memset(again, 7, 88);
  tp_free(h->system, again, 88);
}

static void what_is_kept_does_not_count(void **state) {
  host *h = *state;
  size_t before = host_stats(h).bytes;
  void *block = tp_alloc(h->system, 100);
  assert_int_equal(host_stats(h).bytes, before + 104);

  tp_free(h->system, block, 100);
  assert_int_equal(host_stats(h).bytes, before);
  assert_int_equal(h->bytes, before + 104);

  block = tp_alloc(h->system, 100);
  assert_int_equal(host_stats(h).bytes, before + 104);
  tp_free(h->system, block, 100);
}

static void no_more_is_kept_than_allowed(void **state) {
  host *h = *state;
  void *blocks[100];
  for (size_t i = 0; i < 100; i++) blocks[i] = tp_alloc(h->system, 16 + i % 10);
  for (size_t i = 0; i < 100; i++) tp_free(h->system, blocks[i], 16 + i % 10);

  size_t kept = h->bytes - host_stats(h).bytes;
  assert_in_range(kept, KEEP - 40, KEEP);
}

static void large_blocks_are_not_kept(void **state) {
  host *h = *state;
  tp_free(h->system, tp_alloc(h->system, 521), 521);

  assert_int_equal(h->bytes, host_stats(h).bytes);
}

static void one_ask_after_another_takes_no_more_memory(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_echo, "a");
  size_t allocations = 0;

  for (int i = 0; i < 100; i++) {
    tp_ref *slot = NULL;
    assert_int_equal(tp_ask(a, tp_integer(i), 1000 * MS, &slot), TP_OK);
    host_run(h);
    assert_int_equal(tp_slot_outcome(slot).value.as.integer, i);
    tp_ref_release(slot);
    if (i == 0) allocations = h->allocations;
  }

  assert_int_equal(h->allocations, allocations);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      KEPT_TEST("ASK-8 a block that was given back is used again", a_block_is_used_again),
      KEPT_TEST("ASK-8 a block is not used for more than its size",
                a_block_is_not_used_for_more_than_its_size),
      KEPT_TEST("ASK-8 a block that is used again is zero", a_block_is_zero_again),
      KEPT_TEST("ASK-8 a block that has grown is kept by its size",
                a_block_that_has_grown_is_kept_by_its_size),
      KEPT_TEST("INS-2 what is kept does not count", what_is_kept_does_not_count),
      KEPT_TEST("INS-2 no more is kept than the host allows", no_more_is_kept_than_allowed),
      KEPT_TEST("INS-2 large blocks are not kept", large_blocks_are_not_kept),
      KEPT_TEST("ASK-8 one ask after another takes no more memory",
                one_ask_after_another_takes_no_more_memory),
  };
  return cmocka_run_group_tests_name("kept", tests, NULL, NULL);
}
