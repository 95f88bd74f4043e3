/* How a router picks one routee. Each strategy is a function from a pool that is not empty to an
 * index, named in the table of strategy.c. Where else a new one needs a line says
 * docs/architecture.md. */
#ifndef TP_STRATEGY_H
#define TP_STRATEGY_H

#include "router.h"

typedef uint32_t tp_pick(tp_actor *router);

/* The picking function of a strategy that picks one routee; NULL for the others. */
tp_pick *tp_strategy_pick(tp_routing routing);

#endif
