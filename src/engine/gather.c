#include "gather.h"

#include "alloc.h"
#include "events.h"
#include "fault.h"
#include "hedging.h"
#include "mailbox.h"
#include "metrics.h"
#include "router.h"
#include "stream.h"
#include "system.h"
#include "value.h"

static const tp_gathering *settings(const tp_gather *g) {
  return &tp_router_spec(g->router)->gathering;
}

/* ---- Legs ------------------------------------------------------------------------------- */

tp_slot *tp_gather_open_leg(tp_gather *g, tp_ref *routee, bool cancels) {
  tp_slot *leg = tp_slot_open_leg(g->system, routee, g);
  if (leg == NULL) return NULL;
  leg->budget = g->timeout;
  leg->cancels = cancels;
  tp_list_append(&g->legs, &leg->open);
  return leg;
}

void tp_gather_ask(tp_slot *leg, tp_value message) {
  tp_value_retain(leg->ref.system, message);
  tp_ref_retain(&leg->ref);
  int status = tp_tell(leg->target, message, &leg->ref);
  if (status != TP_OK) {
    tp_slot_fail(&leg->ref, status == TP_EFULL ? "mailbox-full" : "out-of-memory");
  }
  tp_ref_release(&leg->ref);
}

void tp_gather_expire_leg(tp_slot *leg) {
  if (leg->settled) return;
  tp_ref_retain(&leg->ref);
  tp_slot_expire(leg);
  if (leg->cancels) tp_slot_cancel(leg);
  tp_ref_release(&leg->ref);
}

void tp_gather_release_legs(tp_gather *g, bool cancel) {
  while (!tp_list_empty(&g->legs)) {
    tp_slot *leg = tp_leg_at(g->legs.next);
    bool lost = cancel && !leg->settled && leg->cancels;
    tp_list_remove(&leg->open);
    leg->settled = true; /* late replies vanish (SG-3) */
    leg->gather = NULL;
    if (lost) tp_slot_cancel(leg);
    tp_slot_clear(&leg->ref); /* its ref may be kept for long */
    tp_ref_release(&leg->ref);
  }
}

/* ---- Callers that may be cancelled ------------------------------------------------------- */

static tp_slot *cancelling_caller(const tp_gather *g) {
  if (g->caller->kind != TP_REF_SLOT) return NULL;
  return tp_slot_of(g->caller)->cancels ? tp_slot_of(g->caller) : NULL;
}

static void link_to_caller(tp_gather *g) {
  tp_slot *caller = cancelling_caller(g);
  if (caller == NULL) return;
  g->next_asked = caller->asked;
  g->asked_link = &caller->asked;
  if (g->next_asked != NULL) g->next_asked->asked_link = &g->next_asked;
  caller->asked = g;
}

static void unlink_from_caller(tp_gather *g) {
  if (g->asked_link == NULL) return;
  *g->asked_link = g->next_asked;
  if (g->next_asked != NULL) g->next_asked->asked_link = g->asked_link;
}

/* ---- The end of a gather ---------------------------------------------------------------- */

static void end(tp_gather *g, bool cancel) {
  tp_system *s = g->system;
  s->scatters--;
  tp_timer_disarm(s, &g->deadline);
  tp_timer_disarm(s, &g->next);
  tp_list_remove(&g->link);
  unlink_from_caller(g);
  tp_list_remove(&g->news);
  tp_gather_release_legs(g, cancel);
  tp_value_release(s, g->message);
  tp_ref_release(g->caller);
  if (g->order != NULL) {
    for (uint32_t i = g->asked; i < g->size; i++) tp_ref_release(g->order[i]);
    tp_free(s, g->order, g->places * sizeof *g->order);
  }
  tp_free(s, g, sizeof *g);
}

void tp_gather_cancel(tp_gather *g) { end(g, true); }

/* Ends and answers the caller. Takes the value. The gather ends first: an answer that makes room in
 * a full mailbox may shed a request of this very gather. */
