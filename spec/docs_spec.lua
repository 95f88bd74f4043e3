-- The documents: their examples run, their ids have specs, and what they point to is there.

local troupe = require "troupe"
local child = require "spec.support.child"

local CONTRACT = "docs/behaviour.md"

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("a")
  file:close()
  return text
end

local function list(pattern)
  local pipe = assert(io.popen("ls " .. pattern))
  local paths = {}
  for path in pipe:lines() do paths[#paths + 1] = path end
  pipe:close()
  return paths
end

local function sorted_keys(set)
  local keys = {}
  for key in pairs(set) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local documents = list("README.md CHANGELOG.md docs/*.md docs/guide/*.md")

-- Blocks of code ------------------------------------------------------------------------------

-- The fenced blocks of a document, in order: `lead` is the text line before the fence.
local function blocks(path)
  local found, block, lead, number = {}, nil, "", 0
  for line in read(path):gmatch("(.-)\n") do
    number = number + 1
    local language = line:match("^```(.*)$")
    if language and not block then
      block = { at = ("%s:%d"):format(path, number), language = language, lead = lead, text = "" }
    elseif language then
      found[#found + 1], block, lead = block, nil, ""
    elseif block then
      block.text = block.text .. line .. "\n"
    elseif line ~= "" then
      lead = line
    end
  end
  assert(not block, path .. ": a block has no end")
  return found
end

-- A block of Lua runs, unless `<!-- fragment: why -->` stands before it. It prints what the block
-- after the line "Output:" says, or nothing.
local function examples(path)
  local found = {}
  for _, block in ipairs(blocks(path)) do
    local last = found[#found]
    if block.language == "lua" then
      local is_fragment = block.lead:find("^<!%-%- fragment: .+ %-%->$")
      found[#found + 1] = not is_fragment and { at = block.at, code = block.text, output = "" }
        or nil
    elseif block.language == "text" and block.lead == "Output:" then
      assert(last and last.output == "", block.at .. ": there is no example before this output")
      last.output = block.text
    end
  end
  return found
end

-- Ids -----------------------------------------------------------------------------------------

-- The statements of the contract by id; those that are not built at all are marked as planned.
local function statements()
  local found, current, in_planned_chapter = {}, nil, false
  for line in read(CONTRACT):gmatch("(.-)\n") do
    local id = line:match("^%- (%u+%-%d+) ")
    if line:find("^#") then
      in_planned_chapter, current = line:find("%(planned%)$") ~= nil, nil
    elseif id then
      assert(not found[id], id .. " stands there twice")
      current = { planned = in_planned_chapter }
      found[id] = current
    elseif line:find("^%s*$") or line:find("^%s+%- ") then
      current = nil -- the statement ends; a decision about it may follow
    end
    if current and line:find("%(planned%)$") then current.planned = true end
  end
  return found
end

-- The id that a spec's title begins with, in Lua and in C.
local function ids_of_titles()
  local found = {}
  for _, path in ipairs(list("spec/*_spec.lua spec/engine/*_test.c")) do
    for id in read(path):gmatch('["\'](%u+%-%d+) ') do found[id] = path end
  end
  return found
end

-- Whatever looks like an id, where its letters are those of a chapter.
local function ids_mentioned(known)
  local chapters, found = {}, {}
  for id in pairs(known) do chapters[id:match("^%u+")] = true end
  local everywhere = "src/*/* lua/troupe/*.lua spec/*.lua spec/engine/* examples/*.lua "
  for _, path in ipairs(list(everywhere .. table.concat(documents, " "))) do
    for letters, number in read(path):gmatch("%f[%w](%u+)%-(%d+)") do
      if chapters[letters] then found[letters .. "-" .. number] = path end
    end
  end
  return found
end

-- Links and names -----------------------------------------------------------------------------

local function links(path)
  local folder = path:match("^.*/") or ""
  local found = {}
  for target in read(path):gmatch("%]%(([^)%s]+)%)") do
    if not target:find("^%a+:") then found[#found + 1] = folder .. target:gsub("#.*", "") end
  end
  return found
end

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

-- `src/x/a.c`, `b.h` in the first column of a table: the second is in the folder of the first.
local function files_in_table(path)
  local found = {}
  for cell in read(path):gmatch("\n| (`[^|]+) |") do
    local folder
    for name in cell:gmatch("`([%w_./]+%.%a+)`") do
      folder = name:match("^.*/") or folder
      if folder then found[folder .. name:match("[^/]+$")] = true end
    end
  end
  return found
end

describe("the documents", function()
  for _, path in ipairs(documents) do
    for _, example in ipairs(examples(path)) do
      it("hold an example that runs as they say: " .. example.at, function()
        local output, status = child(example.code)

        assert.are.equal(example.output, output)
        assert.are.equal(0, status)
      end)
    end
  end

  it("show the two examples that Troupe was described with", function()
    local readme = examples("README.md")

    assert.is_truthy(readme[1].code:find("Router.round_robin(4, worker)", 1, true))
    assert.is_truthy(readme[2].code:find('replicas:ask("user-42")', 1, true))
  end)

  it("hold an id for every id that is named anywhere", function()
    local known = statements()
    local unknown = {}

    for id, path in pairs(ids_mentioned(known)) do
      if not known[id] then unknown[id .. " in " .. path] = true end
    end
    for id, path in pairs(ids_of_titles()) do
      if not known[id] then unknown[id .. " in " .. path] = true end
    end

    assert.are.same({}, sorted_keys(unknown))
  end)

  it("promise nothing that has no spec, but what they call planned", function()
    local titles = ids_of_titles()
    local without = {}

    for id, statement in pairs(statements()) do
      if not statement.planned and not titles[id] then without[id] = true end
    end

    assert.are.same({}, sorted_keys(without))
  end)

  it("name everything that the module troupe has", function()
    local contract = read(CONTRACT)
    local unnamed = {}

    for name in pairs(troupe) do
      if not contract:find("`" .. name .. "%f[^%w_]") then unnamed[name] = true end
    end

    assert.are.same({}, sorted_keys(unnamed))
  end)

  it("link to files that are there", function()
    local broken = {}

    for _, path in ipairs(documents) do
      for _, target in ipairs(links(path)) do
        if not exists(target) then broken[target .. " in " .. path] = true end
      end
    end

    assert.are.same({}, sorted_keys(broken))
  end)

  it("say of every source file what it is", function()
    local told = files_in_table("docs/architecture.md")
    local there = {}

    for _, path in ipairs(list("src/*/*.[ch] lua/troupe/*.lua")) do there[path] = true end

    assert.are.same(sorted_keys(there), sorted_keys(told))
  end)

  it("name make targets that there are", function()
    local makefile = read("Makefile")
    local targets, unknown = {}, {}
    for names in makefile:gmatch("\n([%l -]+):[^=]") do
      for name in names:gmatch("%S+") do targets[name] = true end
    end

    for _, path in ipairs(documents) do
      for name in read(path):gmatch("`make ([%l-]+)") do
        if not targets[name] then unknown[name .. " in " .. path] = true end
      end
    end

    assert.is_true(targets.run and targets.test)
    assert.are.same({}, sorted_keys(unknown))
  end)

  it("name the packages that make run and make test install", function()
    local readme, makefile = read("README.md"), read("Makefile")
    local unnamed = {}

    for _, need in ipairs { "run", "test" } do
      local packages = makefile:match("\nneed_" .. need .. "%s*:= ([^\n]+)")
      for name in packages:gsub("%$%b()", ""):gmatch("%S+") do
        if not readme:find("`" .. name .. "`", 1, true) then unnamed[name] = true end
      end
    end

    assert.are.same({}, sorted_keys(unnamed))
  end)
end)
