/* Tasks: coroutines that the runtime runs (ASK-11). A task's userdata keeps, in its user value,
 * first its function and arguments, then what it returned or raised. */
#include <stdlib.h>

#include "binding.h"

/* User values: what the task holds, and its system, so that a task keeps that alive. */
enum { HELD = 1, SYSTEM, USER_VALUES = SYSTEM };

static tpl_task *check_task(lua_State *L, const char *where) {
  tpl_task *t = tpl_test(L, 1, &tpl_task_magic, sizeof *t);
  if (t == NULL) {
    tpl_misuse(L, "%s: call it on a task (got %s)", where, luaL_typename(L, 1));
  }
  return t;
}

static bool is_over(const tpl_task *t) { return t->state >= TPL_TASK_DONE; }

static void check_go(lua_State *L, tpl_host *h) {
  if (lua_type(L, 2) != LUA_TFUNCTION && luaL_getmetafield(L, 2, "__call") == LUA_TNIL) {
    tpl_misuse(L, "go: the task must be a function (got %s)", luaL_typename(L, 2));
  }
  if (lua_type(L, 2) != LUA_TFUNCTION) lua_pop(L, 1);
  if (tp_terminated(h->system)) {
    tpl_misuse(L, "go: the system '%s' has terminated", tp_system_name(h->system));
  }
}

/* Replaces all from `first` on by a table that holds it, and its number as "n". */
static void pack(lua_State *L, int first) {
  int n = lua_gettop(L) - first + 1;
  lua_createtable(L, n, 1);
  lua_insert(L, first);
  for (int i = n; i >= 1; i--) lua_rawseti(L, first, i);
  lua_pushinteger(L, n);
  lua_setfield(L, first, "n");
}

/* Pushes a task of the system at 1 that holds the table at 2. */
static tpl_task *push_new_task(lua_State *L, tpl_host *h) {
  tpl_task *t = lua_newuserdatauv(L, sizeof *t, USER_VALUES);
  *t = (tpl_task){
      .magic = &tpl_task_magic, .waiter = TPL_WAITER_TASK, .host = h, .state = TPL_TASK_RUNNING};
  tpl_set_metatable(L, TPL_CORE_TASK_MT);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, 3, HELD);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, 3, SYSTEM);
  return t;
}

static int begin(lua_State *L, tpl_host *h) {
  pack(L, 2); /* the function and its arguments */
  tpl_task *t = push_new_task(L, h);
  tp_value anchor = tpl_value_plain(L, h, 3);
  tp_ref *start;
  if (tp_slot_new(h->system, TP_NEVER, true, &start) != TP_OK) {
    tp_value_release(h->system, anchor);
    return luaL_error(L, "not enough memory");
  }
  t->anchor = anchor;
  h->tasks++;
  tp_slot_settle(start, tp_nil(), false, NULL);
  tp_slot_notify(start, &t->waiter);
  tp_ref_release(start);
  return 1;
}

int tpl_go(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "go");
  check_go(L, h);
  return begin(L, h);
}

/* Pushes the task's userdata. */
static void push_task(lua_State *L, tpl_task *t) { tpl_push_value(L, t->host, t->anchor); }

int tpl_task_begin(lua_State *L, tpl_coro *c) {
  tpl_task *t = c->task;
  t->coro = c;
  push_task(L, t);
  lua_getiuservalue(L, -1, HELD);
  lua_getfield(L, -1, "n");
  int n = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  luaL_checkstack(L, n, "too many arguments");
  for (int i = 1; i <= n; i++) lua_rawgeti(L, -i, i);
  lua_remove(L, -n - 1);
  lua_remove(L, -n - 1);
  return n - 1;
}

/* Whoever awaits the task hears of its end; it is anchored no more. */
static void over(tpl_task *t, tpl_task_state state) {
  t->state = (uint8_t)state;
  t->coro = NULL;
  t->host->tasks--;
  for (uint32_t i = 0; t->awaited != NULL && i < t->awaited->count; i++) {
    tp_slot_settle(t->awaited->slots[i], tp_nil(), false, NULL);
  }
  tpl_disown(t->awaited);
  t->awaited = NULL;
  tp_value anchor = t->anchor;
  t->anchor = tp_nil();
  tp_value_release(t->host->system, anchor);
}

