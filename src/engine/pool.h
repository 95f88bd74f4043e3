/* The routees of a pool router: its children, which it spawns, adds, removes and spawns anew
 * (RTR-3, RTR-12, RTR-15).
 *
 * A routee is in the pool from its spawning until it takes no more mail, or is removed. One that was
 * removed still handles the mail it has. */
#ifndef TP_POOL_H
#define TP_POOL_H

#include "router.h"

/* Spawns the routees of a new incarnation, in order (RTR-3). TP_ENOMEM. */
int tp_pool_fill(tp_actor *router);

/* Spawns `n` more. TP_ENOMEM; then those that were spawned stay. */
int tp_pool_add(tp_actor *router, uint32_t n);

/* Removes the `n` with the highest numbers, or all there are: they stop when they have handled the
 * mail they have. */
void tp_pool_remove(tp_actor *router, uint32_t n);

/* A routee takes no more mail; a routee has stopped (RTR-12). */
void tp_pool_routee_closed(tp_actor *router, const tp_actor *routee);
void tp_pool_routee_gone(tp_actor *router, const tp_actor *routee);

#endif
