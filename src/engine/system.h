/* A system: what its parts share. */
#ifndef TP_SYSTEM_H
#define TP_SYSTEM_H

#include "actor.h"
#include "alloc.h"
#include "events.h"
#include "list.h"
#include "random.h"
#include "scheduler.h"
#include "tick.h"
#include "timer.h"
#include "troupe.h"

typedef enum tp_system_phase {
  TP_SYSTEM_RUNNING,
  TP_SYSTEM_DRAINING,      /* actors handle the mail they have (SYS-5) */
  TP_SYSTEM_STOPPING_USER, /* "/user" is being stopped */
  TP_SYSTEM_STOPPING,      /* "/system", then the root */
  TP_SYSTEM_TERMINATED,
} tp_system_phase;

typedef struct tp_names {
  tp_actor **buckets;
  size_t count, size;
} tp_names;

typedef struct tp_watches { /* of actors, by watcher and target */
  tp_watch_notice **buckets;
  size_t count, size;
} tp_watches;

struct tp_system {
  tp_host host;
  tp_time now;

  tp_ready_queue ready;
  tp_actor *turn;        /* whose turn it is, counted, or NULL */
  uint32_t turn_left;    /* messages it may still handle */
  bool shuffles;         /* turns are drawn by lot */
  tp_actor *decisions;   /* failed actors whose decider is to be asked, the latest first */
  tp_link unranked;      /* priority mailboxes with mail that waits for its rank */
  uint32_t ranks_in_row; /* jobs of ranking with neither a tick nor a turn in between */
  tp_events events;
  tp_timers *timers;
  bool coarse;        /* the time is told now and then only */
  tp_ring_pool rings; /* buffers of empty mailboxes */
  tp_tickers tickers;

  tp_actor *root, *user, *system; /* guardians, counted */
  tp_names names;
  tp_watches watches;
  tp_link open_slots;
  tp_link streams;                     /* open ones */
  tp_link gathers;                     /* legs of theirs have come to something */
  bool looks_at_gathers;               /* somebody does already */
  tp_slot *cancelled, *last_cancelled; /* legs that are being cancelled, in turn, or NULL */
  tp_link resolutions;                 /* selections that wait for their actor */
  tp_link owed;                        /* death notices that await memory */
  tp_fault *out_of_memory;
  tp_rng rng;
  uint32_t throughput;
  tp_time drain_timeout;
  bool escalate_ends;
  tp_timer deadline; /* of the phase, while terminating */
  uint8_t phase;     /* tp_system_phase */
  bool freed;        /* the host has let go; only stale refs are left */

  uint64_t uids;    /* given so far */
  uint64_t spawned; /* actors so far */
  uint64_t closed;  /* actors that have ceased to take mail, so far */
  size_t holders;   /* of this struct: the host, and each ref */
  uint32_t passive; /* active timers that are passive */
  size_t actors, queued, asks, scatters, waits, bytes;
  uint64_t dropped[TP_OVERFLOWS];
  tp_metrics *metrics; /* NULL: it does not count */
  tp_kept kept;        /* blocks to be used again */

  char *name;
};

/* Counts a holder of the system's memory, or gives a count back. */
static inline void tp_system_hold(tp_system *s) { s->holders++; }
void tp_system_drop(tp_system *s);

/* From the end of draining on. */
static inline bool tp_system_stopping(const tp_system *s) {
  return s->phase >= TP_SYSTEM_STOPPING_USER;
}

/* It is draining, and no handler waits any more; to be asked when nothing is ready. */
bool tp_system_drained(const tp_system *s);

/* Nothing can run: goes on with terminating if that was what it waited for. True when it did. */
bool tp_system_at_rest(tp_system *s);

/* A guardian has stopped. */
void tp_system_guardian_gone(tp_system *s, const tp_actor *guardian);

#endif
