// SPDX-License-Identifier: Apache-2.0
// What pybind11 makes: a function, one that calls back, and threads of C++ that call Python.
#include <pybind11/pybind11.h>

#include <thread>
#include <vector>

namespace py = pybind11;

static double add(int numbers)
{
    double total = 0;
    for (int i = 0; i < numbers; i++)
        total += i % 7;
    return total;
}

static void calls_back(const py::function &function, int times)
{
    for (int i = 0; i < times; i++)
        function();
}

static void in_threads(const py::function &function, int threads)
{
    py::gil_scoped_release released;
    std::vector<std::thread> begun;
    for (int i = 0; i < threads; i++)
        begun.emplace_back([&function] {
            py::gil_scoped_acquire held;
            function();
        });
    for (auto &thread : begun)
        thread.join();
}

PYBIND11_MODULE(in_pybind, m)
{
    m.def("add", add);
    m.def("calls_back", calls_back);
    m.def("in_threads", in_threads);
}
