/* Calls of functions that may not wait: deciders, strategies, what gives keys, priority functions.
 * Nothing else of the system goes on meanwhile, so one that never ended would end all; it may run so
 * many instructions of Lua's.
 *
 * They are counted by a hook, once in STEP of them. Coroutines that are made meanwhile inherit it, and
 * what is called within such a call is a part of it; there is one budget for all. When that is used up
 * the hook raises again and again, at every instruction, so that no pcall holds it. */
#include "binding.h"

enum { BUDGET = 10000000, STEP = 100 };

struct tpl_budget {
  const char *what; /* whose it is */
  int steps;        /* that are left */
};

static const char trace_key = 't'; /* in the registry: where it was used up */

/* ---- The hook --------------------------------------------------------------------------- */

static void on_count(lua_State *L, lua_Debug *where);

static void note_trace(lua_State *L) {
  tpl_push_traceback(L, L, 0);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &trace_key);
}

/* "Not enough memory" is the one error for which Lua calls no message handler. Another one would be
 * called from inside this hook, where no hook stops it. */
static void raise(lua_State *L) {
  lua_pushliteral(L, "not enough memory");
  lua_error(L);
}

/* The watchdog leaves it to this hook to look at what it has found (slow.c). */
static void on_count(lua_State *L, lua_Debug *where) {
  (void)where;
  tpl_state *state = tpl_state_of(L);
  tpl_budget *b = state->budget;
  if (b == NULL) { /* in a coroutine that was made in such a call, and has outlived it */
    lua_sethook(L, NULL, 0, 0);
    return;
  }
  if (b->steps > 0) {
    if (lua_gethookcount(L) != STEP) lua_sethook(L, on_count, LUA_MASKCOUNT, STEP);
    b->steps--;
    tpl_look_at_slow(L, state->running, 1);
    return;
  }
  lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
  if (b->steps == 0) {
    b->steps = -1;
    note_trace(L);
  }
  raise(L);
}

/* ---- Calls ------------------------------------------------------------------------------ */

/* A message handler: keeps the traceback beside the error. */
static int catch (lua_State *L) {
  lua_settop(L, 1);
  lua_createtable(L, 2, 0);
  lua_insert(L, 1);
  lua_rawseti(L, 1, 1);
  tpl_push_traceback(L, L, 1);
  lua_rawseti(L, 1, 2);
  return 1;
}

static int protected_call(lua_State *L, int arguments) {
  int function = lua_gettop(L) - arguments;
  lua_pushcfunction(L, catch);
  lua_insert(L, function);
  return lua_pcall(L, arguments, 1, function);
}

/* As that, within the budget of `what`, or of the call that it is a part of. The user's own hook is off
 * meanwhile. The result says whose budget was used up, if it was. */
static const char *call_within(lua_State *L, tpl_state *state, const char *what, int arguments,
                               int *status) {
  tpl_budget own = {what, BUDGET / STEP};
  tpl_budget *outer = state->budget;
  if (outer == NULL) state->budget = &own;
  tpl_budget *b = state->budget;
  tpl_hook hook = {lua_gethook(L), lua_gethookmask(L), lua_gethookcount(L)};
  if (hook.function != on_count) lua_sethook(L, on_count, LUA_MASKCOUNT, STEP);
  *status = protected_call(L, arguments);
  if (hook.function != on_count && lua_gethook(L) == on_count) {
    lua_sethook(L, hook.function, hook.mask, hook.count);
  }
  state->budget = outer;
  tpl_look_at_slow(L, state->running, 1);
  return b->steps < 0 ? b->what : NULL;
}

/* Pushes what was raised, and gives where. */
static tp_value push_reason(lua_State *L, tpl_host *h) {
  if (!lua_istable(L, -1)) return tp_nil(); /* no memory for the traceback, or none was taken */
  lua_rawgeti(L, -1, 2);
  tp_value trace = tpl_value_plain(L, h, lua_gettop(L));
  lua_rawgeti(L, -2, 1);
  return trace;
}

/* Pushes an error value that says whose budget was used up, and gives where. Without any Lua code: the
 * hook is still there when this call is a part of another one. */
static tp_value push_exceeded(lua_State *L, tpl_host *h, const char *what) {
  lua_createtable(L, 0, 3);
  lua_pushliteral(L, "BudgetExceededError");
  lua_setfield(L, -2, "name");
  lua_pushfstring(L, "%s ran for more than %d instructions", what, BUDGET);
  lua_setfield(L, -2, "message");
  lua_pushinteger(L, BUDGET);
  lua_setfield(L, -2, "instructions");
  tpl_push_setup(L, h, "error_metatable");
  lua_setmetatable(L, -2);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &trace_key);
  tp_value trace = tpl_value_plain(L, h, lua_gettop(L));
  lua_pop(L, 1);
  return trace;
}

bool tpl_call_plainly(lua_State *L, tpl_host *h, tp_job *job, const char *what, int arguments) {
  const char *exceeded = NULL;
  int status;
  if (what == NULL) {
    status = protected_call(L, arguments);
  } else {
    exceeded = call_within(L, h->core->state, what, arguments, &status);
  }
  if (status == LUA_OK && exceeded == NULL) return true;
  tpl_reserve(L, h, 2);
  tp_value trace = exceeded != NULL ? push_exceeded(L, h, exceeded) : push_reason(L, h);
  tp_fail(job, tpl_value_plain(L, h, lua_gettop(L)), trace);
  return false;
}
