/* Waiting, from wherever user code stands: a handler or a task (the coroutine parks), a coroutine
 * of the user's own (the same, when nothing of ours is below it), or the main chunk (the system is
 * driven until the answer is there). */
#include "binding.h"

static bool on_main(lua_State *L) {
  bool is_main = lua_pushthread(L) == 1;
  lua_pop(L, 1);
  return is_main;
}

/* Raises why the code that runs in `c` cannot wait for `h` where it stands. */
static void refuse(lua_State *L, tpl_host *h, const tpl_coro *c, const char *where) {
  if (on_main(L)) tpl_misuse(L, "%s: cannot wait here: the system runs already", where);
  if (c->L != L)
    tpl_misuse(L, "%s: cannot wait in a coroutine of your own inside a handler", where);
  if (!lua_isyieldable(L)) {
    tpl_misuse(L, "%s: cannot wait here: a C function or a callback that may not wait is running",
               where);
  }
  tpl_misuse(L, "%s: cannot wait for another system ('%s') in a handler", where,
             tp_system_name(h->system));
}

/* Never returns when what runs here is to end at its next wait: a task that was cancelled, a handler
 * whose request was (SG-14), and any code outside actors once the system has stopped, or it might go on for ever. Our own coroutines
 * are closed; one of the user's gets an error. */
static void end_if_over(lua_State *L, tpl_host *h) {
  tpl_coro *c = h->current;
  bool cancelled = c->task != NULL ? c->task->cancelled
                                   : c->job.actor != NULL && tp_actor_cancelled(c->job.actor);
  if (!cancelled && (c->job.actor != NULL || !tp_waits_ended(h->system))) return;
  if (!c->foreign) {
    c->gives_up = true;
    lua_yield(L, 0);
  }
  tpl_push_setup(L, h, "fault");
  lua_pushliteral(L, "system-terminated");
  lua_call(L, 1, 1);
  lua_error(L);
}

void tpl_check_wait(lua_State *L, tpl_host *h, const char *where) {
  if (h->system == NULL) return;
  tpl_host *running = h->core->state->running;
  if (running != NULL && running->current != NULL) {
    const tpl_coro *c = running->current;
    if (running != h || c->L != L || !lua_isyieldable(L)) refuse(L, h, c, where);
    end_if_over(L, h);
  } else if (h->driving) {
    tpl_misuse(L, "%s: cannot wait here: the system runs already", where);
  } else if (!on_main(L) && !lua_isyieldable(L)) {
    tpl_misuse(L, "%s: cannot wait here: a C function is running in between", where);
  }
}

/* The slot is kept by its ref's userdata, whatever raises from here on. */
static void keep(lua_State *L, tpl_host *h, tp_ref *slot) {
  tpl_push_ref(L, h, slot);
  tp_ref_release(slot);
}

static int go_on(lua_State *L, int status, lua_KContext context) {
  tpl_coro *c = (tpl_coro *)context;
  tpl_host *h = c->host;
  (void)status;
  if (c->foreign &&
      h->current != c) { /* its owner takes it back; the answer is not wanted any more */
    c->left = true;
    tp_slot_fail(c->slot, "cancelled");
    return luaL_error(L, "resumed from outside while it waits for an answer");
  }
  if (h->current != c) { /* a handler or a task goes on in its own turn only: it fails there */
    c->disturbed = true;
    tp_slot_fail(c->slot, "cancelled");
    lua_settop(L, 1);
    return lua_yieldk(L, 0, context, go_on);
  }
  if (c->disturbed) {
    c->disturbed = false;
    tpl_drop_slot(&c->slot); /* or a handler that catches this would wait on with it */
    return luaL_error(L, "resumed from outside while it waits for an answer");
  }
  c->answered = c->slot;
  c->slot = NULL;
  int n = c->results(L, h, c->answered);
  tpl_drop_slot(&c->answered);
  return n;
}

static int yield(lua_State *L, tpl_coro *c, tp_ref *slot, tpl_results *results) {
  tpl_drop_slot(&c->answered); /* of a wait whose results raised, which was caught */
  c->slot = slot;
  c->results = results;
  return lua_yieldk(L, 0, (lua_KContext)c, go_on);
}

static int yield_foreign(lua_State *L, tpl_host *h, tp_ref *slot, tpl_results *results) {
  keep(L, h, slot);
  lua_pushthread(L);
  tpl_coro *c = tpl_coro_new(L, h, lua_gettop(L));
  c->job = (tp_job){.kind = TP_JOB_RESUME, .system = h->system};
  tp_ref_retain(slot);
  h->parked++;
  tp_slot_notify(slot, c);
  return yield(L, c, slot, results);
}

static int wait_here(lua_State *L, tpl_host *h, tp_ref *slot, tpl_results *results,
                     const char *where) {
  keep(L, h, slot);
  if (!tpl_drive(L, h, slot)) {
    return tpl_misuse(L, "%s: nothing is left to happen that could end the wait", where);
  }
  int n = results(L, h, slot);
  tp_slot_clear(slot);
  return n;
}

int tpl_wait(lua_State *L, tpl_host *h, tp_ref *slot, tpl_results *results, const char *where) {
  if (h->current != NULL) return yield(L, h->current, slot, results);
  /* Once the system has stopped, nobody would come back to resume a coroutine of the user's. */
  if (!on_main(L) && !tp_waits_ended(h->system)) return yield_foreign(L, h, slot, results);
  return wait_here(L, h, slot, results, where);
}

