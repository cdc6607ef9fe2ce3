/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds the state of the page and tells the views of changes.
 *
 * A view is {name, init(page), draw(page)} in page.views, where each file puts its own as it is read. init() is called once,
 * when the data is there (main.js); draw() after each change of the state, and first after all init(). A view changes the state only by
 * setView(). The state, page.view:
 *
 *     tab                          'flame', 'table', 'source', 'about'; of a comparison also 'compare'
 *     event                        its number in head.events
 *     process, thread              numbers; null: all
 *     interpreter, task            texts of labels; '': samples without one; null: all
 *     from, to                     the range of time, `to` is not part of it, in units of times; null: no bound
 *     layers                       {python, native, kernel}: which are shown
 *     focus, ignore, rootAt        expressions; ''
 *     search                       an expression; ''
 *     order                        of the flame graph: from the 'root', from the 'leaves', or around the selected 'function'
 *     zoom                         the numbers of the functions from the root to where the flame graph is zoomed to; steps may
 *                                  be missing where there is only one way; []
 *     callerZoom                   the same of the callers above the selected function
 *     selected                     the number of a function, in data.functions.list; null: none
 *     file, line                   of the source view; null: none
 *     by                           rows of the table are of a 'function' or a 'line'
 *     sort                         the table's; its own business. '': as at the start
 *     side                         of a comparison: the runs whose weights are shown, 'new' or 'old'
 *     theme                        'light', 'dark', '': the system's
 */

const page = {data: null, view: null, result: null, views: []};

/* What of the state chooses samples or stacks; a change of anything else only draws. */
const KEYS_OF_RESULT = ['event', 'process', 'thread', 'interpreter', 'task', 'from', 'to', 'layers', 'focus', 'ignore', 'rootAt', 'side'];

/*
 * Changes the state, and draws. `change` has the keys that change. A step that Back should undo is the default; address
 * 'replace' is for the small steps of one, such as the letters of a search, and 'keep' for what need not be kept.
 */
function setView(change, {address = 'push'} = {}) {
    const view = {...page.view, ...change};

    /* Another picture is not zoomed. */
    if (view.order !== page.view.order || (view.order === 'function' && view.selected !== page.view.selected))
        Object.assign(view, {zoom: change.zoom || [], callerZoom: change.callerZoom || []});
    /* A thread is of one process. */
    if (view.thread !== null && view.process !== null && page.data.head.threads[view.thread].process !== view.process)
        view[change.thread === undefined ? 'thread' : 'process'] = null;
    showView(view);
    if (address !== 'keep')
        writeHistory(address);
}

function showView(view) {
    const isSame = key => JSON.stringify(view[key]) === JSON.stringify(page.result.view[key]);
    const isCurrent = page.result && KEYS_OF_RESULT.every(isSame);

    page.view = view;
    if (!isCurrent)
        page.result = aggregate(page.data, view);
    for (const each of page.views)
        each.draw(page);
}

function writeHistory(how) {
    const hash = '#' + writeAddress(page.data, {...page.view, ...zoomsForAddress()});

    if (hash === (location.hash || '#'))
        return;
    try {
        if (how === 'push')
            history.pushState(null, '', hash);
        else
            history.replaceState(null, '', hash);
    } catch (error) {
        /* A browser may allow only so many steps a second; what the page shows is right without. */
    }
}

function readHistory() {
    showView(readAddress(page.data, location.hash.slice(1)));
}
