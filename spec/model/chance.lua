--- Chance for what makes random histories: the same seed gives the same.

---@class spec.Chance
---@field random fun(n: integer): integer  from 1 to n
local Chance = {}

--- SplitMix64 (Steele, Lea and Flood, 2014).
---@param seed integer
---@return fun(n: integer): integer
function Chance.random(seed)
  local state = seed
  return function(n)
    state = state + 0x9e3779b97f4a7c15
    local z = state
    z = (z ~ (z >> 30)) * 0xbf58476d1ce4e5b9
    z = (z ~ (z >> 27)) * 0x94d049bb133111eb
    z = z ~ (z >> 31)
    return (z >> 1) % n + 1
  end
end

function Chance:chance(percent) return self.random(100) <= percent end

function Chance:one_of(list) return list[self.random(#list)] end

--- One of { what, weight } entries, as often as its weight says.
function Chance:weighted(entries)
  local sum = 0
  for _, entry in ipairs(entries) do sum = sum + entry[2] end
  local number = self.random(sum)
  for _, entry in ipairs(entries) do
    number = number - entry[2]
    if number <= 0 then return entry[1] end
  end
end

return Chance
