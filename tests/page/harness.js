// SPDX-License-Identifier: Apache-2.0
// What the tests of the page's scripts are written with. Each of tests/page/test_*.js is loaded into Chromium after the
// markup of page.html, the scripts of HTML_SCRIPTS in the Makefile but the last, which starts the page, and this file.
// tests/integration/test_page_scripts.py reports each test by its name, so names are literal texts on the line of test(.

const tests = []

// Defines a test; `run` may be async. It fails by throwing.
function test(name, run) {
    tests.push({name, run})
}

// A value as text, the same for equal values: typed arrays are lists, and the keys of objects are in order.
function shown(value) {
    return JSON.stringify(value, (_, v) => {
        if (v instanceof Map) return {map: [...v]}
        if (v instanceof Set) return {set: [...v]}
        if (ArrayBuffer.isView(v)) return [...v]
        if (v === undefined) return 'undefined'
        if (typeof v === 'number' && !Number.isFinite(v)) return String(v)
        if (v && typeof v === 'object' && !Array.isArray(v))
            return Object.fromEntries(Object.keys(v).sort().map(key => [key, v[key]]))
        return v
    })
}

function equal(actual, expected, what = '') {
    const got = shown(actual), wanted = shown(expected)
    if (got !== wanted) throw new Error(`${what}\n     got: ${got}\n  wanted: ${wanted}`)
}

function ok(value, what = '') {
    if (!value) throw new Error(`not true: ${what}`)
}

// `run` throws, or rejects, and its message matches the pattern.
async function throws(run, pattern) {
    try {
        await run()
    } catch (error) {
        if (!pattern.test(error.message)) throw new Error(`${error.message} does not match ${pattern}`)
        return
    }
    throw new Error(`nothing was thrown that matches ${pattern}`)
}

// What came of each test: [name, '' or what was wrong].
async function runTests() {
    const results = []
    for (const {name, run} of tests) {
        try {
            await run()
            results.push([name, ''])
        } catch (error) {
            results.push([name, `${error.message}\n${error.stack}`])
        }
    }
    return results
}
