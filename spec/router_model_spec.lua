-- Random histories of a router, and the model that looks at them: spec/model/routers.lua. More of
-- them: make explore.

local check = require "spec.model.router_check"
local lines = require "spec.model.lines"
local make_history = require "spec.model.router_history"
local run = require "spec.model.router_run"

-- Where a history takes long, as under valgrind, there may be fewer.
local HISTORIES = (tonumber(os.getenv("TROUPE_HISTORIES")) or 1200) // 20

local strategies = {
  { id = "RTR-6", name = "round_robin" },
  { id = "RTR-7", name = "random" },
  { id = "RTR-8", name = "broadcast" },
  { id = "RTR-9", name = "smallest_mailbox" },
  { id = "RTR-10", name = "custom" },
  { id = "RTR-16", name = "consistent_hashing" },
}

-- Of one's own, like a built-in one.
local mirrored = { "round_robin", "broadcast", "smallest_mailbox", "consistent_hashing" }

-- Runs the history of a seed; raises what is wrong with it.
local function try(seed, strategy)
  local history = make_history(seed, strategy)
  local log = run(history)
  local wrong, at = check(history.options, log)
  if wrong then
    error(("seed %d: %s, at: %s"):format(seed, wrong, lines.of_entry(log[at])), 0)
  end
  return log
end

describe("random histories of a router", function()
  for _, strategy in ipairs(strategies) do
    it(("%s %s routes as the model says"):format(strategy.id, strategy.name), function()
      for seed = 1, HISTORIES do try(seed, strategy.name) end
    end)
  end

  for _, name in ipairs(mirrored) do
    -- What happened, but that it was asked.
    local function lines_of(log)
      local list = {}
      for _, entry in ipairs(log) do
        if entry.what ~= "routes" then list[#list + 1] = lines.of_entry(entry) end
      end
      return list
    end

    it(("RTR-10 a strategy of one's own routes as %s does"):format(name), function()
      for seed = 1, HISTORIES do
        local history = make_history(seed, "custom " .. name)
        local own = lines_of(try(seed, "custom " .. name))
        history.options.strategy = name
        assert.are.same(lines_of(run(history)), own, "seed " .. seed)
      end
    end)
  end
end)

describe("the model of routers", function()
  local SEEN = {
    receives = true, ends = true, raises = true, closes = true, failed = true, restarted = true,
    stopped = true, letter = true, dropped = true, routes = true, hears = true,
  }

  -- Logs of some histories, with the numbers of the entries that tell of something seen. None of
  -- random: whoever got a message may have been drawn.
  local names = { "round_robin", "broadcast", "smallest_mailbox", "custom" }

  local function each_log(visit)
    for seed = 1, 60 do
      local history = make_history(seed, names[seed % #names + 1])
      local log, seen = run(history), {}
      for i, entry in ipairs(log) do
        if SEEN[entry.what] then seen[#seen + 1] = i end
      end
      visit(log, seen, history)
    end
  end

  it("refuses a log in which one thing did not happen", function()
    each_log(function(log, seen, history)
      table.remove(log, seen[#seen // 2 + 1])
      assert.is_string(check(history.options, log))
    end)
  end)

  it("refuses a log in which one thing happened twice", function()
    each_log(function(log, seen, history)
      local i = seen[#seen // 2 + 1]
      table.insert(log, i, log[i])
      assert.is_string(check(history.options, log))
    end)
  end)

  it("refuses a log in which another routee got the message", function()
    local logs = 0
    each_log(function(log, seen, history)
      for _, i in ipairs(seen) do
        local entry = log[i]
        local number = entry.what == "receives" and entry[1]:match("^routee%-(%d+)%.1$")
        if number and history.options.size > 1 then
          entry[1] = ("routee-%d.1"):format(number % history.options.size + 1)
          assert.is_string(check(history.options, log))
          logs = logs + 1
          return
        end
      end
    end)
    assert.is_true(logs > 40)
  end)
end)
