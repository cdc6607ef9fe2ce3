// SPDX-License-Identifier: Apache-2.0
// The words and figures of the views: head, table, panel of a function, source, recording.

// An element as a reader sees it.
function seen(node) {
    const holder = element('div', null, node)
    document.body.append(holder)
    const text = holder.innerText.replace(/\s+/g, ' ').trim()
    holder.remove()
    return text
}

// A page with a recording, as the views get it. `change` is of the state.
function pageOf(samples, change = {}, head = {}) {
    const data = recording(samples, head)
    data.wholes = sumByEvent(data)
    const view = {...startOfView(data), ...change}
    return {data, view, result: aggregate(data, view), views: []}
}

const SECOND = 1e9
const CALLS = [
    {stack: 'P main a.py:1:3;P work a.py:10:12', value: 3 * SECOND},
    {stack: 'P main a.py:1:3;P work a.py:10:12;N memcpy /lib/libc.so', value: 2 * SECOND},
    {stack: 'P main a.py:1:3;P work a.py:10:13;K read [kernel.kallsyms]', value: SECOND},
    {stack: 'P main a.py:1:4;P work b.py:5:6', value: SECOND},
    {stack: 'P main a.py:1:4', value: SECOND},
]

test('the head says what is shown, of what', () => {
    const page = pageOf(CALLS, {focus: 'file:b.py'}, {totals: [{allValue: 8 * SECOND}]})
    equal(textOfShown(page), '1.0 s of CPU time shown, 8.0 s in all')
    equal(textOfShown(pageOf(CALLS)), '8.0 s of CPU time shown, all of it')
    page.data.head.totals = [{allValue: 9 * SECOND}]
    equal(textOfShown(page), '1.0 s of CPU time shown, 8.0 s on this page, 9.0 s recorded')
    page.data.head.events = []
    equal(textOfShown(page), 'no samples were recorded')
})

test('amounts are of what their event measures', () => {
    equal(kindOfAmount({isTime: true}), 'of CPU time')
    equal(kindOfAmount({name: 'context-switches', unit: 'switches'}), '')
    equal(kindOfAmount({name: 'cycles'}), '')
    equal(kindOfAmount({name: 'syscalls:sys_enter_openat', unit: 'hits'}), 'of syscalls:sys_enter_openat')
    equal(kindOfAmount({isTime: true, isWaiting: true}), 'of waiting')
    equal(kindOfAmount({isTime: true, isWall: true}), 'of wall time')
    equal(kindOfAmount({isTime: true, isWaiting: true, isTask: true}), 'of tasks’ waiting')
    equal(kindOfAmount({isTime: true, isCounted: true, name: 'sched:sched_stat_wait'}), 'of sched:sched_stat_wait')
    equal(kindOfAmount({isTime: true, isBlame: true}), 'of other threads’ waiting')
    equal(kindOfAmount({isBytes: true, name: 'page-faults'}), 'of page-faults')
    equal(textOfEvent({isTime: true, isWaiting: true, name: 'off-cpu'}), 'off-cpu: waiting')
    equal(textOfEvent({name: 'cycles'}), 'cycles')
    equal(kindOfAmount({name: 'instructions'}), '')
})

test('figures of one table have the same number of digits', () => {
    const event = {isTime: true}
    equal([textOfFigure(event, 5e8, 1e9), textOfFigure(event, 12e9, 1e9)], ['0.50 s', '12.00 s'])
    equal([textOfFigure(event, 5e8, 9e8), textOfFigure(event, 4e5, 9e8)], ['500.0 ms', '0.4 ms'])
    equal(textOfFigure({isBytes: true}, 2048, 1e9), '2.0 KiB')
    equal(textOfFigure({}, 12345, 1e9), '12,345')
    equal([textOfPercent(1, 3), textOfPercent(0, 3), textOfPercent(0, 0)], ['33.3%', '0.0%', '0.0%'])
})

