--- Runs bench/run.lua the way a user does, in a process of its own; and its parts.

local child = require "spec.support.child"
local figures = require "bench.figures"
local goals = require "bench.goals"
local json = require "bench.json"
local workloads = require "bench.workloads"

--- Runs a program of the bench with a list of arguments, after the Lua code `prelude`.
---@return string output  errors included
---@return integer code
local function program(path, arguments, prelude)
  local words = {}
  for i, word in ipairs(arguments) do words[i] = ("%q"):format(word) end
  return child(([[
    %s
    arg = { [0] = %q, %s }
    dofile(arg[0])
  ]]):format(prelude or "", path, table.concat(words, ", ")))
end

local function bench(arguments, prelude) return program("bench/run.lua", arguments, prelude) end

--- Code that puts arms in the place of all others: each a name, a kind and a shell's words.
local function with_arms(arms)
  local rows = {}
  for i, arm in ipairs(arms) do
    rows[i] = ("{ name=%q, kind=%q, command=%q, version=%q, build=%q, get = 'a map', %s }")
      :format(arm[1], arm[2], ("sh -c '%s' _"):format(arm[3]), arm.version or "echo 1.0",
        arm.build or "true", arm.more or "")
  end
  return ("package.preload['bench.arms'] = function() return { %s } end")
    :format(table.concat(rows, ", "))
end

-- What an arm says that is asked for $1, a workload, and $2, its size.
local DOES_ALL = "echo handled=$2 seconds=0.5 cpu=0.25"

