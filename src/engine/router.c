#include "router.h"

#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "events.h"
#include "gather.h"
#include "lifecycle.h"
#include "mailbox.h"
#include "metrics.h"
#include "strategy.h"
#include "stream.h"
#include "supervision.h"
#include "system.h"
#include "value.h"

/* A pool that loses routees faster than this stops respawning them, or it would do nothing else. */
enum { RESPAWN_LIMIT = 10 };
#define RESPAWN_WINDOW (60000 * TP_MILLISECOND)

/* ---- The pool --------------------------------------------------------------------------- */

int tp_router_new(tp_actor *a) {
  tp_system *s = a->ref.system;
  uint32_t size = tp_router_spec(a)->size;
  tp_router *r = tp_alloc(s, sizeof *r);
  if (r == NULL) return TP_ENOMEM;
  a->router = r;
  tp_list_init(&r->gathers);
  r->routees = tp_alloc(s, size * sizeof *r->routees);
  r->capacity = r->routees == NULL ? 0 : size;
  if (tp_router_spec(a)->routing == TP_ROUTE_HEDGED) {
    r->hedging = tp_hedging_new(s, &tp_router_spec(a)->gathering);
    if (r->hedging == NULL) goto fail;
  }
  if (r->routees != NULL) return TP_OK;
fail:
  tp_router_free(a);
  return TP_ENOMEM;
}

static uint32_t index_of(const tp_router *r, const tp_actor *routee) {
  uint32_t i = 0;
  while (i < r->count && r->routees[i].actor != routee) i++;
  return i;
}

/* Keeps the routees in the order of their numbers, and the turns where they are. */
static void add(tp_router *r, tp_routee routee) {
  uint32_t at = r->count;
  while (at > 0 && r->routees[at - 1].number > routee.number) at--;
  memmove(r->routees + at + 1, r->routees + at, (r->count - at) * sizeof routee);
  r->routees[at] = routee;
  r->count++;
  if (at < r->next) r->next++;
}

static void remove_at(tp_router *r, uint32_t at) {
  tp_actor *gone = r->routees[at].actor;
  r->count--;
  memmove(r->routees + at, r->routees + at + 1, (r->count - at) * sizeof *r->routees);
  if (at < r->next) r->next--;
  if (r->next >= r->count) r->next = 0;
  tp_ref_release(&gone->ref);
}

static int spawn_routee(tp_actor *a, uint32_t number) {
  char name[32];
  int length = snprintf(name, sizeof name, "routee-%u", number);
  tp_routee routee = {.number = number};
  int status = tp_actor_spawn(a, tp_router_spec(a)->routee, name, (size_t)length, &routee.actor);
  if (status == TP_OK) add(a->router, routee);
  return status;
}

int tp_router_fill(tp_actor *a) {
  a->router->next = 0;
  a->router->routed = 0;
  for (uint32_t i = 1; i <= tp_router_spec(a)->size; i++) {
    int status = spawn_routee(a, i);
    if (status != TP_OK) return status;
  }
  return TP_OK;
}

size_t tp_routees(const tp_ref *router, tp_ref **out, size_t size) {
  const tp_router *r = tp_actor_look(router)->router;
  if (r == NULL) return 0;
  for (size_t i = 0; i < r->count && i < size; i++) out[i] = &r->routees[i].actor->ref;
  return r->count;
}

/* ---- Routing ---------------------------------------------------------------------------- */

bool tp_router_gathers(const tp_actor *a) {
  return tp_router_spec(a)->routing >= TP_ROUTE_FIRST_COMPLETED;
}

/* Tells a copy of `e`, which stays in the router's hand. */
static void forward(tp_actor *a, const tp_envelope *e, tp_ref *routee) {
  tp_value_retain(a->ref.system, e->message);
  tp_mail_send(routee, e->message, e->sender);
}

/* The last copy: whoever gets it answers for the request from here on, also by refusing it. */
static void forward_last(tp_actor *a, tp_envelope *e, tp_ref *routee) {
  tp_mail_let_go(e);
  forward(a, e, routee);
  tp_envelope_release(a->ref.system, e);
}

/* A routee that this stops leaves the pool, and the next one takes its place. */
static void broadcast(tp_actor *a, tp_envelope *e) {
  const tp_router *r = a->router;
  uint32_t i = 0;
  while (i + 1 < r->count) {
    const tp_actor *routee = r->routees[i].actor;
    forward(a, e, &r->routees[i].actor->ref);
    if (r->routees[i].actor == routee) i++;
  }
  forward_last(a, e, &r->routees[i].actor->ref);
}

