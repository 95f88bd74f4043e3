/* A host is a system's userdata: it is made, looked into, driven from Lua, and taken apart here. */
#include <stdlib.h>
#include <string.h>

#include "binding.h"

/* Bytes of freed blocks that a system keeps, for what many asks and many actors need again and again. A
 * block that is used again would hide from the sanitizer what still points to it. */
#ifdef __SANITIZE_ADDRESS__
enum { KEPT_BYTES = 0 };
#else
enum { KEPT_BYTES = 1 << 20 };
#endif

static tpl_host *test_host(lua_State *L, int index) {
  return tpl_test(L, index, &tpl_system_magic, sizeof(tpl_host));
}

tpl_host *tpl_check_host(lua_State *L, int index, const char *where) {
  tpl_host *h = test_host(L, index);
  if (h == NULL) {
    tpl_misuse(L, "%s: call it on a system (got %s)", where, luaL_typename(L, index));
  }
  if (h->system == NULL) tpl_misuse(L, "%s: the system has been collected", where);
  return h;
}

/* ---- Made and taken apart --------------------------------------------------------------- */

static void *allocate(void *allocator, void *block, size_t old_size, size_t new_size) {
  (void)allocator;
  (void)old_size;
  tp_heap_map();
  return tpl_allocate(block, new_size);
}

static void push_weak_table(lua_State *L) {
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
}

/* Puts the host's things onto aux, in the order of their places. */
static void fill_aux(lua_State *L, tpl_host *h, int options, int userdata) {
  luaL_checkstack(h->aux, TPL_AUX_SIZE + LUA_MINSTACK, NULL);
  lua_createtable(L, TPL_FIRST_ANCHORS, 0);
  h->anchors.capacity = TPL_FIRST_ANCHORS;
  tpl_push_refs(L, TPL_FIRST_REFS);
  h->refs.capacity = TPL_FIRST_REFS;
  lua_newtable(L);
  tpl_push_ref_metatable(L, userdata);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getiuservalue(L, -1, TPL_CORE_ACTOR_MT);
  lua_remove(L, -2);
  lua_pushvalue(L, userdata);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getfield(L, options, "on_event");
  lua_pushnil(L);
  lua_xmove(L, h->aux, TPL_AUX_SIZE);
}

static bool boolean_option(lua_State *L, const char *name) {
  lua_getfield(L, 1, name);
  bool b = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return b;
}

static lua_Number number_option(lua_State *L, const char *name) {
  lua_getfield(L, 1, name);
  lua_Number n = luaL_checknumber(L, -1);
  lua_pop(L, 1);
  return n;
}

static uint64_t seed_option(lua_State *L) {
  lua_getfield(L, 1, "seed");
  uint64_t seed = lua_isnil(L, -1) ? tp_entropy() : (uint64_t)luaL_checkinteger(L, -1);
  lua_pop(L, 1);
  return seed;
}

/* Lists the host on top with its core. Hosts do not know each other: Lua may free one without calling
 * its finalizer, when that would run too deep in the stack. */
static void list_host(lua_State *L, tpl_host *h) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getiuservalue(L, -1, TPL_CORE_HOSTS);
  lua_pushvalue(L, -3);
  lua_rawsetp(L, -2, h);
  lua_pop(L, 2);
}

/* core.new_system{ name, seed, throughput, drain_timeout_ms, slow_handler_ms, escalate_ends, virtual,
 *                   shuffle, metrics, on_event } */
