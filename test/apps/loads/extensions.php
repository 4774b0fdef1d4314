<?php
// Uses extensions, each of which is a library that the loader binds by itself (RTLD_DEEPBIND).
$db = new PDO('sqlite::memory:');
$db->exec('CREATE TABLE t (a INTEGER, b TEXT)');
$insert = $db->prepare('INSERT INTO t VALUES (?, ?)');
for ($i = 0; $i < 60000; $i++) {
    $insert->execute([$i * 7919 % 10007, mb_strtoupper("zeile ü$i")]);
}
echo $db->query('SELECT count(*), sum(a), max(b) FROM t')->fetch(PDO::FETCH_NUM)[1], "\n";
echo bcpow('7', '9000', 0) === gmp_free_pow('7', 9000) ? "equal\n" : "unequal\n";

function gmp_free_pow(string $base, int $times): string
{
    for ($product = '1'; $times > 0; $times--) {
        $product = bcmul($product, $base);
    }
    return $product;
}

$document = new DOMDocument();
$root = $document->appendChild($document->createElement('root'));
for ($i = 0; $i < 20000; $i++) {
    $root->appendChild($document->createElement('e', (string)$i))->setAttribute('n', (string)($i % 13));
}
$text = $document->saveXML();
echo strlen($text), ' ', count(simplexml_load_string($text)->xpath('//e[@n="5"]')), "\n";

$collator = new Collator('de_DE');
$words = array_map(fn($i) => md5((string)$i), range(1, 20000));
$collator->sort($words);
echo $words[0], ' ', crc32(gzcompress(implode(',', $words), 1)), "\n";
echo bin2hex(sodium_crypto_pwhash(16, 'x', str_repeat('s', 16), 2, 1 << 26)), "\n";
echo openssl_digest($text, 'sha3-256'), ' ', iconv('UTF-8', 'ISO-8859-1', 'ü') === "\xfc" ? 1 : 0, "\n";

file_get_contents('gate');
$pids = [];
for ($i = 0; $i < 5; $i++) {
    $pids[] = $pid = pcntl_fork();
    if ($pid === 0) {
        mb_strtolower(str_repeat("\u{dc}b", 100000));
        exit($i);
    }
}
foreach ($pids as $pid) {
    pcntl_waitpid($pid, $status);
    echo pcntl_wexitstatus($status), ' ';
}
$ticks = 0;
pcntl_async_signals(true);
pcntl_signal(SIGUSR1, function () use (&$ticks) { $ticks++; });
for ($i = 0; $i < 100; $i++) {
    posix_kill(getmypid(), SIGUSR1);
}
echo "$ticks\n";
