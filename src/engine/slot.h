/* Reply slots: a slot is settled once, by a reply, by its deadline, or by the end of whom it asked.
 * Whatever a host waits for is a slot (ask, sleep, await), so there is one way to wait and one
 * way to give up.
 *
 * While open, a slot knows how many requests that carry it as their sender are queued or in hand.
 * When the last of them is lost with its actor and nobody has looked at the slot, no reply can come
 * any more, and it fails at once (ASK-7). */
#ifndef TP_SLOT_H
#define TP_SLOT_H

#include "list.h"
#include "ref.h"
#include "scheduler.h"
#include "timer.h"

struct tp_actor;
struct tp_gather;

typedef struct tp_slot {
  tp_ref ref; /* first: a ref to a slot is the slot */
  tp_runnable run;
  tp_timer timer;
  tp_link open;             /* in the system's list of open slots; a leg's, in that of its gather */
  tp_ref *target;           /* who was asked, counted, or NULL */
  tp_time budget;           /* its timeout, for the error */
  tp_outcome outcome;       /* counted, once settled */
  struct tp_actor *waiter;  /* the actor whose job waits here, or NULL */
  tp_job *job;              /* a job outside any actor that waits here, or NULL */
  void *token;              /* the host's, for whoever waits */
  struct tp_gather *gather; /* of which this is a leg, or NULL */
  struct tp_gather *asked;  /* gathers that are to answer it, where losers are cancelled */
  struct tp_slot *next_cancelled; /* see tp_system.cancelled */
  tp_job *handlers;        /* jobs that wait with its request in hand, where losers are cancelled */
  tp_watch_notice *notice; /* it watches an actor, or NULL */
  uint32_t requests;       /* queued or in hand */
  bool shown;              /* somebody has looked at it, and may have kept it */
  bool settled;
  bool expires_well;
  bool notify;    /* a job is to be made for `token` */
  bool cancels;   /* a leg: is to be cancelled when it loses */
  bool cancelled; /* it has lost: its request is not to be handled, nor waited with (SG-14) */
  bool hedge;     /* a leg that was asked because others were late */
  bool passed_on; /* a leg of a stream: others answer in its place */
} tp_slot;

static inline tp_slot *tp_slot_of(tp_ref *r) { return (tp_slot *)(void *)r; }

static inline const tp_slot *tp_slot_look(const tp_ref *r) {
  return (const tp_slot *)(const void *)r;
}

/* An open slot with a deadline, a coarse one if there is a `target` (borrowed, or NULL). NULL when memory
 * is out. */
tp_slot *tp_slot_open(tp_system *s, tp_ref *target, tp_time timeout);

/* The same for a leg of `gather`, which keeps the deadline for all its legs. */
tp_slot *tp_slot_open_leg(tp_system *s, tp_ref *target, struct tp_gather *gather);

/* The deadline has passed. */
void tp_slot_expire(tp_slot *slot);

/* A request with this slot as its sender was queued, was handled, or was lost with `actor` (then
 * the slot may fail with `code`). Losing one is true when its asker needs no dead letter: it has
 * been told, or had its answer already. */
void tp_slot_request_queued(tp_slot *slot);
void tp_slot_request_handled(tp_slot *slot);
bool tp_slot_request_lost(tp_slot *slot, tp_ref *actor, const char *code);

/* Cancels what a settled leg has asked for (SG-14): a request that is queued is withdrawn, a handler's
 * wait ends with "cancelled", a router's gather ends. A request that has been passed on is passed over
 * in its turn. */
void tp_slot_cancel(tp_slot *slot);

/* Whether `sender` (or NULL) has been cancelled. */
static inline bool tp_slot_is_cancelled(const tp_ref *sender) {
  return sender != NULL && sender->kind == TP_REF_SLOT && tp_slot_look(sender)->cancelled;
}

/* A job of an actor begins to wait with a request in hand, or goes on. */
void tp_slot_handler_waits(tp_job *job);
void tp_slot_handler_goes_on(tp_job *job);

/* Fails every open slot of the system with "system-terminated" (SYS-5). */
void tp_slots_terminate(tp_system *s);

void tp_slot_free(tp_slot *slot);

#endif