static int core_new_system(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  if (tpl_core_here(L)->closed) return luaL_error(L, "the Lua state is being closed");
  tpl_host *h = lua_newuserdatauv(L, sizeof *h, 1); /* 2 */
  memset(h, 0, sizeof *h);
  h->magic = &tpl_system_magic;
  h->core = tpl_core_here(L);
  tpl_set_metatable(L, TPL_CORE_SYSTEM_MT);
  list_host(L, h);
  h->aux = lua_newthread(L);
  lua_setiuservalue(L, 2, 1);
  fill_aux(L, h, 1, 2);
  h->is_virtual = boolean_option(L, "virtual");
  h->measures = boolean_option(L, "metrics");
  h->now = tpl_clock(h);
  tp_time slow_after = tpl_nanoseconds(number_option(L, "slow_handler_ms"));
  if (!h->is_virtual) h->slow_after = slow_after;
  lua_getfield(L, 1, "name");
  tp_host host = {h, tpl_retain, tpl_release, allocate, NULL, KEPT_BYTES};
  tp_system_options options = {
      .name = luaL_checkstring(L, -1),
      .seed = seed_option(L),
      .throughput = (uint32_t)number_option(L, "throughput"),
      .drain_timeout = tpl_nanoseconds(number_option(L, "drain_timeout_ms")),
      .escalate_ends = boolean_option(L, "escalate_ends"),
      .now = h->now,
      .shuffle = boolean_option(L, "shuffle"),
      .metrics = h->measures,
      .coarse = !h->is_virtual,
  };
  h->began = h->now;
  if (tp_system_new(&host, &options, &h->system) != TP_OK) {
    h->system = NULL;
    return luaL_error(L, "not enough memory");
  }
  lua_settop(L, 2);
  return 1;
}

/* Jobs outside any actor are not known to the engine: they are ended by hand. */
static void end_jobs(tpl_host *h) {
  for (tpl_coro *c = h->idle; c != NULL; c = c->next_idle) c->job.kind = TP_JOB_RESUME;
  for (tpl_coro *c = h->coros; c != NULL; c = c->next) {
    if (c->slot != NULL) tp_slot_forget(c->slot); /* ends a job outside any actor that waits */
    if (c->job.kind == TP_JOB_EVENT || c->job.kind == TP_JOB_TIMER) tp_done(&c->job);
  }
}

tpl_owned *tpl_own(tpl_host *h) {
  tpl_owned *o = calloc(1, sizeof *o);
  if (o == NULL) return NULL;
  o->next = h->owned;
  o->link = &h->owned;
  if (o->next != NULL) o->next->link = &o->next;
  h->owned = o;
  return o;
}

void tpl_disown(tpl_owned *o) {
  if (o == NULL) return;
  *o->link = o->next;
  if (o->next != NULL) o->next->link = o->link;
  if (o->stream != NULL) tp_stream_release(o->stream);
  for (uint32_t i = 0; i < o->count; i++) tp_ref_release(o->slots[i]);
  free(o->slots);
  free(o);
}

tpl_handle *tpl_push_handle(lua_State *L, tpl_host *h, const void *magic, int place) {
  tpl_handle *handle = lua_newuserdatauv(L, sizeof *handle, 1);
  *handle = (tpl_handle){.magic = magic, .host = h};
  tpl_set_metatable(L, place);
  tpl_push_aux(L, h, TPL_SYSTEM); /* as with refs */
  lua_setiuservalue(L, -2, 1);
  handle->owned = tpl_own(h);
  if (handle->owned == NULL) luaL_error(L, "not enough memory");
  return handle;
}

tpl_owned *tpl_held(const tpl_handle *handle) {
  return handle->host->system == NULL ? NULL : handle->owned;
}

int tpl_handle_gc(lua_State *L) {
  tpl_handle *handle = lua_touserdata(L, 1);
  tpl_disown(tpl_held(handle));
  handle->owned = NULL;
  return 0;
}

/* Runs no user code: the system may be collected at any time, or with the state. */
static void take_apart(tpl_host *h) {
  tp_system *s = h->system;
  if (s == NULL) return;
  tpl_drop_watchdog(h);
  end_jobs(h);
  h->system = NULL;
  tp_system_free(s);
  tpl_free_coros(h);
  tp_loop_free(h->loop);
  h->loop = NULL;
  tpl_free_anchors(h);
  while (h->owned != NULL) tpl_disown(h->owned);
  tpl_release_refs(h);
}