static void answer(tp_gather *g, tp_counter outcome, tp_value value, tp_ref *from) {
  tp_ref *caller = g->caller;
  tp_count(g->system, outcome);
  tp_metrics_gathered(g->system, g->system->now - g->began);
  tp_ref_retain(caller);
  tp_ref_retain(from);
  end(g, true);
  tp_mail_send(caller, value, from);
  tp_ref_release(from);
  tp_ref_release(caller);
}

static bool has_failed(const tp_slot *leg) { return leg->settled && leg->outcome.failed; }

/* What the failed legs gave, in the order they were asked (SG-5). */
static void put_members(const tp_gather *g, tp_fault *f) {
  uint32_t i = 0;
  for (tp_link *l = g->legs.next; l != &g->legs; l = l->next) {
    if (!has_failed(tp_leg_at(l))) continue;
    tp_fault_put(f, i++, tp_leg_at(l)->outcome.value);
    tp_leg_at(l)->outcome.value = tp_nil();
  }
}

/* And whom they asked; nil when memory is out. */
static tp_value failed_routees(const tp_gather *g) {
  tp_bundle *b = tp_bundle_new(g->system, g->failed);
  if (b == NULL) return tp_nil();
  uint32_t i = 0;
  for (tp_link *l = g->legs.next; l != &g->legs; l = l->next) {
    if (!has_failed(tp_leg_at(l))) continue;
    tp_ref_retain(tp_leg_at(l)->target);
    b->item[i++] = (tp_value){.type = TP_REF, .as.ref = tp_leg_at(l)->target};
  }
  return tp_bundle_as_value(b);
}

/* Answers with an aggregate. */
static void fail(tp_gather *g, tp_counter outcome, const char *code, bool with_members) {
  tp_system *s = g->system;
  tp_fault *f = tp_fault_new(s, code, &g->router->ref, with_members ? g->failed : 0);
  if (f != s->out_of_memory) {
    f->budget = g->timeout;
    f->asked = g->size;
    f->replied = g->replied;
    f->needed = g->needed;
    if (with_members) f->routees = failed_routees(g);
    if (with_members) put_members(g, f);
  }
  answer(g, outcome, tp_fault_as_value(f), &g->router->ref);
}

static tp_ref *who_replied(const tp_slot *leg) {
  return leg->outcome.from != NULL ? leg->outcome.from : leg->target;
}

static bool has_replied(const tp_slot *leg) { return leg->settled && !leg->outcome.failed; }

/* The replies, each with its routee, in the order they were asked (SG-17). */
static void answer_with_list(tp_gather *g) {
  tp_bundle *b = tp_bundle_new(g->system, 2 * g->replied);
  if (b == NULL) {
    answer(g, TP_COUNT_GATHER_ALL_FAILED, tp_out_of_memory(g->system), &g->router->ref);
    return;
  }
  b->pairs = true;
  uint32_t i = 0;
  for (tp_link *l = g->legs.next; l != &g->legs; l = l->next) {
    tp_slot *leg = tp_leg_at(l);
    if (!has_replied(leg)) continue;
    tp_ref *from = who_replied(leg);
    tp_ref_retain(from);
    b->item[i++] = (tp_value){.type = TP_REF, .as.ref = from};
    tp_bundle_put(b, i++, leg->outcome.value);
    leg->outcome.value = tp_nil();
  }
  answer(g, TP_COUNT_GATHER_ENOUGH, tp_bundle_as_value(b), &g->router->ref);
}

/* The reply of `leg`, in the name of whoever gave it (SG-1). */
static void answer_with_reply(tp_gather *g, tp_slot *leg) {
  tp_value value = leg->outcome.value;
  leg->outcome.value = tp_nil();
  tp_ref *from = who_replied(leg);
  tp_ref_retain(from);
  if (leg->hedge) tp_count(g->system, TP_COUNT_HEDGE_WON);
  answer(g, TP_COUNT_GATHER_FIRST, value, from);
  tp_ref_release(from);
}

static tp_slot *first_reply(tp_gather *g) {
  tp_link *l = g->legs.next;
  while (!has_replied(tp_leg_at(l))) l = l->next;
  return tp_leg_at(l);
}

