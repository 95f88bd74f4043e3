/* Refs as Lua sees them: their methods and fields. */
#include <string.h>

#include "binding.h"

enum { PATH_BUFFER = 256 };

tpl_ref *tpl_test_ref(lua_State *L, int index) {
  tpl_ref *r = tpl_test(L, index, &tpl_ref_magic, sizeof *r);
  return r != NULL && r->ref != NULL ? r : NULL;
}

tpl_ref *tpl_check_ref(lua_State *L, int index, const char *where, const char *what) {
  tpl_ref *r = tpl_test_ref(L, index);
  if (r == NULL) {
    tpl_misuse(L, "%s: %s must be a ref (got %s)", where, what, luaL_typename(L, index));
  }
  return r;
}

/* A ref that has been finalized, or whose system has been taken apart: only finalizers, and who gets
 * it from them, come across one. */
static bool is_gone(lua_State *L, int index) {
  const tpl_ref *u = tpl_test(L, index, &tpl_ref_magic, sizeof *u);
  return u != NULL && u->ref == NULL;
}

typedef size_t render(const tp_ref *r, char *buffer, size_t size);

static void push_rendered(lua_State *L, const tp_ref *r, render *how) {
  char small[PATH_BUFFER];
  size_t length = how(r, small, sizeof small);
  if (length < sizeof small) {
    lua_pushlstring(L, small, length);
    return;
  }
  luaL_Buffer b;
  char *big = luaL_buffinitsize(L, &b, length + 1);
  how(r, big, length + 1);
  luaL_pushresultsize(&b, length);
}

void tpl_push_path(lua_State *L, const tp_ref *r) { push_rendered(L, r, tp_ref_path); }

/* ---- What Lua calls --------------------------------------------------------------------- */

static void check_sender(lua_State *L, const tpl_ref *target, const tpl_ref *sender) {
  if (sender->host != target->host) {
    tpl_misuse(L, "tell: the sender must be of the target's system (got a ref of '%s')",
               sender->host->system == NULL ? "?" : tp_system_name(sender->host->system));
  }
}

/* true, or nil and why the message was not taken. */
static int push_status(lua_State *L, tpl_ref *target, int status) {
  if (status == TP_OK) {
    lua_pushboolean(L, 1);
    return 1;
  }
  if (status == TP_ENOMEM) return luaL_error(L, "not enough memory");
  lua_pushnil(L);
  tpl_push_setup(L, target->host, "fault");
  lua_pushstring(L, status == TP_EFULL ? "mailbox-full" : "system-terminated");
  tpl_push_path(L, target->ref);
  lua_call(L, 2, 1);
  return 2;
}

/* Whoever runs now answers, when a reply ref is told without a sender (ASK-9). */
static tp_ref *default_sender(const tpl_ref *target) {
  const tpl_host *h = target->host;
  if (tp_ref_is_actor(target->ref) || h->current == NULL) return NULL;
  return h->current->job.actor;
}

static tp_ref *sender_of_tell(lua_State *L, const tpl_ref *target) {
  if (lua_gettop(L) < 3 || lua_isnil(L, 3)) return default_sender(target);
  tpl_ref *sender = tpl_check_ref(L, 3, "tell", "the sender");
  check_sender(L, target, sender);
  return sender->ref;
}

/* A message to a ref that was collected with its holder is a dead letter, while there is somebody to
 * hear of it (SYS-7). */
static int tell_gone(lua_State *L) {
  const tpl_ref *u = lua_touserdata(L, 1);
  if (u->host->system != NULL) {
    tpl_host *h = u->host;
    lua_settop(L, 2);
    tpl_reserve(L, h, 2);
    lua_pushfstring(L, "troupe://%s/ (a ref that was collected)", tp_system_name(h->system));
    tp_value path = tpl_value_plain(L, h, 3);
    tp_dead_letter(h->system, path, tpl_value(L, h, 2), NULL, "unresolved");
  }
  lua_pushboolean(L, 1);
  return 1;
}

/* ref:tell(message [, sender]) -> true | nil, err                TELL-1, TELL-3, MBX-3 */
static int ref_tell(lua_State *L) {
  tpl_ref *target = tpl_test_ref(L, 1);
  if (target == NULL) {
    if (is_gone(L, 1)) return tell_gone(L);
    tpl_check_ref(L, 1, "tell", "the target");
  }
  tp_ref *sender = sender_of_tell(L, target);
  tpl_host *h = target->host;
  int status = tp_tell(target->ref, tpl_value(L, h, 2), sender);
  if (tp_unranked(h->system)) tpl_rank_told(L, h, target->ref);
  if (tp_terminated(h->system) && !h->driving) tpl_settle(L, h); /* its dead letter is heard */
  return push_status(L, target, status);
}

