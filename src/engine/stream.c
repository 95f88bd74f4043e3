#include "stream.h"

#include "alloc.h"
#include "mailbox.h"
#include "router.h"
#include "system.h"
#include "value.h"

struct tp_stream {
  tp_gather gather; /* first: its legs lead to it */
  uint32_t count;
  uint32_t open;    /* legs without an outcome */
  tp_link answered; /* legs with one, by tp_slot.open, the first to come first */
  tp_slot *waiter;  /* is to have the next one, counted; may have been given up */
  bool closed;
};

static tp_stream *stream_of(tp_gather *g) { return (tp_stream *)(void *)g; }

/* ---- Life ------------------------------------------------------------------------------- */

/* A settled leg leaves the stream. */
static void drop(tp_slot *leg) {
  tp_list_remove(&leg->open);
  leg->gather = NULL;
  tp_slot_clear(&leg->ref);
  tp_ref_release(&leg->ref);
}

static void release_answered(tp_stream *st) {
  while (!tp_list_empty(&st->answered)) drop(tp_leg_at(st->answered.next));
}

/* Nothing more will come, and nothing is held any more but the struct. */
static void finish(tp_stream *st, bool cancel) {
  tp_gather *g = &st->gather;
  if (st->closed) return;
  st->closed = true;
  st->open = 0;
  g->system->scatters--;
  tp_timer_disarm(g->system, &g->deadline);
  tp_list_remove(&g->link);
  tp_gather_release_legs(g, cancel);
  release_answered(st);
}

static tp_stream *new_stream(tp_system *s, tp_time timeout) {
  tp_stream *st = tp_alloc(s, sizeof *st);
  if (st == NULL) return NULL;
  tp_gather *g = &st->gather;
  tp_list_init(&g->link);
  tp_list_init(&g->news);
  tp_list_init(&g->legs);
  tp_list_init(&st->answered);
  g->system = s;
  g->timeout = timeout;
  st->count = 1;
  s->scatters++;
  tp_system_hold(s);
  tp_list_append(&s->streams, &g->link);
  return st;
}

void tp_stream_release(tp_stream *st) {
  if (--st->count > 0) return;
  tp_system *s = st->gather.system;
  tp_stream_close(st);
  tp_free(s, st, sizeof *st);
  tp_system_drop(s);
}

int tp_stream_open(tp_ref *target, tp_value message, tp_time timeout, tp_stream **out) {
  tp_system *s = target->system;
  if (s->freed) return TP_ETERMINATED;
  tp_stream *st = new_stream(s, timeout);
  tp_slot *leg = st == NULL ? NULL : tp_gather_open_leg(&st->gather, target, false);
  if (leg == NULL) {
    if (st != NULL) tp_stream_release(st);
    tp_value_release(s, message);
    return TP_ENOMEM;
  }
  tp_timer_arm(s, &st->gather.deadline, TP_TIMER_GATHER, tp_time_after(s->now, timeout));
  st->open = 1;
  tp_gather_ask(leg, message);
  tp_value_release(s, message);
  *out = st;
  return TP_OK;
}

/* ---- Replies ---------------------------------------------------------------------------- */

/* Gives the outcome of `leg`, which leaves the stream, to `slot`. */
static void hand_over(tp_slot *leg, tp_slot *slot) {
  tp_outcome o = leg->outcome;
  leg->outcome.value = tp_nil();
  tp_slot_settle(&slot->ref, o.value, o.failed, o.from != NULL ? o.from : leg->target);
  drop(leg);
}

/* Whoever waits gets the next reply, or nil from nobody when none is left. */
static void serve(tp_stream *st) {
  tp_slot *waiter = st->waiter;
  if (waiter == NULL || (tp_list_empty(&st->answered) && st->open > 0)) return;
  st->waiter = NULL;
  if (!waiter->settled) {
    if (tp_list_empty(&st->answered)) {
      finish(st, true);
      tp_slot_settle(&waiter->ref, tp_nil(), false, NULL);
    } else {
      hand_over(tp_leg_at(st->answered.next), waiter);
    }
  }
  tp_ref_release(&waiter->ref);
}

void tp_stream_leg_settled(tp_slot *leg) {
  tp_stream *st = stream_of(leg->gather);
  tp_list_remove(&leg->open);
  tp_list_append(&st->answered, &leg->open);
  st->open--;
  serve(st);
}

