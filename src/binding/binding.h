/* The binding: Lua values to engine values and back, Lua functions as the engine's jobs.
 *
 * Three structs matter here. A core is one opening of the module. A host is a system as Lua sees
 * it: a userdata with the engine's system, its loop, and the Lua values the engine holds. A coro is
 * a coroutine that runs user code for a host.
 *
 * Everything the engine holds of Lua's is anchored in one table a system and named by a slot with
 * a count. That table, and all else a host keeps in Lua, lives on the stack of a thread of the
 * host's own ("aux"), which is reachable from the system's userdata alone: so a system with
 * closures that refer to it can be collected. Nothing but what is shown here touches that stack,
 * and nothing on it ever allocates outside a protected call.
 *
 * Lua errors begin here and end here: an engine function is never running when one is raised. */
#ifndef TPL_BINDING_H
#define TPL_BINDING_H

#include <lauxlib.h>
#include <lua.h>

#include "engine/troupe.h"
#include "loop/heap.h"
#include "loop/loop.h"
#include "loop/watchdog.h"

typedef struct tpl_core tpl_core;
typedef struct tpl_host tpl_host;
typedef struct tpl_coro tpl_coro;
typedef struct tpl_task tpl_task;
typedef struct tpl_budget tpl_budget;

/* ---- Cores ------------------------------------------------------------------------------ */

/* What all openings of the module in one Lua state share. */
typedef struct tpl_state {
  tpl_host *running;           /* whose code runs now, or NULL */
  uint32_t watched;            /* hosts with a watchdog */
  bool canary;                 /* it is there (slow.c) */
  tpl_budget *volatile budget; /* of the call that may not wait, or NULL; signals look at it */
} tpl_state;

/* The one of this Lua state. Raises when out of memory, but not when a core is open. */
tpl_state *tpl_state_of(lua_State *L);

/* Metatables of the Lua side that have a meaning for the engine, compared by address. */
struct tpl_core {
  tpl_state *state;
  const void *error_mt;       /* values that fail an ask */
  const void *broadcast_mt;   /* troupe.Broadcast(m): .payload is m */
  const void *dead_letter_mt; /* events whose loss is no dead letter */
  const void *signal_mt;      /* troupe.PoisonPill and its like: [1] is the tp_signal */
  const void
      *request_mt[3]; /* troupe.GetRoutees and its like: [1] is the TP_POOL_REQUEST's number */
  bool closed;        /* its state is being closed: no more hosts */
};

/* User values of a core: what the Lua side gave to core.setup. */
enum {
  TPL_CORE_SETUP = 1,
  TPL_CORE_REF_MT,
  TPL_CORE_ACTOR_MT,
  TPL_CORE_SYSTEM_MT,
  TPL_CORE_TASK_MT,
  TPL_CORE_GATHER_MT,
  TPL_CORE_ROUTING_MT,
  TPL_CORE_HOSTS, /* tpl_host * -> its userdata, weak */
  TPL_CORE_VALUES = TPL_CORE_HOSTS
};

/* Pushes the traceback of what runs in `of`, from `level` on. May raise when out of memory. */
void tpl_push_traceback(lua_State *L, lua_State *of, int level);

/* An __index: methods, else what the Lua side's function gives for (self, key). Upvalues: core, the table
 * of methods, that function. */
int tpl_index(lua_State *L);

/* The core of the C function that runs: each has it as its first upvalue. */
static inline tpl_core *tpl_core_here(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(1));
}

/* Raises an OptionsError whose message begins with the caller's position. */
int tpl_misuse(lua_State *L, const char *format, ...);

/* A duration in milliseconds at `index` as nanoseconds, rounded up; raises unless it is finite and
 * at least 0, or positive if so demanded. `what` names it: "ask: timeout_ms". */
tp_time tpl_check_duration(lua_State *L, int index, bool positive, const char *what);

/* Rounded up, and at most TP_NEVER. */
tp_time tpl_nanoseconds(double ms);

static inline double tpl_milliseconds(tp_time t) { return (double)t / 1e6; }

/* As realloc; frees for size 0. */
void *tpl_allocate(void *block, size_t size);

/* Each of our userdata begins with the address that tells its kind from everything else, whichever
 * opening of the module made it. */
extern const char tpl_system_magic, tpl_ref_magic, tpl_task_magic, tpl_gather_magic;

/* The userdata at `index`, or NULL when it is not of that kind and size. */
static inline void *tpl_test(lua_State *L, int index, const void *magic, size_t size) {
  const void **u = lua_touserdata(L, index); /* a light one has no length */
  return u != NULL && lua_rawlen(L, index) == size && *u == magic ? u : NULL;
}

