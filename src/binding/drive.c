/* Driving a host: coroutines are entered and left here, failures are reported, time goes on. */
#include <stdlib.h>

#include "binding.h"

enum {
  KEPT_COROS = 256, /* idle coroutines that are kept */
  JOBS_A_LOOK = 64, /* jobs between two looks at the clock, at most */
  JOBS_A_SLICE = 1024,
  DRIVER_STACK = 8, /* Lua stack slots that driving needs */
  C_LEVELS = 40,    /* of nested calls that must be left for what runs */
};
#define SLICE_TIME TP_MILLISECOND

/* ---- Coroutines ------------------------------------------------------------------------- */

tpl_coro *tpl_coro_new(lua_State *L, tpl_host *h, int thread) {
  luaL_checkstack(L, 4, NULL);
  if (thread == 0) {
    (void)lua_newthread(L);
  } else {
    lua_pushvalue(L, thread);
  }
  tpl_coro *c = calloc(1, sizeof *c);
  if (c == NULL) luaL_error(L, "not enough memory");
  c->host = h;
  c->foreign = thread != 0;
  c->next = h->coros;
  c->link = &h->coros;
  if (c->next != NULL) c->next->link = &c->next;
  h->coros = c;
  tpl_push_aux(L, h, TPL_THREADS);
  lua_pushvalue(L, -2);
  lua_rawsetp(L, -2, c);
  c->L = lua_tothread(L, -2);
  lua_pop(L, 2);
  return c;
}

void tpl_drop_slot(tp_ref **slot) {
  if (*slot == NULL) return;
  tp_slot_drop(*slot);
  *slot = NULL;
}

/* An answer that came and is not wanted any more is let go of. */
static void drop_slots(tpl_coro *c) {
  tpl_drop_slot(&c->slot);
  tpl_drop_slot(&c->answered);
}

static void unlink_coro(tpl_coro *c) {
  drop_slots(c);
  *c->link = c->next;
  if (c->next != NULL) c->next->link = c->link;
  free(c);
}

static void free_coro(tpl_coro *c) {
  lua_pushnil(c->host->aux);
  lua_rawsetp(c->host->aux, TPL_THREADS, c); /* its key is there: nothing is allocated */
  unlink_coro(c);
}

void tpl_free_coros(tpl_host *h) {
  while (h->coros != NULL) unlink_coro(h->coros);
  h->idle = NULL;
}

static void recycle(tpl_coro *c) {
  tpl_host *h = c->host;
  drop_slots(c);
  c->task = NULL;
  c->gives_up = c->disturbed = false;
  if (c->foreign || h->pooled >= KEPT_COROS) {
    free_coro(c);
    return;
  }
  c->next_idle = h->idle;
  h->idle = c;
  h->pooled++;
}

/* Protected calls of functions that take one pointer: they may run out of memory. */
static bool protect(lua_State *L, lua_CFunction f, void *argument) {
  lua_pushcfunction(L, f);
  lua_pushlightuserdata(L, argument);
  if (lua_pcall(L, 1, 0, 0) == LUA_OK) return true;
  lua_pop(L, 1);
  return false;
}

static int add_coro(lua_State *L) {
  recycle(tpl_coro_new(L, lua_touserdata(L, 1), 0));
  return 0;
}

static tpl_coro *take_coro(lua_State *L, tpl_host *h) {
  if (h->idle == NULL && !protect(L, add_coro, h)) return NULL;
  tpl_coro *c = h->idle;
  h->idle = c->next_idle;
  h->pooled--;
  return c;
}

/* ---- Failures --------------------------------------------------------------------------- */

typedef struct failure {
  tpl_coro *coro;
  tp_value reason, trace;
} failure;

static int anchor_trace(lua_State *L) {
  failure *f = lua_touserdata(L, 1);
  tpl_push_traceback(L, f->coro->L, 0);
  f->trace = tpl_value_plain(L, f->coro->host, lua_gettop(L));
  return 0;
}

