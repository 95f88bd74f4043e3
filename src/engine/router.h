/* The router engine: an actor that passes on its mail to routees.
 *
 * A router's turn is spent here, not in user code; only a custom strategy, and what gives the key of
 * a message, are jobs. The sender is kept, so that a routee cannot tell a routed message from a direct
 * one (RTR-4). Whose the routees are is the affair of pool.h and group.h, how one of them is picked
 * that of strategy.h, and asking several and putting together what they reply that of gather.h. */
#ifndef TP_ROUTER_H
#define TP_ROUTER_H

#include "actor.h"
#include "hedging.h"

typedef struct tp_routee {
  tp_actor *actor; /* counted */
  uint64_t number; /* of its name, "routee-<number>"; in a group, its place among the members; keys
                    * are hashed with it, so whoever takes its place has its keys */
} tp_routee;

struct tp_router {
  tp_routee *routees; /* by number; those that get mail */
  uint32_t count, capacity;
  uint32_t next;       /* where turns go on, below count when there are routees */
  uint64_t routed;     /* messages for which user code was asked */
  uint64_t key;        /* hash of the key of the message that is routed, where there is one */
  tp_link gathers;     /* open ones */
  tp_hedging *hedging; /* of a hedged router, or NULL */
  uint32_t rounds;     /* of turns, where routees are asked one after another */

  uint64_t numbers;      /* of a pool: given so far in this incarnation */
  uint32_t until_resize; /* messages that are routed before the resizer looks again */
  tp_window respawns;

  uint64_t spawned, closed; /* of a group: tp_system's, when it looked at its members */
};

static inline const tp_behavior_spec *tp_router_spec(const tp_actor *a) {
  return tp_behavior_look(a->behavior);
}

/* Its routees are actors that exist, and not its own. */
static inline bool tp_router_is_group(const tp_actor *a) {
  return tp_router_spec(a)->members != NULL;
}

/* Makes the actor a router. TP_ENOMEM. */
int tp_router_new(tp_actor *a);

/* Finds the routees of a new incarnation. TP_ENOMEM. */
int tp_router_fill(tp_actor *a);

/* The routee at that place gets no more mail from here on; the turns stay where they are. This lets go
 * of the routee's ref, which may free it, and does no more: nobody is told, no actor is stopped. */
void tp_router_drop(tp_router *r, uint32_t at);
void tp_router_drop_all(tp_router *r);

/* Answers with an aggregate rather than passing on. */
bool tp_router_gathers(const tp_actor *a);

/* Routes `e` (taken). True when user code is to be asked first: the job has all it needs but what
 * every job of an actor has, and owns `e`. */
bool tp_router_route(tp_actor *a, tp_job *job, tp_envelope *e);

/* What was asked has raised: that one message is lost (RTR-11). Takes reason and trace. */
void tp_router_strategy_failed(tp_job *job, tp_value reason, tp_value trace);

/* The incarnation ends: open gathers fail (SG-8), the routees are forgotten. It is a router still, which
 * tp_router_fill may begin anew; closing one that is closed does nothing. */
void tp_router_close(tp_actor *a);

/* Frees what makes it a router, closed or not, without telling anybody: who waits for an open gather is
 * left to its own time-out. Once only. */
void tp_router_free(tp_actor *a);

#endif
