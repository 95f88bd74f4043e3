/* The actor engine: mailboxes, scheduling, timers, supervision, routing and gathering.
 *
 * The engine knows no scripting language, no event loop and no clock. A host embeds it: it gives
 * the time (tp_advance), asks for the next piece of user code to run (tp_next), runs it, and says
 * how it ended (tp_done, tp_wait, tp_fail). Whatever needs no user code happens inside tp_next.
 * The engine never calls user code, so nothing of the host's can unwind one of its frames.
 *
 * One system and all its handles belong to one thread. Functions that can fail return 0 or a
 * negative tp_error and leave everything as it was. "Borrowed" arguments stay the caller's;
 * "taken" ones become the engine's, also when the call fails; a result that is "given" must be
 * released by the caller. Times are nanoseconds. */
#ifndef TP_TROUPE_H
#define TP_TROUPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tp_system tp_system;
typedef struct tp_ref tp_ref;           /* a counted handle: an actor, or a reply slot */
typedef struct tp_behavior tp_behavior; /* counted, immutable: how actors are made */
typedef struct tp_fault tp_fault;       /* counted: a failure that the engine itself reports */
typedef struct tp_bundle tp_bundle;     /* counted: several values as one */
typedef struct tp_stream tp_stream;     /* counted: the replies to one message, as they come */
typedef struct tp_watch_notice tp_watch_notice; /* counted: a death notice that is queued */
typedef uint64_t tp_tick; /* names a timer of an actor or of a system, and no other ever; 0: none */
typedef int64_t tp_time;  /* nanoseconds on the host's monotonic clock */

#define TP_NEVER INT64_MAX
#define TP_MILLISECOND ((tp_time)1000000)

typedef enum tp_error {
  TP_OK = 0,
  TP_ENOMEM = -1,      /* out of memory; nothing has changed */
  TP_EEXIST = -2,      /* a live sibling has that name */
  TP_ESTOPPED = -3,    /* the actor is stopping or has stopped */
  TP_ETERMINATED = -4, /* the system is terminating or has terminated */
  TP_EIDLE = -6,       /* the actor has no message in hand */
  TP_EFULL = -5,       /* the mailbox is full and rejects; nothing has changed */
} tp_error;

/* ---- Values ---------------------------------------------------------------------------- */

typedef enum tp_type {
  TP_NIL,
  TP_BOOLEAN,
  TP_INTEGER,
  TP_NUMBER,
  TP_POINTER,         /* the host's, uncounted */
  TP_HOST,            /* the host's, counted by tp_host.retain and tp_host.release */
  TP_REF,             /* a counted tp_ref */
  TP_FAULT,           /* a counted tp_fault */
  TP_BUNDLE,          /* a counted tp_bundle */
  TP_SIGNAL,          /* as.integer is a tp_signal */
  TP_POOL_REQUEST,    /* to a router, see below; as.integer is how many */
  TP_TERMINATED,      /* as.ref, counted: a death notice, of whom (WATCH-1) */
  TP_RECEIVE_TIMEOUT, /* there was no user mail for a while (TMR-7) */
  TP_TICK,            /* internal: a timer's message that is queued */
  TP_NOTICE,          /* internal: a death notice that is queued, and may be taken back */
  TP_IDLE,            /* internal: a TP_RECEIVE_TIMEOUT that is queued, as.integer is its number */
} tp_type;

typedef enum tp_signal {
  TP_POISON_PILL, /* drain, then stop (STOP-1) */
  TP_KILL,        /* fail with "killed" when its turn comes (SUP-11) */
} tp_signal;

/* A TP_POOL_REQUEST of 0 asks a router for its routees, which it answers with a TP_BUNDLE of refs. One
 * of n has a pool spawn n more, and one of -n has it remove as many; both are answered with the new
 * size (RTR-15). */
enum { TP_ROUTEES_MAX = 1000000 };

/* Flags of a value. */
enum {
  TP_IS_ERROR = 1,   /* replying with it fails the ask (ASK-5) */
  TP_UNLAMENTED = 2, /* its loss is no dead letter (DL-3) */
  /* From here on a count: how often it is wrapped. A router takes one wrapping off and sends the
   * value to every routee (RTR-5). */
  TP_BROADCAST = 4,
  TP_BROADCASTS_MAX = 63,
};

/* 16 bytes, copied freely. Copying does not count: see tp_value_retain. */
typedef struct tp_value {
  uint8_t type;
  uint8_t flags;
  union {
    bool boolean;
    int64_t integer;
    double number;
    void *pointer;
    uint64_t host;
    tp_ref *ref;
    tp_fault *fault;
    tp_bundle *bundle;
    tp_tick tick;
    tp_watch_notice *notice;
  } as;
} tp_value;

