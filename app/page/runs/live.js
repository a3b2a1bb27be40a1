// What changes by the second, counted here; and buttons that copy a command.
const short = s => s < 100 ? `${s} s` : s < 6000 ? `${Math.floor(s / 60)} min`
  : s < 172800 ? `${Math.floor(s / 3600)} h` : props.days.replace('{n}', Math.floor(s / 86400));
const two = n => String(n).padStart(2, '0');
const left = s => s < 100 ? `${Math.round(s)} s` : s < 3600 ? `${Math.floor(s / 60)} m ${two(Math.floor(s % 60))} s`
  : `${Math.floor(s / 3600)} h ${two(Math.floor(s % 3600 / 60))} m`;
// Seconds by which the server's clock is ahead of this one: each part of the page brings its own.
const ahead = part => {
  if (part.dataset.now) { part.rsAhead = Number(part.dataset.now) - Date.now() / 1000; part.dataset.now = ''; }
  return part.rsAhead ?? 0;
};
const count = () => {
  for (const part of document.querySelectorAll('[data-since], [data-until]')) {
    const now = Date.now() / 1000 + ahead(part), {since, until} = part.dataset;
    const text = since ? short(Math.max(0, Math.floor(now - since))) : left(Math.max(0, until - now));
    if (part.textContent !== text) part.textContent = text;
  }
  // A button of Gradio's takes no title of its own.
  for (const [id, title] of Object.entries(props.titles || {})) {
    const button = document.getElementById(id);
    if (button && button.title !== title) button.title = title;
  }
};
setInterval(count, 1000);
new MutationObserver(found => {
  if (found.some(one => [...one.addedNodes].some(node => node.querySelector?.('[data-now]:not([data-now=""])')))) count();
}).observe(document.body, {childList: true, subtree: true});
document.addEventListener('click', async event => {
  const button = event.target.closest('button[data-copy]');
  if (!button) return;
  const before = button.textContent;
  try { await navigator.clipboard.writeText(button.dataset.copy); } catch {
    // Without https a page may not write to the clipboard by itself.
    getSelection().selectAllChildren(button.previousElementSibling);
    document.execCommand('copy');
  }
  button.textContent = button.dataset.done;
  setTimeout(() => { button.textContent = before; }, 1500);
});
count();