/* ref:ask(message [, timeout_ms]) -> value, nil, from | nil, err     ASK-1, ASK-2 */
static int ref_ask(lua_State *L) {
  tpl_ref *target = tpl_check_ref(L, 1, "ask", "the target");
  tp_time timeout = 5000 * TP_MILLISECOND;
  if (lua_gettop(L) >= 3 && !lua_isnil(L, 3)) {
    timeout = tpl_check_duration(L, 3, true, "ask: timeout_ms");
  }
  tpl_host *h = target->host;
  tpl_check_wait(L, h, "ask");
  if (h->system == NULL) return push_status(L, target, TP_ETERMINATED);
  tp_ref *slot;
  int status = tp_ask(target->ref, tpl_value(L, h, 2), timeout, &slot);
  if (status != TP_OK) return push_status(L, target, status);
  if (tp_unranked(h->system)) tpl_rank_told(L, h, target->ref);
  if (!h->driving) tpl_set_now(h); /* nobody may look at the clock soon */
  return tpl_wait(L, h, slot, tpl_ask_results, "ask");
}

/* ref:stop()                                                     STOP-1 */
static int ref_stop(lua_State *L) {
  if (is_gone(L, 1)) return 0;
  tpl_ref *target = tpl_check_ref(L, 1, "stop", "the target");
  if (tp_ref_is_actor(target->ref) && target->host->system != NULL) {
    return push_status(L, target, tp_stop(target->ref));
  }
  return 0;
}

/* ref:kill()                                                     SUP-11 */
static int ref_kill(lua_State *L) {
  if (is_gone(L, 1)) return 0;
  tpl_ref *target = tpl_check_ref(L, 1, "kill", "the target");
  if (tp_ref_is_actor(target->ref) && target->host->system != NULL) tp_kill(target->ref);
  return 0;
}

/* The guardians end with their system alone. */
static bool is_guardian(const tp_ref *r) {
  const tp_ref *parent = tp_ref_parent(r);
  return parent == NULL || tp_ref_parent(parent) == NULL;
}

/* core.stop_now(ref)                                             STOP-2 */
static int core_stop_now(lua_State *L) {
  tpl_ref *target = tpl_check_ref(L, 1, "stop", "the target");
  bool stops = tp_ref_is_actor(target->ref) && !is_guardian(target->ref);
  if (stops && target->host->system != NULL) tp_stop_now(target->ref);
  return 0;
}

static int ref_tostring(lua_State *L) {
  tpl_ref *u = tpl_test_ref(L, 1);
  if (u == NULL) {
    lua_pushliteral(L, "troupe.ref (gone)");
  } else {
    tpl_push_path(L, u->ref);
  }
  return 1;
}

/* The rest is for the Lua side of refs, which has checked its arguments. */

static int core_ref_path(lua_State *L) {
  tpl_push_path(L, tpl_check_ref(L, 1, "path", "the argument")->ref);
  return 1;
}

static int core_ref_name(lua_State *L) {
  push_rendered(L, tpl_check_ref(L, 1, "name", "the argument")->ref, tp_ref_name);
  return 1;
}

static int core_is_ref(lua_State *L) {
  lua_pushboolean(L, tpl_test_ref(L, 1) != NULL);
  return 1;
}

/* core.is_actor(ref): else it is a reply ref */
static int core_is_actor(lua_State *L) {
  lua_pushboolean(L, tp_ref_is_actor(tpl_check_ref(L, 1, "is_actor", "the argument")->ref));
  return 1;
}

static int core_ref_system(lua_State *L) {
  const tpl_ref *u = tpl_check_ref(L, 1, "system", "the argument");
  tpl_push_aux(L, u->host, TPL_SYSTEM);
  return 1;
}

static int push_ref_or_nil(lua_State *L, tpl_host *h, tp_ref *r) {
  if (r == NULL || h->system == NULL) {
    lua_pushnil(L);
  } else {
    tpl_push_ref(L, h, r);
  }
  return 1;
}

static int core_ref_parent(lua_State *L) {
  tpl_ref *u = tpl_check_ref(L, 1, "parent", "the argument");
  return push_ref_or_nil(L, u->host, tp_ref_parent(u->ref));
}

/* core.child(parent, name) -> ref | nil */
static int core_child(lua_State *L) {
  tpl_ref *u = tpl_check_ref(L, 1, "child", "the parent");
  size_t length;
  const char *name = luaL_checklstring(L, 2, &length);
  return push_ref_or_nil(L, u->host, tp_child(u->ref, name, length));
}

