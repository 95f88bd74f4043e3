#include "host.h"

enum { JOB_LIMIT = 20000000 };

struct host_entry {
  uint32_t count;
  int64_t payload;
  host_step step;
};

/* One of the two. */
struct host_kept {
  tp_ref *ref;
  tp_behavior *behavior;
};

/* A job and what it waits for. The job is first: a step's job is its frame. */
struct host_frame {
  tp_job job;
  tp_ref *slot;
  host_step then;
  bool ended;
  host_frame *next;
};

static host_frame *frame_of(tp_job *job) { return (host_frame *)job; }

static void *must_grow(void *block, size_t size) {
  void *grown = realloc(block, size);
  if (grown == NULL) abort();
  return grown;
}

/* ---- What the engine calls -------------------------------------------------------------- */

static bool must_fail(host *h) {
  h->allocations++;
  bool fails =
      h->allocations == h->fail_at || (h->fail_from != 0 && h->allocations >= h->fail_from);
  if (fails) h->failures++;
  return fails;
}

/* A block moves whenever its size changes, so that a stale pointer shows. */
static void *allocate(void *allocator, void *block, size_t old_size, size_t new_size) {
  host *h = allocator;
  void *moved = NULL;
  if (new_size != 0) {
    if (must_fail(h)) return NULL;
    moved = must_grow(NULL, new_size);
    h->blocks++;
    h->bytes += new_size;
  }
  if (block != NULL) {
    if (moved != NULL) memcpy(moved, block, old_size < new_size ? old_size : new_size);
    free(block);
    h->blocks--;
    h->bytes -= old_size;
  }
  return moved;
}

static host_entry *entry_of(const host *h, uint64_t value) {
  return value < h->value_count && h->values[value].count > 0 ? &h->values[value] : NULL;
}

static void retain_value(void *context, uint64_t value) {
  host *h = context;
  host_entry *entry = entry_of(h, value);
  if (entry != NULL) {
    entry->count++;
  } else {
    h->misuses++;
  }
}

static void release_value(void *context, uint64_t value) {
  host *h = context;
  host_entry *entry = entry_of(h, value);
  if (entry != NULL) {
    entry->count--;
  } else {
    h->misuses++;
  }
}

/* ---- A host's life ---------------------------------------------------------------------- */

host *host_open(void) {
  host *h = must_grow(NULL, sizeof *h);
  memset(h, 0, sizeof *h);
  h->log_size = 256;
  h->log = must_grow(NULL, h->log_size);
  host_forget(h);
  return h;
}

tp_system_options host_defaults(void) {
  return (tp_system_options){
      .name = "demo",
      .seed = 1,
      .throughput = 32,
      .drain_timeout = 2000 * MS,
      .now = 1000 * MS,
  };
}

int host_start(host *h, const tp_system_options *options) {
  tp_host functions = {
      .context = h,
      .retain = retain_value,
      .release = release_value,
      .allocate = allocate,
      .allocator = h,
      .keep = h->keep,
  };
  tp_system_options defaults = host_defaults();
  return tp_system_new(&functions, options != NULL ? options : &defaults, &h->system);
}

/* An outcome that has been looked at may be the slot itself. */
static void drop_slot(tp_ref *slot) {
  if (slot == NULL) return;
  if (tp_slot_settled(slot)) tp_slot_clear(slot);
  tp_ref_release(slot);
}

static void drop_frame(host_frame *frame) {
  drop_slot(frame->slot);
  free(frame);
}

static void release_kept(host *h) {
  for (size_t i = 0; i < h->kept_count; i++) {
    if (h->kept[i].ref != NULL) tp_ref_release(h->kept[i].ref);
    if (h->kept[i].behavior != NULL) tp_behavior_release(h->kept[i].behavior);
  }
  h->kept_count = 0;
}

static void drop_frames(host *h) {
  while (h->waiting != NULL) {
    host_frame *frame = h->waiting;
    h->waiting = frame->next;
    drop_frame(frame);
  }
  if (h->current != NULL) drop_frame(h->current);
  h->current = NULL;
}

static void free_host(host *h) {
  free(h->data);
  free(h->kept);
  free(h->values);
  free(h->log);
  free(h);
}

