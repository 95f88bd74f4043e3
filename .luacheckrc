std = "lua54"
max_line_length = 100
self = false
include_files = { "**/*.lua", "*.rockspec", "rockspec/*.rockspec" }
exclude_files = { "build", "lua_modules", ".rocks" }

files["spec"] = { std = "+busted" }
files["rockspec"] = { std = "+rockspec" }