static void succeed(tp_gather *g) {
  tp_hedging *hedging = g->router->router->hedging;
  tp_slot *first = first_reply(g);
  if (hedging != NULL) tp_hedging_answered(hedging, g->system->now - g->began, first->hedge);
  if (settings(g)->list) {
    answer_with_list(g);
  } else {
    answer_with_reply(g, first);
  }
}

/* Fails a gather that cannot have its replies any more (SG-5, SG-17). The count goes by the message
 * (SG-10): where some failed and the others were late, the time was not all that was short. */
static void fall_short(tp_gather *g) {
  bool nobody = g->replied == 0 && g->failed == g->size;
  if (nobody ? g->timed_out == g->failed : g->late) {
    fail(g, TP_COUNT_GATHER_TIMEOUT, nobody ? "scatter-timeout" : "scatter-late", true);
  } else {
    fail(g, TP_COUNT_GATHER_ALL_FAILED, nobody ? "scatter-failed" : "scatter-short", true);
  }
}

/* Ends what is decided. */
static void check(tp_gather *g) {
  if (g->replied >= g->needed) {
    succeed(g);
  } else if (g->size - g->failed < g->needed) {
    fall_short(g);
  }
}

/* ---- Asking ----------------------------------------------------------------------------- */

static bool one_after_another(const tp_gather *g) { return g->order != NULL; }

/* Nobody else can be asked. */
static void ask_no_more(tp_gather *g) {
  for (uint32_t i = g->asked; one_after_another(g) && i < g->size; i++) tp_ref_release(g->order[i]);
  g->size = g->due = g->asked;
  tp_timer_disarm(g->system, &g->next);
}

static tp_ref *take_from_order(tp_gather *g) {
  if (settings(g)->order == TP_ASK_AT_RANDOM) {
    uint64_t at = g->asked + tp_random(g->system, g->size - g->asked);
    tp_ref *drawn = g->order[at];
    g->order[at] = g->order[g->asked];
    g->order[g->asked] = drawn;
  }
  return g->order[g->asked];
}

/* Opens the leg that is to be asked next; without memory for it, those that are asked must do. */
static tp_slot *open_next(tp_gather *g) {
  tp_ref *routee = take_from_order(g);
  tp_slot *leg = tp_gather_open_leg(g, routee, settings(g)->cancel_losers);
  if (leg == NULL) return NULL;
  tp_ref_release(routee);
  leg->hedge = g->hedging;
  g->hedging = false;
  return leg;
}

static void arm_next(tp_gather *g) {
  const tp_hedging *hedging = g->router->router->hedging;
  tp_time delay = hedging != NULL ? tp_hedging_delay(hedging) : settings(g)->delay;
  tp_timer_disarm(g->system, &g->next);
  if (g->asked == g->size) return;
  tp_timer_arm(g->system, &g->next, TP_TIMER_GATHER_NEXT, tp_time_after(g->system->now, delay));
}

static void ask_one(tp_gather *g) {
  tp_slot *leg;
  if (one_after_another(g)) {
    leg = open_next(g);
    if (leg == NULL) {
      ask_no_more(g);
      return;
    }
  } else {
    leg = tp_leg_at(g->unasked);
    g->unasked = g->unasked->next;
  }
  g->asked++;
  tp_gather_ask(leg, g->message);
}

/* Asks all that are due, then sees what that came to: a leg may fail at once, and make another due. */
static void go_on(tp_gather *g) {
  uint32_t asked = g->asked;
  g->asking = true;
  while (g->asked < g->due) ask_one(g);
  g->asking = false;
  if (one_after_another(g) && g->asked > asked) arm_next(g);
  check(g);
}

/* A gather that ends, or asks, may settle a leg of another one, and that the next: such a chain is a
 * loop here, so that a long one needs no deep stack. */
