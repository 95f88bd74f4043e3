/* Recipes to behaviors, and spawning. A recipe is a table that the Lua side has checked: its fields
 * are those of tp_behavior_spec. */
#include <string.h>

#include "binding.h"

/* Anchors of a behavior: code, receive, priority, two deciders, a strategy. */
enum { VALUES_EACH = 6 };

enum { STASH_CAPACITY = 1024 };

const char *const tpl_overflows[TP_OVERFLOWS + 1] = {"drop-head", "drop-new", "reject",
                                                     "drop-lowest", NULL};

const char *const tpl_routings[TP_ROUTINGS + 1] = {
    [TP_ROUTE_NONE] = "none",
    [TP_ROUTE_ROUND_ROBIN] = "round_robin",
    [TP_ROUTE_RANDOM] = "random",
    [TP_ROUTE_BROADCAST] = "broadcast",
    [TP_ROUTE_SMALLEST_MAILBOX] = "smallest_mailbox",
    [TP_ROUTE_CUSTOM] = "custom",
    [TP_ROUTE_CONSISTENT_HASHING] = "consistent_hashing",
    [TP_ROUTE_FIRST_COMPLETED] = "scatter_gather_first_completed",
    [TP_ROUTE_HEDGED] = "hedged",
    [TP_ROUTE_TAIL_CHOPPING] = "tail_chopping",
    [TP_ROUTE_SCATTER_GATHER] = "scatter_gather",
};

static lua_Number number_field(lua_State *L, int table, const char *name, lua_Number otherwise) {
  lua_getfield(L, table, name);
  lua_Number n = lua_isnil(L, -1) ? otherwise : lua_tonumber(L, -1);
  lua_pop(L, 1);
  return n;
}

static bool boolean_field(lua_State *L, int table, const char *name) {
  lua_getfield(L, table, name);
  bool b = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return b;
}

/* The place of a field's text in `names`, or 0. */
static int choice_field(lua_State *L, int table, const char *name, const char *const names[]) {
  lua_getfield(L, table, name);
  const char *text = lua_tostring(L, -1);
  int i = 0;
  if (text != NULL) {
    while (names[i] != NULL && strcmp(names[i], text) != 0) i++;
    if (names[i] == NULL) i = 0;
  }
  lua_pop(L, 1);
  return i;
}

static tp_value value_field(lua_State *L, tpl_host *h, int table, const char *name) {
  lua_getfield(L, table, name);
  tp_value v = tpl_value_plain(L, h, lua_gettop(L));
  lua_pop(L, 1);
  return v;
}

static void read_supervision(lua_State *L, int recipe, const char *name, tp_supervision *out) {
  static const char *const directives[] = {"resume", "restart", "stop", "escalate", NULL};
  lua_getfield(L, recipe, name);
  if (!lua_isnil(L, -1)) {
    int t = lua_gettop(L);
    out->given = true;
    out->all_for_one = boolean_field(L, t, "all_for_one");
    out->directive = (tp_directive)choice_field(L, t, "directive", directives);
    lua_getfield(L, t, "max_restarts");
    out->max_restarts = lua_tointeger(L, -1);
    lua_pop(L, 1);
    out->within = tpl_nanoseconds(number_field(L, t, "within_ms", 60000));
  }
  lua_pop(L, 1);
}

static tp_value decider(lua_State *L, tpl_host *h, int recipe, const char *name) {
  tp_value v = tp_nil();
  lua_getfield(L, recipe, name);
  if (!lua_isnil(L, -1)) v = value_field(L, h, lua_gettop(L), "decider");
  lua_pop(L, 1);
  return v;
}

static uint32_t read_hooks(lua_State *L, int recipe) {
  static const struct {
    const char *name;
    uint32_t hook;
  } all[] = {{"pre_start", TP_HOOK_PRE_START},
             {"post_stop", TP_HOOK_POST_STOP},
             {"pre_restart", TP_HOOK_PRE_RESTART},
             {"post_restart", TP_HOOK_POST_RESTART}};
  uint32_t hooks = 0;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    lua_getfield(L, recipe, all[i].name);
    if (!lua_isnil(L, -1)) hooks |= all[i].hook;
    lua_pop(L, 1);
  }
  return hooks;
}

/* How many replies are needed: a number, "majority" or "all". */
static uint32_t read_wait_for(lua_State *L, int recipe) {
  static const char *const names[] = {"", "majority", "all", NULL};
  static const uint32_t meant[] = {0, TP_WAIT_FOR_MAJORITY, TP_WAIT_FOR_ALL};
  int i = choice_field(L, recipe, "wait_for", names);
  return i > 0 ? meant[i] : (uint32_t)number_field(L, recipe, "wait_for", 1);
}

