/* A host of the engine for its tests: actors in C, a clock turned by hand, memory that can fail.
 *
 * Code is a host_step. A behavior, a decider, a strategy or a timer holds it as a counted value
 * (host_code). A step ends its job with host_fail, host_wait, host_decide, host_route, host_hash or
 * host_rank; when it just returns, the job is done. What happens is written to a log, one word for each event, which
 * a test compares as text:
 *
 *   a:7             actor "a" got the integer 7; other values read nil, true, 0.5, #7 (a value of
 *                   the host), the name of a ref, the code of a fault; "!" follows an error
 *   a:pre_start     a hook of "a"
 *   closed          a job that waited and was given up
 *   resumed:x       a slot has settled; "x" is the token, a text, of its tp_slot_notify
 *   !stopped:a      an event, see host_want
 *
 * Refs, behaviors and slots that a host_ function returns are borrowed: the host keeps them until
 * host_close. A host that is `lenient` expects memory to fail: it passes over NULL refs and errors,
 * so that a scenario reads the same with and without failures. */
#ifndef TP_SPEC_HOST_H
#define TP_SPEC_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "troupe.h"

#define MS TP_MILLISECOND
#define HOST_ALL_HOOKS                                                                             \
  (TP_HOOK_PRE_START | TP_HOOK_POST_STOP | TP_HOOK_PRE_RESTART | TP_HOOK_POST_RESTART)

typedef struct host host;
typedef void (*host_step)(host *h, tp_job *job);

typedef struct host_entry host_entry;
typedef struct host_kept host_kept;
typedef struct host_frame host_frame;

struct host {
  tp_system *system;
  void *data; /* of the test, for its steps: see host_data */
  bool lenient;
  bool abrupt; /* close without an orderly end first */

  char *log;
  size_t log_length;
  size_t log_size;

  size_t blocks; /* that the engine holds */
  size_t bytes;
  size_t allocations; /* asked for so far, failed ones too */
  size_t fail_at;     /* this one fails; 0: none does */
  size_t fail_from;   /* this one and all after it fail; 0: none does */
  size_t failures;
  size_t keep; /* the engine may keep so many bytes; 0: it asks for each block */

  host_entry *values;
  size_t value_count;
  size_t value_size;
  size_t misuses; /* of values: given back too often, or used after that */

  host_kept *kept;
  size_t kept_count;
  size_t kept_size;

  host_frame *waiting;
  host_frame *current;
  tp_ref *gate; /* where the last host_park waits, kept */
};

/* ---- A host's life ---------------------------------------------------------------------- */

/* A host without a system yet. */
host *host_open(void);

/* Gives it a system named "demo": 32 messages a turn, 2000 ms to drain, seed 1, the clock at 1000
 * ms. NULL in `options` stands for these. */
int host_start(host *h, const tp_system_options *options);

tp_system_options host_defaults(void);

/* Terminates the system and checks that nothing is left open in it and that every value has been
 * given back; frees it and checks that every block has. An `abrupt` one is freed as it stands; its
 * values count as taken back by the host. */
void host_close(host *h);

/* For cmocka: a started host as the test's state. */
int host_setup(void **state);
int host_teardown(void **state);

#define HOST_TEST(title, function)                                                                 \
  { title, function, host_setup, host_teardown, NULL }

/* Zeroed memory for what a test shares with its steps: h->data until the host closes, so that a step
 * that runs after the test has ended finds it still there. */
void *host_data(host *h, size_t size);

/* ---- Running ---------------------------------------------------------------------------- */

/* Runs one job. False when nothing can run. */
bool host_run_one(host *h);

/* Runs until nothing can. Returns how many jobs that were. */
size_t host_run(host *h);

/* Lets time pass, from deadline to deadline, and runs what becomes possible at each. */
void host_advance(host *h, int64_t milliseconds);

/* Milliseconds since the system began. */
int64_t host_elapsed(const host *h);

tp_stats host_stats(const host *h);

/* ---- The log ---------------------------------------------------------------------------- */

