/* The table that every function of a behavior gets as its first argument. It is a plain table with
 * the user's own fields; what is built in is found through its metatable. */
#include <string.h>

#include "binding.h"

/* Where an actor's table keeps its ref. */
static const char ref_key = 'a';

void tpl_push_actor(lua_State *L, tpl_host *h, tp_ref *r) {
  tp_value state = tp_actor_state(r);
  if (state.type == TP_HOST) {
    tpl_push_value(L, h, state);
    return;
  }
  luaL_checkstack(L, 4, NULL);
  tp_heap_map();
  lua_createtable(L, 0, 1); /* many an actor keeps nothing in it */
  tpl_push_ref(L, h, r);
  lua_rawsetp(L, -2, &ref_key);
  tpl_push_aux(L, h, TPL_ACTOR_MT);
  lua_setmetatable(L, -2);
  tp_actor_set_state(r, tpl_value_plain(L, h, lua_gettop(L)));
}

static tpl_ref *test_actor(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TTABLE) return NULL;
  lua_rawgetp(L, index, &ref_key);
  tpl_ref *u = tpl_test_ref(L, -1);
  lua_pop(L, 1);
  return u;
}

tpl_ref *tpl_check_actor(lua_State *L, int index, const char *where) {
  tpl_ref *u = test_actor(L, index);
  if (u == NULL) {
    tpl_misuse(L, "%s: call it on the actor (got %s)", where, luaL_typename(L, index));
  }
  return u;
}

static bool is_table_of(lua_State *L, int index, tpl_host *h, const tp_ref *actor) {
  tp_value state = tp_actor_state(actor);
  if (state.type != TP_HOST) return false;
  tpl_known *known = tpl_known_at(h, state.as.host);
  if (known->slot != state.as.host) {
    lua_rawgeti(h->aux, TPL_ANCHORS, (lua_Integer)state.as.host);
    *known = (tpl_known){state.as.host, lua_topointer(h->aux, -1)};
    lua_pop(h->aux, 1);
  }
  return known->address == lua_topointer(L, index);
}

/* Whether the table at `index` is that of the incarnation that lives: one that was kept over a restart
 * has no message in hand and starts no timers (SPAWN-4). */
bool tpl_is_current(lua_State *L, int index, tpl_ref *u) {
  return u->host->system != NULL && is_table_of(L, index, u->host, u->ref);
}

/* The actor at index 1 and its host; NULL when that incarnation is over. Raises for anything else. As a
 * rule it is the one whose code runs: then its table need not be looked into. */
static tp_ref *check_living(lua_State *L, const char *where, tpl_host **host) {
  tpl_host *h = tpl_core_here(L)->state->running;
  tp_ref *turn = h == NULL || h->current == NULL ? NULL : h->current->job.actor;
  if (turn != NULL && is_table_of(L, 1, h, turn)) {
    *host = h;
    return turn;
  }
  tpl_ref *u = tpl_check_actor(L, 1, where);
  *host = u->host;
  return tpl_is_current(L, 1, u) ? u->ref : NULL;
}

/* ---- Fields ----------------------------------------------------------------------------- */

static int push_sender(lua_State *L) {
  tpl_host *h;
  tp_ref *actor = check_living(L, "sender", &h);
  tp_ref *sender = actor == NULL ? NULL : tp_actor_sender(actor);
  if (sender == NULL) {
    lua_pushnil(L);
  } else {
    tpl_push_ref(L, h, sender);
  }
  return 1;
}

/* Upvalues: core, methods, the Lua side's function for fields that are asked for now and then, and reply,
 * which is asked for most. */
static int actor_index(lua_State *L) {
  size_t length;
  const char *key = lua_tolstring(L, 2, &length);
  if (key != NULL && length == 5 && memcmp(key, "reply", 5) == 0) {
    lua_pushvalue(L, lua_upvalueindex(4));
    return 1;
  }
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL) return 1;
  if (key == NULL) return 1;
  if (strcmp(key, "sender") == 0) return push_sender(L);
  if (strcmp(key, "ref") == 0) {
    lua_rawgetp(L, 1, &ref_key);
    return 1;
  }
  lua_pushvalue(L, lua_upvalueindex(3));
  lua_rawgetp(L, 1, &ref_key);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 1);
  lua_call(L, 3, 1);
  return 1;
}

/* Upvalues: core, methods, the set of names of fields. */
static int actor_newindex(lua_State *L) {
  lua_settop(L, 3);
  for (int i = 2; i <= 3; i++) {
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(i)) != LUA_TNIL) {
      return tpl_misuse(L, "actor.%s is built in and cannot be set", lua_tostring(L, 2));
    }
    lua_pop(L, 1);
  }
  lua_rawset(L, 1);
  return 0;
}

static int actor_tostring(lua_State *L) {
  tpl_ref *u = test_actor(L, 1);
  if (u == NULL) {
    lua_pushliteral(L, "troupe.actor");
  } else {
    tpl_push_path(L, u->ref);
  }
  return 1;
}

/* ---- Methods ---------------------------------------------------------------------------- */

