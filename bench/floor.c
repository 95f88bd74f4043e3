/* The floor: what Lua alone asks for a message, below which no runtime in it can go. That is a
 * protected call of the handler, and a call from there into C through a method, as ref:tell is one.
 * Nothing is queued, checked or handed over. */
#include <lauxlib.h>

#define PEER "troupe_bench_floor.peer"

typedef struct peer {
  lua_Integer told;
} peer;

/* peer:tell(message) -> true */
static int peer_tell(lua_State *L) {
  peer *p = lua_touserdata(L, 1);
  if (p == NULL) return luaL_typeerror(L, 1, PEER);
  p->told++;
  lua_pushboolean(L, 1);
  return 1;
}

/* peer:told() -> how often tell was called */
static int peer_told(lua_State *L) {
  const peer *p = luaL_checkudata(L, 1, PEER);
  lua_pushinteger(L, p->told);
  return 1;
}

/* floor.peer() -> what the handler tells, in the place of a ref */
static int new_peer(lua_State *L) {
  peer *p = lua_newuserdatauv(L, sizeof *p, 0);
  *p = (peer){0};
  luaL_setmetatable(L, PEER);
  return 1;
}

/* floor.calls(handler, actor, message, n): calls handler(actor, message) n times */
static int calls(lua_State *L) {
  for (lua_Integer n = luaL_checkinteger(L, 4); n > 0; n--) {
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    if (lua_pcall(L, 2, 0, 0) != LUA_OK) return lua_error(L);
  }
  return 0;
}

int luaopen_troupe_bench_floor(lua_State *L) {
  static const luaL_Reg methods[] = {{"tell", peer_tell}, {"told", peer_told}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"peer", new_peer}, {"calls", calls}, {NULL, NULL}};
  luaL_newmetatable(L, PEER);
  luaL_newlib(L, methods);
  lua_setfield(L, -2, "__index");
  luaL_newlib(L, functions);
  lua_pushliteral(L, LUA_RELEASE);
  lua_setfield(L, -2, "lua");
  return 1;
}
