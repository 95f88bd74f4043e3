local troupe = require "troupe"
local new_kit = require "spec.support.kit"

describe("looking inside", function()
  local kit = new_kit.each(before_each, after_each)

  it("INS-2 counts what there is", function()
    local system = kit().system
    local mute = system:spawn(function() end)
    local pool = system:spawn(troupe.Router.scatter_gather_first_completed(2, function() end))
    kit():settle()
    system:go(function() mute:ask("never answered", 50) end)
    system:go(function() pool:ask("never answered", 50) end)
    kit():settle()
    mute:tell("queued")

    local stats = system:stats()

    assert.are.equal(4, stats.actors) -- mute, the pool and its two routees
    assert.are.equal(1, stats.queued)
    assert.are.equal(2, stats.asks)
    assert.are.equal(1, stats.scatters)
    assert.are.equal(3, stats.timers) -- of the two asks and of the scatter
    assert.are.equal(2, stats.tasks)
    assert.are.equal(2, stats.parked)
    assert.is_true(stats.anchored > 0 and stats.engine_bytes > 0)
  end)

  it("INS-2 finds it all back at the start when it has settled", function()
    local system = kit().system
    local echo = system:spawn(function(actor, message) actor:reply(message) end)
    local function run()
      for i = 1, 100 do
        local question = { i }
        assert.are.equal(question, (echo:ask(question)))
      end
      collectgarbage() -- reply refs that were looked at here are given back by the collector
      collectgarbage()
    end
    run()
    local before = system:stats()
    run()

    assert.are.same(before, system:stats())
  end)
end)
