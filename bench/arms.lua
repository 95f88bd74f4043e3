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

local lua = arg and arg[-1] or "lua5.4"
local libuv = (os.getenv("TROUPE_BUILD") or "build/release") .. "/troupe_bench_libuv"

local troupe_version = lua .. " -e 'io.write(require(\"troupe\")._VERSION, \" on \", _VERSION)'"
  .. " && git describe --always --dirty 2>/dev/null | sed 's/^/, /'"

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
}
