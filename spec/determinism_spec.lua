-- The same seed gives the same run, byte for byte.

local child = require "spec.support.child"

-- All that happens in some random histories, and all that is logged of it, as lines.
local TRANSCRIPT = [[
  local lines = require "spec.model.lines"
  local make_history = require "spec.model.history"
  local run = require "spec.model.run"

  local transcript = {}
  for seed = 1, 60 do
    local history = make_history(seed)
    history.options.log_level = "debug"
    local log, records = run(history)
    log[#log] = nil -- counters, which depend on when garbage is collected
    for _, entry in ipairs(log) do transcript[#transcript + 1] = lines.of_entry(entry) end
    for _, record in ipairs(records) do transcript[#transcript + 1] = lines.of_record(record) end
  end
  return table.concat(transcript, "\n")
]]

local function assert_same(one, other)
  assert.is_true(#one > 100000)
  if one == other then return end
  local line_of, number = other:gmatch("[^\n]*"), 0
  for line in one:gmatch("[^\n]*") do
    number = number + 1
    assert.are.equal(line, line_of(), ("line %d differs"):format(number))
  end
  error("one is longer than the other")
end

describe("determinism", function()
  it("TK-1 the same seed gives the same run, byte for byte, twice in a process", function()
    assert_same(load(TRANSCRIPT)(), load(TRANSCRIPT)())
  end)

  it("TK-1 the same seed gives the same run, byte for byte, in two processes", function()
    local code = ("io.write((load(%q)()))"):format(TRANSCRIPT)

    assert_same((child(code)), (child(code)))
  end)
end)