static inline tp_value tp_nil(void) { return (tp_value){.type = TP_NIL}; }

static inline tp_value tp_integer(int64_t i) {
  return (tp_value){.type = TP_INTEGER, .as.integer = i};
}

/* A signal that means this actor, and not the routees of a router. */
static inline bool tp_value_is_signal(tp_value v) {
  return v.type == TP_SIGNAL && v.flags < TP_BROADCAST;
}

void tp_value_retain(tp_system *s, tp_value v);
void tp_value_release(tp_system *s, tp_value v);

typedef struct tp_envelope {
  tp_value message;
  tp_ref *sender; /* or NULL */
} tp_envelope;

/* ---- The host -------------------------------------------------------------------------- */

/* What the engine needs of its embedder. No function may raise or call back into the engine. */
typedef struct tp_host {
  void *context;
  void (*retain)(void *context, uint64_t host);  /* counts a TP_HOST value once more */
  void (*release)(void *context, uint64_t host); /* gives back one count */
  /* As lua_Alloc: frees when new_size is 0, else NULL on failure. Must outlive every ref. */
  void *(*allocate)(void *allocator, void *block, size_t old_size, size_t new_size);
  void *allocator;
  size_t keep; /* bytes of freed blocks that the engine may keep, to use them again */
} tp_host;

/* ---- Systems --------------------------------------------------------------------------- */

typedef struct tp_system_options {
  const char *name;      /* copied */
  uint64_t seed;         /* of everything random in the system */
  uint32_t throughput;   /* messages a turn, at least 1 (DISP-1) */
  tp_time drain_timeout; /* how long tp_terminate lets actors drain (SYS-5) */
  bool escalate_ends;    /* a failure that escalates past the top terminates the system (SUP-10) */
  tp_time now;           /* the time at which the system begins, at least 0 */
  bool shuffle;          /* for tests: the seed draws whose turn is next, and how long (TK-3) */
  bool metrics;          /* count what the system does (MET-1) */
  bool coarse;           /* the host tells the time now and then: asks count from the next time */
} tp_system_options;

/* Gives a system with its guardians, "/", "/user" and "/system" (SYS-2). */
int tp_system_new(const tp_host *host, const tp_system_options *options, tp_system **out);

/* Ends a system at once and without running user code: all memory but that of refs is given back,
 * every ref turns stale. Values of the host's are not given back one by one: all are over. Jobs
 * that have not ended are over with it; their structs must still be there. Refs may outlive the
 * system. */
void tp_system_free(tp_system *s);

const char *tp_system_name(const tp_system *s);

/* Starts the orderly end: drain, stop "/user", then "/system" (SYS-4 .. SYS-6). Idempotent. */
void tp_terminate(tp_system *s);
bool tp_terminating(const tp_system *s); /* from tp_terminate on */
bool tp_waits_ended(const tp_system *s); /* "/user" has stopped, waits outside actors have ended */
bool tp_terminated(const tp_system *s);  /* when the last actor has stopped */

/* Moves the clock; it never moves back. Deadlines that are due take effect in order. */
void tp_advance(tp_system *s, tp_time now);

/* Moves the clock and lets no deadline pass: before something is armed in a job that has run for a
 * while, so that its delay counts from now (TMR-5); and where time is coarse, before looking for the
 * next deadline. */
void tp_set_now(tp_system *s, tp_time now);
tp_time tp_now(const tp_system *s);
tp_time tp_next_deadline(const tp_system *s); /* TP_NEVER when there is none */

/* What a full mailbox does with one more message (MBX-2, MBX-3). */
typedef enum tp_overflow {
  TP_OVERFLOW_DROP_HEAD, /* sheds the oldest message */
  TP_OVERFLOW_DROP_NEW,  /* sheds the newcomer */
  TP_OVERFLOW_REJECT,    /* tp_tell gives TP_EFULL; behind a router the message is a dead letter */
  TP_OVERFLOW_DROP_LOWEST, /* sheds what ranks last; with a priority, in place of drop-head */
  TP_OVERFLOWS,
} tp_overflow;

typedef struct tp_stats {
  size_t actors;                  /* live ones, guardians not counted */
  size_t queued;                  /* messages in mailboxes */
  size_t asks;                    /* reply slots that are open */
  size_t scatters;                /* gathers that are open */
  size_t timers;                  /* deadlines of any kind */
  size_t waits;                   /* jobs that wait (tp_wait) */
  size_t lost;                    /* events that no memory was left for */
  size_t bytes;                   /* memory the engine holds */
  uint64_t dropped[TP_OVERFLOWS]; /* so far, by full mailboxes of each policy (MBX-6) */
} tp_stats;

