--- Helpers of the specs about routers.
local pools = {}

--- A routee that notes "name:message" in `seen`.
function pools.recorder(seen)
  return function(actor, message) seen[#seen + 1] = actor.name .. ":" .. tostring(message) end
end

--- How many of those notes each routee has made.
function pools.count_by_routee(seen)
  local counts = {}
  for _, entry in ipairs(seen) do
    local name = entry:match("^[^:]+")
    counts[name] = (counts[name] or 0) + 1
  end
  return counts
end

--- The dead letters from now on, in a list that grows.
function pools.dead_letters(kit)
  local letters = {}
  kit.system.events:subscribe(function(event) letters[#letters + 1] = event end, "dead_letter")
  return letters
end

--- The nth routee of the pool "workers".
function pools.routee(kit, n)
  return (kit.system:actor_selection("/user/workers/routee-" .. n):resolve_one())
end

function pools.stop_routee(kit, n)
  pools.routee(kit, n):stop()
  kit:settle()
end

--- Tells the messages one by one, each when the one before has been dealt with.
function pools.tell_each(kit, pool, ...)
  for _, message in ipairs { ... } do
    pool:tell(message)
    kit:settle()
  end
end

function pools.sorted(list)
  table.sort(list)
  return list
end

return pools
