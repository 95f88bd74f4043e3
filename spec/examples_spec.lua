--- Runs the short examples in processes of their own.
local child = require "spec.support.child"

--- What the example printed, when it has ended well.
local function output_of(name)
  local output, status = child(('dofile "examples/%s.lua"'):format(name))
  assert.are.equal(0, status, output)
  return output
end

--- Whether the output holds lines with these patterns, in this order.
local function assert_lines(output, patterns)
  local at = 1
  for _, pattern in ipairs(patterns) do
    local from, to = output:find(pattern, at)
    assert.is_truthy(from, ("%q is not in the rest of:\n%s"):format(pattern, output))
    at = to + 1
  end
end

describe("the example supervision", function()
  local output
  setup(function() output = output_of "supervision" end)

  it("shows an adder that is restarted, and what that costs", function()
    assert_lines(output, {
      "adder: the sum is 3\n",
      "warn  troupe://demo/user/adder: failed: [^\n]+; directive: restart\n",
      "adder: the sum is 4\n",
      "adder: the sum is 9\n",
    })
  end)

  it("shows a fetcher that comes back, and answers in the end", function()
    local failed = "warn  [^\n]+/fetcher/child: failed: [^\n]+connection refused"
    assert_lines(output, {
      failed, "info  [^\n]+ starts again in %d+ ms %(failures in a row: 1%)\n",
      failed, "info  [^\n]+ starts again in %d+ ms %(failures in a row: 2%)\n",
      "\nfetcher: connected\n", "what is on page 1\n$",
    })
  end)
end)

describe("the example circuit_breaker", function()
  local output
  setup(function() output = output_of "circuit_breaker" end)

  it("shows a breaker that opens, tries again, and closes", function()
    assert_lines(output, {
      "the breaker was closed and is open\n",
      "the breaker was open and is half%-open\n",
      "the breaker was half%-open and is closed\n",
    })
  end)

  it("shows that most lookups were spared the time-out", function()
    local pattern = "\n(%d+) lookups were answered, (%d+) timed out [^\n]+ (%d+) were refused"
    local answered, timed_out, refused = output:match(pattern)

    assert.is_true(tonumber(answered) > 0 and tonumber(timed_out) >= 3 and tonumber(refused) > 0)
  end)
end)
