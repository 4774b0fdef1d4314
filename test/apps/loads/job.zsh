TRAPUSR1() { print trapped }
coproc { while read line; do print got $line; done }
for i in {1..50}; do (exit $(( i % 5 ))); total=$(( total + $? )); x=$(print $i | tr 1 2); done
read _ < gate
print -p hello; read -p answer; print $answer
print $total $x
kill -USR1 $$
print -l ${(o)=:-c b a} | tail -n 1
print one > >(cat) | cat
coproc exit
exit 7