void tp_stream_expire(tp_gather *g) {
  g->late = true;
  for (tp_link *l = g->legs.next, *next; l != &g->legs; l = next) {
    next = l->next;
    tp_gather_expire_leg(tp_leg_at(l));
  }
}

/* The slot's count is the caller's; it may be settled already. */
int tp_stream_next(tp_stream *st, tp_ref **out) {
  tp_system *s = st->gather.system;
  tp_slot *slot = tp_slot_open(s, NULL, TP_NEVER);
  if (slot == NULL) return TP_ENOMEM;
  *out = &slot->ref;
  if (st->waiter != NULL) tp_ref_release(&st->waiter->ref); /* it has given up */
  st->waiter = slot;
  tp_ref_retain(*out);
  serve(st);
  if (tp_waits_ended(s)) tp_slot_fail(*out, "system-terminated");
  return TP_OK;
}

bool tp_stream_waits(const tp_stream *st) { return st->waiter != NULL && !st->waiter->settled; }

void tp_stream_close(tp_stream *st) {
  finish(st, true);
  serve(st);
}

/* ---- Routers ---------------------------------------------------------------------------- */

bool tp_stream_asks(const tp_ref *sender) {
  if (sender == NULL || sender->kind != TP_REF_SLOT) return false;
  const tp_slot *leg = tp_slot_look(sender);
  return leg->gather != NULL && leg->gather->router == NULL && !leg->gather->late;
}

/* A leg for each of them, behind those that there are; the first of these, or NULL when memory is out:
 * then none is open. */
static tp_link *open_legs(tp_gather *g, tp_ref *const *routees, size_t count, bool cancels) {
  tp_link *last = g->legs.prev;
  for (size_t i = 0; i < count; i++) {
    if (tp_gather_open_leg(g, routees[i], cancels) != NULL) continue;
    while (g->legs.prev != last) {
      tp_slot *leg = tp_leg_at(g->legs.prev);
      tp_list_remove(&leg->open);
      tp_ref_release(&leg->ref);
    }
    return NULL;
  }
  return last->next;
}

/* The leg stays, settled, for as long as its message may come to other routers. */
void tp_stream_spread(tp_envelope *e, tp_ref *const *routees, size_t count, bool cancels) {
  tp_slot *leg = tp_slot_of(e->sender);
  tp_system *s = leg->ref.system;
  tp_gather *g = leg->gather;
  tp_link *l = open_legs(g, routees, count, cancels), *next;
  if (l == NULL) {
    tp_slot_fail(&leg->ref, "out-of-memory");
  } else {
    stream_of(g)->open += (uint32_t)count - (leg->settled ? 0 : 1);
    leg->passed_on |= !leg->settled;
    leg->settled = true;
    for (; l != &g->legs; l = next) {
      next = l->next;
      tp_gather_ask(tp_leg_at(l), e->message);
    }
  }
  bool spent = leg->passed_on && leg->ref.count == 2; /* by the stream, and by `e` */
  tp_mail_handled(s, e);
  if (spent) drop(leg);
}

void tp_stream_spread_to_all(tp_actor *router, tp_envelope *e) {
  const tp_router *r = router->router;
  tp_system *s = router->ref.system;
  size_t size = r->count * sizeof(tp_ref *);
  tp_ref **routees = tp_alloc(s, size);
  if (routees == NULL) {
    tp_mail_unroutable(router, e, "out-of-memory");
    return;
  }
  uint32_t count = (uint32_t)tp_routees(&router->ref, routees, r->count);
  tp_stream_spread(e, routees, count, tp_router_spec(router)->gathering.cancel_losers);
  tp_free(s, routees, size);
}

/* ---- Systems that end ------------------------------------------------------------------- */

void tp_streams_terminate(tp_system *s) {
  for (tp_link *l = s->streams.next, *next; l != &s->streams; l = next) {
    next = l->next;
    tp_gather *g = TP_CONTAINER(l, tp_gather, link);
    for (tp_link *at = g->legs.next, *after; at != &g->legs; at = after) {
      after = at->next;
      tp_slot_fail(&tp_leg_at(at)->ref, "system-terminated");
    }
  }
}

void tp_streams_forget(tp_system *s) {
  while (!tp_list_empty(&s->streams)) {
    tp_stream *st = stream_of(TP_CONTAINER(s->streams.next, tp_gather, link));
    finish(st, false);
    if (st->waiter != NULL) tp_ref_release(&st->waiter->ref);
    st->waiter = NULL;
  }
}