/* Gives the userdata on top of L the metatable that the core has at `place`. */
void tpl_set_metatable(lua_State *L, int place);

/* Registers functions in the table on top, with the core at index `core` as their upvalue. */
void tpl_set_functions(lua_State *L, int core, const luaL_Reg *functions);

/* What userdata of ours hold outside Lua's memory. A host releases it when Lua will not: an object that
 * a finalizer makes while the state is being closed gets no finalizer of its own. */
typedef struct tpl_owned {
  struct tpl_owned *next, **link;
  tp_stream *stream;        /* of a gather, counted, or NULL */
  tp_ref **slots;           /* of those who await a task, counted */
  uint32_t count, capacity; /* of `slots` */
} tpl_owned;

/* Gives an empty one, in the list of `h`; NULL when out of memory. */
tpl_owned *tpl_own(tpl_host *h);

/* Gives back what it holds, and itself; does nothing to NULL. */
void tpl_disown(tpl_owned *o);

/* What Lua holds of a gather. */
typedef struct tpl_handle {
  const void *magic;
  tpl_host *host;
  tpl_owned *owned; /* NULL after its finalizer */
} tpl_handle;

/* Pushes a handle that holds nothing yet, so that nothing is lost when making it raises, with the
 * metatable that the core has at `place`. */
tpl_handle *tpl_push_handle(lua_State *L, tpl_host *h, const void *magic, int place);

/* What it owns; NULL after its finalizer, and when the host has been taken apart, which released it. */
tpl_owned *tpl_held(const tpl_handle *handle);

/* The finalizer of handles. */
int tpl_handle_gc(lua_State *L);

/* ---- Hosts ------------------------------------------------------------------------------ */

/* Places on the stack of aux. */
enum {
  TPL_ANCHORS = 1, /* slot -> value */
  TPL_REFS,        /* handle -> its ref's userdata, weak; or, free, the next free handle */
  TPL_THREADS,     /* tpl_coro * -> its thread */
  TPL_REF_MT,      /* of this host's refs; it keeps the host */
  TPL_ACTOR_MT,
  TPL_SYSTEM, /* the userdata of the host itself */
  TPL_CORE,   /* the userdata of the core */
  TPL_ON_EVENT,
  TPL_TIMER_MT, /* of the host's timer handles, made on first use */
  TPL_AUX_SIZE = TPL_TIMER_MT
};

enum { TPL_FIRST_ANCHORS = 32 };

/* Slots are given from 1 on, and then again those that have become free. */
typedef struct tpl_anchors {
  uint32_t *slots;     /* of slot i + 1: its count, or TPL_FREE and the next free slot */
  uint32_t capacity;   /* of the array of the table */
  uint32_t room;       /* of `slots` */
  uint32_t given;      /* slots that have ever been in use */
  uint32_t used;       /* that are */
  uint32_t first_free; /* 0: none */
  uint32_t trim_below; /* so many in use it is worth to look for what can be given back */
} tpl_anchors;

#define TPL_FREE 0x80000000u

enum { TPL_FIRST_REFS = 32 };

/* The table of refs. Handles are given from 1 on, and then again those that have become free. */
typedef struct tpl_refs {
  uint32_t capacity;   /* of the table */
  uint32_t given;      /* handles that have ever been in use */
  uint32_t used;       /* that are */
  uint32_t first_free; /* 0: none */
  uint32_t trim_below; /* so many in use it is worth to look for what can be given back */
} tpl_refs;

/* Where an anchored value is, found out before; forgotten when its slot becomes free. */
typedef struct tpl_known {
  uint64_t slot; /* 0: none */
  const void *address;
} tpl_known;

enum { TPL_KNOWN = 64 };

struct tpl_host {
  const void *magic;
  tpl_owned *owned;  /* by timer handles, tasks and gathers */
  tp_system *system; /* NULL once it has been taken apart */
  tpl_core *core;
  tp_loop *loop; /* made when first slept in; a system in virtual time has none */
  lua_State *aux;
  tpl_anchors anchors;
  tpl_refs refs;
  tpl_known known[TPL_KNOWN]; /* tables of actors, by slot */

  tpl_coro *volatile current; /* whose coroutine runs user code now, or NULL; signals look at it */
  tpl_coro *idle;             /* coroutines to be used again */
  tpl_coro *coros;            /* all of them */
  uint32_t pooled, parked, tasks;
  bool driving;    /* its jobs are being run: not to be entered again */
  bool ranking;    /* what has been told is being given its rank at once */
  bool slice_over; /* the driver is to look at the clock, or nothing is ready */

