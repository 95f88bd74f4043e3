#include "router.h"

#include <string.h>

#include "alloc.h"
#include "events.h"
#include "fault.h"
#include "gather.h"
#include "group.h"
#include "hash.h"
#include "mailbox.h"
#include "metrics.h"
#include "pool.h"
#include "resizer.h"
#include "strategy.h"
#include "stream.h"
#include "system.h"
#include "value.h"

/* ---- Routees ---------------------------------------------------------------------------- */

int tp_router_new(tp_actor *a) {
  tp_system *s = a->ref.system;
  uint32_t size = tp_router_spec(a)->size;
  tp_router *r = tp_alloc(s, sizeof *r);
  if (r == NULL) return TP_ENOMEM;
  a->router = r;
  a->routes = true;
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

int tp_router_fill(tp_actor *a) {
  a->router->next = 0;
  a->router->routed = 0;
  if (!tp_router_is_group(a)) return tp_pool_fill(a);
  tp_group_fill(a);
  return TP_OK;
}

void tp_router_drop(tp_router *r, uint32_t at) {
  tp_actor *gone = r->routees[at].actor;
  r->count--;
  memmove(r->routees + at, r->routees + at + 1, (r->count - at) * sizeof *r->routees);
  if (at < r->next) r->next--;
  if (r->next >= r->count) r->next = 0;
  tp_ref_release(&gone->ref);
}

void tp_router_drop_all(tp_router *r) {
  while (r->count > 0) tp_router_drop(r, r->count - 1);
}

size_t tp_routees(const tp_ref *router, tp_ref **out, size_t size) {
  const tp_router *r = tp_actor_look(router)->router;
  if (r == NULL) return 0;
  for (size_t i = 0; i < r->count && i < size; i++) out[i] = &r->routees[i].actor->ref;
  return r->count;
}

/* ---- Requests (RTR-15) ------------------------------------------------------------------- */

static tp_value list_of_routees(const tp_actor *a) {
  tp_system *s = a->ref.system;
  const tp_router *r = a->router;
  tp_bundle *b = tp_bundle_new(s, r->count);
  if (b == NULL) return tp_out_of_memory(s);
  for (uint32_t i = 0; i < r->count; i++) {
    tp_ref *routee = &r->routees[i].actor->ref;
    tp_ref_retain(routee);
    b->item[i] = (tp_value){.type = TP_REF, .as.ref = routee};
  }
  return tp_bundle_as_value(b);
}

static tp_value resize(tp_actor *a, int64_t change) {
  tp_system *s = a->ref.system;
  tp_router *r = a->router;
  if (tp_router_is_group(a)) return tp_fault_value(s, "not-a-pool", &a->ref);
  if (change < 0) {
    tp_pool_remove(a, change < -(int64_t)r->count ? r->count : (uint32_t)-change);
  } else if (change > TP_ROUTEES_MAX - (int64_t)r->count) {
    return tp_fault_value(s, "too-many-routees", &a->ref);
  } else if (tp_terminating(s)) {
    return tp_fault_value(s, "system-terminated", &a->ref);
  } else if (tp_pool_add(a, (uint32_t)change) != TP_OK) {
    return tp_out_of_memory(s);
  }
  return tp_integer(r->count);
}

/* Does what is asked, whoever hears of it. */
static void serve(tp_actor *a, tp_envelope *e) {
  int64_t change = e->message.as.integer;
  tp_value answer = change == 0 ? list_of_routees(a) : resize(a, change);
  if (e->sender != NULL && e->sender != &a->ref) {
    tp_mail_send(e->sender, answer, &a->ref);
  } else {
    tp_value_release(a->ref.system, answer);
  }
  tp_mail_handled(a->ref.system, e);
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
static void forward_last(const tp_envelope *e, tp_ref *routee) {
  tp_mail_let_go(e);
  tp_mail_send(routee, e->message, e->sender);
  if (e->sender != NULL) tp_ref_release(e->sender);
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
  forward_last(e, &r->routees[i].actor->ref);
}

/* To the routee that the strategy picks; there is one. */
static void pass_on(tp_actor *a, tp_envelope *e) {
  uint32_t at = tp_strategy_pick(tp_router_spec(a)->routing)(a);
  forward_last(e, &a->router->routees[at].actor->ref);
}

static bool ask(tp_actor *a, tp_job *job, tp_job_kind kind, tp_envelope *e) {
  job->kind = kind;
  job->envelope = *e;
  job->code = tp_router_spec(a)->strategy;
  job->index = a->router->routed++;
  return true;
}

bool tp_router_route(tp_actor *a, tp_job *job, tp_envelope *e) {
  const tp_behavior_spec *spec = tp_router_spec(a);
  bool to_all = e->message.flags >= TP_BROADCAST;
  if (spec->members != NULL) tp_group_look(a);
  if (!to_all && e->message.type == TP_POOL_REQUEST) {
    serve(a, e);
    return false;
  }
  tp_count_routed(a->ref.system, spec->routing);
  if (spec->resizer != NULL) tp_resizer_count(a);
  if (to_all) e->message.flags = (uint8_t)(e->message.flags - TP_BROADCAST);
  bool gathers = !to_all && tp_router_gathers(a);
  bool spreads = to_all || gathers || spec->routing == TP_ROUTE_BROADCAST;
  if (spreads && a->router->count > 0 && tp_stream_asks(e->sender)) {
    tp_stream_spread_to_all(a, e);
  } else if (gathers) {
    tp_gather_start(a, e);
  } else if (a->router->count == 0) {
    tp_mail_unroutable(a, e, "no-routees");
  } else if (spreads) {
    broadcast(a, e);
  } else if (spec->routing == TP_ROUTE_CUSTOM) {
    return ask(a, job, TP_JOB_ROUTE, e);
  } else if (spec->routing == TP_ROUTE_CONSISTENT_HASHING) {
    return ask(a, job, TP_JOB_HASH, e);
  } else {
    pass_on(a, e);
  }
  return false;
}

void tp_routed(tp_job *job, tp_ref *const *routees, size_t count) {
  tp_actor *a = tp_actor_of(job->actor);
  a->job = NULL;
  if (count == 0) { /* dropped, as the strategy wants (RTR-10) */
    tp_mail_handled(job->system, &job->envelope);
  } else if (count > 1 && tp_stream_asks(job->envelope.sender)) {
    tp_stream_spread(&job->envelope, routees, count, false);
  } else {
    for (size_t i = 0; i + 1 < count; i++) forward(a, &job->envelope, routees[i]);
    forward_last(&job->envelope, routees[count - 1]);
  }
}

void tp_hashed(tp_job *job, const void *key, size_t length) {
  tp_actor *a = tp_actor_of(job->actor);
  a->job = NULL;
  if (a->router->count == 0) { /* what was asked has stopped them */
    tp_mail_unroutable(a, &job->envelope, "no-routees");
    return;
  }
  a->router->key = tp_hash(key, length);
  pass_on(a, &job->envelope);
}

/* What an asker is told: the one member is what was raised (taken). */
static tp_value routing_failure(tp_actor *a, const char *code, tp_value reason) {
  tp_system *s = a->ref.system;
  tp_fault *f = tp_fault_new(s, code, &a->ref, 1);
  if (f == s->out_of_memory) {
    tp_value_release(s, reason);
  } else {
    tp_fault_put(f, 0, reason);
  }
  return tp_fault_as_value(f);
}

void tp_router_strategy_failed(tp_job *job, tp_value reason, tp_value trace) {
  tp_actor *a = tp_actor_of(job->actor);
  tp_system *s = job->system;
  bool is_key = job->kind == TP_JOB_HASH;
  a->job = NULL;
  tp_events_publish(s, &(tp_event){.kind = TP_EVENT_HOOK_FAILED,
                                   .code = is_key ? "hash_key" : "strategy",
                                   .subject = job->actor,
                                   .value = reason,
                                   .trace = trace});
  tp_value_release(s, trace);
  tp_value failure = routing_failure(a, is_key ? "hash-key-error" : "strategy-error", reason);
  tp_mail_misrouted(a, &job->envelope, failure);
}

/* ---- The end ---------------------------------------------------------------------------- */

void tp_router_close(tp_actor *a) {
  tp_gathers_stop(a);
  tp_router_drop_all(a->router);
}

void tp_router_free(tp_actor *a) {
  tp_system *s = a->ref.system;
  tp_router *r = a->router;
  tp_gathers_forget(a);
  tp_router_drop_all(r);
  tp_window_fini(s, &r->respawns);
  if (r->hedging != NULL) tp_hedging_free(s, r->hedging);
  tp_free(s, r->routees, r->capacity * sizeof *r->routees);
  tp_free(s, r, sizeof *r);
  a->router = NULL;
  a->routes = false;
}
