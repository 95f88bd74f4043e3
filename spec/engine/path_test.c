/* Names and paths: how actors are written, found and listed. */
#include "host.h"

#include <time.h>

static const char *path_of(const tp_ref *r) {
  static char path[512];
  tp_ref_path(r, path, sizeof path);
  return path;
}

static const char *name_of(const tp_ref *r) {
  static char name[512];
  tp_ref_name(r, name, sizeof name);
  return name;
}

static void has_guardians(void **state) {
  host *h = *state;
  assert_string_equal(path_of(tp_root(h->system)), "troupe://demo/");
  assert_string_equal(path_of(host_user(h)), "troupe://demo/user");
  assert_string_equal(path_of(host_at(h, "/system")), "troupe://demo/system");
  assert_ptr_equal(tp_ref_parent(host_user(h)), tp_root(h->system));
  assert_null(tp_ref_parent(tp_root(h->system)));
  assert_int_equal(host_stats(h).actors, 0);
  assert_false(host_run_one(h));
}

static void guardians_ignore_mail(void **state) {
  host *h = *state;
  host_want(h, HOST_DEAD_LETTERS);
  host_tell(h, host_user(h), host_value(h, 7));
  host_run(h);
  assert_log(h, "");
}

static void guardians_ignore_kill(void **state) {
  host *h = *state;
  host_tell(h, host_user(h), (tp_value){.type = TP_SIGNAL, .as.integer = TP_KILL});
  host_run(h);
  assert_true(tp_ref_alive(host_user(h)));
  assert_false(tp_terminating(h->system));
}

static void renders_paths(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a b#");
  tp_ref *b = host_spawn_hooked(h, a, "b", 0);

  assert_string_equal(path_of(b), "troupe://demo/user/a b#/b");
  assert_string_equal(name_of(b), "b");
  assert_string_equal(tp_system_name(h->system), "demo");
}

static void measures_paths(void **state) {
  host *h = *state;
  char buffer[10];
  tp_ref *a = host_spawn(h, host_nothing, "abc");

  assert_int_equal(tp_ref_path(a, buffer, sizeof buffer), strlen("troupe://demo/user/abc"));
  assert_string_equal(buffer, "troupe://");
  assert_int_equal(tp_ref_name(a, buffer, 3), 3);
  assert_string_equal(buffer, "ab");
  assert_int_equal(tp_ref_name(a, buffer, 4), 3);
  assert_string_equal(buffer, "abc");
  assert_int_equal(tp_ref_name(tp_root(h->system), buffer, sizeof buffer), 0);
  assert_string_equal(buffer, "");
  assert_int_equal(tp_ref_path(a, NULL, 0), strlen("troupe://demo/user/abc"));
}

static void fills_a_buffer_of_any_size(void **state) {
  host *h = *state;
  static const char whole[] = "troupe://demo/user/abc/$1/d";
  tp_ref *unnamed = host_spawn_hooked(h, host_spawn(h, host_nothing, "abc"), NULL, 0);
  tp_ref *d = host_spawn_hooked(h, unnamed, "d", 0);

  for (size_t size = 1; size <= sizeof whole + 1; size++) {
    char buffer[sizeof whole + 1];
    char expected[sizeof whole + 1];
    memset(buffer, '?', sizeof buffer);
    snprintf(expected, size, "%s", whole);
    assert_int_equal(tp_ref_path(d, buffer, size), strlen(whole));
    assert_string_equal(buffer, expected);
    for (size_t i = size; i < sizeof buffer; i++) assert_int_equal(buffer[i], '?');
  }
}

/* A chain of `count` actors; each is spawned by the one above it. */
static tp_ref *spawn_chain(host *h, int count) {
  tp_behavior *behavior = host_behavior(h, (tp_behavior_spec){0});
  tp_ref *last = host_user(h);
  for (int i = 0; i < count; i++) {
    tp_ref *child = NULL;
    assert_int_equal(tp_spawn(last, behavior, "a", 1, &child), TP_OK);
    last = child;
    tp_ref_release(child); /* it lives */
  }
  return last;
}

/* The CPU time of writing a path `times` times. */
static clock_t time_of(const tp_ref *r, char *path, size_t size, int times) {
  clock_t began = clock();
  for (int i = 0; i < times; i++) assert_int_equal(tp_ref_path(r, path, size), size - 1);
  return clock() - began;
}

/* The same number of elements in all: a tenth as deep, ten times as often. Written down from the root
 * for each element anew, the deep path would take ten times as long. */
static void renders_deep_paths_in_one_walk(void **state) {
  enum { SHALLOW = 5000, DEEP = 50000, TIMES = 20 };
  host *h = *state;
  tp_ref *leaf = spawn_chain(h, DEEP), *above = leaf;
  for (int i = SHALLOW; i < DEEP; i++) above = tp_ref_parent(above);
  size_t root = strlen("troupe://demo/user") + 1, size = root + 2 * (size_t)DEEP;
  char *path = host_data(h, size);

  clock_t deep = time_of(leaf, path, size, TIMES);
  assert_string_equal(path + size - 5, "/a/a");
  clock_t shallow = time_of(above, path, root + 2 * (size_t)SHALLOW, 10 * TIMES);
  assert_true(deep < 4 * shallow);
}