void host_log(host *h, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Forgets what has been logged. */
void host_forget(host *h);

/* How often `word` is in the log. */
size_t host_count(const host *h, const char *word);

/* Logs these kinds of events (a set of 1u << TP_EVENT_...): !started:a, !restarted:a:7 (reason),
 * !stopped:a, !failed:a:7:restart, !hook_failed:a:7, !dead:a:7:stopped, !dropped:a:7:drop-new,
 * !warning:a:code. Where an event has no subject, as with a function of a timer, it reads "-". */
void host_want(host *h, uint32_t kinds);

#define HOST_DEAD_LETTERS (1u << TP_EVENT_DEAD_LETTER)

/* Compares the log with `text` and forgets it. */
#define assert_log(h, text)                                                                        \
  do {                                                                                             \
    assert_string_equal((h)->log, text);                                                           \
    host_forget(h);                                                                                \
  } while (0)

/* ---- Values ----------------------------------------------------------------------------- */

/* A new value of the host, counted once. */
tp_value host_value(host *h, int64_t payload);
int64_t host_payload(const host *h, tp_value v);
uint32_t host_value_count(const host *h, tp_value v);

/* Values that are not given back yet. */
size_t host_values_alive(const host *h);

tp_value host_error(int64_t payload); /* an integer with TP_IS_ERROR */

/* A new value that stands for `step`. */
tp_value host_code(host *h, host_step step);

/* Writes `v` as in the log. */
void host_text(const host *h, tp_value v, char *buffer, size_t size);

/* ---- Actors ----------------------------------------------------------------------------- */

/* Completes `spec`: where it has no `receive` its actors record messages, where it has no `code`
 * they record hooks. */
tp_behavior *host_behavior(host *h, tp_behavior_spec spec);

/* Below "/user". */
tp_ref *host_spawn(host *h, host_step receive, const char *name);
tp_ref *host_spawn_spec(host *h, tp_ref *parent, tp_behavior_spec spec, const char *name);
tp_ref *host_spawn_behavior(host *h, tp_ref *parent, tp_behavior *behavior, const char *name);

/* Raises negative integers, and records the hooks it has. */
tp_ref *host_spawn_hooked(host *h, tp_ref *parent, const char *name, uint32_t hooks);

/* The status of a tp_spawn. */
int host_try_spawn(host *h, tp_ref *parent, const char *name);

tp_ref *host_user(const host *h); /* "/user" */

/* The actor at "/user/a", or NULL. */
tp_ref *host_at(const host *h, const char *path);

void host_tell(host *h, tp_ref *target, tp_value message);
void host_send(host *h, tp_ref *target, int64_t number);

/* Asks, and keeps the slot. */
tp_ref *host_ask(host *h, tp_ref *target, tp_value message, int64_t milliseconds);

/* Makes a slot (tp_slot_new), and keeps it. */
tp_ref *host_slot(host *h, int64_t milliseconds, bool expires_well);

/* How a slot stands: "open", "7 from b", "7", "failed 7 from b", "failed ask-timeout". */
const char *host_answer(host *h, tp_ref *slot);

#define assert_answer(h, slot, text) assert_string_equal(host_answer(h, slot), text)

/* Releases the ref when the host closes. NULL is passed over. */
tp_ref *host_keep(host *h, tp_ref *r);

/* ---- In a step -------------------------------------------------------------------------- */

/* Raises `reason`. */
void host_fail(host *h, tp_job *job, tp_value reason);

/* Waits for `slot` (taken), then goes on with `then`, where host_outcome tells how it ended. A
 * step without a slot (NULL, memory has failed) fails. */
void host_wait(host *h, tp_job *job, tp_ref *slot, host_step then);
tp_outcome host_outcome(const tp_job *job);

void host_sleep(host *h, tp_job *job, int64_t milliseconds, host_step then);

/* Waits until the test settles h->gate. */
void host_park(host *h, tp_job *job, host_step then);

void host_decide(host *h, tp_job *job, tp_directive directive);
void host_route(host *h, tp_job *job, tp_ref *const *routees, size_t count);
void host_hash(host *h, tp_job *job, const char *key);
void host_rank(host *h, tp_job *job, double rank);

/* Answers the sender of the message in hand, if there is one, with `value` (taken). */
void host_reply(host *h, tp_job *job, tp_value value, bool failed);

/* The hook that the job is to run: "pre_start", ... */
const char *host_hook(const tp_job *job);

/* Ready-made steps. */
void host_nothing(host *h, tp_job *job);
void host_record(host *h, tp_job *job);      /* a:7 */
void host_record_from(host *h, tp_job *job); /* a:7<b, or a:7<- without a sender */
void host_record_at(host *h, tp_job *job);   /* a:7@120, the time in milliseconds */
void host_record_hook(host *h, tp_job *job); /* a:pre_start */
void host_stall(host *h, tp_job *job);       /* records, then host_park */
void host_echo(host *h, tp_job *job);        /* replies with the message */
void host_fragile(host *h, tp_job *job);     /* records, and raises negative integers */

#endif