void tp_system_stats(const tp_system *s, tp_stats *out);

/* Uniform in [0, n); n at least 1. */
uint64_t tp_random(tp_system *s, uint64_t n);

/* ---- Behaviors ------------------------------------------------------------------------- */

/* Hooks that a behavior has; the engine makes no job for one that it has not. */
enum {
  TP_HOOK_PRE_START = 1,
  TP_HOOK_POST_STOP = 2,
  TP_HOOK_PRE_RESTART = 4,  /* without it, its job is for post_stop to run (LIFE-4) */
  TP_HOOK_POST_RESTART = 8, /* without it, its job is for pre_start to run */
};

typedef enum tp_directive {
  TP_DIRECTIVE_RESUME,
  TP_DIRECTIVE_RESTART,
  TP_DIRECTIVE_STOP,
  TP_DIRECTIVE_ESCALATE,
} tp_directive;

/* How failures of a child are answered. */
typedef struct tp_supervision {
  bool given;             /* false: somebody else decides (SPAWN-5) */
  bool all_for_one;       /* its siblings share its fate (SUP-6) */
  tp_directive directive; /* when decider is nil */
  tp_value decider;       /* host code that picks the directive, or nil */
  int64_t max_restarts;   /* -1 is no limit (SUP-5) */
  tp_time within;         /* the sliding window of max_restarts; TP_NEVER for one that never ends */
} tp_supervision;

typedef enum tp_routing {
  TP_ROUTE_NONE,
  TP_ROUTE_ROUND_ROBIN,
  TP_ROUTE_RANDOM,
  TP_ROUTE_BROADCAST,
  TP_ROUTE_SMALLEST_MAILBOX,
  TP_ROUTE_CUSTOM,
  TP_ROUTE_CONSISTENT_HASHING,
  TP_ROUTE_FIRST_COMPLETED, /* from here on routers gather: settings of one engine */
  TP_ROUTE_HEDGED,
  TP_ROUTE_TAIL_CHOPPING,
  TP_ROUTE_SCATTER_GATHER,
  TP_ROUTINGS,
} tp_routing;

/* Whom a router that gathers asks when. */
typedef enum tp_ask_order {
  TP_ASK_ALL,       /* at once */
  TP_ASK_IN_TURN,   /* one, and the next when that is late or has failed; the first in turn */
  TP_ASK_AT_RANDOM, /* the same, in random order */
} tp_ask_order;

#define TP_WAIT_FOR_ALL UINT32_MAX
#define TP_WAIT_FOR_MAJORITY (UINT32_MAX - 1)

/* How a router gathers. */
typedef struct tp_gathering {
  tp_ask_order order;
  tp_time delay;         /* between two that are asked one after another */
  double percentile;     /* hedged: of the router's own latencies, in place of `delay`; 0: no */
  double max_extra_load; /* hedged: the share of requests that may be hedges */
  uint32_t wait_for;     /* replies that are needed (0: one), or TP_WAIT_FOR_... of those asked */
  bool list;             /* answers with all of them, rather than with the first */
  bool cancel_losers;
  tp_time timeout;
} tp_gathering;

typedef enum tp_on_routee_stop {
  TP_ROUTEE_REMOVE,
  TP_ROUTEE_KEEP,
  TP_ROUTEE_RESPAWN,
} tp_on_routee_stop;

/* When a pool is resized, and by how much (RTR-18). A routee is under pressure while it is busy (with a
 * threshold of 0), while it is busy and mail waits for it (1), or while so many messages wait for it
 * (2 and more). */
typedef struct tp_resizer {
  uint32_t lower_bound, upper_bound; /* 1 <= lower <= upper <= TP_ROUTEES_MAX */
  uint32_t pressure_threshold;
  double rampup_rate;       /* the share of its size that it grows by when all are under pressure */
  double backoff_threshold; /* when the share of those under pressure is less ... */
  double backoff_rate;      /* ... it shrinks by this one */
  uint32_t messages_per_resize; /* at least 1 */
} tp_resizer;

/* An actor, or a path at which there may be one ("/user/a"). */
typedef struct tp_member {
  tp_ref *actor; /* or NULL */
  const char *path;
  size_t length;
} tp_member;

