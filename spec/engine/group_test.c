/* Groups: routers to actors that exist. */
#include "host.h"

static tp_member by_ref(tp_ref *actor) { return (tp_member){.actor = actor}; }

static tp_member by_path(const char *path) {
  return (tp_member){.path = path, .length = strlen(path)};
}

static tp_ref *spawn_group(host *h, tp_routing routing, const tp_member *members, uint32_t size) {
  tp_behavior_spec spec = {.routing = routing, .members = members, .size = size};
  return host_spawn_spec(h, host_user(h), spec, "group");
}

static tp_ref *actor(host *h, const char *name) { return host_spawn(h, host_record, name); }

/* Each message when the one before has been dealt with. */
static void send_each(host *h, tp_ref *group, int64_t first, int64_t last) {
  for (int64_t i = first; i <= last; i++) {
    host_send(h, group, i);
    host_run(h);
  }
}

static void stop(host *h, tp_ref *a) {
  tp_stop_now(a);
  host_run(h);
}

/* Three actors, and a group of the first, by ref, and the others, by path. */
static tp_ref *spawn_abc(host *h, tp_routing routing) {
  tp_ref *a = actor(h, "a");
  actor(h, "b");
  actor(h, "c");
  return spawn_group(h, routing, (tp_member[]){by_ref(a), by_path("/user/b"), by_path("/user/c")},
                     3);
}

/* ---- Routing ---------------------------------------------------------------------------- */

static void routes_by_ref_and_by_path(void **state) {
  host *h = *state;
  send_each(h, spawn_abc(h, TP_ROUTE_ROUND_ROBIN), 1, 4);
  assert_log(h, "a:1 b:2 c:3 a:4");
}

static void its_members_are_copied(void **state) {
  host *h = *state;
  char path[] = "/user/a";
  tp_member members[] = {by_path(path)};
  actor(h, "a");
  tp_ref *group = spawn_group(h, TP_ROUTE_RANDOM, members, 1);
  path[6] = 'x';
  members[0].length = 0;
  send_each(h, group, 1, 1);
  assert_log(h, "a:1");
}

static void has_each_strategy(void **state) {
  static const struct {
    tp_routing routing;
    const char *log;
  } table[] = {
      {TP_ROUTE_BROADCAST, "a:1 b:1 c:1 a:2 b:2 c:2"},
      {TP_ROUTE_SMALLEST_MAILBOX, "a:1 b:2"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    host *h = host_open();
    assert_int_equal(host_start(h, NULL), TP_OK);
    send_each(h, spawn_abc(h, table[i].routing), 1, 2);
    assert_log(h, table[i].log);
    host_close(h);
  }
}

static void pick_last(host *h, tp_job *job) {
  tp_ref *routees[8];
  size_t count = tp_routees(job->actor, routees, 8);
  host_route(h, job, &routees[count - 1], 1);
}

static void a_strategy_picks_among_them(void **state) {
  host *h = *state;
  tp_ref *a = actor(h, "a");
  tp_behavior_spec spec = {
      .routing = TP_ROUTE_CUSTOM,
      .strategy = host_code(h, pick_last),
      .members = (tp_member[]){by_ref(a), by_path("/user/b")},
      .size = 2,
  };
  tp_ref *group = host_spawn_spec(h, host_user(h), spec, "group");
  send_each(h, group, 1, 1);
  actor(h, "b");
  send_each(h, group, 2, 2);
  assert_log(h, "a:1 b:2");
}

static void a_member_may_be_there_twice(void **state) {
  host *h = *state;
  tp_ref *a = actor(h, "a");
  tp_ref *b = actor(h, "b");
  tp_member members[] = {by_ref(a), by_ref(b), by_path("/user/a")};
  send_each(h, spawn_group(h, TP_ROUTE_ROUND_ROBIN, members, 3), 1, 6);
  assert_log(h, "a:1 b:2 a:3 a:4 b:5 a:6");
}

static void a_broadcast_reaches_everyone(void **state) {
  host *h = *state;
  tp_ref *group = spawn_abc(h, TP_ROUTE_ROUND_ROBIN);
  host_tell(h, group, (tp_value){.type = TP_INTEGER, .flags = TP_BROADCAST, .as.integer = 1});
  host_run(h);
  assert_log(h, "a:1 b:1 c:1");
}

static void keeps_the_sender(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_record_from, "a");
  tp_ref *group = spawn_group(h, TP_ROUTE_RANDOM, (tp_member[]){by_ref(a)}, 1);
  tp_tell(group, tp_integer(1), host_user(h));
  host_run(h);
  assert_log(h, "a:1<user");
}

