/* The floor: what Lua alone asks for a message, below which no runtime in it can go. That is a
 * protected call of the handler, since a handler may raise, and a call from there into C through a
 * method, as ref:tell is one. Nothing is queued, checked or handed over.
 *
 * And a clock, which Lua does not have. */
#include <time.h>

#include <lauxlib.h>

#define PEER "troupe_bench_floor.peer"

/* peer:tell(message) -> true */
static int peer_tell(lua_State *L) {
  lua_Integer *told = lua_touserdata(L, 1);
  if (told == NULL) return luaL_typeerror(L, 1, PEER);
  ++*told;
  lua_pushboolean(L, 1);
  return 1;
}

/* floor.peer() -> what the handler tells, in the place of a ref */
static int new_peer(lua_State *L) {
  lua_Integer *told = lua_newuserdatauv(L, sizeof *told, 0);
  *told = 0;
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

/* floor.clock() -> seconds of wall clock, from some time on */
static int wall_clock(lua_State *L) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  lua_pushnumber(L, (lua_Number)now.tv_sec + (lua_Number)now.tv_nsec * 1e-9);
  return 1;
}

int luaopen_troupe_bench_floor(lua_State *L) {
  static const luaL_Reg methods[] = {{"tell", peer_tell}, {NULL, NULL}};
  static const luaL_Reg functions[] = {
      {"peer", new_peer}, {"calls", calls}, {"clock", wall_clock}, {NULL, NULL}};
  luaL_newmetatable(L, PEER);
  luaL_newlib(L, methods);
  lua_setfield(L, -2, "__index");
  luaL_newlib(L, functions);
  return 1;
}