test('the title names the programs with the most samples', () => {
    const head = {processes: [{pid: 7, name: 'a'}, {pid: 8, name: 'b'}, {pid: 9, name: 'b'}, {pid: 10, name: 'c'}],
        threads: [{process: 0, tid: 7}, {process: 1, tid: 8}, {process: 2, tid: 9}, {process: 3, tid: 10}]}
    const samples = [0, 1, 1, 2, 3, 3].map(thread => ({stack: 'P f a.py', value: 1, thread}))
    equal(textOfPrograms(recording(samples, head)), 'b, c and 1 other program')
    equal(textOfPrograms(recording([], {processes: [], threads: [], name: 'x.bin'})), 'x.bin')
})

test('a program is named before its workers, and a title beside the name', () => {
    const head = {processes: [{pid: 1, name: 'd.py (spawn)'}, {pid: 2, name: 'd.py'}, {pid: 3, name: 'x.py'}],
        threads: [{process: 0, tid: 1, name: 'a'}, {process: 1, tid: 2, name: 'a'}, {process: 2, tid: 3, name: 'a'}]}
    const samples = [0, 0, 0, 1, 2, 2].map(thread => ({stack: 'P main a.py:1:3', value: SECOND, thread}))
    equal(textOfPrograms(recording(samples, head)), 'd.py, d.py (spawn) and 1 other program')
    equal(nameOfProcess({pid: 7, name: 'w.py', title: 'acme: "mail"'}), 'w.py "acme: \'mail\'" 7')
    equal(nameOfProcess({pid: 7, name: '', title: ''}), 'unknown 7')
})

test('each filter that is set can be taken off alone', () => {
    const page = pageOf(CALLS, {thread: 0, focus: 'work', layers: {python: true, native: false, kernel: true}})
    const filters = filtersOfView(page)
    equal(filters.map(([text]) => text), ['thread: MainThread', 'only stacks with: work', 'native frames hidden'])
    equal(Object.assign({}, ...filters.map(([, change]) => change)),
        {thread: null, focus: '', layers: {python: true, native: true, kernel: true}})
    equal(filtersOfView(pageOf(CALLS)), [])
    equal(filtersOfView(pageOf(CALLS, {task: ''}))[0], ['task: none', {task: null}])
})

test('rows are sorted by a column, and by name where that is equal', () => {
    const order = sort => {
        const page = pageOf(CALLS, {sort}), names = page.result.names()
        return sortRows(page.result.rows(), names, page.view).map(row => names[row.id].text)
    }
    const bySelf = ['work (a.py:10)', 'memcpy', 'main (a.py:1)', 'read_[k]', 'work (b.py:5)']
    equal(order(''), bySelf)
    equal(order('nonsense'), bySelf)
    equal(order('total').slice(0, 2), ['main (a.py:1)', 'work (a.py:10)'])
    equal(order('-total').slice(-2), ['work (a.py:10)', 'main (a.py:1)'])
    equal(order('layer').slice(-1), ['read_[k]'])
    equal(order('name')[0], 'main (a.py:1)')
    equal(order('-place')[0], 'memcpy')
})

test('the table shows what the search finds', () => {
    const page = pageOf(CALLS, {search: 'work'}), {rows, names, all, isSearched} = rowsOfTable(page)
    equal(rows.map(row => names[row.id].text), ['work (a.py:10)', 'work (b.py:5)'])
    equal([all, isSearched], [5, true])
    equal(rowsOfTable(pageOf(CALLS)).isSearched, false)
})

test('a row has self, total, samples, layer, name and place', () => {
    const page = pageOf(CALLS), {rows, names} = rowsOfTable(page)
    const text = row => seen(element('table', null, rowOfTable(page, row, names[row.id], 0, {self: 1, total: 1})))
    equal(text(rows[0]), '37.5% 3.00 s 75.0% 6.00 s 1 / 3 P work a.py:10')
    equal(text(rows[1]), '25.0% 2.00 s 25.0% 2.00 s 1 / 1 N memcpy libc.so')
})

