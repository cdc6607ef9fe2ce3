/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the page: the last of its scripts. window.pageReady is done, or failed, when all is drawn. */

function showFailure(error) {
    const notice = document.createElement('p');
    notice.className = 'notice';
    notice.setAttribute('role', 'alert');
    notice.textContent = 'This profile cannot be shown: ' + error.message;
    document.body.prepend(notice);
}

async function startPage() {
    page.data = await loadData();
    for (const each of page.views)
        each.init(page);
    readHistory();
    addEventListener('popstate', readHistory);
    document.body.dataset.ready = Math.round(performance.now());
}

window.pageReady = startPage();
window.pageReady.catch(showFailure);
