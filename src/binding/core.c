/* troupe.core: what the Lua side of Troupe is built on. Not for users. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"

/* ---- Errors and arguments --------------------------------------------------------------- */

static bool begins_with(const char *text, const char *beginning) {
  return beginning != NULL && strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Pushes the position of the user's code: as luaL_where, past the frames of our own Lua files. */
static void push_caller(lua_State *L) {
  lua_Debug d;
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getiuservalue(L, -1, TPL_CORE_SETUP);
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "home");
  } else {
    lua_pushnil(L); /* before core.setup */
  }
  const char *home = lua_tostring(L, -1);
  int level = 1;
  while (lua_getstack(L, level, &d) && lua_getinfo(L, "Sl", &d) && begins_with(d.source, home)) {
    level++;
  }
  lua_pop(L, 3);
  luaL_where(L, level);
}

int tpl_misuse(lua_State *L, const char *format, ...) {
  va_list arguments;
  push_caller(L);
  va_start(arguments, format);
  lua_pushvfstring(L, format, arguments);
  va_end(arguments);
  lua_concat(L, 2);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getiuservalue(L, -1, TPL_CORE_SETUP);
  if (lua_istable(L, -1) && lua_getfield(L, -1, "misuse") == LUA_TFUNCTION) {
    lua_pushvalue(L, -4);
    lua_call(L, 1, 1);
  } else {
    lua_pushvalue(L, -4); /* before core.setup */
  }
  return lua_error(L);
}

tp_time tpl_check_duration(lua_State *L, int index, bool positive, const char *what) {
  double ms = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : NAN;
  if (!isfinite(ms) || ms < 0 || (positive && ms == 0)) {
    const char *got =
        lua_type(L, index) == LUA_TNUMBER ? lua_tostring(L, index) : luaL_typename(L, index);
    tpl_misuse(L, "%s must be a %s finite number of milliseconds (got %s)", what,
               positive ? "positive" : "non-negative", got);
  }
  return tpl_nanoseconds(ms);
}

tp_time tpl_nanoseconds(double ms) {
  double ns = ceil(ms * 1e6);
  return ns >= 9.2e18 ? TP_NEVER : (tp_time)ns;
}

const char tpl_system_magic = 's', tpl_ref_magic = 'r', tpl_task_magic = 't',
           tpl_gather_magic = 'g';

void tpl_set_metatable(lua_State *L, int place) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getiuservalue(L, -1, place);
  lua_setmetatable(L, -3);
  lua_pop(L, 1);
}

void tpl_set_functions(lua_State *L, int core, const luaL_Reg *functions) {
  lua_pushvalue(L, core);
  luaL_setfuncs(L, functions, 1);
}

int tpl_index(lua_State *L) {
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL) return 1;
  lua_pushvalue(L, lua_upvalueindex(3));
  lua_insert(L, 1);
  lua_settop(L, 3);
  lua_call(L, 2, 1);
  return 1;
}

void *tpl_allocate(void *block, size_t size) {
  if (size > 0) return realloc(block, size);
  free(block);
  return NULL;
}

/* ---- The module ------------------------------------------------------------------------- */

static const void *address_field(lua_State *L, const char *name) {
  lua_getfield(L, 1, name);
  luaL_checktype(L, -1, LUA_TTABLE);
  const void *address = lua_topointer(L, -1);
  lua_pop(L, 1);
  return address;
}

/* core.setup{ home: what the sources of our Lua files begin with, error_metatable,
 * broadcast_metatable, dead_letter_metatable, signal_metatable, get_routees_metatable,
 * add_routees_metatable, remove_routees_metatable, receive_timeout, and the functions misuse, fault,
 * broadcast, signal, pool_request, terminated, initialization_error, task_failed, coroutine_failed,
 * at_rest }: once, before all else */
static int core_setup(lua_State *L) {
  tpl_core *c = tpl_core_here(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  c->error_mt = address_field(L, "error_metatable");
  c->broadcast_mt = address_field(L, "broadcast_metatable");
  c->dead_letter_mt = address_field(L, "dead_letter_metatable");
  c->signal_mt = address_field(L, "signal_metatable");
  c->request_mt[0] = address_field(L, "get_routees_metatable");
  c->request_mt[1] = address_field(L, "add_routees_metatable");
  c->request_mt[2] = address_field(L, "remove_routees_metatable");
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, TPL_CORE_SETUP);
  return 0;
}

/* The core is made before all else of ours, so it is finalized after it, and takes apart what is
 * left: hosts that a finalizer made while the state was being closed. */
static int core_gc(lua_State *L) {
  tpl_close_core(L, 1);
  return 0;
}

/* Made by the first opening and kept in the registry. */
tpl_state *tpl_state_of(lua_State *L) {
  static const char key = 'k';
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TNIL) {
    lua_pop(L, 1);
    tpl_state *made = lua_newuserdatauv(L, sizeof *made, 0);
    *made = (tpl_state){0};
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
  }
  tpl_state *state = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return state;
}

__attribute__((visibility("default"))) int luaopen_troupe_core(lua_State *L);

int luaopen_troupe_core(lua_State *L) {
  static const luaL_Reg functions[] = {{"setup", core_setup},
                                       {"go", tpl_go},
                                       {"running_system", tpl_running_system},
                                       {"sleep", tpl_sleep},
                                       {"resolve", tpl_resolve_path},
                                       {NULL, NULL}};
  tpl_core *c = lua_newuserdatauv(L, sizeof *c, TPL_CORE_VALUES);
  int core = lua_gettop(L);
  *c = (tpl_core){.state = tpl_state_of(L)};
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, core_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, core);
  lua_newtable(L);
  tpl_set_functions(L, core, functions);
  tpl_open_host(L, core);
  tpl_open_ref(L, core);
  tpl_open_actor(L, core);
  tpl_open_spawn(L, core);
  tpl_open_task(L, core);
  tpl_open_timer(L, core);
  tpl_open_gather(L, core);
  tpl_open_inspect(L, core);
  tpl_open_metrics(L, core);
  tpl_open_routing(L, core);
  return 1;
}
