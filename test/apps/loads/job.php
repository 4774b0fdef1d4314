<?php
$all = [];
for ($i = 0; $i < 400000; $i++) {
    $key = 'k' . ($i % 4000);
    $all[$key] = ($all[$key] ?? '') . chr(97 + $i % 26);
}
$child = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w'], STDERR], $pipes);
$own = fopen('own', 'w');
file_get_contents('gate');
fwrite($pipes[0], "through cat\n");
fclose($pipes[0]);
echo stream_get_contents($pipes[1]);
fclose($pipes[1]);
echo proc_close($child), "\n";
uasort($all, fn($a, $b) => strlen($a) <=> strlen($b) ?: strcmp($a, $b));
echo md5(implode(',', $all)), "\n";
echo preg_match_all('/a[b-z]+?c/', implode('', $all)), "\n";
echo crc32(serialize($all)), "\n";
fwrite($own, json_encode(array_slice($all, 0, 5)));
exit(11);