/* Keeps the `n` values on top of L as what the task gave. */
static void hold(lua_State *L, tpl_task *t, int n) {
  pack(L, lua_gettop(L) - n + 1);
  push_task(L, t);
  lua_insert(L, -2);
  lua_setiuservalue(L, -2, HELD);
  lua_pop(L, 1);
}

void tpl_task_returned(lua_State *L, tpl_task *t, int first) {
  luaL_checkstack(L, 4, NULL);
  hold(L, t, lua_gettop(L) - first + 1);
  over(t, TPL_TASK_DONE);
}

/* Pushes the error that a task ends with when it was cancelled or its system has terminated. */
static void push_end(lua_State *L, tpl_task *t) {
  tpl_push_setup(L, t->host, "fault");
  const char *code = t->cancelled ? "cancelled" : "system-terminated";
  lua_pushstring(L, t->exhausted ? "out-of-memory" : code);
  lua_call(L, 1, 1);
}

void tpl_task_closed(tpl_task *t) { over(t, TPL_TASK_CANCELLED); }

void tpl_task_exhausted(tpl_task *t) {
  if (t->state != TPL_TASK_RUNNING) return;
  t->exhausted = true;
  over(t, TPL_TASK_CANCELLED);
}

static bool is_awaited(const tpl_task *t) {
  for (uint32_t i = 0; t->awaited != NULL && i < t->awaited->count; i++) {
    if (!tp_slot_settled(t->awaited->slots[i])) return true;
  }
  return false;
}

void tpl_task_failed(lua_State *L, tpl_task *t) {
  tpl_host *h = t->host;
  lua_insert(L, -2);           /* trace, error */
  if (!lua_toboolean(L, -1)) { /* whoever awaits it looks for an error that is true */
    lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, -1));
    lua_replace(L, -2);
  }
  lua_pushvalue(L, -1);
  hold(L, t, 1);
  bool awaited = is_awaited(t);
  over(t, TPL_TASK_FAILED);
  if (awaited) return;
  tpl_push_setup(L, h, "task_failed");
  tpl_push_aux(L, h, TPL_SYSTEM);
  lua_pushvalue(L, -3);
  lua_pushvalue(L, -5);
  lua_call(L, 3, 0);
}

/* ---- Awaiting --------------------------------------------------------------------------- */

static int push_outcome(lua_State *L, tpl_task *t, int userdata) {
  if (t->state == TPL_TASK_CANCELLED) {
    lua_pushnil(L);
    push_end(L, t);
    return 2;
  }
  lua_getiuservalue(L, userdata, HELD);
  int held = lua_gettop(L);
  if (t->state == TPL_TASK_FAILED) {
    lua_pushnil(L);
    lua_rawgeti(L, held, 1);
    return 2;
  }
  lua_getfield(L, held, "n");
  int n = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  luaL_checkstack(L, n, "too many results");
  for (int i = 1; i <= n; i++) lua_rawgeti(L, held, i);
  return n;
}

/* The task is the first argument of the call that waited. */
static int await_results(lua_State *L, tpl_host *h, tp_ref *slot) {
  tp_outcome o = tp_slot_outcome(slot);
  if (!o.failed) return push_outcome(L, lua_touserdata(L, 1), 1);
  lua_pushnil(L);
  tpl_push_value(L, h, o.value);
  return 2;
}

/* Those that have timed out go. */
static void sweep(tpl_owned *o) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < o->count; i++) {
    if (tp_slot_settled(o->slots[i])) {
      tp_ref_release(o->slots[i]);
    } else {
      o->slots[kept++] = o->slots[i];
    }
  }
  o->count = kept;
}

