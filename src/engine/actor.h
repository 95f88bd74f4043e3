/* The cell of an actor: who it is, where it stands in the tree, and what it is doing.
 *
 * The first fields are what a message touches. What most actors never need hangs off a pointer
 * and is allocated on first use: children, and what failures and timers leave behind. A stopped
 * cell stays as a stale handle for as long as somebody holds a ref to it; its parent's cell
 * stays too, for the path. */
#ifndef TP_ACTOR_H
#define TP_ACTOR_H

#include "list.h"
#include "ref.h"
#include "ring.h"
#include "scheduler.h"
#include "slot.h"
#include "window.h"

/* From TP_PHASE_STOPPING on there is no way back. */
typedef enum tp_phase {
  TP_PHASE_RUNNING,      /* handles messages; 0 for the sake of `unusual` below */
  TP_PHASE_STARTING,     /* pre_start has not ended */
  TP_PHASE_FAILED,       /* waits for its supervisor's decision */
  TP_PHASE_PRE_RESTART,  /* pre_restart of the old incarnation has not ended */
  TP_PHASE_RESTARTING,   /* waits for its children to stop */
  TP_PHASE_POST_RESTART, /* post_restart of the new incarnation has not ended */
  TP_PHASE_STOPPING,     /* waits for its children to stop */
  TP_PHASE_POST_STOP,    /* post_stop has not ended */
  TP_PHASE_STOPPED,
} tp_phase;

/* A stop that has been asked for and not begun. */
typedef enum tp_stop_request {
  TP_STOP_NONE,
  TP_STOP_AFTER, /* when the job in hand is done, its waits included */
  TP_STOP_NOW,   /* when the code that runs returns or waits */
} tp_stop_request;

typedef struct tp_family {
  tp_link children; /* live ones, in the order they were spawned */
  size_t count;
  uint64_t unnamed; /* children that were given "$<n>" so far (PATH-4) */
} tp_family;

typedef struct tp_idle tp_idle;

typedef struct tp_extra {
  uint32_t ticks;         /* timers of this incarnation, a list of tick.c */
  tp_link watches;        /* of others, kept over restarts */
  tp_link watchers;       /* who watches this one */
  tp_value reason, trace; /* of the failure that is being dealt with */
  tp_value receive;       /* what it has become, or nil */
  tp_idle *idle;          /* its receive timeout, or NULL */
  tp_ring stash;
  tp_envelope failed; /* what it was handling; its asker is not let go of before the decision */
  tp_window restarts; /* granted to it lately (SUP-5) */
  uint64_t dropped;   /* by its full mailbox (MBX-6) */
  uint64_t restarted, failures; /* how often */
  tp_value last_failure;        /* its reason */
  tp_time failed_at;
  struct tp_actor *next_decision;
} tp_extra;

/* The name of a child that has been given one. */
typedef struct tp_label {
  struct tp_actor *next; /* in its bucket of the name table */
  char text[];
} tp_label;

typedef struct tp_router tp_router;
typedef struct tp_priority tp_priority;

typedef struct tp_actor {
  tp_ref ref; /* first: a ref to an actor is its cell */
  tp_runnable run;
  tp_ring mailbox;
  tp_job *job; /* in hand: running, or waiting for `waits_for` */
  tp_slot *waits_for;
  tp_behavior *behavior; /* NULL for guardians */
  uint64_t state;        /* the host's, of this incarnation, if it `keeps` some */
  union {
    struct {
      uint8_t phase;  /* tp_phase */
      uint8_t stop;   /* tp_stop_request */
      bool killed;    /* is to fail in its turn (SUP-11) */
      bool suspended; /* something above it is frozen */
      bool guardian;
      bool routes;  /* it has a router */
      bool ranks;   /* its mail has priorities: what waits for its rank is in the ring */
      bool adapted; /* it has become another, or has a receive timeout */
    };
    uint64_t unusual; /* 0: it runs, and there is nothing to it but its mail and its behavior */
  };
  bool closed;  /* takes no more mail */
  bool choosy;  /* not all mail is just queued: it is closed, or its mailbox bounded or ranked */
  bool abandon; /* the job that waits is to be closed */
  bool drains;  /* its children finish their mail before they stop */
  bool children_told; /* to stop */
  bool frozen;        /* it has failed, and what is below it is suspended (SUP-3) */
  bool started;       /* pre_start of this incarnation has ended */
  bool removed;       /* by its pool, which does not spawn it anew (RTR-15) */
  bool named;         /* by `label.name`; else "$" and `label.number` */
  bool keeps;         /* it has `state` */
  uint32_t bounded;   /* messages queued that count towards the mailbox's capacity */

  struct tp_actor *parent; /* counted; NULL for the root */
  tp_link siblings;
  union {
    tp_label *name;
    uint64_t number;
  } label;
  tp_family *family;
  tp_extra *extra;
  tp_router *router;
  tp_priority *priority;
} tp_actor;

static inline tp_actor *tp_actor_of(tp_ref *r) { return (tp_actor *)(void *)r; }

static inline const tp_actor *tp_actor_look(const tp_ref *r) {
  return (const tp_actor *)(const void *)r;
}

/* A live cell below `parent` (NULL for the root), in no phase but TP_PHASE_STARTING, with a count
 * of one for its tree and one that is given. `behavior` is retained; NULL for a guardian. */
int tp_actor_new(tp_system *s, tp_actor *parent, tp_behavior *behavior, const char *name,
                 size_t length, tp_actor **out);

/* Takes a stopped cell out of the tree: the name is free, the tree's count is gone. */
void tp_actor_leave(tp_actor *a);

/* Gives back what only a live actor needs. */
void tp_actor_strip(tp_actor *a);

/* Frees the memory of a stale cell: for tp_ref_release. */
void tp_actor_free(tp_actor *a);

/* Memory for failures and timers, made on first use; NULL when there is none. */
tp_extra *tp_actor_extra(tp_actor *a);

/* To be called when what makes it `adapted` has changed. */
static inline void tp_actor_adapt(tp_actor *a) {
  const tp_extra *x = a->extra;
  a->adapted = x != NULL && (x->receive.type != TP_NIL || x->idle != NULL);
}

static inline bool tp_actor_childless(const tp_actor *a) {
  return a->family == NULL || a->family->count == 0;
}

/* For loops over live children that may stop on the way: take the next one first. */
static inline tp_actor *tp_actor_sibling(const tp_actor *parent, tp_link *l) {
  return l == &parent->family->children ? NULL : TP_CONTAINER(l, tp_actor, siblings);
}

static inline tp_actor *tp_actor_first_child(const tp_actor *a) {
  return a->family == NULL ? NULL : tp_actor_sibling(a, a->family->children.next);
}

/* The next after `a` of all that live below `top`, parents first; NULL after the last. Walking
 * past `a` leaves out what is below it. */
static inline tp_actor *tp_actor_walk_past(const tp_actor *top, const tp_actor *a) {
  tp_actor *next = NULL;
  for (; next == NULL && a != top; a = a->parent) {
    next = tp_actor_sibling(a->parent, a->siblings.next);
  }
  return next;
}

static inline tp_actor *tp_actor_walk(const tp_actor *top, const tp_actor *a) {
  tp_actor *child = tp_actor_first_child(a);
  return child != NULL ? child : tp_actor_walk_past(top, a);
}

#endif
