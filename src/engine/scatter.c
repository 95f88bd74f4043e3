#include "scatter.h"

#include "alloc.h"
#include "events.h"
#include "fault.h"
#include "mailbox.h"
#include "router.h"
#include "system.h"
#include "value.h"

typedef struct leg {
  tp_slot *slot;   /* counted, while open */
  tp_value result; /* what a leg that failed gave, counted */
} leg;

struct tp_scatter {
  tp_link link; /* in the router's list */
  tp_actor *router;
  tp_ref *caller; /* counted */
  tp_timer timer;
  uint32_t size, failed;
  leg legs[];
};

/* ---- The end of a scatter --------------------------------------------------------------- */

/* Takes the legs away from whoever may still answer; late replies vanish (SG-3). */
static void release_legs(tp_scatter *sc) {
  tp_system *s = sc->router->ref.system;
  for (uint32_t i = 0; i < sc->size; i++) {
    tp_slot *slot = sc->legs[i].slot;
    if (slot != NULL) {
      slot->settled = true;
      tp_ref_release(&slot->ref);
    }
    tp_value_release(s, sc->legs[i].result);
  }
}

static void end(tp_scatter *sc) {
  tp_system *s = sc->router->ref.system;
  s->scatters--;
  tp_timer_disarm(s, &sc->timer);
  tp_list_remove(&sc->link);
  release_legs(sc);
  tp_ref_release(sc->caller);
  tp_free(s, sc, sizeof *sc + sc->size * sizeof(leg));
}

/* Ends and answers the caller. Takes the value. The scatter ends first: an answer that makes room in
 * a full mailbox may shed a request of this very scatter. */
static void answer(tp_scatter *sc, tp_value value, bool failed, tp_ref *from) {
  tp_ref *caller = sc->caller;
  tp_ref_retain(caller);
  tp_ref_retain(from);
  end(sc);
  /* An actor that is short of memory gets no answer, as it gets no other mail. */
  (void)tp_reply(caller, value, failed, from);
  tp_ref_release(from);
  tp_ref_release(caller);
}

/* The aggregate of what the legs gave, in the order they were asked (SG-5). */
static tp_value aggregate(tp_scatter *sc, const char *code, uint32_t members) {
  tp_system *s = sc->router->ref.system;
  tp_fault *f = tp_fault_new(s, code, &sc->router->ref, members);
  if (f == s->out_of_memory) return tp_fault_as_value(f);
  f->budget = tp_router_spec(sc->router)->timeout;
  f->asked = sc->size;
  for (uint32_t i = 0; i < members; i++) {
    f->member[i] = sc->legs[i].result;
    sc->legs[i].result = tp_nil();
  }
  return tp_fault_as_value(f);
}

static void fail(tp_scatter *sc, const char *code, uint32_t members) {
  tp_actor *router = sc->router;
  answer(sc, aggregate(sc, code, members), true, &router->ref);
}

/* ---- Legs ------------------------------------------------------------------------------- */

/* An open leg gets its outcome; the slot is the leg's no more. */
static void close_leg(tp_scatter *sc, uint32_t i, tp_value result) {
  tp_slot *slot = sc->legs[i].slot;
  sc->legs[i].slot = NULL;
  sc->legs[i].result = result;
  sc->failed++;
  slot->settled = true;
  tp_ref_release(&slot->ref);
}

void tp_scatter_leg_settled(tp_scatter *sc, uint32_t i, tp_value value, bool failed, tp_ref *from) {
  if (failed) {
    close_leg(sc, i, value);
    if (sc->failed == sc->size) fail(sc, "scatter-failed", sc->size);
  } else {
    answer(sc, value, false, from != NULL ? from : sc->legs[i].slot->target);
  }
}

static tp_value leg_timeout(tp_scatter *sc, tp_ref *routee) {
  tp_system *s = sc->router->ref.system;
  tp_fault *f = tp_fault_new(s, "ask-timeout", routee, 0);
  if (f != s->out_of_memory) f->budget = tp_router_spec(sc->router)->timeout;
  return tp_fault_as_value(f);
}

