--- Runs the commands given as arguments, one after another, shows what they print, and ends by
--- printing the sum of their tests as `N passed, N failed` alone on a line.
---
--- A command tells its results in TAP, as cmocka does, or by such a line of its own. What it did
--- not live to tell counts as failed: the rest of a TAP plan, a bad exit with no failure told, or
--- no test at all. The exit status is 0 only if something passed and nothing failed.

local total = { passed = 0, failed = 0, skipped = 0 }

local function counted_line(counts)
  local skips = counts.skipped > 0 and (", %d skipped"):format(counts.skipped) or ""
  return ("%d passed, %d failed%s"):format(counts.passed, counts.failed, skips)
end

--- Adds what a line of TAP says to `counts`; true if it need not be shown.
local function read_tap(line, counts)
  local planned = line:match("^1%.%.(%d+)$")
  if planned then
    counts.planned = (counts.planned or 0) + tonumber(planned)
    return true
  end
  if not counts.planned then return false end
  if line:find("^not ok %d+ # SKIP") then
    counts.skipped = counts.skipped + 1
  elseif line:find("^not ok %d+") then
    counts.failed = counts.failed + 1
  elseif line:find("^ok %d+") then
    counts.passed = counts.passed + 1
    return true
  end
  return line:find("^# ok") ~= nil
end

local function run(command)
  local counts = { passed = 0, failed = 0, skipped = 0 }
  local name = command:match("(%S+)%s*$")
  local pipe = assert(io.popen("exec 2>&1; " .. command))
  for line in pipe:lines() do
    local passed, failed, rest = line:match("^(%d+) passed, (%d+) failed(.*)$")
    if passed then
      counts.passed, counts.failed = tonumber(passed), tonumber(failed)
      counts.skipped = tonumber(rest:match("^, (%d+) skipped$")) or 0
    elseif not read_tap(line, counts) then
      print(line)
      io.flush()
    end
  end
  local ok, how, code = pipe:close()

  local told = counts.passed + counts.failed + counts.skipped
  local untold = (counts.planned or told) - told
  if untold > 0 then counts.failed = counts.failed + untold end
  if counts.failed == 0 and (not ok or told == 0) then counts.failed = 1 end
  if not ok then print(("%s: ended with %s %d"):format(name, how, code)) end
  print(("%s: %s"):format(name, counted_line(counts)))
  io.flush()

  for key in pairs(total) do total[key] = total[key] + counts[key] end
end

for _, command in ipairs(arg) do run(command) end
print("\n" .. counted_line(total))
os.exit(total.failed == 0 and total.passed > 0)