static void terminate(host *h) {
  tp_terminate(h->system);
  host_advance(h, 10000);
  assert_true(tp_terminated(h->system));
  tp_stats stats = host_stats(h);
  assert_int_equal(stats.actors, 0);
  assert_int_equal(stats.queued, 0);
  assert_int_equal(stats.asks, 0);
  assert_int_equal(stats.scatters, 0);
  assert_int_equal(stats.timers, 0);
  assert_int_equal(stats.waits, 0);
  release_kept(h);
  assert_int_equal(host_values_alive(h), 0);
}

void host_close(host *h) {
  if (h->system != NULL && !h->abrupt) terminate(h);
  if (h->system != NULL) tp_system_free(h->system);
  drop_frames(h);
  release_kept(h);
  assert_int_equal(h->blocks, 0);
  assert_int_equal(h->bytes, 0);
  assert_int_equal(h->misuses, 0);
  free_host(h);
}

void *host_data(host *h, size_t size) {
  free(h->data);
  h->data = must_grow(NULL, size);
  memset(h->data, 0, size);
  return h->data;
}

int host_setup(void **state) {
  host *h = host_open();
  *state = h;
  return host_start(h, NULL);
}

int host_teardown(void **state) {
  host_close(*state);
  return 0;
}

/* ---- Running ---------------------------------------------------------------------------- */

static host_frame *take_waiting(host *h, const void *token) {
  for (host_frame **link = &h->waiting; *link != NULL; link = &(*link)->next) {
    host_frame *frame = *link;
    if (frame == token) {
      *link = frame->next;
      return frame;
    }
  }
  return NULL;
}

static void run_frame(host *h, host_frame *frame, host_step step) {
  h->current = frame;
  frame->ended = false;
  frame->then = NULL;
  assert_ptr_equal(frame->job.system, h->system);
  step(h, &frame->job);
  h->current = NULL;
  if (frame->then != NULL) {
    frame->next = h->waiting;
    h->waiting = frame;
    return;
  }
  if (!frame->ended) tp_done(&frame->job);
  drop_frame(frame);
}

/* A token is a frame that waits, or the text that a test gave to tp_slot_notify. */
static void resume(host *h, const tp_job *job) {
  host_frame *frame = take_waiting(h, job->token);
  if (frame != NULL) {
    assert_ptr_equal(job->actor, frame->job.actor);
    run_frame(h, frame, frame->then);
  } else {
    assert_null(job->actor);
    host_log(h, "resumed:%s", (const char *)job->token);
  }
}

static void close_frame(host *h, tp_job *job) {
  host_frame *frame = take_waiting(h, job->token);
  host_log(h, "closed");
  tp_done(job);
  drop_frame(frame);
}

static void ignore(host *h, tp_job *job) {
  (void)h;
  (void)job;
}

static void log_event(host *h, tp_job *job);

static host_step step_of(const host *h, const tp_job *job) {
  tp_value code = tp_nil();
  switch (job->kind) {
    case TP_JOB_EVENT: return log_event;
    case TP_JOB_RECEIVE: code = tp_behavior_look(job->behavior)->receive; break;
    case TP_JOB_PRE_START:
    case TP_JOB_POST_STOP:
    case TP_JOB_PRE_RESTART:
    case TP_JOB_POST_RESTART: code = tp_behavior_look(job->behavior)->code; break;
    case TP_JOB_DECIDE:
    case TP_JOB_ROUTE:
    case TP_JOB_HASH:
    case TP_JOB_RANK:
    case TP_JOB_TIMER: code = job->code; break;
    default: break;
  }
  host_entry *entry = code.type == TP_HOST ? entry_of(h, code.as.host) : NULL;
  return entry != NULL && entry->step != NULL ? entry->step : ignore;
}

