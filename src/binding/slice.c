/* The slice: one coroutine runs job after job. A handler that waits takes the coroutine with it,
 * and the slice goes on in another; its continuation here reports the end, and it goes on as a
 * slice. */
#include <string.h>

#include "binding.h"

/* Places on a slice's stack. */
enum { ANCHORS = 1, FIRST_FREE };

static int job_ended(lua_State *L, int status, lua_KContext context);

/* ---- Calls that may wait ---------------------------------------------------------------- */

static void call(lua_State *L, tpl_coro *c, int arguments, int results) {
  lua_callk(L, arguments, results, (lua_KContext)c, job_ended);
}

/* What the actor's behavior anchors, without the way over aux. */
static void push_anchor(lua_State *L, tp_value v) {
  lua_rawgeti(L, ANCHORS, (lua_Integer)v.as.host);
}

static void push_actor(lua_State *L, tpl_coro *c) {
  tp_value state = tp_actor_state(c->job.actor);
  if (state.type == TP_HOST) {
    push_anchor(L, state);
  } else {
    tpl_push_actor(L, c->host, c->job.actor);
  }
}

static void push_message(lua_State *L, tpl_coro *c) {
  tp_value message = c->job.envelope.message;
  if (message.flags >= TP_BROADCAST) {
    tpl_push_value(L, c->host, message);
  } else if (message.type == TP_INTEGER) {
    lua_pushinteger(L, message.as.integer);
  } else if (message.type == TP_HOST) {
    push_anchor(L, message);
  } else {
    tpl_push_value(L, c->host, message);
  }
}

/* Leaves the stack as it was. */
static void receive(lua_State *L, tpl_coro *c) {
  push_anchor(L, c->job.code);
  push_actor(L, c);
  push_message(L, c);
  call(L, c, 2, 0);
  tp_done(&c->job);
}

/* Pushes the hook's function, or the one that stands in for it. */
static bool push_hook(lua_State *L, tpl_coro *c, const char *name, const char *other) {
  push_anchor(L, tp_behavior_look(c->job.behavior)->code);
  bool own = lua_getfield(L, -1, name) != LUA_TNIL;
  if (!own) {
    lua_pop(L, 1);
    lua_getfield(L, -1, other);
  }
  lua_remove(L, -2);
  push_actor(L, c);
  return own;
}

static void run_hook(lua_State *L, tpl_coro *c) {
  switch (c->job.kind) {
    case TP_JOB_PRE_START:
      push_hook(L, c, "pre_start", "pre_start");
      call(L, c, 1, 0);
      break;
    case TP_JOB_POST_STOP:
      push_hook(L, c, "post_stop", "post_stop");
      call(L, c, 1, 0);
      break;
    case TP_JOB_PRE_RESTART:
      if (push_hook(L, c, "pre_restart", "post_stop")) {
        tpl_push_value(L, c->host, c->job.reason);
        tpl_push_value(L, c->host, c->job.envelope.message);
        call(L, c, 3, 0);
      } else {
        call(L, c, 1, 0);
      }
      break;
    default:
      if (push_hook(L, c, "post_restart", "pre_start")) {
        tpl_push_value(L, c->host, c->job.reason);
        call(L, c, 2, 0);
      } else {
        call(L, c, 1, 0);
      }
      break;
  }
}

static void run_timer(lua_State *L, tpl_coro *c) {
  tpl_push_value(L, c->host, c->job.code);
  call(L, c, 0, 0);
}

static void run_task(lua_State *L, tpl_coro *c) {
  c->task = tpl_task_of(c->job.token);
  call(L, c, tpl_task_begin(L, c), LUA_MULTRET);
}

/* The job in hand has returned. */
static void finish(lua_State *L, tpl_coro *c) {
  if (c->task != NULL) {
    tpl_task_returned(L, c->task, FIRST_FREE);
    c->task = NULL;
  } else {
    tp_done(&c->job);
  }
}

static int job_ended(lua_State *L, int status, lua_KContext context) {
  tpl_coro *c = (tpl_coro *)context;
  (void)status;
  finish(L, c);
  return 0;
}

/* ---- Handlers that are measured --------------------------------------------------------- */

static int handler_ended(lua_State *L, int status, lua_KContext context) {
  tpl_coro *c = (tpl_coro *)context;
  (void)L;
  (void)status;
  tpl_measured(c);
  tp_done(&c->job);
  return 0;
}

/* Laid out apart, so that where nothing is measured nothing is paid. */
#ifdef __GNUC__
#define TPL_RARE __attribute__((cold, noinline))
#else
#define TPL_RARE
#endif

/* As receive and finish. */
TPL_RARE static void receive_measured(lua_State *L, tpl_coro *c) {
  tpl_measure(c);
  push_anchor(L, c->job.code);
  push_actor(L, c);
  push_message(L, c);
  lua_callk(L, 2, 0, (lua_KContext)c, handler_ended);
  handler_ended(L, LUA_OK, (lua_KContext)c);
}

/* ---- Calls that may not wait ------------------------------------------------------------ */

