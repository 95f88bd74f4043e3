local new_kit = require "spec.support.kit"

describe("mailboxes", function()
  local kit = new_kit.each(before_each, after_each)

  --- Queues the integers from 1 to `n` for one actor, lets it handle them, and gives the CPU time
  --- of both in seconds. Fails unless they come in order.
  local function queue_and_drain(n)
    local last = 0
    local ref = kit().system:spawn(function(_, message)
      assert(message == last + 1)
      last = message
    end)
    kit():settle()
    local began = os.clock()
    for i = 1, n do ref:tell(i) end
    assert.are.equal(n, kit().system:stats().queued)
    kit():settle()
    local seconds = os.clock() - began
    assert.are.equal(n, last)
    ref:stop()
    kit():settle()
    return seconds
  end

  it("MBX-1 delivers a million queued messages in order", function()
    queue_and_drain(1000000)
  end)

  it("MBX-1 costs no more per message when a million are queued", function()
    queue_and_drain(100000)
    local small = queue_and_drain(100000) / 100000
    local large = queue_and_drain(1000000) / 1000000

    assert.is_true(large < 4 * small, ("%.0f ns against %.0f"):format(large * 1e9, small * 1e9))
  end)

  it("MBX-1 gives the memory back when it has drained", function()
    local ref = kit().system:spawn(function() end)
    kit():settle()
    local before = kit().system:stats().engine_bytes

    for i = 1, 1000000 do ref:tell(i) end
    local full = kit().system:stats().engine_bytes
    kit():settle()
    local after = kit().system:stats().engine_bytes

    assert.is_true(full - before >= 16 * 1000000)
    -- What may stay is the pool of buffers for the next mailboxes, which is bounded.
    assert.is_true(after - before <= 2 ^ 20, ("%d bytes are left"):format(after - before))
  end)

  it("MBX-1 keeps the order while it is filled and drained by turns", function()
    local sent, handled = 0, 0
    local consumer = kit().system:spawn(function(_, n)
      handled = handled + 1
      assert(n == handled)
    end)
    kit().system:spawn(function(actor, round)
      for _ = 1, round % 7 * 11 do
        sent = sent + 1
        consumer:tell(sent)
      end
      if round < 500 then actor.ref:tell(round + 1) end
    end, "producer", { throughput = 1 }):tell(1)
    kit():settle()

    assert.are.equal(sent, handled)
  end)
end)