static void read_gathering(lua_State *L, int recipe, tp_gathering *out) {
  static const char *const orders[] = {"all", "in_turn", "at_random", NULL};
  out->order = (tp_ask_order)choice_field(L, recipe, "order", orders);
  out->delay = tpl_nanoseconds(number_field(L, recipe, "delay_ms", 0));
  out->percentile = number_field(L, recipe, "percentile", 0);
  out->max_extra_load = number_field(L, recipe, "max_extra_load", 0);
  out->wait_for = read_wait_for(L, recipe);
  out->list = boolean_field(L, recipe, "list");
  out->cancel_losers = boolean_field(L, recipe, "cancel_losers");
  out->timeout = tpl_nanoseconds(number_field(L, recipe, "timeout_ms", 0));
}

static void read_routing(lua_State *L, int recipe, tp_behavior_spec *spec) {
  static const char *const on_stop[] = {"remove", "keep", "respawn", NULL};
  spec->routing = (tp_routing)choice_field(L, recipe, "routing", tpl_routings);
  spec->size = (uint32_t)number_field(L, recipe, "size", 0);
  spec->on_routee_stop = (tp_on_routee_stop)choice_field(L, recipe, "on_routee_stop", on_stop);
  if (spec->routing >= TP_ROUTE_FIRST_COMPLETED) read_gathering(L, recipe, &spec->gathering);
}

/* The resizer of a pool (RTR-18), NULL where it has none. */
static const tp_resizer *read_resizer(lua_State *L, int recipe, tp_resizer *out) {
  const tp_resizer *z = NULL;
  lua_getfield(L, recipe, "resizer");
  if (!lua_isnil(L, -1)) {
    int t = lua_gettop(L);
    *out = (tp_resizer){
        .lower_bound = (uint32_t)number_field(L, t, "lower_bound", 0),
        .upper_bound = (uint32_t)number_field(L, t, "upper_bound", 0),
        .pressure_threshold = (uint32_t)number_field(L, t, "pressure_threshold", 0),
        .rampup_rate = number_field(L, t, "rampup_rate", 0),
        .backoff_threshold = number_field(L, t, "backoff_threshold", 0),
        .backoff_rate = number_field(L, t, "backoff_rate", 0),
        .messages_per_resize = (uint32_t)number_field(L, t, "messages_per_resize", 0),
    };
    z = out;
  }
  lua_pop(L, 1);
  return z;
}

/* The members of a group (RTR-17), refs and paths, in memory that is left on the stack; NULL for what is
 * no group. The texts of the paths are the recipe's. */
static const tp_member *read_members(lua_State *L, int recipe, uint32_t size) {
  lua_getfield(L, recipe, "members");
  int list = lua_gettop(L);
  if (lua_isnil(L, list)) return NULL;
  tp_member *members = lua_newuserdatauv(L, size * sizeof *members, 0);
  for (uint32_t i = 0; i < size; i++) {
    members[i] = (tp_member){0};
    if (lua_rawgeti(L, list, (lua_Integer)i + 1) == LUA_TSTRING) {
      members[i].path = lua_tolstring(L, -1, &members[i].length);
    } else {
      members[i].actor = tpl_check_ref(L, -1, "spawn", "a member of the group")->ref;
    }
    lua_pop(L, 1);
  }
  return members;
}

/* The values last, in room that was made before, so that nothing is held when something raises. */
static void read_values(lua_State *L, tpl_host *h, int receive, int recipe,
                        tp_behavior_spec *spec) {
  if (!recipe) {
    spec->code = tpl_value_plain(L, h, receive);
  } else {
    spec->code = tpl_value_plain(L, h, recipe);
    spec->priority = value_field(L, h, recipe, "priority");
    spec->own.decider = decider(L, h, recipe, "own");
    spec->children.decider = decider(L, h, recipe, "children");
    spec->strategy = value_field(L, h, recipe, "strategy");
  }
  spec->receive = tpl_value_plain(L, h, receive);
}

static tp_behavior *behavior_of(lua_State *L, tpl_host *h, int receive, int recipe);