static void fail_with(lua_State *L, tpl_coro *c) {
  tp_fail(&c->job, tpl_value_plain(L, c->host, lua_gettop(L)), tp_nil());
}

static void decide(lua_State *L, tpl_coro *c) {
  static const char *const names[] = {"resume", "restart", "stop", "escalate", NULL};
  push_anchor(L, c->job.code);
  tpl_push_value(L, c->host, c->job.reason);
  if (!tpl_call_plainly(L, c->host, &c->job, "the decider", 1)) return;
  const char *answer = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
  for (int i = 0; names[i] != NULL; i++) {
    if (strcmp(names[i], answer) == 0) {
      tp_decided(&c->job, (tp_directive)i);
      return;
    }
  }
  lua_pushfstring(L, "the decider gave no directive (got %s)", luaL_tolstring(L, -1, NULL));
  fail_with(L, c);
}

static void publish(lua_State *L, tpl_coro *c) {
  tpl_push_aux(L, c->host, TPL_ON_EVENT);
  int arguments = tpl_push_event(L, c->host, &c->job.event);
  if (tpl_call_plainly(L, c->host, &c->job, NULL, arguments)) tp_done(&c->job);
}

/* (priority function, message) -> rank                                                MBX-7 */
static int rank_of(lua_State *L) {
  lua_call(L, 1, 1);
  bool is_number = lua_type(L, -1) == LUA_TNUMBER;
  if (is_number && lua_tonumber(L, -1) == lua_tonumber(L, -1)) return 1;
  return luaL_error(L, "the priority function must give a number (got %s)",
                    is_number ? "NaN" : luaL_typename(L, -1));
}

static void rank(lua_State *L, tpl_host *h, tp_job *job) {
  lua_pushcfunction(L, rank_of);
  tpl_push_value(L, h, job->code);
  tpl_push_value(L, h, job->envelope.message);
  if (!tpl_call_plainly(L, h, job, "the priority function", 2)) return;
  tp_ranked(job, lua_tonumber(L, -1));
}

typedef struct ranking {
  tpl_host *host;
  tp_job job;
} ranking;

static int rank_now(lua_State *L) {
  ranking *r = lua_touserdata(L, 1);
  rank(L, r->host, &r->job);
  return 0;
}

/* The host counts as being driven meanwhile: the function may not wait, whoever tells. What it tells
 * in its turn is ranked later, or there would be no end to the depth of this. */
void tpl_rank_told(lua_State *L, tpl_host *h, tp_ref *target) {
  ranking r = {.host = h};
  if (h->ranking || !tp_rank_next(target, &r.job)) return;
  bool was_driving = h->driving;
  h->driving = h->ranking = true;
  lua_pushcfunction(L, rank_now);
  lua_pushlightuserdata(L, &r);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
    lua_pop(L, 1);
    tp_fail(&r.job, tp_out_of_memory(h->system), tp_nil());
  }
  h->driving = was_driving;
  h->ranking = false;
}

/* ---- The loop --------------------------------------------------------------------------- */

/* Runs the job in hand to its end. May leave something on the stack. */
static void run(lua_State *L, tpl_coro *c) {
  tpl_host *h = c->host;
  switch (c->job.kind) {
    case TP_JOB_RECEIVE: receive_measured(L, c); return;
    case TP_JOB_PRE_START:
    case TP_JOB_POST_STOP:
    case TP_JOB_PRE_RESTART:
    case TP_JOB_POST_RESTART: run_hook(L, c); break;
    case TP_JOB_TIMER: run_timer(L, c); break;
    case TP_JOB_DECIDE: decide(L, c); return;
    case TP_JOB_ROUTE: tpl_ask_strategy(L, c); return;
    case TP_JOB_HASH: tpl_ask_key(L, c); return;
    case TP_JOB_RANK: rank(L, h, &c->job); return;
    case TP_JOB_EVENT: publish(L, c); return;
    case TP_JOB_CLOSE: tpl_switch(L, h, &c->job); return;
    case TP_JOB_RESUME:
      if (*(tpl_waiter *)c->job.token == TPL_WAITER_TASK) {
        run_task(L, c);
        break;
      }
      tpl_switch(L, h, &c->job);
      return;
  }
  finish(L, c);
}

static int slice_loop(lua_State *L, tpl_coro *c) {
  tpl_host *h = c->host;
  for (;;) {
    if (--h->budget <= 0) {
      tpl_look_at_clock(h);
      if (h->slice_over) return 0;
    }
    if (!tp_next(h->system, &c->job)) {
      h->slice_over = true;
      return 0;
    }
    h->stretches++;
    if (c->job.kind == TP_JOB_RECEIVE && !h->measures) {
      receive(L, c);
    } else {
      run(L, c);
      lua_settop(L, ANCHORS);
    }
  }
}

int tpl_slice(lua_State *L) {
  tpl_coro *c = lua_touserdata(L, 1);
  lua_settop(L, 0);
  tpl_push_aux(L, c->host, TPL_ANCHORS);
  return slice_loop(L, c);
}
