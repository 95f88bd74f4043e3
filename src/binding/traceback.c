/* Tracebacks as luaL_traceback writes them, but for one thing: Lua looks for each function in all loaded
 * modules, to call it by a full name, and that costs far more than a restart does. Here a function is
 * called as its caller calls it. */
#include <string.h>

#include "binding.h"

/* Of a long one these are shown, from both ends. */
enum { FIRST_LEVELS = 10, LAST_LEVELS = 11 };

static int count_levels(lua_State *of) {
  lua_Debug d;
  int below = 0, above = 1;
  while (lua_getstack(of, above, &d)) {
    below = above;
    above *= 2;
  }
  while (above - below > 1) {
    int middle = below + (above - below) / 2;
    if (lua_getstack(of, middle, &d)) {
      below = middle;
    } else {
      above = middle;
    }
  }
  return lua_getstack(of, below, &d) ? below + 1 : 0;
}

static void push_function(lua_State *L, const lua_Debug *d) {
  if (strcmp(d->namewhat, "global") == 0) {
    lua_pushfstring(L, "function '%s'", d->name);
  } else if (*d->namewhat != '\0') {
    lua_pushfstring(L, "%s '%s'", d->namewhat, d->name);
  } else if (*d->what == 'm') {
    lua_pushliteral(L, "main chunk");
  } else if (*d->what == 'C') {
    lua_pushliteral(L, "?");
  } else {
    lua_pushfstring(L, "function <%s:%d>", d->short_src, d->linedefined);
  }
}

static void push_level(lua_State *L, lua_State *of, lua_Debug *d) {
  lua_getinfo(of, "Slnt", d);
  push_function(L, d);
  const char *function = lua_tostring(L, -1);
  const char *tail = d->istailcall ? "\n\t(...tail calls...)" : "";
  if (d->currentline > 0) {
    lua_pushfstring(L, "\n\t%s:%d: in %s%s", d->short_src, d->currentline, function, tail);
  } else {
    lua_pushfstring(L, "\n\t%s: in %s%s", d->short_src, function, tail);
  }
  lua_remove(L, -2);
}

void tpl_push_traceback(lua_State *L, lua_State *of, int level) {
  luaL_Buffer b;
  lua_Debug d;
  int levels = count_levels(of) - level, skipped = levels - FIRST_LEVELS - LAST_LEVELS;
  luaL_buffinit(L, &b);
  luaL_addstring(&b, "stack traceback:");
  for (int i = 0; i < levels; i++) {
    if (i == FIRST_LEVELS && skipped > 0) {
      lua_pushfstring(L, "\n\t...\t(skipping %d levels)", skipped);
      i += skipped - 1;
    } else if (lua_getstack(of, level + i, &d)) {
      push_level(L, of, &d);
    } else {
      break;
    }
    luaL_addvalue(&b);
  }
  luaL_pushresult(&b);
}
