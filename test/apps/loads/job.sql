CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
    INSERT INTO t SELECT i, 'row ' || (i * 7919 % 10007), i / 3.0 FROM n;
CREATE INDEX x ON t(b);
SELECT count(*), sum(c), max(b) FROM t;
BEGIN;
UPDATE t SET c = c + 1 WHERE a < 1000;
.read gate
COMMIT;
SELECT b, count(*) FROM t GROUP BY b ORDER BY 2 DESC, 1 LIMIT 5;
DELETE FROM t WHERE a % 3 = 0;
SELECT count(*) FROM t JOIN t u ON t.b = u.b WHERE t.a < 500;
SELECT missing FROM t;
VACUUM;
PRAGMA integrity_check;