describe("the bench", function()
  local path

  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  local function written()
    local file <close> = assert(io.open(path))
    return file:read("a")
  end

  it("runs every workload of Troupe, and prints lines of at most 100 columns", function()
    local output, code = bench { "--quick", "--peers", "--arms=troupe,floor,libuv", path }

    assert.are.equal(0, code, output)
    local text = written()
    for _, workload in ipairs(workloads) do
      assert.is_truthy(output:find("\n" .. workload.title, 1, true), workload.title)
      assert.is_truthy(text:find(('"id": "%s"'):format(workload.id), 1, true), workload.id)
    end
    for line in output:gmatch("[^\n]+") do assert.is_true(#line <= 100, line) end
  end)

  it("fails when an arm does less than it is to do, and says which", function()
    local output, code = bench({ "--quick", "--only=ask,ring" }, with_arms {
      { "troupe", "ours", "echo handled=$(($2 - ${#1} + 3)) seconds=1 cpu=1" },
    })

    assert.are.equal(1, code)
    assert.is_truthy(output:find("\nbench: ring, troupe: handled 1999 instead of 2000\n", 1, true))
    assert.is_nil(output:find("bench: ask", 1, true))
  end)

  it("fails when an arm fails or says nothing, and measures the others", function()
    local output, code = bench({ "--quick", "--peers", "--only=ask", path }, with_arms {
      { "troupe", "ours", DOES_ALL },
      { "broken", "peer", "echo it broke; exit 7" },
      { "silent", "peer", "echo hello" },
    })

    assert.are.equal(1, code)
    assert.is_truthy(output:find("bench: ask, broken: exit code 7: it broke\n", 1, true))
    assert.is_truthy(output:find("ask, silent: did not say what it measured: hello\n", 1, true))
    assert.is_truthy(output:find("\nask, one after another +troupe +1,000 "))
    assert.is_truthy(written():find('"ask, broken: exit code 7: it broke"', 1, true))
  end)

  it("gives no figures for what failed in any round, and does not try it again", function()
    local output = bench({ "--only=ask" }, with_arms {
      { "troupe", "ours", ("echo run >>%s; [ $(wc -l <%s) = 1 ] || exit 7; %s")
        :format(path, path, DOES_ALL) },
    })

    assert.are.equal("run\nrun\n", written())
    assert.is_nil(output:find("ask, one after another", 1, true))
  end)

  it("goes on without a workload that an arm has not", function()
    local output, code = bench({ "--quick", "--peers", "--only=ask,ring", path }, with_arms {
      { "troupe", "ours", DOES_ALL },
      { "other", "peer", "[ $1 = ask ] || exit 3; " .. DOES_ALL },
    })

    assert.are.equal(0, code, output)
    local _, rows = written():gsub('"arm": "other"', "")
    assert.are.equal(1, rows)
  end)

  it("skips a peer that is missing or cannot be built, and says how to get it", function()
    local output, code = bench({ "--quick", "--peers", "--only=ask", path }, with_arms {
      { "troupe", "ours", DOES_ALL },
      { "absent", "peer", DOES_ALL, version = "nowhere-to-be-found --version" },
      { "raw", "peer", DOES_ALL, build = "echo no compiler; false" },
    })

    assert.are.equal(0, code, output)
    assert.is_truthy(output:find("absent is missing and is skipped; to get it: a map\n", 1, true))
    assert.is_truthy(output:find("raw was not built (no compiler) and is skipped", 1, true))
    assert.is_truthy(written():find('"arm": "absent"', 1, true))
  end)

  it("measures no peers and no variants unless it is told to", function()
    local output, code = bench({ "--quick", "--only=ask" }, with_arms {
      { "troupe", "ours", DOES_ALL }, { "caf", "peer", DOES_ALL }, { "mode", "variant", DOES_ALL },
    })

    assert.are.equal(0, code)
    assert.is_nil(output:find("caf", 1, true))
    assert.is_nil(output:find("mode", 1, true))
  end)

  it("runs every arm of every workload, then again, for five rounds", function()
    local note = ("echo $1 >>%s; %s"):format(path, DOES_ALL)

    bench({ "--peers", "--only=ask,ring" }, with_arms {
      { "troupe", "ours", "echo ours; " .. note }, { "other", "peer", note },
    })

    local round = "ring\nring\nask\nask\n"
    assert.are.equal(round:rep(5), written())
  end)

  it("measures peers in one round only where memory is what matters", function()
    local note = ("echo $1 >>%s; %s"):format(path, DOES_ALL)

    bench({ "--peers", "--only=idle" }, with_arms {
      { "troupe", "ours", note }, { "caf", "peer", note },
    })

    assert.are.equal(("idle\n"):rep(5 + 1), written())
  end)

  it("gives an arm a share of the operations, and only some of the workloads", function()
    local note = ("echo $1 $2 >>%s; echo handled=$2 seconds=0.$2 cpu=1"):format(path)

    local output = bench({ "--peers", "--only=tell-1000,ask" }, with_arms {
      { "nact", "peer", note, more = "share = 5, only = { ask = true }" },
    })

    assert.are.equal(("ask 40000\n"):rep(5), written())
    assert.is_truthy(output:find("nact +100,000  10000.0 "))
  end)

  it("gives a slow arm all of them where the size is what it is about", function()
    local note = ("echo $1 $2 >>%s; %s"):format(path, DOES_ALL)

    bench({ "--peers", "--only=idle" }, with_arms { { "nact", "peer", note, more = "share = 5" } })

    assert.are.equal("idle 100000\n", written())
  end)

  it("measures a million idle actors of ours alone", function()
    local note = ("echo %s $2 >>%s; %s"):format("%s", path, DOES_ALL)

    bench({ "--peers", "--only=idle-1m" }, with_arms {
      { "troupe", "ours", note:format("troupe") }, { "caf", "peer", note:format("caf") },
    })

    assert.are.equal("troupe 1000000\n", written())
  end)

  it("writes what each round gave, and where, as JSON", function()
    bench({ "--only=ask", path }, with_arms {
      { "troupe", "ours", DOES_ALL .. " bytes=12", version = "echo 2.0, the second" },
    })

    local text = written()
    local _, samples = text:gsub('"handled": 200000', "")
    assert.are.equal(5, samples)
    assert.is_truthy(text:find('"troupe": "2.0, the second"', 1, true))
    assert.is_truthy(text:find('"machine": {\n    "cores": ', 1, true))
    assert.is_truthy(text:find('"bytes": 12', 1, true))
  end)

  it("says what to do when it has not been built", function()
    local output, code = bench({ "--quick" }, with_arms {
      { "troupe", "ours", DOES_ALL, version = "false" },
    })

    assert.are.equal(2, code)
    assert.are.equal("bench: troupe is missing; run `a map`\n", output)
  end)

  it("refuses wrong usage", function()
    for _, word in ipairs { "--fast", "--only", "--only=" } do
      local output, code = bench { word }

      assert.are.equal(2, code)
      assert.matches("^bench: usage: lua5.4 bench/run.lua ", output)
    end
  end)

  it("refuses workloads and arms that are not there", function()
    for _, word in ipairs { "--only=ask,chess", "--arms=chess" } do
      local output, code = bench { word }

      assert.are.equal(2, code)
      assert.are.equal("bench: there is no chess\n", output)
    end
  end)

  it("refuses a file that cannot be written before it measures", function()
    local output, code = bench { "--quick", "/nowhere/figures.json" }

    assert.are.equal(2, code)
    assert.are.equal("bench: /nowhere/figures.json: No such file or directory\n", output)
  end)
end)

describe("the arm of Troupe", function()
  -- Every actor that is spawned by the system and is a function loses its first message.
  local lossy = [[
    local troupe = require "troupe"
    local new_system = troupe.system
    local function without_first(behavior)
      if type(behavior) ~= "function" then return behavior end
      local first = true
      return function(...)
        if not first then return behavior(...) end
        first = false
      end
    end
    function troupe.system(...)
      local system = new_system(...)
      local own = {
        spawn = function(_, behavior, ...) return system:spawn(without_first(behavior), ...) end,
        run = function() system:run() end,
        stats = function() return system:stats() end,
      }
      return setmetatable(own, { __close = function() system:terminate() end })
    end
  ]]

  for _, workload in ipairs {
    "ping-pong", "ping-pong-table", "tell-1000", "tell-10000", "fan-in", "ring", "round-robin",
    "deep", "priority", "spawn", "lives", "idle",
  } do
    it("does not count a message that was told but not handled: " .. workload, function()
      local output, code = program("bench/troupe.lua", { workload, "10000" }, lossy)

      assert.is_true(code == 1 or output:find("^handled=%d+ ") ~= nil, output)
      assert.is_nil(output:find("handled=10000 ", 1, true))
    end)
  end

  it("says with exit code 3 that it has no such workload", function()
    local _, code = program("bench/troupe.lua", { "chess", "1" })

    assert.are.equal(3, code)
  end)
end)

local ours = { name = "troupe", kind = "ours" }
local floor = { name = "floor", kind = "floor" }
local peer = { name = "erlang", kind = "peer" }
local bound = { name = "plain", kind = "bound" }

--- What `figures.row` gives for arms and the seconds that each took for 1,000 operations.
local function row(id, measured)
  local list = {}
  for i, one in ipairs(measured) do
    local samples = {}
    for round, seconds in ipairs(one[2]) do
      samples[round] = { handled = 1000, seconds = seconds, cpu = seconds / 2, bytes = one.bytes }
    end
    list[i] = { arm = one[1], samples = samples }
  end
  return figures.row({ id = id, by = "seconds" }, 1000, list)
end

describe("the bench's figures", function()
  it("are medians, with the least and the most", function()
    local made = row("ask", { { ours, { 5e-6, 1e-6, 3e-6, 2e-6, 4e-6 } } }).arms[1]

    assert.are.near(3, made.ns, 1e-9)
    assert.are.near(1, made.ns_min, 1e-9)
    assert.are.near(5, made.ns_max, 1e-9)
    assert.are.near(1.5, made.cpu_ns, 1e-9)
    assert.are.near(1e9 / 3, made.ops_per_second, 1)
  end)

  it("are held against the floor and against ours", function()
    local made = row("ask", { { ours, { 3e-6 } }, { floor, { 2e-6 } }, { peer, { 9e-6 } } }).arms

    assert.are.near(1.5, made[1].times_floor, 1e-9)
    assert.are.near(3, made[3].times_ours, 1e-9)
  end)

  it("hold nothing of an arm without samples", function()
    local made = row("ask", { { ours, { 3e-6 } }, { peer, {} } }).arms

    assert.are.equal(1, #made)
    assert.is_nil(made[1].times_floor)
  end)

  it("are taken from processor time where a workload says so", function()
    local made = figures.row({ id = "timers-fire", by = "cpu" }, 10, {
      { arm = ours, samples = { { handled = 10, seconds = 1, cpu = 1e-6 } } },
    })

    assert.are.near(100, made.arms[1].ns, 1e-9)
  end)
end)

describe("the bench's goals", function()
  local function judge(goal, ...) return goals.judge({ ... }, { goal })[1] end

  it("ask for a multiple of the best peer's rate", function()
    local measured = row("ask", {
      { ours, { 2e-6 } }, { peer, { 7e-6 } }, { { name = "slow", kind = "peer" }, { 9e-6 } },
      { bound, { 1e-6 } },
    })

    local met = judge({ workload = "ask", times = 3.5 }, measured)
    assert.are.same({ "3.50x erlang", true }, { met.reached, met.met })
    assert.is_false(judge({ workload = "ask", times = 3.6 }, measured).met)
    assert.are.equal("0.50x plain",
      judge({ workload = "ask", times = 1, bounds = true }, measured).reached)
  end)

  it("ask for a rate, for few bytes, for a time near the floor", function()
    local measured = row("ask", { { ours, { 2e-6 }, bytes = 400 }, { floor, { 1e-6 } } })

    assert.is_true(judge({ workload = "ask", rate = 4e8 }, measured).met)
    assert.is_false(judge({ workload = "ask", rate = 6e8 }, measured).met)
    assert.is_true(judge({ workload = "ask", bytes = 400 }, measured).met)
    assert.is_false(judge({ workload = "ask", bytes = 399 }, measured).met)
    assert.is_true(judge({ workload = "ask", floor = 2.1 }, measured).met)
    assert.is_false(judge({ workload = "ask", floor = 1.9 }, measured).met)
  end)

  it("ask for the rate of another workload, give or take what is noise", function()
    local small = row("ask-64", { { ours, { 2e-6 } } })
    local goal = { workload = "ask-256k", like = "ask-64" }

    assert.is_true(judge(goal, small, row("ask-256k", { { ours, { 2.5e-6 } } })).met)
    assert.is_false(judge(goal, small, row("ask-256k", { { ours, { 2.7e-6 } } })).met)
  end)

  it("are neither met nor missed where nothing was measured to judge them by", function()
    local verdict = judge({ workload = "ask", times = 3 }, row("ask", { { ours, { 2e-6 } } }))

    assert.is_nil(verdict.reached)
    assert.is_nil(verdict.met)
    assert.is_nil(judge({ workload = "ring", times = 3 }, row("ask", { { ours, { 2e-6 } } })))
  end)

  it("are about workloads that there are", function()
    local known = {}
    for _, workload in ipairs(workloads) do known[workload.id] = true end

    for _, goal in ipairs(goals.list) do
      assert.is_true(known[goal.workload])
      assert.is_true(goal.like == nil or known[goal.like])
    end
  end)
end)

describe("the bench's JSON", function()
  it("has lists and objects, numbers and text", function()
    local text = json { name = 'a "b"\\\n', list = { 1, 2.5, true }, none = {}, no = 0 / 0 }

    assert.are.equal([[{
  "list": [
    1,
    2.5,
    true
  ],
  "name": "a \u0022b\u0022\u005c\u000a",
  "no": null,
  "none": []
}]], text)
  end)
end)
