--- The matrix of ends: whatever can end an ask, taken two at a time in one instant, in both orders,
--- wherever one can ask. Each ask settles once.
local troupe = require "troupe"
local new_kit = require "spec.support.kit"

-- When the ends come, and just before; the budget of an ask that has no time-out among its ends.
local INSTANT, JUST_BEFORE, BUDGET = 10, 9.5, 5000
local DRAIN = 2000
local MUCH_LATER, FOR_EVER = 10000, 60000

-- What happens, for each end but the time-out, which is the ask's deadline. `s` is the scene below.
local ends = {
  ["reply"] = function(s) s.answerer:reply("answer") end,
  ["fail"] = function(s) s.answerer:fail(troupe.error("Broken", "no disk")) end,
  ["time out"] = false,
  ["cancel"] = function(s) s.task:cancel() end,
  ["target stops"] = function(s) s.parent:stop(s.target) end,
  ["target restarts"] = function(s) s.target:kill() end,
  ["asker stops"] = function(s) s.parent:stop(s.asker) end,
  ["asker restarts"] = function(s) s.asker:kill() end,
  ["system terminates"] = function(s) s.kit.system:terminate() end, -- without draining
  ["system drains"] = function(s) s.kit.system:terminate() end,     -- for at most DRAIN
}

-- Where one asks, and which ends cannot come there, and why.
local places = {
  ["a task"] = {
    ["asker stops"] = "a task is no actor",
    ["asker restarts"] = "a task is no actor",
  },
  ["a handler"] = {
    ["cancel"] = "only tasks can be cancelled",
  },
  ["the main chunk"] = {
    ["cancel"] = "only tasks can be cancelled",
    ["asker stops"] = "the main chunk is no actor",
    ["asker restarts"] = "the main chunk is no actor",
  },
}

-- Pairs that cannot come anywhere, and why.
local impossible = {
  ["time out"] = { ["time out"] = "an ask has one deadline" },
  ["system terminates"] = { ["system drains"] = "a system has one drain_timeout_ms" },
  ["system drains"] = { ["system terminates"] = "a system has one drain_timeout_ms" },
}

-- The rules ---------------------------------------------------------------------------------------

-- What the ask gives by an end, and the statement that says so.
local results = {
  ["reply"] = { id = "ASK-4", value = "answer", from = "target" },
  ["fail"] = { id = "ASK-4", err = "Broken", from = "target" },
  ["time out"] = { id = "ASK-6", err = "AskTimeoutError" },
  ["cancel"] = { id = "ASK-11", err = "CancelledError" },
  ["target stops"] = { id = "ASK-7", err = "ActorStoppedError" },
  ["system terminates"] = { id = "SYS-5", err = "SystemTerminatedError" },
}

-- These settle the ask when they come; the other ends take effect in the turn of an actor.
local settles_at_once = { ["reply"] = true, ["fail"] = true, ["cancel"] = true }

-- The handler never goes on: its actor is stopped or restarted first.
local closed = { id = "LIFE-9", closed_only = true }

local function has(list, ...)
  for _, name in ipairs { ... } do
    for _, item in ipairs(list) do
      if item == name then return true end
    end
  end
  return false
end

local function result_of(name, at)
  local result = { at = at or INSTANT }
  for key, value in pairs(results[name]) do result[key] = value end
  return result
end

--- What becomes of an open ask when these ends come at once, in this order. The first rule that
--- holds counts. `request` is false when the target has it no more.
local function settle(place, list, request)
  local in_handler = place == "a handler"
  -- A deadline comes before all else of its instant, and whoever has waited longer goes on first.
  if list[1] == "time out" then return result_of("time out") end
  -- LIFE-9: a parked handler whose actor is stopped or restarted never goes on.
  if has(list, "asker stops", "asker restarts") then return closed end
  if in_handler and has(list, "system terminates") then return closed end
  if has(list, "time out") then return result_of("time out") end
  -- ASK-4: what settles at once settles in order.
  for _, name in ipairs(list) do
    if settles_at_once[name] then return result_of(name) end
  end
  -- SYS-5, ASK-7: whatever ends in a system that ends does so for that reason.
  if has(list, "system terminates") then return result_of("system terminates") end
  if has(list, "target stops") then return result_of("target stops") end
  -- ASK-7: a restart is no stop: the request in hand times out.
  if not has(list, "system drains") then return result_of("time out", BUDGET) end
  -- SYS-5: a parked handler counts as busy while draining, a task does not. The target's is busy
  -- with the request until it restarts.
  if in_handler then return closed end
  local is_busy = request and not has(list, "target restarts")
  return result_of("system terminates", is_busy and INSTANT + DRAIN or INSTANT)
end

local needs_request = { ["reply"] = true, ["fail"] = true, ["target stops"] = true }