static tp_behavior *routee_of(lua_State *L, tpl_host *h, int recipe) {
  luaL_checkstack(L, 10, "routers are nested too deeply");
  lua_getfield(L, recipe, "routee");
  int routee = lua_gettop(L);
  tp_behavior *b = NULL;
  if (!lua_isnil(L, routee)) {
    lua_getfield(L, routee, "receive");
    b = behavior_of(L, h, routee + 1, routee);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return b;
}

/* Counted once. `recipe` is 0 for a bare function. */
static tp_behavior *behavior_of(lua_State *L, tpl_host *h, int receive, int recipe) {
  const void *code = lua_topointer(L, recipe ? recipe : receive);
  if (code == h->last_code) {
    tp_behavior_retain(h->last_behavior);
    return h->last_behavior;
  }
  int top = lua_gettop(L);
  tp_resizer resizer;
  tp_behavior_spec spec = {.stash_capacity = STASH_CAPACITY};
  if (recipe) {
    spec.hooks = read_hooks(L, recipe);
    spec.throughput = (uint32_t)number_field(L, recipe, "throughput", 0);
    spec.capacity = (uint32_t)number_field(L, recipe, "capacity", 0);
    spec.overflow = (tp_overflow)choice_field(L, recipe, "overflow", tpl_overflows);
    spec.stash_capacity = (uint32_t)number_field(L, recipe, "stash_capacity", STASH_CAPACITY);
    spec.keep_children = boolean_field(L, recipe, "keep_children");
    spec.drain_children = boolean_field(L, recipe, "drain_children");
    read_supervision(L, recipe, "own", &spec.own);
    read_supervision(L, recipe, "children", &spec.children);
    read_routing(L, recipe, &spec);
    spec.resizer = read_resizer(L, recipe, &resizer);
    spec.members = read_members(L, recipe, spec.size);
  }
  if (recipe) spec.routee = routee_of(L, h, recipe);
  read_values(L, h, receive, recipe, &spec);
  tp_behavior *b;
  int status = tp_behavior_new(h->system, &spec, &b);
  lua_settop(L, top);
  if (spec.routee != NULL) tp_behavior_release(spec.routee);
  if (status != TP_OK) luaL_error(L, "not enough memory");
  h->last_code = code;
  h->last_slot = spec.code.as.host;
  h->last_behavior = b;
  return b;
}

/* Behaviors that a recipe leads to: itself, and those of its routees. */
static uint32_t behaviors_in(lua_State *L, int recipe) {
  uint32_t n = 1;
  lua_pushvalue(L, recipe);
  while (lua_istable(L, -1)) {
    n++;
    lua_getfield(L, -1, "routee");
    lua_replace(L, -2);
  }
  lua_pop(L, 1);
  return n;
}

static const char *why(int status) {
  switch (status) {
    case TP_EEXIST: return "exists";
    case TP_ESTOPPED: return "stopped";
    case TP_ETERMINATED: return "terminated";
    default: return "not enough memory";
  }
}

/* core.spawn(parent, name, receive, recipe) -> ref | nil, why */
static int core_spawn(lua_State *L) {
  lua_settop(L, 4);
  tpl_ref *parent = tpl_check_ref(L, 1, "spawn", "the parent");
  tpl_host *h = parent->host;
  size_t length = 0;
  const char *name = lua_tolstring(L, 2, &length);
  int status = TP_ETERMINATED;
  tp_ref *r = NULL;
  if (h->system != NULL) {
    tpl_reserve(L, h, behaviors_in(L, 4) * VALUES_EACH);
    tp_behavior *b = behavior_of(L, h, 3, lua_isnil(L, 4) ? 0 : 4);
    status = tp_spawn(parent->ref, b, name, length, &r);
    tp_behavior_release(b);
  }
  if (status != TP_OK) {
    lua_pushnil(L);
    lua_pushstring(L, why(status));
    return 2;
  }
  tpl_push_ref(L, h, r);
  tp_ref_release(r);
  return 1;
}

/* (self, behavior, name, options): a function without name and options is spawned here. All else is for
 * the Lua side, which gets the parent in place of the first argument; what fails here fails there too. */
static int spawn_below(lua_State *L, tpl_host *h, tp_ref *parent) {
  tp_ref *r;
  bool simple = lua_type(L, 2) == LUA_TFUNCTION && lua_isnoneornil(L, 3) && lua_isnoneornil(L, 4);
  if (simple && h->system != NULL) {
    tpl_reserve(L, h, VALUES_EACH);
    tp_behavior *b = behavior_of(L, h, 2, 0);
    int status = tp_spawn(parent, b, NULL, 0, &r);
    tp_behavior_release(b);
    if (status == TP_OK) {
      tpl_push_ref(L, h, r);
      tp_ref_release(r);
      return 1;
    }
  }
  lua_settop(L, 4);
  tpl_push_ref(L, h, parent);
  lua_replace(L, 1);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_insert(L, 1);
  lua_call(L, 4, 1);
  return 1;
}

/* system:spawn(behavior [, name [, options]]) -> ref                        SPAWN-1 */
static int host_spawn(lua_State *L) {
  tpl_host *h = tpl_check_host(L, 1, "spawn");
  return spawn_below(L, h, tp_user_guardian(h->system));
}

/* actor:spawn(behavior [, name [, options]]) -> ref                         SPAWN-1 */
static int actor_spawn(lua_State *L) {
  tpl_ref *u = tpl_check_actor(L, 1, "spawn");
  return spawn_below(L, u->host, u->ref);
}

/* core.spawn_methods(spawn) -> the method of systems, that of actors; `spawn` is the Lua side's, which
 * gets the parent */
static int core_spawn_methods(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  static const lua_CFunction methods[] = {host_spawn, actor_spawn};
  for (int i = 0; i < 2; i++) {
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, methods[i], 2);
  }
  return 2;
}

void tpl_open_spawn(lua_State *L, int core) {
  static const luaL_Reg functions[] = {
      {"spawn", core_spawn}, {"spawn_methods", core_spawn_methods}, {NULL, NULL}};
  tpl_set_functions(L, core, functions);
}