typedef struct tp_behavior_spec {
  tp_value code;       /* taken; for the host alone: what its hooks are */
  tp_value receive;    /* taken; for the host alone: what handles messages */
  uint32_t hooks;      /* TP_HOOK_... */
  uint32_t throughput; /* 0: the system's */
  uint32_t capacity;   /* of the mailbox; 0: no bound */
  tp_overflow overflow;
  tp_value priority;       /* taken; host code that ranks its mail (MBX-7), or nil */
  uint32_t stash_capacity; /* messages that may be set aside (STASH-1) */
  bool keep_children;      /* children survive a restart (LIFE-5) */
  bool drain_children;     /* they finish their mail before they stop, when it drains (BOS-1) */
  tp_supervision own;      /* of an actor with this behavior; decider taken */
  tp_supervision children; /* of its children, where they say nothing; decider taken */

  /* A router, which runs no code of its own: `code`, `receive`, `hooks` and `children` are not
   * looked at then. */
  tp_routing routing;
  uint32_t size;       /* routees, at least 1 */
  tp_behavior *routee; /* borrowed */
  tp_on_routee_stop on_routee_stop;
  tp_gathering gathering;
  const tp_resizer *resizer; /* borrowed, or NULL */

  /* Of a group, `size` of them, borrowed; NULL: it is a pool. A group owns no routees to spawn anew or
   * to resize, and does not gather. */
  const tp_member *members;
  tp_value strategy; /* taken; host code of a custom strategy, or what gives the key to hash */
} tp_behavior_spec;

/* Borrows what `spec` borrows and takes what it takes, also on failure; gives *out. TP_ENOMEM. */
int tp_behavior_new(tp_system *s, const tp_behavior_spec *spec, tp_behavior **out);
void tp_behavior_retain(tp_behavior *b);
void tp_behavior_release(tp_behavior *b);
const tp_behavior_spec *tp_behavior_look(const tp_behavior *b);

/* ---- Refs ------------------------------------------------------------------------------ */

void tp_ref_retain(tp_ref *r);
void tp_ref_release(tp_ref *r);

bool tp_ref_is_actor(const tp_ref *r); /* else it is a reply slot */
bool tp_ref_alive(const tp_ref *r);    /* not stopped; a slot: open */
uint64_t tp_ref_uid(const tp_ref *r);

/* A number for the host to find its own object of the ref by; 0 until it sets one. */
uint32_t tp_ref_handle(const tp_ref *r);
void tp_ref_set_handle(tp_ref *r, uint32_t handle);

tp_system *tp_ref_system(const tp_ref *r); /* NULL when the system has been freed */
tp_ref *tp_ref_parent(const tp_ref *r);    /* borrowed; NULL for the root and for slots */

/* Writes the path (PATH-1) or the last name, at most `size` bytes with the final zero. Returns
 * the length of the whole, as snprintf does. */
size_t tp_ref_path(const tp_ref *r, char *buffer, size_t size);
size_t tp_ref_name(const tp_ref *r, char *buffer, size_t size);

tp_ref *tp_root(tp_system *s); /* borrowed */
tp_ref *tp_user_guardian(tp_system *s);

/* The actor at `path` ("/user/a", without the system), borrowed; NULL when there is none. */
tp_ref *tp_lookup(tp_system *s, const char *path, size_t length);

/* Live children in the order they were spawned, borrowed: `after` NULL for the first. */
tp_ref *tp_next_child(const tp_ref *parent, const tp_ref *after);
tp_ref *tp_child(const tp_ref *parent, const char *name, size_t length);

/* The next after `after` of all live actors, guardians included, parents first, borrowed: `after`
 * NULL for the root; NULL after the last. `after` must be alive. */
tp_ref *tp_next_actor(tp_system *s, tp_ref *after);

typedef enum tp_actor_condition {
  TP_ACTOR_STARTING,
  TP_ACTOR_RUNNING, /* or idle */
  TP_ACTOR_WAITING, /* its handler waits */
  TP_ACTOR_SUSPENDED,
  TP_ACTOR_RESTARTING,
  TP_ACTOR_STOPPING,
  TP_ACTOR_STOPPED,
} tp_actor_condition;

/* What there is to see of an actor (INS-1); all of it is borrowed. */
typedef struct tp_actor_info {
  tp_actor_condition state;
  tp_behavior *behavior; /* NULL for guardians, and for what has stopped */
  size_t queued, stashed, timers, children;
  size_t watches, watchers; /* whom it watches, who watches it */
  uint64_t restarts, failures, dropped;
  tp_time receive_timeout; /* TP_NEVER: none */
  tp_value became;         /* tp_become, or nil */
  tp_value failure;        /* the reason of the latest of `failures` */
  tp_time failed_at;
} tp_actor_info;

/* O(timers + watches + watchers). */
void tp_actor_look_at(const tp_ref *actor, tp_actor_info *out);