static int host_gc(lua_State *L) {
  take_apart(lua_touserdata(L, 1));
  return 0;
}

void tpl_close_core(lua_State *L, int core) {
  ((tpl_core *)lua_touserdata(L, core))->closed = true;
  if (lua_getiuservalue(L, core, TPL_CORE_HOSTS) != LUA_TTABLE) return; /* it was hardly made */
  for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) take_apart(lua_touserdata(L, -1));
}

/* ---- Driven ----------------------------------------------------------------------------- */

/* The host is driven no more, for now: the Lua side may have something left to say. */
static int at_rest(lua_State *L, tpl_host *h) {
  tpl_push_setup(L, h, "at_rest");
  tpl_push_aux(L, h, TPL_SYSTEM);
  lua_call(L, 1, 0);
  return 0;
}

/* system:run()                                                              SYS-9 */
static int host_run(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "run");
  tpl_check_drivable(L, h, "run");
  (void)tpl_drive(L, h, NULL);
  return at_rest(L, h);
}

/* system:terminate(): in a handler or a task it begins, elsewhere it is over on return.   SYS-4 */
static int host_terminate(lua_State *L) {
  tpl_host *h = test_host(L, 1);
  if (h != NULL && h->system == NULL) return 0;
  h = tpl_check_host(L, 1, "terminate");
  tp_terminate(h->system);
  if (h->driving) return 0;
  (void)tpl_drive(L, h, NULL);
  return at_rest(L, h);
}

/* core.settle(system): runs all that can run without time going on */
static int core_settle(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "settle");
  tpl_check_drivable(L, h, "settle");
  tpl_settle(L, h);
  return 0;
}

/* core.advance(system, ms): virtual time goes on, in steps from deadline to deadline */
static int core_advance(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "advance");
  tp_time delta = tpl_check_duration(L, 2, false, "advance: ms");
  if (!h->is_virtual) return tpl_misuse(L, "advance: the system is not in virtual time");
  tpl_check_drivable(L, h, "advance");
  tp_time target = delta > TP_NEVER - h->now ? TP_NEVER : h->now + delta;
  tpl_settle(L, h);
  for (tp_time due; (due = tp_next_deadline(h->system)) <= target && due != TP_NEVER;) {
    if (due > h->now) h->now = due;
    tpl_settle(L, h);
  }
  h->now = target;
  tpl_settle(L, h);
  return 0;
}

/* ---- Looked into ------------------------------------------------------------------------ */

static void set_count(lua_State *L, const char *name, size_t n) {
  lua_pushinteger(L, (lua_Integer)n);
  lua_setfield(L, -2, name);
}

/* system:stats()                                                            INS-2 */
static int host_stats(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "stats");
  tp_stats s;
  tp_system_stats(h->system, &s);
  lua_createtable(L, 0, 10);
  set_count(L, "actors", s.actors);
  set_count(L, "queued", s.queued);
  set_count(L, "asks", s.asks);
  set_count(L, "scatters", s.scatters);
  set_count(L, "timers", s.timers);
  set_count(L, "events_lost", s.lost);
  set_count(L, "engine_bytes", s.bytes);
  set_count(L, "tasks", h->tasks);
  set_count(L, "parked", h->parked);
  set_count(L, "pooled", h->pooled);
  set_count(L, "anchored", h->anchors.used);
  lua_createtable(L, 0, TP_OVERFLOWS);
  for (int i = 0; i < TP_OVERFLOWS; i++) set_count(L, tpl_overflows[i], (size_t)s.dropped[i]);
  lua_setfield(L, -2, "dropped");
  return 1;
}

/* system:now() -> milliseconds since the system began, with fractions */
static int host_now(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "now");
  lua_pushnumber(L, tpl_milliseconds(tpl_clock(h) - h->began));
  return 1;
}

