// The log of a run: polls bring what is new. The text shown is bounded; earlier text, and a search
// of the whole file, come from the server when they are asked for.
const {words} = props;
const view = element.querySelector('pre'), hits = element.querySelector('.rs-hits');
const search = element.querySelector('input'), count = element.querySelector('.rs-log-count');
const button = name => element.querySelector(`[data-do="${name}"]`);
const LIMIT = 400000, READ_LIMIT = 2000000;
// `paused`: somebody pressed Pause, or looks at something found; scrolling alone does not end that.
let source = {run: '', key: ''}, follows = true, paused = false, live = true, marks = [], at = -1;

const chunks = () => [...view.children];
const number = (chunk, name) => Number(chunk.dataset[name]);
const make = ({text, start, offset}) => {
  const chunk = document.createElement('span');
  chunk.textContent = text;
  chunk.dataset.start = start; chunk.dataset.offset = offset;
  return chunk;
};
const length = () => chunks().reduce((sum, chunk) => sum + chunk.textContent.length, 0);
const toEnd = () => { view.scrollTop = view.scrollHeight; };
const setFollow = on => {
  follows = on;
  button('follow').setAttribute('aria-pressed', String(on));
  button('follow').textContent = on ? words.pause : words.follow;
};
const settle = () => {
  const first = view.firstElementChild;
  button('earlier').hidden = !first || number(first, 'start') === 0;
  button('end').hidden = live;
  button('follow').hidden = !live;
};

const show = () => {
  const news = props.value;
  if (!news || typeof news !== 'object') return;
  source = {run: news.run, key: news.key};
  button('download').href = address();
  if (news.reset) {
    view.replaceChildren(...(news.text ? [make(news)] : []));
    live = true;
    hits.hidden = true;
    paused = false;
    setFollow(true);
  } else {
    if (!live) return;  // somebody reads further up; the end is fetched anew afterwards
    const last = view.lastElementChild;
    // An answer is missing, perhaps one that came before this card was drawn.
    if ((last ? number(last, 'offset') : 0) !== news.start) { trigger('submit'); return; }
    view.append(make(news));
    if (follows) while (length() > LIMIT && view.children.length > 1) view.firstElementChild.remove();
    // Whoever has paused keeps what is above, but not without end.
    else while (length() > READ_LIMIT && view.children.length > 1) view.firstElementChild.remove();
  }
  if (follows) toEnd();
  settle();
  if (search.value.trim()) find(false);
};

view.addEventListener('scroll', () => {
  if (!live || paused) return;
  const near = view.scrollHeight - view.scrollTop - view.clientHeight < 40;
  if (near !== follows) setFollow(near);
});

const marking = 'highlights' in CSS;
const find = jump => {
  const wanted = search.value.trim().toLowerCase();
  marks = [];
  for (const chunk of wanted ? chunks() : []) {
    const node = chunk.firstChild, text = chunk.textContent.toLowerCase();
    // Some letters change their length with their case; such a chunk is left out of the marks.
    if (!node || text.length !== node.length) continue;
    for (let i = text.indexOf(wanted); i >= 0 && marks.length < 5000; i = text.indexOf(wanted, i + wanted.length)) {
      const mark = new Range();
      mark.setStart(node, i); mark.setEnd(node, i + wanted.length);
      marks.push(mark);
    }
  }
  if (marking) CSS.highlights.set('rs-found', new Highlight(...marks));
  if (jump) go(marks.length - 1);
  else { at = Math.min(at, marks.length - 1); say(); }
};
const say = () => {
  count.textContent = !search.value.trim() ? '' : !marks.length ? words.none
    : words.count.replace('{n}', at + 1).replace('{total}', marks.length);
};
const go = index => {
  at = marks.length ? (index + marks.length) % marks.length : -1;
  say();
  if (marking) CSS.highlights.set('rs-found-here', new Highlight(...(at < 0 ? [] : [marks[at]])));
  if (at < 0) return;
  const box = marks[at].getBoundingClientRect(), frame = view.getBoundingClientRect();
  if (live) { paused = true; setFollow(false); }
  view.scrollTop += box.top - frame.top - frame.height / 2;
};

