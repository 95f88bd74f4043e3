--- What Troupe is to reach, and whether it has.
local figures = require "bench.figures"

local goals = {}

-- Less than that is noise on a machine that others use too.
local EQUAL = 1.3

---@class bench.Goal
---@field workload string
---@field times? number    our rate is to be that many times the best peer's
---@field bounds? boolean  arms that are a bound count as peers
---@field rate? number     operations a second, at least
---@field bytes? number    of memory for each, at most
---@field floor? number    our time is to be at most that many times the floor's
---@field like? string     our rate is to be that of this other workload

---@type bench.Goal[]
goals.list = {
  { workload = "ping-pong", times = 4 },
  { workload = "ping-pong", floor = 1.5 },
  { workload = "tell-10000", times = 1.7 },
  { workload = "fan-in", times = 2 },
  { workload = "ring", times = 3 },
  { workload = "round-robin", times = 2 },
  { workload = "ask", times = 3 },
  { workload = "ask-1000", times = 3 },
  { workload = "ask-256k", like = "ask-64" },
  { workload = "scatter", times = 2 },
  { workload = "scatter", rate = 1e6 },
  { workload = "lives", times = 2.5 },
  { workload = "idle-1m", bytes = 400 },
  { workload = "timers-fire", times = 2, bounds = true },
  { workload = "timers-fire", bytes = 100 },
  { workload = "timers-cancel", times = 3, bounds = true },
}

--- A peer that is in no registry was measured apart, on a machine like the one that the goals were
--- set on: operations a second (the best of several runs), and the bytes of an idle actor.
goals.marks = {
  arm = "actor-ts",
  rates = {
    ["ping-pong"] = 2.4e6,
    ["tell-10000"] = 8e6,
    ["fan-in"] = 4.5e6,
    ["ask"] = 0.61e6,
    ["ask-1000"] = 0.52e6,
    ["scatter"] = 0.09e6,
    ["lives"] = 0.06e6,
    ["ask-256k"] = 5,
  },
  bytes = { ["idle-1m"] = 2400 },
}

local function best_peer(row, bounds)
  local best
  for _, one in ipairs(row.arms) do
    local counts = one.kind == "peer" or bounds and one.kind == "bound"
    if counts and (not best or one.ns < best.ns) then best = one end
  end
  return best
end

local function a_second(rate)
  return (rate < 1e4 and ("%.0f"):format(rate) or ("%.3gM"):format(rate / 1e6)) .. " a second"
end

-- Each gives what is wanted and what was reached, as text, and whether it is enough.
local judges = {}

function judges.times(goal, ours, row)
  local wanted = ("%gx the best peer"):format(goal.times)
  local best = best_peer(row, goal.bounds)
  if not best then return wanted end
  local reached = best.ns / ours.ns
  return wanted, ("%.2fx %s"):format(reached, best.arm), reached >= goal.times
end

function judges.floor(goal, ours)
  local wanted = ("at most %gx the floor"):format(goal.floor)
  if not ours.times_floor then return wanted end
  return wanted, ("%.2fx"):format(ours.times_floor), ours.times_floor <= goal.floor
end

function judges.rate(goal, ours)
  return a_second(goal.rate), a_second(ours.ops_per_second), ours.ops_per_second >= goal.rate
end

function judges.bytes(goal, ours)
  local wanted, bytes = ("at most %g bytes each"):format(goal.bytes), ours.more and ours.more.bytes
  if not bytes then return wanted end
  return wanted, ("%.0f"):format(bytes), bytes <= goal.bytes
end

function judges.like(goal, ours, _, rows)
  local wanted = ("the rate of %s, give or take"):format(goal.like)
  local other = rows[goal.like] and figures.of_kind(rows[goal.like], "ours")
  if not other then return wanted end
  local reached = other.ns / ours.ns
  return wanted, ("%.2fx"):format(reached), reached * EQUAL >= 1
end

-- The mark of a goal about rates or bytes, and how it compares with what was reached.
local function mark(goal, ours)
  local bytes = goal.bytes and goals.marks.bytes[goal.workload]
  if bytes then return ("%.0f bytes"):format(bytes) end
  local rate = (goal.times or goal.like) and goals.marks.rates[goal.workload]
  if rate then return ("%s, %.1fx"):format(a_second(rate), ours.ops_per_second / rate) end
end

---@class bench.Verdict
---@field workload string
---@field wanted string
---@field reached string?  nil when it was not measured
---@field met boolean?
---@field mark string?     what was measured apart, and how many times that we reached

local function judge(goal, row, rows)
  local verdict = { workload = goal.workload }
  local ours = figures.of_kind(row, "ours")
  for kind, by in pairs(judges) do
    if goal[kind] then
      verdict.wanted, verdict.reached, verdict.met = by(goal, ours, row, rows)
    end
  end
  verdict.mark = mark(goal, ours)
  return verdict
end

--- Holds our figures against the goals of what was measured.
---@param rows bench.Row[]
---@param list? bench.Goal[]  default: those of Troupe
---@return bench.Verdict[]
function goals.judge(rows, list)
  local by_id, verdicts = {}, {}
  for _, row in ipairs(rows) do by_id[row.id] = row end
  for _, goal in ipairs(list or goals.list) do
    local row = by_id[goal.workload]
    if row and figures.of_kind(row, "ours") then
      verdicts[#verdicts + 1] = judge(goal, row, by_id)
    end
  end
  return verdicts
end

return goals
