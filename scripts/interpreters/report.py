"""Makes the report of a shop: queries a database for its orders, finds customers with similar orders, and packs the
result."""

import json
import random
import sqlite3
import zlib

CUSTOMERS = 500
ORDERS = 150_000
MONTHS = 12


def open_shop():
    dice = random.Random(19)
    shop = sqlite3.connect(":memory:")
    shop.execute("CREATE TABLE orders (month INTEGER, customer INTEGER, item INTEGER, price INTEGER)")
    rows = ((dice.randrange(MONTHS), dice.randrange(CUSTOMERS), dice.randrange(900), dice.randrange(1, 99)) for _ in range(ORDERS))
    shop.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
    return shop


def orders_of(shop, month):
    question = "SELECT customer, item, sum(price) FROM orders WHERE month = ? GROUP BY customer, item ORDER BY 3 DESC"
    return shop.execute(question, (month,)).fetchall()


def baskets_of(orders):
    baskets = {}
    for customer, item, _ in orders:
        baskets.setdefault(customer, set()).add(item)
    return baskets


def is_alike(one, other):
    common = 0
    for item in one:
        if item in other:
            common += 1
    return common > 3


def pairs_of(baskets):
    pairs = []
    for customer, basket in baskets.items():
        for other, other_basket in baskets.items():
            if customer < other and is_alike(basket, other_basket):
                pairs.append((customer, other))
    return pairs


def pack(report):
    return zlib.compress(json.dumps(report).encode(), 9)


def report_of(shop, month):
    orders = orders_of(shop, month)
    return pack({"month": month, "orders": orders, "alike": pairs_of(baskets_of(orders))})


def main():
    shop = open_shop()
    sizes = [len(report_of(shop, month)) for month in range(MONTHS)]
    print(f"{len(sizes)} reports, {sum(sizes) // 1024} KiB")


if __name__ == "__main__":
    main()
