import hashlib

import chdb
from chdb.session import Session


def asked(text):
    print(hashlib.sha256(str(chdb.query(text, "CSV")).encode()).hexdigest())


asked("SELECT number % 97 AS k, sum(cityHash64(number)), uniqExact(number % 1013) "
      "FROM numbers_mt(300000000) GROUP BY k ORDER BY k")
asked("SELECT toString(number) AS s, length(s) FROM numbers_mt(20000000) ORDER BY cityHash64(s) LIMIT 1000")
session = Session("database")
session.query("CREATE DATABASE d ENGINE = Atomic")
session.query("CREATE TABLE d.t (a UInt64, b String) ENGINE = MergeTree ORDER BY a")
session.query("INSERT INTO d.t SELECT number, hex(number) FROM numbers(500000)")
open("gate").read()
print(session.query("SELECT count(), sum(a), max(b) FROM d.t", "CSV"))
try:
    session.query("SELECT nothing FROM nowhere")
except RuntimeError as error:
    print("refused", "UNKNOWN_TABLE" in str(error))
session.close()
