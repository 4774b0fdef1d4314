<?php
$rows = [];
for ($i = 0; $i < 10000; $i++) {
    $rows[] = md5($i . ($_GET['seed'] ?? ''));
}
sort($rows);
header('Content-Type: text/plain');
echo $rows[0], ' ', mb_strlen(str_repeat('ü', 1000)), ' ', strlen(gzcompress(implode($rows))), "\n";
