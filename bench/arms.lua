--- Who is measured.

---@class bench.Arm
---@field name string
---@field kind "ours" | "variant" | "floor" | "peer" | "bound"  variant: ours in another mode,
---  measured only if it is named; bound: no runtime of actors, but what can be had with little
---  effort, and a peer only where the goals say so
---@field command string  to which a workload and a size are added; run in the project's folder
---@field version string  a command whose first line is the arm's version; it fails when the arm is
---  missing
---@field build? string   a command that builds it, run once before the rounds
---@field get string      how to get it
---@field share? integer   it does one in so many operations, since it is slow
---@field only? table<string, true>  the workloads that it is measured in, where not all of them

local lua = arg and arg[-1] or "lua5.4"
local libuv = (os.getenv("TROUPE_BUILD") or "build/release") .. "/troupe_bench_libuv"

local troupe_version = lua .. " -e 'io.write(require(\"troupe\")._VERSION, \" on \", _VERSION)'"
  .. " && git describe --always --dirty 2>/dev/null | sed 's/^/, /'"

-- Those that a second thread may be of use to. Others would take time, and tell no more.
local parallel = {}
for _, id in ipairs {
  "ping-pong", "tell-10000", "fan-in", "ring", "round-robin", "ask", "ask-1000", "scatter",
} do parallel[id] = true end

local function erlang(name, schedulers)
  return {
    only = schedulers > 1 and parallel or nil,
    name = name,
    kind = "peer",
    command = ("erl +S %d +P 2097152 -noinput -pa build/peers -s bench_erlang main -extra")
      :format(schedulers),
    version = "command -v erlc >/dev/null && erl -noinput -eval "
      .. "'io:format(\"Erlang/OTP ~s\", [erlang:system_info(otp_release)]), halt().'",
    build = "make build/peers/bench_erlang.beam",
    get = "make deps-peers",
  }
end

-- CAF 0.18 has other types of messages, and none of Debian 12's names for them.
local function caf(name, workers)
  return {
    only = workers > 1 and parallel or nil,
    name = name,
    kind = "peer",
    share = 2,
    command = ("build/peers/caf %d"):format(workers),
    version = "v=$(printf '%s\\n' '#include <caf/config.hpp>' CAF_VERSION | c++ -E -P -xc++ - "
      .. "| tail -n 1) && [ ${v:-1800} -lt 1800 ] && echo CAF 0.$((v / 100)).$((v % 100))",
    build = "make build/peers/caf",
    get = "make deps-peers",
  }
end

---@type bench.Arm[]
return {
  {
    name = "troupe",
    kind = "ours",
    command = lua .. " bench/troupe.lua",
    version = troupe_version,
    get = "make",
  },
  {
    name = "troupe-gen", -- with the generational collector
    kind = "variant",
    command = lua .. " -e 'collectgarbage \"generational\"' bench/troupe.lua",
    version = troupe_version,
    get = "make",
  },
  {
    name = "floor",
    kind = "floor",
    command = lua .. " bench/floor.lua",
    version = lua .. " -v && " .. lua .. " -e 'require \"troupe_bench_floor\"'",
    get = "make floor",
  },
  {
    name = "libuv",
    kind = "bound",
    command = libuv,
    version = "pkg-config --modversion libuv && test -x " .. libuv,
    get = "make floor",
  },
  erlang("erlang", 1),
  erlang("erlang-2", 2),
  caf("caf", 1),
  caf("caf-2", 2),
  {
    name = "nact",
    kind = "peer",
    share = 10,
    command = "build/peers/node_modules/.bin/bun build/peers/nact.mjs",
    version = "cd build/peers && node_modules/.bin/bun -e 'console.log(\"nact\", "
      .. "require(\"nact/package.json\").version, \"on Bun\", Bun.version)'",
    build = "make build/peers/nact.mjs",
    get = "make deps-peers",
  },
  {
    name = "lua",
    kind = "bound",
    command = lua .. " bench/peers/lua.lua",
    version = lua .. " -v",
    get = "make deps-run",
  },
  {
    name = "luajit",
    kind = "bound",
    command = "luajit bench/peers/lua.lua",
    version = "luajit -v",
    get = "make deps-peers",
  },
}
