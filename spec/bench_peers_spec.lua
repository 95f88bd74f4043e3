--- Runs the bench's arms for other systems with sizes that take no time.

local arms = require "bench.arms"

local sizes = {
  ["ping-pong"] = 100,
  ["ping-pong-table"] = 100,
  ["tell-1000"] = 1000,
  ["tell-10000"] = 10000,
  ["fan-in"] = 10000,
  ["ring"] = 2000,
  ["round-robin"] = 1000,
  ["ask"] = 100,
  ["ask-1000"] = 1000,
  ["scatter"] = 100,
  ["spawn"] = 100,
  ["lives"] = 100,
  ["idle"] = 100,
  ["timers-fire"] = 100,
  ["timers-cancel"] = 100,
  ["restart"] = 10,
  ["deep"] = 1000,
  ["priority"] = 1000,
  ["ask-64"] = 10,
  ["ask-16k"] = 10,
  ["ask-256k"] = 10,
  ["latency"] = 10,
}

--- What they are made from, and what there is no such thing as in them.
local peers = {
  erlang = { source = "bench_erlang.erl" },
  ["erlang-2"] = { source = "bench_erlang.erl" },
  caf = { source = "caf.cpp", lacks = "priority" },
  ["caf-2"] = { source = "caf.cpp", lacks = "priority" },
  nact = { source = "nact.mjs", lacks = "priority" },
  lua = {},
  luajit = {},
}

local function succeeds(command) return os.execute(command .. " >/dev/null 2>&1") end

--- Whether it is installed, and built from the source as it is now.
local function is_ready(arm)
  local built = arm.build and arm.build:match("%S+$")
  return succeeds("command -v " .. arm.command:match("%S+"))
    and (not built or succeeds(("[ %s -nt bench/peers/%s ]"):format(built, peers[arm.name].source)))
end

--- The sizes of all workloads that it has; and their names in one order.
local function workloads_of(peer)
  local chosen, names = {}, {}
  for name, size in pairs(sizes) do
    if name ~= peer.lacks then
      chosen[name] = size
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return chosen, names
end

--- Runs them all and then one that there is not, without a sanitizer if there is one here.
local function start(arm, peer)
  local words = { "unset LD_PRELOAD; ", arm.command }
  local chosen, names = workloads_of(peer)
  for _, name in ipairs(names) do words[#words + 1] = name .. " " .. chosen[name] end
  words[#words + 1] = (peer.lacks or "juggling") .. " 1000 2>&1"
  return assert(io.popen(table.concat(words, " ")))
end

describe("the bench's peers", function()
  local outputs = {}

  -- All at once, since some wait for their timers.
  lazy_setup(function()
    for _, arm in ipairs(arms) do
      local peer = peers[arm.name]
      if peer and is_ready(arm) then outputs[arm.name] = start(arm, peer) end
    end
  end)

  for _, arm in ipairs(arms) do
    local name, peer = arm.name, peers[arm.name]
    if peer then
      it(name .. " handles all of each workload, and says which it does not have", function()
        local output = outputs[name]
        if not output then
          pending("make deps-peers; make bench-peers")
          return
        end
        local chosen, names = workloads_of(peer)

        local handled = {}
        for _, workload in ipairs(names) do
          local line = output:read("l") or "nothing"
          local count = line:match("^handled=(%d+) seconds=%d+%.%d+ cpu=%d+%.%d+")
          handled[workload] = tonumber(count) or line
        end
        local complaint = output:read("a")
        local _, how, code = output:close()

        assert.are.same(chosen, handled)
        assert.matches("^" .. (peer.lacks or "juggling") .. ": no such workload here", complaint)
        assert.are.same({ "exit", 3 }, { how, code })
      end)
    end
  end
end)
