--- How a log record is written: as a line of text, or as a line of JSON.  (LOG-1)
local text = require "troupe.text"

local sink = {}

local MS_PER_DAY = 24 * 60 * 60 * 1000

-- The proleptic Gregorian date of a day counted from 1970-01-01. Years begin in March here, so
-- that the leap day is the last; 400 of them (an era) repeat.
local function civil(days)
  local since = days + 719468
  local era = since // 146097
  local day_of_era = since % 146097
  local year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524
    - day_of_era // 146096) // 365
  local day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
  local month_from_march = (5 * day_of_year + 2) // 153
  local day = day_of_year - (153 * month_from_march + 2) // 5 + 1
  local month = month_from_march < 10 and month_from_march + 3 or month_from_march - 9
  local year = year_of_era + era * 400 + (month <= 2 and 1 or 0)
  return year, month, day
end

-- ISO 8601 in UTC, to the millisecond.
local function iso(seconds)
  local ms = math.floor(seconds * 1000 + 0.5)
  local year, month, day = civil(ms // MS_PER_DAY)
  local rest = ms % MS_PER_DAY
  return ("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ"):format(year, month, day,
    rest // 3600000, rest // 60000 % 60, rest // 1000 % 60, rest % 1000)
end

-- The fields as { key text, value } pairs, by key.
local function sorted(fields)
  local pairs_of = {}
  for key, value in next, fields do pairs_of[#pairs_of + 1] = { text.of(key), value } end
  table.sort(pairs_of, function(a, b) return a[1] < b[1] end)
  return pairs_of
end

local function text_value(value)
  local rendered = text.of(value)
  if rendered:find("^[%w_./:@#+-]+$") then return rendered end
  return '"' .. text.escape((rendered:gsub('["\\]', "\\%0"))) .. '"'
end

local function text_fields(fields)
  local parts = {}
  for _, pair in ipairs(sorted(fields)) do
    local key, value = pair[1], pair[2]
    if key ~= "traceback" then
      parts[#parts + 1] = text.escape(key) .. "=" .. text_value(value)
    end
  end
  if #parts == 0 then return "" end
  return " {" .. table.concat(parts, ", ") .. "}"
end

local function text_traceback(traceback)
  if traceback == nil then return "" end
  local lines = {}
  for line in text.of(traceback):gmatch("[^\n]+") do
    lines[#lines + 1] = "    " .. text.escape((line:gsub("\t", "  "))) .. "\n"
  end
  return table.concat(lines)
end

--- One line: `2026-01-02T03:04:05.678Z INFO troupe://demo/user/a worked on 3 {k=v}`.  (LOG-1)
---
--- Control characters are escaped, fields are sorted, and values that are no plain word are quoted.
--- A field `traceback` follows on lines of its own, indented.
---@param record troupe.LogRecord
---@return string  ends with a newline
function sink.text(record)
  local line = ("%s %s %s %s"):format(iso(record.time), record.level:upper(),
    text.escape(record.path), text.escape(record.message))
  return line .. text_fields(record.fields) .. "\n" .. text_traceback(record.fields.traceback)
end

local json_escapes = { ['"'] = '\\"', ["\\"] = "\\\\" }

local function json_escape(character)
  return json_escapes[character] or ("\\u%04x"):format(character:byte())
end

-- The replacement character: JSON is Unicode and has no way to hold a byte.
local function json_byte()
  return "\u{fffd}"
end

local function json_string(s)
  return '"' .. text.repair(s, json_byte):gsub('[\0-\31"\\]', json_escape) .. '"'
end

local function json_number(value)
  if math.type(value) == "integer" then return ("%d"):format(value) end
  if value ~= value or value == math.huge or value == -math.huge then
    return json_string(text.show(value))
  end
  local short = ("%.14g"):format(value)
  return tonumber(short) == value and short or ("%.17g"):format(value)
end

local function json_value(value)
  if type(value) == "number" then return json_number(value) end
  if type(value) == "boolean" then return tostring(value) end
  return json_string(text.of(value))
end

--- One line of JSON: an object of `time`, `level`, `path`, `message`, and `fields` if any.  (LOG-1)
---
--- Numbers that JSON lacks become "nan", "inf" and "-inf"; what is no string, number or boolean
--- becomes its text; a byte that is no UTF-8 becomes U+FFFD.
---@param record troupe.LogRecord
---@return string  ends with a newline
function sink.json(record)
  local parts = {
    '"time":' .. json_string(iso(record.time)),
    '"level":' .. json_string(record.level),
    '"path":' .. json_string(record.path),
    '"message":' .. json_string(record.message),
  }
  local fields = {}
  for i, pair in ipairs(sorted(record.fields)) do
    fields[i] = json_string(pair[1]) .. ":" .. json_value(pair[2])
  end
  if #fields > 0 then parts[#parts + 1] = '"fields":{' .. table.concat(fields, ",") .. "}" end
  return "{" .. table.concat(parts, ",") .. "}\n"
end

return sink