/* system:random() -> uniform in [0, 1), from the system's seed */
static int host_random(lua_State *L) {
  static const uint64_t steps = (uint64_t)1 << 53;
  tpl_host *h = tpl_check_host(L, 1, "random");
  lua_pushnumber(L, (lua_Number)tp_random(h->system, steps) / (lua_Number)steps);
  return 1;
}

/* core.wall_clock(system) -> seconds since 1970, for logs; virtual ones in virtual time */
static int core_wall_clock(lua_State *L) {
  tpl_host *h = test_host(L, 1);
  bool is_virtual = h != NULL && h->is_virtual;
  lua_pushnumber(L, is_virtual ? (lua_Number)h->now / 1e9 : tp_clock_wall());
  return 1;
}

static const char *const event_names[TP_EVENT_KINDS] = {
    "actor_started", "actor_restarted", "actor_stopped",   "actor_failed",
    "hook_failed",   "dead_letter",     "message_dropped", "warning"};

/* core.want_events(system, { kind = true, ... }) */
static int core_want_events(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "events");
  uint32_t kinds = 0;
  for (int i = 0; i < TP_EVENT_KINDS; i++) {
    lua_getfield(L, 2, event_names[i]);
    if (lua_toboolean(L, -1)) kinds |= 1u << i;
    lua_pop(L, 1);
  }
  tp_events_want(h->system, kinds);
  return 0;
}

static void push_optional_ref(lua_State *L, tpl_host *h, tp_ref *r) {
  if (r == NULL) {
    lua_pushnil(L);
  } else {
    tpl_push_ref(L, h, r);
  }
}

/* kind, subject, value, code, sender, traceback, directive */
int tpl_push_event(lua_State *L, tpl_host *h, const tp_event *e) {
  static const char *const directives[] = {"resume", "restart", "stop", "escalate"};
  lua_pushstring(L, event_names[e->kind]);
  push_optional_ref(L, h, e->subject);
  tpl_push_value(L, h, e->value);
  lua_pushstring(L, e->code);
  push_optional_ref(L, h, e->sender);
  tpl_push_value(L, h, e->trace);
  lua_pushstring(L, directives[e->directive]);
  return 7;
}

/* core.open_system(field): gives the Lua side's part of the metatable, fields that are asked for now and
 * then */
static int core_open_system(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getiuservalue(L, -1, TPL_CORE_SYSTEM_MT); /* 2: core, 3: metatable */
  lua_pushvalue(L, 2);
  lua_getfield(L, 3, "__index");
  lua_pushvalue(L, 1);
  lua_pushcclosure(L, tpl_index, 3);
  lua_setfield(L, 3, "__index");
  return 0;
}

void tpl_open_host(lua_State *L, int core) {
  static const luaL_Reg functions[] = {{"new_system", core_new_system},
                                       {"settle", core_settle},
                                       {"advance", core_advance},
                                       {"wall_clock", core_wall_clock},
                                       {"want_events", core_want_events},
                                       {"open_system", core_open_system},
                                       {NULL, NULL}};
  static const luaL_Reg methods[] = {{"run", host_run},       {"terminate", host_terminate},
                                     {"stats", host_stats},   {"now", host_now},
                                     {"random", host_random}, {NULL, NULL}};
  tpl_set_functions(L, core, functions);
  push_weak_table(L);
  lua_setiuservalue(L, core, TPL_CORE_HOSTS);
  lua_newtable(L); /* the metatable; the Lua side adds to it */
  lua_pushcfunction(L, host_gc);
  lua_setfield(L, -2, "__gc");
  lua_pushliteral(L, "troupe.system");
  lua_setfield(L, -2, "__name");
  lua_newtable(L);
  tpl_set_functions(L, core, methods);
  lua_pushvalue(L, -1);
  lua_setfield(L, -4, "system_methods");
  lua_setfield(L, -2, "__index");
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "system_metatable");
  lua_setiuservalue(L, core, TPL_CORE_SYSTEM_MT);
}
