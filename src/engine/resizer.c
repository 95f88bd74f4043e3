#include "resizer.h"

#include <math.h>

#include "events.h"
#include "mailbox.h"
#include "pool.h"
#include "router.h"
#include "system.h"

static double rampup(const tp_resizer *z, uint32_t size, uint32_t pressed) {
  return pressed < size ? 0 : ceil(z->rampup_rate * size);
}

static double backoff(const tp_resizer *z, uint32_t size, uint32_t pressed) {
  bool idle = size > 0 && (double)pressed / size < z->backoff_threshold;
  return idle ? floor(-z->backoff_rate * size) : 0;
}

int64_t tp_resizer_change(const tp_resizer *z, uint32_t size, uint32_t pressed) {
  double wanted = size + rampup(z, size, pressed) + backoff(z, size, pressed);
  return (int64_t)fmin(fmax(wanted, z->lower_bound), z->upper_bound) - size;
}

static bool is_pressed(const tp_resizer *z, const tp_actor *routee) {
  uint32_t waiting = tp_mail_count(routee);
  if (z->pressure_threshold > 1) return waiting >= z->pressure_threshold;
  return routee->job != NULL && waiting >= z->pressure_threshold;
}

static uint32_t count_pressed(const tp_resizer *z, const tp_router *r) {
  uint32_t pressed = 0;
  for (uint32_t i = 0; i < r->count; i++) pressed += is_pressed(z, r->routees[i].actor);
  return pressed;
}

static void resize(tp_actor *a, const tp_resizer *z) {
  int64_t change = tp_resizer_change(z, a->router->count, count_pressed(z, a->router));
  if (change < 0) tp_pool_remove(a, (uint32_t)-change);
  if (change <= 0 || tp_pool_add(a, (uint32_t)change) == TP_OK) return;
  tp_events_publish(
      a->ref.system,
      &(tp_event){.kind = TP_EVENT_WARNING, .code = "resize-failed", .subject = &a->ref});
}

void tp_resizer_count(tp_actor *router) {
  const tp_resizer *z = tp_router_spec(router)->resizer;
  tp_router *r = router->router;
  if (r->until_resize > 0) {
    r->until_resize--;
    return;
  }
  r->until_resize = z->messages_per_resize - 1;
  if (!tp_terminating(router->ref.system)) resize(router, z);
}