static bool make_room(tpl_owned *o) {
  if (o->count == o->capacity) sweep(o);
  if (o->count < o->capacity) return true;
  uint32_t capacity = o->capacity == 0 ? 2 : o->capacity * 2;
  tp_ref **slots = realloc(o->slots, capacity * sizeof(tp_ref *));
  if (slots == NULL) return false;
  o->slots = slots;
  o->capacity = capacity;
  return true;
}

static void add_waiter(lua_State *L, tpl_task *t, tp_ref *slot) {
  if (t->awaited == NULL) t->awaited = tpl_own(t->host);
  if (t->awaited == NULL || !make_room(t->awaited)) {
    tp_ref_release(slot);
    luaL_error(L, "not enough memory");
  }
  t->awaited->slots[t->awaited->count++] = slot;
  tp_ref_retain(slot);
}

/* task:await([timeout_ms]) -> what it returned | nil, err                     ASK-11 */
static int task_await(lua_State *L) {
  tpl_task *t = check_task(L, "await");
  tp_time timeout = TP_NEVER;
  if (!lua_isnoneornil(L, 2)) timeout = tpl_check_duration(L, 2, true, "await: timeout_ms");
  tpl_host *h = t->host;
  lua_settop(L, 1);
  if (is_over(t)) return push_outcome(L, t, 1);
  if (h->system == NULL) {
    lua_pushnil(L);
    push_end(L, t);
    return 2;
  }
  tpl_check_wait(L, h, "await");
  if (h->current != NULL && h->current->task == t) {
    return tpl_misuse(L, "await: a task cannot await itself");
  }
  tp_ref *slot;
  tpl_set_now(h);
  if (tp_slot_new(h->system, timeout, false, &slot) != TP_OK) {
    return luaL_error(L, "not enough memory");
  }
  add_waiter(L, t, slot);
  return tpl_wait(L, h, slot, await_results, "await");
}

/* task:cancel() -> true when that ends it early */
static int task_cancel(lua_State *L) {
  tpl_task *t = check_task(L, "cancel");
  bool acts = !is_over(t) && !t->cancelled && t->host->system != NULL;
  if (acts) {
    t->cancelled = true;
    if (t->coro != NULL && t->coro->slot != NULL) tp_slot_fail(t->coro->slot, "cancelled");
  }
  lua_pushboolean(L, acts);
  return 1;
}

/* task:status() -> "running", "waiting", "done", "failed" or "cancelled" */
static int task_status(lua_State *L) {
  static const char *const names[] = {"running", "done", "failed", "cancelled"};
  tpl_task *t = check_task(L, "status");
  bool waits = !is_over(t) && t->coro != NULL && t->coro->slot != NULL;
  lua_pushstring(L, waits ? "waiting" : names[t->state]);
  return 1;
}

static int task_gc(lua_State *L) {
  tpl_task *t = lua_touserdata(L, 1);
  if (t->host->system != NULL) tpl_disown(t->awaited); /* else the host has done it */
  t->awaited = NULL;
  return 0;
}

static int task_tostring(lua_State *L) {
  task_status(L);
  lua_pushfstring(L, "troupe.task (%s)", lua_tostring(L, -1));
  return 1;
}

void tpl_open_task(lua_State *L, int core) {
  static const luaL_Reg methods[] = {
      {"await", task_await}, {"cancel", task_cancel}, {"status", task_status}, {NULL, NULL}};
  static const luaL_Reg metamethods[] = {
      {"__gc", task_gc}, {"__tostring", task_tostring}, {NULL, NULL}};
  lua_newtable(L);
  tpl_set_functions(L, core, metamethods);
  lua_pushliteral(L, "troupe.task");
  lua_setfield(L, -2, "__name");
  lua_pushliteral(L, "troupe.task");
  lua_setfield(L, -2, "__metatable");
  lua_newtable(L);
  tpl_set_functions(L, core, methods);
  lua_setfield(L, -2, "__index");
  lua_setiuservalue(L, core, TPL_CORE_TASK_MT);
}
