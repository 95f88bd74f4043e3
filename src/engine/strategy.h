/* How a router picks one routee. Each strategy is a function from a pool that is not empty to an
 * index; adding one is writing one and naming it in strategy.c's table. */
#ifndef TP_STRATEGY_H
#define TP_STRATEGY_H

#include "router.h"

typedef uint32_t tp_pick(tp_actor *router);

/* The picking function of a strategy that picks one routee; NULL for the others. */
tp_pick *tp_strategy_pick(tp_routing routing);

#endif
