/* Routers whose routees the user's code picks: custom strategies, and keys to hash. */
#include <math.h>
#include <string.h>

#include "binding.h"

/* Of the refs that a strategy gives for one message: as many as a pool may have routees. */
enum { MOST_PICKED = 1000000 };

/* ---- What a strategy gets --------------------------------------------------------------- */

static void push_routees(lua_State *L, tpl_coro *c) {
  size_t n = tp_routees(c->job.actor, NULL, 0);
  tp_ref **routees = lua_newuserdatauv(L, (n + 1) * sizeof *routees, 0);
  tp_routees(c->job.actor, routees, n);
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    tpl_push_ref(L, c->host, routees[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_remove(L, -2);
}

/* state:depth(ref) -> messages that wait there and the one in hand                    RTR-10 */
static int state_depth(lua_State *L) {
  tpl_ref *u = tpl_check_ref(L, 2, "depth", "the routee");
  if (!tp_ref_is_actor(u->ref)) tpl_misuse(L, "depth: a reply ref has no mailbox");
  size_t depth = tp_depth(u->ref);
  if (depth == SIZE_MAX) {
    lua_pushnumber(L, HUGE_VAL);
  } else {
    lua_pushinteger(L, (lua_Integer)depth);
  }
  return 1;
}

static void push_state(lua_State *L, tpl_coro *c) {
  lua_createtable(L, 0, 2);
  lua_pushinteger(L, (lua_Integer)c->job.index);
  lua_setfield(L, -2, "message_index");
  tpl_push_value(L, c->host, c->job.envelope.message);
  lua_setfield(L, -2, "message");
  tpl_push_aux(L, c->host, TPL_CORE);
  lua_getiuservalue(L, -1, TPL_CORE_ROUTING_MT);
  lua_setmetatable(L, -3);
  lua_pop(L, 1);
}

/* ---- What it gives ---------------------------------------------------------------------- */

/* Places on the stack of `pick`: what it is for, what the strategy gave, what it comes to. */
enum { CORO = 1, GIVEN, LIST };

/* A ref that a strategy may give: of a live actor of this system that is not the router itself, or of
 * a routee that has stopped and is kept in the pool. */
static bool is_routable(const tpl_coro *c, const tpl_ref *u) {
  if (u->host != c->host || !tp_ref_is_actor(u->ref) || u->ref == c->job.actor) return false;
  bool keeps = tp_behavior_look(c->job.behavior)->on_routee_stop == TP_ROUTEE_KEEP;
  return tp_ref_alive(u->ref) || (keeps && tp_ref_parent(u->ref) == c->job.actor);
}

/* What is on top must be such a ref. */
static void check_routable(lua_State *L, const tpl_coro *c) {
  const tpl_ref *u = tpl_test_ref(L, -1);
  if (u != NULL && is_routable(c, u)) return;
  luaL_error(L, "the strategy gave what is no routee and no live actor (got %s)",
             luaL_tolstring(L, -1, NULL));
}

/* Adds what is on top to the list, as its nth. */
static void add(lua_State *L, const tpl_coro *c, lua_Integer n) {
  check_routable(L, c);
  if (n > MOST_PICKED) luaL_error(L, "the strategy gave more than %d refs", MOST_PICKED);
  lua_rawseti(L, LIST, n);
}

static void add_all_of_iterator(lua_State *L, const tpl_coro *c) {
  for (lua_Integer n = 1;; n++) {
    lua_pushvalue(L, GIVEN);
    lua_call(L, 0, 1);
    if (lua_isnil(L, -1)) return;
    add(L, c, n);
  }
}

/* A table that has nothing but other keys is no empty list, but a mistake. */
static bool is_list(lua_State *L, lua_Integer length) {
  if (length > 0) return true;
  if (luaL_getmetafield(L, GIVEN, "__len") != LUA_TNIL) return length == 0;
  lua_pushnil(L);
  return lua_next(L, GIVEN) == 0;
}

static void add_all_of_list(lua_State *L, const tpl_coro *c) {
  lua_Integer length = luaL_len(L, GIVEN);
  if (!is_list(L, length)) luaL_error(L, "the strategy gave a table that is no list");
  for (lua_Integer n = 1; n <= length; n++) {
    lua_geti(L, GIVEN, n);
    add(L, c, n);
  }
}

static bool can_be_called(lua_State *L) {
  return lua_isfunction(L, GIVEN) || luaL_getmetafield(L, GIVEN, "__call") != LUA_TNIL;
}

/* (coro, strategy, routees, state) -> a ref, or a list of refs                        RTR-10 */
static int pick(lua_State *L) {
  const tpl_coro *c = lua_touserdata(L, CORO);
  lua_call(L, 2, 1);
  if (tpl_test_ref(L, GIVEN) != NULL) {
    check_routable(L, c);
    return 1;
  }
  lua_newtable(L);
  if (can_be_called(L)) {
    add_all_of_iterator(L, c);
  } else if (lua_istable(L, GIVEN)) {
    add_all_of_list(L, c);
  } else {
    const char *hint = lua_isnil(L, GIVEN) ? ": a forgotten return?" : "";
    luaL_error(L, "the strategy must give a ref, or a list or an iterator of refs (got %s%s)",
               luaL_tolstring(L, GIVEN, NULL), hint);
  }
  lua_settop(L, LIST);
  return 1;
}

/* The list of refs is on top. */
static void route_to_list(lua_State *L, tpl_coro *c) {
  int list = lua_gettop(L);
  size_t count = lua_rawlen(L, list);
  tp_ref **refs = lua_newuserdatauv(L, (count + 1) * sizeof *refs, 0);
  for (size_t i = 0; i < count; i++) {
    lua_rawgeti(L, list, (lua_Integer)i + 1);
    refs[i] = tpl_test_ref(L, -1)->ref;
    lua_pop(L, 1);
  }
  tp_routed(&c->job, refs, count);
}

void tpl_ask_strategy(lua_State *L, tpl_coro *c) {
  lua_pushcfunction(L, pick);
  lua_pushlightuserdata(L, c);
  tpl_push_value(L, c->host, c->job.code);
  push_routees(L, c);
  push_state(L, c);
  if (!tpl_call_plainly(L, c->host, &c->job, "the routing strategy", 4)) return;
  tpl_ref *one = tpl_test_ref(L, -1);
  if (one != NULL) {
    tp_routed(&c->job, &one->ref, 1);
  } else {
    route_to_list(L, c);
  }
}

/* ---- Keys ------------------------------------------------------------------------------- */

/* A float that is no integer is the key that its bytes are, the lowest first. */
static void push_bytes(lua_State *L, lua_Number number) {
  double d = (double)number;
  uint64_t bits;
  char bytes[sizeof bits];
  memcpy(&bits, &d, sizeof bits);
  for (size_t i = 0; i < sizeof bits; i++) bytes[i] = (char)(bits >> (8 * i) & 0xff);
  lua_pushlstring(L, bytes, sizeof bytes);
}

/* (hash_key, message) -> the bytes of the key                                         RTR-16 */
static int key_of(lua_State *L) {
  int is_integer;
  lua_call(L, 1, 1);
  lua_Integer integer = lua_tointegerx(L, -1, &is_integer);
  lua_Number number = lua_tonumber(L, -1);
  switch (lua_type(L, -1)) {
    case LUA_TSTRING: return 1;
    case LUA_TBOOLEAN: lua_pushstring(L, lua_toboolean(L, -1) ? "true" : "false"); return 1;
    case LUA_TNUMBER:
      if (is_integer) {
        lua_pushfstring(L, "%I", (LUAI_UACINT)integer);
        return 1;
      }
      if (number == number) {
        push_bytes(L, number);
        return 1;
      }
  }
  return luaL_error(L, "hash_key must give a string, a number or a boolean (got %s)",
                    luaL_tolstring(L, -1, NULL));
}

void tpl_ask_key(lua_State *L, tpl_coro *c) {
  lua_pushcfunction(L, key_of);
  tpl_push_value(L, c->host, c->job.code);
  tpl_push_value(L, c->host, c->job.envelope.message);
  if (!tpl_call_plainly(L, c->host, &c->job, "hash_key", 2)) return;
  size_t length;
  const char *key = lua_tolstring(L, -1, &length);
  tp_hashed(&c->job, key, length);
}

void tpl_open_routing(lua_State *L, int core) {
  static const luaL_Reg methods[] = {{"depth", state_depth}, {NULL, NULL}};
  lua_createtable(L, 0, 2);
  lua_pushliteral(L, "troupe.RoutingState");
  lua_setfield(L, -2, "__name");
  lua_newtable(L);
  tpl_set_functions(L, core, methods);
  lua_setfield(L, -2, "__index");
  lua_setiuservalue(L, core, TPL_CORE_ROUTING_MT);
}
