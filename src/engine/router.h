/* The router engine: an actor that owns a pool of routees and passes on its mail.
 *
 * A router's turn is spent here, not in user code; only a custom strategy is a job. The sender is
 * kept, so that a routee cannot tell a routed message from a direct one (RTR-4). How a routee is
 * picked is strategy.h's affair; asking several and putting together what they reply is gather.h's. */
#ifndef TP_ROUTER_H
#define TP_ROUTER_H

#include "actor.h"
#include "hedging.h"

typedef struct tp_routee {
  tp_actor *actor; /* counted */
  uint32_t number; /* of its name, "routee-<number>" */
} tp_routee;

struct tp_router {
  tp_routee *routees; /* by number; those that get mail */
  uint32_t count, capacity;
  uint32_t next;   /* where turns go on, below count when there are routees */
  uint64_t routed; /* messages for which a custom strategy was asked */
  tp_window respawns;
  tp_link gathers;     /* open ones */
  tp_hedging *hedging; /* of a hedged router, or NULL */
};

static inline const tp_behavior_spec *tp_router_spec(const tp_actor *a) {
  return tp_behavior_look(a->behavior);
}

/* Makes the actor a router. TP_ENOMEM. */
int tp_router_new(tp_actor *a);

/* Spawns the routees of a new incarnation, in order (RTR-3). TP_ENOMEM. */
int tp_router_fill(tp_actor *a);

/* Answers with an aggregate rather than passing on. */
bool tp_router_gathers(const tp_actor *a);

/* Routes `e` (taken). True when a custom strategy is to pick: the job has all it needs but what
 * every job of an actor has, and owns `e`. */
bool tp_router_route(tp_actor *a, tp_job *job, tp_envelope *e);

/* The strategy raised: that one message is lost (RTR-11). Takes reason and trace. */
void tp_router_strategy_failed(tp_job *job, tp_value reason, tp_value trace);

/* A routee takes no more mail; a routee has stopped (RTR-12). */
void tp_router_routee_closed(tp_actor *a, const tp_actor *routee);
void tp_router_routee_gone(tp_actor *a, const tp_actor *routee);

/* The incarnation ends: open gathers fail (SG-8), the routees are forgotten. */
void tp_router_close(tp_actor *a);

/* Frees what makes it a router, without telling anybody. */
void tp_router_free(tp_actor *a);

#endif