static void finds_actors(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *b = host_spawn_hooked(h, a, "b", 0);

  assert_ptr_equal(host_at(h, "/user/a/b"), b);
  assert_ptr_equal(host_at(h, "/user/a"), a);
  assert_ptr_equal(tp_lookup(h->system, "/user/a/b", 7), a);
  assert_ptr_equal(host_at(h, "/"), tp_root(h->system));
  assert_null(host_at(h, "/user/b"));
  assert_null(host_at(h, "/user/a/b/c"));
  assert_ptr_equal(tp_child(a, "b", 1), b);
  assert_null(tp_child(a, "c", 1));
  assert_ptr_equal(tp_ref_parent(b), a);
}

static void lists_children(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, "a");
  tp_ref *b = host_spawn(h, host_nothing, "b");
  tp_ref *c = host_spawn(h, host_nothing, "c");
  assert_ptr_equal(tp_next_child(host_user(h), NULL), a);
  assert_ptr_equal(tp_next_child(host_user(h), a), b);

  tp_stop(b);
  host_run(h);

  assert_ptr_equal(tp_next_child(host_user(h), a), c);
  assert_null(tp_next_child(host_user(h), c));
  assert_null(tp_next_child(a, NULL));
}

static void numbers_the_unnamed(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_nothing, NULL);
  char first[32];
  tp_ref_name(a, first, sizeof first);
  assert_int_equal(first[0], '$');
  tp_ref *child = host_spawn_hooked(h, a, NULL, 0);
  assert_string_equal(name_of(child), first);

  tp_stop(a);
  host_run(h);
  tp_ref *b = host_spawn(h, host_nothing, NULL);

  assert_int_equal(name_of(b)[0], '$');
  assert_string_not_equal(name_of(b), first);
}

static void keeps_a_name_until_stopped(void **state) {
  host *h = *state;
  tp_behavior_spec spec = {.code = host_code(h, host_stall), .hooks = TP_HOOK_POST_STOP};
  host_spawn_spec(h, host_user(h), spec, "a");
  assert_int_equal(host_try_spawn(h, host_user(h), "a"), TP_EEXIST);

  tp_stop(host_at(h, "/user/a"));
  host_run(h);
  assert_int_equal(host_try_spawn(h, host_user(h), "a"), TP_EEXIST);

  tp_slot_settle(h->gate, tp_nil(), false, NULL);
  host_run(h);
  assert_int_equal(host_try_spawn(h, host_user(h), "a"), TP_OK);
  assert_int_equal(host_stats(h).actors, 1);
}

static void has_a_uid_for_each_incarnation_of_a_name(void **state) {
  host *h = *state;
  tp_ref *old = host_spawn(h, host_nothing, "a");
  tp_stop(old);
  host_run(h);
  tp_ref *new = host_spawn(h, host_nothing, "a");

  assert_ptr_not_equal(old, new);
  assert_true(tp_ref_uid(old) != tp_ref_uid(new));
  assert_string_equal(path_of(old), "troupe://demo/user/a");
}

static void finds_the_unnamed(void **state) {
  host *h = *state;
  tp_ref *children[11];
  for (int i = 0; i < 11; i++) children[i] = host_spawn(h, host_nothing, NULL);
  host_spawn(h, host_nothing, "$x");

  for (int i = 0; i < 11; i++) {
    char path[64] = "/user/";
    tp_ref_name(children[i], path + 6, sizeof path - 6);
    assert_ptr_equal(host_at(h, path), children[i]);
  }
  assert_null(host_at(h, "/user/$"));
  assert_null(host_at(h, "/user/$12"));
  assert_null(host_at(h, "/user/$1x"));
  assert_null(host_at(h, "/user/$:"));
}

static void names_leave_no_memory(void **state) {
  host *h = *state;
  tp_behavior *behavior = host_behavior(h, (tp_behavior_spec){0});
  size_t before = host_stats(h).bytes;
  for (int i = 0; i < 10000; i++) {
    char name[16];
    tp_ref *r = NULL;
    snprintf(name, sizeof name, "a%d", i);
    assert_int_equal(tp_spawn(host_user(h), behavior, name, strlen(name), &r), TP_OK);
    tp_stop(r);
    tp_ref_release(r);
    host_run(h);
  }
  assert_in_range(host_stats(h).bytes, 0, before + 1024);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("SYS-2 a system has a root, /user and /system", has_guardians),
      HOST_TEST("SYS-2 guardians ignore messages", guardians_ignore_mail),
      HOST_TEST("SYS-2 guardians ignore kill messages", guardians_ignore_kill),
      HOST_TEST("PATH-1 paths render with system and parents", renders_paths),
      HOST_TEST("PATH-1 a buffer that is too short is filled, and the length told", measures_paths),
      HOST_TEST("PATH-1 a buffer of any size is filled and never overrun",
                fills_a_buffer_of_any_size),
      HOST_TEST("PATH-1 a deep path costs no more than its length", renders_deep_paths_in_one_walk),
      HOST_TEST("SEL-1 an actor is found by its path", finds_actors),
      HOST_TEST("PATH-2 children are listed in the order they were spawned", lists_children),
      HOST_TEST("PATH-4 unnamed actors are numbered per parent, for life", numbers_the_unnamed),
      HOST_TEST("PATH-5 a name is taken until its actor has stopped", keeps_a_name_until_stopped),
      HOST_TEST("PATH-6 each incarnation of a name has its own uid",
                has_a_uid_for_each_incarnation_of_a_name),
      HOST_TEST("PATH-4 unnamed actors are found by their numbers", finds_the_unnamed),
      HOST_TEST("PATH-5 names leave no memory", names_leave_no_memory),
  };
  return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
