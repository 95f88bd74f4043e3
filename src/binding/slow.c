/* Handlers that run for too long without a wait are reported while they do (DISP-4). The watchdog
 * finds them and interrupts the thread that runs them; a hook there makes Lua call us at its next
 * instruction, as Lua's own interpreter does to break off a program. */
#include "binding.h"

/* ---- The report ------------------------------------------------------------------------- */

typedef struct finding {
  tpl_host *host;
  int64_t time;
  int level; /* of the function that was interrupted, on the stack of whoever reports */
} finding;

/* It goes where the engine's events go, and looks like one, but goes there at once. */
static int report(lua_State *L) {
  finding *f = lua_touserdata(L, 1);
  tp_ref *actor = f->host->current->job.actor;
  tpl_push_aux(L, f->host, TPL_ON_EVENT);
  lua_pushliteral(L, "slow_handler");
  if (actor == NULL) {
    lua_pushnil(L);
  } else {
    tpl_push_ref(L, f->host, actor);
  }
  lua_pushinteger(L, f->time / TP_MILLISECOND);
  lua_pushnil(L);
  lua_pushnil(L);
  tpl_push_traceback(L, L, f->level);
  lua_call(L, 6, 0);
  return 0;
}

/* What subscribers and logs do about it must neither wait nor raise here. */
void tpl_look_at_slow(lua_State *L, tpl_host *h, int level) {
  if (h == NULL || h->current == NULL) return;
  finding f = {h, tp_watchdog_take(h->watchdog), level};
  if (f.time == 0) return;
  lua_pushcfunction(L, report);
  lua_pushlightuserdata(L, &f);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) lua_pop(L, 1); /* out of memory or of C stack */
}

/* ---- The hook --------------------------------------------------------------------------- */

/* The user's own hook goes on where it was. A coroutine that was made meanwhile has ours from the one
 * that made it, and gets what that one had. */
static void on_hook(lua_State *L, lua_Debug *where) {
  (void)where;
  tpl_host *h = tpl_state_of(L)->running;
  tpl_hook own = h != NULL && h->current != NULL ? h->current->hook : (tpl_hook){0};
  lua_sethook(L, own.function, own.mask, own.count);
  tpl_look_at_slow(L, h, 1);
}

/* Called in a signal handler: lua_sethook is made for that, and what else is called only reads. */
static void interrupt(void *host) {
  tpl_host *h = host;
  tpl_coro *c = h->current;
  if (c == NULL || lua_gethook(c->L) == on_hook) return;
  if (h->core->state->budget != NULL) return; /* there is a hook, which looks */
  c->hook = (tpl_hook){lua_gethook(c->L), lua_gethookmask(c->L), lua_gethookcount(c->L)};
  lua_sethook(c->L, on_hook, LUA_MASKCOUNT, 1);
}

/* ---- Coroutines in handlers ------------------------------------------------------------- */

/* Which coroutine of the user's own a handler runs is not known to us, so it gets no hook. But the
 * collector calls finalizers on whatever runs. So there is an object that is always garbage, one a
 * cycle, until the last watchdog goes, or one comes when there is no C stack left for its call. */
static int canary_gc(lua_State *L) {
  tpl_state *state = tpl_state_of(L);
  tpl_look_at_slow(L, state->running, 2);
  state->canary = false;
  if (state->watched == 0) return 0;
  (void)lua_newuserdatauv(L, 0, 0);
  lua_getmetatable(L, 1);
  lua_setmetatable(L, -2);
  state->canary = true;
  return 0;
}

static void have_canary(lua_State *L, tpl_state *state) {
  if (state->canary) return;
  (void)lua_newuserdatauv(L, 0, 0);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, canary_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_pop(L, 1);
  state->canary = true;
}

/* ---- The watchdog ----------------------------------------------------------------------- */

void tpl_have_watchdog(lua_State *L, tpl_host *h) {
  if (h->slow_after == 0) return;
  have_canary(L, h->core->state);
  h->watchdog = tp_watchdog_new(&h->stretches, h->slow_after, interrupt, h);
  h->slow_after = 0;
  if (h->watchdog != NULL) h->core->state->watched++;
}

void tpl_drop_watchdog(tpl_host *h) {
  if (h->watchdog == NULL) return;
  tp_watchdog_free(h->watchdog);
  h->watchdog = NULL;
  h->core->state->watched--;
}