bool host_run_one(host *h) {
  host_frame *frame = must_grow(NULL, sizeof *frame);
  memset(frame, 0xa5, sizeof *frame); /* what the engine does not fill in is not to be used */
  frame->slot = NULL;
  while (!tp_next(h->system, &frame->job)) {
    if (tp_ready(h->system)) continue;
    free(frame);
    return false;
  }
  if (frame->job.kind == TP_JOB_RESUME) {
    resume(h, &frame->job);
    free(frame);
  } else if (frame->job.kind == TP_JOB_CLOSE) {
    close_frame(h, &frame->job);
    free(frame);
  } else {
    run_frame(h, frame, step_of(h, &frame->job));
  }
  return true;
}

size_t host_run(host *h) {
  size_t jobs = 0;
  while (host_run_one(h)) {
    if (++jobs > JOB_LIMIT) fail_msg("there is always something to run");
  }
  return jobs;
}

void host_advance(host *h, int64_t milliseconds) {
  tp_time until = tp_now(h->system) + milliseconds * MS;
  size_t steps = 0;
  host_run(h);
  for (tp_time due; (due = tp_next_deadline(h->system)) <= until;) {
    if (++steps > JOB_LIMIT) fail_msg("there is always something due");
    tp_advance(h->system, due);
    host_run(h);
  }
  tp_advance(h->system, until);
  host_run(h);
}

tp_stats host_stats(const host *h) {
  tp_stats stats;
  tp_system_stats(h->system, &stats);
  return stats;
}

int64_t host_elapsed(const host *h) { return tp_now(h->system) / MS - 1000; }

/* ---- The log ---------------------------------------------------------------------------- */

static void append(host *h, const char *text, size_t length) {
  if (h->log_length + length >= h->log_size) {
    h->log_size = 2 * (h->log_length + length + 1);
    h->log = must_grow(h->log, h->log_size);
  }
  memcpy(h->log + h->log_length, text, length);
  h->log_length += length;
  h->log[h->log_length] = '\0';
}

void host_log(host *h, const char *format, ...) {
  char word[512];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(word, sizeof word, format, arguments);
  va_end(arguments);
  if (h->log_length > 0) append(h, " ", 1);
  append(h, word, (size_t)length < sizeof word ? (size_t)length : sizeof word - 1);
}

void host_forget(host *h) {
  h->log_length = 0;
  h->log[0] = '\0';
}

size_t host_count(const host *h, const char *word) {
  size_t length = strlen(word);
  size_t count = 0;
  for (const char *at = h->log; (at = strstr(at, word)) != NULL; at += length) {
    bool begins = at == h->log || at[-1] == ' ';
    bool ends = at[length] == '\0' || at[length] == ' ';
    if (begins && ends) count++;
  }
  return count;
}

void host_want(host *h, uint32_t kinds) { tp_events_want(h->system, kinds); }

static const char *directive_name(tp_directive directive) {
  switch (directive) {
    case TP_DIRECTIVE_RESUME: return "resume";
    case TP_DIRECTIVE_RESTART: return "restart";
    case TP_DIRECTIVE_STOP: return "stop";
    case TP_DIRECTIVE_ESCALATE: return "escalate";
  }
  return "?";
}

static void log_event(host *h, tp_job *job) {
  const tp_event *e = &job->event;
  char subject[128] = "-";
  assert_null(job->actor);
  char value[128];
  if (e->subject != NULL) tp_ref_name(e->subject, subject, sizeof subject);
  host_text(h, e->value, value, sizeof value);
  switch (e->kind) {
    case TP_EVENT_STARTED: host_log(h, "!started:%s", subject); break;
    case TP_EVENT_RESTARTED: host_log(h, "!restarted:%s:%s", subject, value); break;
    case TP_EVENT_STOPPED: host_log(h, "!stopped:%s", subject); break;
    case TP_EVENT_FAILED:
      host_log(h, "!failed:%s:%s:%s", subject, value, directive_name(e->directive));
      break;
    case TP_EVENT_HOOK_FAILED: host_log(h, "!hook_failed:%s:%s", subject, value); break;
    case TP_EVENT_DEAD_LETTER: host_log(h, "!dead:%s:%s:%s", subject, value, e->code); break;
    case TP_EVENT_DROPPED: host_log(h, "!dropped:%s:%s:%s", subject, value, e->code); break;
    case TP_EVENT_WARNING: host_log(h, "!warning:%s:%s", subject, e->code); break;
    case TP_EVENT_KINDS: break;
  }
}

