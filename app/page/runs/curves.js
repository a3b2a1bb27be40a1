// Curves of a run, drawn here from the points that polls bring: increments, so nothing flickers;
// what to draw them over, how smooth and which are this browser's choice and ask nobody.
const {words, plots, axes} = props;
const KEY = 'ringside-curves', HEIGHT = 190, LEFT = 50, RIGHT = 12, TOP = 10, BOTTOM = 26;
const DEFAULTS = {x: 'step', smoothing: 0, log: false, shown: plots.slice(0, 3).map(p => p.name)};
const lines = {};
let scale = {per_epoch: 0, batch: 0};
let choice = DEFAULTS;
try { choice = {...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) || '{}')}; } catch { /* none */ }
if (!axes.includes(choice.x)) choice.x = DEFAULTS.x;
if (!Array.isArray(choice.shown)) choice.shown = DEFAULTS.shown;

const text = value => String(value).replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);
const fields = element.querySelector('.rs-curve-fields'), board = element.querySelector('.rs-plots');
fields.innerHTML = `
  <label>${text(words.x)} <select data-set="x">${axes.map(axis =>
    `<option value="${axis}"${axis === choice.x ? ' selected' : ''}>${text(words[`x_${axis}`])}</option>`)
    .join('')}</select></label>
  <label>${text(words.smoothing)} <input type="range" min="0" max="0.95" step="0.05" data-set="smoothing"
    value="${Number(choice.smoothing) || 0}"></label>
  <label><input type="checkbox" data-set="log"${choice.log ? ' checked' : ''}> ${text(words.log)}</label>
  <span class="rs-grow"></span>
  <span role="group" aria-label="${text(words.shown)}">${plots.map(plot =>
    `<label><input type="checkbox" data-plot="${plot.name}"${choice.shown.includes(plot.name) ? ' checked' : ''}>
     ${text(words[plot.name])}</label>`).join(' ')}</span>`;
board.innerHTML = plots.map(plot => `<figure data-plot="${plot.name}" hidden>
  <figcaption>${text(words[plot.name])}</figcaption><div class="rs-plot" tabindex="0" role="img"></div>
  <div class="rs-legend"></div></figure>`).join('');

const number = value => {
  const size = Math.abs(value);
  if (value === 0) return '0';
  if (size >= 10000) return Math.round(value).toLocaleString('en');
  if (size < 0.001) return value.toExponential(1).replace('-', '\u2212');
  return String(Number(value.toPrecision(size >= 1000 ? 4 : 3)));
};
const clock = s => s < 100 ? `${number(s)} s` : s < 6000 ? `${number(s / 60)} min` : `${number(s / 3600)} h`;
const place = (point) => ({
  step: point[0], time: point[1], samples: point[0] * scale.batch,
  epoch: scale.per_epoch ? point[0] / scale.per_epoch : 0,
})[choice.x];
const shownX = value => choice.x === 'time' ? clock(value) : number(value);

// Exponential mean without its pull towards zero at the start (Kingma and Ba 2015, section 3), with
// a weight by distance: points of a thinned line stand unevenly.
const smooth = points => {
  const weight = Number(choice.smoothing) || 0;
  if (!weight || points.length < 3) return points;
  const unit = (points.at(-1)[0] - points[0][0]) / (points.length - 1) || 1;
  let sum = 0, whole = 0, before = points[0][0] - unit;
  return points.map(([step, time, value]) => {
    const w = weight ** ((step - before) / unit);
    before = step;
    sum = w * sum + (1 - w) * value; whole = w * whole + (1 - w);
    return [step, time, whole ? sum / whole : value];
  });
};

const steps = (low, high, most) => {
  const rough = (high - low) / most || 1, power = 10 ** Math.floor(Math.log10(rough));
  const width = [1, 2, 5, 10].map(n => n * power).find(w => w >= rough);
  const found = [];
  for (let i = Math.ceil(low / width - 1e-9); i * width <= high + width * 1e-9; i++)
    found.push(Number((i * width).toPrecision(12)));
  return found;
};
const decades = (low, high) => {
  const found = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++)
    for (const n of [1, 2, 5]) if (n * 10 ** p >= low && n * 10 ** p <= high) found.push(n * 10 ** p);
  return found.length > 1 ? found : steps(low, high, 4).filter(v => v > 0);
};
const range = values => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);

