/* Lua values as engine values. Scalars travel by themselves; whatever the collector owns is
 * anchored once, in the array part of one table, and named by its slot there. */
#include <stdlib.h>

#include "binding.h"

enum { LARGE = 4096 };

/* ---- Anchors ---------------------------------------------------------------------------- */

static void free_slot(tpl_anchors *a, uint32_t slot) {
  a->slots[slot - 1] = TPL_FREE | a->first_free;
  a->first_free = slot;
}

/* Puts something into the places from `first` to `last` of the table on top. */
static void fill(lua_State *L, uint32_t first, uint32_t last) {
  for (; first <= last; first++) {
    lua_pushboolean(L, 0);
    lua_rawseti(L, -2, first);
  }
}

/* When there is something in all places of its array, and in one more, Lua gives the table an array of the
 * next power of two; two more, since its hash part may take one. */
static void grow_table(lua_State *L, tpl_host *h) {
  tpl_anchors *a = &h->anchors;
  if (a->capacity > TPL_FREE / 4) luaL_error(L, "not enough memory");
  luaL_checkstack(L, 3, "too many values");
  tpl_push_aux(L, h, TPL_ANCHORS);
  fill(L, a->given + 1, a->capacity + 2);
  lua_pop(L, 1);
  a->capacity *= 2;
  a->trim_below = a->capacity / 8;
}

static void grow(lua_State *L, tpl_host *h) {
  tpl_anchors *a = &h->anchors;
  if (a->room == a->capacity) grow_table(L, h);
  uint32_t *slots = realloc(a->slots, a->capacity * sizeof *slots);
  if (slots == NULL) luaL_error(L, "not enough memory");
  a->slots = slots;
  a->room = a->capacity;
}

void tpl_reserve(lua_State *L, tpl_host *h, uint32_t n) {
  while (h->anchors.room - h->anchors.used < n) grow(L, h);
}

static uint32_t take_slot(lua_State *L, tpl_host *h) {
  tpl_anchors *a = &h->anchors;
  uint32_t slot = a->first_free;
  if (slot == 0) {
    if (a->given == a->room) grow(L, h);
    return ++a->given;
  }
  a->first_free = a->slots[slot - 1] & ~TPL_FREE;
  return slot;
}

static uint64_t anchor(lua_State *L, tpl_host *h, int index) {
  tpl_anchors *a = &h->anchors;
  uint32_t slot = take_slot(L, h);
  lua_pushvalue(L, index);
  lua_xmove(L, h->aux, 1);
  lua_rawseti(h->aux, TPL_ANCHORS, slot);
  a->slots[slot - 1] = 1;
  a->used++;
  return slot;
}

void tpl_retain(void *context, uint64_t slot) {
  tpl_host *h = context;
  h->anchors.slots[slot - 1]++;
}

void tpl_release(void *context, uint64_t slot) {
  tpl_host *h = context;
  tpl_anchors *a = &h->anchors;
  if (--a->slots[slot - 1] > 0) return;
  if (tpl_known_at(h, slot)->slot == slot) tpl_known_at(h, slot)->slot = 0;
  if (slot == h->last_slot) { /* the behavior whose code it was is gone */
    h->last_slot = 0;
    h->last_code = NULL;
    h->last_behavior = NULL;
  }
  lua_pushboolean(h->aux, 0);
  lua_rawseti(h->aux, TPL_ANCHORS, (lua_Integer)slot);
  free_slot(a, (uint32_t)slot);
  a->used--;
}

bool tpl_anchors_are_large(const tpl_host *h) {
  return h->anchors.capacity > LARGE && h->anchors.used < h->anchors.trim_below;
}

static uint32_t last_used(const tpl_anchors *a) {
  uint32_t slot = a->given;
  while (slot > 0 && (a->slots[slot - 1] & TPL_FREE) != 0) slot--;
  return slot;
}

/* Leaves the table an array of `capacity`, a power of two. */
static void shrink_table(lua_State *L, tpl_host *h, uint32_t capacity) {
  tpl_push_aux(L, h, TPL_ANCHORS);
  fill(L, h->anchors.given + 1, capacity);
  for (uint32_t slot = h->anchors.capacity; slot > capacity; slot--) {
    lua_pushnil(L);
    lua_rawseti(L, -2, slot);
  }
  lua_pushboolean(L, 1); /* a new key makes Lua count again how large the table need be */
  lua_rawsetp(L, -2, h);
  lua_pushnil(L);
  lua_rawsetp(L, -2, h);
  lua_pop(L, 1);
  h->anchors.capacity = capacity;
}