/* The error is on top of the coroutine's stack. */
static int anchor_reason(lua_State *L) {
  failure *f = lua_touserdata(L, 1);
  tpl_coro *c = f->coro;
  lua_xmove(c->L, L, 1);
  if (c->task == NULL && (c->job.kind == TP_JOB_PRE_START || c->job.kind == TP_JOB_POST_RESTART)) {
    tpl_push_setup(L, c->host, "initialization_error");
    lua_insert(L, -2);
    tpl_push_path(L, c->job.actor);
    lua_call(L, 2, 1);
  }
  f->reason = tpl_value_plain(L, c->host, lua_gettop(L));
  return 0;
}

static int fail_task(lua_State *L) {
  failure *f = lua_touserdata(L, 1);
  tpl_push_value(L, f->coro->host, f->coro->task->anchor); /* it is kept until this returns */
  tpl_push_value(L, f->coro->host, f->reason);
  tpl_push_value(L, f->coro->host, f->trace);
  tpl_task_failed(L, f->coro->task);
  return 0;
}

/* Nobody waits for what failed: it is logged. */
static int report_unawaited(lua_State *L) {
  failure *f = lua_touserdata(L, 1);
  tpl_push_setup(L, f->coro->host, f->coro->foreign ? "coroutine_failed" : "task_failed");
  tpl_push_aux(L, f->coro->host, TPL_SYSTEM);
  tpl_push_value(L, f->coro->host, f->reason);
  tpl_push_value(L, f->coro->host, f->trace);
  lua_call(L, 3, 0);
  return 0;
}

static void report(lua_State *L, failure *f) {
  tpl_coro *c = f->coro;
  tp_system *s = c->host->system;
  tpl_measured(c);
  if (c->task == NULL && !c->foreign) {
    tp_fail(&c->job, f->reason, f->trace);
    return;
  }
  bool told = protect(L, c->foreign ? report_unawaited : fail_task, f);
  if (!told && c->task != NULL) tpl_task_exhausted(c->task);
  tp_value_release(s, f->reason);
  tp_value_release(s, f->trace);
}

/* The coroutine has raised, or has yielded where it may not (then `message` says so). The traceback
 * comes first; closing variables may replace the error (SUP-9). */
static void coro_failed(lua_State *L, tpl_coro *c, const char *message) {
  tpl_host *h = c->host;
  failure f = {.coro = c};
  (void)protect(L, anchor_trace, &f);
  h->current = c;
  int status = lua_resetthread(c->L);
  if (message == NULL) message = "its coroutine was closed from outside";
  if (status == LUA_OK) lua_pushstring(c->L, message);
  h->current = NULL;
  if (!protect(L, anchor_reason, &f)) f.reason = tp_out_of_memory(h->system);
  lua_settop(c->L, 0);
  report(L, &f);
  recycle(c);
}

/* ---- Entering and leaving --------------------------------------------------------------- */

/* Closes the coroutine, its to-be-closed variables included. True when one of them has raised: then
 * its error is the reason in `f`. */
static bool close_coro(lua_State *L, tpl_coro *c, failure *f) {
  *f = (failure){.coro = c};
  c->host->current = c;
  bool raised = lua_resetthread(c->L) != LUA_OK;
  if (raised && !protect(L, anchor_reason, f)) f->reason = tp_out_of_memory(c->host->system);
  lua_settop(c->L, 0);
  c->host->current = NULL;
  return raised;
}

/* What is to end at its next wait has come to one. */
static void give_up(lua_State *L, tpl_coro *c) {
  failure f;
  bool raised = close_coro(L, c, &f);
  tpl_measured(c);
  if (c->task != NULL) {
    tpl_task_closed(c->task);
    if (raised) (void)protect(L, report_unawaited, &f);
    tp_value_release(c->host->system, f.reason);
  } else if (raised) {
    tp_fail(&c->job, f.reason, f.trace);
  } else {
    tp_done(&c->job);
  }
  recycle(c);
}

static void park(tpl_coro *c) {
  c->host->parked++;
  tp_wait(&c->job, c->slot, c);
}