--- The same when the second end comes after all that follows from the first, in the same instant.
local function settle_apart(place, first, second)
  if first == "system drains" then return settle(place, { first, second }, true) end
  if first ~= "target restarts" then
    local result = settle(place, { first }, true)
    if second == "time out" and result.at then result.at = JUST_BEFORE end
    return result
  end
  if needs_request[second] then return settle(place, {}, false) end
  return settle(place, { second }, false)
end

local function names_alive(place, first, second)
  local both = { first, second }
  local alive = {}
  if has(both, "system terminates", "system drains") then return alive end
  if place == "a handler" and not has(both, "asker stops") then alive[#alive + 1] = "asker" end
  if not has(both, "target stops") then alive[#alive + 1] = "target" end
  return alive
end

-- The scene ---------------------------------------------------------------------------------------

local function new_scene(kit, place, budget)
  local s = { kit = kit, place = place, asked = 0, returned = 0, closed = 0, letters = {} }

  function s.ask()
    local _ <close> = setmetatable({}, { __close = function() s.closed = s.closed + 1 end })
    s.asked = s.asked + 1
    local value, err, from = s.target:ask("question", budget)
    s.returned = s.returned + 1
    s.value, s.err, s.from, s.at = value, err and err.name, from and from.name, kit:now()
  end

  kit.system.events:subscribe(function(event)
    s.letters[#s.letters + 1] = event.message
  end, "dead_letter")
  kit.system:spawn({
    pre_start = function(actor)
      s.parent = actor
      if place == "a handler" then s.asker = actor:spawn(s.ask, "asker") end
      s.target = actor:spawn(function(self)
        s.answerer = self
        troupe.sleep(FOR_EVER)
      end, "target")
    end,
    receive = function() end,
  })
  kit:settle()
  return s
end

--- Asks; on the main chunk that takes until the ask is settled.
local begin = {
  ["a task"] = function(s) s.task = s.kit:async(s.ask) end,
  ["a handler"] = function(s)
    s.asker:tell("ask")
    s.kit:settle()
  end,
  ["the main chunk"] = function(s) s.ask() end,
}

--- Lets the two ends come. A deadline comes before all else of its instant, so what is to come
--- before it, and apart from it, comes a little earlier.
local function bring_about(s, first, second, is_apart)
  s.kit.system:go(function()
    troupe.sleep(second == "time out" and is_apart and JUST_BEFORE or INSTANT)
    if ends[first] then ends[first](s) end
    if is_apart then troupe.sleep(0) end
    if ends[second] then ends[second](s) end
  end)
end

--- Whichever of the two ends begins first comes first, where one of them is a deadline.
local function play(s, first, second, is_apart)
  local controlled_first = second == "time out" or s.place == "the main chunk"
  if controlled_first then bring_about(s, first, second, is_apart) end
  if second == "time out" then s.kit:settle() end
  begin[s.place](s)
  if not controlled_first then bring_about(s, first, second, is_apart) end
  s.kit:advance(MUCH_LATER)
end

-- The specs ---------------------------------------------------------------------------------------

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

--- Calls `visit(place, first, second)` for each pair that can come there.
local function each_pair(visit)
  for _, place in ipairs(sorted_keys(places)) do
    local lacks = places[place]
    for _, first in ipairs(sorted_keys(ends)) do
      for _, second in ipairs(sorted_keys(ends)) do
        local never = lacks[first] or lacks[second]
          or (impossible[first] and impossible[first][second])
        if not never then visit(place, first, second) end
      end
    end
  end
end

describe("two ends of an ask", function()
  local kit = new_kit.each(before_each, after_each)

  local function check(place, first, second, is_apart, expected)
    local both = { first, second }
    local drain = has(both, "system drains") and DRAIN or 0
    local budget = has(both, "time out") and INSTANT or BUDGET
    local s = new_scene(kit { drain_timeout_ms = drain }, place, budget)

    play(s, first, second, is_apart)

    local alive = {}
    for i, ref in ipairs(s.parent.children) do alive[i] = ref.name end
    assert.are.same({
      asked = 1, returned = expected.closed_only and 0 or 1, closed = 1,
      value = expected.value, err = expected.err, from = expected.from, at = expected.at,
      letters = {}, alive = names_alive(place, first, second),
    }, {
      asked = s.asked, returned = s.returned, closed = s.closed,
      value = s.value, err = s.err, from = s.from, at = s.at,
      letters = s.letters, alive = alive,
    })
  end

  local function describe_pair(place, first, second, is_apart, expected)
    local given = expected.closed_only and "nothing" or expected.value or expected.err
    it(("%s %s, then %s, %s: an ask from %s gives %s"):format(expected.id, first, second,
      is_apart and "one after the other" or "in one breath", place, given), function()
        check(place, first, second, is_apart, expected)
      end)
  end

  each_pair(function(place, first, second)
    describe_pair(place, first, second, false, settle(place, { first, second }, true))
    describe_pair(place, first, second, true, settle_apart(place, first, second))
  end)
end)
