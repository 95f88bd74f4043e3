--- Rendezvous hashing: FNV-1a of the key, and the finalizer of SplitMix64 for each node.  (RTR-16)

local function hash(text)
  local h = 0xcbf29ce484222325
  for i = 1, #text do h = (h ~ text:byte(i)) * 0x100000001b3 end
  return h
end

local function mix(x)
  x = (x ~ (x >> 30)) * 0xbf58476d1ce4e5b9
  x = (x ~ (x >> 27)) * 0x94d049bb133111eb
  return x ~ (x >> 31)
end

--- The place of the number that scores highest with the key.
---@param key string
---@param numbers integer[]
---@return integer place
return function(key, numbers)
  local best, most, start = 1, 0, hash(key)
  for place, number in ipairs(numbers) do
    local score = mix(start + number * 0x9e3779b97f4a7c15)
    if math.ult(most, score) then best, most = place, score end
  end
  return best
end