/* ---- Values ----------------------------------------------------------------------------- */

static tp_value new_value(host *h, int64_t payload, host_step step) {
  if (h->value_count == h->value_size) {
    h->value_size = 2 * h->value_size + 16;
    h->values = must_grow(h->values, h->value_size * sizeof *h->values);
  }
  h->values[h->value_count] = (host_entry){.count = 1, .payload = payload, .step = step};
  return (tp_value){.type = TP_HOST, .as.host = h->value_count++};
}

tp_value host_value(host *h, int64_t payload) { return new_value(h, payload, NULL); }

tp_value host_code(host *h, host_step step) { return new_value(h, 0, step); }

int64_t host_payload(const host *h, tp_value v) {
  host_entry *entry = v.type == TP_HOST ? entry_of(h, v.as.host) : NULL;
  return entry != NULL ? entry->payload : -1;
}

uint32_t host_value_count(const host *h, tp_value v) {
  host_entry *entry = entry_of(h, v.as.host);
  return entry != NULL ? entry->count : 0;
}

size_t host_values_alive(const host *h) {
  size_t alive = 0;
  for (size_t i = 0; i < h->value_count; i++) alive += h->values[i].count > 0;
  return alive;
}

tp_value host_error(int64_t payload) {
  return (tp_value){.type = TP_INTEGER, .flags = TP_IS_ERROR, .as.integer = payload};
}

void host_text(const host *h, tp_value v, char *buffer, size_t size) {
  const char *mark = (v.flags & TP_IS_ERROR) != 0 && v.type != TP_FAULT ? "!" : "";
  char name[96];
  switch ((tp_type)v.type) {
    case TP_NIL: snprintf(buffer, size, "nil%s", mark); break;
    case TP_BOOLEAN: snprintf(buffer, size, "%s%s", v.as.boolean ? "true" : "false", mark); break;
    case TP_INTEGER: snprintf(buffer, size, "%lld%s", (long long)v.as.integer, mark); break;
    case TP_NUMBER: snprintf(buffer, size, "%g%s", v.as.number, mark); break;
    case TP_POINTER: snprintf(buffer, size, "pointer%s", mark); break;
    case TP_HOST: snprintf(buffer, size, "#%lld%s", (long long)host_payload(h, v), mark); break;
    case TP_REF:
      tp_ref_name(v.as.ref, name, sizeof name);
      snprintf(buffer, size, "%s%s", name, mark);
      break;
    case TP_FAULT: snprintf(buffer, size, "%s", v.as.fault->code); break;
    case TP_BUNDLE: snprintf(buffer, size, "bundle-%u%s", v.as.bundle->size, mark); break;
    case TP_SIGNAL: snprintf(buffer, size, "signal%s", mark); break;
    case TP_POOL_REQUEST:
      snprintf(buffer, size, "request%+lld%s", (long long)v.as.integer, mark);
      break;
    case TP_TERMINATED:
      tp_ref_name(v.as.ref, name, sizeof name);
      snprintf(buffer, size, "dead-%s", name);
      break;
    case TP_TICK: snprintf(buffer, size, "tick%s", mark); break;
    case TP_NOTICE: snprintf(buffer, size, "notice%s", mark); break;
    case TP_RECEIVE_TIMEOUT: snprintf(buffer, size, "idle%s", mark); break;
    case TP_IDLE: snprintf(buffer, size, "mark%s", mark); break;
  }
}

/* ---- Actors ----------------------------------------------------------------------------- */

static void keep(host *h, host_kept kept) {
  if (h->kept_count == h->kept_size) {
    h->kept_size = 2 * h->kept_size + 16;
    h->kept = must_grow(h->kept, h->kept_size * sizeof *h->kept);
  }
  h->kept[h->kept_count++] = kept;
}

tp_ref *host_keep(host *h, tp_ref *r) {
  if (r != NULL) keep(h, (host_kept){.ref = r});
  return r;
}

static bool succeeds(const host *h, int status) {
  if (!h->lenient) assert_int_equal(status, TP_OK);
  return status == TP_OK;
}