static void can_be_asked(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_echo, "a");
  tp_ref *group = spawn_group(h, TP_ROUTE_RANDOM, (tp_member[]){by_ref(a)}, 1);
  tp_ref *slot = host_ask(h, group, tp_integer(1), 100);
  host_run(h);
  assert_answer(h, slot, "1 from a");
}

/* ---- Who comes and goes ----------------------------------------------------------------- */

static void a_member_that_stops_leaves(void **state) {
  host *h = *state;
  tp_ref *group = spawn_abc(h, TP_ROUTE_ROUND_ROBIN);
  host_want(h, HOST_DEAD_LETTERS);
  stop(h, host_at(h, "/user/a"));
  stop(h, host_at(h, "/user/b"));
  send_each(h, group, 1, 2);
  assert_log(h, "c:1 c:2");
}

static void a_member_that_drains_gets_no_more_mail(void **state) {
  host *h = *state;
  tp_ref *group = spawn_abc(h, TP_ROUTE_ROUND_ROBIN);
  host_want(h, HOST_DEAD_LETTERS);
  host_send(h, host_at(h, "/user/a"), 9);
  tp_stop(host_at(h, "/user/a"));
  host_send(h, group, 1);
  host_run(h);
  assert_log(h, "a:9 b:1");
}

static void turns_go_on_when_a_member_leaves(void **state) {
  host *h = *state;
  tp_ref *group = spawn_abc(h, TP_ROUTE_ROUND_ROBIN);
  send_each(h, group, 1, 2);
  stop(h, host_at(h, "/user/a"));
  send_each(h, group, 3, 5);
  assert_log(h, "a:1 b:2 c:3 b:4 c:5");
}

static void the_turn_of_one_who_leaves_goes_to_the_next(void **state) {
  host *h = *state;
  tp_ref *group = spawn_abc(h, TP_ROUTE_ROUND_ROBIN);
  send_each(h, group, 1, 1);
  stop(h, host_at(h, "/user/b"));
  send_each(h, group, 2, 3);
  assert_log(h, "a:1 c:2 a:3");
}

static void the_turn_of_the_last_goes_to_the_first(void **state) {
  host *h = *state;
  tp_ref *group = spawn_abc(h, TP_ROUTE_ROUND_ROBIN);
  send_each(h, group, 1, 2);
  stop(h, host_at(h, "/user/c"));
  send_each(h, group, 3, 4);
  assert_log(h, "a:1 b:2 a:3 b:4");
}

static void who_comes_back_under_its_path_gets_mail_again(void **state) {
  host *h = *state;
  tp_ref *group = spawn_abc(h, TP_ROUTE_ROUND_ROBIN);
  stop(h, host_at(h, "/user/a"));
  stop(h, host_at(h, "/user/b"));
  actor(h, "a"); /* which was a member by ref */
  actor(h, "b");
  send_each(h, group, 1, 3);
  assert_log(h, "b:1 c:2 b:3");
}

static void a_path_may_lead_nowhere_at_first(void **state) {
  host *h = *state;
  tp_ref *group = spawn_group(h, TP_ROUTE_ROUND_ROBIN, (tp_member[]){by_path("/user/x/y")}, 1);
  host_want(h, HOST_DEAD_LETTERS);
  send_each(h, group, 1, 1);
  tp_ref *x = host_spawn(h, host_nothing, "x");
  send_each(h, group, 2, 2);
  host_spawn_spec(h, x, (tp_behavior_spec){0}, "y");
  send_each(h, group, 3, 3);
  assert_log(h, "!dead:group:1:no-routees !dead:group:2:no-routees y:3");
}

static void a_member_that_restarts_stays(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_fragile, "a");
  tp_ref *group = spawn_group(h, TP_ROUTE_RANDOM, (tp_member[]){by_ref(a)}, 1);
  host_send(h, group, -1);
  host_send(h, group, 2);
  host_run(h);
  assert_log(h, "a:-1 a:2");
}

static void without_members_an_ask_fails(void **state) {
  host *h = *state;
  tp_ref *group = spawn_group(h, TP_ROUTE_RANDOM, (tp_member[]){by_path("/user/x")}, 1);
  tp_ref *slot = host_ask(h, group, tp_integer(1), 60000);
  host_run(h);
  assert_answer(h, slot, "failed no-routees");
}

