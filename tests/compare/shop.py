# SPDX-License-Identifier: Apache-2.0
"""Makes the SQLite database that the web service publishes: the same bytes of data each time. usage: shop.py FILE"""
import random
import sqlite3
import sys

WORDS = ("amber birch cedar delta ember flint grove haven inlet jetty knoll larch maple north ocean pearl quartz ridge "
         "slate thorn").split()
TABLES = """
create table customers (id integer primary key, name text, city text, country text);
create table products (id integer primary key, name text, category text, price real, description text);
create table orders (id integer primary key, customer_id integer references customers(id),
                     product_id integer references products(id), quantity integer, ordered text, note text);
create index orders_customer on orders(customer_id);
create index orders_product on orders(product_id);
"""


def main():
    chance = random.Random(1)

    def phrase(words):
        return " ".join(chance.choice(WORDS) for _ in range(words))

    database = sqlite3.connect(sys.argv[1])
    database.executescript(TABLES)
    database.executemany("insert into customers values (?, ?, ?, ?)", [
        (number, phrase(2).title(), phrase(1).title(), chance.choice(["Norway", "Chile", "Kenya", "Japan", "Italy"]))
        for number in range(1, 501)])
    database.executemany("insert into products values (?, ?, ?, ?, ?)", [
        (number, phrase(2), chance.choice(["tools", "garden", "kitchen", "books"]), round(chance.uniform(1, 200), 2), phrase(30))
        for number in range(1, 201)])
    database.executemany("insert into orders values (?, ?, ?, ?, ?, ?)", [
        (number, chance.randint(1, 500), chance.randint(1, 200), chance.randint(1, 9),
         f"2024-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}", phrase(6)) for number in range(1, 10001)])
    database.commit()


if __name__ == "__main__":
    main()
