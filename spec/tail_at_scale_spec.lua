--- Runs examples/tail_at_scale.lua in processes of its own.
local child = require "spec.support.child"

--- What the example printed, and its exit status; `prelude` is Lua code that comes first.
local function run(arguments, prelude)
  return child(('arg = { %s }\n%s\ndofile "examples/tail_at_scale.lua"'):format(
    arguments, prelude or ""))
end

describe("the example tail_at_scale", function()
  local output

  setup(function()
    local status
    output, status = run("4000")
    assert(status == 0, output)
  end)

  --- The row with that title, below that heading.
  local function row(heading, title)
    local number, percents = " +([%d.]+)", " +([%d.]+) %%"
    local below = output:match("\n" .. heading .. "[^\n]*(\n.-\n)\n")
    local pattern = "\n" .. title .. number:rep(4) .. percents:rep(2) .. "\n"
    local p50, p90, p99, p999, extra, wasted = below:match(pattern)
    assert(p50, "no row for " .. title .. " in:\n" .. output)
    return {
      p50 = tonumber(p50), p90 = tonumber(p90), p99 = tonumber(p99), p999 = tonumber(p999),
      extra = tonumber(extra), wasted = tonumber(wasted),
    }
  end

  local function request(title) return row("a request", title) end

  local function action(title) return row("an action", title) end

  it("shows that hedging cuts the 99.9th percentile many-fold, and not the median", function()
    local one = request "one replica"

    for _, title in ipairs { "hedged at p95", "hedged at p95, cancelling", "hedged after 10 ms" } do
      local hedged = request(title)
      assert.is_true(hedged.p999 * 4 < one.p999, title)
      assert.is_true(hedged.p50 < one.p50 * 1.1, title)
    end
  end)

  it("shows that hedging at the 95th percentile costs about 5 % more requests", function()
    for _, title in ipairs { "hedged at p95", "hedged at p95, cancelling" } do
      local extra = request(title).extra
      assert.is_true(extra > 4 and extra < 8, title)
    end
    assert.are.equal(0, request("one replica").extra)
  end)

  it("shows that cancelling wastes less", function()
    local hedged, scattered = request "hedged at p95", request "all replicas"

    assert.is_true(request("hedged at p95, cancelling").wasted * 2 < hedged.wasted)
    assert.is_true(request("all replicas, cancelling").wasted < scattered.wasted)
    assert.are.equal(0, request("one replica").wasted)
  end)

  it("shows that tied requests waste hardly anything, and do not help slow ones", function()
    local tied, early = request "tied after 1 ms", request "hedged after 1 ms, cancelling"

    assert.is_true(tied.wasted < 1 and early.wasted > 20)
    assert.is_true(tied.extra < 10 and early.extra > 100)
    assert.is_true(tied.p99 * 4 < request("one replica").p99)
    assert.are.equal(50, tied.p999)
  end)

  it("shows that asking all replicas triples the requests, and wastes most work", function()
    for _, title in ipairs { "all replicas", "all replicas, cancelling" } do
      local all = request(title)
      assert.are.equal(200, all.extra)
      assert.is_true(all.wasted > 50, title)
      assert.is_true(all.p999 < request("hedged at p95").p999, title)
    end
  end)

  it("shows that an action of many requests is often slow, and hardly ever when hedged", function()
    local plain, hedged = action "one replica of each", action "hedged after 10 ms, cancelling"
    local slow, slow_hedged = output:match("and ([%d.]+) %% of such.-([%d.]+) %% of the actions")

    assert.is_true(tonumber(slow) > 40 and tonumber(slow_hedged) < 2)
    assert.is_true(hedged.p50 * 4 < plain.p50 and hedged.p99 * 3 < plain.p99)
    assert.is_true(hedged.extra > 1 and hedged.extra < 5)
  end)

  it("gives the same figures for a seed each time, and others for another", function()
    local first = run("1000, 7")

    assert.are.equal(first, run("1000, 7"))
    assert.are_not.equal(first, run("1000, 8"))
  end)

  it("ends with exit code 1 when a request fails, and tells why", function()
    local failing, status = run("1000", [[
      local Router = require("troupe").Router
      local function broken(actor) actor:fail("no disk") end
      local round_robin = Router.round_robin
      Router.round_robin = function(size) return round_robin(size, broken) end
    ]])

    assert.are.equal(1, status)
    assert.is_truthy(failing:find("no disk", 1, true), failing)
  end)

  it("shows its usage for wrong arguments", function()
    for _, arguments in ipairs { "999", "1e7", "'many'", "1000.5", "1000, 'x'", "1000, 1, 1" } do
      local usage, status = run(arguments)
      assert.are.equal(2, status, arguments)
      assert.is_truthy(usage:find("^usage: "), usage)
    end
  end)
end)