static bool ask_strategy(tp_actor *a, tp_job *job, tp_envelope *e) {
  job->envelope = *e;
  job->code = tp_router_spec(a)->strategy;
  job->index = a->router->routed++;
  return true;
}

bool tp_router_route(tp_actor *a, tp_job *job, tp_envelope *e) {
  tp_router *r = a->router;
  tp_count_routed(a->ref.system, tp_router_spec(a)->routing);
  bool to_all = e->message.flags >= TP_BROADCAST;
  if (to_all) e->message.flags = (uint8_t)(e->message.flags - TP_BROADCAST);
  bool gathers = !to_all && tp_router_gathers(a);
  bool spreads = to_all || gathers || tp_router_spec(a)->routing == TP_ROUTE_BROADCAST;
  if (spreads && r->count > 0 && tp_stream_asks(e->sender)) {
    tp_stream_spread(a, e, tp_router_spec(a)->gathering.cancel_losers);
  } else if (gathers) {
    tp_gather_start(a, e);
  } else if (r->count == 0) {
    tp_mail_unroutable(a, e, "no-routees", false);
  } else if (spreads) {
    broadcast(a, e);
  } else if (tp_router_spec(a)->routing == TP_ROUTE_CUSTOM) {
    return ask_strategy(a, job, e);
  } else {
    uint32_t at = tp_strategy_pick(tp_router_spec(a)->routing)(a);
    forward_last(a, e, &r->routees[at].actor->ref);
  }
  return false;
}

void tp_routed(tp_job *job, tp_ref *const *routees, size_t count) {
  tp_actor *a = tp_actor_of(job->actor);
  a->job = NULL;
  if (count == 0) { /* dropped, as the strategy wants (RTR-10) */
    tp_mail_handled(job->system, &job->envelope);
    return;
  }
  for (size_t i = 0; i + 1 < count; i++) forward(a, &job->envelope, routees[i]);
  forward_last(a, &job->envelope, routees[count - 1]);
}

void tp_router_strategy_failed(tp_job *job, tp_value reason, tp_value trace) {
  tp_actor *a = tp_actor_of(job->actor);
  tp_system *s = job->system;
  a->job = NULL;
  tp_events_publish(s, &(tp_event){.kind = TP_EVENT_HOOK_FAILED,
                                   .code = "strategy",
                                   .subject = job->actor,
                                   .value = reason,
                                   .trace = trace});
  tp_value_release(s, reason);
  tp_value_release(s, trace);
  tp_mail_unroutable(a, &job->envelope, "strategy-error", true);
}

/* ---- Routees that stop ------------------------------------------------------------------ */

void tp_router_routee_closed(tp_actor *a, const tp_actor *routee) {
  if (tp_router_spec(a)->on_routee_stop == TP_ROUTEE_KEEP) return;
  uint32_t at = index_of(a->router, routee);
  if (at < a->router->count) remove_at(a->router, at);
}

static bool may_respawn(tp_actor *a) {
  if (tp_router_spec(a)->on_routee_stop != TP_ROUTEE_RESPAWN || a->closed ||
      a->phase != TP_PHASE_RUNNING || tp_system_stopping(a->ref.system)) {
    return false;
  }
  if (tp_window_grant(a->ref.system, &a->router->respawns, RESPAWN_LIMIT, RESPAWN_WINDOW)) {
    return true;
  }
  tp_events_publish(
      a->ref.system,
      &(tp_event){.kind = TP_EVENT_WARNING, .code = "respawn-limit", .subject = &a->ref});
  return false;
}

void tp_router_routee_gone(tp_actor *a, const tp_actor *routee) {
  unsigned number;
  if (!routee->named || !may_respawn(a) || sscanf(routee->label.name, "routee-%u", &number) != 1)
    return;
  if (spawn_routee(a, number) != TP_OK) {
    tp_events_publish(
        a->ref.system,
        &(tp_event){.kind = TP_EVENT_WARNING, .code = "respawn-failed", .subject = &a->ref});
  }
}

/* ---- The end ---------------------------------------------------------------------------- */

static void forget_routees(tp_router *r) {
  while (r->count > 0) remove_at(r, r->count - 1);
}

void tp_router_close(tp_actor *a) {
  tp_gathers_stop(a);
  forget_routees(a->router);
}

void tp_router_free(tp_actor *a) {
  tp_system *s = a->ref.system;
  tp_router *r = a->router;
  tp_gathers_forget(a);
  forget_routees(r);
  tp_window_fini(s, &r->respawns);
  if (r->hedging != NULL) tp_hedging_free(s, r->hedging);
  tp_free(s, r->routees, r->capacity * sizeof *r->routees);
  tp_free(s, r, sizeof *r);
  a->router = NULL;
}
