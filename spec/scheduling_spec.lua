local troupe = require "troupe"
local new_kit = require "spec.support.kit"

describe("scheduling", function()
  local kit = new_kit.each(before_each, after_each)

  --- Lets two actors with 100 messages each run, and gives how many one of them handled at a time.
  local function turns()
    local lengths, last = {}, nil
    local function handler(actor)
      if actor.name == last then
        lengths[#lengths] = lengths[#lengths] + 1
      else
        lengths[#lengths + 1] = 1
        last = actor.name
      end
    end
    local a, b = kit().system:spawn(handler, "a"), kit().system:spawn(handler, "b")
    for i = 1, 100 do
      a:tell(i)
      b:tell(i)
    end
    kit():settle()
    return lengths
  end

  it("DISP-1 lets an actor handle 32 messages a turn, then others run", function()
    assert.are.same({ 32, 32, 32, 32, 32, 32, 4, 4 }, turns())
  end)

  it("DISP-1 lets the option say how many", function()
    kit { throughput = 50 }

    assert.are.same({ 50, 50, 50, 50 }, turns())
  end)

  it("DISP-1 gives a turn of one message each when throughput is 1", function()
    kit { throughput = 1 }

    local lengths = turns()

    assert.are.equal(200, #lengths)
  end)

  it("DISP-2 fires a timer within a millisecond, in the middle of a busy turn", function()
    local system <close> = troupe.system("busy")
    local handled, at_timer = 0, nil
    local worker = system:spawn(function()
      handled = handled + 1
      local ends = os.clock() + 0.0005
      while os.clock() < ends do end
    end)
    for _ = 1, 100 do worker:tell("work") end
    system:schedule_once(5, function() at_timer = handled end)

    system:run()

    assert.are.equal(100, handled)
    assert.is_true(at_timer <= 15, ("fired after %d messages"):format(at_timer))
  end)

  it("DISP-2 fires a timer within 1024 messages, however short they are", function()
    local system <close> = troupe.system("busy")
    local fired_after
    local handled = 0
    local worker = system:spawn(function(actor)
      handled = handled + 1
      if handled == 1 then system:schedule_once(0, function() fired_after = handled end) end
      if not fired_after and handled < 10000 then actor.ref:tell("again") end
    end)
    worker:tell("again")

    system:run()

    assert.is_true(fired_after <= 1025, ("fired after %d messages"):format(fired_after))
  end)

  it("DISP-2 fires a timer that is due although another re-arms itself without delay", function()
    local system <close> = troupe.system("busy")
    local rounds, done = 0, false
    local function again()
      rounds = rounds + 1
      if not done and rounds < 1000000 then system:schedule_once(0, again) end
    end
    again()
    system:schedule_once(2, function() done = true end)

    system:run()

    assert.is_true(done)
    assert.is_true(rounds < 1000000)
  end)

  it("DISP-3 does not let a thousand busy actors starve one", function()
    local system = kit().system
    local handled, waited = 0, {}
    local quiet = system:spawn(function(_, sent_at) waited[#waited + 1] = handled - sent_at end)
    local function flood(actor)
      handled = handled + 1
      if handled % 50000 == 0 and handled <= 150000 then quiet:tell(handled) end
      if #waited < 3 and handled < 1000000 then actor.ref:tell("again") end
    end
    for _ = 1, 1000 do
      local ref = system:spawn(flood)
      for _ = 1, 64 do ref:tell("again") end
    end
    kit():settle()

    assert.are.equal(3, #waited)
    for _, messages in ipairs(waited) do
      assert.is_true(messages <= 1000 * 32, ("waited for %d messages"):format(messages))
    end
  end)
end)
