/* What a system counts, for the Lua side to show; and how long handlers take, which is measured here,
 * since the engine has no clock (MET-2). */
#include "binding.h"

/* ---- Handlers --------------------------------------------------------------------------- */

void tpl_measure(tpl_coro *c) {
  tp_metrics_delivered(c->host->system);
  c->began = tpl_clock(c->host);
}

void tpl_measured(tpl_coro *c) {
  tpl_host *h = c->host;
  if (!h->measures || c->job.kind != TP_JOB_RECEIVE) return;
  tp_metrics_handled(h->system, tpl_clock(h) - c->began);
}

/* ---- Shown to Lua ----------------------------------------------------------------------- */

static void set_number(lua_State *L, const char *name, uint64_t n) {
  lua_pushinteger(L, (lua_Integer)n);
  lua_setfield(L, -2, name);
}

static lua_Number seconds(uint64_t nanoseconds) { return (lua_Number)nanoseconds / 1e9; }

/* Sets a table: bounds, sum, and counts, of which there is one more than of bounds. */
static void set_histogram(lua_State *L, const char *name, const tp_histogram *histogram) {
  lua_createtable(L, 0, 3);
  lua_createtable(L, TP_HISTOGRAM_BOUNDS, 0);
  lua_createtable(L, TP_HISTOGRAM_BOUNDS + 1, 0);
  for (int i = 0; i <= TP_HISTOGRAM_BOUNDS; i++) {
    lua_pushinteger(L, (lua_Integer)histogram->counts[i]);
    lua_rawseti(L, -2, i + 1);
    if (i == TP_HISTOGRAM_BOUNDS) break;
    lua_pushnumber(L, seconds((uint64_t)tp_histogram_bounds[i]));
    lua_rawseti(L, -3, i + 1);
  }
  lua_setfield(L, -3, "counts");
  lua_setfield(L, -2, "bounds");
  lua_pushnumber(L, seconds(histogram->sum));
  lua_setfield(L, -2, "sum");
  lua_setfield(L, -2, name);
}

/* Sets a table of counts by label; what has no label is left out. */
static void set_counts(lua_State *L, const char *name, const char *const *labels,
                       const uint64_t *counts, int n) {
  lua_createtable(L, 0, n);
  for (int i = 0; i < n; i++) {
    if (labels[i] != NULL) set_number(L, labels[i], counts[i]);
  }
  lua_setfield(L, -2, name);
}

/* core.metrics(system) -> a table, or nil for a system that does not count */
static int core_metrics(lua_State *L) {
  static const char *const outcomes[TP_COUNTERS] = {
      [TP_COUNT_GATHER_FIRST] = "first",     [TP_COUNT_GATHER_ENOUGH] = "enough",
      [TP_COUNT_GATHER_TIMEOUT] = "timeout", [TP_COUNT_GATHER_ALL_FAILED] = "all-failed",
      [TP_COUNT_GATHER_STOPPED] = "stopped", [TP_COUNT_GATHER_NO_REPLY_TARGET] = "no-reply-target",
  };
  static const char *const hedges[TP_COUNTERS] = {
      [TP_COUNT_HEDGE_SENT] = "sent",
      [TP_COUNT_HEDGE_WON] = "won",
      [TP_COUNT_HEDGE_REFUSED] = "refused",
  };
  tpl_host *h = tpl_check_host(L, 1, "metrics");
  const tp_metrics *m = tp_system_metrics(h->system);
  tp_stats stats;
  if (m == NULL) return 0;
  tp_system_stats(h->system, &stats);
  lua_createtable(L, 0, 12);
  set_number(L, "created", m->counters[TP_COUNT_CREATED]);
  set_number(L, "restarted", m->counters[TP_COUNT_RESTARTED]);
  set_number(L, "terminated", m->counters[TP_COUNT_TERMINATED]);
  set_number(L, "delivered", m->counters[TP_COUNT_DELIVERED]);
  set_number(L, "queued", stats.queued);
  set_histogram(L, "handled", &m->handled);
  set_histogram(L, "gathered", &m->gathered);
  set_counts(L, "dropped", tpl_overflows, stats.dropped, TP_OVERFLOWS);
  set_counts(L, "dead_letters", tp_dead_letter_reasons, m->dead_letters, TP_DEAD_LETTER_REASONS);
  /* Every actor but a router has the first. */
  set_counts(L, "routed", tpl_routings + 1, m->routed + 1, TP_ROUTINGS - 1);
  set_counts(L, "outcomes", outcomes, m->counters, TP_COUNTERS);
  set_counts(L, "hedges", hedges, m->counters, TP_COUNTERS);
  return 1;
}

void tpl_open_metrics(lua_State *L, int core) {
  static const luaL_Reg functions[] = {{"metrics", core_metrics}, {NULL, NULL}};
  tpl_set_functions(L, core, functions);
}
