--- The figures of what was measured: medians, spread, ratios.
local figures = {}

-- What every sample has; the rest is an arm's own.
local COMMON = { handled = true, seconds = true, cpu = true }

local function ascending(values)
  local sorted = table.move(values, 1, #values, 1, {})
  table.sort(sorted)
  return sorted
end

--- The middle one, of two the upper one.
local function median(values) return ascending(values)[#values // 2 + 1] end

local function of_each(samples, name, factor)
  local values = {}
  for i, sample in ipairs(samples) do values[i] = sample[name] * factor end
  return values
end

---@class bench.Figures
---@field arm string
---@field kind string
---@field ns number               for an operation, the median; `ns_min` and `ns_max` of the rounds
---@field ns_min number
---@field ns_max number
---@field cpu_ns number           processor time for an operation, the median
---@field ops_per_second number   of the median
---@field more table<string, number>?  medians of the arm's own figures
---@field times_floor number?     its ns over the floor's
---@field times_ours number?      its ns over ours
---@field samples table[]         what the arm said in each round

---@return bench.Figures
local function of_arm(arm, workload, samples)
  local size = samples[1].handled
  local sorted = ascending(of_each(samples, workload.by, 1e9 / size))
  local ns, more = median(sorted), {}
  for name in pairs(samples[1]) do
    if not COMMON[name] then more[name] = median(of_each(samples, name, 1)) end
  end
  return {
    arm = arm.name,
    kind = arm.kind,
    ns = ns,
    ns_min = sorted[1],
    ns_max = sorted[#sorted],
    cpu_ns = median(of_each(samples, "cpu", 1e9 / size)),
    ops_per_second = 1e9 / ns,
    more = next(more) and more,
    samples = samples,
  }
end

local function first_of_kind(list, kind)
  for _, one in ipairs(list) do
    if one.kind == kind then return one end
  end
end

---@class bench.Row
---@field id string
---@field title string
---@field unit string
---@field size integer  operations in a round; an arm may have done a share of them
---@field arms bench.Figures[]

--- A row for what was measured of a workload.
---@param workload bench.WorkloadRow
---@param size integer
---@param measured { arm: bench.Arm, samples: table[] }[]
---@return bench.Row
function figures.row(workload, size, measured)
  local list = {}
  for _, one in ipairs(measured) do
    if #one.samples > 0 then
      list[#list + 1] = of_arm(one.arm, workload, one.samples)
    end
  end
  local floor, ours = first_of_kind(list, "floor"), first_of_kind(list, "ours")
  for _, one in ipairs(list) do
    one.times_floor = floor and one.ns / floor.ns
    one.times_ours = ours and one.ns / ours.ns
  end
  return {
    id = workload.id,
    title = workload.title,
    unit = workload.unit,
    size = size,
    arms = list,
  }
end

--- The figures of one kind of arm in a row.
---@param row bench.Row
---@param kind string
---@return bench.Figures?
function figures.of_kind(row, kind) return first_of_kind(row.arms, kind) end

return figures