static int answer(lua_State *L, const char *where, bool failed) {
  tpl_host *h;
  tp_ref *actor = check_living(L, where, &h);
  if (failed && !lua_toboolean(L, 2)) {
    return tpl_misuse(L, "fail: the error must be neither nil nor false (got %s)",
                      lua_isboolean(L, 2) ? "false" : "nil");
  }
  tp_ref *sender = actor == NULL ? NULL : tp_actor_sender(actor);
  if (sender == NULL) {
    lua_pushboolean(L, 0);
    return 1;
  }
  tp_ref_retain(sender); /* making the value may run the collector, and that a finalizer */
  tp_value value = failed ? tpl_value_plain(L, h, 2) : tpl_value(L, h, 2);
  int status = tp_reply(sender, value, failed, actor);
  if (tp_unranked(h->system)) tpl_rank_told(L, h, sender);
  tp_ref_release(sender);
  if (status != TP_OK) return luaL_error(L, "not enough memory");
  lua_pushboolean(L, 1);
  return 1;
}

/* actor:reply(value) -> true | false when nobody is to be answered          ASK-5 */
static int actor_reply(lua_State *L) { return answer(L, "reply", false); }

/* actor:fail(err)                                                           ASK-5 */
static int actor_fail(lua_State *L) { return answer(L, "fail", true); }

/* actor:cancelled() -> whether the answer to the request in hand is not wanted any more    SG-14 */
static int actor_cancelled(lua_State *L) {
  tpl_ref *u = tpl_check_actor(L, 1, "cancelled");
  lua_pushboolean(L, tpl_is_current(L, 1, u) && tp_actor_cancelled(u->ref));
  return 1;
}

/* actor:stop([child])                                                       STOP-2 */
static int actor_stop(lua_State *L) {
  tpl_ref *u = tpl_check_actor(L, 1, "stop");
  if (lua_isnoneornil(L, 2)) {
    if (u->host->system != NULL) tp_stop_after(u->ref);
    return 0;
  }
  tpl_ref *child = tpl_check_ref(L, 2, "stop", "the child");
  if (child->ref == u->ref) {
    tp_stop_after(u->ref);
  } else if (tp_ref_parent(child->ref) != u->ref) {
    tpl_push_path(L, child->ref);
    return tpl_misuse(L, "stop: not a child of this actor (got %s)", lua_tostring(L, -1));
  } else if (u->host->system != NULL) {
    tp_stop_now(child->ref);
  }
  return 0;
}

static tpl_ref *check_watched(lua_State *L, tpl_ref *u, const char *where) {
  tpl_ref *target = tpl_check_ref(L, 2, where, "the target");
  if (!tp_ref_is_actor(target->ref)) tpl_misuse(L, "%s: a reply ref does not stop", where);
  if (target->host != u->host) tpl_misuse(L, "%s: the target is of another system", where);
  if (target->ref == u->ref) tpl_misuse(L, "%s: an actor cannot watch itself", where);
  return target;
}

static int watch(lua_State *L, const char *where, bool custom) {
  tpl_ref *u = tpl_check_actor(L, 1, where);
  tpl_ref *target = check_watched(L, u, where);
  if (u->host->system != NULL) {
    tp_value message = custom ? tpl_value(L, u->host, 3) : tp_nil();
    int status = tp_watch(u->ref, target->ref, message, custom);
    if (status != TP_OK) return luaL_error(L, "not enough memory");
  }
  lua_pushvalue(L, 2);
  return 1;
}

/* actor:watch(ref) -> ref                                                   WATCH-1 */
static int actor_watch(lua_State *L) { return watch(L, "watch", false); }

/* actor:watch_with(ref, message) -> ref                                     WATCH-3 */
static int actor_watch_with(lua_State *L) { return watch(L, "watch_with", true); }

/* actor:unwatch(ref)                                                        WATCH-2 */
static int actor_unwatch(lua_State *L) {
  tpl_ref *u = tpl_check_actor(L, 1, "unwatch");
  tpl_ref *target = check_watched(L, u, "unwatch");
  if (u->host->system != NULL) tp_unwatch(u->ref, target->ref);
  return 0;
}

static tpl_ref *check_in_hand(lua_State *L, const char *where) {
  tpl_ref *u = tpl_check_actor(L, 1, where);
  if (!tpl_is_current(L, 1, u)) tpl_misuse(L, "%s: this incarnation of the actor is over", where);
  return u;
}

/* actor:stash()                                                             STASH-1 */
static int actor_stash(lua_State *L) {
  tpl_ref *u = check_in_hand(L, "stash");
  switch (tp_stash(u->ref)) {
    case TP_OK: return 0;
    case TP_EIDLE: return tpl_misuse(L, "stash: no message is in hand");
    case TP_EEXIST: return tpl_misuse(L, "stash: the message has been set aside already");
    case TP_EFULL: return tpl_misuse(L, "stash: the stash is full");
    default: return luaL_error(L, "not enough memory");
  }
}

