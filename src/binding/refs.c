/* The userdata of refs: one for each, so that equal refs are the same value. A ref knows its by a
 * handle, its place in a weak table that is all array.
 *
 * A userdata that has died leaves its place empty, or false when the table has grown since. Its finalizer
 * makes the place free, unless the ref has got another userdata in it before that. Nothing is ever put beyond the table's array, so putting what
 * is found by a handle allocates nothing. */
#include "binding.h"

enum { LARGE = 4096 };

void tpl_push_refs(lua_State *L, uint32_t capacity) {
  lua_createtable(L, (int)capacity, 0);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
}

/* What all refs have in common, and the host, which so lives as long as its refs. */
void tpl_push_ref_metatable(lua_State *L, int userdata) {
  lua_newtable(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_getiuservalue(L, -1, TPL_CORE_REF_MT);
  lua_replace(L, -2);
  for (lua_pushnil(L); lua_next(L, -2) != 0;) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_settable(L, -5);
  }
  lua_pop(L, 1);
  lua_pushvalue(L, userdata);
  lua_rawseti(L, -2, 1);
}

/* ---- Handles ---------------------------------------------------------------------------- */

static void set_free(tpl_host *h, uint32_t handle) {
  lua_pushinteger(h->aux, h->refs.first_free);
  lua_rawseti(h->aux, TPL_REFS, handle);
  h->refs.first_free = handle;
}

/* A table with fewer places; it may be that a finalizer takes more of them meanwhile. */
static void replace_table(lua_State *L, tpl_host *h, uint32_t capacity) {
  tpl_push_refs(L, capacity);
  if (h->refs.given > capacity) {
    lua_pop(L, 1);
    return;
  }
  lua_xmove(L, h->aux, 1);
  for (uint32_t i = 1; i <= h->refs.given; i++) {
    lua_rawgeti(h->aux, TPL_REFS, i);
    lua_rawseti(h->aux, -2, i);
  }
  lua_replace(h->aux, TPL_REFS);
  h->refs.capacity = capacity;
  h->refs.trim_below = capacity / 8;
}

/* In the table on top. */
static void set_dead(lua_State *L, uint32_t place) {
  lua_pushboolean(L, 0);
  lua_rawseti(L, -2, place);
}

/* When all places up to the end of its array are taken, and one more is, Lua gives the table an array of
 * the next power of two. Where it can it does so without touching those places again. */
static void make_room(lua_State *L, tpl_host *h) {
  tpl_refs *t = &h->refs;
  if (t->first_free != 0 || t->given < t->capacity) return;
  if (t->capacity >= INT32_MAX / 2) luaL_error(L, "not enough memory");
  tpl_push_aux(L, h, TPL_REFS);
  for (uint32_t i = 1; i <= t->given; i++) {
    bool died = lua_rawgeti(L, -1, i) == LUA_TNIL;
    lua_pop(L, 1);
    if (died) set_dead(L, i);
  }
  set_dead(L, t->capacity + 1);
  lua_pop(L, 1);
  uint32_t room = TPL_FIRST_REFS;
  while (room <= t->capacity) room *= 2;
  t->capacity = room;
  t->trim_below = room / 8;
}

/* There is room. */
static uint32_t take_handle(tpl_host *h) {
  tpl_refs *t = &h->refs;
  t->used++;
  if (t->first_free == 0) return ++t->given;
  uint32_t handle = t->first_free;
  lua_rawgeti(h->aux, TPL_REFS, handle);
  t->first_free = (uint32_t)lua_tointeger(h->aux, -1);
  lua_pop(h->aux, 1);
  return handle;
}

bool tpl_refs_are_large(const tpl_host *h) {
  return h->refs.capacity > LARGE && h->refs.used < h->refs.trim_below;
}

static bool is_free(tpl_host *h, uint32_t handle) {
  bool is = lua_rawgeti(h->aux, TPL_REFS, handle) == LUA_TNUMBER;
  lua_pop(h->aux, 1);
  return is;
}

void tpl_trim_refs(lua_State *L, tpl_host *h) {
  tpl_refs *t = &h->refs;
  while (t->given > 0 && is_free(h, t->given)) t->given--;
  t->first_free = 0;
  for (uint32_t handle = t->given; handle > 0; handle--) {
    if (is_free(h, handle)) set_free(h, handle);
  }
  t->trim_below = t->used / 2; /* what cannot be trimmed now is not looked at all the time */
  if (t->given <= t->capacity / 2) replace_table(L, h, t->given + TPL_FIRST_REFS);
}

/* ---- Userdata --------------------------------------------------------------------------- */

/* Pushes what is in the place of `r`; false, and nothing, when there is none. */
static bool push_known(lua_State *L, tpl_host *h, const tp_ref *r) {
  uint32_t handle = tp_ref_handle(r);
  if (handle == 0) return false;
  if (lua_rawgeti(h->aux, TPL_REFS, handle) !=
      LUA_TUSERDATA) { /* it has died, and is to be finalized */
    lua_pop(h->aux, 1);
    return false;
  }
  lua_xmove(h->aux, L, 1);
  return true;
}

void tpl_push_ref(lua_State *L, tpl_host *h, tp_ref *r) {
  if (push_known(L, h, r)) return;
  luaL_checkstack(L, 4, NULL);
  tp_ref_retain(r); /* a finalizer that runs now may drive the system, and end what `r` is */
  tp_heap_map();
  tpl_ref *u = lua_newuserdatauv(L, sizeof *u, 0);
  *u = (tpl_ref){.magic = &tpl_ref_magic, .host = h};
  if (tp_ref_handle(r) == 0) make_room(L, h);
  if (push_known(L, h, r)) { /* or has made its userdata */
    lua_replace(L, -2);
    tp_ref_release(r);
    return;
  }
  if (tp_ref_handle(r) == 0) tp_ref_set_handle(r, take_handle(h));
  tpl_push_aux(L, h, TPL_REF_MT);
  lua_setmetatable(L, -2);
  u->ref = r;
  lua_pushvalue(L, -1);
  lua_xmove(L, h->aux, 1);
  lua_rawseti(h->aux, TPL_REFS, tp_ref_handle(r));
}

static void release(tpl_ref *u) {
  tp_ref *r = u->ref;
  u->ref = NULL;
  if (r != NULL) tp_ref_release(r);
}

void tpl_release_refs(tpl_host *h) {
  for (uint32_t i = 1; i <= h->refs.given; i++) {
    if (lua_rawgeti(h->aux, TPL_REFS, i) == LUA_TUSERDATA) release(lua_touserdata(h->aux, -1));
    lua_pop(h->aux, 1);
  }
}

/* Gives back the place of `r`, unless it has another userdata by now. */
static void leave_place(tpl_host *h, tp_ref *r) {
  uint32_t handle = tp_ref_handle(r);
  if (handle == 0) return;
  bool another = lua_rawgeti(h->aux, TPL_REFS, handle) == LUA_TUSERDATA;
  lua_pop(h->aux, 1);
  if (another) return;
  set_free(h, handle);
  h->refs.used--;
  tp_ref_set_handle(r, 0);
}

int tpl_ref_gc(lua_State *L) {
  tpl_ref *u = lua_touserdata(L, 1);
  if (u->ref != NULL) leave_place(u->host, u->ref);
  release(u);
  return 0;
}
