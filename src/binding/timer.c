/* Timers as Lua sees them. A timer of a system has a handle, which is its number and nothing else: it
 * holds nothing, so it needs no finalizer. Its metatable is one for each host, and keeps that. Timers
 * of actors are known to the Lua side by their numbers. */
#include <math.h>
#include <string.h>

#include "binding.h"

/* ---- Of an actor ------------------------------------------------------------------------ */

/* core.timer_start(actor, message, repeat, delay_ms, interval_ms, old) -> number | nil when it stops;
 * the timer of the number `old`, if any, is cancelled first */
static int core_timer_start(lua_State *L) {
  tpl_ref *u = tpl_check_actor(L, 1, "timers");
  tpl_host *h = u->host;
  tp_repeat repeat = (tp_repeat)luaL_checkinteger(L, 3);
  tp_time delay = tpl_check_duration(L, 4, false, "timers: delay");
  tp_time interval = tpl_check_duration(L, 5, false, "timers: interval");
  if (!tpl_is_current(L, 1, u)) return 0;
  tp_tick tick = (tp_tick)lua_tointeger(L, 6);
  tp_value message = tpl_value(L, h, 2);
  if (tick != 0) tp_tick_cancel(h->system, tick);
  tpl_set_now(h);
  int status = tp_timer_start(u->ref, message, repeat, delay, interval, &tick);
  if (status == TP_ENOMEM) return luaL_error(L, "not enough memory");
  if (status != TP_OK) return 0;
  lua_pushinteger(L, (lua_Integer)tick);
  return 1;
}

/* core.timer_cancel(actor, number) -> true when that prevented something */
static int core_timer_cancel(lua_State *L) {
  tp_system *s = tpl_check_actor(L, 1, "timers")->host->system;
  lua_pushboolean(L, s != NULL && tp_tick_cancel(s, (tp_tick)lua_tointeger(L, 2)));
  return 1;
}

/* core.timer_active(actor, number) */
static int core_timer_active(lua_State *L) {
  tp_system *s = tpl_check_actor(L, 1, "timers")->host->system;
  lua_pushboolean(L, s != NULL && tp_tick_active(s, (tp_tick)lua_tointeger(L, 2)));
  return 1;
}

/* core.timer_sweep(actor, numbers: key -> number) -> those that are active, how many that is. A fresh
 * table when few of them are: one that was large is slow to look through, and stays large. */
static int core_timer_sweep(lua_State *L) {
  tp_system *s = tpl_check_actor(L, 1, "timers")->host->system;
  lua_Integer all = 0, live = 0;
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  for (lua_pushnil(L); lua_next(L, 2) != 0; lua_pop(L, 1), all++) {
    if (s != NULL && tp_tick_active(s, (tp_tick)lua_tointeger(L, -1))) {
      live++;
    } else {
      lua_pushvalue(L, -2);
      lua_pushnil(L);
      lua_rawset(L, 2);
    }
  }
  if (live <= all / 2) {
    lua_createtable(L, 0, (int)live);
    for (lua_pushnil(L); lua_next(L, 2) != 0;) {
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_rawset(L, 3);
    }
  }
  lua_pushinteger(L, live);
  return 2;
}

/* ---- Of a system ------------------------------------------------------------------------ */

/* handle:cancel() -> true when that prevented something. Upvalues: the core, the system.      TMR-6 */
static int handle_cancel(lua_State *L) {
  const tpl_host *h = lua_touserdata(L, lua_upvalueindex(2));
  tp_tick tick;
  bool is_handle = lua_getmetatable(L, 1) && lua_rawlen(L, 1) == sizeof tick &&
                   lua_topointer(L, -1) == h->timer_mt;
  if (!is_handle) {
    return tpl_misuse(L, "cancel: call it on a timer (got %s)", luaL_typename(L, 1));
  }
  memcpy(&tick, lua_touserdata(L, 1), sizeof tick);
  lua_pushboolean(L, h->system != NULL && tp_tick_cancel(h->system, tick));
  return 1;
}

static void make_metatable(lua_State *L, tpl_host *h) {
  lua_createtable(L, 0, 3);
  lua_pushliteral(L, "troupe.timer");
  lua_setfield(L, -2, "__name");
  lua_pushliteral(L, "troupe.timer");
  lua_setfield(L, -2, "__metatable");
  lua_createtable(L, 0, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  tpl_push_aux(L, h, TPL_SYSTEM);
  lua_pushcclosure(L, handle_cancel, 2);
  lua_setfield(L, -2, "cancel");
  lua_setfield(L, -2, "__index");
  h->timer_mt = lua_topointer(L, -1);
  lua_xmove(L, h->aux, 1);
  lua_replace(h->aux, TPL_TIMER_MT);
}

/* Pushes a handle, and starts its timer with the function at `function`. False when the system is
 * terminating. */
static bool schedule(lua_State *L, tpl_host *h, int function, tp_time delay, tp_time interval,
                     tp_tick *tick) {
  if (h->timer_mt == NULL) make_metatable(L, h);
  void *handle = memset(lua_newuserdatauv(L, sizeof *tick, 0), 0, sizeof *tick);
  tpl_push_aux(L, h, TPL_TIMER_MT);
  lua_setmetatable(L, -2);
  tp_value value = tpl_value_again(L, h, function, &h->last_scheduled);
  tpl_set_now(h);
  int status = tp_schedule(h->system, value, delay, interval, tick);
  if (status == TP_ENOMEM) luaL_error(L, "not enough memory");
  if (status != TP_OK) return false;
  memcpy(handle, tick, sizeof *tick);
  return true;
}

/* core.schedule(system, function, delay_ms, interval_ms, passive) -> handle | nil when it terminates */
static int core_schedule(lua_State *L) {
  lua_settop(L, 5);
  tpl_host *h = tpl_check_host(L, 1, "schedule");
  tp_time delay = tpl_check_duration(L, 3, false, "schedule: delay");
  tp_time interval = tpl_check_duration(L, 4, false, "schedule: interval");
  tp_tick tick;
  if (!schedule(L, h, 2, delay, interval, &tick)) return 0;
  if (lua_toboolean(L, 5)) tp_tick_set_passive(h->system, tick);
  return 1;
}

/* Whether the Lua side has nothing to say against it. */
static bool is_delay(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TNUMBER) return false;
  lua_Number ms = lua_tonumber(L, index);
  return ms >= 0 && ms < HUGE_VAL;
}

/* system:schedule_once(delay, function) -> handle                            TMR-6 */
static int host_schedule_once(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "schedule_once");
  tp_tick tick;
  lua_settop(L, 3);
  bool fine = is_delay(L, 2) && lua_isfunction(L, 3);
  if (!fine || !schedule(L, h, 3, tpl_nanoseconds(lua_tonumber(L, 2)), 0, &tick)) {
    lua_settop(L, 3);
    tpl_push_setup(L, h, "check_schedule");
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_pushboolean(L, tp_terminating(h->system));
    lua_call(L, 3, 0); /* raises, unless it is something that can be called */
    (void)schedule(L, h, 3, tpl_nanoseconds(lua_tonumber(L, 2)), 0, &tick);
  }
  return 1;
}

void tpl_open_timer(lua_State *L, int core) {
  static const luaL_Reg functions[] = {{"timer_start", core_timer_start},
                                       {"timer_cancel", core_timer_cancel},
                                       {"timer_active", core_timer_active},
                                       {"timer_sweep", core_timer_sweep},
                                       {"schedule", core_schedule},
                                       {"schedule_once", host_schedule_once},
                                       {NULL, NULL}};
  tpl_set_functions(L, core, functions);
}