/* core.children(parent) -> list, in the order they were spawned */
static int core_children(lua_State *L) {
  tpl_ref *u = tpl_check_ref(L, 1, "children", "the parent");
  lua_newtable(L);
  lua_Integer n = 0;
  for (tp_ref *c = tp_next_child(u->ref, NULL); c != NULL && tp_ref_alive(c);
       c = tp_next_child(u->ref, c)) { /* c may stop while it is pushed: by a finalizer */
    tpl_push_ref(L, u->host, c);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* core.user_guardian(system) */
static int core_user_guardian(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "spawn");
  tpl_push_ref(L, h, tp_user_guardian(h->system));
  return 1;
}

/* core.lookup(system, path) -> ref | nil */
static int core_lookup(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "lookup");
  size_t length;
  const char *path = luaL_checklstring(L, 2, &length);
  return push_ref_or_nil(L, h, tp_lookup(h->system, path, length));
}

/* core.tell_event(ref, event): as ref:tell, but its loss is no dead letter (DL-3) */
static int core_tell_event(lua_State *L) {
  tpl_ref *target = tpl_check_ref(L, 1, "tell", "the target");
  if (target->host->system == NULL) return 0;
  tp_value event = tpl_value(L, target->host, 2);
  event.flags |= TP_UNLAMENTED;
  int status = tp_tell(target->ref, event, NULL);
  if (tp_unranked(target->host->system)) tpl_rank_told(L, target->host, target->ref);
  return push_status(L, target, status);
}

/* core.dead_letter(system, path, message, reason, sender | nil): of a message without a recipient */
static int core_dead_letter(lua_State *L) {
  static const char *const reasons[] = {"unresolved", "mailbox-full", NULL};
  tpl_host *h = tpl_check_host(L, 1, "tell");
  const char *reason = reasons[luaL_checkoption(L, 4, NULL, reasons)];
  tp_ref *sender = lua_isnoneornil(L, 5) ? NULL : tpl_check_ref(L, 5, "tell", "the sender")->ref;
  tpl_reserve(L, h, 2);
  tp_value path = tpl_value_plain(L, h, 2);
  tp_dead_letter(h->system, path, tpl_value(L, h, 3), sender, reason);
  if (!h->driving && tp_terminated(h->system)) tpl_settle(L, h);
  return 0;
}

/* As tpl_index, but that two more upvalues are tell and ask, which are asked for most. */
static int ref_index(lua_State *L) {
  size_t length;
  const char *key = lua_tolstring(L, 2, &length);
  if (key != NULL && length == 4 && memcmp(key, "tell", 4) == 0) {
    lua_pushvalue(L, lua_upvalueindex(4));
    return 1;
  }
  if (key != NULL && length == 3 && memcmp(key, "ask", 3) == 0) {
    lua_pushvalue(L, lua_upvalueindex(5));
    return 1;
  }
  return tpl_index(L);
}

/* core.open_ref(field): gives the Lua side's part of the metatable */
static int core_open_ref(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getiuservalue(L, -1, TPL_CORE_REF_MT); /* 2: core, 3: metatable */
  lua_pushvalue(L, 2);
  lua_getfield(L, 3, "__index");
  lua_pushvalue(L, 1);
  lua_getfield(L, 5, "tell");
  lua_getfield(L, 5, "ask");
  lua_pushcclosure(L, ref_index, 5);
  lua_setfield(L, 3, "__index");
  return 0;
}

void tpl_open_ref(lua_State *L, int core) {
  static const luaL_Reg methods[] = {
      {"tell", ref_tell}, {"ask", ref_ask},   {"gather", tpl_gather},
      {"stop", ref_stop}, {"kill", ref_kill}, {"await_stop", tpl_await_stop},
      {NULL, NULL}};
  static const luaL_Reg functions[] = {{"ref_path", core_ref_path},
                                       {"ref_name", core_ref_name},
                                       {"ref_system", core_ref_system},
                                       {"ref_parent", core_ref_parent},
                                       {"is_ref", core_is_ref},
                                       {"is_actor", core_is_actor},
                                       {"child", core_child},
                                       {"children", core_children},
                                       {"user_guardian", core_user_guardian},
                                       {"lookup", core_lookup},
                                       {"tell_event", core_tell_event},
                                       {"dead_letter", core_dead_letter},
                                       {"stop_now", core_stop_now},
                                       {"check_await_stop", tpl_check_await_stop},
                                       {"open_ref", core_open_ref},
                                       {NULL, NULL}};
  tpl_set_functions(L, core, functions);
  lua_newtable(L); /* a host's metatable is made from it; the Lua side adds to __index */
  lua_pushcfunction(L, tpl_ref_gc);
  lua_setfield(L, -2, "__gc");
  lua_pushcfunction(L, ref_tostring);
  lua_setfield(L, -2, "__tostring");
  lua_pushliteral(L, "troupe.ref");
  lua_setfield(L, -2, "__name");
  lua_newtable(L);
  tpl_set_functions(L, core, methods);
  lua_setfield(L, -2, "__index");
  lua_pushliteral(L, "troupe.ref");
  lua_setfield(L, -2, "__metatable");
  lua_setiuservalue(L, core, TPL_CORE_REF_MT);
}