void tp_scatter_expire(tp_timer *t) {
  tp_scatter *sc = TP_CONTAINER(t, tp_scatter, timer);
  const char *code = sc->failed == 0 ? "scatter-timeout" : "scatter-failed";
  for (uint32_t i = 0; i < sc->size; i++) {
    if (sc->legs[i].slot == NULL) continue;
    close_leg(sc, i, leg_timeout(sc, sc->legs[i].slot->target));
  }
  fail(sc, code, sc->size);
}

/* ---- The beginning of a scatter --------------------------------------------------------- */

/* Memory for a scatter and its legs, all at once, so that nothing fails half-way. */
static tp_scatter *new_scatter(tp_actor *router, tp_ref *caller) {
  tp_system *s = router->ref.system;
  tp_router *r = router->router;
  tp_scatter *sc = tp_alloc(s, sizeof *sc + r->count * sizeof(leg));
  if (sc == NULL) return NULL;
  tp_list_init(&sc->link);
  sc->router = router;
  sc->caller = caller;
  sc->size = r->count;
  tp_ref_retain(caller);
  s->scatters++;
  for (uint32_t i = 0; i < sc->size; i++) {
    sc->legs[i].slot = tp_slot_open_leg(s, &r->routees[i].actor->ref, sc, i);
    if (sc->legs[i].slot == NULL) goto fail;
  }
  tp_time due = tp_time_after(s->now, tp_router_spec(router)->timeout);
  if (tp_timer_arm(s, &sc->timer, TP_TIMER_SCATTER, due) != TP_OK) goto fail;
  tp_list_append(&r->scatters, &sc->link);
  return sc;
fail:
  end(sc);
  return NULL;
}

/* Asks each routee. A routee that cannot be asked is a leg that failed, which may end the scatter
 * with the last one. */
static void ask_all(tp_scatter *sc, tp_value message) {
  tp_system *s = sc->router->ref.system;
  for (uint32_t i = 0, size = sc->size; i < size; i++) {
    tp_slot *slot = sc->legs[i].slot;
    tp_value_retain(s, message);
    tp_ref_retain(&slot->ref);
    int status = tp_tell(slot->target, message, &slot->ref);
    if (status != TP_OK) {
      tp_slot_fail(&slot->ref, status == TP_EFULL ? "mailbox-full" : "out-of-memory");
    }
    tp_ref_release(&slot->ref);
  }
}

/* A bare tell has nobody to answer (SG-4); nor does one that names the router itself. */
static bool has_reply_target(tp_actor *router, const tp_envelope *e) {
  if (e->sender != NULL && e->sender != &router->ref) return true;
  tp_events_publish(
      router->ref.system,
      &(tp_event){.kind = TP_EVENT_WARNING, .code = "no-reply-target", .subject = &router->ref});
  return false;
}

/* A caller that cannot have a scatter is told why at once. */
static void refuse(tp_actor *router, tp_ref *caller, const char *code) {
  tp_system *s = router->ref.system;
  (void)tp_reply(caller, tp_fault_value(s, code, &router->ref), true, &router->ref);
}

void tp_scatter_start(tp_actor *router, tp_envelope *e) {
  tp_system *s = router->ref.system;
  if (has_reply_target(router, e)) {
    tp_scatter *sc = router->router->count == 0 ? NULL : new_scatter(router, e->sender);
    if (sc != NULL) {
      ask_all(sc, e->message);
    } else {
      refuse(router, e->sender, router->router->count == 0 ? "scatter-empty" : "out-of-memory");
    }
  }
  tp_mail_handled(s, e);
}

/* ---- Routers that end ------------------------------------------------------------------- */

static tp_scatter *first_open(tp_actor *router) {
  tp_link *head = &router->router->scatters;
  return tp_list_empty(head) ? NULL : TP_CONTAINER(head->next, tp_scatter, link);
}

void tp_scatters_stop(tp_actor *router) {
  for (tp_scatter *sc; (sc = first_open(router)) != NULL;) fail(sc, "scatter-stopped", 0);
}

void tp_scatters_forget(tp_actor *router) {
  for (tp_scatter *sc; (sc = first_open(router)) != NULL;) end(sc);
}