test('names are text, whatever they hold', () => {
    const page = pageOf([{stack: 'P <b>&"\u05d0 <img/src=x>.py', value: 1}]), {rows, names} = rowsOfTable(page)
    const row = rowOfTable(page, rows[0], names[rows[0].id], 0, {self: 1, total: 1})
    equal(row.querySelectorAll('img, b').length, 0)
    ok(row.textContent.includes('<b>&"\u05d0') && row.textContent.includes('src=x>.py'))
    for (const name of row.querySelectorAll('td.name, td.place'))
        ok(name.querySelector('bdi'), 'its direction is its own')
})

test('a long name is cut', () => {
    const name = 'f'.repeat(100000), page = pageOf([{stack: 'P ' + name + ' a.py', value: 1}])
    const {rows, names} = rowsOfTable(page), row = rowOfTable(page, rows[0], names[rows[0].id], 0, {self: 1, total: 1})
    ok(row.textContent.length < 1000)
})

test('the panel has a function with its callers, callees and lines', () => {
    const page = pageOf(CALLS), id = idOf(page.result, 'work (a.py:10)')
    const text = panelOfFunction(page, id).filter(Boolean).map(seen).join(' | ')
    ok(text.includes('Self 3.0 s, 37.5 % of what is shown'), text)
    ok(text.includes('Total 6.0 s, 75.0 % of what is shown'), text)
    ok(text.includes('Samples 1 in it, 3 with it on the stack'), text)
    ok(text.includes('100.0% 6.00 s P main a.py:1'), text)
    ok(text.includes('33.3% 2.00 s N memcpy libc.so 16.7% 1.00 s K read [kernel.kallsyms]'), text)
    ok(text.includes('83.3% 5.00 s line 12 16.7% 1.00 s line 13'), text)
    ok(panelOfFunction(page, idOf(page.result, 'main (a.py:1)')).filter(Boolean).map(seen).join(' ').includes(NO_CALLER))
})

test('the panel of a wait has its time, and who waited', () => {
    const page = pageOf([{stack: 'P f a.py:1:2;K do_wait [kernel.kallsyms];M [wait: lock]', value: SECOND}, {stack: 'P f a.py:1:2', value: SECOND}])
    const text = panelOfFunction(page, idOf(page.result, '[wait: lock]')).filter(Boolean).map(seen).join(' | ')
    ok(text.includes('Total 1.0 s, 50.0 % of what is shown Samples 1 with it on the stack'), text)
    ok(text.includes('100.0% 1.00 s K do_wait') && text.includes('of the functions that waited') && !text.includes('filters'), text)
})

test('an expression of the panel finds its function alone', () => {
    const names = ['f', 'a.b', 'f.<locals>.g', 'x(y)[z]{1}|$^*+?\\/', 'ff']
    const page = pageOf(names.map(name => ({stack: 'P ' + name + ' a.py', value: 1})))
    for (const name of names) {
        const found = page.result.search(patternOfFunction(name))
        equal(page.result.names().filter((entry, id) => found.matches[id]).map(entry => entry.name), [name])
    }
})

test('hottest functions are those with the most own time', () => {
    const text = panelOfHottest(pageOf(CALLS)).map(seen).join(' ')
    ok(/37.5% 3.00 s P work a.py:10 25.0% 2.00 s N memcpy libc.so/.test(text), text)
})

test('the focus stays in the panel when what had it goes away', () => {
    const {draw} = page.views.find(view => view.name === 'sandwich'), shown = pageOf(CALLS)
    draw(shown)
    equal(document.activeElement === byId('selected').querySelector('h2'), false)
    byId('selected').querySelector('button').focus()
    shown.view.selected = idOf(shown.result, 'memcpy')
    draw(shown)
    equal(document.activeElement.textContent, 'N memcpy')
})

test('of many functions the hottest are those of all', () => {
    const page = pageOf(Array.from({length: 100}, (_, i) => ({stack: 'P f' + i + ' a.py', value: (i * 37) % 101})))
    equal(hottestRows(page.result).map(row => row.self[0]), Array.from({length: HOTTEST_SHOWN}, (_, i) => 100 - i))
    equal(hottestRows(pageOf([]).result), [])
})