  bool is_virtual;
  tp_time began;
  tp_time now; /* virtual time, or when the clock was read last */
  tp_time polled;
  int budget; /* jobs until the clock is looked at again */
  int pace;   /* jobs between two looks */
  int share;  /* jobs until the slice is over */

  volatile unsigned stretches; /* of running without a wait: a job, or a part of one */
  bool measures;               /* it counts, and how long handlers take */
  tp_watchdog *watchdog;       /* of those, or NULL */
  tp_time slow_after;          /* its limit until it is made, or 0 */

  const void *timer_mt;    /* the address of TPL_TIMER_MT, once it is made */
  uint64_t last_scheduled; /* the anchor of the function that was scheduled last, not counted */

  const void *last_code; /* the behavior made last, not counted: many actors are made alike */
  uint64_t last_slot;
  tp_behavior *last_behavior;
};

static inline tpl_known *tpl_known_at(tpl_host *h, uint64_t slot) {
  return &h->known[slot % TPL_KNOWN];
}

/* The host at `index`; raises for anything else, or for a system that has been taken apart. */
tpl_host *tpl_check_host(lua_State *L, int index, const char *where);

/* Copies what is at `place` on aux to L. */
static inline void tpl_push_aux(lua_State *L, tpl_host *h, int place) {
  lua_pushvalue(h->aux, place);
  lua_xmove(h->aux, L, 1);
}

/* Pushes what the Lua side gave to core.setup under `name`. */
void tpl_push_setup(lua_State *L, tpl_host *h, const char *name);

/* The time now: the machine's, or a virtual one. */
tp_time tpl_clock(tpl_host *h);

/* Tells the engine the time: before what a deadline counts from, that it does not come early; before the
 * next one is looked for. */
void tpl_set_now(tpl_host *h);

/* Pushes what the Lua side is to know of an event; gives the number of values. */
int tpl_push_event(lua_State *L, tpl_host *h, const tp_event *e);

void tpl_open_host(lua_State *L, int core);

/* Takes every host of the core apart: the state is being closed. */
void tpl_close_core(lua_State *L, int core);

/* ---- Values ----------------------------------------------------------------------------- */

/* Room for `n` more anchors, so that anchoring as many cannot raise. Raises when out of memory. */
void tpl_reserve(lua_State *L, tpl_host *h, uint32_t n);

/* Gives an engine value for what is at `index`, counted once. Raises when out of memory; then
 * nothing is held. tpl_value_plain gives no meaning to metatables. */
tp_value tpl_value(lua_State *L, tpl_host *h, int index);
tp_value tpl_value_plain(lua_State *L, tpl_host *h, int index);

/* As tpl_value_plain, for what is likely to be the same as the last time: then that is counted once
 * more. `*slot` remembers it; 0 at first. */
tp_value tpl_value_again(lua_State *L, tpl_host *h, int index, uint64_t *slot);

/* Pushes the Lua value; the engine's is borrowed. */
void tpl_push_value(lua_State *L, tpl_host *h, tp_value v);

/* What the engine calls. */
void tpl_retain(void *context, uint64_t slot);
void tpl_release(void *context, uint64_t slot);

/* Gives back the memory of a table of anchors that was large once. May raise. */
void tpl_trim_anchors(lua_State *L, tpl_host *h);
bool tpl_anchors_are_large(const tpl_host *h);
void tpl_free_anchors(tpl_host *h);

/* ---- Refs ------------------------------------------------------------------------------- */

typedef struct tpl_ref {
  const void *magic;
  tp_ref *ref; /* counted; NULL after its finalizer */
  tpl_host *host;
} tpl_ref;

/* The ref at `index`, or NULL. */
tpl_ref *tpl_test_ref(lua_State *L, int index);

/* The ref at `index`; raises "<where>: <what> must be a ref (got ...)". */
tpl_ref *tpl_check_ref(lua_State *L, int index, const char *where, const char *what);

/* Pushes an empty table of refs, with room for `capacity`; the metatable of the refs of the host at
 * `userdata`. */
void tpl_push_refs(lua_State *L, uint32_t capacity);
void tpl_push_ref_metatable(lua_State *L, int userdata);

/* Pushes the one userdata of `r` (borrowed). */
void tpl_push_ref(lua_State *L, tpl_host *h, tp_ref *r);

/* Whoever still holds a ref of `h` holds one that is gone. */
void tpl_release_refs(tpl_host *h);

/* Gives back the memory of a table of refs that was large once. May raise. */
void tpl_trim_refs(lua_State *L, tpl_host *h);
bool tpl_refs_are_large(const tpl_host *h);

