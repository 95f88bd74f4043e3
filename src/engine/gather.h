/* Gathering: one message asked of several routees, and what they reply put together.
 *
 * A gather is an object of its own, with a reply slot ("leg") for each routee that it asks and one
 * deadline for all; the router's turn ends when the legs are asked, so any number of gathers overlap
 * (SG-9). What the public routers do are settings of this one (tp_gathering): whom to ask when, how
 * many replies are needed, whether losers are cancelled. A failure is a leg that is out at once, never
 * an answer (SG-2). However a gather ends, it ends once (SG-12).
 *
 * A stream (stream.c) is the same for a caller that takes every reply as it comes; its legs have no
 * router behind them. */
#ifndef TP_GATHER_H
#define TP_GATHER_H

#include "actor.h"
#include "timer.h"

typedef struct tp_gather {
  tp_link link; /* in the router's list, or in the system's list of streams */
  tp_link news; /* in the system's list, while a leg has an outcome that was not looked at */
  tp_system *system;
  tp_actor *router; /* NULL: a stream */
  tp_link legs;     /* by tp_slot.open, in the order they are asked; each counted */
  tp_timer deadline;
  tp_time timeout;
  tp_ref *caller;                /* counted: whom it answers */
  struct tp_gather *next_asked;  /* that answers the same caller: see tp_slot.asked */
  struct tp_gather **asked_link; /* what leads to this one there */
  tp_value message;              /* counted */
  tp_timer next;                 /* when one more is to be asked */
  tp_link *unasked; /* the first of `legs` that has not been asked, or the list's end */
  tp_ref **order;   /* whom it asks one after another; counted from `asked` on; NULL: all at once */
  uint32_t places;  /* of `order` */
  uint32_t size;    /* legs in all, those still to be opened included */
  uint32_t asked, due; /* so far; to be asked by now */
  uint32_t needed, replied, failed;
  uint32_t timed_out; /* of those that failed */
  tp_time began;
  bool asking;  /* what a leg comes to is looked at when the others have been asked */
  bool hedging; /* the next leg is asked because the others are late */
  bool late;    /* the deadline has passed */
} tp_gather;

/* The leg whose link in the list of a gather is `l`. */
static inline tp_slot *tp_leg_at(tp_link *l) { return TP_CONTAINER(l, tp_slot, open); }

/* Asks the routees of a router that gathers for `e` (taken). The sender gets one answer, maybe before
 * this returns: that there are no routees, or no memory, is one, and leaves nothing behind. Without a
 * sender nobody is asked (SG-4). */
void tp_gather_start(tp_actor *router, tp_envelope *e);

/* A leg has an outcome, and is settled. This may end the gather and free it, and the leg too: whoever
 * goes on with `leg` must hold a count, and find `leg->gather` NULL when that has ended. */
void tp_gather_leg_settled(tp_slot *leg);

/* The deadline, or the time to ask one more, of the gather with this timer has come. */
void tp_gather_expire(tp_timer *t);
void tp_gather_ask_next(tp_timer *t);

/* Ends a gather whose caller has been cancelled, and cancels what it has asked in its turn. */
void tp_gather_cancel(tp_gather *g);

/* Fails every open gather of a router that stops or restarts (SG-8). */
void tp_gathers_stop(tp_actor *router);

/* Drops every open gather of a router without telling anybody. */
void tp_gathers_forget(tp_actor *router);

/* For streams. A leg of `g` that has not been asked, counted by the list; NULL when memory is out. */
tp_slot *tp_gather_open_leg(tp_gather *g, tp_ref *routee, bool cancels);

/* Tells the leg's routee the message (borrowed). What cannot be told fails the leg, with all
 * that tp_gather_leg_settled says; a gather that is `asking` goes on. */
void tp_gather_ask(tp_slot *leg, tp_value message);

/* The deadline has passed: a leg that is open fails, and is cancelled if it is to be. */
void tp_gather_expire_leg(tp_slot *leg);

/* Lets go of all legs; with `cancel`, those that are open and to be cancelled are (SG-14). */
void tp_gather_release_legs(tp_gather *g, bool cancel);

#endif