/* actor:unstash_all()                                                       STASH-1 */
static int actor_unstash_all(lua_State *L) {
  tpl_ref *u = check_in_hand(L, "unstash_all");
  if (tp_unstash_all(u->ref) != TP_OK) return luaL_error(L, "not enough memory");
  return 0;
}

/* actor:set_receive_timeout(ms | nil)                                       TMR-7 */
static int actor_set_receive_timeout(lua_State *L) {
  tpl_ref *u = check_in_hand(L, "set_receive_timeout");
  bool off = lua_isnoneornil(L, 2);
  tp_time timeout = off ? TP_NEVER : tpl_check_duration(L, 2, true, "set_receive_timeout: ms");
  tpl_set_now(u->host);
  if (tp_set_receive_timeout(u->ref, timeout) == TP_ENOMEM) {
    return luaL_error(L, "not enough memory");
  }
  return 0;
}

static uint32_t check_most(lua_State *L) {
  if (lua_isnoneornil(L, 3)) return UINT32_MAX;
  int is_integer = lua_type(L, 3) == LUA_TNUMBER;
  lua_Integer most = lua_tointegerx(L, 3, is_integer ? &is_integer : NULL);
  if (!is_integer || most < 1 || most > UINT32_MAX) {
    tpl_misuse(L, "forward: most must be an integer from 1 to %I (got %s)", (LUAI_UACINT)UINT32_MAX,
               luaL_tolstring(L, 3, NULL));
  }
  return (uint32_t)most;
}

/* actor:forward(ref [, most]): as to a full mailbox when `most` messages wait there    TELL-3 */
static int actor_forward(lua_State *L) {
  tpl_ref *u = check_in_hand(L, "forward");
  tpl_ref *target = tpl_check_ref(L, 2, "forward", "the target");
  if (!tp_ref_is_actor(target->ref)) tpl_misuse(L, "forward: the target is a reply ref: tell it");
  if (target->host != u->host) tpl_misuse(L, "forward: the target is of another system");
  int status = tp_forward(u->ref, target->ref, check_most(L));
  if (tp_unranked(u->host->system)) tpl_rank_told(L, u->host, target->ref);
  switch (status) {
    case TP_OK: return 0;
    case TP_EIDLE: return tpl_misuse(L, "forward: no message is in hand");
    default: return luaL_error(L, "not enough memory");
  }
}

/* core.become(actor, function | nil)                                        BEC-1 */
static int core_become(lua_State *L) {
  tpl_ref *u = check_in_hand(L, "become");
  if (tp_become(u->ref, tpl_value_plain(L, u->host, 2)) != TP_OK) {
    return luaL_error(L, "not enough memory");
  }
  return 0;
}

/* core.actor_ref(actor): its ref, for the Lua side's methods */
static int core_actor_ref(lua_State *L) {
  (void)tpl_check_actor(L, 1, luaL_optstring(L, 2, "actor"));
  lua_rawgetp(L, 1, &ref_key);
  return 1;
}

/* core.open_actor(field, names): gives the Lua side's part of the metatable */
static int core_open_actor(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getiuservalue(L, -1, TPL_CORE_ACTOR_MT); /* 3: core, 4: metatable */
  lua_getfield(L, 4, "methods");               /* 5 */
  lua_pushvalue(L, 3);
  lua_pushvalue(L, 5);
  lua_pushvalue(L, 1);
  lua_getfield(L, 5, "reply");
  lua_pushcclosure(L, actor_index, 4);
  lua_setfield(L, 4, "__index");
  lua_pushvalue(L, 3);
  lua_pushvalue(L, 5);
  lua_pushvalue(L, 2);
  lua_pushcclosure(L, actor_newindex, 3);
  lua_setfield(L, 4, "__newindex");
  return 0;
}

void tpl_open_actor(lua_State *L, int core) {
  static const luaL_Reg methods[] = {{"reply", actor_reply},
                                     {"fail", actor_fail},
                                     {"cancelled", actor_cancelled},
                                     {"stop", actor_stop},
                                     {"watch", actor_watch},
                                     {"watch_with", actor_watch_with},
                                     {"unwatch", actor_unwatch},
                                     {"stash", actor_stash},
                                     {"unstash_all", actor_unstash_all},
                                     {"set_receive_timeout", actor_set_receive_timeout},
                                     {"forward", actor_forward},
                                     {NULL, NULL}};
  static const luaL_Reg functions[] = {{"actor_ref", core_actor_ref},
                                       {"become", core_become},
                                       {"open_actor", core_open_actor},
                                       {NULL, NULL}};
  tpl_set_functions(L, core, functions);
  lua_newtable(L);
  lua_newtable(L);
  tpl_set_functions(L, core, methods);
  lua_pushvalue(L, -1);
  lua_setfield(L, -4, "actor_methods");
  lua_setfield(L, -2, "methods");
  lua_pushcfunction(L, actor_tostring);
  lua_setfield(L, -2, "__tostring");
  lua_pushliteral(L, "troupe.actor");
  lua_setfield(L, -2, "__name");
  lua_setiuservalue(L, core, TPL_CORE_ACTOR_MT);
}