/* The finalizer of refs. */
int tpl_ref_gc(lua_State *L);

/* Pushes the path as text. */
void tpl_push_path(lua_State *L, const tp_ref *r);

void tpl_open_ref(lua_State *L, int core);

/* ---- Actors ----------------------------------------------------------------------------- */

/* Pushes the table of the actor's incarnation, made on first use. */
void tpl_push_actor(lua_State *L, tpl_host *h, tp_ref *r);

/* The ref of the actor table at `index`; raises for anything else. */
tpl_ref *tpl_check_actor(lua_State *L, int index, const char *where);

/* Whether the actor table at `index`, of `u`, is that of the incarnation that lives. */
bool tpl_is_current(lua_State *L, int index, tpl_ref *u);

void tpl_open_actor(lua_State *L, int core);

/* The names of routings, as the Lua side and metrics know them, in the order of tp_routing; NULL ends
 * them. */
extern const char *const tpl_routings[];

/* The names of a full mailbox's policies, in the order of tp_overflow; NULL ends them. */
extern const char *const tpl_overflows[];

/* core.tree(system), core.inspect(ref) */
void tpl_open_inspect(lua_State *L, int core);

/* core.metrics(system) */
void tpl_open_metrics(lua_State *L, int core);

void tpl_open_spawn(lua_State *L, int core);

/* ---- Running ---------------------------------------------------------------------------- */

/* What waits: the token of a slot. */
typedef enum tpl_waiter { TPL_WAITER_CORO, TPL_WAITER_TASK } tpl_waiter;

/* Pushes what a wait gives and returns how many values that is. */
typedef int tpl_results(lua_State *L, tpl_host *h, tp_ref *slot);

/* A debug hook of Lua's. */
typedef struct tpl_hook {
  lua_Hook function;
  int mask, count;
} tpl_hook;

struct tpl_coro {
  tpl_waiter waiter; /* TPL_WAITER_CORO, first */
  bool foreign;      /* a coroutine of the user's own that waits */
  bool left;         /* foreign: its owner has resumed it while it waited */
  bool disturbed;    /* somebody else has resumed it while it waited */
  bool gives_up;     /* it has yielded to be closed: its task is to end here */
  lua_State *L;
  tpl_host *host;
  tp_job job;           /* what it runs */
  tp_time began;        /* that, when it is a message and the host measures */
  tp_ref *slot;         /* what it waits for, counted, or NULL */
  tpl_results *results; /* of that wait */
  tp_ref *answered;     /* whose outcome is being looked at, counted, or NULL */
  tpl_task *task;       /* the task it runs, or NULL */
  tpl_hook hook;        /* that it had before ours */
  tpl_coro *next_idle, *next, **link;
};

/* A coroutine for `h`: a new one, or the one at `thread`, which is the user's. May raise. */
tpl_coro *tpl_coro_new(lua_State *L, tpl_host *h, int thread);
void tpl_free_coros(tpl_host *h);

/* Gives back a slot and its outcome; does nothing to NULL. */
void tpl_drop_slot(tp_ref **slot);

/* Runs jobs of `h` until none is ready or the slice is over (DISP-2). False when there was no memory
 * for a coroutine to run them in. */
bool tpl_run_ready(lua_State *L, tpl_host *h);

/* Looks at the clock, lets deadlines pass; the slice may be over. */
void tpl_look_at_clock(tpl_host *h);

/* Does a TP_JOB_RESUME or TP_JOB_CLOSE of another coroutine, from the slice that got it. */
void tpl_switch(lua_State *L, tpl_host *h, tp_job *job);

/* Ranks a message of `target`, which has just been told one, if any waits for its rank: so the bound of
 * a priority mailbox holds at once (MBX-7). Never raises. */
void tpl_rank_told(lua_State *L, tpl_host *h, tp_ref *target);

/* The slice: a coroutine's body, which runs one job after another. */
int tpl_slice(lua_State *L);

/* ---- Functions that may not wait -------------------------------------------------------- */

/* Calls the function below `arguments` arguments, for one result. When it raises, the job fails with
 * that; and also when it runs for too long, where `what` says whose the fault is then: NULL is for
 * functions that may. May raise when out of memory. */
bool tpl_call_plainly(lua_State *L, tpl_host *h, tp_job *job, const char *what, int arguments);

/* Does a TP_JOB_ROUTE, a TP_JOB_HASH. */
void tpl_ask_strategy(lua_State *L, tpl_coro *c);
void tpl_ask_key(lua_State *L, tpl_coro *c);

