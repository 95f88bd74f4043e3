--- Measures Troupe, the floor below it, and its peers.
--
--     make bench
--     make bench-peers
--     make bench ARGS="[--quick] [--peers] [--only=WORKLOAD,...] [--arms=ARM,...] [FILE]"
--
-- Every round runs every workload once on every arm, each in a process of its own, so that what
-- disturbs the machine disturbs all alike. Shown are medians over the rounds. FILE gets all of it
-- as JSON. With --quick the rounds are too short for their figures to mean anything. README.md says
-- what is measured and how to add to it.
--
-- Exit code: 0 done; 1 something failed or did less than it was to do; 2 wrong usage, or not built.

local ROUNDS, QUICK_ROUNDS = 5, 1

local arms = require "bench.arms"
local figures = require "bench.figures"
local goals = require "bench.goals"
local json = require "bench.json"
local measure = require "bench.measure"
local report = require "bench.report"
local workloads = require "bench.workloads"

local function say(message, ...) io.stderr:write(("bench: " .. message .. "\n"):format(...)) end

local function quit(exit_code, message, ...)
  say(message, ...)
  os.exit(exit_code, true)
end

local USAGE = "usage: lua5.4 bench/run.lua [--quick] [--peers] [--only=WORKLOAD,...] "
  .. "[--arms=ARM,...] [FILE]"

local function set_of(names)
  local set = {}
  for name in names:gmatch("[^,]+") do set[name] = true end
  return set
end

local function arguments()
  local options = {}
  for _, word in ipairs(arg) do
    local name, value = word:match("^%-%-(%l+)=(.+)$")
    if word == "--quick" or word == "--peers" then
      options[word:sub(3)] = true
    elseif name == "only" or name == "arms" then
      options[name] = set_of(value)
    elseif word:sub(1, 1) ~= "-" and not options.path then
      options.path = word
    else
      quit(2, USAGE)
    end
  end
  return options
end

--- Those of a list that `wanted` names, or that are `usual` when it is not there.
local function choose(list, key, wanted, usual)
  local chosen, known = {}, {}
  for _, one in ipairs(list) do
    local name = one[key]
    known[name] = true
    if wanted and wanted[name] or not wanted and usual(one) then chosen[#chosen + 1] = one end
  end
  for name in pairs(wanted or {}) do
    if not known[name] then quit(2, "there is no %s", name) end
  end
  return chosen
end

local options = arguments()
local chosen_workloads = choose(workloads, "id", options.only, function(workload)
  return options.peers or not workload.long
end)
local chosen_arms = choose(arms, "name", options.arms, function(arm)
  return arm.kind == "ours" or arm.kind == "floor" or options.peers and arm.kind ~= "variant"
end)
local file, open_error
if options.path then
  file, open_error = io.open(options.path, "w")
  if not file then quit(2, "%s", open_error) end
end

local present, versions, skipped = {}, {}, {}
for _, arm in ipairs(chosen_arms) do
  local version, why = measure.look_for(arm)
  if version then
    present[#present + 1], versions[arm.name] = arm, version
  elseif arm.kind == "peer" or arm.kind == "bound" then
    skipped[#skipped + 1] = { arm = arm.name, why = why, get = arm.get }
    say("%s %s and is skipped; to get it: %s", arm.name, why, arm.get)
  else
    quit(2, "%s %s; run `%s`", arm.name, why, arm.get)
  end
end

local function size_of(workload, arm)
  if options.quick then return workload.quick end
  return workload.whole and workload.size or workload.size // (arm and arm.share or 1)
end

-- What is over is not run: the arm has no such workload, or failed in it, or once is enough.
local measured, failures = {}, {}
for i, workload in ipairs(chosen_workloads) do
  measured[i] = { workload = workload }
  for j, arm in ipairs(present) do
    local is_left_out = arm.only and not arm.only[workload.id]
      or workload.ours and arm.kind ~= "ours" and arm.kind ~= "variant"
    measured[i][j] = { arm = arm, samples = {}, over = is_left_out }
  end
end

local function run(workload, one, round)
  local sample, failure = measure.once(one.arm, workload, size_of(workload, one.arm))
  if sample then
    one.samples[round] = sample
    one.over = workload.once == "all" or workload.once == "peers" and one.arm.kind ~= "ours"
    return
  end
  one.over = true
  if failure then
    one.samples = {}
    failures[#failures + 1] = ("%s, %s: %s"):format(workload.id, one.arm.name, failure)
  end
end

local began = os.time()
local rounds = options.quick and QUICK_ROUNDS or ROUNDS
for round = 1, rounds do
  say("round %d of %d", round, rounds)
  for _, one_workload in ipairs(measured) do
    for _, one in ipairs(one_workload) do
      if not one.over then run(one_workload.workload, one, round) end
    end
  end
end

local rows = {}
for i, one_workload in ipairs(measured) do
  rows[i] = figures.row(one_workload.workload, size_of(one_workload.workload), one_workload)
end
local verdicts = options.peers and goals.judge(rows) or {}

local machine = report.machine()
print(("%s, %d cores, %s; %s\n"):format(machine.cpu, machine.cores, machine.system,
  options.quick and "too quick to compare" or ("medians of %d rounds"):format(rounds)))
report.print(rows)
if options.peers then
  print()
  report.print_goals(verdicts)
end
if file then
  assert(file:write(json {
    machine = machine,
    versions = versions,
    skipped = skipped,
    rounds = rounds,
    quick = options.quick or false,
    rows = rows,
    goals = verdicts,
    marks = goals.marks,
    failures = failures,
  }, "\n"))
end
say("took %d seconds", os.difftime(os.time(), began) // 1)
for _, failure in ipairs(failures) do say("%s", failure) end
os.exit(#failures == 0 and 0 or 1, true)
