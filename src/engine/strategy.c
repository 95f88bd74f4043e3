#include "strategy.h"

#include "hash.h"
#include "mailbox.h"
#include "system.h"

static uint32_t take_turn(tp_router *r, uint32_t index) {
  r->next = index + 1 < r->count ? index + 1 : 0;
  return index;
}

/* Everyone in turn (RTR-6). */
static uint32_t round_robin(tp_actor *router) {
  return take_turn(router->router, router->router->next);
}

/* Anyone, evenly (RTR-7). */
static uint32_t any(tp_actor *router) {
  return (uint32_t)tp_random(router->ref.system, router->router->count);
}

size_t tp_depth(const tp_ref *r) {
  const tp_actor *a = tp_actor_look(r);
  if (a->closed) return SIZE_MAX;
  return (size_t)tp_mail_count(a) + (a->job != NULL ? 1 : 0);
}

/* The shortest queue; ties rotate (RTR-9). */
static uint32_t smallest_mailbox(tp_actor *router) {
  tp_router *r = router->router;
  uint32_t best = r->next;
  size_t least = SIZE_MAX;
  for (uint32_t i = 0; i < r->count; i++) {
    uint32_t at = (uint32_t)(((uint64_t)r->next + i) % r->count);
    size_t depth = tp_depth(&r->routees[at].actor->ref);
    if (depth < least) {
      least = depth;
      best = at;
    }
  }
  return take_turn(r, best);
}

/* The one that scores highest with the key (RTR-16). So a key changes places only when its routee
 * leaves, or for one that is new: rendezvous hashing (Thaler and Ravishankar, "Using name-based
 * mappings to increase hit rates", 1998). */
static uint32_t highest_score(tp_actor *router) {
  const tp_router *r = router->router;
  uint32_t best = 0;
  uint64_t most = 0;
  for (uint32_t i = 0; i < r->count; i++) {
    uint64_t score = tp_hash_score(r->key, r->routees[i].number);
    if (score > most) {
      most = score;
      best = i;
    }
  }
  return best;
}

tp_pick *tp_strategy_pick(tp_routing routing) {
  static tp_pick *const picks[TP_ROUTINGS] = {
      [TP_ROUTE_ROUND_ROBIN] = round_robin,
      [TP_ROUTE_RANDOM] = any,
      [TP_ROUTE_SMALLEST_MAILBOX] = smallest_mailbox,
      [TP_ROUTE_CONSISTENT_HASHING] = highest_score,
  };
  return picks[routing];
}
