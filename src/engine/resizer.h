/* Resizers: a pool that grows when all of its routees are under pressure and shrinks when few are
 * (RTR-18). The rules are those of Akka's DefaultResizer.
 *
 * There is no timer: a pool is looked at when it has a message to route, and costs nothing when it
 * has none. */
#ifndef TP_RESIZER_H
#define TP_RESIZER_H

#include "actor.h"

/* How many routees to add to a pool of `size`, of which `pressed` are under pressure; negative: how
 * many to remove. */
int64_t tp_resizer_change(const tp_resizer *z, uint32_t size, uint32_t pressed);

/* A message is about to be routed by a pool with a resizer, which is resized first if it is time. */
void tp_resizer_count(tp_actor *router);

#endif