tp_behavior *host_behavior(host *h, tp_behavior_spec spec) {
  tp_behavior *behavior = NULL;
  if (spec.receive.type == TP_NIL) spec.receive = host_code(h, host_record);
  if (spec.code.type == TP_NIL) spec.code = host_code(h, host_record_hook);
  if (!succeeds(h, tp_behavior_new(h->system, &spec, &behavior))) return NULL;
  keep(h, (host_kept){.behavior = behavior});
  return behavior;
}

tp_ref *host_spawn_behavior(host *h, tp_ref *parent, tp_behavior *behavior, const char *name) {
  tp_ref *r = NULL;
  if (behavior == NULL || parent == NULL) return NULL;
  size_t length = name != NULL ? strlen(name) : 0;
  if (!succeeds(h, tp_spawn(parent, behavior, name, length, &r))) return NULL;
  return host_keep(h, r);
}

tp_ref *host_spawn_spec(host *h, tp_ref *parent, tp_behavior_spec spec, const char *name) {
  return host_spawn_behavior(h, parent, host_behavior(h, spec), name);
}

tp_ref *host_spawn(host *h, host_step receive, const char *name) {
  return host_spawn_spec(h, host_user(h), (tp_behavior_spec){.receive = host_code(h, receive)},
                         name);
}

tp_ref *host_spawn_hooked(host *h, tp_ref *parent, const char *name, uint32_t hooks) {
  tp_behavior_spec spec = {.receive = host_code(h, host_fragile), .hooks = hooks};
  return host_spawn_spec(h, parent, spec, name);
}

int host_try_spawn(host *h, tp_ref *parent, const char *name) {
  tp_ref *r = NULL;
  int status = tp_spawn(parent, host_behavior(h, (tp_behavior_spec){0}), name, strlen(name), &r);
  host_keep(h, r);
  return status;
}

tp_ref *host_user(const host *h) { return tp_user_guardian(h->system); }

tp_ref *host_at(const host *h, const char *path) {
  return tp_lookup(h->system, path, strlen(path));
}

void host_tell(host *h, tp_ref *target, tp_value message) {
  if (target == NULL) {
    tp_value_release(h->system, message);
  } else {
    succeeds(h, tp_tell(target, message, NULL));
  }
}

void host_send(host *h, tp_ref *target, int64_t number) {
  host_tell(h, target, tp_integer(number));
}

tp_ref *host_ask(host *h, tp_ref *target, tp_value message, int64_t milliseconds) {
  tp_ref *slot = NULL;
  if (target == NULL) {
    tp_value_release(h->system, message);
    return NULL;
  }
  if (!succeeds(h, tp_ask(target, message, milliseconds * MS, &slot))) return NULL;
  return host_keep(h, slot);
}

tp_ref *host_slot(host *h, int64_t milliseconds, bool expires_well) {
  tp_ref *slot = NULL;
  if (!succeeds(h, tp_slot_new(h->system, milliseconds * MS, expires_well, &slot))) return NULL;
  return host_keep(h, slot);
}

const char *host_answer(host *h, tp_ref *slot) {
  static char text[320];
  if (!tp_slot_settled(slot)) return "open";
  tp_outcome outcome = tp_slot_outcome(slot);
  char value[128];
  char from[128] = "";
  host_text(h, outcome.value, value, sizeof value);
  if (outcome.from != NULL && outcome.value.type != TP_FAULT) {
    tp_ref_name(outcome.from, from, sizeof from);
  }
  snprintf(text, sizeof text, "%s%s%s%s", outcome.failed ? "failed " : "", value,
           from[0] != '\0' ? " from " : "", from);
  return text;
}

/* ---- In a step -------------------------------------------------------------------------- */

void host_fail(host *h, tp_job *job, tp_value reason) {
  frame_of(job)->ended = true;
  tp_fail(job, reason, host_value(h, 0));
}

void host_wait(host *h, tp_job *job, tp_ref *slot, host_step then) {
  host_frame *frame = frame_of(job);
  if (slot == NULL) {
    host_fail(h, job, tp_nil());
    return;
  }
  drop_slot(frame->slot);
  frame->slot = slot;
  frame->then = then;
  tp_wait(job, slot, frame);
}

