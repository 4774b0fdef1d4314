$stdout.sync = true
words = {}
threads = 3.times.map { |t| Thread.new { 60000.times { |i| (words["#{t}:#{i % 3000}"] ||= +"") << "x" } } }
threads.each(&:join)
GC.start
reader, writer = IO.pipe
sleeper = Thread.new { sleep }
File.read("gate")
sleeper.kill
pid = fork { writer.write(words.size.to_s); writer.close; exit!(5) }
writer.close
puts reader.read
Process.wait(pid)
puts $?.exitstatus
trap("USR1") { puts "trapped" }
Process.kill("USR1", Process.pid)
sleep 0.05
puts words.values.map(&:size).sum
puts `echo from a shell`
begin
  def deep(n) = deep(n + 1)
  deep(0)
rescue SystemStackError
  puts "too deep"
end
puts Fiber.new { 40.times { |i| Fiber.yield i } }.resume
puts (1..200).map { |i| i ** 40 }.sum
exit 9
