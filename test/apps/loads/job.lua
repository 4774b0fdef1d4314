local t = {}
for i = 1, 600000 do t[i] = tostring(i * 7 % 1000) .. "x" end
local own = io.open("own", "w")
local gate = io.open("gate"); gate:read("a"); gate:close()
table.sort(t)
print(#t, t[1], t[#t], #table.concat(t))
for i = 1, 200 do local c = coroutine.wrap(function() coroutine.yield(i) end); c() end
print(pcall(error, "caught"))
own:write(io.popen("echo child"):read("a"))
os.exit(12)