function linesOf(page, file) {
    return Object.fromEntries([...weightsOfLines(page, file)].map(([line, weights]) =>
        [line, ['self', 'native', 'kernel', 'total'].map(key => weights[key] / SECOND)]))
}

test('a line has its own time, that of native code and of the kernel, and all', () => {
    const page = pageOf(CALLS)
    equal(linesOf(page, 'a.py'), {3: [0, 0, 0, 6], 4: [1, 0, 0, 2], 12: [3, 2, 0, 5], 13: [0, 0, 1, 1]})
    equal(linesOf(page, 'b.py'), {6: [1, 0, 0, 1]})
    equal(filesWithLines(page).map(file => [file.file, file.self / SECOND, file.total / SECOND]), [['a.py', 4, 8], ['b.py', 1, 1]])
})

test('a stack counts once in a line, whatever functions and recursion it has there', () => {
    const page = pageOf([
        {stack: 'P f a.py:1:2;P f.<locals>.<genexpr> a.py:2:2;P f a.py:1:2;P g a.py:5:6', value: SECOND},
        {stack: 'P f a.py:1:2;P f.<locals>.<genexpr> a.py:2:2', value: SECOND},
    ])
    equal(linesOf(page, 'a.py'), {2: [1, 0, 0, 2], 6: [1, 0, 0, 1]})
    equal(filesWithLines(page).map(file => file.total / SECOND), [2])
})

test('a wait is time of the line that waits', () => {
    const page = pageOf([{stack: 'P f a.py:1:2;N read /lib/libc.so;K do_wait [kernel.kallsyms];M [wait: lock]', value: SECOND}])
    equal(linesOf(page, 'a.py'), {2: [1, 0, 0, 1]})
})

test('time of another file below is not a line’s native time', () => {
    const page = pageOf([{stack: 'P f a.py:1:2;P g b.py:1:2;N memcpy /lib/libc.so', value: SECOND}])
    equal(linesOf(page, 'a.py'), {2: [0, 0, 0, 1]})
    equal(linesOf(page, 'b.py'), {2: [0, 1, 0, 1]})
})

test('the panel of a line has its callers, and what it called', () => {
    const text = panelOfLine(pageOf(CALLS, {tab: 'source', file: 'a.py', line: 12})).map(seen).join(' | ')
    ok(text.startsWith('a.py, line 12 | Self 3.0 s, 37.5 %'), text)
    ok(text.includes('Native 2.0 s, 25.0 % of what is shown'), text)
    ok(text.includes('100.0% 5.00 s P main a.py:1'), text)
    ok(text.includes('40.0% 2.00 s N memcpy'), text)
    equal(panelOfLine(pageOf(CALLS, {file: 'a.py', line: 99})), null)
    equal(panelOfLine(pageOf(CALLS, {file: 'a.py'})), null)
})

test('the source view opens the file of the selected function, else the heaviest that has a text', () => {
    const page = pageOf(CALLS)
    equal(fileOfSource(page), 'a.py')
    page.view.selected = idOf(page.result, 'work (b.py:5)')
    equal(fileOfSource(page), 'b.py')
    page.view.file = 'c.py'
    equal(fileOfSource(page), 'c.py')
    const other = pageOf(CALLS)
    other.data.head.sources = [{file: 'b.py', path: '/b.py', match: 'same', text: ''}]
    equal(fileOfSource(other), 'b.py')
    const frozen = pageOf([{stack: 'P load <frozen>:1:2', value: SECOND * 2}])
    equal(fileOfSource(frozen), '<frozen>')
    ok(drawSource(frozen, 0).notices.textContent.includes('in no file'))
    equal(fileOfSource(pageOf([...CALLS, {stack: 'P load <frozen>:1:2', value: SECOND * 99}])), 'a.py')
    equal(fileOfSource(pageOf([{stack: 'N f /lib/libc.so', value: 1}])), undefined)
})