/* Spawns below `parent` (SPAWN-1). `name` NULL for "$<n>" (PATH-4); it is not checked further.
 * Borrows `behavior`; gives *out. TP_EEXIST, TP_ESTOPPED, TP_ETERMINATED, TP_ENOMEM. */
int tp_spawn(tp_ref *parent, tp_behavior *behavior, const char *name, size_t length, tp_ref **out);

/* Tells `message` (taken) to `target`, with `sender` (borrowed, or NULL). A stopped actor's mail
 * is dead-lettered, which is no error (TELL-5). To a slot it is a reply (ASK-10). TP_ENOMEM,
 * TP_EFULL. */
int tp_tell(tp_ref *target, tp_value message, tp_ref *sender);

/* Answers `target`, the sender of a message, with `value` (taken). It may be a slot or an actor; the
 * errors are those of tp_tell. `from` (borrowed, or NULL) is who answers. A value that is an error, or `failed`, fails an ask (ASK-5). */
int tp_reply(tp_ref *target, tp_value value, bool failed, tp_ref *from);

/* Tells `target`, an actor (borrowed), the message that `actor` has in hand, with its sender; whoever
 * was asked is now `target`. What does not get in is a dead letter, or its asker is told: that is so
 * from `most` messages on that wait in `target`, and when its mailbox refuses. TP_EIDLE, TP_ENOMEM. */
int tp_forward(tp_ref *actor, tp_ref *target, uint32_t most);

int tp_stop(tp_ref *actor);        /* after the mail it has (STOP-1); TP_ENOMEM */
void tp_stop_now(tp_ref *actor);   /* hard: without its mail, abandoning a wait (STOP-2) */
void tp_stop_after(tp_ref *actor); /* itself: when the job in hand is done (STOP-2) */

/* Fails the actor with "killed", ahead of its mail and without waiting for what waits (SUP-11). */
void tp_kill(tp_ref *actor);

/* Has `watcher`, an actor, told when `target`, an actor, has stopped: by a TP_TERMINATED, or by
 * `message` (taken) when `custom`. One notice a target; the latest call decides its message. At once
 * when the target has stopped already (WATCH-2). TP_ENOMEM. */
int tp_watch(tp_ref *watcher, tp_ref *target, tp_value message, bool custom);

/* Takes back a watch, and its notice, even if that is queued. */
void tp_unwatch(tp_ref *watcher, tp_ref *target);

/* Gives a slot that settles with true when `target`, an actor, has stopped (WATCH-5). TP_ENOMEM. */
int tp_await_stop(tp_ref *target, tp_time timeout, tp_ref **slot);

/* Has `receive` (taken; nil for the behavior's own) handle messages, from the next one on, until the
 * incarnation ends (BEC-1). TP_ENOMEM. */
int tp_become(tp_ref *actor, tp_value receive);

/* Sets the message in hand aside (STASH-1). TP_EIDLE when there is none, TP_EEXIST when it is aside
 * already, TP_EFULL, TP_ENOMEM. */
int tp_stash(tp_ref *actor);

/* Puts all that is set aside back, in front of the mail, in its order. TP_ENOMEM. */
int tp_unstash_all(tp_ref *actor);

/* Has the actor told TP_RECEIVE_TIMEOUT after `timeout` without user mail, again and again, until the
 * incarnation ends (TMR-7). TP_NEVER turns it off. TP_ESTOPPED, TP_ENOMEM. */
int tp_set_receive_timeout(tp_ref *actor, tp_time timeout);

/* What the host keeps for the running incarnation of an actor (SPAWN-4), a TP_HOST or nil; released
 * by the engine at restart and stop. tp_actor_set_state takes it. */
tp_value tp_actor_state(const tp_ref *actor);
void tp_actor_set_state(tp_ref *actor, tp_value state);
bool tp_actor_can_spawn(const tp_ref *actor); /* SPAWN-6 */

/* Whether the message in hand is a request whose answer is not wanted any more (SG-14). */
bool tp_actor_cancelled(const tp_ref *actor);

/* The sender of the message in hand, borrowed (TELL-4). A reply slot that is looked at here may be
 * kept and answered later, also when the actor stops meanwhile. */
tp_ref *tp_actor_sender(tp_ref *actor);

/* ---- Reply slots ----------------------------------------------------------------------- */

/* A slot is settled once: by a reply, by its deadline, by the end of whom it asked. A job waits
 * for one slot at a time. Every wait of a host is a slot. */

/* Asks `target` (ASK-1): tells `message` (taken) with a new slot as its sender, and gives the slot.
 * TP_ENOMEM, TP_EFULL; TP_ETERMINATED when the system has been freed. */
