--- The parts of bench/instructions.lua, and what it says without valgrind.

local child = require "spec.support.child"
local counts = require "bench.counts"
local profile = require "bench.profile"
local workloads = require "bench.workloads"

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read("a")
end

--- Counts that are nothing but a total.
local function counted(totals)
  local all = {}
  for name, total in pairs(totals) do
    all[name] = { total = total, lua = total, binding = 0, engine = 0, c = 0 }
  end
  return all
end

local DOCUMENT = [[
Text.
<!-- instructions -->
Counted with a compiler, Lua 5.4.4.

| operation | instructions | Lua | binding | engine | C library |
| --- | ---: | ---: | ---: | ---: | ---: |
| ask | 4,698 | 2,530 | 865 | 993 | 310 |
| floor: ping-pong | 729 | 693 | 0 | 0 | 36 |
<!-- end of instructions -->
More text.
]]

describe("the table of instructions", function()
  it("is read by operation, with what was counted with", function()
    local totals, tools = counts.read(DOCUMENT)

    assert.are.same({ ask = 4698, ["floor: ping-pong"] = 729 }, totals)
    assert.are.equal("a compiler, Lua 5.4.4", tools)
  end)

  it("is written in the place of the one before, and nothing else changes", function()
    local renewed = counts.replace(DOCUMENT, "instructions", counts.format({ "ring", "ask" }, {
      ring = { total = 999, lua = 900, binding = 90, engine = 9, c = 0 },
      ask = { total = 1234567, lua = 1200000, binding = 30000, engine = 4000, c = 567 },
    }, "another compiler"))

    assert.are.equal([[
Text.
<!-- instructions -->
Counted with another compiler.

| operation | instructions | Lua | binding | engine | C library |
| --- | ---: | ---: | ---: | ---: | ---: |
| ring | 999 | 900 | 90 | 9 | 0 |
| ask | 1,234,567 | 1,200,000 | 30,000 | 4,000 | 567 |
<!-- end of instructions -->
More text.
]], renewed)
  end)

  it("is missed when its marks are gone", function()
    assert.has_error(function() counts.read("Text.\n") end,
      "the table of instructions has lost its marks")
  end)

  it("warns of what has grown by more than 3 per cent, by name", function()
    local remarks = counts.compare({ "ask", "ring" }, counted { ask = 1031, ring = 1030 },
      { ask = 1000, ring = 1000 })

    assert.are.same(
      { "WARNING: ask takes 1,031 instructions instead of 1,000 (+3.1 %)" }, remarks)
  end)

  it("asks to be renewed when something has shrunk by more than 3 per cent", function()
    local remarks = counts.compare({ "ask", "ring" }, counted { ask = 969, ring = 970 },
      { ask = 1000, ring = 1000 })

    assert.are.same(
      { "ask takes only 969 instructions instead of 1,000 (-3.1 %): renew the table" }, remarks)
  end)

  it("asks to be renewed when it has no such operation", function()
    local remarks = counts.compare({ "ring" }, counted { ring = 970 }, { ask = 1000 })

    assert.are.same({ "ring is not in the table: renew it" }, remarks)
  end)

  it("stands in docs/performance.md, with a row for every workload", function()
    local totals, tools = counts.read(read "docs/performance.md")

    for _, workload in ipairs(workloads) do
      if workload.id == workload.program and workload.id ~= "latency" then
        assert.is_true(math.type(totals[workload.id]) == "integer", "no row for " .. workload.id)
      end
    end
    assert.matches("Lua 5%.4%.%d+", tools)
  end)
end)

describe("a profile", function()
  it("gives what a function costs itself to what it belongs to", function()
    local counted_by_part = profile.read(([[
positions: line
events: Ir

ob=(1) /usr/bin/lua5.4
fl=(1) ???
fn=(1) lua_callk
0 100
cob=(2) /there/build/release/troupe/core.so
cfi=(2) /there/src/binding/ref.c
cfn=(2) ref_tell
calls=7 40
0 5000
+3 10

ob=(2)
fl=(2)
fn=(2)
40 20
fi=(3) /there/src/engine/ring.c
-2 3
* 4
fe=(2)
+1 30
fi=(3)
9 2

fn=(4) ref_ask
50 200

ob=(3) /lib/libc.so.6
fl=(4) malloc.c
fn=(5) malloc
9 5
]]):gmatch("[^\n]+"))

    assert.are.same({ lua = 110, binding = 250, engine = 9, c = 5 }, counted_by_part)
  end)
end)

describe("bench/instructions.lua", function()
  local function run(words, prelude)
    return child(([[
      %s
      arg = { [0] = "bench/instructions.lua", %s }
      dofile(arg[0])
    ]]):format(prelude or "", words))
  end

  it("says how to get valgrind when it is missing", function()
    local output, code = run("", [[
      local popen = io.popen
      io.popen = function(command) return popen((command:gsub("valgrind", "no-such-program"))) end
    ]])

    assert.are.equal(0, code)
    assert.are.equal("bench: valgrind is missing, so no instructions are counted; "
      .. "to get it: apt-get install valgrind\n", output)
  end)

  it("refuses wrong usage", function()
    for _, words in ipairs { "'--fast'", "'chess'", "'latency'" } do
      local output, code = run(words)

      assert.are.equal(2, code)
      assert.matches("^bench: usage: lua5.4 bench/instructions.lua ", output)
    end
  end)

  it("renews the whole table or nothing", function()
    local output, code = run("'--renew', 'ask'")

    assert.are.equal(2, code)
    assert.are.equal("bench: only the whole table can be renewed\n", output)
  end)
end)
