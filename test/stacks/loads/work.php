<?php
// Has functions that call each other, and loops, for opcache's JIT.
function fibonacci($n) { return $n < 2 ? $n : fibonacci($n - 1) + fibonacci($n - 2); }
function sums($count) {
    $sum = 0.0;
    for ($i = 0; $i < $count; $i++) $sum += ($i * 3.7) / ($i % 5 + 1);
    return $sum;
}
while (getrusage()['ru_utime.tv_sec'] < 5) { fibonacci(23); sums(200000); }
echo "done\n";