int tp_ask(tp_ref *target, tp_value message, tp_time timeout, tp_ref **slot);

/* Gives an open slot with a deadline (TP_NEVER for none). When `expires_well` the deadline is a
 * success with nil: a sleep. */
int tp_slot_new(tp_system *s, tp_time timeout, bool expires_well, tp_ref **slot);

/* Settles with `value` (taken), borrowing `from`. Does nothing to a settled slot but release. */
void tp_slot_settle(tp_ref *slot, tp_value value, bool failed, tp_ref *from);

/* Settles with a fault: "cancelled", "system-terminated". */
void tp_slot_fail(tp_ref *slot, const char *code);

/* Lets go of the outcome of a settled slot that was looked at: it may hold the slot itself. */
void tp_slot_clear(tp_ref *slot);

/* The same, and gives back a count of it. */
void tp_slot_drop(tp_ref *slot);

/* The outcome of a settled slot, borrowed. */
typedef struct tp_outcome {
  bool failed;
  tp_value value;
  tp_ref *from; /* or NULL */
} tp_outcome;

bool tp_slot_settled(const tp_ref *slot);
tp_outcome tp_slot_outcome(const tp_ref *slot);

/* When it settles, a TP_JOB_RESUME with `token` and no actor is made. The token must stay good
 * until then, or until tp_slot_forget. */
void tp_slot_notify(tp_ref *slot, void *token);
void tp_slot_forget(tp_ref *slot);

/* Settles `slot` (borrowed) with a ref when an actor is at `path`, now or later (SEL-1). The
 * path is copied. TP_ENOMEM. */
int tp_resolve(tp_system *s, const char *path, size_t length, tp_ref *slot);

/* ---- Streams --------------------------------------------------------------------------- */

/* Tells `message` (taken) to `target`, and gives a stream of all that is replied: by one actor, or by
 * each routee of a router that passes it on to several (SG-18). What cannot be told is a failure in the
 * stream. TP_ENOMEM; TP_ETERMINATED when the system has been freed. */
int tp_stream_open(tp_ref *target, tp_value message, tp_time timeout, tp_stream **out);

/* Gives a slot that settles with the next reply or failure, in the name of who gave it; or with nil in
 * nobody's name when all have come. TP_ENOMEM. */
int tp_stream_next(tp_stream *st, tp_ref **slot);

/* Whether a slot of tp_stream_next has not been settled yet: then there may not be another one. */
bool tp_stream_waits(const tp_stream *st);

/* Ends it: what is not taken is not wanted any more. */
void tp_stream_close(tp_stream *st);

/* Gives back the handle, which closes the stream. */
void tp_stream_release(tp_stream *st);

/* ---- Faults ---------------------------------------------------------------------------- */

/* What the engine reports when no user code did: a code and what is needed to explain it. */
struct tp_fault {
  uint32_t count;
  const char *code;                /* "ask-timeout", "actor-stopped", "scatter-failed", ... */
  tp_ref *subject;                 /* whom it is about, or NULL */
  tp_time budget;                  /* of a time-out */
  uint32_t members;                /* of an aggregate; what a strategy raised is one */
  uint32_t depth;                  /* aggregates and bundles in it, one in another */
  uint32_t asked, replied, needed; /* routees of a gather */
  tp_value routees;                /* of a gather: who gave each member, a list; or nil */
  tp_value member[];
};

/* The fault that says so, which each system keeps ready; counted for the caller. */
tp_value tp_out_of_memory(tp_system *s);

/* ---- Bundles --------------------------------------------------------------------------- */

/* What a router answers with when that is several values: a list of refs, or, when `pairs`, each
 * routee followed by what it replied. */
struct tp_bundle {
  uint32_t count;
  uint32_t size;
  uint32_t depth; /* as that of a fault */
  bool pairs;
  tp_value item[];
};

/* ---- Timers ---------------------------------------------------------------------------- */

typedef enum tp_repeat {
  TP_ONCE,
  TP_FIXED_DELAY, /* the next delay begins when the tick has been handled (TMR-3) */
  TP_FIXED_RATE,  /* ticks stay on the grid; missed ones are skipped */
} tp_repeat;

/* Starts a timer that tells `actor` (borrowed) `message` (taken); it ends with the incarnation.
 * Gives *out, its name, which holds nothing. Delays may be 0, intervals may not. TP_ENOMEM,
 * TP_ESTOPPED. */
int tp_timer_start(tp_ref *actor, tp_value message, tp_repeat repeat, tp_time delay,
                   tp_time interval, tp_tick *out);