static void look_at(tp_gather *g) {
  tp_system *s = g->system;
  if (s->looks_at_gathers) {
    tp_list_remove(&g->news);
    tp_list_append(&s->gathers, &g->news);
    return;
  }
  s->looks_at_gathers = true;
  go_on(g);
  while (!tp_list_empty(&s->gathers)) {
    g = TP_CONTAINER(s->gathers.next, tp_gather, news);
    tp_list_remove(&g->news);
    go_on(g);
  }
  s->looks_at_gathers = false;
}

/* What is nested too deeply to be put into one more fails: gathers may be chained without end. */
static void refuse_depth(tp_slot *leg) {
  if (tp_value_depth(leg->outcome.value) < TP_DEPTH_MAX) return;
  tp_slot_clear(&leg->ref);
  leg->outcome.failed = true;
  leg->outcome.value = tp_fault_value(leg->ref.system, "scatter-deep", &leg->gather->router->ref);
}

void tp_gather_leg_settled(tp_slot *leg) {
  tp_gather *g = leg->gather;
  if (g->router == NULL) {
    tp_stream_leg_settled(leg);
    return;
  }
  refuse_depth(leg);
  if (leg->outcome.failed) {
    g->failed++;
    if (g->due < g->size) g->due++; /* the next one at once (SG-15) */
  } else {
    g->replied++;
  }
  if (!g->asking) look_at(g);
}

void tp_gather_expire(tp_timer *t) {
  tp_gather *g = TP_CONTAINER(t, tp_gather, deadline);
  if (g->router == NULL) {
    tp_stream_expire(g);
    return;
  }
  ask_no_more(g);
  g->late = g->asking = true;
  g->timed_out = g->asked - g->failed - g->replied;
  for (tp_link *l = g->legs.next; l != &g->legs; l = l->next) tp_gather_expire_leg(tp_leg_at(l));
  g->asking = false;
  look_at(g);
}

void tp_gather_ask_next(tp_timer *t) {
  tp_gather *g = TP_CONTAINER(t, tp_gather, next);
  tp_hedging *hedging = g->router->router->hedging;
  if (!tp_ref_alive(g->caller)) return; /* nobody waits for an answer */
  if (hedging != NULL && !tp_hedging_spend(hedging)) {
    tp_count(g->system, TP_COUNT_HEDGE_REFUSED);
    return;
  }
  if (hedging != NULL) tp_count(g->system, TP_COUNT_HEDGE_SENT);
  g->hedging = hedging != NULL;
  g->due++;
  look_at(g);
}

/* ---- The beginning ---------------------------------------------------------------------- */

static bool open_all(tp_gather *g) {
  const tp_router *r = g->router->router;
  for (uint32_t i = 0; i < r->count; i++) {
    tp_ref *routee = &r->routees[i].actor->ref;
    if (tp_gather_open_leg(g, routee, settings(g)->cancel_losers) == NULL) return false;
  }
  g->unasked = g->legs.next;
  g->due = g->size;
  return true;
}

/* Everyone: first the one whose turn it is, then the others, from another one on in each round of turns,
 * so that the hedges of a routee that is late do not all go to its neighbour. */
static bool line_up(tp_gather *g) {
  tp_router *r = g->router->router;
  g->order = tp_alloc(g->system, g->size * sizeof *g->order);
  if (g->order == NULL) return false;
  g->places = g->size;
  for (uint32_t i = 0; i < g->size; i++) {
    uint64_t step = i == 0 ? 0 : 1 + ((uint64_t)i - 1 + r->rounds) % (g->size - 1);
    g->order[i] = &r->routees[(r->next + step) % r->count].actor->ref;
    tp_ref_retain(g->order[i]);
  }
  r->next = r->next + 1 < r->count ? r->next + 1 : 0;
  if (r->next == 0) r->rounds++;
  g->due = 1;
  return true;
}

static uint32_t needed_of(const tp_gathering *how, uint32_t size) {
  switch (how->wait_for) {
    case TP_WAIT_FOR_ALL: return size;
    case TP_WAIT_FOR_MAJORITY: return size / 2 + 1;
    case 0: return 1;
    default: return how->wait_for;
  }
}

