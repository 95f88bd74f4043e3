--- The floor as an arm: the handlers of troupe.lua, called through the bare C API; and in the place
--- of a ref something whose `tell` does nothing but count.
local arm = require "bench.arm"
local floor = require "troupe_bench_floor"

local ACTOR = {} -- handlers are given one, and do not look at it

local function ping_pong(n)
  local handled, peer = 0, floor.peer()
  local function player(_, left)
    handled = handled + 1
    if left > 1 then peer:tell(left - 1) end
  end
  return function() floor.calls(player, ACTOR, 2, n) end, function() return handled end
end

local function ping_pong_table(n)
  local handled, peer = 0, floor.peer()
  local function player(_, ball)
    handled = handled + 1
    if ball.left > 1 then peer:tell { left = ball.left - 1 } end
  end
  return function() floor.calls(player, ACTOR, { left = 2 }, n) end, function() return handled end
end

local function tell(batch)
  return function(n)
    local handled, counter = 0, floor.peer()
    local function count(_, message)
      if message == "how many?" then return end
      handled = handled + 1
    end
    return function()
      for _ = 1, n // batch do
        for i = 1, batch do counter:tell(i) end
        floor.calls(count, ACTOR, 1, batch)
      end
    end, function() return handled end
  end
end

arm.main {
  ["ping-pong"] = arm.workload(1, ping_pong),
  ["ping-pong-table"] = arm.workload(1, ping_pong_table),
  ["tell-1000"] = arm.workload(1000, tell(1000)),
  ["tell-10000"] = arm.workload(10000, tell(10000)),
}
