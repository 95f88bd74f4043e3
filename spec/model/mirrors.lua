--- Strategies of one's own that route as the built-in ones do. Each keeps its place by itself: who
--- comes after the one that it has picked last.
local mirrors = {}

local function number_of(ref) return math.tointeger(ref.name:match("%d+$")) end

-- The place of the first after routee `last`, or the first of all.
local function place_after(routees, last)
  for place, ref in ipairs(routees) do
    if number_of(ref) > last then return place end
  end
  return 1
end

local make = {}

function make.round_robin()
  local last = 0
  return function(routees, state)
    if state.message_index == 0 then last = 0 end -- a new incarnation of the router
    local picked = routees[place_after(routees, last)]
    last = number_of(picked)
    return { picked }
  end
end

function make.broadcast()
  return function(routees) return routees end
end

--- A strategy like the built-in one of that name; nil when there is no such name.
---@param name? string
---@return troupe.Strategy?
function mirrors.new(name) return make[name] and make[name]() end

return mirrors
