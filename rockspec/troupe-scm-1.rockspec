rockspec_format = "3.0"
package = "troupe"
version = "scm-1"

-- LuaRocks wants an address; `luarocks make` in a checkout does not use it.
source = { url = "git+https://example.org/troupe.git" }

description = {
  summary = "Actors for Lua, with a C core on libuv",
  detailed = [[
    Troupe is an actor runtime: mailboxes, supervision, asks with deadlines,
    routers and scatter/gather. The engine is plain C; handlers are plain Lua functions that
    may wait; tests run in virtual time.
  ]],
  license = "MIT",
  maintainer = "The Troupe authors",
  labels = { "actors", "concurrency", "libuv" },
}

dependencies = { "lua >= 5.4, < 5.6" }

external_dependencies = { UV = { header = "uv.h", library = "uv" } }

-- The Makefile is the only description of the build; FLAVOUR keeps it in build/rock.
build = {
  type = "make",
  variables = {
    FLAVOUR = "rock",
    CC = "$(CC)",
    CFLAGS = "$(CFLAGS)",
    LIBFLAG = "$(LIBFLAG)",
    LUA = "$(LUA)",
    LUA_INCDIR = "$(LUA_INCDIR)",
    UV_INCDIR = "$(UV_INCDIR)",
    UV_LIBDIR = "$(UV_LIBDIR)",
  },
  install_variables = {
    INST_LIBDIR = "$(LIBDIR)",
    INST_LUADIR = "$(LUADIR)",
    INST_BINDIR = "$(BINDIR)",
  },
}

test = { type = "command", command = "make test" }