/* Starts a timer of the system, whose job is TP_JOB_TIMER with `function` (taken); once when the
 * interval is 0. Gives *out. TP_ENOMEM, TP_ETERMINATED. */
int tp_schedule(tp_system *s, tp_value function, tp_time delay, tp_time interval, tp_tick *out);

/* The system does not go on for its sake: tp_only_passive tells whether such are all that is left. */
void tp_tick_set_passive(tp_system *s, tp_tick t);
bool tp_only_passive(const tp_system *s);

/* True when a tick was prevented: a queued one is not delivered either (TMR-2). O(1). */
bool tp_tick_cancel(tp_system *s, tp_tick t);

/* Neither cancelled nor over. */
bool tp_tick_active(tp_system *s, tp_tick t);

/* ---- Events ---------------------------------------------------------------------------- */

typedef enum tp_event_kind {
  TP_EVENT_STARTED,     /* subject */
  TP_EVENT_RESTARTED,   /* subject, value: the reason */
  TP_EVENT_STOPPED,     /* subject */
  TP_EVENT_FAILED,      /* subject, value: the reason, trace, directive; code says why, or NULL */
  TP_EVENT_HOOK_FAILED, /* subject, value, trace; code: the hook (LIFE-7) or function that raised */
  TP_EVENT_DEAD_LETTER, /* subject: the recipient, value: the message, sender, code: the reason;
                         * or without a subject, trace: the recipient's path */
  TP_EVENT_DROPPED,     /* a full mailbox shed it: the same, code: the policy (MBX-6) */
  TP_EVENT_WARNING, /* subject, code: "no-reply-target", "deep-mailbox" (value: its depth), ... */
  TP_EVENT_KINDS,
} tp_event_kind;

typedef struct tp_event {
  tp_event_kind kind;
  tp_directive directive;
  const char *code;
  tp_ref *subject;
  tp_ref *sender;
  tp_value value;
  tp_value trace;
} tp_event;

/* Publishes a TP_EVENT_DEAD_LETTER of a message that had no actor to go to: without a subject, `path`
 * as its trace. `path` and `message` are taken, `sender` is borrowed or NULL; `reason` is static. */
void tp_dead_letter(tp_system *s, tp_value path, tp_value message, tp_ref *sender,
                    const char *reason);

/* Which kinds are worth a job: a set of 1u << kind. None at first. */
void tp_events_want(tp_system *s, uint32_t kinds);

/* ---- Metrics --------------------------------------------------------------------------- */

typedef enum tp_counter {
  TP_COUNT_CREATED, /* actors, guardians not counted */
  TP_COUNT_RESTARTED,
  TP_COUNT_TERMINATED,
  TP_COUNT_DELIVERED, /* messages whose handler has begun */
  TP_COUNT_GATHER_FIRST,
  TP_COUNT_GATHER_ENOUGH,
  TP_COUNT_GATHER_TIMEOUT,
  TP_COUNT_GATHER_ALL_FAILED,
  TP_COUNT_GATHER_STOPPED,
  TP_COUNT_GATHER_NO_REPLY_TARGET,
  TP_COUNT_HEDGE_SENT,
  TP_COUNT_HEDGE_WON,
  TP_COUNT_HEDGE_REFUSED,
  TP_COUNTERS,
} tp_counter;

enum { TP_HISTOGRAM_BOUNDS = 16, TP_DEAD_LETTER_REASONS = 8 };

typedef struct tp_histogram {
  uint64_t counts[TP_HISTOGRAM_BOUNDS + 1]; /* up to each bound, and above the last */
  uint64_t sum;                             /* nanoseconds */
} tp_histogram;

/* What a system has done so far (MET-2). */
typedef struct tp_metrics {
  uint64_t counters[TP_COUNTERS];
  uint64_t routed[TP_ROUTINGS]; /* messages that routers have taken up */
  uint64_t dead_letters[TP_DEAD_LETTER_REASONS];
  tp_histogram handled;  /* how long handlers take */
  tp_histogram gathered; /* how long scatters take */
} tp_metrics;

/* The bounds of histograms, from the lowest on; why messages become dead letters (DL-1). */
extern const tp_time tp_histogram_bounds[TP_HISTOGRAM_BOUNDS];
extern const char *const tp_dead_letter_reasons[TP_DEAD_LETTER_REASONS];

/* Borrowed; NULL for a system that does not count. */
const tp_metrics *tp_system_metrics(const tp_system *s);

/* For the host of a system that counts: it begins to handle a TP_JOB_RECEIVE; one has ended, in
 * whatever way, that it began `took` ago. */
void tp_metrics_delivered(tp_system *s);
void tp_metrics_handled(tp_system *s, tp_time took);