static void enter(lua_State *L, tpl_coro *c, int arguments) {
  tpl_host *h = c->host;
  int results;
  h->current = c;
  int status = lua_resume(c->L, L, arguments, &results);
  h->current = NULL;
  if (status == LUA_OK) {
    lua_settop(c->L, 0);
    recycle(c);
  } else if (status != LUA_YIELD) {
    coro_failed(L, c, NULL);
  } else if (c->gives_up) {
    give_up(L, c);
  } else if (c->slot != NULL) {
    park(c);
  } else if (c->foreign) {
    recycle(c); /* it yields to its own owner */
  } else {
    coro_failed(L, c, "attempt to yield outside any wait: coroutine.yield in a handler or a task");
  }
}

static void resume(lua_State *L, tpl_coro *c) {
  c->host->parked--;
  if (c->foreign && (c->left || lua_status(c->L) != LUA_YIELD)) {
    recycle(c); /* its owner has ended it meanwhile */
  } else {
    enter(L, c, 0);
  }
}

/* The actor cannot go on: what waits is closed, its to-be-closed variables included (LIFE-9). */
static void close(lua_State *L, tpl_coro *c, tp_job *job) {
  failure f;
  c->host->parked--;
  bool raised = close_coro(L, c, &f);
  tpl_measured(c);
  if (raised) {
    tp_fail(job, f.reason, f.trace);
  } else {
    tp_done(job);
  }
  recycle(c);
}

void tpl_switch(lua_State *L, tpl_host *h, tp_job *job) {
  tpl_coro *slice = h->current;
  if (job->kind == TP_JOB_RESUME) {
    resume(L, job->token);
  } else {
    close(L, job->token, job);
  }
  h->current = slice;
}

static int trim(lua_State *L) {
  tpl_host *h = lua_touserdata(L, 1);
  if (tpl_anchors_are_large(h)) tpl_trim_anchors(L, h);
  if (tpl_refs_are_large(h)) tpl_trim_refs(L, h);
  return 0;
}

bool tpl_run_ready(lua_State *L, tpl_host *h) {
  tpl_host *outer = h->core->state->running;
  h->core->state->running = h;
  h->stretches++; /* what was before is over */
  tp_watchdog_begin(h->watchdog);
  h->slice_over = false;
  h->pace = h->is_virtual ? JOBS_A_LOOK : 1;
  h->budget = h->pace;
  h->share = JOBS_A_SLICE;
  while (!h->slice_over) {
    tpl_coro *c = take_coro(L, h);
    if (c == NULL) {
      tp_watchdog_end(h->watchdog);
      h->core->state->running = outer;
      return false;
    }
    lua_pushcfunction(c->L, tpl_slice);
    lua_pushlightuserdata(c->L, c);
    c->job = (tp_job){.kind = TP_JOB_RESUME, .system = h->system}; /* none, should it not begin */
    enter(L, c, 1);
  }
  tp_watchdog_end(h->watchdog);
  if (tpl_anchors_are_large(h) || tpl_refs_are_large(h)) (void)protect(L, trim, h);
  h->core->state->running = outer;
  return true;
}

/* The same for a driver. Raises when there is no memory for a coroutine: what is queued stays so. */
static void run_ready(lua_State *L, tpl_host *h) {
  if (tpl_run_ready(L, h)) return;
  lua_gc(L, LUA_GCCOLLECT, 0);
  if (h->system != NULL && tpl_run_ready(L, h)) return;
  h->driving = false;
  luaL_error(L, "not enough memory");
}

/* ---- Time ------------------------------------------------------------------------------- */

tp_time tpl_clock(tpl_host *h) { return h->is_virtual ? h->now : tp_clock_monotonic(); }

void tpl_set_now(tpl_host *h) {
  if (!h->is_virtual) tp_set_now(h->system, tpl_clock(h));
}

static void pass_deadlines(tpl_host *h) {
  h->now = tpl_clock(h);
  tp_advance(h->system, h->now);
}

/* Short jobs need fewer looks at the clock: it is looked at often enough to notice a quarter of the
 * slice's time going by. */
