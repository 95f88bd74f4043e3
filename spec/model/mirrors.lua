--- Strategies of one's own that route as the built-in ones do. Those that take turns keep their
--- place by themselves: with who comes after the one that they have picked last.
local rendezvous = require "spec.model.rendezvous"

local mirrors = {}

local function numbers_of(routees)
  local numbers = {}
  for place, ref in ipairs(routees) do numbers[place] = math.tointeger(ref.name:match("%d+$")) end
  return numbers
end

-- Picks one by where the turns go on, which begin anew with each incarnation of the router.
local function in_turn(pick)
  local last
  return function(routees, state)
    if state.message_index == 0 then last = 0 end
    local numbers, first = numbers_of(routees), 1
    while numbers[first] and numbers[first] <= last do first = first + 1 end
    local place = pick(routees, state, numbers[first] and first or 1)
    last = numbers[place]
    return { routees[place] }
  end
end

local make = {}

function make.round_robin()
  return in_turn(function(_, _, first) return first end)
end

function make.smallest_mailbox()
  return in_turn(function(routees, state, first)
    local best = first
    for i = first, first + #routees - 1 do
      local place = (i - 1) % #routees + 1
      if state:depth(routees[place]) < state:depth(routees[best]) then best = place end
    end
    return best
  end)
end

function make.broadcast()
  return function(routees) return routees end
end

function make.consistent_hashing()
  return function(routees, state)
    local key = state.message.key
    return key and { routees[rendezvous(tostring(key), numbers_of(routees))] }
  end
end

--- A strategy like the built-in one of that name; nil when there is no such name.
---@param name? string
---@return troupe.Strategy?
function mirrors.new(name) return make[name] and make[name]() end

return mirrors
