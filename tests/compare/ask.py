# SPDX-License-Identifier: Apache-2.0
"""
Load for the web service: waits until it answers, then asks for so many pages, one after the other, of kinds that chance
chooses anew in every run. Ends with 1 if an answer was bad. usage: ask.py PORT REQUESTS
"""
import http.client
import random
import sys
import time

# A kind of page, how often it is asked for, and its address.
KINDS = [
    (30, lambda: f"/shop/{random.choice(['orders', 'products', 'customers'])}?_size={random.choice([20, 50, 100])}"),
    (20, lambda: f"/shop/orders/{random.randint(1, 10000)}"),
    (20, lambda: f"/shop/orders.json?_shape=objects&customer_id={random.randint(1, 500)}"),
    (10, lambda: "/shop/products?_facet=category&_size=20"),
    (10, lambda: "/shop?sql=select+category,count(*),avg(price)+from+products+where+price+%3E+"
                 f"{random.randint(1, 100)}+group+by+category"),
    (5, lambda: "/shop"),
    (5, lambda: f"/shop/orders?note__contains={random.choice(['amber', 'cedar', 'pearl'])}&_size=20"),
]


def ask(connection, address):
    connection.request("GET", address)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def wait_until_it_answers(connection):
    until = time.monotonic() + 1800
    while time.monotonic() < until:
        try:
            return ask(connection, "/-/versions.json")
        except OSError:
            connection.close()
            time.sleep(0.05)
    raise SystemExit("the service does not answer")


def main():
    port, requests = (int(word) for word in sys.argv[1:])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    wait_until_it_answers(connection)
    weights = [weight for weight, _ in KINDS]
    bad = 0
    for _, page in random.choices(KINDS, weights, k=requests):
        bad += ask(connection, page()) != 200
    if bad:
        raise SystemExit(f"{bad} of {requests} answers were bad")


if __name__ == "__main__":
    main()