static void pace(tpl_host *h, tp_time since_last_look) {
  if (since_last_look >= SLICE_TIME / 4) {
    h->pace = h->pace > 1 ? h->pace / 2 : 1;
  } else if (h->pace < JOBS_A_LOOK) {
    h->pace *= 2;
  }
}

void tpl_look_at_clock(tpl_host *h) {
  h->share -= h->pace;
  if (!h->is_virtual) {
    tp_time last = h->now;
    pass_deadlines(h);
    pace(h, h->now - last);
    if (h->now - h->polled >= SLICE_TIME) h->slice_over = true;
  }
  if (h->share <= 0) h->slice_over = true;
  h->budget = h->pace;
}

static void let_loop_run(tpl_host *h) {
  if (h->loop != NULL) tp_loop_poll(h->loop);
  h->polled = h->now;
}

static void have_loop(lua_State *L, tpl_host *h) {
  if (h->loop == NULL) h->loop = tp_loop_new();
  if (h->loop == NULL) luaL_error(L, "cannot make an event loop");
}

/* Sleeps to the next deadline, or lets virtual time jump there. False when there is none. */
static bool sleep_until_deadline(tpl_host *h) {
  tpl_set_now(h);
  tp_time due = tp_next_deadline(h->system);
  if (due == TP_NEVER || tp_only_passive(h->system)) return false;
  if (h->is_virtual) {
    if (due > h->now) h->now = due;
  } else if (due > tp_now(h->system)) {
    tp_loop_wait(h->loop, due - tp_now(h->system));
  }
  pass_deadlines(h);
  h->polled = h->now;
  return true;
}

/* ---- Driving ---------------------------------------------------------------------------- */

void tpl_check_drivable(lua_State *L, tpl_host *h, const char *where) {
  if (h->core->state->running != NULL && h->core->state->running->current != NULL &&
      h == h->core->state->running) {
    tpl_misuse(L, "%s: cannot be called in a handler or a task: the system runs already", where);
  }
  if (h->driving) tpl_misuse(L, "%s: the system runs already", where);
}

static bool reached(tpl_host *h, tp_ref *slot) {
  return slot != NULL ? tp_slot_settled(slot) : tp_terminated(h->system) && !tp_ready(h->system);
}

/* What runs in coroutines needs some of the C stack, which they share with whoever drives: a
 * coroutine that cannot even begin would be no failure of its handler. */
static int probe(lua_State *L) {
  lua_Integer levels = lua_tointeger(L, 1);
  if (levels == 0) return 0;
  lua_pushcfunction(L, probe);
  lua_pushinteger(L, levels - 1);
  lua_call(L, 1, 0);
  return 0;
}

/* Nothing may raise once the host is being driven. */
static void check_stacks(lua_State *L) {
  luaL_checkstack(L, DRIVER_STACK, NULL);
  lua_pushcfunction(L, probe);
  lua_pushinteger(L, C_LEVELS);
  if (lua_pcall(L, 1, 0, 0) == LUA_OK) return;
  lua_pop(L, 1);
  tpl_misuse(L, "cannot run a system here: C stack overflow");
}

bool tpl_drive(lua_State *L, tpl_host *h, tp_ref *slot) {
  bool reaches = true;
  check_stacks(L);
  if (!h->is_virtual) have_loop(L, h);
  tpl_have_watchdog(L, h);
  h->driving = true;
  while (!reached(h, slot)) {
    pass_deadlines(h);
    run_ready(L, h);
    if (tp_ready(h->system)) {
      let_loop_run(h);
    } else if (!reached(h, slot) && !sleep_until_deadline(h)) {
      reaches = false;
      break;
    }
  }
  h->driving = false;
  return reaches;
}

static bool is_due(const tpl_host *h) {
  tp_time due = tp_next_deadline(h->system);
  return due != TP_NEVER && due <= h->now;
}

void tpl_settle(lua_State *L, tpl_host *h) {
  check_stacks(L);
  h->driving = true;
  do {
    pass_deadlines(h);
    h->polled = h->now;
    run_ready(L, h);
  } while (tp_ready(h->system) || is_due(h));
  h->driving = false;
}