void tpl_trim_anchors(lua_State *L, tpl_host *h) {
  tpl_anchors *a = &h->anchors;
  uint32_t last = last_used(a), keep = TPL_FIRST_ANCHORS;
  while (keep < last) keep *= 2;
  a->trim_below = a->used / 2; /* what cannot be trimmed now is not looked at all the time */
  if (keep > a->capacity / 2) return;
  a->trim_below = keep / 8;
  a->given = last;
  a->first_free = 0;
  for (uint32_t slot = last; slot > 0; slot--) {
    if ((a->slots[slot - 1] & TPL_FREE) != 0) free_slot(a, slot);
  }
  if (a->room > keep) a->room = keep;
  shrink_table(L, h, keep);
  uint32_t *slots = realloc(a->slots, a->room * sizeof *slots);
  if (slots != NULL) a->slots = slots;
}

void tpl_free_anchors(tpl_host *h) {
  free(h->anchors.slots);
  h->anchors = (tpl_anchors){0};
}

/* ---- To the engine ---------------------------------------------------------------------- */

static tp_value host_value(lua_State *L, tpl_host *h, int index) {
  return (tp_value){.type = TP_HOST, .as.host = anchor(L, h, index)};
}

tp_value tpl_value_plain(lua_State *L, tpl_host *h, int index) {
  switch (lua_type(L, index)) {
    case LUA_TNIL:
    case LUA_TNONE: return tp_nil();
    case LUA_TBOOLEAN: return (tp_value){.type = TP_BOOLEAN, .as.boolean = lua_toboolean(L, index)};
    case LUA_TNUMBER:
      if (lua_isinteger(L, index)) return tp_integer(lua_tointeger(L, index));
      return (tp_value){.type = TP_NUMBER, .as.number = lua_tonumber(L, index)};
    case LUA_TLIGHTUSERDATA:
      return (tp_value){.type = TP_POINTER, .as.pointer = lua_touserdata(L, index)};
    default: return host_value(L, h, index);
  }
}

tp_value tpl_value_again(lua_State *L, tpl_host *h, int index, uint64_t *slot) {
  const tpl_anchors *a = &h->anchors;
  if (*slot != 0 && *slot <= a->given && (a->slots[*slot - 1] & TPL_FREE) == 0) {
    lua_rawgeti(h->aux, TPL_ANCHORS, (lua_Integer)*slot);
    bool same = lua_topointer(h->aux, -1) == lua_topointer(L, index);
    lua_pop(h->aux, 1);
    if (same) {
      tpl_retain(h, *slot);
      return (tp_value){.type = TP_HOST, .as.host = *slot};
    }
  }
  tp_value v = tpl_value_plain(L, h, index);
  *slot = v.type == TP_HOST ? v.as.host : 0;
  return v;
}

static const void *metatable_address(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TTABLE || !lua_getmetatable(L, index)) return NULL;
  const void *mt = lua_topointer(L, -1);
  lua_pop(L, 1);
  return mt;
}

/* troupe.Broadcast(m) stands for m, with a count of how often it is wrapped. */
static tp_value broadcast(lua_State *L, tpl_host *h, int index) {
  int wrappings = 0;
  lua_pushvalue(L, index);
  while (metatable_address(L, -1) == h->core->broadcast_mt && wrappings < TP_BROADCASTS_MAX) {
    lua_pushliteral(L, "payload");
    lua_rawget(L, -2);
    lua_replace(L, -2);
    wrappings++;
  }
  bool is_broadcast = metatable_address(L, -1) == h->core->broadcast_mt;
  tp_value v = is_broadcast ? tpl_value_plain(L, h, lua_gettop(L)) : tpl_value(L, h, lua_gettop(L));
  lua_pop(L, 1);
  v.flags = (uint8_t)(v.flags + wrappings * TP_BROADCAST);
  return v;
}

/* A message that stands for a number: [1]. */
static tp_value numbered(lua_State *L, int index, tp_type type) {
  lua_rawgeti(L, index, 1);
  tp_value v = {.type = (uint8_t)type, .as.integer = lua_tointeger(L, -1)};
  lua_pop(L, 1);
  return v;
}

static bool is_pool_request(const tpl_core *c, const void *mt) {
  return mt == c->request_mt[0] || mt == c->request_mt[1] || mt == c->request_mt[2];
}