/* ---- What waits give -------------------------------------------------------------------- */

/* value, nil; or nil, err */
static int push_outcome(lua_State *L, tpl_host *h, const tp_outcome *o) {
  if (o->failed) lua_pushnil(L);
  tpl_push_value(L, h, o->value);
  if (!o->failed) lua_pushnil(L);
  return 2;
}

int tpl_ask_results(lua_State *L, tpl_host *h, tp_ref *slot) {
  tp_outcome o = tp_slot_outcome(slot);
  const tpl_ref *target = lua_touserdata(L, 1);
  push_outcome(L, h, &o);
  if (o.from == NULL) {
    lua_pushnil(L);
  } else if (o.from == target->ref) { /* as a rule: without the way over the table of refs */
    lua_pushvalue(L, 1);
  } else {
    tpl_push_ref(L, h, o.from);
  }
  return 3;
}

/* nil, err when it could not wait that long; else nothing. */
static int sleep_results(lua_State *L, tpl_host *h, tp_ref *slot) {
  tp_outcome o = tp_slot_outcome(slot);
  if (!o.failed) return 0;
  lua_pushnil(L);
  tpl_push_value(L, h, o.value);
  return 2;
}

/* The host whose handler or task runs here; raises elsewhere. */
static tpl_host *host_here(lua_State *L, const char *where) {
  tpl_host *h = tpl_core_here(L)->state->running;
  if (h == NULL || h->current == NULL) {
    tpl_misuse(L, "%s: to be called in a handler or a task", where);
  }
  return h;
}

/* core.running_system() -> the system whose handler or task runs here | nil */
int tpl_running_system(lua_State *L) {
  tpl_host *h = tpl_core_here(L)->state->running;
  if (h == NULL || h->current == NULL) {
    lua_pushnil(L);
  } else {
    tpl_push_aux(L, h, TPL_SYSTEM);
  }
  return 1;
}

/* troupe.sleep(ms) */
int tpl_sleep(lua_State *L) {
  tp_time time = tpl_check_duration(L, 1, false, "sleep: ms");
  tpl_host *h = host_here(L, "sleep");
  tpl_check_wait(L, h, "sleep");
  tp_ref *slot;
  tpl_set_now(h);
  if (tp_slot_new(h->system, time, true, &slot) != TP_OK) {
    return luaL_error(L, "not enough memory");
  }
  return tpl_wait(L, h, slot, sleep_results, "sleep");
}

/* true | nil, err */
static int stop_results(lua_State *L, tpl_host *h, tp_ref *slot) {
  tp_outcome o = tp_slot_outcome(slot);
  push_outcome(L, h, &o);
  if (o.failed) return 2;
  lua_pop(L, 1);
  return 1;
}

/* ref:await_stop(timeout_ms) -> true | nil, err                               WATCH-5 */
int tpl_await_stop(lua_State *L) {
  tpl_ref *u = tpl_check_ref(L, 1, "await_stop", "the target");
  tpl_host *h = u->host;
  tp_time timeout = tpl_check_duration(L, 2, true, "await_stop: timeout_ms");
  if (!tp_ref_is_actor(u->ref)) return tpl_misuse(L, "await_stop: a reply ref does not stop");
  if (h->system == NULL || !tp_ref_alive(u->ref)) {
    lua_pushboolean(L, 1); /* it has stopped, perhaps with its system */
    return 1;
  }
  tpl_check_wait(L, h, "await_stop");
  tp_ref *slot;
  tpl_set_now(h);
  if (tp_await_stop(u->ref, timeout, &slot) != TP_OK) return luaL_error(L, "not enough memory");
  return tpl_wait(L, h, slot, stop_results, "await_stop");
}

/* core.check_await_stop(ref, where): raises where its end cannot be waited for */
int tpl_check_await_stop(lua_State *L) {
  const char *where = luaL_checkstring(L, 2);
  tpl_ref *u = tpl_check_ref(L, 1, where, "the actor");
  if (!tp_ref_is_actor(u->ref)) return tpl_misuse(L, "%s: a reply ref does not stop", where);
  tpl_check_wait(L, u->host, where);
  return 0;
}

/* ref | nil, err */
static int resolve_results(lua_State *L, tpl_host *h, tp_ref *slot) {
  tp_outcome o = tp_slot_outcome(slot);
  return push_outcome(L, h, &o);
}

/* core.resolve(system, path, timeout_ms) -> ref | nil, err                   SEL-1 */
int tpl_resolve_path(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "resolve_one");
  size_t length;
  const char *path = luaL_checklstring(L, 2, &length);
  tp_time timeout = tpl_check_duration(L, 3, true, "resolve_one: timeout_ms");
  tpl_check_wait(L, h, "resolve_one");
  tp_ref *slot;
  tpl_set_now(h);
  int status = tp_slot_new(h->system, timeout, false, &slot);
  if (status == TP_OK) {
    status = tp_resolve(h->system, path, length, slot);
    if (status != TP_OK) tp_ref_release(slot);
  }
  if (status != TP_OK) return luaL_error(L, "not enough memory");
  return tpl_wait(L, h, slot, resolve_results, "resolve_one");
}