/* ---- Jobs ------------------------------------------------------------------------------ */

typedef enum tp_job_kind {
  TP_JOB_RECEIVE,      /* actor, behavior, code: what handles it, envelope */
  TP_JOB_PRE_START,    /* actor, behavior */
  TP_JOB_POST_STOP,    /* actor, behavior */
  TP_JOB_PRE_RESTART,  /* actor, behavior, reason, envelope: the message that failed, if any */
  TP_JOB_POST_RESTART, /* actor, behavior, reason */
  TP_JOB_DECIDE,       /* actor: who failed, code: the decider, reason; end with tp_decided */
  TP_JOB_ROUTE,        /* actor: the router, code: the strategy, envelope, index; tp_routed */
  TP_JOB_HASH,         /* actor: the router, code: what gives the key, envelope; tp_hashed */
  TP_JOB_RANK,         /* actor, code: its priority function, envelope: the message; tp_ranked */
  TP_JOB_TIMER,        /* code: a function of tp_schedule */
  TP_JOB_RESUME,       /* token: go on with what waits there; actor when it is a handler */
  TP_JOB_CLOSE,        /* token: give up what waits there (LIFE-9) */
  TP_JOB_EVENT,        /* event */
} tp_job_kind;

/* A piece of user code to run. What it points to is owned by the engine until the job ends. The
 * struct itself is the host's and must stay where it is until then, also while the job waits. */
typedef struct tp_job {
  tp_job_kind kind;
  tp_system *system;
  tp_ref *actor;
  tp_behavior *behavior;
  tp_envelope envelope;
  tp_value reason;
  tp_value code;
  uint64_t index;
  void *token;
  bool stashed;                 /* internal: the envelope has been set aside */
  struct tp_job *next_handler;  /* internal: waits with the same request in hand, ... */
  struct tp_job **handler_link; /* ... and what leads to this one */
  tp_tick tick;                 /* whose message or function it is, or 0 */
  tp_event event;
} tp_job;

/* Fills `job` with the next piece of user code. False when nothing can run now, or when the engine has
 * been busy by itself for a while: tp_ready tells which; let time go on, and call it again. One job runs
 * at a time: it ends or waits before the next one is asked for. */
bool tp_next(tp_system *s, tp_job *job);

/* Whether tp_next has something to do. */
bool tp_ready(const tp_system *s);

/* The job ran to its end. A TP_JOB_RESUME needs no end of its own: the job that waited goes on. */
void tp_done(tp_job *job);

/* The job waits for `slot` (borrowed). When that has settled, a TP_JOB_RESUME with `token` comes; a
 * TP_JOB_CLOSE instead if its actor cannot go on (LIFE-9): close what waits, then end both jobs
 * with tp_done on the TP_JOB_CLOSE. */
void tp_wait(tp_job *job, tp_ref *slot, void *token);

/* The job raised `reason`; `trace` explains it in logs. Both taken. */
void tp_fail(tp_job *job, tp_value reason, tp_value trace);

/* Ends TP_JOB_DECIDE. */
void tp_decided(tp_job *job, tp_directive directive);

/* Ends TP_JOB_ROUTE: sends the message to each of `routees` (borrowed). A strategy that failed ends
 * with tp_fail (RTR-11). */
void tp_routed(tp_job *job, tp_ref *const *routees, size_t count);

/* Ends TP_JOB_HASH: sends the message to the routee to which the key, of `length` bytes (borrowed),
 * belongs. A function that failed ends with tp_fail. */
void tp_hashed(tp_job *job, const void *key, size_t length);

/* Ends TP_JOB_RANK: lower ranks are handled first. NaN is the highest of all, and so is the rank of a
 * message whose function failed: that ends with tp_fail. */
void tp_ranked(tp_job *job, double rank);

/* For a host that ranks what it tells at once, so that bounds hold at once: whether any mail waits for
 * its rank, and the TP_JOB_RANK of the oldest that does with `actor`, which may run while other jobs
 * do. False when there is none, or when one is being ranked. The rest comes by tp_next, before the
 * actor's turn. */
bool tp_unranked(const tp_system *s);
bool tp_rank_next(tp_ref *actor, tp_job *job);

/* The routees of a router that get mail, in order, borrowed; `size` slots at most are filled. Those of
 * a group are those that its latest message found. Returns how many there are. */
size_t tp_routees(const tp_ref *router, tp_ref **out, size_t size);

/* What stands before a new message of an actor: those that wait, and the one in hand, or a stalled
 * actor would look idle. SIZE_MAX when it takes no more mail. */
size_t tp_depth(const tp_ref *actor);

#endif