void tpl_open_routing(lua_State *L, int core);

/* ---- Driving ---------------------------------------------------------------------------- */

/* What a driver drives for. Until a slot has settled (NULL: until the system has terminated or
 * nothing can happen any more). False when nothing can happen that would settle it. */
bool tpl_drive(lua_State *L, tpl_host *h, tp_ref *slot);

/* Runs all that can run without time going on. */
void tpl_settle(lua_State *L, tpl_host *h);

/* Raises when `h` may not be driven from here. */
void tpl_check_drivable(lua_State *L, tpl_host *h, const char *where);

/* ---- Slow handlers ---------------------------------------------------------------------- */

/* Has a watchdog made for `h`, once, if it is to have one. May raise, but goes without if the machine
 * has none to give. */
void tpl_have_watchdog(lua_State *L, tpl_host *h);
void tpl_drop_watchdog(tpl_host *h);

/* Reports what the watchdog of `h` has found, if it has; `h` may be NULL. `level` is that of the function
 * it is about, on the stack of L. Never raises. */
void tpl_look_at_slow(lua_State *L, tpl_host *h, int level);

/* ---- Metrics ---------------------------------------------------------------------------- */

/* For a host that measures: a message is about to be handled. */
void tpl_measure(tpl_coro *c);

/* What the coroutine runs has ended, and is about to be reported; nothing happens unless it is the
 * handling of a message that is measured. */
void tpl_measured(tpl_coro *c);

/* ---- Waiting ---------------------------------------------------------------------------- */

/* Raises unless a wait for `h` is possible from here; to be called before anything is done. */
void tpl_check_wait(lua_State *L, tpl_host *h, const char *where);

/* Waits for `slot` (taken), where tpl_check_wait has found that possible: yields in a handler, a task or a user's own
 * coroutine, drives the system on the main chunk. To be returned. */
int tpl_wait(lua_State *L, tpl_host *h, tp_ref *slot, tpl_results *results, const char *where);

/* The results of an ask, whose target is at index 1: value, nil, from; or nil, err, from. */
int tpl_ask_results(lua_State *L, tpl_host *h, tp_ref *slot);

/* core.running_system(); troupe.sleep(ms); core.resolve(system, path, timeout). */
int tpl_running_system(lua_State *L);
int tpl_sleep(lua_State *L);
int tpl_resolve_path(lua_State *L);

/* ref:await_stop(timeout_ms); core.check_await_stop(ref, where) */
int tpl_await_stop(lua_State *L);
int tpl_check_await_stop(lua_State *L);

/* ---- Tasks ------------------------------------------------------------------------------ */

typedef enum tpl_task_state {
  TPL_TASK_RUNNING, /* or waiting */
  TPL_TASK_DONE,
  TPL_TASK_FAILED,
  TPL_TASK_CANCELLED,
} tpl_task_state;

struct tpl_task {
  const void *magic;
  tpl_owned *awaited; /* the slots of those who await it, or NULL */
  tpl_waiter waiter;  /* TPL_WAITER_TASK: what its token points to */
  tpl_host *host;
  tpl_coro *coro;  /* while it runs or waits */
  tp_value anchor; /* of its userdata, while it is not over */
  uint8_t state;   /* tpl_task_state */
  bool cancelled;  /* its next wait ends it */
  bool exhausted;  /* there was no memory for its end */
};

static inline tpl_task *tpl_task_of(void *token) {
  return (tpl_task *)(void *)((char *)token - offsetof(tpl_task, waiter));
}

/* core.go(system, fn, ...) -> task */
int tpl_go(lua_State *L);

/* Pushes the function and the arguments of the task that `c` is to run; gives their number. */
int tpl_task_begin(lua_State *L, tpl_coro *c);

/* The task has returned what is on L from `first` on; has raised the error below the traceback on
 * top of L; or was closed in a wait. May raise when out of memory, but the last. */
void tpl_task_returned(lua_State *L, tpl_task *t, int first);
void tpl_task_failed(lua_State *L, tpl_task *t);
void tpl_task_closed(tpl_task *t);

/* There was no memory to say how the task ended: it ends with that error, unless it is over. */
void tpl_task_exhausted(tpl_task *t);

void tpl_open_task(lua_State *L, int core);

/* ---- Timers ----------------------------------------------------------------------------- */

void tpl_open_timer(lua_State *L, int core);

/* ---- Gathers ---------------------------------------------------------------------------- */

/* ref:gather(message [, timeout_ms]) */
int tpl_gather(lua_State *L);

void tpl_open_gather(lua_State *L, int core);

#endif
