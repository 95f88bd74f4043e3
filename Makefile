# The one description of how Troupe is built, tested and installed. `make help` lists the targets.
#
# What is built goes to build/<flavour>, so that flavours never mix:
#   release   what run, test, bench and install use
#   asan      AddressSanitizer, UndefinedBehaviorSanitizer, and asserts
#   clang     a second compiler's warnings; plain objects for lint to look into
#   rock      LuaRocks: the user's compiler and flags, and warnings are not errors
# The targets that help lists see to what they need, then call make again for one flavour.

ifndef FLAVOUR
FLAVOUR := release
.NOTPARALLEL: # two targets must not build one flavour at once; the inner makes are parallel
endif
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += --no-print-directory -j$(shell nproc 2>/dev/null || echo 2)
endif

BUILD_DIR ?= build/$(FLAVOUR)
OBJ       := $(BUILD_DIR)/obj
MODULE    := $(BUILD_DIR)/troupe/core.so

.PHONY: all bench bench-peers bench-instructions bench-scale clean deps explore format help install \
        lint run test test-engine test-lua asan valgrind promtool module floor programs check \
        check-engine check-lua \
        lint-lua lint-format lint-gcc lint-clang lint-layers lint-exports lint-rock
.DELETE_ON_ERROR:

all: ## build the module (the default)
	@$(MAKE) FLAVOUR=$(FLAVOUR) module

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1 @/p' Makefile | tr @ '\t' | expand -t 14

# --- tools, and where things are: LuaRocks sets what it knows on the command line

ifeq ($(origin CC),default)
CC := gcc
endif
LUA        ?= lua5.4
BUSTED     ?= $(shell command -v busted)
PKG_CONFIG ?= pkg-config
pkg         = $(shell { $(PKG_CONFIG) $1; } 2>/dev/null)

LUA_PC     := $(firstword $(foreach p,lua5.4 lua-5.4 lua54 lua,$(call pkg,--exists $p && echo $p)))
LUA_INCDIR ?= $(patsubst -I%,%,$(call pkg,--cflags-only-I $(LUA_PC)))
LUA_CFLAGS := $(addprefix -I,$(LUA_INCDIR))
ifdef UV_LIBDIR
UV_CFLAGS  := $(addprefix -I,$(UV_INCDIR))
UV_LIBS    := -L$(UV_LIBDIR) -Wl,-rpath,$(UV_LIBDIR) -luv
else
UV_CFLAGS  := $(call pkg,--cflags libuv)
UV_LIBS    := $(call pkg,--libs libuv)
endif

PREFIX      ?= /usr/local
INST_LIBDIR ?= $(PREFIX)/lib/lua/5.4
INST_LUADIR ?= $(PREFIX)/share/lua/5.4
INST_BINDIR ?= $(PREFIX)/bin

# --- flags: CFLAGS, CPPFLAGS and LDFLAGS are the user's; what the code needs is kept apart

CFLAGS   ?= -O3 -g
LIBFLAG  ?= -shared
NEEDED   := -std=c11 -fPIC -fno-plt -fvisibility=hidden
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wcast-qual -Wconversion

# A message crosses from the binding into the engine, so optimising across files is worth much.
# It is used where a trial shows that the compiler can; fat objects can be linked without it too.
LTO := -flto=auto -ffat-lto-objects
can_lto = $(shell echo 'int x;' | $(CC) $(LTO) -Werror -shared -fPIC -xc - -o /dev/null \
            2>/dev/null && echo $(LTO))

ifeq ($(FLAVOUR),release)
FLAGS := -Werror -DNDEBUG $(can_lto)
else ifeq ($(FLAVOUR),rock)
FLAGS := -DNDEBUG $(can_lto) $(patsubst -O2,-O3,$(filter -O2,$(CFLAGS))) # LuaRocks' -O2 is no wish
else ifeq ($(FLAVOUR),asan)
FLAGS := -Werror -O1 -fno-omit-frame-pointer -fsanitize=address,undefined \
         -fno-sanitize-recover=undefined
KEPT  := -Wl,-z,nodelete # a leak is told after Lua has closed the module; keep its symbols
else ifeq ($(FLAVOUR),clang)
FLAGS := -Werror
CC    := clang
else
$(error no such flavour: $(FLAVOUR))
endif

# --- the module: a room is given the headers it may use (uv.h cannot do without _GNU_SOURCE)