tp_value tpl_value(lua_State *L, tpl_host *h, int index) {
  if (lua_isinteger(L, index)) return tp_integer(lua_tointeger(L, index));
  const void *mt = metatable_address(L, index);
  if (mt == NULL) return tpl_value_plain(L, h, index);
  if (mt == h->core->broadcast_mt) return broadcast(L, h, index);
  if (mt == h->core->signal_mt) return numbered(L, index, TP_SIGNAL);
  if (is_pool_request(h->core, mt)) return numbered(L, index, TP_POOL_REQUEST);
  tp_value v = host_value(L, h, index);
  if (mt == h->core->error_mt) v.flags |= TP_IS_ERROR;
  if (mt == h->core->dead_letter_mt) v.flags |= TP_UNLAMENTED;
  return v;
}

/* ---- To Lua ----------------------------------------------------------------------------- */

void tpl_push_setup(lua_State *L, tpl_host *h, const char *name) {
  tpl_push_aux(L, h, TPL_CORE);
  lua_getiuservalue(L, -1, TPL_CORE_SETUP);
  lua_getfield(L, -1, name);
  lua_replace(L, -3);
  lua_pop(L, 1);
}

/* The Lua side makes the error of it: fault(code, path, ms, members, count, asked,
 * replied, needed). */
static void push_fault(lua_State *L, tpl_host *h, const tp_fault *f) {
  luaL_checkstack(L, 10, "too many nested errors");
  tpl_push_setup(L, h, "fault");
  lua_pushstring(L, f->code);
  if (f->subject != NULL) {
    tpl_push_path(L, f->subject);
  } else {
    lua_pushnil(L);
  }
  lua_pushnumber(L, tpl_milliseconds(f->budget));
  lua_createtable(L, (int)f->members, 0);
  for (uint32_t i = 0; i < f->members; i++) {
    tpl_push_value(L, h, f->member[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushinteger(L, f->members);
  lua_pushinteger(L, f->asked);
  lua_pushinteger(L, f->replied);
  lua_pushinteger(L, f->needed);
  lua_call(L, 8, 1);
  if (f->routees.type == TP_NIL) return;
  lua_pushliteral(L, "routees");
  tpl_push_value(L, h, f->routees);
  lua_rawset(L, -3);
}

/* A list of its values, or of { routee = ..., value = ... }. */
static void push_bundle(lua_State *L, tpl_host *h, const tp_bundle *b) {
  luaL_checkstack(L, 6, "too many nested lists");
  uint32_t step = b->pairs ? 2 : 1;
  lua_createtable(L, (int)(b->size / step), 0);
  for (uint32_t i = 0; i < b->size; i += step) {
    if (b->pairs) {
      lua_createtable(L, 0, 2);
      tpl_push_value(L, h, b->item[i]);
      lua_setfield(L, -2, "routee");
      tpl_push_value(L, h, b->item[i + 1]);
      lua_setfield(L, -2, "value");
    } else {
      tpl_push_value(L, h, b->item[i]);
    }
    lua_rawseti(L, -2, i / step + 1);
  }
}

static void push_named(lua_State *L, tpl_host *h, const char *maker, tp_value v) {
  tpl_push_setup(L, h, maker);
  tpl_push_value(L, h, v);
  lua_call(L, 1, 1);
}

void tpl_push_value(lua_State *L, tpl_host *h, tp_value v) {
  if (v.flags >= TP_BROADCAST) { /* it came to somebody who is no router */
    luaL_checkstack(L, 4, NULL);
    v.flags = (uint8_t)(v.flags - TP_BROADCAST);
    push_named(L, h, "broadcast", v);
    return;
  }
  switch (v.type) {
    case TP_BOOLEAN: lua_pushboolean(L, v.as.boolean); break;
    case TP_INTEGER: lua_pushinteger(L, v.as.integer); break;
    case TP_NUMBER: lua_pushnumber(L, v.as.number); break;
    case TP_POINTER: lua_pushlightuserdata(L, v.as.pointer); break;
    case TP_HOST:
      lua_rawgeti(h->aux, TPL_ANCHORS, (lua_Integer)v.as.host);
      lua_xmove(h->aux, L, 1);
      break;
    case TP_REF: tpl_push_ref(L, h, v.as.ref); break;
    case TP_TERMINATED:
      push_named(L, h, "terminated", (tp_value){.type = TP_REF, .as.ref = v.as.ref});
      break;
    case TP_FAULT: push_fault(L, h, v.as.fault); break;
    case TP_BUNDLE: push_bundle(L, h, v.as.bundle); break;
    case TP_RECEIVE_TIMEOUT: tpl_push_setup(L, h, "receive_timeout"); break;
    case TP_SIGNAL: push_named(L, h, "signal", tp_integer(v.as.integer)); break;
    case TP_POOL_REQUEST: push_named(L, h, "pool_request", tp_integer(v.as.integer)); break;
    default: lua_pushnil(L); break;
  }
}