const drawn = {};
const draw = plot => {
  const figure = board.querySelector(`figure[data-plot="${plot.name}"]`);
  const found = plot.lines.filter(name => (lines[name] || []).length);
  figure.hidden = !choice.shown.includes(plot.name) || !found.length;
  if (figure.hidden) return;
  const holder = figure.querySelector('.rs-plot'), width = holder.clientWidth || 320;
  const isLog = plot.log && choice.log && found.every(name => lines[name].every(p => p[2] > 0));
  const smoothed = name => plot.smooth.includes(name) ? smooth(lines[name]) : lines[name];
  const [x0, x1] = range(found.flatMap(name => lines[name].map(place)));
  let [y0, y1] = range(found.flatMap(name => lines[name].map(p => p[2])));
  if (y0 === y1) { const by = Math.abs(y0) * 0.1 || 1; y0 -= isLog ? y0 / 2 : by; y1 += by; }
  const up = v => isLog ? Math.log(v) : v;
  const toX = v => LEFT + (x1 > x0 ? (v - x0) / (x1 - x0) : 0.5) * (width - LEFT - RIGHT);
  const toY = v => HEIGHT - BOTTOM - (up(v) - up(y0)) / (up(y1) - up(y0)) * (HEIGHT - TOP - BOTTOM);
  const across = steps(x0, x1, Math.max(3, width / 90)), along = isLog ? decades(y0, y1) : steps(y0, y1, 4);
  const path = (points, kind, name) => points.length === 1
    ? `<circle cx="${toX(place(points[0]))}" cy="${toY(points[0][2])}" r="3" class="${kind} rs-l-${name}"/>`
    : `<polyline class="${kind} rs-l-${name}" points="${points.map(p =>
        `${toX(place(p)).toFixed(1)},${toY(p[2]).toFixed(1)}`).join(' ')}"/>`;
  holder.innerHTML = `<svg width="${width}" height="${HEIGHT}" aria-hidden="true">
    ${along.map(v => `<path class="rs-grid" d="M${LEFT} ${toY(v)}H${width - RIGHT}"/>
      <text x="${LEFT - 6}" y="${toY(v) + 4}" text-anchor="end">${number(v)}</text>`).join('')}
    ${across.map(v => `<text x="${toX(v)}" y="${HEIGHT - 8}" text-anchor="middle">${shownX(v)}</text>`).join('')}
    ${found.map(name => smoothed(name) === lines[name] ? path(lines[name], 'rs-drawn', name)
      : path(lines[name], 'rs-raw', name) + path(smoothed(name), 'rs-drawn', name)).join('')}
    <path class="rs-cross" d=""/></svg>`;
  drawn[plot.name] = {plot, found, smoothed, toX, x0, x1, width, at: null};
  tell(plot.name, null);
};

// The values at one place, or the newest ones; what the colours mean stands beside them in words.
const tell = (name, at) => {
  const {plot, found, smoothed, toX} = drawn[name];
  const figure = board.querySelector(`figure[data-plot="${name}"]`);
  const said = found.map(line => {
    const points = smoothed(line);
    const point = at === null ? points.at(-1)
      : points.reduce((a, b) => Math.abs(place(b) - at) < Math.abs(place(a) - at) ? b : a);
    return [line, point];
  });
  const where = at === null ? '' : ` <span>${text(words[`x_${choice.x}`])} <b>${shownX(place(said[0][1]))}</b></span>`;
  figure.querySelector('.rs-legend').innerHTML = said.map(([line, point]) =>
    `<span><i class="rs-l-${line}"></i>${text(words[line])} <b>${number(point[2])}</b></span>`).join('') + where;
  figure.querySelector('.rs-plot').setAttribute('aria-label',
    `${words[plot.name]}: ${said.map(([line, point]) => `${words[line]} ${number(point[2])}`).join(', ')}`);
  const cross = figure.querySelector('.rs-cross');
  if (cross) cross.setAttribute('d', at === null ? '' : `M${toX(place(said[0][1]))} ${TOP}V${HEIGHT - BOTTOM}`);
  drawn[name].at = at;
};

const redraw = () => {
  plots.forEach(draw);
  element.querySelector('.rs-no-curve').hidden = plots.some(plot => plot.lines.some(name => (lines[name] || []).length));
  fields.hidden = !element.querySelector('.rs-no-curve').hidden;
};
const show = () => {
  const news = props.value;
  if (!news || typeof news !== 'object') return;
  scale = news;
  for (const [name, {at, points}] of Object.entries(news.lines)) {
    const line = lines[name] ??= [];
    if (line.length < at) { trigger('submit'); return; }  // an answer is missing: ask for all
    line.splice(at, line.length - at, ...points);
  }
  redraw();
};

fields.addEventListener('input', event => {
  const {set, plot} = event.target.dataset;
  if (plot) choice.shown = plots.map(p => p.name).filter(name =>
    fields.querySelector(`[data-plot="${name}"]`).checked);
  else choice[set] = set === 'log' ? event.target.checked : set === 'x' ? event.target.value : Number(event.target.value);
  try { localStorage.setItem(KEY, JSON.stringify(choice)); } catch { /* private window */ }
  redraw();
});
const plotOf = event => event.target.closest('figure')?.dataset.plot;
board.addEventListener('pointermove', event => {
  const name = plotOf(event), holder = event.target.closest('.rs-plot');
  if (!holder || !drawn[name]) return;
  const {x0, x1, width} = drawn[name];
  const share = (event.clientX - holder.getBoundingClientRect().left - LEFT) / (width - LEFT - RIGHT);
  tell(name, x0 + Math.min(1, Math.max(0, share)) * (x1 - x0));
});
for (const kind of ['pointerout', 'focusout']) board.addEventListener(kind, event => {
  if (drawn[plotOf(event)]) tell(plotOf(event), null);
});
board.addEventListener('keydown', event => {
  const way = {ArrowLeft: -1, ArrowRight: 1}[event.key], name = plotOf(event);
  if (!way || !drawn[name]) return;
  const {x0, x1, at} = drawn[name];
  tell(name, Math.min(x1, Math.max(x0, (at ?? x1) + way * (x1 - x0) / 50)));
  event.preventDefault();
});
let known = 0;
new ResizeObserver(() => {
  if (Math.abs(board.clientWidth - known) < 2) return;
  known = board.clientWidth;
  redraw();
}).observe(board);
watch('value', show);
redraw();
show();