/* Memory for a gather and its first legs, so that nothing fails half-way. */
static tp_gather *new_gather(tp_actor *router, const tp_envelope *e) {
  tp_system *s = router->ref.system;
  const tp_gathering *how = &tp_router_spec(router)->gathering;
  tp_gather *g = tp_alloc_raw(s, sizeof *g);
  if (g == NULL) return NULL;
  tp_list_init(&g->link);
  tp_list_init(&g->news);
  tp_list_init(&g->legs);
  g->system = s;
  g->router = router;
  g->deadline = g->next = (tp_timer){0};
  g->timeout = how->timeout;
  g->caller = e->sender;
  g->next_asked = NULL;
  g->asked_link = NULL;
  g->message = e->message;
  g->unasked = NULL;
  g->order = NULL;
  g->places = g->asked = g->due = g->replied = g->failed = g->timed_out = 0;
  g->size = router->router->count;
  g->needed = needed_of(how, g->size);
  g->began = s->now;
  g->asking = g->hedging = g->late = false;
  tp_ref_retain(g->caller);
  link_to_caller(g);
  tp_value_retain(s, g->message);
  s->scatters++;
  bool ready = how->order == TP_ASK_ALL ? open_all(g) : line_up(g);
  if (!ready) {
    end(g, false);
    return NULL;
  }
  tp_timer_arm_coarsely(s, &g->deadline, TP_TIMER_GATHER, g->timeout);
  tp_list_append(&router->router->gathers, &g->link);
  return g;
}

/* A bare tell has nobody to answer (SG-4); nor does one that names the router itself. The failure of
 * another router is an answer: if it were answered too, two routers could do so for ever. */
static bool has_reply_target(tp_actor *router, const tp_envelope *e) {
  bool answers = e->message.type == TP_FAULT;
  if (e->sender != NULL && e->sender != &router->ref && !answers) return true;
  tp_count(router->ref.system, TP_COUNT_GATHER_NO_REPLY_TARGET);
  if ((e->message.flags & TP_UNLAMENTED) != 0) return false; /* an event: that would be one more */
  tp_events_publish(
      router->ref.system,
      &(tp_event){.kind = TP_EVENT_WARNING, .code = "no-reply-target", .subject = &router->ref});
  return false;
}

/* A caller that cannot have a gather is told why at once. */
static void refuse(tp_actor *router, tp_ref *caller, const char *code) {
  tp_system *s = router->ref.system;
  tp_count(s, TP_COUNT_GATHER_ALL_FAILED);
  tp_metrics_gathered(s, 0);
  tp_mail_send(caller, tp_fault_value(s, code, &router->ref), &router->ref);
}

void tp_gather_start(tp_actor *router, tp_envelope *e) {
  tp_router *r = router->router;
  if (has_reply_target(router, e)) {
    tp_gather *g = r->count == 0 ? NULL : new_gather(router, e);
    if (r->hedging != NULL) tp_hedging_request(r->hedging, router->ref.system->now);
    if (g != NULL && g->needed > g->size) {
      fail(g, TP_COUNT_GATHER_ALL_FAILED, "scatter-short", false);
    } else if (g != NULL) {
      look_at(g);
    } else {
      refuse(router, e->sender, r->count == 0 ? "scatter-empty" : "out-of-memory");
    }
  }
  tp_mail_handled(router->ref.system, e);
}

/* ---- Routers that end ------------------------------------------------------------------- */

static tp_gather *first_open(tp_actor *router) {
  tp_link *head = &router->router->gathers;
  return tp_list_empty(head) ? NULL : TP_CONTAINER(head->next, tp_gather, link);
}

void tp_gathers_stop(tp_actor *router) {
  for (tp_gather *g; (g = first_open(router)) != NULL;)
    fail(g, TP_COUNT_GATHER_STOPPED, "scatter-stopped", false);
}

void tp_gathers_forget(tp_actor *router) {
  for (tp_gather *g; (g = first_open(router)) != NULL;) end(g, false);
}