static void leaves_itself_out(void **state) {
  host *h = *state;
  tp_ref *a = actor(h, "a");
  tp_ref *group =
      spawn_group(h, TP_ROUTE_ROUND_ROBIN, (tp_member[]){by_path("/user/group"), by_ref(a)}, 2);
  send_each(h, group, 1, 2);
  assert_log(h, "a:1 a:2");
}

static void leaves_guardians_out(void **state) {
  host *h = *state;
  tp_member members[] = {by_path("/"), by_path("/user"), by_path("/system")};
  tp_ref *slot = host_ask(h, spawn_group(h, TP_ROUTE_RANDOM, members, 3), tp_integer(1), 60000);
  host_run(h);
  assert_answer(h, slot, "failed no-routees");
}

static void looks_only_when_somebody_came_or_went(void **state) {
  host *h = *state;
  tp_ref *group = spawn_abc(h, TP_ROUTE_ROUND_ROBIN);
  send_each(h, group, 1, 1);
  tp_ref *before[3];
  tp_ref *after[3];
  assert_int_equal(tp_routees(group, before, 3), 3);
  stop(h, host_at(h, "/user/b"));
  assert_int_equal(tp_routees(group, after, 3), 3); /* until its next message */
  send_each(h, group, 2, 2);
  assert_int_equal(tp_routees(group, after, 3), 2);
  assert_ptr_equal(after[0], before[0]);
  assert_ptr_equal(after[1], before[2]);
}

/* ---- Requests --------------------------------------------------------------------------- */

static const char *ask(host *h, tp_ref *group, int64_t request) {
  tp_value message = {.type = TP_POOL_REQUEST, .as.integer = request};
  tp_ref *slot = host_ask(h, group, message, 60000);
  host_run(h);
  return host_answer(h, slot);
}

static void lists_who_is_there(void **state) {
  host *h = *state;
  tp_ref *group = spawn_abc(h, TP_ROUTE_ROUND_ROBIN);
  assert_string_equal(ask(h, group, 0), "bundle-3 from group");
  stop(h, host_at(h, "/user/b"));
  assert_string_equal(ask(h, group, 0), "bundle-2 from group");
}

static void owns_nobody(void **state) {
  host *h = *state;
  tp_ref *group = spawn_abc(h, TP_ROUTE_ROUND_ROBIN);
  assert_string_equal(ask(h, group, 1), "failed not-a-pool");
  assert_string_equal(ask(h, group, -1), "failed not-a-pool");
  send_each(h, group, 1, 3);
  assert_log(h, "a:1 b:2 c:3");
}

/* ---- The group's own life --------------------------------------------------------------- */

static void stopping_leaves_the_members_alone(void **state) {
  host *h = *state;
  tp_ref *group = spawn_abc(h, TP_ROUTE_ROUND_ROBIN);
  for (int i = 1; i <= 3; i++) host_send(h, group, i);
  tp_stop(group);
  host_run(h);
  assert_false(tp_ref_alive(group));
  assert_log(h, "a:1 b:2 c:3");
  assert_int_equal(host_stats(h).actors, 3);
}

static void stopping_does_not_wait_for_the_members(void **state) {
  host *h = *state;
  tp_ref *a = host_spawn(h, host_stall, "a");
  tp_ref *group = spawn_group(h, TP_ROUTE_RANDOM, (tp_member[]){by_ref(a)}, 1);
  send_each(h, group, 1, 2);
  tp_stop(group);
  host_run(h);
  assert_false(tp_ref_alive(group));
  assert_log(h, "a:1");
}

static void restarting_leaves_the_members_alone(void **state) {
  host *h = *state;
  tp_ref *group = spawn_abc(h, TP_ROUTE_ROUND_ROBIN);
  host_want(h, 1u << TP_EVENT_STOPPED | 1u << TP_EVENT_RESTARTED);
  send_each(h, group, 1, 2);
  host_tell(h, group, (tp_value){.type = TP_SIGNAL, .as.integer = TP_KILL});
  host_run(h);
  send_each(h, group, 3, 4);
  assert_log(h, "a:1 b:2 !restarted:group:killed a:3 b:4");
}