// Only reads; the address is this page's own, wherever a proxy may have put it.
const address = () => `log/${encodeURIComponent(source.run)}/${encodeURIComponent(source.key)}`;
const ask = async (what, values) => {
  const answer = await fetch(`${address()}/${what}?${new URLSearchParams(values)}`);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
};
const whole = async () => {
  if (!search.value.trim()) { search.focus(); return; }
  count.textContent = words.searching;
  const found = await ask('find', {words: search.value});
  say();
  const lead = document.createElement('p');
  lead.className = 'rs-soft';
  lead.textContent = found.sentence;
  const list = document.createElement('ol');
  for (const hit of found.found) {
    const item = document.createElement('li'), open = document.createElement('button');
    open.type = 'button';
    open.dataset.offset = hit.offset;
    open.textContent = `${hit.line.toLocaleString('en')}  ${hit.text}`;
    item.append(open);
    list.append(item);
  }
  hits.replaceChildren(lead, list);
  hits.hidden = false;
};
const around = async offset => {
  const chunk = await ask('around', {offset});
  live = false;
  // Split at the line, so that it can be brought into view.
  view.replaceChildren(make(chunk));
  settle();
  find(false);
  const wanted = hits.querySelector('[aria-current]')?.textContent.replace(/^\S+\s+/, '').slice(0, 80);
  const node = view.firstChild.firstChild, i = node ? node.textContent.indexOf(wanted) : -1;
  if (i < 0) return;
  const mark = new Range();
  mark.setStart(node, i); mark.setEnd(node, i + wanted.length);
  if (marking) CSS.highlights.set('rs-found-here', new Highlight(mark));
  view.scrollTop += mark.getBoundingClientRect().top - view.getBoundingClientRect().top - view.clientHeight / 2;
};
const earlier = async () => {
  const first = view.firstElementChild;
  const chunk = await ask('before', {offset: number(first, 'start')});
  const below = view.scrollHeight - view.scrollTop;
  view.prepend(make(chunk));
  paused = true;
  setFollow(false);
  while (length() > READ_LIMIT && view.children.length > 1) {
    view.lastElementChild.remove();
    live = false;  // the end is no longer here
  }
  view.scrollTop = view.scrollHeight - below;
  settle();
  if (search.value.trim()) find(false);
};
const copy = async () => {
  const text = view.textContent;
  try { await navigator.clipboard.writeText(text); } catch {
    // Without https a page may not write to the clipboard by itself.
    getSelection().selectAllChildren(view);
    document.execCommand('copy');
    getSelection().removeAllRanges();
  }
  button('copy').textContent = words.copied;
  setTimeout(() => { button('copy').textContent = words.copy; }, 1500);
};

const does = {
  before: () => go(at - 1), next: () => go(at + 1), whole, earlier, copy, end: () => trigger('submit'),
  follow: () => { paused = follows; setFollow(!follows); if (follows) toEnd(); },
};
// What is asked of the server may fail, and then nothing is searched any more.
const tried = asked => asked?.catch(() => { count.textContent = words.failed; });
element.addEventListener('click', event => {
  const pressed = event.target.closest('button');
  if (!pressed) return;
  if (pressed.dataset.do) tried(does[pressed.dataset.do]());
  else if (pressed.dataset.offset) {
    hits.querySelector('[aria-current]')?.removeAttribute('aria-current');
    pressed.setAttribute('aria-current', 'true');
    tried(around(Number(pressed.dataset.offset)));
  }
});
search.addEventListener('input', () => find(true));
search.addEventListener('keydown', event => {
  if (event.key === 'Enter') { go(at + (event.shiftKey ? -1 : 1)); event.preventDefault(); }
  if (event.key === 'Escape') { search.value = ''; hits.hidden = true; find(false); }
});
watch('value', show);
settle();
show();
