-- Functions that call each other, tables and texts: what LuaJIT compiles, and what it interprets.
local function fibonacci(n) return n < 2 and n or fibonacci(n - 1) + fibonacci(n - 2) end

local function matrices(size)
  local a, sum = {}, 0
  for i = 1, size * size do a[i] = i % 7 end
  for row = 0, size - 1 do
    for column = 1, size do
      for k = 0, size - 1 do sum = sum + a[row * size + k + 1] * a[k * size + column] end
    end
  end
  return sum
end

local function texts(count)
  local names = {}
  for i = 1, count do names[i] = "n" .. (i * 7919) % count end
  table.sort(names)
  return #table.concat(names, ","):gsub("%d+", "n")
end

local stop = os.clock() + 5
local sum = 0
while os.clock() < stop do sum = sum + fibonacci(24) + matrices(100) + texts(20000) end
print(sum > 0 and "done")
