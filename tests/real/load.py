# SPDX-License-Identifier: Apache-2.0
"""Asks a server on this machine for its first page, over and over. usage: load.py PORT CLIENTS SECONDS"""
import socket
import sys
import threading
import time


def ask(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return answer


def client(port, until, answers):
    while time.monotonic() < until:
        try:
            answers.append(ask(port).startswith(b"HTTP/1.1 200"))
        except OSError:
            time.sleep(0.05)


def main():
    port, clients, seconds = (int(word) for word in sys.argv[1:])
    answers = []
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=client, args=(port, until, answers)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{sum(answers)} answers of {len(answers)} were good")


if __name__ == "__main__":
    main()
