--- What was measured, for people and for programs.
local report = {}

local function ascending(values)
  local sorted = table.move(values, 1, #values, 1, {})
  table.sort(sorted)
  return sorted
end

local function median(values) return ascending(values)[#values // 2 + 1] end

--- The figures of a row. Rows have a `workload`, `operations` in a round, and the `ns` of a message
--- in each round; `base` is the row of its floor, which was measured in the same rounds.
local function figures(row, base)
  local multiples = {}
  for round, ns in ipairs(row.ns) do multiples[round] = ns / base.ns[round] end
  local sorted = ascending(row.ns)
  return {
    name = row.workload.name,
    floor = row.workload.floor,
    messages_per_operation = row.workload.messages,
    operations_per_round = row.operations,
    ns_per_message = median(row.ns),
    ns_per_message_min = sorted[1],
    ns_per_message_max = sorted[#sorted],
    messages_per_second = 1e9 / median(row.ns),
    ns_per_operation = median(row.ns) * row.workload.messages,
    times_floor = median(multiples),
  }
end

--- The figures of all rows.
function report.figures(rows)
  local by_name, all = {}, {}
  for _, row in ipairs(rows) do by_name[row.workload.name] = row end
  for i, row in ipairs(rows) do all[i] = figures(row, by_name[row.workload.floor]) end
  return all
end

local function cpu()
  local file <close> = io.open("/proc/cpuinfo")
  return file and file:read("a"):match("model name%s*:%s*([^\n]+)") or "unknown CPU"
end

--- The machine, in a line.
---@param lua string  the release of Lua
function report.machine(lua) return ("%s, %s"):format(cpu(), lua) end

local function with_commas(n)
  return (("%.0f"):format(n):reverse():gsub("%d%d%d", "%0,"):reverse():gsub("^,", ""))
end

--- Prints the figures as a table of less than 100 columns.
function report.print(all)
  local heads = "%-32s%6s%14s%9s%9s%9s%9s%9s"
  local line = "%-32s%6d%14s%9.1f%9.1f%9.1f%9.1f%9.2f"
  print(heads:format("", "msgs", "messages/s", "ns/msg", "min", "max", "ns/op", "x floor"))
  for _, f in ipairs(all) do
    print(line:format(f.name, f.messages_per_operation, with_commas(f.messages_per_second),
      f.ns_per_message, f.ns_per_message_min, f.ns_per_message_max, f.ns_per_operation,
      f.times_floor))
  end
end

-- Tables are lists or have names for keys; the text in them needs no escapes but these.
local function json(value)
  if type(value) == "string" then return '"' .. value:gsub('["\\]', "\\%0") .. '"' end
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for i, item in ipairs(value) do parts[i] = json(item) end
  if #parts > 0 then return "[\n" .. table.concat(parts, ",\n") .. "]" end
  for name, item in pairs(value) do parts[#parts + 1] = json(name) .. ": " .. json(item) end
  table.sort(parts)
  return "{" .. table.concat(parts, ", ") .. "}"
end

--- What is printed, as JSON.
function report.json(machine, rounds, all)
  return json { machine = machine, rounds = rounds, rows = all } .. "\n"
end

return report
