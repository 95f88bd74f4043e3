/* What the Lua side is told of actors for system:tree() and system:inspect() (INS-1). Nothing here
 * runs user code, but for finalizers that the making of tables may set off: those find a system that
 * cannot be driven, so what is looked at stays. */
#include "binding.h"

static const char *const states[] = {"starting",   "running",  "waiting", "suspended",
                                     "restarting", "stopping", "stopped"};

static void set_number(lua_State *L, const char *name, uint64_t n) {
  lua_pushinteger(L, (lua_Integer)n);
  lua_setfield(L, -2, name);
}

/* Pushes where the function on top, which is replaced, was defined: "worker.lua:12". */
static void describe_function(lua_State *L) {
  lua_Debug d;
  lua_getinfo(L, ">S", &d);
  if (d.linedefined > 0) {
    lua_pushfstring(L, "%s:%d", d.short_src, d.linedefined);
  } else {
    lua_pushstring(L, d.short_src);
  }
}

/* A router says which one it is; anything else is known by its function that handles messages. */
static void push_behavior(lua_State *L, tpl_host *h, tp_behavior *b) {
  if (b == NULL) {
    lua_pushliteral(L, "guardian");
    return;
  }
  const tp_behavior_spec *spec = tp_behavior_look(b);
  if (spec->routing == TP_ROUTE_NONE) {
    tpl_push_value(L, h, spec->receive);
    describe_function(L);
  } else {
    tpl_push_value(L, h, spec->code);
    lua_pushliteral(L, "shown");
    lua_rawget(L, -2);
    lua_replace(L, -2);
  }
}

/* Pushes a table of what every actor shows. */
static void push_outline(lua_State *L, tpl_host *h, tp_ref *r, const tp_actor_info *info) {
  lua_createtable(L, 0, 8);
  tpl_push_ref(L, h, r);
  lua_setfield(L, -2, "ref");
  lua_pushstring(L, states[info->state]);
  lua_setfield(L, -2, "state");
  if (info->state != TP_ACTOR_STOPPED) {
    push_behavior(L, h, info->behavior);
    lua_setfield(L, -2, "behavior");
  }
  set_number(L, "queued", info->queued);
  set_number(L, "restarts", info->restarts);
}

static void set_mailbox(lua_State *L, const tp_behavior_spec *spec, const tp_actor_info *info) {
  lua_createtable(L, 0, 3);
  if (spec->capacity > 0) {
    set_number(L, "capacity", spec->capacity);
    lua_pushstring(L, tpl_overflows[spec->overflow]);
    lua_setfield(L, -2, "overflow");
    set_number(L, "dropped", info->dropped);
  }
  lua_setfield(L, -2, "mailbox");
}

static void set_failure(lua_State *L, tpl_host *h, const tp_actor_info *info) {
  lua_createtable(L, 0, 3);
  tpl_push_value(L, h, info->failure);
  lua_setfield(L, -2, "reason");
  set_number(L, "count", info->failures);
  lua_pushnumber(L, tpl_milliseconds(info->failed_at - h->began));
  lua_setfield(L, -2, "at_ms");
  lua_setfield(L, -2, "last_failure");
}

/* (host, ref) -> an outline and more */
static int detail(lua_State *L) {
  tpl_host *h = lua_touserdata(L, 1);
  tp_ref *r = lua_touserdata(L, 2);
  tp_actor_info info = {.state = TP_ACTOR_STOPPED, .receive_timeout = TP_NEVER};
  if (h->system != NULL) tp_actor_look_at(r, &info);
  push_outline(L, h, r, &info);
  set_number(L, "stashed", info.stashed);
  set_number(L, "timers", info.timers);
  set_number(L, "children", info.children);
  set_number(L, "watches", info.watches);
  set_number(L, "watchers", info.watchers);
  if (info.behavior != NULL) set_mailbox(L, tp_behavior_look(info.behavior), &info);
  if (info.failures > 0) set_failure(L, h, &info);
  if (info.receive_timeout != TP_NEVER) {
    lua_pushnumber(L, tpl_milliseconds(info.receive_timeout));
    lua_setfield(L, -2, "receive_timeout_ms");
  }
  if (info.became.type != TP_NIL) {
    tpl_push_value(L, h, info.became);
    describe_function(L);
    lua_setfield(L, -2, "became");
  }
  return 1;
}

/* How deep `r` is, which comes after `previous`, parents first. */
static uint64_t depth_below(uint64_t depth, const tp_ref *previous, const tp_ref *r) {
  if (previous == NULL) return 0;
  for (; previous != tp_ref_parent(r); previous = tp_ref_parent(previous)) depth--;
  return depth + 1;
}

/* (host) -> a list of outlines, parents first */
static int outlines(lua_State *L) {
  tpl_host *h = lua_touserdata(L, 1);
  tp_ref *r = tp_terminated(h->system) ? NULL : tp_next_actor(h->system, NULL);
  lua_newtable(L);
  const tp_ref *previous = NULL;
  uint64_t depth = 0;
  for (lua_Integer i = 1; r != NULL; i++, r = tp_next_actor(h->system, r)) {
    tp_actor_info info;
    tp_actor_look_at(r, &info);
    push_outline(L, h, r, &info);
    depth = depth_below(depth, previous, r);
    set_number(L, "depth", depth);
    previous = r;
    lua_rawseti(L, -2, i);
  }
  return 1;
}

/* Calls `f` while the system cannot be driven. */
static int look(lua_State *L, tpl_host *h, lua_CFunction f, tp_ref *r) {
  bool driving = h->driving;
  lua_pushcfunction(L, f);
  lua_pushlightuserdata(L, h);
  lua_pushlightuserdata(L, r);
  h->driving = true;
  int status = lua_pcall(L, 2, 1, 0);
  h->driving = driving;
  return status == LUA_OK ? 1 : lua_error(L);
}

/* core.tree(system) -> a list: ref, depth, state, behavior, queued, restarts of every actor */
static int core_tree(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "tree");
  return look(L, h, outlines, NULL);
}

/* core.inspect(ref) -> the same of one actor, and more; nil for a reply ref */
static int core_inspect(lua_State *L) {
  tpl_ref *u = tpl_check_ref(L, 1, "inspect", "the actor");
  if (!tp_ref_is_actor(u->ref)) {
    lua_pushnil(L);
    return 1;
  }
  return look(L, u->host, detail, u->ref);
}

void tpl_open_inspect(lua_State *L, int core) {
  static const luaL_Reg functions[] = {
      {"tree", core_tree}, {"inspect", core_inspect}, {NULL, NULL}};
  tpl_set_functions(L, core, functions);
}
