/* Timers as Lua sees them: a handle for each, and the map of an actor's keys to handles. */
#include "binding.h"

static tpl_handle *check_handle(lua_State *L, const char *where) {
  tpl_handle *t = tpl_test(L, 1, &tpl_timer_magic, sizeof *t);
  if (t == NULL) {
    tpl_misuse(L, "%s: call it on a timer (got %s)", where, luaL_typename(L, 1));
  }
  return t;
}

/* NULL after its finalizer, and when the host has been taken apart. */
static tp_tick *tick_of(const tpl_handle *t) {
  const tpl_owned *owned = tpl_held(t);
  return owned == NULL ? NULL : owned->tick;
}

static int push_started(lua_State *L, int status) {
  if (status == TP_ENOMEM) return luaL_error(L, "not enough memory");
  if (status == TP_OK) return 1;
  lua_pushnil(L);
  return 1;
}

/* core.timer_start(actor, message, repeat, delay_ms, interval_ms) -> handle | nil when it stops */
static int core_timer_start(lua_State *L) {
  static const char *const repeats[] = {"once", "fixed_delay", "fixed_rate", NULL};
  tpl_ref *u = tpl_check_actor(L, 1, "timers");
  tpl_host *h = u->host;
  tp_repeat repeat = (tp_repeat)luaL_checkoption(L, 3, NULL, repeats);
  tp_time delay = tpl_check_duration(L, 4, false, "timers: delay");
  tp_time interval = tpl_check_duration(L, 5, false, "timers: interval");
  if (!tpl_is_current(L, 1, u)) return push_started(L, TP_ESTOPPED);
  tpl_handle *t = tpl_push_handle(L, h, &tpl_timer_magic, TPL_CORE_TIMER_MT);
  tp_value message = tpl_value(L, h, 2);
  tpl_set_now(h);
  return push_started(L, tp_timer_start(u->ref, message, repeat, delay, interval, &t->owned->tick));
}

/* core.schedule(system, function, delay_ms, interval_ms, passive) -> handle | nil when it terminates */
static int core_schedule(lua_State *L) {
  lua_settop(L, 5);
  tpl_host *h = tpl_check_host(L, 1, "schedule");
  tp_time delay = tpl_check_duration(L, 3, false, "schedule: delay");
  tp_time interval = tpl_check_duration(L, 4, false, "schedule: interval");
  tpl_handle *t = tpl_push_handle(L, h, &tpl_timer_magic, TPL_CORE_TIMER_MT);
  tp_value function = tpl_value_plain(L, h, 2);
  tpl_set_now(h);
  bool passive = lua_toboolean(L, 5);
  int status = tp_schedule(h->system, function, delay, interval, &t->owned->tick);
  if (status == TP_OK && passive) tp_tick_set_passive(t->owned->tick);
  return push_started(L, status);
}

/* handle:cancel() -> true when that prevented something                      TMR-6 */
static int handle_cancel(lua_State *L) {
  tp_tick *tick = tick_of(check_handle(L, "cancel"));
  lua_pushboolean(L, tick != NULL && tp_tick_cancel(tick));
  return 1;
}

/* core.timer_active(handle) */
static int core_timer_active(lua_State *L) {
  tp_tick *tick = tick_of(check_handle(L, "active"));
  lua_pushboolean(L, tick != NULL && tp_tick_active(tick));
  return 1;
}

void tpl_open_timer(lua_State *L, int core) {
  static const luaL_Reg functions[] = {{"timer_start", core_timer_start},
                                       {"timer_active", core_timer_active},
                                       {"schedule", core_schedule},
                                       {NULL, NULL}};
  static const luaL_Reg methods[] = {{"cancel", handle_cancel}, {NULL, NULL}};
  tpl_set_functions(L, core, functions);
  lua_newtable(L);
  lua_pushcfunction(L, tpl_handle_gc);
  lua_setfield(L, -2, "__gc");
  lua_newtable(L);
  tpl_set_functions(L, core, methods);
  lua_setfield(L, -2, "__index");
  lua_pushliteral(L, "troupe.timer");
  lua_setfield(L, -2, "__name");
  lua_pushliteral(L, "troupe.timer");
  lua_setfield(L, -2, "__metatable");
  lua_setiuservalue(L, core, TPL_CORE_TIMER_MT);
}