static void can_be_a_routee(void **state) {
  host *h = *state;
  tp_ref *a = actor(h, "a");
  tp_behavior_spec inner = {
      .routing = TP_ROUTE_ROUND_ROBIN,
      .members = (tp_member[]){by_ref(a), by_path("/user/b")},
      .size = 2,
  };
  tp_behavior_spec outer = {
      .routing = TP_ROUTE_ROUND_ROBIN, .routee = host_behavior(h, inner), .size = 1};
  tp_ref *pool = host_spawn_spec(h, host_user(h), outer, "pool");
  actor(h, "b");
  send_each(h, pool, 1, 2);
  tp_stop(pool);
  host_run(h);
  assert_log(h, "a:1 b:2");
  assert_true(tp_ref_alive(a));
}

static void outlives_the_refs_of_its_members(void **state) {
  host *h = *state;
  tp_behavior_spec plain = {.receive = host_code(h, host_record)};
  tp_behavior *behavior = host_behavior(h, plain);
  tp_ref *a = NULL;
  tp_ref *b = NULL;
  assert_int_equal(tp_spawn(host_user(h), behavior, "a", 1, &a), TP_OK);
  assert_int_equal(tp_spawn(host_user(h), behavior, "b", 1, &b), TP_OK);
  tp_ref *group = spawn_group(h, TP_ROUTE_RANDOM, (tp_member[]){by_ref(a), by_ref(b)}, 2);
  tp_stop_now(a);
  tp_ref_release(a);
  tp_ref_release(b);
  host_run(h);
  send_each(h, group, 1, 2);
  assert_log(h, "b:1 b:2");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      HOST_TEST("RTR-17 a group routes by ref and by path", routes_by_ref_and_by_path),
      HOST_TEST("RTR-17 the members are copied", its_members_are_copied),
      HOST_TEST("RTR-17 a group has the strategies of pools", has_each_strategy),
      HOST_TEST("RTR-17 a custom strategy picks among those that are there",
                a_strategy_picks_among_them),
      HOST_TEST("RTR-17 a member that is there twice gets twice its share",
                a_member_may_be_there_twice),
      HOST_TEST("RTR-17 a broadcast reaches every member", a_broadcast_reaches_everyone),
      HOST_TEST("RTR-17 a group keeps the sender", keeps_the_sender),
      HOST_TEST("RTR-17 a group can be asked", can_be_asked),
      HOST_TEST("RTR-17 a member that stops leaves", a_member_that_stops_leaves),
      HOST_TEST("RTR-17 a member that drains gets no more mail",
                a_member_that_drains_gets_no_more_mail),
      HOST_TEST("RTR-17 turns go on when a member leaves", turns_go_on_when_a_member_leaves),
      HOST_TEST("RTR-17 the turn of a member that leaves goes to the next",
                the_turn_of_one_who_leaves_goes_to_the_next),
      HOST_TEST("RTR-17 the turn of the last one goes to the first",
                the_turn_of_the_last_goes_to_the_first),
      HOST_TEST("RTR-17 who comes back under its path gets mail again",
                who_comes_back_under_its_path_gets_mail_again),
      HOST_TEST("RTR-17 a path may lead nowhere at first", a_path_may_lead_nowhere_at_first),
      HOST_TEST("RTR-17 a member that restarts stays", a_member_that_restarts_stays),
      HOST_TEST("RTR-19 without members an ask fails at once", without_members_an_ask_fails),
      HOST_TEST("RTR-17 a group leaves itself out", leaves_itself_out),
      HOST_TEST("RTR-17 a group leaves guardians out", leaves_guardians_out),
      HOST_TEST("RTR-17 a group looks at its members when somebody came or went",
                looks_only_when_somebody_came_or_went),
      HOST_TEST("RTR-15 a group lists who is there", lists_who_is_there),
      HOST_TEST("RTR-15 a group cannot be resized", owns_nobody),
      HOST_TEST("RTR-17 stopping a group leaves the members alone",
                stopping_leaves_the_members_alone),
      HOST_TEST("RTR-17 stopping a group does not wait for the members",
                stopping_does_not_wait_for_the_members),
      HOST_TEST("RTR-17 restarting a group leaves the members alone",
                restarting_leaves_the_members_alone),
      HOST_TEST("RTR-17 a group can be a routee", can_be_a_routee),
      HOST_TEST("RTR-17 a group outlives the refs of its members",
                outlives_the_refs_of_its_members),
  };
  return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
