--- Runs bench/run.lua the way a user does: in a process of its own.

local child = require "spec.support.child"

--- Runs it with a list of arguments, after the Lua code `prelude`; gives its output and exit code.
local function bench(arguments, prelude)
  local words = {}
  for i, word in ipairs(arguments) do words[i] = ("%q"):format(word) end
  return child(([[
    %s
    arg = { [0] = "bench/run.lua", %s }
    dofile(arg[0])
  ]]):format(prelude or "", table.concat(words, ", ")))
end

local rows = {
  "floor: a call",
  "floor: a call and a fresh table",
  "ping-pong, an integer",
  "ping-pong, a fresh table",
  "tell, batches of 1,000",
  "tell, batches of 10,000",
  "round-robin of 8",
  "ask, one at a time",
  "ask, 1,000 in flight",
  "scatter over 3, 100 in flight",
  "spawn, tell, stop, by 100",
}

describe("the benchmark", function()
  local path

  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  it("prints a row of positive figures for each workload", function()
    local output, code = bench { "--quick" }

    assert.are.equal(0, code, output)
    for _, name in ipairs(rows) do
      local _, stop = output:find("\n" .. name, 1, true)
      assert(stop, "no row for " .. name .. " in:\n" .. output)
      local figures = 0
      for figure in output:match("[^\n]*", stop + 1):gmatch("[%d.,]+") do
        assert.is_true(tonumber((figure:gsub(",", ""))) > 0)
        figures = figures + 1
      end
      assert.are.equal(7, figures)
    end
  end)

  it("prints lines of at most 100 columns", function()
    local output = bench { "--quick" }

    for line in output:gmatch("[^\n]+") do assert.is_true(#line <= 100, line) end
  end)

  it("writes the same rows as JSON to a file", function()
    local output, code = bench { "--quick", path }

    assert.are.equal(0, code, output)
    local file <close> = assert(io.open(path))
    local names = {}
    for name in file:read("a"):gmatch('"name": "([^"]*)"') do names[#names + 1] = name end
    assert.are.same(rows, names)
  end)

  it("fails when a workload does less than it is to do", function()
    local output, code = bench({ "--quick" }, [[
      local Router = require "troupe".Router
      local first_completed = Router.scatter_gather_first_completed
      function Router.scatter_gather_first_completed(size, ...)
        return first_completed(size - 1, ...)
      end
    ]])

    assert.are.equal(1, code)
    assert.are.equal("bench: scatter over 3, 100 in flight: "
      .. "questions handled: 2000 instead of 3000\n", output)
  end)

  it("says what to do when the floor has not been built", function()
    local output, code = bench({ "--quick" }, [[
      package.preload.troupe_bench_floor = function() error("not there") end
    ]])

    assert.are.equal(2, code)
    assert.matches("^bench: run `make bench`.*not there", output)
  end)

  it("refuses wrong usage", function()
    local output, code = bench { "--fast" }

    assert.are.equal(2, code)
    assert.are.equal("bench: usage: lua5.4 bench/run.lua [--quick] [FILE]\n", output)
  end)

  it("refuses a file that cannot be written before it measures", function()
    local output, code = bench { "--quick", "/nowhere/figures.json" }

    assert.are.equal(2, code)
    assert.are.equal("bench: /nowhere/figures.json: No such file or directory\n", output)
  end)
end)
