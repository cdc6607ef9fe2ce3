/* SPDX-License-Identifier: Apache-2.0 */
/* The help: keys, and the words of the page. "?" opens it. */

const HELP_KEYS = [
    ['Anywhere', [['/', 'search'], ['1 2 3 …', 'the views, from the left'], ['?', 'this help'],
        ['Esc', 'leaves a field, closes what is open']]],
    ['Flame graph', [['← → ↑ ↓', 'to the next box'], ['Enter', 'zooms in, and selects the function'],
        ['Space', 'selects without zooming; around a function, goes on to this one'], ['Esc', 'zooms out a step'], ['Home', 'zooms out wholly'], ['n N', 'the next match of the search, the one before']]],
    ['Time', [['← →', 'moves the range'], ['Shift ← →', 'moves its end'], ['Home End', 'to the begin, to the end'],
        ['Esc', 'all time']]],
    ['Tables', [['↑ ↓ Home End', 'to another row'], ['Enter', 'selects the function'],
        ['Enter on a title', 'sorts by the column; again, the other way round']]],
];

const HELP_WORDS = [
    ['Self', 'Time in the function itself. Many samples there: look at its own code.'],
    ['Total', 'Time in the function and in all that it called.'],
    ['Sample', 'One look at a thread: its stack, and the time that it stands for. Few samples mean figures that are not exact.'],
    ['Python, native, kernel', 'The three layers of a stack: code of Python; compiled code, such as C extensions and ' +
        'libraries; the kernel working for them. The time of a layer that is switched off goes to the functions that called it.'],
    ['From the leaves', 'The flame graph upside down: the functions that ran are on top, their callers below.'],
    ['Around a function', 'The function in the middle, its callers above it, the direct ones next to it, and what it called ' +
        'below. A click zooms; a double click goes around another function.'],
    ['[torn], [truncated]', 'Frames are missing here; “About this recording” says how many, and why.'],
    ['[wait: lock]', 'The thread was not running, but waited, here for a lock. A function’s self time includes its waits.'],
    ['[no frames]', 'Samples of which no stack is known.'],
    ['GIL', 'The lock that lets one thread of a Python process run at a time.'],
];

function openHelp() {
    const close = plainButton('Close', 'Esc', () => byId('help').close());

    fill(byId('help'), element('h2', {id: 'help-title'}, 'Keys and words'),
        ...HELP_KEYS.flatMap(([place, keys]) => [element('h3', null, place),
            factList(keys.map(([key, text]) => [element('kbd', null, key), element('span', null, text)]))]),
        element('h3', null, 'Words'), factList(HELP_WORDS.map(([word, text]) => [word, element('span', null, text)])),
        element('p', {className: 'faint'}, 'The address keeps the view: a link shows what its sender saw.'), close);
    byId('help').showModal();
    close.focus();
}

/* Is a letter meant for a field? */
function isTyping(event) {
    return event.target.closest('input:not([type="checkbox"]):not([type="radio"]), select, textarea') !== null;
}

function listenToKeys(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || byId('help').open)
        return;
    if (isTyping(event)) {
        if (event.key === 'Escape') {
            event.preventDefault(); /* browsers empty a field of a search with it */
            event.target.blur();
        }
        return;
    }
    if (event.key === '/') {
        event.preventDefault();
        byId('search').focus();
        byId('search').select();
    } else if (event.key === '?') {
        openHelp();
    } else if (event.key >= '1' && event.key <= String(tabsOfPage().length)) {
        const tab = tabsOfPage()[event.key - 1];
        setView({tab});
        byId('tab-' + tab).focus();
    }
}

page.views.push({
    name: 'help',
    init() {
        byId('help-open').addEventListener('click', openHelp);
        document.addEventListener('keydown', listenToKeys);
    },
    draw() {},
});
