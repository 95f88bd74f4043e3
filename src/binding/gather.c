/* ref:gather: an iterator over the replies to one message. It is a value of its own, to be called for
 * the next reply, and to be closed, which a `for` loop does however it is left (SG-18). */
#include "binding.h"

static tpl_handle *check_handle(lua_State *L) {
  tpl_handle *g = tpl_test(L, 1, &tpl_gather_magic, sizeof *g);
  if (g == NULL) tpl_misuse(L, "gather: call it on a gather (got %s)", luaL_typename(L, 1));
  return g;
}

/* NULL after its finalizer, and when the host has been taken apart. */
static tp_stream *stream_of(const tpl_handle *g) {
  const tpl_owned *owned = tpl_held(g);
  return owned == NULL ? NULL : owned->stream;
}

/* ref:gather(message [, timeout_ms]) -> iterator, nil, nil, iterator (to be closed)        SG-18 */
int tpl_gather(lua_State *L) {
  tpl_ref *target = tpl_check_ref(L, 1, "gather", "the target");
  tp_time timeout = 5000 * TP_MILLISECOND;
  if (!lua_isnoneornil(L, 3)) timeout = tpl_check_duration(L, 3, true, "gather: timeout_ms");
  tpl_host *h = target->host;
  tpl_check_wait(L, h, "gather");
  if (h->system == NULL) return tpl_misuse(L, "gather: the system has terminated");
  lua_settop(L, 2);
  tpl_handle *g = tpl_push_handle(L, h, &tpl_gather_magic, TPL_CORE_GATHER_MT);
  tp_value message = tpl_value(L, h, 2);
  tpl_set_now(h);
  if (tp_stream_open(target->ref, message, timeout, &g->owned->stream) != TP_OK) {
    return luaL_error(L, "not enough memory");
  }
  if (tp_unranked(h->system)) tpl_rank_told(L, h, target->ref);
  lua_pushnil(L);
  lua_pushnil(L);
  lua_pushvalue(L, 3);
  return 4;
}

/* who, value; who, nil, err; nothing, or nil, nil, err when it could not wait any longer */
static int next_results(lua_State *L, tpl_host *h, tp_ref *slot) {
  tp_outcome o = tp_slot_outcome(slot);
  if (o.from != NULL) {
    tpl_push_ref(L, h, o.from);
  } else {
    lua_pushnil(L);
  }
  if (o.failed) lua_pushnil(L);
  tpl_push_value(L, h, o.value);
  return o.failed ? 3 : 2;
}

static int handle_next(lua_State *L) {
  tpl_handle *g = check_handle(L);
  tp_stream *st = stream_of(g);
  if (st == NULL) return 0;
  tpl_check_wait(L, g->host, "gather");
  if (tp_stream_waits(st))
    return tpl_misuse(L, "gather: somebody waits for its next reply already");
  tp_ref *slot;
  tpl_set_now(g->host);
  if (tp_stream_next(st, &slot) != TP_OK) return luaL_error(L, "not enough memory");
  return tpl_wait(L, g->host, slot, next_results, "gather");
}

static int handle_close(lua_State *L) {
  tp_stream *st = stream_of(check_handle(L));
  if (st != NULL) tp_stream_close(st);
  return 0;
}

void tpl_open_gather(lua_State *L, int core) {
  static const luaL_Reg functions[] = {
      {"__call", handle_next}, {"__close", handle_close}, {NULL, NULL}};
  lua_newtable(L);
  tpl_set_functions(L, core, functions);
  lua_pushcfunction(L, tpl_handle_gc);
  lua_setfield(L, -2, "__gc");
  lua_pushliteral(L, "troupe.gather");
  lua_setfield(L, -2, "__name");
  lua_pushliteral(L, "troupe.gather");
  lua_setfield(L, -2, "__metatable");
  lua_setiuservalue(L, core, TPL_CORE_GATHER_MT);
}
