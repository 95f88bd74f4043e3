/* Scatter/gather: one message asked of every routee, one answer for the caller.
 *
 * A scatter is an object of its own, with a reply slot ("leg") for each routee and one deadline for
 * all; the router's turn ends when it is sent, so any number of them overlap (SG-9). The first
 * success answers the caller, in the name of the routee that gave it; failures count, and the last
 * one makes the aggregate (SG-5). However it ends, it ends once (SG-12). */
#ifndef TP_SCATTER_H
#define TP_SCATTER_H

#include "actor.h"
#include "timer.h"

typedef struct tp_scatter tp_scatter;

/* Asks all routees of a router for `e` (taken). */
void tp_scatter_start(tp_actor *router, tp_envelope *e);

/* A leg has an outcome. Takes the value; borrows `from`, NULL when nobody is named. */
void tp_scatter_leg_settled(tp_scatter *sc, uint32_t leg, tp_value value, bool failed,
                            tp_ref *from);

/* The deadline of the scatter with this timer has passed. */
void tp_scatter_expire(tp_timer *t);

/* Fails every open scatter of a router that stops or restarts (SG-8). */
void tp_scatters_stop(tp_actor *router);

/* Drops every open scatter of a router without telling anybody. */
void tp_scatters_forget(tp_actor *router);

#endif