objects  = $(patsubst %.c,$(OBJ)/%.o,$(wildcard $1))
ENGINE  := $(call objects,src/engine/*.c)
LOOP    := $(call objects,src/loop/*.c)
BINDING := $(call objects,src/binding/*.c)
CHECKS  := $(call objects,spec/engine/*.c)
FLOOR   := $(call objects,bench/floor.c)
STILL   := $(call objects,bench/still.c)
UV_ARM  := $(call objects,bench/libuv.c)

$(ENGINE):  ROOM := -Isrc/engine
$(LOOP):    ROOM := -Isrc $(UV_CFLAGS) -D_GNU_SOURCE
$(BINDING): ROOM := -Isrc $(LUA_CFLAGS)
$(CHECKS):  ROOM := -Isrc/engine $(call pkg,--cflags cmocka) -UNDEBUG
$(FLOOR):   ROOM := $(LUA_CFLAGS) -D_GNU_SOURCE -fvisibility=default -Wno-missing-prototypes
$(STILL):   ROOM := $(UV_CFLAGS) -D_GNU_SOURCE -fvisibility=default
$(UV_ARM):  ROOM := $(UV_CFLAGS) -D_GNU_SOURCE

module: $(MODULE)

$(MODULE): $(ENGINE) $(LOOP) $(BINDING)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CC) $(LIBFLAG) $(CFLAGS) $(FLAGS) $(KEPT) $(LDFLAGS) $^ $(UV_LIBS) -lm -o $@

$(OBJ)/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "cc $<"
	@$(CC) $(NEEDED) $(WARNINGS) $(CPPFLAGS) $(CFLAGS) $(FLAGS) $(ROOM) -MMD -MP -c $< -o $@

-include $(patsubst %.o,%.d,$(ENGINE) $(LOOP) $(BINDING) $(CHECKS) $(FLOOR) $(STILL) $(UV_ARM))

module programs floor: ; @:

# --- running from the tree

# What is run here may start make and LuaRocks in its turn; they are to know nothing of this make.
# LUA_PATH_5_4 would win over LUA_PATH, so what it says is appended instead.
IN_TREE = MAKEFLAGS= MAKELEVEL= TROUPE_BUILD="$(BUILD_DIR)" \
  LUA_PATH="$(CURDIR)/lua/?.lua;$(CURDIR)/lua/?/init.lua$(addprefix ;,$(YOUR_PATH));;" \
  LUA_CPATH="$(abspath $(BUILD_DIR))/?.so$(addprefix ;,$(YOUR_CPATH));;"
YOUR_PATH  := $(or $(LUA_PATH_5_4),$(LUA_PATH))
YOUR_CPATH := $(or $(LUA_CPATH_5_4),$(LUA_CPATH))
unexport LUA_PATH_5_4 LUA_CPATH_5_4

FILE ?= examples/hedged_lookup.lua

run: deps-run ## build and run an example; FILE=examples/... for another, ARGS=... for arguments
	@$(MAKE) FLAVOUR=release module
	@$(IN_TREE) $(LUA) $(FILE) $(ARGS)

bench: deps-run ## measure, with the bare C API beside it; ARGS="--only=ask FILE" writes JSON too
	@$(MAKE) FLAVOUR=release module floor
	@$(IN_TREE) $(LUA) bench/run.lua $(ARGS)
	@$(COUNTING) --short
bench-peers: deps-run ## measure peers too, those that are installed
	@$(MAKE) FLAVOUR=release module floor
	@$(IN_TREE) $(LUA) bench/run.lua --peers $(ARGS)
bench-instructions: deps-run ## count instructions under valgrind; ARGS=--renew keeps the counts
	@$(MAKE) FLAVOUR=release module floor
	@$(COUNTING) $(ARGS)
bench-scale: deps-run ## measure messages among many actors, timers, and much for the collector
	@$(MAKE) FLAVOUR=release module floor
	@$(IN_TREE) LUA="$(LUA)" $(LUA) bench/scale.lua $(ARGS)
COUNTING = $(IN_TREE) LUA="$(LUA)" CC="$(CC)" $(LUA) bench/instructions.lua

# Peers are built when they are measured; what is not installed is skipped.
PEERS := build/peers
CXX   ?= g++

$(PEERS)/bench_erlang.beam: bench/peers/bench_erlang.erl
	@mkdir -p $(@D)
	@erlc +warn_all -o $(@D) $<
$(PEERS)/caf: bench/peers/caf.cpp
	@mkdir -p $(@D)
	@$(CXX) -std=c++17 -O2 -Wall -Wextra $< -lcaf_core -pthread -o $@
$(PEERS)/nact.mjs: bench/peers/nact.mjs
	@mkdir -p $(@D)
	@cp $< $@

N    ?= 10000
SEED ?= 1

explore: deps-run ## check random histories against the model; N=10000 of them, from SEED=1 on
	@$(MAKE) FLAVOUR=release module
	@$(IN_TREE) $(LUA) spec/model/main.lua $(N) $(SEED)

floor: $(addprefix $(BUILD_DIR)/troupe_bench_,floor.so still.so libuv)

$(BUILD_DIR)/troupe_bench_%.so: $(OBJ)/bench/%.o
	@$(CC) $(LIBFLAG) $(CFLAGS) $(FLAGS) $(LDFLAGS) $^ -o $@

$(BUILD_DIR)/troupe_bench_libuv: $(UV_ARM)
	@$(CC) $(CFLAGS) $(FLAGS) $(LDFLAGS) $^ $(UV_LIBS) -o $@

# --- tests: one program for each spec/engine/*_test.c, one busted run for all of spec/*_spec.lua

test: deps-test promtool ## run the whole suite
	@$(MAKE) FLAVOUR=release check
test-engine: deps-test ## run the C tests of the engine only
	@$(MAKE) FLAVOUR=release check-engine
test-lua: deps-test promtool ## run the Lua specs only; BUSTEDFLAGS=--filter=SG-2 for some of them
	@$(MAKE) FLAVOUR=release check-lua
asan: deps-test promtool ## run the whole suite under ASan, UBSan and the leak checker
	@$(MAKE) FLAVOUR=asan check
valgrind: deps-valgrind promtool ## run the whole suite under valgrind
	@TROUPE_HISTORIES=50 $(MAKE) FLAVOUR=release check UNDER='$(VALGRIND)'

VALGRIND := valgrind -q --error-exitcode=9 --leak-check=full --keep-debuginfo=yes
ifeq ($(FLAVOUR),asan)
PRELOAD   = LD_PRELOAD="$(shell $(CC) -print-file-name=libasan.so) \
  $(shell $(CC) -print-file-name=libubsan.so)"
endif

PROGRAMS := $(patsubst $(OBJ)/%.o,$(BUILD_DIR)/%,$(filter %_test.o,$(CHECKS)))

# Called as `lua busted`: left to itself busted may run another Lua, and in a process of its own.
SPECS = $(PRELOAD) $(UNDER) $(LUA) $(BUSTED) --ignore-lua --output=spec/support/counted.lua \
  --lpath="./lua/?.lua;./lua/?/init.lua;./?.lua" --cpath="./$(BUILD_DIR)/?.so" $(BUSTEDFLAGS) spec
TALLY = @PATH="$$PATH:$(CURDIR)/$(TOOLS)" $(IN_TREE) CMOCKA_MESSAGE_OUTPUT=TAP UBSAN_OPTIONS=print_stacktrace=1 \
  $(LUA) spec/support/tally.lua

check: module floor programs
	$(TALLY) $(PROGRAMS:%='$(UNDER) %') '$(SPECS)'
check-engine: programs
	$(TALLY) $(PROGRAMS:%='$(UNDER) %')
check-lua: module floor
	$(TALLY) '$(SPECS)'

programs: $(PROGRAMS)

$(PROGRAMS): $(BUILD_DIR)/%: $(OBJ)/%.o $(filter-out %_test.o,$(CHECKS)) $(ENGINE)
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS) $(FLAGS) -fno-lto $(LDFLAGS) $^ $(call pkg,--libs cmocka) -lm -o $@

# promtool reads metrics as Prometheus does. Its package is that of the whole server, which would run
# as soon as it is installed; so it is only unpacked, into the build directory. Where that cannot be
# done, the spec that needs it is skipped.
TOOLS     := build/tools
APT_GET    = apt-get -q -o Acquire::Retries=0 -o Acquire::http::Timeout=20

promtool:
	@command -v promtool >/dev/null || [ -x $(TOOLS)/promtool ] || { \
	  mkdir -p $(TOOLS) && cd $(TOOLS) && $(APT_GET) download prometheus >/dev/null 2>&1 && \
	  dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool >unpacked && \
	  chmod +x unpacked && mv unpacked promtool && rm prometheus_*.deb && \
	  echo "Unpacked promtool of the Debian package prometheus into $(TOOLS)"; \
	} || { rm -f $(TOOLS)/*; echo "promtool is missing (Debian package prometheus): a spec is skipped"; }

# --- lint: goes on after a failure, so that one run tells all

lint: deps-lint ## check style, layers, the warnings of two compilers, the rockspec
	@$(MAKE) -k FLAVOUR=clang lint-lua lint-format lint-gcc lint-clang lint-layers lint-rock
format: deps-lint ## let clang-format rewrite the C sources
	@clang-format -i $(C_FILES)

C_FILES := $(wildcard src/*/*.[ch] spec/engine/*.[ch] bench/*.[ch] bench/peers/*.cpp)

lint-lua:
	@luacheck -q --no-color $(wildcard lua spec examples bench rockspec)
lint-format:
	@clang-format --dry-run --Werror $(C_FILES)
lint-gcc:
	@$(MAKE) FLAVOUR=release module programs floor lint-exports
lint-clang: module programs floor
lint-rock:
	@luarocks --lua-version=5.4 lint rockspec/troupe-scm-1.rockspec

# forbid(rule, objects, extended regular expression of undefined symbols that would break it)
forbid = @nm -Au $2 > $(OBJ)/symbols && ! grep -E ' U ($3)' $(OBJ)/symbols || \
  { echo "lint-layers: $1"; false; }

# Of clang's objects, since nm sees only a part of what is in those made for link-time optimisation.
lint-layers: module
	$(call forbid,the engine uses neither Lua nor libuv,$(ENGINE),lua_|luaL_|uv_)
	$(call forbid,the loop does not use Lua,$(LOOP),lua_|luaL_)
	$(call forbid,the binding does not use libuv,$(BINDING),uv_)
	$(call forbid,memory$(comma) time and chance come to the engine from outside,$(ENGINE),$(OUTSIDE))
OUTSIDE := (malloc|calloc|realloc|free|strdup|time|clock|clock_gettime|rand|random|getrandom)$$
comma   := ,

lint-exports: module
	@test "$$(nm -D --defined-only $(MODULE) | cut -d' ' -f3)" = luaopen_troupe_core || \
	  { echo "lint-exports: the module is to export luaopen_troupe_core and nothing else"; false; }

# --- install

install: all ## install below PREFIX, honouring DESTDIR and the INST_ variables
	install -d "$(DESTDIR)$(INST_LIBDIR)/troupe"
	install -m 755 $(MODULE) "$(DESTDIR)$(INST_LIBDIR)/troupe"
	@for f in $$(find lua/troupe -name '*.lua'); do \
	  to="$(DESTDIR)$(INST_LUADIR)/$${f#lua/}"; \
	  install -d "$${to%/*}" && install -m 644 "$$f" "$$to" || exit 1; done
	@for f in $(wildcard bin/*); do \
	  install -d "$(DESTDIR)$(INST_BINDIR)" && \
	  install -m 755 $$f "$(DESTDIR)$(INST_BINDIR)" || exit 1; done

clean: ## remove everything that was built
	rm -rf build

# --- deps: a need has the name of its Debian package and is met when its check holds, wherever it
# came from; where all are met, nothing is installed or downloaded

need_run      := gcc libc6-dev pkg-config lua5.4 liblua5.4-dev libuv1-dev
need_test     := $(need_run) lua-busted libcmocka-dev luarocks
need_lint     := $(need_run) libcmocka-dev luarocks lua-check clang clang-format
need_valgrind := $(need_test) valgrind
need_debian-peers := erlang-base g++ libcaf-dev luajit npm
need_all      := $(sort $(need_test) $(need_lint) $(need_valgrind))

header             = $(CC) -E $2 -include $1 -xc /dev/null
has_gcc            = command -v $(CC)
has_libc6-dev      = $(call header,stdlib.h)
has_pkg-config     = command -v $(PKG_CONFIG)
has_lua5.4         = command -v $(LUA)
has_liblua5.4-dev  = $(call header,lauxlib.h,$(LUA_CFLAGS))
has_libuv1-dev     = $(call header,uv.h,$(UV_CFLAGS))
has_lua-busted     = command -v busted && $(LUA) -e 'require "busted"'
has_libcmocka-dev  = $(PKG_CONFIG) --exists cmocka
has_luarocks       = command -v luarocks
has_lua-check      = command -v luacheck
has_clang          = command -v clang
has_clang-format   = command -v clang-format
has_valgrind       = command -v valgrind
has_erlang-base    = command -v erlc
has_g++            = command -v $(CXX)
has_libcaf-dev     = $(CXX) -E -include caf/atom.hpp -xc++ /dev/null
has_luajit         = command -v luajit
has_npm            = command -v npm

missing = $(strip $(foreach p,$1,$(if $(shell { $(has_$p); } >/dev/null 2>&1 || echo no),$p)))

deps: deps-all ## install what is missing for any of these

deps-peers: deps-debian-peers ## install the bench's peers; npm's packages go below build
	@cd $(PEERS)/node_modules/nact 2>/dev/null && ../.bin/bun --version >/dev/null || \
	  npm install --prefix $(PEERS) --no-save --no-audit --no-fund bun@1.4.5 nact@7.6.2

deps-%:
	@missing="$(call missing,$(need_$*))"; \
	[ -n "$$missing" ] || exit 0; \
	if [ "$$(id -u)" -ne 0 ]; then sudo=$$(command -v sudo); fi; \
	if ! command -v apt-get >/dev/null || [ "$$(id -u)" -ne 0 -a -z "$$sudo" ]; then \
	  echo "Please install what is in these Debian packages: $$missing" >&2; exit 1; \
	fi; \
	echo "Installing $$missing"; \
	$$sudo apt-get update -q && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $$missing