tp_outcome host_outcome(const tp_job *job) {
  return tp_slot_outcome(((const host_frame *)job)->slot);
}

void host_sleep(host *h, tp_job *job, int64_t milliseconds, host_step then) {
  tp_ref *slot = NULL;
  tp_slot_new(h->system, milliseconds * MS, true, &slot);
  host_wait(h, job, slot, then);
}

void host_park(host *h, tp_job *job, host_step then) {
  tp_ref *slot = NULL;
  tp_slot_new(h->system, TP_NEVER, false, &slot);
  if (slot != NULL) {
    tp_ref_retain(slot);
    h->gate = host_keep(h, slot);
  }
  host_wait(h, job, slot, then);
}

void host_decide(host *h, tp_job *job, tp_directive directive) {
  (void)h;
  frame_of(job)->ended = true;
  tp_decided(job, directive);
}

void host_route(host *h, tp_job *job, tp_ref *const *routees, size_t count) {
  (void)h;
  frame_of(job)->ended = true;
  tp_routed(job, routees, count);
}

void host_hash(host *h, tp_job *job, const char *key) {
  (void)h;
  frame_of(job)->ended = true;
  tp_hashed(job, key, strlen(key));
}

void host_rank(host *h, tp_job *job, double rank) {
  (void)h;
  frame_of(job)->ended = true;
  tp_ranked(job, rank);
}

void host_reply(host *h, tp_job *job, tp_value value, bool failed) {
  tp_ref *sender = tp_actor_sender(job->actor);
  if (sender == NULL) {
    tp_value_release(h->system, value);
  } else {
    succeeds(h, tp_reply(sender, value, failed, job->actor));
  }
}

void host_nothing(host *h, tp_job *job) { ignore(h, job); }

static void describe(host *h, const tp_job *job, char *name, char *value, size_t size) {
  tp_ref_name(job->actor, name, size);
  host_text(h, job->envelope.message, value, size);
}

void host_record(host *h, tp_job *job) {
  char name[128];
  char value[128];
  describe(h, job, name, value, sizeof name);
  host_log(h, "%s:%s", name, value);
}

void host_record_from(host *h, tp_job *job) {
  char name[128];
  char value[128];
  char sender[128] = "-";
  describe(h, job, name, value, sizeof name);
  if (job->envelope.sender != NULL) tp_ref_name(job->envelope.sender, sender, sizeof sender);
  host_log(h, "%s:%s<%s", name, value, sender);
}

void host_record_at(host *h, tp_job *job) {
  char name[128];
  char value[128];
  describe(h, job, name, value, sizeof name);
  host_log(h, "%s:%s@%lld", name, value, (long long)host_elapsed(h));
}

/* Restart jobs stand for the other hooks where a behavior has none of their own (LIFE-4). */
const char *host_hook(const tp_job *job) {
  uint32_t hooks = tp_behavior_look(job->behavior)->hooks;
  switch (job->kind) {
    case TP_JOB_PRE_START: return "pre_start";
    case TP_JOB_POST_STOP: return "post_stop";
    case TP_JOB_PRE_RESTART: return hooks & TP_HOOK_PRE_RESTART ? "pre_restart" : "post_stop";
    case TP_JOB_POST_RESTART: return hooks & TP_HOOK_POST_RESTART ? "post_restart" : "pre_start";
    default: return "";
  }
}

void host_record_hook(host *h, tp_job *job) {
  char name[128];
  tp_ref_name(job->actor, name, sizeof name);
  host_log(h, "%s:%s", name, host_hook(job));
}

void host_stall(host *h, tp_job *job) {
  if (job->kind == TP_JOB_RECEIVE) {
    host_record(h, job);
  } else {
    host_record_hook(h, job);
  }
  host_park(h, job, host_nothing);
}

void host_echo(host *h, tp_job *job) {
  tp_value message = job->envelope.message;
  tp_value_retain(h->system, message);
  host_reply(h, job, message, false);
}

void host_fragile(host *h, tp_job *job) {
  tp_value message = job->envelope.message;
  host_record(h, job);
  if (message.type == TP_INTEGER && message.as.integer < 0) host_fail(h, job, message);
}