// The source view of a file of `count` lines, "text 1" and so on; false: the page does not carry it.
function drawSource(page, count, match = 'same') {
    const view = new SourceView()
    const text = Array.from({length: count || 0}, (_, i) => 'text ' + (i + 1)).join('\n')
    page.data.head.sources = count ? [{file: 'a.py', path: '/a.py', match, text}] : []
    page.view.tab = 'source'
    view.init(page)
    view.draw(page)
    return view
}
const numbersIn = view => [...view.table.querySelectorAll('td.line')].map(cell => Number(cell.textContent))

test('the source shows the hot lines and some around them, or all', () => {
    const page = pageOf(CALLS), view = drawSource(page, 40)
    equal(numbersIn(view), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])
    const far = drawSource(pageOf([...CALLS, {stack: 'P z a.py:90:90', value: SECOND}]), 100)
    equal(numbersIn(far).slice(-7), [87, 88, 89, 90, 91, 92, 93])
    equal(far.table.querySelectorAll('tr.gap').length, 1)
    far.isHotOnly = false
    far.draw(pageOf(CALLS, {tab: 'source'}))
    equal(numbersIn(far).length, 100)
    ok(far.table.textContent.includes('text 57'))
})

test('lines behind the end of the text are shown as such', () => {
    const view = drawSource(pageOf(CALLS), 12)
    equal(numbersIn(view).slice(-2), [12, 13])
    ok(view.table.textContent.includes(BEHIND_END))
})

test('the source says when it is not what ran, and what is missing', () => {
    ok(drawSource(pageOf(CALLS), 20, 'changed').notices.textContent.includes('not the one that ran'))
    ok(drawSource(pageOf(CALLS), 20, 'unknown').notices.textContent.includes('does not say whether'))
    ok(!/ran|does not say/.test(drawSource(pageOf(CALLS), 20, 'same').notices.textContent))
    const without = drawSource(pageOf(CALLS, {}, {name: 'a b.bin'}), 0)
    ok(without.notices.textContent.includes('pysym FILE -o profile.html --source DIR --embed-source'))
    equal(numbersIn(without), [3, 4, 12, 13])
})

test('the recording lists losses with their meaning, and rates', () => {
    const losses = [{name: 'tick_skipped', meaning: 'the kernel skipped a tick', count: 1200, isSample: true},
        {name: 'new', meaning: '', count: 1, isSample: false}]
    const data = recording(CALLS, {captures: [{name: 'x', losses}]})
    equal(seen(tableOfLosses(data)).replace(/^.*Name /, ''), '1,200 the kernel skipped a tick samples are missing tick_skipped ' +
        '1 not known to this version no samples are missing new')
    equal(seen(tableOfLosses(recording(CALLS, {captures: [{losses: []}]}))), 'Nothing is known to be lost.')
    equal(textOfSampling(data, {event: 0, frequencyHz: 199}), 'cpu-clock at 199 Hz')
    equal(textOfSampling(data, {event: 0, frequencyHz: 0, period: 10e6}), 'cpu-clock, a sample for about every 10.0 ms')
    equal(textOfSampling(data, {event: 0, frequencyHz: 0, period: 1}), 'cpu-clock')
    const tasks = recording(CALLS, {events: [{name: 'task-wait', unit: 'ns', isTime: true, isWaiting: true, isTask: true}]})
    equal(textOfSampling(tasks, {event: 0, frequencyHz: 0, period: 100e6}), 'task-wait, a look at all tasks every 100 ms')
    equal(textOfSetting(['command.wall_ns', '14972290543']), 'command.wall 15.0 s')
    equal(textOfSetting(['kernel', 'yes']), 'kernel yes')
})

test('real time is said in UTC, or not at all', () => {
    equal(textOfRealTime('1795340340123456789'), '2026-11-22 09:39:00 UTC')
    equal(textOfRealTime('0'), '')
})
