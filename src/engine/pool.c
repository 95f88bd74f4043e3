#include "pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "events.h"
#include "lifecycle.h"
#include "system.h"

/* A pool that loses routees faster than this stops respawning them, or it would do nothing else. */
enum { RESPAWN_LIMIT = 10 };
#define RESPAWN_WINDOW (60000 * TP_MILLISECOND)

#define NAME "routee-"

/* ---- Who is in it ----------------------------------------------------------------------- */

/* Routees are the only children of a pool, and are named by their numbers. */
static uint64_t number_of(const tp_actor *routee) {
  return strtoull(routee->label.name->text + strlen(NAME), NULL, 10);
}

/* Where the first routee is whose number is not less; the count when there is none. */
static uint32_t place_of(const tp_router *r, uint64_t number) {
  uint32_t low = 0, high = r->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (r->routees[middle].number < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static int make_room(tp_system *s, tp_router *r) {
  if (r->count < r->capacity) return TP_OK;
  size_t size = r->capacity * sizeof *r->routees;
  tp_routee *routees = tp_resize(s, r->routees, size, 2 * size);
  if (routees == NULL) return TP_ENOMEM;
  r->routees = routees;
  r->capacity *= 2;
  return TP_OK;
}

/* Keeps the routees in the order of their numbers, and the turns where they are: one that comes back has
 * had its turn, also where the next one stands in its place. */
static void put(tp_router *r, tp_routee routee) {
  uint32_t at = place_of(r, routee.number);
  memmove(r->routees + at + 1, r->routees + at, (r->count - at) * sizeof routee);
  r->routees[at] = routee;
  if (at <= r->next && r->count > 0) r->next++;
  r->count++;
}

static int spawn_routee(tp_actor *a, uint64_t number) {
  char name[32];
  int length = snprintf(name, sizeof name, NAME "%llu", (unsigned long long)number);
  tp_routee routee = {.number = number};
  if (make_room(a->ref.system, a->router) != TP_OK) return TP_ENOMEM;
  int status = tp_actor_spawn(a, tp_router_spec(a)->routee, name, (size_t)length, &routee.actor);
  if (status == TP_OK) put(a->router, routee);
  return status;
}

/* ---- Filling and resizing --------------------------------------------------------------- */

int tp_pool_fill(tp_actor *a) {
  a->router->numbers = 0;
  a->router->until_resize = 0;
  return tp_pool_add(a, tp_router_spec(a)->size);
}

int tp_pool_add(tp_actor *a, uint32_t n) {
  tp_router *r = a->router;
  for (uint32_t i = 0; i < n; i++) {
    int status = spawn_routee(a, r->numbers + 1);
    if (status != TP_OK) return status;
    r->numbers++;
  }
  return TP_OK;
}

void tp_pool_remove(tp_actor *a, uint32_t n) {
  tp_router *r = a->router;
  for (uint32_t i = 0; i < n && r->count > 0; i++) {
    tp_actor *routee = r->routees[r->count - 1].actor;
    tp_ref_retain(&routee->ref);
    tp_router_drop(r, r->count - 1);
    routee->removed = true;
    if (tp_stop(&routee->ref) != TP_OK) tp_stop_now(&routee->ref);
    tp_ref_release(&routee->ref);
  }
}

/* ---- Routees that stop ------------------------------------------------------------------ */

void tp_pool_routee_closed(tp_actor *a, const tp_actor *routee) {
  tp_router *r = a->router;
  if (tp_router_spec(a)->on_routee_stop == TP_ROUTEE_KEEP) return;
  uint32_t at = place_of(r, number_of(routee));
  if (at < r->count && r->routees[at].actor == routee) tp_router_drop(r, at);
}

static bool may_respawn(tp_actor *a) {
  if (tp_router_spec(a)->on_routee_stop != TP_ROUTEE_RESPAWN || a->closed ||
      a->phase != TP_PHASE_RUNNING || tp_system_stopping(a->ref.system)) {
    return false;
  }
  if (tp_window_grant(a->ref.system, &a->router->respawns, RESPAWN_LIMIT, RESPAWN_WINDOW)) {
    return true;
  }
  tp_events_publish(
      a->ref.system,
      &(tp_event){.kind = TP_EVENT_WARNING, .code = "respawn-limit", .subject = &a->ref});
  return false;
}

void tp_pool_routee_gone(tp_actor *a, const tp_actor *routee) {
  if (routee->removed || !may_respawn(a)) return;
  if (spawn_routee(a, number_of(routee)) != TP_OK) {
    tp_events_publish(
        a->ref.system,
        &(tp_event){.kind = TP_EVENT_WARNING, .code = "respawn-failed", .subject = &a->ref});
  }
}
