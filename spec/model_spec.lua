-- Random histories, and the model that looks at them: spec/model.

local check = require "spec.model.check"
local child = require "spec.support.child"
local lines = require "spec.model.lines"
local make_history = require "spec.model.history"
local run = require "spec.model.run"

-- Where a history takes long, as under valgrind, there may be fewer.
local HISTORIES = tonumber(os.getenv("TROUPE_HISTORIES")) or 1200

describe("random histories", function()
  local function check_all(is_shuffled)
    for seed = 1, HISTORIES do
      local history = make_history(seed)
      history.is_shuffled = is_shuffled
      local log = run(history)
      local wrong, at = check(history.options, log)
      if wrong then
        error(("seed %d: %s, at: %s"):format(seed, wrong, lines.of_entry(log[at])), 0)
      end
    end
  end

  it("SUP-4 go as the model says, first come, first served", function() check_all(false) end)

  it("TK-3 go as the model says under other schedules", function() check_all(true) end)
end)

describe("the model", function()
  local SEEN = {
    begins = true, receives = true, ends = true, raises = true, goes_on = true, closes = true,
    decides = true, event = true,
  }

  -- Logs of some histories, with the numbers of the entries that tell of something seen.
  local function each_log(visit)
    for seed = 1, 40 do
      local history = make_history(seed)
      local log = run(history)
      local seen = {}
      for i, entry in ipairs(log) do
        if SEEN[entry.what] then seen[#seen + 1] = i end
      end
      if #seen > 0 then visit(log, seen, history) end
    end
  end

  it("refuses a log in which one thing did not happen", function()
    local logs = 0
    each_log(function(log, seen, history)
      table.remove(log, seen[#seen // 2 + 1])
      assert.is_string(check(history.options, log))
      logs = logs + 1
    end)
    assert.is_true(logs > 20)
  end)

  it("refuses a log in which one thing happened twice", function()
    each_log(function(log, seen, history)
      local i = seen[#seen // 2 + 1]
      table.insert(log, i, log[i])
      assert.is_string(check(history.options, log))
    end)
  end)

  it("refuses a log in which an actor got its messages in another order", function()
    local logs = 0
    each_log(function(log, _, history)
      local last = {} -- what each actor got
      for _, entry in ipairs(log) do
        local id, what = entry[1], entry[2]
        if entry.what == "receives" and last[id] and last[id].message ~= what.message then
          what.message, last[id].message = last[id].message, what.message
          assert.is_string(check(history.options, log))
          logs = logs + 1
          return
        end
        if entry.what == "receives" then last[id] = what end
      end
    end)
    assert.is_true(logs > 10)
  end)
end)

describe("make explore", function()
  --- Runs what it runs, after the Lua code `prelude`.
  local function explore(count, seed, prelude)
    return child(([[
      %s
      arg = { [0] = "spec/model/main.lua", %q, %q }
      dofile(arg[0])
    ]]):format(prelude or "", count, seed))
  end

  it("says how many went well", function()
    local output, status = explore(20, 7)

    assert.are.equal("explore: 20 histories of actors, and of routers, from seed 7 on went as "
      .. "the models say\n", output)
    assert.are.equal(0, status)
  end)

  it("shows what happened under the first seed that fails, which fails alone too", function()
    local break_it = "require 'troupe.core'.stop_now = function() end"
    local output, status = explore(100, 1, break_it)

    assert.are.equal(1, status)
    local seed = math.tointeger(output:match("run it again with: make explore SEED=(%d+) N=1\n$"))
    assert.matches(("> [^\n]*\nexplore: seed %d: "):format(seed),
      (output:gsub("\n  [^\n]*", "")))
    assert.are.equal(output, (explore(1, seed, break_it)))
  end)

  it("refuses wrong usage", function()
    local output, status = explore("many", 1)

    assert.are.equal(2, status)
    assert.matches("^explore: usage: ", output)
  end)
end)
