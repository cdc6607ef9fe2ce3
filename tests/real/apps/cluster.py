# SPDX-License-Identifier: Apache-2.0
"""Work given to processes and threads of a cluster on this machine. usage: cluster.py dask|ray [TIMES]"""
import sys
import time

import work


def job(_):
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        work.answer()


def with_dask(times):
    from distributed import Client, LocalCluster
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster, Client(cluster) as client:
        client.gather(client.map(job, range(100 * times)))


def with_ray(times):
    import ray
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)

    @ray.remote
    class Counter:
        def add(self, number):
            return job(number)

    remote, counter = ray.remote(job), Counter.remote()
    ray.get([remote.remote(n) for n in range(60 * times)] + [counter.add.remote(n) for n in range(20 * times)])
    ray.shutdown()


if __name__ == "__main__":
    {"dask": with_dask, "ray": with_ray}[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 1)
